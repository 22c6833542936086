# SPDX-License-Identifier: BSD-3-Clause
"""usage: request_services.py BUILD EXAMPLES [CLIENTS SERVERS HOST]
The request services of tools/examples in C, C++ and Python through one stpd: clients of each ask servers of each. With
STP_LONG, which tools/test --long sets, each server is killed and started again while they ask: no reply is lost, and none
comes twice. Without the package for Python in BUILD, those in C and C++ alone. CLIENTS and SERVERS are link strings for
either, and HOST what clients call that of the servers."""
import fcntl
import hashlib
import os
import random
import select
import signal
import subprocess
import sys
import tempfile
import unittest

BUILD, EXAMPLES = sys.argv.pop(1), sys.argv.pop(1)
CLIENTS, SERVERS, HOST = (sys.argv.pop(1) for _ in range(3)) if sys.argv[3:] else ("", "", "")
PATIENCE = 120  # seconds, for what takes a second on an idle machine
SERVICES = {
    "C": [f"{BUILD}/bin/request_service_c"],
    "C++": [f"{BUILD}/bin/request_service_cpp"],
}
if os.path.exists(f"{BUILD}/python/stp/__init__.py"):
    SERVICES["Python"] = [sys.executable, f"{EXAMPLES}/request_service.py"]
    os.environ["PYTHONPATH"] = f"{BUILD}/python"
# More than a client has on the way, so that some are asked for after the restart. Each name is so long that a few lines
# of output fill a pipe.
FILES, PIPE = 72, 4096
SIZES = (1, 63, 64, 65, 4096, 5000, 1 << 20, (1 << 20) - 1)


LONG = unittest.skipUnless(os.environ.get("STP_LONG"), "tools/test --long runs it")


