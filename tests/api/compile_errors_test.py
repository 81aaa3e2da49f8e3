#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What cannot live in a heap is refused when it is compiled, in words that say what to write instead; what can compiles."""

import concurrent.futures
import pathlib
import re
import subprocess
import sys
import tempfile

HEAD = """#include <farheap/containers/std.hpp>
#include <farheap/farheap.hpp>
#include <any>
#include <array>
#include <atomic>
#include <filesystem>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <regex>
#include <shared_mutex>
#include <string>
#include <thread>
#include <tuple>
#include <system_error>
#include <valarray>
#include <variant>
#include <vector>
struct Plain { int i; int* p; };
struct Shape { virtual ~Shape() = default; };
struct Circle : Shape { int radius = 1; };
FARHEAP_POLYMORPHIC(Circle)
struct Mine { std::string outside; };
struct Theirs : std::vector<int> {};
struct Loose { farheap::string text; int stars = 0; };
struct Stays {
  using allocator_type = farheap::allocator<std::byte>;
  explicit Stays(const allocator_type& heap) : text(heap) {}
  Stays(const Stays&) = default;
  farheap::string text;
};
template <>
struct farheap::may_live_in_heap<Mine> : std::false_type {};
template <>
struct farheap::may_live_in_heap<Theirs> : std::true_type {};
using Index = farheap::map<farheap::string, farheap::vector<int>>;
"""

MEMORY = "std::allocator's memory is outside of the heap"
OWNED = "std::unique_ptr and std::shared_ptr own memory outside of the heap"
CODE = "functions lie elsewhere in the next run"
LOCK = "a lock in a heap comes back as it was at the commit"
SYSTEM = "this type of std:: keeps what is gone in the next run"
VIRTUAL = "the tables of virtual functions are put right of objects that construct() makes, not inside of containers"
ALLOCATOR = "what lives in a heap is made with the heap's allocator"

# A type that construct<T> refuses, and why.
REFUSED = {
    "std::vector<int>": MEMORY,
    "std::string": MEMORY,
    "std::map<int, int>": MEMORY,
    "farheap::vector<std::string>": MEMORY,
    "farheap::map<int, farheap::vector<std::string>>": MEMORY,
    "std::pair<int, std::string>": MEMORY,
    "std::array<std::string, 3>": MEMORY,
    "std::shared_ptr<int>": OWNED,
    "std::unique_ptr<Plain>": OWNED,
    "farheap::vector<std::shared_ptr<int>>": OWNED,
    "std::optional<std::weak_ptr<int>>": OWNED,
    "std::function<void()>": CODE,
    "std::any": CODE,
    "void (*)(int)": CODE,
    "int (Plain::*)()": CODE,
    "std::tuple<int, void (*)()>": CODE,
    "std::mutex": LOCK,
    "std::shared_mutex": LOCK,
    "std::pair<int, std::once_flag>": LOCK,
    "std::thread": SYSTEM,
    "std::future<int>": SYSTEM,
    "std::regex": SYSTEM,
    "std::error_code": SYSTEM,
    "std::unique_lock<std::mutex>": LOCK,
    "std::valarray<double>": MEMORY,
    "std::atomic<std::shared_ptr<int>>": OWNED,
    "std::filesystem::path": SYSTEM,
    "farheap::vector<Circle>": VIRTUAL,
    "std::variant<int, Circle>": VIRTUAL,
    "Mine": "farheap::may_live_in_heap<T> was specialised to say so",
    "farheap::vector<Mine>": "farheap::may_live_in_heap<T> was specialised to say so",
}

# Types that have to be taken.
TAKEN = ["int", "Plain", "int*", "int Plain::*", "farheap::vector<int*>", "Index", "std::optional<int>", "Circle",
         "std::pair<farheap::string, int>", "std::pmr::vector<int>", "std::array<Plain, 3>", "std::variant<int, Plain>",
         "farheap::vector<Circle*>", "Theirs", "farheap::unordered_map<farheap::string, Theirs>", "std::string_view",
         "std::atomic<int>", "farheap::vector<bool>"]

# Statements that everybody writes first, and what is said of them.
STATEMENTS = {
    'farheap::vector<farheap::string> v(heap.allocator<int>()); v.push_back("x");': ALLOCATOR,
    "farheap::vector<int> v;": ALLOCATOR,
    'Index i(heap.allocator<int>()); i["word"].push_back(1);': ALLOCATOR,
    'farheap::string s("text");': ALLOCATOR,
    'heap.construct<farheap::vector<Loose>>("v")()->emplace_back("x", 1);': ALLOCATOR,
    'heap.construct<farheap::vector<Loose>>("v")()->resize(1);': ALLOCATOR,
    'heap.construct<farheap::map<farheap::string, Loose>>("m")();': ALLOCATOR,
    'struct Forgets { explicit Forgets(std::string_view) {} farheap::string text; };': ALLOCATOR,
    'heap.construct<farheap::vector<Stays>>("v")()->emplace_back();':
        "construction with an allocator must be possible if uses_allocator is true",
}

