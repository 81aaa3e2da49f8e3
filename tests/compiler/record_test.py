#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs of `farcc -ffar=record`: they do what they did, their counts are those of an independent count, and their
contexts are the call paths that they took, whatever way control took.

  record_test.py --farcc FILE --clang FILE --major N --cc FILE --tool FILE [Class[.test]]...
"""

import json
import os
import pathlib
import re
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from driver_case import Case, GIVEN, main  # noqa: E402

PROGRAMS = pathlib.Path(__file__).resolve().parent / "recorded"
COUNTED = ("matrix.c", "list.c", "recursion.c", "pointers.c", "jumps.c", "exceptions.cpp", "threads.c", "sorts.c",
           "machine.c", "classes.cpp")

# Two of clang's own instrumentations, each of which tells a function of ours of every load and store.
TELLS = {"MemProf": ["-fmemory-profile", "-mllvm", "-memprof-use-callbacks", "-mllvm", "-memprof-instrument-stack"],
         "SanitizerCoverage": ["-fsanitize-coverage=trace-pc,trace-loads,trace-stores"]}
HEARD = """
#include <stdio.h>
#include <string.h>
#include <unistd.h>
static unsigned long reads, writes, heap_reads, heap_writes;
extern char end[]; // of the program's data; the heap begins behind it
static unsigned long in_heap(unsigned long at) { return at > (unsigned long)end && at < (unsigned long)sbrk(0); }
void __memprof_load(unsigned long at) { __atomic_fetch_add(&reads, 1, __ATOMIC_RELAXED); heap_reads += in_heap(at); }
void __memprof_store(unsigned long at) { __atomic_fetch_add(&writes, 1, __ATOMIC_RELAXED); heap_writes += in_heap(at); }
void __memprof_init(void) {}
void __memprof_version_mismatch_check_v1(void) {}
#define HEAR(bytes) \\
  void __sanitizer_cov_load##bytes(void *at) { (void)at; __atomic_fetch_add(&reads, 1, __ATOMIC_RELAXED); } \\
  void __sanitizer_cov_store##bytes(void *at) { (void)at; __atomic_fetch_add(&writes, 1, __ATOMIC_RELAXED); }
HEAR(1) HEAR(2) HEAR(4) HEAR(8) HEAR(16)
void __sanitizer_cov_trace_pc(void) {}
__attribute__((destructor)) static void say(void) { fprintf(stderr, "%lu %lu %lu %lu\\n", reads, writes, heap_reads, heap_writes); }
"""


class Recorded(Case):
    def compiler(self, source):
        return self.farxx if str(source).endswith(".cpp") else self.farcc

    def record(self, source, *options, level="-O0", libraries=()):
        """Compiled and run; its output, and its one process in the profile."""
        self.build(source, *options, level=level, libraries=libraries)
        done = self.run_well(self.folder / "recorded")
        return done.stdout, self.profile("recorded.profile")

    def build(self, source, *options, level="-O0", libraries=()):
        done = self.run_well(self.compiler(source), "-ffar=record", "-g", level, *options, source, "-pthread", *libraries,
                             "-o", "recorded")
        self.assertEqual(done.stderr, "")

    def profile(self, name):
        report = json.loads(self.run_well(GIVEN.tool, "report", name, "--json").stdout)
        found, = report["contexts"]
        return found

    def paths(self, process):
        """{path of names: (entries, reads, writes)}, without the program itself; loops are *LINE."""
        names = [""]
        result = {}
        for context in process["tree"][1:]:
            name = f"*{context['line']}" if context["kind"] == "loop" else re.sub(r"\([^()]*\)$", "", context["function"])
            names.append(f"{names[context['parent']]}/{name}")
            self.assertEqual(context["id"], context["parent"] + context["local_id"])
            self.assertNotIn(names[-1], result)
            result[names[-1]] = context["entries"], context["reads"], context["writes"]
        return result

    def totals(self, process):
        return sum(one["reads"] for one in process["tree"]), sum(one["writes"] for one in process["tree"])


class Heard(Recorded):
    def heard(self, source, tells):
        """(output, reads, writes, of those in the heap) as an instrumentation of clang's own tells them."""
        self.write("heard.c", HEARD)
        self.run_well(GIVEN.clang, "-c", "heard.c")
        cxx = ["--driver-mode=g++"] if str(source).endswith(".cpp") else []
        self.run_well(GIVEN.clang, *cxx, "-O0", *tells, "-c", source, "-o", "program.o")
        self.run_well(GIVEN.clang, *cxx, "program.o", "heard.o", "-pthread", "-o", "heard")
        done = self.run_well(self.folder / "heard")
        return done.stdout, *map(int, done.stderr.split())


