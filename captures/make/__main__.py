# SPDX-License-Identifier: BSD-3-Clause
"""usage: python3 captures/make [DIRECTORY]

Writes all traces and the README's table of them, into captures/ or another directory. The same
bytes each time.
"""
import pathlib
import re
import sys

sys.dont_write_bytecode = True

import broken  # noqa: F401
import endpoints  # noqa: F401
import files  # noqa: F401
import managed  # noqa: F401
import sequences  # noqa: F401
from catalogue import TRACES

HOME = pathlib.Path(__file__).resolve().parent.parent
BEGIN, END = "<!-- traces -->\n", "<!-- end of traces -->\n"


def table():
    rows = ["| trace | shows | check says | play as B |", "| --- | --- | --- | --- |"]
    for entry in TRACES.values():
        rows.append(f"| [{entry.name}]({entry.name}) | {entry.shows} | {entry.check} | {entry.play} |")
    return "\n".join(rows) + "\n"


def main():
    directory = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else HOME
    directory.mkdir(parents=True, exist_ok=True)
    for entry in TRACES.values():
        (directory / entry.name).write_bytes(entry.make().file())
    readme = (HOME / "README.md").read_text()
    pattern = re.escape(BEGIN) + ".*" + re.escape(END)
    readme = re.sub(pattern, lambda _: BEGIN + table() + END, readme, flags=re.S)
    (directory / "README.md").write_text(readme)


if __name__ == "__main__":
    main()
