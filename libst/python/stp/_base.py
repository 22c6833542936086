# SPDX-License-Identifier: BSD-3-Clause
"""What the blocking classes and those for asyncio share."""
import importlib.machinery
import os
import sys
import warnings
from contextlib import contextmanager
from typing import Any, Iterator, NamedTuple, Optional, Tuple, Type, TypeVar, Union


def _pythons_served() -> str:
    """For which other Pythons the compiled part lies here; "": for this one, or for none."""
    folder = os.path.dirname(__file__)
    there = [name for name in os.listdir(folder) if name.startswith("_stp.") and name.endswith(".so")]
    fits = any("_stp" + suffix in there for suffix in importlib.machinery.EXTENSION_SUFFIXES)
    return "" if fits else ", ".join(name.split(".")[1] for name in there)


try:
    from . import _stp
except ImportError:  # Python's own text speaks of a circular import
    others = _pythons_served()
    if not others:
        raise
    raise ImportError(
        f"the compiled part of stp is for another Python ({others}), and this one is {sys.implementation.cache_tag} "
        f"({sys.executable}): use that one, or compile stp for this one (pip install, docs/python.md)"
    ) from None

from ._errors import ConnectionRefused, Error, InvalidArgument, NoLink, error_of

FENCE = 2  # of stp/managed.h: begins when all that was posted before is done
_REMOTE_READ, _REMOTE_WRITE, _REMOTE_ATOMIC = 4, 8, 16
_ADD, _COMPARE_AND_SWAP = 4, 5
_MASK = (1 << 64) - 1
GRACEFUL, ABRUPT, BROKEN = 0, 1, 2
SIZE = 65536  # of a receive that says none
MOST = 1 << 30  # bytes that a receive or a get makes memory for
PRIVATE = 1024  # bytes that go along with a request or an answer
TURN = 1.0  # seconds for a requester to go on when it is accepted, while others wait
END = 5.0  # seconds within which a connection that is over says why

_LINK_STATES = ("unknown", "up", "down", "no carrier", "gone", "no peer", "taken", "mtu", "mac", "duplicate")


class Remote(NamedTuple):
    """What a peer needs to know of a region: send it `bytes(remote)`, 24 bytes; it makes the same
    Remote of them by `Remote.decode(data)`."""

    address: int
    length: int
    key: int
    access: int
    encoded: bytes

    @classmethod
    def decode(cls, data: Any) -> "Remote":
        encoded = _stp.bytes_of("remote", data)
        return cls(*_stp.decode_remote(encoded), encoded)

    def __bytes__(self) -> bytes:
        return self.encoded


class LinkInfo(NamedTuple):
    """The state of a link: "up", or what is wrong with it, and what to do about it (`trouble`)."""

    state: str
    changes: int
    seconds: float
    mtu: int
    megabits: int
    trouble: str


class _Addresses(NamedTuple):
    mac: str
    ipv4: str
    mtu: int


class DomainInfo(_Addresses):
    """Addresses of the link: a tuple of `mac`, `ipv4` ("" if it has none) and `mtu`, which has `udp_port`, too (0
    where the link is not over UDP)."""

    udp_port: int = 0


def microseconds(timeout: Optional[float]) -> int:
    """A time of the library: None is for ever."""
    if timeout is None:
        return -1
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)):
        raise TypeError(f"timeout: a number of seconds or None, not {type(timeout).__name__}")
    if not 0 <= timeout < 1e9:
        raise InvalidArgument(22, f"timeout: 0 to 1e9 seconds, not {timeout}")
    return int(timeout * 1_000_000)


def _number(argument: str, value: int, most: int, least: int = 0, more: str = "") -> int:
    """`more`: what to do if it is out of range."""
    if not isinstance(value, int):
        raise TypeError(f"{argument}: a whole number, not {type(value).__name__}")
    if not least <= value <= most:
        raise InvalidArgument(22, f"{argument}: {least} to {most}, not {value}{more}")
    return value


def word(argument: str, value: int) -> int:
    """8 bytes for the peer's memory, with or without a sign."""
    return _number(argument, value, _MASK, -1 << 63) & _MASK


def place(remote: Remote, offset: int) -> Tuple[int, int]:
    """The key and the address of the byte at `offset` of a region."""
    if not isinstance(remote, Remote):
        raise TypeError(f"remote: a stp.Remote (Remote.decode makes it of bytes), not {type(remote).__name__}")
    key, address = _number("remote.key", remote.key, 0xFFFFFFFF), _number("remote.address", remote.address, _MASK)
    return key, address + _number("offset", offset, _MASK - address)


