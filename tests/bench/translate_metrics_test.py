#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The benchmark of farcc without its runs: what it computes, and what it runs in which order."""

import contextlib
import io
import json
import math
import pathlib
import sys
import tempfile
import types
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench" / "common"), str(ROOT / "bench" / "translate")]
# pylint: disable=wrong-import-position
import builder
import measured_run
import metrics
import pictures
import run as bench
import table61
from report import MIB


LEVELS = (bench.REFERENCE, "hint", "guard_all")


def by_name(results):
    return {(line["name"], line["metric"]): line for line in results}


class OfTheSeed(unittest.TestCase):
    FOUND = {"heap.original": [0.2, 0.1, 0.3], "heap.translate-heap.direct.redis": [1500.0, 1600.0, 1400.0],
             "heap.translate-heap.cached.redis": [0.3, 0.3, 0.4], "own_put.redis": [10.0, 9.0, 11.0]}

    def test_figures_have_the_names_of_tests_ways_and_stores(self):
        line = by_name(table61.results_of(self.FOUND))["heap.translate-heap.direct.redis", "table61_us"]
        self.assertEqual((line["value"], line["min"], line["max"], line["unit"]), (1500.0, 1400.0, 1600.0, "us"))

    def test_the_table_has_what_was_measured_beside_the_seeds(self):
        head, rows = table61.table(self.FOUND)
        self.assertEqual(head, ["us a call", "original", "hint", "redis", "seed: original / all / heap"])
        by_row = {row[0]: row[1:] for row in rows}
        self.assertEqual(by_row["heap, translate-heap.direct"], ["0.200", "", "1,500", "0.521 / 2,209,032 / 284,047"])
        self.assertEqual(by_row["heap, translate-heap.cached"], ["", "", "0.300", ""])
        self.assertEqual(by_row["own_put"], ["", "", "10", ""])
        self.assertEqual(by_row["stack, translate-heap.direct"][2], "")


    ASKED = {"heap.original": [0.2, 0.1, 0.3], "heap.translate-heap.cached.redis": [0.4, 0.4, 0.3],
             "heap.translate-heap.cached_flushed.redis": [25.0, 9.0, 33.0], "own_put.redis": [10.0, 9.0, 11.0],
             "heap.translate-heap.direct.redis": [1100.0, 1200.0, 1000.0], "own_put_part.redis": [10.0, 10.0, 10.0],
             "heap_loads.translate-heap.direct.redis": [1300.0, 1300.0, 1300.0], "own_get_part.redis": [10.0, 10.0, 10.0]}

    def test_what_was_asked_for_is_a_ratio_within_rounds(self):
        results = by_name(table61.results_of(self.ASKED))
        cached = results["heap.translate-heap.cached.redis", "table61_over_original"]
        self.assertEqual((round(cached["value"], 6), round(cached["min"], 6), round(cached["max"], 6)), (2, 1, 4))
        self.assertEqual(results["heap.translate-heap.cached_flushed.redis", "table61_puts"]["value"], 2.5)
        self.assertAlmostEqual(results["heap.translate-heap.direct.redis", "table61_over_own"]["value"], 1.1)
        self.assertAlmostEqual(results["heap_loads.translate-heap.direct.redis", "table61_over_own"]["value"], 1.3)

    def test_verdicts_follow_from_the_ratios(self):
        head, rows = table61.verdicts(self.ASKED)
        self.assertEqual(head, ["ratio of", "to", "at most", "redis"])
        self.assertEqual([row[:3] + [row[3].split(", ")[1]] for row in rows],
                         [["heap, translate-heap.cached", "heap.original", "3", "kept"],
                          ["heap, translate-heap.cached_flushed", "own_put", "2", "NOT KEPT"],
                          ["heap, translate-heap.direct, 1/100", "own_put_part", "1.2", "kept"],
                          ["heap_loads, translate-heap.direct, 1/100", "own_get_part", "1.2", "NOT KEPT"]])
        self.assertIn("2.00 (1.00-4.00)", rows[0][3])

    def test_what_is_printed_is_what_is_drawn(self):
        panels = {panel.title: panel.groups for panel in pictures.panels(table61.results_of(self.ASKED))}
        self.assertEqual(panels["Table 6.1, a call of heap"],
                         {"original": {"redis": 0.2}, "heap.direct": {"redis": 1100.0}, "heap.cached": {"redis": 0.4},
                          "heap.flushed": {"redis": 25.0}})
        self.assertEqual(panels["The stores themselves, one at a time"]["own_put"], {"redis": 10.0})
        self.assertEqual(panels["Table 6.1, what was asked for (at most)"]["redis"],
                         {"heap.cached over original (3)": 2.0, "heap.flushed puts (2)": 2.5,
                          "heap.direct over own (1.2)": 1.1, "heap_loads.heap.direct over own (1.2)": 1.3})


