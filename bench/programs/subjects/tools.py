# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tools of a command line: they compress, index, pack, compile."""

import os
import random
import subprocess

from subject import Job, Subject, environment, made

MIB = 1 << 20


def text(path, size_bytes):
    """Words, the short ones often, and now and then a passage from far before: what a long window finds."""
    rng = random.Random(1)
    words = [bytes(rng.choices(b"abcdefghijklmnopqrstuvwxyz", k=2 + number.bit_length() // 2)) + b" "
             for number in range(1, 40_000)]
    weights = [1 / number for number in range(1, 40_000)]
    whole = bytearray()
    while len(whole) < size_bytes:
        whole += b"".join(rng.choices(words, weights, k=20_000))
        if len(whole) > MIB:
            at = rng.randrange(len(whole) - MIB // 4)
            whole += whole[at:at + rng.randrange(MIB // 4)]
    with open(path, "wb") as out:
        out.write(whole[:size_bytes])


class Zstd(Subject):
    name = "zstd_long"
    does = "zstd -12 --long=27 of 48 MiB of text: its window, hash tables and chains"
    tools = (("zstd", "zstd"),)

    def prepare(self, folder):
        source = made(folder, "text", lambda path: text(path, 48 * MIB))
        return Job(["zstd", "-12", "--long=27", "-T1", "-q", "-c", source], env=environment())


class BwaIndex(Subject):
    name = "bwa_index"
    does = "the index of a genome of 6 million bases"
    tools = (("bwa", "bwa"),)

    def prepare(self, folder):
        def write(path):
            rng = random.Random(1)
            bases = rng.randbytes(6_000_000).translate(bytes(b"ACGT"[byte & 3] for byte in range(256)))
            with open(path, "wb") as out:
                out.write(b">made\n")
                out.writelines(bases[at:at + 70] + b"\n" for at in range(0, len(bases), 70))
        genome = made(folder, "genome.fa", write)
        return Job(["bwa", "index", "-p", os.path.join(folder, "index"), genome], env=environment(),
                   results=tuple(os.path.join(folder, f"index.{ending}") for ending in ("bwt", "sa", "pac")))


class GitRepack(Subject):
    name = "git_repack"
    does = "packs 16 versions of a file of 3 MiB anew, all in one window"
    tools = (("git", "git"),)
    @staticmethod
    def _history(path):
        """A stream for git fast-import."""
        rng = random.Random(1)
        lines = [b"%064x" % rng.getrandbits(256) for _ in range(48_000)]
        with open(path, "wb") as out:
            for version in range(16):
                for _ in range(200):
                    lines[rng.randrange(len(lines))] = b"%064x" % rng.getrandbits(256)
                data = b"\n".join(lines)
                out.write(b"commit refs/heads/main\ncommitter a <a@b> %d +0000\ndata 1\nv\n" % (1_700_000_000 + version))
                out.write(b"M 644 inline file\ndata %d\n%s\n" % (len(data), data))

    def prepare(self, folder):
        def make(path):
            stream = made(folder, "history", self._history)
            subprocess.run(["git", "init", "-q", "--bare", path], check=True)
            with open(stream, "rb") as source:
                subprocess.run(["git", "-C", path, "fast-import", "--quiet"], stdin=source, check=True)
        # It asks for a pack on stdout, as `git repack -a -f` does of it, and so leaves the repository as it was.
        repository = made(folder, "repository.git", make)
        return Job(["git", "-C", repository, "pack-objects", "--all", "--stdout",
                    "--no-reuse-delta", "--no-reuse-object", "--threads=1", "--window=16", "-q"],
                   env=environment(GIT_CONFIG_NOSYSTEM="1", HOME=folder))


class Compiler(Subject):
    name = "g++_templates"
    does = "one source with containers, variants and functions of 10 types, with -O1"
    tools = (("g++", "g++"),)

    @staticmethod
    def _write(path):
        with open(path, "w", encoding="ascii") as out:
            out.write("#include <algorithm>\n#include <functional>\n#include <map>\n#include <string>\n"
                      "#include <unordered_map>\n#include <variant>\n#include <vector>\n")
            for i in range(10):
                out.write(f"""
struct T{i} {{ int number; std::string text; bool operator<(const T{i}& o) const {{ return number < o.number; }} }};
int use{i}(int n) {{
  std::map<T{i}, std::vector<std::string>> tree;
  std::unordered_map<std::string, std::variant<int, std::string, T{i}>> table;
  std::vector<T{i}> all;
  for (int k = 0; k < n; ++k) {{
    all.push_back(T{i}{{k, std::to_string(k)}});
    tree[all.back()].push_back("x");
    table[std::to_string(k)] = all.back();
  }}
  std::function<int(const T{i}&)> f = [&](const T{i}& t) {{ return t.number + int(tree.size()); }};
  std::sort(all.begin(), all.end());
  int sum = 0;
  for (const T{i}& t : all) sum += f(t);
  return sum + int(table.size());
}}
""")

    def prepare(self, folder):
        source = made(folder, "templates.cpp", self._write)
        return Job(["g++", "-std=c++17", "-O1", "-S", "-o", "-", source], env=environment())
