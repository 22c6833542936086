# SPDX-License-Identifier: BSD-3-Clause
"""Messages of a managed connection, offered and in the ring: 9.21 to 9.26, 9.31 to 9.33."""
import errno
import random
import time

from connections import demand
from conversation import pattern
from layer import ACCEPT, ENDED, NOTICE, SLOT, SLOTS, Request, longest, number_of, option, words
from managed import (CONNECTED, FAILED, RECEIVED, SENT, Event, busy, called, ended, event, has, managed, no_event,
                     posts, sends, up, up_called)
from vc import Grant
from wire import NONE


@managed("9.2", "9.21", "9.26")
def m_offers_come(t):
    _, layer = up(t)
    for i, length in enumerate((0, 1, 5, 255, 256, 4080, 4081, 20000, 70000)):
        context = posts(t, 100000)
        message = layer.offer(pattern(length, i), tag=0xABC0 + i)
        demand(layer.finish(message) == "done", f"a message of {length}")
        event(t, RECEIVED, layer=layer, length=length, message=i + 1, tag=0xABC0 + i, context=context)
        has(t, 0, pattern(length, i))


@managed("9.2", "9.3", "9.25", "9.26", "9.42")
def m_offers_leave(t):
    vc, layer = up_called(t, ring=False)
    for i, length in enumerate((0, 1, 5, 255, 4080, 4081, 20000, 70000)):
        layer.receive(length)
        context = sends(t, pattern(length, i), tag=i + 7)
        number, (tag, data) = layer.next_message()
        demand((number, tag) == (i + 2, i + 7) and data == pattern(length, i), f"message {number} of {len(data)}")
        event(t, SENT, layer=layer, context=context, message=i + 1)
    demand(not vc.closed.is_set(), "an RD")


@managed("9.31", "9.27")
def m_ring_comes(t):
    _, layer = up(t)
    layer.open_ring()
    for i in range(40):
        posts(t, 5000)
        layer.pump(lambda: layer.ring_sent - layer.ring_taken < SLOTS)  # notices come in time
        message = layer.send(pattern(102 * i, i), tag=i)
        event(t, RECEIVED, layer=layer, length=102 * i, tag=i, message=i + 1)
        has(t, 0, pattern(102 * i, i))
    layer.settled(layer.ring_out)
    demand(message.slot is None and layer.ring_sent == 40, "9.31 the ring was not used")


@managed("9.31")
def m_ring_leaves(t):
    _, layer = up_called(t)
    layer.pump(lambda: layer.ring_in is not None)
    for i in range(40):
        layer.receive(5000)
        sends(t, pattern(100 * i, i), tag=i)
        number, (tag, data) = layer.next_message()
        demand((number, tag) == (i + 2, i) and data == pattern(100 * i, i), f"message {number} of {len(data)}")
        event(t, SENT, layer=layer, message=i + 1)
    demand(layer.ring_in.b_seq > 30, f"9.31 {layer.ring_in.b_seq} in the ring")


@managed("9.31")
def m_ring_full(t):
    vc, layer = up_called(t)
    layer.pump(lambda: layer.ring_in is not None)
    busy(t, vc, layer)
    for i in range(20):
        sends(t, pattern(10, i), at=16 * i)
    layer.pump(lambda: len(layer.slots_in) == 16 and len(layer.offers) == 4)
    layer.receives(*[100] * 20)
    for i in range(20):
        number, (_, data) = layer.next_message()
        demand((number, data) == (i + 2, pattern(10, i)), f"message {number}")
    vc.send("NOP", sync=NOTICE, b_num=layer.told)
    busy(t, vc, layer)
    layer.receive(100)
    sends(t, b"again")
    layer.next_message()
    demand(layer.ring_in.b_seq == 17, "9.31 the ring is not used again")


@managed("9.31")
def m_ring_notice(t):
    """The program takes 8: a notice says so."""
    _, layer = up(t)
    layer.open_ring()
    for i in range(8):
        posts(t, 100)
        layer.send(pattern(10, i))
        event(t, RECEIVED, layer=layer)
    layer.pump(lambda: layer.ring_taken == 8)


