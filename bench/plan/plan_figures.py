# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From what was measured to the figures of plans: pure functions, no run is made here. What is only a bound, and where
nothing is known, is as in bench/paging/metrics.py."""

import base64

import disk
import metrics
import report
from measurements import FULL
from planned_runner import HINTS, ORACLE, PLAN, WRONG
from report import MIB

# By how they use memory here: qft's gates are sweeps, and a walk along the lists of objects cannot be foreseen.
SWEEPING = ("lbm", "cg", "fft3d", "multigrid", "sweep", "qft", "bucketsort")
RANDOM = ("pagerank_1", "objects", "hashjoin_1", "lookup_1")
# Some small objects of these are much hotter than others beside them, or at other times. Regions are made for that.
MIXED = ("records", "catalogue")
WAYS = (("plain", "no limit"), ("swap", "kernel swap"), ("hints_mlock", "swap with the seeds' hints: mlock"),
        ("hints_madvise", "... madvise"), ("farheap", "farheap"), (PLAN, "plan"),
        *((way, f"plan, {word}") for way, word in WRONG.items()), (ORACLE, "exact future"))
MOVED = (("bytes_read", "read"), ("bytes_written", "written"))
SUMMED = ("speedup_over", *(f"{word}_" for word in WRONG.values()), "recovered_over", "plan_over", "read_over",
          "written_over", "swap_written_over", "oracle_", "hint_bytes")


def cells_of(measured, name, level):
    return {way: metrics.cell(measured, name, level, way) for way, _ in WAYS}


def ceiling(found, plain_seconds, speeds):
    """No run is faster: the program computes so long, and the optimum's bytes take so long at the disk's speed."""
    moving = (found["bytes_read"] / speeds[disk.READS] + found["bytes_written"] / speeds[disk.WRITES]) / 1e6
    return max(plain_seconds, moving)


def ceiling_of(measured, name, level):
    """Seconds, or None where the optimum or the plain run is missing."""
    plain, found = metrics.cell(measured, name, level, "plain"), measured.optima.get((name, level))
    return ceiling(found, plain.middle, measured.settings["disk"]) if plain and found else None


def values(cell, counted):
    """Of each run that tells it."""
    return [value for one in cell.records if (value := getattr(one, counted)) is not None] if cell else []


def recovered(name, metric, least, plan):
    """The share of the plan's time that no run could save."""
    middle, low, high = report.spread(plan.seconds)
    return report.result(name, metric, least / middle, "share", least / high, least / low,
                         "upper" if plan.bounded else None)


def over(name, metric, above, below):
    """A ratio of two lists of bytes; None where one is missing or nothing is divided by."""
    if not above or not below or min(below) <= 0:
        return None
    top, bottom = report.spread(above), report.spread(below)
    return report.result(name, metric, top[0] / bottom[0], "x", top[1] / bottom[2], top[2] / bottom[1])


def expected_touches(name, metric, cell):
    """Of the touches that could be foreseen, the share that came as expected; None where nothing was expected."""
    shares = []
    for one in cell.records:
        right, wrong = one.counts.get("touches_expected", 0), one.counts.get("touches_unexpected", 0)
        if right + wrong:
            shares.append(right / (right + wrong))
    return metrics.line(name, metric, shares, "share") if shares else None


def moved_results(measured, name, level, cells):
    found = measured.optima.get((name, level))
    lines = []
    for counted, word in MOVED:
        lines += [metrics.line(name, f"{word}_{way}_{level}", [value / MIB for value in values(cells[way], counted)],
                               "MiB") for way, _ in WAYS if values(cells[way], counted)]
        if found:
            lines.append(report.result(name, f"{word}_optimum_{level}", found[counted] / MIB, "MiB"))
            lines += [over(name, metric, values(cells[way], counted), [found[counted]])
                      for way, metric in ((PLAN, f"{word}_over_optimum_{level}"),
                                          ("farheap", f"{word}_over_optimum_planless_{level}"),
                                          (ORACLE, f"{word}_over_optimum_oracle_{level}"))]
    lines.append(over(name, f"swap_written_over_ours_{level}", values(cells["swap"], "bytes_written"),
                      values(cells[PLAN], "bytes_written")))
    return lines


def seed_hints(cells):
    """The better of the two kinds of hints; None where neither was measured."""
    found = [cells[way] for way in HINTS if cells[way]]
    return min(found, key=lambda one: (one.bounded, one.middle), default=None)


