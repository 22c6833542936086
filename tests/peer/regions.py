# SPDX-License-Identifier: BSD-3-Clause
"""Regions, Puts, Gets and FetchOps: section 9."""
import random
import struct
import sys

from connections import demand
from conversation import conversation, pattern
from vc import Grant
from wire import NONE


def regions(*rules, **wants):
    return conversation("regions", *rules, **wants)


def put(vc, mra, b_num, data, *flags, at=0, **fields):
    """A Put Block that begins `at` bytes into the region."""
    start = (mra.R_Bufx << vc.peer_bufsize) + mra.R_Offset + at
    place = Grant(vc, mra.R_id, mra.I_id, mra.R_Mx, start, len(data))
    place.op, place.R_Mx, place.R_id = "MRA", mra.R_Mx, mra.R_id
    place.R_Bufx, place.R_Offset = start >> vc.peer_bufsize, start & (1 << vc.peer_bufsize) - 1
    return vc.block(place, data, *flags, B_num=b_num, **fields)


# --- at the other side ------------------------------------------------------------------------------------
@regions("9.10", "9.11")
def put_comes(t):
    vc = t.up()
    mra = t.region(vc, offset=300)
    for i in range(10):
        sync = put(vc, mra, i, pattern(700, i), "Send_state", at=700 * i, opaque=i)
        vc.expect("RSR", Sync=sync, B_seq=i + 1, B_num=i, I_id=7, R_id=9)
        t.rx("DATA", B_num=i, Opaque=i)
        t.same(300 + 700 * i, pattern(700, i))


@regions("9.10", "8.2")
def put_of_many_stus(t):
    vc = t.up()
    mra = t.region(vc, length=20000, offset=900)
    sync = put(vc, mra, 0, pattern(9000), "Send_state", at=5, order=(8, 3, 0, 9, 1, 2, 4, 5, 6, 7))
    vc.expect("RSR", Sync=sync, B_seq=1)
    t.rx("DATA")
    t.same(905, pattern(9000))


@regions("9.11", "9.6", "6.13")
def put_lost(t):
    vc = t.up()
    mra = t.region(vc)
    put(vc, mra, 1, pattern(100, 1), at=100)
    sync = put(vc, mra, 2, pattern(100, 2), "Send_state", at=200)
    vc.expect("RSR", Sync=sync, B_seq=0, B_num=2)
    demand(vc.ask(R_id=9, I_id=7, B_num=0).B_num == NONE, "6.13 Block 0 has not come")
    sync = put(vc, mra, 0, pattern(100), "Send_state")
    vc.expect("RSR", Sync=sync, B_seq=3, B_num=0)
    for _ in range(3):
        t.rx("DATA")


@regions("9.11", "7.13")
def put_beyond_window(t):
    vc = t.up()
    mra = t.region(vc, window=2)
    for b_num in (2, 3, 1000):
        put(vc, mra, b_num, pattern(100), "Send_state", at=1000)
    vc.quiet()
    t.untouched(0, 2000)
    t.rx_none()


@regions("9.11", "8.10", "6.16")
def put_old(t):
    vc = t.up()
    mra = t.region(vc)
    put(vc, mra, 0, pattern(100))
    put(vc, mra, 1, pattern(100, 1))
    sync = put(vc, mra, 0, bytes(100), "Send_state")
    vc.expect("RSR", Sync=sync, B_seq=2, B_num=0)
    t.same(0, pattern(100, 1))


@regions("9.11", "3.15")
def put_wrap(t):
    """Modulo 2^32, Block ffffffff is the one before Block 0, an old one."""
    vc = t.up()
    mra = t.region(vc)
    sync = put(vc, mra, NONE, pattern(100), "Send_state")
    vc.expect("RSR", Sync=sync, B_seq=0, B_num=NONE)
    vc.quiet()
    t.untouched(0, 100)
    t.rx_none()


@regions("9.11", "6.13")
def put_b_seq_wins(t):
    """B_num says that a Block after a hole is complete; only what precedes B_seq is confirmed."""
    vc = t.up()
    mra = t.region(vc, window=8)
    for b_num in (5, 3):
        sync = put(vc, mra, b_num, pattern(50, b_num), "Send_state", at=50 * b_num)
        vc.expect("RSR", Sync=sync, B_seq=0, B_num=b_num)
    for b_num in (0, 1, 2, 4):
        put(vc, mra, b_num, pattern(50, b_num), at=50 * b_num)
    demand(vc.ask(R_id=9, I_id=7, B_num=0).B_seq == 6, "9.6 B_seq")


