#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""No password that stands in a store's URI comes out of the command: on a terminal, in a file, or through ps."""

import argparse
import os
import pathlib
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest

TOOL = RUNTIME = LIBRARY = ""
SECRET = "hunter2"
PYTHON = os.path.realpath(sys.executable)
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


def environments(pid):
    """As command_lines()."""
    found = [pathlib.Path(f"/proc/{pid}/environ").read_bytes().decode()]
    for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="utf-8").split():
        found += environments(int(child))
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

    def test_no_environment_shows_one(self):
        with subprocess.Popen([TOOL, "run", "--plain", "--", "sleep", "60"], env=environment(FARHEAP_STORE=URI)) as running:
            try:
                while not any(line.startswith("sleep") for line in command_lines(running.pid)):
                    time.sleep(0.01)
                shown = environments(running.pid)
            finally:
                running.terminate()
        self.assertGreaterEqual(len(shown), 2)
        self.assert_kept("\n".join(shown), "environ")
        self.assertIn("FARHEAP_STORE=redis://user@127.0.0.1:1/7", shown[-1])

    def test_the_program_s_own_words_are_left_alone(self):
        done = tool("run", "--plain", "--", "echo", URI)
        self.assertEqual(done.stdout, URI + "\n")


class Redis:
    """A server with a password, on a free port."""

    def __init__(self, folder):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        configuration = pathlib.Path(folder, "redis.conf")
        configuration.write_text(f"bind 127.0.0.1\nport {self.port}\nrequirepass {SECRET}\nsave \"\"\ndir {folder}\n",
                                 encoding="utf-8")
        self.process = subprocess.Popen(["redis-server", str(configuration)], stdout=subprocess.DEVNULL)
        for _ in range(600):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.05)
        raise AssertionError("redis-server does not answer")

    def stop(self):
        self.process.kill()
        self.process.wait()


# Needs more than its budget, and then says all that it can find out about itself; and so does a child of another name.
PROGRAM = """
import os, subprocess, sys
data = [bytes([i % 251]) * (1 << 20) for i in range(96)]
assert all(block[-1] == i % 251 for i, block in enumerate(data))
print(open('/proc/self/cmdline').read(), open('/proc/self/environ').read(), dict(os.environ))
process = os.getppid()
while process > 1:  # the guardian, the command, and what is above
    print(open(f'/proc/{process}/cmdline').read())
    if 'farheap' not in open(f'/proc/{process}/comm').read():
        break
    print(open(f'/proc/{process}/environ').read())
    process = int(open(f'/proc/{process}/stat').read().rpartition(')')[2].split()[1])
if len(sys.argv) == 1:
    subprocess.run([sys.executable, sys.argv[0], 'child'], check=True)
"""


# Pages, and then dumps its core.
ABORTS = """
import os
data = [bytes([i % 251]) * (1 << 20) for i in range(96)]
assert all(block[-1] == i % 251 for i, block in enumerate(data))
os.abort()
"""

# Becomes another user, with all that it has inherited, and prints what it can read of it: also of the tool's.
BECOMES_ANOTHER = """
import os, sys
tool = int(os.environ['FARHEAP_RUN_PAGE'].replace('/proc/', '').replace('/', ':').split(':')[0])
os.setgroups([]); os.setresgid(65534, 65534, 65534); os.setresuid(65534, 65534, 65534)
for process in ('self', tool):
    try:
        names = os.listdir(f'/proc/{process}/fd')
    except OSError:
        names = [str(number) for number in range(690, 720)]
    for name in names:
        for open_it in (lambda: os.dup(int(name)), lambda: os.open(f'/proc/{process}/fd/{name}', os.O_RDONLY)):
            try:
                if 'memfd' in os.readlink(f'/proc/{process}/fd/{name}'):
                    sys.stdout.write(os.pread(open_it(), 1 << 24, 0).decode('latin1'))
            except OSError:
                pass
"""


