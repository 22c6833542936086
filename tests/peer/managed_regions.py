# SPDX-License-Identifier: BSD-3-Clause
"""Reads, regions, Puts, Gets and FetchOps of a managed connection: 9.27 to 9.29."""
import errno
import struct
import sys
import time

from connections import demand
from conversation import pattern
from layer import number_of, option
from managed import (ALL, FETCHED, GOT, PUT, READ, READ_REQUEST, SERVED, busy, event, has, managed, next_context,
                     no_event, up)
from regions import get, got
from vc import PATIENCE, Grant
from wire import NONE


@managed("9.9", "9.17", "9.24")
def m_read_comes(t):
    vc, layer = up(t)
    t.side.do("mwrite", 0, pattern(3000).hex())
    for i_id, length in ((0x901, 3000), (0x902, 500)):
        for _ in range(2):
            vc.send("RTR", T_len=length, I_id=i_id)
        asked_for = event(t, READ_REQUEST, layer=layer, length=length)
        layer.pump(lambda: any(n.op == "RA" and n.I_id == i_id for n in layer.notes))
        if length == 500:
            t.side.do("mrefuse", asked_for.request)
            layer.pump(lambda: any(n.op == "RA" and n.has("Reject") for n in layer.notes))
            layer.notes.clear()
            vc.send("RTR", T_len=length, I_id=i_id)
            demand(layer.note("RA", where=lambda f: f.I_id == i_id).has("Reject"), "9.17 the refusal again")
            break
        t.side.do("mserve", 5, 0, 0, length, asked_for.request)
        rts = layer.note("RTS")
        demand(rts.RTR_id == i_id and rts.T_len == length and not rts.payload, f"9.9 {rts}")
        layer.begin(rts, 0x777)
        layer.pump(lambda: any(isinstance(n, tuple) for n in layer.notes))
        demand(next(n for n in layer.notes if isinstance(n, tuple))[1] == pattern(3000), "the bytes")
        layer.notes = []
        event(t, SERVED, layer=layer)
    no_event(t)


@managed("9.9", "9.17", "10.2")
def m_read_leaves(t):
    vc, layer = up(t)
    t.side.do("mask", 3, 0, 0, 3000)
    rtr = layer.note("RTR")
    demand(rtr.T_len == 3000, f"{rtr}")
    wrong = dict(CTS_req=1, Max_Block=16, RTR_id=rtr.I_id)
    vc.send("RTS", T_len=2999, I_id=0x801, **wrong)
    no = layer.note("RA", where=lambda f: f.I_id == 0x801)
    demand(no.has("Reject"), f"9.9 another length: {no}")
    vc.send("RTS", T_len=3000, I_id=0x802, **wrong)
    cts = layer.note("CTS")
    layer.vc.block(cts, pattern(3000), "Send_state")
    event(t, READ, layer=layer, length=3000)
    has(t, 0, pattern(3000))
    t.side.do("mask", 4, 0, 0, 100)
    rtr = layer.note("RTR", where=lambda frame: frame.I_id != rtr.I_id)
    vc.send("RA", "Reject", I_id=rtr.I_id)
    event(t, READ, -errno.ECONNREFUSED, layer)


@managed("10.11", "9.20", long=31)
def m_read_unanswered(t):
    vc, layer = up(t)
    t.side.do("mask", 3, 0, 0, 3000)
    rtr = layer.note("RTR")
    begin = time.monotonic()
    layer.on_rtr = lambda frame: None
    end = layer.note("END", 60)
    demand(end.R_id == NONE and end.I_id == rtr.I_id, f"9.20 {end}")
    demand(29 < time.monotonic() - begin < 45, "10.11")
    event(t, READ, -errno.ETIMEDOUT, layer)
    demand(not vc.closed.is_set(), "an RD")


