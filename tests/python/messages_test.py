# SPDX-License-Identifier: BSD-3-Clause
"""Connections, messages, regions: what a program relies on when all goes well."""
import array
import contextlib
import ctypes
import gc
import mmap
import select
import unittest
import unittest.mock

import stp
from support import PATIENCE, PairCase, Thread, eventually


try:
    import numpy
except ImportError:
    numpy = None


class Connections(unittest.TestCase):
    def setUp(self):
        self.domain = stp.Domain("loop")
        self.addCleanup(self.domain.close)

    def test_both_sides_send_data_along(self):
        with self.domain.listen(":3000") as listener:
            accepted = Thread(listener.accept, b"welcome")
            with self.domain.connect(":3000", data=b"it is me") as a, accepted.result() as b:
                self.assertEqual(b.data, b"it is me")
                self.assertEqual(a.data, b"welcome")
                self.assertRegex(a.peer, r"^\[02(:[0-9a-f]{2}){5}\]:\d+$")
        self.assertTrue(a.closed and b.closed)

    def test_a_request_can_be_rejected(self):
        with self.domain.listen(":3000") as listener:

            def reject():
                request = listener.request(PATIENCE)
                request.reject(b"no room")
                return request.data

            rejected = Thread(reject)
            with self.assertRaises(stp.ConnectionRefused) as caught:
                self.domain.connect(":3000", data=b"please")
            self.assertEqual(rejected.result(), b"please")
        self.assertEqual(caught.exception.data, b"no room")
        self.assertIsInstance(caught.exception, ConnectionRefusedError)
        self.assertIn("start the peer", str(caught.exception))

    def test_one_that_does_not_come_about_leaves_nothing_behind(self):
        made = []
        connect = stp._stp.Domain.connect

        def kept(*arguments):
            made.append(connect(*arguments))
            return made[-1]

        with unittest.mock.patch.object(stp._stp.Domain, "connect", kept):
            self.assertRaises(stp.ConnectionRefused, self.domain.connect, ":3999")
        self.assertTrue(made[0].connection.closed)

    def test_a_port_is_taken_once(self):
        with self.domain.listen(":3000"):
            self.assertRaises(stp.AddressInUse, self.domain.listen, ":3000")

    def test_accepting_ends_in_time(self):
        with self.domain.listen(":3000") as listener:
            self.assertRaises(stp.TimedOut, listener.accept, timeout=0.01)

    def test_the_link_tells_of_itself(self):
        mac, _, _ = self.domain.info()
        self.assertRegex(mac, "^02:")
        self.assertEqual(mac, self.domain.info().mac)
        self.assertEqual(self.domain.info().udp_port, 0)
        self.assertEqual(self.domain.link().state, "up")
        self.assertEqual(self.domain.link().trouble, "")

    def test_no_such_link(self):
        with self.assertRaises(stp.Error) as caught:
            stp.Domain("iface:no-such-thing")
        self.assertIn("no-such-thing", str(caught.exception))


