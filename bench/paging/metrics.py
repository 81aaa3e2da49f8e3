# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From what was measured to the metrics: pure functions, no run is made here.

A baseline that was killed or given up has a time that is too short, so every ratio over it is a lower bound; a farheap
run that was given up makes it an upper bound. Where both happened nothing is known, and there is no line.
"""

import dataclasses
import random

import report
from measurements import FULL, KILLED, SLOWER, TIMED_OUT, WELL
from report import MIB

SLOWED_MUCH = 5.0  # sweeping programs count that swap slows by so much
SLOWED_AT_ALL = 1.1  # below it no time was lost that could be recovered
RESAMPLES = 2000
BASELINES = ("swap", "mlock")
CLASSES = ("sweeping", "random")


@dataclasses.dataclass
class Cell:
    """The runs of one program at one level in one way, with the setting that was best in the first turn."""
    records: list
    seconds: list
    setting: dict

    @property
    def bounded(self):
        return any(one.ended != WELL for one in self.records)

    @property
    def kills(self):
        return sum(one.kills for one in self.records)

    @property
    def middle(self):
        return report.spread(self.seconds)[0]


def best_setting(records):
    """Of several that were tried in the first turn: the fastest; one that ended rather than one that did not. None
    without records."""
    rank = {WELL: 0, TIMED_OUT: 1, KILLED: 2, SLOWER: 3}
    tried = [one for one in records if one.turn == 0]
    best = min(tried, key=lambda one: (rank[one.ended], one.seconds), default=None)
    return best.setting if best else None


def cell(measured, program, level, way):
    """None without runs."""
    records = measured.of(program, level, way)
    setting = best_setting(records)
    records = [one for one in records if one.setting == setting and one.ended != SLOWER]
    if not records:
        return None
    least = 0.0
    if way != "plain":
        plain = cell(measured, program, level, "plain")
        least = plain.middle if plain else 0.0
    # A killed program would have taken at least as long as one with all its memory.
    seconds = [max(one.seconds, least) if one.ended == KILLED else one.seconds for one in records]
    return Cell(records, seconds, setting)


def line(name, metric, values, unit, bound=None):
    middle, low, high = report.spread(values)
    return report.result(name, metric, middle, unit, low, high, bound)


def ratio(name, metric, above, below):
    """above / below with the widest spread that the runs allow; None where nothing is known."""
    if above.bounded and below.bounded:
        return None
    bound = "lower" if above.bounded else "upper" if below.bounded else None
    _, top_low, top_high = report.spread(above.seconds)
    _, bottom_low, bottom_high = report.spread(below.seconds)
    return report.result(name, metric, above.middle / below.middle, "x", top_low / bottom_high, top_high / bottom_low,
                         bound)


def recovered(name, metric, plain, swap, farheap):
    """The share of the time lost to swap that farheap gets back; None where swap takes none."""
    if farheap.bounded or swap.middle < SLOWED_AT_ALL * plain.middle:
        return None

    def share(seconds):
        return (swap.middle - seconds) / (swap.middle - plain.middle)
    _, low, high = report.spread(farheap.seconds)
    return report.result(name, metric, share(farheap.middle), "share", share(high), share(low),
                         "lower" if swap.bounded else None)


def interval(samples, value_of):
    """95 % of `value_of(resampled)`: the percentile bootstrap, the same in every call."""
    source = random.Random(1)
    values = sorted(value_of([source.choices(sample, k=len(sample)) for sample in samples]) for _ in range(RESAMPLES))
    return values[int(0.025 * RESAMPLES)], values[int(0.975 * RESAMPLES)]


def slowdown(samples):
    """samples: farheap, plain, farheap, plain, ... seconds; the geometric mean of the ratios of their medians."""
    return report.geometric_mean([report.spread(samples[i])[0] / report.spread(samples[i + 1])[0]
                                  for i in range(0, len(samples), 2)])


def full_memory_samples(measured, name):
    """[farheap's seconds, plain's], or None."""
    cells = [cell(measured, name, FULL, way) for way in ("farheap", "plain")]
    if any(one is None or one.bounded for one in cells):
        return None
    return [one.seconds for one in cells]


def slowdown_line(name, samples):
    low, high = interval(samples, slowdown)
    return report.result(name, "slowdown_full_memory", slowdown(samples), "x", low, high)


def over_optimum(name, level, counted, metric, farheap, optimum):
    """What was moved, and how much more that is than an oracle moves, who has two bounds: the value is the higher."""
    values = [value for one in farheap.records if (value := getattr(one, counted)) is not None] if farheap else []
    if values:
        yield line(name, f"{counted}_{level}", [value / MIB for value in values], "MiB")
    if not optimum:
        return
    least, most = optimum[counted], max(optimum[counted], optimum[f"{counted}_at_most"])
    yield report.result(name, f"{metric}_optimum_{level}", least / MIB, "MiB", least / MIB, most / MIB)
    if values and least:
        middle, low, high = report.spread(values)
        yield report.result(name, f"{metric}_over_optimum_{level}", middle / least, "x", low / most, high / least)


def level_results(measured, name, level):
    cells = {way: cell(measured, name, level, way) for way in ("plain", *BASELINES, "farheap")}
    lines = [line(name, f"seconds_{way}_{level}", one.seconds, "s", "lower" if one.bounded else None)
             for way, one in cells.items() if one]
    plain, swap, farheap = cells["plain"], cells["swap"], cells["farheap"]
    for way in BASELINES:
        if not cells[way]:
            continue
        lines.append(report.result(name, f"oom_kills_{way}_{level}", cells[way].kills, "kills"))
        units = {"page_cluster": "log2 pages", "share": "% of the budget"}
        lines += [report.result(name, f"{way}_{key}_{level}", value, units.get(key, ""))
                  for key, value in cells[way].setting.items()]
        if farheap:
            lines.append(ratio(name, f"speedup_over_{way}_{level}", cells[way], farheap))
    if plain and swap:
        lines.append(ratio(name, f"slowdown_by_swap_{level}", swap, plain))
    if plain and swap and farheap:
        lines.append(recovered(name, f"recovered_{level}", plain, swap, farheap))
    for counted, metric in (("bytes_read", "read"), ("bytes_written", "written")):
        lines += over_optimum(name, level, counted, metric, farheap, measured.optima.get((name, level)))
    return [one for one in lines if one]


def program_results(measured, name):
    lines = [report.result(name, "peak_plain", measured.programs[name]["peak_bytes"] / MIB, "MiB")]
    for level in measured.levels():
        lines += level_results(measured, name, level)
    runs = measured.under_farheap(name)
    short = measured.peaks(name)
    if short:
        over = [one.peak_bytes - one.budget_bytes for one in short]
        percents = [100 * more / one.budget_bytes for more, one in zip(over, short)]
        lines.append(report.result(name, "peak_over_budget", max(percents), "%", min(percents), max(percents)))
        lines.append(report.result(name, "peak_over_budget_mib", max(over) / MIB, "MiB", min(over) / MIB,
                                   max(over) / MIB))
    if runs:
        lines.append(report.result(name, "oom_kills", sum(one.kills for one in runs), "kills"))
    samples = full_memory_samples(measured, name)
    if samples:
        lines.append(slowdown_line(name, samples))
    return lines


def _bound_of(lines):
    """None, "lower" or "upper" for what is made of these; "unknown" when they pull both ways."""
    bounds = {one["bound"] for one in lines if "bound" in one}
    return bounds.pop() if len(bounds) == 1 else "unknown" if bounds else None


def summary_line(group, metric, lines):
    """The same metric over several programs: a geometric mean, the least that was recovered, the sum of the kills, the
    largest overshoot. None for what is not summed up."""
    values = [one["value"] for one in lines]
    unit, bound = lines[0]["unit"], _bound_of(lines)
    if metric.startswith(("speedup_over", "read_over", "written_over", "slowdown_by")):
        if bound == "unknown" or min(values) <= 0:
            return None
        return report.result(group, metric, report.geometric_mean(values), unit, min(values), max(values), bound)
    if metric.startswith("recovered"):
        return report.result(group, metric, min(values), unit, min(values), max(values), bound)
    if metric.startswith("oom_kills"):
        return report.result(group, metric, sum(values), unit, min(values), max(values))
    if metric.startswith("peak_over_budget"):
        return report.result(group, metric, max(values), unit, min(values), max(values))
    return None


def slowed_much(results, level):
    """The programs that swap slows by SLOWED_MUCH or more at this level."""
    return {one["name"] for one in results
            if one["metric"] == f"slowdown_by_swap_{level}" and one["value"] >= SLOWED_MUCH}


def counts(metric, name, group, results):
    """Whether a program's metric goes into that of its group: a sweep that swap does not hurt is none to speed up."""
    if group != "sweeping" or not metric.startswith(("speedup_over", "recovered")):
        return True
    return name in slowed_much(results, metric.rpartition("_")[2])


def group_results(measured, results, group, members):
    lines = []
    for metric in sorted({one["metric"] for one in results}):
        chosen = [one for one in results
                  if one["metric"] == metric and one["name"] in members and counts(metric, one["name"], group, results)]
        summed = summary_line(group, metric, chosen) if chosen else None
        if summed:
            lines.append(summed)
    samples = [full_memory_samples(measured, name) for name in members]
    samples = [one for pair in samples if pair for one in pair]
    if samples:
        lines.append(slowdown_line(group, samples))
    return lines


def results_of(measured):
    results = []
    for name in measured.programs:
        results += program_results(measured, name)
    summary = []
    for group in (*CLASSES, "all"):
        members = [name for name, facts in measured.programs.items() if group in ("all", facts["class"])]
        summary += group_results(measured, results, group, members)
    return results + summary
