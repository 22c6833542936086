# SPDX-License-Identifier: BSD-3-Clause
"""An Ethernet interface, the stations on it, and faults of the wire."""
import collections
import heapq
import itertools
import random
import socket
import struct
import threading
import time

import wire

ETH_P_ALL = 3
SOL_PACKET, PACKET_ADD_MEMBERSHIP, PACKET_MR_PROMISC, PACKET_OUTGOING = 263, 1, 1, 4
SO_TIMESTAMPNS = 35


class Failed(Exception):
    """The other side has broken a rule."""


class Wire:
    """Loses, duplicates and delays frames of one connection in both directions, as the seed says. From its fifth
    try on, a question (RS) of the Node is not lost, nor is its answer: a VC fails whose RS stays unanswered, one for
    keep-alive after five tries (5.22, 5.23)."""

    SPARED_FROM = 5

    def __init__(self, seed=0, loss=0.0, double=0.0, late=0.0, span=0.002):
        self.random = random.Random(seed)
        self.loss, self.double, self.late, self.span = loss, double, late, span
        self.drops = []  # [way, condition, how often]
        self.tries = collections.Counter()  # of each RS that came, by its Sync

    def drop(self, way, condition, count=1):
        """`way`: "in" or "out". The next `count` frames that satisfy the condition are lost."""
        self.drops.append([way, condition, count])

    def pauses(self, way, frame):
        """The delay of each copy of the frame; no copy if it is lost."""
        for entry in self.drops:
            if entry[0] == way and entry[2] > 0 and entry[1](frame):
                entry[2] -= 1
                return []
        if way == "in" and frame.op == "RS":
            self.tries[frame.Sync] += 1
        if self.random.random() < self.loss and not self._spares(frame):
            return []
        copies = 2 if self.random.random() < self.double else 1
        return [self.random.random() * self.span if self.random.random() < self.late else 0.0
                for _ in range(copies)]

    def _spares(self, frame):
        return frame is not None and frame.op in ("RS", "RSR") and self.tries[frame.Sync] >= self.SPARED_FROM


class Inbox:
    """Frames in the order of their arrival, for the thread of one conversation."""

    def __init__(self):
        self.frames = collections.deque()
        self.changed = threading.Condition()

    def put(self, frame):
        with self.changed:
            self.frames.append(frame)
            self.changed.notify_all()

    def take(self, timeout):
        """The next frame; None after `timeout` seconds."""
        until = time.monotonic() + timeout
        with self.changed:
            while not self.frames:
                left = until - time.monotonic()
                if left <= 0:
                    return None
                self.changed.wait(left)
            return self.frames.popleft()

    def waiting(self):
        """The frames that were not taken yet. Any thread may ask."""
        with self.changed:
            return list(self.frames)

    def __len__(self):
        return len(self.frames)


class Interface:
    """A raw socket on an interface. Its thread passes each frame to the station that it is for."""

    def __init__(self, name):
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        self.socket.bind((name, 0))
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
        self.socket.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        index = socket.if_nametoindex(name)
        self.socket.setsockopt(SOL_PACKET, PACKET_ADD_MEMBERSHIP,
                               struct.pack("iHH8s", index, PACKET_MR_PROMISC, 0, b""))
        self.stations = {}
        self.later, self.serial = [], itertools.count()
        self.lock = threading.Lock()
        self.running = True
        self.broken = []  # stations that a frame was for whose handling failed
        threading.Thread(target=self._receive, daemon=True).start()
        self.woken = threading.Condition(self.lock)
        threading.Thread(target=self._delay, daemon=True).start()

    def _receive(self):
        while self.running:
            raw, extra, _, address = self.socket.recvmsg(70000, 64)
            if address[2] == PACKET_OUTGOING or len(raw) < 54:
                continue
            station = self.stations.get(raw[0:6])
            if station is None:
                continue
            frame = wire.Frame(raw)
            frame.time = self._time(extra)
            if frame.stp:
                station.arrived(frame)

    @staticmethod
    def _time(extra):
        """When the kernel received the frame, in seconds: this process may have had no core since."""
        for level, kind, data in extra:
            if level == socket.SOL_SOCKET and kind == SO_TIMESTAMPNS:
                seconds, nanoseconds = struct.unpack("qq", data[:16])
                return seconds + nanoseconds / 1e9
        return time.time()

    def send(self, raw, pause=0.0):
        if pause <= 0:
            self.socket.send(raw)
            return
        self.after(pause, lambda: self.socket.send(raw))

    def after(self, pause, call):
        with self.woken:
            heapq.heappush(self.later, (time.monotonic() + pause, next(self.serial), call))
            self.woken.notify()

    def _delay(self):
        while self.running:
            with self.woken:
                while not self.later or self.later[0][0] > time.monotonic():
                    self.woken.wait(self.later[0][0] - time.monotonic() if self.later else None)
                call = heapq.heappop(self.later)[2]
            call()


class Station:
    """A MAC address with Ports. Frames to other Ports go to `strays`."""

    def __init__(self, interface, mac, other):
        self.interface, self.mac, self.other = interface, mac, other
        self.ports, self.listeners = {}, {}
        self.strays = Inbox()
        self.faults = []  # form of what came
        self.max_stu = 10
        self.log = collections.deque(maxlen=400)
        interface.stations[mac] = self

    def gone(self):
        self.interface.stations.pop(self.mac, None)

    def arrived(self, frame):
        self.log.append((time.monotonic(), "<", frame))
        fault = frame.wrong(self.max_stu)
        if fault:
            self.faults.append(f"{fault}: {frame}")
        port = self.ports.get(frame.d_port) if frame.op != "RC" else self.listeners.get(frame.R_UPort)
        if port is None:
            self.strays.put(frame)
        else:
            port.arrived(frame)

    def transmit(self, op, flags=(), payload=b"", append=b"", *, src=None, dst=None, snap=None, vlan=None,
                 pad=True, checksum=False, cksum=None, cut=0, tail=b"", at=None, **fields):
        """Sends a frame. `at`: the wire that it passes; `cut`: the number of bytes cut off."""
        head = wire.header(op, flags, **fields)
        body = payload + append
        if checksum or cksum is not None:
            value = wire.ones_complement(head + body) if cksum is None else cksum
            head = head[:12] + value.to_bytes(2, "big") + head[14:]
        if snap is None:
            snap = op == "DATA" and len(body) < 6
        raw = wire.ethernet(dst or self.other, src or self.mac, head + body, snap, vlan, pad) + tail
        if cut:
            raw = raw[:-cut]
        frame = wire.Frame(raw) if len(raw) >= 54 else None
        self.log.append((time.monotonic(), ">", frame if frame is not None and frame.stp else raw.hex()))
        for pause in at.pauses("out", frame) if at else (0.0,):
            self.interface.send(raw, pause)

    def history(self, last=30):
        if not self.log:
            return "(no frames)"
        begin = self.log[0][0]
        return "\n".join(f"      {1000 * (t - begin):9.3f} {way} {frame}" for t, way, frame in list(self.log)[-last:])