class Messages(PairCase):
    def test_of_any_length_arrive_as_they_were(self):
        for length in (0, 1, 4096, 32768, 32769, 1 << 20):
            message = bytes(i * 7 & 0xFF for i in range(251)) * (length // 251 + 1)
            message = message[:length]
            received = Thread(self.b.receive, 1 << 20)
            self.a.send(message)
            self.assertEqual(received.result(), message)

    def test_keep_their_order_and_tags(self):
        sent = [self.a.begin_send(bytes([n]), tag=n) for n in range(100)]
        for n in range(100):
            self.assertEqual(self.b.receive_message(), (bytes([n]), n))
        for operation in sent:
            self.assertIsNone(operation.wait(PATIENCE))

    def test_go_into_memory_of_the_program(self):
        numbers = array.array("d", [0.0] * 100_000)
        received = Thread(self.b.receive_into, numbers)
        self.a.send(array.array("d", range(100_000)))
        self.assertEqual(received.result(), 800_000)
        self.assertEqual(numbers[99_999], 99_999.0)

    def test_that_are_too_long_are_told(self):
        self.a.begin_send(b"x" * 100)
        self.assertRaisesRegex(stp.MessageTooLong, "it has 100 bytes, and the receive takes 10", self.b.receive, 10)
        self.a.begin_send(b"next")
        self.assertEqual(self.b.receive(), b"next")
        self.a.begin_send(bytes(70_000))  # it is offered: the ring takes no such one
        self.assertRaisesRegex(stp.MessageTooLong, "70000 bytes, and the receive takes 65536", next, iter(self.b))

    def test_may_be_longer_in_a_loop_that_says_so(self):
        lengths = [0, 70_000, 1 << 20]

        def send():
            with self.a:
                for length in lengths:
                    self.a.send(bytes(length))

        sender = Thread(send)
        self.assertEqual([len(message) for message in self.b.messages(1 << 20)], lengths)
        sender.result()

    def test_come_after_a_receive_that_timed_out(self):
        for _ in range(3):
            self.assertRaises(stp.TimedOut, self.b.receive, timeout=0.001)
        for n in range(3):
            self.a.begin_send(bytes([n]))
        self.assertEqual([self.b.receive() for _ in range(3)], [b"\0", b"\1", b"\2"])

    def test_that_a_receive_took_too_late_are_the_next_ones(self):
        """Whatever a cancel finds, no message is lost, and their order stays."""
        for n in range(120):
            receive = self.b.begin_receive()
            send = self.a.begin_send(n.to_bytes(4, "big"))
            if n % 3 != 0:  # it has come, and this program has not looked yet
                select.select([self.domain.fileno()], [], [], PATIENCE)
            receive.cancel()
            if n % 3 != 1:
                self.assertRaises(stp.Canceled, receive.wait, PATIENCE)
            self.assertEqual(int.from_bytes(self.b.receive(timeout=PATIENCE), "big"), n)
            send.wait(PATIENCE)

    def test_are_not_taken_back_by_waiting_in_turns(self):
        """A receive that stays posted: what its waits find under way goes on."""
        for n in range(20):
            receive = self.b.begin_receive(100_000)
            send = Thread(self.a.send, bytes([n]) * 100_000)
            while not receive.done:
                with contextlib.suppress(stp.TimedOut):
                    receive.wait(0.0001)
            self.assertEqual(receive.wait(), bytes([n]) * 100_000)
            send.result()

    def test_that_arrive_while_their_receive_is_taken_back_are_the_next_ones(self):
        """Long ones take a while; the peer's send is done nevertheless."""
        for into in (False, True):
            for n in range(40):
                message = bytes([n]) * 1_000_000
                send = self.a.begin_send(message)
                buffer = bytearray(len(message))
                for _ in range(n):
                    with contextlib.suppress(stp.TimedOut):
                        if into:
                            self.b.receive_into(buffer, timeout=n * 1e-5)
                        else:
                            buffer[:] = self.b.receive(len(message), timeout=n * 1e-5)
                        break
                else:
                    self.assertEqual(self.b.receive_into(buffer, timeout=PATIENCE), len(message))
                self.assertEqual(buffer, message)
                send.wait(PATIENCE)

    def test_are_awaited_no_more_when_the_domain_is_closed(self):
        """Nor by a receive that waits until one that was taken back is over."""
        taken_back = self.b.begin_receive()
        taken_back.cancel()
        behind = self.b.begin_receive()
        self.domain.close()
        self.assertTrue(behind.done)
        for receive in taken_back, behind:
            self.assertRaises(stp.Canceled, receive.wait, PATIENCE)

    def test_end_the_iteration_when_the_peer_closes(self):
        received = Thread(lambda: list(self.b))
        for n in range(5):
            self.a.send(bytes([n]))
        self.a.close()
        self.assertEqual(received.result(), [b"\0", b"\1", b"\2", b"\3", b"\4"])
        self.assertIsNone(self.b.reason)

    def test_a_fault_of_the_peer_ends_the_iteration_by_an_exception(self):
        with self.domain.listen(":3001") as listener:
            for _ in range(20):  # the events of a receive and of the end may come apart
                accepted = Thread(listener.accept)
                with self.assertRaises(ZeroDivisionError), self.domain.connect(":3001"):
                    b = accepted.result()
                    received = Thread(lambda: list(b))
                    raise ZeroDivisionError
                self.assertRaises(stp.PeerBroke, received.result)
                self.assertIsInstance(b.reason, stp.PeerBroke)
                b.close()

    def test_of_many_threads_find_their_own(self):
        pairs = [(self.a, self.b)] + [self.pair() for _ in range(7)]

        def ask(peer, n):
            for i in range(20):
                peer.send(b"%d %d" % (n, i))
                self.assertEqual(peer.receive(timeout=PATIENCE), b"%d %d" % (n, i))
            peer.close()

        def answer(peer):
            for message in peer:
                peer.send(message)

        threads = [Thread(answer, b) for _, b in pairs]
        threads += [Thread(ask, a, n) for n, (a, _) in enumerate(pairs)]
        for thread in threads:
            thread.result()


class Regions(PairCase):
    def remote_of(self, region):
        """As the peer makes it of bytes that it was sent."""
        return stp.Remote.decode(bytes(region.remote))

    def test_are_written_and_read_without_the_peer(self):
        memory = bytearray(200_000)
        with self.domain.region(memory) as region:
            remote = self.remote_of(region)
            self.a.put(b"hello", remote, 10)
            self.assertEqual(memory[8:17], b"\0\0hello\0\0")
            self.a.put(b"y" * 100_000, remote, 100_000)
            self.assertEqual(self.a.get(remote, 7, 9), b"\0hello\0")
            self.assertEqual(self.a.get(remote), memory)
            landing = bytearray(100_000)
            self.a.get_into(landing, remote, 100_000)
            self.assertEqual(landing, b"y" * 100_000)

    def test_over_whatever_has_memory(self):
        for memory in (array.array("Q", [0] * 8), mmap.mmap(-1, 4096), (ctypes.c_char * 64)(), memoryview(bytearray(64))):
            with self.domain.region(memory) as region:
                self.a.put(b"12345678", region.remote)
                self.assertEqual(bytes(memory)[:8], b"12345678")

    @unittest.skipUnless(numpy, "numpy is not installed (Debian: python3-numpy)")
    def test_over_arrays_of_numpy(self):
        numbers = numpy.zeros((64, 64))
        table = numpy.arange(4096.0).reshape(64, 64)
        with self.domain.region(numbers) as region:
            self.a.put(table, region.remote)
            self.assertTrue((numbers == table).all())
            arrived = numpy.empty((64, 64))
            self.a.get_into(arrived, region.remote)
            self.assertTrue((arrived == table).all())
            with self.assertRaises(ValueError):
                numbers.resize((1, 1))  # peers may write there
        self.a.begin_send(table)
        self.b.receive_into(numbers)
        self.assertTrue((numbers == table).all())
        with self.assertRaisesRegex(BufferError, "^data: its bytes do not lie in one piece"):
            self.a.send(table[:, 0])
        table.flags.writeable = False
        with self.assertRaisesRegex(BufferError, "^buffer: it is read-only"):
            self.a.receive_into(table)

    def test_numbers_are_added_to_atomically(self):
        counter = array.array("Q", [40, 7])
        with self.domain.region(counter, atomic=True) as region:
            self.assertEqual(self.a.fetch_add(region.remote, 2), 40)
            self.assertEqual(self.a.fetch_add(region.remote, -1, 8), 7)
            self.assertEqual(self.a.compare_and_swap(region.remote, 42, 5), 42)
            self.assertEqual(self.a.compare_and_swap(region.remote, 42, 6), 5)
        self.assertEqual(list(counter), [5, 6])

    def test_keep_their_memory_while_peers_may_write(self):
        memory = bytearray(64)
        region = self.domain.region(memory)
        self.assertRaises(BufferError, memory.extend, b"x")
        remote = region.remote
        del region
        gc.collect()
        self.assertRaises(BufferError, memory.extend, b"x")
        self.a.put(b"z", remote)
        self.assertEqual(memory[0], ord("z"))

    def test_give_it_back_when_they_are_closed(self):
        memory = bytearray(64)
        region = self.domain.region(memory)
        region.close()
        region.close()
        memory.extend(b"x")
        self.assertRaises(stp.AccessDenied, self.a.put, b"z", region.remote)

    def test_give_only_the_access_that_was_meant(self):
        with self.domain.region(b"constant", write=False) as region:
            self.assertEqual(self.a.get(region.remote), b"constant")
            self.assertRaises(stp.AccessDenied, self.a.put, b"z", region.remote)
            self.assertRaises(stp.OutOfRange, self.a.get, region.remote, 9)
        with self.domain.region(bytearray(8), only=self.a) as region:
            self.assertRaises(stp.AccessDenied, self.a.get, region.remote)
        with self.domain.region(bytearray(8), only=self.b) as region:
            self.assertEqual(self.a.get(region.remote), bytes(8))

    def test_serve_long_messages_of_this_program(self):
        memory = bytearray(b"m" * 300_000)
        with self.domain.region(memory, read=False, write=False):
            received = Thread(self.b.receive, 200_000)
            self.a.send(memoryview(memory)[50_000:250_000])
            self.assertEqual(received.result(), b"m" * 200_000)
            self.assertRaises(BufferError, memory.clear)
        memory.clear()

    def test_stay_while_an_operation_uses_them(self):
        memory = bytearray(1 << 20)
        region = self.domain.region(memory, read=False, write=False)
        sending = self.a.begin_send(memory)
        self.assertRaises(stp.Busy, region.close)
        self.assertEqual(self.b.receive(1 << 20), bytes(1 << 20))
        sending.wait(PATIENCE)
        region.close()

    def test_buffers_of_operations_are_free_when_they_are_done(self):
        message = bytearray(b"m" * 100_000)
        sending = self.a.begin_send(message)
        self.assertRaises(BufferError, message.clear)
        self.b.receive(100_000)
        sending.wait(PATIENCE)
        message.clear()


if __name__ == "__main__":
    unittest.main()
