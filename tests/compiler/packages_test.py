#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Packages of the distribution, built from source with farcc by their own build systems, pass their own tests.

  packages_test.py --farcc FILE --clang FILE --tool FILE --folder DIR [--level hint|guard|record|cached|direct] PACKAGE

`cached` and `direct` are the modes of level translate-heap. But for `direct`, which has no pages, the tests run a second time
in the least memory that a run may have, beside restless.c, because most need less; and a program that needs more runs
in a quarter of what it needs.

Their sources come as tests/distribution.py says. In the folder they are kept for the next time.
"""

import argparse
import itertools
import json
import os
import pathlib
import pwd
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from distribution import Failed, Skip, fetch, run  # noqa: E402

SKIPPED = 77
JOBS = str(os.cpu_count() or 1)
MIB = 1 << 20
TRANSLATED = ("cached", "direct")
PLAIN_TURNS = 20  # of a script in which a test failed that did not fail by plain clang before


# ---- packages


class Package:
    """`work` is a copy of the source. `compilers`: variables for builds, by which farcc reports what it does."""

    unpack = ()

    def __init__(self, options, work, level=None):
        self.options, self.work = options, work
        self.report = work.parent / f"{work.name}.jsonl"
        self.farcc = options.farcc
        self.farxx = options.farcc.parent / "far++"
        self.is_translated = options.level in TRANSLATED
        self.fetched = 0  # pages, by guards
        self.compilers = {"CC": str(self.farcc), "CXX": str(self.farxx), "FARCC_CLANG": str(options.clang),
                          "FARCC_LEVEL": level or ("translate-heap" if self.is_translated else options.level),
                          "FARCC_REPORT": str(self.report)}
        # Build systems run what they have compiled.
        self.enough = {"FARHEAP_FAR_MODE": options.level, "FARHEAP_FAR_CACHE": "1G"} if self.is_translated else {}

    def run(self, *command, **more):
        return run(command, self.work, **{**self.compilers, **self.enough, **more})

    def build(self):
        """Raises Failed, or Skip."""
        raise NotImplementedError

    def test_itself(self, *before, **variables):
        """Its own tests, each command with `before` in front of it. (What was tested, all that was said)."""
        raise NotImplementedError

    def need_much(self):
        """A program that needs much memory: its words."""
        raise NotImplementedError

    def compiled(self):
        """(functions, loops hinted, guards): that it was compiled by farcc at all."""
        functions = hinted = guards = 0
        with open(self.report, encoding="utf-8") as lines:
            for line in map(json.loads, lines):
                functions += line["what"] == "size"
                hinted += line["what"] == "hinted"
                guards += line.get("guards", 0)
        return functions, hinted, guards

    # ---- in less memory than it needs

    def in_memory(self, budget):
        """(words to put before a command, variables) by which it has this memory, and says when pages leave."""
        store = self.work.parent / "store"
        store.mkdir(exist_ok=True)
        if self.is_translated:
            return (), {**self.enough, "FARHEAP_FAR_CACHE": str(budget), "FARHEAP_FAR_STORE": f"file:{store}",
                        "FARHEAP_LOG": "info"}
        return (self.options.tool, "run", "--memory", budget, "--store", f"file:{store}", "--set", "follow_exec=on",
                "--stats=json", "--"), {}

    def what_left(self, said):
        """Raises Failed if nothing did."""
        if self.is_translated:
            paged = said.count(" is near its budget: pages go to ")
            if paged == 0:
                raise Failed(f"no process paged, so nothing was tested: {said[-2000:]}")
            return f"{paged} processes paged"
        written, fetched = (sum(map(int, re.findall(rf'"{key}":\s*(\d+)', said))) for key in ("bytes_written",
                                                                                             "guard_fetches"))
        if written == 0:
            raise Failed(f"no page left memory, so nothing was tested: {said[-2000:]}")
        self.fetched += fetched
        return f"{written // MIB} MiB written, {fetched} pages fetched by guards"

    def beside_much_else(self):
        """Its own tests again."""
        restless = self.work.parent / "restless.so"
        run([self.options.clang, "-O1", "-shared", "-fPIC", "-pthread",
             pathlib.Path(__file__).resolve().with_name("restless.c"), "-o", restless])
        before, variables = self.in_memory(32 * MIB)
        tested, said = self.test_itself(*before, LD_PRELOAD=str(restless), RESTLESS_IN=str(self.work), **variables)
        print(f"{tested}, in 32 MiB beside 64 that are written all the time: {self.what_left(said)}", flush=True)

    def in_a_quarter(self):
        """The program's output with a quarter of its plain peak, compared with the plain one."""
        command = [str(word) for word in self.need_much()]
        with tempfile.TemporaryFile() as told:
            process = subprocess.Popen(command, cwd=self.work, stdin=subprocess.DEVNULL, stdout=told,
                                       env={**os.environ, **self.enough})
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            told.seek(0)
            plain = told.read().decode("utf-8", "replace")
        if process.returncode != 0 or not plain:
            raise Failed(f"{command}: ended with {process.returncode}")
        budget = usage.ru_maxrss * 1024 // 4
        if budget < 32 * MIB:  # the least that farheap run takes
            raise Failed(f"{command}: its peak of {usage.ru_maxrss // 1024} MiB is too small to be a test")
        before, variables = self.in_memory(budget)
        done = subprocess.run([*map(str, before), *command], cwd=self.work, stdin=subprocess.DEVNULL, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, timeout=1200,
                              env={**os.environ, **variables})
        if done.returncode != 0 or done.stdout != plain:
            raise Failed(f"{command} in {budget} bytes: {done.returncode}: {done.stdout[-500:]} instead of "
                         f"{plain[-500:]}: {done.stderr[-2000:]}")
        print(f"the plain output in {budget // MIB} MiB, a quarter of its peak; {self.what_left(done.stderr)}", flush=True)


