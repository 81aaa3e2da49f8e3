# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What tests of farcc as a compiler share: a program that is hinted, the words for running farcc, and their options."""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

GIVEN = argparse.Namespace()

# Fills and sums 3,000,000 bytes, and then 1000: two loops that are hinted, the second time without a call.
PROGRAM = """
#include <stdio.h>
#include <stdlib.h>
__attribute__((noinline)) void fill(char *p, long n) { for (long i = 0; i < n; i++) p[i] = i * 7; }
__attribute__((noinline)) long sum(char *p, long n) { long s = 0; for (long i = 0; i < n; i++) s += p[i]; return s; }
int main(void) {
  char *p = malloc(3000000);
  fill(p, 3000000);
  long s = sum(p, 3000000);
  fill(p, 1000);
  printf("%ld %ld\\n", s, sum(p, 1000));
  free(p);
  return 0;
}
"""
OUTPUT = "-1499808 52\n"

# Stands for the runtime: says what it is told.
HOOK = """
#include <stddef.h>
#include <stdio.h>
void __farheap_loop(const void *begin, size_t bytes, ptrdiff_t stride, unsigned flags) {
  (void)begin, (void)stride;
  fprintf(stderr, "told %zu %u\\n", bytes, flags);
}
"""
TOLD = "told 3000000 2\ntold 3000000 1\n"


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="farcc-test-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.write("program.c", PROGRAM)
        self.farcc = str(GIVEN.farcc)
        self.farxx = str(GIVEN.farcc.parent / "far++")

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return path

    def start(self, *words, **environment):
        # All tests are about the clang that was given, unless they say otherwise.
        environment = {"FARCC_CLANG": str(GIVEN.clang), **environment}
        everything = {key: value for key, value in {**os.environ, **environment}.items() if value is not None}
        for key in ("FARCC_LEVEL", "FARCC_REPORT", "FARCC_LAUNCHER", "FARCC_COUNTS", "FARCC_PROFILE",
                    "FARCC_CONTEXTS_MEMORY"):
            if key not in environment:
                everything.pop(key, None)
        return subprocess.run([str(word) for word in words], cwd=self.folder, env=everything, check=False, text=True,
                              input="", stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def run_well(self, *words, **environment):
        done = self.start(*words, **environment)
        self.assertEqual(done.returncode, 0, f"{words}\n{done.stdout}{done.stderr}")
        return done

    def compile(self, *words, **environment):
        """Without a warning, too."""
        done = self.run_well(self.farcc, *words, **environment)
        self.assertEqual(done.stderr, "", words)
        return done.stdout

    def fails(self, *words, status=1, **environment):
        done = self.start(*words, **environment)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stderr

    def hook(self):
        library = self.folder / "hook.so"
        if not library.exists():
            self.write("hook.c", HOOK)
            self.run_well(GIVEN.cc, "-shared", "-fPIC", "hook.c", "-o", library)
        return library

    def check_program(self, program, told=TOLD):
        """Runs as it should without the runtime, and says what it should with one."""
        program = self.folder / program
        self.assertEqual(self.run_well(program).stdout, OUTPUT)
        heard = self.run_well(program, LD_PRELOAD=str(self.hook()))
        self.assertEqual(heard.stdout, OUTPUT)
        self.assertEqual(heard.stderr, told)


def main(about):
    parser = argparse.ArgumentParser(description=about)
    for name in ("farcc", "clang", "cc"):
        parser.add_argument(f"--{name}", required=True, type=pathlib.Path)
    parser.add_argument("--major", required=True)
    parser.add_argument("--tool", type=pathlib.Path)  # farheap, where it is asked for
    _, rest = parser.parse_known_args(namespace=GIVEN)
    GIVEN.farcc = GIVEN.farcc.absolute()
    unittest.main(argv=[sys.argv[0], *rest])
