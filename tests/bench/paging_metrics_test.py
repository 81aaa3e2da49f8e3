#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The paging benchmark without its runs: what it computes, what it keeps and takes up again, what it runs at all."""

import contextlib
import io
import json
import math
import os
import pathlib
import sys
import tempfile
import types
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench" / "common"), str(ROOT / "bench" / "paging")]
# pylint: disable=wrong-import-position
import measured_run
import measurements
import metrics
import report
import run as bench
import runner as ways
import subjects
import tables
from measurements import FULL, KILLED, SLOWER, TIMED_OUT, WATCHED, WELL, Record
from report import MIB

PEAK = 200 * MIB


def a_program(kind="sweeping", peak=PEAK):
    return {"class": kind, "peak_bytes": peak, "beside_bytes": MIB, "checksum": "c", "whole_seconds": 1.0,
            "real": False}


class Planted:
    """Measurements made by hand."""

    def __init__(self, **programs):
        self.measured = measurements.Measurements({"quick": False, "mask": False}, "a machine")
        for name, kind in programs.items():
            self.measured.programs[name] = a_program(kind)

    def runs(self, program, level, way, seconds, ended=WELL, setting=None, budget_bytes=100 * MIB, **facts):
        for turn, one in enumerate(seconds):
            self.measured.add(Record(program, level, way, turn, one, ended, setting or {}, budget_bytes=budget_bytes,
                                     **facts))
        return self

    def values(self):
        return {(one["name"], one["metric"]): one for one in metrics.results_of(self.measured)}


class Ratios(unittest.TestCase):
    def test_medians_with_the_widest_spread(self):
        planted = Planted(p="sweeping").runs("p", 70, "plain", [1, 1.1, 0.9])
        planted.runs("p", 70, "swap", [10, 12, 11], setting={"page_cluster": 0})
        planted.runs("p", 70, "farheap", [2, 2.2, 1.8])
        line = planted.values()["p", "speedup_over_swap_70"]
        self.assertAlmostEqual(line["value"], 5.5)
        self.assertAlmostEqual(line["min"], 10 / 2.2)
        self.assertAlmostEqual(line["max"], 12 / 1.8)
        self.assertNotIn("bound", line)
        self.assertEqual(planted.values()["p", "swap_page_cluster_70"]["value"], 0)

    def test_recovered_is_the_share_of_the_time_lost_to_swap(self):
        planted = Planted(p="sweeping").runs("p", 50, "plain", [1]).runs("p", 50, "swap", [9])
        line = planted.runs("p", 50, "farheap", [3, 5, 1]).values()["p", "recovered_50"]
        self.assertAlmostEqual(line["value"], 6 / 8)
        self.assertAlmostEqual(line["min"], 4 / 8)
        self.assertAlmostEqual(line["max"], 8 / 8)

    def test_nothing_is_recovered_where_swap_takes_no_time(self):
        planted = Planted(p="random").runs("p", 90, "plain", [1]).runs("p", 90, "swap", [1.05])
        self.assertNotIn(("p", "recovered_90"), planted.runs("p", 90, "farheap", [2]).values())

    def test_bytes_over_the_optimum_lie_between_its_bounds(self):
        planted = Planted(p="other").runs("p", 70, "farheap", [1, 1], bytes_read=30 * MIB, bytes_written=8 * MIB)
        planted.measured.optima["p", 70] = {"bytes_read": 10 * MIB, "bytes_read_at_most": 15 * MIB, "bytes_written": 0,
                                            "bytes_written_at_most": 4 * MIB}
        values = planted.values()
        line = values["p", "read_over_optimum_70"]
        self.assertEqual((line["value"], line["min"], line["max"]), (3, 2, 3))
        self.assertNotIn(("p", "written_over_optimum_70"), values, "nothing can be over an optimum of nothing")
        self.assertEqual(values["p", "written_optimum_70"]["max"], 4)

    def test_kills_and_peaks_are_those_of_farheap(self):
        planted = Planted(p="other", q="other").runs("p", 70, "farheap", [1], budget_bytes=100 * MIB,
                                                     peak_bytes=103 * MIB)
        planted.runs("p", 70, "swap", [1], KILLED, kills=1)
        planted.runs("q", 70, "farheap", [1], KILLED, kills=2, budget_bytes=100 * MIB, peak_bytes=90 * MIB)
        values = planted.values()
        self.assertAlmostEqual(values["p", "peak_over_budget"]["value"], 3)
        self.assertAlmostEqual(values["all", "peak_over_budget_mib"]["value"], 3)
        self.assertEqual(values["p", "oom_kills"]["value"], 0)
        self.assertEqual(values["all", "oom_kills"]["value"], 2)
        self.assertEqual(values["all", "oom_kills_swap_70"]["value"], 1)