# --- regions of the other side ----------------------------------------------------------------------------------
def opened(t, layer, length=16384, access=ALL, address=0x7000, at=0, **how):
    key = int(t.side.do("mregion", at, length, access, address))
    remote = layer.open(key, **how)
    demand(remote is not None, "9.29 the region is not opened")
    return key, remote


@managed("9.29", "9.10", "9.27")
def m_region_comes(t):
    _, layer = up(t)
    _, remote = opened(t, layer, at=100)
    demand((remote.address, remote.access, remote.mra.T_len) == (0x7000, ALL, 16384), f"9.29 {remote.mra}")
    for i in range(20):
        layer.put(remote, 500 * i, pattern(500, i))
    layer.settled(remote)
    for i in range(20):
        has(t, 100 + 500 * i, pattern(500, i))
    no_event(t)


@managed("9.29", "10.2")
def m_region_again(t):
    vc, layer = up(t)
    key, remote = opened(t, layer)
    vc.send("RMR", B_win=9, T_len=5, I_id=remote.mra.I_id, payload=option(key))
    again = layer.note("MRA")
    demand(again.head == remote.mra.head and again.payload == remote.mra.payload, f"9.24 another MRA: {again}")


def refused(layer, i_id, why):
    """The answer to that RMR: an earlier one, repeated, may be answered twice."""
    demand(layer.note("MRA", where=lambda frame: frame.I_id == i_id).has("Reject"), why)


@managed("9.29", "9.17")
def m_region_refused(t):
    vc, layer = up(t)
    key, _ = opened(t, layer)
    demand(layer.open(key, length=16385) is None, "9.29 longer than the region")
    for name in (0, key ^ 1, 2, NONE):
        for _ in range(2):
            vc.send("RMR", B_win=9, T_len=5, I_id=0x5000 + (name & 0xFF), payload=option(name))
            refused(layer, 0x5000 + (name & 0xFF), f"9.29 the name {name:#x}")
    vc.send("RMR", B_win=9, T_len=5, I_id=0x6000)  # without a name
    refused(layer, 0x6000, "9.29 no name")


@managed("9.18", "7.12", "9.29")
def m_region_revoked(t):
    vc, layer = up(t)
    key, remote = opened(t, layer)
    layer.put(remote, 0, pattern(100))
    layer.settled(remote)
    t.side.begin("mrevoke")
    end = layer.note("END")
    t.side.answer()
    demand((end.R_id, end.I_id) == (remote.mra.I_id, remote.mra.R_id), f"9.18 {end}")
    layer.remotes[remote.mra.R_id] = remote
    layer.put_block(remote, layer.put(remote, 0, pattern(100, 9)))
    remote.request = None
    remote.blocks.clear()
    vc.send("GET", Length=8, I_Mx=1, R_Bufx=remote.mra.R_Bufx, R_id=remote.mra.R_id, G_num=1)
    demand(layer.note("GET").has("Reject"), "7.15 a Get from a region that is gone")
    has(t, 0, pattern(100))
    demand(layer.open(key) is None, "9.29 a region that is gone is opened")


@managed("9.18")
def m_region_given_back(t):
    vc, layer = up(t)
    key, remote = opened(t, layer)
    layer.put(remote, 0, pattern(100))
    layer.settled(remote)
    vc.send("END", R_id=remote.mra.R_id, I_id=remote.mra.I_id)
    layer.note("EA")
    demand(vc.ask(R_id=remote.mra.R_id, I_id=remote.mra.I_id).has("Reject"), "6.14 a region that was given back")
    demand(layer.open(key) is not None, "9.29 again by its name")


@managed("9.12", "9.14", "9.15")
def m_get_and_fetch_come(t):
    vc, layer = up(t)
    _, remote = opened(t, layer)
    t.side.do("mwrite", 0, pattern(9000).hex())
    vc.grants.clear()
    get(vc, remote.mra, 1, 9000)
    demand(got(vc, 1, 9000) == pattern(9000), "the bytes")
    t.side.do("mwrite", 16, (41).to_bytes(8, sys.byteorder).hex())
    for _ in range(3):
        get(vc, remote.mra, 2, 8, "Fetch_Increment", at=16)
        demand(int.from_bytes(got(vc, 2, 8), "big") == 41, "9.15 the old value")
    has(t, 16, (42).to_bytes(8, sys.byteorder))