class Earlier(unittest.TestCase):
    def test_figures_of_several_runs_are_drawn_together_and_none_twice(self):
        with tempfile.TemporaryDirectory() as folder:
            paths = [str(pathlib.Path(folder) / name) for name in ("one.json", "two.json", "other.json")]
            for path, level in zip(paths, ("hint", "guard_all", "hint")):
                bench.report.write_json(path, "translate",
                                        [bench.report.result(f"{level}.p", "compile_time_ratio", 1.5, "ratio")])
            self.assertEqual(pictures.panels(pictures.read_results(paths[:2]))[0].groups,
                             {"p": {"hint": 1.5, "guard_all": 1.5}})
            with self.assertRaises(ValueError):
                pictures.read_results(paths)
            bench.report.write_json(paths[0], "paging", [])
            with self.assertRaises(ValueError):
                pictures.read_results(paths[:1])


class Ratios(unittest.TestCase):
    def pairs(self, **values):
        pairs = metrics.Pairs()
        for case, turns in values.items():
            for reference, level in turns:
                pairs.add(case, reference, level)
        return pairs

    def test_ratios_are_taken_within_turns(self):
        # A machine that was twice as slow in the second turn: the medians of each side alone would say 1.5.
        pairs = self.pairs(p=[(1, 1.1), (2, 2.2), (1, 1.65)])
        line = by_name(metrics.ratio_results("hint", "slowdown_local", pairs))["hint.p", "slowdown_local"]
        self.assertAlmostEqual(line["value"], 1.1)
        self.assertAlmostEqual(line["min"], 1.1)
        self.assertAlmostEqual(line["max"], 1.65)

    def test_a_speed_up_is_the_other_way_round(self):
        line = by_name(metrics.ratio_results("hint", "s", self.pairs(p=[(3, 2), (4, 2), (2, 2)]), True))["hint.p", "s"]
        self.assertEqual((line["value"], line["min"], line["max"]), (1.5, 1, 2))

    def test_all_is_the_geometric_mean_of_medians_and_its_spread_that_of_turns(self):
        pairs = self.pairs(p=[(1, 2), (1, 4), (1, 1)], q=[(1, 8), (1, 4), (1, 16)])
        line = by_name(metrics.ratio_results("hint", "s", pairs))["hint", "s"]
        self.assertAlmostEqual(line["value"], math.sqrt(2 * 8))
        self.assertAlmostEqual(line["min"], 4)  # each turn's mean is 4: what one lost the other gained
        self.assertAlmostEqual(line["max"], 4)

    def test_groups_have_a_line_and_empty_ones_none(self):
        results = by_name(metrics.ratio_results("hint", "s", self.pairs(p=[(1, 2)], q=[(1, 8)]), False,
                                                {"kmeans_like": ["q"], "nothing": ["r"]}))
        self.assertAlmostEqual(results["hint.kmeans_like", "s"]["value"], 8)
        self.assertNotIn(("hint.nothing", "s"), results)
        self.assertEqual(metrics.ratio_results("hint", "s", metrics.Pairs()), [])


