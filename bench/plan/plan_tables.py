# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tables and the plot of what was measured, for a terminal or for docs/benchmarks/plan.md."""

import disk
import plan_figures as figures
import report
import tables
from measurements import FULL
from metrics import cell
from planned_runner import ORACLE, PLAN
from tables import interval_text, percent, times

NONE = "no plan"
LEVEL_OF_BARS = 70


def seconds_cell(measured, name, level, way):
    facts = measured.programs[name]
    if way == PLAN and figures.refusals(facts) and not figures.plan_sizes(facts):
        return NONE
    return tables.seconds(measured, name, level, way)


GAINS = (("speedup_over_swap", "over swap", times), ("speedup_over_seed_hints", "over the seeds' hints", times),
         ("speedup_over_planless", "over farheap", times),
         ("recovered_over_ceiling", "of the ceiling", percent),
         ("shuffled_speedup_over_planless", "shuffled over farheap", times),
         ("reversed_speedup_over_planless", "reversed over farheap", times),
         ("plan_over_oracle", "time of the exact future's", times),
         ("oracle_speedup_over_swap", "exact future over swap", times),
         ("oracle_speedup_over_planless", "... over farheap", times))


def names_at(measured, level):
    return [name for name in measured.programs if any(measured.of(name, level, way) for way, _ in figures.WAYS)]


def time_table(measured, _results, level):
    head = ["program", *[text for _, text in figures.WAYS], "ceiling"]
    rows = []
    for name in names_at(measured, level):
        least = figures.ceiling_of(measured, name, level)
        rows.append([name, *[seconds_cell(measured, name, level, way) for way, _ in figures.WAYS],
                     f"{least:.2f} s" if least else "-"])
    return head, rows


def gain_table(measured, results, level):
    head = ["program", *[text for _, text, _ in GAINS]]
    rows = [[name, *[results.text(name, f"{metric}_{level}", form) for metric, _, form in GAINS]]
            for name in names_at(measured, level)]
    for group in figures.groups(measured):
        cells = [results.text(group, f"{metric}_{level}", form) for metric, _, form in GAINS]
        rows.append([f"{group} (geometric mean)", *cells])
    return head, [row for row in rows if set(row[1:]) != {"-"}]


def moved_cell(results, name, way, word, level, over):
    """MiB, and how many times the optimum's."""
    text = results.text(name, f"{word}_{way}_{level}", lambda value: f"{value:,.0f}")
    ratio = results.text(name, f"{word}_over_optimum{over}_{level}", times)
    return text if ratio == "-" or over is None else f"{text} ({ratio})"


def moved_table(measured, results, level):
    ways = (("swap", "kernel swap", None), ("optimum", "optimum", None), ("farheap", "farheap", "_planless"),
            (PLAN, "plan", ""), (ORACLE, "exact future", "_oracle"))
    head = ["program", *[f"{text}: {word}" for _, text, _ in ways for word in ("MiB read", "written")],
            "swap's written over the plan's"]
    rows = [[name, *[moved_cell(results, name, way, word, level, over)
                     for way, _, over in ways for word in ("read", "written")],
             results.text(name, f"swap_written_over_ours_{level}", times)] for name in names_at(measured, level)]
    return head, rows


def sizes_text(sizes):
    middle, least, most = report.spread(sizes)
    return f"{middle:,.0f}" + (f" ({least:,}-{most:,})" if len(sizes) > 1 else "")


def plan_table(measured, results):
    head = ["program", "plan, bytes", *[f"came as expected, {level} %" for level in measured.levels()],
            *[f"peak over the budget, {level} %" for level in measured.levels()],
            "enough memory, no plan", "with the plan", "ratio", "95 % interval"]
    rows = []
    for name, facts in measured.programs.items():
        sizes = figures.plan_sizes(facts)
        if not sizes:
            continue
        ratio = results.find(name, "slowdown_full_memory")
        rows.append([name, sizes_text(sizes),
                     *[results.text(name, f"expected_touches_{level}", percent) for level in measured.levels()],
                     *[results.text(name, f"peak_over_budget_{level}", lambda value: f"{value:+.1f} %")
                       for level in measured.levels()],
                     *[tables.seconds(measured, name, FULL, way) for way in ("farheap", PLAN)],
                     *([f"{ratio['value']:.3f}", interval_text(ratio)] if ratio else ["-", "-"])])
    sums = [[f"{group} (geometric mean)", *["-"] * (len(head) - 3), f"{ratio['value']:.3f}", interval_text(ratio)]
            for group in figures.groups(measured) if (ratio := results.find(group, "slowdown_full_memory"))]
    return head, rows + sums


def all_tables(measured):
    """(title, head, rows) of each table that has rows."""
    results = tables.Results(figures.results_of(measured))
    found = []
    for level in measured.levels():
        for title, make in (("Seconds", time_table), ("What a plan gains", gain_table), ("Bytes", moved_table)):
            found.append((f"{title}, at {level} % of the memory", *make(measured, results, level)))
    found.append(("Plans", *plan_table(measured, results)))
    return [one for one in found if one[2]]


def refusals(measured):
    lines = []
    for name, facts in measured.programs.items():
        found = figures.refusals(facts)
        if found:
            lines.append(f"No plan for {name} after {len(found)} of {len(facts['trainings'])} trainings: {found[0]}")
    return lines


def show(measured):
    """On the terminal."""
    print(f"{measured.machine}\n{disk.text(measured.settings['disk'])}")
    for title, head, rows in all_tables(measured):
        print(f"\n{title}")
        report.print_table(head, rows)
    for one in refusals(measured):
        print(f"\n{one}")


def markdown(measured):
    parts = [f"{measured.machine}; {disk.text(measured.settings['disk'])}", ""]
    for title, head, rows in all_tables(measured):
        parts += [f"**{title}**", "", report.markdown_table(head, rows), ""]
    return "\n".join([*parts, *(f"- {' '.join(one.split())}" for one in refusals(measured))])


def panels(measured):
    """What the plot shows: seconds by program at one level, with the ways that were measured at all."""
    levels = measured.levels()
    if not levels:
        return []
    level = LEVEL_OF_BARS if LEVEL_OF_BARS in levels else levels[0]
    bars = {}
    for name in names_at(measured, level):
        cells = {text: cell(measured, name, level, way) for way, text in figures.WAYS if way != "plain"}
        bars[name] = {text: one.middle if one else None for text, one in cells.items()}
        bars[name]["ceiling"] = figures.ceiling_of(measured, name, level)
    shown = [text for text in next(iter(bars.values())) if any(row[text] for row in bars.values())]
    bars = {name: {text: row[text] for text in shown} for name, row in bars.items()}
    return [report.Panel(f"At {level} % of the memory", "seconds", bars)]
