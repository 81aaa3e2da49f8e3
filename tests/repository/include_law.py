#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks the include order: a folder of src/ includes only those before it, public headers nothing of src/.

  include_law.py [ROOT]     exit status 0 if the law holds, else 1 with one line for every violation
"""

import pathlib
import re
import sys

# From the bottom to the top. A folder that is not listed breaks the law as well.
ORDER = ("base", "os", "store", "engines", "pager", "segment", "heap", "share", "profile", "plan", "preload", "hints", "api")
SOURCES = {".c", ".cpp", ".h", ".hpp", ".inc"}
# Known in a folder or file or two only, so that users and the runtime need not compile or link them.
ONLY_IN = {"CLI/": ("tool",), "nlohmann/": ("tool", "plan", "api/json_text.cpp")}
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')


def includes_of(path):
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        found = INCLUDE.match(line)
        if found:
            yield number, found.group(1), found.group(2)


def files_below(folder):
    return sorted(path for path in folder.rglob("*") if path.suffix in SOURCES)


def folder_of(root, path, quote, included):
    """The folder of src/ an include leads to; None when it leads elsewhere."""
    if quote == '"' and (path.parent / included).exists():
        resolved = (path.parent / included).resolve()
        source = (root / "src").resolve()
        return resolved.relative_to(source).parts[0] if source in resolved.parents else None
    first = included.split("/")[0]
    return first if "/" in included and (root / "src" / first).is_dir() else None


def public_header_violations(root):
    for path in files_below(root / "include"):
        for number, quote, included in includes_of(path):
            if folder_of(root, path, quote, included) is not None:
                yield f"{path.relative_to(root)}:{number}: a public header includes {included} of src/"


def source_violations(root):
    for path in files_below(root / "src"):
        inside = path.relative_to(root / "src")
        own = inside.parts[0]
        if own not in ORDER:
            yield f"{path.relative_to(root)}: src/{own} has no place in the include order"
            continue
        for number, quote, included in includes_of(path):
            other = folder_of(root, path, quote, included)
            where = f"{path.relative_to(root)}:{number}"
            if other is not None and other not in ORDER:
                yield f"{where}: src/{other} has no place in the include order"
            elif other is not None and ORDER.index(other) > ORDER.index(own):
                yield f"{where}: {own} includes {included}, which is behind it in the include order"
            if included.startswith(("tool/", "tests/", "bench/", "../")):
                yield f"{where}: includes {included}"
            for prefix, places in ONLY_IN.items():
                if included.startswith(prefix) and own not in places and str(inside) not in places:
                    yield f"{where}: {included} is for {' and '.join(places)} only"


def tool_violations(root):
    for path in files_below(root / "tool"):
        for number, _, included in includes_of(path):
            if included.startswith("CLI/") and path.name != "main.cpp":
                yield f"{path.relative_to(root)}:{number}: {included} is for the tool's main only"


def compiler_violations(root):
    """The passes live inside clang, and the driver starts for every file that is compiled: neither brings a runtime.
    The runtime of translated programs is a user of the library; that of recorded ones writes profiles."""
    for path in files_below(root / "compiler"):
        part = path.relative_to(root / "compiler").parts[0]
        allowed = {"driver": ("base",), "runtime": ("base",), "contexts": ("base", "profile")}.get(part, ())
        for number, quote, included in includes_of(path):
            where = f"{path.relative_to(root)}:{number}"
            other = folder_of(root, path, quote, included)
            if other is not None and other not in allowed:
                yield f"{where}: the compiler includes {included} of src/"
            if not allowed and included.startswith("farheap/"):
                yield f"{where}: the passes include {included}"
            if included.startswith("llvm/") and allowed:
                yield f"{where}: the {part} includes {included}"


def violations(root):
    yield from public_header_violations(root)
    yield from source_violations(root)
    yield from tool_violations(root)
    yield from compiler_violations(root)


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2])
    found = list(violations(root))
    print("\n".join(found) if found else "the include law holds")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