class Counts(Heard):
    def test_are_those_of_an_independent_count(self):
        for name in COUNTED:
            with self.subTest(name):
                found, process = self.record(PROGRAMS / name)
                self.assertGreater(sum(self.totals(process)), 500)
                for tells in TELLS.values():
                    self.assertEqual(self.heard(PROGRAMS / name, tells)[:3], (found, *self.totals(process)))

    def test_of_sites_are_those_of_the_heap(self):
        """One site or several: what went to them is what went to the heap. A heap below brk(), as one thread has it."""
        for name in ("matrix.c", "list.c", "sorts.c", "machine.c", "classes.cpp"):
            with self.subTest(name):
                _, process = self.record(PROGRAMS / name)
                known = (sum(one["reads"] for one in process["accesses"]), sum(one["writes"] for one in process["accesses"]))
                self.assertGreater(sum(known), 80)
                self.assertEqual(known, self.heard(PROGRAMS / name, TELLS["MemProf"])[3:])

    def test_optimised_programs_do_what_they_did(self):
        for name in COUNTED:
            for level in ("-O1", "-O2", "-O3"):
                with self.subTest(f"{name} {level}"):
                    cxx = ["--driver-mode=g++"] if name.endswith(".cpp") else []
                    self.run_well(GIVEN.clang, *cxx, level, PROGRAMS / name, "-pthread", "-o", "plain")
                    output, process = self.record(PROGRAMS / name, level=level)
                    self.assertEqual(output, self.run_well(self.folder / "plain").stdout)
                    self.assertGreater(len(process["tree"]), 1)

    def test_of_contexts(self):
        """By hand: `p[i] += i` without optimisation loads i, p, i, p[i], and stores p[i]; the loop loads i and n to
        compare, and i to count."""
        self.write("counts.c", """
void add(long *p, int n) { for (int i = 0; i < n; i++) p[i] += i; }
void twice(long *p) { add(p, 100); add(p, 50); }
static long a[100];
int main(void) { twice(a); for (int k = 0; k < 3; k++) add(a, 10); return 0; }
""")
        _, process = self.record("counts.c")
        paths = self.paths(process)
        loop = lambda *turns: (len(turns), sum(7 * n + 2 for n in turns), sum(2 * n for n in turns))  # noqa: E731
        self.assertEqual(paths["/main/twice/add/*2"], loop(100, 50))
        self.assertEqual(paths["/main/*5/add/*2"], loop(10, 10, 10))
        self.assertEqual(paths["/main/*5"], (1, 7, 3))
        self.assertEqual(paths["/main/twice/add"], (2, 0, 6))

    def test_by_turns_are_those_of_each_turn(self):
        """Where the number of turns is known before the loop, nothing counts in it."""
        self.write("turns.c", """
#include <stdio.h>
#include <stdlib.h>
__attribute__((noinline)) void scale(long *restrict p, const long *restrict from, long n) {
  for (long i = 0; i < n; i++) p[3 * i] = 3 * from[i];
}
int main(void) {
  long *p = calloc(5000, 8), *from = calloc(5000, 8);
  for (long n = 0; n < 200; n++) scale(p, from, n);
  printf("%ld\\n", p[17]);
  return 0;
}
""")
        turns = sum(range(200))
        for level in ("-O1", "-O2", "-O3"):
            report = self.run_well(self.farcc, "-ffar=record", "-ffar-report", level, "-c", "turns.c").stderr
            self.assertRegex(report, r"scale: recorded: contexts; 1 loops, 1 by turns, 2 pointers" if level == "-O1" else
                             r"scale: recorded: contexts; \d+ loops, [1-9]\d* by turns, \d+ pointers")
            _, process = self.record("turns.c", level=level)
            by_site = {}
            for one in process["accesses"]:
                site = process["sites"][one["site"] - 1]
                if site["allocated_bytes"] == 40000:
                    sums = by_site.setdefault(site["site"] + str(one["site"]), [0, 0])
                    sums[0] += one["reads"]
                    sums[1] += one["writes"]
            self.assertEqual(sorted(by_site.values()), [[1, turns], [turns, 0]])

    def test_of_vectors_and_copies(self):
        """Lanes count, and so do words of eight bytes that are copied or filled."""
        self.write("words.c", """
#include <string.h>
char from[1000], to[1000];
volatile int bytes = 77;
int main(void) {
  memcpy(to, from, 800);
  memset(to, 1, bytes);
  return 0;
}
""")
        _, process = self.record("words.c", level="-O1")
        self.assertEqual(self.totals(process), (100 + 1, 100 + 10))


