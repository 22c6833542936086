# SPDX-License-Identifier: BSD-3-Clause
"""Frames, headers, checksums, syntax errors: sections 2, 3, 4 and 12."""
from connections import demand
from conversation import conversation, pattern
from wire import ETHERTYPE, FLAGS, NONE, OPS, SLOT_OPS, SNAP


def dropped(t, vc, op, *flags, **fields):
    """A frame that is dropped, never answered, and changes nothing."""
    vc.send(op, *flags, **fields)
    vc.quiet()
    t.rx_none()


def syntax(*rules):
    return conversation("forms", *rules)


@syntax("2.3", "2.12")
def vlan_tag(t):
    """A tag with a priority and no VLAN changes nothing. Frames of a VLAN are those of other stations."""
    vc = t.up(rc=dict(vlan=7 << 13))
    cts = t.cts(vc, 1500)
    vc.block(cts, pattern(1500), vlan=3 << 13)
    t.rx("DATA")
    t.same(0, pattern(1500))
    dropped(t, vc, "NOP", payload=pattern(32), vlan=7)


@syntax("2.3", "2.6")
def snap_forms(t):
    vc = t.up(rc=dict(snap=True))
    cts = t.cts(vc, 1500)
    vc.block(cts, pattern(1500), snap=True)
    t.rx("DATA")
    t.same(0, pattern(1500))
    vc.send("NOP", snap=True, payload=pattern(32), vlan=1 << 13)
    demand(t.rx("NOP").payload == pattern(32), "the option payload")


@syntax("2.6")
def snap_padding(t):
    vc = t.up()
    cts = t.cts(vc, 3)
    vc.block(cts, b"abc", tail=b"\xff" * 40)
    t.rx("DATA")
    t.same(0, b"abc" + bytes(20))


@syntax("2.5", "2.6")
def short_stu_comes(t):
    vc = t.up()
    for i, length in enumerate(range(1, 8)):
        cts = t.cts(vc, length, i_id=10 + i, r_id=20 + i, bufx=0x100 + i)
        vc.block(cts, pattern(length, i))
        t.rx("DATA")
        t.same(4096 * i, pattern(length, i) + bytes(8))


@syntax("2.5", "8.2")
def short_stu_leaves(t):
    vc = t.up()
    t.fill(pattern(64))
    for length in (0, 1, 5, 6, 7):
        rts_id = 100 + length
        t.tx("RTS", CTS_req=1, Max_Block=16, T_len=length, RTR_id=NONE, I_id=rts_id)
        rts = vc.expect("RTS")
        vc.grant(rts, bufx=0x300 + length)
        told = t.rx("CTS")
        t.tx("DATA", R_Mx=3, R_Bufx=0x300 + length, R_id=told.R_id, length=length)
        frame = vc.expect("DATA")
        demand(frame.stu == pattern(length) and frame.snap == (length < 6), f"{frame}")


@syntax("2.7")
def control_padding(t):
    vc = t.up()
    for extra in (0, 6, 31):
        vc.send("NOP", b_num=extra, payload=b"\x5a" * extra, pad=False)
        demand(t.rx("NOP", b_num=extra).payload == b"", "padding is no option payload")
    vc.send("NOP", payload=pattern(32))
    demand(t.rx("NOP").payload == pattern(32), "an option payload")


@syntax("2.7", "12.1", "12.2")
def control_length(t):
    vc = t.up()
    dropped(t, vc, "NOP", payload=bytes(33))
    dropped(t, vc, "NOP", payload=bytes(64))
    dropped(t, vc, "NOP", payload=bytes(1), snap=True)
    dropped(t, vc, "NOP", payload=bytes(31), snap=True)


@syntax("12.2")
def truncated(t):
    vc = t.up()
    dropped(t, vc, "NOP", pad=False, cut=1)
    dropped(t, vc, "NOP", pad=False, cut=39)
    dropped(t, vc, "NOP", snap=True, pad=False, cut=1)
    cts = t.cts(vc, 100)
    vc.block(cts, pattern(100), snap=True, pad=False, cut=1)
    vc.quiet()
    t.untouched(0, 100)
    vc.block(cts, pattern(100))
    t.rx("DATA")


@syntax("2.9")
def bad_source(t):
    vc = t.up()
    dropped(t, vc, "NOP", src=bytes(6))
    dropped(t, vc, "NOP", src=b"\x01" + t.station.mac[1:])
    t.vc().rc(t.uport, src=b"\x03" + t.station.mac[1:])
    vc.quiet()


@syntax("2.10")
def other_address(t):
    vc = t.up()
    dropped(t, vc, "NOP", dst=b"\xff" * 6)
    dropped(t, vc, "NOP", dst=b"\x01\x00\x5e\x00\x00\x01")
    dropped(t, vc, "NOP", dst=t.station.mac[:5] + b"\x99")


