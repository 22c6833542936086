# SPDX-License-Identifier: BSD-3-Clause
"""The end of a managed connection, in order and out of it: 9.18, 9.34, 9.35."""
import errno
import time

from connections import demand
from conversation import pattern
from layer import ENDED, option
from managed import (BROKEN, DISCONNECTED, FAILED, RECEIVED, SENT, busy, ended, event, has, managed, posts, sends, up,
                     up_called)
from wire import NONE


@managed("9.34")
def m_broken_off(t):
    for words_of, status in (((ENDED, 1), errno.ECONNRESET), ((ENDED, 2), errno.ENOBUFS), ((ENDED, 77), errno.ECONNRESET)):
        t.side = t.new_side()
        t.uport += 2000
        vc, layer = up(t)
        vc.close(payload=option(*words_of))
        event(t, FAILED, -status)
        del layer


@managed("9.34")
def m_ended_in_order(t):
    for words_of in ((), (ENDED, 0), (0x12345678, 1)):
        t.side = t.new_side()
        t.uport += 2000
        vc, _ = up(t)
        vc.close(payload=option(*words_of) if words_of else b"")
        event(t, DISCONNECTED)


@managed("9.34")
def m_breaks_off(t):
    vc, _ = up(t)
    t.side.do("mdisconnect", BROKEN)
    ended(vc, payload=option(ENDED, 1))


@managed("9.35", "9.34")
def m_no_receive(t):
    vc, layer = up(t, "wait=200000")
    message = layer.offer(pattern(100))
    begin = time.monotonic()
    layer.pump(vc.closed.is_set)
    demand(time.monotonic() - begin > 0.15, "9.35 too early")
    ended(vc, payload=option(ENDED, 2))
    event(t, FAILED, -errno.ENOBUFS)
    demand(message.status is None, "the message")


@managed("9.31", "5.17")
def m_disconnects(t):
    """An orderly end: everything posted is confirmed, the last notice is sent, then RD."""
    vc, layer = up(t)
    layer.open_ring()
    posts(t, 100)
    layer.send(b"one")
    event(t, RECEIVED, layer=layer)
    layer.serves_ring = False
    layer.receive(9000)
    sends(t, pattern(9000))
    t.side.do("mdisconnect", 0)
    layer.next_message()
    layer.pump(vc.closed.is_set)
    while len(vc.inbox):
        layer.handle(vc.take())
    demand(layer.ring_taken == 1, "9.31 the last notice")
    ended(vc, payload=b"")
    event(t, SENT)
    event(t, DISCONNECTED)


@managed("9.31")
def m_leftovers(t):
    """Ring messages that are there when RD comes can still be received."""
    vc, layer = up(t)
    layer.open_ring()
    for i in range(3):
        layer.send(pattern(10, i))
    layer.settled(layer.ring_out)
    vc.close()
    for i in range(3):
        posts(t, 100)
        event(t, RECEIVED, length=10, message=i + 1)
        has(t, 0, pattern(10, i))
    event(t, DISCONNECTED)


@managed("5.23", "10.11", slow=9)
def m_peer_dies(t):
    vc, layer = up_called(t)
    layer.pump(lambda: layer.ring_in is not None)
    vc.silent, vc.answers_rs = True, False
    vc.send = lambda *_, **__: None
    begin = time.monotonic()
    event(t, FAILED, -errno.ETIMEDOUT, timeout=30000)
    demand(2 < time.monotonic() - begin < 15, f"5.23 after {time.monotonic() - begin:.1f} s")


@managed("9.18", "9.20")
def m_end_of_nothing(t):
    """END with an unknown id is confirmed, and a later RTS with that id begins nothing."""
    vc, layer = up(t)
    posts(t, 100)
    for r_id, i_id in ((NONE, 0x8888), (0x1234, 0x8889), (1, 2)):
        vc.send("END", R_id=r_id, I_id=i_id)
        ea = layer.note("EA")
        demand((ea.I_id, ea.R_id) == (i_id, r_id), f"9.18 {ea}")
    vc.send("RTS", CTS_req=1, Max_Block=16, T_len=10, RTR_id=NONE, I_id=0x8888, payload=option(2))
    busy(t, vc, layer)
    # On a busy host an RA may come late for an RTS that has been repeated, as that of 9.30.
    begun = [f for f in layer.notes if f.op in ("CTS", "RA") and f.I_id == 0x8888]
    demand(not begun, "9.24 an RTS that its END has overtaken")


@managed("9.31", "9.29")
def m_without_ring(t):
    """A side without a ring, reads or regions: everything is offered."""
    vc, layer = up_called(t, ring=False)
    layer.receives(*[5000] * 10)
    for i in range(10):
        sends(t, pattern(10, i), at=16 * i)
    for i in range(10):
        demand(layer.next_message()[1][1] == pattern(10, i), f"message {i}")
    demand(layer.ring_in is None and not vc.closed.is_set(), "")
