# SPDX-License-Identifier: BSD-3-Clause
"""The life of a Virtual Connection: section 5."""
import errno
import time

from conversation import conversation, pattern
from station import Failed
from vc import PATIENCE
from wire import NONE

OPTION = pattern(32)


def demand(condition, text):
    if not condition:
        raise Failed(text)


def closes(side, vc):
    side.begin("close")
    vc.closed.wait(PATIENCE)
    side.answer()


def doubles(frames, first, rule):
    """Each pause is twice the one before; the shortest is `first` seconds. If the machine stalls between the
    Node's clock and the wire, one pause gets shorter, never two."""
    pauses = [after.time - before.time for before, after in zip(frames, frames[1:])]
    short = sum(pause < first * 2 ** i for i, pause in enumerate(pauses))
    demand(short <= 1, f"{rule} pauses of {', '.join(f'{1000 * pause:.2f}' for pause in pauses)} ms")


def stray(talk, op, **fields):
    """The next frame to a Port that this side does not use."""
    frame = talk.station.strays.take(PATIENCE)
    demand(frame is not None and frame.op == op, f"{op} expected, not {frame}")
    for name, value in fields.items():
        demand(getattr(frame, name) == value, f"{name} {value:#x} expected: {frame}")
    return frame


def no_stray(talk):
    demand(len(talk.station.strays) == 0, "no answer expected")


@conversation("connections", "5.1", "5.3", "5.5", "5.26", "6.1")
def connect(t):
    t.listen(slots=37)
    vc = t.vc(uport=77)
    ca = vc.connect(t.uport)
    demand(ca.I_UPort == 77 and ca.R_UPort == t.uport, f"5.1 UPorts: {ca}")
    demand(ca.R_Slots == 37 and ca.R_Bufsize == 12 and ca.R_Max_STU <= 10, f"5.26 sizes: {ca}")
    t.side.do("accept", 10000)
    vc.quiet()


@conversation("connections", "5.2", "5.11", "5.16")
def disconnect_by_peer(t):
    vc = t.up()
    vc.send("RD", payload=OPTION)
    vc.expect("DA")
    vc.send("DC")
    event = t.side.do("event", 5000)
    demand(event.startswith("2 "), f"the program hears {event}")
    demand(t.side.refused("rx", 1000) == errno.ENOTCONN, "st_rx after the end")


@conversation("connections", "5.2")
def disconnect_by_user(t):
    vc = t.up()
    closes(t.side, vc)
    demand(vc.closed.is_set(), "no RD")


@conversation("connections", "5.4")
def rc_repeated(t):
    t.listen()
    vc = t.vc()
    vc.rc(t.uport)
    first = vc.expect("CA")
    for _ in range(3):
        vc.rc(t.uport)
        again = vc.expect("CA")
        demand(again.head == first.head, f"another CA: {again}")
    vc.adopt(first)
    t.side.do("accept", 10000)
    vc.send("NOP", b_num=5)
    t.rx("NOP", b_num=5)
    vc.rc(t.uport)
    demand(vc.expect("CA").head == first.head, "another CA on an open VC")


@conversation("connections", "5.4")
def rc_other_key(t):
    t.listen()
    one, two = t.vc(), t.vc()
    one.connect(t.uport)
    t.station.ports[one.port] = two
    two.port = one.port
    two.shares_port = True
    two.connect(t.uport)
    demand(one.peer_port != two.peer_port, "two VCs with one Port")


@conversation("connections", "5.6")
def no_listener(t):
    vc = t.vc(uport=5)
    for _ in range(2):
        vc.rc(t.uport)
        no = vc.expect("CA", flags=("Reject",))
        demand(no.s_port == 0 and no.I_UPort == 5 and no.R_UPort == t.uport, f"{no}")
    demand(no.R_Slots == 0 and no.R_Bufsize == 0 and no.R_Key == 0 and no.R_Max_STU == 0, f"12.3: {no}")


@conversation("connections", "5.7")
def backlog_full(t):
    t.listen()
    vcs = [t.vc() for _ in range(17)]
    for vc in vcs[:16]:
        vc.connect(t.uport)
    for vc in vcs[:16]:
        vc.quiet()  # each shows that it is there (5.34)
    vcs[16].rc(t.uport)
    vcs[0].quiet()
    demand(len(vcs[16].inbox) == 0, f"an answer though the backlog is full: {vcs[16].inbox.frames}")
    t.side.do("accept", 10000)
    vcs[16].connect(t.uport)


