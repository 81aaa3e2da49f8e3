#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`farheap report --pprof`: read here by the rules of profile.proto, and by Go's pprof; the numbers are those of --json."""

import argparse
import collections
import gzip
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import real_runs
from real_runs import line_of, skipped, tool

PROGRAM = SOURCE = MAKER = ""
NAMES = GZIP = True  # built with libdw, with zlib
MEMORY, LARGE_MIB = "48M", 48
NANOSECONDS = 1e-9
TYPES = {"faults": "count", "read": "bytes", "stall": "nanoseconds", "alloc_objects": "count", "alloc_space": "bytes",
         "inuse_space": "bytes", "peak_space": "bytes", "site_stall": "nanoseconds"}


def fields_of(message):
    """{field number: [value]} of a message: numbers, and bytes of what has a length."""
    at, fields = 0, collections.defaultdict(list)

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at, value, shift = at + 1, value | (byte & 0x7f) << shift, shift + 7
            if byte < 0x80:
                return value

    while at < len(message):
        tag = varint()
        value = varint()
        if tag & 7 == 2:
            if at + value > len(message):
                raise ValueError("a field is longer than its message")
            at, value = at + value, message[at:at + value]
        elif tag & 7 != 0:
            raise ValueError(f"wire type {tag & 7}")
        fields[tag >> 3].append(value)
    return fields


def numbers_of(packed):
    """Of a repeated number."""
    values = []
    for content in packed:
        value = shift = 0
        for byte in content:
            value, shift = value | (byte & 0x7f) << shift, shift + 7
            if byte < 0x80:
                values.append(value)
                value = shift = 0
    return values


class Profile:
    """A profile.proto, with names in place of numbers."""

    def __init__(self, content):
        whole = fields_of(content)
        self.strings = [text.decode("utf-8") for text in whole[6]]
        self.types = [tuple(self.text(one, field) for field in (1, 2)) for one in map(fields_of, whole[1])]
        self.mappings = {self.number(one, 1): {
            "start": self.number(one, 2), "limit": self.number(one, 3), "offset": self.number(one, 4),
            "path": self.text(one, 5), "build_id": self.text(one, 6), "has_functions": self.number(one, 7),
            "has_lines": self.number(one, 9)} for one in map(fields_of, whole[3])}
        self.functions = {self.number(one, 1): (self.text(one, 2), self.text(one, 4))
                          for one in map(fields_of, whole[5])}
        self.locations = {self.number(one, 1): {
            "mapping": self.number(one, 2), "address": self.number(one, 3),
            "lines": [(*self.functions[self.number(line, 1)], self.number(line, 2))
                      for line in map(fields_of, one[4])]} for one in map(fields_of, whole[4])}
        self.samples = [(numbers_of(one[1]), dict(zip((name for name, _ in self.types), numbers_of(one[2]))),
                         {self.text(label, 1): self.text(label, 2) for label in map(fields_of, one[3])})
                        for one in map(fields_of, whole[2])]
        self.seconds = self.number(whole, 10) * NANOSECONDS
        self.comments = [self.strings[one] for one in numbers_of(whole[13])]
        self.default = self.text(whole, 14)

    @staticmethod
    def number(fields, field):
        return fields[field][0] if fields[field] else 0

    def text(self, fields, field):
        return self.strings[self.number(fields, field)]

    def names(self, location):
        """As farheap's --json says them, the innermost first."""
        one = self.locations[location]
        names = [f"{function} ({os.path.basename(source)}:{line})" if source else function
                 for function, source, line in one["lines"]]
        if one["mapping"] == 0:
            return names
        mapping = self.mappings[one["mapping"]]
        file = os.path.basename(mapping["path"])
        if not names:  # a return address: that of the call is one less
            return [f"{file}+{one['address'] - mapping['start'] + mapping['offset'] + 1:#x}"]
        return [name if name.endswith(")") else f"{name} ({file})" for name in names]

    def stack(self, locations):
        """The outermost first."""
        return tuple(name for one in locations for name in self.names(one))[::-1]