def text(argument: str, value: str) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{argument}: a str, not {type(value).__name__}")
    try:
        value.encode()
    except UnicodeError:
        raise InvalidArgument(22, f"{argument}: {value!a} has half of a character") from None
    return value


def private(value: Any) -> bytes:
    """Bytes that go along with a request or an answer."""
    data = _stp.bytes_of("data", value)
    if len(data) > PRIVATE:
        raise error_of(
            90,
            f"data: {len(data)} bytes, and at most {PRIVATE} go along with a request or an answer",
            "send the rest as a message when the connection is up",
        )
    return data


@contextmanager
def closed_unless_up(native: _stp.Connection) -> Iterator[None]:
    """A connection that does not come about leaves nothing behind."""
    try:
        yield
    except BaseException as error:
        if isinstance(error, Error):
            error.data = native.data
        native.close()
        raise


_Native = TypeVar("_Native")


def native_of(owner: object, native: _Native, kind: Type[_Native], maker: str) -> _Native:
    """The object that `owner` stands for."""
    if not isinstance(native, kind):
        raise TypeError(f"{type(owner).__name__}: a program makes none itself, {maker}() does")
    return native


class Owner:
    """Two objects of one native one would close it for each other."""

    def __reduce_ex__(self, _: Any) -> Any:
        raise TypeError(f"a {type(self).__name__} of stp cannot be copied, or sent to another process")


class Region(Owner):
    """Memory that peers may access: made by `domain.region`. The object whose memory it is stays
    exported (a bytearray cannot change its size) until `close`, also if the Region is forgotten:
    peers may still write there."""

    def __init__(self, native: _stp.Region) -> None:
        self._native = native_of(self, native, _stp.Region, "Domain.region")
        self.remote = Remote.decode(native.remote)

    def close(self) -> None:
        """Revokes: when it returns no peer reads or writes there any more. Busy: an operation of
        this program uses the memory; peers are shut out nevertheless."""
        self._native.close()

    def __enter__(self) -> "Region":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class BaseDomain(Owner):
    def __init__(self, link: Optional[str] = None, *, checksum: bool = False, shard: int = 0) -> None:
        if link is not None:
            text("link", link)
        number = _number("shard", shard, _MASK)
        try:
            self._native = _stp.open_domain(link, bool(checksum), number)
        except ConnectionRefused as error:
            error.remedy = NoLink.remedy  # there is no peer yet
            raise

    def region(
        self,
        buffer: Any,
        *,
        read: bool = True,
        write: bool = True,
        atomic: bool = False,
        only: "Optional[BaseConnection]" = None,
    ) -> Region:
        """Lets peers access the memory of a bytes-like object (bytearray, mmap, array, numpy...; one
        piece, nothing is copied): `read` for get, `write` for put, `atomic` for fetch_add and
        compare_and_swap. `only`: this connection alone may, instead of all of the domain. With none
        of the three it is memory for this program's own operations: those with long buffers that
        lie in a region need no registration."""
        access = _REMOTE_READ * bool(read) | _REMOTE_WRITE * bool(write) | _REMOTE_ATOMIC * bool(atomic)
        if only is not None and not isinstance(only, BaseConnection):
            raise TypeError(f"only: a Connection or None, not {type(only).__name__}")
        of = only._native if only is not None else None
        return Region(self._native.region(buffer, access, of))

    def info(self) -> DomainInfo:
        mac, ipv4, mtu, udp_port = self._native.info()
        octets = mac.to_bytes(8, "big")[2:]
        info = DomainInfo(
            ":".join(f"{o:02x}" for o in octets),
            ".".join(str(o) for o in ipv4.to_bytes(4, "big")) if ipv4 else "",
            mtu,
        )
        info.udp_port = udp_port
        return info

    def link(self) -> LinkInfo:
        """The state of the link, and what to do about it."""
        state, changes, age, mtu, megabits, trouble = self._native.link()
        name = _LINK_STATES[state] if state < len(_LINK_STATES) else str(state)
        return LinkInfo(name, changes, age / 1e6, mtu, megabits, trouble)

    @property
    def closed(self) -> bool:
        return self._native.closed

    def fileno(self) -> int:
        """A descriptor for select(), readable while events wait. It belongs to the domain."""
        return self._native.fileno()

    def __del__(self) -> None:
        if hasattr(self, "_native") and not self._native.closed:
            warnings.warn(f"unclosed {self!r}", ResourceWarning, source=self)
            self._native.close()


