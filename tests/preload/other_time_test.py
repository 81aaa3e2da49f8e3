# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs whose clock is another one than the kernel's (faketime): a kept heap and runs end as they would with it."""

import argparse
import shutil
import subprocess
import sys
import tempfile

PATIENCE_S = 100
TIMES = ("2001-01-01 00:00:00", "2038-01-01 00:00:00", "+0 x50")


def run(command, text=None):
    """Its output. A time-out ends the test: something waits for a moment of another clock."""
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}: {done.stderr}")
    return done.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tool", required=True)
    parser.add_argument("--words", required=True, help="examples/heap/words")
    parser.add_argument("--cases", required=True)
    wanted = parser.parse_args()
    faketime = shutil.which("faketime")
    if faketime is None:
        print("NOT TESTED: faketime is not installed")
        sys.exit(77)
    folder = tempfile.mkdtemp(prefix="farheap-time-", dir="/var/tmp")
    try:
        for number, time in enumerate(TIMES, 1):
            at = [faketime, "-f", time] if time.startswith("+") else [faketime, time]
            words = run([*at, wanted.words, f"file:{folder}/words"], "one two two\n")
            if f"{2 * number} two\n{number} one\n" != words:
                sys.exit(f"the heap of {time} has {words}")
            farheap = [wanted.tool, "run", "--quiet", "--memory", "32M", "--store", f"file:{folder}", "--"]
            program = [wanted.cases, "patterns_of_four_threads"]
            plain = run(program)
            for command in ([*at, *farheap, *program], [*farheap, *at, *program], [*at, *farheap, *program]):
                if run(command) != plain:
                    sys.exit(f"{' '.join(command)} has other output")
    finally:
        shutil.rmtree(folder)


main()
