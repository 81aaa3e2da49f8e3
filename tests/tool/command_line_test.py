#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The command line's contract: exit statuses, what goes where, and what is refused with which words."""

import argparse
import contextlib
import json
import os
import pathlib
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
import unittest

TOOL = RUNTIME = STATIC = ""


def tool(*words, **variables):
    """Runs the command; variables with None are taken out of the environment."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("FARHEAP_")}
    environment["FARHEAP_PRELOAD"] = RUNTIME
    for key, value in variables.items():
        environment.pop(key, None)
        if value is not None:
            environment[key] = value
    return subprocess.run([TOOL, *words], capture_output=True, text=True, env=environment, check=False, timeout=60)


@contextlib.contextmanager
def limit(which, soft):
    """For what is started within; this process keeps what it has."""
    before = resource.getrlimit(which)
    resource.setrlimit(which, (soft, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(which, before)


def is_gone(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:
            return stat.read().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):  # the latter: between opening and reading
        return True


def parent_of(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:
        return int(stat.read().rpartition(")")[2].split()[1])


def is_stopped(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:
        return stat.read().rpartition(")")[2].split()[0] == "T"


def wait_until(condition, what):
    for _ in range(600):
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError(f"never came: {what}")


class Overview(unittest.TestCase):
    def test_bare_command_lists_every_verb_with_an_example(self):
        done = tool()
        self.assertEqual(done.returncode, 0)
        for verb in ("run", "top", "report", "doctor", "options", "store bench", "store kinds", "store ls", "store copy", "store rm", "heap ls",
                     "heap show", "heap stats", "heap diff", "heap export", "heap check", "heap copy", "heap snapshot",
                     "heap compact", "heap rm", "heap rollback"):
            self.assertIn(f"farheap {verb}", done.stdout)
        self.assertEqual(done.stderr, "")

    def test_help_starts_with_examples(self):
        for words in (("run",), ("top",), ("report",), ("doctor",), ("options",), ("store", "bench"), ("store", "kinds"),
                      ("heap", "ls"), ("heap", "diff"), ("heap", "export"), ("heap", "copy"), ("heap", "check")):
            done = tool(*words, "--help")
            self.assertEqual(done.returncode, 0, words)
            self.assertTrue(done.stdout.startswith("Examples:"), done.stdout)

    def test_version(self):
        self.assertRegex(tool("--version").stdout, r"^farheap \d+\.\d+\.\d+\n$")

    def test_wrong_usage_is_2_and_leaves_standard_output_alone(self):
        for words in (("stor",), ("run",), ("run", "--mem", "1G", "--", "true"), ("options", "--set"),
                      ("options", "--set", "memry=1G"), ("run", "--memory", "12Q", "--", "true"), ("store",),
                      ("run", "--memory", "1M", "--", "true"), ("store", "bench", "nonsense"), ("--",)):
            done = tool(*words)
            self.assertEqual(done.returncode, 2, (words, done.stderr))
            self.assertEqual(done.stdout, "", words)
            self.assertNotEqual(done.stderr, "", words)

    def test_an_unknown_verb_is_named(self):
        for words, shown in ((("frob",), "frob"), (("store", "frob"), "store frob"), (("heap", "frob", "x"), "heap frob"),
                             (("store", "frob", "--json"), "store frob")):
            done = tool(*words)
            self.assertEqual((done.returncode, done.stdout), (2, ""), words)
            self.assertIn(f"unknown verb: {shown}; there are ", done.stderr)

    def test_what_is_no_wrong_usage_is_1(self):
        for words in (("store", "ls", "redis://127.0.0.1:1/7?password_env=FARHEAPTEST_NOT_SET"),
                      ("run", "--store", "redis://127.0.0.1:1/7?password_env=FARHEAPTEST_NOT_SET", "--", "true")):
            done = tool(*words)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn("this variable is not set", done.stderr)

    def test_a_server_without_its_strokes_reads_well(self):
        done = tool("store", "ls", "redis:127.0.0.1")
        self.assertEqual(done.returncode, 2)
        self.assertNotIn("::", done.stderr)
        self.assertIn("'//' must stand behind 'redis:'", done.stderr)

    def test_manual_and_completion_know_every_option(self):
        keys = [row["key"] for row in json.loads(tool("options", "--json").stdout)["options"]]
        manual, completion = tool("manual").stdout, tool("completion").stdout
        for key in keys:
            self.assertIn(f"FARHEAP_{key.upper()}", manual)
            self.assertIn(f"{key}=", completion)

    def test_completion_completes(self):
        with tempfile.NamedTemporaryFile("w", suffix=".bash") as script:
            script.write(tool("completion").stdout)
            script.flush()
            for words, want in ((["farheap", "ru"], "run"), (["farheap", "run", "--mem"], "--memory"),
                                (["farheap", "run", "--set", "policy", "=", "cl"], "clock"),
                                (["farheap", "run", "--stats", "=", "js"], "json"),
                                (["farheap", "store", "be"], "bench")):
                listed = " ".join(f"'{word}'" for word in words)
                done = subprocess.run(
                    ["bash", "-c", f"source {script.name}; COMP_WORDS=({listed}); COMP_CWORD={len(words) - 1}; "
                     "_farheap; echo \"${COMPREPLY[*]}\""], capture_output=True, text=True, check=True)
                self.assertEqual(done.stdout.split(), [want], words)


class Options(unittest.TestCase):
    def row(self, key, *words, **variables):
        rows = json.loads(tool("options", "--json", *words, **variables).stdout)["options"]
        return next(row for row in rows if row["key"] == key)

    def test_values_and_where_they_came_from(self):
        self.assertEqual(self.row("policy")["source"], "default")
        self.assertEqual(self.row("policy", FARHEAP_POLICY="clock")["source"], "environment")
        row = self.row("policy", "--set", "policy=s3fifo", FARHEAP_POLICY="clock")
        self.assertEqual((row["value"], row["source"]), ("s3fifo", "command line"))

    def test_json_has_a_format_number(self):
        self.assertEqual(json.loads(tool("options", "--json").stdout)["format"], 1)
        self.assertEqual(json.loads(tool("doctor", "--json").stdout)["format"], 1)
        self.assertEqual(json.loads(tool("store", "kinds", "--json").stdout)["format"], 1)

    def test_unknown_variable_is_reported_and_does_not_stop(self):
        done = tool("options", FARHEAP_MEMROY="1G")
        self.assertEqual(done.returncode, 0)
        self.assertIn("did you mean FARHEAP_MEMORY?", done.stderr)

    def test_no_colour_in_a_pipe(self):
        self.assertNotIn("\033", tool("doctor").stdout)


class Doctor(unittest.TestCase):
    def test_forbidden_userfaultfd_is_missing_with_its_grants(self):
        done = tool("doctor", "--set", "disable=kernel_faults")
        self.assertEqual(done.returncode, 1)
        self.assertIn("missing userfaultfd", done.stdout)
        self.assertIn("sysctl vm.unprivileged_userfaultfd=1", done.stdout)
        self.assertIn("/dev/userfaultfd", done.stdout)

    def test_missing_runtime_and_bad_store_are_named(self):
        checks = json.loads(tool("doctor", "--json", "--set", "store=file:/no/such/folder/x",
                                 FARHEAP_PRELOAD="/no/such.so").stdout)
        self.assertFalse(checks["run_works"])
        states = {check["name"]: check for check in checks["checks"]}
        self.assertEqual(states["preload library"]["state"], "missing")
        self.assertEqual(states["store"]["state"], "missing")

    def test_a_dollar_origin_in_the_librarys_path_was_the_loaders(self):
        """LD_PRELOAD cannot say it: nothing was paged, and the doctor said that all was well."""
        with tempfile.TemporaryDirectory() as folder:
            for token in ("$ORIGIN", "${LIB}", "$PLATFORM"):
                place = pathlib.Path(folder, f"a{token}b")
                place.mkdir()
                library = place / "libfarheap-preload.so"
                library.write_bytes(pathlib.Path(RUNTIME).read_bytes())
                done = tool("run", "--", "echo", "ran", FARHEAP_PRELOAD=str(library))
                self.assertEqual((done.returncode, done.stdout), (1, ""))
                self.assertIn(f"the loader would replace the ${token.strip('${}')} in its path", done.stderr)
                self.assertIn("install Farheap in a folder without it", done.stderr)
                checks = json.loads(tool("doctor", "--json", FARHEAP_PRELOAD=str(library)).stdout)
                self.assertFalse(checks["run_works"])
            place = pathlib.Path(folder, "a$b")  # which the loader leaves alone
            place.mkdir()
            library = place / "libfarheap-preload.so"
            library.write_bytes(pathlib.Path(RUNTIME).read_bytes())
            self.assertEqual(tool("run", "--quiet", "--", "echo", "ran", FARHEAP_PRELOAD=str(library)).stdout, "ran\n")

    def test_a_store_in_memory_is_warned_about(self):
        checks = json.loads(tool("doctor", "--json", "--set", "store=file:/dev/shm").stdout)["checks"]
        disk = next(check for check in checks if check["name"] == "store's disk")
        self.assertEqual(disk["state"], "warn")


class Stores(unittest.TestCase):
    def test_kinds_hold_the_built_in_ones(self):
        schemes = {kind["scheme"] for kind in json.loads(tool("store", "kinds", "--json").stdout)["kinds"]}
        self.assertLessEqual({"mem", "file"}, schemes)

    def test_bench_measures(self):
        done = tool("store", "bench", "mem:", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        results = json.loads(done.stdout)["results"]
        self.assertTrue(results)
        for row in results:
            self.assertLessEqual(row["min"], row["median"])
            self.assertLessEqual(row["median"], row["max"])

    def test_bench_of_a_place_that_is_not_there_fails(self):
        done = tool("store", "bench", "file:/no/such/folder/x")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(done.stdout, "")


class RunPlainly(unittest.TestCase):
    def test_status_is_the_programs(self):
        for script, status in (("exit 0", 0), ("exit 7", 7), ("kill -TERM $$", 143), ("kill -KILL $$", 137)):
            self.assertEqual(tool("run", "--plain", "--", "sh", "-c", script).returncode, status, script)

    def test_shell_statuses(self):
        self.assertEqual(tool("run", "--plain", "--", "no-such-program").returncode, 127)
        self.assertEqual(tool("run", "--plain", "--", "/etc/passwd").returncode, 126)
        self.assertEqual(tool("run", "--", "no-such-program").returncode, 127)

    def test_words_behind_the_dashes_are_the_programs(self):
        done = tool("run", "--plain", "--", "printf", "%s|", "--memory", "1", "--", "--help", "")
        self.assertEqual(done.stdout, "--memory|1|--|--help||")
        done = tool("run", "--plain", "printf", "%s|", "--quiet", "--", "x")
        self.assertEqual(done.stdout, "--quiet|--|x|", "without dashes the program begins at the first word")

    def test_plain_leaves_everything_out(self):
        self.assertEqual(tool("run", "--plain", "--", "sh", "-c", "echo $LD_PRELOAD$FARHEAP_RUN_PAGE").stdout, "\n")

    def test_a_script_without_first_line_is_run_by_the_shell(self):
        with tempfile.TemporaryDirectory() as folder:
            script = pathlib.Path(folder, "script")
            script.write_text("exit 9\n", encoding="utf-8")
            script.chmod(0o755)
            self.assertEqual(tool("run", "--plain", "--", str(script)).returncode, 9)


class RunWithoutReaders(unittest.TestCase):
    """Nobody may be there for the report; the program's status is passed on all the same."""

    def status(self, script):
        environment = {**os.environ, "FARHEAP_PRELOAD": RUNTIME, "TOOL": TOOL}
        return subprocess.run(["bash", "-c", script], env=environment, check=False, timeout=60, capture_output=True,
                              text=True)

    def test_closed_and_full_and_broken_standard_error(self):
        for redirection in ("2>&-", "2>/dev/full", "<&- >&- 2>&-", "2> >(exit)"):
            for form in ("text", "json"):
                script = f'"$TOOL" run --stats={form} -- sh -c "sleep 0.1; exit 3" {redirection}'
                self.assertEqual(self.status(script).returncode, 3, script)

    def test_what_is_closed_stays_closed_for_the_program(self):
        done = self.status('"$TOOL" run --quiet -- sh -c "[ ! -e /proc/self/fd/0 ] && [ ! -e /proc/self/fd/2 ]" <&- 2>&-')
        self.assertEqual(done.returncode, 0)

    def test_output_that_cannot_be_written_is_a_failure(self):
        for verb in ("options", "--help", "store kinds"):
            done = self.status(f'"$TOOL" {verb} >/dev/full')
            self.assertEqual(done.returncode, 1, verb)
            self.assertIn("cannot write: standard output", done.stderr)


