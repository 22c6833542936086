# SPDX-License-Identifier: BSD-3-Clause
"""stp for asyncio: the classes of stp, whose calls that wait are coroutines.

    async with stp.aio.Domain() as domain:
        async with await domain.connect("10.0.0.5:3000") as peer:
            await peer.send(b"a question")
            print(await peer.receive())

One descriptor of the domain is in the loop; there is no thread, but for a moment while a peer's name
is looked up. A Domain belongs to the loop that runs when it is made.

A task that is cancelled takes its operation back. If that is too late, a message that was received is
kept for the next receive of the connection, and one that was sent has been sent. Buffers stay exported
until the operation is over. For a time limit use asyncio.wait_for.
"""
import asyncio
import collections
import threading
import warnings
from types import TracebackType
from typing import Any, AsyncIterator, Awaitable, Deque, Generator, Optional, Tuple, Type

from . import Canceled, PeerGone, Remote, TimedOut, _base, _stp


class _Loop:
    """The loop that a domain belongs to."""

    def __init__(self, native: _stp.Domain) -> None:
        self._native = native
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._descriptor = native.fileno()
        self._loop.add_reader(self._descriptor, self._take)

    def _take(self) -> None:
        if not self._native.closed:
            self._native.poll()

    def close(self) -> None:
        if not self._loop.is_closed():
            self._loop.remove_reader(self._descriptor)

    async def finish(self, operation: _stp.Operation, warns: bool = False) -> Any:
        """`warns` when the peer may keep it waiting for ever: what it does is sending."""
        if not operation.done:
            future: "asyncio.Future[None]" = self._loop.create_future()

            def done() -> None:
                if not future.done():
                    future.set_result(None)

            def tell() -> None:  # in the thread that took the event
                if threading.get_ident() == self._thread:
                    done()
                else:
                    self._loop.call_soon_threadsafe(done)

            operation.on_done(tell)
            late = self._loop.call_later(_stp.warns_after() / 1e6, done) if warns else None
            try:
                await future
                if not operation.done:
                    why = operation.why_it_may_wait("send in a task of its own")
                    if why:
                        warnings.warn("sending takes long" + why, RuntimeWarning, stacklevel=3)
                    future = self._loop.create_future()
                    await future
            except (asyncio.CancelledError, Warning):
                operation.abandon()
                raise
            finally:
                if late is not None:
                    late.cancel()
        return operation.result()


class Connection(_base.BaseConnection):
    """As stp.Connection."""

    def __init__(self, native: _stp.Connection, loop: _Loop) -> None:
        super().__init__(native)
        self._loop = loop

    async def send(self, data: Any, tag: int = 0, *, fence: bool = False) -> None:
        await self._loop.finish(self._send(data, tag, fence), warns=True)

    async def receive(self, size: int = _base.SIZE) -> bytes:
        result: bytes = await self._loop.finish(self._receive(size))
        return result

    async def receive_message(self, size: int = _base.SIZE) -> Tuple[bytes, int]:
        operation = self._receive(size)
        result: bytes = await self._loop.finish(operation)
        return result, operation.tag

    async def receive_into(self, buffer: Any) -> int:
        result: int = await self._loop.finish(self._native.receive_into(buffer))
        return result

    def __aiter__(self) -> AsyncIterator[bytes]:
        """The messages, each of at most 64 KiB, until the peer has disconnected in good order."""
        return self.messages()

    async def messages(self, size: int = _base.SIZE) -> AsyncIterator[bytes]:
        """The same with messages of at most `size` bytes (longer: MessageTooLong, and it is lost)."""
        while True:
            try:
                message = await self.receive(size)
            except PeerGone:
                # A receive may fail before the reason of the end is known here.
                await self._loop.finish(self._native.ended())
                if self.reason is not None:
                    raise self.reason from None
                return
            yield message

    async def put(self, data: Any, remote: Remote, offset: int = 0, *, fence: bool = False) -> None:
        await self._loop.finish(self._put(data, remote, offset, fence))

    async def get(self, remote: Remote, length: Optional[int] = None, offset: int = 0) -> bytes:
        landing = self._landing(remote, length, offset)
        await self._loop.finish(self._get(landing, remote, offset))
        return bytes(landing)

    async def get_into(self, buffer: Any, remote: Remote, offset: int = 0) -> None:
        await self._loop.finish(self._get(buffer, remote, offset))

    async def fetch_add(self, remote: Remote, value: int = 1, offset: int = 0) -> int:
        result: int = await self._loop.finish(self._fetch_add(remote, value, offset))
        return result

    async def compare_and_swap(self, remote: Remote, expected: int, value: int, offset: int = 0) -> int:
        result: int = await self._loop.finish(self._swap(remote, expected, value, offset))
        return result

    async def close(self, timeout: Optional[float] = 5.0) -> None:
        ending = self._begin_close()
        try:
            if ending is not None:
                await asyncio.wait_for(self._loop.finish(ending), timeout)
        except asyncio.TimeoutError:
            pass
        finally:
            self._native.close()

    async def __aenter__(self) -> "Connection":
        return self

    async def __aexit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        if kind is None:
            await self.close()
        else:
            self.abort()


