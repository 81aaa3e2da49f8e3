#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs the "; RUN:" lines of passes/*.ll with opt and FileCheck.

  passes_test.py --plugin FILE --tools FOLDER [NAME]...

%s is the file itself, %t a temporary one, %plugin the passes. A line fails if any part of its pipe does.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

FOLDER = pathlib.Path(__file__).resolve().parent / "passes"


def lines_of(path):
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("; RUN: "):
            yield line.removeprefix("; RUN: ")


def failure_of(path, arguments, work):
    """None if all lines do what they should, otherwise what went wrong."""
    lines = list(lines_of(path))
    if not lines:
        return "there is no RUN line in it"
    environment = dict(os.environ, PATH=f"{arguments.tools}:{os.environ['PATH']}")
    for line in lines:
        command = line.replace("%plugin", str(arguments.plugin)).replace("%s", str(path))
        command = command.replace("%t", str(pathlib.Path(work, path.stem)))
        done = subprocess.run(["bash", "-o", "pipefail", "-f", "-c", command], check=False, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment)
        if done.returncode != 0:
            return f"{command}\n{done.stdout}"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plugin", required=True, type=pathlib.Path)
    parser.add_argument("--tools", required=True, type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    paths = sorted(path for path in FOLDER.glob("*.ll") if not arguments.names or path.stem in arguments.names)
    if not paths:
        sys.exit("no such test")
    failed = 0
    with tempfile.TemporaryDirectory(prefix="farheap-passes-") as work:
        for path in paths:
            failure = failure_of(path, arguments, work)
            print(("ok      " if failure is None else "FAILED  ") + path.stem, flush=True)
            if failure is not None:
                failed += 1
                print(failure, flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