@managed("9.29", "7.6", "7.15")
def m_region_access(t):
    """A region that may only be read: a Put is dropped, a FetchOp refused."""
    vc, layer = up(t)
    _, remote = opened(t, layer, access=4)
    demand(remote.access == 4, f"9.29 the terms: {remote.access}")
    layer.put(remote, 0, pattern(100))
    remote.blocks.clear()
    get(vc, remote.mra, 1, 8, "Fetch_Increment")
    demand(layer.note("GET").has("Reject"), "7.15 a FetchOp that is not permitted")
    get(vc, remote.mra, 2, 100)
    demand(got(vc, 2, 100) == bytes(100), "7.6 a Put that is not permitted")


# --- regions of this side ------------------------------------------------------------------------------------
KEY = 0x4242
FENCE = 2  # STM_FENCE


def serve(layer, *, access=28, address=0x9000, length=1 << 18, window=None, bufx=0x4000, key=KEY):
    """Answers the RMR for a key."""
    rmr = layer.note("RMR", where=lambda frame: number_of(frame) == key)
    demand(rmr.T_len == 1, f"9.29 {rmr}")
    terms = struct.pack(">QI", address, access).ljust(32, b"\0")
    return layer.vc.open_region(rmr, bufx=bufx, length=length, window=window, payload=terms)


def puts(t, at, data, address, flags=0, key=KEY):
    context = next_context()
    t.side.do("mwrite", at, data.hex())
    t.side.do("mput", context, flags, at, len(data), key, address)
    return context


@managed("9.29", "9.10", "9.27")
def m_put_leaves(t):
    vc, layer = up(t)
    context = puts(t, 0, pattern(9000), 0x9000 + 77)
    grant = serve(layer)
    event(t, PUT, layer=layer, context=context, length=9000)
    demand(vc.memory.bytes(grant.start + 77, 9000) == pattern(9000), "the bytes")
    for i in range(40):
        puts(t, 64 * i, pattern(64, i), 0x9000 + 64 * i)
    for _ in range(40):
        event(t, PUT, layer=layer, length=64)
    for i in range(40):
        demand(vc.memory.bytes(grant.start + 64 * i, 64) == pattern(64, i), f"the bytes of Put {i}")


@managed("9.11", "7.13")
def m_put_window(t):
    vc, layer = up(t)
    vc.keeps_state = False
    puts(t, 0, pattern(64), 0x9000)
    serve(layer, window=2)
    for i in range(1, 6):
        puts(t, 64 * i, pattern(64, i), 0x9000 + 64 * i)
    seen = set()
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        frame = vc.take(0.05)
        if frame is not None and frame.op == "DATA" and frame.B_num not in seen:
            seen.add(frame.B_num)
            if len(seen) == 2:  # a third one would follow at once
                until = time.monotonic() + 0.3
    demand(seen == {0, 1}, f"9.11 Blocks {seen} with B_win 2")


@managed("9.27", "10.6", "6.13")
def m_put_lost(t):
    """DATA of a Put is lost: RS asks, RSR shows the hole, the Block comes again."""
    vc, layer = up(t)
    puts(t, 0, pattern(900), 0x9000)
    vc.wire.drop("in", lambda frame: frame.op == "DATA" and frame.B_num == 0, 1)
    grant = serve(layer)
    event(t, PUT, layer=layer)
    demand(vc.memory.bytes(grant.start, 900) == pattern(900), "the bytes")


