#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks that no two types of a namespace have one name: the linker would take the functions of one of them, as those of
a vector of it, for both, and nothing says so. (Two that were called PageUse broke the planner, where nothing was inlined.)

  one_definition_law.py [ROOT]   exit status 0 if the law holds, else 1 with one line for each further definition

Looked at are types in no other type and no unnamed namespace, as clang-format writes them, below src and tool.
"""

import pathlib
import re
import sys

FOLDERS = ("src", "tool")
NAMESPACE = re.compile(r"(?:inline )?namespace ?([\w:]*) ?\{(?!.*\})")
END = re.compile(r"\}  // namespace")
TYPE = re.compile(r"(?:struct|class|union|enum(?: class)?)\s+(?:\w+\([^)]*\)\s+)?(\w+)(?: final)?(?:\s+:\s[^{]*)?\s*\{")


def definitions(text):
    """(line, qualified name) of each type at the level of a namespace."""
    names = []
    for number, line in enumerate(text.splitlines(), 1):
        if begun := NAMESPACE.match(line):
            names.append(begun.group(1))
        elif END.match(line):
            names[-1:] = []
        elif (found := TYPE.match(line)) and "" not in names:
            yield number, "::".join((*names, found.group(1)))


def violations(root):
    seen = {}
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in (".hpp", ".cpp"):
                continue
            place = path.relative_to(root).as_posix()
            for line, name in definitions(path.read_text(encoding="utf-8")):
                if name in seen:
                    yield f"{place}:{line}: {name} is defined in {seen[name]}, too; give one of them another name"
                seen.setdefault(name, f"{place}:{line}")


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2])
    found = list(violations(root))
    print("\n".join(found) if found else "every name of a type is that of one")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