@managed("9.31")
def m_ring_notice_lies(t):
    """Impossible counts do not permit more than 16 messages."""
    vc, layer = up_called(t)
    layer.pump(lambda: layer.ring_in is not None)
    for count in (17, 100, 0x80000000, NONE):
        vc.send("NOP", sync=NOTICE, b_num=count)
    busy(t, vc, layer)
    for i in range(18):
        sends(t, pattern(10, i), at=16 * i)
    layer.pump(lambda: len(layer.offers) == 2)
    demand(len(layer.slots_in) == 16, "9.31 a slot that is not free")


@managed("9.31")
def m_ring_ended(t):
    """The peer ends its ring: later messages are offered."""
    vc, layer = up_called(t)
    layer.pump(lambda: layer.ring_in is not None)
    busy(t, vc, layer)
    layer.receive(100)
    sends(t, b"first")
    layer.next_message()
    event(t, SENT, layer=layer, message=1)
    demand(layer.ring_in.b_seq == 1, "9.31 the ring is not used")
    vc.send("END", R_id=layer.ring_in.i_id, I_id=layer.ring_in.r_id)
    layer.note("EA")
    layer.receive(100)
    sends(t, b"second")
    demand(layer.next_message() == (3, (0, b"second")), "9.31 the message is not offered")
    event(t, SENT, layer=layer, message=2)


@managed("9.31", "9.41")
def m_ring_silent(t):
    """A Silent Put in the ring tells nobody of a message."""
    vc, layer = up(t)
    ring = layer.open_ring()
    posts(t, 5000)
    layer.put(ring, 0, words(2, 1, 0, 0) + b"x", "Silent")
    layer.settled(ring)
    busy(t, vc, layer)
    no_event(t)
    layer.put_message(b"true", 77)
    event(t, RECEIVED, layer=layer, tag=77, length=4)
    has(t, 0, b"true")


def ring_lie(name, *puts, messages=0):
    """Puts that contradict each other or themselves: the connection ends, after so many messages."""
    def lies(t):
        vc, layer = up(t)
        ring = layer.open_ring()
        for _ in range(3):
            posts(t, 40000)
        for at, data in puts:
            layer.put(ring, at, data, "Interrupt")
        for i in range(messages):
            event(t, RECEIVED, layer=layer, message=i + 1)
        layer.pump(vc.closed.is_set)
        ended(vc, payload=option(ENDED, 1))
        for _ in range(3 - messages):
            event(t, RECEIVED, -errno.EPROTO)
        event(t, FAILED, -errno.EPROTO)
    lies.__name__ = "m_ring_lies_" + name
    managed("9.41")(lies)


def lie(number, length, data=b""):
    """A message as it stands in its slots."""
    return words(number, length, 0, 0) + data


ring_lie("longer_than_its_block", (0, lie(2, 5, b"four")))
ring_lie("shorter_than_its_words", (0, words(2, 0, 0)))
ring_lie("more_slots_than_it_says", (0, lie(2, 10, bytes(5000))))
ring_lie("too_many_slots", (0, lie(2, longest(8) + 1, bytes(longest(8) + 1))))
ring_lie("beyond_the_end", (15 * SLOT, lie(3, 4000, bytes(4000))), (14 * SLOT + 100, lie(2, 1, b"x")))
ring_lie("no_slot_begins_there", (100, lie(2, 1, b"x")))
ring_lie("no_room_for_words", (15 * SLOT + 4092, b"abcd"))
ring_lie("one_over_another", (3 * SLOT, lie(9, 1, b"9")), (3 * SLOT, lie(8, 1, b"8")))
ring_lie("over_the_second_slot", (0, lie(3, 5000, bytes(5000))), (SLOT, lie(4, 1, b"x")))
ring_lie("over_all_of_another", (2 * SLOT, lie(9, 1, b"9")), (0, lie(3, 20000, bytes(20000))))
ring_lie("number_twice", (3 * SLOT, lie(9, 1, b"9")), (4 * SLOT, lie(9, 1, b"9")))
ring_lie("out_of_turn", (7 * SLOT, lie(2, 4, b"true")))
ring_lie("against_the_order", (0, lie(3, 1, b"3")), (SLOT, lie(2, 1, b"2")))
ring_lie("slots_left_out_without_need", (0, lie(2, 1, b"2")), (2 * SLOT, lie(3, 1, b"3")), messages=1)
# Without credit: 16 slots hold messages that wait for message 2; whatever comes stands over one.
ring_lie("more_than_the_credit", (0, lie(3, longest(8), bytes(longest(8)))),
         (8 * SLOT, lie(4, longest(8), bytes(longest(8)))), (0, lie(5, 1, b"x")))


