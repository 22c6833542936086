# SPDX-License-Identifier: BSD-3-Clause
"""The figures that are measured, and the goals for ratios between them."""

from dataclasses import dataclass
from typing import Callable

import measurements as m

MANY = 10_000
MIB = 1 << 20


@dataclass(frozen=True)
class Figure:
    name: str
    unit: str
    measure: Callable
    ours: bool = True  # of our programs: another build's may differ


FIGURES = [
    Figure("put-rtt/memif", "us", lambda b: m.latency(b, "memif")),
    Figure("raw-rtt/memif", "us", lambda b: m.raw_latency(b, "memif")),
    Figure("put-rtt/veth", "us", lambda b: m.latency(b, "veth")),
    Figure("raw-rtt/veth", "us", lambda b: m.raw_latency(b, "veth")),
    Figure("level0-rtt/memif", "us", lambda b: m.latency(b, "memif", "level0")),
    Figure("level0-rtt/veth", "us", lambda b: m.latency(b, "veth", "level0")),
    Figure("fetch-rtt/memif", "us", lambda b: m.latency(b, "memif", "fetch")),
    Figure("write-rtt/memif", "us", lambda b: m.latency(b, "memif", "write")),
    Figure("message-16K-rtt/memif", "us", lambda b: m.latency(b, "memif", "write", 16 << 10)),
    Figure("message-16K-rtt/veth", "us", lambda b: m.latency(b, "veth", "write", 16 << 10)),
    Figure("tcp-rtt/veth", "us", m.tcp_latency, ours=False),
    Figure("tcp-polling-rtt/veth", "us", lambda b: m.tcp_latency(b, poll=True), ours=False),
    Figure("tcp-rtt-no-offload/veth", "us", lambda b: m.tcp_latency(b, offload=False), ours=False),
    Figure("libfabric-tcp-rtt/veth", "us", lambda b: m.fi_pingpong(b, "tcp", 8)[0], ours=False),
    Figure("libfabric-udp-rtt/veth", "us", lambda b: m.fi_pingpong(b, "udp;ofi_rxd", 8)[0],
           ours=False),
    Figure("libfabric-shm-rtt", "us", lambda b: m.fi_pingpong(b, "shm", 8)[0], ours=False),
    Figure("ucx-posix-rtt", "us", lambda b: m.ucx_latency(b, "posix"), ours=False),
    Figure("ucx-tcp-rtt/loopback", "us", lambda b: m.ucx_latency(b, "tcp"), ours=False),
    Figure("write-1M/memif", "B/s", lambda b: m.bandwidth(b, "memif")),
    Figure("write-1M/memif-giant", "B/s", lambda b: m.bandwidth(b, "memif-giant")),
    Figure("put-1M/memif", "B/s", lambda b: m.bandwidth(b, "memif", "put")),
    Figure("get-1M/memif", "B/s", lambda b: m.bandwidth(b, "memif", "get")),
    Figure("raw-one-way/memif", "B/s", lambda b: m.raw_bandwidth(b, "memif")),
    Figure("raw-one-way/memif-giant", "B/s", lambda b: m.raw_bandwidth(b, "memif-giant")),
    Figure("libfabric-shm-1M", "B/s", lambda b: m.fi_pingpong(b, "shm", MIB)[1], ours=False),
    Figure("ucx-posix-1M", "B/s", lambda b: m.ucx_bandwidth(b, "posix"), ours=False),
    Figure("memcpy-1M", "B/s", m.memcpy_bandwidth, ours=False),
    Figure("write-1M/veth", "B/s", lambda b: m.bandwidth(b, "veth")),
    Figure("raw-one-way/veth", "B/s", lambda b: m.raw_bandwidth(b, "veth")),
    Figure("tcp/veth", "B/s", m.iperf3, ours=False),
    Figure("tcp-no-offload/veth", "B/s", lambda b: m.iperf3(b, offload=False), ours=False),
    Figure("libfabric-udp-1M/veth", "B/s", lambda b: m.fi_pingpong(b, "udp;ofi_rxd", MIB)[1],
           ours=False),
    Figure("libfabric-tcp-1M/veth", "B/s", lambda b: m.fi_pingpong(b, "tcp", MIB)[1], ours=False),
    Figure("ucx-tcp-1M/loopback", "B/s", lambda b: m.ucx_bandwidth(b, "tcp"), ours=False),
    Figure("put-rate/memif", "1/s", lambda b: m.put_rate(b, "memif")),
    Figure("level0-rate/memif", "1/s", lambda b: m.put_rate(b, "memif", operation="level0")),
    Figure("put-rate-64/memif", "1/s", lambda b: m.put_rate(b, "memif", 1, 64)),
    Figure("put-rate-many/memif", "1/s", lambda b: m.put_rate(b, "memif", MANY, 64)),
    Figure("put-rate-many-single/memif", "1/s", lambda b: m.put_rate(b, "memif", MANY, 1)),
    Figure("message-16K-rtt/stpd", "us", lambda b: m.latency(b, "stpd", "write", 16 << 10)),
    Figure("put-rtt/stpd", "us", lambda b: m.latency(b, "stpd")),
    Figure("chain-rtt/yield", "us", m.hand_over, ours=False),
    Figure("chain-rtt/eventfd", "us", lambda b: m.hand_over(b, sleep=True), ours=False),
    Figure("write-1M/stpd", "B/s", lambda b: m.bandwidth(b, "stpd")),
    Figure("write-1M/bridge", "B/s", lambda b: m.bandwidth(b, "veth-bridge")),
    Figure("write-1M/loss", "B/s", lambda b: m.bandwidth(b, "veth-loss")),
    Figure("put-rtt/udp", "us", lambda b: m.latency(b, "udp")),
    Figure("write-1M/udp", "B/s", lambda b: m.bandwidth(b, "udp")),
    Figure("write-1M/udp-1500", "B/s", lambda b: m.bandwidth(b, "udp-1500")),
    Figure("bare-udp-rtt/veth", "us", m.bare_udp_latency, ours=False),
    Figure("bare-udp/veth", "B/s", lambda b: m.kernel_stream(b, udp=True), ours=False),
    Figure("bare-udp/veth-1500", "B/s", lambda b: m.kernel_stream(b, 1500, udp=True), ours=False),
    Figure("tcp-polling/veth", "B/s", m.kernel_stream, ours=False),
    Figure("tcp-polling/veth-1500", "B/s", lambda b: m.kernel_stream(b, 1500), ours=False),
    Figure("tcp/veth-1500", "B/s", lambda b: m.iperf3(b, mtu=1500), ours=False),
    Figure("send-1G/udp", "s", lambda b: m.send_file(b, "udp")),
    Figure("send-1G/udp-1500", "s", lambda b: m.send_file(b, "udp-1500")),
    Figure("nc-1G/veth", "s", m.netcat, ours=False),
    Figure("nc-1G/veth-1500", "s", lambda b: m.netcat(b, 1500), ours=False),
    Figure("managed-rtt/memif", "us", lambda b: m.dat_bench(b, "managed", "round_trip_us")),
    Figure("dat-rtt/memif", "us", lambda b: m.dat_bench(b, "dat", "round_trip_us")),
    Figure("managed-put-1M/memif", "B/s",
           lambda b: m.dat_bench(b, "managed", "write_bytes_per_second")),
    Figure("dat-write-1M/memif", "B/s", lambda b: m.dat_bench(b, "dat", "write_bytes_per_second")),
    Figure("waiting-rtt/C", "us", lambda b: m.waiting_pair(b, "C", "ping")),
    Figure("waiting-rtt/Python", "us", lambda b: m.waiting_pair(b, "Python", "ping")),
    Figure("waiting-1M/C", "B/s", lambda b: m.waiting_pair(b, "C", "bulk")),
    Figure("waiting-1M/Python", "B/s", lambda b: m.waiting_pair(b, "Python", "bulk")),
    Figure("node-8B", "ns", lambda b: m.engine(b, "node_to_node/bytes:8")),
    Figure("node-8K", "ns", lambda b: m.engine(b, "node_to_node/bytes:8192")),
    Figure("puts-1-shard", "1/s", lambda b: m.scale(b, 1, "apart")),
    Figure("puts-2-shards-apart", "1/s", lambda b: m.scale(b, 2, "apart")),
    Figure("puts-2-shards-across", "1/s", lambda b: m.scale(b, 2, "across")),
    Figure("memcpy-8K", "ns", lambda b: m.engine(b, "plain_copy/bytes:8192"), ours=False),
]


