#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""farcc's own options: levels, what they count and report, what it says of itself and of mistakes.

  driver_options_test.py --farcc FILE --clang FILE --major N --cc FILE [Class[.test]]...
"""

import json
import os
import re
import shutil
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from driver_case import Case, GIVEN, OUTPUT, PROGRAM, TOLD, main  # noqa: E402


class Levels(Case):
    def test_none_is_clang(self):
        self.compile("-O2", "-c", "program.c", "-o", "with.o", "-ffar=none")
        self.run_well(GIVEN.clang, "-O2", "-c", "program.c", "-o", "plain.o")
        self.assertEqual((self.folder / "with.o").read_bytes(), (self.folder / "plain.o").read_bytes())

    def test_a_folder_is_no_profile(self):
        said = self.fails(self.farcc, "-ffar=guard", f"-ffar-guard={self.folder}", "-c", "program.c")
        self.assertNotIn("terminate called", said)
        self.assertIn("-ffar-guard", said)

    def test_levels_that_are_not_there(self):
        self.assertIn("there is no such level; choose none, count, hint, guard, record, translate-heap or translate-all",
                      self.fails(self.farcc, "-ffar=guards", "-c", "program.c", status=2))
        self.assertIn("there is no such level", self.fails(self.farcc, "-ffar=all", "-c", "program.c", status=2))
        self.assertIn("there is no such level", self.fails(self.farcc, "-c", "program.c", status=2, FARCC_LEVEL="all"))

    def test_wrong_options(self):
        self.assertIn("no such option", self.fails(self.farcc, "-ffar-what", "-c", "program.c", status=2))
        self.assertIn("512K", self.fails(self.farcc, "-ffar-threshold=much", "-c", "program.c", status=2))
        self.assertIn("add -ffar=count", self.fails(self.farcc, "-ffar-count=executed", "-c", "program.c", status=2))
        self.assertIn("is missing", self.fails(self.farcc, "-ffar-report=", "-c", "program.c", status=2))
        # The passes would name an option of their own, or take the brace for itself.
        for wrong, why in (("-ffar-only=a,b[", "without its ']'"), ("-ffar-leave=rel{ax", "without its '}'"),
                           ("-ffar-threshold", "the size is missing"), ("-ffar", "the level is missing")):
            said = self.fails(self.farcc, "-O2", wrong, "-c", "program.c", status=2)
            self.assertIn(why, said)
            self.assertIn(wrong, said)
        self.run_well(self.farcc, "-O2", "-ffar-only=[f]*,main::{lambda()#1}*", "-c", "program.c")

    def test_options_without_their_values(self):
        for wrong, why, choice in (("-ffar-count=foo", "that cannot be counted", "-ffar-count=executed"),
                                   ("-ffar-count", "is missing", "-ffar-count=executed"),
                                   ("-ffar-guard", "is missing", "-ffar-guard=record"),
                                   ("-ffar-only", "the list of functions is missing", "-ffar-only=NAME,..."),
                                   ("-ffar-leave", "is missing", "-ffar-leave=NAME"),
                                   ("-ffar-borrow", "is missing", "-ffar-borrow=NAME")):
            said = self.fails(self.farcc, "-O2", wrong, "-c", "program.c", status=2)
            self.assertIn(f"wrong option: {wrong}: ", said)
            self.assertIn(why, said)
            self.assertIn(choice, said)

    def warned(self, *words, **environment):
        """Of nothing else, and with -Werror nothing fails for it."""
        done = self.run_well(self.farcc, "-Werror", "-O2", *words, "-c", "program.c", **environment)
        self.assertEqual(done.stderr.count("warning: "), 1, done.stderr)
        return done.stderr

    def test_what_was_asked_for_in_vain_was_not_said(self):
        for option in ("-ffar-only=", "-ffar-leave=,"):
            self.assertIn(f"farcc: warning: {option}: the list is empty", self.warned(option))
        self.assertIn("-ffar-borrow=: the list is empty", self.warned("-ffar=translate-heap", "-ffar-borrow="))
        self.assertIn("-ffar-borrow: only translated code lends, and the level is hint", self.warned("-ffar-borrow=fill"))
        self.assertIn("-ffar-borrow: no function that is called in program.c has a name that it says",
                      self.warned("-ffar=translate-heap", "-ffar-borrow=fil,summ"))
        self.compile("-ffar=translate-heap", "-ffar-borrow=fill", "-c", "program.c")
        for option in ("-ffar-only=fil,summ", "-ffar-only=programs.c"):
            for level in ("hint", "guard", "count", "translate-heap"):
                self.assertIn("-ffar-only: no function in program.c has a name, or is in a file, that it says",
                              self.warned(option, f"-ffar={level}"))
        for option in ("-ffar-only=fil,sum", "-ffar-only=program.c", "-Wno-backend-plugin"):
            self.compile(option, "-c", "program.c")
        self.write("program.c", "int x;\n")  # no function at all
        self.compile("-ffar-only=fil", "-c", "program.c")

    def test_translated_objects_were_linked_to_what_ld_says(self):
        self.compile("-O2", "-ffar=translate-heap", "-c", "program.c")
        self.run_well("ar", "rc", "libprogram.a", "program.o")
        for name, words in (("program.o", ("program.o",)), ("libprogram.a", ("-Wl,--whole-archive", "libprogram.a",
                                                                            "-Wl,--no-whole-archive"))):
            for level in ("hint", "guard", "none"):
                said = self.fails(self.farcc, f"-ffar={level}", *words, "-o", "program")
                self.assertIn("undefined reference to `__farheap_", said)
                self.assertTrue(said.endswith(
                    f"farcc: cannot link: {name}: it was compiled with -ffar=translate-heap or translate-all, and the link "
                    "lacks the runtime of translated programs; give the same -ffar= when linking, too\n"), said)
        # Fifty lines of the linker's came before the sentence.
        self.write("many.c", "".join(f"long f{i}(long *p) {{ return *p; }}\n" for i in range(40)) +
                   "int main(void) { return 0; }\n")
        self.compile("-O2", "-ffar=translate-heap", "-c", "many.c")
        said = self.fails(self.farcc, "many.o", "-o", "program")
        self.assertLessEqual(len(said.splitlines()), 6, said)
        self.assertRegex(said, r"\n\(\d+ more lines of the linker's\)\nfarcc: cannot link: many.o")
        self.write("other.c", "int other(void); int main(void) { return other(); }\n")
        self.compile("-O2", "-c", "other.c")
        said = self.fails(self.farcc, "other.o", "-o", "program")  # which is not about that
        self.assertNotIn("farcc:", said)
        self.compile("-ffar=translate-heap", "program.o", "-o", "program")
        self.assertEqual(self.run_well(self.folder / "program").stdout, OUTPUT)

    def test_a_link_that_is_ended_by_a_signal(self):
        self.compile("-O2", "-c", "program.c")
        clang = self.write("clang-" + GIVEN.major, "#!/bin/sh\nkill -TERM $$\n")
        clang.chmod(0o755)
        done = self.start(self.farcc, "program.o", "-o", "program", FARCC_CLANG=str(clang))
        self.assertEqual(done.returncode, -signal.SIGTERM)

    def test_environment_and_options(self):
        self.compile("-O2", "program.c", "-o", "program", FARCC_LEVEL="none")
        self.check_program("program", told="")
        self.compile("-O2", "-ffar=hint", "program.c", "-o", "program", FARCC_LEVEL="none")
        self.check_program("program")

    def test_counts_are_those_of_the_bitcode(self):
        done = self.run_well(self.farcc, "-O1", "-ffar=count", "-ffar-report=counts.jsonl", "-S", "-emit-llvm",
                             "program.c")
        self.assertEqual(done.stderr, "")
        lines = [json.loads(line) for line in (self.folder / "counts.jsonl").read_text(encoding="utf-8").splitlines()]
        counted = {line["function"]: line for line in lines if line["what"] == "counted"}
        self.assertEqual(set(counted), {"fill", "sum", "main"})
        text = (self.folder / "program.ll").read_text(encoding="utf-8")
        for name, line in counted.items():
            body = re.search(rf"define [^\n]*@{name}\(.*?\n}}", text, re.DOTALL).group(0).splitlines()[1:-1]
            body = [row for row in body if row.startswith("  ")]
            self.assertEqual(line["instructions"], len(body), name)
            self.assertEqual(line["loads"], sum(" = load " in row for row in body), name)
            self.assertEqual(line["stores"], sum(row.startswith("  store ") for row in body), name)

        total, = [line for line in lines if line["what"] == "total"]
        self.assertEqual((total["function"], total["functions"]), ("(all)", 3))
        for what in ("instructions", "loads", "stores"):
            self.assertEqual(total[what], sum(line[what] for line in counted.values()), what)

    def test_a_function_without_a_hint_had_one_more_instruction(self):
        self.write("bare.c", "struct n { struct n *next; int x; };\n"
                   "int walk(struct n *p, int k) { int s = 0; if (k) while (p) { s += p->x; p = p->next; } return s; }\n"
                   "int find(int *p, int x) { while (*p != x) { if (*p == -x) return 1; ++p; } return 0; }\n")
        for level in ("-O1", "-O2", "-O3"):
            said = self.run_well(self.farcc, level, "-ffar-report", "-c", "bare.c").stderr
            self.assertNotIn("hinted:", said)
            sizes = re.findall(r"size: instructions; (\d+) before, (\d+) after", said)
            self.assertEqual(len(sizes), 2, said)
            for before, after in sizes:
                self.assertEqual(before, after, said)

    def test_what_is_executed(self):
        self.write("turns.c", "int work(volatile int *p, int n) { for (int i = 0; i < n; i++) *p = *p + 1; return *p; }\n"
                   "int main(void) { int x = 0; work(&x, 10); return work(&x, 20) != 30; }\n")
        self.compile("-O1", "-fno-inline", "-ffar=count", "-ffar-count=executed", "turns.c", "-o", "turns")
        heard = self.run_well(self.folder / "turns").stderr
        # 30 turns load and store; each of the two calls loads once more.
        self.assertRegex(heard, r"farheap counted work: 2 calls, \d+ instructions, 32 loads, 30 stores\n")
        self.assertRegex(heard, r"farheap counted \(all\): 3 calls, ")
        self.assertEqual(self.run_well(self.folder / "turns", FARCC_COUNTS=str(self.folder / "counts")).stderr, "")
        self.assertEqual((self.folder / "counts").read_text(encoding="utf-8"), heard)
        lost = self.run_well(self.folder / "turns", FARCC_COUNTS=str(self.folder / "no" / "counts")).stderr
        self.assertIn("FARCC_COUNTS: No such file", lost)
        self.assertTrue(lost.endswith(heard), lost)

    def test_only_and_leave(self):
        self.compile("-O2", "-ffar-only=f*,other", "program.c", "-o", "program")
        self.check_program("program", told="told 3000000 2\n")
        self.compile("-O2", "-ffar-leave=program.c", "program.c", "-o", "program")
        self.check_program("program", told="")
        self.write("program.c", PROGRAM.replace("((noinline)) void", '((noinline, annotate("farheap_leave"))) void'))
        self.compile("-O2", "program.c", "-o", "program")
        self.check_program("program", told="told 3000000 1\n")

    def test_threshold(self):
        self.compile("-O1", "-ffar-threshold=500", "program.c", "-o", "program")
        self.check_program("program", told=TOLD + "told 1000 2\ntold 1000 1\n")

    def test_report(self):
        done = self.run_well(self.farcc, "-O1", "-g", "-ffar-report", "-c", "program.c")
        self.assertIn("program.c:4: fill: hinted: writes, stride 1; 1 accesses\n", done.stderr)
        self.assertRegex(done.stderr, r"program.c:4: fill: size: instructions; \d+ before, \d+ after\n")
        self.compile("-O1", "-c", "program.c", FARCC_REPORT=str(self.folder / "report"))
        self.assertIn("fill: hinted: writes", (self.folder / "report").read_text(encoding="utf-8"))

    def test_a_report_that_cannot_be_written_is_an_error(self):
        self.assertIn("cannot write to '/nowhere/report'",
                      self.fails(self.farcc, "-O1", "-ffar-report=/nowhere/report", "-c", "program.c"))


class Front(Case):
    def test_help_begins_with_an_example(self):
        self.assertTrue(self.compile("--help").startswith("Examples:\n  farcc -O2 -c "))

    def test_help_names_all_that_there_is(self):
        said = self.compile("--help")
        for name in ("hint", "guard", "record", "translate-heap", "translate-all", "count", "none"):
            self.assertRegex(said, rf"(?m)^      {name} ")
        for name in ("report", "only", "leave", "borrow", "stack", "globals", "threshold", "count", "guard", "print"):
            self.assertIn(f"  -ffar-{name}", said)
        for name in ("FARCC_LEVEL", "FARCC_REPORT", "FARCC_CLANG", "FARCC_LAUNCHER", "FARCC_GUARDS", "FARCC_COUNTS", "FARCC_PROFILE",
                     "FARCC_CONTEXTS_MEMORY",
                     "FARHEAP_FAR_STORE", "FARHEAP_FAR_MODE", "FARHEAP_FAR_CACHE"):
            self.assertIn(name, said)
        self.assertLessEqual(max(map(len, said.splitlines())), 120)
        # `clang --help` was named where only clang-19 is.
        self.assertTrue(said.endswith(f"\n{GIVEN.clang} --help lists clang's options.\n"), said[-200:])

    def test_bare(self):
        for words in ((), ("-ffar=guard",)):
            said = self.fails(self.farcc, *words)
            self.assertEqual(said, "farcc: no input files: name a source, as in `farcc -O2 -c simulation.c`; "
                                   "`farcc --help` says what it adds to clang\n")

    def test_print_runs_nothing(self):
        printed = self.compile("-ffar-print", "-O2", "-DTEXT=it's", "-c", "program.c")
        self.assertIn(r"'-DTEXT=it'\''s' -c program.c", printed)
        self.assertFalse((self.folder / "program.o").exists())
        self.run_well("sh", "-c", printed)
        self.assertTrue((self.folder / "program.o").exists())

    def test_status_and_messages_are_those_of_clang(self):
        self.write("wrong.c", "int main(void) { return x; }\n")
        done = self.start(GIVEN.clang, "-c", "wrong.c")
        self.assertEqual(self.fails(self.farcc, "-c", "wrong.c", status=done.returncode), done.stderr)

    def test_questions_to_clang(self):
        for question in ("--version", "-dumpversion", "-dumpmachine", "-print-search-dirs"):
            self.assertEqual(self.compile(question), self.run_well(GIVEN.clang, question).stdout)

    def test_make(self):
        if shutil.which("make") is None:
            self.skipTest("there is no make")
        self.run_well("make", "-s", f"CC={self.farcc}", "CFLAGS=-O2", "program")
        self.check_program("program")


if __name__ == "__main__":
    main(__doc__)
