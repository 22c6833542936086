# SPDX-License-Identifier: BSD-3-Clause
"""The measurements. Each function runs two programs once, each on a CPU of its own, and returns one
figure. Latencies are median round trips in microseconds, bandwidths bytes a second."""

import contextlib
import copy
import json
import os
import re
import subprocess
import sys
import tempfile
import time

from system import Skipped, Wire, background, output_of, pinned, program

SERVER_CPU, CLIENT_CPU = 0, 1
MACS = ("02:00:00:00:09:01", "02:00:00:00:09:02")
JUMBO = ["--buffer", "13"]  # STUs of 8 KiB
SHORT = ["--buffer", "12"]  # of 1 KiB where the MTU is 1500
GIANT = ["--buffer", "15"]  # of 32 KiB: on memif-giant, whose MTU carries them
HEADER = 40  # of the frame that carries one
JUMBO_FRAME, GIANT_FRAME = 8192 + HEADER, 32768 + HEADER
STUS = {9000: 8192, 1500: 1024}  # the longest of a `udp:` link, by MTU
GIB = 1 << 30


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
        """The command that runs a program of this build with this build's libraries: the path to them that the linker wrote
        into it may lead to another build. Raises Skipped if this build does not have the program."""
        path = os.path.join(self.bin, name)
        if not os.path.exists(path):
            raise Skipped(f"{path} is missing: cmake --build {os.path.dirname(self.bin)} "
                          f"--target {name}")
        return ["env", f"LD_LIBRARY_PATH={self.libraries()}", path]

    def libraries(self):
        """The value of LD_LIBRARY_PATH."""
        others = os.environ.get("LD_LIBRARY_PATH")
        return os.path.join(os.path.dirname(self.bin), "lib") + (f":{others}" if others else "")

    def parts(self, name="stp-perf"):
        """The files of ours that a program consists of: itself, and its libstp unless that is part of it."""
        command = self.tool(name)
        listed = output_of(command[:-1] + ["ldd", command[-1]])
        return [command[-1]] + re.findall(r"libstp\S* => (/\S+)", listed)

    def check_differs_from(self, other):
        """Raises SystemExit if a file of one build is also one of the other: that would compare it with itself."""
        for ours in self.parts():
            for theirs in other.parts():
                if os.path.samefile(ours, theirs):
                    raise SystemExit(f"both builds use {os.path.realpath(ours)}: nothing to compare")

    def perf(self, *words):
        return self.tool("stp-perf") + ["--json"] + list(words)

    def pace(self, warm_up=0.3):
        return ["--seconds", str(self.seconds), "--warm-up", str(warm_up)]

    def wire(self, loss=None, mtu=9000):
        """The same wire for all repeats. `loss`: a bridge drops that many per cent of the frames."""
        if (loss, mtu) not in self.wires:
            self.wires[loss, mtu] = self.stack.enter_context(Wire(mtu=mtu, loss=loss))
        return self.wires[loss, mtu]

    @contextlib.contextmanager
    def ends(self, kind):
        """(prefix, link) of the server and of the client, and how the client calls the server."""
        if kind.startswith("veth"):
            wire = self.wire({"veth": None, "veth-bridge": 0, "veth-loss": 1}[kind])
            yield ([(wire.within(1), "iface:stp0"), (wire.within(0), "iface:stp0")],
                   wire.addresses[1])
            return
        if kind.startswith("udp"):
            wire = self.wire(mtu=1500 if kind == "udp-1500" else 9000)
            wire.offload(True)
            yield ([(wire.within(1), "udp:stp0"), (wire.within(0), "udp:stp0")], wire.addresses[1])
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
                        self.tool("stpd") + ["--link", link, "--socket", socket],
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
    options = {"memif-giant": GIANT, "udp-1500": SHORT}.get(kind, JUMBO)
    found = measure_stp(bench, kind, "bandwidth", "--op", operation, "--size", str(size),
                        "--window", str(window), options=options)
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
    found = json.loads(output_of(bench.tool("dat-bench") + [
        "--json", "--repeats", "1", "--rounds", str(rounds), "--writes", str(rounds // 25)]))
    return found[api][figure]


def waiting_pair(bench, language, mode):
    """What two programs in C, or in Python, measure that make the same calls, which wait."""
    build = os.path.dirname(bench.bin)
    if language == "C":
        command, env = bench.tool("stp-waiting-pair"), None
    else:
        package = os.path.join(build, "python")
        if not os.path.exists(os.path.join(package, "stp")):
            raise Skipped(f"{build} has no package for Python")
        script = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "waiting_pair.py")
        command = [sys.executable, script]
        env = dict(os.environ, PYTHONPATH=package, LD_LIBRARY_PATH=bench.libraries())
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
        output_of(pinned(CLIENT_CPU, bench.tool("stp-bench") + [
            f"--benchmark_filter=^{name}$",
            f"--benchmark_min_time={bench.seconds}", f"--benchmark_out={out.name}",
            "--benchmark_out_format=json"]))
        return 1e9 / json.load(out)["benchmarks"][0]["items_per_second"]


def scale(bench, shards, place):
    """8-byte Puts a second of so many shards together, each with a thread and a CPU of its own."""
    said = output_of(bench.tool("stp-scale") + ["--seconds", str(bench.seconds), "--shards", str(shards),
                                                "--place", place])
    if "share CPUs" in said:
        raise Skipped(f"{shards} shards {place} need {shards} CPUs")
    return float(re.search(rf"{place}\s+(\d+) puts/s of 8 bytes", said)[1])


# ---- what others do ----

def tcp_latency(bench, offload=True, size=8, poll=False, udp=False):
    """`poll`: both programs poll their sockets; otherwise they sleep in recv. `udp`: they poll for bare datagrams."""
    wire = bench.wire()
    wire.offload(offload)
    ping = bench.tool("tcp_ping") + ["--poll"] * poll + ["--udp"] * udp + [wire.addresses[1], "3900"]
    with background(pinned(SERVER_CPU, wire.within(1) + ping), ready="listening"):
        return float(output_of(pinned(CLIENT_CPU, wire.within(0) + ping + [
            str(size), str(bench.seconds)])))


def hand_over(bench, sleep=False):
    """Four processes that only hand over to each other: they yield, or each wakes the next."""
    return float(output_of(bench.tool("hand_over") + ["--sleep"] * sleep + [str(bench.seconds)]))


def between_cpus(bench, shared=None):
    """How often a second a cache line goes from one CPU of a measurement to the other and back; None: not to be had.
    To the list `shared` it adds how many times as long work took on them as on a core of its own."""
    try:
        found = [float(word) for word in output_of(bench.tool("between_cpus")).split()]
    except (Skipped, RuntimeError):
        return None
    if shared is not None:
        shared += found[1:]
    return found[0]


def bare_udp_latency(bench):
    """Datagrams as long as those of an 8-byte Put."""
    return tcp_latency(bench, size=HEADER + 8, udp=True)


def kernel_stream(bench, mtu=9000, udp=False):
    """One stream whose receiver polls: TCP, or bare datagrams as long as those that carry an STU."""
    wire = bench.wire(mtu=mtu)
    wire.offload(True)
    command = bench.tool("kernel_stream") + ["--udp", str(STUS[mtu] + HEADER)] * udp + [
        wire.addresses[1], "3901"]
    with background(pinned(CLIENT_CPU, wire.within(0) + command)):
        return float(output_of(pinned(SERVER_CPU, wire.within(1) + command + [str(bench.seconds)])))


@contextlib.contextmanager
def file_of_a_gib():
    """(the file, a directory for its copy), both on a tmpfs. It has no holes, which stp-send skips."""
    room = os.statvfs("/dev/shm")
    if room.f_bavail * room.f_frsize < 3 * GIB:
        raise Skipped("/dev/shm has no room for a file of 1 GiB and its copy")
    piece = os.urandom(1 << 20)
    with tempfile.TemporaryDirectory(prefix="stp-compare-", dir="/dev/shm") as directory:
        path, out = os.path.join(directory, "file"), os.path.join(directory, "out")
        os.mkdir(out)
        with open(path, "wb") as file:
            for _ in range(GIB // len(piece)):
                file.write(piece)
        yield path, out


def check_copy(out, name="file"):
    size = os.path.getsize(os.path.join(out, name))
    if size != GIB:
        raise RuntimeError(f"{size} bytes of {GIB} have come")


def send_file(bench, kind):
    """Seconds that stp-send takes for 1 GiB, from start to end."""
    with file_of_a_gib() as (path, out), bench.ends(kind) as (sides, host):
        (server_prefix, server_link), (prefix, link) = sides
        server = pinned(SERVER_CPU, server_prefix + bench.tool("stp-recv") + [
            "--link", server_link, "--listen", ":3000", "--out", out, "--once"])
        client = pinned(CLIENT_CPU, prefix + bench.tool("stp-send") + [
            "--quiet", "--link", link, path, host + ":3000"])
        with background(server, ready="stening"):
            begin = time.monotonic()
            output_of(client)
            taken = time.monotonic() - begin
        check_copy(out)
        return taken


def netcat(bench, mtu=9000):
    """The same by nc, over TCP. The receiver ends behind the last byte."""
    program("nc", "netcat-openbsd")
    wire = bench.wire(mtu=mtu)
    wire.offload(True)
    with file_of_a_gib() as (path, out), contextlib.ExitStack() as files:
        copy_of = files.enter_context(open(os.path.join(out, "file"), "wb"))
        source = files.enter_context(open(path, "rb"))
        command = pinned(SERVER_CPU, wire.within(1) + ["nc", "-l", wire.addresses[1], "3902"])
        with subprocess.Popen(command, stdout=copy_of, stdin=subprocess.DEVNULL) as server:
            try:
                time.sleep(0.5)  # it does not say when it listens
                begin = time.monotonic()
                subprocess.run(pinned(CLIENT_CPU, wire.within(0) + [
                    "nc", "-N", wire.addresses[1], "3902"]), stdin=source, timeout=120, check=True)
                server.wait(120)
                taken = time.monotonic() - begin
            finally:
                server.terminate()
        check_copy(out)
        return taken


def iperf3(bench, offload=True, mtu=9000):
    program("iperf3", "iperf3")
    wire = bench.wire(mtu=mtu)
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
