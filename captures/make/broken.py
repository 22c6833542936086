# SPDX-License-Identifier: BSD-3-Clause
"""One trace for each rule of `stp-replay rules`: it breaks that rule and no other.

Where A breaks it, B does what it has to, so play as B finds nothing; where B breaks it, it does.
"""
from catalogue import trace
from frames import NONE, ethernet, header, pattern
from sequences import written
from talk import MILLISECOND, SECOND, Talk


def broken(rule, how, by="A", play=None):
    def register(make):
        make.__name__ = "broken-" + rule
        return trace(how, rule, play or ("same" if by == "A" else "differs"))(make)
    return register


def during(rule, how, by="A", play=None, connected=lambda: Talk().connect()):
    """The conversation stands between the connection's beginning and RD, DA, DC."""
    def register(scene):
        def make():
            t = connected()
            scene(t)
            t.wait(MILLISECOND).disconnect()
            return t
        broken(rule, how, by, play)(make)
        return scene
    return register


# --- form ------------------------------------------------------------------------------------------
@during("send-ethernet2", "a NOP in 802.3 + SNAP")
def _(t):
    t.a("NOP", snap=True)


@broken("short-stu-snap", "an STU of 3 bytes in Ethernet II", play="-")
def _():
    t = written(3)
    t.a("DATA", "Last", snap=False, padded=False, payload=pattern(3), R_Mx=3, R_Bufx=0x100, R_id=9)
    return t


@during("control-length", "a NOP with 33 bytes behind its header")
def _(t):
    t.a("NOP", payload=pattern(33))


@during("bad-source", "a frame from a group address")
def _(t):
    t.a("NOP", src=bytes.fromhex("010000000001"))


@during("own-address", "a frame to everybody")
def _(t):
    t.a("NOP", dst=b"\xff" * 6)


@during("unused-field", "an END with a Bufx")
def _(t):
    t.a("RTR", T_len=10, I_id=4)
    t.b("RA", I_id=4, R_id=8)
    t.a("END", R_id=8, I_id=4, bufx=1)
    t.b("EA", I_id=4, R_id=8)


@during("op-codes", "op code 0x06")
def _(t):
    t.send(t.A, t.B, 0x06)


@during("illegal-flags", "a GET with function 6")
def _(t):
    t.a("GET", "Function_6", Length=8, G_num=1)


@during("unused-flags", "a NOP with Last")
def _(t):
    t.a("NOP", "Last")


@broken("exponents", "an RC with Bufsize 40")
def _():
    t = Talk()
    t.rc(I_Bufsize=40)
    return t


@during("stus-of-block", "a CTS for Blocks of 2^26 bytes, where an STU has 2^10", by="B")
def _(t):
    t.rts(3000, Max_Block=31)
    t.cts(Blocksize=26)


@broken("bad-checksum", "a NOP whose Cksum does not match")
def _():
    t = Talk()
    t.checksum = True
    t.connect()
    t.a("NOP", damage=True)
    t.disconnect()
    return t


@during("zero-port", "a NOP with S_Port 0")
def _(t):
    t.a("NOP", s_port=0)


@during("zero-length", "an RTR for no bytes")
def _(t):
    t.a("RTR", T_len=0, I_id=4)


@during("truncated", "an STU whose 802.3 length is longer than the frame")
def _(t):
    t.rts(3)
    t.cts()
    head = header("DATA", ("Last",), d_port=t.B.port, s_port=t.A.port, d_key=t.B.key, R_Mx=3,
                  R_Bufx=0x100, R_id=9)
    t.raw(ethernet(t.B.mac, t.A.mac, head + pattern(30), snap=True)[:-20])


# --- connections -----------------------------------------------------------------------------------
@broken("ca-unasked", "a CA out of the blue", by="B", play="-")
def _():
    t = Talk().connect()
    t.disconnect()
    t.wait(5 * SECOND)
    t.A.port, t.B.port, t.B.key = 555, 666, 0x66666666
    t.ca()
    return t


@broken("da-unasked", "a DA without an RD", by="B")
def _():
    t = Talk().connect()
    t.b("DA")
    return t


@during("dc-unasked", "a DC without a DA")
def _(t):
    t.a("DC")


@broken("second-vc", "a repeated RC is answered with another Port", by="B")
def _():
    t = Talk().connect()
    t.wait(10 * MILLISECOND)
    t.rc()
    t.B.port, t.B.key = 303, 0x33333333
    t.ca()
    return t


@broken("zero-key", "a CA with R_Key 0", by="B", play="-")
def _():
    t = Talk()
    t.B.key = 0
    return t.connect()


