#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""usage: peer.py INTERFACE MAC GROUPS [NAME] -- COMMAND...

Runs the conversations of GROUPS (a,b,...; those whose name contains NAME) on an interface, with the
program that COMMAND starts and whose Node has the address MAC. Those that take half a minute run only
where STP_LONG is set, or by their name. Ends with the number that failed.
`peer.py --list` says which there are; `--names` whether those that docs/protocol.md cites are among
them, and the rules that they cite in it.
"""
import os
import re
import sys
import time

sys.dont_write_bytecode = True

# pylint: disable=wrong-import-position
import blocks  # noqa: E402,F401
import connections  # noqa: E402,F401
import endpoints  # noqa: E402,F401
import forms  # noqa: E402,F401
import managed_begin  # noqa: E402,F401
import managed_end  # noqa: E402,F401
import managed_messages  # noqa: E402,F401
import managed_regions  # noqa: E402,F401
import regions  # noqa: E402,F401
import slots  # noqa: E402,F401
import wire  # noqa: E402
from conversation import REGISTERED, Runner  # noqa: E402

AT_ONCE = 8


def wrong_names():
    text = wire.DOCUMENT.read_text()
    rules = set(re.findall(r"^- \*\*(\d+\.\d+) ", text, flags=re.M))
    known = {f.title for functions in REGISTERED.values() for f in functions}
    section = text[text.index("## For implementers"):text.index("## State of the implementation")]
    for row in re.findall(r"^\|.*\|$", section, flags=re.M)[2:]:
        for name in re.findall(r"`([a-z0-9-]+)`", row.split("|")[-2]):
            if name not in known:
                yield f"docs/protocol.md cites {name}: there is no such conversation"
    for functions in REGISTERED.values():
        for function in functions:
            for rule in function.rules:
                if rule not in rules:
                    yield f"{function.title} is about {rule}: there is no such rule"


def main():
    arguments = sys.argv[1:]
    if arguments == ["--names"]:
        wrong = list(wrong_names())
        print("\n".join(wrong) or "all names are good")
        return len(wrong) != 0
    if arguments == ["--list"]:
        for group, functions in REGISTERED.items():
            for function in functions:
                print(group, function.title, ", ".join(function.rules))
        return 0
    split = arguments.index("--")
    interface, mac, groups, *name = arguments[:split]
    functions = [f for group in groups.split(",") for f in REGISTERED[group]
                 if (name[0] in f.title if name else "long" not in f.wants or os.environ.get("STP_LONG"))]
    runner = Runner(interface, bytes.fromhex(mac.replace(":", "")), arguments[split + 1:])
    begin = time.monotonic()
    runner.run(functions, AT_ONCE)
    status = runner.counterpart.end()
    longest = ", ".join(f"{title} {took:.1f} s" for took, title in sorted(runner.times)[-4:])
    print(f"{len(functions)} conversations in {time.monotonic() - begin:.1f} s, longest: {longest}; failed: "
          f"{', '.join(runner.failed) or 'none'}")
    if status != 0:
        print(f"FAILED: the program ended with {status}")
    return min(len(runner.failed), 100) + (status != 0)


sys.exit(main())
