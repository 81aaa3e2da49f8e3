#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The examples do what they say, run after run.

  heap_examples_test.py FOLDER      where they are built
"""

import os
import subprocess
import sys
import tempfile
import unittest

FOLDER = sys.argv[1]
SOURCES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples", "heap")


class HeapExamplesTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def run_example(self, name, *words):
        done = subprocess.run([os.path.join(FOLDER, name), f"file:{self.folder.name}/heap", *words], capture_output=True,
                              text=True, timeout=100, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def test_a_graph_stays(self):
        self.assertEqual(self.run_example("graph", "1", "2", "1", "3"), "1 -> 2 3\n")
        self.assertEqual(self.run_example("graph", "2", "3"), "1 -> 2 3\n2 -> 3\n")
        self.assertEqual(self.run_example("graph"), "1 -> 2 3\n2 -> 3\n")

    def test_containers_with_a_memory_resource_go_on(self):
        long = "one that is too long to be inside of the string object"
        self.assertEqual(self.run_example("pmr", long), f"{long}\n")
        self.assertEqual(self.run_example("pmr", long * 2), f"{long}\n{long * 2}\n")

    def test_people_of_a_class_with_text_in_it_stay(self):
        tag = "a tag that is too long to be inside of the string object"
        self.assertEqual(self.run_example("people", "Bob", "7"), "Bob, 7\n")
        self.assertEqual(self.run_example("people", "Ada", "36", tag, "x"), f"Ada, 36, {tag}, x\nBob, 7\n")
        self.assertEqual(self.run_example("people"), f"Ada, 36, {tag}, x\nBob, 7\n")

    def test_notes_in_c_are_kept_and_gone_back_to(self):
        self.assertEqual(self.run_example("notes", "add", "buy milk"), "buy milk\n")
        self.assertEqual(self.run_example("notes", "keep", "monday"), "buy milk\n")
        self.assertEqual(self.run_example("notes", "add", "sell milk"), "sell milk\nbuy milk\n")
        self.assertEqual(self.run_example("notes", "back"), "buy milk\n")

    def test_a_matrix_of_a_translated_program_is_far(self):
        done = subprocess.run([os.path.join(FOLDER, "far_matrix"), "mem:"], capture_output=True, text=True, timeout=100,
                              check=False)
        letters = [chr(ord("a") + i % 26) for i in range(100)]
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout, "".join("".join(letters[row * 10:row * 10 + 10]) + "\n" for row in range(10)))

    def test_a_version_is_read_beside_and_returned_to(self):
        self.assertEqual(self.run_example("snapshots").splitlines(), [
            "on monday it was 1, now it is 2", "commit 3: monday", "commit 4: the newest", "rolled back to 1"])

    def test_readers_see_whole_versions(self):
        self.assertEqual(self.run_example("shared_readers"), "3 readers saw whole versions only\n")

    def test_a_pause_keeps_together_what_belongs_together(self):
        self.assertEqual(self.run_example("threads_pause"), "8 versions, each of 1000000\n")

    def test_wrong_words_get_a_line_that_says_how(self):
        for name in ("graph", "notes", "people", "pmr", "shared_readers", "snapshots", "threads_pause", "visits", "words"):
            done = subprocess.run([os.path.join(FOLDER, name)], capture_output=True, text=True, timeout=60, check=False)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertTrue(done.stderr.startswith(f"usage: {name} HEAP"), done.stderr)

    def test_they_are_short(self):
        for name in os.listdir(SOURCES):
            with open(os.path.join(SOURCES, name), encoding="utf-8") as file:
                self.assertLess(len(file.readlines()), 60, name)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
