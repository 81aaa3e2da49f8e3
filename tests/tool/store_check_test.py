#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""farheap store check: what it says, its exit statuses, and that it leaves nothing behind, whatever ends it."""

import argparse
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

TOOL = ""


def check(*words):
    return subprocess.run([TOOL, "store", "check", *words], capture_output=True, text=True, check=False, timeout=300)


def children_of(pid):
    return [int(child) for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def wait_until(condition, what):
    for _ in range(600):
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError(f"never came: {what}")


class StoreCheck(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def what_is_left(self):
        return os.listdir(self.folder.name)

    def test_help_begins_with_an_example(self):
        self.assertTrue(check("--help").stdout.startswith("Examples:\n  farheap store check redis://"))

    def test_a_line_for_each_check_and_a_sum(self):
        done = check("mem:", "--block", "4K")
        self.assertEqual(done.returncode, 0, done.stdout)
        lines = done.stdout.splitlines()
        self.assertIn("not for this store", lines[0], "mem: cannot be kept, and that is said")
        self.assertTrue(any("holds" in line and "put-get" in line for line in lines))
        self.assertIn(" 0 broken", lines[-1])

    def test_json_says_the_same(self):
        done = check("mem:", "--block", "512", "--only", "counters", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        whole = json.loads(done.stdout)
        self.assertEqual(whole["format"], 1)
        self.assertEqual([(row["check"], row["verdict"], row["block_bytes"]) for row in whole["checks"]],
                         [("opens", "not_for_this_store", 512), ("counters", "holds", 512)])

    def test_kept_stores_of_a_folder_are_checked_and_removed(self):
        done = check("lmdb:" + self.folder.name + "?sync=asked", "--block", "4K", "--only", "killed-owner")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("kept", done.stdout)
        self.assertEqual(self.what_is_left(), [])

    def test_a_store_that_breaks_its_promises_is_1_in_words(self):
        done = check("faulty+mem:?lost=0.3", "--block", "4K")
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("BROKEN", done.stdout)
        self.assertIn("not what was put", done.stdout)

    def test_what_is_no_store_is_2(self):
        for words in (("nowhere:",), ("mem:here",), ("mem:", "--only", "nothing-like-it"), ("mem:", "--block", "5000"),
                      ("mem:", "--block", "many")):
            done = check(*words)
            self.assertEqual((done.returncode, done.stdout.count("holds")), (2, 0), (words, done.stdout, done.stderr))
            self.assertIn("farheap: ", done.stderr)
        self.assertEqual(check("file:/no/such/folder/x").returncode, 1)

    def start(self):
        """One that takes long, in its first check that has a folder of its own."""
        process = subprocess.Popen([TOOL, "store", "check", f"slow+file:{self.folder.name}?delay_us=2000"],
                                   stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        wait_until(self.what_is_left, "a store in the folder")
        return process

    def test_broken_off_by_a_signal_it_leaves_nothing(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            process = self.start()
            process.send_signal(number)
            self.assertEqual(process.wait(timeout=60), -number)
            self.assertEqual(self.what_is_left(), [])

    def test_a_server_that_does_not_answer_is_one_sentence(self):
        done = check("redis://127.0.0.1:1/7?patience_s=0")
        self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertIn("see that the server runs there", done.stderr)

    def test_a_check_that_ends_its_process_is_broken_and_the_others_go_on(self):
        process = self.start()
        wait_until(lambda: children_of(process.pid), "a child that works")
        os.kill(children_of(process.pid)[0], signal.SIGKILL)
        lines = iter(process.stdout.readline, "")
        self.assertTrue(any("the process that ran it ended" in line for line in lines))
        self.assertIn("holds", next(line for line in lines if "holds" in line))
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=60), -signal.SIGINT)
        self.assertEqual(self.what_is_left(), [])


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", required=True)
    options, rest = parser.parse_known_args()
    TOOL = options.tool
    unittest.main(argv=[sys.argv[0], *rest])
