# SPDX-License-Identifier: BSD-3-Clause
"""python3 tests/bench/mpi: Open MPI over Scheduled Transfers beside Open MPI over what else there
is, on the same veth pair, in turn and several times. Each of the two ranks polls on a CPU of its
own. Prints medians and their ratios."""

import argparse
import contextlib
import json
import os
import statistics
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(ROOT, "tests", "bench", "compare"))

from system import Skipped, Wire, model, output_of, program, strangers_load  # noqa: E402

SIZES = [8, 4096, 16384, 65536, 1 << 20]
OVER_OFI = ["--mca", "pml", "cm", "--mca", "mtl", "ofi", "--mca", "mtl_ofi_provider_include"]

# What is asked of ratios: (size, column, figure, control, bound, at most).
GOALS = [
    (8, 0, "stp/veth", "tcp;ofi_rxm/veth", 0.8, True),
    (8, 0, "stp/veth", "btl-tcp/veth", 0.9, True),
    (8, 0, "stp/memif", "tcp;ofi_rxm/veth", 0.25, True),
    (4096, 0, "stp/veth", "tcp;ofi_rxm/veth", 0.8, True),
    (16384, 0, "stp/veth", "tcp;ofi_rxm/veth", 0.8, True),
    (65536, 0, "stp/veth", "tcp;ofi_rxm/veth", 0.8, True),
    (1 << 20, 1, "stp/veth", "tcp;ofi_rxm/veth", 1.0, False),
    (1 << 20, 1, "stp/veth", "udp;ofi_rxd/veth", 4.0, False),
]


class Runs:
    """Two ranks of tests/bench/mpi/ping.c, by the name of what carries them."""

    def __init__(self, build, seconds, stack):
        self.seconds = seconds
        self.work = stack.enter_context(tempfile.TemporaryDirectory())
        self.wire = stack.enter_context(Wire())
        self.provider = os.path.realpath(os.path.join(build, "lib", "libfabric"))
        if not os.path.exists(os.path.join(self.provider, "libstp-fi.so")):
            raise Skipped(f"{self.provider}/libstp-fi.so is missing: is libfabric-dev installed?")
        program("mpirun", "openmpi-bin")
        self.ping = os.path.join(self.work, "ping")
        output_of([program("mpicc", "libopenmpi-dev"), "-O2", "-o", self.ping,
                   os.path.join(os.path.dirname(os.path.abspath(__file__)), "ping.c")])
        self.pin = self.script("pin", 'exec taskset -c "$OMPI_COMM_WORLD_RANK" "$@"')
        # A daemon of Open MPI in each namespace, on hosts of different names.
        self.agent = self.script("agent", f"shift; exec {self.on_host(1)} bash -c \"$*\"")

    def script(self, name, text):
        path = os.path.join(self.work, name)
        with open(path, "w", encoding="ascii") as file:
            file.write("#!/bin/bash\n" + text + "\n")
        os.chmod(path, 0o755)
        return path

    def on_host(self, side):
        return (f"nsenter --net=/proc/{self.wire.sides[side]}/ns/net unshare --uts "
                f"bash -c 'hostname stp-{'ab'[side]}; exec \"$@\"' -")

    def measure(self, name):
        """{size: (half round trip in us, bytes a second)}"""
        carrier, place = name.split("/")
        words = {"btl-tcp": ["--mca", "pml", "ob1", "--mca", "btl", "tcp,self",
                             "--mca", "btl_tcp_if_include", "10.9.0.0/24"]}.get(
                                 carrier, OVER_OFI + [carrier])
        sizes = [self.ping, str(self.seconds)] + [str(size) for size in SIZES]
        words = ["mpirun", "--bind-to", "none"] + words
        if place == "memif":
            words += ["--oversubscribe"] + self.rank_on_memif(carrier, "server", 2) + sizes + [":"]
            words += self.rank_on_memif(carrier, "client", 1) + sizes
        else:
            words += ["--mca", "plm", "rsh", "--mca", "plm_rsh_agent", self.agent,
                      "--mca", "plm_rsh_no_tree_spawn", "1",
                      "--mca", "oob_tcp_if_include", "10.9.0.0/24",
                      "--host", "10.9.0.1:1,10.9.0.2:1", "-x", "STP_LINK=iface:stp0",
                      "-x", "FI_TCP_IFACE=stp0", "-x", "FI_UDP_IFACE=stp0"]
            words += self.exported(carrier) + [self.pin] + sizes
        environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", IPATH_NO_BACKTRACE="1",
                           OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", FI_PROVIDER_PATH=self.provider)
        command = " ".join("'" + word + "'" for word in words)
        host = "" if place == "memif" else self.on_host(0)
        begin = self.script("begin", f"exec {host} {command}")
        output = output_of(["unshare", "--pid", "--fork", "--kill-child", begin],
                           timeout=60 + 4 * self.seconds * len(SIZES), env=environment)
        lines = [line.split() for line in output.splitlines() if len(line.split()) == 3]
        result = {int(size): (float(half), float(rate)) for size, half, rate in lines}
        if sorted(result) != SIZES:
            raise RuntimeError(f"{name}: {output[-300:]}")
        return result

    @staticmethod
    def exported(carrier):
        # libfabric lists stp;ofi_rxm before stp.
        native = ["-x", "FI_PROVIDER=^ofi_rxm"] if carrier == "stp" else []
        return ["-x", "FI_PROVIDER_PATH", "-x", "IPATH_NO_BACKTRACE"] + native

    def rank_on_memif(self, carrier, role, number):
        link = (f"memif:{self.work}/m.sock,mtu=9000,role={role},mac=02:00:00:00:09:0{number},"
                f"address=10.9.0.{number}/24")
        return ["-n", "1", "-x", f"STP_LINK={link}"] + self.exported(carrier) + [self.pin]