@managed("9.41", "9.31")
def m_span_comes(t):
    """Messages of 1 to 8 slots, in the ring: those that do not fit before its end begin at its start."""
    _, layer = up(t)
    layer.open_ring()
    demand(layer.span_out == 8, f"9.41 {layer.span_out} slots")
    lengths = [0, 4080, 4081, 16384, longest(8), longest(8), 8176, 8177, 20000, 1, 12272, longest(7), 4081, 30000]
    for i, length in enumerate(lengths):
        posts(t, 40000)
        layer.send(pattern(length, i), tag=i)  # offers it where the slots left are too few
        event(t, RECEIVED, layer=layer, length=length, tag=i, message=i + 1)
        has(t, 0, pattern(length, i))
    layer.settled(layer.ring_out)
    demand(layer.ring_out.next >= 10, f"9.41 {layer.ring_out.next} in the ring")


@managed("9.41", "9.31")
def m_span_leaves(t):
    _, layer = up_called(t)
    layer.pump(lambda: layer.ring_in is not None)
    lengths = [0, 4081, 16384, longest(8), longest(8), 4080, 8177, 20000, 1, 12272, longest(7), 4081, 30000]
    for i, length in enumerate(lengths):
        layer.receive(length)
        sends(t, pattern(length, i), tag=i)
        number, (tag, data) = layer.next_message()
        demand((number, tag) == (i + 2, i) and data == pattern(length, i), f"message {number} of {len(data)}")
        event(t, SENT, layer=layer, message=i + 1)
        layer.notice()
    demand(layer.ring_in.b_seq >= len(lengths) - 1, f"9.41 {layer.ring_in.b_seq} in the ring")
    layer.receive(longest(8) + 1)
    sends(t, pattern(longest(8) + 1))
    layer.pump(lambda: layer.receiving)
    demand(len(layer.next_message()[1][1]) == longest(8) + 1, "9.41 a longer message is offered")


def span(count):
    """The peer takes messages of that many slots; 0: it knows nothing of longer ones."""
    def keeps(t):
        vc, layer = called(t)
        layer.span = count
        layer.await_request()
        layer.answer(ACCEPT)
        event(t, CONNECTED, layer=layer)
        layer.pump(lambda: layer.ring_in is not None)
        busy(t, vc, layer)
        most = longest(min(max(count, 1), 8))
        for i, length in enumerate((most, most + 1)):
            layer.receive(length)
            sends(t, pattern(length, i))
            if length > most:
                layer.pump(lambda: layer.receiving)
            demand(layer.next_message()[1][1] == pattern(length, i), f"9.41 a message of {length}")
            event(t, SENT, layer=layer)
        demand(layer.ring_in.b_seq == 1, f"9.41 {layer.ring_in.b_seq} in the ring")
    keeps.__name__ = f"m_span_of_{count}"
    managed("9.41")(keeps)


for most_slots in (0, 1, 3, 16, 0xFFFFFFFF):
    span(most_slots)


