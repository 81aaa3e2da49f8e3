#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The repository keeps its laws, and the checks of the laws see planted violations."""

import hashlib
import json
import pathlib
import re
import shutil
import tempfile
import unittest

import environment_law
import include_law
import licence_lines
import lock_law
import one_definition_law

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Repository(unittest.TestCase):
    def test_include_law(self):
        self.assertEqual(list(include_law.violations(ROOT)), [])

    def test_every_folder_of_the_order_is_looked_at(self):
        seen = {path.relative_to(ROOT / "src").parts[0] for path in include_law.files_below(ROOT / "src")}
        self.assertLessEqual({"base", "os", "store"}, seen)

    def test_environment_law(self):
        self.assertEqual(list(environment_law.violations(ROOT)), [])

    def test_licence_lines(self):
        self.assertEqual(list(licence_lines.violations(ROOT)), [])

    def test_one_definition_law(self):
        self.assertEqual(list(one_definition_law.violations(ROOT)), [])

    def test_libraries_of_pages_are_as_published(self):
        told = dict(re.findall(r"^\| `(web/\S+)` .*`([0-9a-f]{64})` \|$",
                               (ROOT / "third_party/README.md").read_text(encoding="utf-8"), re.MULTILINE))
        files = {path.relative_to(ROOT / "third_party").as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
                 for path in (ROOT / "third_party/web").rglob("*") if path.is_file() and path.name != "LICENSE"}
        self.assertGreater(len(told), 0)
        self.assertEqual(files, told)

    def test_lock_law(self):
        self.assertEqual(list(lock_law.violations(ROOT)), [])


GUARDED = """#include "base/mutex.hpp"
struct Counter {
  void add() { %s }
  int add_held() FARHEAP_REQUIRES(mutex) { return ++value; }
  farheap::base::Mutex mutex;
  int value FARHEAP_GUARDED_BY(mutex) = 0;
};
"""


@unittest.skipUnless(shutil.which(lock_law.CLANG), f"there is no {lock_law.CLANG}")
class Locks(unittest.TestCase):
    """What clang refuses, by the flags of `./dev lint`."""

    def said_of(self, body):
        with tempfile.TemporaryDirectory() as folder:
            source = pathlib.Path(folder) / "counter.cpp"
            source.write_text(GUARDED % body, encoding="utf-8")
            return lock_law.clang_says(source, ["-std=c++20", f"-I{ROOT / 'src'}", f"-I{ROOT / 'include'}"])

    def test_an_access_with_its_lock(self):
        for body in ("farheap::base::LockGuard lock(mutex); ++value; add_held();",
                     "farheap::base::UniqueLock lock(mutex); ++value; lock.unlock(); lock.lock(); ++value;",
                     "mutex.lock(); ++value; { farheap::base::Without unlocked(mutex); } ++value; mutex.unlock();"):
            self.assertEqual(self.said_of(body), "", body)

    def test_an_access_without_its_lock(self):
        for body in ("++value;", "add_held();", "farheap::base::UniqueLock lock(mutex); lock.unlock(); ++value;",
                     "farheap::base::LockGuard lock(mutex); farheap::base::Without unlocked(mutex); ++value;"):
            self.assertIn("requires holding mutex 'mutex'", self.said_of(body), body)

    def test_a_lock_that_is_not_given_back(self):
        self.assertIn("still held at the end of function", self.said_of("mutex.lock();"))


