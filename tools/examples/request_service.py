# SPDX-License-Identifier: BSD-3-Clause
"""A service of requests and replies: its clients send files, it replies with their SHA-256.

    python3 request_service.py serve :3000
    python3 request_service.py ask [--timeout SECONDS] HOST:3000 FILE...

A request is a message of 1 byte to 1 MiB; the reply is a message with the same tag, by which the client
finds what it belongs to: replies come in the order in which the server is done. The services of request_service.c
and request_service.cpp do the same: a client of one asks a server of another. The link is that of STP_LINK.

- Back-pressure: the server takes at most 16 requests of a connection at a time. Further ones wait at
  their client, which has at most 64 on the way.
- Time limits: the client gives a request up after 20 s. A reply that comes later finds nobody.
- End: with SIGTERM or Ctrl-C the server finishes what it has, replies, and disconnects.
- Restart: a client whose server is gone connects again, and repeats the requests that have no reply.
  They change nothing, so it does no harm if the server has seen one before. What is in the way is told, once.
"""
import argparse
import asyncio
import contextlib
import hashlib
import signal
import sys
from typing import Dict, List, Optional, Set

import stp
import stp.aio

LONGEST = 1 << 20
AT_A_TIME, ON_THE_WAY = 16, 64
PATIENCE = 20.0  # seconds


async def serve_peer(peer: stp.aio.Connection, end: asyncio.Event) -> None:
    """Replies to one client until it disconnects, or until the service ends."""
    loop = asyncio.get_running_loop()
    places = asyncio.Semaphore(AT_A_TIME)
    working: Set["asyncio.Task[None]"] = set()

    async def reply(request: bytes, tag: int) -> None:
        try:
            digest = await loop.run_in_executor(None, lambda: hashlib.sha256(request).digest())
            with contextlib.suppress(stp.Error):  # the client is gone
                await peer.send(digest, tag)
        finally:
            places.release()

    async def take() -> None:
        while True:
            await places.acquire()
            request, tag = await peer.receive_message(LONGEST)
            task = asyncio.create_task(reply(request, tag))
            working.add(task)
            task.add_done_callback(working.discard)

    taking = asyncio.create_task(take())
    ending = asyncio.create_task(end.wait())
    await asyncio.wait((taking, ending), return_when=asyncio.FIRST_COMPLETED)
    for task in (taking, ending):
        task.cancel()
    await asyncio.gather(taking, ending, *working, return_exceptions=True)
    with contextlib.suppress(stp.Error):
        await peer.close()


async def serve(port: str) -> None:
    end = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, end.set)
    peers: Set["asyncio.Task[None]"] = set()

    async def accept(listener: stp.aio.Listener) -> None:
        async for peer in listener:
            task = asyncio.create_task(serve_peer(peer, end))
            peers.add(task)
            task.add_done_callback(peers.discard)

    async with stp.aio.Domain() as domain:
        with domain.listen(port) as listener:
            print("serving", flush=True)
            accepting = asyncio.create_task(accept(listener))
            await end.wait()
            accepting.cancel()
        await asyncio.gather(accepting, *peers, return_exceptions=True)


class Client:
    """Any number of tasks may ask; each gets the reply to its request, once."""

    def __init__(self, domain: stp.aio.Domain, server: str) -> None:
        self._domain, self._server = domain, server
        self._places = asyncio.Semaphore(ON_THE_WAY)
        self._requests: Dict[int, bytes] = {}
        self._replies: Dict[int, "asyncio.Future[bytes]"] = {}
        self._last = 0
        self._trouble = ""  # what has been told of it
        self._failed: Optional[stp.Error] = None
        self._peer: "asyncio.Future[stp.aio.Connection]" = asyncio.get_running_loop().create_future()
        self._running = asyncio.create_task(self._run())

    async def ask(self, request: bytes, timeout: float = PATIENCE) -> bytes:
        async with self._places:
            if self._failed:
                raise self._failed
            self._last += 1
            tag = self._last & 0xFFFFFFFF
            self._requests[tag] = request
            self._replies[tag] = asyncio.get_running_loop().create_future()
            try:
                if self._peer.done():
                    asyncio.ensure_future(self._send(self._peer.result(), tag))
                return await asyncio.wait_for(self._replies[tag], timeout)
            finally:
                del self._requests[tag], self._replies[tag]

    async def _send(self, peer: stp.aio.Connection, tag: int) -> None:
        with contextlib.suppress(stp.Error):  # _run() repeats it to the next server
            if tag in self._requests:
                await peer.send(self._requests[tag], tag)

    def _tell(self, trouble: stp.Error) -> None:
        """Why there is no connection; only once if it is the same at each try."""
        if str(trouble) != self._trouble:
            print(f"request_service: {trouble}; trying again", file=sys.stderr)
        self._trouble = str(trouble)

    async def _run(self) -> None:
        while True:
            try:
                async with await self._domain.connect(self._server, timeout=5) as peer:
                    for tag in list(self._requests):
                        asyncio.ensure_future(self._send(peer, tag))
                    self._peer.set_result(peer)
                    self._trouble = ""
                    while True:
                        reply, tag = await peer.receive_message(1024)
                        waiting = self._replies.get(tag)
                        if waiting is not None and not waiting.done():
                            waiting.set_result(reply)
            except stp.InvalidArgument as error:  # no name of a server
                self._failed = error
                for waiting in self._replies.values():
                    if not waiting.done():
                        waiting.set_exception(error)
                return
            except stp.Error as error:
                self._tell(error)
            if self._peer.done():
                self._peer = asyncio.get_running_loop().create_future()
            await asyncio.sleep(0.1)  # the server is gone, or not there yet

    async def close(self) -> None:
        self._running.cancel()
        if self._peer.done():
            await self._peer.result().close()


async def ask(server: str, names: List[str], timeout: float) -> int:
    async with stp.aio.Domain() as domain:
        client = Client(domain, server)

        async def ask_for(name: str) -> bool:
            try:
                with open(name, "rb") as file:
                    request = file.read(LONGEST + 1)
                if not 0 < len(request) <= LONGEST:
                    raise OSError("not 1 byte to 1 MiB long")
                print((await client.ask(request, timeout)).hex(), name, flush=True)
                return True
            except asyncio.TimeoutError:
                why = "no reply in time"
            except stp.Error as error:
                why = str(error)
            except OSError as error:
                why = error.strerror or str(error)
            print(f"{name}: {why}", file=sys.stderr)
            return False

        answered = await asyncio.gather(*(ask_for(name) for name in names))
        await client.close()
        return 0 if all(answered) else 1


def seconds(text: str) -> float:
    value = float(text)
    if not 0 < value < 1e9:
        raise argparse.ArgumentTypeError(f"a time above 0, not {text}")
    return value


def main() -> int:
    parser = argparse.ArgumentParser(description="a service of requests and replies over STP")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("serve", help="reply to clients").add_argument("port", metavar=":PORT")
    asking = commands.add_parser("ask", help="send files, print their SHA-256 as the server has it")
    asking.add_argument("--timeout", type=seconds, default=PATIENCE, metavar="SECONDS", help="default: 20")
    asking.add_argument("server", metavar="HOST:PORT")
    asking.add_argument("files", metavar="FILE", nargs="+")
    arguments = parser.parse_args()
    if arguments.command == "serve":
        asyncio.run(serve(arguments.port))
        return 0
    return asyncio.run(ask(arguments.server, arguments.files, arguments.timeout))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except stp.Error as error:
        sys.exit(f"request_service: {error}")
    except KeyboardInterrupt:  # Ctrl-C at the client
        sys.exit(130)
