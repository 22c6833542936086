# SPDX-License-Identifier: BSD-3-Clause
"""python3 tests/bench/compare: measures Scheduled Transfers beside bare frames, memcpy, and what
people would use instead, in turn and several times, and prints medians and their ratios, for
near CPUs and for far ones each, if their host has moved them meanwhile. With
--against, each figure of our own is taken with a second build as well, in turn with the first: what
a change gains or costs, on whatever machine."""

import json
import os
import statistics
import sys
import time

import places
import plots
from measurements import Bench, between_cpus
from rows import FIGURES, GOALS, SIZES, SWEEPS
from system import Parser, Skipped, build, model, repeats, seconds, strangers_load


def options():
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(
        os.path.abspath(__file__)))))
    parser = Parser(prog="tests/bench/compare", description=__doc__)
    parser.add_argument("--build", type=build, default=os.path.join(root, "build"), help="its programs are used")
    parser.add_argument("--against", metavar="BUILD", type=build,
                        help="a second build of ours, whose figures are taken in the same run")
    parser.add_argument("--repeats", type=repeats, default=7, help="of everything, in turn [7]")
    parser.add_argument("--seconds", type=seconds, default=1, help="that each figure takes [1]")
    parser.add_argument("--only", nargs="+", metavar="TEXT", help="figures with this in their name")
    parser.add_argument("--plots", action="store_true", help="figures by size, too: takes longer")
    parser.add_argument("--out", default="compare-results", metavar="DIRECTORY",
                        help="results.json and plots [compare-results]")
    return parser.parse_args()


def say(text):
    print(text, file=sys.stderr, flush=True)


class Collector:
    """Values by name, and the reasons for missing ones. A value that this machine cannot measure is not
    tried again; a measurement that merely failed is."""

    def __init__(self, look=lambda: None):
        self.values, self.skipped, self.failed = {}, {}, {}
        self.look, self.looks = look, {}  # at the CPUs, before and after each value

    def take(self, name, measure):
        if name in self.skipped:
            return
        try:
            before = self.look()
            value = measure()
            self.values.setdefault(name, []).append(value)
            self.looks.setdefault(name, []).append((before, self.look()))
        except Skipped as why:
            self.skipped[name] = str(why)
        except Exception as why:  # pylint: disable=broad-except
            self.failed.setdefault(name, []).append(f"{type(why).__name__}: {why}")
            say(f"  {name}: {why}")

    def of_places(self):
        """[(where the CPUs were, what was measured there)]"""
        for place, values in places.split(self.values, self.looks):
            part = Collector()
            part.values = values
            yield place, part

    def median(self, name):
        values = self.values.get(name)
        return statistics.median(values) if values else None


def against(name):
    """The name of a figure of the second build."""
    return f"{name} (against)"


def measure_figure(figure, bench, other, repeat, collector):
    """Measures with the second build, too. Which of the two builds is first changes with each repeat."""
    runs = [(figure.name, bench)]
    if other and figure.ours:
        runs.insert(0 if repeat % 2 else 1, (against(figure.name), other))
    for name, of_build in runs:
        collector.take(name, lambda of_build=of_build: figure.measure(of_build))


def collect(bench, other, chosen, repeats, collector):
    loads = []
    for repeat in range(repeats):
        loads.append(strangers_load())
        say(f"repeat {repeat + 1} of {repeats}; others use {loads[-1]:.0f} % of the machine")
        for figure in chosen:
            measure_figure(figure, bench, other, repeat, collector)
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
    """Returns None if a figure is missing."""
    value = collector.median(goal.figure)
    if value is None or goal.control == 1:
        return value
    if goal.control == "a second":
        return 1e9 / value
    if callable(goal.control):
        control = goal.control(collector.median)
        return None if control is None else value / control
    names = goal.control if isinstance(goal.control, tuple) else (goal.control,)
    controls = [found for found in map(collector.median, names) if found is not None]
    # The best of them: the shortest time, or the highest rate.
    return value / (min if goal.at_most else max)(controls) if controls else None


def number(value):
    return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"


def print_figures(chosen, collector):
    print("| figure | median | least | most | unit | repeats |\n| --- | --- | --- | --- | --- | --- |")
    for figure in chosen:
        values = collector.values.get(figure.name)
        if values:
            words = [number(of(values)) for of in (statistics.median, min, max)]
            print(f"| {figure.name} | {' | '.join(words)} | {figure.unit} | {len(values)} |")