class Planted(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = pathlib.Path(self.folder.name)
        self.write("include/farheap/store.hpp", "#include <string>\n")
        self.write("src/base/units.hpp", "#include <farheap/store.hpp>\n")
        self.write("src/store/uri.hpp", '#include "base/units.hpp"\n')
        self.write("src/pager/pager.hpp", '#include "store/uri.hpp"\n#include "page.hpp"\n')
        self.write("src/pager/page.hpp", "")

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def includes(self):
        return list(include_law.violations(self.root))

    def test_nothing_is_seen_where_nothing_is(self):
        self.assertEqual(self.includes(), [])

    def test_an_include_of_a_later_folder(self):
        self.write("src/store/file.cpp", '#include <vector>\n#include "pager/pager.hpp"\n')
        self.assertEqual(len(self.includes()), 1)
        self.assertIn("src/store/file.cpp:2: store includes pager/pager.hpp", self.includes()[0])

    def test_two_types_of_one_name(self):
        self.write("src/plan/optimum.hpp", "namespace farheap::plan {\nstruct Use {\n};\n}  // namespace farheap::plan\n")
        for text, others in (("namespace farheap::plan {\nclass Use final : public Base {\n};\n", 1),
                             ("namespace farheap::store {\nstruct Use {\n};\n", 0),
                             ("namespace farheap::plan {\nstruct Use;\nnamespace {\nstruct Use {\n};\n", 0),
                             ("namespace farheap::plan {\nstruct Round::Use {\n};\n", 0),
                             ("namespace farheap::plan {\nnamespace {\n}  // namespace\nenum class Use {\n};\n", 1)):
            self.write("src/plan/round.hpp", text)
            self.assertEqual(len(list(one_definition_law.violations(self.root))), others, text)

    def test_the_same_with_other_spellings(self):
        for line in ("#include <pager/pager.hpp>", "#  include \"pager/pager.hpp\"", '#include "../pager/pager.hpp"',
                     '#include "../../tool/run.hpp"', '#include "tool/run.hpp"'):
            self.write("src/store/file.cpp", line + "\n")
            self.assertTrue(self.includes(), line)

    def test_a_public_header_that_needs_the_sources(self):
        self.write("include/farheap/heap.hpp", '#include "base/units.hpp"\n')
        self.assertIn("a public header", self.includes()[0])

    def test_a_folder_without_place(self):
        self.write("src/misc/x.cpp", "")
        self.assertIn("no place", self.includes()[0])

    def test_libraries_that_belong_to_the_tool(self):
        self.write("src/store/file.cpp", "#include <nlohmann/json.hpp>\n")
        self.assertIn("for tool", self.includes()[0])
        self.write("src/store/file.cpp", "")
        self.write("tool/run.cpp", "#include <CLI/CLI.hpp>\n")
        self.assertIn("main only", self.includes()[0])

    def test_a_compiler_that_brings_the_runtime(self):
        self.write("compiler/driver/main.cpp", '#include "base/units.hpp"\n#include <farheap/store.hpp>\n')
        self.write("compiler/passes/plugin.cpp", '#include <llvm/IR/Module.h>\n')
        self.assertEqual(self.includes(), [])
        self.write("compiler/driver/main.cpp", '#include "store/uri.hpp"\n#include <llvm/IR/Module.h>\n')
        self.write("compiler/passes/plugin.cpp", '#include "base/units.hpp"\n#include <farheap/store.hpp>\n')
        self.assertEqual(len(self.includes()), 4)

    def test_an_environment_that_is_read_elsewhere(self):
        self.write("src/base/environment.cpp", 'auto x = std::getenv("X");\n')
        self.write("src/store/file.cpp", "// getenv() would be wrong\nint environment;\n")
        self.assertEqual(list(environment_law.violations(self.root)), [])
        for line in ('auto x = std::getenv("X");', 'auto x = secure_getenv ("X");', "extern char** environ;"):
            self.write("src/store/file.cpp", line + "\n")
            self.assertEqual(len(list(environment_law.violations(self.root))), 1, line)

    def test_a_lock_that_clang_cannot_check(self):
        self.write("src/base/mutex.hpp", "std::mutex mutex_;\n")
        self.write("src/store/file.cpp", "// std::mutex would be wrong\nstd::condition_variable_any told;\n")
        self.assertEqual(list(lock_law.violations(self.root)), [])
        for line in ("std::mutex mutex_;", "mutable std::shared_mutex gate;", "std::lock_guard lock(mutex_);",
                     "using Lock = std::unique_lock<Mutex>;", "std::condition_variable told;"):
            self.write("src/store/file.cpp", line + "\n")
            self.assertEqual(len(list(lock_law.violations(self.root))), 1, line)

    def test_a_source_is_looked_at_again_when_what_it_includes_has_changed(self):
        self.write("src/base/thread_safety.hpp", "")
        self.write("src/base/mutex.hpp", '#include "base/thread_safety.hpp"\n')
        self.write("src/store/a.hpp", '#include "base/mutex.hpp"\n')
        self.write("src/store/a.cpp", '#include "store/a.hpp"\n')
        self.write("src/store/b.cpp", '#include "base/mutex.hpp"\n')
        self.write("src/store/knows_no_lock.cpp", "")
        root = self.root.resolve()
        names = ("a.cpp", "b.cpp", "knows_no_lock.cpp")
        entries = [{"file": str(root / "src/store" / name), "directory": str(root), "command": f"c++ -DX -c {name}"}
                   for name in names]
        self.write("compile_commands.json", json.dumps(entries))

        def chosen(changed):
            return {path.name: options for path, options, _ in lock_law.sources(root, root, changed)}

        self.assertEqual(chosen(None), {"a.cpp": ["-DX"], "b.cpp": ["-DX"]})
        self.assertEqual(set(chosen([root / "src/store/a.hpp"])), {"a.cpp"})
        self.assertEqual(set(chosen([root / "src/base/mutex.hpp"])), {"a.cpp", "b.cpp"})
        self.assertEqual(set(chosen([])), set())

    def test_a_file_without_licence(self):
        for path in self.root.rglob("*.hpp"):
            path.write_text("// " + licence_lines.LINE + "\n" + path.read_text(encoding="utf-8"), encoding="utf-8")
        self.assertEqual(list(licence_lines.violations(self.root)), [])
        self.write("src/base/new.cpp", "\n" * 8 + "// " + licence_lines.LINE + "\n")
        self.assertEqual(len(list(licence_lines.violations(self.root))), 1)


if __name__ == "__main__":
    unittest.main()
