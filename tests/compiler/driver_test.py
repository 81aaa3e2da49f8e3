#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""farcc as a compiler: every kind of input and output, and of linking.

  driver_test.py --farcc FILE --clang FILE --major N --cc FILE [Class[.test]]...
"""

import os
import shutil
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from driver_case import Case, GIVEN, OUTPUT, PROGRAM, main  # noqa: E402


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


if __name__ == "__main__":
    main(__doc__)
