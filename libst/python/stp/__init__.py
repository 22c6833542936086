# SPDX-License-Identifier: BSD-3-Clause
"""Scheduled Transfers from Python: messages, and memory that peers read and write.

    import stp

    with stp.Domain("udp:") as domain:                    # the link; None: what STP_LINK says
        with domain.connect("10.0.0.5:3000") as peer:
            peer.send(b"a question")
            print(peer.receive())

and at 10.0.0.5:

    with stp.Domain("udp:") as domain, domain.listen(":3000") as listener:
        with listener.accept() as peer:
            for message in peer:                          # until the peer disconnects
                peer.send(message)

Objects: a Domain is a link with all that lives on it; a Listener accepts Connections; a Region is
memory that peers may access by its `remote`.

Times are seconds, None for ever. Calls that wait let other threads run, and any thread may make any
call; KeyboardInterrupt ends them. Failures are exceptions below stp.Error, an OSError: `errno`, what
failed and why (`strerror`), and what to do (`remedy`). In a child of fork() whose parent has
opened a domain nothing of stp works: fork first, or start a new interpreter.

The module stp.aio has the same for asyncio. docs/python.md describes both.
"""
import atexit
import concurrent.futures.thread  # noqa: F401  (before _at_the_end: see there)
import os
import threading
from types import TracebackType
from typing import Any, Callable, Iterator, Optional, Tuple, Type

from . import _base, _errors, _stp
from ._base import DomainInfo, LinkInfo, Region, Remote
from ._errors import (
    AccessDenied,
    AddressInUse,
    Busy,
    Canceled,
    Closed,
    ConnectionRefused,
    Error,
    InvalidArgument,
    MessageTooLong,
    NobodyReceives,
    NoLink,
    NotUnderstood,
    OutOfRange,
    PeerBroke,
    PeerGone,
    QuotaExceeded,
    TimedOut,
    Unreachable,
)

__all__ = [
    "AccessDenied", "AddressInUse", "Busy", "Canceled", "Closed", "Connection", "ConnectionRefused", "Domain",
    "DomainInfo", "Error", "InvalidArgument", "LinkInfo", "Listener", "MessageTooLong", "NoLink", "NobodyReceives",
    "NotUnderstood", "Operation", "OutOfRange", "PeerBroke", "PeerGone", "QuotaExceeded", "Region", "Remote",
    "Request", "TimedOut", "Unreachable",
]  # fmt: skip


def _at_the_end(call: Callable[[], None]) -> None:
    """Calls it when the main thread has ended, before the interpreter joins other threads: they may
    wait in a call of stp. What is registered last is called first, and concurrent.futures joins its
    threads in such a call, so it is imported before. Without that (Python 3.8): after the joins."""
    register = getattr(threading, "_register_atexit", atexit.register)
    try:
        register(call)
    except RuntimeError:  # the main thread has ended already
        atexit.register(call)


# An interpreter that ends closes all domains first: nothing writes into its memory any more.
_at_the_end(_stp.end_all)
os.register_at_fork(after_in_child=_errors.forked)

_us = _base.microseconds


class Operation(_base.Owner):
    """One that is under way, from the calls begin_...: the buffers that it uses must not be changed
    (read, for those that it fills) before it is done."""

    def __init__(self, native: _stp.Operation) -> None:
        self._native = _base.native_of(self, native, _stp.Operation, "Connection.begin_send")

    @property
    def done(self) -> bool:
        return self._native.done

    @property
    def tag(self) -> int:
        """Of a message that was received: what its sender gave along."""
        return self._native.tag

    def wait(self, timeout: Optional[float] = None) -> Any:
        """Its result: of a receive the bytes, or how many there are; else None. TimedOut: it is still
        under way."""
        if _stp.inherited() and not self._native.done:
            raise Closed(9, "the operation belongs to the parent of this process")
        if not self._native.wait(_us(timeout)):
            raise TimedOut(110, "the operation is still under way")
        return self._native.result()

    def cancel(self) -> bool:
        """Asks for its end: `wait` raises Canceled, or gives its result if it was too late. A receive
        always ends as Canceled; a message that it gets nevertheless is the next receive's. False: it
        was done."""
        return self._native.cancel()


