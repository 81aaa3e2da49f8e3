#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks that every text file names its licence in its first lines.

  licence_lines.py [ROOT]   exit status 0 if all do, else 1 with one line for every file that does not
"""

import pathlib
import subprocess
import sys

LINE = "SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception"
WITHIN = 5  # lines: a "#!" line or an opening comment may come first
# No comments are possible there, or none of ours: data, pictures, recorded figures.
WITHOUT = {".json", ".png", ".svg", ".csv", ".txt.gz", ".bin"}
NAMES_WITHOUT = {".gitignore", ".gitattributes"}
# Corpora, and what others wrote, with licences of its own beside it.
FOLDERS_WITHOUT = ("tests/fuzz/corpus/", "third_party/googleapis/", "third_party/etcd/", "third_party/web/")


def files_of(root):
    """What git knows or would take; outside of git, everything."""
    listed = subprocess.run(["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                            capture_output=True, check=False)
    if listed.returncode == 0:
        names = [name for name in listed.stdout.decode().split("\0") if name]
    else:
        names = [str(path.relative_to(root)) for path in root.rglob("*")]
    return sorted(path for path in map(root.joinpath, names) if path.is_file())


def has_line(path):
    try:
        with path.open(encoding="utf-8") as file:
            return any(LINE in line for _, line in zip(range(WITHIN), file))
    except UnicodeDecodeError:
        return True  # not a text


def violations(root):
    for path in files_of(root):
        if path.suffix in WITHOUT or path.name in NAMES_WITHOUT or path.stat().st_size == 0:
            continue
        if path.relative_to(root).as_posix().startswith(FOLDERS_WITHOUT):
            continue
        if not has_line(path):
            yield f"{path.relative_to(root)}: no line `{LINE}` at its start"


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2])
    found = list(violations(root))
    print("\n".join(found) if found else "every file names its licence")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
