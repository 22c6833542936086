# SPDX-License-Identifier: BSD-3-Clause
"""stp.aio: one descriptor in the loop, any number of connections, cancellation."""
import asyncio
import os
import threading
import unittest
import unittest.mock
import warnings

import stp
import stp.aio
from support import PATIENCE


async def within(awaitable):
    return await asyncio.wait_for(awaitable, PATIENCE)


async def echo(peer):
    async for message in peer:
        await peer.send(message)
    await peer.close()


MANY = 2000 if os.environ.get("STP_LONG") else 200  # connections at once


class Loops(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        self.domain = stp.aio.Domain("loop")
        self.addCleanup(self.domain.close)
        self.listener = self.domain.listen(":3000")

    async def pair(self):
        a, b = await within(asyncio.gather(self.domain.connect(":3000", data=b"me"), self.listener.accept(b"yes")))
        self.addCleanup(a.abort)
        self.addCleanup(b.abort)
        return a, b

    async def test_those_who_ask_and_go_while_nobody_accepts_leave_little(self):
        asked = 600
        for _ in range(asked):
            asking = asyncio.ensure_future(self.domain.connect(":3000"))
            for _ in range(20):
                await asyncio.sleep(0)
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
        told = 0
        with self.assertRaises(asyncio.TimeoutError):
            while True:
                request = await asyncio.wait_for(self.listener.request(), 0.5)
                request.reject()
                told += 1
        self.assertLess(told, asked / 2)
        await self.pair()

    async def test_messages_in_a_loop_are_as_long_as_it_says(self):
        a, b = await self.pair()
        lengths = [0, 70_000, 1 << 20]

        async def send():
            for length in lengths:
                await a.send(bytes(length))
            await a.close()

        sender = asyncio.ensure_future(send())
        self.assertEqual([len(message) async for message in b.messages(1 << 20)], lengths)
        await within(sender)

    async def test_that_both_sides_send_first_is_told_once(self):
        a, b = await self.pair()

        async def send():
            await a.send(bytes(1 << 20))

        stp._stp.warn_after(1_000)
        self.addCleanup(stp._stp.warn_after, 10_000_000)
        with self.assertWarnsRegex(RuntimeWarning, "receive first, or send in a task of its own") as told:
            sending = asyncio.ensure_future(send())

            async def until_told():
                while not told.warnings:
                    await asyncio.sleep(0.001)

            await within(until_told())
            await within(asyncio.gather(b.receive(1 << 20), sending))
        self.assertEqual(told.filename, __file__)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            receiving = asyncio.ensure_future(a.receive())
            sending = asyncio.ensure_future(send())
            await asyncio.sleep(0.005)
            await within(asyncio.gather(b.receive(1 << 20), sending))  # it receives meanwhile
            receiving.cancel()
            with self.assertRaises(RuntimeWarning):
                await within(send())

    async def test_messages_and_regions(self):
        a, b = await self.pair()
        self.assertEqual((a.data, b.data), (b"yes", b"me"))
        for length in (0, 100, 100_000):
            _, message = await within(asyncio.gather(a.send(b"x" * length, 7), b.receive_message(1 << 20)))
            self.assertEqual(message, (b"x" * length, 7))
        memory = bytearray(50_000)
        with self.domain.region(memory, atomic=True) as region:
            await within(a.put(b"hello", region.remote, 8))
            self.assertEqual(memory[8:13], b"hello")
            self.assertEqual(await within(a.fetch_add(region.remote, 3)), 0)
            self.assertEqual(await within(a.compare_and_swap(region.remote, 3, 0)), 3)
            self.assertEqual(await within(a.get(region.remote)), memory)
            with self.assertRaises(stp.OutOfRange):
                await within(a.get(region.remote, 1, 50_000))

    async def test_many_connections_without_a_thread(self):
        served = []

        async def serve():
            async for peer in self.listener:
                served.append(asyncio.create_task(echo(peer)))

        async def ask(n):
            async with await self.domain.connect(":3000") as peer:
                for i in range(3):
                    await peer.send(b"%d %d" % (n, i))
                    self.assertEqual(await peer.receive(256), b"%d %d" % (n, i))

        server = asyncio.create_task(serve())
        await within(asyncio.gather(*(ask(n) for n in range(60))))  # a listener keeps 64 requests
        self.assertEqual(threading.active_count(), 1)
        await within(asyncio.gather(*served))
        server.cancel()
        self.assertEqual(len(served), 60)

    async def test_many_connections_at_once(self):
        served = []

        async def serve():
            async for peer in self.listener:
                served.append(asyncio.create_task(echo(peer)))

        async def ask(peer, n):
            await peer.send(b"%d" % n)
            return int(await peer.receive(256))

        server = asyncio.create_task(serve())
        peers = []
        while len(peers) < MANY:
            peers += await within(asyncio.gather(*(self.domain.connect(":3000") for _ in range(50))))
        said = await within(asyncio.gather(*(ask(peer, n) for n, peer in enumerate(peers))))
        self.assertEqual(said, list(range(MANY)))
        self.assertEqual(threading.active_count(), 1)
        await within(asyncio.gather(*(peer.close() for peer in peers)))
        await within(asyncio.gather(*served))
        server.cancel()

    async def test_an_accept_that_is_cancelled_too_late_leaves_its_connection_to_the_next(self):
        begun = asyncio.Event()
        accept = stp.aio.Request.accept

        async def told(request, data=b""):
            begun.set()
            return await accept(request, data)

        for _ in range(20):
            with unittest.mock.patch.object(stp.aio.Request, "accept", told):
                begun.clear()
                accepting = asyncio.create_task(self.listener.accept())
                dialing = asyncio.create_task(self.domain.connect(":3000"))
                await within(begun.wait())
                accepting.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await within(accepting)
            b = await within(self.listener.accept())
            a = await within(dialing)
            await within(asyncio.gather(a.send(b"hello"), b.receive()))
            a.abort()
            b.abort()

    async def test_a_task_that_is_cancelled_loses_no_message(self):
        a, b = await self.pair()
        for n in range(50):
            receiving = asyncio.create_task(b.receive())
            await asyncio.sleep(0)
            sending = asyncio.create_task(a.send(bytes([n])))
            if n % 2:
                await asyncio.sleep(0)
            receiving.cancel()
            try:
                message = await receiving
            except asyncio.CancelledError:
                message = await within(b.receive())
            self.assertEqual(message, bytes([n]))
            await within(sending)

    async def test_a_task_that_is_cancelled_too_late_loses_nothing(self):
        """The message, or the request, is there, and the task has not run since."""
        a, b = await self.pair()

        async def cancelled_with(waiting, done):
            task = asyncio.create_task(waiting)
            await asyncio.sleep(0)
            until = asyncio.get_running_loop().time() + PATIENCE
            while not done() and asyncio.get_running_loop().time() < until:
                self.domain._native.poll()
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task

        for size in (10, 40_000):
            sending = a._send(bytes(size), 3, False)
            await cancelled_with(b.receive(), lambda: sending.done)
            await within(a.send(b"second"))
            self.assertEqual(await within(b.receive_message()), (bytes(size), 3))
            self.assertEqual(await within(b.receive()), b"second")
        begun, arrived = self.domain._native.connect(":3000", PATIENCE * 1_000_000, b"late"), []
        waiting = self.listener._native.request()
        waiting.on_done(lambda: arrived.append(True))
        while not arrived:
            await asyncio.sleep(0.001)
        waiting.abandon()
        request = await within(self.listener.request())
        self.assertEqual(request.data, b"late")
        connection = await within(request.accept())
        await within(self.domain._loop.finish(begun))
        connection.abort()
        begun.connection.close()

    async def test_time_limits(self):
        _, b = await self.pair()
        with self.assertRaises(asyncio.TimeoutError):
            await asyncio.wait_for(b.receive(), 0.01)
        with self.assertRaises(asyncio.TimeoutError):
            await asyncio.wait_for(self.listener.accept(), 0.01)

    async def test_closing_ends_what_waits(self):
        _, b = await self.pair()
        waiting = [asyncio.create_task(b.receive()), asyncio.create_task(self.listener.accept())]
        await asyncio.sleep(0)
        self.domain.close()
        for task in waiting:
            with self.assertRaises(stp.Canceled):
                await within(task)
        with self.assertRaises(stp.Closed):
            await b.receive()

    async def test_closing_may_be_awaited(self):
        self.assertIsNone(await self.listener.close())
        self.assertIsNone(await self.domain.close())
        self.assertIsNone(await self.domain.close())
        self.assertTrue(self.domain.closed)

    async def test_requests_can_be_rejected(self):
        async def reject():
            request = await self.listener.request()
            request.reject(b"no")

        with self.assertRaises(stp.ConnectionRefused):
            await within(asyncio.gather(self.domain.connect(":3000"), reject()))

    async def test_a_blocking_peer_answers(self):
        """A domain for asyncio and the blocking calls of another thread, which share nothing."""

        def ask():
            with stp.Domain("loop") as domain, domain.listen(":1") as listener:
                return listener.accept(timeout=0.01)

        with self.assertRaises(stp.TimedOut):
            await within(asyncio.get_running_loop().run_in_executor(None, ask))

    def test_takes_a_loop(self):
        self.assertRaises(RuntimeError, stp.aio.Domain, "loop")


if __name__ == "__main__":
    unittest.main()
