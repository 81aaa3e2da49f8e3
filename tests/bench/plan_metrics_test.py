#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What bench/plan/run.py makes of its measurements."""
import importlib.util
import os
import sys
import unittest

BENCH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench")
sys.path[:0] = [os.path.join(BENCH, "common"), os.path.join(BENCH, "paging")]
# pylint: disable=wrong-import-position
import disk
import measurements

SPEC = importlib.util.spec_from_file_location("plan_run", os.path.join(BENCH, "plan", "run.py"))
PLAN = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(PLAN)

MIB = 1 << 20
SPEEDS = {disk.SINGLE_READ: 40.0, disk.READS: 1000.0, disk.WRITES: 2000.0}
OPTIMUM = {"bytes_read": 1_000_000_000, "bytes_written": 500_000_000}


def measured(ways):
    found = measurements.Measurements({"disk": SPEEDS}, "a machine", bench="plan")
    found.programs["sweep"] = {"class": "sweeping", "peak_bytes": 100 * MIB, "beside_bytes": 0, "checksum": "1"}
    found.optima["sweep", 70] = OPTIMUM
    for way, seconds in ways.items():
        for turn, took in enumerate(seconds):
            record = measurements.Record("sweep", 70, way, turn, took, measurements.WELL)
            record.bytes_read, record.bytes_written = 2_000_000_000, 500_000_000
            found.add(record)
    return found


class Plan(unittest.TestCase):
    def test_the_ceiling_is_what_takes_longest(self):
        self.assertAlmostEqual(PLAN.ceiling(OPTIMUM, 0.5, SPEEDS), 1.25)  # the bytes: 1 s of reading, 0.25 s of writing
        self.assertAlmostEqual(PLAN.ceiling(OPTIMUM, 3.0, SPEEDS), 3.0)

    def test_a_row_compares_medians_and_bytes(self):
        line = PLAN.row(measured({"plain": [1, 1, 1], "swap": [20, 16, 90], "farheap": [4, 4, 5], "oracle": [3, 2, 1]}),
                        "sweep", 70, SPEEDS)
        self.assertEqual(line[5], "10.0x")  # over swap
        self.assertEqual(line[6], "2.00x")  # over farheap
        self.assertEqual(line[7], "1.25 s")
        self.assertIn("(2.00x)", line[10])  # read by who knows the future, of the optimum's
        self.assertIn("(1.00x)", line[11])

    def test_what_was_not_measured_is_no_number(self):
        line = PLAN.row(measured({"plain": [1], "farheap": [4], "oracle": [2]}), "sweep", 70, SPEEDS)
        self.assertEqual((line[2], line[5]), ("-", "-"))


if __name__ == "__main__":
    unittest.main()