class Bounds(unittest.TestCase):
    def planted(self, swap, farheap):
        planted = Planted(p="sweeping").runs("p", 70, "plain", [2])
        planted.runs("p", 70, "swap", [100 if swap == TIMED_OUT else 1 if swap == KILLED else 20], swap)
        return planted.runs("p", 70, "farheap", [4], farheap).values()

    def test_a_baseline_that_was_given_up_makes_a_lower_bound(self):
        values = self.planted(TIMED_OUT, WELL)
        for metric, expected in (("speedup_over_swap_70", 25), ("recovered_70", 96 / 98)):
            self.assertEqual(values["p", metric]["bound"], "lower", metric)
            self.assertAlmostEqual(values["p", metric]["value"], expected)
        self.assertEqual(values["sweeping", "speedup_over_swap_70"]["bound"], "lower")
        self.assertEqual(values["p", "seconds_swap_70"]["bound"], "lower")

    def test_a_killed_baseline_took_no_less_than_the_plain_run(self):
        line = self.planted(KILLED, WELL)["p", "speedup_over_swap_70"]
        self.assertEqual((line["value"], line["bound"]), (0.5, "lower"))

    def test_a_farheap_run_that_was_given_up_makes_an_upper_bound(self):
        values = self.planted(WELL, TIMED_OUT)
        self.assertEqual(values["p", "speedup_over_swap_70"]["bound"], "upper")
        self.assertNotIn(("p", "recovered_70"), values)

    def test_of_two_that_were_given_up_nothing_is_known(self):
        self.assertNotIn(("p", "speedup_over_swap_70"), self.planted(TIMED_OUT, TIMED_OUT))

    def test_bounds_that_pull_both_ways_make_no_mean(self):
        planted = Planted(p="random", q="random")
        planted.runs("p", 70, "swap", [9], TIMED_OUT).runs("p", 70, "farheap", [1])
        planted.runs("q", 70, "swap", [9]).runs("q", 70, "farheap", [9], TIMED_OUT)
        values = planted.values()
        self.assertIn(("p", "speedup_over_swap_70"), values)
        self.assertNotIn(("random", "speedup_over_swap_70"), values)

    def test_the_time_before_the_timed_phase_is_no_part_of_a_bound(self):
        run = measured_run.Run(40.0, 137, b"", b"lbm: prepared after 12.500000 s\n", 0, True)
        self.assertAlmostEqual(ways.timed_part(run), 27.5)
        self.assertAlmostEqual(ways.timed_part(measured_run.Run(40.0, 137, b"", b"", 0, True)), 40)


