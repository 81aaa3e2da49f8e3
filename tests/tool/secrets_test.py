#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""No password that stands in a store's URI comes out of the command: on a terminal, in a file, or through ps."""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

TOOL = RUNTIME = ""
SECRET = "hunter2"
URI = f"redis://user:{SECRET}@127.0.0.1:1/7"  # nobody listens there


def environment(**variables):
    kept = {key: value for key, value in os.environ.items() if not key.startswith("FARHEAP_")}
    return {**kept, "FARHEAP_PRELOAD": RUNTIME, **variables}


def tool(*words, **variables):
    return subprocess.run([TOOL, *words], capture_output=True, text=True, env=environment(**variables), check=False,
                          timeout=60)


def command_lines(pid):
    """Of the process and all that it started."""
    found = [pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().decode()]
    for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="utf-8").split():
        found += command_lines(int(child))
    return found


class Secrets(unittest.TestCase):
    def assert_kept(self, text, words):
        self.assertNotIn(SECRET, text, words)

    def test_no_verb_prints_one(self):
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder, "trace")
            for words in (("run", "--store", URI, "--", "true"), ("run", f"--store={URI}?patience_s=x", "--", "true"),
                          ("run", "--store", URI.replace("hunter", "hun/ter"), "--", "true"),
                          ("run", "--memory", URI, "--", "true"), ("run", "--stats", URI, "--", "true"),
                          ("run", "--store", URI + "?patience_s=0", "--trace", str(out), "--stats=json", "--", "true"),
                          ("store", "bench", URI + "?patience_s=0"), ("store", "bench", URI, "more"),
                          ("store", "bench", URI + "?password=" + SECRET), ("store", URI), (URI,), ("top", URI),
                          ("options", "--set", f"store={URI}"), ("options", "--json", "--set", f"store={URI}"),
                          ("options", "--set", URI), ("doctor", "--set", f"store={URI}?patience_s=0"),
                          ("doctor", "--json", "--set", f"store={URI}?patience_s=0"), ("heap", "ls", URI),
                          ("heap", "ls", URI + "/graph@monday"), ("heap", "check", URI), ("heap", "diff", URI, URI),
                          ("heap", "copy", URI, URI), ("heap", "rm", URI), ("heap", "export", URI, "-")):
                done = tool(*words)
                self.assert_kept(done.stdout + done.stderr, words)
                self.assertNotIn("ter2@", done.stdout + done.stderr, words)
            self.assertIn("redis://user@127.0.0.1:1/7", tool("options", FARHEAP_STORE=URI).stdout)
            self.assert_kept(tool("options", FARHEAP_STORE=URI).stdout, "options")

    def test_ps_does_not_show_one(self):
        # With --plain, so that it needs no server: the command line is the same.
        for words in (("--store", URI), (f"--store={URI}",), ("--set", f"store={URI}")):
            with subprocess.Popen([TOOL, "run", *words, "--plain", "--", "sleep", "60"],
                                  env=environment()) as running:
                try:
                    while not any(line.startswith("sleep") for line in command_lines(running.pid)):
                        time.sleep(0.01)
                    lines = command_lines(running.pid)
                finally:
                    running.terminate()
            self.assertGreaterEqual(len(lines), 2)
            self.assertIn("redis://user@127.0.0.1:1/7", lines[0])
            self.assert_kept("\n".join(lines), words)

    def test_the_program_s_own_words_are_left_alone(self):
        done = tool("run", "--plain", "--", "echo", URI)
        self.assertEqual(done.stdout, URI + "\n")


def main():
    global TOOL, RUNTIME
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--tool", required=True)
    parser.add_argument("--runtime", required=True)
    known, rest = parser.parse_known_args()
    TOOL, RUNTIME = known.tool, known.runtime
    unittest.main(argv=[sys.argv[0], *rest], verbosity=2)


if __name__ == "__main__":
    main()