@managed("9.21", "10.1")
def m_order(t):
    """Message 3 is offered before 2."""
    vc, layer = up(t)
    posts(t, 1000, 0)
    posts(t, 1000, 1000)
    two, three = layer.offer(pattern(500, 2)), layer.offer(pattern(600, 3))
    two.request = None
    layer.pump(lambda: three.request is None or three.request.interval == 1.0)  # RA
    busy(t, vc, layer)
    demand(three.r_id is None, "9.21 message 3 before 2")
    layer.rts(two)
    layer.finish(two)
    layer.rts(three)
    layer.finish(three)
    event(t, RECEIVED, layer=layer, length=500, message=1)
    event(t, RECEIVED, layer=layer, length=600, message=2)
    has(t, 0, pattern(500, 2))


@managed("9.21", "9.31")
def m_order_of_ways(t):
    """An offer and ring messages share one order."""
    _, layer = up(t)
    layer.open_ring()
    long = layer.offer(pattern(9000))
    long.request = None  # its RTS comes last
    for i in range(3):
        layer.put_message(pattern(10, i))
    for i in range(4):
        posts(t, 10000, 10000 * i)
    layer.settled(layer.ring_out)
    no_event(t)
    layer.rts(long)
    layer.finish(long)
    for length in (9000, 10, 10, 10):
        event(t, RECEIVED, layer=layer, length=length)


@managed("9.24")
def m_waits(t):
    _, layer = up(t)
    message = layer.offer(pattern(500))
    for _ in range(3):
        layer.rts(message)
    layer.pump(lambda: message.request.interval == 1.0)
    demand(message.r_id is None, "9.24 a CTS though there is no receive")
    posts(t, 1000)
    demand(layer.finish(message) == "done", "the message")
    layer.rts(message)  # of one that is over: begins nothing
    event(t, RECEIVED, layer=layer, length=500)
    no_event(t)


@managed("9.24", "10.11", slow=3)
def m_waits_long(t):
    """RA without CTS: the RTS is repeated each second until CTS comes."""
    vc, layer = up_called(t, ring=False)
    sends(t, pattern(9000))
    layer.pump(lambda: layer.offers)
    rts = next(iter(layer.offers.values()))
    demand(number_of(rts) == 2 and rts.CTS_req == 4, f"{rts}")
    seen = len([1 for _, way, frame in vc.station.log if way == "<" and frame.op == "RTS"])
    begin = time.monotonic()
    layer.pump(lambda: len([1 for _, way, f in vc.station.log if way == "<" and f.op == "RTS"]) >= seen + 2)
    demand(time.monotonic() - begin > 0.9, "the RTS again within a second")
    layer.receive(9000)
    layer.next_message()
    event(t, SENT, layer=layer)


@managed("9.17", "9.23")
def m_too_long_comes(t):
    vc, layer = up(t)
    posts(t, 100)
    for i in range(2):
        message = layer.offer(pattern(101))
        demand(layer.finish(message) == "refused", "9.23 a message longer than its receive")
        event(t, RECEIVED, -errno.EMSGSIZE, layer) if i == 0 else None
        layer.sending[message.i_id] = message
        message.status = None
        layer.rts(message)
        demand(layer.finish(message) == "refused", "9.24 the refusal again")
        if i == 0:
            posts(t, 100)
        else:
            event(t, RECEIVED, -errno.EMSGSIZE, layer)
    posts(t, 100)
    demand(layer.finish(layer.offer(pattern(100))) == "done", "the next message")
    event(t, RECEIVED, layer=layer, length=100)
    demand(not vc.closed.is_set(), "an RD")


@managed("9.17", "9.23")
def m_too_long_leaves(t):
    _, layer = up_called(t, ring=False)
    layer.receive(100)
    sends(t, pattern(101))
    event(t, SENT, -errno.EMSGSIZE, layer)
    sends(t, pattern(100))
    demand(layer.next_message()[0] == 3, "9.21 the refused message has used its number")
    event(t, SENT, layer=layer)