@dataclass(frozen=True)
class Goal:
    what: str
    figure: str
    # Of the same run; several: the best of those that were measured; a number: of the figure itself. A function gets
    # one that gives the median of a figure, or None.
    control: str | tuple | float | Callable
    bound: float
    at_most: bool = False


def python_limit(median):
    """3 times what C adds to bare frames, and 1.5 us for each of the four calls of a round trip."""
    bare, plain = median("raw-rtt/memif"), median("waiting-rtt/C")
    return None if bare is None or plain is None else bare + 3 * (plain - bare) + 4 * 1.5


def managed_limit(median):
    """1.3 times bare frames, or 1.8 where they show that the two CPUs are near each other."""
    bare = median("raw-rtt/memif")
    return None if bare is None else bare * (1.8 if bare < 1 else 1.3)


GOALS = [
    Goal("8-byte Put round trip at level 0, memif : bare frames", "level0-rtt/memif",
         "raw-rtt/memif", 1.25, True),
    Goal("8-byte Put round trip through the managed API, memif : bare frames, 1.3 times (1.8 if the CPUs are near)",
         "put-rtt/memif", managed_limit, 1, True),
    Goal("8-byte Put round trip at level 0, veth : bare frames", "level0-rtt/veth", "raw-rtt/veth",
         1.15, True),
    Goal("8-byte Put round trip through the managed API, veth : bare frames", "put-rtt/veth",
         "raw-rtt/veth", 1.15, True),
    Goal("8-byte Put round trip, veth : TCP that blocks", "put-rtt/veth", "tcp-rtt/veth", 0.2,
         True),
    Goal("8-byte Put round trip, veth : TCP that polls its socket", "put-rtt/veth",
         "tcp-polling-rtt/veth", 0.62, True),
    Goal("1 MiB Write, memif, STUs of 8 KiB : bare frames", "write-1M/memif", "raw-one-way/memif",
         0.9),
    Goal("1 MiB Write, memif, STUs of 32 KiB : bare frames", "write-1M/memif-giant",
         "raw-one-way/memif-giant", 0.9),
    Goal("1 MiB Get, memif : Write", "get-1M/memif", "write-1M/memif", 0.95),
    Goal("1 MiB Write, memif : libfabric shm", "write-1M/memif", "libfabric-shm-1M", 1),
    Goal("1 MiB Write, memif : UCX posix", "write-1M/memif", "ucx-posix-1M", 1.1),
    Goal("1 MiB Write, veth : bare frames", "write-1M/veth", "raw-one-way/veth", 0.92),
    Goal("1 MiB Write, veth : TCP without segmentation offload", "write-1M/veth",
         "tcp-no-offload/veth", 1),
    Goal("1 MiB Write, veth : libfabric udp;ofi_rxd", "write-1M/veth", "libfabric-udp-1M/veth", 10),
    Goal("64-byte DAT message there and back, memif : managed API", "dat-rtt/memif",
         "managed-rtt/memif", 1.15, True),
    Goal("1 MiB DAT RDMA write, memif : managed API", "dat-write-1M/memif", "managed-put-1M/memif",
         0.95),
    Goal("8-byte message of Python there and back, memif : bare frames, 3 times what C adds, 1.5 us a call",
         "waiting-rtt/Python", python_limit, 1, True),
    Goal("1 MiB messages of Python, memif : C", "waiting-1M/Python", "waiting-1M/C", 0.95),
    Goal("8-byte Puts a second at level 0, memif", "level0-rate/memif", 1, 10e6),
    Goal("8-byte Puts a second, memif, through the managed API : at level 0", "put-rate/memif",
         "level0-rate/memif", 0.9),
    Goal("8-byte Puts a second, Node to Node", "node-8B", "a second", 25e6),
    Goal("8 KiB STU, Node to Node : memcpy", "node-8K", "memcpy-8K", 1.5, True),
    Goal("8-byte Puts a second, 2 shards apart : 1", "puts-2-shards-apart", "puts-1-shard", 1.85),
    Goal("8-byte Puts a second, 2 shards across (to memory of the other) : apart", "puts-2-shards-across",
         "puts-2-shards-apart", 0.85),
    Goal("8-byte Put round trip through stpd : in the process", "put-rtt/stpd", "put-rtt/memif", 8,
         True),
    Goal("8-byte Put round trip through stpd : four processes that hand over in a chain",
         "put-rtt/stpd", ("chain-rtt/yield", "chain-rtt/eventfd"), 1.5, True),
    Goal("1 MiB Write through stpd : in the process", "write-1M/stpd", "write-1M/memif", 0.7),
    Goal("Put rate of 10,000 connections : of one, 64 outstanding on each", "put-rate-many/memif",
         "put-rate-64/memif", 0.8),
    Goal("Put rate of 10,000 connections with one outstanding on each : of one with 256",
         "put-rate-many-single/memif", "put-rate/memif", 0.3),
    Goal("1 MiB Write, udp : bare datagrams with segmentation offload", "write-1M/udp",
         "bare-udp/veth", 0.75),
    Goal("1 MiB Write, udp, MTU 1500 : bare datagrams with segmentation offload",
         "write-1M/udp-1500", "bare-udp/veth-1500", 0.75),
    Goal("1 MiB Write, udp : the fastest TCP", "write-1M/udp",
         ("tcp/veth", "tcp-polling/veth", "libfabric-tcp-1M/veth"), 2.5),
    Goal("1 MiB Write, udp, MTU 1500 : the fastest TCP", "write-1M/udp-1500",
         ("tcp/veth-1500", "tcp-polling/veth-1500"), 2.5),
    Goal("8-byte Put round trip, udp : bare datagrams", "put-rtt/udp", "bare-udp-rtt/veth", 1.25, True),
    Goal("8-byte Put round trip, udp : TCP that polls its socket", "put-rtt/udp",
         "tcp-polling-rtt/veth", 0.9, True),
    Goal("stp-send of 1 GiB, tmpfs to tmpfs, udp : nc", "send-1G/udp", "nc-1G/veth", 0.8, True),
    Goal("stp-send of 1 GiB, tmpfs to tmpfs, udp, MTU 1500 : nc", "send-1G/udp-1500",
         "nc-1G/veth-1500", 0.8, True),
    Goal("1 MiB Write at 1 % loss : lossless", "write-1M/loss", "write-1M/bridge", 0.95),
]