class Growth(unittest.TestCase):
    def test_it_is_that_of_all_code_together(self):
        results = by_name(metrics.growth_results("hint", "instruction_growth", {"p": (100, 110), "q": (900, 990 + 80)}))
        self.assertAlmostEqual(results["hint", "instruction_growth"]["value"], 18)
        self.assertAlmostEqual(results["hint", "instruction_growth"]["min"], 10)
        self.assertAlmostEqual(results["hint.p", "instruction_growth"]["value"], 10)

    def test_the_seeds_figures_come_out(self):
        self.assertEqual(int(metrics.growth(571, 761)), 33)
        self.assertEqual(int(metrics.growth(571, 1768)), 209)

    def test_reports_are_summed(self):
        lines = [{"what": "size", "before": 17, "after": 28}, {"what": "hinted", "accesses": 2},
                 {"what": "size", "before": 15, "after": 15}, {"what": "left", "text": "too short"}]
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl", encoding="utf-8") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)
            file.flush()
            self.assertEqual(builder.instructions(file.name), (32, 43))
            file.write(json.dumps({"what": "counted", "instructions": 8, "loads": 1, "stores": 1}) + "\n")
            file.flush()
            self.assertEqual(builder.instructions(file.name), (40, 51))


class Planted(bench.Bench):
    """Runs nothing: `outcome(part, case, level)` is the time, or a checksum that is wrong."""

    def __init__(self, outcome, **options):
        settings = types.SimpleNamespace(parts=["local", "ample", "half"], rounds=2, timeout=9, folder="/nowhere",
                                         store=None, host_as_is=True, quick=False, levels=["hint", "guard_all"])
        vars(settings).update(options)
        super().__init__(settings, "farheap", types.SimpleNamespace(folder="/nowhere"))
        self.outcome, self.ran = outcome, []


class Running(unittest.TestCase):
    def setUp(self):
        self.addCleanup(setattr, bench.measured_run, "measured_run", bench.measured_run.measured_run)
        bench.measured_run.measured_run = self.run_planted

    def run_planted(self, command, **_):
        level = next(level for level in LEVELS if f"p.{level}" in command)
        budget = int(command[command.index("--memory") + 1]) if "--memory" in command else None
        part = "local" if budget is None else "half" if budget == 20 * MIB else "ample"
        self.bench.ran.append((part, level, "--verify" in command, budget))
        found = self.bench.outcome(part, level)
        line = {"seconds": found if isinstance(found, float) else 1.0, "total_seconds": 5.0, "verified": None,
                "checksum": found if isinstance(found, str) else "c"}
        stats = {"format": 1, "bytes_read": 3 * MIB, "faults_store": 7, "guard_fetches": 5}
        return measured_run.Run(1.0, 0, json.dumps(line).encode(), json.dumps(stats).encode(), 40 * MIB, False)

    def measure(self, outcome, **options):
        self.bench = Planted(outcome, **options)
        case = bench.Case("p", {level: f"p.{level}" for level in LEVELS}, [], True)
        told = io.StringIO()
        with contextlib.redirect_stderr(told):
            cases = self.bench.run([case])
        return by_name(self.bench.results(cases)), told.getvalue()

    def test_all_take_turns_and_another_one_begins_each(self):
        results, told = self.measure(lambda part, level: 2.0 if (part, level) == ("half", "hint") else 3.0)
        self.assertEqual(told, "")
        self.assertEqual([one[:2] for one in self.bench.ran if one[3] == 20 * MIB],
                         [("half", level) for level in (*LEVELS, "hint", "guard_all", "clang")])
        self.assertIn(("ample", "hint", False, 80 * MIB + bench.ROOM_BYTES), self.bench.ran)
        for name in ("hint", "hint.p", "hint.kmeans_like"):
            self.assertEqual(results[name, "speedup_50_over_uninstrumented"]["value"], 1.5)
        self.assertEqual(results["hint", "slowdown_local"]["value"], 1)
        self.assertEqual(results["hint", "slowdown_local_run"]["value"], 1)
        self.assertEqual(results["guard_all", "speedup_50_over_uninstrumented"]["value"], 1)
        self.assertEqual(results["guard_all.p", "guard_fetches_50"]["value"], 5)
        self.assertEqual(results["clang.p", "bytes_read_50"]["value"], 3)
        self.assertEqual(results["hint.p", "faults_store_50"]["value"], 7)

    def test_all_are_verified_first(self):
        self.measure(lambda *_: 1.0)
        self.assertEqual({level for _, level, verified, _ in self.bench.ran if verified}, set(LEVELS))

    def test_a_wrong_result_is_told_and_does_not_count(self):
        results, told = self.measure(lambda part, level: "d" if (part, level) == ("half", "hint") else 1.0)
        self.assertIn("WRONG", told)
        self.assertNotIn(("hint", "speedup_50_over_uninstrumented"), results)
        self.assertIn(("hint", "slowdown_local"), results)
        self.assertEqual(len(self.bench.wrong), 2)

    def test_a_level_that_computes_something_else_is_not_measured_at_all(self):
        results, told = self.measure(lambda _, level: "d" if level == "hint" else 1.0)
        self.assertIn("a wrong result", told)
        self.assertNotIn(("hint", "slowdown_local"), results)

    def test_the_tables_are_whole(self):
        results, _ = self.measure(lambda *_: 1.0)
        case = bench.Case("p", {}, [], True)
        for head, rows in bench.tables(self.bench, [case], list(results.values())):
            self.assertTrue(rows)
            self.assertEqual({len(row) for row in rows}, {len(head)})
        panels = pictures.panels(list(results.values()))
        self.assertEqual([panel.title for panel in panels],
                         ["All data in memory", "All data in memory, farheap run", "Half of the memory"])
        self.assertEqual([panel.groups for panel in panels], [{"p": {"hint": 1.0, "guard_all": 1.0}}] * 3)