@managed("9.21")
def m_far_ahead(t):
    vc, layer = up(t)
    layer.next_number = 2 + 4096
    demand(layer.finish(layer.offer(pattern(10))) == "refused", "9.21 4096 ahead")
    layer.next_number = 1  # had its turn
    layer.rts(layer.offer(pattern(10)))
    busy(t, vc, layer)
    layer.sending.clear()
    layer.next_number = 2
    posts(t, 10)
    demand(layer.finish(layer.offer(pattern(10))) == "done", "message 2")


@managed("9.22", "9.20", "9.18")
def m_withdrawn(t):
    """2 is taken back before its RTS arrives, 3 after RA; 4 comes."""
    _, layer = up(t)
    two, three, four = (layer.offer(pattern(100, i)) for i in (2, 3, 4))
    two.request = None
    layer.pump(lambda: three.request.interval == 1.0 and four.request.interval == 1.0)
    layer.withdraw(two)
    layer.rts(two)
    layer.withdraw(three)
    posts(t, 100)
    demand(layer.finish(four) == "done", "9.22 the message behind those that were taken back")
    event(t, RECEIVED, layer=layer, length=100, message=3)
    has(t, 0, pattern(100, 4))


@managed("9.22", "9.18")
def m_withdraws(t):
    _, layer = up_called(t, ring=False)
    context = sends(t, pattern(9000))
    layer.pump(lambda: layer.offers)
    t.side.do("mcancel", context)
    end = layer.note("END")
    demand(number_of(end) == 2, f"9.22 the END's number: {end}")
    event(t, SENT, -errno.ECANCELED, layer, context=context)
    sends(t, pattern(50))
    layer.receive(100)
    demand(layer.next_message()[0] == 3, "the next message")


@managed("9.2", "10.11", slow=6)
def m_answer_late(t):
    """Neither RA nor CTS for 5 s: the same RTS is repeated; the CTS is accepted after that."""
    vc, layer = up_called(t, ring=False)
    layer.on_rts = lambda frame: layer.notes.append(frame)
    sends(t, pattern(9000))
    rts = layer.note("RTS")
    begin = time.monotonic()
    layer.pump(lambda: time.monotonic() - begin > 5)
    heads = [frame.head for frame in layer.notes]
    demand(set(heads) == {rts.head} and 4 <= len(heads) <= 16, f"5.21 {len(heads)} RTS, {len(set(heads))} different")
    layer.begin(rts, 0x777)
    event(t, SENT, layer=layer)
    demand(vc.memory.bytes(vc.grants[0x777].start, 9000) == pattern(9000), "the bytes")


@managed("10.11", "9.22", long=31)
def m_offer_unanswered(t):
    """Neither RA nor CTS: the RTS is repeated, then END with the number is sent."""
    vc, layer = up_called(t, ring=False)
    layer.on_rts = lambda frame: layer.notes.append(frame)
    sends(t, pattern(9000))
    begin = time.monotonic()
    end = layer.note("END", 60)
    took = time.monotonic() - begin
    demand(29 < took < 45 and number_of(end) == 2, f"10.11 END after {took:.1f} s: {end}")
    event(t, SENT, -errno.ETIMEDOUT, layer)
    demand(sum(f.op == "RTS" for f in layer.notes) < 45, "10.16 too many RTS")
    demand(not vc.closed.is_set(), "an RD")