def strangers(t):
    """Eight VCs of one address that never answer: the next requester has to prove itself (5.34)."""
    t.listen()
    for _ in range(8):
        vc = t.vc()
        vc.silent = True
        vc.connect(t.uport)


def stranger(t):
    """One more requester. Its RC may have to be repeated (5.39), and some of the eight VCs may fail first
    (5.40)."""
    vc = t.vc()
    vc.answers_rs = False
    vc.connect(t.uport)
    rs = vc.expect("RS", timeout=5)
    words = (vc.slots << 16) + (vc.bufsize - 8 << 8) + vc.max_stu - 8
    demand((rs.Sync, rs.I_id, rs.R_id, rs.B_num) == (vc.key, words, t.uport, NONE), f"5.37 {rs}")
    return vc, rs


def proves(vc, rs, **changed):
    vc.send("RSR", "Reject", **{**dict(R_Slots=vc.slots, Sync=rs.Sync, B_num=NONE, I_id=rs.I_id, R_id=rs.R_id),
                               **changed})


@conversation("connections", "5.34", "5.35", "5.36", "5.37")
def rc_cookie(t):
    """The RSR makes the VC, once."""
    strangers(t)
    vc, rs = stranger(t)
    for _ in range(2):
        proves(vc, rs)
    vc.quiet(skip=("RS",))
    vc.established = False  # so that a CA is told
    vc.rc(t.uport)
    again = vc.expect("CA", skip=("RS",))
    demand((again.s_port, again.R_Key) == (vc.peer_port, vc.peer_key), f"5.36 another CA: {again}")


@conversation("connections", "5.35", "5.36", "5.37")
def rc_cookie_wrong(t):
    """Wrong words, a wrong Key or address make no VC: a frame that needs the VC is not answered."""
    strangers(t)
    vc, rs = stranger(t)
    for changed in (dict(d_key=vc.peer_key ^ 1), dict(src=vc.station.mac[:-1] + b"\xEE"), dict(s_port=vc.port + 500)):
        proves(vc, rs, **changed)
    t.settle()
    answers = [frame for frame in vc.inbox.waiting() if frame.op != "RS"]  # a repeated RC is asked again
    demand(not answers, f"5.36 {answers}")
    proves(vc, rs)
    vc.quiet(skip=("RS",))


@conversation("connections", "5.38")
def rc_cookie_kept(t):
    """RS and RSR are lost: the first frame of the requester has the same effect."""
    strangers(t)
    vc, _ = stranger(t)
    vc.answers_rs = True
    vc.send("NOP", b_num=77)
    vc.quiet(skip=("RS",))
    t.side.do("accept", 5000)


@conversation("connections", "5.38", "5.10")
def rc_cookie_ended(t):
    """An RD ends the VC before it is made; from then on its RC is late."""
    strangers(t)
    vc, rs = stranger(t)
    vc.send("RD")
    vc.expect("DA", skip=("RS",))
    vc.send("DC")
    proves(vc, rs)
    for _ in range(2):
        vc.rc(t.uport)
    t.settle()
    demand(len(vc.inbox) == 0, f"5.10 {vc.inbox.frames}")


@conversation("connections", "5.40")
def rc_silent_first(t):
    """When room is needed, silent VCs get an RS. Those whose requester answers stay."""
    t.listen()
    silent = [t.vc() for _ in range(8)]
    for vc in silent:
        vc.connect(t.uport)
        vc.answers_rs = False
    vc = t.vc()
    vc.connect(t.uport)
    for one in silent:
        one.expect("RS", timeout=5)
        one.send("RSR", R_Slots=one.slots, Sync=0, B_num=NONE, I_id=NONE)  # any frame shows it (5.24)
    for one in silent:
        one.answers_rs = True
        one.quiet(skip=("RS",))


@conversation("connections", "5.8")
def ca_again(t):
    vc = t.dialed()
    vc.send("CA", R_Slots=1, R_Bufsize=9, R_Key=vc.key, R_Max_STU=8, R_UPort=t.uport)
    vc.quiet()
    for i in range(4):
        t.tx("NOP", b_num=i)
    for i in range(4):
        vc.expect("NOP", b_num=i, skip=("RS",))


@conversation("connections", "5.8", "5.9")
def ca_again_other_port(t):
    vc = t.dialed()
    vc.send("CA", s_port=999, R_Slots=1, R_Bufsize=12, R_Key=0x77, R_Max_STU=10, R_UPort=t.uport)
    stray(t, "RD", d_port=999, d_key=0x77)
    t.tx("NOP", b_num=3)
    vc.expect("NOP", b_num=3)


