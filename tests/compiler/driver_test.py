#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""farcc as a compiler: every kind of command line, and what it says where something is missing.

  driver_test.py --farcc FILE --clang FILE --major N --cc FILE [Class[.test]]...
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import signal
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
        for key in ("FARCC_LEVEL", "FARCC_REPORT", "FARCC_LAUNCHER", "FARCC_COUNTS"):
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


class Compiling(Case):
    def test_compile_and_link_in_one(self):
        self.compile("-Werror", "-O2", "program.c", "-o", "program")
        self.check_program("program")

    def test_compile_then_link(self):
        self.compile("-Werror", "-O2", "-c", "program.c", "-o", "program.o")
        self.compile("-Werror", "program.o", "-o", "program")
        self.check_program("program")

    def test_every_level_of_optimisation(self):
        for level in ("-O1", "-O3", "-Os", "-Og"):
            self.compile("-Werror", level, "-g", "program.c", "-o", "program")
            with self.subTest(level):
                self.check_program("program")

    def test_without_optimisation_the_report_says_why(self):
        done = self.run_well(self.farcc, "-O0", "-ffar-report", "program.c", "-o", "program")
        self.assertIn("fill: left: compiled without optimisation", done.stderr)
        self.check_program("program", told="")

    def test_to_assembler_and_on(self):
        self.compile("-Werror", "-O2", "-S", "program.c")
        self.assertIn("__farheap_loop", (self.folder / "program.s").read_text(encoding="utf-8"))
        self.compile("-Werror", "-c", "program.s")
        self.compile("-Werror", "program.o", "-o", "program")
        self.check_program("program")

    def test_source_and_assembler_together(self):
        self.write("more.s", ".globl more\nmore: ret\n.section .note.GNU-stack\n")
        self.compile("-Werror", "-O2", "program.c", "more.s", "-o", "program")
        self.check_program("program")

    def test_to_bitcode_and_on(self):
        self.compile("-Werror", "-O2", "-c", "-emit-llvm", "program.c", "-o", "program.bc")
        self.compile("-Werror", "-O2", "program.bc", "-o", "program")
        self.check_program("program")

    def test_preprocess(self):
        plain = self.run_well(GIVEN.clang, "-E", "program.c").stdout
        self.assertEqual(self.compile("-Werror", "-E", "program.c"), plain)

    def test_dependencies(self):
        self.write("part.h", "")
        self.write("with.c", '#include "part.h"\n')
        self.assertIn("part.h", self.compile("-Werror", "-MM", "with.c"))
        self.compile("-Werror", "-c", "-MMD", "-MF", "with.d", "-MT", "target", "with.c")
        self.assertEqual((self.folder / "with.d").read_text(encoding="utf-8"), "target: with.c part.h\n")

    def test_language_by_option(self):
        shutil.copy(self.folder / "program.c", self.folder / "program.text")
        self.compile("-Werror", "-O2", "-x", "c", "program.text", "-o", "program")
        self.check_program("program")

    def test_precompiled_headers_were_linked(self):
        self.write("h.h", "int twice(int x);\n")
        self.write("uses.cpp", '#include "h.h"\nint twice(int x) { return 2 * x; }\nint main() { return twice(0); }\n')
        levels = (("-ffar=hint",), ("-ffar=guard",), ("-ffar=guard", "-ffar-guard=record"), ("-ffar=translate-heap",),
                  ("-ffar=translate-all",), ("-ffar=count", "-ffar-count=executed"))
        for level in levels:
            for kind in (("-x", "c++-header"), ("-xc++-header",)):
                self.run_well(self.farxx, *level, *kind, "h.h", "-o", "h.pch")
                self.run_well(self.farxx, *level, "-include-pch", "h.pch", "uses.cpp", "-o", "uses")
                self.run_well(self.folder / "uses", FARCC_COUNTS="counts", FARCC_GUARDS="guards")
            for ending in ("h", "hh", "hpp", "hxx", "H"):
                self.write(f"plain.{ending}", "int twice(int x);\n")
                self.run_well(self.farxx, "-Wno-deprecated", *level, f"plain.{ending}")
                self.assertTrue((self.folder / f"plain.{ending}.gch").exists() or
                                (self.folder / f"plain.{ending}.pch").exists(), (level, ending))
        # What follows -x none is a source again.
        self.run_well(self.farxx, "-ffar=translate-heap", "-x", "none", "uses.cpp", "-o", "uses")
        self.run_well(self.folder / "uses")

    def test_the_level_was_not_to_be_seen_in_the_source(self):
        self.write("level.c", """
#ifdef __FARCC__
farcc
#endif
#ifdef __FARCC_HINT__
hint
#endif
#ifdef __FARCC_GUARD__
guard
#endif
#ifdef __FARCC_COUNT__
count
#endif
#ifdef __FARCC_TRANSLATE_HEAP__
heap
#endif
#ifdef __FARCC_TRANSLATE_ALL__
all
#endif
""")
        for level, seen in (("none", ""), ("hint", "farcc hint"), ("guard", "farcc guard"), ("count", "farcc count"),
                            ("translate-heap", "farcc heap"), ("translate-all", "farcc heap all")):
            self.assertEqual(" ".join(self.compile(f"-ffar={level}", "-E", "-P", "level.c").split()), seen)

    def test_other_machines(self):
        """The vector registers of x86-64 were meant for all of them; -m32 was told by the linker."""
        self.write("bare.c", "long f(long *p) { return *p; }\n")
        for machine in ("--target=aarch64-linux-gnu", "-m32", "-mx32", "--target=wasm32"):
            for level in ("-ffar=translate-heap", "-ffar=translate-all"):
                said = self.fails(self.farcc, machine, level, "-c", "bare.c")
                self.assertRegex(said, rf"error: Farheap: {level}: a program for .* cannot be linked to its runtime")
            for level in ("-ffar=hint", "-ffar=count"):
                self.compile(machine, "-O2", level, "-c", "bare.c")
        self.compile("--target=aarch64-linux-gnu", "-O2", "-ffar=guard", "-c", "bare.c")
        said = self.run_well(self.farcc, "-m32", "-O2", "-ffar=guard", "-c", "bare.c").stderr
        self.assertRegex(said, "warning: Farheap: nothing is guarded: the target i386.* has no addresses of 64 bits")

    def test_response_files(self):
        self.write("inner", '-O2 "-DNAME=\\"a b\\""\n-ffar-leave=fill')
        self.write("outer", "@inner program.c -o 'program'")
        self.compile("-Werror", "@outer")
        self.check_program("program", told="told 3000000 1\n")

    def test_a_response_file_without_our_options_is_left_to_clang(self):
        self.write("words", "-O2 program.c -o program")
        self.assertIn(" @words", self.compile("-ffar-print", "@words"))
        self.compile("-Werror", "@words")
        self.check_program("program")

    def test_static(self):
        self.compile("-Werror", "-O2", "-static", "program.c", "-o", "program")
        self.assertEqual(self.run_well(self.folder / "program").stdout, OUTPUT)

    def test_without_position_independence(self):
        self.compile("-Werror", "-O2", "-fno-pic", "-no-pie", "program.c", "-o", "program")
        self.check_program("program")

    def test_shared_library(self):
        library, program = PROGRAM.split("int main")
        self.write("library.c", library)
        self.write("main.c", "#include <stdio.h>\n#include <stdlib.h>\nvoid fill(char *, long);\nlong sum(char *, long);\n"
                   "int main" + program)
        self.compile("-Werror", "-O2", "-shared", "-fPIC", "library.c", "-o", "library.so")
        self.run_well(GIVEN.cc, "main.c", "./library.so", "-o", "program")
        self.check_program("program")

    def test_objects_of_another_compiler(self):
        library, program = PROGRAM.split("int main")
        self.write("half.c", library)
        self.write("main.c", "#include <stdio.h>\n#include <stdlib.h>\nvoid fill(char *, long);\nlong sum(char *, long);\n"
                   "int main" + program)
        self.compile("-Werror", "-O2", "-c", "half.c")
        self.run_well(GIVEN.cc, "-O2", "-c", "main.c")
        self.run_well(GIVEN.cc, "half.o", "main.o", "-o", "program")
        self.check_program("program")

    def test_cxx(self):
        self.write("program.cpp", "#include <stdexcept>\n#include <vector>\n" + PROGRAM.replace(
            "char *p = malloc(3000000);",
            "std::vector<char> all(3000000); char *p = all.data();\n"
            "  try { throw std::runtime_error(\"x\"); } catch (const std::exception &) {}").replace("  free(p);\n", ""))
        self.run_well(self.farxx, "-Werror", "-std=c++20", "-O2", "program.cpp", "-o", "program")
        self.check_program("program")

    def test_address_sanitizer(self):
        done = self.start(GIVEN.clang, "-fsanitize=address", "program.c", "-o", "plain")
        if done.returncode != 0:
            self.skipTest("clang has no address sanitizer here")
        self.compile("-Werror", "-O2", "-fsanitize=address", "program.c", "-o", "program")
        self.assertEqual(self.run_well(self.folder / "program").stdout, OUTPUT)

    def test_openmp(self):
        self.write("threads.c", PROGRAM.replace("{ for (long", "{\n#pragma omp parallel for\n for (long", 1))
        done = self.start(self.farcc, "-O2", "-fopenmp", "threads.c", "-o", "program")
        if done.returncode != 0 and ("omp" in done.stderr):
            self.skipTest("clang has no OpenMP here")
        self.assertEqual(self.run_well(self.folder / "program", OMP_NUM_THREADS="2").stdout, OUTPUT)


