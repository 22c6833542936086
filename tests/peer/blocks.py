# SPDX-License-Identifier: BSD-3-Clause
"""Memory, tiling, Writes and their recovery: sections 7, 8, 9 and 10."""
import errno
import random
import time

from connections import demand, doubles
from conversation import conversation, pattern
from station import Failed
from wire import NONE


def blocks(*rules, **wants):
    return conversation("blocks", *rules, **wants)


# --- to the other side ----------------------------------------------------------------------------------
@blocks("9.2", "8.2", "8.9", "7.7")
def write_comes(t):
    vc = t.up()
    cts = t.cts(vc, 3000, offset=900)
    sync = vc.block(cts, pattern(3000), "Send_state", opaque=0xBEEF)
    vc.expect("RSR", Sync=sync, B_seq=1, B_num=0, I_id=7, R_id=9)
    told = t.rx("DATA", R_Mx=t.mx, R_Bufx=0x100, R_Offset=900, Opaque=0xBEEF, R_id=9, B_num=0)
    demand(told.STU_num == 3 and told.has("Last"), f"8.9 {told}")
    t.same(900, pattern(3000))
    t.untouched(0, 900)
    t.untouched(3900, 100)


@blocks("9.4", "9.6", "7.9")
def write_of_blocks(t):
    vc = t.up()
    data = pattern(10000)
    grants = [t.cts(vc, 10000, blocksize=11, b_num=k, offset=0, bufx=0x100 + k, rts=k == 0) for k in range(5)]
    for k in (0, 1, 2, 3, 4):
        sync = vc.block(grants[k], data[2048 * k:2048 * k + 2048], "Send_state")
        vc.expect("RSR", Sync=sync, B_seq=k + 1, B_num=k)
        t.rx("DATA", B_num=k)
        t.same(4096 * k, data[2048 * k:2048 * k + 2048] + bytes(100))


