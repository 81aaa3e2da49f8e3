#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""libstdc++'s containers and OpenMP, compiled by farcc at every level: the output of plain clang, with enough memory and
with a quarter of what the program needs. Small programs in little memory.

  more_than_memory_test.py --farcc FILE --clang FILE --lmdb ON|OFF --tool FILE [Class[.test]]...
"""

import functools
import os
import pathlib
import re
import subprocess

from translate_case import GIVEN, LEVEL, PROGRAMS, Case, main

SOURCES = PROGRAMS.parent / "more_than_memory"
MIB = 1 << 20
LEAST = 32 * MIB  # of farheap run
ADVISED = ("hint", "guard")
EVERYWHERE = "translate-all"
SIGSEGV = -11


class MoreThanMemory(Case):
    patience = 600

    def compile(self, level, source, name, *options, folder=SOURCES):
        words = [folder / source, *options, "-o", name]
        if level is None:
            self.clang(*words)
        else:
            self.farcc(f"-ffar={level}", *words)
        return self.folder / name

    def peak_of(self, *words):
        """(output, bytes) of a plain process."""
        with open(self.folder / "said", "wb") as out:
            process = subprocess.Popen([str(word) for word in words], cwd=self.folder, stdin=subprocess.DEVNULL, stdout=out)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        self.assertEqual(process.returncode, 0, words)
        return (self.folder / "said").read_text(encoding="utf-8"), usage.ru_maxrss * 1024

    def check_run(self, budget, expected, *words, **environment):
        """Under farheap run, with pages that leave."""
        done = self.run_well(GIVEN.tool, "run", "--memory", budget, "--store", f"file:{self.folder}", "--stats=json", "--",
                             *words, **environment)
        self.assertEqual(done.stdout, expected)
        written = re.search(r'"bytes_written":\s*(\d+)', done.stderr)
        self.assertTrue(written and int(written.group(1)) > 0, f"nothing left memory: {done.stderr}")

    def check_cached(self, budget, expected, *words, **environment):
        """By itself."""
        done = self.run_well(*words, FARHEAP_FAR_MODE="cached", FARHEAP_FAR_CACHE=str(budget),
                             FARHEAP_FAR_STORE=f"file:{self.folder}", FARHEAP_LOG="info", **environment)
        self.assertEqual(done.stdout, expected)
        self.assertRegex(done.stderr, r"^farheap: process \d+ is near its budget: pages go to .*\n$")

    def check(self, source, levels, small, large, *options):
        """Arguments: `small` for what is all in memory, `large` for what is not."""
        plain = self.compile(None, source, "plain", *options)
        little = self.run_well(plain, *small).stdout
        expected, peak = self.peak_of(plain, *large)
        budget = peak // 4
        self.assertGreaterEqual(budget, LEAST, "too small to be a test")
        for level in levels:
            program = self.compile(level, source, f"with-{level}", *options)
            with self.subTest(source=source, level=level):
                if level in ADVISED:
                    self.assertEqual(self.run_well(program, *small).stdout, little)
                    self.check_run(budget, expected, program, *large)
                    continue
                done = self.run_well(program, *small, FARHEAP_FAR_MODE="cached", FARHEAP_FAR_CACHE=str(2 * peak))
                self.assertEqual((done.stdout, done.stderr), (little, ""))
                self.check_cached(budget, expected, program, *large)
                if level == "translate-heap":
                    self.check_run(budget, expected, program, *large)


class SmallPrograms(MoreThanMemory):
    """They need less than a run may have: in 32 MiB, beside restless.c, which makes their own pages leave."""

    def check_beside_much_else(self, *sources):
        restless = self.folder / "restless.so"
        self.clang("-O1", "-shared", "-fPIC", "-pthread", PROGRAMS.parent / "restless.c", "-o", restless)
        much_else = {"LD_PRELOAD": str(restless), "RESTLESS_IN": str(self.folder)}
        for source in sources:
            words = ["-O1", "-pthread", "-lm", *(["-std=c++20"] if source.endswith(".cpp") else [])]
            plain = self.compile(None, source, "plain", *words, folder=PROGRAMS)
            expected = self.run_well(plain).stdout
            for level in (*ADVISED, "translate-heap", EVERYWHERE):
                program = self.compile(level, source, "with", "-w", *words, folder=PROGRAMS)
                with self.subTest(source=source, level=level):
                    if level in ADVISED:
                        self.check_run(LEAST, expected, program, **much_else)
                    else:
                        self.check_cached(LEAST, expected, program, **much_else)

    def test_seed(self):
        self.check_beside_much_else("seed_matrices.c", "seed_threads.c", "structures.c")

    def test_others(self):
        self.check_beside_much_else("kinds.c", "strings.c", "everywhere.c", "objects.cpp", "unwinding.cpp")


class Containers(MoreThanMemory):
    """In mode direct libstdc++'s compiled functions end with a message: translate_test.py."""
    OPTIONS = ("-std=c++20", "-O1", "-pthread")
    SIZES = ((3,), (120,))  # thousands of entries

    def test_hint(self):
        self.check("containers.cpp", ["hint"], *self.SIZES, *self.OPTIONS)

    def test_guard(self):
        self.check("containers.cpp", ["guard"], *self.SIZES, *self.OPTIONS)

    def test_translate_heap(self):
        self.check("containers.cpp", ["translate-heap"], *self.SIZES, *self.OPTIONS)

    def test_translate_all(self):
        self.check("containers.cpp", [EVERYWHERE], *self.SIZES, *self.OPTIONS)


