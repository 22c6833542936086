# SPDX-License-Identifier: BSD-3-Clause
"""usage: dashboards.py ROOT BUILD
Each metric that the dashboard or a rule of docs/dashboards asks for is exported for real stpd's: a loop link has what the
Node and stpd count, a memif what a driver counts. The dashboard shows every reason for which the Node drops frames, and
an alert is for each that is not of an ordinary day. The files are well formed."""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

ROOT, BUILD = sys.argv.pop(1), sys.argv.pop(1)
FOLDER = f"{ROOT}/docs/dashboards"

# Reasons of drops that need no alert: frames for others, of connections that begin or end, and repeated ones, which
# StpRetries speaks of.
ORDINARY = ("not_stp", "not_for_us", "crossed_end", "late_rc", "rc_first", "duplicate_stu", "duplicate_block",
            "stale_fetch", "no_grant")  # fmt: skip


def text_of(name):
    with open(f"{FOLDER}/{name}", encoding="utf-8") as file:
        return file.read()


def metrics_in(query):
    return set(re.findall(r"\bstp_\w+", re.sub(r'"[^"]*"', '""', query)))


def queries_of_dashboard():
    board = json.loads(text_of("stpd.json"))
    for panel in board["panels"]:
        for target in panel["targets"]:
            yield panel["title"], target["expr"]
    for variable in board["templating"]["list"]:
        yield variable["name"], variable.get("definition", "")


def rules():
    """(name, expression) of each alert; an expression is one line, or the lines after >-."""
    name, lines, inside = None, [], False
    for line in text_of("stpd.rules.yml").splitlines():
        if match := re.match(r"      - alert: (\w+)$", line):
            name = match[1]
        elif match := re.match(r"        expr: (.*)$", line):
            inside, lines = True, [] if match[1] == ">-" else [match[1]]
        elif inside and line.startswith("          "):
            lines.append(line.strip())
        elif inside:
            inside = False
            yield name, " ".join(lines)


class Dashboards(unittest.TestCase):
    def begin(self, link, socket):
        stpd = subprocess.Popen(
            [f"{BUILD}/bin/stpd", "--link", link, "--socket", socket],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.addCleanup(stpd.stdout.close)
        self.addCleanup(stpd.wait)
        self.addCleanup(stpd.terminate)
        said = ""
        for line in stpd.stdout:
            said += line
            if "ready" in line:
                return
        self.fail(said)

    def test_each_metric_is_exported(self):
        work = self.enterContext(tempfile.TemporaryDirectory())
        sockets = [f"{work}/loop.sock", f"{work}/memif.sock"]
        self.begin("loop", sockets[0])
        self.begin(f"memif:{work}/memif", sockets[1])
        command = [f"{BUILD}/bin/stpctl", "--socket", sockets[0], "--socket", sockets[1], "stats", "--prometheus"]
        exported = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        there = set(re.findall(r"(?m)^(stp_\w+)\{", exported))
        self.assertGreater(len(there), 100, exported)
        queries = [*queries_of_dashboard(), *rules()]
        self.assertGreater(len(queries), 80)
        for where, query in queries:
            self.assertEqual(metrics_in(query) - there, set(), f"'{where}' asks for what no stpd exports")
        states = set(re.findall(r'stp_link_state\{[^}]*state="([^"]*)"', exported))
        for where, query in queries:
            for several in re.findall(r'\bstate=~"([^"$]*)"', query):
                self.assertLessEqual(set(several.split("|")), states, where)

    def test_each_reason_of_a_drop_is_shown_and_has_an_alert(self):
        with open(f"{ROOT}/stp/counters.h", encoding="utf-8") as file:
            lines = [line for line in file if not line.lstrip().startswith("//")]
        drops = re.findall(r"\bD\([A-Z]\w*,\s*(\w+),", "".join(lines))
        self.assertGreater(len(drops), 30)
        drops = {f"stp_{name}_total" for name in drops}
        shown = set()
        for title, query in queries_of_dashboard():
            if title == "Drops by reason":
                shown |= metrics_in(query)
        self.assertEqual(shown, drops)
        alerts = {name: metrics_in(expression) & drops for name, expression in rules()}
        wrong = alerts.pop("StpDrops")
        others = set().union(*alerts.values())
        self.assertEqual(wrong & others, set(), "two alerts for one reason")
        self.assertEqual(drops - wrong - others, {f"stp_{name}_total" for name in ORDINARY})

    def test_the_files_are_well_formed(self):
        names = [name for name in os.listdir(FOLDER) if name.endswith(".yml")]
        self.assertEqual(sorted(names), ["stpd.rules.yml", "stpd.rules_test.yml"])
        for name in names:
            folded = None
            for number, line in enumerate(text_of(name).splitlines(), 1):
                indent = len(line) - len(line.lstrip(" "))
                where = f"{name}:{number}: {line}"
                self.assertNotIn("\t", line, where)
                if folded is not None and (indent > folded or not line):
                    continue
                folded = indent if line.endswith(": >-") else None
                self.assertEqual(indent % 2, 0, where)
                self.assertRegex(line, r"^ *(#.*|(- )*(\w+:( [^ ].*)?|'[^']*'|\w[\w.]*))?$", where)
        names = [name for name, _ in rules()]
        self.assertEqual(len(names), len(set(names)))
        self.assertEqual(names, re.findall(r"(?m)^      - alert: (\w+)$", text_of("stpd.rules.yml")))
        self.assertEqual(names, re.findall(r"(?m)^    name: (\w+)$", text_of("stpd.rules_test.yml")), "an alert has no test")
        with open(f"{ROOT}/docs/operations.md", encoding="utf-8") as page:
            self.assertEqual(names, re.findall(r"(?m)^\| `(Stp\w+)` \|", page.read()), "docs/operations.md has others")


if __name__ == "__main__":
    unittest.main()
