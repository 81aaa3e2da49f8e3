#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A process of a run that has become another user, and strangers whom root looks at: neither ends or steers anything.

For root only: nobody else can become another user.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import rights  # noqa: E402

GIVEN = rights.GIVEN
MIB = 1 << 20
ENVIRONMENT = {key: value for key, value in os.environ.items() if not key.startswith("FARHEAP_")}
PYTHON = os.path.realpath(sys.executable)

# What a process of the run can do to it: as nobody, when it has inherited all that root has open. What it finds to
# be the run's it overwrites, cuts or fills, as its first word says; and where the command stands, it puts a store of
# its own behind it (which is where an older layout has the store).
ATTACK = r"""
import mmap, os, sys
def attack(how, place):
    os.setgroups([]); os.setresgid(65534, 65534, 65534); os.setresuid(65534, 65534, 65534)
    for name in os.listdir('/proc/self/fd'):
        try:
            if 'memfd:farheap-run' not in os.readlink('/proc/self/fd/' + name): continue
            file, size = int(name), os.fstat(int(name)).st_size
            if how == 'cut': os.ftruncate(file, 0)
            with mmap.mmap(file, size) as page:
                if how == 'fill': page[8192 if size < 1 << 20 else 0:size] = b'\xff' * (size - (8192 if size < 1 << 20 else 0))
                at = page.find(os.environ['WORDS'].encode())
                if how == 'steer' and at >= 0: page[at + 256:at + 256 + len(place)] = place
        except (OSError, ValueError, TypeError): pass
    os._exit(0)
child = os.fork()
if child == 0: attack(sys.argv[1], sys.argv[2].encode() + b'\0')
os.waitpid(child, 0)
os.execv(sys.executable, [sys.executable, '-c', sys.argv[3], os.environ['WORDS']])
"""

# What root does then: uses more than the budget, and tells where it is kept.
WORK = r"""
import os
data = [bytes([i % 251]) * (1 << 20) for i in range(96)]
assert all(block[-1] == i % 251 for i, block in enumerate(data))
print([os.readlink('/proc/self/fd/' + name) for name in os.listdir('/proc/self/fd') if int(name) >= 700])
"""

# A stranger's run: a copy of a real one that he goes on cutting and mending, or anything else under its names.
STRANGER = r"""
import fcntl, os, signal, sys
how, copies = sys.argv[1], sys.argv[2:]
os.setgroups([]); os.setresgid(65534, 65534, 65534); os.setresuid(65534, 65534, 65534)
files = []
for path in copies:
    content = open(path, 'rb').read()
    name = os.path.basename(path)
    file = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    if how == 'garbage': content = os.urandom(len(content))
    if how == 'sealed' and len(content) > 1 << 20: content = os.urandom(len(content))
    os.write(file, content)
    if how == 'huge': os.ftruncate(file, 1 << 40)
    if how == 'sealed':
        fcntl.fcntl(file, 1033, 1 | 2 | 4 | (8 if len(content) < 1 << 20 else 0))  # F_ADD_SEALS
    files.append((file, content))
print('ready', flush=True)
while True:
    if how != 'cut': signal.pause()
    for file, content in files:
        os.ftruncate(file, 0)
        os.ftruncate(file, len(content))
        os.pwrite(file, content[:1 << 16], 0)
"""


def start(*words, **more):
    return subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            env={**ENVIRONMENT, **more})


def report_of(errors):
    return json.loads(errors[errors.index('{"format"'):].splitlines()[0])


