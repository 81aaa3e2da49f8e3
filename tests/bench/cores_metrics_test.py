#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The benchmark of many processors without its runs: what it computes, and what it makes of what threads wait for."""

import contextlib
import io
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench" / "common"), str(ROOT / "bench" / "cores")]
# pylint: disable=wrong-import-position
import run as bench
import thread_watch


class Derived(unittest.TestCase):
    VALUES = {("bare_1_1_1_1", "misses_per_second"): [50.0, 60.0, 70.0],
              ("bare_16_8_8_2", "misses_per_second"): [600.0], ("bare_16_8_1_2", "misses_per_second"): [200.0],
              ("lookup_tmpfs_1", "misses_per_second"): [30.0, 20.0, 40.0],
              ("lookup_tmpfs_16", "misses_per_second"): [120.0],
              ("lookup_disk_1", "seconds"): [4.0, 5.0], ("swap_1", "seconds"): [3.0, 6.0],
              ("triad_tmpfs_1", "bytes_per_second"): [4e9], ("triad_tmpfs_16", "bytes_per_second"): [2e9]}

    def test_the_best_bare_row_is_the_bound(self):
        found = bench.derived(self.VALUES, [1, 16])
        self.assertEqual(found["bare_16", "misses_per_second"], (600.0, 600.0, 600.0))
        self.assertEqual(found["lookup_tmpfs_16", "over_bare"], (0.2, 0.2, 0.2))
        self.assertEqual(found["lookup_tmpfs_1", "over_bare"], (30 / 60, 20 / 70, 40 / 50))

    def test_ratios_are_over_one_thread_and_over_swap(self):
        found = bench.derived(self.VALUES, [1, 16])
        self.assertEqual(found["lookup_tmpfs_16", "over_one_thread"][0], 4)
        self.assertNotIn(("lookup_tmpfs_1", "over_one_thread"), found)
        self.assertEqual(found["triad_tmpfs_16", "over_one_thread"][0], 0.5)
        self.assertEqual(found["lookup_disk_1", "over_swap"], (1.0, 3 / 5, 6 / 4))
        self.assertNotIn(("lookup_disk_16", "over_swap"), found)

    def test_rows_of_the_bare_program(self):
        self.assertEqual(bench.bare_rows(1), [(1, 1, 1)])
        self.assertIn((8, 8, 2), bench.bare_rows(16))
        self.assertIn((16, 16, 4), bench.bare_rows(16))

    def test_so_many_look_ups_miss_so_often(self):
        self.assertEqual(bench.steps_for(27, 73), 100)

    def test_a_table_shows_what_was_measured_and_no_more(self):
        results = [bench.report.result("lookup_tmpfs_1", "misses_per_second", 30000, "misses/s", 20000, 40000),
                   bench.report.result("mimalloc_8", "remote_free_ns", 150, "ns")]
        paging, malloc = bench.tables(results, [1, 16], [8])
        self.assertEqual(paging, (["paging", "1 thread", "16 threads"],
                                  [["look-ups, store on tmpfs: misses a second", "30,000 (20,000-40,000)", "-"]]))
        self.assertEqual(malloc[1], [["remote free, ns, mimalloc", "150"]])

    def test_wrong_words_are_told(self):
        for words in (["--only", "nothing"], ["--threads", "0"], ["--level", "100"], ["--size", "2"], ["--rounds", "0"]):
            with self.assertRaises(SystemExit), contextlib.redirect_stderr(io.StringIO()):
                bench.parse(words)


class Waits(unittest.TestCase):
    def test_only_a_mutex_is_a_lock(self):
        self.assertTrue(thread_watch.waits_for_mutex("202 0x7f0872500050 0x80 0x2 0x0 0x0 0x0 0x7f18 0x7f19"))
        self.assertFalse(thread_watch.waits_for_mutex("202 0x7f0872500050 0x89 0x2 0x0 0x0 0x0 0x7f18 0x7f19"))
        self.assertFalse(thread_watch.waits_for_mutex("202 0x7f0872500050 0x80 0x5 0x0 0x0 0x0 0x7f18 0x7f19"))
        self.assertFalse(thread_watch.waits_for_mutex("-1 0x7ffe08730b60 0x5646542f60b8"))
        self.assertFalse(thread_watch.waits_for_mutex("running"))

    def test_what_a_miss_costs(self):
        watch = thread_watch.ThreadWatch()
        watch.looks, watch.seconds = 10, 2.0
        watch.threads = {"program": thread_watch.Thread((0, 0, 0), (4_000_000, 1_000_000, 500), faulted=True),
                         "handler": thread_watch.Thread((0, 0, 10), (6_000_000, 0, 110), locked_out=5),
                         "evictor": thread_watch.Thread((0, 0, 0), (1_000_000_000, 0, 0)),
                         "came before": thread_watch.Thread(None, (7, 7, 7))}
        watch.events = {"futex_calls_per_miss": 3000.0}
        found = watch.figures(1000, 2.0)
        self.assertAlmostEqual(found["program_cpu_us_per_miss"], 4)
        self.assertAlmostEqual(found["runtime_cpu_us_per_miss"], 1006)
        self.assertAlmostEqual(found["wait_for_processor_us_per_miss"], 1)
        self.assertAlmostEqual(found["switches_per_miss"], 0.6)
        self.assertAlmostEqual(found["busiest_runtime_thread"], 0.5)
        self.assertAlmostEqual(found["wait_for_locks_us_per_miss"], 1000)
        self.assertAlmostEqual(found["futex_calls_per_miss"], 6)
        self.assertEqual(watch.figures(0, 2.0), {})

    def test_what_perf_cannot_count_is_left_out(self):
        text = "# started\n<not supported>,,instructions,0,100.00,,\n12,,syscalls:sys_enter_futex,567897,100.00,,\n"
        self.assertEqual(thread_watch.parse_events(text), {"futex_calls_per_miss": 12})

    def test_a_run_is_watched_from_its_preparation_on(self):
        with tempfile.TemporaryDirectory() as folder:
            script = (f"import os, sys, time; print('x: prepared after 0.1 s', file=sys.stderr, flush=True)\n"
                      f"while not os.path.exists('{folder}/seen'): time.sleep(0.001)\nprint('done')")

            class Watch(thread_watch.ThreadWatch):
                def look(self, process, counts):
                    super().look(process, counts)
                    if self.looks == 4:
                        pathlib.Path(folder, "seen").touch()

            watch = Watch()
            run, _ = thread_watch.watched_run([sys.executable, "-c", script], watch, timeout=60)
        self.assertEqual((run.status, run.stdout, run.timed_out), (0, b"done\n", False))
        self.assertIn("switches_per_miss", watch.figures(1, 1.0))

    def test_a_run_that_does_not_end_is_given_up(self):
        run, _ = thread_watch.watched_run([sys.executable, "-c", "while True: pass"], thread_watch.ThreadWatch(), timeout=0.3)
        self.assertTrue(run.timed_out)


if __name__ == "__main__":
    unittest.main(verbosity=2)