@regions("8.6", "7.6")
def put_lies(t):
    vc = t.up()
    mra = t.region(vc, length=4000, offset=48)
    place = dict(R_Mx=mra.R_Mx, R_Bufx=mra.R_Bufx, R_id=9)
    for wrong in (dict(R_Offset=47), dict(R_Offset=0), dict(R_Offset=4000), dict(R_Bufx=mra.R_Bufx + 1),
                  dict(R_Offset=1000), dict(R_Offset=48, R_id=8), dict(R_Offset=48, R_Mx=mra.R_Mx + 1)):
        vc.send("DATA", "Last", "Send_state", payload=pattern(100), **{**place, **wrong})
    vc.quiet()
    t.untouched(0, 8192)


@regions("7.12", "9.18")
def region_ends(t):
    vc = t.up()
    mra = t.region(vc)
    put(vc, mra, 0, pattern(100))
    t.rx("DATA")
    vc.send("END", R_id=9, I_id=7)
    t.rx("END")
    t.tx("EA", I_id=7, R_id=9)
    vc.expect("EA", I_id=7, R_id=9)
    put(vc, mra, 1, bytes(100), "Send_state")
    vc.quiet()
    t.same(0, pattern(100))
    demand(vc.ask(R_id=9, I_id=7).has("Reject"), "6.14 a region that has ended")


@regions("9.17")
def rmr_refused(t):
    vc = t.up()
    vc.send("RMR", B_win=1, T_len=10, I_id=7)
    t.rx("RMR", B_win=1, T_len=10)
    t.tx("MRA", "Reject", I_id=7)
    vc.expect("MRA", flags=("Reject",), I_id=7)


def get(vc, mra, g_num, length, *flags, at=0, bufx=0x400, offset=0, mx=6, payload=b"", **fields):
    start = (mra.R_Bufx << vc.peer_bufsize) + mra.R_Offset + at
    vc.send("GET", *flags, payload=payload,
            **{**dict(Length=length & 0xFFFF, I_Mx=mx, R_Bufx=start >> vc.peer_bufsize,
                      R_Offset=start & (1 << vc.peer_bufsize) - 1, I_Bufx=bufx, I_Offset=offset, R_id=mra.R_id,
                      G_num=g_num), **fields})


def got(vc, g_num, length, bufx=0x400, offset=0, flags=None):
    """All STUs of a Get's answer, compared to the tiling."""
    landing = Grant(vc, 9, 0, 6, (bufx << vc.bufsize) + offset, length)
    while True:
        # On a busy host an RMR may have been repeated, and then has two answers.
        frame = vc.expect("DATA", B_num=g_num, skip=("MRA",))
        wanted = None if flags is None else tuple(flags) + (("Last",) if frame.has("Last") else ())
        if wanted is not None:
            demand(not vc.differs(frame, "DATA", wanted, {}), f"flags {flags}: {frame}")
        if landing.take(frame):
            return vc.memory.bytes(landing.start, length)


@regions("9.12", "9.13", "8.2")
def get_comes(t):
    vc = t.up()
    mra = t.region(vc, length=16384, offset=100)
    t.side.do("write", 100, pattern(12000).hex())
    for i, (at, length, offset) in enumerate(((0, 100, 0), (11, 5000, 4000), (3000, 1, 7), (0, 8192, 1023))):
        get(vc, mra, i + 1, length, at=at, offset=offset)
        demand(got(vc, i + 1, length, offset=offset) == pattern(12000)[at:at + length], f"the bytes of Get {i}")
    t.rx_none()


@regions("9.12", "3.10")
def get_of_65536(t):
    vc = t.up()
    mra = t.region(vc, length=65536)
    t.side.do("write", 0, pattern(65536).hex())
    get(vc, mra, 1, 65536)
    demand(got(vc, 1, 65536) == pattern(65536), "the bytes")


@regions("9.12")
def get_flags(t):
    vc = t.up()
    mra = t.region(vc)
    for i, flags in enumerate(((), ("Silent",), ("Interrupt",))):
        get(vc, mra, i + 1, 8000, *flags)
        landing = Grant(vc, 9, 0, 6, 0x400 << 12, 8000)
        while True:
            frame = vc.expect("DATA", B_num=i + 1)
            last = frame.has("Last")
            demand(frame.has("Silent") == (flags == ("Silent",)), f"8.11 {frame}")
            demand(frame.has("Interrupt") == (last and flags == ("Interrupt",)), f"8.11 {frame}")
            if landing.take(frame):
                break