class BaseConnection(Owner):
    def __init__(self, native: _stp.Connection) -> None:
        self._native = native_of(self, native, _stp.Connection, "Domain.connect")

    @property
    def data(self) -> bytes:
        """What the peer has sent along with its request or its answer."""
        return self._native.data

    @property
    def closed(self) -> bool:
        return self._native.closed

    @property
    def over(self) -> bool:
        """It has ended, by whichever side."""
        return self._native.over

    @property
    def reason(self) -> Optional[Error]:
        """Why it has ended: None in good order, or while it is up."""
        number = self._native.reason
        return error_of(-number, "the connection has ended: " + _stp.strerror(-number)) if number else None

    @property
    def peer(self) -> str:
        """MAC address and port of the other side."""
        info = self._native.info()
        octets = info[2].to_bytes(8, "big")[2:]
        return "[" + ":".join(f"{o:02x}" for o in octets) + f"]:{info[7]}"

    def abort(self) -> None:
        """Breaks the connection off: the peer gets PeerBroke. What is under way ends as Canceled."""
        if not self._native.closed:
            if not self._native.over:
                self._native.disconnect(BROKEN)
            self._native.close()

    def _send(self, data: Any, tag: int, fence: bool) -> _stp.Operation:
        return self._native.send(data, _number("tag", tag, 0xFFFFFFFF), FENCE * bool(fence))

    def _receive(self, size: int) -> _stp.Operation:
        return self._native.receive(_number("size", size, MOST, more="; receive_into() takes longer messages"))

    def _put(self, data: Any, remote: Remote, offset: int, fence: bool) -> _stp.Operation:
        return self._native.put(data, *place(remote, offset), FENCE * bool(fence))

    def _get(self, buffer: Any, remote: Remote, offset: int) -> _stp.Operation:
        return self._native.get(buffer, *place(remote, offset), 0)

    def _fetch_add(self, remote: Remote, value: int, offset: int) -> _stp.Operation:
        return self._native.fetch(_ADD, word("value", value), 0, *place(remote, offset), 0)

    def _swap(self, remote: Remote, expected: int, value: int, offset: int) -> _stp.Operation:
        swap, compare = word("value", value), word("expected", expected)
        return self._native.fetch(_COMPARE_AND_SWAP, swap, compare, *place(remote, offset), 0)

    def _begin_close(self) -> Optional[_stp.Operation]:
        """Begins a graceful end; None: it is over already, or it is the parent's."""
        if self._native.closed or self._native.over:
            return None
        self._native.disconnect(GRACEFUL)
        return self._native.ended()

    def _landing(self, remote: Remote, length: Optional[int], offset: int) -> bytearray:
        place(remote, offset)
        left = _number("remote.length", remote.length, _MASK) - offset
        if length is None:
            length = max(left, 0)
        if _number("length", length, _MASK, 1) > left:
            raise error_of(34, f"length: {length} bytes from offset {offset}, and the region has {remote.length}")
        if length > MOST:
            raise InvalidArgument(22, f"length: {length} bytes, and at most 1 GiB is read as bytes; get_into() takes more")
        return bytearray(length)

    def __del__(self) -> None:
        if hasattr(self, "_native") and not self._native.closed:
            warnings.warn(f"unclosed {self!r}", ResourceWarning, source=self)
            self._native.close()


class BaseRequest(Owner):
    def __init__(self, native: _stp.Connection) -> None:
        self._native = native_of(self, native, _stp.Connection, "Listener.request")
        self._decided = False

    @property
    def data(self) -> bytes:
        """What came along with it."""
        return self._native.data

    def _accept(self, data: Any) -> _stp.Operation:
        operation = self._native.accept(private(data))
        self._decided = True
        return operation

    def reject(self, data: Any = b"") -> None:
        """The peer gets ConnectionRefused."""
        self._native.reject(private(data))
        self._decided = True

    def __del__(self) -> None:
        if hasattr(self, "_native") and not self._decided and not self._native.closed:
            warnings.warn(f"undecided {self!r}", ResourceWarning, source=self)
            self._native.close()


Buffer = Union[bytes, bytearray, memoryview]
