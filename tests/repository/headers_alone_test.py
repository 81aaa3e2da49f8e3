#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every public header compiles alone, with exceptions and RTTI and without, and says nothing.

  headers_alone_test.py INCLUDE COMPILER... [--launcher PROGRAM] [--full]

The launcher is that of the build: what ccache has compiled before it need not compile again. For it, sources and
objects have the same names each time, in a folder where the test runs.
"""

import argparse
import concurrent.futures
import pathlib
import re
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
    parser = argparse.ArgumentParser()
    parser.add_argument("include", type=pathlib.Path)
    parser.add_argument("compilers", nargs="+")
    parser.add_argument("--launcher")
    parser.add_argument("--full", action="store_true")
    given = parser.parse_args()
    modes = MODES + MORE_MODES if given.full else MODES
    headers = sorted(str(path.relative_to(given.include)) for path in given.include.rglob("*.h*"))
    folder = pathlib.Path("headers_alone.full" if given.full else "headers_alone")
    folder.mkdir(exist_ok=True)
    launcher = [given.launcher] if given.launcher else []

    def source_of(header):
        return folder / ("use.cpp" if header is None else re.sub(r"\W", "_", header) + ".cpp")

    for header in [None, *headers]:
        source_of(header).write_text(USE if header is None else f"#include <{header}>\n", encoding="utf-8")

    def check(job):
        compiler, mode, header = job
        source = source_of(header)
        compiled = source.with_suffix(f".{pathlib.Path(compiler).name}{''.join(mode)}.o")
        done = subprocess.run([*launcher, compiler, "-std=c++20", "-Wall", "-Wextra", "-Werror", *mode,
                               "-I", given.include, "-c", source, "-o", compiled],
                              check=False, capture_output=True, text=True)
        refusal = NEEDS_ALL.get(header) if mode else None
        if refusal is not None and done.returncode != 0 and refusal in done.stderr:
            return None
        if refusal is None and done.returncode == 0:
            return None
        return f"{compiler} {' '.join(mode)} {header}:\n{done.stderr[:1500]}"

    jobs = [(compiler, mode, header) for compiler in given.compilers for mode in modes for header in [None, *headers]]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        failures = [failure for failure in pool.map(check, jobs) if failure]
    print("\n".join(failures) or f"{len(headers)} headers, {len(jobs)} times")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