@broken("reject-port", "a refusal with a Port", by="B")
def _():
    t = Talk()
    t.rc()
    t.ca_reject(s_port=9)
    return t


@broken("ca-key", "a CA with a Key that no RC gave", by="B", play="-")
def _():
    t = Talk()
    t.rc()
    t.ca(d_key=0x12345678)
    return t


@broken("rc-late", "an RC of a connection that has just gone is answered", by="B")
def _():
    t = Talk().connect()
    t.disconnect()
    t.wait(SECOND)
    t.rc()
    t.B.port, t.B.key = 303, 0x33333333
    t.ca()
    return t


@during("no-port", "a NOP to Port 0")
def _(t):
    t.a("NOP", d_port=0)


@broken("rd-unanswered", "three RD, no DA, though B answers something else", by="B")
def _():
    t = Talk().connect()
    t.a("RS", Sync=0x61, B_num=0, R_id=99, I_id=7)
    for pause in (500, 700, 1):
        t.a("RD")
        t.wait(pause * MILLISECOND)
    t.b("RSR", "Reject", R_Slots=64, Sync=0x61, B_num=0, I_id=7, R_id=99)
    return t


@broken("after-rd", "a NOP 20 ms after the RD")
def _():
    t = Talk().connect()
    t.a("RD")
    t.b("DA")
    t.a("DC")
    t.wait(20 * MILLISECOND)
    t.a("NOP")
    return t


@broken("not-established", "a NOP before the CA", play="-")
def _():
    t = Talk()
    t.rc()
    t.a("NOP")
    t.ca()
    return t


@during("wrong-port", "a NOP to another Port")
def _(t):
    t.a("NOP", d_port=999)


@during("wrong-key", "a NOP with a wrong Key")
def _(t):
    t.a("NOP", d_key=1)


@during("wrong-peer", "a stranger who knows Port and Key")
def _(t):
    t.a("NOP", src=bytes([2, 0, 0, 0, 0, 9]))


@broken("retry-too-soon", "an RC again after 3 ms")
def _():
    t = Talk().connect()
    t.wait(3 * MILLISECOND)
    t.rc()
    t.ca()
    t.disconnect()
    return t


@broken("retry-too-often", "a ninth RD", play="-")
def _():
    t = Talk().connect()
    for i in range(9):
        t.a("RD")
        t.wait(min(10 * MILLISECOND << i, SECOND) - 20_000)
    return t


@broken("sizes-changed", "a repeated CA with other Slots", by="B")
def _():
    t = Talk().connect()
    t.wait(10 * MILLISECOND)
    t.rc()
    t.ca(R_Slots=32)
    t.disconnect()
    return t


# --- Slots -----------------------------------------------------------------------------------------
@broken("no-credit", "three NOP where B has two Slots")
def _():
    t = Talk()
    t.B.slots = 2
    t.connect()
    for number in range(3):
        t.a("NOP", param=number)
    t.disconnect()
    return t


@during("rsr-unasked", "an RSR with a Sync that nobody asked with", by="B")
def _(t):
    t.b("RSR", R_Slots=64, Sync=0x99, B_num=NONE, I_id=NONE)


@during("rsr-slots", "an RSR that tells more Slots than there are", by="B", play="same")
def _(t):
    t.a("NOP", "Send_state", sync=0x99)
    t.b("RSR", R_Slots=65, Sync=0x99, B_num=NONE, I_id=NONE)


@broken("rd-option", "an RD comes again with another option payload")
def _():
    t = Talk().connect()
    for why in (b"enough", b"too much"):
        t.wait(MILLISECOND)
        t.a("RD", payload=why.ljust(32, b"\0"))
        t.b("DA")
    t.a("DC")
    return t


@during("rs-unanswered", "three RS, no RSR, though B answers something else", by="B")
def _(t):
    for pause in (500, 700, 1):
        t.a("RS", Sync=0x61, B_num=NONE, R_id=NONE)
        t.wait(pause * MILLISECOND)
    t.a("NOP", "Send_state", sync=0x99)
    t.b("RSR", R_Slots=64, Sync=0x99, B_num=NONE, I_id=NONE)


@during("b-seq-back", "B_seq 1, then 0", by="B")
def _(t):
    t.rts(1000)
    t.cts()
    t.block(1000)
    t.rsr()
    t.a("RS", Sync=0x61, B_num=0, R_id=9, I_id=7)
    t.b("RSR", R_Slots=63, B_seq=0, Sync=0x61, B_num=NONE, I_id=7, R_id=9)


