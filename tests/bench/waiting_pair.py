# SPDX-License-Identifier: BSD-3-Clause
"""usage: waiting_pair.py LINK serve ping|bulk
       waiting_pair.py LINK HOST:PORT ping|bulk SECONDS

As waiting_pair.cpp, call by call, from Python."""
import collections
import json
import statistics
import sys
import time

import stp

BLOCK, LONG, WINDOW, WARM_UP = 100, 1 << 20, 8, 0.3


def answer(peer):
    while True:
        peer.receive(8)
        peer.send(b"answer 8")


def take(domain, peer):
    buffers = [bytearray(LONG) for _ in range(WINDOW)]
    regions = [domain.region(buffer, read=False, write=False) for buffer in buffers]
    waiting = collections.deque(peer.begin_receive_into(buffer) for buffer in buffers)
    while regions:
        for buffer in buffers:
            waiting.popleft().wait()
            waiting.append(peer.begin_receive_into(buffer))


def serve(link, mode):
    with stp.Domain(link) as domain, domain.listen(":3000") as listener:
        print("listening", flush=True)
        with listener.accept() as peer:
            try:
                answer(peer) if mode == "ping" else take(domain, peer)
            except stp.PeerGone:
                pass


def ping(peer, seconds):
    """Microseconds of a message there and back: of each of many short series."""
    series = []
    end = time.perf_counter() + seconds
    while (begun := time.perf_counter()) < end:
        for _ in range(BLOCK):
            peer.send(b"request8")
            peer.receive(8)
        series.append((time.perf_counter() - begun) / BLOCK * 1e6)
    return series


def bulk(domain, peer, seconds):
    """Bytes a second."""
    memory = bytearray(LONG)
    with domain.region(memory, read=False, write=False):
        waiting, count = collections.deque(), 0
        begun = time.perf_counter()
        while time.perf_counter() - begun < seconds:
            waiting.append(peer.begin_send(memory))
            if len(waiting) == WINDOW:
                waiting.popleft().wait()
                count += 1
        rate = count * LONG / (time.perf_counter() - begun)
        for operation in waiting:
            operation.wait()
    return rate


def ask(link, peer_name, mode, seconds):
    with stp.Domain(link) as domain, domain.connect(peer_name) as peer:
        if mode == "ping":
            ping(peer, WARM_UP)
            series = ping(peer, seconds)
            print(json.dumps({"round_trip_us": statistics.median(series), "least_us": min(series)}))
        else:
            bulk(domain, peer, WARM_UP)
            print(json.dumps({"bytes_per_second": bulk(domain, peer, seconds)}))


if __name__ == "__main__":
    if len(sys.argv) != (4 if sys.argv[2:3] == ["serve"] else 5) or sys.argv[3] not in ("ping", "bulk"):
        is_asked = sys.argv[1:] in (["--help"], ["-h"])
        print(__doc__, file=sys.stdout if is_asked else sys.stderr)
        sys.exit(0 if is_asked else 2)
    if sys.argv[2] == "serve":
        serve(sys.argv[1], sys.argv[3])
    else:
        ask(sys.argv[1], sys.argv[2], sys.argv[3], float(sys.argv[4]))