class Contexts(Recorded):
    def test_recursion_is_the_context_that_it_is_in(self):
        _, process = self.record(PROGRAMS / "recursion.c")
        self.assertEqual({path: one[0] for path, one in self.paths(process).items()},
                         {"/main": 1, "/main/fib": 3193, "/main/is_even": 201, "/main/is_even/is_odd": 201,
                          "/main/ackermann": 119})

    def test_calls_by_pointers(self):
        _, process = self.record(PROGRAMS / "pointers.c")
        paths = self.paths(process)
        self.assertEqual(paths["/main/*14/twice"][0], 30)
        self.assertEqual(paths["/main/*14/square"][0], 30)
        self.assertGreater(paths["/main/up"][0], 59)
        self.assertEqual(paths["/main/down"][0], paths["/main/down/up"][0])
        self.assertNotIn("/main/up/down", paths)

    def test_exceptions_come_out_where_they_are_caught(self):
        _, process = self.record(PROGRAMS / "exceptions.cpp")
        paths = {path: one[0] for path, one in self.paths(process).items()}
        inside = "/main/*38/(anonymous namespace)::middle"
        self.assertEqual(paths[inside], 12)
        self.assertEqual(paths[f"{inside}/(anonymous namespace)::inner"], 12)
        self.assertEqual(paths[f"{inside}/(anonymous namespace)::Guard::~Guard"], 12)
        self.assertEqual(set(path.count("middle") for path in paths), {0, 1})

    def test_longjmp_comes_out_where_setjmp_was(self):
        _, process = self.record(PROGRAMS / "jumps.c")
        paths = {path: one[0] for path, one in self.paths(process).items()}
        self.assertEqual(set(paths), {"/main", "/main/climb", "/main/climb/*9", "/main/*32", "/main/*32/two_entries"} |
                         {path for path in paths if path.startswith("/main/*32/two_entries/")})
        self.assertEqual(paths["/main/climb"], 20)
        self.assertEqual(paths["/main/*32/two_entries"], 19)

    def test_threads_have_the_paths_of_their_functions(self):
        _, process = self.record(PROGRAMS / "threads.c")
        paths = {path: one[0] for path, one in self.paths(process).items()}
        self.assertEqual(paths["/work"], 12)
        self.assertEqual(paths["/work/*17"], 12)
        self.assertEqual(paths["/work/*17/add_up"], 3600)
        self.assertEqual(paths["/work/*17/add_up/*11"], 3600)

    def test_many_threads_at_once_lose_nothing(self):
        self.write("many.c", """
#include <pthread.h>
static __attribute__((noinline)) long one(volatile long *p) { return ++*p; }
static void *work(void *of) { volatile long x = 0; for (int i = 0; i < 1000; i++) one(&x); return of; }
int main(void) {
  pthread_t all[40];
  for (int round = 0; round < 5; round++) {
    for (int i = 0; i < 40; i++) pthread_create(&all[i], 0, work, 0);
    for (int i = 0; i < 40; i++) pthread_join(all[i], 0);
  }
  return 0;
}
""")
        for level in ("-O0", "-O2"):
            _, process = self.record("many.c", level=level)
            entries = [one for path, one in self.paths(process).items() if path.endswith("/one")]
            self.assertEqual([one[0] for one in entries], [200000])

    def test_calls_that_become_jumps_take_no_stack(self):
        self.write("tails.c", """
#include <stdio.h>
static int turns = 3000000;
__attribute__((noinline)) int even(int n);
__attribute__((noinline)) int odd(int n) { return n == 0 ? 0 : even(n - 1); }
__attribute__((noinline)) int even(int n) { return n == 0 ? 1 : odd(n - 1); }
__attribute__((noinline)) int leaf(int n) { return n * 3; }
__attribute__((noinline)) int last(int n) { turns--; return leaf(n); }
int main(void) {
  int sum = even(turns);
  for (int i = 0; i < 10; i++) sum += last(i);
  sum += leaf(1);
  printf("%d\\n", sum);
  return 0;
}
""")
        output, process = self.record("tails.c", level="-O2")
        self.assertEqual(output, "139\n")
        paths = {path: one[0] for path, one in self.paths(process).items()}
        self.assertEqual(sum(count for path, count in paths.items() if path.endswith(("/even", "/odd"))), 3000001)
        self.assertEqual(paths["/main/leaf"], 1)
        self.assertEqual(sum(count for path, count in paths.items() if path.endswith("/last/leaf")), 10)

    def test_must_be_tail_calls(self):
        self.write("must.c", """
typedef int step(int, long *);
static int stop(int n, long *p) { return n + (int)*p; }
static int go(int n, long *p) { ++*p; if (n == 0) __attribute__((musttail)) return stop(n, p);
                                __attribute__((musttail)) return go(n - 1, p); }
int main(void) { long x = 0; return go(1000000, &x) == 1000001 ? 0 : 1; }
""")
        for level in ("-O0", "-O2"):
            self.record("must.c", level=level)

    def test_signal_handlers(self):
        self.write("signals.c", """
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>
static volatile long heard, done;
static __attribute__((noinline)) void note(void) { heard++; }
static void hear(int s) { (void)s; for (int i = 0; i < 3; i++) note(); }
static __attribute__((noinline)) long work(long n) { volatile long *p = malloc(80); for (int i = 0; i < 10; i++) p[i] = n; n = p[3]; free((void *)p); return n; }
int main(void) {
  struct itimerval often = {{0, 500}, {0, 500}};
  signal(SIGALRM, hear);
  setitimer(ITIMER_REAL, &often, 0);
  while (heard < 300) done += work(heard) & 1;
  often.it_value.tv_usec = often.it_interval.tv_usec = 0;
  setitimer(ITIMER_REAL, &often, 0);
  return 0;
}
""")
        for level in ("-O0", "-O2"):
            _, process = self.record("signals.c", level=level)
            self.assertTrue(any("work" in path for path in self.paths(process)))
            # A handler that came between two loads left the interrupted function a node of its own: one run in eight
            # wrote beyond it.
            for _ in range(20):
                self.run_well(self.folder / "recorded")

    def test_a_program_and_its_libraries_have_one_tree(self):
        self.write("library.c", "int called(int (*back)(int), int n) { int s = 0; for (int i = 0; i < n; i++) s += back(i);"
                                " return s; }\n")
        self.write("user.c", "int called(int (*)(int), int); static int one(int x) { return x; }\n"
                             "int main(void) { return called(one, 4) != 6; }\n")
        self.run_well(self.farcc, "-ffar=record", "-g", "-shared", "-fPIC", "library.c", "-o", "liblibrary.so")
        _, process = self.record("user.c", libraries=("-L.", "-llibrary", "-Wl,-rpath,$ORIGIN"))
        self.assertEqual(self.paths(process)["/main/called/*1/one"][0], 4)

    def test_a_library_that_was_unloaded(self):
        self.write("library.c", "int called(int n) { int s = 0; for (int i = 0; i < n; i++) s += i; return s; }\n")
        self.write("user.c", '#include <dlfcn.h>\nint main(void) { void *l = dlopen("./liblibrary.so", RTLD_NOW);\n'
                             '  int (*f)(int) = (int (*)(int))dlsym(l, "called"); int x = f(5); dlclose(l);'
                             ' return x != 10; }\n')
        self.run_well(self.farcc, "-ffar=record", "-g", "-shared", "-fPIC", "library.c", "-o", "liblibrary.so")
        self.build("user.c")
        self.run_well(self.folder / "recorded")
        self.assertEqual(self.paths(self.profile("recorded.profile"))["/main/called/*1"][0], 1)

    def test_contexts_beyond_the_room_are_counted_all_the_same(self):
        """1500 functions that call each other in all orders: more paths than one tree has room for."""
        count = 60
        functions = "".join(f"""
__attribute__((noinline)) void f{i}(unsigned n, unsigned x) {{
  total++;
  if (n) for (int k = 0; k < 2; k++) all[(x * 7 + k * 13 + {i}) % {count}](n - 1, x * 31 + k);
}}
""" for i in range(count))
        self.write("paths.c", f"typedef void any(unsigned, unsigned); extern any *all[{count}]; long total;\n"
                   f"#include <stdio.h>\n{functions}\nany *all[{count}] = {{{', '.join(f'f{i}' for i in range(count))}}};\n"
                   "int main(void) { for (unsigned i = 0; i < 400; i++) all[i % 60](12, i * 2654435761u);"
                   ' printf("%ld\\n", total); return 0; }\n')
        output, process = self.record("paths.c", level="-O1")
        self.assertGreater(process["folded"], 0)
        self.assertLess(os.path.getsize(self.folder / "recorded.profile"), 16 << 20)
        # Each call adds one to `total`: a read and a write; what is folded keeps its accesses.
        self.assertGreaterEqual(self.totals(process)[1], int(output))