@during("rsr-b-num", "an RSR names a Block of which nothing has come as complete", by="B")
def _(t):
    t.rts(1000)
    t.cts()
    t.a("RS", Sync=0x61, B_num=0, R_id=9, I_id=7)
    t.b("RSR", R_Slots=64, B_seq=0, Sync=0x61, B_num=0, I_id=7, R_id=9)


# --- memory ----------------------------------------------------------------------------------------
@during("mx-zero", "a CTS with Mx 0", by="B")
def _(t):
    t.rts(1000)
    t.cts(R_Mx=0)


@during("bad-offset", "an STU at Offset 4096 of a buffer of 4096 bytes")
def _(t):
    t.rts(1000)
    t.cts()
    t.block(1000, R_Offset=4096)


@during("crosses-buffer", "an STU of 200 bytes at Offset 4000 of a buffer of 4096")
def _(t):
    t.rts(1000)
    t.cts()
    t.block(200, R_Offset=4000)


@during("no-grant", "DATA for an id that nobody gave")
def _(t):
    t.rts(1000)
    t.cts()
    t.block(1000, R_id=77)


@during("block-not-granted", "DATA of Block 5, where only Block 0 was let")
def _(t):
    t.rts(1000)
    t.cts()
    t.block(1000, B_num=5)


@during("wrong-mx", "DATA with an Mx that its CTS did not name")
def _(t):
    t.rts(1000)
    t.cts()
    t.block(1000, R_Mx=4)


@during("outside-grant", "DATA a buffer behind what its CTS let")
def _(t):
    t.rts(1000)
    t.cts()
    t.block(1000, bufx=0x101)


@during("grant-own-memory", "a CTS with an Offset behind the buffer", by="B")
def _(t):
    t.rts(1000)
    t.cts(R_Offset=4096)


@during("grant-bounded", "a CTS for Block 3 of a Transfer of one", by="B")
def _(t):
    t.rts(1000)
    t.cts(3)


@trace("a CTS for Block 0xfffffffe of a Transfer of one", "grant-bounded", "differs")
def grant_far_beyond():
    t = Talk().connect()
    t.rts(1000)
    t.cts(0xfffffffe)
    t.disconnect()
    return t


@during("put-window", "an MRA with B_win 0", by="B")
def _(t):
    t.region(b_win=0)


@during("get-checks", "a GET for a region that nobody opened")
def _(t):
    t.get(R_id=44)
    t.b("GET", "Reject", Length=100, I_Mx=5, R_Bufx=0x100, I_Bufx=0x200, R_id=44, G_num=1)


@during("fetch-operand", "a FetchOp on 8 bytes at Offset 4")
def _(t):
    t.region()
    t.get("Fetch_Clear", Length=8, R_Offset=4)
    t.b("GET", "Fetch_Clear", "Reject", Length=8, I_Mx=5, R_Bufx=0x100, R_Offset=4, I_Bufx=0x200,
        R_id=9, G_num=1)


# --- tiling ----------------------------------------------------------------------------------------
@during("tiling", "STU 0 of three is 1000 bytes long instead of 1024")
def _(t):
    t.rts(3000)
    t.cts()
    t.a("DATA", payload=pattern(1000), STU_num=0, R_Mx=3, R_Bufx=0x100, R_id=9)


@during("last-stu", "Last on STU 1 of three")
def _(t):
    t.rts(3000)
    t.cts()
    t.block(2048)


@during("strict-tiling", "the second STU has number 2")
def _(t):
    t.rts(3000)
    t.cts()
    t.a("DATA", payload=pattern(1024), STU_num=2, R_Mx=3, R_Bufx=0x100, R_Offset=1024, R_id=9)


@during("stu-too-long", "an STU of 1400 bytes, where both sides take 1024")
def _(t):
    t.rts(1400)
    t.cts()
    t.a("DATA", "Last", payload=pattern(1400), R_Mx=3, R_Bufx=0x100, R_id=9)


@during("block-flags", "Send_state on an STU without Last")
def _(t):
    t.rts(2000)
    t.cts()
    t.block(2000, all_flags=("Send_state",), flags=())
    t.rsr()


# --- sequences -------------------------------------------------------------------------------------
@during("id-in-use", "an RTS of another length under an I_id that is in use")
def _(t):
    t.rts(1000)
    t.rts(2000)


@during("id-none", "an RTS without an I_id")
def _(t):
    t.rts(1000, I_id=NONE)


