#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs of `farcc -ffar=record` that make more contexts than there is room for, while they run: nothing that was
counted is lost, memory stays what it is, what is hot has a context, and the program does what it did.

  record_folded_test.py --farcc FILE --clang FILE --major N --cc FILE --tool FILE [Class[.test]]...
"""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from driver_case import GIVEN, main  # noqa: E402
from record_test import PROGRAMS, TELLS, Heard  # noqa: E402

LITTLE = "1M"

# Functions that call each other in any order, as far down as `depth`.
MANY_PATHS = """
#include <stdio.h>
#include <stdlib.h>
#define FUNCTIONS 32
typedef void any(int);
extern any *const all[FUNCTIONS];
static unsigned long seed = 5, calls;
static unsigned draw(void);
#define DRAW ((unsigned)((seed = seed * 6364136223846793005ul + 1442695040888963407ul) >> 33))
#ifndef VISIT
#define VISIT
#endif
#define F(i) static __attribute__((noinline)) void f##i(int depth) { \\
  calls++; VISIT; if (depth == 0) return; all[DRAW % FUNCTIONS](depth - 1); if (i % 2) all[DRAW % FUNCTIONS](depth - 1); }
F(0) F(1) F(2) F(3) F(4) F(5) F(6) F(7) F(8) F(9) F(10) F(11) F(12) F(13) F(14) F(15)
F(16) F(17) F(18) F(19) F(20) F(21) F(22) F(23) F(24) F(25) F(26) F(27) F(28) F(29) F(30) F(31)
any *const all[FUNCTIONS] = {f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20,
  f21, f22, f23, f24, f25, f26, f27, f28, f29, f30, f31};
""".replace("static unsigned draw(void);\n", "")


class Folded(Heard):
    def run_folded(self, *words, name="recorded", memory=LITTLE):
        """Its output, and its process in the profile, in which contexts were folded."""
        done = self.run_well(self.folder / name, *words, FARCC_CONTEXTS_MEMORY=memory)
        process = self.profile(f"{name}.profile")
        self.assertGreater(process["folded"], 1000)
        return done, process

    def entries(self, process):
        tree = process["tree"]
        self.assertEqual(sum(one.get("folded", 0) for one in tree), process["folded"])
        return sum(one["entries"] for one in tree[1:]) + sum(one.get("folded_entries", 0) for one in tree)

    def test_all_that_is_counted_stays(self):
        source = PROGRAMS / "folded.c"
        self.build(source)
        heard = {tells: self.heard(source, options)[:3] for tells, options in TELLS.items()}
        for memory in (LITTLE, "3M", ""):
            done, process = self.run_folded(memory=memory)
            for tells, found in heard.items():
                self.assertEqual((done.stdout, *self.totals(process)), found, (memory, tells))
            self.assertEqual(self.entries(process), int(done.stdout.split()[-1]), memory)
            self.assertLessEqual(len(process["tree"]), 50000)

    def test_what_is_hot_late_has_a_context(self):
        for level in ("-O0", "-O1"):
            self.build(PROGRAMS / "folded.c", "-fno-inline", level=level)
            _, process = self.run_folded()
            paths = self.paths(process)
            hot = [one[0] for path, one in paths.items() if path.startswith("/work/") and path.endswith("/hot_1/hot_2/hot_3")]
            self.assertEqual(len(hot), 1)
            self.assertGreater(hot[0], 5400, "of 6000")

    def test_memory_stays_what_it_is(self):
        self.build(PROGRAMS / "folded.c")
        done, process = self.run_folded("tell")
        middle, end = map(int, done.stderr.split())
        self.assertLess(end - middle, 3000, "KiB")
        # What would have been there without.
        self.assertGreater(process["folded"] * 128, 20 << 20)
        self.run_well(self.folder / "recorded", "tell", FARCC_CONTEXTS_MEMORY="1G")
        whole = self.profile("recorded.profile")
        self.assertEqual(self.totals(whole), self.totals(process))

    def test_sites_of_what_is_folded(self):
        self.write("sites.c", "#define VISIT free(malloc(depth + 1))\n" + MANY_PATHS + """
int main(void) {
  for (int i = 0; i < 400; i++) all[i % FUNCTIONS](7);
  printf("%lu\\n", calls);
  return 0;
}
""")
        self.build("sites.c", "-fno-builtin", level="-O1")
        done, process = self.run_folded()
        self.assertEqual(sum(one["objects"] for one in process["sites"] if one["allocated_bytes"] <= 8 * one["objects"]),
                         int(done.stdout))
        self.assertEqual(sum(one["live_bytes"] for one in process["sites"] if one["allocated_bytes"] <= 8 * one["objects"]), 0)

    def test_exceptions_and_jumps(self):
        self.write("jumps.c", "#include <setjmp.h>\nstatic jmp_buf back;\n#define VISIT if (depth == 1 && DRAW % 4 == 0) "
                   "longjmp(back, 1)\n" + MANY_PATHS + """