@conversation("connections", "5.8", "5.9")
def ca_wrong_key(t):
    vc = t.listener()
    t.open()
    t.side.begin("connect", t.name())
    rc = vc.expect("RC")
    vc.adopt(rc)
    vc.send("CA", d_key=rc.I_Key ^ 1, R_Slots=64, R_Bufsize=12, R_Key=vc.key, R_Max_STU=10, R_UPort=t.uport)
    vc.answers_rd = False
    rd = vc.expect("RD", skip=("RC",))
    demand(rd.d_port == vc.port and rd.s_port == rc.s_port, f"RD of the CA's fields: {rd}")
    vc.accept(rc)
    t.side.answer()


@conversation("connections", "5.8")
def ca_wrong_mac(t):
    vc, other = t.listener(), t.new_station(1)
    t.open()
    t.side.begin("connect", t.name())
    rc = vc.expect("RC")
    vc.adopt(rc)
    vc.send("CA", src=other.mac, R_Slots=64, R_Bufsize=12, R_Key=vc.key, R_Max_STU=10, R_UPort=t.uport)
    rd = other.strays.take(PATIENCE)
    demand(rd is not None and rd.op == "RD" and rd.d_key == vc.key, f"RD expected: {rd}")
    vc.accept(rc)
    t.side.answer()
    other.gone()


@conversation("connections", "5.9")
def ca_ghost(t):
    vc = t.vc()
    vc.peer_port, vc.peer_key = 60001, 0x12345678
    vc.answers_rd = False
    vc.send("CA", R_Slots=4, R_Bufsize=12, R_Key=vc.key, R_Max_STU=10, R_UPort=1)
    rd = vc.expect("RD")
    demand(rd.s_port == 60001 and rd.I_Key == 0x12345678, f"the CA's own fields expected: {rd}")
    vc.send("CA", "Reject", s_port=0)
    vc.send("CA", R_Slots=4, R_Bufsize=12, R_Key=vc.key, R_Max_STU=10, R_UPort=1)
    vc.expect("RD")  # the refusal between got none


@conversation("connections", "5.6", "5.19")
def ca_reject(t):
    vc = t.listener()
    t.open()
    t.side.begin("connect", t.name(), OPTION.hex())
    rc = vc.expect("RC")
    demand(rc.payload == OPTION, f"5.19 the option payload: {rc.payload.hex()}")
    vc.peer_port, vc.peer_key = rc.s_port, rc.I_Key
    vc.send("CA", "Reject", s_port=0, payload=pattern(32, 4), R_UPort=t.uport)
    try:
        t.side.answer()
    except Failed as refused:
        demand("-111" in str(refused), f"{refused}")
        return
    raise Failed("st_connect succeeds")


@conversation("connections", "5.21", "5.31")
def rc_retried(t):
    vc = t.listener()
    t.open()
    t.side.begin("connect", t.name())
    rcs = [vc.expect("RC") for _ in range(5)]
    doubles(rcs, 0.0095, "5.21")
    rc = rcs[4]
    vc.accept(rc)
    t.side.answer()
    vc.send("NOP", b_num=1)
    t.rx("NOP")


@conversation("connections", "5.21", slow=3)
def rc_unanswered(t):
    vc = t.listener()
    t.open()
    begin = time.monotonic()
    demand(t.side.refused("connect", t.name()) == errno.ETIMEDOUT, "another reason than -ETIMEDOUT")
    took = time.monotonic() - begin
    demand(took > 2.2, f"5.21 given up after {took:.2f} s")
    demand(len(vc.inbox) == 8, f"5.21 {len(vc.inbox)} RC")
    heads = {frame.head for frame in vc.inbox.frames}
    demand(len(heads) == 1, "10.2 RC differ")


@conversation("connections", "5.31", slow=4)
def connect_patience(t):
    vc = t.listener()
    t.open(patience=10000)
    t.side.begin("connect", t.name())
    begin = time.monotonic()
    while time.monotonic() - begin < 3.2:
        rc = vc.expect("RC")
    vc.accept(rc)
    t.side.answer()


