#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""farheap store ls, copy, rm and bench: what they do, what they refuse, and what they say."""

import argparse
import contextlib
import json
import os
import pathlib
import pty
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from xml.etree import ElementTree

TOOL = MAKER = STORE = ""


def environment():
    return {key: value for key, value in os.environ.items() if not key.startswith("FARHEAP_")}


def farheap(*words):
    return subprocess.run([TOOL, *words], capture_output=True, text=True, env=environment(), check=False,
                          stdin=subprocess.DEVNULL, timeout=60)


def tool(*words):
    return farheap("store", *words)


def on_a_terminal(answer, *words):
    """The exit status, and what was said there."""
    ours, theirs = pty.openpty()
    os.write(ours, answer)
    done = subprocess.run([TOOL, *words], stdin=theirs, stderr=theirs, check=False, timeout=60)
    os.close(theirs)
    said = b""
    with contextlib.suppress(OSError):  # the end: all others have closed it. The echo of the answer comes by itself
        while piece := os.read(ours, 4096):
            said += piece
    os.close(ours)
    return done.returncode, said.decode()


def wait_until(condition, what):
    for _ in range(1200):
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError(f"never came: {what}")


def maker_environment():
    """Where the engines are that have a process of their own: beside the command, not beside the maker."""
    engines = pathlib.Path(TOOL).resolve().parent.parent / "src/engines/farheap-engines"
    return {**os.environ, "FARHEAP_ENGINES": str(engines)}


def maker(*words):
    return subprocess.run([MAKER, *map(str, words)], check=False, env=maker_environment(), timeout=60).returncode


