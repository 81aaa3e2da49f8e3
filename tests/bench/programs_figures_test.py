#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The benchmark of real programs without its runs: what it computes and shows, what it counts and what stands apart, and
how the limit of a group follows what zram uses."""

import contextlib
import io
import os
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench" / name) for name in ("programs", "common", "paging")]
# pylint: disable=wrong-import-position
import disk
import figures
import measured_run
import measurements
import misses
import run as bench
import subject
import ways
import zram_area
from measurements import FULL, KILLED, TIMED_OUT, WELL, Record
from report import MIB


class Planted:
    """Measurements made by hand: every program plainly takes 2 s."""

    def __init__(self, *programs):
        self.measured = measurements.Measurements({}, "a machine", bench="programs")
        for name in programs:
            self.measured.programs[name] = {"peak_bytes": 200 * MIB, "beside_bytes": MIB, "checksum": "c",
                                            "whole_seconds": 2.0}
            self.runs(name, FULL, "plain", [2])

    def runs(self, program, level, way, seconds, ended=WELL, peak_bytes=0, **counts):
        for turn, one in enumerate(seconds):
            self.measured.add(Record(program, level, way, turn, one, ended, kills=int(ended == KILLED),
                                     peak_bytes=peak_bytes, budget_bytes=140 * MIB, counts=counts))
        return self

    def values(self):
        return {(one["name"], one["metric"]): one for one in figures.results_of(self.measured)}

    def table(self, title):
        return {row[0]: row for name, _, rows in figures.all_tables(self.measured) if name == title for row in rows}

    def columns(self, title, program):
        heads = [head for name, head, _ in figures.all_tables(self.measured) if name == title]
        return dict(zip(heads[0], self.table(title)[program]))


class Ratios(unittest.TestCase):
    def test_medians_and_a_geometric_mean_with_the_least(self):
        planted = Planted("p", "q")
        planted.runs("p", 70, "swap", [8, 9, 7]).runs("p", 70, "zram", [6]).runs("p", 70, "farheap", [4, 5, 2])
        planted.runs("q", 70, "swap", [4]).runs("q", 70, "zram", [3]).runs("q", 70, "farheap", [8])
        values = planted.values()
        self.assertAlmostEqual(values["p", "speedup_over_swap_70"]["value"], 2)
        self.assertAlmostEqual(values["p", "speedup_over_swap_70"]["min"], 7 / 5)
        self.assertAlmostEqual(values["q", "speedup_over_swap_70"]["value"], 0.5)
        mean = values["all", "speedup_over_swap_70"]
        self.assertAlmostEqual(mean["value"], 1)
        self.assertAlmostEqual(mean["min"], 0.5)
        self.assertAlmostEqual(mean["max"], 2)
        self.assertAlmostEqual(values["all", "speedup_over_zram_70"]["value"], (1.5 * 0.375) ** 0.5)
        self.assertNotIn("bound", mean)

    def test_levels_are_apart(self):
        planted = Planted("p").runs("p", 70, "swap", [8]).runs("p", 70, "farheap", [4])
        values = planted.runs("p", 50, "swap", [30]).runs("p", 50, "farheap", [10]).values()
        self.assertAlmostEqual(values["all", "speedup_over_swap_70"]["value"], 2)
        self.assertAlmostEqual(values["all", "speedup_over_swap_50"]["value"], 3)

    def test_enough_memory_is_over_the_plain_runs(self):
        values = Planted("p", "q").runs("p", FULL, "enough", [4]).runs("q", FULL, "enough", [1]).values()
        self.assertAlmostEqual(values["p", "slowdown_full_memory"]["value"], 2)
        self.assertAlmostEqual(values["all", "slowdown_full_memory"]["value"], 1)

    def test_faults_are_medians_by_kind(self):
        planted = Planted("p").runs("p", 70, "swap", [8], major_faults=5000)
        planted.runs("p", 70, "farheap", [4], faults_store=300, faults_probation=700)
        values = planted.values()
        self.assertEqual(values["p", "major_faults_swap_70"]["value"], 5000)
        self.assertEqual(values["p", "faults_store_farheap_70"]["value"], 300)
        row = planted.table("At 70 %")["p"]
        self.assertIn("5,000", row)
        self.assertIn("300 + 700", row)
        self.assertIn("2.00x", row)

    def test_what_was_not_measured_has_no_column(self):
        planted = Planted("p").runs("p", 70, "swap", [8]).runs("p", 70, "farheap", [4]).runs("p", 50, "zram", [8])
        self.assertNotIn("zram", planted.columns("At 70 %", "p"))
        self.assertIn("x swap", planted.columns("At 70 %", "p"))
        self.assertIn("zram", planted.columns("At 50 %", "p"))


class Prices(unittest.TestCase):
    def test_the_time_lost_is_shared_among_the_misses(self):
        planted = Planted("p").runs("p", 70, "swap", [3], major_faults=10_000)
        planted.runs("p", 70, "farheap", [6], faults_store=50_000)
        self.assertEqual(planted.table("More misses, or dearer ones?")["p"][2:],
                         ["10,000", "100", "50,000", "80", "5.0x", "0.8x"])

    def test_few_misses_have_no_price(self):
        planted = Planted("p").runs("p", 70, "swap", [3], major_faults=10)
        planted.runs("p", 70, "farheap", [60], TIMED_OUT, faults_store=50_000)
        self.assertEqual(planted.table("More misses, or dearer ones?")["p"][3:],
                         ["-", ">= 50,000", "1,160", ">= 5000.0x", "-"])


class Misses(unittest.TestCase):
    NUMBERS = {"bytes_read": 10 * 4096, "lru_bytes_read": 100 * 4096, "lru_bytes_read_at_least": 50 * 4096,
               "lru_bytes_read_at_most": 200 * 4096}

    def test_what_was_missed_is_shown_over_what_lru_misses(self):
        planted = Planted("p").runs("p", 70, "farheap", [4, 4, 4], faults_store=300, bytes_read=4096 * 900)
        planted.measured.optima["p", 70] = self.NUMBERS
        line = planted.values()["p", "misses_over_lru_70"]
        self.assertEqual((line["value"], line["min"], line["max"]), (3, 1.5, 6))
        self.assertEqual(planted.values()["p", "misses_optimum_70"]["value"], 10)
        self.assertEqual(planted.table("Misses")["p"][2:], ["10", "100", "50-200", "-", "300", "900", "3.00x"])

    def test_a_run_that_was_not_done_would_have_missed_more(self):
        planted = Planted("p").runs("p", 70, "farheap", [60], TIMED_OUT, faults_store=300)
        planted.measured.optima["p", 70] = self.NUMBERS
        self.assertEqual(planted.values()["p", "misses_over_lru_70"]["bound"], "lower")

    def test_nothing_is_over_an_lru_that_misses_nothing(self):
        planted = Planted("p").runs("p", 70, "farheap", [4], faults_store=300)
        planted.measured.optima["p", 70] = {key: 0 for key in self.NUMBERS}
        self.assertNotIn(("p", "misses_over_lru_70"), planted.values())

    def test_the_recording_that_counts_is_nearly_all_of_them(self):
        with tempfile.TemporaryDirectory() as folder:
            paths = [os.path.join(folder, name) for name in ("a", "b")]
            for path, size in zip(paths, (1000, 10)):
                pathlib.Path(path).write_bytes(bytes(size))
            self.assertEqual(misses.main_trace(paths), paths[0])
            pathlib.Path(paths[1]).write_bytes(bytes(500))
            with self.assertRaises(ValueError):
                misses.main_trace(paths)
            with self.assertRaises(ValueError):
                misses.main_trace([])


class Apart(unittest.TestCase):
    """What is in no mean, and how it is marked."""

    def planted(self, swap=WELL, farheap=WELL, peak_bytes=0):
        planted = Planted("p", "q").runs("p", 70, "swap", [8]).runs("p", 70, "farheap", [4])
        return planted.runs("q", 70, "swap", [1 if swap == KILLED else 60], swap).runs("q", 70, "farheap", [20],
                                                                                       farheap, peak_bytes)

    def test_a_killed_baseline_is_a_lower_bound_and_in_no_mean(self):
        planted = self.planted(swap=KILLED)
        line = planted.values()["q", "speedup_over_swap_70"]
        self.assertEqual(line["bound"], "lower")
        self.assertAlmostEqual(line["value"], 2 / 20, msg="it would have taken no less than with no limit")
        mean = planted.values()["all", "speedup_over_swap_70"]
        self.assertAlmostEqual(mean["value"], 2)
        self.assertNotIn("bound", mean)
        self.assertEqual(planted.values()["all", "programs_over_swap_70"]["value"], 1)
        self.assertEqual(planted.values()["all", "oom_kills_swap_70"]["value"], 1)
        self.assertIn("killed", planted.table("At 70 %")["q"][3])
        self.assertEqual(planted.table("In sum")["70 %"][-1], "q")

    def test_a_baseline_that_was_not_done_is_in_no_mean(self):
        planted = self.planted(swap=TIMED_OUT)
        self.assertAlmostEqual(planted.values()["all", "speedup_over_swap_70"]["value"], 2)
        self.assertIn("not done", planted.table("At 70 %")["q"][3])

    def test_a_run_of_farheap_that_was_not_done_pulls_the_mean_down_and_marks_it(self):
        planted = self.planted(farheap=TIMED_OUT)
        mean = planted.values()["all", "speedup_over_swap_70"]
        self.assertAlmostEqual(mean["value"], (2 * 3) ** 0.5)
        self.assertEqual(mean["bound"], "upper")
        self.assertTrue(planted.table("In sum")["70 %"][2].startswith("<= "))

    def test_of_two_that_were_not_done_nothing_is_known(self):
        planted = self.planted(swap=TIMED_OUT, farheap=TIMED_OUT)
        self.assertNotIn(("q", "speedup_over_swap_70"), planted.values())
        self.assertNotIn("bound", planted.values()["all", "speedup_over_swap_70"])

    def test_a_program_that_took_more_than_its_budget_was_not_paged_and_is_in_no_mean(self):
        planted = self.planted(peak_bytes=190 * MIB)
        self.assertIn("not reached", planted.columns("At 70 %", "q")["from the store + still in memory"])
        self.assertAlmostEqual(planted.values()["all", "speedup_over_swap_70"]["value"], 2)

    def test_a_program_that_farheap_refuses_is_marked_and_in_no_mean(self):
        planted = self.planted()
        planted.measured.programs["r"] = {**planted.measured.programs["p"], "reached": False}
        planted.runs("r", 70, "swap", [8])
        self.assertEqual(planted.columns("At 70 %", "r")["farheap"], "not reached")
        self.assertEqual(planted.table("In sum")["70 %"][-1], "r")
        self.assertEqual(planted.values()["all", "programs_over_swap_70"]["value"], 2)

    def test_of_several_runs_it_is_said_how_many_were_killed(self):
        planted = self.planted()
        planted.measured.add(Record("q", 70, "zram", 0, 5.0, WELL))
        planted.measured.add(Record("q", 70, "zram", 1, 1.0, KILLED, kills=1))
        self.assertIn("killed 1 of 2", planted.columns("At 70 %", "q")["zram"])


class Followed(unittest.TestCase):
    """The limit of a group and what zram uses are never more than what was allowed."""

    class Group:
        def __init__(self):
            self.limits, self.refuses = [], False

        def limit(self, limit_bytes):
            self.limits.append(limit_bytes)
            return not self.refuses

    def followed(self, uses, refuses=False):
        group = self.Group()
        group.refuses = refuses
        source = iter(uses)
        follower = zram_area.Follower(group, lambda: next(source), 100 * MIB)
        for _ in uses:
            follower.follow()
        return group, follower

    def test_what_zram_uses_is_taken_from_the_limit_and_given_back(self):
        group, follower = self.followed([0, 30 * MIB, 30 * MIB + 100, 10 * MIB])
        self.assertEqual(group.limits, [70 * MIB, 90 * MIB])
        self.assertEqual(follower.most_used_bytes, 30 * MIB + 100)

    def test_a_limit_that_the_kernel_refused_is_asked_for_again(self):
        group, _ = self.followed([30 * MIB, 30 * MIB], refuses=True)
        self.assertEqual(group.limits, [70 * MIB, 70 * MIB])

    def test_something_is_left_of_a_limit(self):
        group, _ = self.followed([200 * MIB])
        self.assertEqual(group.limits, [zram_area.LEAST_LIMIT])


class Subjects(unittest.TestCase):
    def test_each_is_found_and_has_a_name_of_its_own(self):
        names = [one.name for one in subject.all_subjects()]
        self.assertEqual(len(names), len(set(names)))
        for name in ("perl_forks", "zstd_long", "java_map", "gawk_keys", "bwa_index", "pandas_merge", "duckdb_join"):
            self.assertIn(name, names)
        self.assertGreaterEqual(len(names), 15)
        self.assertTrue(all(one.does for one in subject.all_subjects()))

    def test_inputs_have_a_folder_for_each_that_changes_with_what_makes_them(self):
        first = subject.data_folder("/data", subject.all_subjects()[0])
        self.assertEqual(first, subject.data_folder("/data", subject.all_subjects()[0]))
        self.assertEqual(len({subject.data_folder("/data", one) for one in subject.all_subjects()}),
                         len(subject.all_subjects()))
        scripts = subject.SCRIPTS
        try:
            with tempfile.TemporaryDirectory() as subject.SCRIPTS:
                self.assertNotEqual(first, subject.data_folder("/data", subject.all_subjects()[0]))
        finally:
            subject.SCRIPTS = scripts

    def test_skewed_numbers_are_the_same_every_time_and_mostly_few(self):
        numbers = subject.skewed_numbers(1, 20_000, 1000)
        self.assertEqual(numbers, subject.skewed_numbers(1, 20_000, 1000))
        counts = sorted((numbers.count(one) for one in range(1000)), reverse=True)
        self.assertAlmostEqual(sum(counts[:100]) / 20_000, 0.46, delta=0.03)

    def test_results_in_files_belong_to_the_output(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "result")
            found = []
            for text in ("one", "two", "one"):
                pathlib.Path(path).write_text(text, encoding="ascii")
                found.append(subject.digest(subject.Job([], results=(path,)), measured_run.Run(1, 0, b"", b"", 0, False)))
        self.assertEqual(found[0], found[2])
        self.assertNotEqual(found[0], found[1])

    def test_a_failed_or_silent_run_has_no_digest(self):
        for status, output in ((1, b"text"), (0, b"")):
            with self.assertRaises(ValueError):
                subject.digest(subject.Job([]), measured_run.Run(1, status, output, b"", 0, False))


class Entered(unittest.TestCase):
    """What becomes of a run."""

    def setUp(self):
        planted = Planted("p")
        self.job = subject.Job([])
        self.measured = planted.measured
        self.measured.programs["p"]["checksum"] = subject.digest(self.job, self.a_run())
        options = bench.parse_options(["--levels", "70,50", "--ways", "farheap,plain,swap"])
        self.ways = ways.Ways(options, None, options.ways, ways.Areas(), self.measured)

    @staticmethod
    def a_run(output=b"right", status=0, kills=0, timed_out=False):
        return measured_run.Run(3.0, status, output, b"", 150 * MIB, timed_out, kills=kills)

    def enter(self, run):
        record = Record("p", 70, "swap", 0, 0.0, WELL)
        with contextlib.redirect_stderr(io.StringIO()) as said:
            self.ways.enter(type("S", (), {"name": "p"}), self.job, run, record)
        return self.measured.find("p", 70, "swap", 0), said.getvalue()

    def test_a_wrong_output_does_not_count_and_is_told(self):
        found, said = self.enter(self.a_run(b"wrong"))
        self.assertIsNone(found)
        self.assertIn("WRONG", said)
        self.assertTrue(self.ways.wrong)

    def test_what_the_kernel_killed_is_kept_as_killed(self):
        found, _ = self.enter(self.a_run(b"", 137, kills=1))
        self.assertEqual((found.ended, found.kills), (KILLED, 1))

    def test_what_was_given_up_is_kept_as_not_done(self):
        found, _ = self.enter(self.a_run(b"", 137, timed_out=True))
        self.assertEqual((found.ended, found.kills), (TIMED_OUT, 0))

    def test_short_ways_are_run_at_each_level_and_the_others_once(self):
        self.assertEqual(list(self.ways.steps()), [("plain", FULL), ("swap", 70), ("swap", 50), ("farheap", 70),
                                                   ("farheap", 50)])

    def test_what_was_measured_is_kept_and_taken_up(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "programs.json")
            self.measured.save([], path)
            self.assertEqual(len(measurements.load(path, "programs").records), len(self.measured.records))
            with self.assertRaises(ValueError):
                measurements.load(path)


class Disk(unittest.TestCase):
    def tool(self, folder, text):
        path = os.path.join(folder, "farheap")
        pathlib.Path(path).write_text(f"#!/bin/sh\ncat <<END\n{text}\nEND\n", encoding="ascii")
        os.chmod(path, 0o755)
        return path

    def test_its_single_read_and_its_bandwidth_are_taken_from_the_tool(self):
        line = '{"name": "%s", "unit": "", "median": %s, "min": 0, "max": 0}'
        lines = ",".join(line % one for one in (("get 4.0 KiB, single", 33), ("get 1.0 MiB, sequential, batch", 1100),
                                                ("get 4.0 KiB, sequential, batch", 1),
                                                ("put 1.0 MiB, sequential, batch", 2200)))
        with tempfile.TemporaryDirectory() as folder:
            found = disk.measure(self.tool(folder, f'{{"format":1,"results":[{lines}]}}'), folder)
            self.assertEqual(found, {"single_read": 33, "reads": 1100, "writes": 2200})
            self.assertIn("33 us", disk.text(found))
            with self.assertRaises(ValueError):
                disk.measure(self.tool(folder, '{"format":1,"results":[]}'), folder)


if __name__ == "__main__":
    unittest.main()
