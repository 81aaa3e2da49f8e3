#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes the descriptions of the machine's Debian packages into one file: real data that every Debian has.

  packages.py FILE [--packages N]

Takes them from apt's lists, or, where there are none, from dpkg's status. When that is less than asked for, the
records are repeated with another number in their names and versions, the same ones each time.
"""

import argparse
import os
import re
import subprocess
import sys

DPKG_STATUS = "/var/lib/dpkg/status"


def _from_apt():
    try:
        done = subprocess.run(["apt-cache", "dumpavail"], capture_output=True, check=False)
    except FileNotFoundError:
        return ""
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else ""


def _from_dpkg():
    try:
        with open(DPKG_STATUS, encoding="utf-8", errors="replace") as file:
            return file.read()
    except FileNotFoundError:
        return ""


def all_records():
    """What the machine knows of packages, in a fixed order. Raises OSError where it knows none at all."""
    text = _from_apt()
    if text.count("\nPackage: ") < 1000:
        text = _from_dpkg()
    found = sorted(record for record in text.split("\n\n") if record.startswith("Package: "))
    if not found:
        raise OSError(f"neither apt-cache nor {DPKG_STATUS} knows a package: is this a Debian?")
    return found


def records(count):
    """Exactly `count` package records, in a fixed order. Raises OSError where the machine has none at all."""
    found = all_records()
    step = max(1, len(found) // count)
    found = found[::step][:count]
    for number in range(count):
        turn, place = divmod(number, len(found))
        record = found[place]
        if turn:
            record = re.sub(r"^Package: (\S+)", rf"Package: \1-copy{turn}", record, count=1)
            record = re.sub(r"^Version: (\S+)", rf"Version: \1+{turn}", record, count=1, flags=re.MULTILINE)
        yield record


def write(path, count):
    """Writes `count` records; returns the bytes written. The file appears whole or not at all."""
    temporary = f"{path}.{os.getpid()}"
    with open(temporary, "w", encoding="utf-8") as out:
        for record in records(count):
            out.write(record + "\n\n")
    os.replace(temporary, path)
    return os.path.getsize(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("--packages", type=int, default=60000)
    options = parser.parse_args()
    try:
        print(f"{write(options.file, options.packages)} bytes", file=sys.stderr)
    except OSError as error:
        print(f"packages.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