class LinkTime(Case):
    def setUp(self):
        super().setUp()
        if not GIVEN.clang.resolve().with_name("ld.lld").exists():
            self.skipTest("there is no lld beside clang")

    def test_each_loop_is_said_once(self):
        for kind in ("-flto", "-flto=thin"):
            with self.subTest(kind):
                self.compile("-Werror", "-O2", kind, "-c", "program.c")
                self.compile("-Werror", "-O2", kind, "-fuse-ld=lld", "program.o", "-o", "program")
                self.check_program("program")

    def test_bitcode_that_has_not_come_by_is_seen_to_at_the_end(self):
        for kind in ("-flto", "-flto=thin"):
            with self.subTest(kind):
                self.run_well(GIVEN.clang, "-O2", kind, "-c", "program.c")
                self.compile("-Werror", "-O2", kind, "-fuse-ld=lld", "program.o", "-o", "program")
                self.check_program("program")


class Levels(Case):
    def test_none_is_clang(self):
        self.compile("-O2", "-c", "program.c", "-o", "with.o", "-ffar=none")
        self.run_well(GIVEN.clang, "-O2", "-c", "program.c", "-o", "plain.o")
        self.assertEqual((self.folder / "with.o").read_bytes(), (self.folder / "plain.o").read_bytes())

    def test_a_folder_is_no_profile(self):
        said = self.fails(self.farcc, "-ffar=guard", f"-ffar-guard={self.folder}", "-c", "program.c")
        self.assertNotIn("terminate called", said)
        self.assertIn("-ffar-guard", said)

    def test_levels_that_are_not_there(self):
        self.assertIn("there is no such level; choose none, count, hint, guard, translate-heap or translate-all",
                      self.fails(self.farcc, "-ffar=guards", "-c", "program.c", status=2))
        self.assertIn("there is no such level", self.fails(self.farcc, "-ffar=all", "-c", "program.c", status=2))
        self.assertIn("there is no such level", self.fails(self.farcc, "-c", "program.c", status=2, FARCC_LEVEL="all"))

    def test_wrong_options(self):
        self.assertIn("no such option", self.fails(self.farcc, "-ffar-what", "-c", "program.c", status=2))
        self.assertIn("512K", self.fails(self.farcc, "-ffar-threshold=much", "-c", "program.c", status=2))
        self.assertIn("add -ffar=count", self.fails(self.farcc, "-ffar-count=executed", "-c", "program.c", status=2))
        self.assertIn("is missing", self.fails(self.farcc, "-ffar-report=", "-c", "program.c", status=2))
        # The passes would name an option of their own, or take the brace for itself.
        for wrong, why in (("-ffar-only=a,b[", "without its ']'"), ("-ffar-leave=rel{ax", "without its '}'"),
                           ("-ffar-threshold", "the size is missing"), ("-ffar", "the level is missing")):
            said = self.fails(self.farcc, "-O2", wrong, "-c", "program.c", status=2)
            self.assertIn(why, said)
            self.assertIn(wrong, said)
        self.run_well(self.farcc, "-O2", "-ffar-only=[f]*,main::{lambda()#1}*", "-c", "program.c")

    def test_options_without_their_values(self):
        for wrong, why, choice in (("-ffar-count=foo", "that cannot be counted", "-ffar-count=executed"),
                                   ("-ffar-count", "is missing", "-ffar-count=executed"),
                                   ("-ffar-guard", "is missing", "-ffar-guard=record"),
                                   ("-ffar-only", "the list of functions is missing", "-ffar-only=NAME,..."),
                                   ("-ffar-leave", "is missing", "-ffar-leave=NAME"),
                                   ("-ffar-borrow", "is missing", "-ffar-borrow=NAME")):
            said = self.fails(self.farcc, "-O2", wrong, "-c", "program.c", status=2)
            self.assertIn(f"wrong option: {wrong}: ", said)
            self.assertIn(why, said)
            self.assertIn(choice, said)

    def warned(self, *words, **environment):
        """Of nothing else, and with -Werror nothing fails for it."""
        done = self.run_well(self.farcc, "-Werror", "-O2", *words, "-c", "program.c", **environment)
        self.assertEqual(done.stderr.count("warning: "), 1, done.stderr)
        return done.stderr

    def test_what_was_asked_for_in_vain_was_not_said(self):
        for option in ("-ffar-only=", "-ffar-leave=,"):
            self.assertIn(f"farcc: warning: {option}: the list is empty", self.warned(option))
        self.assertIn("-ffar-borrow=: the list is empty", self.warned("-ffar=translate-heap", "-ffar-borrow="))
        self.assertIn("-ffar-borrow: only translated code lends, and the level is hint", self.warned("-ffar-borrow=fill"))
        self.assertIn("-ffar-borrow: no function that is called in program.c has a name that it says",
                      self.warned("-ffar=translate-heap", "-ffar-borrow=fil,summ"))
        self.compile("-ffar=translate-heap", "-ffar-borrow=fill", "-c", "program.c")
        for option in ("-ffar-only=fil,summ", "-ffar-only=programs.c"):
            for level in ("hint", "guard", "count", "translate-heap"):
                self.assertIn("-ffar-only: no function in program.c has a name, or is in a file, that it says",
                              self.warned(option, f"-ffar={level}"))
        for option in ("-ffar-only=fil,sum", "-ffar-only=program.c", "-Wno-backend-plugin"):
            self.compile(option, "-c", "program.c")
        self.write("program.c", "int x;\n")  # no function at all
        self.compile("-ffar-only=fil", "-c", "program.c")

    def test_translated_objects_were_linked_to_what_ld_says(self):
        self.compile("-O2", "-ffar=translate-heap", "-c", "program.c")
        self.run_well("ar", "rc", "libprogram.a", "program.o")
        for name, words in (("program.o", ("program.o",)), ("libprogram.a", ("-Wl,--whole-archive", "libprogram.a",
                                                                            "-Wl,--no-whole-archive"))):
            for level in ("hint", "guard", "none"):
                said = self.fails(self.farcc, f"-ffar={level}", *words, "-o", "program")
                self.assertIn("undefined reference to `__farheap_", said)
                self.assertTrue(said.endswith(
                    f"farcc: cannot link: {name}: it was compiled with -ffar=translate-heap or translate-all, and the link "
                    "lacks the runtime of translated programs; give the same -ffar= when linking, too\n"), said)
        # Fifty lines of the linker's came before the sentence.
        self.write("many.c", "".join(f"long f{i}(long *p) {{ return *p; }}\n" for i in range(40)) +
                   "int main(void) { return 0; }\n")
        self.compile("-O2", "-ffar=translate-heap", "-c", "many.c")
        said = self.fails(self.farcc, "many.o", "-o", "program")
        self.assertLessEqual(len(said.splitlines()), 6, said)
        self.assertRegex(said, r"\n\(\d+ more lines of the linker's\)\nfarcc: cannot link: many.o")
        self.write("other.c", "int other(void); int main(void) { return other(); }\n")
        self.compile("-O2", "-c", "other.c")
        said = self.fails(self.farcc, "other.o", "-o", "program")  # which is not about that
        self.assertNotIn("farcc:", said)
        self.compile("-ffar=translate-heap", "program.o", "-o", "program")
        self.assertEqual(self.run_well(self.folder / "program").stdout, OUTPUT)

    def test_a_link_that_is_ended_by_a_signal(self):
        self.compile("-O2", "-c", "program.c")
        clang = self.write("clang-" + GIVEN.major, "#!/bin/sh\nkill -TERM $$\n")
        clang.chmod(0o755)
        done = self.start(self.farcc, "program.o", "-o", "program", FARCC_CLANG=str(clang))
        self.assertEqual(done.returncode, -signal.SIGTERM)

    def test_environment_and_options(self):
        self.compile("-O2", "program.c", "-o", "program", FARCC_LEVEL="none")
        self.check_program("program", told="")
        self.compile("-O2", "-ffar=hint", "program.c", "-o", "program", FARCC_LEVEL="none")
        self.check_program("program")

    def test_counts_are_those_of_the_bitcode(self):
        done = self.run_well(self.farcc, "-O1", "-ffar=count", "-ffar-report=counts.jsonl", "-S", "-emit-llvm",
                             "program.c")
        self.assertEqual(done.stderr, "")
        lines = [json.loads(line) for line in (self.folder / "counts.jsonl").read_text(encoding="utf-8").splitlines()]
        counted = {line["function"]: line for line in lines if line["what"] == "counted"}
        self.assertEqual(set(counted), {"fill", "sum", "main"})
        text = (self.folder / "program.ll").read_text(encoding="utf-8")
        for name, line in counted.items():
            body = re.search(rf"define [^\n]*@{name}\(.*?\n}}", text, re.DOTALL).group(0).splitlines()[1:-1]
            body = [row for row in body if row.startswith("  ")]
            self.assertEqual(line["instructions"], len(body), name)
            self.assertEqual(line["loads"], sum(" = load " in row for row in body), name)
            self.assertEqual(line["stores"], sum(row.startswith("  store ") for row in body), name)

        total, = [line for line in lines if line["what"] == "total"]
        self.assertEqual((total["function"], total["functions"]), ("(all)", 3))
        for what in ("instructions", "loads", "stores"):
            self.assertEqual(total[what], sum(line[what] for line in counted.values()), what)

    def test_a_function_without_a_hint_had_one_more_instruction(self):
        self.write("bare.c", "struct n { struct n *next; int x; };\n"
                   "int walk(struct n *p, int k) { int s = 0; if (k) while (p) { s += p->x; p = p->next; } return s; }\n"
                   "int find(int *p, int x) { while (*p != x) { if (*p == -x) return 1; ++p; } return 0; }\n")
        for level in ("-O1", "-O2", "-O3"):
            said = self.run_well(self.farcc, level, "-ffar-report", "-c", "bare.c").stderr
            self.assertNotIn("hinted:", said)
            sizes = re.findall(r"size: instructions; (\d+) before, (\d+) after", said)
            self.assertEqual(len(sizes), 2, said)
            for before, after in sizes:
                self.assertEqual(before, after, said)

    def test_what_is_executed(self):
        self.write("turns.c", "int work(volatile int *p, int n) { for (int i = 0; i < n; i++) *p = *p + 1; return *p; }\n"
                   "int main(void) { int x = 0; work(&x, 10); return work(&x, 20) != 30; }\n")
        self.compile("-O1", "-fno-inline", "-ffar=count", "-ffar-count=executed", "turns.c", "-o", "turns")
        heard = self.run_well(self.folder / "turns").stderr
        # 30 turns load and store; each of the two calls loads once more.
        self.assertRegex(heard, r"farheap counted work: 2 calls, \d+ instructions, 32 loads, 30 stores\n")
        self.assertRegex(heard, r"farheap counted \(all\): 3 calls, ")
        self.assertEqual(self.run_well(self.folder / "turns", FARCC_COUNTS=str(self.folder / "counts")).stderr, "")
        self.assertEqual((self.folder / "counts").read_text(encoding="utf-8"), heard)
        lost = self.run_well(self.folder / "turns", FARCC_COUNTS=str(self.folder / "no" / "counts")).stderr
        self.assertIn("FARCC_COUNTS: No such file", lost)
        self.assertTrue(lost.endswith(heard), lost)

    def test_only_and_leave(self):
        self.compile("-O2", "-ffar-only=f*,other", "program.c", "-o", "program")
        self.check_program("program", told="told 3000000 2\n")
        self.compile("-O2", "-ffar-leave=program.c", "program.c", "-o", "program")
        self.check_program("program", told="")
        self.write("program.c", PROGRAM.replace("((noinline)) void", '((noinline, annotate("farheap_leave"))) void'))
        self.compile("-O2", "program.c", "-o", "program")
        self.check_program("program", told="told 3000000 1\n")

    def test_threshold(self):
        self.compile("-O1", "-ffar-threshold=500", "program.c", "-o", "program")
        self.check_program("program", told=TOLD + "told 1000 2\ntold 1000 1\n")

    def test_report(self):
        done = self.run_well(self.farcc, "-O1", "-g", "-ffar-report", "-c", "program.c")
        self.assertIn("program.c:4: fill: hinted: writes, stride 1; 1 accesses\n", done.stderr)
        self.assertRegex(done.stderr, r"program.c:4: fill: size: instructions; \d+ before, \d+ after\n")
        self.compile("-O1", "-c", "program.c", FARCC_REPORT=str(self.folder / "report"))
        self.assertIn("fill: hinted: writes", (self.folder / "report").read_text(encoding="utf-8"))

    def test_a_report_that_cannot_be_written_is_an_error(self):
        self.assertIn("cannot write to '/nowhere/report'",
                      self.fails(self.farcc, "-O1", "-ffar-report=/nowhere/report", "-c", "program.c"))