ZLIB_PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
int main(void) {
  const uLong size = 100000000;
  Bytef *text = malloc(size), *back = malloc(size);
  uLongf packed_size = compressBound(size), back_size = size;
  Bytef *packed = malloc(packed_size);
  if (!text || !back || !packed) return 1;
  unsigned word = 1;
  for (uLong i = 0; i < size; i++) {
    if (i % 7 == 0) word = word * 1664525u + 1013904223u;
    text[i] = (Bytef)('a' + (word >> 28));
  }
  if (compress2(packed, &packed_size, text, size, 1) != Z_OK) return 2;
  if (uncompress(back, &back_size, packed, packed_size) != Z_OK || back_size != size) return 3;
  printf("%lu %lu %d\n", packed_size, adler32(1, back, size), memcmp(text, back, size));
  return 0;
}
"""


class Zlib(Package):
    source = "zlib"

    def build(self):
        self.run("./configure")
        self.run("make", "-j", JOBS)

    def test_itself(self, *before, **variables):
        said = self.run(*before, "make", "test", **variables)
        if said.count("test OK ***") < 2:  # the static library and the shared one
            raise Failed(f"make test: {said[-2000:]}")
        return f"make test: {said.count('test OK ***')} times OK", said

    def need_much(self):
        (self.work / "both_ways.c").write_text(ZLIB_PROGRAM, encoding="utf-8")
        self.run(self.farcc, "-O2", "-I", ".", "both_ways.c", "libz.a", "-o", "both_ways")
        return ("./both_ways",)


LUA_PROGRAM = """
local rows, sum = {}, 0
for r = 1, 100 do
  local row = {}
  for i = 1, 80000 do row[i] = (i * 7919 + r) % 60011 end
  rows[r] = row
end
for turn = 1, 2 do
  for r = 1, #rows do
    local row = rows[r]
    for i = 1, #row do sum = (sum * 31 + row[i]) % 1000000007 end
  end
