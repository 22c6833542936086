# SPDX-License-Identifier: BSD-3-Clause
"""compare_test.py BINARIES: what tests/bench/compare does with two builds, of figures that are
made up; and that tcp_ping, kernel_stream, hand_over and between_cpus measure."""

import argparse
import importlib.util
import io
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "compare")
BINARIES = os.path.abspath(sys.argv.pop())
sys.path.insert(0, HERE)

import measurements  # noqa: E402
import system  # noqa: E402
from measurements import Bench  # noqa: E402
from rows import FIGURES, GOALS, Figure, Goal, managed_limit, python_limit  # noqa: E402

spec = importlib.util.spec_from_file_location("compare_main", os.path.join(HERE, "__main__.py"))
compare = importlib.util.module_from_spec(spec)
spec.loader.exec_module(compare)


class TwoBuilds(unittest.TestCase):
    def setUp(self):
        self.order = []
        self.bench = Bench("/first", 1)
        self.other = self.bench.of_build("/second")
        self.collector = compare.Collector()

    def figure(self, name, ours=True):
        def measure(bench):
            self.order.append(bench.bin)
            return 3.0 if bench is self.bench else 2.0
        return Figure(name, "us", measure, ours)

    def test_takes_turns_with_the_second_build(self):
        figure = self.figure("put")
        for repeat in range(2):
            compare.measure_figure(figure, self.bench, self.other, repeat, self.collector)
        self.assertEqual(self.order, ["/first/bin", "/second/bin", "/second/bin", "/first/bin"])
        (_, *values), = compare.compare_builds([figure], self.collector)
        self.assertEqual(values, [3.0, 2.0, 1.5, 1.5, 1.5])

    def test_measures_what_is_not_ours_once(self):
        figure = self.figure("tcp", ours=False)
        compare.measure_figure(figure, self.bench, self.other, 0, self.collector)
        self.assertEqual(self.order, ["/first/bin"])
        self.assertEqual(list(compare.compare_builds([figure], self.collector)), [])

    def test_needs_no_second_build(self):
        compare.measure_figure(self.figure("put"), self.bench, None, 0, self.collector)
        self.assertEqual(self.order, ["/first/bin"])

    def test_pairs_no_repeats_of_which_one_failed(self):
        figure = self.figure("put")
        self.collector.values = {"put": [4.0, 2.0, 3.0], compare.against("put"): [1.0, 2.0]}
        (_, *values), = compare.compare_builds([figure], self.collector)
        self.assertEqual(values, [3.0, 1.5, 2.0, 2.0, 2.0])

    def test_shares_the_wires(self):
        self.assertIs(self.bench.wires, self.other.wires)

    def test_runs_programs_with_the_libraries_of_their_build(self):
        with tempfile.TemporaryDirectory() as build:
            os.mkdir(f"{build}/bin")
            with open(f"{build}/bin/tool", "w", encoding="ascii") as file:
                file.write("#!/bin/sh\necho $LD_LIBRARY_PATH\n")
            os.chmod(f"{build}/bin/tool", 0o755)
            found = system.output_of(Bench(build, 1).tool("tool")).strip()
            self.assertEqual(found.split(":")[0], f"{build}/lib")

    def test_names_the_program_that_a_build_lacks(self):
        with self.assertRaisesRegex(system.Skipped, "/second/bin/stp-perf is missing: cmake"):
            self.other.perf()


@unittest.skipIf(not os.path.exists(os.path.join(BINARIES, "stp-perf")), "stp-perf is not built")
class TheSameLibrary(unittest.TestCase):
    """A second build whose stp-perf has the path of the first one's libstp."""

    def setUp(self):
        self.build = self.enterContext(tempfile.TemporaryDirectory())
        os.mkdir(f"{self.build}/bin")
        shutil.copy(os.path.join(BINARIES, "stp-perf"), f"{self.build}/bin")
        self.first = Bench(os.path.dirname(BINARIES), 1)
        self.second = self.first.of_build(self.build)
        if len(self.first.parts()) == 1:
            self.skipTest("libstp is part of stp-perf")

    def test_is_not_compared_with_itself(self):
        with self.assertRaisesRegex(SystemExit, "both builds use .*libstp.*: nothing to compare"):
            self.first.check_differs_from(self.second)

    def test_is_not_taken_where_the_build_has_its_own(self):
        library = self.first.parts()[1]
        os.mkdir(f"{self.build}/lib")
        shutil.copy(library, f"{self.build}/lib")
        self.first.check_differs_from(self.second)
        self.assertEqual(self.second.parts()[1], f"{self.build}/lib/{os.path.basename(library)}")

    def test_is_refused_for_a_program_that_both_have(self):
        os.mkdir(f"{self.build}/lib")
        shutil.copy(self.first.parts()[1], f"{self.build}/lib")
        os.remove(f"{self.build}/bin/stp-perf")
        os.symlink(os.path.join(BINARIES, "stp-perf"), f"{self.build}/bin/stp-perf")
        with self.assertRaisesRegex(SystemExit, "both builds use .*stp-perf"):
            self.first.check_differs_from(self.second)