class Choosing(Case):
    def copy(self, *plugins):
        """farcc in a folder of its own, with files that stand for passes."""
        folder = self.folder / "bin"
        folder.mkdir()
        shutil.copy(self.farcc, folder / "farcc")
        for name, path in plugins:
            if path is None:
                (folder / name).write_text("no library\n", encoding="utf-8")
            else:
                shutil.copy(path, folder / name)
        return folder / "farcc"

    def clang_of(self, version):
        program = self.write("someclang", f"#!/bin/sh\necho {version}\n")
        program.chmod(0o755)
        return str(program)

    def test_no_passes(self):
        heard = self.fails(self.copy(), "-c", "program.c")
        self.assertIn("cannot find the passes", heard)
        self.assertIn("llvm-19-dev", heard)

    def test_no_clang_for_the_passes(self):
        heard = self.fails(self.copy(("farheap-passes-77.so", None)), "-c", "program.c", FARCC_CLANG=None,
                           PATH=str(self.folder))
        self.assertIn("apt install clang-77", heard)

    def test_a_clang_without_passes(self):
        heard = self.fails(self.farcc, "-c", "program.c", FARCC_CLANG=self.clang_of("Some clang version 14.0.6"))
        self.assertIn("it is version 14", heard)
        self.assertRegex(heard, r"apt install clang-\d\d")

    def test_what_is_no_clang(self):
        self.assertIn("there is no such program", self.fails(self.farcc, "-c", "program.c", FARCC_CLANG="nowhere/clang"))
        for options in ((), ("-ffar=none",)):
            heard = self.fails(self.farcc, *options, "-c", "program.c", FARCC_CLANG=self.clang_of("gcc 12.2.0"))
            self.assertIn("it is no clang: to --version it answers 'gcc 12.2.0'; name a clang", heard)
        self.assertIn("does not answer", self.fails(self.farcc, "-c", "program.c", FARCC_CLANG=self.clang_of("")))

    def test_gcc_was_taken_for_a_clang_of_its_version(self):
        program = self.folder / "gcc-19"
        program.write_text("#!/bin/sh\necho 'gcc-19 (Debian) 19.2.0'\n", encoding="utf-8")
        program.chmod(0o755)
        self.assertIn("it is no clang", self.fails(self.farcc, "-c", "program.c", FARCC_CLANG=str(program)))

    def test_passes_of_another_version_are_refused_by_clang(self):
        plugin = GIVEN.farcc.parent / f"farheap-passes-{GIVEN.major}.so"
        others = [major for major in ("19", "22") if major != GIVEN.major and shutil.which(f"clang-{major}")]
        if not others:
            self.skipTest("there is one clang only")
        farcc = self.copy((f"farheap-passes-{others[0]}.so", plugin))
        self.assertIn("unable to load plugin",
                      self.fails(farcc, "-c", "program.c", FARCC_CLANG=shutil.which(f"clang-{others[0]}")))

    def test_what_is_no_library_is_refused_by_clang(self):
        farcc = self.copy((f"farheap-passes-{GIVEN.major}.so", None))
        self.assertIn("unable to load plugin", self.fails(farcc, "-c", "program.c"))

    def test_level_none_needs_no_passes(self):
        self.run_well(self.copy(), "-ffar=none", "-c", "program.c")