int main(void) {
  for (volatile int i = 0; i < 20000; i++) {
    if (setjmp(back) == 0) all[i % FUNCTIONS](9);
  }
  printf("%lu\\n", calls);
  return 0;
}
""")
        for level in ("-O0", "-O2"):
            self.build("jumps.c", level=level)
            done, process = self.run_folded()
            # And main(), and its loop.
            self.assertEqual(self.entries(process), int(done.stdout) + 2, level)

    def test_signal_handlers(self):
        self.write("signals.c", MANY_PATHS + """
#include <signal.h>
#include <sys/time.h>
static volatile unsigned long heard;
static __attribute__((noinline)) void note(void) { heard++; }
static void hear(int s) { (void)s; note(); for (int i = 0; i < 3; i++) note(); }
int main(void) {
  struct itimerval often = {{0, 300}, {0, 300}};
  signal(SIGALRM, hear);
  setitimer(ITIMER_REAL, &often, 0);
  for (int i = 0; i < 4000; i++) all[i % FUNCTIONS](9);
  while (heard < 100) all[heard % FUNCTIONS](9);
  often.it_value.tv_usec = often.it_interval.tv_usec = 0;
  setitimer(ITIMER_REAL, &often, 0);
  printf("%lu %lu\\n", calls, heard);
  return 0;
}
""")
        for level in ("-O0", "-O2"):
            self.build("signals.c", level=level)
            for _ in range(3):
                done, process = self.run_folded()
                calls, heard = map(int, done.stdout.split())
                # What a handler does while it has interrupted the runtime is not counted.
                self.assertGreaterEqual(self.entries(process), calls)
                self.assertLessEqual(self.entries(process), calls + 2 * heard + 10)

    def test_frames_on_other_stacks(self):
        """A coroutine sleeps in a context that is folded meanwhile: the program does what it did."""
        self.write("coroutines.c", "#define VISIT if (DRAW % 8 == 0) sleep_now()\nstatic void sleep_now(void);\n" + MANY_PATHS + """
#include <ucontext.h>
#define COROUTINES 40
static ucontext_t whole, each[COROUTINES];
static int current = -1, done[COROUTINES];
static unsigned long slept;
static void sleep_now(void) { if (current >= 0) { slept++; swapcontext(&each[current], &whole); } }
static void body(void) { all[current % FUNCTIONS](14); done[current] = 1; }
int main(void) {
  for (int i = 0; i < COROUTINES; i++) {
    getcontext(&each[i]);
    each[i].uc_stack.ss_size = 256 << 10;
    each[i].uc_stack.ss_sp = malloc(256 << 10);
    each[i].uc_link = &whole;
    makecontext(&each[i], body, 0);
  }
  for (int round = 0; round < 400; round++) {
    for (int i = 0; i < COROUTINES; i++) {
      if (done[i]) continue;
      current = i;
      swapcontext(&whole, &each[i]);
      current = -1;
    }
    for (int i = 0; i < 20; i++) all[i](9);
  }
  printf("%lu %lu\\n", calls, slept);
  return 0;
}
""")
        for level in ("-O0", "-O2"):
            self.run_well(GIVEN.clang, level, "coroutines.c", "-o", "plain")
            plain = self.run_well(self.folder / "plain").stdout
            self.build("coroutines.c", level=level)
            done, _ = self.run_folded()
            self.assertEqual(done.stdout, plain)

    def test_forked_children(self):
        self.write("forks.c", MANY_PATHS + """
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile int ends;
static void *fold(void *nothing) { while (!ends) all[3](9); return nothing; }
int main(void) {
  pthread_t thread;
  pthread_create(&thread, 0, fold, 0);
  for (int i = 0; i < 12; i++) {
    for (int k = 0; k < 200; k++) all[k % FUNCTIONS](9);
    const int child = fork();
    if (child == 0) {
      calls = 0;
      for (int k = 0; k < 500; k++) all[k % FUNCTIONS](9);
      printf("%d %lu\\n", getpid(), calls);
      fflush(stdout);
      _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    if (status != 0) return 1;
  }
  ends = 1;
  pthread_join(thread, 0);
  return 0;
}
""")
        self.build("forks.c", level="-O1", libraries=("-lpthread",))
        done, _ = self.run_folded()
        rows = done.stdout.splitlines()
        self.assertEqual(len(rows), 12)
        for row in rows:
            child, calls = row.split()
            # Calls, and the loop; main() was entered by the parent.
            self.assertIn(self.entries(self.profile(f"recorded.profile.{child}")) - int(calls), (0, 1))

    def test_what_is_no_size_is_told(self):
        self.build("program.c")
        done = self.run_well(self.folder / "recorded", FARCC_CONTEXTS_MEMORY="much")
        self.assertEqual(done.stderr, "farheap: FARCC_CONTEXTS_MEMORY is 'much', which is no size; contexts take up to 64 MiB "
                                      "a thread; say it as 64M\n")

    def test_the_report_says_how_many(self):
        self.build(PROGRAMS / "folded.c", level="-O1")
        _, process = self.run_folded()
        text = self.run_well(GIVEN.tool, "report", "recorded.profile").stdout
        self.assertIn(f"({process['folded']} contexts took so little time that they were made part of those above them)", text)


if __name__ == "__main__":
    main(__doc__)
