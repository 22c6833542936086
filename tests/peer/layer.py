# SPDX-License-Identifier: BSD-3-Clause
"""The managed layer of one connection, written from docs/managed-wire.md."""
import itertools
import struct
import time

from station import Failed
from vc import PATIENCE, Grant
from wire import NONE

MAGIC, NOTICE, ENDED = 0x53544D48, 0x53544D4E, 0x53544D45
REQUEST, ACCEPT, REJECT = 1, 2, 3
SLOTS, SLOT, WORDS = 16, 4096, 16
SPAN = 16  # slots of a message that this side takes, unless a conversation says otherwise
RING = 1


def words(*values):
    return struct.pack(f">{len(values)}I", *values)


def option(*values):
    return words(*values).ljust(32, b"\0")


def slots_of(length):
    """The slots that a message takes."""
    return max(1, (WORDS + length + SLOT - 1) // SLOT)


def longest(span):
    return span * SLOT - WORDS


def place_of(position, count):
    """Where a message begins: one that does not fit before the end of the ring leaves the rest out."""
    left = SLOTS - position % SLOTS
    return position if count <= left else position + left


def number_of(frame):
    return int.from_bytes(frame.payload[:4], "big") if len(frame.payload) == 32 else 0


def hello(kind, private=b"", magic=MAGIC, version=1, length=None):
    return words(magic, version << 16 | kind, len(private) if length is None else length) + private


class Request:
    """A request without an answer: sent again at doubling intervals (5.21)."""

    def __init__(self, send, interval=0.04):
        self.send, self.interval = send, interval
        self.due, self.tries = 0.0, 0

    def beat(self, now):
        if now < self.due:
            return
        self.send()
        self.tries += 1
        self.due = now + self.interval
        self.interval = min(2 * self.interval, 1.0)


class Message:
    """A message that this side sends."""

    def __init__(self, number, data, tag):
        self.number, self.data, self.tag = number, data, tag
        self.i_id = self.r_id = self.blocksize = self.status = None
        self.b_seq, self.sync = 0, {}
        self.request = self.slot = None

    def count(self):
        return max(1, (len(self.data) + (1 << self.blocksize) - 1) >> self.blocksize)


class Remote:
    """A region of the other side."""

    def __init__(self, mra, address, access):
        self.mra, self.address, self.access = mra, address, access
        self.blocks, self.b_seq = {}, 0  # b_num: (at, data, flags), of those not confirmed
        self.next = 0
        self.request = None


class Layer:
    def __init__(self, vc, seed=0):
        self.vc = vc
        self.next_number = self.expected = 1
        self.ids = itertools.count(0x100 + seed)
        self.places = itertools.count(0x10000, 0x20)
        self.sending = {}    # by I_id
        self.offers = {}     # by number: RTS
        self.skipped = set()
        self.receiving = {}  # by R_id: [rts, grant, next Block]
        self.room = []       # lengths of receives, in order
        self.messages = []   # what came: (number, tag, bytes)
        self.by_number = {}
        self.done_ids = {}   # I_id of the other side: None, or a refusal
        self.notes = []      # headers that nothing here is for
        self.remotes = {}    # by R_id
        self.ring_out = self.ring_in = None
        self.ring_taken = self.ring_sent = self.told = self.noticed = 0  # slots
        self.span, self.span_out = SPAN, 1
        self.slots_in = {}   # slot: (number, tag, bytes)
        self.serves_ring, self.wants_ring = True, False
        self.window = 4
        self.ask_after = 0.04
        self.first_untold, self.gone = 1, set()

    # --- moving ---------------------------------------------------------------------------------------
    def pump(self, until, timeout=PATIENCE * 3):
        """Handles frames and repeats requests until the condition holds."""
        over = time.monotonic() + timeout
        while not until():
            now = time.monotonic()
            if now > over:
                raise Failed("the managed layer gets no further")
            for request in self.requests():
                request.beat(now)
            frame = self.vc.take(0.005)
            if frame is not None:
                self.handle(frame)

    def requests(self):
        for message in list(self.sending.values()):
            if message.request:
                yield message.request
        for remote in list(self.remotes.values()):
            if remote.blocks and remote.request:
                yield remote.request

    def handle(self, frame):
        handler = getattr(self, "on_" + frame.op.lower(), None)
        if handler is None or handler(frame) is False:
            self.notes.append(frame)

    def note(self, op, timeout=PATIENCE, where=lambda frame: True):
        """The next header of that operation that no handler has taken."""
        def wanted():
            return next((n for n in self.notes if not isinstance(n, tuple) and n.op == op and where(n)), None)
        self.pump(wanted, timeout)
        found = wanted()
        self.notes.remove(found)
        return found

    # --- messages that leave ----------------------------------------------------------------------------
    def take_number(self):
        self.next_number += 1
        return self.next_number - 1

    def rts(self, message, **changed):
        self.vc.send("RTS", payload=option(message.number),
                     **{**dict(CTS_req=4, Max_Block=20, T_len=len(message.data), RTR_id=NONE, I_id=message.i_id),
                        **changed})

    def offer(self, data, tag=0):
        message = Message(self.take_number(), data, tag)
        message.i_id = next(self.ids)
        self.sending[message.i_id] = message
        message.request = Request(lambda: self.rts(message), self.ask_after)
        return message

    def send(self, data, tag=0, wait=True):
        """Sends by the ring if possible, otherwise as an offer."""
        if self.has_room(len(data)):
            return self.put_message(data, tag)
        message = self.offer(data, tag)
        if wait:
            self.finish(message)
        return message

    def finish(self, message, timeout=PATIENCE * 3):
        self.pump(lambda: message.status is not None, timeout)
        return message.status

    def on_ra(self, frame):
        message = self.sending.get(frame.I_id)
        if message is None:
            return False
        if frame.has("Reject"):
            message.status, message.request = "refused", None
            del self.sending[frame.I_id]
        elif message.r_id is None:
            message.request = Request(lambda: self.rts(message), 1.0)
            message.request.due = time.monotonic() + 1.0
        return None

    def on_cts(self, frame):
        message = self.sending.get(frame.I_id)
        if message is None:
            return False
        if message.r_id is None:
            message.r_id, message.blocksize = frame.R_id, frame.Blocksize
        elif (message.r_id, message.blocksize) != (frame.R_id, frame.Blocksize):
            raise Failed(f"9.4 another R_id or Blocksize: {frame}")
        if frame.B_num >= message.count():
            raise Failed(f"9.4 a Block that the Transfer does not have: {frame}")
        at = frame.B_num << message.blocksize
        part = message.data[at:at + (1 << message.blocksize)]
        self.vc.block(frame, part, "Send_state", f_offset=frame.F_Offset, opaque=message.tag)
        message.request = Request(lambda: self.ask(message), self.ask_after)
        message.request.due = time.monotonic() + self.ask_after
        return None

    def ask(self, message):
        self.vc.send("RS", Sync=self.vc.sync(), B_num=NONE, R_id=message.r_id, I_id=message.i_id)

    def on_rsr(self, frame):
        message = self.sending.get(frame.I_id)
        if message is not None and frame.R_id == message.r_id:
            if frame.has("Reject"):
                message.status = "ended"
            message.b_seq = max(message.b_seq, frame.B_seq)
            if message.b_seq >= message.count():
                message.status = "done"
            if message.status:
                message.request = None
                del self.sending[frame.I_id]
            return None
        remote = self.remotes.get(frame.R_id)
        if remote is not None and remote.mra.I_id == frame.I_id:
            self.confirmed(remote, frame)
            return None
        return False

    def withdraw(self, message):
        self.sending.pop(message.i_id, None)
        message.request = None
        self.vc.send("END", R_id=NONE if message.r_id is None else message.r_id, I_id=message.i_id,
                     payload=option(message.number))
        return self.note("EA")

    # --- messages that come -------------------------------------------------------------------------------
    def receive(self, length):
        self.room.append(length)
        self.match()

    def receives(self, *lengths):
        for length in lengths:
            self.receive(length)

    def next_message(self, timeout=PATIENCE * 3):
        """The next message: number, (tag, bytes)."""
        self.pump(lambda: self.messages, timeout)
        return self.messages.pop(0)

    def on_rts(self, frame):
        if frame.RTR_id != NONE:
            return False
        number = number_of(frame)
        if not number:
            raise Failed(f"9.21 a Write without a number: {frame}")
        if frame.I_id in self.done_ids:
            if self.done_ids[frame.I_id]:
                self.vc.send("RA", "Reject", I_id=frame.I_id)
            return None
        for r_id, (rts, _, _) in self.receiving.items():
            if rts.I_id == frame.I_id:
                self.vc.send("RA", I_id=frame.I_id, R_id=r_id)
                return None
        known = self.offers.get(number)
        if known is None:
            frame.r_id = next(self.ids)
            self.offers[number] = known = frame
            self.match()
        elif known.I_id != frame.I_id:
            raise Failed(f"9.21 two messages with number {number}")
        if number in self.offers:
            self.vc.send("RA", I_id=frame.I_id, R_id=known.r_id)
        return None

    def match(self):
        """The message whose turn it is, in the ring or offered, takes the next receive."""
        while True:
            if self.expected in self.skipped:
                self.skipped.discard(self.expected)
                self.expected += 1
                continue
            if not self.room:
                return
            number = self.expected
            slot = next((s for s, m in self.slots_in.items() if m[0] == number), None)
            if slot is not None:
                _, tag, data = self.slots_in.pop(slot)
                self.room.pop(0)
                place = place_of(self.told, slots_of(len(data)))
                if place % SLOTS != slot:
                    raise Failed(f"9.41 message {number} in slot {slot}, not {place % SLOTS}")
                self.told = place + slots_of(len(data))
                self.expected += 1
                self.by_number[number] = (tag, data)
                if self.told - self.noticed >= 8:
                    self.notice()
                self.tell()
                continue
            rts = self.offers.pop(number, None)
            if rts is None:
                return
            self.expected += 1
            if rts.T_len > self.room[0]:
                self.done_ids[rts.I_id] = True
                self.vc.send("RA", "Reject", I_id=rts.I_id)
                self.by_number[number] = None
                self.tell()
                continue
            self.room.pop(0)
            self.begin(rts, rts.r_id)

    def begin(self, rts, r_id):
        blocksize = max(8, min(rts.Max_Block, 13))
        grant = Grant(self.vc, r_id, rts.I_id, 3, next(self.places) << self.vc.bufsize, rts.T_len, blocksize)
        self.vc.grants[r_id] = grant
        self.receiving[r_id] = [rts, grant, 0]
        for _ in range(min(max(rts.CTS_req, 1), self.window)):
            self.grant(r_id)

    def grant(self, r_id):
        rts, grant, b_num = self.receiving[r_id]
        if b_num >= max(1, (rts.T_len + (1 << grant.blocksize) - 1) >> grant.blocksize):
            return
        self.receiving[r_id][2] += 1
        self.cts(r_id, b_num)

    def cts(self, r_id, b_num, **changed):
        rts, grant, _ = self.receiving[r_id]
        at = grant.start + (b_num << grant.blocksize)
        self.vc.send("CTS", **{**dict(Blocksize=grant.blocksize, R_Mx=3, R_Bufx=at >> self.vc.bufsize,
                                      R_Offset=at & (1 << self.vc.bufsize) - 1, B_num=b_num, I_id=rts.I_id,
                                      R_id=r_id), **changed})
        self.vc.station.interface.after(0.03, lambda: self.again(r_id, b_num, 0.06))

    def again(self, r_id, b_num, pause):
        """Rule 10.3: repeats the CTS of a Block without progress."""
        entry = self.receiving.get(r_id)
        if entry is None or entry[1].has(b_num) or self.vc.closed.is_set() or pause > 5:
            return
        rts, grant, _ = entry
        at = grant.start + (b_num << grant.blocksize)
        self.vc.send("CTS", Blocksize=grant.blocksize, R_Mx=3, R_Bufx=at >> self.vc.bufsize,
                     R_Offset=at & (1 << self.vc.bufsize) - 1, B_num=b_num, I_id=rts.I_id, R_id=r_id)
        self.vc.station.interface.after(pause, lambda: self.again(r_id, b_num, pause * 2))

    def on_data(self, frame):
        if self.ring_in is not None and frame.R_id == self.ring_in.r_id:
            return self.on_slot(frame)
        entry = self.receiving.get(frame.R_id)
        if entry is None:
            return False
        rts, grant, _ = entry
        blocks = max(1, (rts.T_len + (1 << grant.blocksize) - 1) >> grant.blocksize)
        if blocks - frame.B_num <= 4 and not frame.has("Send_state"):
            raise Failed(f"9.42 one of the last four Blocks without Send_state: {frame}")
        self.grant(frame.R_id)
        if grant.b_seq == blocks:
            self.done_ids[rts.I_id] = None
            del self.receiving[frame.R_id]
            data = self.vc.memory.bytes(grant.start, rts.T_len)
            if rts.RTR_id != NONE:
                self.notes.append(("read", data))
            else:
                self.by_number[number_of(rts)] = (frame.Opaque, data)
                self.tell()
        return None

    def tell(self):
        """Messages are delivered in the order of their numbers."""
        while self.first_untold in self.by_number or self.first_untold in self.gone:
            came = self.by_number.pop(self.first_untold, None)
            if came is not None:
                self.messages.append((self.first_untold, came))
            self.first_untold += 1

    def on_end(self, frame):
        self.vc.send("EA", I_id=frame.I_id, R_id=frame.R_id)
        number = number_of(frame)
        if number:
            self.offers.pop(number, None)
            if number >= self.expected:
                self.skipped.add(number)
            self.gone.add(number)
        for r_id, (rts, _, _) in list(self.receiving.items()):
            if rts.I_id == frame.I_id:
                del self.receiving[r_id]
                self.vc.grants.pop(r_id, None)
        self.remotes.pop(frame.I_id, None)
        self.done_ids[frame.I_id] = None
        self.match()
        self.tell()
        self.notes.append(frame)

    # --- rings ------------------------------------------------------------------------------------------
    def on_rmr(self, frame):
        if number_of(frame) != RING:
            return False
        if not self.serves_ring:
            self.vc.send("MRA", "Reject", I_id=frame.I_id)
            return None
        if self.ring_in is None:
            if (frame.T_len, frame.B_win) != (SLOTS * SLOT, SLOTS):
                raise Failed(f"9.31 the RMR of a ring: {frame}")
            self.ring_in = Grant(self.vc, next(self.ids), frame.I_id, 5, 0x8000 << self.vc.bufsize, SLOTS * SLOT,
                                 window=SLOTS)
            self.vc.grants[self.ring_in.r_id] = self.ring_in
        self.vc.send("MRA", B_win=SLOTS, R_Mx=5, R_Bufx=0x8000, T_len=SLOTS * SLOT, I_id=frame.I_id,
                     R_id=self.ring_in.r_id, payload=option(0, self.span))
        return None

    def on_slot(self, frame):
        if not frame.has("Interrupt") or frame.has("Silent"):
            raise Failed(f"9.31 a ring's Put without Interrupt: {frame}")
        place = frame.start - self.ring_in.start
        slot = place // SLOT
        if place % SLOT:
            raise Failed(f"9.31 Put Block {frame.B_num} at {place}")
        number, length, tag, taken = struct.unpack(">4I", self.vc.memory.bytes(frame.start, WORDS))
        count = slots_of(length)
        if count > max(self.span, 1):
            raise Failed(f"9.41 {count} slots")
        for other, (_, _, data) in self.slots_in.items():
            if slot < other + slots_of(len(data)) and other < slot + count:
                raise Failed(f"9.31 slots {slot} to {slot + count - 1}: not free")
        self.slots_in[slot] = (number, tag, self.vc.memory.bytes(frame.start + WORDS, length))
        self.ring_taken = max(self.ring_taken, taken)
        self.match()

    def notice(self):
        self.noticed = self.told
        self.vc.send("NOP", sync=NOTICE, b_num=self.told)

    def on_nop(self, frame):
        if frame.sync != NOTICE:
            return False
        self.ring_taken = max(self.ring_taken, frame.b_num)
        return None

    def open_ring(self):
        self.ring_out = self.open(RING, SLOTS * SLOT, SLOTS)
        self.span_out = min(max(self.ring_out.address, 1), SLOTS)
        return self.ring_out

    def has_room(self, length):
        count = slots_of(length)
        return (self.ring_out is not None and count <= self.span_out
                and place_of(self.ring_sent, count) + count - self.ring_taken <= SLOTS)

    def put_message(self, data, tag=0):
        number = self.take_number()
        place = place_of(self.ring_sent, slots_of(len(data)))
        self.ring_sent = place + slots_of(len(data))
        self.noticed = self.told
        b_num = self.put(self.ring_out, place % SLOTS * SLOT, words(number, len(data), tag, self.told) + data,
                         "Interrupt")
        message = Message(number, data, tag)
        message.b_num = b_num
        return message

    # --- regions ------------------------------------------------------------------------------------------
    def open(self, key, length=1, window=128):
        """Repeats RMR until MRA comes. Returns None if it is refused."""
        i_id = next(self.ids)
        request = Request(lambda: self.vc.send("RMR", B_win=window, T_len=length, I_id=i_id, payload=option(key)))
        found = []

        def seen():
            for frame in self.notes:
                if not isinstance(frame, tuple) and frame.op == "MRA" and frame.I_id == i_id:
                    found.append(frame)
                    return True
            request.beat(time.monotonic())
            return False
        self.pump(seen)
        mra = found[0]
        self.notes = [n for n in self.notes if isinstance(n, tuple) or n.op != "MRA" or n.I_id != i_id]
        if mra.has("Reject"):
            return None
        if len(mra.payload) != 32:
            raise Failed(f"9.29 an MRA without terms: {mra}")
        address, access = struct.unpack(">QI", mra.payload[:12])
        if mra.R_id not in self.remotes:
            self.remotes[mra.R_id] = Remote(mra, address, access)
        return self.remotes[mra.R_id]

    def put(self, remote, at, data, *flags):
        b_num = remote.next
        remote.next += 1
        remote.blocks[b_num] = (at, data, flags or ("Silent",))
        self.put_block(remote, b_num)
        if remote.request is None:
            self.start_asking(remote)
        return b_num

    def start_asking(self, remote):
        def ask():
            if remote.blocks:
                self.vc.send("RS", Sync=self.vc.sync(), B_num=remote.b_seq, R_id=remote.mra.R_id, I_id=remote.mra.I_id)
        remote.request = Request(ask, self.ask_after)
        remote.request.due = time.monotonic() + self.ask_after

    def put_block(self, remote, b_num):
        at, data, flags = remote.blocks[b_num]
        mra, vc = remote.mra, self.vc
        start = (mra.R_Bufx << vc.peer_bufsize) + mra.R_Offset + at
        place = Grant(vc, mra.R_id, mra.I_id, mra.R_Mx, start, len(data))
        place.op, place.R_Mx, place.R_id = "MRA", mra.R_Mx, mra.R_id
        place.R_Bufx, place.R_Offset = start >> vc.peer_bufsize, start & (1 << vc.peer_bufsize) - 1
        each = tuple(f for f in flags if f in ("Silent", "Order"))
        vc.block(place, data, "Send_state", *flags, B_num=b_num, each=each if len(data) + at % 1024 > 1024 else ())

    def confirmed(self, remote, frame):
        if frame.has("Reject"):
            raise Failed(f"6.14 a region that is gone: {frame}")
        before = remote.b_seq
        remote.b_seq = max(remote.b_seq, frame.B_seq)
        for b_num in [b for b in remote.blocks if b < remote.b_seq]:
            del remote.blocks[b_num]
        if remote.b_seq != before:
            self.start_asking(remote)
        elif frame.B_num == NONE and remote.b_seq in remote.blocks:
            self.put_block(remote, remote.b_seq)

    def settled(self, remote):
        self.pump(lambda: not remote.blocks)

    # --- the beginning and the end ----------------------------------------------------------------------------
    def request_connection(self, private=b"", **changed):
        """As initiator: the request, and the answer's kind and private data."""
        self.receive(2048)
        self.finish(self.offer(hello(REQUEST, private, **changed)))
        _, (_, data) = self.next_message()
        return self.parse(data)

    def await_request(self):
        self.receive(2048)
        _, (_, data) = self.next_message()
        return self.parse(data)

    def answer(self, kind, private=b""):
        return self.finish(self.offer(hello(kind, private)))

    @staticmethod
    def parse(data):
        magic, version, length = struct.unpack(">III", data[:12])
        if magic != MAGIC or version >> 16 != 1 or length != len(data) - 12:
            raise Failed(f"9.30 {data[:12].hex()}")
        return version & 0xFFFF, data[12:]
