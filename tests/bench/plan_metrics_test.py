#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What bench/plan makes of its measurements."""
import base64
import os
import pathlib
import sys
import tempfile
import unittest

BENCH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench")
sys.path[:0] = [os.path.join(BENCH, part) for part in ("plan", "common", "paging")]
# pylint: disable=wrong-import-position
import disk
import measurements
import plan_figures
import plan_tables
import run as bench
import subjects
from measurements import FULL, TIMED_OUT, WELL

MIB = 1 << 20
SPEEDS = {disk.SINGLE_READ: 40.0, disk.READS: 1000.0, disk.WRITES: 2000.0}
OPTIMUM = {"bytes_read": 1_000_000_000, "bytes_written": 500_000_000}


class Planted:
    """Measurements made by hand."""

    def __init__(self, *programs):
        self.measured = measurements.Measurements({"disk": SPEEDS}, "a machine", bench="plan")
        for name in programs:
            self.measured.programs[name] = {"class": "sweeping", "peak_bytes": 100 * MIB, "beside_bytes": 0,
                                            "checksum": "1"}
            self.measured.optima[name, 70] = OPTIMUM

    def trained(self, name, plan=b"", why=""):
        trainings = self.measured.programs[name].setdefault("trainings", [])
        trainings.append({"plan": base64.b64encode(plan).decode(), "why_none": why})

    def runs(self, name, way, seconds, level=70, read=2_000_000_000, written=500_000_000, ended=WELL, **counts):
        for turn, took in enumerate(seconds):
            record = measurements.Record(name, level, way, turn, took, ended, budget_bytes=70 * MIB,
                                         peak_bytes=70 * MIB, counts=counts)
            record.bytes_read, record.bytes_written = read, written
            self.measured.add(record)
        return self

    def values(self):
        return {(one["name"], one["metric"]): one for one in plan_figures.results_of(self.measured)}

    def table(self, title):
        (found,) = [(head, rows) for text, head, rows in plan_tables.all_tables(self.measured) if text.startswith(title)]
        return found


def all_ways(planted, name, plan):
    planted.runs(name, "plain", [1, 1, 1]).runs(name, "swap", [20, 16, 90], written=3_000_000_000)
    planted.runs(name, "farheap", [4, 4, 5], read=3_000_000_000)
    for size in (321, 320, 400):
        planted.trained(name, b"p" * size)
    return planted.runs(name, "plan", plan, touches_expected=90, touches_unexpected=10).runs(name, "oracle", [2, 2, 2])


class Figures(unittest.TestCase):
    def test_the_ceiling_is_what_takes_longest(self):
        self.assertAlmostEqual(plan_figures.ceiling(OPTIMUM, 0.5, SPEEDS), 1.25)  # 1 s of reading, 0.25 s of writing
        self.assertAlmostEqual(plan_figures.ceiling(OPTIMUM, 3.0, SPEEDS), 3.0)

    def test_a_plan_is_compared_by_medians_with_the_widest_spread(self):
        values = all_ways(Planted("sweep"), "sweep", [2.5, 2, 4]).values()
        for metric, value in (("speedup_over_swap_70", 8), ("speedup_over_planless_70", 1.6),
                              ("recovered_over_ceiling_70", 0.5), ("plan_over_oracle_70", 1.25),
                              ("read_over_optimum_70", 2), ("read_over_optimum_planless_70", 3),
                              ("written_over_optimum_70", 1), ("swap_written_over_ours_70", 6),
                              ("expected_touches_70", 0.9), ("hint_bytes", 321), ("seconds_plan_70", 2.5),
                              ("seconds_ceiling_70", 1.25), ("oracle_speedup_over_swap_70", 10)):
            self.assertAlmostEqual(values["sweep", metric]["value"], value, msg=metric)
        swap = values["sweep", "speedup_over_swap_70"]
        self.assertAlmostEqual(swap["min"], 4)
        self.assertAlmostEqual(swap["max"], 45)
        share = values["sweep", "recovered_over_ceiling_70"]
        self.assertAlmostEqual(share["min"], 1.25 / 4)
        self.assertAlmostEqual(share["max"], 1.25 / 2)

    def test_a_group_is_its_geometric_mean_with_the_least_and_the_most(self):
        planted = all_ways(all_ways(Planted("sweep", "lbm"), "sweep", [1, 1, 1]), "lbm", [4, 4, 4])
        line = planted.values()["sweeping", "speedup_over_swap_70"]
        self.assertAlmostEqual(line["value"], 10)
        self.assertEqual((line["min"], line["max"]), (5, 20))
        self.assertNotIn(("random", "speedup_over_swap_70"), planted.values())

    def test_plans_that_are_wrong_are_compared_with_none(self):
        planted = Planted("sweep").runs("sweep", "plain", [1]).runs("sweep", "farheap", [4])
        planted.runs("sweep", "plan_shuffled", [5]).runs("sweep", "plan_reversed", [2])
        for name in ("sweep", "sweeping"):
            self.assertAlmostEqual(planted.values()[name, "shuffled_speedup_over_planless_70"]["value"], 0.8)
            self.assertAlmostEqual(planted.values()[name, "reversed_speedup_over_planless_70"]["value"], 2)
        head, (row,) = planted.table("Seconds")
        self.assertEqual(row[head.index("plan, shuffled")], "5 s")

    def test_with_enough_memory_a_plan_is_compared_with_none(self):
        planted = Planted("sweep").runs("sweep", "farheap", [2, 2, 2], FULL).runs("sweep", "plan", [3, 3, 3], FULL)
        for name in ("sweep", "sweeping", "all"):
            self.assertAlmostEqual(planted.values()[name, "slowdown_full_memory"]["value"], 1.5)

    def test_a_baseline_that_was_given_up_is_a_bound(self):
        planted = Planted("sweep").runs("sweep", "plain", [1]).runs("sweep", "swap", [30], ended=TIMED_OUT)
        planted.runs("sweep", "plan", [2])
        self.assertEqual(planted.values()["sweep", "speedup_over_swap_70"]["bound"], "lower")
        self.assertEqual(planted.values()["sweeping", "speedup_over_swap_70"]["bound"], "lower")

    def test_the_better_of_the_seeds_hints_is_compared(self):
        planted = Planted("sweep").runs("sweep", "plain", [1]).runs("sweep", "plan", [2])
        planted.runs("sweep", "hints_mlock", [16]).runs("sweep", "hints_madvise", [12])
        self.assertAlmostEqual(planted.values()["sweep", "speedup_over_seed_hints_70"]["value"], 6)
        self.assertAlmostEqual(planted.values()["sweeping", "speedup_over_seed_hints_70"]["value"], 6)
        head, (row,) = planted.table("Seconds")
        self.assertEqual(row[head.index("swap with the seeds' hints: mlock")], "16 s")
        self.assertEqual(row[head.index("... madvise")], "12 s")
        head, rows = planted.table("What a plan gains")
        self.assertEqual(rows[0][head.index("over the seeds' hints")], "6.00x")

    def test_hints_that_were_given_up_are_not_the_better_ones(self):
        planted = Planted("sweep").runs("sweep", "plain", [1]).runs("sweep", "plan", [2])
        planted.runs("sweep", "hints_mlock", [16]).runs("sweep", "hints_madvise", [12], ended=TIMED_OUT)
        line = planted.values()["sweep", "speedup_over_seed_hints_70"]
        self.assertAlmostEqual(line["value"], 8)
        self.assertNotIn("bound", line)

    def test_what_was_not_measured_is_no_number(self):
        planted = Planted("sweep").runs("sweep", "plain", [1]).runs("sweep", "farheap", [4]).runs("sweep", "plan", [2])
        metrics = {metric for _, metric in planted.values()}
        self.assertIn("speedup_over_planless_70", metrics)
        self.assertFalse({"speedup_over_swap_70", "speedup_over_seed_hints_70", "plan_over_oracle_70", "swap_written_over_ours_70",
                          "slowdown_full_memory", "expected_touches_70"} & metrics)
        head, (row,) = planted.table("Seconds")
        self.assertEqual(row[head.index("kernel swap")], "-")


