#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every public header compiles alone, with exceptions and RTTI and without, and says nothing."""

import concurrent.futures
import pathlib
import subprocess
import sys

MODES = ([], ["-fno-rtti", "-fno-exceptions"])
MORE_MODES = (["-fno-rtti"], ["-fno-exceptions"])  # with --full
# Headers that need what a mode takes away, and the line in which they say so.
NEEDS_ALL = {"farheap/import_interprocess.hpp": "compile this file with -fexceptions -frtti"}
# What such programs do: it has to compile, not only the header.
USE = """
#include <farheap/containers/std.hpp>
#include <farheap/farheap.hpp>
int use(farheap::Heap& heap) {
  auto& numbers = *heap.find_or_construct<farheap::vector<int>>("numbers")();
  numbers.push_back(1);
  return static_cast<int>(heap.find_array<int>("array").length) + farheap::Heap::has_writer("file:x").value();
}
"""


def main():
    words = [word for word in sys.argv[1:] if word != "--full"]
    modes = MODES + MORE_MODES if "--full" in sys.argv else MODES
    include, compilers = pathlib.Path(words[0]), words[1:]
    headers = sorted(str(path.relative_to(include)) for path in include.rglob("*.h*"))

    def check(job):
        compiler, mode, header = job
        text = USE if header is None else f"#include <{header}>\n"
        done = subprocess.run([compiler, "-std=c++20", "-Wall", "-Wextra", "-Werror", *mode, "-I", include, "-fsyntax-only",
                               "-x", "c++", "-"], input=text, check=False, capture_output=True, text=True)
        refusal = NEEDS_ALL.get(header) if mode else None
        if refusal is not None and done.returncode != 0 and refusal in done.stderr:
            return None
        if refusal is None and done.returncode == 0:
            return None
        return f"{compiler} {' '.join(mode)} {header}:\n{done.stderr[:1500]}"

    jobs = [(compiler, mode, header) for compiler in compilers for mode in modes for header in [None, *headers]]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        failures = [failure for failure in pool.map(check, jobs) if failure]
    print("\n".join(failures) or f"{len(headers)} headers, {len(jobs)} times")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
