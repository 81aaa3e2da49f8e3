#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Watching real runs: `farheap top`, `farheap run --trace` and `farheap report`, with the real runtime."""

import argparse
import json
import os
import pathlib
import pty
import select
import signal
import subprocess
import sys
import tempfile
import time
import unittest

TOOL = GUEST = ""
MIB = 1 << 20
BUDGET = 64 * MIB
GUEST_MIB = 160
ENVIRONMENT = {key: value for key, value in os.environ.items() if not key.startswith("FARHEAP_")}

# The counters of a range, behind its process, offset and length (docs/formats.md).
KINDS = ("faults_fresh", "faults_probation", "faults_store", "faults_waited", "bytes_read", "bytes_written", "stall_ns")

FAULTS = KINDS[:4]


def tool(*words, **more):
    return subprocess.run([TOOL, *words], capture_output=True, text=True, env={**ENVIRONMENT, **more}, check=False,
                          timeout=120)


def sum_of(ranges, kind):
    return sum(row[3 + KINDS.index(kind)] for row in ranges)


class Watching(unittest.TestCase):
    def setUp(self):
        if not json.loads(tool("doctor", "--json").stdout)["run_works"]:
            print(f"SKIPPED, NOT TESTED: {self.id()}: `farheap doctor` says that programs cannot be run here",
                  file=sys.stderr, flush=True)
            self.skipTest("no runs here")
        folder = tempfile.TemporaryDirectory(prefix="farheap-watch-")
        self.addCleanup(folder.cleanup)
        self.trace = os.path.join(folder.name, "trace")
        self.page = os.path.join(folder.name, "page.html")

    def start(self, *options, passes=2, fork=False):
        """A run whose program has done its work and waits for the end of its input."""
        words = [TOOL, "run", "--memory", str(BUDGET), "--stats=json", *options, "--", GUEST, str(GUEST_MIB),
                 str(passes), *(["fork"] if fork else [])]
        run = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env=ENVIRONMENT)
        self.addCleanup(self.end, run)
        self.assertEqual(run.stdout.readline(), "ready\n")
        return run

    @staticmethod
    def end(run):
        if run.returncode is None:
            run.kill()
            run.communicate(timeout=60)

    def finish(self, run):
        """Ends it well; its report."""
        _, errors = run.communicate(timeout=60)
        self.assertEqual(run.returncode, 0, errors)
        return json.loads(errors.splitlines()[-1])

    def report(self, *options):
        done = tool("report", self.trace, "--json", *options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)