class Connection(_base.BaseConnection):
    """A peer. Made by `Domain.connect` and `Listener.accept`. Used in `with` it is closed at the
    end: in good order, or, when an exception passes, by breaking it off."""

    def send(self, data: Any, tag: int = 0, *, fence: bool = False, timeout: Optional[float] = None) -> None:
        """Sends one message, any bytes-like object; returns when it is with the peer. A long one waits
        until the peer receives it: if both sides only send, both wait, and warn after 10 s. `tag`: a number of 32 bits
        that goes along. `fence`: only after all that was posted before is done."""
        patience = _us(timeout)
        self._send(data, tag, fence).finish(patience)

    def receive(self, size: int = _base.SIZE, timeout: Optional[float] = None) -> bytes:
        """The next message, of at most `size` bytes (longer: MessageTooLong, and it is lost).
        PeerGone: there is none any more."""
        patience = _us(timeout)
        result: bytes = self._receive(size).finish(patience)
        return result

    def receive_message(self, size: int = _base.SIZE, timeout: Optional[float] = None) -> Tuple[bytes, int]:
        """As `receive`, with the tag of the message."""
        patience = _us(timeout)
        operation = self._receive(size)
        result: bytes = operation.finish(patience)
        return result, operation.tag

    def receive_into(self, buffer: Any, timeout: Optional[float] = None) -> int:
        """Receives the next message into a writable object; gives its length. Long messages (above
        32 KiB) are not copied."""
        patience = _us(timeout)
        result: int = self._native.receive_into(buffer).finish(patience)
        return result

    def __iter__(self) -> Iterator[bytes]:
        """The messages, each of at most 64 KiB, until the peer has disconnected in good order."""
        return self.messages()

    def messages(self, size: int = _base.SIZE) -> Iterator[bytes]:
        """The same with messages of at most `size` bytes (longer: MessageTooLong, and it is lost)."""
        while True:
            try:
                message = self.receive(size)
            except PeerGone:
                # A receive may fail before the reason of the end is known here.
                self._native.ended().wait(_us(_base.END))
                if self.reason is not None:
                    raise self.reason from None
                return
            yield message

    def put(
        self, data: Any, remote: Remote, offset: int = 0, *, fence: bool = False, timeout: Optional[float] = None
    ) -> None:
        """Writes into a region of the peer, without its program."""
        patience = _us(timeout)
        self._put(data, remote, offset, fence).finish(patience)

    def get(
        self, remote: Remote, length: Optional[int] = None, offset: int = 0, timeout: Optional[float] = None
    ) -> bytes:
        """Reads from a region of the peer, without its program; None: to its end."""
        landing = self._landing(remote, length, offset)
        patience = _us(timeout)
        self._get(landing, remote, offset).finish(patience)
        return bytes(landing)

    def get_into(self, buffer: Any, remote: Remote, offset: int = 0, timeout: Optional[float] = None) -> None:
        """Fills a writable object from a region of the peer."""
        patience = _us(timeout)
        self._get(buffer, remote, offset).finish(patience)

    def fetch_add(self, remote: Remote, value: int = 1, offset: int = 0, timeout: Optional[float] = None) -> int:
        """Adds to the 8 bytes there (its byte order, without a sign), atomically; gives what was
        there before."""
        patience = _us(timeout)
        result: int = self._fetch_add(remote, value, offset).finish(patience)
        return result

    def compare_and_swap(
        self, remote: Remote, expected: int, value: int, offset: int = 0, timeout: Optional[float] = None
    ) -> int:
        """Puts `value` into the 8 bytes there if they are `expected`; gives what was there before."""
        patience = _us(timeout)
        result: int = self._swap(remote, expected, value, offset).finish(patience)
        return result

    def begin_send(self, data: Any, tag: int = 0, *, fence: bool = False) -> Operation:
        """As `send`, without waiting: several messages are under way at once, in order."""
        return Operation(self._send(data, tag, fence))

    def begin_receive(self, size: int = _base.SIZE) -> Operation:
        return Operation(self._receive(size))

    def begin_receive_into(self, buffer: Any) -> Operation:
        return Operation(self._native.receive_into(buffer))

    def begin_put(self, data: Any, remote: Remote, offset: int = 0, *, fence: bool = False) -> Operation:
        return Operation(self._put(data, remote, offset, fence))

    def begin_get_into(self, buffer: Any, remote: Remote, offset: int = 0) -> Operation:
        return Operation(self._get(buffer, remote, offset))

    def close(self, timeout: Optional[float] = 5.0) -> None:
        """Ends it: what was posted is done, but for receives. After the time-out it ends at once."""
        patience = _us(timeout)
        ending = self._begin_close()
        try:
            if ending is not None:
                ending.wait(patience)
        finally:
            self._native.close()

    def __enter__(self) -> "Connection":
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.abort()