class Request(_base.BaseRequest):
    """As stp.Request."""

    def __init__(self, native: _stp.Connection, loop: _Loop) -> None:
        super().__init__(native)
        self._loop = loop

    async def accept(self, data: Any = b"") -> Connection:
        operation = self._accept(data)
        with _base.closed_unless_up(self._native):
            await self._loop.finish(operation)
        return Connection(operation.connection, self._loop)


def _abort(accepting: "asyncio.Task[Connection]") -> None:
    if not accepting.cancelled() and accepting.exception() is None:
        accepting.result().abort()


class _Done:
    """What has been done: `await` takes it, and nobody need."""

    def __await__(self) -> Generator[None, None, None]:
        yield from ()


class Listener(_base.Owner):
    """As stp.Listener; `async for` gives the connections."""

    def __init__(self, native: _stp.Listener, loop: _Loop) -> None:
        self._native = _base.native_of(self, native, _stp.Listener, "Domain.listen")
        self._loop = loop
        # Requests that are being accepted for tasks that were cancelled.
        self._left: "Deque[asyncio.Task[Connection]]" = collections.deque()

    async def request(self) -> Request:
        operation = self._native.request()
        await self._loop.finish(operation)
        return Request(operation.connection, self._loop)

    async def accept(self, data: Any = b"") -> Connection:
        """The next connection, as of stp.Listener. If the task is cancelled when the peer has been
        answered already, the connection is the next call's."""
        while True:
            if self._left:
                accepting = self._left.popleft()
            else:
                accepting = asyncio.ensure_future((await self.request()).accept(data))
            try:
                await self._turn_of(accepting)
            except asyncio.CancelledError:
                self._left.append(accepting)
                raise
            if accepting.cancelled():
                continue
            try:
                return accepting.result()
            except (PeerGone, TimedOut, Canceled):
                continue

    async def _turn_of(self, accepting: "asyncio.Task[Connection]") -> None:
        """Until it is over. A requester that does not go on while others wait is given up."""
        while not (await asyncio.wait((accepting,), timeout=_base.TURN))[0]:
            if self._native.waiting != 0:
                accepting.cancel()

    async def __aiter__(self) -> AsyncIterator[Connection]:
        while True:
            yield await self.accept()

    def close(self) -> Awaitable[None]:
        self._native.close()
        for accepting in self._left:
            accepting.add_done_callback(_abort)
        self._left.clear()
        return _Done()

    def __enter__(self) -> "Listener":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Domain(_base.BaseDomain):
    """As stp.Domain, for the loop that runs."""

    def __init__(self, link: Optional[str] = None, *, checksum: bool = False, shard: int = 0) -> None:
        asyncio.get_running_loop()  # or an error before the link is opened
        super().__init__(link, checksum=checksum, shard=shard)
        self._loop = _Loop(self._native)

    async def connect(self, peer: str, *, data: Any = b"", timeout: Optional[float] = None) -> Connection:
        patience = _base.microseconds(timeout)
        operation = self._native.connect(_base.text("peer", peer), patience, _base.private(data))
        with _base.closed_unless_up(operation.connection):
            await self._loop.finish(operation)
        return Connection(operation.connection, self._loop)

    def listen(self, port: str, *, backlog: int = 0) -> Listener:
        native = self._native.listen(_base.text("port", port), _base._number("backlog", backlog, 0xFFFFFFFF))
        return Listener(native, self._loop)

    def close(self) -> Awaitable[None]:
        """Ends all that is on the domain, abruptly and at once: it may be awaited, and need not."""
        if not self._native.closed:
            self._loop.close()
            self._native.close()
        return _Done()

    async def __aenter__(self) -> "Domain":
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()
