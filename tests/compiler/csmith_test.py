#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random C programs, compiled by farcc, compute the checksum that they compute when clang compiles them.

  csmith_test.py --farcc FILE --clang FILE [--programs N] [--first SEED] [--all-levels]

Loops over anything of a byte or more are hinted, and the hook reads whether the range makes sense of it, so that the
hints of small programs on globals and on the stack are executed, too. A failure names its seed and keeps the program.
"""

import argparse
import itertools
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
# Small: many programs tell more than large ones, and compile sooner.
SIZE = ["--max-funcs", "3", "--max-block-depth", "3", "--max-expr-complexity", "4", "--no-argc"]
# Counts its calls, and does to memory and registers what a call may do.
HOOK = """
#include <stddef.h>
#include <stdio.h>
static unsigned long calls;
void __farheap_loop(const void *begin, size_t bytes, ptrdiff_t stride, unsigned flags) {
  volatile unsigned char stack[256];
  for (int i = 0; i < 256; i++) stack[i] = (unsigned char)(bytes + stride + flags + (size_t)begin);
  calls += stack[0] * 0 + 1;
}
__attribute__((destructor)) static void say(void) { fprintf(stderr, "hook called %lu times\\n", calls); }
"""
HINT = ["-ffar=hint", "-ffar-threshold=1", "-Xclang", "-mllvm", "-Xclang", "-farheap-anywhere"]
COUNT = ["-ffar=count", "-ffar-count=executed"]
# Everything is away, always, and bringing it ruins the registers: guard_runtime.c.
GUARD = ["-ffar=guard", "-ffar-threshold=1", "-Xclang", "-mllvm", "-Xclang", "-farheap-anywhere"]
RECORD = [*GUARD, "-ffar-guard=record"]
CONTEXTS = ["-ffar=record"]
# csmith's programs have no heap. Here the stack and global variables are far, too, and the runtime is one that has all
# addresses for far ones. translate_test.py has programs with a heap.
TRANSLATE = ["-ffar=translate-heap", "-Xclang", "-mllvm", "-Xclang", "-farheap-anywhere"]
# And with the runtime as it is, in both modes. Programs that take their time without a store are left out in mode direct.
FAR = (["-ffar=translate-all"], ["-ffar=translate-heap", "-ffar-globals"], ["-ffar=translate-heap", "-ffar-stack"])
QUICK = 0.02  # seconds
RUNTIME = """
#include <stdio.h>
#include <string.h>
struct { size_t begin, bytes; } __farheap_far = {0, ~(size_t)0};
static unsigned long calls;
void __farheap_get(void *into, const void *from, size_t bytes) { calls++, memcpy(into, from, bytes); }
void __farheap_put(void *to, const void *from, size_t bytes) { calls++, memcpy(to, from, bytes); }
void __farheap_copy(void *to, const void *from, size_t bytes) { memmove(to, from, bytes); }
void __farheap_fill(void *to, unsigned char byte, size_t bytes) { memset(to, byte, bytes); }
void *__farheap_borrow(void *own) { return own; }
void __farheap_return(void *copy, void *own) { (void)copy, (void)own; }
__attribute__((destructor)) static void say(void) { fprintf(stderr, "hook called %lu times\\n", calls); }
"""


def run(command, patience, folder=None, **variables):
    """(status, output, errors), or None where it ran for too long."""
    try:
        done = subprocess.run([str(word) for word in command], check=False, text=True, capture_output=True,
                              timeout=patience, cwd=folder, env={**os.environ, **variables})
    except subprocess.TimeoutExpired:
        return None
    return done.returncode, done.stdout, done.stderr


def ways_of(seed, all_levels):
    """(name, options) of the ways to compile the program of this seed."""
    if all_levels:
        kinds = (("hint", HINT), ("guard", GUARD), ("record", RECORD), ("count", COUNT), ("contexts", CONTEXTS),
                 ("translate", TRANSLATE),
                 *((" ".join(far), far) for far in FAR))
        for level, (name, options) in itertools.product("0123", kinds):
            yield f"{name} -O{level}", [*options, f"-O{level}"]
        return
    yield "hint -O2", [*HINT, "-O2"]
    yield f"hint -O{'013'[seed % 3]}", [*HINT, f"-O{'013'[seed % 3]}"]
    yield f"guard -O{'23'[seed % 2]}", [*GUARD, f"-O{'23'[seed % 2]}"]
    guards = RECORD if seed % 3 == 0 else GUARD
    yield f"{'record' if seed % 3 == 0 else 'guard'} -O{'01'[seed % 2]}", [*guards, f"-O{'01'[seed % 2]}"]
    yield f"count -O{seed % 4}", [*COUNT, f"-O{seed % 4}"]
    yield f"contexts -O{(seed + 2) % 4}", [*CONTEXTS, f"-O{(seed + 2) % 4}"]
    yield f"translate -O{(seed + 1) % 4}", [*TRANSLATE, f"-O{(seed + 1) % 4}"]
    far = FAR[seed // 4 % 3]
    yield f"{' '.join(far)} -O{seed % 4}", [*far, f"-O{seed % 4}"]


class Tests:
    def __init__(self, arguments, folder):
        self.arguments = arguments
        self.folder = folder
        self.calls = 0
        self.compared = 0
        self.direct = 0
        self.cached = 0
        self.meaningless = 0

    def compile(self, compiler, source, program, *options):
        if compiler is self.arguments.farcc and (HINT[0] in options or GUARD[0] in options):
            options = [*options, self.folder / "hook.o"]
        if compiler is self.arguments.farcc and GUARD[0] in options:
            options = [*options, self.folder / "guards.o"]
        if compiler is self.arguments.farcc and TRANSLATE[-1] in options and TRANSLATE[0] in options:
            options = [*options, self.folder / "runtime.o"]
        status, output, errors = run([compiler, "-w", "-I", self.arguments.include, source, *options, "-o", program], 300)
        if status != 0:
            return f"{compiler} ended with {status}\n{output}{errors}"
        return None

    def failure_of(self, seed):
        """None where all is as it should be."""
        source = self.folder / f"csmith-{seed}.c"
        made = run([self.arguments.csmith, "--seed", seed, *SIZE, "--output", source], 60, self.folder)
        if made is None or made[0] != 0:
            return "csmith made no program"
        expected = []
        for level in ("-O0", "-O2"):
            failure = self.compile(self.arguments.clang, source, self.folder / "plain", level)
            if failure is not None:
                return failure
            expected.append(run([self.folder / "plain"], 0.15))
        # csmith means its programs to end well and to have one meaning; a few have not, by endless recursion for one.
        if expected[0] is None or expected[0][0] != 0 or expected[0] != expected[1]:
            self.meaningless += 1
            return None
        expected = expected[0]
        is_quick = run([self.folder / "plain"], QUICK) is not None
        for name, options in ways_of(seed, self.arguments.all_levels):
            is_far = options[:-1] in FAR
            failure = self.compile(self.arguments.farcc, source, self.folder / "with", *options)
            if failure is not None:
                return f"{name}: {failure}"
            for mode in (["direct"] if is_quick else []) + ["cached"] if is_far else [None]:
                # Counting makes a tight loop fifty times as long.
                variables = {"FARHEAP_FAR_MODE": mode} if mode else {}
                found = run([self.folder / "with"], 200, self.folder, **variables)
                if found is None or found[:2] != expected[:2]:
                    return f"{name}{f' {mode}' if mode else ''}: {found} instead of {expected}"
                self.calls += sum(map(int, re.findall(r"hook called (\d+) times", found[2])))
                self.compared += 1
                self.direct += mode == "direct"
                self.cached += mode == "cached"
        source.unlink()
        return None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--farcc", required=True, type=pathlib.Path)
    parser.add_argument("--clang", required=True, type=pathlib.Path)
    parser.add_argument("--include", type=pathlib.Path, default=pathlib.Path("/usr/include/csmith"))
    parser.add_argument("--programs", type=int, default=50)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--all-levels", action="store_true")
    parser.add_argument("--keep", type=pathlib.Path, default=pathlib.Path.cwd(), help="where what fails is put")
    arguments = parser.parse_args()
    arguments.csmith = shutil.which("csmith")
    if arguments.csmith is None or not (arguments.include / "csmith.h").exists():
        print("SKIPPED, NOT TESTED: there is no csmith; apt install csmith libcsmith-dev")
        sys.exit(SKIPPED)
    with tempfile.TemporaryDirectory(prefix="farheap-csmith-") as folder:
        tests = Tests(arguments, pathlib.Path(folder))
        for name, text in (("hook", HOOK), ("runtime", RUNTIME)):
            (tests.folder / f"{name}.c").write_text(text, encoding="utf-8")
            subprocess.run([arguments.clang, "-O1", "-c", tests.folder / f"{name}.c", "-o",
                            tests.folder / f"{name}.o"], check=True)
        here = pathlib.Path(__file__).resolve().parent
        subprocess.run([arguments.clang, "-O1", "-I", here.parent.parent / "include", "-c", here / "guard_runtime.c", "-o",
                        tests.folder / "guards.o"], check=True)
        failed = 0
        for seed in range(arguments.first, arguments.first + arguments.programs):
            failure = tests.failure_of(seed)
            if failure is not None:
                failed += 1
                kept = arguments.keep / f"csmith-{seed}.c"
                if (tests.folder / kept.name).exists():
                    shutil.copy(tests.folder / kept.name, kept)
                print(f"FAILED: seed {seed} (kept as {kept}): {failure}", flush=True)
    print(f"{arguments.programs} programs, {tests.meaningless} of them without a meaning; {tests.compared} comparisons, "
          f"{tests.direct} of them with a store, {tests.cached} in mode cached, {tests.calls} calls of the hook")
    if (tests.calls == 0 or tests.compared < arguments.programs or
            min(tests.direct, tests.cached) < arguments.programs // 2):
        sys.exit("FAILED: hints were hardly tested")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