class RunRefuses(unittest.TestCase):
    def refused(self, words, *texts, **variables):
        done = tool("run", *words, **variables)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(done.stdout, "")
        for text in texts:
            self.assertIn(text, done.stderr)

    def test_forbidden_userfaultfd(self):
        self.refused(["--set", "disable=kernel_faults", "--", "echo", "ran"], "sysctl vm.unprivileged_userfaultfd=1",
                     "--plain runs the program without Farheap")

    def test_static_program(self):
        self.refused(["--", STATIC], "statically linked", "--plain")

    def test_what_the_loader_is_to_load(self):
        loader = "/lib64/ld-linux-x86-64.so.2"
        self.refused(["--", loader, STATIC], "statically linked", "--plain")
        self.refused(["--", loader, "--inhibit-cache", "--argv0", "x", STATIC], "statically linked", "--plain")

    def test_store_that_cannot_be_opened(self):
        self.refused(["--store", "file:/no/such/folder/x", "--", "echo", "ran"], "/no/such/folder")

    def test_limited_addresses(self):
        for kibibytes in (30 << 20, 1 << 30, 2 << 30):  # nothing fits; the heap does not; its staging does not
            with limit(resource.RLIMIT_AS, kibibytes << 10):
                self.refused(["--", "echo", "ran"], "RLIMIT_AS (`ulimit -v`)", "ulimit -S -v unlimited",
                             "--plain runs the program without Farheap")
        with limit(resource.RLIMIT_AS, 1 << 40):
            done = tool("doctor")
        self.assertEqual(done.returncode, 1)
        self.assertIn("missing address space", done.stdout)
        self.assertIn("ulimit -S -v unlimited", done.stdout)

    def test_missing_runtime(self):
        self.refused(["--", "echo", "ran"], "preload library", FARHEAP_PRELOAD="/no/such.so")

    def test_budget_too_small_names_the_least(self):
        done = tool("run", "--memory", "1M", "--", "echo", "ran")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("the least is", done.stderr)


