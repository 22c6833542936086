#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""usage: browser.py BINARIES ROOT

Chromium shows pages of `stp-replay ladder` as they are meant to be: stations, arrows, findings in red, fields
under the pointer, filters. A drawing of eleven thousand frames takes no longer than one of eleven.
"""
import base64
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib

BINARIES, ROOT = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
RED = (0xcf, 0x22, 0x2e)
TIMES = 1_000  # that a capture is repeated, to be long
chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
if not os.environ.get("STP_LONG") or not chromium:
    print("SKIPPED: no STP_LONG" if chromium else "SKIPPED: no Chromium here")
    sys.exit(77)
wrong = []


def expect(what, told, wanted):
    if told != wanted:
        wrong.append(f"{what}: {told}, not {wanted}")


class Browser:
    """Chromium, told what to do over two pipes: messages are JSON, and end with a zero."""

    def __init__(self, home):
        commands, self.commands = os.pipe()
        self.answers, answers = os.pipe()
        self.number, self.rest = 0, b""

        def place():
            for old, new in ((os.dup(commands), 3), (os.dup(answers), 4)):
                os.dup2(old, new)

        self.process = subprocess.Popen(
            [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe",
             f"--user-data-dir={home}", "--window-size=1400,800", "about:blank"],
            preexec_fn=place, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(commands)
        os.close(answers)

    def open(self):
        target = self.ask("Target.createTarget", url="about:blank", newWindow=True, width=1400, height=800)["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.ask("Page.enable")
        self.ask("Network.enable")

    session = None
    loaded, requests = False, ()

    def message(self):
        while b"\0" not in self.rest:
            more = os.read(self.answers, 1 << 16)
            if not more:
                raise RuntimeError("Chromium has ended")
            self.rest += more
        one, _, self.rest = self.rest.partition(b"\0")
        told = json.loads(one)
        if told.get("method") == "Page.loadEventFired":
            self.loaded = True
        if told.get("method") == "Network.requestWillBeSent":
            self.requests += (told["params"]["request"]["url"],)
        return told

    def ask(self, method, **parameters):
        self.number += 1
        asked = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            asked["sessionId"] = self.session
        os.write(self.commands, json.dumps(asked).encode() + b"\0")
        while True:
            told = self.message()
            if told.get("id") == self.number:
                if "error" in told:
                    raise RuntimeError(f"{method}: {told['error']}")
                return told["result"]

    def show(self, page):
        self.loaded, self.requests = False, ()
        self.ask("Page.navigate", url=page.as_uri())
        while not self.loaded:
            self.message()

    def run(self, script):
        told = self.ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in told:
            raise RuntimeError(f"{script}: {told['exceptionDetails']}")
        return told["result"].get("value")

    def rows(self):
        """The pixels on the screen: rows of (red, green, blue)."""
        png = base64.b64decode(self.ask("Page.captureScreenshot", format="png")["data"])
        return rows_of(png)

    def end(self):
        os.close(self.commands)  # it ends then
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def chunks(png):
    at = 8
    while at < len(png):
        length, kind = struct.unpack(">I4s", png[at:at + 8])
        yield kind, png[at + 8:at + 8 + length]
        at += 12 + length


def rows_of(png):
    """Decodes the PNG that Chromium writes: 8 bits a colour, not interlaced."""
    parts = list(chunks(png))
    width, height, depth, colours = struct.unpack(">IIBB", parts[0][1][:10])
    if depth != 8 or colours not in (2, 6):
        raise RuntimeError(f"a PNG of kind {depth}, {colours}")
    size = 3 if colours == 2 else 4
    data = zlib.decompress(b"".join(content for kind, content in parts if kind == b"IDAT"))
    above, out = bytearray(width * size), []
    for y in range(height):
        begin = y * (width * size + 1)
        line = bytearray(data[begin + 1:begin + 1 + width * size])
        unfilter(data[begin], line, above, size)
        out.append([tuple(line[x:x + 3]) for x in range(0, len(line), size)])
        above = line
    return out


def unfilter(kind, line, above, size):
    for i in range(len(line) if kind else 0):
        left = line[i - size] if i >= size else 0
        corner = above[i - size] if i >= size else 0
        guess = left + above[i] - corner
        far = [(abs(guess - each), order, each) for order, each in enumerate((left, above[i], corner))]
        line[i] = (line[i] + (0, left, above[i], (left + above[i]) // 2, min(far)[2])[kind]) & 0xff


def ladder(capture, made):
    subprocess.run([BINARIES / "stp-replay", "ladder", capture, "-o", made], check=True, stdout=subprocess.DEVNULL)
    return made


COUNTS = """[...document.querySelectorAll('#ladder text.station')].map(each => each.textContent).join() + ' ' +
            document.querySelectorAll('#ladder .frame').length"""


def small_page(browser, home):
    browser.show(ladder(ROOT / "captures/broken-eager-slot.pcapng", home / "small.html"))
    expect("what is loaded", [url for url in browser.requests if not url.endswith("small.html")], [])
    expect("drawn", browser.run(COUNTS), "02:00:00:00:00:01,02:00:00:00:00:02 19")
    red = sum(line.count(RED) for line in browser.rows())
    if red < 100:
        wrong.append(f"the finding is drawn in {red} red pixels")
    browser.run("document.querySelector('.frame[data-row=\"2\"] line').dispatchEvent("
                "new MouseEvent('mousemove', {bubbles: true}))")
    fields = browser.run("document.getElementById('fields').textContent")
    for word in ("T_len15", "Max_Block16", "UPort 3000"):
        if word not in fields:
            wrong.append(f"under the pointer there is no {word}: {fields}")
    browser.run("document.getElementById('on').click()")
    said = browser.run("document.getElementById('fields').textContent")
    if "9.31 eager-slot: a short message stands in the next slot" not in said:
        wrong.append(f"the next finding is {said}")
    browser.run("document.getElementById('findings').click()")
    expect("findings only", browser.run(COUNTS), "02:00:00:00:00:01,02:00:00:00:00:02 1")


def connections(browser, home):
    browser.show(ladder(ROOT / "captures/two-connections.pcapng", home / "two.html"))
    expect("a healthy trace has red pixels", sum(line.count(RED) for line in browser.rows()), 0)
    whole = browser.run("state.rows.length")
    browser.run("document.querySelector('[data-connection=\"0\"]').click()")
    first_gone = browser.run("state.rows.length")
    browser.run("document.querySelector('[data-connection=\"1\"]').click()")
    expect("without both connections", browser.run("state.rows.length"), 0)
    browser.run("document.querySelector('[data-connection=\"0\"]').click()")
    expect("frames of the two", browser.run("state.rows.length") + first_gone, whole)


# Draws at places all over the page; tells how long a drawing takes: the median.
SCROLL = """(() => {
  const took = [], step = (view.scrollHeight - view.clientHeight) / 100;
  for (let i = 0; i < 100; ++i) {
    view.scrollTop = step * i;
    const begin = performance.now();
    draw();
    ladder.getBoundingClientRect();
    took.push(performance.now() - begin);
  }
  return took.sort((a, b) => a - b)[50];
})()"""


def repeated(capture, times):
    """A pcapng file with its packets so many times."""
    at, head, packets = 0, b"", b""
    while at < len(capture):
        kind, length = struct.unpack("<II", capture[at:at + 8])
        if kind == 6:
            packets += capture[at:at + length]
        else:
            head += capture[at:at + length]
        at += length
    return head + times * packets


def long_page(browser, home):
    short = ROOT / "captures/write-blocks.pcapng"
    browser.show(ladder(short, home / "short.html"))
    few, quick = browser.run("data.frames.length"), browser.run(SCROLL)
    capture = home / "long.pcapng"
    capture.write_bytes(repeated(short.read_bytes(), TIMES))
    browser.show(ladder(capture, home / "long.html"))
    frames, took = browser.run("data.frames.length"), browser.run(SCROLL)
    print(f"a drawing of {few} frames takes {quick:.1f} ms, of {frames} {took:.1f} ms")
    expect("frames", frames, few * TIMES)
    if frames < 10_000 or took > 4 * quick + 5:
        wrong.append(f"of {frames} frames a drawing takes {took:.1f} ms, of {few} only {quick:.1f} ms")
    drawn = browser.run("document.querySelectorAll('#ladder .frame').length")
    if not 5 < drawn < 100:
        wrong.append(f"of {frames} frames {drawn} are drawn at once")
    browser.run(f"location.hash = '#{frames}'; goToAddress()")
    seen = browser.run("[...document.querySelectorAll('#ladder .frame text')].map(each => each.textContent).join()")
    if f"{frames} " not in seen:
        wrong.append(f"frame {frames} is not in sight: {seen[:200]}")


with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
    browser = Browser(directory)
    try:
        browser.open()
        for test in (small_page, connections, long_page):
            test(browser, pathlib.Path(directory))
    finally:
        browser.end()
print("\n".join(wrong))
sys.exit(1 if wrong else 0)