@managed("9.36", "9.6", "10.6")
def m_put_b_seq_wins(t):
    """An RSR whose B_num says complete and whose B_seq does not: the Block is sent again."""
    vc, layer = up(t)
    vc.keeps_state = False
    puts(t, 0, pattern(64), 0x9000)
    grant = serve(layer)
    blocks = []
    layer.on_data = lambda frame: blocks.append(frame) if frame.R_id == grant.r_id else None
    vc.answers_rs = False

    def on_rs(frame):
        b_seq = 1 if len(blocks) > 2 else 0
        vc.send("RSR", R_Slots=60, B_seq=b_seq, Sync=frame.Sync, B_num=0,
                I_id=NONE if frame.R_id == NONE else grant.i_id, R_id=0 if frame.R_id == NONE else grant.r_id)
    layer.on_rs = on_rs
    event(t, PUT, layer=layer)
    demand(len({frame.Sync for frame in blocks}) == len(blocks), "10.14 a Sync twice")


@managed("10.16", "10.17", "9.18", long=31)
def m_put_never_stored(t):
    """RS is answered but the Block never arrives: the Put fails in time, and few frames are sent."""
    vc, layer = up(t)
    vc.keeps_state = False
    puts(t, 0, pattern(64), 0x9000)
    grant = serve(layer)
    frames = []
    layer.on_data = frames.append

    def on_rs(frame):
        frames.append(frame)
        vc.send("RSR", R_Slots=60, B_seq=0, Sync=frame.Sync, B_num=NONE, I_id=NONE if frame.R_id == NONE else grant.i_id,
                R_id=0 if frame.R_id == NONE else grant.r_id)
    vc.answers_rs, layer.on_rs = False, on_rs
    begin = time.monotonic()
    event(t, PUT, -errno.ETIMEDOUT, layer, timeout=60000)
    demand(29 < time.monotonic() - begin < 45, f"10.17 after {time.monotonic() - begin:.1f} s")
    demand(len(frames) < 150, f"10.16 {len(frames)} frames")
    demand(layer.note("END").R_id == grant.r_id, "9.18 the region is not ended")


@managed("10.16", "10.6", slow=3)
def m_put_paced(t):
    """The same for 3 s: RS and the Block are sent at doubling intervals."""
    vc, layer = up(t)
    vc.keeps_state = False
    puts(t, 0, pattern(64), 0x9000)
    grant = serve(layer)
    counts = {"DATA": 0, "RS": 0}
    vc.answers_rs = False

    def on_data(frame):
        counts["DATA"] += 1

    def on_rs(frame):
        counts["RS"] += 1
        vc.send("RSR", R_Slots=60, B_seq=0, Sync=frame.Sync, B_num=NONE, I_id=NONE if frame.R_id == NONE else grant.i_id,
                R_id=0 if frame.R_id == NONE else grant.r_id)
    layer.on_data, layer.on_rs = on_data, on_rs
    begin = time.monotonic()
    layer.pump(lambda: time.monotonic() - begin > 3)
    demand(2 <= counts["DATA"] < 25 and counts["RS"] < 40, f"10.16 {counts} in 3 s")


@managed("9.29", "9.17")
def m_put_refused(t):
    vc, layer = up(t)
    puts(t, 0, pattern(64), 0x9000)
    rmr = layer.note("RMR")
    vc.send("MRA", "Reject", I_id=rmr.I_id)
    event(t, PUT, -errno.EACCES, layer)


@managed("9.29", "7.13")
def m_mra_lies(t):
    """B_win 0, T_len below what was asked, an R_id that is in use: refused."""
    vc, layer = up(t)
    layer.pump(lambda: layer.ring_in is not None)
    for i, lie in enumerate((dict(B_win=0), dict(T_len=0), dict(R_id=layer.ring_in.r_id))):
        puts(t, 0, pattern(64), 0x9000, key=KEY + i)
        rmr = layer.note("RMR", where=lambda frame, key=KEY + i: number_of(frame) == key)
        vc.send("MRA", **{**dict(B_win=4, R_Mx=4, R_Bufx=9, T_len=4096, I_id=rmr.I_id, R_id=0x600,
                                 payload=struct.pack(">QI", 0x9000, 28).ljust(32, b"\0")), **lie})
        event(t, PUT, -errno.EACCES, layer)


