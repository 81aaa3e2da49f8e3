#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""farheap store ls, copy, rm and bench: what they do, what they refuse, and what they say."""

import argparse
import contextlib
import json
import os
import pathlib
import pty
import subprocess
import sys
import tempfile
import unittest
from xml.etree import ElementTree

TOOL = MAKER = ""


def tool(*words):
    environment = {key: value for key, value in os.environ.items() if not key.startswith("FARHEAP_")}
    return subprocess.run([TOOL, "store", *words], capture_output=True, text=True, env=environment, check=False,
                          stdin=subprocess.DEVNULL, timeout=60)


def maker(*words):
    return subprocess.run([MAKER, *map(str, words)], check=False, timeout=60).returncode


@contextlib.contextmanager
def open_heap(uri):
    """A heap that a program has open meanwhile."""
    with subprocess.Popen([MAKER, "hold", uri], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
        assert program.stdout.readline() == b"open\n"
        try:
            yield
        finally:
            program.stdin.close()
            program.wait(60)


class KeptStores(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = pathlib.Path(self.folder.name)

    def uri(self, engine, name):
        return f"{engine}:{self.root / name}"

    def test_ls_shows_what_there_is(self):
        self.assertEqual(maker("fill", self.uri("file", "a"), 4096), 0)
        self.assertEqual(maker("fill", self.uri("file", "b"), 512), 0)
        done = tool("ls", f"file:{self.root}")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(self.uri("file", "a"), done.stdout)
        self.assertIn("kept", done.stdout)
        listed = json.loads(tool("ls", f"file:{self.root}", "--json").stdout)
        self.assertEqual(listed["format"], 1)
        self.assertEqual([(row["uri"], row["block_bytes"]) for row in listed["stores"]],
                         [(self.uri("file", "a"), 4096), (self.uri("file", "b"), 512)])
        nothing = tool("ls", f"lmdb:{self.root}")
        self.assertEqual((nothing.returncode, nothing.stdout), (0, ""))
        self.assertIn("no store in", nothing.stderr)
        self.assertEqual(tool("ls", "mem:").returncode, 2)

    def test_copy_to_another_engine_and_back(self):
        for bytes_of_a_block in (4096, 512):
            names = [f"{name}{bytes_of_a_block}" for name in "abc"]
            a, b, c = self.uri("file", names[0]), self.uri("lmdb", names[1]), self.uri("checksum+file", names[2])
            self.assertEqual(maker("fill", a, bytes_of_a_block), 0)
            done = tool("copy", a, b, "--json")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(json.loads(done.stdout), {"format": 1, "from": a, "to": b, "blocks": 6,
                                                       "bytes": 6 * bytes_of_a_block, "counters": 1})
            self.assertEqual(tool("copy", b, c).returncode, 0)
            self.assertEqual(maker("look", c, bytes_of_a_block), 0)

    def test_copy_of_a_heap_is_a_heap(self):
        with open_heap(self.uri("file", "heap")):
            busy = tool("copy", self.uri("file", "heap"), self.uri("lmdb", "copy"))
        self.assertEqual(busy.returncode, 1)
        self.assertIn("open", busy.stderr)
        self.assertIn("farheap heap copy", busy.stderr)
        self.assertEqual(tool("copy", self.uri("file", "heap"), self.uri("lmdb", "copy")).returncode, 0)
        self.assertEqual(maker("read", self.uri("lmdb", "copy")), 0)

    def test_copy_refuses_what_it_would_spoil(self):
        a, b = self.uri("file", "a"), self.uri("lmdb", "b")
        missing = tool("copy", a, b)
        self.assertEqual(missing.returncode, 1)
        self.assertIn("there is none", missing.stderr)
        self.assertFalse((self.root / "b").exists())
        self.assertEqual(maker("fill", a, 4096), 0)
        self.assertEqual(maker("fill", b, 4096), 0)
        taken = tool("copy", a, b)
        self.assertEqual(taken.returncode, 1)
        self.assertIn("there is a store already", taken.stderr)
        self.assertEqual(maker("look", b, 4096), 0)
        self.assertEqual(tool("copy", a, "nowhere:").returncode, 2)

    def test_rm_removes_a_store_and_nothing_else(self):
        for engine in ("file", "lmdb", "checksum+file"):
            self.assertEqual(maker("fill", self.uri(engine, "a"), 512), 0)
            done = tool("rm", self.uri(engine, "a"), "--json")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertTrue(json.loads(done.stdout)["removed"])
            self.assertEqual(list(self.root.iterdir()), [])
            self.assertEqual(tool("rm", self.uri(engine, "a")).returncode, 1)
        letter = self.root / "letter"
        letter.write_text("Dear Ada", encoding="utf-8")
        for engine in ("file", "lmdb"):
            self.assertNotEqual(tool("rm", self.uri(engine, "letter"), "--yes").returncode, 0)
        self.assertEqual([path.name for path in self.root.iterdir()], ["letter"])
        self.assertEqual(letter.read_text(encoding="utf-8"), "Dear Ada")

    def test_rm_refuses_a_heap_that_is_open(self):
        for engine in ("file", "lmdb"):
            uri = self.uri(engine, f"heap-{engine}")
            with open_heap(uri):
                busy = tool("rm", uri, "--yes")
                self.assertEqual(busy.returncode, 1)
                self.assertIn("open for writing by", busy.stderr)
            self.assertEqual(maker("read", uri), 0)
            self.assertEqual(tool("rm", uri, "--yes").returncode, 0)
        self.assertEqual(list(self.root.iterdir()), [])

    def test_rm_asks_on_a_terminal(self):
        uri = self.uri("file", "a")
        self.assertEqual(maker("fill", uri, 4096), 0)
        for answer, words, status, there in ((b"n\n", (), 1, True), (b"\n", (), 1, True), (b"y\n", (), 0, False)):
            ours, theirs = pty.openpty()
            os.write(ours, answer)
            done = subprocess.run([TOOL, "store", "rm", uri, *words], stdin=theirs, stderr=theirs, check=False,
                                  timeout=60)
            asked = os.read(ours, 4096).decode()
            os.close(ours)
            os.close(theirs)
            self.assertEqual(done.returncode, status, asked)
            self.assertIn("[y/N]", asked)
            self.assertEqual((self.root / "a").exists(), there)


class Bench(unittest.TestCase):
    def test_ycsb_is_in_the_figures_and_in_the_picture(self):
        with tempfile.TemporaryDirectory() as folder:
            picture = pathlib.Path(folder, "mem.svg")
            done = tool("bench", "mem:", "--json", "--plot", str(picture))
            self.assertEqual(done.returncode, 0, done.stderr)
            units = {}
            for row in json.loads(done.stdout)["results"]:
                self.assertLessEqual(row["min"], row["median"], row)
                self.assertLessEqual(row["median"], row["max"], row)
                units.setdefault(row["name"], row["unit"])
            for name, unit in (("YCSB load", "op/s"), ("YCSB load, insert", "us"), ("YCSB a", "op/s"),
                               ("YCSB a, read", "us"), ("YCSB a, write", "us"), ("YCSB f, read-modify-write", "us")):
                self.assertEqual(units.get(name), unit)
            words = [element.text for element in ElementTree.parse(picture).iter() if element.text]
            self.assertIn("YCSB on mem:", words)
            self.assertIn("read-modify-write", words)
            self.assertEqual(list(pathlib.Path(folder).iterdir()), [picture])

    def test_a_picture_that_cannot_be_written(self):
        done = tool("bench", "mem:", "--plot", "/nowhere/at/all.svg")
        self.assertEqual(done.returncode, 1)
        self.assertIn("/nowhere/at/all.svg", done.stderr)


def main():
    global TOOL, MAKER
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--tool", required=True)
    parser.add_argument("--maker", required=True)
    known, rest = parser.parse_known_args()
    TOOL, MAKER = known.tool, known.maker
    unittest.main(argv=[sys.argv[0], *rest], verbosity=2)


if __name__ == "__main__":
    main()
