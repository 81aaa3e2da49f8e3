#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Recording real runs: `farheap record` and `farheap report` of what it wrote, with the real runtime."""

import argparse
import json
import os
import pathlib
import re
import signal
import struct
import subprocess
import sys
import tempfile
import unittest

import real_runs
from real_runs import ENVIRONMENT, line_of, tool

PROGRAM = SOURCE = INLINED = ""
NAMES = True  # built with libdw
MIB = 1 << 20
LARGE_MIB = 48
BUDGET = 48 * MIB


def innermost_files(profile):
    """The files of a profile (docs/formats.md), and the peaks of all sites by the file that called for memory."""
    def fields(data):
        at = 0

        def number():
            nonlocal at
            at += 8
            return struct.unpack_from("<Q", data, at - 8)[0]

        def text():
            nonlocal at
            length = number()
            at += length
            return data[at - length:at]
        return number, text

    files, peaks = [], {}
    number, text = fields(profile[16:])
    kind = 0
    while kind != 4:
        kind, _, section = number(), number(), text()
        inside, words = fields(section)
        if kind == 1:
            inside()
            files = [(words().decode(), words())[0] for _ in range(inside())]
        if kind == 2:
            inside(), inside(), words()
            for _ in range(7):
                inside()
            frames = [(inside(), inside(), inside()) for _ in range(inside())]
            for _ in range(inside()):
                site, _, _, _, peak = (inside() for _ in range(5))
                while frames[site][0] != 0:
                    site = frames[site][0]
                path = files[frames[site][1]]
                peaks[path] = peaks.get(path, 0) + peak
    return files, peaks


