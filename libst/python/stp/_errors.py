# SPDX-License-Identifier: BSD-3-Clause
"""The exceptions of the package: one class for each cause that a program may want to tell apart."""
import errno
from typing import Dict, Type

from . import _stp


class Error(OSError):
    """Base of all exceptions of stp: `errno`, `strerror` (what failed and why) and `remedy`."""

    remedy = "errno and the text say what the system or the peer has against it"
    data = b""
    """What the peer has sent along with its refusal."""

    def __str__(self) -> str:
        return f"{self.strerror} ({self.remedy})"


class Closed(Error, ValueError):
    """The object was closed, or belongs to the parent of this process."""

    remedy = "open a new one"


class Canceled(Error):
    """It was taken back, by either side, or what it belongs to was closed."""

    remedy = "look for who closes or cancels it"


class ConnectionRefused(Error, ConnectionRefusedError):
    """Nobody listens there, or the peer has said no."""

    remedy = "start the peer, and compare host and port"


class PeerGone(Error, ConnectionResetError):
    """The peer has disconnected, or its program has ended."""

    remedy = "connect again when the peer is back"


class PeerBroke(PeerGone):
    """The peer has broken the connection off: it tells of a fault."""

    remedy = "read the peer's log, then connect again"


class TimedOut(Error, TimeoutError):
    """The peer was silent, or the time that was given is over."""

    remedy = "see whether the peer does its part, look at the link (domain.link()), or give more time"


class MessageTooLong(Error):
    """A message is longer than the receive that it came to."""

    remedy = "receive(size), or messages(size) in a loop, with a larger size; a sender: let the peer do so"


class AccessDenied(Error, PermissionError):
    """A region that is none, is closed, or does not give this access; or memory that is read-only."""

    remedy = "open the region with this access, and give the peer its `remote` anew"


class OutOfRange(Error, IndexError):
    """Beyond the end of the region."""

    remedy = "stay within `remote.length`"


class NobodyReceives(Error):
    """A message waited too long for a receive."""

    remedy = "let the receiver receive, or raise its receive_wait"


class NoLink(Error):
    """There is no such link, or it is gone."""

    remedy = "docs/operations.md lists the links; `stpctl devices` lists what the machine has"


class Unreachable(Error):
    """No host of that name answers on the link."""

    remedy = "compare the name and the link of both sides; over memif, start the other side"


class AddressInUse(Error):
    """Another program, or this one, listens on the port."""

    remedy = "choose another port, or end who has it"


class QuotaExceeded(Error):
    """More memory, or more of something else, than the link gives to one program."""

    remedy = "close regions, or raise the limits of stpd (docs/operations.md)"


class Busy(Error):
    """Operations are under way in it, or all places are taken."""

    remedy = "wait for the operations that use it"


class InvalidArgument(Error, ValueError):
    """An argument is wrong; the text names it."""

    remedy = "help(stp) describes the arguments"


class NotUnderstood(Error):
    """The peer does not speak the managed layer, or another version of it."""

    remedy = "both sides use the managed API (or this package) of one version"


_CLASSES: Dict[int, Type[Error]] = {
    errno.EBADF: Closed,
    errno.ESHUTDOWN: Closed,
    errno.ECANCELED: Canceled,
    errno.ECONNREFUSED: ConnectionRefused,
    errno.ENOTCONN: PeerGone,
    errno.ECONNRESET: PeerBroke,
    errno.ETIMEDOUT: TimedOut,
    errno.EMSGSIZE: MessageTooLong,
    errno.EACCES: AccessDenied,
    errno.ERANGE: OutOfRange,
    errno.ENOBUFS: NobodyReceives,
    errno.ENODEV: NoLink,
    errno.ENETDOWN: NoLink,
    errno.EHOSTUNREACH: Unreachable,
    errno.EADDRINUSE: AddressInUse,
    errno.EDQUOT: QuotaExceeded,
    errno.EBUSY: Busy,
    errno.EAGAIN: Busy,
    errno.EINVAL: InvalidArgument,
    errno.EPROTO: NotUnderstood,
}


def printable(text: str) -> str:
    """The text with '?' for what could control a terminal, or change the direction of the text."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def error_of(number: int, text: str, remedy: str = "") -> Error:
    """The exception for an errno (positive). `remedy`: in place of that of its class."""
    error = _CLASSES.get(number, Error)(number, printable(text))
    if remedy:
        error.remedy = remedy
    return error


def forked() -> None:
    """This process is a child of fork(). If its parent has opened a domain, nothing can be opened."""
    if _stp.forked():
        Closed.remedy = (
            "fork() before the first domain is opened, or start a new interpreter: multiprocessing "
            "with spawn or forkserver, subprocess"
        )


_stp.set_error_maker(error_of)