@contextlib.contextmanager
def open_heap(uri):
    """A heap that a program has open meanwhile."""
    with subprocess.Popen([MAKER, "hold", uri], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          env=maker_environment()) as program:
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

    def test_copy_from_an_engine_in_a_process_beside(self):
        if '"rocksdb"' not in tool("kinds", "--json").stdout:
            self.skipTest("NOT TESTED: this build has no rocksdb:")
        a, b, c = self.uri("file", "a"), self.uri("rocksdb", "b"), self.uri("file", "c")
        self.assertEqual(maker("fill", a, 4096), 0)
        self.assertEqual(tool("copy", a, b).returncode, 0)
        back = tool("copy", b, c, "--json")
        self.assertEqual(back.returncode, 0, back.stderr)
        self.assertEqual((json.loads(back.stdout)["blocks"], json.loads(back.stdout)["counters"]), (6, 1))
        self.assertEqual(maker("look", c, 4096), 0)

    def test_copy_of_a_heap_is_a_heap(self):
        with open_heap(self.uri("file", "heap")):
            busy = tool("copy", self.uri("file", "heap"), self.uri("lmdb", "copy"))
        self.assertEqual(busy.returncode, 1)
        self.assertIn("open", busy.stderr)
        self.assertIn("farheap heap copy", busy.stderr)
        self.assertEqual(tool("copy", self.uri("file", "heap"), self.uri("lmdb", "copy")).returncode, 0)
        self.assertEqual(maker("read", self.uri("lmdb", "copy")), 0)

    def test_a_heap_in_two_stores(self):
        # Not every engine takes blocks of numbers as large as those of leases.
        for pages, sync in (("file", "file"), ("lmdb", "file"), ("file", "lmdb")):
            uri = f"pages={self.uri(pages, 'pages')},sync={self.uri(sync, 'sync')}"
            with open_heap(uri):
                self.assertEqual(tool("rm", uri).returncode, 1)
            self.assertEqual(maker("read", uri), 0)
            self.assertEqual(tool("copy", uri, self.uri("file", "copy")).returncode, 0)
            self.assertEqual(maker("read", self.uri("file", "copy")), 0)
            for each in (uri, self.uri("file", "copy")):
                removed = tool("rm", each)
                self.assertEqual((removed.returncode, removed.stderr), (0, f"farheap: removed {each}\n"))

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
            ended, asked = on_a_terminal(answer, "store", "rm", uri, *words)
            self.assertEqual(ended, status, asked)
            self.assertIn("[y/N]", asked)
            self.assertEqual((self.root / "a").exists(), there)

    def test_heap_rm_asks_too(self):
        uri = self.uri("file", "heap")
        with open_heap(uri):
            pass
        for answer, status in ((b"\n", 1), (b"y\n", 0)):
            ended, asked = on_a_terminal(answer, "heap", "rm", uri)
            self.assertEqual(ended, status, asked)
            self.assertIn("[y/N]", asked)
            self.assertEqual(f"removed {uri}" in asked, status == 0, asked)
            self.assertEqual((self.root / "heap").exists(), status != 0)
        with open_heap(uri):
            pass
        self.assertEqual(farheap("heap", "rm", uri, "--yes").returncode, 0)

    def test_an_object_s_name_of_5000_characters_leaves_a_table_a_table(self):
        uri, name = self.uri("file", "heap"), "first" + "x" * 5000 + "last"
        self.assertEqual(maker("keep", uri, name), 0)
        done = farheap("heap", "ls", uri)
        self.assertLess(max(map(len, done.stdout.splitlines())), 140)
        self.assertRegex(done.stdout, r"(?m)^firstx+\.\.\.x+last +1 ")
        for words in (["ls", "--long"], ["ls", "--json"], ["show", name]):
            self.assertIn(name, farheap("heap", words[0], uri, *words[1:]).stdout)

    def test_ls_of_what_is_not_there_fails(self):
        for engine in ("file", "lmdb"):
            done = tool("ls", self.uri(engine, "nowhere/at/all"))
            self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr)
            self.assertIn("No such file or directory", done.stderr)

    def test_copy_to_itself_does_not_advise_to_remove_it(self):
        self.assertEqual(maker("fill", self.uri("file", "a"), 4096), 0)
        for other in (self.uri("file", "a"), self.uri("file", "./a"), self.uri("checksum+file", "a")):
            done = tool("copy", self.uri("file", "a"), other)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("itself", done.stderr)
            self.assertNotIn("rm", done.stderr)
        self.assertEqual(maker("look", self.uri("file", "a"), 4096), 0)

    def test_a_file_of_somebody_else_is_no_wrong_usage(self):
        (self.root / "letter").write_text("Dear Ada", encoding="utf-8")
        for engine in ("file", "lmdb"):
            self.assertEqual(tool("rm", self.uri(engine, "letter")).returncode, 1)

    def test_the_pages_of_two_stores_are_not_taken_alone(self):
        pages, sync = self.uri("file", "pages"), self.uri("file", "sync")
        both = f"pages={pages},sync={sync}"
        with open_heap(both):
            pass
        for words in (("store", "rm", pages), ("store", "rm", pages, "--yes"), ("heap", "rm", pages, "--yes"),
                      ("store", "copy", pages, self.uri("file", "copy")), ("heap", "ls", pages)):
            done = farheap(*words)
            self.assertEqual(done.returncode, 1, (words, done.stdout))
            self.assertIn("it was made as one of two", done.stderr, words)
        self.assertNotEqual(maker("hold", pages), 0)
        self.assertEqual(maker("read", both), 0)
        self.assertEqual(tool("rm", both).returncode, 0)

    def test_one_of_two_stores_is_lost(self):
        pages, sync = self.uri("file", "pages"), self.uri("file", "sync")
        both = f"pages={pages},sync={sync}"
        for lost, part in (("pages", pages), ("sync", sync)):
            with open_heap(both):
                pass
            for file in self.root.glob(f"{lost}*"):
                file.unlink()
            for words in (("heap", "ls", both), ("heap", "copy", both, self.uri("file", "copy")),
                          ("heap", "rm", both), ("store", "copy", both, self.uri("file", "copy"))):
                done = farheap(*words)
                self.assertEqual(done.returncode, 1, (words, done.stdout))
                self.assertIn(f"{lost}={part} is not there", done.stderr, words)
                self.assertIn("farheap store rm", done.stderr, words)
            again = subprocess.run([MAKER, "hold", both], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                   env=maker_environment(), check=False, timeout=60)
            self.assertEqual(again.returncode, 1)
            self.assertIn(f"{lost}={part} is not there", again.stderr)
            removed = tool("rm", both)
            self.assertEqual(removed.returncode, 0, removed.stderr)
            self.assertIn(f"{lost}={part} is not there", removed.stderr)
            self.assertEqual(list(self.root.iterdir()), [])

    def test_a_heap_made_through_checksums_is_not_called_damaged(self):
        with open_heap(self.uri("checksum+file", "heap")):
            pass
        for words in (("check",), ("ls",)):
            done = farheap("heap", *words, self.uri("file", "heap"))
            self.assertEqual(done.returncode, 1)
            self.assertIn("made through checksum+", done.stderr)
            self.assertNotIn("damaged", done.stderr)