SIZES = [8, 64, 512, 4096, 32 << 10, 256 << 10, MIB]

# Plots: (title, unit, lines of (name, figure at a size)).
SWEEPS = {
    "latency": ("Round trip by size", "us", [
        ("Put, memif", lambda b, size: m.latency(b, "memif", "put", size)),
        ("Put, veth", lambda b, size: m.latency(b, "veth", "put", size)),
        ("TCP that blocks, veth", lambda b, size: m.tcp_latency(b, True, size)),
        ("TCP that polls, veth", lambda b, size: m.tcp_latency(b, True, size, True)),
        ("libfabric shm", lambda b, size: m.fi_pingpong(b, "shm", size)[0]),
        ("UCX posix", lambda b, size: m.ucx_latency(b, "posix", size)),
    ]),
    "bandwidth": ("Bandwidth by size", "B/s", [
        ("Write, memif", lambda b, size: m.bandwidth(b, "memif", "write", size)),
        ("Write, veth", lambda b, size: m.bandwidth(b, "veth", "write", size)),
        ("libfabric shm", lambda b, size: m.fi_pingpong(b, "shm", size)[1]),
        ("UCX posix", lambda b, size: m.ucx_bandwidth(b, "posix", size)),
        ("memcpy", m.memcpy_bandwidth),
    ]),
}