class Scale(unittest.TestCase):
    def rate(self, line):
        with tempfile.TemporaryDirectory() as build:
            os.mkdir(f"{build}/bin")
            with open(f"{build}/bin/stp-scale", "w", encoding="ascii") as file:
                file.write(f"#!/bin/sh\necho '2 CPUs'\necho '{line}'\n")
            os.chmod(f"{build}/bin/stp-scale", 0o755)
            return measurements.scale(Bench(build, 1), 2, "apart")

    def test_takes_the_rate_of_all_shards(self):
        self.assertEqual(self.rate("shards  2 apart    5028417 puts/s of 8 bytes,   11111 MB/s"), 5028417)

    def test_is_skipped_where_threads_share_a_cpu(self):
        with self.assertRaisesRegex(system.Skipped, "2 shards apart need 2 CPUs"):
            self.rate("shards  2 apart    5028417 puts/s of 8 bytes  (threads share CPUs)")


class Places(unittest.TestCase):
    def collect(self, looks):
        collector = compare.Collector(iter(looks).__next__)
        for value in range(len(looks) // 2):
            collector.take("put", lambda value=value: float(value))
        return {place: part.values for place, part in collector.of_places()}

    def test_are_told_apart_and_what_belongs_to_neither_is_left_out(self):
        found = self.collect([16e9, 12e9, 4e9, 3e9, 15e9, 4e9, 4e9, 4e9, 20e9, 13e9])
        self.assertEqual(found, {"CPUs near each other": {"put": [0.0, 4.0]}, "CPUs far from each other": {"put": [1.0, 3.0]}})

    def test_are_one_where_nothing_has_moved(self):
        self.assertEqual(self.collect([4e9, 3e9, 3.5e9, 5e9]), {"": {"put": [0.0, 1.0]}})

    def test_are_one_where_one_look_was_disturbed(self):
        self.assertEqual(self.collect([16e9, 12e9, 1e9, 16e9]), {"": {"put": [0.0, 1.0]}})

    def test_are_told_apart_where_a_figure_could_not_be_measured(self):
        looks = [100, 100, 20, 20, 100]

        def fails():
            raise OSError("does not start")

        collector = compare.Collector(iter(looks).__next__)
        collector.take("works", lambda: 1)
        collector.take("works", lambda: 2)
        collector.take("fails", fails)
        self.assertEqual({place: part.values for place, part in collector.of_places()},
                         {"CPUs near each other": {"works": [1]}, "CPUs far from each other": {"works": [2]}})
        self.assertIsNone(collector.median("fails"))

    def test_are_one_where_nobody_knows(self):
        self.assertEqual(self.collect([None] * 4), {"": {"put": [0.0, 1.0]}})


class SharedCores(unittest.TestCase):
    """A program of an earlier build prints no second figure."""

    def look(self, said):
        shared = []
        with unittest.mock.patch.object(measurements, "output_of", return_value=said), \
                unittest.mock.patch.object(Bench, "tool", return_value=[]):
            return measurements.between_cpus(Bench("/build", 1), shared), shared

    def test_are_seen_where_work_takes_longer(self):
        self.assertEqual(self.look("11262276 1.52\n"), (11262276, [1.52]))

    def test_are_not_known_from_an_earlier_build(self):
        self.assertEqual(self.look("11262276\n"), (11262276, []))

    def test_are_told_in_a_line(self):
        out = io.StringIO()
        with unittest.mock.patch("sys.stdout", out):
            compare.print_shared([])
            compare.print_shared([1.0, 1.5, 1.02])
        self.assertRegex(out.getvalue(), r"^Work on both CPUs took 1\.02 times .* at most 1\.50\)")


class Rows(unittest.TestCase):
    def test_goals_name_figures_that_are_taken(self):
        names = {figure.name for figure in FIGURES}
        for goal in GOALS:
            self.assertIn(goal.figure, names)
            controls = goal.control if isinstance(goal.control, tuple) else (goal.control,)
            for control in controls:
                if isinstance(control, str) and control != "a second":
                    self.assertIn(control, names)

    def test_the_best_of_several_controls_counts(self):
        collector = compare.Collector()
        collector.values = {"ours": [6.0], "slow": [1.0], "fast": [3.0]}
        rate = Goal("", "ours", ("slow", "fast", "skipped"), 1)
        time = Goal("", "ours", ("slow", "fast", "skipped"), 1, True)
        self.assertEqual([compare.ratio(goal, collector) for goal in (rate, time)], [2.0, 6.0])
        self.assertIsNone(compare.ratio(Goal("", "ours", ("skipped",), 1), collector))

    def test_a_limit_of_several_figures_waits_for_all_of_them(self):
        medians = {"raw-rtt/memif": 2.0, "waiting-rtt/C": 5.0}
        self.assertEqual(python_limit(medians.get), 2.0 + 3 * 3.0 + 6.0)
        self.assertIsNone(python_limit({"waiting-rtt/C": 5.0}.get))

    def test_a_limit_depends_on_the_place_of_the_cpus_that_bare_frames_show(self):
        self.assertAlmostEqual(managed_limit({"raw-rtt/memif": 2.0}.get), 2.6)
        self.assertAlmostEqual(managed_limit({"raw-rtt/memif": 0.5}.get), 0.9)
        self.assertIsNone(managed_limit({}.get))


class Options(unittest.TestCase):
    def test_refuse_what_would_measure_nothing(self):
        for read, wrong in ((system.repeats, ("0", "-1", "x", "")),
                            (system.seconds, ("0", "-1", "nan", "inf", "x", "1e9")),
                            (system.build, ("/nowhere",))):
            for value in wrong:
                with self.subTest(value=value), self.assertRaises(argparse.ArgumentTypeError):
                    read(value)
        self.assertEqual((system.repeats("7"), system.seconds("0.5")), (7, 0.5))


class TcpPing(unittest.TestCase):
    def round_trip(self, *how):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = str(free.getsockname()[1])
        ping = [os.path.join(BINARIES, "tcp_ping"), *how, "127.0.0.1", port]
        with subprocess.Popen(ping, stdout=subprocess.PIPE, text=True) as server:
            try:
                self.assertEqual(server.stdout.readline(), "listening\n")
                done = subprocess.run(ping + ["8", "0.05"], capture_output=True, text=True,
                                      timeout=60, check=True)
                return float(done.stdout)
            finally:
                server.terminate()

    def test_blocks(self):
        self.assertGreater(self.round_trip(), 0)

    def test_polls(self):
        self.assertGreater(self.round_trip("--poll"), 0)

    def test_udp(self):
        self.assertGreater(self.round_trip("--udp"), 0)


class KernelStream(unittest.TestCase):
    def rate(self, *how):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = str(free.getsockname()[1])
        stream = [os.path.join(BINARIES, "kernel_stream"), *how, "127.0.0.1", port]
        with subprocess.Popen(stream) as sender:
            try:
                done = subprocess.run(stream + ["0.05"], capture_output=True, text=True, timeout=60,
                                      check=True)
                return float(done.stdout)
            finally:
                sender.kill()

    def test_tcp(self):
        self.assertGreater(self.rate(), 0)

    def test_udp(self):
        self.assertGreater(self.rate("--udp", "8232"), 0)


class Options(unittest.TestCase):
    def test_a_wrong_one_is_named_and_what_may_have_been_meant(self):
        with unittest.mock.patch.object(sys, "argv", ["compare", "--repaets", "3"]), \
                unittest.mock.patch.object(sys, "stderr", io.StringIO()) as said:
            with self.assertRaises(SystemExit) as ended:
                compare.options()
        self.assertEqual(ended.exception.code, 2)
        self.assertIn("--repaets 3; did you mean --repeats?", said.getvalue())


@unittest.skipIf(not {0, 1} <= os.sched_getaffinity(0), "CPU 0 or 1 is not ours")
class HandOver(unittest.TestCase):
    def test_yields_and_sleeps(self):
        for how in [], ["--sleep"]:
            done = subprocess.run([os.path.join(BINARIES, "hand_over"), *how, "0.05"],
                                  capture_output=True, text=True, timeout=60, check=True)
            self.assertGreater(float(done.stdout), 0)

    def test_refuses_times_that_are_none(self):
        for wrong in "1e-9", "nan", "inf", "1e308", "-1", "3x", "1,5", "":
            done = subprocess.run([os.path.join(BINARIES, "hand_over"), wrong], timeout=60,
                                  capture_output=True, check=False)
            self.assertEqual(done.returncode, 2, wrong)

    def test_programs_refuse_what_they_do_not_know(self):
        for program, usual in ("hand_over", "--sleep"), ("tcp_ping", "--poll"), ("kernel_stream", "--udp"):
            done = subprocess.run([os.path.join(BINARIES, program), usual + "x", "1", "1"], timeout=60,
                                  capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 2, done)
            self.assertIn(f"{program}: there is no option {usual}x; did you mean {usual}?\nusage: ", done.stderr)
        for words in ["--fast"], ["1"]:
            done = subprocess.run([os.path.join(BINARIES, "between_cpus"), *words], timeout=60,
                                  capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn(words[0], done.stderr)

    def test_a_line_goes_from_cpu_to_cpu_and_work_is_no_faster_than_alone(self):
        shared = []
        self.assertGreater(measurements.between_cpus(Bench(os.path.dirname(BINARIES), 1), shared), 0)
        self.assertEqual(len(shared), 1)
        self.assertGreaterEqual(shared[0], 1)


if __name__ == "__main__":
    unittest.main()
