#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""usage: dissector.py ROOT [--accept]

Compares what Wireshark says of some of captures/, with tools/wireshark/stp-st.lua, to expected/, and counts what
filters select. sharkd reads all of them in one process: to start one takes a second. --accept writes expected/.
"""
import difflib
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(sys.argv[1]).resolve()
ACCEPT = "--accept" in sys.argv
EXPECTED = pathlib.Path(__file__).resolve().parent / "expected"
PLUGIN = ROOT / "tools/wireshark/stp-st.lua"
wrong = []

TRACES = """write write-stu-lost write-append put get fetch-repeated read connect-refused checksums disconnect-crossed
    managed-messages broken-illegal-flags broken-bad-checksum broken-no-grant broken-ca-unasked""".split()

FIELDS = [f"stp-st.{name}" for name in """request_in response_in response_time grant_in repeat_of block_stus
    block_bytes block_complete cksum_status error""".split()] + ["_ws.expert.message"]

SELECTED = [
    (3, "write-blocks", 'stp-st.op == "CTS"'),
    (1, "write-short", "llc && stp-st.stu_length == 3"),
    (2, "vlan", 'vlan.id == 7 && stp-st.op == "CTS" || stp-st.op == "RSR"'),
    (1, "write-append", "stp-st.append"),
    (1, "write-managed", "stp-st.option && stp-st.t_len == 1000"),
    (3, "fetch-repeated", 'stp-st.function == "Fetch_Increment"'),
    (1, "broken-exponents", 'stp-st.error contains "Bufsize"'),
    (1, "broken-zero-length", 'stp-st.error contains "T_len 0"'),
    (2, "managed-messages", 'stp-st.managed.hello == "request" || stp-st.managed.hello == "accept"'),
    (1, "managed-messages", "stp-st.managed.message == 3 && stp-st.managed.length == 101"),
    (2, "managed-messages", "stp-st.managed.message == 5"),
    (1, "managed-messages", 'stp-st.managed.taken == 3 && stp-st.op == "NOP"'),
    (2, "managed-messages", 'stp-st.managed.region == "ring"'),
    (1, "managed-slots", "stp-st.managed.slots == 8"),
    (1, "managed-region", 'stp-st.managed.address == "0x7000" && stp-st.managed.access == 28'),
    (1, "managed-no-receive", 'stp-st.managed.ended == "no receive"'),
    (4, "managed-blocks", "stp-st.managed.tag == 7 || stp-st.managed.message == 2"),
    (0, "write-managed", "stp-st.managed.message || stp-st.managed.tag"),
    (0, "write", "stp-st.error || _ws.lua.error || stp"),
]


class Sharkd:
    """Asks one sharkd all questions at once: it answers them in order."""

    def __init__(self):
        self.lines = []

    def ask(self, method, **parameters):
        question = {"jsonrpc": "2.0", "id": len(self.lines) + 1, "method": method, "params": parameters}
        self.lines.append(json.dumps(question))
        return len(self.lines)

    def load(self, trace):
        return self.ask("load", file=str(ROOT / "captures" / f"{trace}.pcapng"))

    def answers(self):
        result = subprocess.run(["sharkd", "-"], input="\n".join(self.lines) + "\n", capture_output=True, text=True)
        if "lua" in result.stderr.lower():
            wrong.append(result.stderr)
        answers = {}
        for line in result.stdout.splitlines():
            if line.startswith("{"):
                answer = json.loads(line)
                answers[answer["id"]] = answer
                if "error" in answer:
                    wrong.append(f"{self.lines[answer['id'] - 1]}: {answer['error']}")
        return answers


def judge():
    sharkd = Sharkd()
    shown, selected = [], []
    for trace in TRACES:
        sharkd.load(trace)
        columns = {f"column{i}": f"{name}:0" for i, name in enumerate(FIELDS)}
        shown.append((trace, sharkd.ask("frames"), sharkd.ask("frames", **columns)))
    for count, trace, text in SELECTED:
        sharkd.load(trace)
        selected.append((count, trace, text, sharkd.ask("frames", filter=text)))
    answers = sharkd.answers()
    for trace, summary, fields in shown:
        compare(trace, answers[summary]["result"], answers[fields]["result"])
    for count, trace, text, number in selected:
        found = len(answers[number].get("result", []))
        if found != count:
            wrong.append(f"{text} selects {found} frames of {trace}, not {count}")


def compare(trace, summaries, fields):
    """Columns of a list of frames: Number, Time, Source, Destination, Protocol, Length, Info."""
    lines = ["\t".join(["_ws.col.Protocol", "_ws.col.Info", *FIELDS])]
    for summary, values in zip(summaries, fields):
        lines.append("\t".join([summary["c"][4], summary["c"][6], *values["c"]]))
    text, path = "\n".join(lines) + "\n", EXPECTED / f"{trace}.txt"
    if ACCEPT:
        path.write_text(text)
    wrong.extend(difflib.unified_diff(path.read_text().splitlines(), text.splitlines(), path.name, "now", lineterm=""))


def tshark(*arguments):
    result = subprocess.run(["tshark", "-r", ROOT / "captures/write.pcapng", *arguments],
                            capture_output=True, text=True)
    if "lua" in result.stderr.lower():
        wrong.append(result.stderr)
    return result.stdout


def names():
    """Wireshark's stp is the spanning tree protocol. And who loads the script twice sees nothing twice."""
    if "\n    Operation: RTS" not in tshark("-O", "stp-st"):
        wrong.append("-O stp-st shows no details")
    if "Operation: RTS" in tshark("-O", "stp"):
        wrong.append("-O stp shows details of another protocol")
    if len(tshark(f"-Xlua_script:{PLUGIN}", "-Y", 'stp-st.op == "CTS"').splitlines()) != 1:
        wrong.append("loaded twice, it finds another number of frames")


