#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks that the environment is read in one place, src/base/environment.hpp: in a program with raised rights nothing
in it counts, and who asks the C library forgets that.

  environment_law.py [ROOT]     exit status 0 if the law holds, else 1 with one line for every violation
"""

import pathlib
import re
import sys

import include_law

ACCESSOR = pathlib.Path("src/base/environment.cpp")
# The tool is nobody's with raised rights; of `environ` it hides what is secret there.
FORBIDDEN = {
    "src": r"\b(secure_)?getenv\s*\(|\benviron\b",
    "include": r"\b(secure_)?getenv\s*\(|\benviron\b",
    "compat": r"\b(secure_)?getenv\s*\(|\benviron\b",
    "compiler/runtime": r"\b(secure_)?getenv\s*\(|\benviron\b",
    "compiler/counts": r"\bgetenv\s*\(|\benviron\b",  # in C, alone in a program
    "tool": r"\b(secure_)?getenv\s*\(",
}


def without_comment(line):
    return line.partition("//")[0]


def violations(root):
    for folder, forbidden in FORBIDDEN.items():
        pattern = re.compile(forbidden)
        for path in include_law.files_below(root / folder):
            inside = path.relative_to(root)
            if inside == ACCESSOR:
                continue
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                if found := pattern.search(without_comment(line)):
                    yield f"{inside}:{number}: {found.group(0).strip('( ')} is for {ACCESSOR} only"


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2])
    found = list(violations(root))
    print("\n".join(found) if found else "the environment is read in one place")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