class Sites(Recorded):
    ALLOCATES = """
#include <stdlib.h>
#include <sys/mman.h>
static void use(long *p, int n) { for (int i = 0; i < n; i++) p[i] = i; }
int main(void) {
  long *a = malloc(800);
  use(a, 100);
  long *b = calloc(50, 8);
  use(b, 50);
  a = realloc(a, 80000);
  use(a, 10000);
  long *c = mmap(0, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  use(c, 1000);
  long *d = aligned_alloc(4096, 8192);
  use(d, 1024);
  munmap(c, 1 << 20);
  free(a), free(b), free(d);
  return 0;
}
"""

    def by_line(self, process):
        found = {}
        for site in process["sites"]:
            line = site["site"].rpartition(":")[2].rstrip(")")
            accesses = [one for one in process["accesses"] if one["site"] == site["id"]]
            found[line] = (sum(one["reads"] for one in accesses), sum(one["writes"] for one in accesses), site["objects"],
                           site["allocated_bytes"], site["live_bytes"])
        return found

    def test_of_all_that_allocates(self):
        self.write("allocates.c", self.ALLOCATES)
        for level in ("-O0", "-O1"):
            _, process = self.record("allocates.c", "-fno-builtin", level=level)
            found = self.by_line(process)
            for line, writes, size in (("6", 100, 800), ("8", 50, 400), ("10", 10000, 80000), ("12", 1000, 1 << 20),
                                       ("14", 1024, 8192)):
                self.assertEqual(found[line], (0, writes, 1, size, 0), line)

    def test_of_new_in_two_contexts(self):
        self.write("news.cpp", """
struct Node { Node *next; long value; };
static Node *grow(Node *list, int n) { for (int i = 0; i < n; ++i) list = new Node{list, i}; return list; }
static Node *first() { return grow(nullptr, 10); }
static Node *second() { return grow(nullptr, 20); }
static long sum(const Node *list) { long s = 0; for (; list; list = list->next) s += list->value; return s; }
int main() { Node *a = first(), *b = second(); return sum(a) + sum(b) + sum(b) != 45 + 2 * 190; }
""")
        _, process = self.record("news.cpp")
        sites = [site for site in process["sites"] if "news.cpp:3" in site["site"]]
        self.assertEqual(sorted(site["objects"] for site in sites), [10, 20])
        contexts = {process["tree"][process["tree"][site["context"]]["parent"]]["function"] for site in sites}
        self.assertEqual(contexts, {"grow(Node*, int)"})
        summed = {one["site"]: one["reads"] for one in process["accesses"]
                  if process["tree"][one["context"]]["function"].startswith("sum")}
        self.assertEqual(summed, {site["id"]: 2 * site["objects"] * (1 if site["objects"] == 10 else 2) for site in sites})

    def test_memory_that_becomes_another_sites(self):
        self.write("again.c", """
#include <stdlib.h>
static void use(volatile long *p) { p[0] = 1; }
int main(void) {
  for (int i = 0; i < 1000; i++) {
    long *a = malloc(64); use(a); free(a);
    long *b = malloc(64); use(b); use(b); free(b);
  }
  return 0;
}
""")
        for level in ("-O0", "-O2"):
            _, process = self.record("again.c", "-fno-builtin", level=level)
            found = self.by_line(process)
            self.assertEqual(found["6"][1:], (1000, 1000, 64000, 0))
            self.assertEqual(found["7"][1:], (2000, 1000, 64000, 0))


