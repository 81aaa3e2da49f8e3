#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every line of docs/learn.md's transcript on real programs: recorded as built by anyone, recorded in the middle of a run,
built by farcc to count exactly, reported in all forms, compared, planned, and run by the plan with more data in less memory.

  transcript_test.py --tool FILE --farcc FILE --clang FILE --folder DIR [--turns N] [--keep DIR] PROGRAM

With `--turns` the runs at the end are repeated in turns, and what they took is printed as a table (docs/benchmarks/plan.md).
Sources come as tests/distribution.py says, and stay in the folder for the next time; `--keep` leaves profiles, plan and
reports there to look at.
"""

import argparse
import dataclasses
import gzip
import hashlib
import json
import os
import pathlib
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTS))
sys.path.insert(0, str(TESTS / "tool"))
from distribution import Failed, Skip, fetch, run  # noqa: E402
from pages import By, browser, webdriver  # noqa: E402

SKIPPED = 77
JOBS = str(os.cpu_count() or 1)
MIB = 1 << 20
LEAST_BUDGET = 32 * MIB
LEVELS = (70, 50)  # per cent of the program's memory
ENVIRONMENT = {key: value for key, value in os.environ.items() if not key.startswith(("FARHEAP_", "FARCC_"))}


def check(holds, what, said=""):
    if not holds:
        raise Failed(f"{what}{': ' if said else ''}{said[-3000:]}")


# ---- programs


class Program:
    """`small` is recorded, `large` is run; both are words behind the program's name."""

    name = source = ""
    small = large = ()
    site = counted_site = ""  # what allocates its largest memory, and what is among the most accessed
    hot = ()  # functions that are among its contexts
    planned = False
    why_no_plan = ""  # part of what `farheap plan` says

    def __init__(self, folder):
        self.folder = folder  # for inputs

    def build(self, work, compiler, flags):
        """The path of the program, built in `work` by its own build system."""
        raise NotImplementedError

    def prepare(self):
        """Makes its inputs."""

    def result(self, said):
        """What must be the same in each run of the same input. Raises Failed where it did not do its work."""
        raise NotImplementedError


class Libquantum(Program):
    """Shor's algorithm, as SPEC's 462.libquantum, whose program is this one with a constant seed."""

    name, source = "shor", "libquantum"
    small, large = ("323", "7"), ("1397", "8")
    site, counted_site = r"quantum_\w+ \(qureg\.c:\d+\)", r"\((gates|qureg)\.c:\d+\)"
    hot = ("quantum_cnot", "quantum_toffoli", "quantum_gate1")
    why_no_plan = "could have been foreseen"  # a gate looks states up in a hash table

    def build(self, work, compiler, flags):
        shor = work / "shor.c"
        text = shor.read_text(encoding="utf-8")
        check("srand(time(0));" in text, f"{shor} takes its seed from elsewhere")
        shor.write_text(text.replace("srand(time(0));", "srand(1);"), encoding="utf-8")
        run(["./configure", "--disable-shared", f"CC={compiler}", f"CFLAGS={flags}"], work)
        run(["make", "-j", JOBS], work)
        run(["make", "shor"], work)
        return work / "shor"

    def result(self, said):
        check(re.search(r"Measured \d+", said), "it measured nothing", said)
        return said


