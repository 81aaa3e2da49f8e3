# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The real programs that must run unchanged under a budget: one class each, all in ALL.

A program needs so much memory that a quarter of its peak is above the least budget; run_program.py checks that.
Its output goes to stdout and is the same in every run.
"""

import dataclasses
import os
import random
import shutil
import subprocess
import sys

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HERE = os.path.dirname(os.path.abspath(__file__))
DEMO = os.path.join(REPOSITORY, "examples", "demo")
sys.path.insert(0, DEMO)
import packages  # pylint: disable=wrong-import-position,import-error

SIZES = ("quick", "full")


@dataclasses.dataclass
class Job:
    command: list
    stdin: str = None
    env: dict = None


def environment(**more):
    """The caller's, with all that may change a program's output fixed."""
    return {**os.environ, "LC_ALL": "C", "PYTHONHASHSEED": "0", "PERL_HASH_SEED": "0", "TZ": "UTC", **more}


def python():
    """The distribution's own interpreter, no version manager's wrapper."""
    return "/usr/bin/python3" if os.access("/usr/bin/python3", os.X_OK) else os.path.realpath(sys.executable)


class Program:
    name = ""
    tools = ()  # (command, apt package)
    build = None  # the build folder, before anything else is asked

    def plain_bytes(self, _size):
        """How much of its memory cannot leave (docs/limits.md)."""
        return 0

    shared_bytes = 0  # of memory that is no part of the budget, but of what is measured

    def missing(self):
        """None, or what to install."""
        for command, package in self.tools:
            if shutil.which(command) is None:
                return f"{command} is not installed: apt install {package}"
        return None

    def prepare(self, folder, size):
        """Makes its data in `folder`, unless it is there, and returns the job."""
        raise NotImplementedError


def _made(folder, name, make):
    """The path of `name`, made by make(temporary path) if it is not there yet."""
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        temporary = f"{path}.{os.getpid()}"
        make(temporary)
        os.replace(temporary, path)
    return path


def package_text(folder, count):
    return _made(folder, f"packages-{count}.txt", lambda path: packages.write(path, count))


def snapshots(folder, size_bytes):
    """Daily copies of one package list, each with a few records changed: what a large dictionary is for."""
    def make(path):
        with open(package_text(folder, 2000), "rb") as text:
            records = text.read(512 << 10).split(b"\n\n")
        rng, written = random.Random(1), 0
        with open(path, "wb") as out:
            while written < size_bytes:
                for _ in range(5):
                    place = rng.randrange(len(records))
                    records[place] += b"\nChanged: %016x" % rng.getrandbits(64)
                written += out.write(b"\n\n".join(records))
    return _made(folder, f"snapshots-{size_bytes}", make)


class PythonIndex(Program):
    name = "python3_index"
    tools = (("python3", "python3"),)

    def prepare(self, folder, size):
        text = package_text(folder, {"quick": 60000, "full": 240000}[size])
        return Job([python(), os.path.join(DEMO, "index.py"), text], env=environment())


class Sqlite(Program):
    """An in-memory database of packages and what they depend on, and joins over it."""

    name = "sqlite3_joins"
    tools = (("sqlite3", "sqlite3"),)
    queries = """
CREATE INDEX by_name ON package(name);
CREATE INDEX by_need ON depends(needs);
CREATE INDEX by_from ON depends(name);
SELECT count(*), sum(length(text)) FROM package;
SELECT needs, count(*) AS n FROM depends GROUP BY needs ORDER BY n DESC, needs LIMIT 20;
SELECT p.section, count(*), sum(p.size) FROM package p JOIN depends d ON d.name = p.name
  JOIN package q ON q.name = d.needs WHERE q.section <> p.section GROUP BY p.section ORDER BY 1;