class Front(Case):
    def test_help_begins_with_an_example(self):
        self.assertTrue(self.compile("--help").startswith("Examples:\n  farcc -O2 -c "))

    def test_help_names_all_that_there_is(self):
        said = self.compile("--help")
        for name in ("hint", "guard", "translate-heap", "translate-all", "count", "none"):
            self.assertRegex(said, rf"(?m)^      {name} ")
        for name in ("report", "only", "leave", "borrow", "stack", "globals", "threshold", "count", "guard", "print"):
            self.assertIn(f"  -ffar-{name}", said)
        for name in ("FARCC_LEVEL", "FARCC_REPORT", "FARCC_CLANG", "FARCC_LAUNCHER", "FARCC_GUARDS", "FARCC_COUNTS",
                     "FARHEAP_FAR_STORE", "FARHEAP_FAR_MODE", "FARHEAP_FAR_CACHE"):
            self.assertIn(name, said)
        self.assertLessEqual(max(map(len, said.splitlines())), 120)
        # `clang --help` was named where only clang-19 is.
        self.assertTrue(said.endswith(f"\n{GIVEN.clang} --help lists clang's options.\n"), said[-200:])

    def test_bare(self):
        for words in ((), ("-ffar=guard",)):
            said = self.fails(self.farcc, *words)
            self.assertEqual(said, "farcc: no input files: name a source, as in `farcc -O2 -c simulation.c`; "
                                   "`farcc --help` says what it adds to clang\n")

    def test_print_runs_nothing(self):
        printed = self.compile("-ffar-print", "-O2", "-DTEXT=it's", "-c", "program.c")
        self.assertIn(r"'-DTEXT=it'\''s' -c program.c", printed)
        self.assertFalse((self.folder / "program.o").exists())
        self.run_well("sh", "-c", printed)
        self.assertTrue((self.folder / "program.o").exists())

    def test_status_and_messages_are_those_of_clang(self):
        self.write("wrong.c", "int main(void) { return x; }\n")
        done = self.start(GIVEN.clang, "-c", "wrong.c")
        self.assertEqual(self.fails(self.farcc, "-c", "wrong.c", status=done.returncode), done.stderr)

    def test_questions_to_clang(self):
        for question in ("--version", "-dumpversion", "-dumpmachine", "-print-search-dirs"):
            self.assertEqual(self.compile(question), self.run_well(GIVEN.clang, question).stdout)

    def test_make(self):
        if shutil.which("make") is None:
            self.skipTest("there is no make")
        self.run_well("make", "-s", f"CC={self.farcc}", "CFLAGS=-O2", "program")
        self.check_program("program")


