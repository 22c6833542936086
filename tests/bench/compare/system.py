# SPDX-License-Identifier: BSD-3-Clause
"""Processes, namespaces and the machine, for figures that are to be compared."""

import argparse
import contextlib
import difflib
import os
import re
import shutil
import subprocess
import tempfile
import time


class Skipped(Exception):
    """Raised if this machine cannot run a measurement; the text says why."""


class Parser(argparse.ArgumentParser):
    """Takes no beginning of an option for it, and says which one a wrong one may have been."""

    def __init__(self, **about):
        super().__init__(allow_abbrev=False, **about)

    def error(self, message):
        wrong = re.match("unrecognized arguments: ([^ =]+)", message)
        options = [option for action in self._actions for option in action.option_strings]
        similar = difflib.get_close_matches(wrong.group(1), options, 1) if wrong else []
        super().error(message + (f"; did you mean {similar[0]}?" if similar else ""))


def repeats(text):
    """An option's value: how often."""
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"a whole number from 1 on, not {text}")
    return int(text)


def seconds(text):
    """An option's value: how long one measurement takes."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0.01 <= value <= 3600:
        raise argparse.ArgumentTypeError(f"0.01 to 3600 seconds, not {text}")
    return value


def build(text):
    """An option's value: a build folder."""
    if not os.path.isdir(os.path.join(text, "bin")):
        raise argparse.ArgumentTypeError(f"{text} has no programs: {os.path.join(text, 'bin')} is missing")
    return text


def program(name, package):
    """Raises Skipped if the program of a Debian package is not installed."""
    if shutil.which(name) is None:
        raise Skipped(f"{name} is missing: apt-get install --no-install-recommends {package}")
    return name


def pinned(cpu, command):
    return ["taskset", "-c", str(cpu)] + list(command)


def output_of(command, timeout=120, env=None):
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, env=env)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {(done.stderr or done.stdout).strip()[-300:]}")
    return done.stdout


@contextlib.contextmanager
def background(command, ready=None, env=None, patience=20):
    """A process in the background. With `ready`, waits until the process has printed that."""
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=env)
        try:
            await_word(process, log, ready, patience)
            yield process
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def said_in(log):
    """What the program has written. It shares the position in the file, which stays where it is."""
    return os.pread(log.fileno(), 1 << 20, 0).decode(errors="replace")


def await_word(process, log, word, patience):
    """Waits a moment for programs that do not say when they are ready."""
    if word is None:
        time.sleep(0.5)
        return
    until = time.monotonic() + patience
    while time.monotonic() < until:
        if word in said_in(log):
            return
        if process.poll() is not None:
            break
        time.sleep(0.02)
    raise RuntimeError(f"{' '.join(process.args)} does not start: {said_in(log).strip()[-300:]}")


class Wire:
    """Two network namespaces joined by a veth pair, interfaces stp0 at 10.9.0.1 and 10.9.0.2; or
    by a bridge that drops `loss` per cent, also if that is 0: the rule that drops costs time for each
    frame. They end with it."""

    addresses = ("10.9.0.1", "10.9.0.2")

    def __init__(self, mtu=9000, loss=None):
        if os.geteuid() != 0:
            raise Skipped("a wire between namespaces needs root, or `unshare -rn`")
        self.mtu, self.loss = mtu, loss
        self.stack = contextlib.ExitStack()
        self.sides = []
        self.offloads = True  # as the kernel makes a veth pair

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            holders = [self.namespace(stack) for _ in range(2 if self.loss is None else 3)]
            self.sides = holders[:2]
            if self.loss is not None:
                self.join_by_bridge(holders[2])
            else:
                self.run(0, "ip", "link", "add", "stp0", "type", "veth", "peer", "name", "stp0",
                         "netns", str(self.sides[1]))
            for side, address in enumerate(self.addresses):
                self.run(side, "ip", "link", "set", "stp0", "mtu", str(self.mtu))
                self.run(side, "ip", "address", "add", address + "/24", "dev", "stp0")
                self.run(side, "sysctl", "-qw", "net.ipv6.conf.stp0.disable_ipv6=1")
                self.run(side, "ip", "link", "set", "stp0", "up")
            self.stack = stack.pop_all()
        return self

    def __exit__(self, *failure):
        self.stack.close()

    @staticmethod
    def namespace(stack):
        holder = stack.enter_context(background(["unshare", "-n", "sleep", "86400"]))
        output_of(["nsenter", "-t", str(holder.pid), "-n", "ip", "link", "set", "lo", "up"])
        return holder.pid

    def join_by_bridge(self, bridge):
        within = ["nsenter", "-t", str(bridge), "-n"]
        output_of(within + ["ip", "link", "add", "bridge0", "mtu", str(self.mtu), "type", "bridge"])
        for side in (0, 1):
            port, table = f"port{side}", f"loss{side}"
            self.run(side, "ip", "link", "add", "stp0", "type", "veth", "peer", "name", port,
                     "netns", str(bridge))
            for change in (["mtu", str(self.mtu)], ["master", "bridge0"], ["up"]):
                output_of(within + ["ip", "link", "set", port] + change)
            chain = "{ type filter hook ingress device " + port + " priority 0; }"
            rule = f"numgen random mod 100 < {self.loss} counter drop"
            output_of(within + ["nft", f"add table netdev {table}; add chain netdev {table} drops "
                                f"{chain}; add rule netdev {table} drops {rule}"])
        output_of(within + ["ip", "link", "set", "bridge0", "up"])

    def within(self, side):
        return ["nsenter", "-t", str(self.sides[side]), "-n"]

    def run(self, side, *command):
        return output_of(self.within(side) + list(command))

    def offload(self, on):
        if on == self.offloads:
            return
        program("ethtool", "ethtool")
        self.offloads = on
        for side in (0, 1):
            # Without gro: with it a veth pair has a NAPI, which the kernel makes none with.
            self.run(side, "ethtool", "-K", "stp0", *sum(
                ([feature, "on" if on else "off"] for feature in ("tso", "gso")), []))


def cpu_times():
    """Ticks of all CPUs so far: busy ones, all."""
    with open("/proc/stat", encoding="ascii") as stat:
        ticks = [int(word) for word in stat.readline().split()[1:]]
    idle = ticks[3] + ticks[4]
    return sum(ticks) - idle, sum(ticks)


def strangers_load(seconds=1):
    """The share of all CPUs, in per cent, that others use while no program of ours runs."""
    busy, total = cpu_times()
    time.sleep(seconds)
    later_busy, later_total = cpu_times()
    return 100 * (later_busy - busy) / max(later_total - total, 1)


def model():
    with open("/proc/cpuinfo", encoding="utf-8") as lines:
        for line in lines:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return "unknown"
