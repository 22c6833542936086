# SPDX-License-Identifier: BSD-3-Clause
"""What the tests of the package share: two ends on the link "loop", within this process."""
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest

import stp

PATIENCE = 60  # seconds, for what takes milliseconds on an idle machine


class Thread(threading.Thread):
    """Keeps what its function returns or raises."""

    def __init__(self, call, *arguments):
        super().__init__(daemon=True)
        self._call, self._arguments = call, arguments
        self._result = self._error = None
        self.start()

    def run(self):
        try:
            self._result = self._call(*self._arguments)
        except BaseException as error:  # also KeyboardInterrupt
            self._error = error

    def result(self):
        self.join(PATIENCE)
        if self.is_alive():
            raise AssertionError("the thread does not end")
        if self._error is not None:
            raise self._error
        return self._result


class PairCase(unittest.TestCase):
    """`self.a` and `self.b` are the ends of one connection of `self.domain`."""

    def setUp(self):
        self.domain = stp.Domain("loop")
        self.addCleanup(self.domain.close)
        self.a, self.b = self.pair()

    def pair(self):
        with self.domain.listen(":3000") as listener:
            accepted = Thread(listener.accept)
            a = self.domain.connect(":3000", timeout=PATIENCE)
            b = accepted.result()
        self.addCleanup(a.abort)
        self.addCleanup(b.abort)
        return a, b


def port_without_a_link():
    """A peer of links over UDP whose host refuses what is sent there."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        return f"127.0.0.1/{taken.getsockname()[1]}:3000"


def eventually(condition):
    until = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > until:
            raise AssertionError("it does not come true")
        time.sleep(0.002)


def interrupted(call, *arguments):
    """Calls it, and lets SIGINT come when this thread sleeps in it. The seconds from the signal to
    KeyboardInterrupt, without those in which this thread waited for a processor."""
    sent = []
    me = f"/proc/self/task/{threading.get_native_id()}"

    def sleeps():
        with open(f"{me}/stat") as state:
            return state.read().rpartition(")")[2].split()[0] == "S"

    def seconds():
        """Time that did not pass in a run queue."""
        with open(f"{me}/schedstat") as waits:
            return time.monotonic() - int(waits.read().split()[1]) / 1e9

    def interrupt():
        time.sleep(0.05)
        eventually(sleeps)
        sent.append(seconds())
        os.kill(os.getpid(), signal.SIGINT)

    Thread(interrupt)
    try:
        call(*arguments)
    except KeyboardInterrupt:
        return seconds() - sent[0]
    raise AssertionError("it was not interrupted")


def program(text, **options):
    """Runs a program of its own: (exit status, what it printed and complained of)."""
    ended = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", text],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=PATIENCE,
        text=True,
        check=False,
        **options,
    )
    return ended.returncode, ended.stdout