@blocks("9.6", "8.5")
def blocks_reordered(t):
    vc = t.up()
    data = pattern(5000)
    grants = [t.cts(vc, 5000, blocksize=10, b_num=k, offset=1024 * k % 4096, bufx=0x100 + k // 4, rts=k == 0)
              for k in range(5)]
    for k in (4, 2, 0, 3, 1):
        vc.block(grants[k], data[1024 * k:1024 * k + 1024])
    demand(vc.ask(R_id=9, I_id=7).B_seq == 5, "9.6 B_seq")
    t.same(0, data)


@blocks("8.2", "8.1")
def tiling_odd(t):
    """Blocks with every kind of beginning and end, compared to the tiling."""
    vc = t.up(bufs=64)
    dice = random.Random(82)
    for i in range(24):
        offset, length = dice.randrange(4096), dice.choice((1, 5, 6, 100, 1023, 1024, 1025, 4096, 5000))
        data = pattern(length, i)
        cts = t.cts(vc, length, i_id=50 + i, r_id=150 + i, bufx=0x100 + 2 * i, offset=offset)
        sync = vc.block(cts, data, "Send_state")
        vc.expect("RSR", Sync=sync, B_seq=1)
        t.rx("DATA")
        t.same(8192 * i + offset, data)


@blocks("8.1", "8.2")
def tiling_small_buffers(t):
    for bufsize, max_stu in ((8, 10), (10, 8), (9, 9)):
        t.side = t.new_side()
        t.uport += 3000
        vc = t.up(bufsize=bufsize, maxstu=max_stu)
        cts = t.cts(vc, 2000, offset=77)
        sync = vc.block(cts, pattern(2000), "Send_state")
        vc.expect("RSR", Sync=sync, B_seq=1)
        t.same(77, pattern(2000))


@blocks("8.4", "9.8")
def empty_comes(t):
    vc = t.up()
    cts = t.cts(vc, 0)
    sync = vc.block(cts, b"", "Send_state")
    vc.expect("RSR", Sync=sync, B_seq=1, B_num=0)
    t.rx("DATA", STU_num=0)
    t.untouched(0, 100)


@blocks("8.5", "8.8", "8.9")
def stus_reordered(t):
    vc = t.up()
    cts = t.cts(vc, 6000)
    vc.block(cts, pattern(6000), order=(5, 0, 3, 1, 4, 2))
    told = t.rx("DATA")
    demand(told.STU_num == 5 and told.R_Bufx == 0x100 and told.R_Offset == 0, f"8.9 {told}")
    t.rx_none()
    t.same(0, pattern(6000))


@blocks("8.10")
def stus_doubled(t):
    vc = t.up()
    cts = t.cts(vc, 3000)
    vc.block(cts, pattern(3000), order=(0, 1))
    vc.block(cts, bytes(3000), order=(0, 1))
    vc.block(cts, pattern(3000), order=(2, 2))
    vc.block(cts, bytes(3000))
    t.rx("DATA")
    vc.quiet()
    t.rx_none()
    t.same(0, pattern(3000))


@blocks("8.9", "8.11", "3.5")
def append_comes(t):
    vc = t.up()
    for i, length in enumerate((3000, 0, 3)):
        cts = t.cts(vc, length, i_id=20 + i, r_id=30 + i, bufx=0x100 + i)
        vc.block(cts, pattern(length), append=pattern(64, i))
        demand(t.rx("DATA").payload == pattern(64, i), "the append")
        t.same(4096 * i, pattern(length))


@blocks("8.9")
def silent_comes(t):
    vc = t.up()
    cts = t.cts(vc, 3000)
    vc.block(cts, pattern(3000), "Silent", each=("Silent",))
    demand(vc.ask(R_id=9, I_id=7).B_seq == 1, "9.6 B_seq")
    t.rx_none()
    t.same(0, pattern(3000))


@blocks("8.11", "3.5")
def order_comes(t):
    vc = t.up()
    cts = t.cts(vc, 3000)
    vc.block(cts, pattern(3000), "Interrupt", each=("Order",), order=(2, 1, 0))
    told = t.rx("DATA")
    demand(told.has("Order") and told.has("Interrupt"), f"{told}")


@blocks("7.6", "12.1")
def checks(t):
    """Each check of the table fails once; no byte is written, and nothing is answered."""
    vc = t.up()
    cts = t.cts(vc, 1000, offset=100)
    good = dict(R_Mx=cts.R_Mx, R_Bufx=cts.R_Bufx, R_Offset=100, R_id=9)
    for wrong in (dict(R_Mx=cts.R_Mx + 1), dict(R_Mx=0), dict(R_Mx=0xFFFF), dict(R_Bufx=0x99), dict(R_Bufx=0x140),
                  dict(R_Offset=4096), dict(R_Offset=0xFFFFFFFF), dict(R_Offset=3500), dict(R_id=10), dict(R_id=NONE),
                  dict(B_num=1), dict(B_num=NONE), dict(R_Offset=99), dict(R_Offset=101), dict(R_Bufx=0x101),
                  dict(STU_num=1), dict(STU_num=0xFFFF)):
        vc.send("DATA", "Last", "Send_state", payload=pattern(1000), **{**good, **wrong})
    vc.send("DATA", "Last", payload=pattern(999), **good)   # ends too early
    vc.send("DATA", payload=pattern(500), **good)           # does not fill its tile
    vc.quiet()
    t.untouched(0, 64 * 4096)
    vc.block(cts, pattern(1000))
    t.rx("DATA")
    t.same(100, pattern(1000))


@blocks("8.6")
def last_lies(t):
    vc = t.up()
    cts = t.cts(vc, 3000)
    place = dict(R_Mx=cts.R_Mx, R_Bufx=cts.R_Bufx, R_id=9)
    vc.send("DATA", "Last", payload=pattern(1024), **place)  # STU 0 of three
    vc.send("DATA", "Last", payload=pattern(1024), STU_num=1, R_Offset=1024, **place)
    vc.send("DATA", payload=pattern(952), STU_num=2, R_Offset=2048, **place)  # the last one without
    vc.send("DATA", payload=pattern(1024), STU_num=2, R_Offset=1024, **place)  # a number that is not its place's
    vc.quiet()
    t.untouched(0, 4096)
    vc.block(cts, pattern(3000))
    t.rx("DATA")


@blocks("8.6", "7.9", "9.4")
def block_short_inside(t):
    vc = t.up()
    cts = t.cts(vc, 5000, blocksize=11)
    place = dict(R_Mx=cts.R_Mx, R_Bufx=cts.R_Bufx, R_id=9)
    vc.send("DATA", payload=pattern(1024), **place)
    vc.send("DATA", "Last", "Send_state", payload=pattern(500), STU_num=1, R_Offset=1024, **place)
    vc.quiet()
    t.untouched(1024, 500)
    demand(vc.ask(R_id=9, I_id=7).B_seq == 0, "8.6 a Block that ends early is complete")
    vc.send("DATA", "Last", payload=pattern(1024), STU_num=1, R_Offset=1024, **place)
    t.rx("DATA")


@blocks("7.9")
def block_short_unknown(t):
    """A CTS without an RTS: Last ends the Block."""
    vc = t.up()
    cts = t.cts(vc, 0, rts=False, blocksize=11)
    vc.block(cts, pattern(1500), "Send_state")
    vc.expect("RSR", B_seq=1)
    t.rx("DATA")
    t.same(0, pattern(1500))


@blocks("7.9")
def grant_of_longer(t):
    """A CTS grants no more than the RTS asked for."""
    vc = t.up()
    cts = t.cts(vc, 100)
    vc.send("DATA", "Last", payload=pattern(101), R_Mx=cts.R_Mx, R_Bufx=cts.R_Bufx, R_id=9)
    vc.quiet()
    t.untouched(0, 200)
    t.tx_dropped(vc, "CTS", Blocksize=16, R_Mx=t.mx, R_Bufx=0x100, B_num=1, I_id=7, R_id=9)


@blocks("7.10")
def grant_repeated(t):
    vc = t.up()
    cts = t.cts(vc, 3000)
    vc.block(cts, pattern(3000), order=(0,))
    t.cts(vc, 3000, rts=False)
    vc.block(cts, pattern(3000), order=(1, 2))
    t.rx("DATA")
    t.same(0, pattern(3000))


@blocks("7.10")
def grant_moved(t):
    vc = t.up()
    cts = t.cts(vc, 3000)
    vc.block(cts, pattern(3000), order=(0,))
    vc.quiet()
    moved = t.cts(vc, 3000, rts=False, bufx=0x110)
    vc.block(cts, pattern(3000), order=(1, 2))  # the old place
    vc.quiet()
    t.rx_none()
    vc.block(moved, pattern(3000))
    t.rx("DATA", R_Bufx=0x110)
    t.same(16 * 4096, pattern(3000))


@blocks("9.5")
def f_offset_filled_in(t):
    vc = t.up()
    cts = t.cts(vc, 3000)
    vc.block(cts, pattern(3000), order=(0,))
    vc.quiet()
    again = t.cts(vc, 3000, rts=False)
    demand(again.F_Offset == 1024, f"9.5 F_Offset {again.F_Offset}")
    vc.block(again, pattern(3000), f_offset=1024)
    t.rx("DATA")


@blocks("7.11")
def blocksize_fixed(t):
    vc = t.up()
    t.cts(vc, 5000, blocksize=11)
    t.tx_dropped(vc, "CTS", Blocksize=12, R_Mx=t.mx, R_Bufx=0x101, B_num=1, I_id=7, R_id=9)


@blocks("7.8")
def grant_not_own(t):
    vc = t.up()
    for wrong in (dict(R_Mx=t.mx + 1), dict(R_Bufx=0x99), dict(R_Offset=4096)):
        fields = {**dict(Blocksize=10, R_Mx=t.mx, R_Bufx=0x100, I_id=7, R_id=9), **wrong}
        demand(t.tx_refused("CTS", **fields) == errno.ERANGE, f"7.8 {wrong}")
    vc.quiet()


@blocks("7.12", "9.18")
def end_comes(t):
    vc = t.up()
    cts = t.cts(vc, 3000)
    vc.block(cts, pattern(3000), order=(0,))
    vc.send("END", R_id=9, I_id=7)
    vc.block(cts, pattern(3000, 5))
    vc.quiet()
    t.rx("END", R_id=9, I_id=7)
    t.rx_none()
    t.same(0, pattern(1024) + bytes(2000))


@blocks("7.12", "9.18")
def end_leaves(t):
    vc = t.up()
    cts = t.cts(vc, 3000)
    t.tx("END", R_id=7, I_id=9)
    vc.expect("END", R_id=7, I_id=9)
    vc.block(cts, pattern(3000))
    vc.send("EA", I_id=9, R_id=7)
    t.rx("EA")
    t.untouched(0, 3000)


@blocks("9.20")
def end_unnamed(t):
    vc = t.up()
    vc.send("RTS", CTS_req=1, Max_Block=16, T_len=100, RTR_id=NONE, I_id=7)
    t.rx("RTS")
    vc.send("END", R_id=NONE, I_id=7)
    t.rx("END", R_id=NONE, I_id=7)
    t.tx("EA", I_id=7, R_id=NONE)
    vc.expect("EA", I_id=7)


@blocks("7.5")
def unmapped(t):
    vc = t.up()
    cts = t.cts(vc, 3000)
    vc.block(cts, pattern(3000), order=(0,))
    vc.quiet()
    t.side.do("unmap")
    vc.block(cts, pattern(3000, 3))
    vc.quiet()
    t.same(0, pattern(1024) + bytes(2000))


@blocks("7.3", "7.4", "7.5")
def mx_of_one_vc(t):
    vc = t.up()
    other = t.vc()
    other.connect(t.uport)
    own = int(t.side.do("newmx"))
    demand(own not in (0, t.mx), f"7.4 Mx {own}")
    cts = t.cts(vc, 100, R_Mx=own)
    other.block(cts, pattern(100))
    other.quiet()
    t.untouched(0, 100)
    vc.block(cts, pattern(100))
    t.rx("DATA")
    t.side.do("freemx", own)
    demand(t.tx_refused("CTS", Blocksize=10, R_Mx=own, R_Bufx=0x100, I_id=8, R_id=10) == errno.ERANGE, "7.5")


@blocks("9.17")
def rts_refused(t):
    vc = t.up()
    vc.send("RTS", CTS_req=1, Max_Block=16, T_len=100, RTR_id=NONE, I_id=7)
    t.rx("RTS")
    t.tx("RA", "Reject", I_id=7)
    vc.expect("RA", flags=("Reject",), I_id=7)


@blocks("9.1", "7.9")
def rts_changed(t):
    vc = t.up()
    for length in (100, 200):
        vc.send("RTS", CTS_req=1, Max_Block=16, T_len=length, RTR_id=NONE, I_id=7)
        t.rx("RTS", T_len=length)
    cts = t.cts(vc, 200, rts=False)
    vc.block(cts, pattern(200))
    t.rx("DATA")
    t.same(0, pattern(200))


@blocks("7.14", "7.9")
def rts_remembered(t):
    """Of 65 RTS the first is forgotten: its CTS grants 2^Blocksize bytes, and Last ends it anywhere."""
    vc = t.up()
    for i_id in range(1, 66):
        vc.send("RTS", CTS_req=1, Max_Block=16, T_len=200, RTR_id=NONE, I_id=i_id)
        t.rx("RTS", I_id=i_id)
    known = t.cts(vc, 200, i_id=65, r_id=65, rts=False)
    vc.block(known, pattern(50))
    vc.quiet()
    t.rx_none()
    forgotten = t.cts(vc, 200, i_id=1, r_id=1, bufx=0x101, blocksize=8, rts=False)
    vc.block(forgotten, pattern(50))
    t.rx("DATA", R_id=1)
    t.same(4096, pattern(50))
    t.untouched(0, 50)


@blocks("7.14")
def transfers_bounded(t):
    """256 Transfers have a Block open: the CTS of the next one is refused until one of them has ended."""
    vc = t.up()
    for i in range(256):
        t.cts(vc, 100, i_id=1000 + i, r_id=2000 + i, blocksize=8, rts=False)
    t.tx_dropped(vc, "CTS", Blocksize=8, R_Mx=t.mx, R_Bufx=0x101, I_id=5, R_id=6)
    vc.send("END", R_id=2000, I_id=1000)
    t.rx("END")
    cts = t.cts(vc, 100, i_id=5, r_id=6, bufx=0x101, blocksize=8, rts=False)
    vc.block(cts, pattern(100))
    t.rx("DATA", R_id=6)
    t.same(4096, pattern(100))


@blocks("7.14", "7.13")
def window_bounded(t):
    vc = t.up()
    t.tx_dropped(vc, "MRA", B_win=1025, R_Mx=t.mx, R_Bufx=0x100, T_len=100, I_id=7, R_id=9)
    vc.quiet()


@blocks("10.8", "10.9", "10.12")
def grants_held(t):
    """The user grants more bytes than may be outstanding. The first CTS is sent at once; the others when
    nothing has arrived for 20 ms, the one that lacks the fewest bytes first."""
    vc = t.up()
    lengths = (1 << 25, 1 << 24, 1 << 22, 1 << 23)  # of which any two are beyond the bound at MTU 1500
    for i, length in enumerate(lengths):
        vc.send("RTS", CTS_req=1, Max_Block=25, T_len=length, RTR_id=NONE, I_id=10 + i)
        t.rx("RTS")
    for i in range(len(lengths)):
        t.tx("CTS", Blocksize=25, R_Mx=t.mx, R_Bufx=0x100, I_id=10 + i, R_id=20 + i)
    asked = time.time()
    came = [vc.expect("CTS") for _ in lengths]
    if asked - came[0].time < 0.015:  # else this machine took so long that they were not held together
        # Every eighth is the oldest.
        demand([cts.I_id for cts in came[1:]] in ([12, 13, 11], [12, 11, 13], [11, 12, 13]), f"10.9 {came}")
    held = came[1].time - came[0].time
    demand(held > 0.015, f"10.12 after {1000 * held:.2f} ms")


@blocks("10.3", "10.21")
def recover_asks_first(t):
    """Nothing at all arrives: an RS precedes each repeated CTS, and no CTS is repeated before its RSR."""
    vc = t.up(recover=1)
    vc.answers_rs = False
    t.cts(vc, 5000)
    for _ in range(3):
        rs = vc.expect("RS")
        vc.expect("RS", Sync=rs.Sync)
        vc.send("RSR", R_Slots=vc.slots, Sync=rs.Sync, B_num=NONE, I_id=NONE)
        vc.expect("CTS", F_Offset=0, skip=("RS",))


@blocks("10.21")
def recover_waits_for_reader(t):
    """While the sender's user has not read, nothing is sent again, for 250 ms."""
    vc = t.up(recover=1)
    vc.answers_rs = False
    first = t.cts(vc, 5000)
    asked = 0
    while True:
        frame = vc.take()
        demand(frame is not None and frame.op in ("RS", "CTS"), f"10.21 {frame}")
        if frame.op == "CTS":
            break
        asked += 1
        vc.send("RSR", R_Slots=vc.slots - 1, Sync=frame.Sync, B_num=NONE, I_id=NONE)
    demand(frame.time - first.time > 0.25, f"10.21 CTS again after {1000 * (frame.time - first.time):.1f} ms")
    demand(3 <= asked <= 40, f"10.21 {asked} questions")


@blocks("10.3", "9.5", "10.15")
def recover_asks_again(t):
    vc = t.up(recover=1)
    cts = t.cts(vc, 5000)
    vc.block(cts, pattern(5000), skip=(2,))
    again = vc.expect("CTS")
    while again.F_Offset == 0:  # it was on its way when the STUs were
        again = vc.expect("CTS")
    demand((again.F_Offset, again.B_num, again.R_Bufx, again.Blocksize) == (2048, 0, cts.R_Bufx, 16), f"9.5 {again}")
    vc.block(again, pattern(5000), f_offset=2048)
    t.rx("DATA")
    t.same(0, pattern(5000))


@blocks("10.3")
def recover_doubles(t):
    vc = t.up(recover=1)
    every = [t.cts(vc, 5000)] + [vc.expect("CTS", F_Offset=0, timeout=5) for _ in range(6)]
    doubles(every, 0.0009, "10.3")


@blocks("10.5", "10.3")
def recover_needs_credit(t):
    vc = t.up(sizes=dict(slots=1), recover=1)
    vc.answers_rs = False
    t.cts(vc, 5000, skip=("RS",))
    until = time.monotonic() + 0.15
    while time.monotonic() < until:
        frame = vc.take(0.05)
        demand(frame is None or frame.op == "RS", f"10.5 {frame} without credit")
    vc.answers_rs = True
    vc.expect("CTS", skip=("RS",), timeout=5)


@blocks("10.3")
def recover_off(t):
    vc = t.up()
    cts = t.cts(vc, 5000)
    vc.block(cts, pattern(5000), skip=(2,))
    vc.pause(0.15)


@blocks("10.1", "10.2", "10.3", "9.5")
def recover_lossy(t):
    """A fifth of all frames is lost, some are duplicated and late: 40 Blocks arrive intact."""
    vc = t.up(recover=1, bufs=32)
    data = pattern(40 * 2048)
    dice = random.Random(103)
    vc.send("RTS", CTS_req=4, Max_Block=11, T_len=len(data), RTR_id=NONE, I_id=7)
    t.rx("RTS")
    vc.wire.random.seed(103)
    vc.wire.loss, vc.wire.double, vc.wire.late = 0.2, 0.1, 0.2
    done = 0
    for k in range(40):
        t.tx("CTS", Blocksize=11, R_Mx=t.mx, R_Bufx=0x100 + k // 2, R_Offset=k % 2 * 2048, B_num=k, I_id=7, R_id=9)
        until = time.monotonic() + 20
        while done == k:
            demand(time.monotonic() < until, f"Block {k} does not arrive")
            cts = vc.take(0.01)
            if cts is not None and cts.op == "CTS" and cts.B_num == k:
                part = data[2048 * k:2048 * k + 2048]
                order = list(range(2))
                dice.shuffle(order)
                vc.block(cts, part, f_offset=cts.F_Offset, order=order)
            if t.side.do("rx", 0) != "none":
                done += 1
    vc.wire.loss = vc.wire.double = vc.wire.late = 0
    demand(vc.ask(R_id=9, I_id=7, skip=("CTS",)).B_seq == 40, "9.6 B_seq")
    t.same(0, data)


# --- from the other side ----------------------------------------------------------------------------------
def offered(t, vc, length, i_id=3, **fields):
    t.tx("RTS", **{**dict(CTS_req=1, Max_Block=16, T_len=length, RTR_id=NONE, I_id=i_id), **fields})
    return vc.expect("RTS", T_len=length, I_id=i_id)


def sent(t, cts, length, *flags, f_offset=0, source=0, **fields):
    """The program sends DATA for a CTS that it has received."""
    at = (cts.R_Bufx << 12) + cts.R_Offset + f_offset
    where = source + f_offset
    t.tx("DATA", *flags, R_Mx=cts.R_Mx, R_Bufx=at >> 12, R_Offset=at & 4095, B_num=cts.B_num, R_id=cts.R_id,
         length=length - f_offset, bufx=0x100 + (where >> 12), offset=where & 4095, **fields)


@blocks("9.2", "8.2", "8.3", "8.12")
def write_leaves(t):
    vc = t.dialed()
    t.fill(pattern(9000))
    for i, (length, offset) in enumerate(((3000, 900), (1, 0), (1024, 0), (1025, 1023), (9000, 4095))):
        rts = offered(t, vc, length, 10 + i)
        grant = vc.grant(rts, bufx=0x500 + 16 * i, offset=offset)
        sent(t, t.rx("CTS"), length, "Send_state", Opaque=i)
        told = vc.expect("DATA", Opaque=i)
        t.rx("RSR", B_seq=1, I_id=10 + i)
        demand(vc.memory.bytes(grant.start, length) == pattern(length), "the bytes")
        demand(told.start == grant.start, "8.2 STU 0")


@blocks("8.1", "8.2", "8.3")
def write_leaves_small(t):
    """The program's Blocks are cut by the sizes of the receiver."""
    for bufsize, max_stu in ((8, 16), (30, 8), (9, 9)):
        t.side = t.new_side()
        t.uport += 3000
        vc = t.dialed(sizes=dict(bufsize=bufsize, max_stu=max_stu))
        t.fill(pattern(2000))
        rts = offered(t, vc, 2000)
        grant = vc.grant(rts, bufx=5, offset=201)
        cts = t.rx("CTS")
        t.tx("DATA", "Send_state", R_Mx=cts.R_Mx, R_Bufx=cts.R_Bufx, R_Offset=cts.R_Offset, R_id=cts.R_id, length=2000)
        vc.expect("DATA")
        demand(vc.memory.bytes(grant.start, 2000) == pattern(2000), "the bytes")


@blocks("9.5", "8.12")
def tail_leaves(t):
    """The tail of a Block is repeated: STU numbers count from the start of the Block."""
    vc = t.dialed()
    t.fill(pattern(5000))
    rts = offered(t, vc, 5000)
    vc.wire.drop("in", lambda frame: frame.op == "DATA" and frame.STU_num >= 2, 3)
    grant = vc.grant(rts, bufx=0x20, offset=500)
    cts = t.rx("CTS")
    sent(t, cts, 5000, "Send_state")
    vc.quiet()
    vc.grant(rts, bufx=0x20, offset=500, F_Offset=1548)  # the third tile's first byte
    again = t.rx("CTS", F_Offset=1548)
    demand(again.B_num == 0, f"{again}")
    sent(t, cts, 5000, "Send_state", f_offset=1548)
    vc.expect("DATA")
    demand(vc.memory.bytes(grant.start, 5000) == pattern(5000), "the bytes")
    t.rx("RSR", B_seq=1)


@blocks("8.4", "9.8", "2.5")
def empty_leaves(t):
    vc = t.dialed()
    rts = offered(t, vc, 0)
    vc.grant(rts)
    sent(t, t.rx("CTS"), 0, "Send_state")
    told = vc.expect("DATA")
    demand(told.snap and told.STU_num == 0 and told.stu == b"", f"{told}")
    t.rx("RSR", B_seq=1)


@blocks("8.11")
def flags_leave(t):
    """Send_state, Interrupt and append on Last only; Order and Silent on all."""
    vc = t.dialed()
    vc.keeps_state = False
    t.fill(pattern(3000))
    t.tx("DATA", "Send_state", "Interrupt", "Order", "Silent", R_Mx=3, R_Bufx=7, R_id=4, length=3000, Sync=0x66,
         payload=pattern(64))
    for number in range(3):
        stu = vc.expect("DATA", STU_num=number, Sync=0x66)
        last = number == 2
        demand(stu.has("Order") and stu.has("Silent"), f"8.11 {stu}")
        demand(stu.has("Last") == stu.has("Send_state") == stu.has("Interrupt") == stu.has("Append") == last, f"{stu}")


@blocks("9.9")
def read_comes(t):
    """An RTR of this side: the RTS that answers it has its id."""
    vc = t.dialed()
    t.fill(pattern(3000))
    vc.send("RTR", T_len=3000, I_id=0x61)
    t.rx("RTR", T_len=3000, I_id=0x61)
    rts = offered(t, vc, 3000, 5, RTR_id=0x61)
    demand(rts.RTR_id == 0x61, f"{rts}")
    grant = vc.grant(rts)
    sent(t, t.rx("CTS"), 3000, "Send_state")
    vc.expect("DATA")
    demand(vc.memory.bytes(grant.start, 3000) == pattern(3000), "the bytes")


@blocks("9.9", "9.17")
def read_leaves(t):
    vc = t.up()
    t.tx("RTR", T_len=3000, I_id=0x33)
    rtr = vc.expect("RTR", T_len=3000)
    vc.send("RTS", CTS_req=1, Max_Block=16, T_len=3000, RTR_id=rtr.I_id, I_id=7)
    t.rx("RTS", RTR_id=0x33)
    cts = t.cts(vc, 3000, rts=False)
    vc.block(cts, pattern(3000))
    t.rx("DATA")
    t.same(0, pattern(3000))
    t.tx("RTR", T_len=10, I_id=0x34)
    vc.expect("RTR")
    vc.send("RA", "Reject", I_id=0x34)
    t.rx("RA", flags=("Reject",), I_id=0x34)


@blocks("9.3", "9.2")
def ra_told(t):
    vc = t.dialed()
    rts = offered(t, vc, 100, CTS_req=5)
    demand(rts.CTS_req == 5, f"{rts}")
    vc.send("RA", I_id=rts.I_id, R_id=0x88)
    t.rx("RA", I_id=3, R_id=0x88)


@blocks("10.1", "10.7")
def write_leaves_lossy(t):
    """The program repeats what this side asks for again; its RS learns what has arrived."""
    vc = t.dialed()
    data = pattern(20000)
    t.fill(data)
    rts = offered(t, vc, 20000)
    vc.wire.random.seed(5)
    vc.wire.loss = 0.25
    grant = vc.grant(rts, blocksize=12)
    for k in range(5):
        until = time.monotonic() + 20
        while not grant.has(k):
            if time.monotonic() > until:
                raise Failed(f"Block {k} does not arrive")
            vc.grant(rts, k, blocksize=12)
            told = t.side.do("rx", 30)
            if told == "none":
                continue
            words = told.split()
            b_num = int(words[6])
            t.tx("DATA", R_Mx=3, R_Bufx=int(words[3]), R_Offset=int(words[4]), B_num=b_num, R_id=grant.r_id,
                 length=min(4096, 20000 - 4096 * b_num), bufx=0x100 + b_num)
            t.side.do("flush")
            vc.take(0.01)
    demand(vc.memory.bytes(grant.start, 20000) == data, "the bytes")
