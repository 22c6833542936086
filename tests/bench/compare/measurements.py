# SPDX-License-Identifier: BSD-3-Clause
"""The measurements. Each function runs two programs once, each on a CPU of its own, and returns one
figure. Latencies are median round trips in microseconds, bandwidths bytes a second."""

import contextlib
import copy
import json
import os
import re
import sys
import tempfile

from system import Skipped, Wire, background, output_of, pinned, program

SERVER_CPU, CLIENT_CPU = 0, 1
MACS = ("02:00:00:00:09:01", "02:00:00:00:09:02")
JUMBO = ["--buffer", "13"]  # STUs of 8 KiB
GIANT = ["--buffer", "15"]  # of 32 KiB: on memif-giant, whose MTU carries them
HEADER = 40  # of the frame that carries one
JUMBO_FRAME, GIANT_FRAME = 8192 + HEADER, 32768 + HEADER


class Bench:
    """Where the programs are, and how long each measures."""

    def __init__(self, build, seconds):
        self.bin = os.path.join(build, "bin")
        self.seconds = seconds
        self.wires = {}
        self.stack = contextlib.ExitStack()

    def of_build(self, build):
        """The same with another build's programs, on the same wires."""
        other = copy.copy(self)
        other.bin = os.path.join(build, "bin")
        return other

    def tool(self, name):
        """Raises Skipped if this build does not have the program."""
        path = os.path.join(self.bin, name)
        if not os.path.exists(path):
            raise Skipped(f"{path} is missing: cmake --build {os.path.dirname(self.bin)} "
                          f"--target {name}")
        return path

    def perf(self, *words):
        return [self.tool("stp-perf"), "--json"] + list(words)

    def pace(self, warm_up=0.3):
        return ["--seconds", str(self.seconds), "--warm-up", str(warm_up)]

    def wire(self, loss=None):
        """The same wire for all repeats. `loss`: a bridge drops that many per cent of the frames."""
        if loss not in self.wires:
            self.wires[loss] = self.stack.enter_context(Wire(loss=loss))
        return self.wires[loss]

    @contextlib.contextmanager
    def ends(self, kind):
        """(prefix, link) of the server and of the client, and how the client calls the server."""
        if kind.startswith("veth"):
            wire = self.wire({"veth": None, "veth-bridge": 0, "veth-loss": 1}[kind])
            yield ([(wire.within(1), "iface:stp0"), (wire.within(0), "iface:stp0")],
                   wire.addresses[1])
            return
        with tempfile.TemporaryDirectory(prefix="stp-compare-") as directory:
            memif = f"memif:{directory}/memif.sock"
            if kind == "memif-giant":
                memif += ",mtu=33000"
            links = [f"{memif},role=server,mac={MACS[1]}", f"{memif},role=client,mac={MACS[0]}"]
            if kind.startswith("memif"):
                yield [([], links[0]), ([], links[1])], f"[{MACS[1]}]"
                return
            with contextlib.ExitStack() as daemons:
                sockets = [f"{directory}/{side}.sock" for side in ("server", "client")]
                for link, socket in zip(links, sockets):
                    daemons.enter_context(background(
                        [self.tool("stpd"), "--link", link, "--socket", socket],
                        ready="stpd: ready"))
                yield [([], "stpd:" + socket) for socket in sockets], f"[{MACS[1]}]"


def measure_stp(bench, kind, test, *words, options=()):
    with bench.ends(kind) as (((server_prefix, server_link), (prefix, link)), host):
        server = server_prefix + bench.perf("--link", server_link, "--cpu", str(SERVER_CPU),
                                            *options, "server", "--once")
        client = prefix + bench.perf("--link", link, "--cpu", str(CLIENT_CPU), *options, test,
                                     host + ":3000", *bench.pace(), *words)
        with background(server, ready="listening"):
            return json.loads(output_of(client))


def latency(bench, kind, operation="put", size=8):
    found = measure_stp(bench, kind, "latency", "--op", operation, "--size", str(size))
    return found["round_trip_us"]["p50"]


def bandwidth(bench, kind, operation="write", size=1 << 20, window=16):
    found = measure_stp(bench, kind, "bandwidth", "--op", operation, "--size", str(size),
                        "--window", str(window),
                        options=GIANT if kind.endswith("giant") else JUMBO)
    return found["gbit_s"] * 1e9 / 8


def put_rate(bench, kind, connections=1, window=256, operation="put"):
    found = measure_stp(bench, kind, "rate", "--op", operation, "--connections", str(connections),
                        "--window", str(window))
    return found["per_second"]


def measure_raw(bench, kind, *words):
    with bench.ends(kind) as (((server_prefix, server_link), (prefix, link)), _):
        server = server_prefix + bench.perf("--link", server_link, "--cpu", str(SERVER_CPU), "raw",
                                            "--serve")
        client = prefix + bench.perf("--link", link, "--cpu", str(CLIENT_CPU), "raw",
                                     *bench.pace(), *words)
        with background(server, ready="answering"):
            return json.loads(output_of(client))


def raw_latency(bench, kind, size=50):
    """Bare frames as long as those of an 8-byte Put, 40 bytes of header and 8 of data; others alike."""
    return measure_raw(bench, kind, "--size", str(max(size, 50)))["round_trip_us"]["p50"]