class CopyBrokenOff(unittest.TestCase):
    """By a signal or an error, it leaves nothing; by a kill, what is not taken for whole."""

    MARK = b"a copy that is not finished"

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = pathlib.Path(self.folder.name)
        self.target = self.root / "b"

    def uri(self, engine, name):
        return f"{engine}:{self.root / name}"

    def names(self):
        """But for the lock of the source, which stays where it was taken."""
        return sorted(path.name for path in self.root.iterdir() if path.name != "a.lock")

    def is_begun(self, mark):
        return self.target.exists() and mark in self.target.read_bytes()

    @contextlib.contextmanager
    def copying(self, *words, mark):
        """One that has begun to write, and that each of its questions to the source takes long."""
        source = self.uri("slow+file", "a") + "?delay_us=3000000"
        process = subprocess.Popen([TOOL, *words, "copy", source, self.uri("file", "b")], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, text=True, env=environment())
        try:
            wait_until(lambda: self.is_begun(mark), "what was begun")
            yield process
        finally:
            process.kill()
            process.wait()
            process.stderr.close()

    def test_a_store_s_by_a_signal(self):
        self.assertEqual(maker("fill", self.uri("file", "a"), 4096), 0)
        before = self.names()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with self.copying("store", mark=self.MARK) as process:
                process.send_signal(number)
                self.assertEqual(process.wait(timeout=60), -number)
                self.assertIn("broken off", process.stderr.read())
            self.assertEqual(self.names(), before)
        self.assertEqual(maker("look", self.uri("file", "a"), 4096), 0)

    def test_a_heap_s_by_a_signal(self):
        with open_heap(self.uri("file", "a")):
            pass
        before = self.names()
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.copying("heap", mark=b"") as process:
                process.send_signal(number)
                self.assertEqual(process.wait(timeout=60), -number)
                self.assertIn("broken off", process.stderr.read())
            self.assertEqual(self.names(), before)

    def test_an_export(self):
        with open_heap(self.uri("file", "a")):
            pass
        process = subprocess.Popen([TOOL, "heap", "export", self.uri("slow+file", "a") + "?delay_us=3000000",
                                    str(self.root / "out")], stderr=subprocess.PIPE, text=True, env=environment())
        try:
            wait_until(lambda: (self.root / "out.part").exists(), "what was begun")
            process.send_signal(signal.SIGTERM)
            self.assertEqual(process.wait(timeout=60), -signal.SIGTERM)
        finally:
            process.kill()
            process.wait()
            process.stderr.close()
        self.assertFalse((self.root / "out.part").exists() or (self.root / "out").exists())

    def test_a_store_s_by_a_kill(self):
        self.assertEqual(maker("fill", self.uri("file", "a"), 4096), 0)
        with self.copying("store", mark=self.MARK) as process:
            process.kill()
            process.wait()
        for words in (("store", "copy", self.uri("file", "b"), self.uri("file", "c")),
                      ("store", "copy", self.uri("file", "a"), self.uri("file", "b")),
                      ("heap", "ls", self.uri("file", "b"))):
            done = farheap(*words)
            self.assertEqual(done.returncode, 1, words)
            self.assertIn("a copy that was broken off", done.stderr, words)
        self.assertEqual(tool("rm", self.uri("file", "b")).returncode, 0)
        self.assertEqual(tool("copy", self.uri("file", "a"), self.uri("file", "b")).returncode, 0)
        self.assertEqual(maker("look", self.uri("file", "b"), 4096), 0)

    def test_a_heap_s_by_a_kill(self):
        with open_heap(self.uri("file", "a")):
            pass
        with self.copying("heap", mark=b"") as process:
            process.kill()
            process.wait()
        done = farheap("heap", "ls", self.uri("file", "b"))
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertEqual(farheap("heap", "copy", self.uri("file", "a"), self.uri("file", "b")).returncode, 0)
        self.assertEqual(maker("read", self.uri("file", "b")), 0)

    def test_by_an_error_of_either(self):
        self.assertEqual(maker("fill", self.uri("file", "a"), 4096), 0)
        before = self.names()
        for source, target in (("file", "faulty+file"), ("faulty+file", "file")):
            how = "?full_after=8K" if target != "file" else ""
            done = tool("copy", self.uri(source, "a") + ("?error=1" if source != "file" else ""),
                        self.uri(target, "b") + how)
            self.assertEqual(done.returncode, 1, (source, done.stderr))
            self.assertEqual(self.names(), before, done.stderr)

    def test_what_was_there_before_stays(self):
        self.assertEqual(maker("fill", self.uri("file", "a"), 4096), 0)
        self.target.write_text("Dear Ada", encoding="utf-8")
        self.assertNotEqual(tool("copy", self.uri("faulty+file", "a") + "?error=1", self.uri("file", "b")).returncode, 0)
        self.assertEqual(self.target.read_text(encoding="utf-8"), "Dear Ada")