SELECT count(*) FROM depends a JOIN depends b ON b.name = a.needs WHERE a.name < 'm';
UPDATE package SET text = upper(text) WHERE size % 3 = 0;
SELECT name, length(text), substr(text, 1, 40) FROM package ORDER BY substr(text, 200, 60), name LIMIT 20;
"""

    @staticmethod
    def _fields(record):
        fields = {}
        for line in record.split("\n"):
            if line[:1] != " " and ": " in line:
                key, value = line.split(": ", 1)
                fields[key] = value
        return fields

    def _write_script(self, text_path, path):
        quote = lambda text: "'" + text.replace("'", "''") + "'"
        with open(text_path, encoding="utf-8") as text, open(path, "w", encoding="utf-8") as out:
            out.write("CREATE TABLE package(name TEXT, section TEXT, size INTEGER, text TEXT);\n"
                      "CREATE TABLE depends(name TEXT, needs TEXT);\nBEGIN;\n")
            for record in text.read().split("\n\n"):
                fields = self._fields(record)
                if "Package" not in fields:
                    continue
                name = quote(fields["Package"])
                out.write(f"INSERT INTO package VALUES({name},{quote(fields.get('Section', 'none'))},"
                          f"{int(fields.get('Installed-Size', 0))},{quote(record)});\n")
                for need in fields.get("Depends", "").split(","):
                    if need.strip():
                        out.write(f"INSERT INTO depends VALUES({name},{quote(need.split()[0])});\n")
            out.write("COMMIT;\n" + self.queries)

    def prepare(self, folder, size):
        count = {"quick": 66000, "full": 240000}[size]  # its peak is short, and samples of it miss a MiB
        script = _made(folder, f"sqlite-{count}.sql",
                       lambda path: self._write_script(package_text(folder, count), path))
        return Job(["sqlite3", "-batch", ":memory:"], stdin=script, env=environment())


class Sort(Program):
    """GNU sort with a buffer that holds everything brings eight logs, one after the other in a file, in one order."""

    tools = (("sort", "coreutils"),)

    def __init__(self, threads):
        self.name = f"sort_{threads}"
        self._threads = threads

    @staticmethod
    def _write_logs(path, lines):
        rng = random.Random(1)
        with open(path, "w", encoding="ascii") as out:
            for log in range(8):
                time = 1_700_000_000_000
                for _ in range(lines // 8):
                    time += rng.randrange(1000)
                    out.write(f"{time} host{log} {rng.getrandbits(64):016x} line\n")

    def prepare(self, folder, size):
        lines = {"quick": 1_600_000, "full": 6_000_000}[size]
        buffer = {"quick": "200M", "full": "700M"}[size]
        text = _made(folder, f"logs-{lines}", lambda path: self._write_logs(path, lines))
        return Job(["sort", "-S", buffer, f"--parallel={self._threads}", text], env=environment(TMPDIR=folder))


class XzThereAndBack(Program):
    """Two processes share the budget; what comes out must be what went in."""

    name = "xz_9_and_back"
    tools = (("xz", "xz-utils"),)

    def prepare(self, folder, size):
        text = snapshots(folder, {"quick": 13 << 20, "full": 48 << 20}[size])
        return Job(["sh", "-c", 'xz -9 -T1 -c "$0" | xz -dc', text], env=environment())


class XzThreads(Program):
    """Two threads, large blocks: most of its memory is what waits to be compressed or written."""

    name = "xz_threads"
    tools = (("xz", "xz-utils"),)

    def prepare(self, folder, size):
        text = snapshots(folder, {"quick": 128 << 20, "full": 384 << 20}[size])
        block = {"quick": "64MiB", "full": "192MiB"}[size]
        return Job(["xz", "-T2", "--lzma2=preset=3,dict=1MiB", f"--block-size={block}", "-c", text], env=environment())


class Pigz(Program):
    """Large blocks, so that its buffers need memory."""

    name = "pigz"
    tools = (("pigz", "pigz"),)

    def prepare(self, folder, size):
        text = package_text(folder, {"quick": 180000, "full": 360000}[size])
        return Job(["pigz", "-p", "2", "-3", "-n", "-b", {"quick": "49152", "full": "98304"}[size], "-c", text],
                   env=environment())


class Perl(Program):
    """All records in memory, a hash each, and several passes over them."""

    name = "perl_records"
    tools = (("perl", "perl"),)
    script = """