@managed("9.4", "9.5", "9.2", "9.24")
def m_cts_lies(t):
    vc, layer = up_called(t, ring=False)
    layer.on_rts = lambda frame: False
    sends(t, pattern(9000))
    rts = layer.note("RTS")
    good = dict(Blocksize=13, R_Mx=3, R_Bufx=0x900, I_id=rts.I_id, R_id=0x77)
    for wrong in (dict(B_num=2), dict(B_num=NONE), dict(I_id=0x9999), dict(Blocksize=31)):
        vc.send("CTS", **{**good, **wrong})
    busy(t, vc, layer)
    demand(not any(f.op == "DATA" for f in layer.notes), "DATA for a CTS that cannot be")
    vc.grants[0x77] = Grant(vc, 0x77, rts.I_id, 3, 0x900 << 12, 9000)
    vc.send("CTS", **good)
    layer.note("DATA")
    for wrong in (dict(R_id=0x78, B_num=1), dict(Blocksize=12, B_num=1), dict(B_num=1, R_Bufx=0x902, F_Offset=5000)):
        vc.send("CTS", **{**good, **wrong})
    busy(t, vc, layer)
    demand(not any(f.op == "DATA" for f in layer.notes), "DATA for a CTS that cannot be")
    vc.send("CTS", **{**good, "B_num": 1, "R_Bufx": 0x902})
    layer.note("DATA")
    event(t, SENT, layer=layer)
    demand(vc.memory.bytes(0x900 << 12, 9000) == pattern(9000), "the bytes")


@managed("6.13", "9.6", "9.18")
def m_rsr_lies(t):
    vc, layer = up_called(t, ring=False)
    layer.on_rts = lambda frame: False
    sends(t, pattern(9000))
    rts = layer.note("RTS")
    vc.keeps_state = vc.tells_transfers = False
    for reject in ((), ("Reject",)):
        vc.send("RSR", *reject, R_Slots=60, B_seq=2, Sync=1, B_num=0, I_id=rts.I_id, R_id=0x77)  # before any CTS
    vc.send("CTS", Blocksize=13, R_Mx=3, R_Bufx=0x900, I_id=rts.I_id, R_id=0x77)
    layer.note("DATA")
    vc.send("RSR", R_Slots=60, B_seq=2, Sync=1, B_num=0, I_id=rts.I_id, R_id=0x78)
    vc.send("RSR", R_Slots=60, B_seq=2, Sync=1, B_num=0, I_id=rts.I_id + 1, R_id=0x77)
    vc.send("RSR", R_Slots=60, B_seq=1, Sync=1, B_num=NONE, I_id=rts.I_id, R_id=0x77)
    busy(t, vc, layer)
    no_event(t)
    vc.send("RSR", "Reject", R_Slots=60, Sync=1, B_num=NONE, I_id=rts.I_id, R_id=0x77)
    event(t, SENT, -errno.ECANCELED, layer)


@managed("9.32")
def m_write_window(t):
    vc, layer = up_called(t, ring=False, slots=512)
    for i in range(70):
        sends(t, pattern(20, i), at=32 * i)
    layer.pump(lambda: len(layer.offers) >= 64)
    busy(t, vc, layer)
    demand(len(layer.offers) == 64, f"9.32 {len(layer.offers)} Writes")
    layer.receives(*[100] * 70)
    for i in range(70):
        demand(layer.next_message()[1][1] == pattern(20, i), f"message {i}")
    for _ in range(70):
        event(t, SENT, layer=layer)


@managed("9.25", "9.3", "9.4")
def m_rts_extremes(t):
    """CTS_req and Max_Block at their limits."""
    vc, layer = up(t)
    for cts_req, max_block in ((0, 8), (1, 8), (65535, 31), (4, 12)):
        posts(t, 5000)
        message = layer.offer(pattern(5000, cts_req & 255))
        message.request = Request(lambda m=message, c=cts_req, b=max_block: layer.rts(m, CTS_req=c, Max_Block=b))
        first = len(vc.station.log)
        demand(layer.finish(message) == "done", f"CTS_req {cts_req}, Max_Block {max_block}")
        event(t, RECEIVED, layer=layer, length=5000)
        has(t, 0, pattern(5000, cts_req & 255))
        demand(message.blocksize <= max_block, f"9.4 Blocksize {message.blocksize}")
        del first