@regions("7.15", "9.17")
def get_refused(t):
    vc = t.up()
    mra = t.region(vc, length=4000, offset=48)
    g_num = 0
    for wrong in (dict(R_id=8), dict(R_id=NONE), dict(R_Offset=47), dict(R_Offset=4000), dict(R_Bufx=0x99),
                  dict(I_Offset=4096), dict(Length=4001), dict(Length=0)):
        g_num += 1
        get(vc, mra, g_num, 100, **wrong)
        no = vc.expect("GET", flags=("Reject",), G_num=g_num)
        demand(no.R_id == wrong.get("R_id", 9), f"9.17 {no}")
    get(vc, mra, g_num + 1, 4000)
    got(vc, g_num + 1, 4000)


@regions("9.13", "6.3")
def get_without_slot(t):
    vc = t.up(slots=2)
    mra = t.region(vc)
    vc.send("NOP")
    vc.send("NOP")
    get(vc, mra, 1, 100)
    got(vc, 1, 100)
    demand(vc.ask().R_Slots == 0, "6.4 Slots")


@regions("9.12", "6.3")
def get_answer_needs_credit(t):
    vc = t.up(sizes=dict(slots=1))
    mra = t.region(vc)  # the MRA took the Slot
    vc.answers_rs = False
    vc.ask(skip=("RS",))
    vc.inbox.frames.clear()
    get(vc, mra, 1, 100)
    get(vc, mra, 2, 100, "Silent")
    vc.ask(skip=("RS",))
    vc.answers_rs = True
    vc.expect("DATA", B_num=1, skip=("RS",))
    vc.expect("DATA", B_num=2, skip=("RS",))


@regions("9.14", "9.16")
def fetch_all(t):
    vc = t.up()
    mra = t.region(vc)
    two = struct.pack(">QQ", 5, 0)
    word = 10
    for i, (name, payload, after) in enumerate((("Fetch_Increment", b"", 11), ("Fetch_Decrement", b"", 10),
                                                ("Fetch_Add", two, 15), ("Fetch_Clear", b"", 0))):
        if i == 0:
            t.side.do("write", 0, (10).to_bytes(8, sys.byteorder).hex())
        get(vc, mra, i + 1, 8, name, payload=payload.ljust(32, b"\0") if payload else b"")
        old = int.from_bytes(got(vc, i + 1, 8), "big")
        demand(old == word, f"9.14 {name} gives {old}, not {word}")
        word = after
    t.same(0, bytes(8))


@regions("7.17", "3.13", "9.14")
def fetch_compare(t):
    vc = t.up()
    mra = t.region(vc)
    value = 0x0102030405060708
    t.side.do("write", 8, value.to_bytes(8, sys.byteorder).hex())
    for i, (operand, compare, after) in enumerate(((99, 1, value), (99, value, 99))):
        get(vc, mra, i + 1, 8, "Compare_And_Swap", at=8, payload=struct.pack(">QQ", operand, compare) + bytes(16))
        old = int.from_bytes(got(vc, i + 1, 8), "big")
        demand(old == value, f"3.13 the old value is {old:#x}")
        t.same(8, after.to_bytes(8, sys.byteorder), "the word")


@regions("7.17")
def fetch_order(t):
    vc = t.up()
    mra = t.region(vc)
    t.side.do("write", 0, (0xFF).to_bytes(8, sys.byteorder).hex())
    get(vc, mra, 1, 8, "Fetch_Increment")
    demand(got(vc, 1, 8) == (0xFF).to_bytes(8, "big"), "7.17 on the wire it is big-endian")
    t.same(0, (0x100).to_bytes(8, sys.byteorder), "7.17 in memory it is the machine's: the word")


@regions("9.15", "10.2")
def fetch_once(t):
    vc = t.up()
    mra = t.region(vc)
    for _ in range(5):
        get(vc, mra, 1, 8, "Fetch_Increment")
        demand(got(vc, 1, 8) == bytes(8), "9.15 the same answer")
    t.same(0, (1).to_bytes(8, sys.byteorder), "9.15 the word, incremented once")
    get(vc, mra, 1, 8, "FetchOp_Complete")
    get(vc, mra, 1, 8, "Fetch_Increment")
    vc.quiet()
    t.same(0, (1).to_bytes(8, sys.byteorder), "9.15 the word")


