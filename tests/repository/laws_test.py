#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The repository keeps its laws, and the checks of the laws see planted violations."""

import pathlib
import tempfile
import unittest

import environment_law
import include_law
import licence_lines

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

    def test_a_file_without_licence(self):
        for path in self.root.rglob("*.hpp"):
            path.write_text("// " + licence_lines.LINE + "\n" + path.read_text(encoding="utf-8"), encoding="utf-8")
        self.assertEqual(list(licence_lines.violations(self.root)), [])
        self.write("src/base/new.cpp", "\n" * 8 + "// " + licence_lines.LINE + "\n")
        self.assertEqual(len(list(licence_lines.violations(self.root))), 1)


if __name__ == "__main__":
    unittest.main()