@managed("9.29")
def m_terms_kept(t):
    """What exceeds the region's bounds or permissions is not sent."""
    vc, layer = up(t)
    puts(t, 0, pattern(64), 0x8FFF)
    serve(layer, access=4, length=100)
    event(t, PUT, -errno.EACCES, layer)
    t.side.do("mget", 1, 0, 0, 101, KEY, 0x9000)
    event(t, GOT, -errno.ERANGE, layer)
    t.side.do("mget", 1, 0, 0, 10, KEY, 0x8FFF)
    event(t, GOT, -errno.ERANGE, layer)
    demand(not any(f.op in ("DATA", "GET") for f in layer.notes), "9.29 it leaves")
    demand(not vc.closed.is_set(), "an RD")


@managed("6.14", "9.18")
def m_put_region_gone(t):
    """RSR with Reject: the region is gone."""
    vc, layer = up(t)
    vc.keeps_state = vc.tells_transfers = False
    puts(t, 0, pattern(64), 0x9000)
    grant = serve(layer)
    data = layer.note("DATA")
    vc.send("RSR", "Reject", R_Slots=60, Sync=data.Sync, B_num=NONE, I_id=grant.i_id, R_id=grant.r_id)
    event(t, PUT, -errno.EACCES, layer)
    end = layer.note("END")
    demand(end.R_id == grant.r_id, f"9.18 {end}")


@managed("9.18")
def m_put_region_ended(t):
    """The owner ends the region while a Put is under way."""
    vc, layer = up(t)
    vc.keeps_state = vc.tells_transfers = False
    puts(t, 0, pattern(64), 0x9000)
    grant = serve(layer)
    layer.note("DATA")
    vc.send("END", R_id=grant.i_id, I_id=grant.r_id)
    layer.note("EA")
    event(t, PUT, -errno.EACCES, layer)


@managed("9.12", "9.28", "9.16", "10.6")
def m_get_leaves(t):
    """70,000 bytes: two GETs; the answer to the first gets lost."""
    vc, layer = up(t)
    t.side.do("mget", 1, 0, 0, 70000, KEY, 0x9000)
    grant = serve(layer)
    data = pattern(70000)
    lost = [1]

    def on_get(frame):
        demand(frame.R_id == grant.r_id, f"{frame}")
        if frame.G_num == 1 and lost.pop() if lost else False:
            return None
        at = ((frame.R_Bufx << 12) + frame.R_Offset) - grant.start
        place = Grant(vc, frame.R_id, 0, frame.I_Mx, 0, 0)
        place.op, place.R_Mx, place.R_id = "GET", frame.I_Mx, frame.R_id
        place.R_Bufx, place.R_Offset = frame.I_Bufx, frame.I_Offset
        vc.block(place, data[at:at + (frame.Length or 65536)], B_num=frame.G_num)
        return None
    layer.on_get = on_get
    event(t, GOT, layer=layer, length=70000)
    has(t, 0, data)


@managed("10.2")
def m_fence(t):
    """A Put with the fence flag begins when the Get before it is complete."""
    vc, layer = up(t)
    t.side.do("mget", next_context(), 0, 4096, 100, KEY, 0x9000)
    grant = serve(layer)
    ask = layer.note("GET")
    puts(t, 0, pattern(64, 3), 0x9000 + 512, flags=FENCE)
    busy(t, vc, layer)
    demand(vc.memory.bytes(grant.start + 512, 64) == bytes(64), "the Put did not wait")
    place = Grant(vc, ask.R_id, 0, ask.I_Mx, 0, 0)
    place.op, place.R_Mx, place.R_id = "GET", ask.I_Mx, ask.R_id
    place.R_Bufx, place.R_Offset = ask.I_Bufx, ask.I_Offset
    vc.block(place, pattern(100), B_num=ask.G_num)
    event(t, GOT, layer=layer, length=100)
    event(t, PUT, layer=layer, length=64)
    demand(vc.memory.bytes(grant.start + 512, 64) == pattern(64, 3), "the bytes")


