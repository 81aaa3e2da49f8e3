#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs whose heap is translated do what they do when clang compiles them; and what cannot be is said in words.

  translate_test.py --farcc FILE --clang FILE --lmdb ON|OFF [--tool FILE] [--store URI] [Class[.test]]...

Mode cached needs what `farheap run` needs; with --store its tests use this store instead of those of this machine.
"""

import argparse
import itertools
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import unittest

GIVEN = argparse.Namespace()
PROGRAMS = pathlib.Path(__file__).resolve().parent / "translated"
LEVEL = "-ffar=translate-heap"
EVERYWHERE = (("-ffar=translate-all",), (LEVEL, "-ffar-globals"), (LEVEL, "-ffar-stack"))
CACHE = "32M"  # the least
FAILED = 74  # the runtime's status where the store fails


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="farcc-translate-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return path

    def start(self, *words, **environment):
        everything = {**os.environ, "FARCC_CLANG": str(GIVEN.clang), **environment}
        for key in ("FARCC_LEVEL", "FARCC_REPORT", "FARCC_LAUNCHER", "FARHEAP_FAR_STORE", "FARHEAP_FAR_MODE",
                    "FARHEAP_FAR_CACHE"):
            if key not in environment:
                everything.pop(key, None)
        return subprocess.run([str(word) for word in words], cwd=self.folder, env=everything, check=False, text=True,
                              input="", stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)

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


class SameOutput(Case):
    def check(self, source, *arguments, options=()):
        for optimised in ("-O0", "-O2"):
            words = [*(["-lm"] if source.endswith(".c") else ["-std=c++20"]), "-pthread", *options, optimised]
            self.clang(PROGRAMS / source, *words, "-o", "plain")
            self.farcc("-w", LEVEL, PROGRAMS / source, *words, "-o", "translated")
            for values in arguments or ((),):
                expected = self.run_well(self.folder / "plain", *values).stdout
                self.assertNotEqual(expected, "")
                for store, mode in self.modes():
                    with self.subTest(optimised, store=store, mode=mode, values=values):
                        done = self.run_well(self.folder / "translated", *values, FARHEAP_FAR_STORE=store,
                                             FARHEAP_FAR_MODE=mode)
                        self.assertEqual((done.stdout, done.stderr), (expected, ""))

    def test_the_seeds_matrices(self):
        self.check("seed_matrices.c")

    def test_the_seeds_threads(self):
        self.check("seed_threads.c")

    def test_kinds_of_values(self):
        self.check("kinds.c")

    def test_strings(self):
        self.check("strings.c")

    def test_structures(self):
        self.check("structures.c", ("1",), ("2",))

    def test_objects(self):
        self.check("objects.cpp")

    def test_at_other_levels_of_optimisation(self):
        for source, options in itertools.product(("kinds.c", "structures.c"), ("-O1", "-O3", "-Os")):
            self.clang(PROGRAMS / source, options, "-o", "plain")
            self.farcc("-w", LEVEL, PROGRAMS / source, options, "-g", "-o", "translated")
            self.assertEqual(self.run_well(self.folder / "translated").stdout,
                             self.run_well(self.folder / "plain").stdout)

    def test_at_link_time(self):
        if not GIVEN.clang.resolve().with_name("ld.lld").exists():
            self.skipTest("there is no lld beside clang")
        self.clang(PROGRAMS / "structures.c", "-O2", "-o", "plain")
        for kind in ("-flto", "-flto=thin"):
            self.farcc("-w", LEVEL, PROGRAMS / "structures.c", "-O2", kind, "-fuse-ld=lld", "-o", "translated")
            self.assertEqual(self.run_well(self.folder / "translated").stdout,
                             self.run_well(self.folder / "plain").stdout)

    def test_random_structures(self):
        self.farcc("-w", "-O2", LEVEL, PROGRAMS / "structures.c", "-o", "translated")
        self.clang("-O2", PROGRAMS / "structures.c", "-o", "plain")
        for seed in range(10, 40):
            self.assertEqual(self.run_well(self.folder / "translated", seed, FARHEAP_FAR_MODE="cached").stdout,
                             self.run_well(self.folder / "plain", seed).stdout, seed)


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
        done = self.start(self.folder / "program", "look")
        self.assertEqual((done.returncode, done.stdout), (-signal.SIGSEGV, "1 0 42 47 47 4\n"))
        self.assertRegex(done.stderr, "^farheap: cannot touch the variable at .*moved to the far heap.*-ffar-leave=")

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


class Vectors(Case):
    PROGRAM = """
        #include <stdio.h>
        #include <stdlib.h>
        __attribute__((noinline)) int chosen(int *p, int n) { int s = 0; for (int i = 0; i < n; i++) if (p[i] > 4) s += p[i] * i; return s; }
        __attribute__((noinline)) void some(int *p, int *q, int n) { for (int i = 0; i < n; i++) if (p[i] & 2) q[i] += p[i] + i; }
        __attribute__((noinline)) double far(double *t, int *k, int n) { double s = 0; for (int i = 0; i < n; i++) s += t[k[i]]; return s; }
        __attribute__((noinline)) void spread(int *t, int *k, int n) { for (int i = 0; i < n; i++) t[k[i]] = i; }
        int main(void) {
          enum { kCount = 101 };
          int *p = calloc(kCount, sizeof *p), *q = calloc(kCount, sizeof *q), *k = calloc(kCount, sizeof *k);
          double *t = calloc(kCount, sizeof *t);
          for (int i = 0; i < kCount; i++) p[i] = i * 7 % 13, t[i] = i / 4.0, k[i] = i * 31 % 50;
          some(p, q, kCount);
          long sum = 0;
          for (int i = 0; i < kCount; i++) sum = sum * 3 % 100003 + q[i];
          printf("%d %ld %.2f", chosen(p, kCount), sum, far(t, k, kCount));
          spread(q, k, kCount);
          for (int i = 0; i < kCount; i++) sum = sum * 3 % 100003 + q[i];
          printf(" %ld\\n", sum);
        }"""

    def test_masked_accesses(self):
        """What the vectoriser makes of conditions and look-ups where the processor has masked loads and stores."""
        words = ("-O3", "-ffast-math", "-mavx512f", "-mavx512vl", "-mprefer-vector-width=512")
        self.write("program.c", self.PROGRAM)
        # The program is for a processor that may not be here: first that there is something to be split.
        made = self.clang(*words, "-S", "-emit-llvm", "program.c", "-o", "-").stdout
        for name in ("load", "store", "gather"):
            self.assertTrue(f"@llvm.masked.{name}." in made, name)
        made = self.farcc(LEVEL, "-w", *words, "-S", "-emit-llvm", "program.c", "-o", "-").stdout
        self.assertFalse(re.search(r"call .*@llvm\.masked", made))
        self.assertTrue("call void @__farheap_get(" in made)
        if "avx512vl" not in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8"):
            self.skipTest("this processor cannot run it")
        self.clang("-O0", "program.c", "-o", "plain")
        for levels in ((LEVEL,), ("-ffar=translate-all",)):
            self.farcc("-w", *levels, *words, "program.c", "-o", "translated")
            self.assertEqual(self.run_well(self.folder / "translated").stdout, self.run_well(self.folder / "plain").stdout)


class Where(Case):
    def test_the_heap_is_far(self):
        program = self.translated("""
            #include <stdio.h>
            #include <stdlib.h>
            extern struct { size_t begin, bytes; } __farheap_far;
            static char *first;
            __attribute__((constructor)) static void before_main(void) { first = malloc(10); }
            static int is_far(void *p) { return (size_t)p - __farheap_far.begin < __farheap_far.bytes; }
            int main(void) {
              char local;
              int *p = calloc(1, sizeof *p);
              *p = 7;
              printf("%d %d %d %d %d\\n", is_far(first), is_far(p), is_far(&local), is_far(main), *p);
            }""")
        self.assertEqual(self.run_well(program).stdout, "1 1 0 0 7\n")

    def test_in_direct_mode_each_access_reaches_the_store(self):
        """So one of 20,000 meets a store that fails at one call in a thousand, and none of a few dozen does."""
        self.translated(InWords.WRITER)
        store = "faulty+mem:?seed=3&error=0.001"
        self.assertEqual(self.start(self.folder / "program", FARHEAP_FAR_STORE=store).returncode, FAILED)

    def test_a_library_and_its_program_have_one_heap(self):
        self.write("library.c", "#include <stdlib.h>\nlong *make(void) { long *p = malloc(8); *p = 5; return p; }\n")
        self.farcc("-O1", LEVEL, "-shared", "-fPIC", "library.c", "-o", "liblong.so")
        program = self.translated("#include <stdio.h>\n#include <stdlib.h>\nlong *make(void);\n"
                                  "int main(void) { long *p = make(); *p += 2; printf(\"%ld\\n\", *p); free(p); }\n",
                                  "./liblong.so")
        self.assertEqual(self.run_well(program).stdout, "7\n")


class Mixed(Case):
    CALLEE = ("#include <stdlib.h>\nint *made(void) { int *p = malloc(4); *p = 3; return p; }\n"
              "void add(int *p) { *p += 4; }\nstatic int *kept;\nvoid keep(int *p) { kept = p; }\n"
              "int look(void) { return *kept; }\n")
    CALLER = ("#include <stdio.h>\n#include <stdlib.h>\nint *made(void);\nvoid add(int *p);\nvoid keep(int *p);\n"
              "int look(void);\nint main(int argc, char **argv) { int *p = made(), *q = malloc(4); *q = 10;\n"
              "  add(p); free(p); puts(\"theirs\"); fflush(stdout);\n"
              "  if (argc > 1) { keep(q); return look(); }\n  add(q); printf(\"%d\\n\", *q); free(q); }\n")

    def setUp(self):
        super().setUp()
        self.write("callee.c", self.CALLEE)
        self.clang("-O1", "-c", "callee.c")

    def test_memory_of_code_that_is_not_translated(self):
        """It stays local, goes back to whom it came from, and far memory that is handed over is a fault with words."""
        done = self.start(self.translated(self.CALLER, "callee.o"))
        self.assertEqual(done.stdout, "theirs\n")
        self.assertEqual(done.returncode, -signal.SIGSEGV)
        self.assertRegex(done.stderr, r"farheap: cannot touch far memory at 0x\w+: .*was not translated.*-ffar-borrow=")

    def test_a_function_that_borrows(self):
        program = self.translated(self.CALLER, "callee.o", "-ffar-borrow=add,keep")
        self.assertEqual(self.run_well(program).stdout, "theirs\n14\n")

    def test_a_function_that_keeps_what_it_borrowed(self):
        done = self.start(self.translated(self.CALLER, "callee.o", "-ffar-borrow=add,keep"), "keep")
        self.assertEqual(done.returncode, -signal.SIGSEGV)
        self.assertIn("farheap: cannot touch what was lent", done.stderr)

    def test_all_translated(self):
        self.farcc("-O1", LEVEL, "-c", "callee.c")
        program = self.translated(self.CALLER, "callee.o")
        self.assertEqual(self.run_well(program).stdout, "theirs\n14\n")
        self.assertEqual(self.start(program, "keep").returncode, 10)

    def test_what_is_left_out_is_not_translated(self):
        program = self.translated("#include <stdlib.h>\nint *p;\n__attribute__((noinline)) void touch(void) { *p = 1; }\n"
                                  "int main(void) { p = malloc(4); touch(); return *p - 1; }\n", "-ffar-leave=touch")
        done = self.start(program)
        self.assertEqual(done.returncode, -signal.SIGSEGV)
        self.assertIn("was not translated", done.stderr)


class InWords(Case):
    WRITER = ("#include <stdio.h>\n#include <stdlib.h>\nint main(void) { long sum = 0, *p = malloc(80000);\n"
              "  for (int i = 0; i < 10000; i++) p[i] = i;\n  for (int i = 0; i < 10000; i++) sum += p[i];\n"
              "  printf(\"%ld\\n\", sum); }\n")

    def check_failure(self, words, **environment):
        done = self.start(self.folder / "program", **environment)
        self.assertEqual(done.returncode, FAILED, done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertRegex(done.stderr, f"^farheap: the translated program ends: .*{words}")

    def test_a_store_that_fails_in_the_middle(self):
        self.translated(self.WRITER)
        self.assertEqual(self.run_well(self.folder / "program").stdout, "49995000\n")
        self.check_failure("faulty", FARHEAP_FAR_STORE="faulty+mem:?seed=3&error=0.01")

    def test_what_is_wrong_in_the_environment(self):
        self.translated(self.WRITER)
        self.check_failure("nothing-such", FARHEAP_FAR_STORE="nothing-such:")
        self.check_failure("say direct or cached", FARHEAP_FAR_MODE="both")

    def test_a_forked_child(self):
        program = self.translated("""
            #include <stdio.h>
            #include <stdlib.h>
            #include <sys/wait.h>
            #include <unistd.h>
            int main(void) {
              volatile int *p = malloc(4);
              int status;
              *p = 1;
              if (fork() == 0) {
                char *own = malloc(10);
                own[0] = 'x';
                free(own);
                fprintf(stderr, "its own\\n");
                *p = 2;
                return 0;
              }
              wait(&status);
              printf("%d %d\\n", WEXITSTATUS(status), *p);
            }""")
        done = self.run_well(program)
        self.assertEqual(done.stdout, f"{FAILED} 1\n")
        self.assertRegex(done.stderr, "its own\nfarheap: .* a forked child: .*use threads")

    def test_threads_that_outlive_main(self):
        program = self.translated("""
            #include <pthread.h>
            #include <stdlib.h>
            static void *turn(void *arg) { volatile long *p = arg; for (;;) ++*p; }
            int main(void) {
              pthread_t thread;
              volatile long *p = calloc(1, sizeof *p);
              pthread_create(&thread, NULL, turn, (void *)p);
              while (*p < 100) {}
              return 0;
            }""", "-pthread")
        self.assertEqual(self.run_well(program).stderr, "")

    def test_refused_when_compiling(self):
        self.write("assembly.c", "void f(int *p) {\n  __asm__ volatile(\"movl $1, (%0)\" :: \"r\"(p) : \"memory\");\n}\n")
        done = self.start(GIVEN.farcc, "-g1", LEVEL, "-c", "assembly.c")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"cannot translate: f, assembly.c:2: inline assembly .*; leave the function out")

    def test_refused_options(self):
        self.write("program.c", self.WRITER)
        for option, words in (("-static", "link dynamically"), ("-fsanitize=address", "-ffar=hint or none")):
            done = self.start(GIVEN.farcc, LEVEL, option, "program.c", "-o", "program")
            self.assertEqual(done.returncode, 1)
            self.assertIn(words, done.stderr)

    def test_the_report(self):
        self.write("program.c", "#include <stdio.h>\nvoid f(char *p, long *q) {\n  puts(p);\n  *q = 1;\n}\n")
        heard = self.farcc("-O1", "-g1", LEVEL, "-ffar-report", "-c", "program.c").stderr
        self.assertIn("program.c:3: f: borrowed: for puts; 1 pointers\n", heard)
        self.assertIn("f: translated: 0 loads, 1 stores, 0 atomics, 0 copies\n", heard)

    def test_without_the_runtime(self):
        (self.folder / "bin").mkdir()
        for file in (GIVEN.farcc, *GIVEN.farcc.parent.glob("farheap-passes-*.so")):
            (self.folder / "bin" / file.name).write_bytes(file.read_bytes())
        (self.folder / "bin" / "farcc").chmod(0o755)
        self.write("program.c", self.WRITER)
        done = self.start(self.folder / "bin" / "farcc", LEVEL, "program.c", "-o", "program")
        self.assertEqual(done.returncode, 1)
        self.assertIn("libfarheap-translate.so", done.stderr)
        self.run_well(self.folder / "bin" / "farcc", LEVEL, "-c", "program.c")


class Cached(Case):
    """Through the pager: no address is far, and what was not translated is served by faults."""
    WHERE = ("#include <stdio.h>\n#include <stdlib.h>\nextern struct { size_t begin, bytes; } __farheap_far;\n"
             "int farheap_active(void) __attribute__((weak));\nvoid __farheap_flush(void);\n"
             "char *p;\nint main(int argc, char **argv) { p = malloc(100); p[1] = 7; if (argc > 1) __farheap_flush();\n"
             "  printf(\"%d %d\\n\", __farheap_far.bytes != 0, farheap_active != NULL ? farheap_active() : -1);\n"
             "  fflush(stdout); if (argc > 2) return system(argv[2]); }\n")

    def start_cached(self, *words, **environment):
        return self.start(*words, **{"FARHEAP_FAR_MODE": "cached", "FARHEAP_FAR_CACHE": CACHE, **environment})

    def check_refused(self, program, words, **environment):
        done = self.start_cached(program, **environment)
        self.assertEqual((done.returncode, done.stdout), (FAILED, ""), done.stderr)
        self.assertRegex(done.stderr, f"^farheap: the translated program ends: .*{words}")

    def test_what_far_addresses_do_not_do(self):
        """Forks where the store goes on in a child."""
        words = ["-w", "-std=c++20", "-O1", "-pthread", PROGRAMS / "whole.cpp"]
        self.clang(*words, "-o", "plain")
        self.farcc(*words, LEVEL, "-o", "translated")
        more_than_memory = 60
        for store, entries in itertools.product(self.stores(), (3, more_than_memory)):
            forks = ["forks"] if store.startswith(("mem:", "file:")) and entries != more_than_memory else []
            arguments = [entries, *forks]
            with self.subTest(store=store, arguments=arguments):
                expected = self.run_well(self.folder / "plain", *arguments).stdout
                done = self.start_cached(self.folder / "translated", *arguments, FARHEAP_FAR_STORE=store,
                                         FARHEAP_LOG="info")
                self.assertEqual((done.returncode, done.stdout), (0, expected), done.stderr)
                self.assertRegex(done.stderr, r"^farheap: process \d+ is near its budget: pages go to .*\n$")

    def test_a_flush_reaches_the_store(self):
        program = self.translated(self.WHERE)
        done = self.start_cached(program, "flush")
        self.assertEqual((done.stdout, done.stderr), ("0 1\n", ""))
        self.assertEqual(self.start_cached(program).stdout, "0 0\n")
        # A store that fails is not noticed before something is written to it.
        store = "faulty+mem:?error=1"
        self.assertEqual(self.start_cached(program, FARHEAP_FAR_STORE=store).stdout, "0 0\n")
        done = self.start_cached(program, "flush", FARHEAP_FAR_STORE=store)
        self.assertEqual((done.returncode, done.stdout), (FAILED, ""))
        self.assertRegex(done.stderr, "farheap: the translated program ends: cannot write the heap to its store: .*faulty")

    def test_what_the_program_starts_is_as_it_was(self):
        program = self.translated(self.WHERE)
        names = "env | grep -cE '^(LD_PRELOAD|FARHEAP_STORE|FARHEAP_MEMORY|FARHEAP_FOLLOW_EXEC|FARHEAP_FAR_ANEW)='"
        done = self.start_cached(program, "flush", names)
        self.assertEqual(done.stdout, "0 1\n0\n")
        done = self.start_cached(program, "flush", f"{program}")  # translated, too, it begins in its own way
        self.assertEqual(done.stdout, "0 1\n0 0\n")
        done = self.start_cached(program, "flush", names, FARHEAP_FOLLOW_EXEC="on")
        self.assertEqual(done.stdout, "0 1\n4\n")

    def test_the_process_keeps_its_name(self):
        program = self.translated("#include <stdio.h>\n#include <sys/prctl.h>\nint main(int argc, char **argv) {\n"
                                  "  char name[16]; prctl(PR_GET_NAME, name); printf(\"%s %d\\n\", name, argc); }\n")
        self.assertEqual(self.start_cached(program, "a", "b").stdout, "program 3\n")

    def test_refused(self):
        program = self.translated(self.WHERE)
        self.check_refused(program, "FARHEAP_FAR_CACHE=31M: .*at least 32.0 MiB; say 32M or more", FARHEAP_FAR_CACHE="31M")
        self.check_refused(program, "FARHEAP_FAR_CACHE=much: ", FARHEAP_FAR_CACHE="much")
        self.check_refused(program, "nothing-such", FARHEAP_FAR_STORE="nothing-such:")
        self.check_refused(program, "/dev/null", FARHEAP_FAR_STORE="file:/dev/null/heap")
        self.check_refused(program, "/nowhere: the preload library is not there; .*FARHEAP_PRELOAD",
                           FARHEAP_PRELOAD="/nowhere")
        # A loader that loads nothing must not make the program begin for ever.
        self.check_refused(program, "the loader did not load this library", FARHEAP_FAR_ANEW="own")
        self.check_refused(program, "FARHEAP_LOG=loud", FARHEAP_LOG="loud")

    def test_a_program_with_rights_of_others(self):
        if os.geteuid() != 0:
            self.skipTest("only root can make one")
        program = self.translated(self.WHERE)
        os.chown(program, 1, 1)
        program.chmod(0o4755)
        self.folder.chmod(0o755)
        self.check_refused(program, "rights of another user.*FARHEAP_FAR_MODE=direct")

    def test_a_library_that_comes_later(self):
        """It must not make its program begin anew in the middle."""
        self.write("library.c", "#include <stdlib.h>\nlong *make(void) { long *p = malloc(8); *p = 5; return p; }\n")
        self.farcc("-O1", LEVEL, "-shared", "-fPIC", "library.c", "-o", "liblong.so")
        self.write("program.c", "#include <dlfcn.h>\n#include <stdio.h>\nint main(void) { puts(\"begun\"); fflush(stdout);\n"
                                "  return dlopen(\"./liblong.so\", RTLD_NOW) == NULL; }\n")
        self.clang("program.c", "-o", "program")
        done = self.start_cached(self.folder / "program")
        self.assertEqual((done.returncode, done.stdout), (FAILED, "begun\n"))
        self.assertIn("a library of the program was translated, and the program itself was not", done.stderr)
        self.assertEqual(self.start(self.folder / "program").returncode, 0)

    def test_in_a_run(self):
        """There cached is what there is; whoever says direct gets it."""
        if GIVEN.tool is None:
            self.skipTest("there is no tool")
        program = self.translated(self.WHERE)
        run = [GIVEN.tool, "run", "--quiet", "--memory", CACHE, "--store", f"file:{self.folder}", "--", program, "flush"]
        self.assertEqual(self.run_well(*run).stdout, "0 1\n")
        self.assertEqual(self.run_well(*run, FARHEAP_FAR_MODE="cached").stdout, "0 1\n")
        # (What the far heap's own code allocates may be paged there.)
        self.assertRegex(self.run_well(*run, FARHEAP_FAR_MODE="direct").stdout, "^1 ")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("farcc", "clang"):
        parser.add_argument(f"--{name}", required=True, type=pathlib.Path)
    parser.add_argument("--lmdb", required=True, choices=("ON", "OFF"))
    parser.add_argument("--tool", type=pathlib.Path)
    parser.add_argument("--store")
    _, rest = parser.parse_known_args(namespace=GIVEN)
    GIVEN.farcc = GIVEN.farcc.absolute()
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
