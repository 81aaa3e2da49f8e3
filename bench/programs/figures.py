# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From what was measured to the metrics and tables: pure functions, no run is made here.

A baseline that was killed or not done in time has a time that is too short: its ratio is a lower bound, and stands
apart: no mean has it. Where farheap was not done the ratio is an upper bound, and so is the mean that has it. Where
neither was nothing is known, and there is no line.
"""

import metrics
import report
from measurements import FULL, KILLED, TIMED_OUT, WELL
from report import MIB

BASELINES = ("swap", "zram")
COUNTS = {"swap": ("major_faults",), "zram": ("major_faults",), "farheap": ("faults_store", "faults_probation")}
WORDS = {KILLED: "killed", TIMED_OUT: "not done"}
PAGE = 4096
LRU = ("lru_bytes_read", "lru_bytes_read_at_least", "lru_bytes_read_at_most")
MUCH_OVER = 1.1  # times the budget: then what the run was short of is not the memory it was given


class Cell:
    """The runs of one program in one way at one level; None in place of it where there are none."""

    def __init__(self, records, plain_seconds):
        self.records = records
        # A killed program would have taken at least as long as one with all its memory.
        self.seconds = [max(one.seconds, plain_seconds) if one.ended == KILLED else one.seconds for one in records]

    @property
    def middle(self):
        return report.spread(self.seconds)[0]

    @property
    def bounded(self):
        return any(one.ended != WELL for one in self.records)

    def ends(self):
        """How the runs ended that did not end well, each once."""
        return [end for end in (KILLED, TIMED_OUT) if any(one.ended == end for one in self.records)]

    def count(self, name):
        """The median, or None."""
        values = [one.counts[name] for one in self.records if name in one.counts]
        return report.spread(values)[0] if values else None


def cell(measured, name, level, way):
    records = measured.of(name, level, way)
    if not records:
        return None
    plain = [one.seconds for one in measured.of(name, FULL, "plain") if one.ended == WELL]
    return Cell(records, report.spread(plain)[0] if plain else 0.0)


def is_far_over(farheap):
    """Whether the program took much more than its budget: what is not reached is not paged."""
    return any(one.peak_bytes > MUCH_OVER * one.budget_bytes for one in farheap.records)


def level_results(measured, name, level):
    lines = []
    cells = {way: cell(measured, name, level, way) for way in (*BASELINES, "farheap")}
    for way, one in cells.items():
        if not one:
            continue
        lines.append(metrics.line(name, f"seconds_{way}_{level}", one.seconds, "s", "lower" if one.bounded else None))
        lines += [report.result(name, f"{counted}_{way}_{level}", value, "faults")
                  for counted in COUNTS[way] if (value := one.count(counted)) is not None]
        lines.append(report.result(name, f"oom_kills_{way}_{level}", sum(run.kills for run in one.records), "kills"))
    for way in BASELINES:
        if cells[way] and cells["farheap"]:
            lines.append(metrics.ratio(name, f"speedup_over_{way}_{level}", cells[way], cells["farheap"]))
    return [one for one in lines if one]


def full_memory_samples(measured, name):
    """[farheap's seconds, plain's], or None."""
    cells = [cell(measured, name, FULL, way) for way in ("enough", "plain")]
    return None if any(one is None or one.bounded for one in cells) else [one.seconds for one in cells]


def misses_results(measured, name, level):
    """What was missed, beside what exact LRU would have missed in so much memory, and the optimum. LRU has two bounds:
    see src/plan/lru.hpp."""
    found = measured.optima.get((name, level))
    if not found:
        return []
    pages = {key: found[key] / PAGE for key in ("bytes_read", *LRU)}
    middle, low, high = (pages[key] for key in LRU)
    lines = [report.result(name, f"misses_optimum_{level}", pages["bytes_read"], "pages"),
             report.result(name, f"misses_lru_{level}", middle, "pages", low, high)]
    farheap = cell(measured, name, level, "farheap")
    missed = farheap.count("faults_store") if farheap else None
    if missed is not None and low > 0:
        lines.append(report.result(name, f"misses_over_lru_{level}", missed / middle, "x", missed / high, missed / low,
                                   "lower" if farheap.bounded else None))
    return lines


def program_results(measured, name):
    lines = [report.result(name, "peak_plain", measured.programs[name]["peak_bytes"] / MIB, "MiB")]
    plain = cell(measured, name, FULL, "plain")
    if plain:
        lines.append(metrics.line(name, "seconds_plain", plain.seconds, "s"))
    for level in measured.levels():
        lines += level_results(measured, name, level) + misses_results(measured, name, level)
    samples = full_memory_samples(measured, name)
    return lines + ([metrics.slowdown_line(name, samples)] if samples else [])


def counted(measured, name, level, way):
    """Whether the program's ratio over this baseline goes into the mean."""
    baseline, farheap = (cell(measured, name, level, one) for one in (way, "farheap"))
    return bool(baseline and farheap and not baseline.bounded and not is_far_over(farheap))