@syntax("2.11")
def other_protocol(t):
    vc = t.up()
    raw = t.station.other + t.station.mac
    t.station.interface.send(raw + b"\x81\x82" + bytes(60))
    t.station.interface.send(raw + (48).to_bytes(2, "big") + b"\xaa\xaa\x03\x00\x00\x00\x81\x82" + bytes(52))
    t.station.interface.send(raw + (48).to_bytes(2, "big") + b"\xab\xaa\x03\x00\x00\x00" +
                             ETHERTYPE.to_bytes(2, "big") + bytes(52))
    t.station.interface.send(raw + b"\x81\x00\x00\x01\x81\x00\x00\x01" + ETHERTYPE.to_bytes(2, "big") + bytes(60))
    t.station.interface.send(raw + (7).to_bytes(2, "big") + SNAP + bytes(60))
    vc.quiet()


@syntax("3.3")
def unused_fields(t):
    vc = t.up()
    vc.send("END", param=9, mx=8, bufx=7, offset=6, sync=5, b_num=4, R_id=NONE, I_id=3)
    t.rx("END", I_id=3)
    vc.send("RTS", bufx=0xFFFFFFFF, offset=0xFFFFFFFF, CTS_req=1, Max_Block=10, T_len=10, RTR_id=NONE, I_id=1)
    t.rx("RTS", I_id=1, T_len=10)


@syntax("3.14")
def ethertype_field(t):
    vc = t.up(rc=dict(mx=0x0800))
    vc.quiet()


@syntax("3.4", "12.1")
def unknown_op(t):
    vc = t.up()
    for code in sorted(set(range(32)) - set(OPS.values())):
        vc.send(code)
    vc.quiet()
    t.rx_none()


@syntax("3.7", "3.8", "12.1")
def flags_illegal(t):
    vc = t.up()
    for op in sorted(set(OPS) - {"RSR", "RS"}):
        fields = {"RTS": dict(Max_Block=10, T_len=9), "CTS": dict(Blocksize=10), "RTR": dict(T_len=9),
                  "RMR": dict(T_len=9)}.get(op, {})
        wrong = [0x0001]
        if op != "DATA":
            wrong.append(FLAGS["Append"])
        if op != "GET":
            wrong += [0x0100, 0x0700]
        for bits in wrong:
            vc.send(op, bits, **fields)
    vc.send("GET", 0x0600)
    vc.send("DATA", "Append", payload=bytes(100))
    vc.quiet()
    t.rx_none()


@syntax("3.9", "3.7")
def flags_unused(t):
    vc = t.up()
    some = ("Reject", "Last", "Order", "Silent")
    for op in ("NOP", "RTS", "RTR", "RMR", "CTS", "END", "EA"):
        fields = {"RTS": dict(Max_Block=10, T_len=9, RTR_id=NONE), "CTS": dict(Blocksize=10), "RTR": dict(T_len=9),
                  "RMR": dict(T_len=9)}.get(op, {})
        vc.send(op, *some, **fields)
        t.rx(op)
    vc.send("RS", "Reject", "Last", "Silent", Sync=5, B_num=NONE, R_id=NONE)
    vc.expect("RSR", flags=(), Sync=5)
    vc.send("RD", "Reject", "Last")
    vc.expect("DA", flags=())
    again = t.vc()
    again.connect(t.uport, payload=b"")
    other = t.vc()
    other.send("RC", "Reject", I_Slots=9, I_Bufsize=12, I_Key=other.key, I_Max_STU=10, R_UPort=t.uport)
    other.adopt(other.expect("CA", flags=()))


@syntax("3.11", "12.2")
def exponents(t):
    t.listen()
    bad = t.vc()
    for sizes in (dict(I_Bufsize=7), dict(I_Bufsize=31), dict(I_Max_STU=7), dict(I_Max_STU=17),
                  dict(I_Bufsize=0xFFFFFFFF), dict(I_Max_STU=0)):
        bad.rc(t.uport, **sizes)
    t.settle()
    demand(len(bad.inbox) == 0, f"an answer to a syntax error: {bad.inbox.frames}")
    vc = t.vc()
    vc.connect(t.uport)
    t.side.do("accept", 1000)
    for bad_value in (0, 7, 32, 0xFFFF):
        dropped(t, vc, "RTS", Max_Block=bad_value, T_len=9, RTR_id=NONE, I_id=1)
        dropped(t, vc, "CTS", Blocksize=bad_value, I_id=1, R_id=1)


@syntax("3.11")
def exponents_limits(t):
    t.listen()
    for sizes in (dict(bufsize=8, max_stu=16), dict(bufsize=30, max_stu=8)):
        vc = t.vc(**sizes)
        vc.connect(t.uport)
        t.side.do("accept", 1000)
        vc.quiet()


