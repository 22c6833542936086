# SPDX-License-Identifier: BSD-3-Clause
"""Shared by the conversations of the managed layer: connecting, and events of the program."""
import itertools

from connections import demand
from conversation import conversation
from layer import ACCEPT, REQUEST, Layer, hello
from station import Failed

(REQUESTED, CONNECTED, REFUSED, FAILED, DISCONNECTED, SENT, RECEIVED, READ, READ_REQUEST, SERVED, PUT, GOT,
 FETCHED) = range(1, 14)
ABRUPT, BROKEN = 1, 2
ALL = 4 | 8 | 16  # access: get, put, fetch-and-op
_contexts = itertools.count(1)


def next_context():
    return next(_contexts)


def managed(*rules, **wants):
    return conversation("managed", *rules, **wants)


class Event:
    def __init__(self, text):
        if text == "none":
            raise Failed("the program hears nothing")
        self.kind, self.status, self.context, self.length, self.message, self.tag, self.request = map(int, text.split())

    def __repr__(self):
        return f"event {self.__dict__}"


def event(t, kind, status=0, layer=None, timeout=20000, **fields):
    """The program's next event. The peer keeps running meanwhile."""
    t.side.begin("mwait", timeout)
    if layer:
        layer.pump(lambda: len(t.side.replies), timeout / 1000 + 5)
    got = Event(t.side.answer())
    demand(got.kind == kind and got.status == status, f"kind {kind}, status {status} expected: {got}")
    for name, value in fields.items():
        demand(getattr(got, name) == value, f"{name} {value} expected: {got}")
    return got


def no_event(t):
    got = t.side.do("mwait", 0)
    demand(got == "none", f"the program hears {got}")


def asked(t, private=b"", **sizes):
    """This side has asked for a connection."""
    t.side.do("mopen")
    t.side.do("mlisten", f":{t.uport}")
    vc = t.vc(**sizes)
    vc.connect(t.uport)
    layer = Layer(vc)
    layer.receive(2048)
    if private is not None:
        layer.finish(layer.offer(hello(REQUEST, private)))
        event(t, REQUESTED, layer=layer)
    return vc, layer


def up(t, *attributes, **sizes):
    """This side is the initiator."""
    vc, layer = asked(t, **sizes)
    t.side.do("maccept", "-", *attributes)
    kind, _ = layer.parse(layer.next_message()[1][1])
    demand(kind == ACCEPT, "no accept")
    event(t, CONNECTED, layer=layer)
    return vc, layer


def called(t, *attributes, private="-", timeout=20_000_000, **sizes):
    """The other side has asked; its request has not been answered."""
    t.side.do("mopen")
    vc = t.listener(**sizes)
    t.side.do("mconnect", t.name(), timeout, private, *attributes)
    vc.accept(vc.expect("RC"))
    return vc, Layer(vc)


def up_called(t, *attributes, ring=True, **sizes):
    """The other side is the initiator. Without `ring` all its messages are offered."""
    vc, layer = called(t, *attributes, **sizes)
    layer.serves_ring = ring
    layer.await_request()
    layer.answer(ACCEPT)
    event(t, CONNECTED, layer=layer)
    return vc, layer


def posts(t, length, at=0):
    """The program posts a receive."""
    context = next_context()
    t.side.do("mreceive", context, 0, at, length)
    return context


def sends(t, data, at=0, tag=0, flags=0):
    context = next_context()
    if data:
        t.side.do("mwrite", at, data.hex())
    t.side.do("msend", context, flags, at, len(data), tag)
    return context


def has(t, at, data):
    got = bytes.fromhex(t.side.do("mread", at, len(data)))
    demand(got == data, f"memory at {at}: {got[:32].hex()}, not {data[:32].hex()}")


def busy(t, vc, layer):
    """Waits until the other side has handled everything sent so far: it refuses an RMR for an unknown region
    (9.29)."""
    demand(layer.open(0xFFFFFF01) is None, "a region that is none is opened")


def ended(vc, **option_of_rd):
    demand(vc.closed.wait(20), "no RD")
    if option_of_rd:
        demand(vc.option == option_of_rd["payload"], f"9.34 the option payload of the RD: {vc.option.hex()}")