@unittest.skipIf(shutil.which("redis-server") is None, "NO redis-server HERE: passwords are not tested with a server")
class WithAServer(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.server = Redis(cls.folder.name)
        cls.password = pathlib.Path(cls.folder.name, "password")
        cls.password.write_text(SECRET + "\n", encoding="utf-8")
        cls.password.chmod(0o600)
        cls.program = pathlib.Path(cls.folder.name, "program.py")
        cls.program.write_text(PROGRAM, encoding="utf-8")

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()
        cls.folder.cleanup()

    def run_program(self, words, **variables):
        command = [TOOL, "run", "--memory", "48M", "--set", "log=debug", *words, "--", sys.executable, str(self.program)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env=environment(FARHEAP_PRELOAD=LIBRARY, **variables)) as running:
            out, errors = running.communicate(timeout=120)
        return running.returncode, out, errors

    def test_a_run_with_each_way_to_give_it(self):
        at = f"127.0.0.1:{self.server.port}/7"
        for words, variables in (
                (("--store", f"redis://:{SECRET}@{at}"), {}),
                (("--stats=json", "--store", f"redis://default:{SECRET}@{at}"), {}),
                ((), {"FARHEAP_STORE": f"redis://:{SECRET}@{at}"}),
                (("--store", f"redis://{at}?password_file={self.password}"), {}),
                (("--store", f"redis://{at}", "--set", f"store.password_file={self.password}"), {}),
                (("--store", f"pages=redis://:{SECRET}@{at}/a,sync=redis://:{SECRET}@{at}/b"), {})):
            with tempfile.TemporaryDirectory() as folder:
                trace = pathlib.Path(folder, "trace")
                status, out, errors = self.run_program((*words, "--trace", str(trace)), **variables)
                self.assertEqual(status, 0, (words, errors))
                self.assertIn("redis://", errors, words)  # it was used, and said
                for text in (out, errors, trace.read_text(encoding="utf-8")):
                    self.assertNotIn(SECRET, text, words)

    def test_no_core_has_one(self):
        pattern = pathlib.Path("/proc/sys/kernel/core_pattern").read_text(encoding="utf-8").strip()
        if pattern != "core" or resource.getrlimit(resource.RLIMIT_CORE)[1] == 0:
            self.skipTest(f"NOT TESTED: no cores in the current folder here: '{pattern}'")
        most = resource.getrlimit(resource.RLIMIT_CORE)
        resource.setrlimit(resource.RLIMIT_CORE, (most[1], most[1]))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_CORE, most)
        at = f"127.0.0.1:{self.server.port}/7"
        for words in (("--store", f"redis://:{SECRET}@{at}"),
                      ("--store", f"redis://{at}?password_file={self.password}"),
                      ("--store", f"pages=redis://:{SECRET}@{at}/a,sync=redis://:{SECRET}@{at}/b")):
            with tempfile.TemporaryDirectory(prefix="farheap-secret-core-", dir="/var/tmp") as folder:
                done = subprocess.run([TOOL, "run", "--memory", "48M", *words, "--", PYTHON, "-c", ABORTS], cwd=folder,
                                      env=environment(FARHEAP_PRELOAD=LIBRARY), capture_output=True, text=True,
                                      check=False, timeout=120)
                self.assertEqual(done.returncode, 128 + 6, done.stderr)
                self.assertIn("1 process, paged", done.stderr)
                [core] = pathlib.Path(folder).iterdir()
                content = core.read_bytes()
                self.assertIn(b"ELF", content[:4])
                where = content.find(SECRET.encode())
                self.assertEqual(where, -1, (words, content[max(0, where - 64):where + 64]))

    @unittest.skipIf(os.geteuid() != 0, "only root can become another user")
    def test_another_user_of_the_run_does_not_get_it(self):
        at = f"127.0.0.1:{self.server.port}/7"
        done = subprocess.run([TOOL, "run", "--memory", "48M", "--store", f"redis://:{SECRET}@{at}", "--", PYTHON, "-c",
                               BECOMES_ANOTHER], env=environment(FARHEAP_PRELOAD=LIBRARY), capture_output=True,
                              text=True, errors="replace", check=False, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertFalse(SECRET in done.stdout)  # not NotIn: it would print megabytes

    def test_a_variable_that_holds_it_is_not_handed_on(self):
        at = f"127.0.0.1:{self.server.port}/7"
        status, out, errors = self.run_program(("--store", f"redis://{at}?password_env=MINE"), MINE=SECRET)
        self.assertEqual(status, 0, errors)
        self.assertNotIn(SECRET, errors)
        self.assertNotIn(SECRET, out)  # in no environment: the program's, its child's, the command's

    def test_without_or_with_a_wrong_one(self):
        at = f"127.0.0.1:{self.server.port}/7"
        for uri in (f"redis://{at}", f"redis://:{SECRET}x@{at}", f"redis://nobody:{SECRET}@{at}"):
            done = tool("run", "--store", uri, "--", "true", FARHEAP_PRELOAD=LIBRARY)
            self.assertEqual(done.returncode, 1, uri)
            self.assertNotIn(SECRET, done.stdout + done.stderr)
            self.assertIn("password", done.stderr)

    def test_verbs_that_reach_the_server(self):
        uri = f"redis://:{SECRET}@127.0.0.1:{self.server.port}/7"
        for words in (("store", "ls", uri), ("store", "ls", uri, "--json"), ("store", "bench", uri, "--json"),
                      ("store", "rm", uri + "/none"), ("store", "copy", uri + "/none", uri + "/other"),
                      ("heap", "ls", uri + "/none"), ("doctor", "--set", f"store={uri}")):
            done = tool(*words)
            self.assertNotIn(SECRET, done.stdout + done.stderr, words)

    def test_verbs_of_a_heap_that_is_there(self):
        uri = f"redis://:{SECRET}@127.0.0.1:{self.server.port}/7/graph"
        made = subprocess.run([WORDS, uri], input="a b a", capture_output=True, text=True, timeout=100, check=False)
        self.assertEqual((made.returncode, made.stderr), (0, ""))
        for words in (("ls", uri), ("check", uri), ("stats", uri), ("diff", uri, uri), ("show", uri, "words"),
                      ("copy", uri, uri + "2"), ("compact", uri), ("check", uri, "--repair"), ("rm", uri + "2")):
            for form in ([], ["--json"]):
                done = tool("heap", *words, *form)
                self.assertNotIn(SECRET, done.stdout + done.stderr, words)
                if words[0] not in ("show", "copy", "rm"):
                    self.assertEqual(done.returncode, 0, (words, done.stderr))


def main():
    global TOOL, RUNTIME, LIBRARY, WORDS
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--tool", required=True)
    parser.add_argument("--runtime", required=True)
    parser.add_argument("--library", required=True)
    parser.add_argument("--words", required=True)
    known, rest = parser.parse_known_args()
    TOOL, RUNTIME, LIBRARY, WORDS = known.tool, known.runtime, known.library, known.words
    unittest.main(argv=[sys.argv[0], *rest], verbosity=2)


if __name__ == "__main__":
    main()