class Run(rights.OpenFolder):
    def attacked(self, how, *options):
        place = self.folder / "attackers"
        place.mkdir(mode=0o777)
        place.chmod(0o777)
        run = start(GIVEN.tool, "run", "--memory", "48M", "--stats=json", "--set", "store=file:/var/tmp", *options,
                    "--", PYTHON, "-c", ATTACK, how, f"file:{place}", WORK, WORDS=PYTHON + " -c")
        out, errors = run.communicate(timeout=120)
        self.assertEqual(run.returncode, 0, errors)
        return out, errors, str(place)

    def test_another_user_does_not_say_where_root_pages_to(self):
        out, errors, place = self.attacked("steer")
        self.assertGreater(report_of(errors)["bytes_written"], 0, "nothing was paged: this tests nothing")
        self.assertNotIn(place, out)
        self.assertIn("/var/tmp", out)

    def test_another_user_does_not_end_the_run_by_cutting_its_page(self):
        out, errors, _ = self.attacked("cut")
        self.assertIn("/var/tmp", out)
        self.assertGreater(report_of(errors)["processes"], 1)

    def test_anything_in_the_counters_makes_figures_wrong_and_no_more(self):
        trace = self.folder / "trace"
        out, errors, _ = self.attacked("fill", "--trace", str(trace))
        self.assertIn("/var/tmp", out)
        self.assertIn("budget_bytes", errors)
        report = report_of(errors)
        self.assertIn("doubt", report)
        self.assertIsNone(report["peak_bytes"])
        read = subprocess.run([GIVEN.tool, "report", str(trace)], capture_output=True, text=True, env=ENVIRONMENT,
                              check=False, timeout=60)
        self.assertEqual(read.returncode, 0, read.stderr)
        self.assertIn("figures cannot be right", read.stdout)

    def test_what_becomes_another_user_cannot_open_the_page_anew(self):
        program = ("import os\nos.setresuid(65534, 65534, 65534)\nfor name in os.listdir('/proc/self/fd'):\n"
                   " try:\n  link = os.readlink('/proc/self/fd/' + name)\n"
                   "  if 'memfd:farheap' in link: os.open('/proc/self/fd/' + name, os.O_RDWR); print('opened', link)\n"
                   " except OSError: pass")
        run = start(GIVEN.tool, "run", "--memory", "48M", "--", PYTHON, "-c", program)
        out, errors = run.communicate(timeout=60)
        self.assertEqual((run.returncode, out), (0, ""), errors)


class Strangers(rights.OpenFolder):
    """What root's `farheap top` does with runs that strangers made up."""

    def setUp(self):
        super().setUp()
        self.copies = []
        run = subprocess.Popen([GIVEN.tool, "run", "--memory", "64M", "--stats=json", "--", GIVEN.guest, "96", "1"],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                               env=ENVIRONMENT)
        self.assertEqual(run.stdout.readline(), "ready\n")
        for name in os.listdir(f"/proc/{run.pid}/fd"):
            link = os.readlink(f"/proc/{run.pid}/fd/{name}")
            if "memfd:farheap-run" not in link:
                continue
            copy = os.path.join(self.folder, link[len("/memfd:"):-len(" (deleted)")])
            shutil.copyfile(f"/proc/{run.pid}/fd/{name}", copy)
            os.chmod(copy, 0o644)
            self.copies.append(copy)
        self.copies = sorted(set(self.copies))
        run.communicate(timeout=60)
        self.assertGreater(len(self.copies), 0)

    def looks_at(self, how):
        stranger = start(PYTHON, "-c", STRANGER, how, *self.copies)
        self.addCleanup(lambda: (stranger.kill(), stranger.communicate()))
        ready = stranger.stdout.readline()
        self.assertEqual(ready, "ready\n", "" if ready else stranger.stderr.read())
        for words in (["--once", "--json"], ["--once", "--interval", "0.05"]) * 8:
            top = subprocess.run([GIVEN.tool, "top", *words], capture_output=True, text=True, env=ENVIRONMENT,
                                 check=False, timeout=60)
            self.assertIn(top.returncode, (0, 1), (how, words, top.stderr))

    def test_one_that_is_cut_while_it_is_looked_at(self):
        self.looks_at("cut")

    def test_one_that_is_garbage(self):
        self.looks_at("garbage")

    def test_one_that_is_huge(self):
        self.looks_at("huge")

    def test_one_that_is_sealed_as_it_should_be_and_says_anything(self):
        self.looks_at("sealed")


# Fills its memory, waits until all have, and looks at it once more.
FILLS = r"""
import os, sys, time
folder, me, all_of_them = sys.argv[1], sys.argv[2], int(sys.argv[3])
data = [bytes([i % 251]) * (1 << 20) for i in range(48)]
open(f'{folder}/{me}', 'w').close()
while len(os.listdir(folder)) < all_of_them: time.sleep(0.01)
assert all(block[-1] == i % 251 for i, block in enumerate(data))
"""


