# SPDX-License-Identifier: BSD-3-Clause
"""usage: service_test.py BIN EXAMPLES
tools/examples/request_service.py through stpd: each request gets its reply once, also when the server is killed and
started again; the server ends in good order. And the programs of python3 -m stp."""
import asyncio
import contextlib
import hashlib
import io
import os
import random
import signal
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

import stp.__main__
import stp.aio
from support import PATIENCE, Thread, eventually, interrupted

BIN, EXAMPLES = sys.argv.pop(1), sys.argv.pop(1)
sys.path.insert(0, EXAMPLES)
import request_service  # noqa: E402


class CommandLines(unittest.TestCase):
    def test_a_word_that_is_wrong_is_named_and_what_may_have_been_meant(self):
        for words, says in (
            (("pign", ":3000"), "there is no command pign; there are info, receive, send, ping; did you mean ping?"),
            (("ping", "--cuont", "3", ":3000"), "no option or argument --cuont here; did you mean --count?"),
            (("ping", "--count=x", ":3000"), "argument --count: a number above 0, not x"),
            (("--lnik", "udp:", "info"), "there is no option --lnik here; did you mean --link?"),
            (("ping", "--si", "3", ":3000"), "no option or argument --si here"),
            (("info", "more"), "no option or argument more here"),
        ):
            with unittest.mock.patch.object(sys, "argv", ["stp", *words]), self.assertRaises(SystemExit) as ended:
                with contextlib.redirect_stderr(io.StringIO()) as said:
                    stp.__main__.main()
            self.assertEqual(ended.exception.code, 2)
            self.assertIn(says, said.getvalue())


    def test_the_link_may_stand_behind_the_command(self):
        for words in (["--link", "loop", "info"], ["info", "--link", "loop"]):
            with unittest.mock.patch.object(sys, "argv", ["stp", *words]):
                with contextlib.redirect_stdout(io.StringIO()) as said:
                    stp.__main__.main()
            self.assertIn("link loop\n", said.getvalue())

    def test_output_that_nobody_takes_is_told_without_a_traceback(self):
        with open("/dev/full", "w") as full, unittest.mock.patch.object(sys, "stdout", full):
            with unittest.mock.patch.object(sys, "argv", ["stp", "--link", "loop", "info"]):
                with self.assertRaisesRegex(SystemExit, "^stp: cannot write to standard output: No space left"):
                    stp.__main__.program()
        for words, stream in ((["info"], "stdout"), (["receive", ":3"], "stdout"), (["send", ":3"], "stdin")):
            with unittest.mock.patch.object(sys, "argv", ["stp", *words]):
                with unittest.mock.patch.object(sys, stream, None):
                    with self.assertRaisesRegex(SystemExit, "^stp: standard (out|in)put is closed; redirect it$"):
                        stp.__main__.program()

    def test_input_that_cannot_be_read_is_not_told_as_output(self):
        with open(os.devnull, "wb") as unreadable, unittest.mock.patch.object(sys, "stdin") as stdin:
            stdin.buffer = open(unreadable.fileno(), "rb", closefd=False)
            with self.assertRaisesRegex(SystemExit, "^stp: cannot read standard input: Bad file descriptor$"):
                list(stp.__main__.lines_of_input())
            stdin.buffer.close()


