#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Packages of the distribution, built from source with farcc by their own build systems, pass their own tests.

  packages_test.py --farcc FILE --clang FILE --tool FILE --folder DIR [--level hint|guard] PACKAGE

Their sources come by `apt-get source`, with a list of sources, indices and a cache of the test's own: nothing of the
machine's is changed. In the folder they are kept for the next time.
"""

import argparse
import json
import os
import pathlib
import pwd
import re
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
JOBS = str(os.cpu_count() or 1)
MIB = 1 << 20


class Skip(Exception):
    """It cannot be tested here, and why."""


class Failed(Exception):
    """What went wrong."""


def run(command, folder=None, patience=3000, user=None, **variables):
    """Output and errors in one. Raises Failed."""
    command = [str(word) for word in command]
    try:
        done = subprocess.run(command, cwd=folder, env={**os.environ, **variables}, text=True, errors="replace",
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                              timeout=patience, user=user)
    except subprocess.TimeoutExpired as error:
        raise Failed(f"{' '.join(command)}: not done after {patience} s") from error
    if done.returncode != 0:
        raise Failed(f"{' '.join(command)}: ended with {done.returncode}\n{done.stdout[-4000:]}")
    return done.stdout


# ---- sources


def release():
    text = pathlib.Path("/etc/os-release").read_text(encoding="utf-8")
    found = re.search(r'^VERSION_CODENAME="?(\w+)', text, re.MULTILINE)
    return found.group(1) if found else ""


def in_new_form(text, code):
    """Entries of a .sources file that are the distribution's own, as sources of sources."""
    for entry in re.split(r"\n\s*\n", text):
        fields = dict(re.findall(r"^([\w-]+):[ \t]*(.*)$", entry, re.MULTILINE))
        suites = [suite for suite in fields.get("Suites", "").split() if suite == code or suite.startswith(f"{code}-")]
        if not suites or fields.get("Enabled", "yes") == "no" or "main" not in fields.get("Components", "").split():
            continue
        key = f"[signed-by={fields['Signed-By']}] " if fields.get("Signed-By", "").startswith("/") else ""
        for place in fields.get("URIs", "").split():
            for suite in suites:
                yield f"deb-src {key}{place} {suite} main"


def in_old_form(text, code):
    """The same of a file of lines."""
    for line in text.splitlines():
        found = re.match(r"\s*deb(?:-src)?\s+(\[[^]]*\]\s+)?(\S+)\s+(\S+)\s+(.*)$", line)
        if found and "main" in found.group(4).split():
            if found.group(3) == code or found.group(3).startswith(f"{code}-"):
                key = re.search(r"signed-by=\S+?(?=[\s\]])", found.group(1) or "")
                yield f"deb-src {f'[{key.group(0)}] ' if key else ''}{found.group(2)} {found.group(3)} main"


def source_lines():
    code = release()
    lines = []
    for path in [pathlib.Path("/etc/apt/sources.list"), *sorted(pathlib.Path("/etc/apt/sources.list.d").glob("*"))]:
        if path.is_file() and path.suffix in (".list", ".sources"):
            read = in_new_form if path.suffix == ".sources" else in_old_form
            lines += read(path.read_text(encoding="utf-8"), code)
    return list(dict.fromkeys(lines))


def fetch(package, folder, *how):
    """Where the unpacked source is; `how` it is unpacked. Raises Skip where it cannot be had."""
    for tool, of in (("apt-get", "apt"), ("dpkg-source", "dpkg-dev")):
        if shutil.which(tool) is None:
            raise Skip(f"there is no {tool}; apt install {of}")
    unpacked = folder / "source" / package
    if not unpacked.exists():
        lines = source_lines()
        if not lines:
            raise Skip("apt's lists name no place of this distribution that sources could come from")
        apt = folder / "apt"
        for part in ("lists/partial", "cache/archives/partial", "files"):
            (apt / part).mkdir(parents=True, exist_ok=True)
        (apt / "sources.list").write_text("\n".join(lines) + "\n", encoding="utf-8")
        settings = [f"Dir::Etc::sourcelist={apt}/sources.list", "Dir::Etc::sourceparts=/dev/null",
                    f"Dir::State::lists={apt}/lists", f"Dir::Cache={apt}/cache",
                    "Acquire::Languages=none", "APT::Sandbox::User=root", "Acquire::Retries=2"]
        options = [word for setting in settings for word in ("-o", setting)]
        try:
            run(["apt-get", *options, "-qq", "update"], patience=300)
            run(["apt-get", *options, "-qq", "source", "--download-only", package], apt / "files", patience=300)
        except Failed as error:
            raise Skip(f"apt-get does not get the source of {package}: {error}") from error
        description = max((apt / "files").glob(f"{package}_*.dsc"))
        unpacked.parent.mkdir(parents=True, exist_ok=True)
        run(["dpkg-source", "--no-check", *how, "-x", description, unpacked])
    print(f"{package}: {run(['dpkg-parsechangelog', '-S', 'Version'], unpacked).strip()}", flush=True)
    return unpacked