end
print(#rows, sum)
"""


class Lua(Package):
    """5.1, whose source has test programs in it; later ones have theirs elsewhere."""
    source = "lua5.1"
    unpack = ("--skip-patches",)  # they make its Makefile ask for libtool
    # These read what is typed, never end, or are not to be run by themselves (test/README).
    NOT_RUN = ("readonly.lua", "luac.lua", "xd.lua", "cf.lua", "trace-calls.lua", "trace-globals.lua", "table.lua",
               "echo.lua", "env.lua", "globals.lua", "lua.lua", "printf.lua")

    def build(self):
        self.run("make", "-C", "src", "generic", f"CC={self.farcc}", "CFLAGS=-O2 -DLUA_USE_POSIX -DLUA_USE_DLOPEN",
                 "MYLIBS=-ldl")
        self.program = self.work / "src" / "lua"
        print(self.run(self.program, "-v").strip(), flush=True)

    def test_itself(self, *before, **variables):
        passed, all_said = [], ""
        for script in sorted((self.work / "test").glob("*.lua")):
            # In mode direct the game of life alone takes minutes.
            if script.name in self.NOT_RUN or (self.options.level == "direct" and script.name == "life.lua"):
                continue
            all_said += run([*before, self.program, script], self.work / "test", patience=300,
                            **{**self.enough, **variables})
            passed.append(script.stem)
        if len(passed) < 5:
            raise Failed(f"only {len(passed)} of its test programs were found")
        return f"test: {' '.join(passed)}", all_said

    def need_much(self):
        (self.work / "rows.lua").write_text(LUA_PROGRAM, encoding="utf-8")
        return self.program, "rows.lua"


SQL = """
CREATE TABLE rows(number INTEGER PRIMARY KEY, rest INT, text TEXT);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 600000)
  INSERT INTO rows SELECT i, i * 7919 % 60013, printf('%0200d', i * 31) FROM n;
