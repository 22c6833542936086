# SPDX-License-Identifier: BSD-3-Clause
"""usage: terminal.py BUILD
Names of links, sockets, peers, files, users and options that would control the terminal, deceive its reader or begin a
line of their own: whatever each program prints of them, to standard output and error, for people and as JSON, has no such
byte, with UTF-8 and without."""
import os
import re
import subprocess
import sys
import tempfile
import unittest

BUILD = os.path.abspath(sys.argv.pop(1))
PATIENCE = 60  # seconds, for what takes less than one on an idle machine
# The title of a window; a line that looks like another one; C1 control characters, as UTF-8 and as single bytes; the
# direction of the text; a separator of lines.
EVIL = b"x\x1b]0;y\x07\nforged\r\x7f\xc2\x9b31m\x9b\xe2\x80\xae\xe2\x80\xa8"
SHORT = b"\x1b[2J\nforged\xc2\x9b"  # the path of a socket has few bytes


def is_forbidden(code):
    return code < 0x20 or 0x7F <= code < 0xA0 or code in (0x61C, 0x200E, 0x200F) or 0x2028 <= code <= 0x202E or \
        0x2066 <= code <= 0x2069


def faults_of(output, utf8):
    """What of it could do harm; "": nothing."""
    if not utf8 and any(byte > 0x7F for byte in output):
        return "a byte that is not ASCII"
    try:
        text = output.decode()
    except UnicodeDecodeError as error:
        return f"no UTF-8: {error}"
    for line in text.split("\n"):
        if re.search(r"(^|[:\s])forged", line):
            return "a line of its own"
        for letter in line:
            if is_forbidden(ord(letter)):
                return f"character {ord(letter):#x}"
    return ""