@during("answer-unasked", "an RA for nothing", by="B", play="same")
def _(t):
    t.b("RA", I_id=55, R_id=9)


@during("blocksize", "a CTS with Blocksize 17, where Max_Block is 16", by="B")
def _(t):
    t.rts(1000)
    t.cts(Blocksize=17)


@during("f-offset", "the first CTS of a Block with F_Offset 512", by="B", play="same")
def _(t):
    t.rts(1000)
    t.cts(F_Offset=512)


@during("b-seq", "B acknowledges a Block before its Last", by="B")
def _(t):
    t.rts(3000)
    t.cts()
    t.a("RS", Sync=0x51, B_num=0, R_id=9, I_id=7)
    t.rsr()


@trace("B acknowledges Block 0xfffffff0 of a Transfer of one, then what it has", "b-seq", "differs")
def b_seq_far_beyond():
    t = Talk().connect()
    t.rts(1000)
    t.cts()
    t.a("RS", Sync=0x61, B_num=NONE, R_id=9, I_id=7)
    t.b("RSR", R_Slots=64, B_seq=0xfffffff0, Sync=0x61, B_num=NONE, I_id=7, R_id=9)
    t.block(1000)
    t.rsr()
    t.disconnect()
    return t


@during("bytes-changed", "a repeat of an STU has other bytes, though its Block is not complete")
def _(t):
    t.rts(2000)
    t.cts()
    t.block(2000, skip=(1,))
    t.wait(2 * MILLISECOND)
    t.cts(F_Offset=1024)
    t.block(2000, source=5)
    t.rsr()


@during("read-unasked", "an RTS for an RTR that was never sent")
def _(t):
    t.rts(1000, RTR_I_id=44)


@during("put-unacknowledged", "a third Put Block, where B_win is 2 and none is acknowledged")
def _(t):
    t.region()
    for number in range(3):
        t.block(100, B_num=number, flags=())


@during("get-unanswered", "three GET, no answer, though B answers something else", by="B")
def _(t):
    t.region()
    for pause in (500, 700, 1):
        t.get()
        t.wait(pause * MILLISECOND)
    t.a("NOP", "Send_state", sync=0x99)
    t.b("RSR", R_Slots=64, Sync=0x99, B_num=NONE, I_id=NONE)


@during("get-flags", "the answer to a Silent GET is not Silent", by="B")
def _(t):
    t.region()
    t.get("Silent")
    t.got()


@during("fetchop-once", "a repeated FetchOp is answered with another value", by="B")
def _(t):
    t.region()
    for value in (5, 6):
        t.get("Fetch_Increment", Length=8)
        t.got(payload=value.to_bytes(8, "big"))
        t.wait(10 * MILLISECOND)


@during("g-num", "G_num 2 is left out")
def _(t):
    t.region()
    for number in (1, 3, 4):
        t.get(G_num=number)
        t.got(B_num=number)
        t.wait(20 * MILLISECOND)


@broken("too-many-gets", "65 GET before the first answer", play="-")
def _():
    t = Talk()
    t.B.slots = 200
    t.connect()
    t.region()
    for number in range(65):
        t.get(G_num=number)
    return t


@during("refusal-unasked", "a GET with Reject that no GET asked for", by="B")
def _(t):
    t.b("GET", "Reject", Length=100, I_Mx=5, R_Bufx=0x100, I_Bufx=0x200, R_id=9, G_num=9)


@during("after-end", "DATA 20 ms after A's own END")
def _(t):
    t.rts(2000)
    t.cts()
    t.a("END", R_id=9, I_id=7)
    t.b("EA", I_id=7, R_id=9)
    t.wait(20 * MILLISECOND)
    t.block(2000)


@during("ea-unasked", "an EA for nothing", by="B", play="same")
def _(t):
    t.b("EA", I_id=7, R_id=9)


@during("end-unanswered", "three END, no EA, though B answers something else", by="B", play="same")
def _(t):
    t.rts(1000)
    t.cts()
    for pause in (500, 700, 1):
        t.a("END", R_id=9, I_id=7)
        t.wait(pause * MILLISECOND)
    t.a("NOP", "Send_state", sync=0x99)
    t.b("RSR", R_Slots=64, Sync=0x99, B_num=NONE, I_id=NONE)


@during("cts-too-soon", "a CTS again after 300 us", by="B", play="same")
def _(t):
    t.rts(3000)
    t.cts()
    t.block(3000, skip=(1,))
    t.wait(220_000)
    t.cts(F_Offset=1024)
    t.block(3000, only=(1, 2))
    t.rsr()
    t.rsr()