class Programs(unittest.TestCase):
    def setUp(self):
        self.work = self.enterContext(tempfile.TemporaryDirectory())
        self.enterContext(contextlib.chdir(self.work))
        self.logs = []
        self.stpd = self.begin("ready", f"{BIN}/stpd", "--link", "loop", "--socket", f"{self.work}/stpd.sock")
        self.environment = unittest.mock.patch.dict(os.environ, STP_LINK=f"stpd:{self.work}/stpd.sock")
        self.environment.start()
        self.addCleanup(self.environment.stop)

    def begin(self, text, *command):
        """A program that runs on once it has said TEXT."""
        log = open(f"{self.work}/{len(self.logs)}.log", "w+")
        self.logs.append(log)
        self.addCleanup(log.close)
        begun = subprocess.Popen(command, stdout=log, stderr=log)
        self.addCleanup(begun.wait)
        self.addCleanup(begun.kill)

        def has_said():
            with open(log.name) as file:
                said = file.read()
            self.assertIsNone(begun.poll(), said)
            return text in said

        eventually(has_said)
        return begun

    def serve(self):
        return self.begin("serving", sys.executable, f"{EXAMPLES}/request_service.py", "serve", ":3000")

    def run_program(self, *command, **options):
        return subprocess.run(
            [sys.executable, *command], capture_output=True, text=True, timeout=PATIENCE, check=False, **options
        )

    def test_a_server_that_is_killed_and_started_again_loses_no_reply(self):
        dice = random.Random(1)
        requests = [dice.randbytes(dice.choice((1, 5000, 40_000, 1 << 20))) for _ in range(30)]
        first = self.serve()

        async def ask_all():
            async with stp.aio.Domain() as domain:
                client = request_service.Client(domain, ":3000")
                asking = [asyncio.create_task(client.ask(request, PATIENCE)) for request in requests]
                await asyncio.wait(asking, return_when=asyncio.FIRST_COMPLETED)
                first.kill()
                first.wait()
                await asyncio.get_running_loop().run_in_executor(None, self.serve)
                replies = await asyncio.gather(*asking)
                await client.close()
                return replies

        self.assertEqual(asyncio.run(ask_all()), [hashlib.sha256(request).digest() for request in requests])

    def test_a_server_ends_in_good_order_and_its_client_says_what_is_missing(self):
        server = self.serve()
        with open("file", "wb") as file:
            file.write(b"abc")
        open("empty", "w").close()
        program = f"{EXAMPLES}/request_service.py"
        asked = self.run_program(program, "ask", ":3000", "file", "empty", "none")
        self.assertEqual(asked.returncode, 1)
        self.assertEqual(asked.stdout, f"{hashlib.sha256(b'abc').hexdigest()} file\n")
        self.assertIn("empty: not 1 byte", asked.stderr)
        self.assertIn("none: ", asked.stderr)
        server.send_signal(signal.SIGTERM)
        self.assertEqual(server.wait(PATIENCE), 0)

    def test_a_client_takes_only_times_above_zero(self):
        for limit in ("-1", "0", "nan", "inf", "soon"):
            asked = self.run_program(
                f"{EXAMPLES}/request_service.py", "ask", "--timeout", limit, ":3000", "file"
            )
            self.assertEqual(asked.returncode, 2, asked.stderr)
            self.assertIn("--timeout", asked.stderr)

    def test_ctrl_c_ends_a_client_without_a_traceback(self):
        with open("file", "wb") as file:
            file.write(b"abc")
        program = f"{EXAMPLES}/request_service.py"
        client = self.begin("trying again", sys.executable, program, "ask", ":3999", "file")
        client.send_signal(signal.SIGINT)
        self.assertEqual(client.wait(PATIENCE), 130)
        with open(self.logs[-1].name) as log:
            self.assertRegex(log.read(), r"\Arequest_service: [^\n]*; trying again\n\Z")

    def test_ctrl_c_ends_the_first_programs_without_a_traceback(self):
        receiver = self.begin("listening\n", sys.executable, f"{EXAMPLES}/hello_receive.py")
        receiver.send_signal(signal.SIGINT)
        self.assertEqual(receiver.wait(PATIENCE), 130)
        silent = self.begin("listening", sys.executable, "-m", "stp", "receive", ":3001")
        sender = self.begin("", sys.executable, f"{EXAMPLES}/hello_send.py", ":3001")
        with open(self.logs[-2].name) as said:
            eventually(lambda: said.seek(0) == 0 and "Hello" in said.read())  # so it waits for an answer
        sender.send_signal(signal.SIGINT)
        self.assertEqual(sender.wait(PATIENCE), 130)
        silent.wait(PATIENCE)
        for log, expected in ((self.logs[-3], "listening\n"), (self.logs[-1], "")):
            with open(log.name) as file:
                self.assertEqual(file.read(), expected)

    def test_the_first_programs_say_what_is_wrong_without_a_traceback(self):
        for words in ([], [":3000", "Hello"]):
            said = self.run_program(f"{EXAMPLES}/hello_send.py", *words)
            self.assertEqual((said.returncode, said.stderr), (2, "usage: hello_send.py HOST:PORT\n"))
        said = self.run_program(f"{EXAMPLES}/hello_send.py", ":3999")
        self.assertEqual(said.returncode, 1)
        self.assertRegex(said.stderr, r"\Ahello_send: [^\n]*Connection refused[^\n]*\n\Z")
        with stp.Domain() as domain, domain.listen(":3000"):
            said = self.run_program(f"{EXAMPLES}/hello_receive.py")
        self.assertEqual(said.returncode, 1)
        self.assertRegex(said.stderr, r"\Ahello_receive: [^\n]*:3000[^\n]*\n\Z")

    def test_a_wrong_command_line_of_the_package_ends_with_2_and_a_short_text(self):
        for words, says in (
            (("receive", ":abc"), "no service is called 'abc'"),
            (("send", "fe80::1:3000"), "write it in brackets"),
            (("send", "fe80::1"), "an address without a port: write [fe80::1]:PORT"),
            (("--link", "nonsense", "info"), "link 'nonsense'"),
            (("ping", "--size", "65537", ":3000"), "from 0 to 65536, not 65537"),
            (("ping", "--size", "-1", ":3000"), "from 0 to 65536, not -1"),
        ):
            said = self.run_program("-m", "stp", *words)
            self.assertEqual(said.returncode, 2, said.stderr)
            self.assertIn(says, said.stderr)
            self.assertLess(len(said.stderr), 500)

    def test_programs_for_two_do_not_begin_on_a_link_that_reaches_only_one(self):
        for words in (["receive", ":3000"], ["send", ":3000"], ["ping", ":3000"]):
            said = self.run_program("-m", "stp", "--link", "loop,mtu=1500", *words)
            self.assertEqual((said.returncode, said.stdout), (1, ""))
            self.assertIn("stp: the link loop reaches only this process; name one with --link", said.stderr)
        self.assertIn("link loop\n", self.run_program("-m", "stp", "--link", "loop", "info").stdout)

    def test_who_waits_for_a_request_learns_that_stpd_has_gone(self):
        async def accept():
            async with stp.aio.Domain() as domain:
                listener = domain.listen(":3001")
                waiting = asyncio.create_task(listener.accept())
                await asyncio.sleep(0)
                self.stpd.kill()
                for request in (waiting, listener.accept()):
                    with self.assertRaisesRegex(stp.NoLink, "waiting for a request: stpd:.*: stpd has ended"):
                        await asyncio.wait_for(request, PATIENCE)

        with stp.Domain() as domain, domain.listen(":3000") as listener:
            accepting = Thread(listener.accept)
            asyncio.run(accept())
            with self.assertRaisesRegex(stp.NoLink, "stpd has ended"):
                accepting.result()
            with self.assertRaisesRegex(stp.NoLink, "listening on :3002: stpd:.*: stpd has ended"):
                domain.listen(":3002")
            with self.assertRaisesRegex(stp.NoLink, "registering the buffer: stpd:.*: stpd has ended"):
                domain.region(bytearray(4096))
            with self.assertRaisesRegex(stp.NoLink, "stpd has ended"):
                domain.connect(":3002")

    # A requester that keeps nobody waiting is given up after 40 s.
    def test_a_requester_that_is_stopped_does_not_keep_others_waiting(self):
        def request_from_a_stopped_program(domain, listener):
            asking = self.begin("", sys.executable, "-c", "import stp; stp.Domain().connect(':3000')")
            eventually(lambda: (domain.poll(), listener.waiting)[1] == 1)
            asking.send_signal(signal.SIGSTOP)
            os.waitpid(asking.pid, os.WUNTRACED)  # until it has stopped
            return asking

        async def accept():
            async with stp.aio.Domain() as domain:
                with domain.listen(":3000") as listener:
                    request_from_a_stopped_program(domain._native, listener._native)
                    asking = asyncio.create_task(domain.connect(":3000", data=b"aio"))
                    peer = await asyncio.wait_for(listener.accept(), PATIENCE / 3)
                    (await asking).abort()
                    return peer.data

        with unittest.mock.patch.object(stp._base, "TURN", 0.05):
            with stp.Domain() as domain, domain.listen(":3000") as listener, stp.Domain() as other:
                request_from_a_stopped_program(domain._native, listener._native)
                asking = Thread(lambda: other.connect(":3000", data=b"blocking"))
                accepting = Thread(listener.accept)
                accepting.join(PATIENCE / 3)
                self.assertFalse(accepting.is_alive())
                with accepting.result() as peer:
                    self.assertEqual(peer.data, b"blocking")
                asking.result().abort()
            self.assertEqual(asyncio.run(accept()), b"aio")

    def test_an_interrupt_ends_the_opening_of_a_link_whose_stpd_is_stopped(self):
        self.stpd.send_signal(signal.SIGSTOP)
        os.waitpid(self.stpd.pid, os.WUNTRACED)  # until it has stopped
        tries = [interrupted(stp.Domain)]
        while tries[-1] > 0.1 and len(tries) < 10:
            tries.append(interrupted(stp.Domain))
        self.stpd.send_signal(signal.SIGCONT)
        self.assertLess(tries[-1], 0.1, tries)
        stp.Domain().close()

    def test_the_small_programs(self):
        receiver = self.begin("listening", sys.executable, "-m", "stp", "receive", ":3001")
        self.assertEqual(self.run_program("-m", "stp", "send", ":3001", input="one\ntwo\n").stderr, "")
        self.assertEqual(receiver.wait(PATIENCE), 0)
        with open(self.logs[-1].name) as log:
            self.assertIn("one\ntwo\n", log.read())
        self.begin("listening", sys.executable, "-m", "stp", "receive", "--answer", ":3002")
        self.assertRegex(self.run_program("-m", "stp", "ping", ":3002").stdout, r"^10 round trips of 8 bytes: least")
        self.assertIn("state up", self.run_program("-m", "stp", "info").stdout)
        self.assertRegex(self.run_program("-m", "stp", "ping", ":3999").stderr, "^stp: .*refused")


if __name__ == "__main__":
    unittest.main()
