#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""usage: captures.py STP-REPLAY ROOT regenerated | check | play | formats | udp | ladder | rules [--accept]

captures/ is what its README says: made by captures/make, byte for byte; judged and played as the
table there tells; each rule is broken by one of the traces, and docs/conformance.md says by which.
With --accept its table is written anew. It also says why check does not judge the other rules of
docs/protocol.md. A ladder, as page and as picture, has all frames and findings of a trace: every fifth
is drawn, with STP_LONG all.
"""
import json
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import xml.etree.ElementTree
import zlib

PROGRAM, ROOT, WHAT = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3]
HOME = ROOT / "captures"
STATION_B = "02:00:00:00:00:02"
SVG = "{http://www.w3.org/2000/svg}"
wrong = []


def rows():
    pattern = re.compile(r"\| \[([^]]+)\]\(\1\) \| (.+) \| ([^|]+) \| ([^|]+) \|$")
    found = [match.groups() for match in map(pattern.match, (HOME / "README.md").open()) if match]
    if len(found) < 40:
        wrong.append(f"README.md has only {len(found)} traces")
    return found


def run(*arguments):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True)


def objects(text):
    return [json.loads(line) for line in text.splitlines()]


def regenerated():
    with tempfile.TemporaryDirectory() as directory:
        made = pathlib.Path(directory)
        subprocess.run([sys.executable, HOME / "make", made], check=True)
        names = {path.name for path in made.iterdir()}
        committed = {path.name for path in HOME.iterdir() if path.is_file()}
        wrong.extend(f"{name} is made but not committed, or the reverse" for name in names ^ committed)
        for name in names & committed:
            if (made / name).read_bytes() != (HOME / name).read_bytes():
                wrong.append(f"{name} is not what captures/make writes")


def check():
    for name, _, expected, _ in rows():
        result = run("check", "--json", HOME / name)
        said = objects(result.stdout)
        rules = ", ".join(sorted({finding["rule"] for finding in said})) or "nothing"
        if rules != expected:
            wrong.append(f"{name}: check says {rules}, the README {expected}")
        # A fault is reported once, whatever follows from it.
        faults = [finding for finding in said if finding["kind"] == "finding"]
        if len(faults) != (expected != "nothing" and bool(faults)):
            wrong.append(f"{name}: one fault, and check finds {len(faults)}:\n{result.stdout}")
        status = 1 if any(finding["kind"] == "finding" for finding in said) else 0
        if name == "cut-header.pcapng":  # no header is whole
            status = 2
            if "cut all 10 frames of STP inside their headers" not in result.stderr:
                wrong.append(f"{name}: {result.stderr}")
        if result.returncode != status:
            wrong.append(f"{name}: check ends with {result.returncode}, not {status}")


    nothing_to_check()


def nothing_to_check():
    """A capture without a frame of STP is no proof of anything."""
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(HOME / "make"))
    import frames
    arp = bytes(12) + b"\x08\x06" + bytes(46)
    with tempfile.TemporaryDirectory() as directory:
        for content, said in ([], "no frame is in this capture"), ([(0, arp)] * 2, "none of the 2 frames"):
            path = pathlib.Path(directory, "nothing.pcapng")
            path.write_bytes(frames.pcapng(content))
            result = run("check", path)
            if result.returncode != 2 or said not in result.stderr or result.stdout:
                wrong.append(f"{said}: check ends with {result.returncode}: {result.stdout}{result.stderr}")
    result = run("check", HOME / "other-protocols.pcapng")
    if not result.stdout.endswith("12 frames, 10 of STP, 0 findings, 0 notes\n"):
        wrong.append(f"other-protocols.pcapng: {result.stdout}")


def play():
    for name, _, _, expected in rows():
        if expected == "-":
            continue
        result = run("play", HOME / name, "--as", STATION_B)
        answer = {0: "same", 1: "differs"}.get(result.returncode, result.stderr)
        if answer != expected:
            wrong.append(f"{name}: play says {answer}, the README {expected}\n{result.stdout}")


def formats():
    """The same conversation gives the same output from every file format; unreadable files give an error."""
    def said(path):
        result = run("decode", "--json", path)
        return [{**frame, "frame": 0} for frame in objects(result.stdout)], result

    one, _ = said(HOME / "format-pcap-micro.pcap")
    if len(one) != 10 or one[0]["op"] != "RC":
        wrong.append(f"format-pcap-micro.pcap reads as {one}")
    for path in HOME.glob("format-*"):
        if said(path)[0] != one:
            wrong.append(f"{path.name} does not read as the others")
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(HOME / "make"))
    import files
    import frames
    with tempfile.TemporaryDirectory() as directory:
        mixed = pathlib.Path(directory, "mixed.pcapng")
        mixed.write_bytes(frames.pcapng(files.small().frames, link_types=(1, 113)))
        _, result = said(mixed)
        if result.returncode != 2 or "capture the Ethernet interface alone" not in result.stderr:
            wrong.append(f"interfaces of two kinds: {result.returncode} {result.stderr}")
        check_sequences(pathlib.Path(directory, "fcs.pcap"))


def check_sequences(path):
    """Check finds nothing in a capture whose frames end with check sequences, of which the file does not tell. What the
    capturing host has sent has none, however much that is."""
    import frames
    import managed  # noqa: F401
    import sequences  # noqa: F401
    from catalogue import TRACES
    host_a = bytes.fromhex("020000000001")
    arp = bytes(6) + host_a + b"\x08\x06" + bytes(46)
    for name in "write-short", "write-blocks", "managed-messages":
        trace = TRACES[name + ".pcapng"].make().frames
        for before, senders_without in ([], ()), ([(trace[0][0], arp)] * 300, (host_a,)):
            content = [(time, frame if frame[6:12] in senders_without
                        else frame + zlib.crc32(frame).to_bytes(4, "little")) for time, frame in before + trace]
            path.write_bytes(frames.pcap(content))
            result = run("check", path)
            said = f"{len(content)} frames, {len(trace)} of STP, 0 findings, 0 notes\n"
            if not result.stdout.endswith(said) or "check sequences (FCS)" not in result.stderr:
                wrong.append(f"{name} with check sequences: {result.stdout}{result.stderr}")


def udp():
    """A conversation over UDP reads as the same one on Ethernet, whatever its ports, if they are named."""
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(HOME / "make"))
    import files
    import frames
    talk = files.small().frames
    named = "--udp-port", "9002", "--udp-port", "7"
    with tempfile.TemporaryDirectory() as directory:
        path, drawing = pathlib.Path(directory, "udp.pcapng"), pathlib.Path(directory, "udp.svg")
        for ports, options in ((8181, 9001), ()), ((9001, 9002), named):
            path.write_bytes(frames.pcapng([(time, frames.in_datagram(frame, ports)) for time, frame in talk]))
            read = objects(run("decode", "--json", *options, path).stdout)
            if [frame.get("op") for frame in read] != [frame["op"] for frame in objects(
                    run("decode", "--json", HOME / "format-pcap-micro.pcap").stdout)]:
                wrong.append(f"datagrams of ports {ports} read as {read}")
            for name, command in {"check": ["check"], "ladder": ["ladder", "-o", drawing],
                                  "play": ["play", "--as", (read or [{}])[0].get("dst", "none")]}.items():
                result = run(*command, *options, path)
                if result.returncode != 0 or name == "play" and ", 0 differences" not in result.stdout:
                    wrong.append(f"{name} of ports {ports}: {result.returncode} {result.stdout}{result.stderr}")
        result = run("check", path)
        if result.returncode != 2 or "--udp-port" not in result.stderr:
            wrong.append(f"ports that are not named: {result.returncode} {result.stdout}{result.stderr}")
        stations(path, talk)
        padded(path, talk)
        short_stus(path)
        joined(path)


def joined(path):
    """What a capture at a host shows as one datagram, because its kernel sends or receives several in one, is read as those
    that it was joined from."""
    import files
    import frames
    import sequences  # noqa: F401
    from catalogue import TRACES
    talk = TRACES["write-blocks.pcapng"].make().frames
    content = files.joined(talk, (8181, 9001))
    path.write_bytes(frames.pcapng(content))
    result = run("check", path)
    if len(content) + 2 > len(talk) or result.stdout != f"{len(talk)} frames, {len(talk)} of STP, 0 findings, 0 notes\n":
        wrong.append(f"{len(talk)} datagrams joined to {len(content)}: {result.stdout}{result.stderr}")


def short_stus(path):
    """What is too short for Ethernet II has no SNAP in a datagram, which states its length."""
    import frames
    import managed  # noqa: F401
    import sequences  # noqa: F401
    from catalogue import TRACES

    def plain(frame):
        length = struct.unpack(">H", frame[12:14])[0]
        return frames.in_datagram(frame if length > 1500 else frame[:14] + frame[22:14 + length], (8181, 9001))
    talk = TRACES["write-short.pcapng"].make().frames
    path.write_bytes(frames.pcapng([(time, plain(frame)) for time, frame in talk]))
    result = run("check", path)
    if ", 0 findings" not in result.stdout:
        wrong.append(f"short STUs: {result.stdout}{result.stderr}")


def with_padding(frame, asked, stu, word=None):
    """An RC or CA for the RC with that I_Max_STU, as long as a datagram with an STU of 2^stu bytes. stu 0: not padded."""
    header = bytearray(frame[14:54])
    if header[0] >> 3 == 1:
        header[24:28] = struct.pack(">I", asked)
    answers = asked if header[0] >> 3 == 2 else 0
    header[28:32] = struct.pack(">I", word if word is not None else stu << 16 | answers << 8 | 1)
    return frame[:14] + bytes(header) + bytes((1 << stu) + 64 if stu else 0)


def padded(path, talk):
    """Requests of several lengths and their answers break no rule over UDP, if they are as long as they say. Nor does
    one who plays the station differ. On Ethernet they have no padding."""
    import frames
    (start, request), (answered, answer), *rest = talk
    longest = struct.unpack(">I", request[38:42])[0]
    own = struct.unpack(">I", answer[38:42])[0]
    most = min(longest, own)
    requests = [with_padding(request, longest, longest), with_padding(request, most - 1, most - 1),
                with_padding(request, longest, 0)]
    right = [(start + i, frame) for i, frame in enumerate(requests)]
    right += [(answered + i, with_padding(answer, longest, stu)) for i, stu in enumerate((most, most - 1))]

    def said(begin, wrap):
        path.write_bytes(frames.pcapng([(time, wrap(frame)) for time, frame in begin + rest]))
        result = run("check", path)
        return result.stdout + result.stderr

    def datagram(frame):
        return frames.in_datagram(frame, (8181, 9001))
    text = said(right, datagram)
    if ", 0 findings" not in text:
        wrong.append(f"padded requests: {text}")
    station = objects(run("decode", "--json", path).stdout)[0]["dst"]
    played = run("play", "--as", station, path)
    if ", 0 differences" not in played.stdout:
        wrong.append(f"padded requests, played: {played.stdout}{played.stderr}")
    for rule, begin, wrap in (
            ("control-length", right, lambda frame: frame),
            ("control-length", [(start, right[0][1] + b"\0"), *right[1:]], datagram),
            ("control-length", [*right[:3], (answered, with_padding(answer, most - 1, most))], datagram),
            ("unused-field", [(start, with_padding(request, longest, longest, longest << 16 | 0x0401)), *right[1:]], datagram),
            ("unused-field", [(start, with_padding(request, longest, 0, 2)), *right[1:]], datagram)):
        text = said(begin, wrap)
        if rule not in text:
            wrong.append(f"padded requests that break {rule}: {text}")


def stations(path, talk):
    """A station that is not in the capture is refused with those that are; so is one that talks to itself."""
    import frames
    path.write_bytes(frames.pcapng([(time, frames.in_datagram(frame, (8181, 9001))) for time, frame in talk]))
    for option in ("check", "--at"), ("play", "--as"), ("ladder", "-o", path.with_suffix(".svg"), "--at"):
        for station in "10.0.0.3/8181", "10.0.0.2", "[2001:db8::1]/8181", "02:00:00:00:00:09":
            result = run(*option, station, path)
            if result.returncode != 2 or not result.stderr.endswith(
                    f"{option[-1]} {station}; there are 10.0.0.1/8181, 10.0.0.2/9001\n"):
                wrong.append(f"{option[0]} of {station}: {result.returncode} {result.stdout}{result.stderr}")
        result = run(*option, "10.0.0.1/", path)
        if result.returncode != 2 or "[2001:db8::5]/8181, of IP protocol 118 10.0.0.5" not in result.stderr:
            wrong.append(f"{option[0]} of no station: {result.returncode} {result.stderr}")
        result = run(*option, "10.0.0.2/9001", path)
        if result.returncode != 0:
            wrong.append(f"{option[0]} of a station: {result.returncode} {result.stdout}{result.stderr}")
    one = [(time, frames.in_datagram(frame, (8181, 8181)).replace(bytes([10, 0, 0, 2]), bytes([10, 0, 0, 1])))
           for time, frame in talk]
    path.write_bytes(frames.pcapng(one))
    result = run("play", "--as", "10.0.0.1/8181", path)
    if result.returncode != 2 or "10.0.0.1/8181 talks to itself" not in result.stderr or result.stdout:
        wrong.append(f"play of a station that talks to itself: {result.returncode} {result.stdout}{result.stderr}")


def anchors(page):
    """The anchors of a page's headings."""
    headings = re.findall(r"^#+ (.+)$", (ROOT / "docs" / page).read_text(), flags=re.M)
    return {re.sub(r"[^a-z0-9 -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def data_of(page):
    """The JSON in a page, which names nothing that it would have to load."""
    if re.search(r"(?:src|href|action)=|url\(|@import|<link|<iframe", page):
        wrong.append("a ladder loads something")
    return json.loads(re.search(r'<script id="data" type="application/json">(.*?)</script>', page, re.S)[1])


def ladder_of(path, made):
    """Compares the page and the picture of one trace with what decode and check say of it."""
    for kind in ("html", "svg"):
        result = run("ladder", path, "-o", made / ("x." + kind), "--docs", "docs")
        if result.returncode != 0:
            wrong.append(f"{path.name}: no {kind}: {result.stderr}")
            return set()
    data = data_of((made / "x.html").read_text())
    picture = xml.etree.ElementTree.parse(made / "x.svg").getroot()
    said = [frame for frame in objects(run("decode", "--json", path).stdout) if "src" in frame]
    findings = objects(run("check", "--json", path).stdout)
    texts = [element.text for element in picture.iter(SVG + "text")]
    drawn = [element for element in picture.iter(SVG + "g") if element.get("class") == "frame"]
    numbers = [frame[0] for frame in data["frames"]]
    if not set(numbers) <= {frame["frame"] for frame in said} or len(drawn) != len(numbers):
        wrong.append(f"{path.name}: the page has {len(numbers)} frames, the picture {len(drawn)}")
    for frame in said:
        if "op" in frame and frame["frame"] not in numbers:
            wrong.append(f"{path.name}: frame {frame['frame']} is not drawn")
    if not set(data["stations"]) <= set(texts):
        wrong.append(f"{path.name}: the picture has not all of {data['stations']}")
    shown = sorted((number, data["findings"][at]["rule"]) for number, *_, at_all in data["frames"] for at in at_all)
    if shown != sorted((finding["frame"], finding["rule"]) for finding in findings):
        wrong.append(f"{path.name}: check finds {findings}, the page shows {shown}")
    links = {element.get("href") for element in picture.iter(SVG + "a")}
    if links != {finding["link"] for finding in data["findings"]}:
        wrong.append(f"{path.name}: page and picture have different links")
    return links


def ladder():
    links = set()
    with tempfile.TemporaryDirectory() as directory:
        for name, *_ in rows() if "STP_LONG" in os.environ else rows()[::5]:
            links |= ladder_of(HOME / name, pathlib.Path(directory))
        made = pathlib.Path(directory, "x.png")
        result = run("ladder", HOME / "write.pcapng", "-o", made)
        if result.returncode != 2 or "ends in .html or .svg" not in result.stderr or made.exists():
            wrong.append(f"-o x.png: {result.returncode} {result.stderr}")
    for link in links:
        page, _, anchor = link.removeprefix("docs/").partition("#")
        if anchor not in anchors(page):
            wrong.append(f"a finding links to {link}, which is not there")
    if len(links) < 9:
        wrong.append(f"findings link to few places: {links}")


def protocol_rules():
    """The mark of each rule of docs/protocol.md."""
    return dict(re.findall(r"^- \*\*(\d+\.\d+) [a-z0-9-]+\*\* (\[[SLP]\])",
                           (ROOT / "docs/protocol.md").read_text(), flags=re.M))


def not_judged(page):
    """The rules of the table that says why check does not judge them; 7.1–7.3 are three."""
    table = re.search("<!-- not judged -->(.*)<!-- end of not judged -->", page, flags=re.S)[1]
    for cell in re.findall(r"^\| (\d[^|]+) \|", table, flags=re.M):
        for part in cell.split(", "):
            first, _, last = part.partition("–")
            section, number = map(int, first.split("."))
            for each in range(number, int((last or first).split(".")[1]) + 1):
                yield f"{section}.{each}"


def all_are_spoken_of(page, known):
    judged, spared = {rule["section"] for rule in known}, list(not_judged(page))
    for rule in protocol_rules():
        if (rule in judged) + spared.count(rule) != 1:
            wrong.append(f"rule {rule}: judged, or listed once in docs/conformance.md as not judged")
    wrong.extend(f"there is no rule {rule}" for rule in spared if rule not in protocol_rules())


def rules_table(known):
    marks = protocol_rules()
    shown = {}
    for name, _, said, _ in rows():
        for rule in said.split(", "):
            # The trace that was made for the rule, if there is one.
            if rule not in shown or name.startswith("broken-" + rule + "."):
                shown[rule] = name
    wrong.extend(f"no trace shows {rule['rule']}" for rule in known if rule["rule"] not in shown)
    words = {"sure": "", "if-all": "if all", "note": "note"}
    lines = ["| rule | | mark | what a frame has to be like | shown by |", "| --- | --- | --- | --- | --- |"]
    for rule in known:
        name = shown.get(rule["rule"], "")
        lines.append(f"| {rule['section']} {rule['rule']} | {words[rule['certainty']]} | "
                     f"{marks.get(rule['section'], '')} | {rule['text']} | "
                     f"[{name}](../captures/{name}) |".replace("|  |", "| |"))
    return "\n".join(lines) + "\n"


def rules():
    page = ROOT / "docs/conformance.md"
    begin, end = "<!-- rules -->\n", "<!-- end of rules -->\n"
    known = objects(run("rules", "--json").stdout)
    table = rules_table(known)
    all_are_spoken_of(page.read_text(), known)
    pattern = re.escape(begin) + ".*" + re.escape(end)
    text = re.sub(pattern, lambda _: begin + table + end, page.read_text(), flags=re.S)
    if sys.argv[4:] == ["--accept"]:
        page.write_text(text)
    if text != page.read_text():
        wrong.append("the table of docs/conformance.md is not what captures.py rules --accept writes")


{"regenerated": regenerated, "check": check, "play": play, "formats": formats, "ladder": ladder,
 "rules": rules, "udp": udp}[WHAT]()
print("\n".join(wrong))
sys.exit(1 if wrong else 0)