def summary_results(measured, results):
    """Under the name `all`: geometric means, with the least and the largest."""
    lines = []
    for level in measured.levels():
        for way in BASELINES:
            metric = f"speedup_over_{way}_{level}"
            chosen = [one for one in results if one["metric"] == metric and counted(measured, one["name"], level, way)]
            if chosen:
                values = [one["value"] for one in chosen]
                bound = "upper" if any("bound" in one for one in chosen) else None
                lines.append(report.result("all", metric, report.geometric_mean(values), "x", min(values), max(values),
                                           bound))
                lines.append(report.result("all", f"programs_over_{way}_{level}", len(values), "programs"))
        for way in (*BASELINES, "farheap"):
            cells = [one for name in measured.programs if (one := cell(measured, name, level, way))]
            if cells:
                lines.append(report.result("all", f"oom_kills_{way}_{level}",
                                           sum(run.kills for one in cells for run in one.records), "kills"))
    samples = [pair for name in measured.programs if (pair := full_memory_samples(measured, name))]
    if samples:
        lines.append(metrics.slowdown_line("all", [seconds for pair in samples for seconds in pair]))
    return lines


def results_of(measured):
    results = [one for name in measured.programs for one in program_results(measured, name)]
    return results + summary_results(measured, results)


# ---- tables

SIGNS = {"lower": ">= ", "upper": "<= "}


def number(value):
    return "-" if value is None else f"{value:,.0f}"


def seconds(one):
    """Of a cell, with what became of its runs."""
    if not one:
        return "-"
    ends = ", ".join(f"{WORDS[end]} {sum(run.ended == end for run in one.records)} of {len(one.records)}"
                     if len(one.records) > 1 else WORDS[end] for end in one.ends())
    return f"{report.seconds_text(one.seconds, one.bounded)}{', ' if ends else ''}{ends}"


def times(line):
    return f"{SIGNS.get(line.get('bound'), '')}{line['value']:.2f}x" if line else "-"


LEVEL_HEAD = ("program", "plain peak", "no limit", "kernel swap", "major faults", "zram", "its memory", "farheap",
              "from the store + still in memory", "x swap", "x zram")


def level_row(measured, found, name, level):
    cells = {way: cell(measured, name, level, way) for way in (*BASELINES, "farheap")}
    farheap, zram = cells["farheap"], cells["zram"]
    faults = f"{number(farheap.count('faults_store'))} + {number(farheap.count('faults_probation'))}" if farheap else "-"
    if farheap and is_far_over(farheap):
        faults += f", {max(run.peak_bytes for run in farheap.records) / MIB:.0f} MiB: not reached"
    is_reached = measured.programs[name].get("reached", True)
    held = zram.count("zram_bytes") if zram else None
    return [name, f"{measured.programs[name]['peak_bytes'] / MIB:.0f} MiB",
            seconds(cell(measured, name, FULL, "plain")), seconds(cells["swap"]),
            number(cells["swap"].count("major_faults") if cells["swap"] else None), seconds(zram),
            "-" if held is None else f"{held / MIB:.0f} MiB", seconds(farheap) if farheap or is_reached else "not reached",
            faults,
            *(times(found.get((name, f"speedup_over_{way}_{level}"))) for way in BASELINES)]


MISSES_HEAD = ("program", "level", "optimum", "exact LRU", "its bounds", "kernel swap, major faults",
               "farheap, from the store", "pages read", "over LRU")


def misses_rows(measured, found):
    rows = []
    for (name, level), one in sorted(measured.optima.items(), key=lambda item: (-item[0][1], item[0][0])):
        swap, farheap = (cell(measured, name, level, way) for way in ("swap", "farheap"))
        lru = found[name, f"misses_lru_{level}"]
        read = farheap.count("bytes_read") if farheap else None
        rows.append([name, f"{level} %", number(one["bytes_read"] / PAGE), number(lru["value"]),
                     f"{number(lru['min'])}-{number(lru['max'])}", number(swap.count("major_faults") if swap else None),
                     number(farheap.count("faults_store") if farheap else None),
                     number(None if read is None else read / PAGE),
                     times(found.get((name, f"misses_over_lru_{level}")))])
    return rows


PRICE_HEAD = ("program", "level", "kernel swap: misses", "us each", "farheap: misses", "us each", "misses, farheap / swap",
              "price, farheap / swap")
FEWEST = 1000  # misses, from which on the time lost is taken for theirs


def price(one, counted_name, plain):
    """Microseconds that each miss cost: the time lost over the misses; None where there are few, or none was lost."""
    missed = one.count(counted_name) if one else None
    if not missed or missed < FEWEST or not plain or one.middle <= plain.middle:
        return None
    return (one.middle - plain.middle) / missed * 1e6


