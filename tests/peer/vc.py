# SPDX-License-Identifier: BSD-3-Clause
"""One end of a Virtual Connection: names, Slots, state of Transfers; frames sent and awaited."""
import itertools
import random
import threading
import time

import wire
from station import Failed, Inbox, Wire
from wire import NONE

PATIENCE = 10.0  # for an answer that has to come, on a busy machine
_ports = itertools.count(1000)
_syncs = itertools.count(0x5000)


def tiles(bufx, offset, length, bufsize, stu):
    """Rule 8.2: STU_num, Bufx, Offset, place in the Block, bytes."""
    start = (bufx << bufsize) + offset
    size, at, number = 1 << stu, start, 0
    while True:
        part = min(start + length - at, size - at % size)
        yield number, at >> bufsize, at & (1 << bufsize) - 1, at - start, part
        at, number = at + part, number + 1
        if at >= start + length:
            return


class Grant:
    """Blocks that this side has permitted: a Transfer by its CTS, or a region by its MRA."""

    def __init__(self, vc, r_id, i_id, mx, start, length, blocksize=None, window=None):
        self.vc, self.r_id, self.i_id, self.mx = vc, r_id, i_id, mx
        self.start, self.length, self.blocksize, self.window = start, length, blocksize, window
        self.b_seq, self.complete, self.open = 0, set(), {}

    def has(self, b_num):
        return b_num < self.b_seq or b_num in self.complete

    def take(self, frame):
        """Rule 8.6 and following. Returns True if the Block is complete now."""
        vc, b_num = self.vc, frame.B_num
        if self.has(b_num):
            return None
        block = self.open.setdefault(b_num, {"stus": {}, "last": None, "first": None})
        at = (frame.R_Bufx << vc.bufsize) + frame.R_Offset
        if frame.R_Mx != self.mx or at < self.start or at + len(frame.stu) > self.start + self.length:
            raise Failed(f"7.6 DATA outside what was granted: {frame}")
        number = frame.STU_num
        stu = 1 << min(vc.max_stu, vc.peer_max_stu, vc.bufsize)
        if at // stu != (at + max(len(frame.stu), 1) - 1) // stu:
            raise Failed(f"8.2 an STU crosses a tile: {frame}")
        if number > 0 and at % stu:
            raise Failed(f"8.2 STU {number} does not begin its tile: {frame}")
        if not frame.has("Last") and (at + len(frame.stu)) % stu:
            raise Failed(f"8.2 STU {number} does not fill its tile: {frame}")
        block["stus"][number] = at
        vc.memory[at:at + len(frame.stu)] = frame.stu
        if frame.has("Last"):
            block["last"] = frame
        last = block["last"]
        if last is None or len(block["stus"]) != last.STU_num + 1:
            return False
        del self.open[b_num]
        self.complete.add(b_num)
        while self.b_seq in self.complete:
            self.complete.discard(self.b_seq)
            self.b_seq += 1
        last.start = block["stus"][0]
        return last


class Memory(dict):
    """Bytes by linear address."""

    def __setitem__(self, where, data):
        if not isinstance(where, slice):
            return super().__setitem__(where, data)
        for i, value in enumerate(data):
            super().__setitem__(where.start + i, value)

    def bytes(self, start, length):
        return bytes(self.get(start + i, 0) for i in range(length))