# The forms that docs/containers.md shows.
FORMS = """
  auto& index = *heap.find_or_construct<Index>("index")();
  std::string s = "ord";
  index.emplace("w" + s, 0).first->second.push_back(17);
  index[farheap::string("w" + s, heap.allocator<char>())].push_back(17);
  if (const auto found = index.find("w" + s); found != index.end()) found->second.push_back(18);
  auto& words = *heap.find_or_construct<farheap::vector<farheap::string>>("words")();
  words.emplace_back("x");
  words.emplace_back("w" + s);
  auto& loose = *heap.find_or_construct<farheap::vector<Loose>>("loose")();
  loose.push_back({farheap::string("buy milk", heap.allocator<char>()), 3});
"""


def classes_of_your_own(manual):
    """A program of all the code in that section: classes, and what is done with them, by turns."""
    section = manual.partition("## Classes of your own\n")[2].partition("\n## ")[0]
    blocks = re.findall(r"```cpp\n(.*?)```", section, re.DOTALL)
    assert len(blocks) == 4, "two classes, and what is done with each"
    used = "".join(f"{{\n{block}\n}}\n" for block in blocks[1::2])
    return "".join(blocks[::2]) + "void test(farheap::Heap& heap) {\n" + used + "}\n"


def body(statements):
    return "void test(farheap::Heap& heap) {\n(void)heap;\n" + statements + "\n}\n"


def precompiled(compiler, flags, folder):
    """The options for a case that begins with HEAD, which is compiled once: each case would take five times as long."""
    head = folder / (pathlib.Path(compiler).name + ".hpp")
    head.write_text(HEAD, encoding="utf-8")
    subprocess.run([compiler, *flags, "-x", "c++-header", head, "-o", f"{head}.gch"], check=True)
    return [*flags, "-include", head, "-Winvalid-pch"]


def all_in_one(cases):
    """One program of all cases, of which each has lines of its own: what is said of a line is said of its case."""
    return "".join(f'#line 1 "case_{i}"\nnamespace case_{i} {{ {text} }}\n' for i, (_, text, _) in enumerate(cases))


def said_of_each(errors):
    """{case: what is said of it}. Before an error gcc says where it comes from, and clang behind it."""
    parts = re.split(r"(?m)^(?=.*: error: )" if "requested here" in errors else r"(?m)^(?=case_\d+:)", errors)
    said = {}
    for part in parts:
        if ": error: " in part:
            for case in set(re.findall(r"(?m)^case_(\d+):", part)):
                said[int(case)] = said.get(int(case), "") + " ".join(part.split()) + "\n"
    return said


def main():
    with tempfile.TemporaryDirectory() as folder:
        return check_all(sys.argv[1], sys.argv[2:], pathlib.Path(folder))


def check_all(include, compilers, folder):
    flags = ["-std=c++20", "-I", include, "-Wall", "-Wno-unused"]
    options = {compiler: precompiled(compiler, flags, folder) for compiler in compilers}
    taken = "\n".join(f'static_cast<void>(heap.find_or_construct<{one}>("{i}"));' for i, one in enumerate(TAKEN))
    cases = [(f"construct<{one}>", body(f'static_cast<void>(heap.construct<{one}>("x"));'), why)
             for one, why in REFUSED.items()]
    cases += [(one, body(one), why) for one, why in STATEMENTS.items()]
    cases += [("what may live in a heap", body(taken), None), ("the forms of containers.md", body(FORMS), None)]
    manual = pathlib.Path(__file__).parents[2] / "docs/containers.md"
    cases.append(("classes of your own", classes_of_your_own(manual.read_text(encoding="utf-8")), None))

    def compiled(compiler, text, *more):
        return subprocess.run([compiler, *options[compiler], *more, "-fsyntax-only", "-x", "c++", "-"], input=text,
                              check=False, capture_output=True, text=True)

    # What is refused, all at once, which takes a tenth of the time. What is not said there is asked for alone.
    def refused_together(compiler):
        refused = [case for case in cases if case[2] is not None]
        limit = "-ferror-limit=0" if "clang" in pathlib.Path(compiler).name else "-fmax-errors=0"
        said = said_of_each(compiled(compiler, all_in_one(refused), limit).stderr)
        return [case for i, case in enumerate(refused) if case[2] in said.get(i, "")]

    def check(job):
        compiler, (name, text, why) = job
        done = compiled(compiler, text)
        said = " ".join(done.stderr.split())
        if why is None and done.returncode != 0:
            return f"{compiler}: {name}: does not compile:\n{done.stderr[:2000]}"
        if why is not None and (done.returncode == 0 or why not in said):
            return f"{compiler}: {name}: not refused with '{why}':\n{done.stderr[:2000]}"
        return None

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        right = dict(zip(compilers, pool.map(refused_together, compilers)))
        jobs = [(compiler, case) for compiler in compilers for case in cases if case not in right[compiler]]
        failures = [failure for failure in pool.map(check, jobs) if failure]
    print("\n".join(failures) or f"{len(compilers) * len(cases)} cases are right, {len(jobs)} of them alone")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