def print_missing(collector):
    for name, why in collector.skipped.items():
        print(f"\nskipped: {name}: {why}")
    for name, whys in collector.failed.items():
        print(f"\nfailed {len(whys)} times: {name}: {whys[-1]}")


def compare_builds(chosen, collector):
    """(figure, this build, the second one, ratio of the medians, least and most ratio of single
    repeats), of the figures that both have."""
    for figure in chosen:
        ours, others = (collector.values.get(name) for name in (figure.name, against(figure.name)))
        if not ours or not others:
            continue
        medians = statistics.median(ours), statistics.median(others)
        ratio_of_medians = medians[0] / medians[1]
        # Where one of them has failed in a repeat they do not belong together.
        ratios = [ratio_of_medians]
        if len(ours) == len(others):
            ratios = [one / other for one, other in zip(ours, others)]
        yield figure, *medians, ratio_of_medians, min(ratios), max(ratios)


def print_builds(chosen, collector):
    rows = list(compare_builds(chosen, collector))
    if not rows:
        return
    print("\n| figure | this build | against | unit | ratio | least | most |\n"
          "| --- | --- | --- | --- | --- | --- | --- |")
    for figure, *values in rows:
        words = [number(value) for value in values]
        print(f"| {figure.name} | {words[0]} | {words[1]} | {figure.unit} | "
              f"{' | '.join(words[2:])} |")


def judge(collector):
    """The goals none of whose figures is missing: (text, ratio, bound, met)."""
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


def print_shared(shared):
    """How much slower both CPUs were than cores of their own: other hardware threads of these cores worked then."""
    if not shared:
        return
    most = [f"{of(shared):.2f}" for of in (statistics.median, max)]
    print(f"Work on both CPUs took {most[0]} times as long as on cores of their own (median; at most {most[1]}): where that "
          "is 1.2 or more, something else works on these cores, and rates are as much lower.")


def write_json(path, settings, loads, shared, collector):
    with open(path, "w", encoding="utf-8") as file:
        json.dump({
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "cpu": model(),
            "cpus": os.cpu_count(), "kernel": os.uname().release,
            "repeats": settings.repeats, "seconds": settings.seconds,
            "build": settings.build, "against_build": settings.against, "others_load_percent": loads,
            "shared_cores": shared, "values": collector.values, "between_cpus": collector.looks, "skipped": collector.skipped, "failed": collector.failed,
            "against": {figure.name: {"ratio": ratio, "least": least, "most": most}
                        for figure, _, _, ratio, least, most in compare_builds(FIGURES, collector)},
            "goals": [{"what": goal.what, "cpus": place, "bound": goal.bound, "at_most": goal.at_most,
                       "measured": found, "met": met}
                      for place, part in collector.of_places() for goal, found, met in judge(part)],
        }, file, indent=1)


def main():
    settings = options()
    os.makedirs(settings.out, exist_ok=True)
    chosen = [figure for figure in FIGURES
              if not settings.only or any(text in figure.name for text in settings.only)]
    if not chosen:
        sys.exit("no figure has that in its name; there are: " + ", ".join(f.name for f in FIGURES))
    bench = Bench(os.path.abspath(settings.build), settings.seconds)
    shared = []
    collector = Collector(lambda: between_cpus(bench, shared))
    other = bench.of_build(os.path.abspath(settings.against)) if settings.against else None
    if other:
        bench.check_differs_from(other)
    with bench.stack:
        loads = collect(bench, other, chosen, settings.repeats, collector)
        if settings.plots:
            sweep(bench, settings.repeats, collector, settings.out)
    for place, part in collector.of_places():
        if place:
            print(f"\n{place}:\n")
        print_figures(chosen, part)
        print_builds(chosen, part)
        print_goals(part)
    print_missing(collector)
    print(f"\nOthers used {min(loads):.0f} to {max(loads):.0f} % of the machine's CPUs before each "
          "repeat.")
    print_shared(shared)
    write_json(os.path.join(settings.out, "results.json"), settings, loads, shared, collector)


if __name__ == "__main__":
    main()
