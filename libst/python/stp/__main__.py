# SPDX-License-Identifier: BSD-3-Clause
"""python3 -m stp: small programs, which are worked examples as well."""
import argparse
import difflib
import os
import re
import sys
import time
from typing import Any, Iterator, List, NoReturn, Optional

import stp
from stp._errors import printable


SOCKET = "/run/stpd/stpd.sock"


def name_of(link: Optional[str]) -> str:
    """The link that the library takes; "": none is named, and it takes loop."""
    return link or os.environ.get("STP_LINK") or (f"stpd:{SOCKET}" if os.path.exists(SOCKET) else "")


def look_for_others(link: Optional[str]) -> None:
    """Ends the program if its link reaches no other one: it would wait for ever."""
    name = name_of(link)
    if name and name.split(",")[0] != "loop":
        return
    cause = "the link loop reaches only this process" if name else f"no link is named, and no stpd serves {SOCKET}"
    sys.exit(
        f"stp: {cause}; name one with --link or STP_LINK (udp:, iface:NAME, stpd:PATH), or start stpd; "
        '"stpctl devices" lists what this machine has'
    )


def info(link: Optional[str]) -> None:
    with stp.Domain(link) as domain:
        about, state = domain.info(), domain.link()
        print(f"link {printable(name_of(link)) or 'loop (no other is named, and no stpd runs)'}")
        print(f"mac {about.mac}\nipv4 {about.ipv4 or 'none'}\nmtu {about.mtu}\nstate {state.state}")
        if state.trouble:
            print(printable(state.trouble))


def receive(link: Optional[str], port: str, answers: bool) -> None:
    """Writes the messages of one peer, each a line, or sends them back."""
    with stp.Domain(link) as domain, domain.listen(port) as listener:
        print("listening", file=sys.stderr, flush=True)
        with listener.accept() as peer:
            for message in peer:
                if answers:
                    peer.send(message)
                elif sys.stdout.isatty():
                    print(printable(message.decode(errors="replace")))
                else:
                    sys.stdout.buffer.write(message + b"\n")
                    sys.stdout.buffer.flush()


def lines_of_input() -> Iterator[bytes]:
    try:
        yield from sys.stdin.buffer
    except OSError as error:
        sys.exit(f"stp: cannot read standard input: {error.strerror}")


def send(link: Optional[str], peer_name: str) -> None:
    """Each line of the input is a message."""
    with stp.Domain(link) as domain, domain.connect(peer_name) as peer:
        for line in lines_of_input():
            peer.send(line.rstrip(b"\n"))


def ping(link: Optional[str], peer_name: str, count: int, size: int) -> None:
    """Messages there and back; the peer runs `receive --answer`."""
    times = []
    with stp.Domain(link) as domain, domain.connect(peer_name) as peer:
        for _ in range(count):
            begun = time.perf_counter()
            peer.send(bytes(size))
            peer.receive(max(size, 1))
            times.append((time.perf_counter() - begun) * 1e6)
    times.sort()
    print(f"{count} round trips of {size} bytes: least {times[0]:.1f}, median {times[count // 2]:.1f} us")


def number_in(text: str) -> int:
    return int(text) if re.fullmatch("[0-9]{1,9}", text) else -1


def positive(text: str) -> int:
    value = number_in(text)
    if value <= 0:
        raise argparse.ArgumentTypeError(f"a number above 0, not {text}")
    return value


def message_size(text: str) -> int:
    value = number_in(text)
    if not 0 <= value <= 65536:
        raise argparse.ArgumentTypeError(f"a number of bytes from 0 to 65536, not {text}")
    return value


def did_you_mean(word: str, words: List[str]) -> str:
    similar = difflib.get_close_matches(word.split("=")[0], words, 1)
    return f"; did you mean {similar[0]}?" if similar else ""


class Parser(argparse.ArgumentParser):
    """Quotes no word that could control a terminal. Takes no beginning of an option for it."""

    def __init__(self, **about: Any) -> None:
        super().__init__(allow_abbrev=False, **about)

    def parse_known_args(self, *given: Any) -> Any:  # type: ignore[override]
        """Of a command, too: what it does not know is wrong."""
        known, unknown = super().parse_known_args(*given)
        if unknown:
            words = [word for action in self._actions for word in action.option_strings]
            self.error(f"there is no option or argument {unknown[0]} here{did_you_mean(unknown[0], words)}")
        return known, unknown

    def error(self, message: str) -> NoReturn:
        wrong = re.match(r"argument command: invalid choice: '(.*)' ", message, re.DOTALL)
        if wrong:
            word = wrong.group(1)
            words = [word for action in self._actions for word in action.option_strings]
            for option in sys.argv[1 : sys.argv.index(word) if word in sys.argv else 1]:
                if option.startswith("-") and option.split("=")[0] not in words:  # the word is its value
                    super().error(printable(f"there is no option {option} here{did_you_mean(option, words)}"))
            message = f"there is no command {word}; there are {', '.join(COMMANDS)}{did_you_mean(word, COMMANDS)}"
        super().error(printable(message))


COMMANDS = ["info", "receive", "send", "ping"]


def check_streams(command: str, answers: bool) -> None:
    if command == "send" and sys.stdin is None:
        sys.exit("stp: standard input is closed; redirect it")
    if command != "send" and not answers and sys.stdout is None:
        sys.exit("stp: standard output is closed; redirect it")


def main() -> None:
    parser = Parser(prog="python3 -m stp", description="Small programs over STP.")
    parser.add_argument("--link", help="a link string, as in STP_LINK; default: what that says")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("info", help="addresses and state of the link")
    receiving = commands.add_parser("receive", help="print the messages of one peer")
    receiving.add_argument("port", metavar=":PORT")
    receiving.add_argument("--answer", action="store_true", help="send them back instead")
    sending = commands.add_parser("send", help="send each line of the input")
    sending.add_argument("peer", metavar="HOST:PORT")
    pinging = commands.add_parser("ping", help="measure round trips to `receive --answer`")
    pinging.add_argument("peer", metavar="HOST:PORT")
    pinging.add_argument("--count", type=positive, default=10)
    pinging.add_argument("--size", type=message_size, default=8, metavar="BYTES")
    for command in commands.choices.values():  # --link may stand behind the command as well
        command.add_argument("--link", default=argparse.SUPPRESS, help="as in front of the command")
    arguments = parser.parse_args()
    check_streams(arguments.command, getattr(arguments, "answer", False))
    if arguments.command != "info":
        look_for_others(arguments.link)
    if arguments.command == "info":
        info(arguments.link)
    elif arguments.command == "receive":
        receive(arguments.link, arguments.port, arguments.answer)
    elif arguments.command == "send":
        send(arguments.link, arguments.peer)
    else:
        ping(arguments.link, arguments.peer, arguments.count, arguments.size)


def program() -> None:
    try:
        main()
        if sys.stdout is not None:
            sys.stdout.flush()
    except stp.InvalidArgument as error:  # what the command line names cannot be
        print(f"stp: {error.strerror}; --help describes the arguments", file=sys.stderr)
        sys.exit(2)
    except stp.Error as error:
        sys.exit(f"stp: {error}")
    except OSError as error:  # of the output, as when `head` has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # it is flushed in the end
        sys.exit(f"stp: cannot write to standard output: {error.strerror}")
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    program()
