#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What farcc needs beside it: a clang and passes that fit, and ccache where it is used.

  driver_clang_test.py --farcc FILE --clang FILE --major N --cc FILE [Class[.test]]...
"""

import os
import re
import shutil
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from driver_case import Case, GIVEN, main  # noqa: E402


class Choosing(Case):
    def copy(self, *plugins):
        """farcc in a folder of its own, with files that stand for passes."""
        folder = self.folder / "bin"
        folder.mkdir()
        shutil.copy(self.farcc, folder / "farcc")
        for name, path in plugins:
            if path is None:
                (folder / name).write_text("no library\n", encoding="utf-8")
            else:
                shutil.copy(path, folder / name)
        return folder / "farcc"

    def clang_of(self, version):
        program = self.write("someclang", f"#!/bin/sh\necho {version}\n")
        program.chmod(0o755)
        return str(program)

    def test_no_passes(self):
        heard = self.fails(self.copy(), "-c", "program.c")
        self.assertIn("cannot find the passes", heard)
        self.assertIn("llvm-19-dev", heard)

    def test_no_clang_for_the_passes(self):
        heard = self.fails(self.copy(("farheap-passes-77.so", None)), "-c", "program.c", FARCC_CLANG=None,
                           PATH=str(self.folder))
        self.assertIn("apt install clang-77", heard)

    def test_a_clang_without_passes(self):
        heard = self.fails(self.farcc, "-c", "program.c", FARCC_CLANG=self.clang_of("Some clang version 14.0.6"))
        self.assertIn("it is version 14", heard)
        self.assertRegex(heard, r"apt install clang-\d\d")

    def test_what_is_no_clang(self):
        self.assertIn("there is no such program", self.fails(self.farcc, "-c", "program.c", FARCC_CLANG="nowhere/clang"))
        for options in ((), ("-ffar=none",)):
            heard = self.fails(self.farcc, *options, "-c", "program.c", FARCC_CLANG=self.clang_of("gcc 12.2.0"))
            self.assertIn("it is no clang: to --version it answers 'gcc 12.2.0'; name a clang", heard)
        self.assertIn("does not answer", self.fails(self.farcc, "-c", "program.c", FARCC_CLANG=self.clang_of("")))

    def test_gcc_was_taken_for_a_clang_of_its_version(self):
        program = self.folder / "gcc-19"
        program.write_text("#!/bin/sh\necho 'gcc-19 (Debian) 19.2.0'\n", encoding="utf-8")
        program.chmod(0o755)
        self.assertIn("it is no clang", self.fails(self.farcc, "-c", "program.c", FARCC_CLANG=str(program)))

    def test_passes_of_another_version_are_refused_by_clang(self):
        plugin = GIVEN.farcc.parent / f"farheap-passes-{GIVEN.major}.so"
        others = [major for major in ("19", "22") if major != GIVEN.major and shutil.which(f"clang-{major}")]
        if not others:
            self.skipTest("there is one clang only")
        farcc = self.copy((f"farheap-passes-{others[0]}.so", plugin))
        self.assertIn("unable to load plugin",
                      self.fails(farcc, "-c", "program.c", FARCC_CLANG=shutil.which(f"clang-{others[0]}")))

    def test_what_is_no_library_is_refused_by_clang(self):
        farcc = self.copy((f"farheap-passes-{GIVEN.major}.so", None))
        self.assertIn("unable to load plugin", self.fails(farcc, "-c", "program.c"))

    def test_level_none_needs_no_passes(self):
        self.run_well(self.copy(), "-ffar=none", "-c", "program.c")


class Ccache(Case):
    def setUp(self):
        super().setUp()
        if shutil.which("ccache") is None:
            self.skipTest("there is no ccache")
        self.settings = {"CCACHE_DIR": str(self.folder / "cache"), "CCACHE_LOGFILE": str(self.folder / "log"),
                         "CCACHE_DISABLE": None}

    def hits(self):
        text = (self.folder / "log").read_text(encoding="utf-8")
        return len(re.findall(r"Result: (?:direct|preprocessed)_cache_hit", text))

    def build(self, *words, launcher=(), **environment):
        self.run_well(*launcher, self.farcc, "-O2", *words, "-c", "program.c", "-o", "program.o", **self.settings,
                      **environment)
        self.run_well(GIVEN.cc, "program.o", "-o", "program")

    def check_both_levels(self, **how):
        for hits_before in (0, 2):
            self.build(**how)
            self.check_program("program")
            self.build("-ffar=none", **how)
            self.check_program("program", told="")
            self.assertEqual(self.hits(), hits_before)

    def test_in_front(self):
        self.check_both_levels(launcher=("ccache",))

    def test_behind(self):
        self.check_both_levels(FARCC_LAUNCHER="ccache")

    def test_behind_it_knows_the_environment(self):
        for _ in range(2):
            self.build(FARCC_LAUNCHER="ccache")
            self.check_program("program")
            self.build(FARCC_LAUNCHER="ccache", FARCC_LEVEL="none")
            self.check_program("program", told="")


if __name__ == "__main__":
    main(__doc__)