class Groups(unittest.TestCase):
    def planted(self):
        planted = Planted(s="sweeping", t="sweeping", r="random")
        for name, swap, farheap in (("s", 10, 2), ("t", 3, 6), ("r", 8, 4)):
            planted.runs(name, 70, "plain", [1]).runs(name, 70, "swap", [swap]).runs(name, 70, "mlock", [swap / 2])
            planted.runs(name, 70, "farheap", [farheap])
        return planted.values()

    def test_a_sweep_that_swap_does_not_hurt_does_not_count_among_the_sweeping(self):
        values = self.planted()
        self.assertAlmostEqual(values["sweeping", "speedup_over_swap_70"]["value"], 5)
        self.assertAlmostEqual(values["sweeping", "speedup_over_mlock_70"]["value"], 2.5)
        self.assertAlmostEqual(values["random", "speedup_over_swap_70"]["value"], 2)
        self.assertAlmostEqual(values["all", "speedup_over_swap_70"]["value"], (5 * 0.5 * 2) ** (1 / 3))

    def test_the_least_that_was_recovered_stands_for_all(self):
        values = self.planted()
        self.assertAlmostEqual(values["sweeping", "recovered_70"]["value"], 8 / 9)
        self.assertAlmostEqual(values["all", "recovered_70"]["value"], -3 / 2)


class EnoughMemory(unittest.TestCase):
    def test_ratios_of_medians_and_their_mean_with_an_interval(self):
        planted = Planted(p="random", q="other")
        planted.runs("p", FULL, "plain", [1.0, 1.02, 0.98, 1.01, 0.99])
        planted.runs("p", FULL, "farheap", [1.1, 1.12, 1.08, 1.11, 1.09])
        planted.runs("q", FULL, "plain", [2, 2, 2]).runs("q", FULL, "farheap", [2, 2, 2])
        values = planted.values()
        line = values["p", "slowdown_full_memory"]
        self.assertAlmostEqual(line["value"], 1.1)
        self.assertTrue(1.05 < line["min"] < 1.1 < line["max"] < 1.15, line)
        self.assertEqual(line, planted.values()["p", "slowdown_full_memory"], "the same in every call")
        exact = values["q", "slowdown_full_memory"]
        self.assertEqual((exact["min"], exact["value"], exact["max"]), (1, 1, 1))
        mean = values["all", "slowdown_full_memory"]
        self.assertAlmostEqual(mean["value"], math.sqrt(1.1))
        self.assertTrue(1 < mean["min"] < mean["value"] < mean["max"] < line["max"], mean)


class Settings(unittest.TestCase):
    def test_the_fastest_that_ended_is_the_baseline_and_the_rest_does_not_count(self):
        planted = Planted(p="random")
        planted.runs("p", 70, "swap", [5], TIMED_OUT, {"page_cluster": 5})
        planted.runs("p", 70, "swap", [9, 7, 8], WELL, {"page_cluster": 0})
        planted.runs("p", 70, "swap", [12], WELL, {"page_cluster": 3})
        planted.runs("p", 70, "swap", [1], SLOWER, {"page_cluster": 8})
        line = planted.values()["p", "seconds_swap_70"]
        self.assertEqual((line["value"], line["min"], line["max"]), (8, 7, 9))
        self.assertEqual(planted.values()["p", "swap_page_cluster_70"]["value"], 0)