class Options(unittest.TestCase):
    def test_what_is_not_there_is_refused(self):
        for words in (["--parts", "half,full"], ["--rounds", "0"], ["--levels", "hint,guard"]):
            with self.assertRaises(SystemExit), contextlib.redirect_stderr(io.StringIO()):
                bench.parse_options(words)

    def test_cases_of_two_threads_are_run_when_they_are_named(self):
        cases = [types.SimpleNamespace(name=name) for name in ("cg", "lookup_1", "lookup_2")]
        self.assertEqual([case.name for case in bench.choose(bench.parse_options([]), cases)], ["cg", "lookup_1"])
        chosen = bench.choose(bench.parse_options(["--programs", "lookup_2"]), cases)
        self.assertEqual([case.name for case in chosen], ["lookup_2"])
        with self.assertRaises(SystemExit):
            bench.choose(bench.parse_options(["--programs", "nothing"]), cases)

    def test_each_program_has_a_profile_of_its_own_for_what_is_shared_too(self):
        built = object.__new__(builder.Builder)
        built.farcc, built.clang, built.folder = "far++", "clang", "/folder"
        one, other = (builder.Source(name, [], False) for name in ("one", "other"))
        self.assertEqual(built.compiler("guard_profiled", one),
                         ["far++", "-ffar=guard", "-ffar-guard=/folder/one.guards.txt"])
        objects = {level: {built.object_of(builder.COMMON[0], level, source) for source in (one, other)}
                   for level in ("guard_all", "guard_profiled")}
        self.assertEqual({level: len(paths) for level, paths in objects.items()}, {"guard_all": 1, "guard_profiled": 2})

    def test_every_program_is_found(self):
        names = {source.name: source for source in builder.find_sources()}
        self.assertTrue(names["kmeans"].kmeans_like)
        self.assertFalse(names["lbm"].kmeans_like)
        self.assertGreater(len(names["lbm"].files), 1)


if __name__ == "__main__":
    unittest.main()