class Ccache(Case):
    def setUp(self):
        super().setUp()
        if shutil.which("ccache") is None:
            self.skipTest("there is no ccache")
        self.settings = {"CCACHE_DIR": str(self.folder / "cache"), "CCACHE_LOGFILE": str(self.folder / "log"),
                         "CCACHE_DISABLE": None}

    def hits(self):
        text = (self.folder / "log").read_text(encoding="utf-8")
        return len(re.findall(r"Result: (?:direct|preprocessed)_cache_hit", text))

    def build(self, *words, launcher=(), **environment):
        self.run_well(*launcher, self.farcc, "-O2", *words, "-c", "program.c", "-o", "program.o", **self.settings,
                      **environment)
        self.run_well(GIVEN.cc, "program.o", "-o", "program")

    def check_both_levels(self, **how):
        for hits_before in (0, 2):
            self.build(**how)
            self.check_program("program")
            self.build("-ffar=none", **how)
            self.check_program("program", told="")
            self.assertEqual(self.hits(), hits_before)

    def test_in_front(self):
        self.check_both_levels(launcher=("ccache",))

    def test_behind(self):
        self.check_both_levels(FARCC_LAUNCHER="ccache")

    def test_behind_it_knows_the_environment(self):
        for _ in range(2):
            self.build(FARCC_LAUNCHER="ccache")
            self.check_program("program")
            self.build(FARCC_LAUNCHER="ccache", FARCC_LEVEL="none")
            self.check_program("program", told="")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("farcc", "clang", "cc"):
        parser.add_argument(f"--{name}", required=True, type=pathlib.Path)
    parser.add_argument("--major", required=True)
    _, rest = parser.parse_known_args(namespace=GIVEN)
    GIVEN.farcc = GIVEN.farcc.absolute()
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