@syntax("9.8", "12.2")
def zero_length(t):
    vc = t.up()
    dropped(t, vc, "RTR", T_len=0, I_id=1)
    dropped(t, vc, "RMR", B_win=1, T_len=0, I_id=1)
    vc.send("RTS", Max_Block=10, T_len=0, RTR_id=NONE, I_id=1)
    t.rx("RTS", T_len=0)


@syntax("12.2")
def zero_port(t):
    vc = t.up()
    dropped(t, vc, "NOP", s_port=0)
    bad = t.vc()
    bad.rc(t.uport, s_port=0)
    vc.send("RD", s_port=0)
    vc.quiet()


@syntax("8.7", "12.2")
def stu_too_long(t):
    vc = t.up()
    cts = t.cts(vc, 1400)
    vc.send("DATA", "Last", payload=pattern(1400), R_Mx=cts.R_Mx, R_Bufx=cts.R_Bufx, R_id=cts.R_id)
    vc.quiet()
    t.untouched(0, 1400)


@syntax("3.13")
def operands_missing(t):
    vc = t.up()
    mra = t.region(vc)
    for function in ("Fetch_Add", "Compare_And_Swap"):
        dropped(t, vc, "GET", function, Length=8, I_Mx=1, R_Bufx=mra.R_Bufx, R_id=mra.R_id, G_num=1)
    t.untouched(0, 16)


@syntax("4.1", "4.3", "4.5")
def checksum_wrong(t):
    vc = t.up()
    dropped(t, vc, "NOP", cksum=0x1234)
    dropped(t, vc, "NOP", payload=pattern(32), cksum=0x1234)
    cts = t.cts(vc, 100)
    vc.block(cts, pattern(100), cksum=0x4321)
    vc.quiet()
    t.untouched(0, 100)
    vc.block(cts, pattern(100), checksum=True)
    t.rx("DATA")
    t.same(0, pattern(100))


@syntax("4.1", "4.2", "4.4")
def checksum_comes(t):
    t.listen()
    vc = t.vc()
    vc.checksum = True
    vc.connect(t.uport)
    t.side.do("accept", 1000)
    cts = t.cts(vc, 1501)
    vc.block(cts, pattern(1501), append=pattern(64, 2))
    demand(t.rx("DATA").payload == pattern(64, 2), "the append")
    t.same(0, pattern(1501))
    vc.send("NOP", payload=pattern(32), pad=True)
    t.rx("NOP")
    demand(not vc.ask().cksum, "4.4 a checksum that nobody asked for")


@syntax("4.1", "4.4")
def checksum_leaves(t):
    vc = t.up(checksum=1)
    t.fill(pattern(3000))
    t.tx("RTS", CTS_req=1, Max_Block=16, T_len=2999, RTR_id=NONE, I_id=3, payload=pattern(32))
    rts = vc.expect("RTS")
    vc.grant(rts, offset=77)
    told = t.rx("CTS")
    t.tx("DATA", "Send_state", R_Mx=3, R_Bufx=0x100, R_Offset=77, R_id=told.R_id, length=2999,
         payload=pattern(64, 5))
    data = vc.expect("DATA")
    demand(rts.cksum and data.cksum and vc.ask(skip=("RSR",)).cksum, "4.4 a frame without checksum")
    demand(data.append == pattern(64, 5), "the append")
    t.rx("RSR")


@syntax("12.4")
def own_syntax(t):
    vc = t.up()
    for op, flags, fields in (("NOP", (1,), {}), ("NOP", ("Append",), {}), ("RTS", (), dict(Max_Block=7)),
                              ("CTS", (), dict(Blocksize=32)), ("RTR", (), {}), ("RMR", (), {}),
                              ("GET", (0x600,), {}), ("GET", ("Fetch_Add",), dict(Length=8)),
                              ("RC", (), {}), ("RD", (), {}), (9, (), {})):
        demand(t.tx_refused(op, *flags, **fields) in (1, 22, 34), f"{op} {flags} {fields}")
    vc.quiet()


@syntax("3.4")
def slot_operations(t):
    """The operations that use Slots are those that the document names."""
    vc = t.up(slots=64)
    free = vc.ask().R_Slots
    for op in sorted(SLOT_OPS - {"GET", "DATA"}):
        fields = {"RTS": dict(Max_Block=10, T_len=9, RTR_id=NONE, I_id=1), "CTS": dict(Blocksize=10, I_id=1, R_id=1),
                  "RTR": dict(T_len=9), "RMR": dict(T_len=9)}.get(op, {})
        vc.send(op, **fields)
        free -= 1
        demand(vc.ask().R_Slots == free, f"{op} takes no Slot")