# ---- packages


class Package:
    """`work` is a copy of the source. `compilers`: variables for builds, by which farcc reports what it does."""

    unpack = ()

    def __init__(self, options, work):
        self.options, self.work = options, work
        self.report = work.parent / "report.jsonl"
        self.farcc = options.farcc
        self.farxx = options.farcc.parent / "far++"
        self.compilers = {"CC": str(self.farcc), "CXX": str(self.farxx), "FARCC_CLANG": str(options.clang),
                          "FARCC_LEVEL": options.level, "FARCC_REPORT": str(self.report)}

    def run(self, *command, **more):
        return run(command, self.work, **{**self.compilers, **more})

    def check(self):
        """Builds it and has it test itself. Raises Failed, or Skip."""
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

    def in_a_quarter(self, *command):
        """The program's output under `farheap run` with a quarter of its plain peak, compared with the plain one."""
        with tempfile.TemporaryFile() as said:
            process = subprocess.Popen([str(word) for word in command], cwd=self.work, stdin=subprocess.DEVNULL,
                                       stdout=said)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            said.seek(0)
            plain = said.read().decode("utf-8", "replace")
        if process.returncode != 0:
            raise Failed(f"{command}: ended with {process.returncode}")
        budget = usage.ru_maxrss * 1024 // 4
        if budget < 32 * MIB:  # the least that farheap run takes
            raise Failed(f"{command}: its peak of {usage.ru_maxrss // 1024} MiB is too small to be a test")
        errors = self.work.parent / "errors"
        with open(errors, "w", encoding="utf-8") as out:
            done = subprocess.run([self.options.tool, "run", "--memory", str(budget), "--stats=json", "--",
                                   *map(str, command)], cwd=self.work, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=out, text=True, check=False, timeout=1200)
        stats = errors.read_text(encoding="utf-8")
        if done.returncode != 0 or done.stdout != plain:
            raise Failed(f"{command} in {budget} bytes: {done.returncode}: {done.stdout[-500:]} instead of "
                         f"{plain[-500:]}: {stats[-2000:]}")
        found = re.search(r'"bytes_written":\s*(\d+)', stats)
        if not found or int(found.group(1)) == 0:
            raise Failed(f"{command} in {budget} bytes: nothing left memory, so nothing was tested: {stats[-2000:]}")
        print(f"the plain output in {budget // MIB} MiB, a quarter of its peak; {int(found.group(1)) // MIB} MiB written",
              flush=True)


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

    def check(self):
        self.run("./configure")
        self.run("make", "-j", JOBS)
        said = self.run("make", "test")
        if said.count("test OK ***") < 2:  # the static library and the shared one
            raise Failed(f"make test: {said[-2000:]}")
        print(f"make test: {said.count('test OK ***')} times OK", flush=True)
        (self.work / "both_ways.c").write_text(ZLIB_PROGRAM, encoding="utf-8")
        self.run(self.farcc, "-O2", "-I", ".", "both_ways.c", "libz.a", "-o", "both_ways")
        self.in_a_quarter("./both_ways")


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

    def check(self):
        self.run("make", "-C", "src", "generic", f"CC={self.farcc}", "CFLAGS=-O2 -DLUA_USE_POSIX -DLUA_USE_DLOPEN",
                 "MYLIBS=-ldl")
        program = self.work / "src" / "lua"
        print(run([program, "-v"]).strip(), flush=True)
        passed = []
        for script in sorted((self.work / "test").glob("*.lua")):
            # These read what is typed, never end, or are not to be run by themselves (test/README).
            if script.name in ("readonly.lua", "luac.lua", "xd.lua", "cf.lua", "trace-calls.lua", "trace-globals.lua",
                               "table.lua", "echo.lua", "env.lua", "globals.lua", "lua.lua", "printf.lua"):
                continue
            run([program, script], self.work / "test", patience=120)
            passed.append(script.stem)
        if len(passed) < 5:
            raise Failed(f"only {len(passed)} of its test programs were found")
        print(f"test: {' '.join(passed)}", flush=True)
        (self.work / "rows.lua").write_text(LUA_PROGRAM, encoding="utf-8")
        self.in_a_quarter(program, "rows.lua")


