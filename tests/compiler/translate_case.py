# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the tests of translated programs have in common: how a program is compiled in both ways, and where it is run.

  translate_test.py --farcc FILE --clang FILE --lmdb ON|OFF [--tool FILE] [--store URI] [Class[.test]]...
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

GIVEN = argparse.Namespace()
PROGRAMS = pathlib.Path(__file__).resolve().parent / "translated"
LEVEL = "-ffar=translate-heap"
FAILED = 74  # the runtime's status where the store fails


class Case(unittest.TestCase):
    patience = 120  # seconds, after which a program hangs

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="farcc-translate-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return path

    def start(self, *words, before=None, **environment):
        """`before` is called in the new process."""
        everything = {**os.environ, "FARCC_CLANG": str(GIVEN.clang), **environment}
        for key in ("FARCC_LEVEL", "FARCC_REPORT", "FARCC_LAUNCHER", "FARHEAP_FAR_STORE", "FARHEAP_FAR_MODE",
                    "FARHEAP_FAR_CACHE"):
            if key not in environment:
                everything.pop(key, None)
        return subprocess.run([str(word) for word in words], cwd=self.folder, env=everything, check=False, text=True,
                              preexec_fn=before,
                              input="", stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=self.patience)

    def run_well(self, *words, **environment):
        done = self.start(*words, **environment)
        self.assertEqual(done.returncode, 0, f"{words}\n{done.stdout}{done.stderr}")
        return done

    def farcc(self, *words):
        cxx = any(str(word).endswith(".cpp") for word in words)
        return self.run_well(GIVEN.farcc.parent / ("far++" if cxx else "farcc"), *words)

    def clang(self, *words):
        cxx = any(str(word).endswith(".cpp") for word in words)
        return self.run_well(GIVEN.clang, *(["--driver-mode=g++"] if cxx else []), "-w", *words)

    def translated(self, text, *options, name="program"):
        """Compiles a C program of this text."""
        self.write(f"{name}.c", text)
        self.farcc("-O1", "-w", LEVEL, f"{name}.c", *options, "-o", name)
        return self.folder / name

    def stores(self):
        if GIVEN.store:
            yield GIVEN.store
            return
        yield "mem:"
        (self.folder / "blocks").mkdir(exist_ok=True)
        yield f"file:{self.folder}/blocks"
        if GIVEN.lmdb == "ON":
            (self.folder / "lmdb").mkdir(exist_ok=True)
            yield f"lmdb:{self.folder}/lmdb"

    def modes(self):
        """Of programs that end sooner than their heap is paged, cached is tried on one store."""
        yield from ((store, "direct") for store in self.stores())
        yield next(self.stores()), "cached"


def main(words):
    """`words`: what the tests are about."""
    parser = argparse.ArgumentParser(description=words)
    for name in ("farcc", "clang"):
        parser.add_argument(f"--{name}", required=True, type=pathlib.Path)
    parser.add_argument("--lmdb", required=True, choices=("ON", "OFF"))
    parser.add_argument("--tool", type=pathlib.Path)
    parser.add_argument("--store")
    _, rest = parser.parse_known_args(namespace=GIVEN)
    GIVEN.farcc = GIVEN.farcc.absolute()
    GIVEN.tool = GIVEN.tool and GIVEN.tool.absolute()
    unittest.main(argv=[sys.argv[0], *rest])
