# SPDX-License-Identifier: BSD-3-Clause
"""The beginning of a managed connection: 9.30."""
import errno
import time

from connections import demand
from conversation import pattern
from layer import ACCEPT, REJECT, REQUEST, Layer, hello, words
from managed import ABRUPT, CONNECTED, FAILED, REFUSED, REQUESTED, asked, busy, called, ended, event, managed, no_event, up
from wire import NONE


@managed("9.30", "9.21")
def m_accepted(t):
    vc, layer = asked(t, private=b"who is it")
    demand(bytes.fromhex(t.side.do("mprivate")) == b"who is it", "the private data")
    t.side.do("maccept", b"me".hex())
    demand(layer.parse(layer.next_message()[1][1]) == (ACCEPT, b"me"), "the accept")
    event(t, CONNECTED, layer=layer)
    t.side.do("mdisconnect", ABRUPT)
    ended(vc)


@managed("9.30")
def m_rejected(t):
    vc, layer = asked(t)
    t.side.do("mreject", b"no".hex())
    demand(layer.parse(layer.next_message()[1][1]) == (REJECT, b"no"), "the reject")
    ended(vc, payload=b"")


@managed("9.30")
def m_initiates(t):
    vc, layer = called(t, private=b"hello".hex())
    demand(layer.await_request() == (REQUEST, b"hello"), "the request")
    layer.answer(ACCEPT, b"welcome")
    event(t, CONNECTED, layer=layer)
    demand(bytes.fromhex(t.side.do("mprivate")) == b"welcome", "the private data")
    demand(vc.peer_slots >= 64, "managed-wire: Slots")


@managed("9.30")
def m_initiator_rejected(t):
    vc, layer = called(t)
    layer.await_request()
    layer.answer(REJECT, b"busy")
    event(t, REFUSED, -errno.ECONNREFUSED, layer)
    demand(bytes.fromhex(t.side.do("mprivate")) == b"busy", "the private data")
    ended(vc)


@managed("9.30")
def m_private_limits(t):
    vc, layer = asked(t, private=pattern(1024))
    t.side.do("maccept", pattern(1024, 3).hex())
    demand(layer.parse(layer.next_message()[1][1]) == (ACCEPT, pattern(1024, 3)), "1024 bytes of private data")
    event(t, CONNECTED, layer=layer)
    demand(bytes.fromhex(t.side.do("mprivate")) == pattern(1024), "1024 bytes of private data")
    demand(not vc.closed.is_set(), "an RD")


LIES = (hello(REQUEST, b"", magic=0x53544D49), hello(REQUEST, b"", version=2), hello(0), hello(4), hello(0xFFFF),
        hello(REQUEST, b"abc", length=4), hello(REQUEST, b"abc", length=2), hello(REQUEST, b"", length=NONE),
        hello(REQUEST, bytes(1025)), b"", b"STMH", words(0x53544D48, 0x10001))


@managed("9.30")
def m_request_lies(t):
    t.side.do("mopen")
    t.side.do("mlisten", f":{t.uport}")
    for lie in LIES + (hello(ACCEPT), hello(REJECT)):
        vc = t.vc()
        vc.connect(t.uport)
        layer = Layer(vc)
        layer.finish(layer.offer(lie))
        ended(vc, payload=b"")
    vc = t.vc()
    vc.connect(t.uport)
    Layer(vc).rts(Layer(vc).offer(bytes(2049)))
    ended(vc)
    no_event(t)


@managed("9.30")
def m_answer_lies(t):
    t.side.do("mopen")
    arrivals = t.listener()
    for lie in LIES[:4] + LIES[-2:] + (hello(REQUEST),):
        t.side.do("mconnect", t.name(), 20_000_000, "-")
        vc = t.vc()
        vc.accept(arrivals.expect("RC"))
        layer = Layer(vc)
        layer.await_request()
        layer.finish(layer.offer(lie))
        ended(vc)
        event(t, FAILED, -errno.EPROTO)
        arrivals.inbox.frames.clear()


@managed("9.30", "10.11", slow=4)
def m_accept_never(t):
    begin = time.monotonic()
    vc, layer = called(t, timeout=4_000_000)
    layer.await_request()
    event(t, FAILED, -errno.ETIMEDOUT, layer)
    demand(time.monotonic() - begin > 3.9, "given up too early")
    ended(vc)


@managed("9.30", "10.11", slow=11)
def m_request_never(t):
    begin = time.monotonic()
    vc, _ = asked(t, private=None)
    demand(vc.closed.wait(25), "managed-wire: no RD though no request came for 10 s")
    demand(time.monotonic() - begin > 9, "managed-wire: RD too early")


@managed("9.30", "10.2")
def m_request_repeated(t):
    """The request's RTS three times: one request."""
    vc, layer = asked(t, private=None)
    message = layer.offer(hello(REQUEST, b"x"))
    for _ in range(3):
        layer.rts(message)
    layer.finish(message)
    event(t, REQUESTED, layer=layer)
    t.side.do("maccept")
    layer.next_message()
    event(t, CONNECTED, layer=layer)
    layer.rts(message)
    busy(t, vc, layer)
    no_event(t)


@managed("9.21", "9.30")
def m_unnumbered(t):
    vc, _ = up(t)
    vc.send("RTS", CTS_req=1, Max_Block=16, T_len=10, RTR_id=NONE, I_id=0x999)
    ended(vc)
    event(t, FAILED, -errno.EPROTO)
