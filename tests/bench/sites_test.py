#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The library that names sites, before a program: its ways count the same calls.  sites_test.py LIBRARY"""
import json
import os
import subprocess
import sys
import tempfile
import unittest

LIBRARY = sys.argv.pop(1) if len(sys.argv) > 1 else sys.exit(__doc__)
COMMAND = ["sqlite3", ":memory:",
           "with recursive c(x) as (select 1 union all select x + 1 from c where x < 3000)"
           "select count(distinct hex(x)) from c;"]


def counted(way):
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(COMMAND, capture_output=True, check=True, text=True, timeout=120, env={
            **os.environ, "LD_PRELOAD": LIBRARY, "SITES_WAY": way, "SITES_FOLDER": folder})
        assert done.stdout == "3000\n", done
        (name,) = os.listdir(folder)
        with open(os.path.join(folder, name), encoding="utf-8") as line:
            return json.load(line)


class Sites(unittest.TestCase):
    def test_all_ways_see_the_same_allocations(self):
        plain = counted("plain")
        self.assertGreater(plain["allocations"], 3000)
        for way in ("name", "again_4", "again_64", "unwind_4", "unwind_64", "check"):
            found = counted(way)
            self.assertEqual(found["allocations"], plain["allocations"], way)
            self.assertEqual(found["bytes"], plain["bytes"], way)
            self.assertEqual(found["without_room"], 0, way)

    def test_names_tell_less_the_less_they_look_at(self):
        found = counted("check")
        self.assertLess(found["addresses"], found["names"])
        self.assertLess(found["names"], found["stacks"])
        self.assertLess(found["near"], found["stacks"])
        self.assertEqual(found["again"], found["stacks"])
        self.assertEqual(found["again_near"], found["near"])
        self.assertEqual(counted("unwind_64")["new_names"], found["stacks"])

    # Return address and depth alone take stacks for each other; a known stack that is looked at again is the same one.
    def test_a_stack_that_is_looked_at_again_is_the_same(self):
        found = counted("check")
        self.assertGreater(found["name_other_stack"], 0)
        self.assertEqual(found["again_other_stack"], 0)
        self.assertEqual(found["again_near_other_near"], 0)


if __name__ == "__main__":
    unittest.main()