@regions("9.16", "9.15")
def fetch_stale(t):
    vc = t.up()
    mra = t.region(vc)
    get(vc, mra, 100, 8, "Fetch_Increment")
    got(vc, 100, 8)
    for g_num in (36, 1, 0):
        get(vc, mra, g_num, 8, "Fetch_Increment")
    vc.quiet()
    get(vc, mra, 37, 8, "Fetch_Increment")
    got(vc, 37, 8)
    t.same(0, (2).to_bytes(8, sys.byteorder), "the word")


@regions("7.15", "7.17")
def fetch_operand(t):
    vc = t.up()
    mra = t.region(vc)
    get(vc, mra, 1, 8, "Fetch_Increment", at=4)
    vc.expect("GET", flags=("Reject", "Fetch_Increment"), G_num=1)
    t.untouched(0, 32)


@regions("7.17")
def fetch_length(t):
    vc = t.up()
    mra = t.region(vc)
    for i, length in enumerate((4, 7, 9, 16, 0)):
        get(vc, mra, i + 1, length, "Fetch_Increment")
        vc.expect("GET", flags=("Reject", "Fetch_Increment"), G_num=i + 1)
    t.untouched(0, 32)


@regions("9.15", "10.1")
def fetch_lossy(t):
    """A third of all frames is lost, some are duplicated: 40 increments change the word by 40."""
    vc = t.up()
    mra = t.region(vc)
    vc.wire.random.seed(915)
    vc.wire.loss, vc.wire.double, vc.wire.late = 0.33, 0.2, 0.2
    for g_num in range(1, 41):
        old = None
        for _ in range(200):
            get(vc, mra, g_num, 8, "Fetch_Increment")
            frame = vc.take(0.02)
            while frame is not None and (frame.op != "DATA" or frame.B_num != g_num):
                frame = vc.take(0.02)
            if frame is not None:
                old = int.from_bytes(frame.stu, "big")
                break
        demand(old == g_num - 1, f"9.15 FetchOp {g_num} gives {old}")
        get(vc, mra, g_num, 8, "FetchOp_Complete")
    vc.wire.loss = 0
    vc.ask(skip=("DATA", "RS", "RSR"))
    t.same(0, (40).to_bytes(8, sys.byteorder), "the word")


# --- from the other side -------------------------------------------------------------------------------------
def opened(t, vc, length=8192, window=4):
    t.tx("RMR", B_win=window, T_len=length, I_id=5)
    rmr = vc.expect("RMR", B_win=window, T_len=length, I_id=5)
    grant = vc.open_region(rmr)
    return grant, t.rx("MRA", I_id=5)


@regions("9.10", "9.11")
def put_leaves(t):
    vc = t.dialed()
    grant, mra = opened(t, vc)
    t.fill(pattern(4096))
    for b_num in range(3):
        t.tx("DATA", "Send_state", R_Mx=mra.R_Mx, R_Bufx=mra.R_Bufx, R_Offset=0, B_num=b_num, R_id=mra.R_id,
             length=3000, Sync=b_num)
        vc.expect("DATA", B_num=b_num)
        t.rx("RSR", B_seq=b_num + 1, B_num=b_num, Sync=b_num)
    demand(vc.memory.bytes(grant.start, 3000) == pattern(3000), "the bytes")


@regions("9.12", "7.16")
def get_leaves(t):
    vc = t.dialed()
    _, mra = opened(t, vc)
    t.tx("GET", Length=3000, I_Mx=t.mx, R_Bufx=mra.R_Bufx, I_Bufx=0x104, I_Offset=77, R_id=mra.R_id, G_num=1)
    ask = vc.expect("GET", flags=(), Length=3000, G_num=1)
    place = Grant(vc, ask.R_id, 0, ask.I_Mx, 0, 3000)
    place.op, place.R_Mx, place.R_id, place.R_Bufx, place.R_Offset = "GET", ask.I_Mx, ask.R_id, 0x104, 77
    vc.block(place, pattern(3000), B_num=1, order=(3, 0, 2, 1))
    t.rx("DATA", B_num=1, R_id=mra.R_id, R_Bufx=0x104, R_Offset=77)
    t.same(4 * 4096 + 77, pattern(3000))


