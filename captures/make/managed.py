# SPDX-License-Identifier: BSD-3-Clause
"""Managed connections: requests and answers in their first messages, rings of short messages, regions
by name; and one trace for each rule of the managed layer, which it breaks."""
from broken import broken, during
from catalogue import trace
from frames import NONE, pattern
from talk import MILLISECOND, Talk

MAGIC, NOTICE, ENDED = 0x53544D48, 0x53544D4E, 0x53544D45
BROKEN_OFF, NO_RECEIVE = 1, 2
REQUEST, ACCEPT, REJECT = 1, 2, 3
SLOT, STU = 4096, 1024


def words(*values, size=4):
    return b"".join(value.to_bytes(size, "big") for value in values)


def option(*values):
    return words(*values).ljust(32, b"\0")


def hello(kind, private=b"", version=1, magic=MAGIC):
    return words(magic, version << 16 | kind, len(private)) + private


class Managed(Talk):
    """A and B on a managed connection. Ids of A's Writes are 0x100 + number, of B's 0x200."""

    def __init__(self, slots=64):
        super().__init__()
        self.A.slots = self.B.slots = slots
        self.connect()
        self.sync = 0x50

    def offer(self, number, length, sender=None, payload=None, **changed):
        s = sender or self.A
        base = 0x100 if s is self.A else 0x200
        self.send(s, self.B if s is self.A else self.A, "RTS",
                  payload=option(number) if payload is None else payload,
                  **{**dict(CTS_req=4, Max_Block=16, T_len=length, RTR_I_id=NONE, I_id=base + number),
                     **changed})

    def grant(self, number, sender=None, **changed):
        s = sender or self.A
        base = 0x100 if s is self.A else 0x200
        self.send(self.B if s is self.A else self.A, s, "CTS",
                  **{**dict(Blocksize=16, R_Mx=3, R_Bufx=0x100, I_id=base + number,
                            R_id=0x300 + number), **changed})

    def body(self, number, payload, sender=None, b_num=0, tag=0, flags=("Last", "Send_state"), **changed):
        s = sender or self.A
        to = self.B if s is self.A else self.A
        self.sync += 1
        self.send(s, to, "DATA", *flags, payload=payload,
                  **{**dict(R_Mx=3, R_Bufx=0x100, Sync=self.sync, B_num=b_num, R_id=0x300 + number,
                            Opaque=tag), **changed})

    def told(self, number, sender=None, b_seq=1, **changed):
        s = sender or self.A
        base = 0x100 if s is self.A else 0x200
        self.send(self.B if s is self.A else self.A, s, "RSR",
                  **{**dict(R_Slots=60, B_seq=b_seq, Sync=self.sync, B_num=b_seq - 1,
                            I_id=base + number, R_id=0x300 + number), **changed})

    def grant_part(self, number, first, *stus, **changed):
        """B grants A `stus` of a Block, counted from STU `first` on."""
        named = sum(1 << 255 - stu for stu in stus)
        self.grant(number, F_Offset=first * STU, payload=words(named, size=32), **changed)

    def send_stus(self, number, length, *stus):
        self.sync += 1
        self.block(length, only=stus, Sync=self.sync, R_id=0x300 + number, Opaque=0)

    def message(self, number, payload, sender=None):
        self.offer(number, len(payload), sender)
        self.grant(number, sender)
        self.body(number, payload, sender)
        self.told(number, sender)

    def up(self, answer=ACCEPT):
        self.message(1, hello(REQUEST, b"who"))
        self.message(1, hello(answer, b"me"), self.B)
        return self

    def end_of_up(self):
        self.up()
        self.disconnect()
        return self

    def open(self, b_win=2):
        """B's region 77 to A."""
        self.a("RMR", B_win=b_win, T_len=1000, I_id=0x190, payload=option(77))
        self.b("MRA", B_win=b_win, R_Mx=4, R_Bufx=0x200, T_len=8192, I_id=0x190, R_id=0x390,
               payload=words(0x7000, size=8) + words(28) + bytes(20))
        return self

    def put(self, b_num, payload, asks=True, told=None):
        self.sync += 1
        self.a("DATA", "Last", "Silent", *(("Send_state",) if asks else ()), payload=payload, R_Mx=4,
               R_Bufx=0x200, R_Offset=len(payload) * b_num, Sync=self.sync, B_num=b_num, R_id=0x390)
        if asks:
            self.b("RSR", R_Slots=60, B_seq=b_num + 1 if told is None else told, Sync=self.sync, B_num=b_num, I_id=0x190,
                   R_id=0x390)

    def ring(self, **changed):
        """B opens its ring to A."""
        self.a("RMR", B_win=16, T_len=16 * SLOT, I_id=0x180, payload=option(1))
        self.b("MRA", **{**dict(payload=bytes(32), B_win=16, R_Mx=4, R_Bufx=0x200, T_len=16 * SLOT, I_id=0x180,
                                R_id=0x380), **changed})
        return self

    def eager(self, b_num, number, payload, flags=("Last", "Send_state", "Interrupt"), slot=None,
              length=None, taken=0):
        data = words(number, len(payload) if length is None else length, 0, taken) + payload
        self.sync += 1
        stus = [data[at:at + STU] for at in range(0, len(data), STU)]
        for i, stu in enumerate(stus):
            at = (b_num % 16 if slot is None else slot) * SLOT + i * STU
            self.a("DATA", *(flags if i == len(stus) - 1 else ()), payload=stu, STU_num=i, R_Mx=4,
                   R_Bufx=0x200 + at // SLOT, R_Offset=at % SLOT, Sync=self.sync, B_num=b_num, R_id=0x380)
        self.eager_told(b_num)

    def eager_told(self, b_num):
        self.b("RSR", R_Slots=60, B_seq=b_num + 1, Sync=self.sync, B_num=b_num, I_id=0x180,
               R_id=0x380)


def managed(rule, how, by="A", play=None):
    return during(rule, how, by, play, connected=lambda: Managed().up())


@trace("a managed connection: request and accept, rings of short messages, and one that is offered")
def managed_messages():
    t = Managed().up().ring()
    for i in range(3):
        t.eager(i, 2 + i, pattern(100 + i))
    t.message(5, pattern(900))
    t.b("NOP", sync=NOTICE, b_num=3)
    t.disconnect()
    return t


@trace("a managed connection that is rejected")
def managed_rejected():
    t = Managed().up(REJECT)
    t.disconnect()
    return t


@trace("a managed connection's request is lost twice behind the capture: its RTS comes again")
def managed_request_again():
    t = Managed()
    for pause in (40, 80):
        t.offer(1, len(hello(REQUEST, b"who")))
        t.wait(pause * MILLISECOND)
    return t.end_of_up()


@trace("a message of three Blocks, two CTS outstanding: each Block that completes brings the next CTS")
def managed_blocks():
    t = Managed().up()
    t.offer(2, 2500, CTS_req=2, Max_Block=10)
    for k in range(2):
        t.grant(2, Blocksize=10, B_num=k, R_Offset=1024 * k)
    for k in range(3):
        t.body(2, pattern(min(1024, 2500 - 1024 * k), 1024 * k), b_num=k, tag=7, R_Offset=1024 * k)
        t.told(2, b_seq=k + 1)
        if k == 0:
            t.grant(2, Blocksize=10, B_num=2, R_Offset=2048)
    t.disconnect()
    return t


HEEDS_PARTS = 3


@trace("a Block of seven STUs is granted in two parts; STU 1 is lost behind the capture and comes again")
def managed_in_parts():
    t = Managed().up()
    t.offer(2, 7 * STU, payload=option(2, HEEDS_PARTS))
    t.grant_part(2, 0, *range(4))
    t.send_stus(2, 7 * STU, *range(4))
    t.grant_part(2, 4, *range(3))
    t.send_stus(2, 7 * STU, *range(4, 7))
    t.wait(40 * MILLISECOND)
    t.grant_part(2, 1, 0)
    t.send_stus(2, 7 * STU, 1)
    t.told(2, Sync=t.sync - 1)
    t.disconnect()
    return t


@trace("an offer waits for a receive: RA, the RTS again after a second, RA again, then CTS")
def managed_waits():
    t = Managed().up()
    for pause in (1000, 300):
        t.offer(2, 500)
        t.b("RA", I_id=0x102, R_id=0x302)
        t.wait(pause * MILLISECOND)
    t.grant(2)
    t.body(2, pattern(500))
    t.told(2)
    t.disconnect()
    return t


@trace("a message longer than its receive is refused, and again; the next one takes the receive")
def managed_too_long():
    t = Managed().up()
    for _ in range(2):
        t.offer(2, 5000)
        t.b("RA", "Reject", I_id=0x102)
        t.wait(40 * MILLISECOND)
    t.message(3, pattern(500))
    t.disconnect()
    return t


@trace("message 2 is lost behind the capture and 3 waits for it: both get their CTS when it comes again")
def managed_order():
    t = Managed().up()
    t.offer(2, 500)
    t.offer(3, 600)
    t.b("RA", I_id=0x103, R_id=0x303)
    t.wait(40 * MILLISECOND)
    t.offer(2, 500)
    t.grant(2)
    t.grant(3, R_Bufx=0x101)
    t.body(2, pattern(500))
    t.told(2)
    t.body(3, pattern(600), R_Bufx=0x101)
    t.told(3)
    t.disconnect()
    return t


@trace("the RSR of a message is lost behind the capture: its sender asks by RS")
def managed_state_asked():
    t = Managed().up()
    t.offer(2, 500)
    t.grant(2)
    t.body(2, pattern(500))
    t.told(2)
    t.wait(2 * MILLISECOND)
    t.a("RS", Sync=0x99, B_num=NONE, R_id=0x302, I_id=0x102)
    t.told(2, Sync=0x99, B_num=NONE)
    t.disconnect()
    return t


@trace("all 16 slots of a ring are full: the next short message is offered; the notice frees the slots")
def managed_ring_full():
    t = Managed().up().ring()
    for i in range(16):
        t.eager(i, 2 + i, pattern(50))
    t.offer(18, 50)
    t.b("RA", I_id=0x112, R_id=0x312)
    t.b("NOP", sync=NOTICE, b_num=16)
    t.grant(18)
    t.body(18, pattern(50))
    t.told(18)
    t.eager(16, 19, pattern(50))
    t.disconnect()
    return t


@trace("messages of several slots in a ring: the fourth does not fit before the ring's end and begins at its start")
def managed_slots():
    t = Managed().up().ring(payload=option(0, 8))
    for i, slot in enumerate((0, 5, 10)):
        t.eager(i, 2 + i, pattern(16384), slot=slot)
    t.b("NOP", sync=NOTICE, b_num=10)
    t.eager(3, 5, pattern(4081), slot=0)
    t.eager(4, 6, pattern(100), slot=2)
    t.b("NOP", sync=NOTICE, b_num=19)
    t.disconnect()
    return t


@trace("a read of a managed connection: RTR, RA, then a Write back without a number")
def managed_read():
    t = Managed().up()
    t.a("RTR", T_len=700, I_id=0x1A0)
    t.b("RA", I_id=0x1A0, R_id=0x3A0)
    t.b("RTS", CTS_req=4, Max_Block=16, T_len=700, RTR_I_id=0x1A0, I_id=0x2A0)
    t.a("CTS", Blocksize=16, R_Mx=3, R_Bufx=0x100, I_id=0x2A0, R_id=0x4A0)
    t.b("DATA", "Last", "Send_state", payload=pattern(700), R_Mx=3, R_Bufx=0x100, Sync=0x99, R_id=0x4A0)
    t.a("RSR", R_Slots=60, B_seq=1, Sync=0x99, B_num=0, I_id=0x2A0, R_id=0x4A0)
    t.disconnect()
    return t


@trace("a read of a managed connection that the program refuses; asked again, refused again")
def managed_read_refused():
    t = Managed().up()
    t.a("RTR", T_len=700, I_id=0x1A0)
    t.b("RA", I_id=0x1A0, R_id=0x3A0)
    t.wait(10 * MILLISECOND)
    t.b("RA", "Reject", I_id=0x1A0)
    t.wait(1000 * MILLISECOND)
    t.a("RTR", T_len=700, I_id=0x1A0)
    t.b("RA", "Reject", I_id=0x1A0)
    t.disconnect()
    return t


@trace("a region opened by name, with its terms; a Silent Put into it; a Get")
def managed_region():
    t = Managed().up().open()
    t.put(0, pattern(100))
    t.get(Length=100, R_Bufx=0x200, R_id=0x390, I_Bufx=0x300)
    t.got(R_Bufx=0x300, R_id=0x390)
    t.disconnect()
    return t


@trace("three short Puts that leave together: the last one asks, and its RSR tells of all")
def managed_puts():
    t = Managed().up().open(8)
    for i in range(3):
        t.put(i, pattern(100), asks=i == 2)
    t.disconnect()
    return t


@trace("the first of two Puts is lost: RSR of the second shows a hole, RS asks for the first, it is sent again")
def managed_put_again():
    t = Managed().up().open(8)
    t.put(1, pattern(100), told=0)
    t.wait(2 * MILLISECOND)
    t.a("RS", Sync=0x99, R_id=0x390, I_id=0x190)
    t.b("RSR", R_Slots=60, Sync=0x99, B_num=NONE, I_id=0x190, R_id=0x390)
    t.put(0, pattern(100), told=2)
    t.disconnect()
    return t


@trace("a FetchOp of a managed connection: FetchOp_Complete follows its answer")
def managed_fetch():
    t = Managed().up().open()
    t.get("Fetch_Increment", Length=8, R_Bufx=0x200, R_id=0x390, I_Bufx=0x300)
    t.got(R_Bufx=0x300, R_id=0x390, payload=bytes(8))
    t.a("GET", "FetchOp_Complete", R_id=0x390, G_num=1)
    t.disconnect()
    return t


@trace("B's program closes a region: END, EA; asked for again by its name, it is refused")
def managed_revoked():
    t = Managed().up().open()
    t.put(0, pattern(100))
    t.b("END", R_id=0x190, I_id=0x390)
    t.a("EA", I_id=0x390, R_id=0x190)
    t.a("RMR", B_win=8, T_len=1, I_id=0x191, payload=option(77))
    t.b("MRA", "Reject", I_id=0x191)
    t.disconnect()
    return t


@trace("nobody answers an offer for 4 s, though B's Node lives: it is taken back", play="-")
def managed_unanswered():
    t = Managed().up()
    pause = 40
    for _ in range(34):
        t.offer(2, 500)
        t.wait(pause * MILLISECOND)
        pause = min(2 * pause, 1000)
    t.a("END", R_id=NONE, I_id=0x102, payload=option(2))
    t.b("EA", I_id=0x102, R_id=NONE)
    t.disconnect()
    return t


@trace("a managed Write taken back: its END says the message's number")
def managed_withdrawn():
    t = Managed().up()
    t.offer(2, 500)
    t.b("RA", I_id=0x102, R_id=0x302)
    t.a("END", R_id=0x302, I_id=0x102, payload=option(2))
    t.b("EA", I_id=0x102, R_id=0x302)
    t.disconnect()
    return t


@trace("B's program breaks a managed connection off: its RD says so")
def managed_broken_off():
    t = Managed().up()
    t.b("RD", payload=option(ENDED, BROKEN_OFF))
    t.a("DA")
    t.b("DC")
    return t


@trace("a message finds no receive at B for 50 ms, and B ends the managed connection")
def managed_no_receive():
    t = Managed().up()
    t.offer(2, 500)
    t.b("RA", I_id=0x102, R_id=0x302)
    t.wait(50 * MILLISECOND)
    t.b("RD", payload=option(ENDED, NO_RECEIVE))
    t.a("DA")
    t.b("DC")
    return t


def ended(rule, how, why):
    """A ends a managed connection, for a reason that is none."""
    def make():
        t = Managed().up()
        t.a("RD", payload=option(ENDED, why))
        t.b("DA")
        t.a("DC")
        return t
    broken(rule, how)(make)


ended("managed-end", "the RD of a managed connection says 3", 3)
ended("receive-wait", "A's RD says that a message of B's has waited for a receive; there is none",
      NO_RECEIVE)


@managed("message-number", "two messages have number 2")
def _(t):
    t.message(2, pattern(100))
    t.offer(2, 200, I_id=0x110)
    t.b("RA", I_id=0x110, R_id=0x310)


@managed("message-withdrawn", "a Write is taken back by an END that does not say its number")
def _(t):
    t.offer(2, 500)
    t.b("RA", I_id=0x102, R_id=0x302)
    t.a("END", R_id=0x302, I_id=0x102)
    t.b("EA", I_id=0x102, R_id=0x302)


@managed("offer-unanswered", "three RTS, neither RA nor CTS, though B answers something else", by="B",
         play="same")
def _(t):
    for pause in (500, 700, 1):
        t.offer(2, 500)
        t.wait(pause * MILLISECOND)
    t.a("NOP", "Send_state", sync=0x99)
    t.b("RSR", R_Slots=60, Sync=0x99, B_num=NONE, I_id=NONE)


@managed("grants-outstanding", "three CTS at once, where CTS_req asks for two", by="B", play="same")
def _(t):
    t.offer(2, 3000, CTS_req=2, Max_Block=10)
    for k in range(3):
        t.grant(2, Blocksize=10, B_num=k, R_Offset=1024 * k)


@managed("path-parts", "the second part of a Block begins one STU behind the end of the first", by="B",
         play="same")
def _(t):
    t.offer(2, 7 * STU, payload=option(2, HEEDS_PARTS))
    t.grant_part(2, 0, *range(4))
    t.grant_part(2, 5, *range(2))


def in_parts(how, rule="path-parts"):
    """Message 2 has seven STUs in one Block; B has granted four of them."""
    def register(scene):
        def make():
            t = Managed().up()
            t.offer(2, 7 * STU, payload=option(2, HEEDS_PARTS))
            t.grant_part(2, 0, *range(4))
            t.send_stus(2, 7 * STU, *range(4))
            scene(t)
            t.wait(MILLISECOND).disconnect()
            return t
        make.__name__ = scene.__name__
        return trace(how, rule)(make)
    return register


@in_parts("a repeated CTS names an STU that has not been granted")
def part_repeated_beyond(t):
    t.wait(40 * MILLISECOND)
    t.grant_part(2, 3, 0, 1)


@in_parts("a repeated CTS of which only a part has been granted names no STU, and so the whole Block")
def part_repeated_whole(t):
    t.wait(40 * MILLISECOND)
    t.grant(2, F_Offset=3 * STU)


@in_parts("a part whose STUs do not follow each other")
def part_with_hole(t):
    t.grant_part(2, 4, 0, 2)


@in_parts("STU 4, which has not been granted, is sent", "outside-grant")
def part_exceeded(t):
    t.send_stus(2, 7 * STU, 4)


@trace("Block 1 is granted before the rest of Block 0", "path-parts")
def part_left_out():
    t = Managed().up()
    t.offer(2, 14 * STU, payload=option(2, HEEDS_PARTS), CTS_req=2)
    t.grant_part(2, 0, *range(4), Blocksize=13)
    t.grant_part(2, 0, *range(4), Blocksize=13, B_num=1, R_Bufx=0x102)
    t.disconnect()
    return t


@trace("a part is granted to a sender that has not said that it sends no more", "path-parts")
def part_not_heeded():
    t = Managed().up()
    t.offer(2, 7 * STU, payload=option(2, 1))
    t.grant_part(2, 0, *range(4))
    t.send_stus(2, 7 * STU, *range(7))
    t.told(2)
    t.disconnect()
    return t


@managed("tag", "the second STU of a Write has another tag")
def _(t):
    t.offer(2, 1500)
    t.grant(2)
    t.body(2, pattern(1024), tag=5, flags=())
    t.body(2, pattern(476, 1024), tag=6, STU_num=1, R_Offset=1024)
    t.told(2)


@managed("put-flags", "a Put that is neither Silent nor has Interrupt")
def _(t):
    t.a("RMR", B_win=2, T_len=1000, I_id=0x190, payload=option(77))
    t.b("MRA", B_win=2, R_Mx=4, R_Bufx=0x200, T_len=8192, I_id=0x190, R_id=0x390,
        payload=words(0x7000, size=8) + words(28) + bytes(20))
    t.a("DATA", "Last", "Send_state", payload=pattern(100), R_Mx=4, R_Bufx=0x200, Sync=0x99,
        R_id=0x390)
    t.b("RSR", R_Slots=60, B_seq=1, Sync=0x99, B_num=0, I_id=0x190, R_id=0x390)


@trace("32 Puts, and none asks by Send_state", check="put-flags")
def broken_put_asks():
    t = Managed().up().open(64)
    for i in range(32):
        t.put(i, pattern(10), asks=False)
    return t


@managed("region-terms", "an MRA for a named region without its terms", by="B", play="same")
def _(t):
    t.a("RMR", B_win=2, T_len=1000, I_id=0x190, payload=option(77))
    t.b("MRA", B_win=2, R_Mx=4, R_Bufx=0x200, T_len=8192, I_id=0x190, R_id=0x390)


@broken("hello", "a managed connection's request is answered by a request", by="B", play="same")
def _():
    t = Managed().up(REQUEST)
    t.disconnect()
    return t


@managed("eager-slot", "the second short message stands in the third slot")
def _(t):
    t.ring()
    t.eager(0, 2, pattern(10))
    t.eager(1, 3, pattern(10), slot=2)


@managed("eager-span", "a message takes two slots, and B has not said that one may")
def _(t):
    t.ring()
    t.eager(0, 2, pattern(5000))


@broken("write-window", "66 Writes while the first is not confirmed")
def _():
    t = Managed(slots=200).up()
    t.offer(2, 500)
    t.b("RA", I_id=0x102, R_id=0x302)
    for number in range(3, 68):
        t.offer(number, 500)
        t.b("RA", "Reject", I_id=0x100 + number)
    t.disconnect()
    return t


@managed("paced-repeats", "65 RS about a Write, 20 ms apart, while nothing gets on")
def _(t):
    t.offer(2, 500)
    t.grant(2)
    for number in range(65):
        t.a("RS", Sync=0x1000 + number, B_num=0, R_id=0x302, I_id=0x102)
        t.b("RSR", R_Slots=60, Sync=0x1000 + number, B_num=NONE, I_id=0x102, R_id=0x302)
        t.wait(20 * MILLISECOND)