CREATE INDEX by_rest ON rows(rest);
SELECT count(*), sum(rest), max(text) FROM rows;
UPDATE rows SET text = text || number WHERE number % 3 = 0;
SELECT rest % 7, count(*), sum(length(text)), min(text) FROM rows GROUP BY 1 ORDER BY 1;
SELECT count(DISTINCT rest), sum(number) FROM rows WHERE rest BETWEEN 1000 AND 1100;
DELETE FROM rows WHERE number % 2 = 0;
SELECT count(*), sum(rest * number) FROM rows;
PRAGMA integrity_check;
"""


class Sqlite(Package):
    source = "sqlite3"
    turns = itertools.count()

    def build(self):
        if shutil.which("tclsh") is None or not list(pathlib.Path("/usr/lib").glob("*/tcl8*/tclConfig.sh")):
            raise Skip("its tests need Tcl; apt install tcl tcl-dev")
        self.run("./configure", "--disable-shared")
        self.run("make", "-j", JOBS, "testfixture", "sqlite3")

    def judged(self, folder, script="extraquick.test"):
        """(tests, names of those that failed) of a script, by the testfixture in the folder."""
        # Its tests are about permissions, too, and refuse to be run by root.
        nobody = pwd.getpwnam("nobody").pw_uid if os.geteuid() == 0 else None
        # vtabH.test leaves four tests out where the folder's path has a `_`, which names made up at random may have.
        ran = pathlib.Path(f"/var/tmp/farheap-sqlite-{os.getpid()}-{next(self.turns)}")
        shutil.rmtree(ran, ignore_errors=True)
        ran.mkdir()
        if nobody is not None:
            self.work.parent.chmod(0o755)
            os.chown(ran, nobody, -1)
        # Together they take more than the 1G of all others (walro2.test), and nobody may not page.
        enough = {**self.enough, "FARHEAP_FAR_CACHE": "8G"}
        # It ends with 1 where one test fails; which ones is what counts.
        try:
            said = run(["sh", "-c", '"$0" "$1" || [ $? = 1 ]', folder / "testfixture", self.work / "test" / script], ran,
                       patience=9000, user=nobody, HOME=str(ran), **enough)
        finally:
            shutil.rmtree(ran, ignore_errors=True)
        found = re.search(r"(\d+) errors out of (\d+) tests", said)
        failed = {name for line in re.findall(r"^!Failures on these tests: (.*)$", said, re.MULTILINE)
                  for name in line.split()}
        if not found or int(found.group(1)) != len(failed):
            raise Failed(f"{script}: {said[-3000:]}")
        return int(found.group(2)), failed

    def judged_plain(self):
        """The same of plain clang, whose build and verdict are kept for the levels after the first."""
        kept, plain = self.options.folder / self.source / "plain", self.plain
        of = run([self.options.clang, "--version"]) + (self.work / "manifest.uuid").read_text(encoding="utf-8")
        verdict = kept / "verdict.json"
        if verdict.exists() and (read := json.loads(verdict.read_text(encoding="utf-8")))["of"] == of:
            shutil.copytree(kept, plain.work)
            return read["tests"], set(read["failed"])
        shutil.copytree(self.options.folder / self.source / "source" / self.source, plain.work, symlinks=True)
        plain.build()
        tests, failed = plain.judged(plain.work)
        shutil.rmtree(kept, ignore_errors=True)
        kept.mkdir()
        for program in ("testfixture", "sqlite3"):
            shutil.copy(plain.work / program, kept)
        verdict.write_text(json.dumps({"of": of, "tests": tests, "failed": sorted(failed)}), encoding="utf-8")
        return tests, failed

    def fails_plain_too(self, name):
        """Tests that wait for one another fail now and then, by whatever compiler, where the machine is busy."""
        script = f"{name.split('-')[0]}.test"
        return (self.work / "test" / script).exists() and any(
            name in self.judged(self.plain.work, script)[1] for _ in range(PLAIN_TURNS))

    def test_itself(self, *before, **variables):
        """What fails with plain clang, too (one asks how large the disk's blocks are), is not farcc's."""
        if before or variables:
            return self.test_shell(*before, **variables)
        self.plain = Sqlite(self.options, self.work.parent / "plain", "none")
        tests, failed = self.judged(self.work)
        plain_tests, plain_failed = self.judged_plain()
        said = (f"extraquick.test: {tests} tests, failed: {sorted(failed)}; by plain clang {plain_tests} tests, failed: "
                f"{sorted(plain_failed)}")
        print(said, flush=True)
        if tests != plain_tests or tests < 1000:
            raise Failed(said)
        for name in sorted(failed - plain_failed):
            if not self.fails_plain_too(name):
                raise Failed(f"{name} failed, and not by plain clang in {PLAIN_TURNS} turns")
            print(f"{name} fails by plain clang, too, now and then", flush=True)
        return said, said

    def test_shell(self, *before, **variables):
        """In little memory: nobody may not serve faults of the kernel, which its tests, run by nobody, would take."""
        small = SQL.replace("600000", "20000")
        expected = run([self.work.parent / "plain" / "sqlite3", ":memory:", small])
        said = self.run(*before, "./sqlite3", ":memory:", small, **variables)
        lines = expected.splitlines()
        if "ok" not in lines or not set(lines) <= set(said.splitlines()):
            raise Failed(f"sqlite3: {said[-3000:]} instead of {expected}")
        return f"sqlite3: {len(lines)} lines as by plain clang", said

    def need_much(self):
        return "./sqlite3", ":memory:", SQL


XML_PROGRAM = r"""
#include <cstdio>
#include <cstring>
#include <string>
#include "tinyxml2.h"
using namespace tinyxml2;
int main() {
  XMLDocument document;
  XMLElement* root = document.NewElement("rows");
  document.InsertFirstChild(root);
  for (int i = 0; i < 250000; ++i) {
    XMLElement* row = root->InsertNewChildElement("row");
    row->SetAttribute("number", i);
    row->SetAttribute("text", std::string(i % 60, static_cast<char>('a' + i % 26)).c_str());
    row->SetText(("text <" + std::to_string(i * 7919LL) + "> & more").c_str());
  }
  XMLPrinter printer;
  document.Print(&printer);
  XMLDocument again;
  if (again.Parse(printer.CStr(), printer.CStrSize() - 1) != XML_SUCCESS) return 1;
  long long sum = 0, rows = 0;
  for (const XMLElement* row = again.RootElement()->FirstChildElement(); row != nullptr; row = row->NextSiblingElement()) {
    sum = (sum * 31 + row->IntAttribute("number") + std::strlen(row->Attribute("text")) + std::strlen(row->GetText())) %
          1000000007;
    ++rows;
  }
  std::printf("%lld %lld %zu\n", rows, sum, printer.CStrSize());
}
"""


class Tinyxml2(Package):
    source = "tinyxml2"

    def build(self):
        self.run("cmake", "-S", ".", "-B", "out", f"-DCMAKE_CXX_COMPILER={self.farxx}", "-DCMAKE_BUILD_TYPE=Release",
                 "-DBUILD_TESTING=ON", "-Dtinyxml2_BUILD_TESTING=ON")
        self.run("cmake", "--build", "out", "-j", JOBS)

    def test_itself(self, *before, **variables):
        said = self.run(*before, "ctest", "--test-dir", "out", "--output-on-failure", "--no-tests=error", "-V", **variables)
        found = re.search(r"Pass (\d+), Fail (\d+)", said)
        if not found or found.group(2) != "0" or int(found.group(1)) < 100:
            raise Failed(f"ctest: {said[-3000:]}")
        return f"ctest: {found.group(0)}", said

    def need_much(self):
        (self.work / "both_ways.cpp").write_text(XML_PROGRAM, encoding="utf-8")
        self.run(self.farxx, "-O2", "-I", ".", "both_ways.cpp", "tinyxml2.cpp", "-o", "both_ways")
        return ("./both_ways",)


PACKAGES = {"zlib": Zlib, "lua": Lua, "sqlite": Sqlite, "tinyxml2": Tinyxml2}


def test(options):
    kind = PACKAGES[options.package]
    options.folder.mkdir(parents=True, exist_ok=True)
    source = fetch(kind.source, options.folder / kind.source, *kind.unpack)
    with tempfile.TemporaryDirectory(prefix="farheap-package-", dir="/var/tmp") as place:
        work = pathlib.Path(place) / "work"
        shutil.copytree(source, work, symlinks=True)
        package = kind(options, work)
        package.build()
        print(package.test_itself()[0], flush=True)
        if options.level != "direct":
            package.beside_much_else()
            package.in_a_quarter()
        # Only the package's own code has guards.
        if options.level == "guard" and package.fetched == 0:
            raise Failed("no guard ever fetched a page, so guards were not tested")
        functions, hinted, guards = package.compiled()
    if functions < 50 or (guards > 50) != (options.level == "guard"):
        raise Failed(f"farcc compiled {functions} functions with {guards} guards: it was not this build's compiler")
    print(f"compiled by farcc: {functions} functions, {hinted} hints, {guards} guards", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("farcc", "clang", "tool", "folder"):
        parser.add_argument(f"--{name}", required=True, type=lambda path: pathlib.Path(path).absolute())
    parser.add_argument("--level", default="hint", choices=("hint", "guard", "record", *TRANSLATED))
    parser.add_argument("package", choices=sorted(PACKAGES))
    options = parser.parse_args()
    try:
        test(options)
    except Skip as why:
        print(f"SKIPPED, NOT TESTED: {options.package}: {why}")
        sys.exit(SKIPPED)
    except Failed as why:
        print(f"FAILED: {options.package}: {why}")
        sys.exit(1)


if __name__ == "__main__":
    main()
