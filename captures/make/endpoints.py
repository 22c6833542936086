# SPDX-License-Identifier: BSD-3-Clause
"""Endpoints without connections. B has one; A and C send to it.

Whoever is the first to send to B might have been connected to it before the capture: check says
mid-trace. The second sender shows that B's Port is an endpoint.
"""
from catalogue import trace
from talk import MILLISECOND, SECOND, Station, Talk


class Letters(Talk):
    """Blocks to B's endpoint, whose STUs have 2^10 bytes and whose buffers 2^12."""

    def __init__(self):
        super().__init__()
        self.C = Station(3)

    def letter(self, length, b_num=1, **changed):
        self.block(length, **{**dict(flags=(), B_num=b_num, Sync=0), **changed})

    def of_c(self, length, **changed):
        self.A, self.C = self.C, self.A
        self.letter(length, **changed)
        self.A, self.C = self.C, self.A


def known():
    """C and A have sent to B; sizes are known."""
    t = Letters()
    t.of_c(5000, bufx=0x110, offset=100)
    t.letter(2500)
    return t


def to_endpoint(name, rule, how):
    """B drops what is wrong, and answers nothing to what is right."""
    def register(scene):
        def make():
            t = known()
            scene(t)
            return t
        make.__name__ = name
        return trace(how, ", ".join(sorted([rule, "mid-trace"])))(make)
    return register


def broken(rule, how):
    return to_endpoint("broken-" + rule, rule, how)


@trace("an endpoint without connections: a NOP, a Block, and no answer", check="mid-trace")
def endpoint():
    t = Letters()
    t.a("NOP", param=1)
    t.letter(2500)
    return t


@trace("two senders to one endpoint; one STU of a Block is sent again under its name",
       check="mid-trace")
def endpoint_of_many():
    t = Letters()
    t.letter(2500, skip=(1,))
    t.of_c(100, bufx=0x110)
    t.letter(2500, only=(1,))
    return t


@trace("a program asks by RS what came of its Block, and the program at the endpoint answers",
       check="mid-trace")
def endpoint_state():
    t = known()
    t.a("RS", Sync=0x61, B_num=1, R_id=9, I_id=7)
    t.b("RSR", R_Slots=0, B_seq=1, Sync=0x61, B_num=1, I_id=7, R_id=9)
    t.b("NOP", param=2)
    return t


@trace("a Block's name is used for another after 5 s", check="mid-trace")
def endpoint_name_again():
    t = known()
    t.wait(5 * SECOND)
    t.letter(1500, bufx=0x104)
    return t


@trace("B's endpoint goes, and another with its Port and a new Key comes", check="mid-trace")
def endpoint_anew():
    t = known()
    t.wait(SECOND)
    t.B.key = 0xB3B3B3B3
    t.letter(300, b_num=2)
    t.of_c(300, b_num=2)
    return t


@broken("block-mx", "STU 1 of a Block names another Mx than STU 0")
def _(t):
    t.letter(2500, b_num=2, only=(0,))
    t.letter(2500, b_num=2, only=(1, 2), R_Mx=4)


@broken("block-name", "a second after a Block, its name stands on another")
def _(t):
    t.wait(SECOND)
    t.letter(1500, bufx=0x104)


@broken("endpoint-operations", "an RD to an endpoint")
def _(t):
    t.a("RD")


@to_endpoint("endpoint-wrong-key", "wrong-key",
             "a NOP to an endpoint with a Key that is not its own")
def _(t):
    t.a("NOP", d_key=0x12345678)
    t.wait(20 * MILLISECOND)
    t.a("NOP")


@to_endpoint("endpoint-short-stu", "tiling",
             "an STU to an endpoint that ends before its tile does")
def _(t):
    t.a("DATA", payload=bytes(1000), R_Mx=3, R_Bufx=0x104, B_num=2, R_id=9)


@to_endpoint("endpoint-skipped-tile", "strict-tiling",
             "STU 1 of a Block to an endpoint stands where STU 2 belongs")
def _(t):
    t.letter(2500, b_num=2, only=(0,))
    t.a("DATA", "Last", STU_num=1, payload=bytes(452), R_Mx=3, R_Bufx=0x100, R_Offset=2048, B_num=2,
        R_id=9)


@to_endpoint("endpoint-beyond-buffer", "bad-offset",
             "an Offset beyond the buffers that others have shown")
def _(t):
    t.a("DATA", "Last", payload=bytes(100), R_Mx=3, R_Bufx=0x104, R_Offset=4096, B_num=2, R_id=9)