class Services(unittest.TestCase):
    def setUp(self):
        self.work = self.enterContext(tempfile.TemporaryDirectory())
        if not SERVERS:
            self.begin("ready", f"{BUILD}/bin/stpd", "--link", "loop", "--socket", f"{self.work}/stpd.sock")
        os.environ["STP_LINK"] = CLIENTS or f"stpd:{self.work}/stpd.sock"
        dice = random.Random(1)
        self.files, self.lines = [], []
        for i in range(FILES):
            name = f"{self.work}/{'./' * 700}{i}"
            content = dice.randbytes(SIZES[i] if i < len(SIZES) else dice.randrange(1, 3000))
            with open(name, "wb") as file:
                file.write(content)
            self.files.append(name)
            self.lines.append(f"{hashlib.sha256(content).hexdigest()} {name}")

    def begin(self, text, *command, link=""):
        """A program that runs on once it has said TEXT."""
        program = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, **({"STP_LINK": link} if link else {})},
        )
        self.addCleanup(program.stdout.close)
        self.addCleanup(program.wait)
        self.addCleanup(program.kill)
        said = ""
        for line in program.stdout:
            said += line
            if text in line:
                return program
        self.fail(f"{command} has ended: {said}")

    def serve(self, service, port):
        return self.begin("serving", *SERVICES[service], "serve", f":{port}", link=SERVERS)

    def ask(self, service, port, *words):
        client = subprocess.Popen(
            [*SERVICES[service], "ask", *words[:-1], f"{HOST}:{port}", *words[-1]],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        fcntl.fcntl(client.stdout, fcntl.F_SETPIPE_SZ, PIPE)
        self.addCleanup(client.kill)
        return client

    def begin_servers(self):
        ports = dict(zip(SERVICES, range(3000, 4000)))
        return ports, {service: self.serve(service, port) for service, port in ports.items()}

    def end_in_order(self, servers):
        for server in servers.values():
            server.send_signal(signal.SIGTERM)
        for service, server in servers.items():
            self.assertEqual(server.wait(PATIENCE), 0, service)

    def test_clients_of_each_ask_servers_of_each(self):
        ports, servers = self.begin_servers()
        few = slice(len(SIZES) + 1)
        pairs = [(asks, serves) for asks in SERVICES for serves in SERVICES]
        clients = {pair: self.ask(pair[0], ports[pair[1]], "--timeout", str(PATIENCE), self.files[few]) for pair in pairs}
        for pair, client in clients.items():
            with self.subTest(asks=pair[0], serves=pair[1]):
                said, complained = client.communicate(timeout=PATIENCE)
                self.assertEqual(client.returncode, 0, complained)
                self.assertEqual(sorted(said.splitlines()), sorted(self.lines[few]))
        self.end_in_order(servers)

    @LONG
    def test_clients_of_each_outlive_the_restart_of_servers_of_each(self):
        ports, servers = self.begin_servers()
        pairs = [(asks, serves) for asks in SERVICES for serves in SERVICES]
        clients = {pair: self.ask(pair[0], ports[pair[1]], "--timeout", str(PATIENCE), self.files) for pair in pairs}
        # Nobody reads what they print: each waits behind one of its first replies.
        for pair, client in clients.items():
            self.assertTrue(select.select([client.stdout], [], [], PATIENCE)[0], f"{pair}: no reply")
        for server in servers.values():
            server.kill()
            server.wait()
        servers = {service: self.serve(service, port) for service, port in ports.items()}
        for pair, client in clients.items():
            with self.subTest(asks=pair[0], serves=pair[1]):
                said, complained = client.communicate(timeout=PATIENCE)
                self.assertEqual(client.returncode, 0, complained)
                # Not compared as lists: the difference would fill the log.
                self.assertTrue(sorted(said.splitlines()) == sorted(self.lines), f"{len(said.splitlines())} replies")
        self.end_in_order(servers)

    @LONG
    def test_what_gets_no_reply_is_named(self):
        """Nobody serves; a file is empty, one too long, one is not there, one is a directory."""
        empty, long, none = (f"{self.work}/{name}" for name in ("empty", "long", "none"))
        open(empty, "wb").close()
        with open(long, "wb") as file:
            file.truncate((1 << 20) + 1)
        clients = {
            service: self.ask(service, 3999, "--timeout", "0.3", [empty, self.files[0], long, none, self.work])
            for service in SERVICES
        }
        for service, client in clients.items():
            with self.subTest(service=service):
                said, complained = client.communicate(timeout=PATIENCE)
                self.assertEqual((client.returncode, said), (1, ""), complained)
                for complaint in (
                    f"{empty}: not 1 byte to 1 MiB long",
                    f"{long}: not 1 byte to 1 MiB long",
                    "/0: no reply in time",
                    f"{none}: No such file or directory\n",
                    f"{self.work}: Is a directory\n",
                ):
                    self.assertIn(complaint, complained.replace("./", ""))

    @LONG
    def test_why_there_is_no_connection_is_told(self):
        """Nobody serves: the client goes on trying. A server without a port: it ends."""
        waiting = {service: self.ask(service, 3999, self.files[:1]) for service in SERVICES}
        for service, client in waiting.items():
            with self.subTest(service=service):
                told = next((line for line in client.stderr if not line.startswith("link ")), "")
                self.assertRegex(told, "^request_service: .*:3999: Connection refused.*; trying again\n$")
                client.kill()
                client.communicate()
        for service, command in SERVICES.items():
            with self.subTest(service=service):
                program = subprocess.run(
                    [*command, "ask", "localhost", self.files[0]], capture_output=True, text=True, timeout=PATIENCE
                )
                self.assertNotEqual(program.returncode, 0)
                self.assertIn("'localhost' does not have the form host:port", program.stderr)
                self.assertNotIn("no reply in time", program.stderr)

    @LONG
    def test_a_time_limit_is_a_number_of_seconds(self):
        for service, command in SERVICES.items():
            for limit in ("soon", "5s", "-1", "0", "nan", "inf"):
                with self.subTest(service=service, limit=limit):
                    words = [*command, "ask", "--timeout", limit, ":3999", self.files[0]]
                    program = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE)
                    self.assertEqual(program.returncode, 2, program.stderr)
                    self.assertIn("usage: ", program.stderr)


if __name__ == "__main__":
    unittest.main()