local $/ = "";
while (<>) { my %fields = /^([A-Z][A-Za-z-]*): (.*)$/mg; $fields{Text} = $_; push @all, \\%fields; }
for my $one (@all) { $size{$one->{Section}} += $one->{"Installed-Size"} // 0; $words += () = $one->{Text} =~ /\\w+/g; }
for my $one (@all) { $one->{Place} = ++$place; $one->{Text} =~ s/^ .*\\n//mg; }
print "$words words\\n";
print "$_ $size{$_}\\n" for sort keys %size;
for my $one (reverse @all) { print "$one->{Place} $one->{Package} ", length $one->{Text}, " ", scalar keys %$one, "\\n"; }
"""

    def prepare(self, folder, size):
        text = package_text(folder, {"quick": 30000, "full": 120000}[size])
        return Job(["perl", "-e", self.script, text], env=environment())


class Compiler(Program):
    """g++ over header-only libraries: many small objects, and its own garbage collector over mmap."""

    name = "gxx"
    tools = (("g++", "g++"),)
    headers = {"quick": ("nlohmann/json.hpp", "boost/unordered_map.hpp"),
               "full": ("nlohmann/json.hpp", "regex", "boost/unordered_map.hpp", "boost/container/flat_map.hpp",
                        "boost/interprocess/offset_ptr.hpp", "boost/intrusive/rbtree.hpp")}
    source = """
int main(int count, char** words) {
  boost::unordered_map<std::string, int> lengths;
  auto value = nlohmann::json::parse(count > 1 ? words[1] : "{}");
  for (const auto& [key, inner] : value.items()) lengths[key] = static_cast<int>(inner.size());
  value["keys"] = lengths.size();
  return static_cast<int>(value.dump(2).size() + nlohmann::json::to_cbor(value).size());
}
"""

    def missing(self):
        if not os.path.exists("/usr/include/nlohmann/json.hpp"):
            return "nlohmann/json.hpp is not installed: apt install nlohmann-json3-dev"
        if not os.path.exists("/usr/include/boost/container/flat_map.hpp"):
            return "boost/container/flat_map.hpp is not installed: apt install libboost1.81-dev"
        return super().missing()

    def prepare(self, folder, size):
        def make(path):
            with open(path, "w", encoding="ascii") as out:
                out.write("".join(f"#include <{header}>\n" for header in self.headers[size]) + self.source)
        path = _made(folder, f"compiled-{size}.cpp", make)
        return Job(["g++", "-std=c++20", {"quick": "-O0", "full": "-O2"}[size], "-S", "-o", "-", path], env=environment(TMPDIR=folder))


class Node(Program):
    """V8 reserves its pages without access, trims them to an alignment, and opens and shuts them piece by piece."""

    name = "node"
    tools = (("node", "nodejs"),)

    def prepare(self, folder, size):
        text = package_text(folder, {"quick": 30000, "full": 120000}[size])
        return Job(["node", "--max-old-space-size=4096", os.path.join(HERE, "words.js"), text, "3"], env=environment())


class MakeTwoAtOnce(Program):
    """make -j2 over a small C++ project: what comes out are the objects' digests and what the linked program says."""

    name = "make_j2"
    tools = (("make", "make"), ("g++", "g++"))
    modules = {"quick": 3, "full": 12}
    module = """#include <map>
#include <regex>
#include <string>
int part_NUMBER(const std::string& text) {
  std::map<std::string, int> words;
  const std::regex word("[a-z]{NUMBER,}");
  for (std::sregex_iterator at(text.begin(), text.end(), word), end; at != end; ++at) ++words[at->str()];
  return static_cast<int>(words.size());
}
"""
    main = """#include <iostream>
#include <string>
DECLARATIONS
int main() {
  const std::string text = "a heap that outgrows memory and is compiled two files at once";
  std::cout << SUM << std::endl;
}
"""
    makefile = """objects := $(patsubst %.cpp,%.o,$(sort $(wildcard *.cpp)))
program: $(objects)
\t@g++ -o $@ $^ && sha256sum $^ && ./$@
%.o: %.cpp
\t@g++ -std=c++20 OPTIMISE -c -o $@ $<
"""

    def _write_project(self, folder, size):
        numbers = range(1, self.modules[size] + 1)
        texts = {f"part_{n}.cpp": self.module.replace("NUMBER", str(n)) for n in numbers}
        texts["main.cpp"] = self.main.replace("SUM", " + ".join(f"part_{n}(text)" for n in numbers)).replace(
            "DECLARATIONS", "\n".join(f"int part_{n}(const std::string& text);" for n in numbers))
        texts["Makefile"] = self.makefile.replace("OPTIMISE", {"quick": "-O0", "full": "-O2"}[size])
        os.makedirs(folder)
        for name, text in texts.items():
            with open(os.path.join(folder, name), "w", encoding="ascii") as out:
                out.write(text)

    def prepare(self, folder, size):
        project = _made(folder, f"project-{size}", lambda path: self._write_project(path, size))
        script = 'out=$(mktemp -d) && cp "$0"/* "$out" && make -s -j2 -C "$out"; end=$?; rm -r "$out"; exit $end'
        return Job(["sh", "-c", script, project], env=environment(TMPDIR=folder))


class Script(Program):
    """A Python script beside this file, with one number for its size."""

    def __init__(self, name, script, sizes, tools=()):
        self.name = name
        self._script = os.path.join(os.path.dirname(os.path.abspath(__file__)), script)
        self._sizes = sizes
        self.tools = (("python3", "python3"), *tools)

    def prepare(self, folder, size):
        return Job([python(), self._script, str(self._sizes[size])], env=environment(TMPDIR=folder))


MULTIPROCESSING = Script("python3_multiprocessing", "forking_pool.py", {"quick": 60_000, "full": 400_000})
REDIS = Script("redis_server", "redis_job.py", {"quick": 100_000, "full": 400_000},
               (("redis-check-rdb", "redis-tools"),))


class Java(Program):
    """A JVM with one of its collectors. The heap's limits are fixed: by default they follow the machine's memory."""

    tools = (("java", "openjdk-17-jre-headless"), ("javac", "openjdk-17-jdk-headless"))

    def __init__(self, collector):
        self.name = f"java_{collector.lower()}"
        self._collector = collector

    def prepare(self, folder, size):
        text = package_text(folder, {"quick": 60000, "full": 240000}[size])
        heap = {"quick": "-Xmx256m", "full": "-Xmx1g"}[size]
        classes = _made(folder, "java-classes", lambda path: subprocess.run(
            ["javac", "-d", path, os.path.join(HERE, "Words.java")], check=True))
        return Job(["java", heap, f"-XX:+Use{self._collector}GC", "-cp", classes, "Words", text, "3"],
                   env=environment())


ALL = (PythonIndex(), Sqlite(), Sort(1), Sort(2), XzThereAndBack(), XzThreads(), Pigz(), Perl(), Compiler(),
       Node(), Java("Serial"), Java("G1"), MakeTwoAtOnce(), MULTIPROCESSING, REDIS)
