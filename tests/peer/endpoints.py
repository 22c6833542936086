# SPDX-License-Identifier: BSD-3-Clause
"""Connectionless endpoints: section 11."""
import errno
import time

from connections import demand
from conversation import Told, conversation, pattern
from station import Failed
from wire import NONE, header

PORT, KEY = 7, 5  # of enum st_option: ST_OPT_PORT_LOCAL, ST_OPT_KEY_LOCAL


def endpoints(*rules, **wants):
    return conversation("endpoints", *rules, **wants)


def reach(t, station=None, **options):
    """A VC object that addresses the other side's endpoint."""
    vc = t.vc(station)
    if t.mx is None:
        t.open(endpoint=1, **options)
    vc.peer_port, vc.peer_key = int(t.side.do("get", PORT)), int(t.side.do("get", KEY))
    vc.peer_bufsize, vc.peer_max_stu = 12, int(t.side.do("get", 3))
    vc.max_stu = vc.peer_max_stu
    return vc


def urx(t, op=None, timeout=10000, **fields):
    text = t.side.do("urx", timeout)
    if text == "none":
        raise Failed(f"the endpoint's user is told of no {op}")
    mac, _, rest = text.partition(" ")
    told = Told(rest)
    wrong = t.vcs[0].differs(told, op or told.op, None, fields)
    demand(wrong is None, f"{told}: {wrong}")
    return int(mac), told


def no_urx(t):
    demand(t.side.do("urx", 0) == "none", "the endpoint's user is told of something")


class Place:
    op = "CTS"

    def __init__(self, t, r_id, b_num, bufx=0x100, offset=0):
        self.R_Mx, self.R_id, self.B_num, self.R_Bufx, self.R_Offset = t.mx, r_id, b_num, bufx, offset


@endpoints("11.1", "11.5", "11.6", "8.9")
def endpoint_data(t):
    vc = reach(t)
    vc.block(Place(t, 5, 1, offset=300), pattern(3000), opaque=4)
    mac, _ = urx(t, "DATA", R_Offset=300, R_id=5, B_num=1, Opaque=4)
    demand(mac == int.from_bytes(t.station.mac, "big"), "11.5 the sender's MAC")
    t.same(300, pattern(3000))


@endpoints("2.10", "2.9")
def endpoint_groups(t):
    """STP has no multicast: a frame to a group address is for nobody; one from a group address is dropped."""
    vc = reach(t)
    group = bytes([1, 0, 0x5E, 0, 0, 5])
    for wrong in (dict(dst=group), dict(dst=b"\xFF" * 6), dict(src=group)):
        vc.send("NOP", b_num=1, **wrong)
        vc.block(Place(t, 5, 1), pattern(100), **wrong)
    vc.send("NOP", b_num=2)
    urx(t, "NOP", b_num=2)
    t.untouched(0, 100)


@endpoints("11.11")
def endpoint_group_refused(t):
    """A user's request to a group address is not sent."""
    reach(t)
    words = [int.from_bytes(header("NOP")[a:b], "big") for a, b in ((0, 2), (2, 4), (14, 16), (16, 20), (20, 24),
                                                                   (24, 28), (28, 32), (32, 36), (36, 40))]
    for group in (0x01005E000005, 0xFFFFFFFFFFFF, 0):
        demand(t.side.refused("utx", group, 9, 9, *words, 0, 0x100, 0) == errno.EINVAL, f"11.11 {group:#x}")


@endpoints("11.2")
def endpoint_wrong_names(t):
    vc = reach(t)
    vc.send("NOP", d_key=vc.peer_key ^ 1)
    vc.send("NOP", d_port=vc.peer_port ^ 0x2000)
    vc.block(Place(t, 5, 1), pattern(3000), d_key=vc.peer_key ^ 1)
    t.settle()
    no_urx(t)
    t.untouched(0, 3000)


