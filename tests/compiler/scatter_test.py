#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A hint before a loop is about that loop: what is looked up at random afterwards is read page by page, as without.

  scatter_test.py TOOL GUEST

It was not: each miss read 256 KiB, and a bucket sort took more than a minute instead of three seconds.
"""

import re
import subprocess
import sys

MIB = 1 << 20


def run(tool, guest, how):
    """(output, bytes read from the store)."""
    done = subprocess.run([tool, "run", "--memory", "48M", "--stats=json", "--", guest, how], capture_output=True,
                          text=True, check=False, timeout=200)
    found = re.search(r'"bytes_read":\s*(\d+)', done.stderr)
    if done.returncode != 0 or not found:
        sys.exit(f"{how}: {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout, int(found.group(1))


def main():
    plain, plain_bytes = run(*sys.argv[1:], "plain")
    hinted, hinted_bytes = run(*sys.argv[1:], "hinted")
    print(f"read: {plain_bytes // MIB} MiB without, {hinted_bytes // MIB} MiB with the hint")
    if plain != hinted:
        sys.exit(f"FAILED: {hinted} instead of {plain}")
    # The walks read a few windows more or less; 1,500 misses of 256 KiB would be 375 MiB.
    if plain_bytes < 20 * MIB or hinted_bytes > plain_bytes + 80 * MIB:
        sys.exit("FAILED: with the hint, random look-ups read much more, or nothing was paged at all")


if __name__ == "__main__":
    main()
