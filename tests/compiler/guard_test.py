#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs compiled at level guard: they compute what they did, with and without a runtime, and make and use profiles.

  guard_test.py --farcc FILE --clang FILE --cc FILE --tool FILE [Class[.test]]...
"""

import argparse
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
INCLUDE = HERE.parent.parent / "include"
GIVEN = argparse.Namespace()

# A list, a search and a table: all three kinds of guards. `never` never runs.
PROGRAM = """
#include <stdio.h>
#include <stdlib.h>
struct node { struct node *next; long value; };
__attribute__((noinline)) long walk(struct node *p) { long s = 0; for (; p; p = p->next) s += p->value; return s; }
__attribute__((noinline)) long search(const int *p, int key) { long i = 0; while (p[i] != key) i++; return i; }
__attribute__((noinline)) long look_up(const long *t, const unsigned *k, long n) {
  long s = 0;
  for (long i = 0; i < n; i++) s += t[k[i]];
  return s;
}
__attribute__((noinline)) void never(long *p) { *p = 1; }
int main(int count, char **arguments) {
  (void)arguments;
  struct node *first = NULL;
  int *numbers = malloc(40000 * sizeof *numbers);
  long *table = malloc(40000 * sizeof *table);
  unsigned *keys = malloc(40000 * sizeof *keys);
  for (int i = 0; i < 40000; i++) {
    struct node *one = malloc(sizeof *one);
    one->next = first, one->value = i, first = one;
    numbers[i] = i, table[i] = i * 3, keys[i] = i * 7919u % 40000;
  }
  if (count > 5) never(table);
  printf("%ld %ld %ld\\n", walk(first), search(numbers, 39999), look_up(table, keys, 40000));
  return 0;
}
"""
OUTPUT = "799980000 39999 2399940000\n"

# More of every kind of register than there is, alive across guards: whole vectors, fractions, masks, extended ones.
REGISTERS = """
#include <stdio.h>
#include <stdlib.h>
typedef double wide __attribute__((vector_size(64)));
__attribute__((noinline)) void mix(double **p, long n, double *out) {
  wide v[20];
  long double x = 1, y = 2;
  double a = 1, b = 2, c = 3;
  long g[18];
  for (int j = 0; j < 20; j++) v[j] = (wide){j, j + 1, j + 2, j + 3, j + 4, j + 5, j + 6, j + 7};
  for (int j = 0; j < 18; j++) g[j] = j;
  for (long i = 0; i < n; i++) {
    double d = *p[i];
#pragma clang loop unroll(full)
    for (int j = 0; j < 20; j++) v[j] = v[j] * d + v[(j + 1) % 20];
#pragma clang loop unroll(full)
    for (int j = 0; j < 18; j++) g[j] = g[j] * 3 + (long)d;
    x = x * y + d, y = y / 3 + x, a = a * b + d, b = b / 2 + c, c = c * d - a;
    for (int j = 0; j < 20; j++) v[j] = v[j] * 1e-2;
  }
  double sum = (double)(x + y) + a + b + c;
  for (int j = 0; j < 20; j++) for (int k = 0; k < 8; k++) sum += v[j][k];
  for (int j = 0; j < 18; j++) sum += g[j] & 0xffff;
  *out = sum;
}
int main(void) {
  double *numbers = malloc(64 * sizeof *numbers), **places = malloc(64 * sizeof *places), out = 0;
  for (int i = 0; i < 64; i++) numbers[i] = i / 7.0, places[i] = &numbers[i * 37 % 64];
  mix(places, 64, &out);
  printf("%a\\n", out);
  return 0;
}
"""

# 96 MiB that are filled in order and then looked up and changed at random.
PAGED = """
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
enum { kEntries = 12 << 20, kSteps = 30000 };
__attribute__((noinline)) void fill(uint64_t *t) { for (uint64_t i = 0; i < kEntries; i++) t[i] = i * 31; }
__attribute__((noinline)) uint64_t look_up(uint64_t *t) {
  uint64_t sum = 0, place = 1;
  for (int i = 0; i < kSteps; i++) {
    place = place * 6364136223846793005u + 1442695040888963407u;
    uint64_t *one = &t[(place >> 33) % kEntries];
    sum = sum * 31 + *one;
    if (i % 3 == 0) *one += place >> 40;
  }
  return sum;
}
int main(void) {
  uint64_t *t = malloc(kEntries * sizeof *t);
  fill(t);
  printf("%llu\\n", (unsigned long long)look_up(t));
  return 0;
}
"""


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="farcc-guard-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.write("program.c", PROGRAM)

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return path

    def start(self, *words, **environment):
        everything = {**os.environ, "FARCC_CLANG": str(GIVEN.clang)}
        for key in ("FARCC_LEVEL", "FARCC_REPORT", "FARCC_LAUNCHER", "FARCC_GUARDS"):
            everything.pop(key, None)
        return subprocess.run([str(word) for word in words], cwd=self.folder, env={**everything, **environment},
                              check=False, text=True, input="", stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def run_well(self, *words, **environment):
        done = self.start(*words, **environment)
        self.assertEqual(done.returncode, 0, f"{words}\n{done.stdout}{done.stderr}")
        return done

    def compile(self, *words, **environment):
        return self.run_well(GIVEN.farcc, "-ffar=guard", "-Werror", *words, **environment).stderr

    def fails(self, *words, status=1):
        done = self.start(*words)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stderr

    def runtime(self):
        library = self.folder / "runtime.so"
        if not library.exists():
            self.run_well(GIVEN.cc, "-O1", "-shared", "-fPIC", "-I", INCLUDE, HERE / "guard_runtime.c", "-o", library)
        return str(library)

    def fetches(self, program="./program", output=OUTPUT, **environment):
        """How often the program called the runtime; what it says has to be right with and without one."""
        self.assertEqual(self.run_well(program, **environment).stdout, output)
        done = self.run_well(program, LD_PRELOAD=self.runtime(), **environment)
        self.assertEqual(done.stdout, output)
        self.heard = done.stderr
        return int(re.search(r"hook called (\d+) times", done.stderr).group(1))


class Running(Case):
    def test_every_level_of_optimisation(self):
        for level in ("-O0", "-O1", "-O2", "-O3", "-Os"):
            with self.subTest(level):
                self.compile(level, "-g", "program.c", "-o", "program")
                # At least the list and the table; not each number of the search.
                self.assertGreaterEqual(self.fetches(), 80000)
        self.assertLess(self.fetches(), 130000)

    def test_at_link_time_nothing_is_guarded_twice(self):
        self.compile("-O2", "program.c", "-o", "program")
        expected = self.fetches()
        if not GIVEN.clang.resolve().with_name("ld.lld").exists():
            self.skipTest("there is no lld beside clang")
        for kind in ("-flto", "-flto=thin"):
            with self.subTest(kind):
                self.compile("-O2", kind, "-c", "program.c")
                self.compile("-O2", kind, "-fuse-ld=lld", "program.o", "-o", "program")
                found = self.fetches()
                # The linker's optimisers may unroll or merge a few.
                self.assertTrue(0.9 * expected < found < 1.1 * expected, f"{found} instead of {expected}")
                self.assertIn("1 views, 1 gone", self.heard)

    def test_one_view_for_a_program_and_one_for_a_library(self):
        self.write("library.c", "long first(long *p) { return *p; }")
        self.write("more.c", "long second(long *p) { return *p; }")
        self.write("main.c", "#include <stdlib.h>\n#include <stdio.h>\nlong first(long *); long second(long *);\n"
                             "int main(void) { long *p = calloc(8, 1); printf(\"%ld\\n\", first(p) + second(p) + *p); }")
        self.compile("-O1", "-shared", "-fPIC", "library.c", "-o", "library.so")
        self.compile("-O1", "main.c", "more.c", "./library.so", "-o", "program")
        self.assertGreaterEqual(self.fetches(output="0\n"), 3)
        self.assertIn("2 views, ", self.heard)

    def test_the_view_of_a_library_that_is_closed_is_gone(self):
        self.write("library.c", "long first(long *p) { return *p; }")
        self.write("main.c", """
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
int main(void) {
  void *library = dlopen("./library.so", RTLD_NOW);
  long (*first)(long *) = (long (*)(long *))dlsym(library, "first");
  printf("%ld\\n", first(calloc(8, 1)));
  return dlclose(library);
}
""")
        self.compile("-O1", "-shared", "-fPIC", "library.c", "-o", "library.so")
        self.run_well(GIVEN.cc, "-O1", "main.c", "-o", "program", "-ldl")
        self.assertEqual(self.fetches(output="0\n"), 1)
        self.assertIn("1 views, 1 gone", self.heard)

    def test_registers_are_kept(self):
        self.write("registers.c", REGISTERS)
        flags = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")
        ways = ["-msse2"] + [f"-m{name}" for name in ("avx", "avx2", "avx512f") if f" {name} " in flags]
        for way in ways:
            for level in ("-O0", "-O1", "-O3"):
                with self.subTest(f"{way} {level}"):
                    options = (way, level, "-Wno-psabi", "-ffp-contract=off", "registers.c")
                    self.run_well(GIVEN.clang, *options, "-o", "plain")
                    self.compile(*options, "-o", "program")
                    self.assertGreater(self.fetches(output=self.run_well("./plain").stdout), 64)

    def test_without_vectors_wide_and_narrow_functions_in_one_program(self):
        self.write("registers.c", REGISTERS.replace("int main", "int wide_main"))
        self.write("main.c", PROGRAM.replace("int main", "int wide_main(void);\nint main").replace(
            "return 0;", "return wide_main();"))
        options = ("-Wno-psabi", "-ffp-contract=off", "-O2")
        if " avx2 " not in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8"):
            self.skipTest("this processor has no AVX2")
        self.run_well(GIVEN.clang, *options, "-mavx2", "-c", "registers.c", "-o", "plain.o")
        self.run_well(GIVEN.clang, *options, "main.c", "plain.o", "-o", "plain")
        self.compile(*options, "-mavx2", "-c", "registers.c")
        self.compile(*options, "main.c", "registers.o", "-o", "program")
        self.assertGreater(self.fetches(output=self.run_well("./plain").stdout), 80000)

    def test_static(self):
        self.compile("-O2", "-static", "program.c", "-o", "program")
        self.assertEqual(self.run_well("./program").stdout, OUTPUT)

    def test_address_sanitizer(self):
        if self.start(GIVEN.clang, "-fsanitize=address", "program.c", "-o", "plain").returncode != 0:
            self.skipTest("clang has no address sanitizer here")
        self.compile("-O1", "-fsanitize=address", "program.c", "-o", "program")
        self.assertEqual(self.run_well("./program", ASAN_OPTIONS="detect_leaks=0").stdout, OUTPUT)

    def test_objects_of_another_compiler(self):
        library, program = PROGRAM.split("int main")
        self.write("half.c", library)
        declared = ("#include <stdio.h>\n#include <stdlib.h>\nstruct node { struct node *next; long value; };\n"
                    "long walk(struct node *); long search(const int *, int); void never(long *);\n"
                    "long look_up(const long *, const unsigned *, long);\n")
        self.write("main.c", declared + "int main" + program)
        self.compile("-O2", "-c", "half.c")
        self.run_well(GIVEN.cc, "-O2", "-c", "main.c")
        for linker in (GIVEN.cc, GIVEN.farcc):
            self.run_well(linker, "half.o", "main.o", "-o", "program")
            self.assertGreaterEqual(self.fetches(), 80000)

    def test_inline_assembly_is_left_to_faults_and_reported(self):
        if platform.machine() != "x86_64":
            self.skipTest("the assembly is that of x86-64")
        self.write("assembly.c", """
