# SPDX-License-Identifier: BSD-3-Clause
"""Conversations: registered by name with the rules that they are about, run several at a time."""
import errno
import itertools
import queue
import sys
import threading
import time
import traceback

import wire
from counterpart import Counterpart, Refused
from station import Failed, Interface, Station
from vc import Vc

REGISTERED = {}  # group: [conversation]
RX_BUFX = TX_BUFX = 0x100
_numbers = itertools.count(1)


def conversation(group, *rules, **wants):
    """A conversation of `group`: a function of a Talk. `wants`: slow=SECONDS for one that mostly waits,
    long=SECONDS for one that is left out unless STP_LONG is set."""
    def register(function):
        function.rules, function.wants = rules, wants
        function.title = function.__name__.strip("_").replace("_", "-")
        of_group = REGISTERED.setdefault(group, [])
        assert function.title not in [other.title for other in of_group], function.title
        of_group.append(function)
        return function
    return register


class Told(wire.Frame):
    """A header that the program at the other side has received."""

    def __init__(self, text):  # pylint: disable=super-init-not-called
        words = text.split()
        bits = int(words[0])
        self.op, self.bits = wire.CODES[bits >> 11], bits & 0x7FF
        for name, value in zip(("param", "mx", "bufx", "offset", "sync", "b_num", "d_id", "s_id"), words[1:]):
            setattr(self, name, int(value))
        self.payload = b"" if words[9] == "-" else bytes.fromhex(words[9])