def options():
    parser = argparse.ArgumentParser(prog="tests/bench/mpi", description=__doc__)
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--repeats", type=int, default=7, help="of everything, in turn [7]")
    parser.add_argument("--seconds", type=float, default=0.5, help="for each figure [0.5]")
    parser.add_argument("--only", nargs="+", metavar="TEXT", help="carriers with this in their name")
    parser.add_argument("--out", metavar="FILE", help="all values, as JSON")
    return parser.parse_args()


CARRIERS = ["stp/veth", "stp;ofi_rxm/veth", "tcp;ofi_rxm/veth", "btl-tcp/veth", "udp;ofi_rxd/veth",
            "stp/memif", "stp;ofi_rxm/memif"]


def collect(runs, carriers, repeats):
    values, failed = {}, {}
    for repeat in range(repeats):
        print(f"repeat {repeat + 1} of {repeats}; others use {strangers_load():.0f} % of the "
              "machine", file=sys.stderr, flush=True)
        for name in carriers:
            try:
                for size, pair in runs.measure(name).items():
                    values.setdefault(name, {}).setdefault(size, []).append(pair)
            except Exception as why:  # pylint: disable=broad-except
                failed[name] = str(why)
    return values, failed


def median(values, name, size, column):
    pairs = values.get(name, {}).get(size)
    return statistics.median(pair[column] for pair in pairs) if pairs else None


def show(values, failed):
    for column, title, scale in ((0, "half round trip, us", 1), (1, "one way, MB/s", 1e-6)):
        print(f"\n| {title} | " + " | ".join(str(size) for size in SIZES) + " |")
        print("| --- " * (len(SIZES) + 1) + "|")
        for name in values:
            medians = [median(values, name, size, column) for size in SIZES]
            words = ["-" if value is None else f"{value * scale:.4g}" for value in medians]
            print(f"| {name} | " + " | ".join(words) + " |")
    print("\n| ratio | size | goal | measured |\n| --- | --- | --- | --- |")
    for size, column, figure, control, bound, at_most in GOALS:
        pair = [median(values, name, size, column) for name in (figure, control)]
        ratio = "-" if None in pair else f"{pair[0] / pair[1]:.2f}"
        what = "half round trip" if column == 0 else "bytes a second"
        print(f"| {what}, {figure} : {control} | {size} | {'<=' if at_most else '>='} {bound} | "
              f"{ratio} |")
    for name, why in failed.items():
        print(f"\nfailed: {name}: {why}")


def main():
    chosen = options()
    carriers = [name for name in CARRIERS
                if chosen.only is None or any(text in name for text in chosen.only)]
    with contextlib.ExitStack() as stack:
        try:
            runs = Runs(chosen.build, chosen.seconds, stack)
        except Skipped as why:
            print(f"skipped: {why}")
            return 77
        print(model())
        values, failed = collect(runs, carriers, chosen.repeats)
    show(values, failed)
    if chosen.out:
        with open(chosen.out, "w", encoding="utf-8") as file:
            json.dump(values, file)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
