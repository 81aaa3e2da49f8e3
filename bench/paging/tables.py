# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tables and plots of what was measured, for a terminal or for docs/benchmarks/paging.md."""

import report
from measurements import FULL
from metrics import cell, results_of
from report import MIB

WAYS = (("plain", "no limit"), ("swap", "kernel swap"), ("mlock", "swap + mlock"), ("farheap", "farheap"))
HEAD = ("program", "class", "level", "budget", *(title for _, title in WAYS), "over swap", "over mlock", "recovered",
        "read / optimum", "written / optimum", "over budget")
SIGNS = {"lower": ">= ", "upper": "<= "}


class Results:
    """Looks metrics up by program and name."""

    def __init__(self, results):
        self._lines = {(one["name"], one["metric"]): one for one in results}

    def find(self, name, metric):
        return self._lines.get((name, metric))

    def text(self, name, metric, form):
        """`form` of the value, with the sign of a bound; "-" where there is none."""
        one = self.find(name, metric)
        return SIGNS.get(one.get("bound"), "") + form(one["value"]) if one else "-"


def times(value):
    return f"{value:.2f}x"


def percent(value):
    return f"{100 * value:.0f} %"


def seconds(measured, name, level, way):
    one = cell(measured, name, level, way)
    if not one:
        return "-"
    text = report.seconds_text(one.seconds, one.bounded)
    return f"{text}, killed" if one.kills else text


def level_row(measured, results, name, level):
    facts = measured.programs[name]
    runs = [one for one in measured.peaks(name) if one.level == level]
    over = f"{max(one.peak_bytes - one.budget_bytes for one in runs) / MIB:+.1f} MiB" if runs else "-"
    return [name, facts["class"], f"{level} %", f"{facts['peak_bytes'] * level // 100 / MIB:.0f} MiB",
            *(seconds(measured, name, level, way) for way, _ in WAYS),
            results.text(name, f"speedup_over_swap_{level}", times),
            results.text(name, f"speedup_over_mlock_{level}", times),
            results.text(name, f"recovered_{level}", percent),
            results.text(name, f"read_over_optimum_{level}", times),
            results.text(name, f"written_over_optimum_{level}", times), over]


def level_rows(measured, results):
    return [level_row(measured, results, name, level)
            for level in measured.levels() for name in measured.programs
            if any(measured.of(name, level, way) for way, _ in WAYS)]


FULL_HEAD = ("program", "memory used", "plain", "farheap", "ratio", "95 % interval")


def interval_text(one):
    return f"{one['min']:.3f}-{one['max']:.3f}"


def full_rows(measured, results):
    rows = []
    for name, facts in measured.programs.items():
        one = results.find(name, "slowdown_full_memory")
        if one:
            rows.append([name, f"{facts['peak_bytes'] / MIB:.0f} MiB", seconds(measured, name, FULL, "plain"),
                         seconds(measured, name, FULL, "farheap"), f"{one['value']:.3f}", interval_text(one)])
    one = results.find("all", "slowdown_full_memory")
    if one:
        rows.append(["all (geometric mean)", "", "", "", f"{one['value']:.3f}", interval_text(one)])
    return rows


SUMMARY_HEAD = ("programs", "level", "over swap", "over mlock", "recovered, least", "read / optimum",
                "written / optimum")


def summary_rows(measured, results):
    rows = []
    for group in ("sweeping", "random", "all"):
        for level in measured.levels():
            cells = [results.text(group, f"{metric}_{level}", form)
                     for metric, form in (("speedup_over_swap", times), ("speedup_over_mlock", times),
                                          ("recovered", percent), ("read_over_optimum", times),
                                          ("written_over_optimum", times))]
            if set(cells) != {"-"}:
                rows.append([group, f"{level} %", *cells])
    return rows


TOTALS = (("oom_kills", "killed under farheap: {:.0f}"), ("oom_kills_swap", "killed under kernel swap: {:.0f}"),
          ("peak_over_budget", "worst peak over the budget: {:.2f} %"),
          ("peak_over_budget_mib", "worst peak over the budget: {:.1f} MiB"))


def total_lines(results_list):
    """What holds over all programs and levels."""
    lines = []
    for prefix, text in TOTALS:
        values = [one["value"] for one in results_list if one["name"] == "all"
                  and (one["metric"] == prefix or one["metric"].startswith(prefix + "_")
                       and one["metric"].removeprefix(prefix + "_").isdigit())]
        if values:
            lines.append(text.format(sum(values)))
    return lines


def all_tables(measured, results_list):
    """(title, head, rows) of each table that has rows."""
    results = Results(results_list)
    tables = (("Short of memory", HEAD, level_rows(measured, results)),
              ("In sum", SUMMARY_HEAD, summary_rows(measured, results)),
              ("With enough memory", FULL_HEAD, full_rows(measured, results)))
    return [table for table in tables if table[2]]


def show(measured):
    """On the terminal."""
    results = results_of(measured)
    print(measured.machine)
    for title, head, rows in all_tables(measured, results):
        print(f"\n{title}")
        report.print_table(head, rows)
    print()
    for one in total_lines(results):
        print(one)


def markdown(measured):
    results = results_of(measured)
    parts = [measured.machine, ""]
    for title, head, rows in all_tables(measured, results):
        parts += [f"### {title}", "", report.markdown_table(head, rows), ""]
    return "\n".join([*parts, *(f"- {one}" for one in total_lines(results))])


# ---- plots

LEVEL_OF_BARS = 70


def slowdowns(measured, level):
    """{program: {column: times the plain run}}"""
    groups = {}
    for name in measured.programs:
        plain = cell(measured, name, level, "plain")
        cells = {title: cell(measured, name, level, way) for way, title in WAYS if way != "plain"}
        if plain and any(cells.values()):
            groups[name] = {title: one.middle / plain.middle if one else None for title, one in cells.items()}
    return groups


def means(measured, group):
    """{level: {column: geometric mean of the slowdowns}} over the programs of a class; None where one of them was not
    measured."""
    found = {}
    titles = [title for way, title in WAYS if way != "plain"]
    for level in measured.levels():
        rows = [row for name, row in slowdowns(measured, level).items() if measured.programs[name]["class"] == group]
        found[f"{level} %"] = {
            title: report.geometric_mean([row[title] for row in rows]) if rows and all(row[title] for row in rows)
            else None for title in titles}
    return found


def panels(measured):
    """What the plot shows: bars by program at one level, and how each class goes by level."""
    levels = measured.levels()
    if not levels:
        return []
    level = LEVEL_OF_BARS if LEVEL_OF_BARS in levels else levels[0]
    axis = "times the plain run"
    shown = [report.Panel(f"By program, at {level} % of the memory", axis, slowdowns(measured, level))]
    for group in ("sweeping", "random"):
        groups = means(measured, group)
        if any(value for row in groups.values() for value in row.values()):
            shown.append(report.Panel(f"{group.capitalize()} programs by memory, geometric mean", axis, groups))
    return shown
