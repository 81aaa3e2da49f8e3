# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What tests of real runs have in common: the tool, without settings of whoever runs the tests; lines that sources mark;
programs of another build; and a loud line for what cannot be tested here."""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ENVIRONMENT = {key: value for key, value in os.environ.items() if not key.startswith("FARHEAP_")}
_tool = ""


def use(path):
    """The tool that is tested."""
    global _tool
    _tool = os.path.abspath(path)


def tool_path():
    return _tool


def tool(*words, **more):
    more = {"env": ENVIRONMENT, "timeout": 280, **more}
    return subprocess.run([_tool, *map(str, words)], capture_output=True, text=True, check=False, **more)


def skipped(case, why):
    print(f"SKIPPED, NOT TESTED: {case}: {why}", file=sys.stderr, flush=True)
    raise unittest.SkipTest(why)


def why_no_runs():
    """None where programs can be run."""
    works = json.loads(tool("doctor", "--json").stdout)["run_works"]
    return None if works else "`farheap doctor` says that programs cannot be run here"


def needs_runs(case):
    if why_not := why_no_runs():
        skipped(case, why_not)


class InFolder(unittest.TestCase):
    """Cases that share a folder. Where programs cannot be run, each is skipped, with a line."""
    place = None  # where the folder is made; None: where temporary files are

    @classmethod
    def setUpClass(cls):
        cls.why_not = why_no_runs()
        if cls.why_not:
            return
        folder = tempfile.TemporaryDirectory(prefix="farheap-runs-", dir=cls.place)
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)

    def setUp(self):
        if self.why_not:
            skipped(self.id(), self.why_not)


def line_of(source, mark):
    for number, text in enumerate(pathlib.Path(source).read_text(encoding="utf-8").splitlines(), 1):
        if text.endswith(f"// MARK {mark}"):
            return number
    raise AssertionError(f"no line of {source} is marked {mark}")


def change_build(path):
    """Gives the program at this path another build-id."""
    content = bytearray(path.read_bytes())
    identity = re.search(rb"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0(.{20})", bytes(content), re.DOTALL)  # its note
    content[identity.start(1)] ^= 1
    path.unlink()
    path.write_bytes(bytes(content))
    path.chmod(0o755)
