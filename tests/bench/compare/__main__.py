# SPDX-License-Identifier: BSD-3-Clause
"""python3 tests/bench/compare: measures Scheduled Transfers beside bare frames, memcpy, and what
people would use instead, in turn and several times, and prints medians and their ratios."""

import argparse
import json
import os
import statistics
import sys
import time

import plots
from measurements import Bench
from rows import FIGURES, GOALS, SIZES, SWEEPS
from system import Skipped, model, strangers_load


def options():
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(
        os.path.abspath(__file__)))))
    parser = argparse.ArgumentParser(prog="tests/bench/compare", description=__doc__)
    parser.add_argument("--build", default=os.path.join(root, "build"), help="its programs are used")
    parser.add_argument("--repeats", type=int, default=7, help="of everything, in turn [7]")
    parser.add_argument("--seconds", type=float, default=1, help="that each figure takes [1]")
    parser.add_argument("--only", nargs="+", metavar="TEXT", help="figures with this in their name")
    parser.add_argument("--plots", action="store_true", help="figures by size, too: takes longer")
    parser.add_argument("--out", default="compare-results", metavar="DIRECTORY",
                        help="results.json and plots [compare-results]")
    return parser.parse_args()


def say(text):
    print(text, file=sys.stderr, flush=True)


class Collector:
    """Values by name, and why some could not be had. What has failed once is not tried again where
    it cannot be had at all; a measurement that merely went wrong is."""

    def __init__(self):
        self.values, self.skipped, self.failed = {}, {}, {}

    def take(self, name, measure):
        if name in self.skipped:
            return
        try:
            self.values.setdefault(name, []).append(measure())
        except Skipped as why:
            self.skipped[name] = str(why)
        except Exception as why:  # pylint: disable=broad-except
            self.failed.setdefault(name, []).append(f"{type(why).__name__}: {why}")
            say(f"  {name}: {why}")

    def median(self, name):
        values = self.values.get(name)
        return statistics.median(values) if values else None


def collect(bench, chosen, repeats, collector):
    loads = []
    for repeat in range(repeats):
        loads.append(strangers_load())
        say(f"repeat {repeat + 1} of {repeats}; others use {loads[-1]:.0f} % of the machine")
        for figure in chosen:
            collector.take(figure.name, lambda figure=figure: figure.measure(bench))
    return loads


def sweep(bench, repeats, collector, out):
    for name, (title, unit, lines) in SWEEPS.items():
        for repeat in range(repeats):
            say(f"plot of {name}, repeat {repeat + 1} of {repeats}")
            for line, measure in lines:
                for size in SIZES:
                    collector.take(f"{name}: {line} {size}",
                                   lambda measure=measure, size=size: measure(bench, size))
        curves = {}
        for line, _ in lines:
            medians = {size: collector.median(f"{name}: {line} {size}") for size in SIZES}
            curves[line] = {size: value for size, value in medians.items() if value}
        curves = {line: points for line, points in curves.items() if points}
        if curves:
            with open(os.path.join(out, name + ".svg"), "w", encoding="utf-8") as file:
                file.write(plots.plot(title, unit, curves))


def ratio(goal, collector):
    """None: a figure is missing."""
    value = collector.median(goal.figure)
    if value is None or goal.control == 1:
        return value
    if goal.control == "a second":
        return 1e9 / value
    control = collector.median(goal.control)
    return None if control is None else value / control


def number(value):
    return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"


def print_figures(chosen, collector):
    print("| figure | median | least | most | unit | repeats |\n| --- | --- | --- | --- | --- | --- |")
    for figure in chosen:
        values = collector.values.get(figure.name)
        if values:
            words = [number(of(values)) for of in (statistics.median, min, max)]
            print(f"| {figure.name} | {' | '.join(words)} | {figure.unit} | {len(values)} |")
    for name, why in collector.skipped.items():
        print(f"\nskipped: {name}: {why}")
    for name, whys in collector.failed.items():
        print(f"\nfailed {len(whys)} times: {name}: {whys[-1]}")


def judge(collector):
    """The goals whose figures are all there: (text, ratio, bound, met)."""
    for goal in GOALS:
        found = ratio(goal, collector)
        if found is not None:
            met = found <= goal.bound if goal.at_most else found >= goal.bound
            yield goal, found, met


def print_goals(collector):
    print("\n| what | goal | measured | |\n| --- | --- | --- | --- |")
    for goal, found, met in judge(collector):
        word = "at most" if goal.at_most else "at least"
        print(f"| {goal.what} | {word} {number(goal.bound)} | {number(found)} | "
              f"{'met' if met else 'not met'} |")


def write_json(path, settings, loads, collector):
    with open(path, "w", encoding="utf-8") as file:
        json.dump({
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "cpu": model(),
            "cpus": os.cpu_count(), "kernel": os.uname().release,
            "repeats": settings.repeats, "seconds": settings.seconds, "others_load_percent": loads,
            "values": collector.values, "skipped": collector.skipped, "failed": collector.failed,
            "goals": [{"what": goal.what, "bound": goal.bound, "at_most": goal.at_most,
                       "measured": found, "met": met} for goal, found, met in judge(collector)],
        }, file, indent=1)


def main():
    settings = options()
    os.makedirs(settings.out, exist_ok=True)
    chosen = [figure for figure in FIGURES
              if not settings.only or any(text in figure.name for text in settings.only)]
    if not chosen:
        sys.exit("no figure has that in its name; there are: " + ", ".join(f.name for f in FIGURES))
    bench, collector = Bench(os.path.abspath(settings.build), settings.seconds), Collector()
    with bench.stack:
        loads = collect(bench, chosen, settings.repeats, collector)
        if settings.plots:
            sweep(bench, settings.repeats, collector, settings.out)
    print_figures(chosen, collector)
    print_goals(collector)
    print(f"\nOthers used {min(loads):.0f} to {max(loads):.0f} % of the machine's CPUs before each "
          "repeat.")
    write_json(os.path.join(settings.out, "results.json"), settings, loads, collector)


if __name__ == "__main__":
    main()