class Trace(Watching):
    def test_its_sums_are_those_of_the_report_at_the_end(self):
        for fork in (False, True):
            stats = self.finish(self.start("--trace", self.trace, "--trace-interval", "0.01", fork=fork))
            report = self.report()
            for member, value in stats.items():
                if member not in ("seconds", "next", "used_again_bytes"):  # the last is not known from a trace
                    self.assertEqual(report[member], value, (fork, member))
            self.assertEqual(stats["paging_processes"], 2 if fork else 1)
            self.assertGreater(stats["faults_store"] + stats["faults_waited"], 0)
            for kind in KINDS[:-1]:
                self.assertEqual(sum_of(report["ranges"], kind), stats[kind], (fork, kind))
            self.assertAlmostEqual(sum_of(report["ranges"], "stall_ns") * 1e-9, stats["stall_seconds"], places=3)
            self.assertEqual(len({row[0] for row in report["ranges"]}), stats["paging_processes"])
            self.assertTrue(report["ended"])

    def test_ranges_are_those_that_the_program_uses(self):
        self.finish(self.start("--trace", self.trace))
        ranges = self.report()["ranges"]
        self.assertGreater(len(ranges), GUEST_MIB // 2 * 3 // 4, "the program goes over all of its heap")
        for row in ranges:
            self.assertEqual(row[2], 2 * MIB)
            self.assertLess(row[1], (GUEST_MIB + 64) * MIB)

    def test_samples_keep_the_budget_and_their_order(self):
        self.finish(self.start("--trace", self.trace, "--trace-interval", "0.02"))
        lines = [json.loads(line) for line in pathlib.Path(self.trace).read_text(encoding="utf-8").splitlines()]
        self.assertEqual((lines[0]["format"], lines[0]["kind"], lines[0]["command"][0]), (1, "farheap trace", GUEST))
        samples = lines[1:-1]
        self.assertGreater(len(samples), 3)
        self.assertEqual([one["seconds"] for one in samples], sorted(one["seconds"] for one in samples))
        for one in samples:
            self.assertLessEqual(one["resident_bytes"], BUDGET + max(BUDGET // 50, 8 * MIB))
        self.assertEqual(lines[-1]["exit_status"], 0)

    def test_of_a_killed_tool_is_read_up_to_its_last_sample(self):
        run = self.start("--trace", self.trace, "--trace-interval", "0.01")
        run.kill()
        run.communicate(timeout=60)
        with open(self.trace, "a", encoding="utf-8") as file:
            file.write('{"seconds":1e')  # as if it had been killed while it wrote
        report = self.report()
        self.assertFalse(report["ended"])
        self.assertGreater(report["faults"], 0)
        text = tool("report", self.trace).stdout
        self.assertIn("was still running", text)
        self.assertIn("the recording was cut off", text)

    def test_of_a_killed_program_is_whole(self):
        run = self.start("--trace", self.trace)
        found = json.loads(tool("top", str(run.pid), "--once", "--json").stdout)["runs"][0]
        os.kill(found["processes"][0]["pid"], signal.SIGKILL)
        run.communicate(timeout=60)
        report = self.report()
        self.assertEqual((report["signal"], report["ended"]), (signal.SIGKILL, True))
        self.assertIn("was ended by signal 9", tool("report", self.trace).stdout)

    def test_a_file_that_cannot_be_written_does_not_disturb_the_run(self):
        run = self.start("--trace", "/dev/full")
        output, errors = run.communicate(timeout=60)
        self.assertEqual((run.returncode, output), (0, ""), errors)
        self.assertIn("WARNING: the trace ends here: cannot write /dev/full", errors)
        done = tool("run", "--trace", "/no/such/folder/x", "--", "echo", "ran")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("name a file in a folder that you may write", done.stderr)

    def test_the_run_says_how_to_read_it(self):
        done = tool("run", "--memory", "64M", "--trace", self.trace, "--", "true")
        self.assertEqual(done.stderr.splitlines()[-1].split("; ")[1], f"`farheap report {self.trace}` shows them")
        self.assertEqual(tool("run", "--quiet", "--trace", self.trace, "--", "true").stderr, "")


class Report(Watching):
    def test_the_page_has_the_report_and_what_its_charts_draw(self):
        self.finish(self.start("--trace", self.trace))
        done = tool("report", self.trace, "--html", self.page)
        self.assertEqual((done.returncode, done.stdout), (0, ""))
        page = pathlib.Path(self.page).read_text(encoding="utf-8")
        data = json.loads(page.split('id="data">')[1].split("</script>")[0])
        self.assertEqual(data["report"], json.loads(tool("report", self.trace, "--json").stdout))
        timeline = data["timeline"]
        self.assertEqual(len(timeline["resident_bytes"]), timeline["pieces"])
        for rows in ("faults_per_second", "bytes_per_second", "stall_ns_per_second"):
            for name, values in timeline[rows].items():
                self.assertEqual(len(values), timeline["pieces"], name)
        read = sum(timeline["bytes_per_second"]["bytes_read"]) * timeline["seconds"] / timeline["pieces"]
        self.assertAlmostEqual(read, data["report"]["bytes_read"], delta=0.001 * read + 4096)

    def test_text_has_blocks_where_the_terminal_knows_them(self):
        self.finish(self.start("--trace", self.trace))
        self.assertIn("█", tool("report", self.trace, LC_ALL="C.UTF-8").stdout)
        self.assertTrue(tool("report", self.trace, LC_ALL="C").stdout.isascii())

    def test_what_is_no_trace_is_refused(self):
        pathlib.Path(self.trace).write_text("{}\n", encoding="utf-8")
        for path, words in ((self.trace, "line 1: it is not a trace"), ("/no/such/file", "No such file"),
                            ("/", "Is a directory"), ("/dev/null", "line 1")):
            done = tool("report", path)
            self.assertEqual((done.returncode, done.stdout), (1, ""), path)
            self.assertIn(words, done.stderr)
            self.assertIn("farheap run --trace FILE", done.stderr)

    def test_a_page_that_cannot_be_written(self):
        self.finish(self.start("--trace", self.trace))
        for path in ("/no/such/folder/x", "/dev/full"):
            done = tool("report", self.trace, "--html", path)
            self.assertEqual(done.returncode, 1, path)
            self.assertIn("cannot write the page", done.stderr)


class Top(Watching):
    def test_sees_what_runs(self):
        run = self.start(fork=True)
        done = tool("top", str(run.pid), "--once", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        line = json.loads(done.stdout)
        self.assertEqual((line["format"], len(line["runs"])), (1, 1))
        seen = line["runs"][0]
        self.assertEqual((seen["pid"], seen["budget_bytes"]), (run.pid, BUDGET))
        self.assertTrue(seen["command"].startswith(GUEST))
        self.assertEqual([one["paging"] for one in seen["processes"]], [True, True])
        # What parent and child share counts twice for a while (docs/limits.md).
        self.assertLessEqual(seen["resident_bytes"], 2 * BUDGET)
        self.assertEqual(seen["resident_bytes"], sum(one["resident_bytes"] for one in seen["processes"]))
        for kind in FAULTS:  # bytes may still be on their way out
            self.assertEqual(sum(one["counters"][kind] for one in seen["processes"]), seen["counters"][kind], kind)
        self.finish(run)

    def test_one_process_keeps_its_budget(self):
        run = self.start()
        seen = json.loads(tool("top", str(run.pid), "--once", "--json").stdout)["runs"][0]
        self.assertLessEqual(seen["resident_bytes"], BUDGET + max(BUDGET // 50, 8 * MIB))
        self.assertGreater(seen["resident_bytes"], BUDGET // 2)
        # A process of the run stands for the run.
        process = str(seen["processes"][0]["pid"])
        text = tool("top", process, "--once", "--interval", "0.05").stdout
        for part in (os.path.basename(GUEST), "of 64.0 MiB", process, "faults", "RESIDENT"):
            self.assertIn(part, text)
        self.assertNotIn("\033", text)

    def test_records_lines_until_the_run_ends(self):
        run = self.start()
        top = subprocess.Popen([TOOL, "top", str(run.pid), "--json", "--interval", "0.02"], stdout=subprocess.PIPE,
                               text=True, env=ENVIRONMENT)
        self.addCleanup(self.end, top)
        lines = [top.stdout.readline() for _ in range(3)]
        self.finish(run)
        lines += top.communicate(timeout=60)[0].splitlines()
        self.assertEqual(top.returncode, 0)
        samples = [json.loads(line)["runs"][0] for line in lines]
        for before, after in zip(samples, samples[1:]):
            self.assertGreater(after["seconds"], before["seconds"])
        # Each line has what happened since the one before, the first what happened before it.
        for kind in FAULTS:
            self.assertEqual(sum(sum_of(one["ranges"], kind) for one in samples), samples[-1]["counters"][kind], kind)

    def test_a_terminal_is_left_as_it_was(self):
        run = self.start()
        top, terminal = pty.fork()
        if top == 0:
            os.execve(TOOL, [TOOL, "top", str(run.pid), "--interval", "0.02"], ENVIRONMENT)
        shown = self.read_until(terminal, b"RESIDENT")
        os.kill(top, signal.SIGINT)
        shown += self.read_until(terminal, None)
        self.assertEqual(os.waitpid(top, 0)[1], 0)
        os.close(terminal)
        self.assertLess(shown.index(b"\033[?25l"), shown.index(b"RESIDENT"), "the cursor is hidden")
        self.assertTrue(shown.endswith(b"\033[?25h"), "the cursor is back")
        self.finish(run)

    def read_until(self, terminal, wanted):
        """All output up to `wanted`, or to the end."""
        shown, end = b"", time.monotonic() + 60
        while wanted is None or wanted not in shown:
            ready, _, _ = select.select([terminal], [], [], max(0, end - time.monotonic()))
            self.assertTrue(ready, f"nothing more came after {shown!r}")
            try:
                piece = os.read(terminal, 65536)
            except OSError:  # the other side has closed
                piece = b""
            if not piece:
                self.assertIsNone(wanted, shown)
                return shown
            shown += piece
        return shown

    def test_no_run_is_said_in_a_sentence(self):
        # Among processes of their own: other programs may run under Farheap on this machine.
        alone = ["unshare", "--fork", "--pid", "--mount-proc", *([] if os.getuid() == 0 else ["--map-root-user"])]
        if subprocess.run([*alone, "true"], stderr=subprocess.DEVNULL, check=False).returncode != 0:
            print(f"SKIPPED, NOT TESTED: {self.id()}: no process namespaces here", file=sys.stderr, flush=True)
            self.skipTest("no process namespaces")
        for words in ((), ("--once",), ("--once", "--json")):
            done = subprocess.run([*alone, TOOL, "top", *words], capture_output=True, text=True, check=False,
                                  timeout=60, env=ENVIRONMENT)
            self.assertEqual((done.returncode, done.stdout), (1, ""), words)
            self.assertEqual(done.stderr, "farheap: no program of yours runs under Farheap now; "
                                          "`farheap run --memory 256M -- PROGRAM` starts one\n")

    def test_a_process_that_belongs_to_no_run(self):
        done = tool("top", str(os.getpid()), "--once")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn(f"no run has this process: {os.getpid()}", done.stderr)

    def test_wrong_intervals_are_usage(self):
        for words in (("top", "--interval", "0"), ("top", "--interval", "nan"), ("top", "x"),
                      ("run", "--trace-interval", "-1", "--", "true"), ("run", "--trace-interval", "1", "--", "true"),
                      ("run", "--plain", "--trace", "x", "--", "true")):
            self.assertEqual(tool(*words).returncode, 2, words)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", required=True)
    parser.add_argument("--guest", required=True)
    known, rest = parser.parse_known_args()
    TOOL, GUEST = known.tool, known.guest
    unittest.main(argv=[sys.argv[0], *rest], verbosity=2)