class Terminal(unittest.TestCase):
    def setUp(self):
        self.work = os.fsencode(self.enterContext(tempfile.TemporaryDirectory()))
        self.short = self.work + b"/" + SHORT
        os.mkdir(self.short, 0o700)
        self.file = self.short + b"/" + EVIL
        with open(self.file, "wb") as file:
            file.write(b"no capture\n")
        self.socket = self.short + b"/s"

    def environment(self, utf8, link=None):
        keep = {name: value for name, value in os.environ.items() if not name.startswith("LC_") and name != "LANG"}
        return {**keep, "LC_ALL": "C.UTF-8" if utf8 else "C", **({"STP_LINK": os.fsdecode(link)} if link else {})}

    def check(self, output, utf8, command):
        if why := faults_of(output, utf8):
            self.fail(f"{command}: {why}: {output!r}")

    def runs(self, program, *arguments, link=None):
        """Both ways; returns what it said in UTF-8."""
        command = [os.path.join(BUILD, "bin", program), *arguments] if isinstance(program, str) else [*program, *arguments]
        for utf8 in (False, True):
            with self.subTest(command=command, utf8=utf8):
                done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                      env=self.environment(utf8, link), timeout=PATIENCE)
                self.check(done.stdout, utf8, command)
                self.check(done.stderr, utf8, command)
        return done.stdout + done.stderr

    def begin(self, text, *command, link=None, utf8=True):
        """A program that runs on once it has said TEXT; what it says is checked in the end."""
        said = open(self.work + b"/said" + str(len(os.listdir(self.work))).encode(), "w+b")
        program = subprocess.Popen([os.path.join(BUILD, "bin", command[0]), *command[1:]], stdin=subprocess.DEVNULL,
                                   stdout=said, stderr=said, env=self.environment(utf8, link))
        self.addCleanup(self.end, program, said, command, utf8)
        while text not in os.pread(said.fileno(), 1 << 20, 0):
            self.assertIsNone(program.poll(), os.pread(said.fileno(), 1 << 20, 0))
        return program

    def end(self, program, said, command, utf8):
        program.terminate()
        program.wait(PATIENCE)
        self.check(os.pread(said.fileno(), 1 << 20, 0), utf8, command)
        said.close()

    def test_wrong_command_lines(self):
        for program in ("stpd", "stpctl", "stp-send", "stp-recv", "stp-perf", "stp-replay", "stp-sim"):
            for words in ([EVIL], [b"--" + EVIL], [b"--x=" + EVIL], [b"--" + EVIL, EVIL], [b"--help", EVIL]):
                self.runs(program, *words)

    def test_stpd(self):
        for link in (EVIL, b"udp:" + EVIL, b"ip:" + EVIL, b"pci:" + EVIL, b"vdev:" + EVIL,
                     b"memif:/tmp/x,role=" + EVIL, b"loop," + EVIL, b"loop,mtu=" + EVIL, b"stpd:" + EVIL):
            self.runs("stpd", b"--link", link)
        for option in (b"address", b"cpus", b"poll", b"user", b"group", b"socket-owner", b"socket-group", b"socket-mode",
                       b"listen", b"admin-group", b"log-level", b"granted", b"max-mapped", b"user-share", b"pcap-frames"):
            self.runs("stpd", b"--link", b"nothing:", b"--" + option, EVIL)
        self.runs("stpd", b"--link", b"nothing:", b"--listen", EVIL, b"--listen", b"2" + EVIL)
        self.runs("stpd", b"--link", b"loop", b"--pcap", self.work + b"/nowhere/" + EVIL)
        self.runs("stpd", b"--link", b"loop", b"--socket", self.work + b"/nowhere/a/" + EVIL)
        self.runs("stpd", b"--link", b"loop", b"--socket", self.file)
        if os.geteuid() == 0:  # it waits for the interface
            for utf8 in (False, True):
                self.begin(b"ready", "stpd", b"--link", b"iface:" + EVIL, b"--socket", self.socket + b"01"[utf8:utf8 + 1], utf8=utf8)
        self.runs("stpd", b"--config", EVIL)
        for content in (EVIL, b"link = \"" + EVIL + b"\"", EVIL + b" = 1", b"[" + EVIL, b"[link." + EVIL + b"]\nlink=\"loop\""):
            with open(self.file, "wb") as file:
                file.write(content)
            self.runs("stpd", b"--check", self.file)
            self.runs("stpd", b"--config", self.file)

    def test_stpctl_without_a_daemon(self):
        for command in (b"links", b"connections", b"regions", b"users", b"stats", b"top"):
            self.runs("stpctl", b"--socket", self.socket, command)
            self.runs("stpctl", b"--socket", self.socket, b"--socket", self.file, b"--json", command)
        self.runs("stpctl", b"--socket", self.file, b"trace", b"--out", self.file)
        self.runs("stpctl", b"dat-conf", b"--link", EVIL)
        self.runs("stpctl", b"dat-conf", b"--link", b"loop\x1b[2J")
        self.runs("stpctl", b"dat-conf", b"--name", b"x\x1b[2J", b"--provider", b"\x1b[2J")
        self.runs("stpctl", b"ping", EVIL, link=b"loop")
        self.runs("stpctl", b"ping", b"--link", EVIL, b":1")
        for peer in (EVIL + b":3000", b"10.0.0.1:" + EVIL, b"[" + EVIL + b"]:1"):
            self.runs("stpctl", b"ping", peer, link=b"loop")
            self.runs("stpctl", b"ping", b"--serve", peer, link=b"loop")

    def test_a_daemon_and_a_link_of_such_names(self):
        memif = b"memif:" + self.short + b"/m,role=server,mac=02:00:00:00:09:02,address=10.9.0.2/24"
        self.begin(b"ready", "stpd", b"--link", memif, b"--socket", self.socket)
        second = self.short + b"/t"
        self.begin(b"ready", "stpd", b"--link", b"loop", b"--socket", second, utf8=False)
        link = b"stpd:" + second
        self.begin(b"listening", "stpctl", b"ping", b"--link", link, b"--serve", b":3100")
        self.begin(b"answer", "stpctl", b"ping", b"--link", link, b"--interval", b"0.1", b":3100")
        for command in ([b"links"], [b"connections"], [b"regions"], [b"users"], [b"stats"], [b"stats", b"--prometheus"],
                        [b"top", b"--count", b"1", b"--interval", b"0.1"]):
            for way in ([], [b"--json"]):
                self.assertTrue(self.runs("stpctl", b"--socket", self.socket, b"--socket", second, *way, *command))
        self.runs("stpctl", b"--socket", second, b"trace", b"--out", self.file, b"--for", b"0.1")
        self.runs("stpctl", b"--socket", second, b"trace", b"--out", self.work + b"/nowhere/" + EVIL)
        self.runs("stpctl", b"dat-conf", link=link)
        self.runs("stpd", b"--link", b"loop", b"--socket", second)  # another one answers there
        self.runs("stp-perf", b"latency", b"--seconds", b"0.05", link=link)
        self.runs("stp-send", self.file, b":3999", link=link)
        self.runs("stp-send", self.file, b":3999")
        out = self.short + b"/out"
        os.mkdir(out)
        self.begin(b"listening", "stp-recv", b"--listen", b":3000", b"--out", out, link=link)
        for way in ([], [b"-v"], [b"-n"]):
            self.runs("stp-send", *way, self.file, self.short + b"/nothing", b":3000", link=link)
        self.runs("stp-send", b"-r", b"-v", self.short, b":3000", link=link)

    def test_files(self):
        for words in ([EVIL, b":1"], [self.file, EVIL], [self.file, EVIL + b":1"], [self.short, b":1"],
                      [b"--name", EVIL, self.file, b":1"], [b"--into", EVIL, self.file, b":1"],
                      [b"--files-from", EVIL, self.work, b":1"], [b"--files-from", self.file, self.short, b":1"],
                      [b"-r", b"--exclude-from", EVIL, self.work, b":1"], [b"--chmod", EVIL, self.file, b":1"],
                      [b"--bwlimit", EVIL, self.file, b":1"], [b"--link", EVIL, self.file, b":1"],
                      [b"--link", b"iface:" + EVIL, self.file, b":1"], [self.file, self.file, b":1"]):
            self.runs("stp-send", *words, link=b"stpd:" + self.socket)
        for words in ([b"--listen", EVIL, b"--out", self.work], [b"--listen", b":1", b"--out", EVIL],
                      [b"--listen", b":1", b"--out", self.file], [b"--link", EVIL, b"--listen", b":1", b"--out", self.work],
                      [b"--listen", EVIL + b":1", b"--out", self.work], [b"--listen", b":" + EVIL, b"--out", self.work]):
            self.runs("stp-recv", *words, link=b"stpd:" + self.socket)

    def test_stp_perf(self):
        for words in ([b"--link", EVIL, b"latency"], [b"--link", b"iface:" + EVIL, b"server"], [b"latency", EVIL],
                      [b"latency", EVIL + b":1"], [b"server", b"--port", EVIL], [b"server", b"--port", EVIL + b":1"],
                      [b"--link", EVIL, b"raw"], [b"--link", b"iface:" + EVIL, b"raw", b"--serve"]):
            self.runs("stp-perf", *words, link=b"stpd:" + self.socket)

    def test_captures_and_simulation(self):
        with open(self.file, "wb") as file:  # a capture without frames
            file.write(bytes.fromhex("d4c3b2a1020004000000000000000000ffff000001000000"))
        for command in (b"decode", b"check"):
            self.runs("stp-replay", command, EVIL)
            self.runs("stp-replay", command, self.file)
            self.runs("stp-replay", command, self.short)
            self.runs("stp-replay", b"--json", command, self.file)
        self.runs("stp-replay", b"check", b"--at", EVIL, self.file)
        self.runs("stp-replay", b"play", b"--as", EVIL, self.file)
        self.runs("stp-replay", b"play", b"--as", b"02:00:00:00:00:01", b"--link", EVIL, self.file)
        self.runs("stp-replay", b"ladder", self.file, b"--out", EVIL)
        run = self.work + b"/run.pcapng"
        self.runs("stp-sim", b"--seed", b"1", b"--pcapng", run)
        self.runs("stp-replay", b"ladder", run, b"--out", self.short + b"/\x1b[2J\n.html")
        self.runs("stp-replay", b"ladder", run, b"--out", self.work + b"/nowhere/" + EVIL + b".svg")
        os.rename(run, self.file)
        self.runs("stp-replay", b"check", self.file)
        self.runs("stp-replay", b"check", b"--at", b"02:00:00:00:00:77", self.file)
        self.runs("stp-sim", b"--seed", b"1", b"--profile", EVIL)
        self.runs("stp-sim", b"--seeds", EVIL)
        self.runs("stp-sim", b"--seed", b"1", b"--pcapng", self.work + b"/nowhere/" + EVIL)

    @unittest.skipUnless(os.path.exists(f"{BUILD}/python/stp/__init__.py"), "no package for Python in this build")
    def test_python(self):
        os.environ["PYTHONPATH"] = f"{BUILD}/python"
        python = [sys.executable, b"-m", b"stp"]
        for words in ([b"--link", EVIL, b"link"], [b"--link", b"iface:" + EVIL, b"link"], [b"--link", b"loop", b"send", EVIL, b"x"],
                      [b"--link", b"loop", b"send", EVIL + b":1", b"x"], [b"--link", b"stpd:" + self.socket, b"link"], [EVIL]):
            self.runs(python, *words)


if __name__ == "__main__":
    unittest.main()