#include <stdio.h>
#include <stdlib.h>
__attribute__((noinline)) long sum(const long *p, long n) {
  long s = 0;
  for (long i = 0; i < n; i++) __asm__ volatile("addq %1, %0" : "+r"(s) : "m"(p[i]));
  return s;
}
int main(void) {
  long *p = calloc(1000, sizeof *p);
  for (int i = 0; i < 1000; i++) p[i] = i;
  printf("%ld\\n", sum(p, 1000));
}
""")
        for level in ("-ffar=hint", "-ffar=guard"):
            heard = self.run_well(GIVEN.farcc, level, "-O2", "-ffar-report", "assembly.c", "-o", "program").stderr
            self.assertIn("sum: left: call: inline assembly", heard)
            self.fetches(output="499500\n")

    def test_exceptions(self):
        self.write("throws.cpp", """
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>
struct node { std::unique_ptr<node> next; std::string text; };
[[gnu::noinline]] long walk(const node *p) {
  long s = 0;
  for (; p != nullptr; p = p->next.get()) { if (p->text.size() == 40) throw std::runtime_error(p->text); s += p->text.size(); }
  return s;
}
int main() {
  std::unique_ptr<node> first;
  for (int i = 0; i < 50; i++) { auto one = std::make_unique<node>(); one->text.assign(i, 'x'); one->next = std::move(first); first = std::move(one); }
  try { walk(first.get()); } catch (const std::exception &e) { std::printf("%zu\\n", std::string(e.what()).size()); }
}
""")
        for level in ("-O0", "-O2"):
            self.run_well(GIVEN.farcc.parent / "far++", "-ffar=guard", "-Werror", level, "-std=c++20", "throws.cpp", "-o",
                          "program")
            self.assertGreater(self.fetches(output="40\n"), 9)

    def test_openmp(self):
        self.write("threads.c", PROGRAM.replace("  for (long i = 0; i < n; i++) s +=",
                                                "#pragma omp parallel for reduction(+:s)\n  for (long i = 0; i < n; i++) s +="))
        done = self.start(GIVEN.farcc, "-ffar=guard", "-O2", "-fopenmp", "threads.c", "-o", "program")
        if done.returncode != 0 and "omp" in done.stderr:
            self.skipTest("clang has no OpenMP here")
        self.assertGreater(self.fetches(OMP_NUM_THREADS="2"), 80000)

    def test_by_environment(self):
        self.run_well(GIVEN.farcc, "-O2", "program.c", "-o", "program", FARCC_LEVEL="guard")
        self.assertGreater(self.fetches(), 80000)


class Paged(Case):
    def run_paged(self, program, **environment):
        """(what it printed, statistics) with a third of the memory that it needs."""
        done = self.run_well(GIVEN.tool, "run", "--memory", "32M", "--store", f"file:{self.folder}", "--stats=json", "--",
                             program, **environment)
        return done.stdout, json.loads(done.stderr.strip().splitlines()[-1])

    def test_guards_fetch_what_would_have_been_faults(self):
        if self.start(GIVEN.tool, "run", "--memory", "32M", "--", "true").returncode != 0:
            self.skipTest("farheap run does not work on this machine")
        self.write("paged.c", PAGED)
        self.run_well(GIVEN.clang, "-O2", "paged.c", "-o", "plain")
        self.compile("-O2", "paged.c", "-o", "program")
        self.compile("-O2", "-ffar-guard=record", "paged.c", "-o", "recording")
        expected = self.run_well("./plain").stdout
        self.assertEqual(self.run_well("./program").stdout, expected)
        printed, faults = self.run_paged("./plain")
        self.assertEqual((printed, faults["guard_fetches"]), (expected, 0))
        printed, guarded = self.run_paged("./program")
        self.assertEqual(printed, expected)
        self.assertGreater(guarded["guard_fetches"], guarded["faults"] / 2)
        printed, recorded = self.run_paged("./recording", FARCC_GUARDS=str(self.folder / "profile"))
        self.assertEqual(printed, expected)
        rows = [line.split() for line in (self.folder / "profile").read_text(encoding="utf-8").splitlines()[1:-1]]
        self.assertEqual(sum(int(row[3]) for row in rows if row[5] == "look_up"), 30000)
        missed = sum(int(row[4]) for row in rows)
        # A page may come between the look and the call.
        self.assertTrue(recorded["guard_fetches"] <= missed <= 1.2 * recorded["guard_fetches"], (missed, recorded))
        heard = self.compile("-O2", "-ffar-guard=profile", "-ffar-report", "paged.c", "-o", "program")
        self.assertIn("look_up: guarded: load: before the access", heard)
        printed, profiled = self.run_paged("./program")
        self.assertEqual(printed, expected)
        self.assertGreater(profiled["guard_fetches"], profiled["faults"] / 2)


class Profiles(Case):
    def record(self, **environment):
        self.compile("-O2", "-ffar-guard=record", "program.c", "-o", "recording")
        return self.fetches("./recording", FARCC_GUARDS=str(self.folder / "profile"), **environment)

    def rows(self):
        """(ordinal, guards, shape, passes, misses, name) of each line."""
        lines = (self.folder / "profile").read_text(encoding="utf-8").splitlines()
        return [line.split(" ", 5) for line in lines if line not in ("farheap guards 2", "end")]

    def test_a_profile_counts_what_happened(self):
        fetched = self.record()
        # Two runs, one of them without a runtime, in which nothing is away.
        text = (self.folder / "profile").read_text(encoding="utf-8")
        self.assertEqual((text.count("farheap guards 2\n"), text.count("\nend\n")), (2, 2))
        self.assertEqual(sum(int(row[4]) for row in self.rows()), fetched)
        passes = {}
        for row in self.rows():
            passes[row[5]] = passes.get(row[5], 0) + int(row[3])
        self.assertEqual(passes["walk"], 2 * 40000)
        self.assertEqual(passes["search"], 2 * 40000)
        self.assertGreaterEqual(passes["look_up"], 2 * 40000)
        self.assertEqual(passes["never"], 0)

    def use(self, *words):
        return self.compile("-O2", "-ffar-guard=profile", *words, "program.c", "-o", "program")

    def test_guards_by_a_profile(self):
        self.record()
        self.assertEqual(self.use(), "")
        heard = self.use("-ffar-report", "-g")  # which is no other code
        self.assertNotIn("warning", heard)
        self.assertIn("never: left: store: by the profile: it seldom misses, or never ran", heard)
        self.assertIn("walk: guarded: load: before the access; 1 guards, 2 accesses", heard)
        self.assertGreater(self.fetches(), 80000)
        text = "".join(f"{a} {b} {shape} 50000 {5 if name == 'walk' else 6} {name}\n"
                       for a, b, shape, _, _, name in self.rows()[::2])
        self.write("profile", "farheap guards 2\n" + text + "end\n")
        heard = self.use("-ffar-report")
        self.assertIn("walk: left: load: by the profile", heard)
        self.assertNotIn("walk: guarded", heard)

    def test_a_profile_of_another_program_of_the_same_names_was_taken(self):
        self.record()
        self.write("program.c", PROGRAM.replace("s += p->value", "s += p->value * 3").replace("s += t[k[i]]", "s ^= t[k[i]]"))
        heard = self.use("-ffar-report")  # -Werror, too, and no error
        self.assertRegex(heard, r"warning: Farheap: -ffar-guard: 'profile': recorded from other code than this, or by "
                                r"other options: 2 of \d functions with guards do not match \(walk, look_up\)")
        self.assertIn("walk: guarded: the profile is of another function of this name: all are made", heard)
        self.assertIn("never: left: store: by the profile", heard)
        self.write("program.c", PROGRAM)
        self.assertIn("do not match", self.run_well(GIVEN.farcc, "-ffar=guard", "-ffar-guard=profile", "-O1",
                                                    "program.c", "-o", "program").stderr)
        self.assertNotIn("do not match", self.use("-Wno-backend-plugin"))

    def test_a_profile_in_which_nothing_missed_left_all_guards_out_in_silence(self):
        self.compile("-O2", "-ffar-guard=record", "program.c", "-o", "recording")
        self.run_well("./recording", FARCC_GUARDS=str(self.folder / "profile"))
        heard = self.use()
        self.assertIn("no guard in it ever missed, so that guards are left out; record it under `farheap run", heard)
        self.assertEqual(self.fetches(), 0)

    def test_what_is_no_profile_was_added_to(self):
        self.compile("-O2", "-ffar-guard=record", "program.c", "-o", "recording")
        for text, why in (("a letter\n", "there is something else in it, which is no profile"),
                          ("farheap guards 1\n0 1 5 5 f\n", "of another version of Farheap"), ("far", "something else")):
            file = self.write("profile", text)
            heard = self.run_well("./recording", FARCC_GUARDS=str(file)).stderr
            self.assertRegex(heard, f"^farheap: cannot write the profile of guards to '.*/profile': .*{why}.*; name "
                                    "another file by FARCC_GUARDS, or remove this one\n$")
            self.assertEqual(file.read_text(encoding="utf-8"), text)
        self.assertEqual(self.run_well("./recording", FARCC_GUARDS="/dev/null").stderr, "")
        self.write("profile", "")
        self.assertEqual(self.run_well("./recording", FARCC_GUARDS=str(self.folder / "profile")).stderr, "")

    def test_a_run_that_was_killed_while_it_wrote(self):
        """It is told by its lines, and what comes after it begins a line of its own."""
        self.record()
        whole = (self.folder / "profile").read_text(encoding="utf-8")
        lines = whole.count("\n")
        self.write("profile", whole[:-6])
        self.run_well("./recording", FARCC_GUARDS=str(self.folder / "profile"))
        self.assertTrue((self.folder / "profile").read_text(encoding="utf-8").startswith(whole[:-6] + "\nfarheap guards 2\n"))
        heard = self.fails(GIVEN.farcc, "-O2", "-ffar=guard", "-ffar-guard=profile", "-c", "program.c")
        self.assertRegex(heard, f"cannot use 'profile', line {lines - 1}: the run that begins in line {lines // 2 + 1} is cut")

    def test_a_run_is_one_write(self):
        strace = shutil.which("strace")
        if strace is None:
            self.skipTest("there is no strace")
        self.compile("-O2", "-ffar-guard=record", "program.c", "-o", "recording")
        self.run_well(strace, "-f", "-o", "calls", "-e", "trace=write", "-P", self.folder / "profile", "./recording",
                      FARCC_GUARDS=str(self.folder / "profile"))
        calls = (self.folder / "calls").read_text(encoding="utf-8")
        self.assertEqual(calls.count("write("), 1, calls)

    def test_recording_by_half_wrote_nothing_in_silence(self):
        """Compiled to count and linked without it, and the other way round."""
        self.compile("-O2", "-ffar-guard=record", "-c", "program.c")
        for options in ((), ("-ffar=guard",), ("-ffar=none",), ("-shared",)):
            heard = self.fails(GIVEN.farcc, *options, "program.o", "-o", "program")
            self.assertIn("__farheap_link_with_ffar_guard_record", heard)
            self.assertIn("farcc: cannot link: program.o: it was compiled with -ffar-guard=record, and the link lacks "
                          "what writes the profile; give -ffar=guard -ffar-guard=record when linking, too", heard)
        self.compile("-O2", "-c", "program.c")
        self.compile("-ffar-guard=record", "program.o", "-o", "program")
        heard = self.run_well("./program").stderr
        self.assertIn("cannot write the profile of guards to 'farheap-guards.txt': nothing in the program or library was "
                      "compiled to count its guards; give -ffar=guard -ffar-guard=record when compiling, too", heard)
        self.write("none.c", "int main(void) { return 0; }\n")  # nothing to count, and nothing to say
        self.compile("-O2", "-ffar-guard=record", "none.c", "-o", "none")
        self.assertEqual(self.run_well("./none").stderr, "")

    def test_children_are_not_counted_twice(self):
        self.write("program.c", PROGRAM.replace("#include <stdio.h>", "#include <stdio.h>\n#include <unistd.h>\n"
                                                "#include <sys/wait.h>").replace(
            "  return 0;\n}\n", "  if (fork() == 0) { printf(\"%ld\\n\", walk(first)); exit(0); }\n  wait(NULL);\n"
                               "  return 0;\n}\n").replace('printf("%ld %ld', 'fflush(stdout), printf("%ld %ld').replace(
            "look_up(table, keys, 40000));", "look_up(table, keys, 40000)); fflush(stdout);"))
        self.compile("-O2", "-ffar-guard=record", "program.c", "-o", "recording")
        self.run_well("./recording", FARCC_GUARDS=str(self.folder / "profile"))
        self.assertEqual(sum(int(row[3]) for row in self.rows() if row[5] == "walk"), 2 * 40000)
        self.assertEqual(sum(int(row[3]) for row in self.rows() if row[5] == "search"), 40000)

    def test_the_usual_file_and_one_that_cannot_be_written(self):
        self.compile("-O2", "-ffar-guard=record", "program.c", "-o", "recording")
        self.run_well("./recording")
        self.assertTrue((self.folder / "farheap-guards.txt").exists())
        heard = self.run_well("./recording", FARCC_GUARDS="/nowhere/profile").stderr
        self.assertIn("cannot write the profile of guards to '/nowhere/profile': No such file", heard)
        self.assertIn("FARCC_GUARDS", heard)

    def test_what_cannot_be_used(self):
        heard = self.fails(GIVEN.farcc, "-ffar=guard", "-ffar-guard=nowhere", "-c", "program.c")
        self.assertIn("cannot read 'nowhere'", heard)
        self.write("broken", "farheap guards 2\n0 1 a 2 3 f\nend\n")
        heard = self.fails(GIVEN.farcc, "-ffar=guard", "-ffar-guard=broken", "-c", "program.c")
        self.assertIn("'broken', line 2: not understood", heard)

    def test_options(self):
        self.assertIn("add -ffar=guard", self.fails(GIVEN.farcc, "-ffar-guard=record", "-c", "program.c", status=2))
        self.assertIn("-ffar-guard=record to make a profile",
                      self.fails(GIVEN.farcc, "-ffar=guard", "-ffar-guard", "-c", "program.c", status=2))
        self.assertIn("is missing", self.fails(GIVEN.farcc, "-ffar=guard", "-ffar-guard=", "-c", "program.c", status=2))

    def test_another_profile_of_the_same_name_is_another_command(self):
        commands = set()
        for text in ("farheap guards 2\nend\n", "farheap guards 2\n0 1 a 2 1 f\nend\n"):
            self.write("profile", text)
            commands.add(self.run_well(GIVEN.farcc, "-ffar=guard", "-ffar-guard=profile", "-ffar-print", "-c",
                                       "program.c").stdout)
        self.assertEqual(len(commands), 2)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("farcc", "clang", "cc", "tool"):
        parser.add_argument(f"--{name}", required=True, type=pathlib.Path)
    _, rest = parser.parse_known_args(namespace=GIVEN)
    GIVEN.farcc = GIVEN.farcc.absolute()
    GIVEN.tool = GIVEN.tool.absolute()
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