class Cjpeg(Program):
    """Debian's libjpeg-turbo-progs. A progressive picture is kept whole, and gone through once for each of its scans."""

    name, source = "cjpeg", "libjpeg-turbo"
    sizes = {"small": (3000, 2000), "large": (6000, 4500)}
    site, counted_site = r"alloc_large \(jmemmgr\.c:\d+\)", r"alloc_large \(jmemmgr\.c:\d+\)"
    hot = ("compress_first_pass", "encode_mcu_AC_first", "encode_mcu_AC_refine")
    planned = True

    @staticmethod
    def picture(path, width, height):
        """Bands of colours, and noise over them."""
        rng = random.Random(1)
        noise = [bytes(value >> 3 for value in rng.randbytes(3 * width)) for _ in range(16)]
        bands = [bytes((x * 5 // width * 40 + band * 23 + colour * 20) % 224 for x in range(width) for colour in range(3))
                 for band in range(8)]
        rows = [bytes(map(sum, zip(band, speckles))) for band in bands for speckles in noise]
        with open(path, "wb") as out:
            out.write(b"P6\n%d %d\n255\n" % (width, height))
            out.writelines(rows[len(noise) * (y // 64 % len(bands)) + rng.randrange(len(noise))] for y in range(height))

    def prepare(self):
        for name, size in self.sizes.items():
            self.picture(self.folder / f"{name}.ppm", *size)
        self.small, self.large = (("-progressive", "-outfile", "out.jpg", f"{name}.ppm") for name in self.sizes)

    def build(self, work, compiler, flags):
        run(["cmake", "-S", ".", "-B", "built", f"-DCMAKE_C_COMPILER={compiler}", f"-DCMAKE_C_FLAGS={flags}",
             "-DCMAKE_BUILD_TYPE=None", "-DWITH_SIMD=OFF", "-DENABLE_SHARED=OFF"], work)
        run(["cmake", "--build", "built", "-j", JOBS, "--target", "cjpeg-static"], work)
        return work / "built" / "cjpeg-static"

    def result(self, said):
        picture = self.folder / "out.jpg"
        content = picture.read_bytes()
        picture.unlink()  # so that no run is judged by the one before
        check(content.startswith(b"\xff\xd8") and content.endswith(b"\xff\xd9"), "it made no picture", said)
        return hashlib.sha256(content).hexdigest()


PROGRAMS = {"libquantum": Libquantum, "libjpeg": Cjpeg}


# ---- the transcript


@dataclasses.dataclass
class Done:
    """One run at the end."""
    seconds: float
    report: dict  # of --stats=json; empty: without Farheap


class Transcript:
    """Each step is a line of docs/learn.md. They are done in the folder `here`."""

    def __init__(self, options, program, here):
        self.options, self.program, self.here = options, program, here
        self.store = here / "store"
        self.store.mkdir()
        self.expected = {}  # by input
        self.status = 0  # of the last command
        self.variables = {**ENVIRONMENT, "FARCC_CLANG": str(options.clang), "OMP_NUM_THREADS": "1"}

    def say(self, text):
        print(f"{self.program.name}: {text}", flush=True)

    def command(self, words, status=0, patience=3000):
        """(stdout, stderr) of a command that must end with this status; None: with any."""
        words = [str(word) for word in words]
        try:
            done = subprocess.run(words, cwd=self.here, env=self.variables, text=True, stdin=subprocess.DEVNULL,
                                  capture_output=True, check=False, timeout=patience)
        except subprocess.TimeoutExpired as late:
            raise Failed(f"{' '.join(words)}: not done after {patience} s") from late
        self.status = done.returncode
        check(status in (None, done.returncode), f"{' '.join(words)}: ended with {done.returncode}, not {status}",
              done.stdout + done.stderr)
        return done.stdout, done.stderr

    def farheap(self, *words, **more):
        return self.command([self.options.tool, *words], **more)

    def check_same(self, size, said):
        """Output and status of the program, which every way of running it leaves as they are."""
        result = self.status, self.program.result(said)
        known = self.expected.setdefault(size, result)
        check(result == known, f"another output than without Farheap, for the {size} input", said)

    # ---- built by anyone, and by farcc

    def build(self, source):
        os.environ["FARCC_CLANG"] = str(self.options.clang)
        for name, compiler, flags in (("plain", "cc", "-O2 -g"), ("counted", self.options.farcc, "-ffar=record -O2 -g")):
            work = self.here / f"build-{name}"
            shutil.copytree(source, work, symlinks=True)
            built = self.program.build(work, compiler, flags)
            shutil.copy(built, self.here / name)
            self.say(f"built with {pathlib.Path(compiler).name} {flags}")

    # ---- farheap record -o app.profile -- ./app input

    def record(self):
        for name in ("app.profile", "again.profile"):
            output, said = self.farheap("record", "-o", name, "--store", f"file:{self.store}", "--", "./plain",
                                        *self.program.small, status=None)
            self.check_same("small", output)
            check(f"farheap report {name}" in said, "the recording does not name the next command", said)

    # ---- farcc -ffar=record; ./app input

    def count(self):
        output, _ = self.command(["./counted", *self.program.small], status=None)
        self.check_same("small", output)
        profile = self.here / "counted.profile"
        check(profile.exists(), "a program of -ffar=record left no profile")
        text, _ = self.farheap("report", profile.name)
        for heading in ("spent its time, and what it accessed", "What they access, by where it was allocated"):
            check(heading in text, f"the report of counts has no `{heading}`", text)
        tree = json.loads(self.farheap("report", profile.name, "--json")[0])["contexts"][0]
        functions = {context["function"] for context in tree["tree"][1:]}
        check(set(self.program.hot) <= functions, f"{self.program.hot} are not all among the contexts", str(functions))
        lines = [context for context in tree["tree"][1:] if context["line"] > 0 and context["source"]]
        check(len(lines) > 0.9 * (len(tree["tree"]) - 1), "contexts have no lines")
        known = sum(one["reads"] + one["writes"] for one in tree["accesses"])
        every = sum(one["reads"] + one["writes"] for one in tree["tree"])
        by_site = {}
        for one in tree["accesses"]:
            name = tree["sites"][one["site"] - 1]["site"]
            by_site[name] = by_site.get(name, 0) + one["reads"] + one["writes"]
        most = sorted(by_site, key=by_site.get, reverse=True)[:3]
        check(any(re.search(self.program.counted_site, name) for name in most),
              f"{self.program.counted_site} is not among what is accessed most", str(most))
        self.say(f"{len(tree['tree']) - 1} contexts, {every} accesses, {100 * known // every} % of them to "
                 f"{len(tree['sites'])} known sites, most to {', '.join(most)}")
        self.page("counted", "report", profile.name)
        # The same input again: as many accesses, but for what the C library does.
        shutil.copy(profile, self.here / "counted-before.profile")
        self.command(["./counted", *self.program.small], status=None)
        self.farheap("report", "--compare", "counted-before.profile", profile.name, "--tolerance", "1000")
        self.farheap("report", "--compare", "app.profile", profile.name, status=2)

    # ---- farheap record --attach PID

    def attach(self, budget):
        run_words = [self.options.tool, "run", "--memory", budget, "--store", f"file:{self.store}", "--quiet", "--",
                     "./plain", *self.program.large]
        with open(self.here / "attached.out", "wb") as output, subprocess.Popen(
                [str(word) for word in run_words], cwd=self.here, env=self.variables, stdin=subprocess.DEVNULL,
                stdout=output, stderr=output) as going:
            try:
                self.wait_for_paging(going)
                self.farheap("record", "--attach", going.pid, "--seconds", "3", "-o", "attached.profile")
                check(going.poll() is None, "the program did not go on after it was recorded")
            finally:
                going.terminate()
                going.wait(60)
        report = json.loads(self.farheap("report", "attached.profile", "--json")[0])
        check(any("in the middle of a run" in note for note in report["notes"]), "it is told as a whole run")
        self.farheap("plan", "attached.profile", status=1)
        self.farheap("report", "--compare", "app.profile", "attached.profile", status=2)
        self.say(f"attached: {report['waits']['faults']} faults in 3 s, "
                 f"{', '.join(line['line'] for line in report['lines'][:3]) or 'no line waited'}")

    def wait_for_paging(self, going):
        until = time.monotonic() + 300
        while True:
            looked = json.loads(self.farheap("top", "--once", "--json")[0] or '{"runs": []}')
            if any(one["pid"] == going.pid and one["counters"]["paging_processes"] > 0 for one in looked["runs"]):
                return
            check(going.poll() is None, "the program ended before it paged")
            check(time.monotonic() < until, "the program does not page")
            time.sleep(0.2)

    # ---- farheap report, in all forms

    def page(self, name, *words, status=0):
        self.farheap(*words, "--html", f"{name}.html", status=status)
        text = (self.here / f"{name}.html").read_text(encoding="utf-8")
        check("<html" in text and "</html>" in text, f"{name}.html is no page")
        self.pages.append(self.here / f"{name}.html")

    def look_at_pages(self):
        """Each view of each page shows something, and the browser complains of nothing."""
        missing = [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]
        if webdriver is None or missing:
            self.say(f"SKIPPED, NOT TESTED: the pages, which need {', '.join(missing) or 'selenium'} (apt-get install "
                     "chromium chromium-driver python3-selenium)")
            return
        driver = browser()
        try:
            for page in self.pages:
                driver.get(f"file://{page}")
                tabs = driver.find_elements(By.CSS_SELECTOR, "[role=tab]")
                check(tabs, f"{page.name} has no views")
                for tab in tabs:
                    tab.click()
                    view = tab.get_attribute("id").removeprefix("tab-")
                    shown = driver.find_element(By.CSS_SELECTOR, f"#view-{view}")
                    found = shown.find_elements(By.CSS_SELECTOR, "tbody tr, canvas, svg g")
                    check(shown.is_displayed() and found, f"{page.name} shows nothing in its view {view}")
                errors = [entry["message"] for entry in driver.get_log("browser")]
                check(not errors, f"the browser complains of {page.name}", str(errors))
                self.say(f"{page.name}: {', '.join(tab.text for tab in tabs)}")
        finally:
            driver.quit()

    def report(self):
        text, _ = self.farheap("report", "app.profile")
        check("Its heap held about" in text, "the report does not say how much memory there was", text)
        report = json.loads(self.farheap("report", "app.profile", "--json")[0])
        sites = [site["site"] for site in sorted(report["sites"], key=lambda site: -site["peak_bytes"])]
        check(re.search(self.program.site, sites[0]), "most memory is told of another site", sites[0])
        folded, _ = self.farheap("report", "app.profile", "--folded", "--weight", "peak")
        check(all(re.fullmatch(r".+ \d+", line) for line in folded.splitlines()) and "main" in folded, "folded", folded)
        speedscope = json.loads(self.farheap("report", "app.profile", "--speedscope")[0])
        check(any(one["samples"] for one in speedscope["profiles"]), "speedscope's profile is empty")
        self.farheap("report", "app.profile", "--pprof", "app.pb.gz")
        packed = (self.here / "app.pb.gz").read_bytes()
        check(len(gzip.decompress(packed) if packed.startswith(b"\x1f\x8b") else packed) > 500, "pprof's profile is empty")
        self.page("app", "report", "app.profile")
        return report

    # ---- farheap report --compare a.profile b.profile

    def compare(self):
        """Beside itself nothing is worse; with more data, and less memory than that needs, it is."""
        self.farheap("report", "--compare", "app.profile", "app.profile")
        self.farheap("record", "-o", "short.profile", "--store", f"file:{self.store}", "--memory",
                     max(LEAST_BUDGET, self.plain_peak // 2), "--", "./plain", *self.program.large, status=None)
        text, _ = self.farheap("report", "--compare", "app.profile", "short.profile", "--tolerance", "50", status=1)
        check("WORSE" in text, "the comparison does not say what is worse", text)
        self.page("compared", "report", "--compare", "app.profile", "short.profile", "--tolerance", "50", status=1)
        text, _ = self.farheap("report", "short.profile")
        check("Where threads waited" in text, "no line waited with half of the memory", text)
        lines = json.loads(self.farheap("report", "short.profile", "--json")[0])["lines"]
        known = [line["line"] for line in lines if re.search(r"\.c:\d+\)", line["line"])]
        check(len(known) >= min(3, len(lines)), "lines that waited have no names", str(lines[:5]))
        self.page("short", "report", "short.profile")
        if lines:
            self.say(f"in half of its memory most waited: {lines[0]['line']} for {lines[0]['most_for']}")

    # ---- farheap plan app.profile -o app.plan --explain

    def plan(self):
        """Answers whether there is one."""
        text, said = self.farheap("plan", "app.profile", "-o", "app.plan", "--explain",
                                  status=0 if self.program.planned else 1)
        (self.here / "plan.txt").write_text(text + said, encoding="utf-8")
        if not self.program.planned:
            check(self.program.why_no_plan in said, "the reason why there is no plan is another", said)
        else:
            check("could be foreseen" in text and "this plan" in text, "the plan is not explained", text)
            check(re.search(self.program.site, text), "what is used most is not in the plan", text)
        self.say(f"plan: {(text + said).splitlines()[0]}")

    # ---- farheap run --memory 2G --plan app.plan -- ./app big-input

    def run_plain(self):
        with open(self.here / "plain.out", "w+b") as output:
            begin = time.monotonic()
            going = subprocess.Popen(["./plain", *self.program.large], cwd=self.here, env=self.variables,
                                     stdin=subprocess.DEVNULL, stdout=output, stderr=output)
            _, status, usage = os.wait4(going.pid, 0)
            seconds = time.monotonic() - begin
            going.returncode = self.status = os.waitstatus_to_exitcode(status)
            output.seek(0)
            said = output.read().decode("utf-8", "replace")
        self.check_same("large", said)
        self.plain_peak = max(self.plain_peak, usage.ru_maxrss * 1024)
        return Done(seconds, {})

    def run_in(self, level, plan):
        budget = max(LEAST_BUDGET, self.plain_peak * level // 100)
        begin = time.monotonic()
        output, said = self.farheap("run", "--memory", budget, *(("--plan", "app.plan") if plan else ()), "--store",
                                    f"file:{self.store}", "--stats=json", "--", "./plain", *self.program.large, status=None)
        seconds = time.monotonic() - begin
        *warnings, last = said.splitlines()
        report = json.loads(last)
        self.check_same("large", output)
        warned = [line for line in warnings if line.startswith("farheap:")]
        check(not warned, "the run warns", "\n".join(warned))
        allowed = budget + max(budget // 50, 8 * MIB)  # as tests/programs/run_program.py allows
        check(report["peak_bytes"] <= allowed, f"it took {report['peak_bytes']} bytes of {budget}")
        check(report["bytes_written"] > 0, f"nothing left memory, at {level} %")
        if plan:
            check(report["touches_expected"] + report["touches_unexpected"] > 0, "no touch was foreseen", last)
        return Done(seconds, report)

    def runs(self):
        ways = {"no limit": self.run_plain}
        for level in LEVELS:
            ways[f"{level} %"] = lambda level=level: self.run_in(level, False)
            if self.program.planned:
                ways[f"{level} %, plan"] = lambda level=level: self.run_in(level, True)
        done = {way: [] for way in ways}
        for turn in range(self.options.turns):
            names = list(ways)
            shift = turn % len(names) if turn else 0
            for way in names[shift:] + names[:shift]:
                done[way].append(ways[way]())
        self.table(done)

    def table(self, done):
        def middle(runs, key):
            return statistics.median(one.report[key] for one in runs)
        print("| way | seconds | peak | read | written | faults from the store | waited | as expected |")
        print("| --- | --- | --- | --- | --- | --- | --- | --- |")
        for way, runs in done.items():
            times = sorted(one.seconds for one in runs)
            seconds = f"{statistics.median(times):.1f} ({times[0]:.1f}-{times[-1]:.1f})"
            if not runs[0].report:
                print(f"| {way} | {seconds} | {self.plain_peak / MIB:.0f} MiB | - | - | - | - | - |")
                continue
            sizes = " | ".join(f"{middle(runs, key) / MIB:,.0f} MiB" for key in ("peak_bytes", "bytes_read", "bytes_written"))
            touches = [(one.report["touches_expected"], one.report["touches_unexpected"]) for one in runs]
            expected = statistics.median(100 * yes / max(yes + no, 1) for yes, no in touches)
            print(f"| {way} | {seconds} | {sizes} | {middle(runs, 'faults_store'):,.0f} | {middle(runs, 'stall_seconds'):.1f} s | "
                  f"{f'{expected:.0f} %' if 'plan' in way else '-'} |")

    def all(self, source):
        self.build(source)
        self.program.prepare()
        self.plain_peak, self.pages = 0, []
        self.record()
        self.count()
        self.report()
        self.plan()
        self.run_plain()
        self.attach(max(LEAST_BUDGET, self.plain_peak // 2))
        self.compare()
        self.look_at_pages()
        self.runs()


def test(options):
    program_folder = options.folder / options.program
    program_folder.mkdir(parents=True, exist_ok=True)
    kind = PROGRAMS[options.program]
    source = fetch(kind.source, program_folder)
    with tempfile.TemporaryDirectory(prefix="farheap-transcript-", dir="/var/tmp") as place:
        here = pathlib.Path(place)
        try:
            Transcript(options, kind(here), here).all(source)
        finally:
            if options.keep:
                options.keep.mkdir(parents=True, exist_ok=True)
                for path in here.iterdir():
                    if path.is_file():
                        shutil.copy(path, options.keep)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("tool", "farcc", "clang", "folder"):
        parser.add_argument(f"--{name}", required=True, type=lambda path: pathlib.Path(path).absolute())
    parser.add_argument("--turns", type=int, default=1)
    parser.add_argument("--keep", type=lambda path: pathlib.Path(path).absolute())
    parser.add_argument("program", choices=sorted(PROGRAMS))
    options = parser.parse_args()
    try:
        if not json.loads(run([options.tool, "doctor", "--json"]))["run_works"]:
            raise Skip("`farheap doctor` says that programs cannot be run here")
        test(options)
    except Skip as why:
        print(f"SKIPPED, NOT TESTED: {options.program}: {why}")
        sys.exit(SKIPPED)
    except Failed as why:
        print(f"FAILED: {options.program}: {why}")
        sys.exit(1)


if __name__ == "__main__":
    main()