class RunWithRuntime(unittest.TestCase):
    """With a runtime that only reports in: what the tool itself does around a program."""

    def setUp(self):
        checks = json.loads(tool("doctor", "--json").stdout)
        if not checks["run_works"]:
            self.skipTest("SKIPPED, NOT TESTED: `farheap doctor` says that programs cannot be run here")

    def test_report_goes_to_standard_error(self):
        done = tool("run", "--memory", "64M", "--", "echo", "output")
        self.assertEqual((done.returncode, done.stdout), (0, "output\n"))
        self.assertIn("32.0 MiB of 64.0 MiB", done.stderr)
        self.assertIn("next: ", done.stderr)

    def test_quiet_is_quiet_and_json_is_one_object(self):
        self.assertEqual(tool("run", "--quiet", "--", "true").stderr, "")
        done = tool("run", "--memory", "64M", "--stats=json", "--", "sh", "-c", "exit 5")
        self.assertEqual(done.returncode, 5)
        stats = json.loads(done.stderr)
        self.assertEqual((stats["format"], stats["exit_status"], stats["budget_bytes"]), (1, 5, 64 << 20))
        self.assertEqual(stats["faults"] // stats["processes"], 1000)

    def test_a_store_that_saves_no_memory_is_warned_about(self):
        done = tool("run", "--memory", "64M", "--store", "mem:", "--", "echo", "output")
        self.assertEqual((done.returncode, done.stdout), (0, "output\n"))
        warning = done.stderr.splitlines()[0]
        for text in ("WARNING", "saves no memory", "--store file:DIR"):
            self.assertIn(text, warning)
        for words in (("--store", "compress+mem:"), ("--store", "mem:", "--quiet")):
            self.assertNotIn("saves no memory", tool("run", "--memory", "64M", *words, "--", "true").stderr)
        checks = json.loads(tool("doctor", "--json", "--set", "store=mem:").stdout)["checks"]
        self.assertEqual(next(check for check in checks if check["name"] == "store")["state"], "warn")

    def test_half_of_two_stores_was_shown_as_nobody_wrote_it(self):
        for half, missing in (("pages=file:/tmp", "sync="), ("sync=file:/tmp", "pages=")):
            said = tool("run", "--store", half, "--", "true").stderr
            self.assertIn(f"not a store: {half}: {missing} is missing; for one store write file:/tmp alone; for two write "
                          "it as pages=URI,sync=URI", said)

    def test_a_folder_as_password_file_was_to_be_made_private(self):
        with tempfile.TemporaryDirectory() as folder:
            for mode in (0o755, 0o700):
                os.chmod(folder, mode)
                for words in (("--store", "redis://127.0.0.1:1/1", "--set", f"store_password_file={folder}"),
                              ("--store", f"redis://127.0.0.1:1/1?password_file={folder}")):
                    said = tool("run", *words, "--", "true").stderr
                    if "no such kind" in said or "not in this build" in said:
                        self.skipTest("there is no Redis in this build")
                    self.assertRegex(said, f"{folder}: it is a folder; name a file with ")

    def test_a_limit_on_files_ended_it_by_a_signal(self):
        with limit(resource.RLIMIT_FSIZE, 1 << 20):
            done = tool("run", "--memory", "64M", "--", "true")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertRegex(done.stderr, r"cannot make a file in memory: farheap-run-counters: `ulimit -f` allows files of "
                                      r"1.0 MiB, and it takes [0-9.]+ MiB; raise the limit")

    def test_a_budget_larger_than_the_machine_was_taken_in_silence(self):
        done = tool("run", "--memory", "100T", "--", "echo", "output")
        self.assertEqual((done.returncode, done.stdout), (0, "output\n"))
        self.assertRegex(done.stderr.splitlines()[0],
                         r"WARNING: the budget is larger than this machine .*: 100.0 TiB: .*; use --memory \d+M or less$")
        self.assertEqual(tool("run", "--memory", "100T", "--quiet", "--", "true").stderr, "")

    def test_options_and_the_library_reach_the_program(self):
        done = tool("run", "--memory", "64M", "--store", "mem:", "--set", "policy=s3fifo", "--quiet", "--", "env",
                    LD_PRELOAD="libc.so.6", FARHEAP_READ_AHEAD="1M")
        lines = done.stdout.splitlines()
        for line in ("FARHEAP_MEMORY=64M", "FARHEAP_STORE=mem:", "FARHEAP_POLICY=s3fifo", "FARHEAP_READ_AHEAD=1M",
                     f"LD_PRELOAD={os.path.realpath(RUNTIME)}:libc.so.6"):
            self.assertIn(line, lines)
        self.assertEqual(len([line for line in lines if re.fullmatch(r"FARHEAP_RUN_PAGE=\d+:\d+:\d+", line)]), 1)

    def test_a_program_that_drops_the_library_is_told_loudly(self):
        done = tool("run", "--quiet", "--", "true", FARHEAP_PRELOAD="/etc/passwd")
        self.assertEqual(done.returncode, 0)
        self.assertIn("RAN WITHOUT FARHEAP", done.stderr)

    def test_a_loader_without_its_program_is_told_as_that(self):
        for program in ("/no/such/program", "no-such-program"):
            done = tool("run", "--", "/lib64/ld-linux-x86-64.so.2", program)
            self.assertEqual(done.returncode, 127)
            self.assertIn(f"{program} DID NOT RUN: the loader /lib64/ld-linux-x86-64.so.2 could not find it", done.stderr)
            self.assertNotIn("WITHOUT FARHEAP", done.stderr)

    def start(self, script):
        """A run whose program says its process id and then waits."""
        environment = dict(os.environ, FARHEAP_PRELOAD=RUNTIME)
        # A job of its own: whoever starts it can stop it.
        run = subprocess.Popen([TOOL, "run", "--quiet", "--", "sh", "-c", script], stdout=subprocess.PIPE, text=True,
                               env=environment, process_group=0)
        return run, int(run.stdout.readline())

    def test_signals_reach_the_program(self):
        for name in ("TERM", "INT", "HUP", "USR1", "USR2", "QUIT", "ALRM", "WINCH", "CONT", "TSTP", "URG", "RTMIN"):
            run, _ = self.start(f"trap 'exit 42' {name}; echo $$; while :; do sleep 0.05; done")
            run.send_signal(getattr(signal, "SIG" + name))
            run.communicate(timeout=30)
            self.assertEqual(run.returncode, 42, name)

    # Starts nothing once it has said its process id: a shell whose child is stopped before it has become another
    # program cannot be stopped itself until that goes on.
    WAITS = "sleep 60 & echo $$; while :; do wait; done"

    def test_the_tool_stops_and_goes_on_with_its_program(self):
        run, pid = self.start("trap 'echo on' CONT; trap 'kill $!; exit 42' TERM; " + self.WAITS)
        # Told by one that knows the tool only, or the program only, or both, as a shell does.
        for stop, go_on in ((lambda: run.send_signal(signal.SIGTSTP), lambda: run.send_signal(signal.SIGCONT)),
                            (lambda: os.kill(pid, signal.SIGSTOP), lambda: os.kill(pid, signal.SIGCONT)),
                            (lambda: os.killpg(run.pid, signal.SIGTSTP), lambda: os.killpg(run.pid, signal.SIGCONT))):
            stop()
            wait_until(lambda: is_stopped(pid) and is_stopped(run.pid), "both have stopped")
            # As a shell sees it.
            self.assertTrue(os.WIFSTOPPED(os.waitpid(run.pid, os.WUNTRACED)[1]))
            go_on()
            wait_until(lambda: not is_stopped(pid) and not is_stopped(run.pid), "both go on")
            self.assertEqual(run.stdout.readline(), "on\n")
        run.send_signal(signal.SIGTERM)
        run.communicate(timeout=30)
        self.assertEqual(run.returncode, 42)

    def test_a_stop_right_after_going_on_was_taken_for_an_old_one(self):
        run, pid = self.start("trap 'exit 42' TERM; echo $$; while :; do sleep 0.05; done")
        for _ in range(100):
            os.kill(pid, signal.SIGSTOP)
            wait_until(lambda: is_stopped(pid) and is_stopped(run.pid), "both have stopped")
            os.kill(pid, signal.SIGCONT)
            wait_until(lambda: not is_stopped(pid), "the program goes on")
        wait_until(lambda: not is_stopped(run.pid), "the tool goes on")
        run.send_signal(signal.SIGTERM)
        run.communicate(timeout=30)
        self.assertEqual(run.returncode, 42)

    def test_the_end_of_a_stopped_program_is_the_tools(self):
        for first_to_go in (lambda pid: pid, parent_of):  # the program, or its guardian
            run, pid = self.start("echo $$; while :; do sleep 0.05; done")
            os.kill(pid, signal.SIGSTOP)
            wait_until(lambda: is_stopped(pid) and is_stopped(run.pid), "both have stopped")
            os.kill(first_to_go(pid), signal.SIGKILL)
            wait_until(lambda: is_gone(pid), "the end of the program")
            run.send_signal(signal.SIGCONT)
            run.communicate(timeout=30)
            self.assertEqual(run.returncode, 128 + signal.SIGKILL)

    def test_a_stopped_program_that_is_ended_as_a_shell_does_it_ends_its_tool(self):
        for _ in range(30):
            run, pid = self.start(self.WAITS)
            os.killpg(run.pid, signal.SIGTSTP)
            wait_until(lambda pid=pid, run=run: is_stopped(pid) and is_stopped(run.pid), "both have stopped")
            os.killpg(run.pid, signal.SIGTERM)
            os.killpg(run.pid, signal.SIGCONT)
            run.communicate(timeout=30)
            # As the program's end, or its own: it was told to end, too.
            self.assertIn(run.returncode, (128 + signal.SIGTERM, -signal.SIGTERM))

    def test_a_program_that_does_not_stop_has_a_tool_that_does_not(self):
        run, pid = self.start("trap 'exit 42' TERM; trap '' TSTP; trap 'echo here' USR1; echo $$; "
                              "while :; do sleep 0.05; done")
        run.send_signal(signal.SIGTSTP)
        run.send_signal(signal.SIGUSR1)
        self.assertEqual(run.stdout.readline(), "here\n")
        self.assertFalse(is_stopped(pid) or is_stopped(run.pid))
        run.send_signal(signal.SIGTERM)
        run.communicate(timeout=30)
        self.assertEqual(run.returncode, 42)

    def test_a_killed_tool_takes_its_program_with_it(self):
        run, pid = self.start("echo $$; while :; do sleep 0.05; done")
        run.kill()
        run.communicate(timeout=30)
        wait_until(lambda: is_gone(pid), "the end of the program")

    TREE = ("sleep 60 & echo $$ $!; "  # a child
            "sh -c 'sleep 60 & echo $! >&3; sh -c \"setsid sleep 60 & echo \\$! >&3\"; wait' & "  # and theirs
            "while :; do sleep 0.05; done")

    def start_tree(self, *words):
        """A run with a program, children, and a grandchild that is its own session's leader; their process ids."""
        environment = dict(os.environ, FARHEAP_PRELOAD=RUNTIME)
        run = subprocess.Popen([TOOL, "run", "--quiet", *words, "--", "sh", "-c", "exec 3>&1; " + self.TREE],
                               stdout=subprocess.PIPE, text=True, env=environment)
        pids = [int(pid) for _ in range(3) for pid in run.stdout.readline().split()]
        self.assertEqual(len(pids), 4)
        return run, pids

    def test_a_killed_tool_takes_the_whole_tree_with_it(self):
        for words in ((), ("--plain",)):
            run, pids = self.start_tree(*words)
            self.assertFalse(any(is_gone(pid) for pid in pids))
            run.kill()
            run.communicate(timeout=30)
            for pid in pids:
                wait_until(lambda pid=pid: is_gone(pid), f"the end of {pid}, one of {pids}")

    def test_a_killed_guardian_is_no_way_out(self):
        run, pids = self.start_tree()
        guardian = parent_of(pids[0])
        self.assertNotEqual(guardian, run.pid)
        os.kill(guardian, signal.SIGKILL)
        run.communicate(timeout=30)
        self.assertEqual(run.returncode, 137)
        for pid in pids:
            wait_until(lambda pid=pid: is_gone(pid), f"the end of {pid}, one of {pids}")

    def test_what_a_program_leaves_behind_goes_on_when_it_ends_by_itself(self):
        done = subprocess.run([TOOL, "run", "--quiet", "--", "sh", "-c", "sleep 300 >/dev/null 2>&1 & echo $!; exit 3"],
                              capture_output=True, text=True, check=False, timeout=60,
                              env=dict(os.environ, FARHEAP_PRELOAD=RUNTIME))
        self.assertEqual(done.returncode, 3)
        left = int(done.stdout)
        self.assertFalse(is_gone(left))
        os.kill(left, signal.SIGKILL)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", required=True)
    parser.add_argument("--runtime", required=True)
    parser.add_argument("--static", required=True)
    known, rest = parser.parse_known_args()
    TOOL, RUNTIME, STATIC = known.tool, known.runtime, known.static
    unittest.main(argv=[sys.argv[0], *rest], verbosity=2)