class Kept(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "paging.json")

    def planted(self):
        planted = Planted(p="random").runs("p", 70, "swap", [5], TIMED_OUT, {"page_cluster": 0})
        planted.runs("p", FULL, "plain", [1, 2]).measured.optima["p", 70] = {
            "bytes_read": 5, "bytes_read_at_most": 6, "bytes_written": 3, "bytes_written_at_most": 4}
        return planted.measured

    def test_what_is_written_reads_the_same(self):
        measured = self.planted()
        measured.save(metrics.results_of(measured), self.path)
        again = measurements.load(self.path)
        self.assertEqual(again.records, measured.records)
        self.assertEqual((again.optima, again.programs), (measured.optima, measured.programs))
        with open(self.path, encoding="utf-8") as text:
            self.assertEqual(json.load(text)["results"], metrics.results_of(again))
        self.assertFalse(os.path.exists(self.path + ".part"))

    def test_parts_become_one(self):
        whole, part = self.planted(), Planted(p="random", q="other")
        part.runs("p", FULL, "plain", [9]).runs("q", 50, "farheap", [3])
        whole.join(part.measured)
        self.assertEqual([one.seconds for one in whole.of("p", FULL, "plain")], [1, 2], "what is there stays")
        self.assertEqual(len(whole.of("q", 50, "farheap")), 1)
        self.assertEqual(whole.levels(), [70, 50])

    def test_parts_that_do_not_belong_together_are_refused(self):
        def different(change):
            part = Planted(p="random").measured
            change(part)
            return part
        for change in (lambda part: part.settings.update(quick=True),
                       lambda part: setattr(part, "machine", "another"),
                       lambda part: part.programs["p"].update(checksum="d"),
                       lambda part: part.programs["p"].update(peak_bytes=1)):
            with self.assertRaises(ValueError):
                self.planted().join(different(change))

    def test_other_files_are_refused(self):
        for text in ('{"format":1,"bench":"alloc","results":[]}', '{"format":2,"bench":"paging","runs":[]}',
                     '{"format":1,"bench":"paging","runs":[],"programs":{"p":{"peak_bytes":1}}}'):
            pathlib.Path(self.path).write_text(text, encoding="utf-8")
            with self.assertRaises(ValueError):
                measurements.load(self.path)


class FakeRunner(ways.Runner):
    """Its programs answer at once with the seconds that a table says; what it was asked to run is kept."""

    def __init__(self, options, measured, seconds):
        super().__init__(options, "tool", None, True, (), measured)
        self.seconds_of = seconds
        self.ran = []

    def run_once(self, subject, command, limit=None, timeout=None, interval=None):
        way = "farheap" if command[0] == "tool" else "mlock" if "--mlock" in command else "swap" if limit else "plain"
        self.ran.append((way, limit, timeout))
        seconds, checksum = self.seconds_of(way, command), "c"
        if isinstance(seconds, str):
            seconds, checksum = 1.0, seconds
        if timeout and seconds > timeout:
            return measured_run.Run(timeout, 137, b"", b"", PEAK, True)
        line = json.dumps({"seconds": seconds, "checksum": checksum, "verified": None})
        stats = json.dumps({"format": 1, "bytes_read": 7, "bytes_written": 9, "peak_bytes": 11})
        return measured_run.Run(seconds, 0, line.encode(), stats.encode(), PEAK, False,
                                charged_bytes=PEAK + MIB)