@regions("7.6", "7.16", "9.19")
def get_answer_lies(t):
    vc = t.dialed()
    _, mra = opened(t, vc)
    t.tx("GET", Length=1000, I_Mx=t.mx, R_Bufx=mra.R_Bufx, I_Bufx=0x104, I_Offset=0, R_id=mra.R_id, G_num=1)
    vc.expect("GET")
    right = dict(R_Mx=t.mx, R_Bufx=0x104, R_id=mra.R_id, B_num=1)
    for wrong in (dict(B_num=2), dict(R_id=77), dict(R_Bufx=0x103), dict(R_Offset=1), dict(R_Mx=t.mx + 1)):
        vc.send("DATA", "Last", payload=pattern(1000), **{**right, **wrong})
    vc.send("DATA", "Last", payload=pattern(1001), **right)
    vc.quiet()
    t.untouched(0, 64 * 4096)
    t.tx("GET", "FetchOp_Complete", R_id=mra.R_id, G_num=1)
    vc.expect("GET", flags=("FetchOp_Complete",), G_num=1)
    vc.send("DATA", "Last", payload=pattern(1000), **right)
    vc.quiet()
    t.untouched(0, 64 * 4096)
    t.rx_none()


@regions("9.17")
def get_refusal_told(t):
    vc = t.dialed()
    _, mra = opened(t, vc)
    t.tx("GET", Length=1000, I_Mx=t.mx, R_Bufx=mra.R_Bufx, I_Bufx=0x104, I_Offset=0, R_id=mra.R_id, G_num=1)
    vc.expect("GET")
    vc.send("GET", "Reject", Length=1000, I_Mx=t.mx, R_Bufx=mra.R_Bufx, I_Bufx=0x104, R_id=mra.R_id, G_num=1)
    t.rx("GET", flags=("Reject",), G_num=1)
    vc.send("DATA", "Last", payload=pattern(1000), R_Mx=t.mx, R_Bufx=0x104, R_id=mra.R_id, B_num=1)
    vc.quiet()
    t.untouched(4 * 4096, 1000)


@regions("7.17", "9.14")
def fetch_leaves(t):
    vc = t.dialed()
    _, mra = opened(t, vc)
    t.tx("GET", "Fetch_Add", Length=8, I_Mx=t.mx, R_Bufx=mra.R_Bufx, R_Offset=16, I_Bufx=0x104, R_id=mra.R_id, G_num=1,
         payload=struct.pack(">QQ", 7, 9) + bytes(16))
    ask = vc.expect("GET", flags=("Fetch_Add",), Length=8)
    demand(ask.payload[:16] == struct.pack(">QQ", 7, 9), "3.13 the operands")
    vc.send("DATA", "Last", payload=struct.pack(">Q", 0x1122), R_Mx=t.mx, R_Bufx=0x104, R_id=mra.R_id, B_num=1)
    t.rx("DATA", B_num=1)
    t.same(4 * 4096, (0x1122).to_bytes(8, sys.byteorder), "7.17 the old value")


@regions("7.16", "7.14")
def get_not_own(t):
    vc = t.dialed()
    _, mra = opened(t, vc)
    good = dict(Length=1000, I_Mx=t.mx, R_Bufx=mra.R_Bufx, I_Bufx=0x104, R_id=mra.R_id, G_num=1)
    for wrong in (dict(I_Mx=t.mx + 1), dict(I_Bufx=0x99), dict(I_Bufx=0x13F, I_Offset=4000), dict(I_Offset=4096)):
        t.tx_dropped(vc, "GET", **{**good, **wrong})


@regions("9.10", "10.1", "10.6")
def put_lossy(t):
    """Puts with loss, duplicates and delays are repeated until B_seq has passed them; the newest byte stays."""
    vc = t.up(bufs=32, slots=512)
    mra = t.region(vc, length=32 * 4096, window=8)
    dice = random.Random(910)
    vc.wire.random.seed(910)
    vc.wire.loss, vc.wire.double, vc.wire.late = 0.25, 0.15, 0.2
    image = bytearray(32 * 4096)
    for b_num in range(60):
        at, data = dice.randrange(30 * 4096), pattern(dice.choice((1, 100, 1024, 3000)), b_num)
        image[at:at + len(data)] = data
        for _ in range(200):
            put(vc, mra, b_num, data, "Silent", at=at, each=("Silent",))
            vc.send("RS", Sync=b_num, B_num=b_num, R_id=9, I_id=7)
            frame = vc.take(0.02)
            while frame is not None and frame.op != "RSR":
                frame = vc.take(0.02)
            if frame is not None and frame.B_seq > b_num:
                break
        else:
            demand(False, f"10.1 Put {b_num} never arrives")
    t.same(0, bytes(image))