@conversation("connections", "5.10", slow=5)
def rc_late(t):
    vc = t.up()
    other = t.vc()
    vc.close()
    closed = time.monotonic()
    t.side.do("close")
    other.connect(t.uport)
    vc.inbox.frames.clear()
    vc.rc(t.uport)
    other.quiet()
    demand(len(vc.inbox) == 0, f"a late RC is answered: {vc.inbox.frames}")
    while True:  # 4 s after its end it is a new one
        vc.rc(t.uport)
        frame = vc.inbox.take(0.2)
        if frame is not None:
            break
        demand(time.monotonic() - closed < 15, "no answer for ever")
    vc.adopt(frame)
    demand(frame.op == "CA" and time.monotonic() - closed > 3.8, f"{frame} after {time.monotonic() - closed:.2f} s")


@conversation("connections", "5.11")
def rd_repeated(t):
    vc = t.up()
    heads = set()
    for _ in range(3):
        vc.send("RD")
        heads.add(vc.expect("DA").head)
    demand(len(heads) == 1, "DA differ")
    vc.send("DC")


@conversation("connections", "5.12")
def rd_gone(t):
    vc = t.vc()
    vc.peer_port, vc.peer_key = 61234, 0xABCDEF01
    vc.send("RD")
    da = vc.expect("DA")
    demand(da.s_port == 61234 and da.R_Key == 0xABCDEF01, f"the RD's own fields expected: {da}")


@conversation("connections", "5.13")
def rd_wrong_key(t):
    vc = t.up()
    vc.send("RD", d_key=vc.peer_key ^ 1)
    vc.send("NOP", b_num=1)
    t.rx("NOP", b_num=1)
    vc.quiet()


@conversation("connections", "5.13")
def rd_wrong_mac(t):
    vc, other = t.up(), t.new_station(1)
    vc.send("RD", src=other.mac)
    vc.quiet()
    demand(len(other.strays) == 0, "a stranger's RD is answered")
    vc.send("NOP", b_num=1)
    t.rx("NOP", b_num=1)
    other.gone()


@conversation("connections", "5.3")
def rd_port_0(t):
    vc = t.up()
    for key in (0, vc.peer_key):
        vc.send("RD", d_port=0, d_key=key)
    vc.quiet()


@conversation("connections", "5.11")
def rd_other_names(t):
    vc = t.up()
    vc.send("RD", s_port=4444, offset=0x99)
    da = vc.expect("DA")
    demand(da.d_key == vc.key, f"DA goes to the VC's peer: {da}")
    no_stray(t)


@conversation("connections", "5.14")
def rd_connecting(t):
    vc = t.listener()
    t.open(patience=5000)
    t.side.begin("connect", t.name())
    rc = vc.expect("RC")
    vc.peer_port, vc.peer_key = rc.s_port, rc.I_Key
    vc.send("RD")
    vc.expect("DA", skip=("RC",))
    vc.send("DC")
    try:
        t.side.answer()
    except Failed:
        return
    # The library may tell of a connection that was and is gone.
    demand(t.side.refused("rx", 5000) == errno.ENOTCONN, "st_rx on a connection that has ended")


@conversation("connections", "5.15")
def rd_crossed(t):
    vc = t.up()
    vc.answers_rd = False
    t.side.begin("close")
    vc.expect("RD")
    vc.send("RD")
    vc.expect("DA", skip=("RD",))
    vc.send("DA")
    vc.expect("DC", skip=("RD", "DA"))
    vc.send("DC")
    t.side.answer()


@conversation("connections", "5.21", "5.22")
def da_lost(t):
    vc = t.up()
    vc.answers_rd = False
    t.side.begin("close")
    rds = [vc.expect("RD") for _ in range(5)]
    doubles(rds, 0.0095, "5.21")
    demand(len({rd.head for rd in rds}) == 1, "10.2 RD differ")
    vc.send("DA")
    vc.expect("DC", skip=("RD",))
    t.side.answer()


@conversation("connections", "5.22", slow=2)
def rd_unanswered(t):
    vc = t.up()
    vc.answers_rd = vc.answers_rs = False
    t.side.begin("close")
    vc.expect("RD")
    begin = last = time.monotonic()
    count = 1
    while True:
        frame = vc.take(2.5)
        if frame is None:
            break
        if frame.op == "RD":
            count, last = count + 1, time.monotonic()
    demand(last - begin > 0.4, f"5.22 the last RD came after {last - begin:.2f} s")
    demand(count >= 8, f"5.21 {count} RD")
    try:
        t.side.answer()
    except Failed:
        pass