@managed("9.17")
def m_get_refused(t):
    vc, layer = up(t)
    t.side.do("mget", 1, 0, 0, 100, KEY, 0x9000)
    serve(layer)
    ask = layer.note("GET")
    vc.send("GET", "Reject", Length=100, R_id=0x999, G_num=ask.G_num)  # another region: refuses nothing
    busy(t, vc, layer)
    no_event(t)
    vc.send("GET", "Reject", Length=100, R_id=ask.R_id, G_num=ask.G_num)
    event(t, GOT, -errno.EACCES, layer)


@managed("10.11", "9.19", slow=11)
def m_get_unanswered(t):
    vc, layer = up(t)
    begin = time.monotonic()
    t.side.do("mget", 1, 0, 0, 100, KEY, 0x9000)
    serve(layer)
    asks = []

    def on_get(frame):
        if frame.function == 7:
            layer.notes.append(("complete", frame))
        asks.append(frame.head)
    layer.on_get = on_get
    event(t, GOT, -errno.ETIMEDOUT, layer)
    demand(9 < time.monotonic() - begin < 25, f"10.11 after {time.monotonic() - begin:.1f} s")
    layer.pump(lambda: any(isinstance(n, tuple) for n in layer.notes))
    demand(len(set(asks)) == 2, "9.16 a GET that is repeated has another G_num")
    demand(not vc.closed.is_set(), "an RD")


@managed("9.14", "9.15", "9.19", "10.6")
def m_fetch_leaves(t):
    """The answer to a FetchOp is lost: the same FetchOp is repeated. FetchOp_Complete follows the answer."""
    vc, layer = up(t)
    t.side.do("mfetch", 1, 0, 8, 4, KEY, 0x9000 + 16, 5, 6)
    serve(layer)
    layer.on_get = lambda frame: False
    first = layer.note("GET")
    again = layer.note("GET")
    demand(first.head == again.head and first.payload == again.payload, "9.15 another FetchOp")
    demand(first.payload[:16] == struct.pack(">QQ", 5, 6) and first.function == 4, f"3.13 {first}")
    vc.send("DATA", "Last", payload=struct.pack(">Q", 0x33), R_Mx=first.I_Mx, R_Bufx=first.I_Bufx,
            R_Offset=first.I_Offset, B_num=first.G_num, R_id=first.R_id)
    event(t, FETCHED, layer=layer, length=8)
    has(t, 8, (0x33).to_bytes(8, sys.byteorder))
    while True:
        done = layer.note("GET")
        if done.function == 7:
            break
        demand(done.head == first.head, f"another GET: {done}")
    demand((done.R_id, done.G_num) == (first.R_id, first.G_num), f"9.19 {done}")


@managed("10.1", "10.6", "9.27")
def m_lossy_puts(t):
    vc, layer = up(t)
    puts(t, 0, pattern(10), 0x9000)
    grant = serve(layer)
    event(t, PUT, layer=layer)
    vc.wire.random.seed(927)
    vc.wire.loss, vc.wire.double, vc.wire.late = 0.15, 0.1, 0.1
    for i in range(30):
        puts(t, 3000 * i, pattern(3000, i), 0x9000 + 3000 * i)
    for _ in range(30):
        event(t, PUT, layer=layer, timeout=60000)
    vc.wire.loss = 0
    for i in range(30):
        demand(vc.memory.bytes(grant.start + 3000 * i, 3000) == pattern(3000, i), f"the bytes of Put {i}")