class Pprof(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        real_runs.needs_runs(cls.__name__)
        folder = tempfile.TemporaryDirectory(prefix="farheap-pprof-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.profile, cls.file = str(cls.folder / "app.profile"), cls.folder / "app.pb.gz"
        done = tool("record", "-o", cls.profile, "--memory", MEMORY, "--", PROGRAM, str(LARGE_MIB), "fork")
        assert done.returncode == 0, done.stderr
        done = tool("report", cls.profile, "--pprof", str(cls.file))
        assert done.returncode == 0, done.stderr
        cls.said = done
        cls.report = json.loads(tool("report", cls.profile, "--json").stdout)

    def needs_names(self):
        if not NAMES:
            skipped(self.id(), "built without libdw")


class OwnReader(Pprof):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        content = cls.file.read_bytes()
        cls.is_gzip = content.startswith(b"\x1f\x8b")
        cls.pprof = Profile(gzip.decompress(content) if cls.is_gzip else content)

    def sum_by(self, value, key_of):
        sums = collections.Counter()
        for locations, values, labels in self.pprof.samples:
            if values[value] != 0:
                sums[key_of(locations, labels)] += values[value]
        return sums

    def assert_same(self, shown, wanted, within, what):
        self.assertEqual(set(shown), set(wanted), what)
        for key, value in wanted.items():
            self.assertLessEqual(abs(shown[key] - value), within, f"{what} of {key}: {shown[key]} instead of {value}")

    def test_it_is_compressed_where_the_build_can(self):
        self.assertEqual(self.is_gzip, GZIP)
        if not GZIP:
            print("built without zlib: the profile is not compressed", file=sys.stderr)

    def test_its_types(self):
        self.assertEqual(dict(self.pprof.types), TYPES)
        self.assertEqual(self.pprof.strings[0], "")
        self.assertEqual(self.pprof.default, "stall")
        self.assertTrue(all(len(values) == len(TYPES) for _, values, _ in self.pprof.samples))
        self.assertAlmostEqual(self.pprof.seconds, self.report["seconds"], places=6)
        self.assertEqual(self.pprof.comments, self.report["notes"])

    def test_stacks_of_allocations_are_those_of_the_json(self):
        for value, member in (("alloc_objects", "objects"), ("alloc_space", "allocated_bytes"),
                              ("inuse_space", "live_bytes"), ("peak_space", "peak_bytes")):
            wanted = collections.Counter()
            for site in self.report["sites"]:
                if site[member] != 0:
                    wanted[tuple(site["stack"] or [site["site"]])] += site[member]
            shown = self.sum_by(value, lambda locations, _: self.pprof.stack(locations))
            self.assertGreater(len(wanted), 1)
            # Objects are estimates that are rounded once for each sample here, and once for their sum there.
            self.assert_same(shown, wanted, 8 if value == "alloc_objects" else 0, value)

    def test_waits_are_those_of_the_json(self):
        estimated = self.report["estimated"]
        self.assertGreater(estimated["faults"], 100)
        for value, member in (("faults", "faults"), ("read", "bytes_read")):
            self.assertEqual(sum(self.sum_by(value, lambda *_: 0).values()), estimated[member])
        for value in ("stall", "site_stall"):
            whole = sum(self.sum_by(value, lambda *_: 0).values()) * NANOSECONDS
            self.assertAlmostEqual(whole, self.report["waits"]["stall_seconds"], places=5, msg=value)
        shown = self.sum_by("site_stall", lambda locations, _: self.pprof.stack(locations))
        by_label = self.sum_by("stall", lambda _, labels: labels["allocated_at"])
        stacks, sites = collections.Counter(), collections.Counter()
        for site in self.report["sites"]:
            if site["stall_seconds"] > 0:
                stacks[tuple(site["stack"] or [site["site"]])] += site["stall_seconds"] / NANOSECONDS
                sites[site["site"]] += site["stall_seconds"] / NANOSECONDS
        self.assert_same(shown, stacks, 100, "waiting for a site")
        self.assert_same(by_label, sites, 1000, "waiting by label")

    def test_the_lines_that_wait_are_the_leaves(self):
        self.needs_names()
        plain = {line["line"]: line for line in self.report["lines"] if ", in " not in line["line"]}
        shown = {value: self.sum_by(value, lambda locations, _: self.pprof.names(locations[0])[0])
                 for value in ("stall", "faults", "read")}
        read = f"read_large ({os.path.basename(SOURCE)}:{line_of(SOURCE, 'read')})"
        self.assertIn(read, plain)
        for text, line in plain.items():
            if text not in shown["stall"]:
                self.assertEqual(line["stall_seconds"], 0, text)
                continue
            self.assertAlmostEqual(shown["stall"][text] * NANOSECONDS, line["stall_seconds"], places=5, msg=text)
            self.assertEqual(shown["faults"][text], line["faults"], text)
            self.assertEqual(shown["read"][text], line["bytes_read"], text)

    def test_code_is_in_the_files_that_were_recorded(self):
        program = os.path.realpath(PROGRAM)
        content = pathlib.Path(program).read_bytes()
        identity = re.search(rb"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0(.{20})", content, re.DOTALL).group(1).hex()
        first = next(iter(self.pprof.mappings.values()))
        self.assertEqual((first["path"], first["build_id"]), (program, identity))
        self.assertEqual(first["has_functions"], int(NAMES))
        ends = [0]
        for mapping in self.pprof.mappings.values():
            self.assertGreaterEqual(mapping["start"], ends[-1], "mappings do not overlap")
            self.assertGreater(mapping["limit"], mapping["start"])
            self.assertEqual((mapping["start"] % 4096, mapping["limit"] % 4096, mapping["offset"] % 4096), (0, 0, 0))
            ends.append(mapping["limit"])
        for location in self.pprof.locations.values():
            if location["mapping"] != 0:
                mapping = self.pprof.mappings[location["mapping"]]
                self.assertLessEqual(mapping["start"], location["address"])
                self.assertLess(location["address"], mapping["limit"])

    def test_addresses_name_the_lines(self):
        """Offsets in the file, by another reader of its debugging information."""
        self.needs_names()
        if not shutil.which("addr2line") or not shutil.which("readelf"):
            skipped(self.id(), "needs binutils")
        number, mapping = next(iter(self.pprof.mappings.items()))
        parts = re.findall(r"LOAD\s+(0x\w+) (0x\w+) 0x\w+\s+(0x\w+)",
                           subprocess.run(["readelf", "-lW", mapping["path"]], capture_output=True, text=True, check=True).stdout)
        looked = 0
        for location in self.pprof.locations.values():
            if location["mapping"] != number or not location["lines"] or not location["lines"][0][1]:
                continue
            offset = location["address"] - mapping["start"] + mapping["offset"]
            address = next(offset - int(at, 16) + int(to, 16) for at, to, size in parts
                           if int(at, 16) <= offset < int(at, 16) + int(size, 16))
            said = subprocess.run(["addr2line", "-e", mapping["path"], hex(address)], capture_output=True, text=True,
                                  check=True).stdout
            _, source, line = location["lines"][0]
            self.assertRegex(said, rf"{re.escape(os.path.basename(source))}:{line}\b")
            looked += 1
        self.assertGreater(looked, 2)

    def test_each_process_has_its_label(self):
        processes = {labels["process"] for _, _, labels in self.pprof.samples}
        name = os.path.basename(PROGRAM)[:15]
        self.assertEqual(len(processes), 2, processes)
        self.assertTrue(all(one.startswith(name) for one in processes), processes)

    def test_equal_profiles_make_equal_files(self):
        again = self.folder / "again.pb.gz"
        self.assertEqual(tool("report", self.profile, "--pprof", str(again)).returncode, 0)
        self.assertEqual(again.read_bytes(), self.file.read_bytes())

    def test_it_goes_with_what_it_can(self):
        self.assertEqual(self.said.stdout, "")
        self.assertIn("pprof", self.said.stderr)
        other, page = str(self.folder / "other.pb.gz"), self.folder / "page.html"
        both = tool("report", self.profile, "--pprof", other, "--html", str(page), "--json")
        self.assertEqual(both.returncode, 0, both.stderr)
        self.assertEqual(json.loads(both.stdout), self.report)
        self.assertIn("<html", page.read_text(encoding="utf-8"))
        self.assertEqual(tool("report", self.profile, "--pprof", other, "--folded").returncode, 2)
        self.assertEqual(tool("report", "--compare", self.profile, self.profile, "--pprof", other).returncode, 2)
        bad = tool("report", self.profile, "--pprof", "/no/such/folder/x")
        self.assertEqual(bad.returncode, 1)
        self.assertIn("/no/such/folder/x", bad.stderr)
        trace = str(self.folder / "trace")
        self.assertEqual(tool("run", "--trace", trace, "--", PROGRAM, "1", "once").returncode, 0)
        self.assertEqual(tool("report", trace, "--pprof", other).returncode, 2)


class Extreme(unittest.TestCase):
    """Of a profile that nothing but damage or malice makes."""

    def test_the_largest_numbers_and_oddest_names_make_a_sound_file(self):
        with tempfile.TemporaryDirectory(prefix="farheap-pprof-") as folder:
            profile, file = os.path.join(folder, "extreme.profile"), pathlib.Path(folder, "extreme.pb.gz")
            subprocess.run([MAKER, "extreme", profile], check=True, timeout=60)
            done = tool("report", profile, "--pprof", str(file))
            self.assertEqual(done.returncode, 0, done.stderr)
            content = file.read_bytes()
            pprof = Profile(gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content)
            self.assertEqual([mapping["path"] for mapping in pprof.mappings.values()], ["/\ufffd\ufffd"])
            values = [value for _, values, _ in pprof.samples for value in values.values()]
            self.assertTrue(all(value < 1 << 63 for value in values), values)
            self.assertTrue(any(value > 1 << 62 for value in values), values)
            self.assertIn("memory of no known site", pprof.strings)
            if shutil.which("go"):
                read = subprocess.run(["go", "tool", "pprof", "-symbolize=none", "-raw", str(file)], capture_output=True,
                                      text=True, check=False, timeout=240, cwd=folder)
                self.assertEqual(read.returncode, 0, read.stderr)


class GoReader(Pprof):
    @classmethod
    def setUpClass(cls):
        if not shutil.which("go"):
            skipped(cls.__name__, "needs Go, whose pprof reads the file")
        super().setUpClass()

    def top(self, value, unit):
        """{function: value} by `go tool pprof -top`, where each stack ends."""
        done = subprocess.run(["go", "tool", "pprof", "-symbolize=none", "-top", f"-sample_index={value}", f"-unit={unit}",
                               "-nodecount=1000000", "-nodefraction=0", "-edgefraction=0", str(self.file)],
                              capture_output=True, text=True, check=False, timeout=240, cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"File: {os.path.basename(PROGRAM)}", done.stdout)
        self.assertIn(f"Type: {value}", done.stdout)
        rows = re.findall(r"^\s*([\d.]+)\w*\s+[\d.]+%\s+[\d.]+%\s+[\d.]+\w*\s+[\d.]+%\s+(.+?)(?: \(inline\))?$", done.stdout,
                          re.MULTILINE)
        return {name: float(number) for number, name in rows if float(number) != 0}

    def test_top_has_the_numbers_of_the_json(self):
        self.needs_names()
        for value, unit, member in (("peak_space", "B", "peak_bytes"), ("inuse_space", "B", "live_bytes"),
                                    ("alloc_space", "B", "allocated_bytes")):
            wanted = collections.Counter()
            for site in self.report["sites"]:
                wanted[re.sub(r" \([^()]*\)$", "", site["site"])] += site[member]
            top = self.top(value, unit)
            for name in ("make_large", "make_small"):
                if wanted[name] != 0:
                    self.assertEqual(top[name], wanted[name], f"{value} of {name}")
            self.assertEqual(sum(top.values()), sum(wanted.values()), value)

    def test_top_says_who_waited(self):
        self.needs_names()
        top = self.top("stall", "ns")
        lines = sum(line["stall_seconds"] for line in self.report["lines"] if line["line"].startswith("read_large ("))
        self.assertAlmostEqual(top["read_large"] * NANOSECONDS, lines, places=5)
        self.assertAlmostEqual(sum(top.values()) * NANOSECONDS, self.report["waits"]["stall_seconds"], places=5)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", required=True)
    parser.add_argument("--program", required=True)
    parser.add_argument("--source", required=True)
    parser.add_argument("--maker", required=True)
    parser.add_argument("--no-names", action="store_true")
    parser.add_argument("--no-gzip", action="store_true")
    parser.add_argument("classes", nargs="*")
    options = parser.parse_args()
    PROGRAM, SOURCE, MAKER = options.program, options.source, options.maker
    real_runs.use(options.tool)
    NAMES, GZIP = not options.no_names, not options.no_gzip
    unittest.main(argv=[sys.argv[0], *options.classes], verbosity=2)
