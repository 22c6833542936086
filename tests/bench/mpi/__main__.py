# SPDX-License-Identifier: BSD-3-Clause
"""python3 tests/bench/mpi: Open MPI over Scheduled Transfers beside Open MPI over what else there
is, in turn and several times. Two ranks, of which each polls on a CPU of its own: on a veth pair,
on memif, on one host. Then Allreduce among four ranks, LAMMPS among two, and stp-perf's Write on
the same links. Prints medians, and their ratios beside what is asked of them, for near CPUs and for
far ones each, if their host has moved them meanwhile."""

import contextlib
import json
import os
import re
import statistics
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
sys.path.insert(0, os.path.join(ROOT, "tests", "bench", "compare"))

import places  # noqa: E402
from measurements import Bench, bandwidth, between_cpus  # noqa: E402
from system import (Parser, Skipped, Wire, background, build, model, output_of, program, repeats,  # noqa: E402
                    seconds, strangers_load)

SIZES = [8, 4096, 16384, 65536, 1 << 20]
OVER_OFI = ["--mca", "pml", "cm", "--mca", "mtl", "ofi", "--mca", "mtl_ofi_provider_include"]
OVER_BTL = {"btl-tcp": ["--mca", "pml", "ob1", "--mca", "btl", "tcp,self"],
            "btl-vader": ["--mca", "pml", "ob1", "--mca", "btl", "vader,self",
                          "--mca", "btl_vader_single_copy_mechanism", "none"]}
TCP = ["tcp;ofi_rxm/veth", "btl-tcp/veth"]

# What is measured: two ranks of ping.c, over a carrier at a place. At "udp" STP has a link udp: on
# the veth pair.
PINGS = ["stp/udp", "stp/veth", "stp;ofi_rxm/veth", "tcp;ofi_rxm/veth", "btl-tcp/veth",
         "udp;ofi_rxd/veth", "stp/memif", "stp;ofi_rxm/memif", "btl-vader/host"]
# Four ranks, two on each side; STP has a stpd on each.
REDUCTIONS = ["allreduce stp/udp", "allreduce stp/veth", "allreduce tcp;ofi_rxm/veth",
              "allreduce btl-tcp/veth"]
# Two ranks on one host; STP on one stpd.
LAMMPS = ["lammps stp/udp", "lammps stp/host", "lammps tcp;ofi_rxm/host"]
WRITES = ["write veth", "write memif"]
ALL = PINGS + REDUCTIONS + LAMMPS + WRITES

# What is asked of ratios: (column, size, figure, controls, bound, at most). The best control counts.
GOALS = [
    ("half", 8, "stp/udp", TCP, 0.85, True),
    ("half", 8, "stp/veth", TCP, 0.9, True),
    ("half", 16384, "stp/udp", TCP[:1], 0.7, True),
    ("half", 65536, "stp/udp", TCP[:1], 0.7, True),
    ("half", 1 << 20, "stp/udp", TCP[:1], 0.7, True),
    ("rate", 4096, "stp/udp", TCP, 1.2, False),
    ("rate", 65536, "stp/udp", TCP, 2.0, False),
    ("rate", 1 << 20, "stp/udp", TCP, 2.0, False),
    ("rate", 1 << 20, "stp/veth", ["write veth"], 0.9, False),
    ("rate", 1 << 20, "stp/memif", ["write memif"], 0.8, False),
    ("half", 8, "stp/memif", ["btl-vader/host"], 2.0, True),
    ("rate", 1 << 20, "stp/memif", ["btl-vader/host"], 0.7, False),
    ("half", 65536, "stp/veth", ["stp;ofi_rxm/veth"], 0.8, True),
    ("half", 65536, "stp/memif", ["stp;ofi_rxm/memif"], 0.8, True),
    ("allreduce", 8, "allreduce stp/udp", ["allreduce tcp;ofi_rxm/veth", "allreduce btl-tcp/veth"],
     0.9, True),
    ("seconds", 200, "lammps stp/host", ["lammps tcp;ofi_rxm/host"], 1.2, True),
    ("seconds", 200, "lammps stp/udp", ["lammps tcp;ofi_rxm/host"], 1.2, True),
]
COLUMNS = {"half": ("half round trip, us", 1), "rate": ("one way, MB/s", 1e-6),
           "allreduce": ("Allreduce of 4 ranks, us", 1), "seconds": ("LAMMPS, 200 steps, s", 1)}
MELT = "/usr/share/lammps/examples/melt/in.melt"


