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
SLOT = 4096


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

    def message(self, number, payload, sender=None):
        self.offer(number, len(payload), sender)
        self.grant(number, sender)
        self.body(number, payload, sender)
        self.told(number, sender)

    def up(self, answer=ACCEPT):
        self.message(1, hello(REQUEST, b"who"))
        self.message(1, hello(answer, b"me"), self.B)
        return self

    def ring(self, **changed):
        """B opens its ring to A."""
        self.a("RMR", B_win=16, T_len=16 * SLOT, I_id=0x180, payload=option(1))
        self.b("MRA", payload=bytes(32),
               **{**dict(B_win=16, R_Mx=4, R_Bufx=0x200, T_len=16 * SLOT, I_id=0x180, R_id=0x380),
                  **changed})
        return self

    def eager(self, b_num, number, payload, flags=("Last", "Send_state", "Interrupt"), slot=None,
              length=None, taken=0):
        head = words(number, len(payload) if length is None else length, 0, taken)
        self.sync += 1
        self.a("DATA", *flags, payload=head + payload, R_Mx=4,
               R_Bufx=0x200 + (b_num % 16 if slot is None else slot), Sync=self.sync, B_num=b_num,
               R_id=0x380)
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


@trace("a region opened by name, with its terms; a Silent Put into it; a Get")
def managed_region():
    t = Managed().up()
    t.a("RMR", B_win=2, T_len=1000, I_id=0x190, payload=option(77))
    t.b("MRA", B_win=2, R_Mx=4, R_Bufx=0x200, T_len=8192, I_id=0x190, R_id=0x390,
        payload=words(0x7000, size=8) + words(28) + bytes(20))
    t.a("DATA", "Last", "Send_state", "Silent", payload=pattern(100), R_Mx=4, R_Bufx=0x200, Sync=0x99,
        R_id=0x390)
    t.b("RSR", R_Slots=60, B_seq=1, Sync=0x99, B_num=0, I_id=0x190, R_id=0x390)
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