class Vc:
    def __init__(self, station, *, slots=64, bufsize=12, max_stu=10, uport=0, port=None, key=None):
        self.station = station
        self.slots, self.bufsize, self.max_stu, self.uport = slots, bufsize, max_stu, uport
        self.port = port or next(_ports)
        self.key = key or random.SystemRandom().randrange(1, NONE)
        self.peer_port = self.peer_key = 0
        self.peer_slots = self.peer_bufsize = self.peer_max_stu = 0
        self.inbox, self.wire = Inbox(), Wire()
        self.answers_rs = self.answers_rd = True
        self.keeps_state = True   # DATA for grants is placed, and answered by RSR
        self.checksum = False
        self.silent = False       # sends nothing by itself
        self.shares_port = False  # with a VC of another Key
        self.grants, self.memory = {}, Memory()
        self.lock = threading.RLock()
        self.fault = None
        self.option = b""
        self.ids = itertools.count(0x700)
        self.closed = threading.Event()
        self.seen_rs = set()  # Syncs: one that is answered late comes again
        self.answered = None  # sends the CA again
        self.tells_transfers = True  # else RS that name one are ignored
        self.established = False     # a CA that comes again is dropped (5.8)
        self.asked_twice = set()     # Syncs of RS that were repeated: the second answer is dropped
        station.ports[self.port] = self

    # --- frames ----------------------------------------------------------------------------------
    def send(self, op, *flags, payload=b"", **fields):
        names = {"s_port": self.port, "d_port": self.peer_port, "d_key": self.peer_key}
        if op == "RC":
            names.update(d_port=0, d_key=0)
        if op in ("RD", "DA", "DC"):
            names["offset"] = self.key
        kept = {"checksum": self.checksum, "at": self.wire}
        self.station.transmit(op, flags, payload, **{**kept, **names, **fields})

    def arrived(self, frame):
        for pause in self.wire.pauses("in", frame):
            if pause > 0:
                self.station.interface.after(pause, lambda: self._handle(frame))
            else:
                self._handle(frame)

    def _handle(self, frame):
        with self.lock:
            try:
                self._handle_frame(frame)
            except Failed as fault:
                self.fault = self.fault or fault

    def _handle_frame(self, frame):
        if frame.op == "RC":
            if self.answered and (frame.s_port, frame.I_Key) == (self.peer_port, self.peer_key):
                return self.answered()  # rule 5.4
            return self.inbox.put(frame)
        if frame.d_key != self.key and self.shares_port:
            return None
        if frame.d_key != self.key:
            raise Failed(f"5.5 a Key that is not this VC's: {frame}")
        if frame.op != "CA" and self.peer_port and frame.s_port != self.peer_port:
            raise Failed(f"5.18 an S_Port that is not the other's: {frame}")
        if frame.op == "CA" and self.established:
            return None
        if frame.op == "CA" and not frame.has("Reject") and not self.peer_port:
            self.adopt(frame)  # at once: an RS may stand right behind it (5.35)
        if frame.op == "RSR" and frame.Sync in self.asked_twice:
            return None
        if frame.op == "RS":
            self.seen_rs.add(frame.Sync)
            if frame.R_id != NONE and not self.tells_transfers:
                return None
            if self.answers_rs and not self.silent:
                self.answer_state(frame.Sync, frame.B_num, frame.R_id, frame.I_id)
                return None
        if frame.op == "RD" and self.answers_rd and not self.silent:
            if not self.peer_port:
                self.peer_port, self.peer_key = frame.s_port, frame.I_Key
            self.option = frame.payload
            self.send("DA")
            if self.closed.is_set():
                return None
            self.closed.set()
        if frame.op == "DC" and self.answers_rd:
            return None
        if frame.op == "DATA":
            frame.stu = frame.body[:-64] if frame.has("Append") else frame.body
            frame.append = frame.body[-64:] if frame.has("Append") else b""
            if self.keeps_state and frame.R_id in self.grants:
                return self._place(frame)
        return self.inbox.put(frame)

    def _place(self, frame):
        grant = self.grants[frame.R_id]
        done = grant.take(frame)
        if done:
            if done.has("Send_state") and not self.silent:
                self.answer_state(done.Sync, done.B_num, grant.r_id, 0)
            if not done.has("Silent"):
                self.inbox.put(done)
        elif done is None and frame.has("Send_state") and not self.silent:
            self.answer_state(frame.Sync, frame.B_num, grant.r_id, 0)

    def free_slots(self):
        return max(0, self.slots - sum(1 for f in self.inbox.waiting() if f.op in wire.SLOT_OPS))

    def answer_state(self, sync, b_num, r_id, i_id):
        """Rules 6.4, 6.13, 6.14."""
        fields = dict(R_Slots=self.free_slots(), Sync=sync, B_num=b_num, I_id=NONE)
        flags = ()
        if r_id != NONE:
            grant = self.grants.get(r_id)
            fields.update(R_id=r_id)
            if grant:
                fields.update(I_id=grant.i_id, B_seq=grant.b_seq,
                              B_num=b_num if b_num != NONE and grant.has(b_num) else NONE)
            else:
                flags, fields["I_id"] = ("Reject",), i_id
        self.send("RSR", *flags, **fields)

    # --- waiting -----------------------------------------------------------------------------------
    def take(self, timeout=PATIENCE):
        frame = self.inbox.take(timeout)
        if self.fault:
            raise self.fault
        return frame

    def forget(self, condition):
        with self.inbox.changed:
            for frame in [frame for frame in self.inbox.frames if condition(frame)]:
                self.inbox.frames.remove(frame)

    @staticmethod
    def differs(frame, op, flags, fields):
        if frame.op != op:
            return f"{op} expected"
        if flags is not None and frame.bits != wire.flag_bits(flags):
            return f"flags {flags} expected"
        for name, value in fields.items():
            if getattr(frame, name) != value:
                return f"{name} {value:#x} expected" if isinstance(value, int) else f"{name} {value!r} expected"
        return None

    def expect(self, op, flags=None, timeout=PATIENCE, skip=(), **fields):
        """Fails unless the next frame is this one. `skip`: operations that may come before it."""
        until = time.monotonic() + timeout
        while True:
            frame = self.take(max(0.0, until - time.monotonic()))
            if frame is None:
                raise Failed(f"no {op} within {timeout} s")
            wrong = self.differs(frame, op, flags, fields)
            if wrong is None:
                return frame
            if frame.op not in skip:
                raise Failed(f"{wrong}, not {frame}")

    def sync(self):
        return next(_syncs)

    def ask(self, timeout=PATIENCE, skip=(), **fields):
        """Repeats an RS until its RSR comes. Fails if anything but `skip` comes before that."""
        sync = self.sync()
        until = time.monotonic() + timeout
        fields = {**dict(B_num=NONE, R_id=NONE), **fields}
        asked = 0
        while time.monotonic() < until:
            self.send("RS", Sync=sync, **fields)
            asked += 1
            again = time.monotonic() + 1.0
            while time.monotonic() < again:
                frame = self.take(max(0.0, again - time.monotonic()))
                if frame is None:
                    break
                if frame.op == "RSR" and frame.Sync == sync:
                    if asked > 1:
                        self.drop_answers(sync)
                    return frame
                if frame.op not in skip and not (frame.op == "RSR" and "RSR" in skip):
                    raise Failed(f"6.4 only an RSR expected, not {frame}")
        raise Failed(f"6.4 no RSR within {timeout} s")

    def drop_answers(self, sync):
        with self.lock:
            self.asked_twice.add(sync)
            self.forget(lambda frame: frame.op == "RSR" and frame.Sync == sync)

    def quiet(self, skip=()):
        """Fails if anything sent so far is answered: the next frame has to be the answer to an RS."""
        return self.ask(skip=skip)

    def pause(self, seconds):
        """Waits, and fails if a frame comes."""
        frame = self.take(seconds)
        if frame is not None:
            raise Failed(f"nothing expected, not {frame}")

    # --- connections -------------------------------------------------------------------------------
    def rc(self, uport, **changed):
        self.send("RC", **{**dict(I_Slots=self.slots, I_Bufsize=self.bufsize, I_Key=self.key,
                                  I_Max_STU=self.max_stu, R_UPort=uport, I_UPort=self.uport), **changed})

    def adopt(self, frame):
        self.peer_port, self.peer_slots, self.peer_bufsize = frame.s_port, frame.param, frame.bufx
        self.peer_key, self.peer_max_stu = frame.offset, frame.sync
        self.option = frame.payload

    def connect(self, uport, timeout=PATIENCE, **changed):
        """Repeats RC as rule 5.21 says, until CA comes."""
        interval, until = 0.05, time.monotonic() + timeout
        while time.monotonic() < until:
            self.rc(uport, **changed)
            frame = self.take(interval)
            interval = min(interval * 2, 1.0)
            if frame is None:
                continue
            if frame.op != "CA" or frame.has("Reject"):
                raise Failed(f"5.1 CA expected, not {frame}")
            self.adopt(frame)
            self.established = True
            self.forget(lambda other: other.op == "CA")
            if not frame.s_port or not frame.R_Key:
                raise Failed(f"5.3 a CA without Port or Key: {frame}")
            return frame
        raise Failed("5.1 no CA")

    def accept(self, rc, **changed):
        """Answers an RC by CA."""
        self.adopt(rc)
        self.forget(lambda other: other.op == "RC" and other.head == rc.head)  # it came again before its answer
        self.answered = lambda: self.send("CA", **{
            **dict(R_Slots=self.slots, R_Bufsize=self.bufsize, R_Key=self.key, R_Max_STU=self.max_stu,
                   I_UPort=rc.I_UPort, R_UPort=rc.R_UPort), **changed})
        self.answered()

    def close(self, **changed):
        """Repeats RD until DA comes, then sends DC."""
        self.answers_rd, self.established = True, False
        for _ in range(8):
            self.send("RD", **changed)
            until = time.monotonic() + 1.0
            while time.monotonic() < until:
                frame = self.inbox.take(max(0.0, until - time.monotonic()))
                if frame is not None and frame.op == "DA":
                    self.send("DC")
                    return
        raise Failed("5.2 no DA")

    def gone(self):
        self.station.ports.pop(self.port, None)

    # --- Transfers ------------------------------------------------------------------------------------
    def stu_log2(self):
        return min(self.max_stu, self.peer_max_stu, self.peer_bufsize)

    def block(self, cts, data, *flags, f_offset=0, order=None, skip=(), sync=None, each=(), append=b"",
              opaque=0, **changed):
        """Sends the Block that a CTS permits, or a Put Block, from the tile of `f_offset` on."""
        sync = self.sync() if sync is None else sync
        stus = list(tiles(cts.R_Bufx, cts.R_Offset, len(data), self.peer_bufsize, self.stu_log2()))
        for i in order or range(len(stus)):
            number, bufx, offset, place, part = stus[i]
            if number in skip or (place + part <= f_offset and number != stus[-1][0]):
                continue
            last = number == stus[-1][0]
            on = (("Last",) + flags + (("Append",) if append else ())) if last else ()
            self.send("DATA", *each, *on, payload=data[place:place + part], append=append if last else b"",
                      **{**dict(STU_num=number, R_Mx=cts.R_Mx, R_Bufx=bufx, R_Offset=offset, Sync=sync,
                                B_num=getattr(cts, "B_num", 0) if cts.op == "CTS" else 0,
                                R_id=cts.R_id, Opaque=opaque), **changed})
        return sync

    def grant(self, rts, b_num=0, *, blocksize=16, bufx=0x100, offset=0, mx=3, r_id=None, **changed):
        """Sends CTS for a Block of the Transfer that an RTS offers."""
        r_id = rts.I_id + 0x10000 if r_id is None else r_id
        if r_id not in self.grants:
            start = (bufx << self.bufsize) + offset
            self.grants[r_id] = Grant(self, r_id, rts.I_id, mx, start, rts.T_len, blocksize)
        at = self.grants[r_id].start + (b_num << blocksize)
        self.send("CTS", **{**dict(Blocksize=blocksize, R_Mx=mx, R_Bufx=at >> self.bufsize,
                                   R_Offset=at & (1 << self.bufsize) - 1, B_num=b_num, I_id=rts.I_id,
                                   R_id=r_id), **changed})
        return self.grants[r_id]

    def open_region(self, rmr, *, bufx=0x200, offset=0, mx=4, window=None, length=None, r_id=None,
                    payload=b""):
        r_id = next(self.ids) if r_id is None else r_id
        length = rmr.T_len if length is None else length
        window = rmr.B_win if window is None else window
        if r_id not in self.grants:
            self.grants[r_id] = Grant(self, r_id, rmr.I_id, mx, (bufx << self.bufsize) + offset, length,
                                      window=window)
        self.send("MRA", B_win=window, R_Mx=mx, R_Bufx=bufx, R_Offset=offset, T_len=length, I_id=rmr.I_id,
                  R_id=r_id, payload=payload)
        return self.grants[r_id]