class Sqlite(Package):
    source = "sqlite3"
    # Asks how large the disk's blocks are; fails on ext4 with plain clang, too.
    FAILS_BY_ITSELF = {"io-5.5"}

    @classmethod
    def judged(cls, said, least=1000):
        """The summary, or None if it is not good."""
        found = re.search(r"(\d+) errors out of (\d+) tests", said)
        failed = {name for line in re.findall(r"^!Failures on these tests: (.*)$", said, re.MULTILINE)
                  for name in line.split()}
        good = found and int(found.group(2)) >= least and int(found.group(1)) == len(failed)
        return found if good and failed <= cls.FAILS_BY_ITSELF else None

    def check(self):
        if shutil.which("tclsh") is None or not list(pathlib.Path("/usr/lib").glob("*/tcl8*/tclConfig.sh")):
            raise Skip("its tests need Tcl; apt install tcl tcl-dev")
        self.run("./configure", "--disable-shared")
        self.run("make", "-j", JOBS, "testfixture", "sqlite3")
        # Its tests are about permissions, too, and refuse to be run by root.
        nobody = pwd.getpwnam("nobody").pw_uid if os.geteuid() == 0 else None
        ran = self.work / "ran"
        ran.mkdir()
        if nobody is not None:
            self.work.parent.chmod(0o755)
            os.chown(ran, nobody, -1)
        # It ends with 1 where one test fails; which ones is what counts.
        said = run(["sh", "-c", '"$0" "$1" || [ $? = 1 ]', self.work / "testfixture",
                    self.work / "test" / "extraquick.test"], ran, user=nobody, HOME=str(ran))
        found = self.judged(said)
        if found is None:
            raise Failed(f"extraquick.test: {said[-3000:]}")
        print(f"extraquick.test: {found.group(0)}", flush=True)


class Tinyxml2(Package):
    source = "tinyxml2"

    def check(self):
        self.run("cmake", "-S", ".", "-B", "out", f"-DCMAKE_CXX_COMPILER={self.farxx}", "-DCMAKE_BUILD_TYPE=Release",
                 "-DBUILD_TESTING=ON", "-Dtinyxml2_BUILD_TESTING=ON")
        self.run("cmake", "--build", "out", "-j", JOBS)
        said = self.run("ctest", "--test-dir", "out", "--output-on-failure", "--no-tests=error", "-V")
        found = re.search(r"Pass (\d+), Fail (\d+)", said)
        if not found or found.group(2) != "0" or int(found.group(1)) < 100:
            raise Failed(f"ctest: {said[-3000:]}")
        print(f"ctest: {found.group(0)}", flush=True)


PACKAGES = {"zlib": Zlib, "lua": Lua, "sqlite": Sqlite, "tinyxml2": Tinyxml2}


def test(options):
    kind = PACKAGES[options.package]
    options.folder.mkdir(parents=True, exist_ok=True)
    source = fetch(kind.source, options.folder / kind.source, *kind.unpack)
    with tempfile.TemporaryDirectory(prefix="farheap-package-", dir="/var/tmp") as place:
        work = pathlib.Path(place) / "work"
        shutil.copytree(source, work, symlinks=True)
        package = kind(options, work)
        package.check()
        functions, hinted, guards = package.compiled()
    if functions < 50 or (guards > 50) != (options.level == "guard"):
        raise Failed(f"farcc compiled {functions} functions with {guards} guards: it was not this build's compiler")
    print(f"compiled by farcc: {functions} functions, {hinted} hints, {guards} guards", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("farcc", "clang", "tool", "folder"):
        parser.add_argument(f"--{name}", required=True, type=lambda path: pathlib.Path(path).absolute())
    parser.add_argument("--level", default="hint", choices=("hint", "guard"))
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
