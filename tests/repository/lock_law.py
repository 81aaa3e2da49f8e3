#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks that locks are ours (src/base/mutex.hpp), and with clang that what they guard is used with them alone.

  lock_law.py [--build BUILD] [--all | FILE...]
      With --build, clang looks at the sources of that build that know a lock: all, or the files and those that include
      them. Exit status 0 if the law holds, else 1 with one line for every violation.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

import include_law

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ("src", "tool", "compiler/runtime")
WORDS = pathlib.Path("src/base/thread_safety.hpp")
OURS = {pathlib.Path("src/base/mutex.hpp")}
# The analysis knows nothing of those of the standard library.
FORBIDDEN = re.compile(
    r"\bstd::((recursive_|timed_|shared_|recursive_timed_|shared_timed_)?mutex|lock_guard|scoped_lock|unique_lock|shared_lock"
    r"|condition_variable)\b(?!_any)")
CLANG = "clang++-19"
FLAGS = ("-fsyntax-only", "-Wno-everything", "-Wthread-safety", "-Werror")


def foreign_locks(root):
    for folder in FOLDERS:
        for path in include_law.files_below(root / folder):
            inside = path.relative_to(root)
            if inside in OURS:
                continue
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                if found := FORBIDDEN.search(line.partition("//")[0]):
                    yield f"{inside}:{number}: {found.group(0)} is for src/base/mutex.hpp only: clang cannot check it"


def clang_says(source, options, folder=None):
    """What clang has against the locks of a source; empty if nothing."""
    done = subprocess.run([CLANG, *options, *FLAGS, str(source)], cwd=folder, capture_output=True, text=True,
                          check=False)
    return done.stderr if done.returncode != 0 else ""


# ---- the sources of a build

def included_by(root, path):
    """The files of the repository that it includes itself."""
    for _, quote, name in include_law.includes_of(path):
        for folder in ((path.parent,) if quote == '"' else ()) + (root / "src", root / "include", root):
            if (folder / name).is_file():
                yield (folder / name).resolve()
                break


class Includes:
    def __init__(self, root):
        self.root = root
        self.known = {}

    def of(self, path):
        """It, and all files of the repository that it includes, near and far."""
        if path not in self.known:
            self.known[path] = {path}  # an end, should two include each other
            for included in set(included_by(self.root, path)):
                self.known[path] = self.known[path] | self.of(included)
        return self.known[path]


def options_of(entry):
    """What the build's compiler was told, without the output, warnings and what only gcc knows."""
    words = shlex.split(entry["command"])[1:]
    options, at = [], 0
    while at < len(words):
        if words[at] in ("-o", "-MF", "-MT"):
            at += 2
            continue
        if words[at] not in ("-c", entry["file"]) and re.match(r"-(D|I|isystem|include|std=|m(?!tune)|f(PI|sanitize=))",
                                                               words[at]):
            options.append(words[at])
            if words[at] in ("-D", "-I", "-isystem", "-include"):
                at += 1
                options.append(words[at])
        at += 1
    return options


def sources(root, build, changed):
    """(source, options, folder) of all that know a lock; of those that are, or include, a changed one if any is given."""
    includes = Includes(root)
    changed = None if changed is None else {pathlib.Path(path).resolve() for path in changed}
    for entry in json.loads((build / "compile_commands.json").read_text(encoding="utf-8")):
        path = pathlib.Path(entry["file"]).resolve()
        if not path.is_file() or path.suffix != ".cpp" or not any(root / folder in path.parents for folder in FOLDERS):
            continue
        known = includes.of(path)
        if (root / WORDS) in known and (changed is None or known & changed):
            yield path, options_of(entry), entry["directory"]


def violations(root):
    yield from foreign_locks(root)


def main():
    parser = argparse.ArgumentParser(description="Checks that locks are ours, and what they guard is used with them.")
    parser.add_argument("--build", type=pathlib.Path, help="a build folder: clang looks at its sources")
    parser.add_argument("--all", action="store_true", help="at every source, not at the given files alone")
    parser.add_argument("files", nargs="*", help="what was changed")
    arguments = parser.parse_args()
    found = list(violations(ROOT))
    if arguments.build:
        chosen = sources(ROOT, arguments.build.resolve(), None if arguments.all else arguments.files)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as threads:
            found += [text for text in threads.map(lambda one: clang_says(*one), chosen) if text]
    for line in found:
        print(line.rstrip(), file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
