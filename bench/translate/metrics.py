# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From pairs of runs to the figures. A pair is two runs of one turn, one after the other: what a busy machine does to
one it does to the other, so that ratios are taken within pairs, and medians of ratios."""

import statistics

import report


class Pairs:
    """values[case] = [(of the reference, of the level), ...], one a turn."""

    def __init__(self):
        self.values = {}

    def add(self, case, reference, level):
        self.values.setdefault(case, []).append((reference, level))

    def ratios(self, case, inverse=False):
        """The level's over the reference's; the other way round for speed-ups."""
        return [one / other if inverse else other / one for one, other in self.values[case]]

    def spread(self, case, inverse=False):
        return report.spread(self.ratios(case, inverse))


def mean_of(pairs, cases, inverse=False):
    """The geometric mean of the cases' medians, and the least and the greatest of the turns' geometric means: of those
    turns that all of the cases have."""
    cases = [case for case in cases if case in pairs.values]
    if not cases:
        return None
    value = report.geometric_mean([pairs.spread(case, inverse)[0] for case in cases])
    turns = [report.geometric_mean(turn) for turn in zip(*(pairs.ratios(case, inverse) for case in cases))]
    return value, min(turns), max(turns)


def ratio_results(level, metric, pairs, inverse=False, groups=None):
    """A line for each case, one for each group of cases, and one for all."""
    results = []
    for case in pairs.values:
        value, low, high = pairs.spread(case, inverse)
        results.append(report.result(f"{level}.{case}", metric, value, "ratio", low, high))
    for name, cases in [*(groups or {}).items(), (None, list(pairs.values))]:
        found = mean_of(pairs, cases, inverse)
        if found:
            results.append(report.result(f"{level}.{name}" if name else level, metric, found[0], "ratio", *found[1:]))
    return results


def growth(before, after):
    """Percent."""
    return 100 * (after - before) / before


def growth_results(level, metric, sizes):
    """sizes[program] = (before, after); all of them together, with the least and the greatest of the programs."""
    if not sizes:
        return []
    each = {program: growth(*size) for program, size in sizes.items()}
    results = [report.result(f"{level}.{program}", metric, value, "%") for program, value in each.items()]
    whole = growth(sum(one for one, _ in sizes.values()), sum(other for _, other in sizes.values()))
    return [*results, report.result(level, metric, whole, "%", min(each.values()), max(each.values()))]


def median_of(values):
    return statistics.median(values)