class Runs:
    """Ranks of MPI, and what they run, by the name of what carries them."""

    def __init__(self, chosen, stack):
        self.seconds, self.stack = chosen.seconds, stack
        self.work = stack.enter_context(tempfile.TemporaryDirectory())
        self.wire = stack.enter_context(Wire(mtu=chosen.mtu))
        self.bench = Bench(chosen.build, chosen.seconds)
        stack.enter_context(self.bench.stack)
        self.provider = os.path.realpath(os.path.join(chosen.build, "lib", "libfabric"))
        if not os.path.exists(os.path.join(self.provider, "libstp-fi.so")):
            raise Skipped(f"{self.provider}/libstp-fi.so is missing: is libfabric-dev installed?")
        program("mpirun", "openmpi-bin")
        self.ping = os.path.join(self.work, "ping")
        output_of([program("mpicc", "libopenmpi-dev"), "-O2", "-o", self.ping,
                   os.path.join(HERE, "ping.c")])
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
        """{(column, size): value}"""
        what, _, carried = name.rpartition(" ")
        if what == "write":
            return {("rate", 1 << 20): bandwidth(self.bench, carried)}
        carrier, place = carried.split("/")
        measure = {"": self.exchange, "allreduce": self.reduce, "lammps": self.simulate}[what]
        return measure(carrier, place)

    def exchange(self, carrier, place):
        sizes = [self.ping, str(self.seconds)] + [str(size) for size in SIZES]
        exported = self.exported(carrier) + [self.pin]
        if place == "host":
            words = ["-n", "2"] + exported + sizes
        elif place == "memif":
            words = self.rank_on_memif("server", 2) + exported + sizes + [":"]
            words += self.rank_on_memif("client", 1) + exported + sizes
        else:
            words = ["--host", "10.9.0.1:1,10.9.0.2:1", "-x",
                     "STP_LINK=" + self.link(place)] + exported + sizes
        output = self.run(carrier, place in ("veth", "udp"), words)
        result = {}
        for size, half, rate in (line.split() for line in output.splitlines()
                                 if len(line.split()) == 3):
            result["half", int(size)], result["rate", int(size)] = float(half), float(rate)
        if len(result) != 2 * len(SIZES):
            raise RuntimeError(output[-300:])
        return result

    def reduce(self, carrier, place):
        """Each poll gives its CPU away: there may be fewer CPUs than ranks and stpds."""
        words = ["--mca", "mpi_yield_when_idle", "1"]
        with contextlib.ExitStack() as daemons:
            for side in (0, 1):
                socket = os.path.join(self.work, f"{side}.sock")
                words += [":"] * side + ["--host", f"{self.wire.addresses[side]}:2", "-n", "2"]
                if carrier == "stp":
                    daemons.enter_context(self.daemon(self.wire.within(side), self.link(place),
                                                      socket))
                    words += ["-x", "STP_LINK=stpd:" + socket]
                words += self.exported(carrier) + [self.ping, str(self.seconds), "allreduce"]
            output = self.run(carrier, True, words)
        return {("allreduce", 8): float(re.search(r"^allreduce ([\d.]+)$", output, re.M)[1])}

    def simulate(self, carrier, place):
        """The loop of LAMMPS' example of 4,000 atoms that melt."""
        program("lmp", "lammps")
        if not os.path.exists(MELT):
            raise Skipped(f"{MELT} is missing: apt-get install lammps-examples")
        with open(MELT, encoding="utf-8") as file:
            melt = self.script("melt", re.sub(r"^run\s.*", "run 200", file.read(), flags=re.M))
        words = ["-n", "2"]
        with contextlib.ExitStack() as daemons:
            if carrier == "stp":
                socket = os.path.join(self.work, "one.sock")
                link = "loop" if place == "host" else self.link(place)
                daemons.enter_context(self.daemon(self.wire.within(0), link, socket,
                                                  "--address", "10.9.0.1/24"))
                words += ["-x", "STP_LINK=stpd:" + socket]
            words += self.exported(carrier) + ["lmp", "-in", melt, "-log", "none"]
            output = self.run(carrier, False, words)
        return {("seconds", 200): float(re.search(r"Loop time of ([\d.]+)", output)[1])}

    def daemon(self, prefix, link, socket, *words):
        command = self.bench.tool("stpd") + ["--link", link, "--socket", socket]
        return background(prefix + command + list(words if link == "loop" else ()), ready="stpd: ready")

    def run(self, carrier, on_both, words):
        """The output of mpirun, for ranks on both sides of the wire, or in the first namespace."""
        command = ["mpirun", "--oversubscribe", "--bind-to", "none"]
        command += OVER_BTL.get(carrier, OVER_OFI + [carrier])
        if carrier == "btl-tcp":
            command += ["--mca", "btl_tcp_if_include", "10.9.0.0/24"]
        if on_both:
            command += ["--mca", "plm", "rsh", "--mca", "plm_rsh_agent", self.agent,
                        "--mca", "plm_rsh_no_tree_spawn", "1",
                        "--mca", "oob_tcp_if_include", "10.9.0.0/24"]
        environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", IPATH_NO_BACKTRACE="1",
                           OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", FI_PROVIDER_PATH=self.provider,
                           OMP_NUM_THREADS="1")
        line = " ".join("'" + word + "'" for word in command + words)
        begin = self.script("begin", f"exec {self.on_host(0)} {line}")
        return output_of(["unshare", "--pid", "--fork", "--kill-child", begin],
                         timeout=60 + 4 * self.seconds * len(SIZES), env=environment)

    @staticmethod
    def link(place):
        return "udp:stp0" if place == "udp" else "iface:stp0"

    @staticmethod
    def exported(carrier):
        words = ["-x", "FI_PROVIDER_PATH", "-x", "IPATH_NO_BACKTRACE", "-x", "OMP_NUM_THREADS",
                 "-x", "FI_TCP_IFACE=stp0", "-x", "FI_UDP_IFACE=stp0"]
        # libfabric lists stp;ofi_rxm before stp.
        return words + (["-x", "FI_PROVIDER=^ofi_rxm"] if carrier == "stp" else [])

    def rank_on_memif(self, role, number):
        link = (f"memif:{self.work}/m.sock,mtu=9000,role={role},mac=02:00:00:00:09:0{number},"
                f"address=10.10.0.{number}/24")
        return ["-n", "1", "-x", f"STP_LINK={link}"]