def finds_nop(path, port, *preferences):
    result = subprocess.run(["tshark", *preferences, "-r", path, "-Y", f'udp.port == {port} && stp-st.op == "NOP"'],
                            capture_output=True, text=True)
    return len(result.stdout.splitlines()) == 1


def datagram(folder):
    """A NOP in a datagram of UDP, of the usual port and of another one."""
    usual, other = (nop_to(port, pathlib.Path(folder)) for port in (8181, 9001))
    if not finds_nop(usual, 8181):
        wrong.append("no NOP is found in a datagram")
    if not finds_nop(other, 9001, "-o", "stp-st.udp_ports:8181,9001-9002"):
        wrong.append("no NOP is found in a datagram of a port that the preferences name")
    if finds_nop(usual, 8181, "-o", "stp-st.udp_ports:9001"):
        wrong.append("a NOP is found at a port that the preferences no longer name")
    nop, end = b"\x80" + bytes(6) + b"\x01" + bytes(32), b"\xf0" + bytes(6) + b"\x01" + bytes(32)
    stu = b"\xd8" + bytes(4) + b"\x07\0\x01" + b"\0\x01\x02\x03" + bytes(28 + 100)
    # A connection named after every 32 bytes: so many lengths are not tried.
    everywhere = stu[:40] + (stu[:12] + b"\xff" * 20) * 80 + b"\xff" * 7
    # More than a host joins take too long.
    for data, operations in ((everywhere * 2, "DATA"), (nop * 129, "NOP"), (nop + end + nop, "NOP,END,NOP"), (stu * 2 + stu[:90], "DATA,DATA,DATA"),
                             (stu * 2 + stu[:20], "DATA")):
        path = datagram_to(8181, pathlib.Path(folder), data)
        told = subprocess.run(["tshark", "-r", path, "-T", "fields", "-e", "stp-st.op"], capture_output=True, text=True)
        if told.stdout.strip() != operations:
            wrong.append(f"joined datagrams: {told.stdout}{told.stderr}, not {operations}")


def nop_to(port, folder):
    """The file with it."""
    return datagram_to(port, folder, b"\x80" + bytes(39))


def datagram_to(port, folder, data):
    udp = struct.pack(">HHHH", port, port, 8 + len(data), 0) + data
    ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 0, 0x4000, 64, 17, 0, b"\x0a\0\0\1", b"\x0a\0\0\2")
    frame = bytes(12) + b"\x08\0" + ip + udp
    head = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
    path = folder / f"{port}.pcap"
    path.write_bytes(head + struct.pack("<IIII", 1, 0, len(frame), len(frame)) + frame)
    return path


for program in "sharkd", "tshark":
    if not shutil.which(program):
        print(f"SKIPPED: no {program}: apt-get install --no-install-recommends tshark")
        sys.exit(77)
with tempfile.TemporaryDirectory() as home:
    plugins = pathlib.Path(home) / ".local/lib/wireshark/plugins"
    plugins.mkdir(parents=True)
    shutil.copy(PLUGIN, plugins)
    os.environ.update(LC_ALL="C.UTF-8", TZ="UTC", HOME=home, XDG_CONFIG_HOME=home)
    judge()
    names()
    datagram(home)
print("\n".join(wrong))
sys.exit(bool(wrong))