class Request(_base.BaseRequest):
    """Somebody wants to connect; `data` is what came along. One that is forgotten is rejected."""

    def accept(self, data: Any = b"", timeout: Optional[float] = None) -> Connection:
        """`data`: at most 1024 bytes that go back."""
        patience = _us(timeout)
        operation = self._accept(data)
        with _base.closed_unless_up(self._native):
            operation.finish(patience)
        return Connection(operation.connection)

    def _accept_before(self, others: _stp.Listener, data: Any) -> Connection:
        """As accept, but gives up a requester that does not go on while others wait."""
        operation = self._accept(data)
        with _base.closed_unless_up(self._native):
            while not operation.wait(_us(_base.TURN)):
                if others.waiting != 0:
                    break
            operation.finish(0)
        return Connection(operation.connection)


class Listener(_base.Owner):
    """Takes connections of a port. Made by `Domain.listen`."""

    def __init__(self, native: _stp.Listener) -> None:
        self._native = _base.native_of(self, native, _stp.Listener, "Domain.listen")

    def request(self, timeout: Optional[float] = None) -> Request:
        """The next request, to look at before it is accepted or rejected."""
        patience = _us(timeout)
        operation = self._native.request()
        operation.finish(patience)
        return Request(operation.connection)

    def accept(self, data: Any = b"", timeout: Optional[float] = None) -> Connection:
        """The next connection. Requesters that have gone meanwhile are passed over. So is one that does
        not go on, as it is stopped, if others wait: after a second."""
        while True:
            request = self.request(timeout)
            try:
                return request._accept_before(self._native, data)
            except (PeerGone, TimedOut, Canceled):
                continue

    def close(self) -> None:
        """Requests that wait are rejected; connections stay."""
        self._native.close()

    def __enter__(self) -> "Listener":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Domain(_base.BaseDomain):
    """A link, and all that lives on it. `link` is a link string ("iface:eth0", "udp:", ...); None:
    what STP_LINK says, or its default. `checksum`: every frame that leaves carries one. `shard`: of a
    link with several queues, 1 is its first, 0 the next in turn."""

    def connect(self, peer: str, *, data: Any = b"", timeout: Optional[float] = None) -> Connection:
        """Connects to "host:port". `data`: at most 1024 bytes that go along; those of a refusal are the
        `data` of ConnectionRefused. `timeout`: None is 30 s, but 4.5 s if the host does not answer at all."""
        patience = _us(timeout)
        operation = self._native.connect(_base.text("peer", peer), patience, _base.private(data))
        with _base.closed_unless_up(operation.connection):
            operation.finish(patience)
        return Connection(operation.connection)

    def listen(self, port: str, *, backlog: int = 0) -> Listener:
        """Takes connections of ":port". `backlog`: how many may wait; 0: 64."""
        return Listener(self._native.listen(_base.text("port", port), _base._number("backlog", backlog, 0xFFFFFFFF)))

    def close(self) -> None:
        """Ends all that is on the domain, abruptly. Who waits gets Canceled."""
        self._native.close()

    def __enter__(self) -> "Domain":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