def time_results(measured, name, level, cells):
    plan, oracle = cells[PLAN], cells[ORACLE]
    lines = [metrics.line(name, f"seconds_{way}_{level}", one.seconds, "s", "lower" if one.bounded else None)
             for way, one in cells.items() if one]
    least = ceiling_of(measured, name, level)
    if least:
        lines.append(report.result(name, f"seconds_ceiling_{level}", least, "s"))
    for way, word in (("swap", "swap"), ("farheap", "planless")):
        if cells[way] and plan:
            lines.append(metrics.ratio(name, f"speedup_over_{word}_{level}", cells[way], plan))
        if cells[way] and oracle:
            lines.append(metrics.ratio(name, f"oracle_speedup_over_{word}_{level}", cells[way], oracle))
    for way, word in WRONG.items():
        if cells["farheap"] and cells[way]:
            lines.append(metrics.ratio(name, f"{word}_speedup_over_planless_{level}", cells["farheap"], cells[way]))
    hints = seed_hints(cells)
    if hints and plan:
        lines.append(metrics.ratio(name, f"speedup_over_seed_hints_{level}", hints, plan))
    if plan and oracle:
        lines.append(metrics.ratio(name, f"plan_over_oracle_{level}", plan, oracle))
    if plan and least:
        lines.append(recovered(name, f"recovered_over_ceiling_{level}", least, plan))
    if plan:
        lines.append(expected_touches(name, f"expected_touches_{level}", plan))
        over_budget = [100 * (one.peak_bytes - one.budget_bytes) / one.budget_bytes for one in plan.records]
        lines.append(report.result(name, f"peak_over_budget_{level}", max(over_budget), "%", min(over_budget),
                                   max(over_budget)))
    return lines


def full_memory_samples(measured, name):
    """[with the plan, without], seconds of whole runs; or None."""
    cells = [metrics.cell(measured, name, FULL, way) for way in (PLAN, "farheap")]
    return None if any(one is None or one.bounded for one in cells) else [one.seconds for one in cells]


def plan_sizes(facts):
    """Bytes of each plan that was made."""
    return [len(base64.b64decode(one["plan"])) for one in facts.get("trainings", []) if one["plan"]]


def refusals(facts):
    """Why there is none, for each training without a plan."""
    return [one["why_none"] for one in facts.get("trainings", []) if one["why_none"]]


def program_results(measured, name):
    facts = measured.programs[name]
    lines = [report.result(name, "peak_plain", facts["peak_bytes"] / MIB, "MiB")]
    if plan_sizes(facts):
        lines.append(metrics.line(name, "hint_bytes", plan_sizes(facts), "bytes"))
    for level in measured.levels():
        cells = cells_of(measured, name, level)
        lines += time_results(measured, name, level, cells) + moved_results(measured, name, level, cells)
    samples = full_memory_samples(measured, name)
    if samples:
        lines.append(metrics.slowdown_line(name, samples))
    return [one for one in lines if one]


def summary_line(group, metric, lines):
    """The geometric mean; `min` and `max` are those of the programs. None where the bounds pull both ways."""
    bounds = {one["bound"] for one in lines if "bound" in one}
    found = [one["value"] for one in lines]
    if len(bounds) > 1 or min(found) <= 0:
        return None
    return report.result(group, metric, report.geometric_mean(found), lines[0]["unit"], min(found), max(found),
                         bounds.pop() if bounds else None)


def group_results(measured, group, members, results):
    lines = []
    mine = [one for one in results if one["name"] in members and one["metric"].startswith(SUMMED)]
    for metric in sorted({one["metric"] for one in mine}):
        lines.append(summary_line(group, metric, [one for one in mine if one["metric"] == metric]))
    samples = [one for name in members for one in full_memory_samples(measured, name) or ()]
    if samples:
        lines.append(metrics.slowdown_line(group, samples))
    return [one for one in lines if one]


def groups(measured):
    """{group: its programs that were measured}, those without programs left out."""
    named = {"sweeping": SWEEPING, "random": RANDOM, "mixed": MIXED, "all": tuple(measured.programs)}
    found = {group: [name for name in measured.programs if name in members] for group, members in named.items()}
    return {group: members for group, members in found.items() if members}


def results_of(measured):
    results = [line for name in measured.programs for line in program_results(measured, name)]
    summary = []
    for group, members in groups(measured).items():
        summary += group_results(measured, group, members, results)
    return results + summary