def options():
    parser = Parser(prog="tests/bench/mpi", description=__doc__)
    parser.add_argument("--build", type=build, default=os.path.join(ROOT, "build"))
    parser.add_argument("--repeats", type=repeats, default=7, help="of everything, in turn [7]")
    parser.add_argument("--seconds", type=seconds, default=0.5, help="for each figure [0.5]")
    parser.add_argument("--mtu", type=int, default=9000, help="of the veth pair [9000]")
    parser.add_argument("--only", nargs="+", metavar="PATTERN",
                        help="those whose names match one of these regular expressions")
    parser.add_argument("--list", action="store_true", help="the names")
    parser.add_argument("--out", metavar="FILE", help="all values, as JSON")
    return parser.parse_args()


def collect(runs, names, repeats):
    """({name: {(column, size): values}}, how near the CPUs were as {name: pairs}, {name: why it failed})"""
    values, looks, failed = {}, {}, {}
    for repeat in range(repeats):
        print(f"repeat {repeat + 1} of {repeats}; others use {strangers_load():.0f} % of the "
              "machine", file=sys.stderr, flush=True)
        for name in names:
            try:
                before = between_cpus(runs.bench)
                for key, value in runs.measure(name).items():
                    values.setdefault(name, {}).setdefault(key, []).append(value)
                looks.setdefault(name, []).append((before, between_cpus(runs.bench)))
            except Exception as why:  # pylint: disable=broad-except
                failed[name] = str(why)
    return values, looks, failed


def of_places(values, looks):
    """[(where the CPUs were, the values of there)]"""
    flat = {(name, key): each for name, found in values.items() for key, each in found.items()}
    for place, part in places.split(flat, {figure: looks[figure[0]] for figure in flat}):
        found = {}
        for (name, key), each in part.items():
            found.setdefault(name, {})[key] = each
        yield place, found


def median(values, name, *key):
    found = values.get(name, {}).get(key)
    return statistics.median(found) if found else None


def show(place, values):
    if place:
        print(f"\n{place}:")
    for column, (title, scale) in COLUMNS.items():
        sizes = sorted({size for found in values.values() for of, size in found if of == column})
        if not sizes:
            continue
        print(f"\n| {title} | " + " | ".join(str(size) for size in sizes) + " |")
        print("| --- " * (len(sizes) + 1) + "|")
        for name, found in values.items():
            medians = [median(values, name, column, size) for size in sizes]
            words = ["-" if value is None else f"{value * scale:.4g}" for value in medians]
            if any(of == column for of, _ in found):
                print(f"| {name} | " + " | ".join(words) + " |")
    print("\n| ratio | size | goal | measured |\n| --- | --- | --- | --- |")
    for column, size, figure, controls, bound, at_most in GOALS:
        ours = median(values, figure, column, size)
        others = [median(values, name, column, size) for name in controls]
        ratio = "-"
        if ours is not None and None not in others:
            ratio = f"{ours / (min if at_most else max)(others):.2f}"
        print(f"| {COLUMNS[column][0]}, {figure} : {' or '.join(controls)} | {size} | "
              f"{'<=' if at_most else '>='} {bound} | {ratio} |")


def show_failed(failed):
    for name, why in failed.items():
        print(f"\nfailed: {name}: {why}")


def main():
    chosen = options()
    names = [name for name in ALL
             if chosen.only is None or re.search("|".join(chosen.only), name)]
    if chosen.list:
        print("\n".join(names))
        return 0
    with contextlib.ExitStack() as stack:
        try:
            runs = Runs(chosen, stack)
        except Skipped as why:
            print(f"skipped: {why}")
            return 77
        print(model())
        values, looks, failed = collect(runs, names, chosen.repeats)
    for place, found in of_places(values, looks):
        show(place, found)
    show_failed(failed)
    if chosen.out:
        with open(chosen.out, "w", encoding="utf-8") as file:
            json.dump({name: {f"{column} {size}": each for (column, size), each in found.items()}
                       for name, found in values.items()}, file)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