@conversation("connections", "5.16")
def dc_lost(t):
    vc = t.up()
    vc.send("RD")
    vc.expect("DA")
    vc.expect("DA")  # again: no DC has come
    t.side.do("close")
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:  # its Port is gone at last: an RD with a wrong Key gets a DA
        vc.send("RD", d_key=vc.peer_key ^ 1)
        frame = vc.take(0.2)
        while frame is not None and frame.R_Key == vc.peer_key:
            frame = vc.take(0.2)
        if frame is not None and frame.R_Key == vc.peer_key ^ 1:
            return
    raise Failed("5.16 the VC never goes")


@conversation("connections", "5.17")
def close_drains(t):
    vc = t.up()
    vc.answers_rd = False
    for i in range(5):
        t.tx("NOP", b_num=i)
    t.side.begin("close")
    for i in range(5):
        vc.expect("NOP", b_num=i)
    vc.expect("RD")
    vc.send("NOP")  # crossed the end: dropped
    vc.send("DA")
    vc.expect("DC", skip=("RD",))
    t.side.answer()


@conversation("connections", "5.17", "7.12")
def rd_voids_grants(t):
    vc = t.up()
    cts = t.cts(vc, 100)
    vc.send("RD")
    vc.expect("DA")
    vc.block(cts, pattern(100))
    vc.send("RD")
    vc.expect("DA", skip=("DA",))
    t.untouched(0, 100)


@conversation("connections", "5.19", "5.27", "5.28")
def inspect_admits(t):
    t.listen(inspect=1)
    vc = t.vc()
    vc.rc(t.uport, payload=OPTION)
    demand(t.side.do("inspect", 10000) == OPTION.hex(), "5.19 the option payload of the RC")
    vc.rc(t.uport, payload=OPTION)  # it still waits; no second one
    t.settle()
    demand(len(vc.inbox) == 0, f"5.27 an answer before the decision: {vc.inbox.frames}")
    t.side.do("admit", pattern(32, 9).hex())
    ca = vc.expect("CA")
    demand(ca.payload == pattern(32, 9), "5.28 the option payload of the CA")
    vc.adopt(ca)
    vc.quiet()


@conversation("connections", "5.28", "5.29")
def inspect_refuses(t):
    t.listen(inspect=1)
    vc = t.vc()
    vc.rc(t.uport)
    t.side.do("inspect", 10000)
    t.side.do("reject", OPTION.hex())
    first = vc.expect("CA", flags=("Reject",))
    demand(first.payload == OPTION and first.s_port == 0, f"{first}")
    vc.rc(t.uport)
    again = vc.expect("CA", flags=("Reject",))
    demand(again.payload == OPTION and again.head == first.head, "5.29 another refusal")


@conversation("connections", "5.30", slow=6)
def inspect_undecided(t):
    t.listen(inspect=1)
    vc = t.vc()
    begin = time.monotonic()
    vc.rc(t.uport)
    t.side.do("inspect", 10000)
    no = vc.expect("CA", flags=("Reject",), timeout=15)
    demand(not no.payload and time.monotonic() - begin > 4.5, f"5.30 after {time.monotonic() - begin:.1f} s")


@conversation("connections", "5.23", slow=7)
def keep_alive_fails(t):
    vc = t.up()
    vc.answers_rs = False
    vc.expect("RS", B_num=NONE, R_id=NONE, timeout=6)
    begin = time.monotonic()
    event = t.side.do("event", 20000)
    took = time.monotonic() - begin
    demand(event == f"3 -{errno.ETIMEDOUT}", f"the program hears {event}")
    demand(2.0 < took < 15, f"5.23 failed {took:.1f} s after the first RS")
    count = sum(1 for frame in vc.inbox.frames if frame.op == "RS")
    demand(count == 4, f"5.23 {count + 1} RS")
    vc.send("RD")
    vc.expect("DA", skip=("RS",))  # in every state


@conversation("connections", "5.23", "5.24", slow=8)
def keep_alive_any_frame(t):
    vc = t.up()
    vc.answers_rs = False
    begin = time.monotonic()
    i = 0
    while time.monotonic() - begin < 7.5:
        vc.send("NOP", b_num=i)
        t.rx("NOP", b_num=i)
        vc.take(0.5)
        i += 1
    vc.answers_rs = True
    vc.quiet(skip=("RS",))


@conversation("connections", "5.23", slow=3)
def keep_alive_answered(t):
    vc = t.up()
    until = time.monotonic() + 10
    while not vc.seen_rs and time.monotonic() < until:
        vc.pause(0.2)
    demand(len(vc.seen_rs) == 1, f"5.23 {len(vc.seen_rs)} RS")
    vc.quiet()