class Recording(unittest.TestCase):
    def setUp(self):
        real_runs.needs_runs(self.id())
        folder = tempfile.TemporaryDirectory(prefix="farheap-record-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.profile = str(self.folder / "app.profile")
        self.parts = pathlib.Path(self.profile + ".parts")

    def record(self, mode, *options, memory=BUDGET):
        done = tool("record", "-o", self.profile, "--memory", str(memory), *options, "--", PROGRAM, str(LARGE_MIB), mode)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertFalse(self.parts.exists(), "the parts are still there")
        return done

    def report(self, path=None):
        done = tool("report", path or self.profile, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def site(self, report, mark):
        """The figures of all stacks that end at the marked line."""
        ending = f"({pathlib.Path(SOURCE).name}:{line_of(SOURCE, mark)})"
        found = [site for site in report["sites"] if site["site"].endswith(ending)]
        self.assertTrue(found, f"nothing was allocated at {ending}: {[site['site'] for site in report['sites']]}")
        return {key: sum(site[key] for site in found) for key in ("peak_bytes", "live_bytes", "objects", "faults",
                                                                  "stall_seconds", "allocated_bytes")}

    def near(self, value, wanted, within, what):
        self.assertLess(abs(value - wanted), within * wanted, f"{what}: {value} instead of about {wanted}")

    def needs_names(self):
        if not NAMES:
            real_runs.skipped(self.id(), "built without libdw")


class WhatIsRecorded(Recording):
    def test_sites_have_their_bytes_and_objects(self):
        self.needs_names()
        self.record("once")
        report = self.report()
        large, small = self.site(report, "large"), self.site(report, "small")
        self.near(large["peak_bytes"], LARGE_MIB * MIB, 0.02, "peak of the large piece")
        self.assertEqual(large["objects"], 1)
        objects = LARGE_MIB * MIB // 64
        self.near(small["objects"], objects, 0.05, "small objects")
        self.near(small["allocated_bytes"], objects * 64, 0.05, "bytes of small objects")
        self.near(small["live_bytes"], objects * 64 / 2, 0.05, "half of them was freed")

    def test_the_line_that_waits_is_named(self):
        self.needs_names()
        self.record("once")
        report = self.report()
        self.assertGreater(report["waits"]["faults"], 100)
        self.near(report["estimated"]["stall_seconds"], report["waits"]["stall_seconds"], 0.5, "what the lines add up to")
        lines = {line["line"]: line for line in report["lines"]}
        name = pathlib.Path(SOURCE).name
        read = [line for text, line in lines.items() if text.endswith(f"({name}:{line_of(SOURCE, 'read')})")]
        self.assertTrue(read, f"the reading line is not among {list(lines)}")
        self.assertTrue(read[0]["most_for"].endswith(f"({name}:{line_of(SOURCE, 'large')})"), read[0]["most_for"])

    def test_functions_that_were_inlined_are_told(self):
        """Sites of containers were those of the caller's caller, and C functions had the names of types."""
        self.needs_names()
        done = tool("record", "-o", self.profile, "--", INLINED)
        self.assertEqual(done.returncode, 0, done.stderr)
        source = pathlib.Path(SOURCE).parent / "recorded_inlined.cpp"
        lines = source.read_text(encoding="utf-8").splitlines()
        sites = {site["site"]: site for site in self.report()["sites"]}
        for mark, function, megabytes in (("plain", "f", 16), ("map", "fill", 17), ("vector", "main", 32)):
            line = next(number for number, text in enumerate(lines, 1) if text.endswith(f"// MARK {mark}"))
            name = f"{function} ({source.name}:{line})"
            self.assertIn(name, sites)
            self.near(sites[name]["peak_bytes"], megabytes * MIB, 0.15, name)
        self.near(sites[next(name for name in sites if name.startswith("fill"))]["objects"], 200_000, 0.1, "objects")

    def test_what_new_allocates_is_of_its_caller(self):
        """Operator new asked malloc(), and was the innermost frame: all such sites began in the runtime's library."""
        done = tool("record", "-o", self.profile, "--", INLINED)
        self.assertEqual(done.returncode, 0, done.stderr)
        files, sites = innermost_files(pathlib.Path(self.profile).read_bytes())
        of_program = os.path.realpath(INLINED)
        self.assertIn(of_program, files)
        # The runtime's own C++ library has a pool of 72 KiB, for exceptions where there is no memory.
        of_runtime = sum(peak for path, peak in sites.items() if "libfarheap" in path)
        self.assertLess(of_runtime, MIB // 4)
        self.near(sites[of_program], 66 * MIB, 0.1, "a vector of 32 MiB, 16 MiB of malloc(), and a map of 18 MiB")

    def test_memory_that_is_enough_is_told(self):
        self.record("slowly", memory=1024 * MIB)
        memory = self.report()["memory"]
        self.assertEqual(memory["missing"], "")
        # The large piece, the small objects, and the table of these.
        whole = LARGE_MIB * MIB * (2 + 8 / 64)
        self.near(memory["whole_bytes"], whole, 0.1, "memory that holds everything")
        self.assertEqual(memory["points"][-1]["lru_misses"], 0)
        self.assertEqual([policy["key"] for policy in memory["policies"]], ["lru", "farheap", "planned", "best"])
        for policy in memory["policies"]:
            for error in (policy["misses_error"], policy["seconds_error"]):
                self.assertTrue(error is None or 0 <= error["mean"] <= error["most"] <= 1, policy)
        misses = [point["lru_misses"] for point in memory["points"]]
        self.assertEqual(misses, sorted(misses, reverse=True), "more memory misses no more")
        for point in memory["points"]:
            self.assertLessEqual(point["best_misses"], point["lru_misses"])
            # The oracle alone knows better, and nothing reads more often than it is used.
            self.assertLess(point["farheap_misses"], 1.3 * misses[0])
            self.assertGreater(1.05 * point["farheap_misses"] + 0.05 * whole / 4096, point["best_misses"])
        # Three sweeps over the large piece: with half of that, LRU misses nearly all of it three times.
        half = [point for point in memory["points"] if point["memory_bytes"] <= LARGE_MIB * MIB / 2]
        self.near(half[-1]["lru_misses"], 3 * LARGE_MIB * 256, 0.2, "misses of three sweeps")

    def test_the_same_output_and_status_as_without(self):
        plain = subprocess.run([PROGRAM, str(LARGE_MIB), "once"], capture_output=True, text=True, check=True)
        self.assertEqual(self.record("once").stdout, plain.stdout)
        done = tool("record", "-o", self.profile, "--memory", "64M", "--", "sh", "-c", "exit 7")
        self.assertEqual(done.returncode, 7, done.stderr)

    def test_threads_forks_and_programs_that_execute_another(self):
        self.needs_names()
        for mode, times in (("thread", 1), ("fork", 2), ("exec", 2)):
            with self.subTest(mode=mode):
                self.record(mode)
                self.near(self.site(self.report(), "large")["peak_bytes"], times * LARGE_MIB * MIB, 0.02,
                          f"peaks of all processes, {mode}")

    def test_many_processes_are_bounded(self):
        self.record("many", "--quiet")
        report = self.report()
        self.assertTrue(any("more processes" in note for note in report["notes"]), report["notes"])
        self.assertLess(os.path.getsize(self.profile), 8 * MIB)

    def test_forms_for_other_tools(self):
        self.needs_names()
        self.record("once")
        folded = tool("report", self.profile, "--folded", "--weight", "peak")
        self.assertEqual(folded.returncode, 0, folded.stderr)
        rows = [re.fullmatch(r"(.+) (\d+)", row) for row in folded.stdout.splitlines()]
        self.assertTrue(all(rows), folded.stdout[:500])
        self.assertIn("main", folded.stdout)
        self.near(sum(int(row.group(2)) for row in rows), 2.125 * LARGE_MIB * MIB, 0.1, "folded bytes")
        speedscope = json.loads(tool("report", self.profile, "--speedscope").stdout)
        self.assertEqual(speedscope["$schema"], "https://www.speedscope.app/file-format-schema.json")
        frames = len(speedscope["shared"]["frames"])
        for one in speedscope["profiles"]:
            self.assertEqual(len(one["samples"]), len(one["weights"]))
            self.assertTrue(all(0 <= frame < frames for sample in one["samples"] for frame in sample))
            self.assertAlmostEqual(one["endValue"], sum(one["weights"]), delta=1)

    def test_text_names_the_next_command(self):
        done = self.record("once")
        self.assertIn(f"farheap report {self.profile}", done.stderr)
        text = tool("report", self.profile)
        self.assertEqual(text.returncode, 0, text.stderr)
        for heading in ("Where threads waited", "by where it was allocated", "How much memory is enough"):
            self.assertIn(heading, text.stdout)
        if "LRU misses" in text.stdout:
            self.assertRegex(text.stdout, r"(?m)^known error +\S.*(not measured|of uses)")
            self.assertIn("\nLRU: what was used least recently leaves first", text.stdout)
        page = self.folder / "page.html"
        self.assertEqual(tool("report", self.profile, "--html", str(page)).returncode, 0)
        self.assertIn("<html", page.read_text(encoding="utf-8"))


class WhatGoesWrong(Recording):
    def test_a_recording_that_was_killed_is_read_from_its_parts(self):
        run = subprocess.Popen([real_runs.tool_path(), "record", "-o", self.profile, "--memory", str(BUDGET), "--", PROGRAM,
                                str(LARGE_MIB), "wait"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, text=True, env=ENVIRONMENT, start_new_session=True)
        self.assertEqual(run.stdout.readline(), "ready\n")
        going_on = self.report(str(self.parts))
        os.killpg(run.pid, signal.SIGKILL)
        run.wait()
        run.stdin.close()
        run.stdout.close()
        report = self.report(str(self.parts))
        self.assertGreater(report["heap_peak_bytes"], 2 * LARGE_MIB * MIB * 0.95)
        self.assertEqual(report["heap_peak_bytes"], going_on["heap_peak_bytes"])
        self.assertFalse(pathlib.Path(self.profile).exists())
        again = tool("record", "-o", self.profile, "--", PROGRAM, "1", "once")
        self.assertNotEqual(again.returncode, 0)
        self.assertIn(str(self.parts), again.stderr)
        self.assertIn("farheap report", again.stderr)

    def test_an_earlier_profile_is_replaced_only_by_a_whole_one(self):
        pathlib.Path(self.profile).write_text("precious", encoding="utf-8")
        done = tool("record", "-o", self.profile, "--", "/no/such/program")
        self.assertEqual(done.returncode, 127)
        self.assertEqual(pathlib.Path(self.profile).read_text(encoding="utf-8"), "precious")
        self.assertFalse(self.parts.exists())
        self.record("once")
        self.report()

    def test_places_that_cannot_be_written(self):
        for place, word in (("/no/such/folder/app.profile", "folder"), (str(self.folder), "folder")):
            done = tool("record", "-o", place, "--", PROGRAM, "1", "once")
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn(place, done.stderr)
            self.assertIn(word, done.stderr)

    def test_what_is_no_ordinary_file_is_not_replaced(self):
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        done = tool("record", "-o", str(pipe), "--", PROGRAM, "1", "once")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("no ordinary file", done.stderr)
        self.assertTrue(pipe.is_fifo())
        real, link = self.folder / "real.profile", self.folder / "link.profile"
        real.write_bytes(b"")
        link.symlink_to(real)
        done = tool("record", "-o", str(link), "--", PROGRAM, "8", "once")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(link.is_symlink())
        self.assertTrue(real.read_bytes().startswith(b"FHPROFIL"))

    # It was replaced without a word.
    def test_an_earlier_profile_of_that_name_is_kept(self):
        self.record("once")
        before = pathlib.Path(self.profile).read_bytes()
        done = self.record("once")
        self.assertEqual(pathlib.Path(self.profile + ".old").read_bytes(), before)
        self.assertIn(f"what {self.profile} was before is in {self.profile}.old now", done.stderr)

    def test_a_damaged_recording_does_not_take_the_others_with_it(self):
        run = subprocess.Popen([real_runs.tool_path(), "record", "-o", self.profile, "--memory", str(BUDGET), "--", PROGRAM,
                                str(LARGE_MIB), "wait"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
        self.assertEqual(run.stdout.readline(), "ready\n")
        whole = next(self.parts.glob("*.recording"))
        damaged = bytearray(whole.read_bytes())
        damaged[20:24] = b"\xff\xff\xff\xff"  # how large a table is
        (self.parts / "1.recording").write_bytes(bytes(damaged))
        _, errors = run.communicate()
        self.assertEqual(run.returncode, 0, errors)
        report = self.report()
        self.assertGreater(report["heap_peak_bytes"], 2 * LARGE_MIB * MIB * 0.95)
        self.assertTrue(any("1 more processes" in note for note in report["notes"]), report["notes"])

    def test_foreign_newer_and_cut_files(self):
        self.record("once")
        whole = pathlib.Path(self.profile).read_bytes()
        bad = self.folder / "bad.profile"

        def report_of(content):
            bad.write_bytes(content)
            return tool("report", str(bad), "--json")

        self.assertNotEqual(report_of(b"hello\n").returncode, 0)
        self.assertNotEqual(report_of(b"").returncode, 0)
        newer = report_of(whole[:8] + struct.pack("<Q", 99) + whole[16:])
        self.assertEqual(newer.returncode, 1)
        self.assertIn("newer", newer.stderr)
        for share in (0.3, 0.7, 0.999):
            cut = report_of(whole[:int(len(whole) * share)])
            self.assertEqual(cut.returncode, 0, cut.stderr)
            self.assertTrue(any("ends in the middle" in note for note in json.loads(cut.stdout)["notes"]))
        self.assertNotEqual(tool("report", str(self.folder)).returncode, 0)

    def test_a_program_that_was_rebuilt_has_no_wrong_names(self):
        self.needs_names()
        program = self.folder / "program"
        program.write_bytes(pathlib.Path(PROGRAM).read_bytes())
        program.chmod(0o755)
        done = tool("record", "-o", self.profile, "--memory", str(BUDGET), "--", str(program), str(LARGE_MIB), "once")
        self.assertEqual(done.returncode, 0, done.stderr)
        before = self.report()
        self.assertTrue(any("make_large" in site["site"] for site in before["sites"]))
        content = bytearray(program.read_bytes())
        identity = re.search(rb"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0(.{20})", bytes(content), re.DOTALL)  # its note
        content[identity.start(1)] ^= 1
        program.write_bytes(bytes(content))
        after = self.report()
        self.assertFalse(any("make_large" in site["site"] for site in after["sites"]))
        self.assertTrue(any("not as it was recorded" in note for note in after["notes"]), after["notes"])

    def test_compare_says_by_its_status_what_became_worse(self):
        other = str(self.folder / "short.profile")
        self.record("once", memory=1024 * MIB)
        done = tool("record", "-o", other, "--memory", str(BUDGET), "--", PROGRAM, str(LARGE_MIB), "once")
        self.assertEqual(done.returncode, 0, done.stderr)
        worse = tool("report", "--compare", self.profile, other)
        self.assertEqual(worse.returncode, 1, worse.stderr)
        self.assertIn("WORSE", worse.stdout)
        self.assertEqual(tool("report", "--compare", self.profile, self.profile).returncode, 0)
        self.assertEqual(tool("report", "--compare", self.profile, "/no/such/file").returncode, 2)

    def test_words_that_do_not_fit(self):
        self.assertEqual(tool("record", "-o", self.profile).returncode, 2)
        self.assertEqual(tool("record", "--frob", "--", "true").returncode, 2)
        self.record("once")
        self.assertEqual(tool("report", self.profile, "--folded", "--weight", "colour").returncode, 2)
        trace = str(self.folder / "trace")
        self.assertEqual(tool("run", "--trace", trace, "--", PROGRAM, "1", "once").returncode, 0)
        self.assertEqual(tool("report", trace, "--folded").returncode, 2)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", required=True)
    parser.add_argument("--program", required=True)
    parser.add_argument("--source", required=True)
    parser.add_argument("--inlined", required=True)
    parser.add_argument("--no-names", action="store_true")
    parser.add_argument("classes", nargs="*")
    options = parser.parse_args()
    PROGRAM, SOURCE, INLINED = options.program, options.source, options.inlined
    real_runs.use(options.tool)
    NAMES = not options.no_names
    unittest.main(argv=[sys.argv[0], *options.classes], verbosity=2)
