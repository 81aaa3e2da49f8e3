# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tests that failed, with the ends of what they printed: for the end of a long log, which is what is kept of it.

    python3 tests/repository/failed_tests.py build/dev/results.xml [LINES]

Reads what `ctest --output-junit` wrote. A file that is missing or broken is said so: the run that should have written it ended early."""

import sys
import xml.etree.ElementTree as xml

LINES = 40


def failed(file: str) -> list[tuple[str, str, str]]:
    """(name, seconds that it ran, output) of each test of the JUnit file that failed."""
    tests = xml.parse(file).getroot().iter("testcase")
    return [(test.get("name", "?"), test.get("time", "?"), test.findtext("system-out") or "") for test in tests if test.get("status") == "fail"]


def main() -> int:
    file, lines = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else LINES
    try:
        for name, seconds, output in failed(file):
            print(f"    {name}, after {seconds} s")
            for line in output.splitlines()[-lines:]:
                print(f"      | {line}")
    except (OSError, xml.ParseError) as error:
        print(f"    {file} does not say which: {error}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
