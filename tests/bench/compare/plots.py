# SPDX-License-Identifier: BSD-3-Clause
"""Lines over sizes, both axes logarithmic, as SVG."""

import math
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 720, 440
LEFT, RIGHT, TOP, BOTTOM = 80, 170, 40, 50
COLOURS = ["#1f5fa8", "#c8451b", "#2e8b57", "#7a4fb5", "#a8881f", "#555555"]
UNITS = {"us": [(1, "us")], "B/s": [(1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1, "B/s")]}


def size_text(size):
    for unit, name in ((1 << 20, "M"), (1 << 10, "K")):
        if size >= unit:
            return f"{size // unit}{name}"
    return str(size)


def value_text(value, unit):
    for scale, name in UNITS[unit]:
        if value >= scale:
            return f"{value / scale:g} {name}"
    return f"{value:g} {UNITS[unit][-1][1]}"


class Axis:
    def __init__(self, low, high, start, end):
        self.low, self.high = math.log10(low), math.log10(high)
        self.start, self.end = start, end

    def at(self, value):
        share = (math.log10(value) - self.low) / ((self.high - self.low) or 1)
        return self.start + share * (self.end - self.start)


def plot(title, unit, lines):
    """`lines`: name -> {size: value}. Returns the text of an SVG."""
    points = [point for line in lines.values() for point in line.items()]
    sizes = sorted({size for size, _ in points})
    low = 10 ** math.floor(math.log10(min(value for _, value in points)))
    high = 10 ** math.ceil(math.log10(max(value for _, value in points)))
    x = Axis(sizes[0], sizes[-1], LEFT, WIDTH - RIGHT)
    y = Axis(low, max(high, low * 10), HEIGHT - BOTTOM, TOP)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
           'font-family="sans-serif" font-size="12">',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
           f'<text x="{LEFT}" y="22" font-size="15">{escape(title)}</text>']
    out += grid(x, y, sizes, unit)
    for number, (name, line) in enumerate(lines.items()):
        out += curve(x, y, name, line, number)
    return "\n".join(out + ["</svg>\n"])


def grid(x, y, sizes, unit):
    for size in sizes:
        at = x.at(size)
        yield f'<line x1="{at:.1f}" y1="{y.start}" x2="{at:.1f}" y2="{y.end}" stroke="#eee"/>'
        yield (f'<text x="{at:.1f}" y="{y.start + 18}" text-anchor="middle">{size_text(size)}'
               '</text>')
    yield f'<text x="{(x.start + x.end) / 2}" y="{HEIGHT - 10}" text-anchor="middle">bytes</text>'
    for power in range(round(y.low), round(y.high) + 1):
        at = y.at(10.0 ** power)
        yield f'<line x1="{x.start}" y1="{at:.1f}" x2="{x.end}" y2="{at:.1f}" stroke="#ddd"/>'
        yield (f'<text x="{x.start - 6}" y="{at + 4:.1f}" text-anchor="end">'
               f'{value_text(10.0 ** power, unit)}</text>')


def curve(x, y, name, line, number):
    colour = COLOURS[number % len(COLOURS)]
    points = " ".join(f"{x.at(size):.1f},{y.at(value):.1f}" for size, value in sorted(line.items()))
    yield f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>'
    for point in points.split():
        at = point.split(",")
        yield f'<circle cx="{at[0]}" cy="{at[1]}" r="3" fill="{colour}"/>'
    below = TOP + 18 * number + 10
    yield (f'<line x1="{WIDTH - RIGHT + 14}" y1="{below - 4}" x2="{WIDTH - RIGHT + 34}" '
           f'y2="{below - 4}" stroke="{colour}" stroke-width="2"/>')
    yield f'<text x="{WIDTH - RIGHT + 40}" y="{below}">{escape(name)}</text>'