class Ends(Recorded):
    PROGRAM = """
#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static __attribute__((noinline)) void work(int n) { for (volatile int i = 0; i < n; i++) {} }
int main(int argc, char **argv) {
  work(10);
  switch (argv[1][0]) {
    case 'e': exit(0);
    case 'x': _exit(0);
    case 'q': quick_exit(0);
    case 'a': abort();
    case 't': assert(argc == 7);
    case 'n': execl("/bin/true", "true", (char *)0);
    case 'f': {
      const int child = fork();
      if (child == 0) work(20), work(20), exit(0);
      waitpid(child, 0, 0);
      printf("%d\\n", child);
      return 0;
    }
    case 'v': {
      const int child = fork();
      if (child == 0) execlp("true", "true", (char *)0);
      waitpid(child, 0, 0);
      return 0;
    }
  }
  return 9;
}
"""

    def setUp(self):
        super().setUp()
        self.write("ends.c", self.PROGRAM)
        self.build("ends.c")

    def end(self, how, status=0):
        done = self.start(self.folder / "recorded", how)
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertEqual(self.paths(self.profile("recorded.profile"))["/main/work"][0], 1)
        return done.stdout

    def test_all_ways(self):
        for how, status in (("e", 0), ("x", 0), ("q", 0), ("a", -signal.SIGABRT), ("t", -signal.SIGABRT), ("n", 0)):
            with self.subTest(how):
                self.end(how, status)
                (self.folder / "recorded.profile").unlink()

    def test_forked_children_count_for_themselves(self):
        child = self.end("f").strip()
        self.assertEqual(self.paths(self.profile(f"recorded.profile.{child}"))["/main/work"][0], 2)

    def test_children_that_become_another_program_leave_nothing(self):
        self.end("v")
        self.assertEqual(sorted(path.name for path in self.folder.glob("*.profile*")), ["recorded.profile"])

    def test_the_file_can_be_chosen(self):
        self.run_well(self.folder / "recorded", "e", FARCC_PROFILE=str(self.folder / "chosen"))
        self.assertTrue((self.folder / "chosen").exists())
        said = self.run_well(self.folder / "recorded", "e", FARCC_PROFILE="/nowhere/chosen").stderr
        self.assertIn("farheap: cannot write the profile to '/nowhere/chosen': No such file", said)

    def test_a_program_that_goes_elsewhere_leaves_it_where_it_began(self):
        self.write("moves.c", '#include <unistd.h>\nint main(void) { return chdir("/"); }\n')
        _, process = self.record("moves.c")
        self.assertEqual(self.paths(process)["/main"][0], 1)

    def test_a_link_of_the_profiles_name_is_replaced(self):
        victim = self.write("victim", "mine\n")
        os.symlink(victim, self.folder / "recorded.profile")
        self.end("e")
        self.assertEqual(victim.read_text(encoding="utf-8"), "mine\n")

    def test_what_the_report_shows(self):
        self.end("e")
        text = self.run_well(GIVEN.tool, "report", "recorded.profile").stdout
        self.assertRegex(text, r"(?m)^\S+ ms +\S+ ms +1 +\d+ +\d+ +main \(ends.c:9\)$")
        self.assertRegex(text, r"(?m)^\S+ ms +\S+ ms +1 +\d+ +\d+ +  work \(ends.c:8\)$")
        self.assertRegex(text, r"(?m)^\S+ ms +\S+ ms +1 +\d+ +\d+ +    loop of work \(ends.c:8\)$")
        self.run_well(GIVEN.tool, "report", "recorded.profile", "--html", "page.html")
        page = (self.folder / "page.html").read_text(encoding="utf-8")
        data = json.loads(re.search(r'(?s)<script type="application/json" id="data">(.*?)</script>', page).group(1))
        process, = data["contexts"]
        self.assertEqual([process["names"][path[-1]] for path, *_ in process["contexts"]][:3],
                         ["main (ends.c:9)", "work (ends.c:8)", "loop of work (ends.c:8)"])
        self.assertIn("contexts alone", self.fails(GIVEN.tool, "report", "recorded.profile", "--folded", status=2))


class Driver(Recorded):
    def test_links_that_lack_the_runtime_are_told(self):
        self.run_well(self.farcc, "-ffar=record", "-O1", "-c", "program.c")
        said = self.fails(self.farcc, "program.o", "-o", "program")
        self.assertIn("farcc: cannot link: program.o: it was compiled with -ffar=record, and the link lacks what writes the "
                      "profile; give -ffar=record when linking, too\n", said)

    def test_what_it_does_not_go_with(self):
        for option in ("-static", "-fsanitize=address"):
            self.assertIn("-ffar=record does not go with", self.fails(self.farcc, "-ffar=record", option, "program.c"))

    def test_macros(self):
        self.write("macro.c", "#ifndef __FARCC_RECORD__\n#error\n#endif\n")
        self.compile("-ffar=record", "-c", "macro.c")


if __name__ == "__main__":
    main(__doc__)