@functools.cache
def openmp():
    """(options, ""), or (None, why not). Debian has the library of one version of clang at a time, which serves others."""
    elsewhere = [("-fopenmp", "-idirafter", header.parent, "-L", header.parents[3])
                 for header in sorted(pathlib.Path("/usr/lib").glob("llvm-*/lib/clang/*/include/omp.h"))]
    for options in (("-fopenmp",), *elsewhere):
        asked = subprocess.run([GIVEN.clang, *options, "-xc", "-", "-o", "/dev/null"], check=False, text=True,
                               input="#include <omp.h>\nint main(void) { return omp_get_max_threads() < 1; }\n",
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if asked.returncode == 0:
            return options, ""
    return None, f"{GIVEN.clang} has no OpenMP (apt install libomp-19-dev): {asked.stdout}"


class OpenMP(MoreThanMemory):
    PROGRAMS = ("openmp_loops.c", "openmp_tasks.c", "openmp_shared.c")
    LEVELS = (*ADVISED, "translate-heap", EVERYWHERE)
    SIZES = ((1,), (136,))  # MiB

    def setUp(self):
        options, why_not = openmp()
        if options is None:
            self.skipTest(why_not)
        self.options = options
        super().setUp()

    def test_loops(self):
        self.check("openmp_loops.c", self.LEVELS, *self.SIZES, "-O2", *self.options)

    def test_tasks(self):
        self.check("openmp_tasks.c", self.LEVELS, *self.SIZES, "-O2", *self.options)

    def test_atomics_and_copies_for_threads(self):
        self.check("openmp_shared.c", self.LEVELS, *self.SIZES, "-O2", *self.options, "-latomic")

    def test_locks_in_the_heap(self):
        """And atomics that the compiler leaves to a library."""
        sizes = ((1, "locks"), (136, "locks"))
        self.check("openmp_shared.c", (*ADVISED, "translate-heap"), *sizes, "-O2", *self.options, "-latomic")

    def test_direct(self):
        for source in self.PROGRAMS:
            for optimised in ("-O0", "-O2"):
                plain = self.compile(None, source, "plain", optimised, *self.options, "-latomic")
                expected = self.run_well(plain, 1).stdout
                for level in ("translate-heap", EVERYWHERE):
                    program = self.compile(level, source, "translated", optimised, *self.options, "-latomic")
                    with self.subTest(source, optimised=optimised, level=level):
                        done = self.run_well(program, 1, FARHEAP_FAR_MODE="direct")
                        self.assertEqual((done.stdout, done.stderr), (expected, ""))

    def test_what_direct_does_not_do(self):
        """What only libraries touch ends with a message, and after everything else was right."""
        options = ("-O2", *self.options, "-latomic")
        expected = self.run_well(self.compile(None, "openmp_shared.c", "plain", *options), 1).stdout
        program = self.compile("translate-heap", "openmp_shared.c", "translated", *options)
        done = self.start(program, 1, "locks", FARHEAP_FAR_MODE="direct")
        self.assertEqual((done.returncode, done.stdout), (SIGSEGV, expected), done.stderr)
        self.assertRegex(done.stderr, "^farheap: .*")


if __name__ == "__main__":
    main(__doc__)