class OnAServer(unittest.TestCase):
    """Run by with_server: STORE is a namespace there that is not there yet."""

    def setUp(self):
        if not STORE:
            self.skipTest("NO SERVER: with_server starts one and gives --store")
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def file(self, name):
        return f"file:{self.folder.name}/{name}"

    def test_copy_there_and_back_ls_and_rm(self):
        self.assertEqual(maker("fill", self.file("a"), 4096), 0)
        self.assertEqual(tool("rm", STORE).returncode, 1)
        there = tool("copy", self.file("a"), STORE, "--json")
        self.assertEqual(there.returncode, 0, there.stderr)
        self.assertEqual(json.loads(there.stdout)["blocks"], 6)
        self.assertEqual(maker("look", STORE, 4096), 0)
        self.assertEqual(tool("copy", self.file("a"), STORE).returncode, 1)  # there is one already
        listed = json.loads(tool("ls", STORE.rpartition("/")[0], "--json").stdout)["stores"]
        self.assertEqual([(row["block_bytes"], row["lifetime"]) for row in listed if row["uri"] == STORE],
                         [(4096, "kept")], listed)
        back = tool("copy", STORE, self.file("b"))
        self.assertEqual(back.returncode, 0, back.stderr)
        self.assertEqual(maker("look", self.file("b"), 4096), 0)
        removed = tool("rm", STORE)
        self.assertEqual(removed.returncode, 0, removed.stderr)
        listed = json.loads(tool("ls", STORE.rpartition("/")[0], "--json").stdout)["stores"]
        self.assertEqual([row for row in listed if row["uri"] == STORE], [])

    def test_heaps_that_are_open(self):
        with open_heap(STORE):
            for words in (("rm", STORE, "--yes"), ("copy", STORE, self.file("b"))):
                busy = tool(*words)
                self.assertEqual(busy.returncode, 1, words)
                self.assertIn("open", busy.stderr)
        self.assertEqual(maker("read", STORE), 0)
        self.assertEqual(tool("copy", STORE, self.file("b")).returncode, 0)
        self.assertEqual(maker("read", self.file("b")), 0)
        removed = tool("rm", STORE, "--yes")
        self.assertEqual(removed.returncode, 0, removed.stderr)
        self.assertNotEqual(maker("read", STORE), 0)

    def test_pages_there_and_what_must_agree_in_a_file(self):
        both = f"pages={STORE},sync={self.file('sync')}"
        self.assertEqual(maker("fill", both, 4096), 0)
        self.assertEqual(maker("look", both, 4096), 0)
        self.assertEqual(tool("rm", both).returncode, 0)
        self.assertEqual(maker("fill", both, 4096), 0)  # nothing was left
        self.assertEqual(tool("rm", both).returncode, 0)


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

    def test_too_few_files_for_rocksdb_has_a_remedy(self):
        if "rocksdb" not in {kind["scheme"] for kind in json.loads(tool("kinds", "--json").stdout)["kinds"]}:
            self.skipTest("NO rocksdb IN THIS BUILD")
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(["sh", "-c", 'ulimit -n 24; exec "$0" store bench "rocksdb:$1"', TOOL, folder],
                                  capture_output=True, text=True, check=False, timeout=60, env=maker_environment())
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("ulimit -n 4096", done.stderr)

    def test_a_picture_that_cannot_be_written(self):
        done = tool("bench", "mem:", "--plot", "/nowhere/at/all.svg")
        self.assertEqual(done.returncode, 1)
        self.assertIn("/nowhere/at/all.svg", done.stderr)
        # Before anything is measured: this server would be looked for first.
        done = tool("bench", "redis://127.0.0.1:1/7?patience_s=0", "--plot", "/nowhere/at/all.svg")
        self.assertIn("/nowhere/at/all.svg", done.stderr)


def main():
    global TOOL, MAKER, STORE
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--tool", required=True)
    parser.add_argument("--maker", required=True)
    parser.add_argument("--store", default="")
    known, rest = parser.parse_known_args()
    TOOL, MAKER, STORE = known.tool, known.maker, known.store
    unittest.main(argv=[sys.argv[0], *rest], verbosity=2)


if __name__ == "__main__":
    main()
