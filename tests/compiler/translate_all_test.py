#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The stack and global variables in the far heap, too: -ffar=translate-all, -ffar-stack, -ffar-globals."""

import signal

from translate_case import GIVEN, LEVEL, PROGRAMS, Case, main

EVERYWHERE = (("-ffar=translate-all",), (LEVEL, "-ffar-globals"), (LEVEL, "-ffar-stack"))


class Everywhere(Case):
    """The stack and global variables, too."""

    def check(self, source, *options, modes=("direct",)):
        words = ["-lm", "-pthread"] if source.endswith(".c") else ["-std=c++20", "-pthread"]
        for optimised in ("-O0", "-O2"):
            self.clang(PROGRAMS / source, *words, optimised, *options, "-o", "plain")
            expected = self.run_well(self.folder / "plain").stdout
            for levels in EVERYWHERE:
                self.farcc("-w", *levels, PROGRAMS / source, *words, optimised, *options, "-o", "translated")
                for mode in modes:
                    with self.subTest(optimised, levels=levels, mode=mode):
                        done = self.run_well(self.folder / "translated", FARHEAP_FAR_MODE=mode)
                        self.assertEqual((done.stdout, done.stderr), (expected, ""))

    def test_programs(self):
        for source in ("seed_matrices.c", "seed_threads.c", "kinds.c", "strings.c", "objects.cpp"):
            self.check(source)

    def test_all_kinds_of_variables(self):
        self.check("everywhere.c", modes=("direct", "cached"))

    def test_without_position_independence(self):
        self.check("everywhere.c", "-fno-pie", "-no-pie")

    def test_exceptions(self):
        self.check("unwinding.cpp")

    def test_at_link_time(self):
        if not GIVEN.clang.resolve().with_name("ld.lld").exists():
            self.skipTest("there is no lld beside clang")
        for kind in ("-flto", "-flto=thin"):
            self.check("everywhere.c", kind, "-fuse-ld=lld")

    FAR = ("#include <stddef.h>\nextern struct { size_t begin, bytes; } __farheap_far;\n"
           "static int is_far(const volatile void *p) { return (size_t)p - __farheap_far.begin < __farheap_far.bytes; }\n"
           "#include <pthread.h>\n#include <stdio.h>\n#include <stdlib.h>\n")

    def far(self, name, text, *options, level="-ffar=translate-all"):
        self.write(f"{name}.c", self.FAR + text)
        self.farcc("-O1", "-w", level, f"{name}.c", *options)

    def test_what_is_far(self):
        text = """
            int known; static int own; const int constant = 3; __thread int of_thread; static pthread_mutex_t lock;
            int *const address = &known;
            __attribute__((section("mine"))) int in_section; int left;
            int main(int argc, char **argv) {
              volatile int local = 1; int many[argc + 2]; pthread_mutex_t locked;
              many[argc] = local;
              pthread_mutex_lock(&lock);
              pthread_mutex_init(&locked, NULL);
              own = argc;
              printf("%d %d %d %d %d %d, %d %d %d %d %d %d %d %d\\n", is_far(&known), is_far(&own), is_far(address),
                     is_far(&local), is_far(many), many[1], is_far(&constant), is_far(&of_thread), is_far(&lock),
                     is_far(&in_section), is_far(&left), is_far(&locked), is_far(argv), is_far(stdout));
            }"""
        self.far("all", text, "-ffar-leave=left", "-o", "all")
        self.assertEqual(self.run_well(self.folder / "all").stdout, "1 1 1 1 1 1, 0 0 0 0 0 0 0 0\n")
        self.far("globals", text, "-ffar-leave=left", "-ffar-globals", "-o", "globals", level=LEVEL)
        self.assertEqual(self.run_well(self.folder / "globals").stdout, "1 1 1 0 0 1, 0 0 0 0 0 0 0 0\n")
        self.far("stack", text, "-ffar-stack", "-o", "stack", level=LEVEL)
        self.assertEqual(self.run_well(self.folder / "stack").stdout, "0 0 0 1 1 1, 0 0 0 0 0 0 0 0\n")

    USER = """
        extern int known; extern int *inside; extern long theirs; extern int never;
        int *const address = &known; static long *const of_theirs = &theirs;
        int add(int); int look(void);
        int main(int argc, char **argv) {
          known += 2; theirs += 3;
          printf("%d %d %d %d %d %d\\n", is_far(&known), is_far(&theirs), *address, add(5), *inside, (int)*of_theirs);
          fflush(stdout);
          return argc > 1 ? look() : 0;
        }"""
    OWNER = "int known = 40; int *inside = &known; int add(int by) { return known += by; }\n"
    THEIRS = "long theirs = 1; extern int known __attribute__((weak)); int look(void) { return known; }\n"

    def check_modules(self, *link):
        self.write("theirs.c", self.THEIRS)
        self.clang("-O1", "-fPIC", "-c", "theirs.c")
        self.far("user", self.USER, "-c")
        self.farcc("-ffar=translate-all", "user.o", "theirs.o", *link, "-o", "program")
        self.assertEqual(self.run_well(self.folder / "program").stdout, "1 0 42 47 47 4\n")
        for mode, far in (("direct", 1), ("cached", 0)):
            with self.subTest(mode):
                done = self.start(self.folder / "program", "look", FARHEAP_FAR_MODE=mode)
                self.assertEqual((done.returncode, done.stdout), (-signal.SIGSEGV, f"{far} 0 42 47 47 4\n"))
                self.assertRegex(done.stderr,
                                 "^farheap: cannot touch the variable at .*moved to the far heap.*-ffar-leave=")

    def test_modules_of_a_program(self):
        """Code that was not translated sees no second value of a variable."""
        self.far("owner", self.OWNER, "-c")
        self.check_modules("owner.o")

    def test_an_archive(self):
        self.far("owner", self.OWNER.replace("int add", "int unused"), "-c")
        self.far("adder", "extern int known; int add(int by) { return known += by; }", "-c")
        self.run_well("ar", "rcs", "libowner.a", "owner.o", "adder.o")
        self.check_modules("libowner.a")

    def test_a_library(self):
        self.far("owner", self.OWNER, "-fPIC", "-shared", "-o", "libowner.so")
        self.check_modules("./libowner.so", "-Wl,-rpath,$ORIGIN")

    def test_a_library_with_a_program_that_is_not_translated(self):
        """The linker may have copied the variable into the program: it stays there for both."""
        self.far("owner", self.OWNER, "-fPIC", "-shared", "-o", "libowner.so")
        self.write("plain.c", "#include <stdio.h>\nextern int known; int add(int);\n"
                              "int main(void) { known++; printf(\"%d %d\\n\", add(1), known); return 0; }\n")
        self.clang("-O1", "-fno-pie", "-no-pie", "plain.c", "./libowner.so", "-Wl,-rpath,$ORIGIN", "-o", "plain")
        self.assertEqual(self.run_well(self.folder / "plain").stdout, "42 42\n")

    def test_the_report(self):
        self.write("program.c", "#include <pthread.h>\nvoid unknown(int *p);\nint far = 1;\nstatic pthread_mutex_t m;\n"
                                "int given;\nint f(int n) {\n  volatile int a[9];\n  int b;\n  a[n] = far;\n  unknown(&b);\n"
                                "  unknown(&given);\n  pthread_mutex_lock(&m);\n  return a[2] + b;\n}\n")
        heard = self.farcc("-O1", "-g1", "-ffar=translate-all", "-ffar-report", "-c", "program.c").stderr
        self.assertIn(" far: far: 4 bytes\n", heard)
        self.assertIn(" given: local: its address goes to unknown\n", heard)
        self.assertRegex(heard, " m: local: it is of a library's type")
        self.assertRegex(heard, "f: local: .*stays on the stack: its address goes to unknown\n")
        self.assertIn("f: far stack: 1 variables, 36 bytes\n", heard)

    def test_a_stack_that_ends(self):
        program = self.translated("int down(int n) { volatile char a[4000]; a[0] = 1; return n ? down(n - 1) + a[0] : 0; }\n"
                                  "#include <stdio.h>\nint main(void) { printf(\"%d\\n\", down(500)); }\n", "-ffar-stack")
        self.assertEqual(self.run_well(program).stdout, "500\n")

    def test_options_that_need_a_translated_heap(self):
        self.write("program.c", "int main(void) { return 0; }\n")
        for option in ("-ffar-stack", "-ffar-globals"):
            done = self.start(GIVEN.farcc, option, "-c", "program.c")
            self.assertEqual(done.returncode, 2)
            self.assertIn(f"{option}: without a translated heap nothing can be in it; add -ffar=translate-heap", done.stderr)


if __name__ == "__main__":
    main(__doc__)