@endpoints("11.3", "11.7")
def endpoint_senders_apart(t):
    one, station = reach(t), t.new_station(1)
    two = reach(t, station)
    one.block(Place(t, 5, 1, 0x100), pattern(3000, 1), order=(0, 2))
    two.block(Place(t, 5, 1, 0x110), pattern(3000, 2), order=(1, 2))
    two.block(Place(t, 5, 1, 0x110), pattern(3000, 2), order=(0,))
    urx(t, "DATA", R_Bufx=0x110)
    one.block(Place(t, 5, 1, 0x100), pattern(3000, 1), order=(1,))
    urx(t, "DATA", R_Bufx=0x100)
    t.same(0, pattern(3000, 1))
    t.same(16 * 4096, pattern(3000, 2))
    station.gone()


@endpoints("11.7", "8.10")
def endpoint_duplicate(t):
    vc = reach(t)
    vc.block(Place(t, 5, 1), pattern(3000))
    urx(t, "DATA")
    vc.block(Place(t, 5, 1), bytes(3000))
    t.settle()
    no_urx(t)
    t.same(0, pattern(3000))


@endpoints("11.7", slow=5)
def endpoint_stale(t):
    """4 s after a Block is complete, its name stands for a new Block."""
    vc = reach(t)
    vc.block(Place(t, 5, 1), pattern(3000))
    urx(t, "DATA")
    time.sleep(4.3)
    vc.block(Place(t, 5, 1), pattern(3000, 7))
    urx(t, "DATA")
    t.same(0, pattern(3000, 7))


@endpoints("11.4")
def endpoint_full(t):
    vc = reach(t, slots=3)
    for i in range(5):
        vc.send("NOP", b_num=i)
    vc.send("RS", Sync=1, B_num=NONE, R_id=NONE)
    t.settle()
    for i in range(3):
        urx(t, "NOP", b_num=i)
    no_urx(t)


@endpoints("11.9")
def endpoint_answers_nothing(t):
    vc = reach(t)
    vc.send("RS", Sync=9, B_num=NONE, R_id=NONE)
    vc.send("GET", Length=8, I_Mx=1, R_Bufx=0x100, R_id=1, G_num=1)
    vc.send("NOP", "Send_state", sync=4)
    vc.block(Place(t, 5, 1), pattern(100), "Send_state")
    t.settle()
    for op in ("RS", "GET", "NOP", "DATA"):
        urx(t, op)
    demand(len(vc.inbox) == 0, f"11.9 an answer: {vc.inbox.frames}")


@endpoints("11.10")
def rd_endpoint(t):
    vc = reach(t)
    for op in ("RD", "DA", "DC"):
        vc.send(op)
        vc.send(op, d_key=vc.peer_key ^ 1)
    vc.send("NOP")
    t.settle()
    urx(t, "NOP")
    no_urx(t)
    demand(len(vc.inbox) == 0, f"11.10 an answer: {vc.inbox.frames}")


@endpoints("11.6", "7.6")
def endpoint_checks(t):
    vc = reach(t)
    good = dict(R_Mx=t.mx, R_Bufx=0x100, R_id=1, B_num=1)
    for wrong in (dict(R_Mx=t.mx + 1), dict(R_Bufx=0x99), dict(R_Bufx=0x140), dict(R_Offset=4096),
                  dict(R_Offset=4000)):
        vc.send("DATA", "Last", payload=pattern(200), **{**good, **wrong})
    t.settle()
    t.untouched(0, 64 * 4096)
    no_urx(t)


@endpoints("11.11", "11.8")
def endpoint_sends(t):
    vc = reach(t)
    vc.peer_port = 0
    head = header("NOP", (), b_num=77)
    words = [int.from_bytes(head[a:b], "big") for a, b in ((0, 2), (2, 4), (14, 16), (16, 20), (20, 24), (24, 28),
                                                           (28, 32), (32, 36), (36, 40))]
    mac = int.from_bytes(t.station.mac, "big")
    t.side.do("utx", mac, vc.port, vc.key, *words, 0, 0, 0)
    vc.expect("NOP", b_num=77)
    demand(t.side.refused("utx", mac, 0, vc.key, *words, 0, 0, 0) == 22, "11.11 Port 0")
