#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs whose heap is translated do what they do when clang compiles them; and what cannot be is said in words."""

import itertools
import pathlib
import re
import shutil
import signal

from translate_case import FAILED, GIVEN, LEVEL, PROGRAMS, Case, main


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

    def test_code_that_runs_before_all_else(self):
        program = self.translated("""
            #include <stdio.h>
            #include <stdlib.h>
            static int *early, *later;
            static void first(void) { early = malloc(40); for (int i = 0; i < 10; i++) early[i] = i; }
            __attribute__((section(".preinit_array"), used)) static void (*const at_first)(void) = first;
            __attribute__((constructor(101))) static void second(void) { later = malloc(4); *later = early[3]; }
            int main(void) { printf("%d %d\\n", early[9], *later); free(early); free(later); return 0; }""")
        for mode in ("direct", "cached"):
            self.assertEqual(self.run_well(program, FARHEAP_FAR_MODE=mode).stdout, "9 3\n")

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
        self.check_place(done.stderr, "add")

    def test_a_lent_lock_hung_without_a_word(self):
        program = """
            #include <pthread.h>
            #include <stdlib.h>
            int main(void) {
              pthread_mutex_t *lock = malloc(sizeof *lock);
              pthread_mutex_init(lock, NULL);
              pthread_mutex_lock(lock);
              pthread_mutex_unlock(lock);
              pthread_mutex_lock(lock);
            }"""
        self.write("lock.c", program)
        said = self.farcc("-O1", "-pthread", LEVEL, "-ffar-borrow=pthread_*", "lock.c", "-o", "lock").stderr
        self.assertIn("pthread_mutex_init() is lent nothing", said)
        done = self.start("./lock")
        self.assertEqual(done.returncode, -signal.SIGSEGV)
        self.assertIn("with FARHEAP_FAR_MODE=cached it may touch it", done.stderr)
        self.run_well("./lock", FARHEAP_FAR_MODE="cached")

    def check_place(self, said, function):
        """The command that is named there names the function."""
        command = re.search("in a function of .*/program, which `(addr2line -f -e .*)` names", said)
        self.assertIsNotNone(command, said)
        if shutil.which("addr2line") is not None:
            self.assertEqual(self.run_well(*command.group(1).split()).stdout.splitlines()[0], function)

    def test_a_function_at_a_fixed_address(self):
        done = self.start(self.translated(self.CALLER, "callee.o", "-no-pie"))
        self.assertEqual(done.returncode, -signal.SIGSEGV)
        self.check_place(done.stderr, "add")

    def test_threads_that_fault_together_ended_the_program_before_the_words_were_out(self):
        program = self.translated("""
            #include <pthread.h>
            #include <stdlib.h>
            enum { kThreads = 8 };
            static pthread_barrier_t all;
            __attribute__((noinline)) void *touch(void *p) { pthread_barrier_wait(&all); *(volatile int *)p = 1; return p; }
            int main(void) {
              pthread_t threads[kThreads];
              void *p = malloc(4);
              pthread_barrier_init(&all, NULL, kThreads);
              for (int i = 0; i < kThreads; i++) pthread_create(&threads[i], NULL, touch, p);
              for (int i = 0; i < kThreads; i++) pthread_join(threads[i], NULL);
            }""", "-pthread", "-ffar-leave=touch")
        for _ in range(30):
            done = self.start(program)
            self.assertEqual(done.returncode, -signal.SIGSEGV)
            self.assertRegex(done.stderr, r"^farheap: cannot touch far memory at 0x\w+: .* pass pointers as they are\)\n$")

    def test_a_signal_that_somebody_sends(self):
        program = self.translated("#include <signal.h>\n#include <stdlib.h>\nint main(void) { volatile char *p = malloc(4);\n"
                                  "  *p = 1; raise(SIGSEGV); return 0; }\n")
        done = self.start(program)
        self.assertEqual((done.returncode, done.stderr), (-signal.SIGSEGV, ""))

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
        self.check_failure("/dev/null(?!.*--store).*as file:DIR; FARHEAP_FAR_STORE says which",
                           FARHEAP_FAR_STORE="file:/dev/null/heap")
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

    def test_assembly_was_refused_in_mode_cached_too(self):
        self.write("assembly.c", """
            #include <stdio.h>
            #include <stdlib.h>
            void f(int *p) {
              __asm__ volatile("movl $1, (%0)" :: "r"(p) : "memory");
            }
            int main(int argc, char **argv) {
              int *p = argc > 1 ? calloc(1, 4) : &argc;
              f(p);
              printf("%d\\n", *p);
            }""")
        done = self.start(GIVEN.farcc, "-g1", LEVEL, "assembly.c", "-o", "program")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, r"warning: Farheap: not translated: f, assembly.c:5: inline assembly .*-ffar-leave=")
        program = self.folder / "program"
        self.assertEqual(self.run_well(program).stdout, "1\n")  # local memory
        self.assertEqual(self.run_well(program, "far", FARHEAP_FAR_MODE="cached").stdout, "1\n")
        done = self.start(program, "far", FARHEAP_FAR_MODE="direct")
        self.assertEqual(done.returncode, 74)
        self.assertRegex(done.stderr, r"the translated program ends: cannot reach far memory: f, assembly.c:5: inline "
                                      r"assembly .*FARHEAP_FAR_MODE=cached")

    def test_intrinsics_of_x86_were_refused(self):
        if "avx2" not in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8"):
            self.skipTest("this processor has no AVX2")
        self.write("intrinsics.c", """
            #include <immintrin.h>
            #include <stdio.h>
            #include <stdlib.h>
            static void show(const void *data, int n) {
              const unsigned char *p = data;
              unsigned sum = 0;
              for (int i = 0; i < n; i++) sum = sum * 31 + p[i];
              printf("%u\\n", sum);
            }
            int main(void) {
              int *p = malloc(256);
              for (int i = 0; i < 64; i++) p[i] = i * 7919;
              float *f = (float *)p;
              __m128i a = _mm_lddqu_si128((__m128i *)((char *)p + 3));
              __m256i b = _mm256_lddqu_si256((__m256i *)((char *)p + 5));
              __m256i mask = _mm256_setr_epi32(-1, 0, -1, -1, 0, 0, -1, 0);
              __m256 c = _mm256_maskload_ps(f + 1, mask);
              __m128i d = _mm_maskload_epi32(p + 9, _mm256_castsi256_si128(mask));
              _mm256_maskstore_epi32(p + 20, mask, b);
              _mm256_maskstore_pd((double *)(p + 30), mask, _mm256_castps_pd(c));
              _mm_maskmoveu_si128(a, _mm256_castsi256_si128(mask), (char *)(p + 40));
              __m256i e = _mm256_mask_i32gather_epi32(b, p, _mm256_setr_epi32(1, 9, 63, 0, 5, 6, 7, 8), mask, 4);
              __m128 g = _mm256_i64gather_ps(f, _mm256_setr_epi64x(3, 1, 60, 4), 4);
              __m128i h = _mm_i64gather_epi32(p, _mm_set_epi64x(17, 2), 4);
              _mm_clflush(p);
              _mm_stream_si128((__m128i *)(p + 48), a);
              __m128i k = _mm_stream_load_si128((__m128i *)p);
              show(&a, 16); show(&b, 32); show(&c, 32); show(&d, 16); show(&e, 32); show(&g, 16); show(&h, 16); show(&k, 16);
              show(p, 256);
            }""")
        for optimised in ("-O0", "-O2"):
            self.clang(optimised, "-mavx2", "intrinsics.c", "-o", "plain")
            expected = self.run_well(self.folder / "plain").stdout
            for level in (LEVEL, "-ffar=translate-all"):
                self.assertEqual(self.farcc(optimised, "-mavx2", level, "intrinsics.c", "-o", "program").stderr, "")
                for mode in ("direct", "cached"):
                    self.assertEqual(self.run_well(self.folder / "program", FARHEAP_FAR_MODE=mode).stdout, expected,
                                     (optimised, level, mode))

    def test_an_intrinsic_without_a_translation_ends_the_program_by_name(self):
        self.write("state.c", """
            #include <stdio.h>
            #include <stdlib.h>
            #include <immintrin.h>
            int main(void) {
              void *p = aligned_alloc(64, 512);
              _fxsave(p);
              puts("saved");
            }""")
        heard = self.farcc("-mfxsr", "-g1", LEVEL, "state.c", "-o", "program").stderr
        self.assertRegex(heard, r"not translated: main, .*: there is no translation of llvm.x86.fxsave")
        self.assertEqual(self.run_well(self.folder / "program", FARHEAP_FAR_MODE="cached").stdout, "saved\n")
        done = self.start(self.folder / "program", FARHEAP_FAR_MODE="direct")
        self.assertEqual((done.returncode, done.stdout), (74, ""))
        self.assertRegex(done.stderr, r"main, .*: there is no translation of llvm.x86.fxsave; .*-ffar-leave=.*cached")

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
        self.assertRegex(heard, r"program.c: \(all\): total: instructions; \d+ before, \d+ after, 1 functions\n")

    def test_the_report_named_functions_as_the_linker_does_and_those_of_the_runtime(self):
        self.write("program.cpp", "namespace there { void known(const char*); }\n"
                                  "void f(char **p) { there::known(*p); char local[64]; there::known(local); }\n")
        heard = self.run_well(GIVEN.farcc.parent / "far++", "-O1", "-ffar=translate-all", "-ffar-report", "-c",
                              "program.cpp", FARCC_CLANG=str(GIVEN.clang)).stderr
        self.assertIn("passed: pointers, as they are, to there::known(char const*)\n", heard)
        self.assertNotIn("_ZN", heard)
        self.assertNotIn("to __farheap", heard)

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


if __name__ == "__main__":
    main(__doc__)