class Running(unittest.TestCase):
    def setUp(self):
        self.clusters = []
        before = ways.swap_area.write_page_cluster
        ways.swap_area.write_page_cluster = self.clusters.append
        self.addCleanup(setattr, ways.swap_area, "write_page_cluster", before)
        self.brought_back = []
        self.addCleanup(setattr, ways.host_memory, "bring_back", ways.host_memory.bring_back)
        ways.host_memory.bring_back = self.brought_back.append

    def runner(self, seconds, measured=None, **changes):
        options = types.SimpleNamespace(columns=["swap", "mlock", "farheap", "enough"], runs=3, quick=False,
                                        levels=[70], timeout=600, give_up=60, page_clusters=[3, 0, 5],
                                        mlock_shares=[50, 80], folder="/nowhere", mask=False, swap_awake=False,
                                        host_as_is=False)
        vars(options).update(changes)
        return FakeRunner(options, measured or measurements.Measurements(), seconds)

    def measure(self, runner, locks=True):
        told = io.StringIO()
        with contextlib.redirect_stderr(told):
            runner.measure(subjects.Subject("p", ["p"], "random", locks))
        return told.getvalue()

    def by_cluster(self, table):
        return lambda way, _: table[self.clusters[-1]] if way == "swap" else 1.0

    def test_all_settings_in_the_first_turn_then_the_best(self):
        runner = self.runner(self.by_cluster({3: 9.0, 0: 8.0, 5: 8.5}))
        self.measure(runner)
        swaps = runner.measured.of("p", 70, "swap")
        self.assertEqual(sorted((one.turn, one.setting["page_cluster"]) for one in swaps),
                         [(0, 0), (0, 3), (0, 5), (1, 0), (2, 0)])
        shares = [one.setting for one in runner.measured.of("p", 70, "mlock")]
        self.assertEqual(len(shares), 4)
        self.assertEqual({one["page_cluster"] for one in shares}, {0}, "with what was best without locked memory")
        self.assertIn(("swap", PEAK * 70 // 100 + MIB), {(way, limit) for way, limit, _ in runner.ran})

    def test_the_host_gives_memory_back_before_each_run_with_enough_of_it_and_before_no_other(self):
        runner = self.runner(lambda way, _: 1.0)
        self.measure(runner)
        whole = [one for one in runner.measured.records if one.level == measurements.FULL]
        self.assertEqual(self.brought_back, [PEAK + ways.ROOM_BYTES] * len(whole))
        self.measure(self.runner(lambda way, _: 1.0, host_as_is=True))
        self.assertEqual(len(self.brought_back), len(whole))

    def test_a_watched_run_tells_the_peak_and_no_time(self):
        runner = self.runner(lambda way, _: 1.0, columns=["farheap"])
        self.measure(runner)
        ways_run = [one.way for one in runner.measured.peaks("p")]
        self.assertEqual(ways_run.count(WATCHED), 1)
        self.assertEqual(ways_run.count("farheap"), 3)
        for one in runner.measured.peaks("p"):
            one.seconds, one.peak_bytes = (9.0, 2 * PEAK) if one.way == WATCHED else (1.0, PEAK)
            one.kills = int(one.way == WATCHED)
        lines = {line["metric"]: line["value"] for line in metrics.program_results(runner.measured, "p")}
        self.assertEqual(lines["peak_over_budget_mib"], (2 * PEAK - PEAK * 70 // 100) / MIB)
        self.assertEqual(lines["oom_kills"], 1, "a watched run that was killed was killed")
        self.assertEqual([one.seconds for one in runner.measured.of("p", 70, "farheap")], [1.0] * 3)

    def test_a_setting_that_is_surely_slower_is_not_run_to_its_end(self):
        runner = self.runner(self.by_cluster({3: 20.0, 0: 100.0, 5: 10.0}), columns=["swap"])
        self.measure(runner)
        ended = {one.setting["page_cluster"]: (one.ended, one.seconds) for one in runner.measured.of("p", 70, "swap")}
        self.assertEqual(ended, {3: (WELL, 20.0), 0: (SLOWER, 26.0), 5: (WELL, 10.0)})
        self.assertEqual(metrics.cell(runner.measured, "p", 70, "swap").seconds, [10.0] * 3)

    def test_a_baseline_is_given_up_and_counts_until_then(self):
        runner = self.runner(lambda way, _: 500.0 if way == "swap" else 1.0, columns=["swap", "farheap"], runs=1)
        self.measure(runner)
        one = metrics.cell(runner.measured, "p", 70, "swap")
        self.assertEqual((one.seconds, one.bounded), ([60.0], True))
        line = next(one for one in metrics.results_of(runner.measured) if one["metric"] == "speedup_over_swap_70")
        self.assertEqual((line["value"], line["bound"]), (60, "lower"))

    def test_what_was_run_is_not_run_again(self):
        runner = self.runner(lambda *_: 1.0)
        self.measure(runner)
        again = self.runner(lambda *_: 1.0, runner.measured)
        self.measure(again)
        self.assertEqual(again.ran, [])
        more = self.runner(lambda *_: 1.0, runner.measured, runs=4, columns=["swap", "farheap"])
        self.measure(more)
        self.assertEqual(sorted(way for way, _, _ in more.ran), ["farheap", "plain", "swap"], "one turn of these")

    def test_a_bench_that_was_broken_off_goes_on_with_what_is_missing(self):
        whole = self.runner(self.by_cluster({3: 9.0, 0: 8.0, 5: 8.5}))
        self.measure(whole)
        for length in range(len(whole.measured.records)):
            part = measurements.Measurements()
            part.programs = whole.measured.programs
            for record in whole.measured.records[:length]:
                part.add(record)
            self.measure(self.runner(self.by_cluster({3: 9.0, 0: 8.0, 5: 8.5}), part))
            self.assertEqual({one.key() for one in part.records}, {one.key() for one in whole.measured.records})

    def test_a_wrong_result_is_told_and_does_not_count(self):
        runner = self.runner(lambda way, _: "d" if way == "farheap" else 1.0)
        self.assertIn("WRONG", self.measure(runner))
        self.assertEqual(runner.measured.of("p", 70, "farheap"), [])
        self.assertEqual(len(runner.wrong), 1 + 3 + 5)

    def test_a_program_without_locks_is_told(self):
        runner = self.runner(lambda *_: 1.0)
        self.assertIn("LEFT OUT: swap with locked memory for p", self.measure(runner, locks=False))
        self.assertEqual(runner.measured.of("p", 70, "mlock"), [])

    def test_bytes_and_peak_come_from_the_tool(self):
        runner = self.runner(lambda *_: 1.0, runs=1, columns=["farheap"])
        self.measure(runner)
        record = runner.measured.of("p", 70, "farheap")[0]
        self.assertEqual((record.bytes_read, record.bytes_written, record.peak_bytes), (7, 9, PEAK))


class Shown(unittest.TestCase):
    def measured(self):
        planted = Planted(p="sweeping", q="random")
        for name in "pq":
            planted.runs(name, 70, "plain", [1]).runs(name, 70, "swap", [30], TIMED_OUT, {"page_cluster": 0})
            planted.runs(name, 70, "farheap", [2], budget_bytes=MIB, peak_bytes=2 * MIB)
            planted.runs(name, FULL, "plain", [1]).runs(name, FULL, "farheap", [1])
        return planted.measured

    def test_the_table_marks_bounds_and_is_whole(self):
        text = tables.markdown(self.measured())
        rows = [line for line in text.splitlines() if line.startswith("|")]
        self.assertIn("| >= 30 s |", text)
        self.assertIn("| >= 15.00x |", text)
        self.assertEqual(len([row for row in rows if row.startswith("| p |")]), 2)
        for head in (tables.HEAD, tables.SUMMARY_HEAD, tables.FULL_HEAD):
            widths = {row.count("|") for row in rows if row.count("|") == len(head) + 1}
            self.assertEqual(widths, {len(head) + 1})

    def test_from_json_shows_without_running(self):
        with tempfile.TemporaryDirectory() as folder:
            path, out = os.path.join(folder, "a.json"), io.StringIO()
            self.measured().save(path=path)
            with contextlib.redirect_stdout(out):
                self.assertEqual(bench.main(["--from-json", path, "--markdown", "--json", path]), 0)
            self.assertIn("| q | random | 70 % |", out.getvalue())
            with open(path, encoding="utf-8") as text:
                self.assertTrue(json.load(text)["results"])

    def test_the_plot_has_a_bar_for_each_column_that_was_measured(self):
        panels = tables.panels(self.measured())
        self.assertEqual(panels[0].groups["p"], {"kernel swap": 30, "swap + mlock": None, "farheap": 2})
        self.assertEqual(len(panels), 3)
        for panel in panels[1:]:
            self.assertEqual(panel.groups["70 %"]["swap + mlock"], None)
            self.assertAlmostEqual(panel.groups["70 %"]["farheap"], 2)

    def test_a_plot_that_cannot_be_is_told(self):
        self.assertIn(".svg", report.plot("x.pdf", []))
        self.assertIn("nothing", report.plot("x.svg", []))


if __name__ == "__main__":
    unittest.main()