@managed("9.33", "9.21")
def m_on_arrival(t):
    """With STM_ON_ARRIVAL, message 3 takes a receive of the pool before 2 arrives, and is delivered after 2."""
    _, layer = up(t, "pool=8", "arrival=1")
    two, three = layer.offer(pattern(500, 2)), layer.offer(pattern(600, 3))
    two.request = None
    layer.finish(three)
    no_event(t)
    layer.rts(two)
    layer.finish(two)
    event(t, RECEIVED, layer=layer, length=500, message=1)
    event(t, RECEIVED, layer=layer, length=600, message=2)


@managed("10.1", "9.21", "9.31")
def m_lossy_comes(t):
    """With loss, duplicates and delays, 60 messages of all lengths arrive in order, by ring and by offer."""
    vc, layer = up(t, "pool=28")
    layer.open_ring()
    dice = random.Random(921)
    vc.wire.random.seed(921)
    vc.wire.loss, vc.wire.double, vc.wire.late = 0.1, 0.1, 0.2
    lengths = [dice.choice((0, 10, 300, 3000, 4081, 8000)) for _ in range(24)]
    for i, length in enumerate(lengths):
        layer.send(pattern(length, i), tag=i, wait=False)
    for i, length in enumerate(lengths):
        got = event(t, RECEIVED, layer=layer, timeout=60000, message=i + 1, tag=i, length=length)
        has(t, 8192 * (got.context - 100), pattern(length, i))
    vc.wire.loss = 0


@managed("10.1", "9.21", "9.31")
def m_lossy_leaves(t):
    vc, layer = up_called(t)
    layer.pump(lambda: layer.ring_in is not None)
    dice = random.Random(931)
    vc.wire.random.seed(931)
    vc.wire.loss, vc.wire.double, vc.wire.late = 0.1, 0.1, 0.2
    lengths = [dice.choice((0, 10, 300, 3000, 4081, 8000)) for _ in range(30)]
    layer.receives(*[8000] * 30)
    for i, length in enumerate(lengths):
        sends(t, pattern(length, i), tag=i, at=8192 * i)
    for i, length in enumerate(lengths):
        number, (tag, data) = layer.next_message(60)
        demand((number, tag, len(data)) == (i + 2, i, length) and data == pattern(length, i), f"message {number}")
    for _ in lengths:
        event(t, SENT, layer=layer, timeout=60000)
    vc.wire.loss = 0


@managed("10.13", "10.3", slow=2)
def m_pause(t):
    """The sender pauses for a second in the middle of a Block: nothing is lost."""
    _, layer = up(t)
    posts(t, 20000)
    message = layer.offer(pattern(20000))
    layer.pump(lambda: message.r_id is None and any(n for n in ()) or message.blocksize is not None)
    time.sleep(1.2)
    demand(layer.finish(message) == "done", "the message")
    event(t, RECEIVED, layer=layer, length=20000)
    has(t, 0, pattern(20000))


@managed("9.21", "9.31", "10.1", slow=2)
def m_both_ways_lossy(t):
    """Messages in both directions at once, while a tenth of all frames is lost."""
    vc, layer = up(t, "pool=28")
    layer.open_ring()
    vc.wire.random.seed(42)
    vc.wire.loss, vc.wire.double, vc.wire.late = 0.1, 0.05, 0.1
    layer.receives(*[5000] * 24)
    for i in range(24):
        layer.send(pattern(150 * i, i), tag=i, wait=False)
        sends(t, pattern(50 * i, i), tag=i, at=28 * 8192 + 1200 * i)
    kinds = []
    for _ in range(48):
        t.side.begin("mwait", 60000)
        layer.pump(lambda: len(t.side.replies), 65)
        got = Event(t.side.answer())
        demand(got.status == 0, f"{got}")
        if got.kind == RECEIVED:
            demand((got.tag, got.length) == (kinds.count(RECEIVED), 150 * got.tag), f"9.21 {got}")
        kinds.append(got.kind)
    demand(kinds.count(SENT) == 24, "every message is confirmed")
    for i in range(24):
        number, (tag, data) = layer.next_message(60)
        demand((number, tag) == (i + 2, i) and data == pattern(50 * i, i), f"message {number}")
    vc.wire.loss = 0