class Tables(unittest.TestCase):
    def test_where_a_plan_would_not_help_is_said(self):
        planted = Planted("lookup_1").runs("lookup_1", "plain", [1]).runs("lookup_1", "farheap", [4])
        for why in ("of 100 uses 3 could be foreseen\n  run it without one", "of 100 uses 4 could be foreseen"):
            planted.trained("lookup_1", why=why)
        head, (row,) = planted.table("Seconds")
        self.assertEqual(row[head.index("plan")], plan_tables.NONE)
        self.assertIn("- No plan for lookup_1 after 2 of 2 trainings: of 100 uses 3 could be foreseen run it without one",
                      plan_tables.markdown(planted.measured))
        self.assertNotIn(("lookup_1", "hint_bytes"), planted.values())

    def test_one_training_in_two_may_give_a_plan(self):
        planted = Planted("lookup_1").runs("lookup_1", "plain", [1]).runs("lookup_1", "plan", [4])
        planted.trained("lookup_1", why="too little")
        planted.trained("lookup_1", b"p" * 1234)
        head, (row,) = planted.table("Seconds")
        self.assertEqual(row[head.index("plan")], "4 s")
        self.assertEqual(planted.table("Plans")[1][0][1], "1,234")
        self.assertIn("after 1 of 2 trainings", plan_tables.markdown(planted.measured))

    def test_bytes_stand_beside_the_optimum(self):
        head, (row,) = all_ways(Planted("sweep"), "sweep", [2]).table("Bytes")
        self.assertEqual(row[head.index("plan: MiB read")], "1,907 (2.00x)")
        self.assertEqual(row[head.index("optimum: MiB read")], "954")
        self.assertEqual(row[head.index("kernel swap: written")], "2,861")

    def test_the_plot_leaves_out_what_nobody_measured(self):
        planted = Planted("sweep").runs("sweep", "plain", [1]).runs("sweep", "farheap", [4]).runs("sweep", "plan", [2])
        (panel,) = plan_tables.panels(planted.measured)
        self.assertEqual(panel.ways(), ["farheap", "plan", "ceiling"])
        self.assertAlmostEqual(panel.groups["sweep"]["plan"], 2)


class Options(unittest.TestCase):
    def test_the_last_size_counts(self):
        self.assertEqual(subjects.size_of(["--size", "96M", "--steps", "4", "--size", "1G"], 7), 1 << 30)
        self.assertEqual(subjects.size_of(["--threads", "1"], 7), 7)
        self.assertEqual(subjects.bytes_of("4096"), 4096)

    def test_other_sizes_and_other_machines_need_another_file(self):
        planted = Planted("sweep")
        path = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()), "plan.json")
        planted.measured.settings.update(bench.sizes_of(bench.parse_options(["--quick"])))
        planted.measured.save(path=str(path))
        again = bench.begin(bench.parse_options(["--quick", "--resume", str(path)]), "no tool is needed", "a machine")
        self.assertEqual(again.programs, planted.measured.programs)
        for words, machine in (([], "a machine"), (["--quick"], "another machine")):
            with self.assertRaisesRegex(ValueError, "begin another file"):
                bench.begin(bench.parse_options([*words, "--resume", str(path)]), "no tool is needed", machine)


if __name__ == "__main__":
    unittest.main()