def raw_bandwidth(bench, kind):
    size = GIANT_FRAME if kind.endswith("giant") else JUMBO_FRAME
    return measure_raw(bench, kind, "--one-way", "--size", str(size))["gbit_s"] * 1e9 / 8


def dat_bench(bench, api, figure):
    """Of `api` (dat or managed), both of which one run measures."""
    rounds = max(round(bench.seconds * 50_000), 1000)
    found = json.loads(output_of([bench.tool("dat-bench"), "--json", "--repeats", "1",
                                  "--rounds", str(rounds), "--writes", str(rounds // 25)]))
    return found[api][figure]


def waiting_pair(bench, language, mode):
    """What two programs in C, or in Python, measure that make the same calls, which wait."""
    build = os.path.dirname(bench.bin)
    if language == "C":
        command, env = [bench.tool("stp-waiting-pair")], None
    else:
        package = os.path.join(build, "python")
        if not os.path.exists(os.path.join(package, "stp")):
            raise Skipped(f"{build} has no package for Python")
        script = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "waiting_pair.py")
        command, env = [sys.executable, script], dict(os.environ, PYTHONPATH=package)
    with bench.ends("memif") as (((_, server_link), (_, link)), host):
        with background(pinned(SERVER_CPU, command + [server_link, "serve", mode]), ready="listening", env=env):
            found = output_of(pinned(CLIENT_CPU, command + [link, host + ":3000", mode, str(bench.seconds)]), env=env)
    return json.loads(found)["round_trip_us" if mode == "ping" else "bytes_per_second"]


def memcpy_bandwidth(bench, size=1 << 20):
    found = json.loads(output_of(pinned(CLIENT_CPU, bench.perf("memcpy", "--size", str(size),
                                                               *bench.pace()))))
    return found["gbit_s"] * 1e9 / 8


def engine(bench, name):
    """A figure of stp-bench: nanoseconds of CPU for each item."""
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        output_of(pinned(CLIENT_CPU, [
            bench.tool("stp-bench"), f"--benchmark_filter=^{name}$",
            f"--benchmark_min_time={bench.seconds}", f"--benchmark_out={out.name}",
            "--benchmark_out_format=json"]))
        return 1e9 / json.load(out)["benchmarks"][0]["items_per_second"]


# ---- what others do ----

def tcp_latency(bench, offload=True, size=8, poll=False):
    """`poll`: both programs poll their sockets; otherwise they sleep in recv."""
    wire = bench.wire()
    wire.offload(offload)
    ping = [bench.tool("tcp_ping")] + ["--poll"] * poll + [wire.addresses[1], "3900"]
    with background(pinned(SERVER_CPU, wire.within(1) + ping), ready="listening"):
        return float(output_of(pinned(CLIENT_CPU, wire.within(0) + ping + [
            str(size), str(bench.seconds)])))


def iperf3(bench, offload=True):
    program("iperf3", "iperf3")
    wire = bench.wire()
    wire.offload(offload)
    with background(pinned(SERVER_CPU, wire.within(1) + ["iperf3", "-s", "-1"])):
        found = json.loads(output_of(pinned(CLIENT_CPU, wire.within(0) + [
            "iperf3", "-c", wire.addresses[1], "-t", str(max(round(bench.seconds), 1)), "-J"])))
    return found["end"]["sum_received"]["bits_per_second"] / 8


def fi_pingpong(bench, provider, size):
    """udp;ofi_rxd and tcp on the wire, shm inside this machine. (round trip, bytes a second)"""
    program("fi_pingpong", "libfabric-bin")
    if provider == "shm":
        sides, host = ([], []), "127.0.0.1"
    else:
        wire = bench.wire()
        wire.offload(True)
        sides, host = (wire.within(1), wire.within(0)), wire.addresses[1]
    command = ["fi_pingpong", "-p", provider, "-e", "rdm", "-S", str(size), "-I",
               str(20_000 if size < 4096 else 200)]
    with background(pinned(SERVER_CPU, sides[0] + command)):
        text = output_of(pinned(CLIENT_CPU, sides[1] + command + [host]))
    # bytes #sent #ack total time MB/sec usec/xfer Mxfers/sec
    words = text.strip().splitlines()[-1].split()
    return 2 * float(words[6]), float(words[5]) * 1e6


def ucx(bench, transport, test, size):
    program("ucx_perftest", "ucx-utils")
    env = dict(os.environ, UCX_TLS=transport, UCX_LOG_LEVEL="error")
    command = ["ucx_perftest", "-f", "-t", test, "-s", str(size), "-n",
               str(100_000 if size < 4096 else 4_000), "-w", "200", "-p", "13900"]
    with background(pinned(SERVER_CPU, command), env=env):
        text = output_of(pinned(CLIENT_CPU, command + ["127.0.0.1"]), env=env)
    # iterations, overhead/latency us (50%, average, overall), MB/s (average, overall), messages/s
    return [float(word) for word in re.findall(r"[0-9.]+", text.strip().splitlines()[-1])]


def ucx_latency(bench, transport, size=8):
    return 2 * ucx(bench, transport, "tag_lat", size)[1]


def ucx_bandwidth(bench, transport, size=1 << 20):
    return ucx(bench, transport, "tag_bw", size)[5] * 2**20