@conversation("connections", "5.18")
def names_wrong(t):
    vc, other = t.up(), t.new_station(1)
    vc.send("NOP", d_port=vc.peer_port ^ 0x4000)
    vc.send("NOP", d_key=vc.peer_key ^ 0x80000000)
    vc.send("NOP", src=other.mac)
    vc.send("NOP", s_port=vc.port + 1)
    vc.send("NOP", d_port=0)
    vc.send("DA", d_key=vc.peer_key ^ 1)
    vc.quiet()
    t.rx_none()
    demand(len(other.strays) == 0, "a stranger is answered")
    no_stray(t)
    other.gone()


@conversation("connections", "5.18")
def state_wrong(t):
    vc = t.up()
    vc.send("DA")
    vc.send("DC")
    vc.quiet()
    vc.send("NOP", b_num=1)
    t.rx("NOP", b_num=1)


@conversation("connections", "5.5")
def rc_key_0(t):
    """No Key is 0: such an RC makes nothing."""
    t.listen()
    vc = t.vc()
    vc.key = 0
    vc.rc(t.uport)
    t.settle()
    demand(len(vc.inbox) == 0, f"5.5 an RC with Key 0 is answered: {vc.inbox.frames}")


@conversation("connections", "5.5")
def ca_key_0(t):
    vc = t.listener()
    t.open()
    t.side.begin("connect", t.name())
    rc = vc.expect("RC")
    vc.adopt(rc)
    vc.send("CA", R_Slots=64, R_Bufsize=12, R_Key=0, R_Max_STU=10, R_UPort=t.uport)
    t.settle()
    demand(not any(f.op != "RC" for f in vc.inbox.frames), f"5.5 a CA with Key 0 is answered: {vc.inbox.frames}")
    vc.accept(rc)
    t.side.answer()


@conversation("connections", "5.33", slow=1)
def rc_turns(t):
    sides = [t.new_side() for _ in range(20)]
    arrivals = t.listener()
    for side in sides:
        side.do("open", "-", "bufs=1", "patience=8000")
        side.begin("connect", t.name())
    waiting = {}
    until = time.monotonic() + 0.4
    while time.monotonic() < until or len(waiting) < 16:
        frame = arrivals.take(PATIENCE if len(waiting) < 16 else 0.1)
        if frame is not None:
            waiting.setdefault(frame.s_port, frame)
    demand(len(waiting) <= 16, f"5.33 {len(waiting)} RC unanswered at a time")
    answered = set()
    until = time.monotonic() + 20
    while len(answered) < 20 and time.monotonic() < until:
        for port, rc in list(waiting.items()):
            if port not in answered:
                t.vc().accept(rc)
                answered.add(port)
        frame = arrivals.take(0.1)
        if frame is not None:
            waiting.setdefault(frame.s_port, frame)
    demand(len(answered) == 20, f"{len(answered)} of 20 asked")
    for side in sides:
        side.answer()


@conversation("connections", "5.26", "6.1")
def smallest_sizes(t):
    vc = t.up(sizes=dict(slots=1, bufsize=8, max_stu=8))
    t.fill(pattern(600))
    t.tx("RTS", CTS_req=1, Max_Block=16, T_len=600, RTR_id=NONE, I_id=3)
    rts = vc.expect("RTS")
    vc.grant(rts, bufx=9, offset=200)
    t.rx("CTS")
    cts = next(iter(vc.grants.values()))
    t.tx("DATA", "Send_state", R_Mx=3, R_Bufx=9, R_Offset=200, R_id=cts.r_id, length=600)
    vc.expect("DATA")
    demand(vc.memory.bytes(9 * 256 + 200, 600) == pattern(600), "8.1 bytes")
    t.rx("RSR", B_seq=1)


@conversation("connections", "5.1")
def both_connect(t):
    mine = t.up()
    listener = t.listener()
    side = t.new_side()
    side.do("open", "-")
    side.begin("connect", t.name())
    listener.accept(listener.expect("RC"))
    side.answer()
    mine.quiet()
    listener.quiet()


@conversation("connections", "5.2", "10.1")
def lossy_lives(t):
    t.listen()
    for i in range(12):
        vc = t.vc()
        vc.wire.random.seed(1000 + i)
        vc.wire.loss, vc.wire.double, vc.wire.late = 0.25, 0.2, 0.3
        vc.connect(t.uport, timeout=30)
        vc.answers_rd = True
        vc.inbox.frames.clear()
        vc.close()
        t.side.do("accept", 10000)
        t.side.do("close")