def pattern(length, seed=0):
    return bytes((i * 7 + i // 251 + seed * 13 + 1) & 0xFF for i in range(length))


class Talk:
    """The context of a conversation: a station of its own, and a session of the program at the other side."""

    def __init__(self, runner, title):
        self.number = next(_numbers)
        self.runner, self.title = runner, title
        self.station = self.new_station(0)
        self.uport = 20000 + self.number
        self.sides, self.side = [], None
        self.side = self.new_side()
        self.mx = None
        self.vcs = []

    def new_station(self, extra):
        mac = bytes([2, 0x50, extra, 0, self.number >> 8, self.number & 255])
        return Station(self.runner.interface, mac, self.runner.other)

    def new_side(self):
        self.sides.append(self.runner.counterpart.session(f"{self.title[:20]}-{self.number}-{len(self.sides)}"))
        return self.sides[-1]

    def vc(self, station=None, **sizes):
        self.vcs.append(Vc(station or self.station, **sizes))
        return self.vcs[-1]

    def settle(self):
        """Waits until the other side has handled everything sent so far: it answers an RD to a Port that does
        not exist (5.12). Behind its address there may be a Node for each Port modulo 4."""
        askers = [self.vc() for _ in range(4)]
        for number, vc in enumerate(askers):
            vc.peer_port, vc.peer_key = 65000 + number, 0x5E771E
            vc.send("RD")
        for vc in askers:
            vc.expect("DA")
            vc.gone()

    # --- the other side's program ------------------------------------------------------------------
    def open(self, name="-", **options):
        self.mx = int(self.side.do("open", name, *(f"{k}={v}" for k, v in options.items())))
        return self.mx

    def listen(self, **options):
        self.open(f":{self.uport}", **options)
        self.side.do("listen")

    def up(self, sizes=None, rc=None, **options):
        """A VC that this side initiates."""
        self.listen(**options)
        vc = self.vc(**(sizes or {}))
        vc.connect(self.uport, **(rc or {}))
        self.side.do("accept", 10000)
        return vc

    def listener(self, **sizes):
        vc = self.vc(**sizes)
        self.station.listeners[self.uport] = vc
        return vc

    def name(self):
        return "[" + ":".join(f"{byte:02x}" for byte in self.station.mac) + f"]:{self.uport}"

    def dialed(self, sizes=None, ca=None, **options):
        """A VC that the other side initiates."""
        vc = self.listener(**(sizes or {}))
        self.open(**options)
        self.side.begin("connect", self.name())
        vc.accept(vc.expect("RC"), **(ca or {}))
        self.side.answer()
        return vc

    def rx(self, op=None, flags=None, timeout=10000, **fields):
        text = self.side.do("rx", timeout)
        if text == "none":
            raise Failed(f"the program is told of no {op}")
        told = Told(text)
        wrong = Vc.differs(told, op or told.op, flags, fields)
        if wrong:
            raise Failed(f"the program is told of {told}: {wrong}")
        return told

    def rx_none(self):
        text = self.side.do("rx", 0)
        if text != "none":
            raise Failed(f"the program is told of {Told(text)}")

    def tx(self, op, *flags, length=0, bufx=TX_BUFX, offset=0, payload=b"", **fields):
        self.side.do(*self._tx(op, flags, length, bufx, offset, payload, fields))

    def tx_refused(self, op, *flags, length=0, bufx=TX_BUFX, offset=0, payload=b"", **fields):
        return self.side.refused(*self._tx(op, flags, length, bufx, offset, payload, fields))

    def tx_dropped(self, vc, op, *flags, length=0, bufx=TX_BUFX, offset=0, payload=b"", **fields):
        """A request that is not sent: the call itself returns the error, or an st_flush after it. A CTS that the
        Node holds back (10.8), because other conversations have grants, is refused when its turn comes."""
        told = "no error"
        try:
            self.side.do(*self._tx(op, flags, length, bufx, offset, payload, fields))
        except Refused:
            return vc.quiet()
        for _ in range(1000):
            try:
                self.side.do("flush")
            except Refused as refusal:
                if refusal.number == -errno.EIO:
                    return vc.quiet()
                told = refusal
                break
            time.sleep(0.01)
        raise Failed(f"{op} {fields} is not refused: {told}")

    @staticmethod
    def _tx(op, flags, length, bufx, offset, payload, fields):
        head = wire.header(op, flags, **fields)
        words = [int.from_bytes(head[a:b], "big") for a, b in ((0, 2), (2, 4), (14, 16), (16, 20), (20, 24),
                                                               (24, 28), (28, 32), (32, 36), (36, 40))]
        return ("tx", *words, length, bufx, offset, *([payload.hex()] if payload else []))

    def memory(self, at, length):
        return bytes.fromhex(self.side.do("read", at, length))

    def same(self, at, data, what="memory"):
        got = self.memory(at, len(data))
        if got != data:
            first = next(i for i in range(len(data)) if got[i] != data[i])
            raise Failed(f"{what} differs from byte {at + first} on: {got[first:first + 16].hex()}, "
                         f"not {data[first:first + 16].hex()}")

    def untouched(self, at, length):
        self.same(at, bytes(length), "memory that nothing may write to")

    def fill(self, data, at=0):
        self.side.do("fill", at, data.hex())

    # --- Writes to the other side ----------------------------------------------------------------
    def cts(self, vc, length, *, i_id=7, r_id=9, blocksize=16, offset=0, bufx=RX_BUFX, b_num=0, rts=True,
            skip=(), **changed):
        """An RTS, and the program's CTS for it."""
        if rts:
            vc.send("RTS", CTS_req=1, Max_Block=16, T_len=length, RTR_id=wire.NONE, I_id=i_id)
            self.rx("RTS", T_len=length, I_id=i_id)
        self.tx("CTS", **{**dict(Blocksize=blocksize, R_Mx=self.mx, R_Bufx=bufx, R_Offset=offset, B_num=b_num,
                                 I_id=i_id, R_id=r_id), **changed})
        return vc.expect("CTS", I_id=i_id, R_id=r_id, B_num=b_num, skip=skip)

    def region(self, vc, length=8192, window=4, *, i_id=7, r_id=9, offset=0):
        vc.send("RMR", B_win=window, T_len=length, I_id=i_id)
        self.rx("RMR", T_len=length, I_id=i_id)
        self.tx("MRA", B_win=window, R_Mx=self.mx, R_Bufx=RX_BUFX, R_Offset=offset, T_len=length, I_id=i_id,
                R_id=r_id)
        return vc.expect("MRA", I_id=i_id, R_id=r_id)

    def end(self):
        for side in self.sides:
            side.end()
        self.station.gone()
        if self.station.faults:
            raise Failed("; ".join(self.station.faults[:3]))
        for vc in self.vcs:
            if vc.fault:
                raise vc.fault


class Runner:
    def __init__(self, interface, other, command):
        self.interface, self.other = Interface(interface), other
        self.counterpart = Counterpart(command)
        self.lock = threading.Lock()
        self.failed, self.times = [], []

    def run_one(self, function):
        begin = time.monotonic()
        talk, trouble = None, None
        try:
            talk = Talk(self, function.title)
            function(talk)
        except Exception as error:  # pylint: disable=broad-except
            trouble = self.explain(error)
        if talk is not None:
            history = talk.station.history()
            try:
                talk.end()
            except Exception as error:  # pylint: disable=broad-except
                trouble = trouble or self.explain(error)
                history = talk.station.history()
        took = time.monotonic() - begin
        with self.lock:
            self.times.append((took, function.title))
            if trouble:
                self.failed.append(function.title)
                print(f"FAILED {function.title} ({', '.join(function.rules)}) after {took:.1f} s\n"
                      f"    {trouble}\n{history if talk else ''}")
            else:
                print(f"ok     {function.title} ({', '.join(function.rules)}) {1000 * took:.0f} ms")
            sys.stdout.flush()

    @staticmethod
    def explain(error):
        at = traceback.extract_tb(error.__traceback__)
        lines = [f"{frame.filename.rsplit('/', 1)[-1]}:{frame.lineno}" for frame in at]
        return f"{type(error).__name__}: {error}\n    at {' '.join(lines)}"

    def run(self, functions, at_once):
        waiting = queue.SimpleQueue()
        # Those that wait for long begin first.
        for function in sorted(functions, key=lambda f: -max(f.wants.values(), default=0)):
            waiting.put(function)

        def work():
            while True:
                try:
                    function = waiting.get_nowait()
                except queue.Empty:
                    return
                self.run_one(function)
        threads = [threading.Thread(target=work) for _ in range(at_once)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