def price_rows(measured):
    rows = []
    for level in measured.levels():
        for name in sorted(measured.programs):
            plain, swap, farheap = (cell(measured, name, *place) for place in
                                    ((FULL, "plain"), (level, "swap"), (level, "farheap")))
            if not swap or not farheap or KILLED in swap.ends():
                continue
            prices = price(swap, "major_faults", plain), price(farheap, "faults_store", plain)
            missed = swap.count("major_faults"), farheap.count("faults_store")
            known = all(missed) and not swap.bounded
            sign = ">= " if farheap.bounded and missed[1] else ""
            rows.append([name, f"{level} %", number(missed[0]), number(prices[0]), f"{sign}{number(missed[1])}",
                         number(prices[1]), f"{sign}{missed[1] / missed[0]:.1f}x" if known else "-",
                         f"{prices[1] / prices[0]:.1f}x" if all(prices) else "-"])
    return rows


SUM_HEAD = ("level", "over", "geometric mean", "least", "programs", "apart: killed, not done or not reached")


def sum_rows(measured, found):
    rows = []
    for level in measured.levels():
        for way in BASELINES:
            line = found.get(("all", f"speedup_over_{way}_{level}"))
            if not line:
                continue
            tried = [name for name in measured.programs if cell(measured, name, level, way)]
            apart = [name for name in tried if not counted(measured, name, level, way)]
            rows.append([f"{level} %", way, times(line), f"{line['min']:.2f}x", len(tried) - len(apart),
                         ", ".join(apart) or "none"])
    return rows


FULL_HEAD = ("program", "no limit", "farheap, enough memory", "ratio", "95 % interval")


def full_rows(measured, found):
    rows = []
    for name in (*sorted(measured.programs), "all"):
        line = found.get((name, "slowdown_full_memory"))
        if line:
            both = ["", ""] if name == "all" else [seconds(cell(measured, name, FULL, way)) for way in ("plain", "enough")]
            rows.append([name, *both, f"{line['value']:.2f}", f"{line['min']:.2f}-{line['max']:.2f}"])
    return rows


def without_empty(head, rows):
    """Less the columns in which nothing was measured."""
    kept = [at for at in range(len(head)) if any(row[at] != "-" for row in rows)]
    return [head[at] for at in kept], [[row[at] for at in kept] for row in rows]


def all_tables(measured):
    """(title, head, rows) of each table that has rows."""
    found = {(one["name"], one["metric"]): one for one in results_of(measured)}
    tables = [(f"At {level} %", *without_empty(LEVEL_HEAD, [
        level_row(measured, found, name, level) for name in sorted(measured.programs)
        if any(measured.of(name, level, way) for way in (*BASELINES, "farheap"))])) for level in measured.levels()]
    tables += [("In sum", SUM_HEAD, sum_rows(measured, found)),
               ("More misses, or dearer ones?", PRICE_HEAD, price_rows(measured)),
               ("Misses", MISSES_HEAD, misses_rows(measured, found)),
               ("With enough memory", FULL_HEAD, full_rows(measured, found))]
    return [table for table in tables if table[2]]


def show(measured):
    print(measured.machine)
    for title, head, rows in all_tables(measured):
        print(f"\n{title}")
        report.print_table(head, rows)


def markdown(measured):
    parts = [measured.machine]
    for title, head, rows in all_tables(measured):
        parts += ["", f"### {title}", "", report.markdown_table(head, rows)]
    return "\n".join(parts)


# ---- plots

LEVEL_OF_BARS = 70
BARS = {"swap": "kernel swap", "zram": "zram", "farheap": "farheap"}


def slowdowns(measured, level):
    """{program: {way: times the plain run}}"""
    groups = {}
    for name in sorted(measured.programs):
        plain = cell(measured, name, FULL, "plain")
        cells = {title: cell(measured, name, level, way) for way, title in BARS.items()}
        if plain and any(cells.values()):
            groups[name] = {title: one.middle / plain.middle if one else None for title, one in cells.items()}
    return groups


def means(measured, levels):
    """{level: {baseline: geometric mean}}"""
    found = {(one["name"], one["metric"]): one["value"] for one in results_of(measured)}
    return {f"{level} %": {f"over {BARS[way]}": found.get(("all", f"speedup_over_{way}_{level}"))
                           for way in BASELINES} for level in levels}


def panels(measured):
    levels = measured.levels()
    if not levels:
        return []
    level = LEVEL_OF_BARS if LEVEL_OF_BARS in levels else levels[0]
    return [report.Panel(f"By program, at {level} % of the memory", "times the plain run", slowdowns(measured, level)),
            report.Panel("Speed-up, geometric mean, killed baselines apart", "times as fast", means(measured, levels))]
