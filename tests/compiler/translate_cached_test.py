#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Translated programs in mode cached. It needs what `farheap run` needs; with --store its tests use this store instead of
those of this machine.
"""

import itertools
import os
import pathlib
import resource
import signal
import subprocess

from translate_case import FAILED, GIVEN, LEVEL, PROGRAMS, Case, main

CACHE = "32M"  # the least


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

    # Its thread's stack lies in the heap, where quiet pages are guarded: whoever writes to one is served by a thread that
    # must not wait for it.
    FLUSHES = """
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
__attribute__((weak)) void __farheap_flush(void);
enum { kBytes = 1 << 20, kStack = 1 << 18 };
static volatile char *data;
static int ends[2];
static void flush_often(int calls) {
  for (int i = 0; i < calls; i++) {
    data[i * 64 % 8192] = (char)i;
    if (&__farheap_flush != NULL) __farheap_flush();
  }
}
static long sum(void) {
  long all = 0;
  for (int i = 0; i < kBytes; i++) all += data[i] * (i % 7 + 1);
  return all;
}
static int write_to_quiet_pages(char with) {
  char word[16];
  memset(word, with, sizeof word);
  for (int page = 3; page < 250; page += 40) {
    data[page * 4096 + 1] = with;
    if (write(ends[1], word, sizeof word) != sizeof word) return 1;
    if (read(ends[0], (char *)data + page * 4096 + 64, sizeof word) != sizeof word) return 1;
  }
  return 0;
}
static void *on_the_heap(void *arg) {
  flush_often(500);
  pid_t child = fork();
  if (child == 0) {
    flush_often(300);
    if (write_to_quiet_pages(9) != 0) _exit(1);
    flush_often(3);
    printf("child %ld\\n", sum());
    fflush(stdout);
    _exit(0);
  }
  int status = 1;
  waitpid(child, &status, 0);
  if (status != 0 || write_to_quiet_pages(5) != 0) return NULL;
  flush_often(100);
  return arg;
}
int main(void) {
  data = malloc(kBytes);
  for (int i = 0; i < kBytes; i++) data[i] = (char)(i % 101);
  pthread_t threads[2];
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstack(&attributes, aligned_alloc(4096, kStack), kStack);
  if (pipe(ends) != 0) return 1;
  pthread_create(&threads[0], &attributes, on_the_heap, ends);
  void *done = NULL;
  pthread_join(threads[0], &done);
  flush_often(100);
  printf("parent %ld %d\\n", sum(), done != NULL);
  return 0;
}
"""

    def test_flushes_of_a_program_that_forks_on_a_stack_in_the_heap(self):
        self.write("flushes.c", self.FLUSHES)
        self.clang("-O1", "-pthread", "flushes.c", "-o", "plain")
        self.farcc("-O1", "-pthread", "flushes.c", LEVEL, "-o", "translated")
        expected = self.run_well(self.folder / "plain").stdout
        self.assertRegex(expected, r"^child -?\d+\nparent -?\d+ 1\n$")
        for store in [store for store in self.stores() if store.startswith(("mem:", "file:"))]:
            with self.subTest(store=store):
                done = self.start_cached(self.folder / "translated", FARHEAP_FAR_STORE=store)
                self.assertEqual((done.returncode, done.stdout), (0, expected), done.stderr)

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

    # A long in each page of so many MiB, and twice read again.
    PAGES = """
        #include <stdio.h>
        #include <stdlib.h>
        int main(int argc, char **argv) {
          long n = atol(argv[1]) << 17, *p = malloc(n * 8), sum = 0;
          for (long i = 0; i < n; i += 512) p[i] = i;
          puts("written");
          fflush(stdout);
          if (argc > 2) getchar();
          for (int turn = 0; turn < 2; turn++) for (long i = 0; i < n; i += 512) sum += p[i];
          printf("%ld\\n", sum);
        }"""

    def test_a_store_that_fails_in_the_middle(self):
        """In both modes the program ends, with words; in mode cached after it was tried again."""
        program = self.translated(self.PAGES)
        (self.folder / "blocks").mkdir()

        def small_files():
            resource.setrlimit(resource.RLIMIT_FSIZE, (10 << 20, 10 << 20))

        for mode in ("direct", "cached"):
            with self.subTest(mode):
                done = self.start_cached(program, "60", before=small_files, FARHEAP_FAR_MODE=mode,
                                         FARHEAP_FAR_STORE=f"file:{self.folder}/blocks")
                self.assertEqual((done.returncode, done.stdout), (FAILED, ""), done.stderr)
                self.assertRegex(done.stderr, "cannot write block .*: file:.*/blocks: the file may not grow: `ulimit -f` is set"
                                              ".*; raise the limit, or use a store elsewhere")
                self.assertRegex(done.stderr, "farheap: the (translated program ends|program is ended): [^\n]*\n$")

    def test_a_server_that_is_lost_in_the_middle(self):
        if GIVEN.store is None:
            self.skipTest("it needs a server that may be killed (--store, below with_server)")
        program = self.translated(self.PAGES)
        parent = os.getppid()
        servers = pathlib.Path(f"/proc/{parent}/task/{parent}/children").read_text(encoding="ascii").split()
        servers = [int(server) for server in servers if int(server) != os.getpid()]
        self.assertGreater(len(servers), 0)
        environment = {**os.environ, "FARHEAP_FAR_CACHE": CACHE,
                       "FARHEAP_FAR_STORE": GIVEN.store + ("&" if "?" in GIVEN.store else "?") + "patience_s=2"}
        running = {}
        for mode, pages in (("direct", "1"), ("cached", "60")):
            running[mode] = subprocess.Popen([program, pages, "wait"], env={**environment, "FARHEAP_FAR_MODE": mode},
                                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            self.addCleanup(running[mode].kill)
            self.assertEqual(running[mode].stdout.readline(), "written\n", mode)
        # Of a run the tool waited for the server as long again, for what was left there.
        self.clang("-O1", "program.c", "-o", "plain")
        if GIVEN.tool is not None:
            running["run"] = subprocess.Popen(
                [GIVEN.tool, "run", "--memory", CACHE, "--store", environment["FARHEAP_FAR_STORE"], "--",
                 self.folder / "plain", "60", "wait"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            self.addCleanup(running["run"].kill)
            self.assertEqual(running["run"].stdout.readline(), "written\n")
        for server in servers:
            os.kill(server, signal.SIGKILL)
        for mode, process in running.items():
            with self.subTest(mode):
                out, heard = process.communicate("\n", timeout=100)
                self.assertEqual((process.returncode, out), (FAILED, ""), heard)
                self.assertRegex(heard, "farheap: (the translated program ends: )?cannot (read|write) block.*: .*see that "
                                        "(it|the server) runs ")
                self.assertNotIn("cannot open the store", heard)
                self.assertEqual("goes when the next run opens it" in heard, mode == "run")

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
        # (What names another option than this sent users to one that there is not.)
        self.check_refused(program, "/dev/null(?!.*--store).*as file:DIR; FARHEAP_FAR_STORE says which",
                           FARHEAP_FAR_STORE="file:/dev/null/heap")
        self.check_refused(program, "/nowhere: the preload library is not there; .*FARHEAP_PRELOAD",
                           FARHEAP_PRELOAD="/nowhere")
        # A loader that loads nothing must not make the program begin for ever.
        self.check_refused(program, "the loader did not load this library", FARHEAP_FAR_ANEW="own")
        self.check_refused(program, "FARHEAP_LOG=loud", FARHEAP_LOG="loud")

    def test_a_cache_larger_than_the_machine_was_taken_in_silence(self):
        done = self.start_cached(self.translated(self.WHERE), FARHEAP_FAR_CACHE="100T")
        self.assertEqual((done.returncode, done.stdout), (0, "0 0\n"))
        self.assertRegex(done.stderr, r"^farheap: WARNING: FARHEAP_FAR_CACHE=100T is more than the memory of this machine, "
                                      r"[^:]*: nothing goes to the store .*; say \d+M or less\n$")

    def test_a_program_with_rights_of_others(self):
        if os.geteuid() != 0:
            self.skipTest("only root can make one")
        program = self.translated(self.WHERE)
        os.chown(program, 1, 1)
        program.chmod(0o4755)
        self.folder.chmod(0o755)
        # It obeys no variable: not the one that names the mode either.
        done = self.start_cached(program)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "1 -1\n", ""))

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


if __name__ == "__main__":
    main(__doc__)