class Namespaces(unittest.TestCase):
    PROGRAMS = 4
    BUDGET = 64 * MIB

    @staticmethod
    def held_by(pid):
        """Anonymous bytes of all that this process has started."""
        held = 0
        try:
            for task in os.listdir(f"/proc/{pid}/task"):
                for child in pathlib.Path(f"/proc/{pid}/task/{task}/children").read_text(encoding="utf-8").split():
                    status = pathlib.Path(f"/proc/{child}/status").read_text(encoding="utf-8")
                    anonymous = status.partition("RssAnon:")[2].split()
                    held += (int(anonymous[0]) << 10 if anonymous else 0) + Namespaces.held_by(int(child))
        except OSError:
            pass  # it has ended
        return held

    def test_programs_in_pid_namespaces_of_their_own_share_the_budget(self):
        with tempfile.TemporaryDirectory(prefix="farheap-spaces-", dir="/var/tmp") as folder:
            words = " & ".join(f"unshare -pf --mount-proc '{PYTHON}' -c \"$FILLS\" '{folder}' {i} {self.PROGRAMS}"
                               for i in range(self.PROGRAMS))
            run = start(GIVEN.tool, "run", "--memory", str(self.BUDGET), "--stats=json", "--", "sh", "-c",
                        f"{words} & wait", FILLS=FILLS)
            most = 0
            while run.poll() is None:
                most = max(most, self.held_by(run.pid))
                time.sleep(0.01)
            _, errors = run.communicate()
            self.assertEqual(len(os.listdir(folder)), self.PROGRAMS, errors)
        self.assertEqual(run.returncode, 0, errors)
        report = report_of(errors)
        print(f"held {most / MIB:.1f} MiB, the report says {report['peak_bytes'] / MIB:.1f}", flush=True)
        # Fork and exec count twice for a moment, the tool's guardian and the shell are counted here and not there.
        self.assertLessEqual(most, self.BUDGET + 16 * MIB)
        self.assertLessEqual(report["peak_bytes"], self.BUDGET + 4 * MIB)
        self.assertGreaterEqual(report["peak_bytes"], most * 3 // 4)

    def test_what_they_held_comes_back_when_they_are_killed(self):
        # One after the other, each with nearly all of the budget: the next one finds it free.
        kills = ("import os, signal\ndata = [bytes([i % 251]) * (1 << 20) for i in range(48)]\n"
                 "os.kill(os.getpid(), signal.SIGKILL) if os.fork() == 0 else os.wait()\nos._exit(0)")
        words = "; ".join(f"unshare -pf --mount-proc '{PYTHON}' -c \"$KILLS\"" for _ in range(4))
        run = start(GIVEN.tool, "run", "--memory", str(self.BUDGET), "--stats=json", "--", "sh", "-c", words,
                    KILLS=kills)
        _, errors = run.communicate(timeout=120)
        self.assertEqual(run.returncode, 0, errors)
        self.assertLess(report_of(errors)["stall_no_room_seconds"], 5)


# Outlives its run, and then executes a program, which says how much it holds.
DAEMON = r"""
import os, sys, time
if os.fork() != 0: os._exit(0)
os.setsid()
tool = os.environ['FARHEAP_RUN_PAGE'].split(':')[0]
def is_there():
    try: return os.readlink(f'/proc/{tool}/exe') == os.environ['TOOL']
    except OSError: return False
while is_there(): time.sleep(0.01)
out = os.open(sys.argv[1], os.O_WRONLY)
os.dup2(out, 1)
os.execv(sys.executable, [sys.executable, '-c', sys.argv[2]])
"""
HOLDS = r"""
data = [bytes([i % 251]) * (1 << 20) for i in range(96)]
assert all(block[-1] == i % 251 for i, block in enumerate(data))
print([line for line in open('/proc/self/status') if line.startswith('RssAnon')][0].split()[1])
"""


class Daemons(unittest.TestCase):
    def test_programs_of_a_daemon_whose_run_has_ended_keep_its_budget(self):
        with tempfile.TemporaryDirectory(prefix="farheap-daemon-", dir="/var/tmp") as folder:
            pipe = os.path.join(folder, "pipe")
            os.mkfifo(pipe)
            reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
            run = start(GIVEN.tool, "run", "--memory", "48M", "--", PYTHON, "-c", DAEMON, pipe, HOLDS,
                        TOOL=os.path.realpath(GIVEN.tool))
            self.assertEqual(run.wait(timeout=60), 0, run.stderr)
            said = b""
            for _ in range(600):
                try:
                    said += os.read(reader, 100)
                except BlockingIOError:
                    pass
                if said.endswith(b"\n"):
                    break
                time.sleep(0.05)
            os.close(reader)
            run.stdout.close()
            run.stderr.close()
        self.assertTrue(said, "the daemon's program did not end well")
        self.assertLessEqual(int(said) << 10, 52 * MIB)


if __name__ == "__main__":
    rights.main("tool", "guest", needs="unshare")
