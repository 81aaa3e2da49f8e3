# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From the figures of a run, or of several (--from), to what is drawn: one panel for each question that they answer."""

import json

import report
import table61

GROUPS = ("kmeans_like", "random_look_ups")
# metric: (title, axis, scale: whether the figure is percent of growth)
OF_PROGRAMS = {
    "slowdown_local": ("All data in memory", "time / time by plain clang", False),
    "slowdown_local_run": ("All data in memory, farheap run", "time / time by plain clang", False),
    "speedup_50_over_uninstrumented": ("Half of the memory", "time by plain clang / time", False),
    "compile_time_ratio": ("Compile time", "time / time by plain clang", False),
    "instruction_growth": ("Instructions", "after / before", True),
    "text_growth": ("Machine code", "bytes / bytes by plain clang", True),
}


def of_programs(results, metric):
    title, axis, is_growth = OF_PROGRAMS[metric]
    values = {}
    for line in results:
        level, _, case = line["name"].partition(".")
        if line["metric"] == metric and case and case not in GROUPS:
            values.setdefault(case, {})[level] = 1 + line["value"] / 100 if is_growth else line["value"]
    levels = list(dict.fromkeys(level for row in values.values() for level in row))
    return report.Panel(title, axis, {case: {level: row.get(level) for level in levels} for case, row in values.items()})


def short(name):
    return name.replace("translate-", "").replace("heap.heap.", "heap.").replace("cached_flushed", "flushed")


def of_the_seed(results):
    """A panel for each test, one for the stores themselves, and one for what was asked for as ratios."""
    us = {line["name"]: line["value"] for line in results if line["metric"] == "table61_us"}
    stores = [store for store in table61.STORES if any(name.endswith("." + store) for name in us)]

    def panel(title, axis, rows):
        return report.Panel(title, axis, {name: row for name, row in rows.items() if any(row.values())})

    shown = [panel(f"Table 6.1, a call of {test}", "microseconds",
                   {short(way): {store: us.get(f"{test}.{way}.{store}", us.get(f"{test}.{way}")) for store in stores}
                    for way in table61.WAYS}) for test in table61.TESTS]
    shown.append(panel("The stores themselves, one at a time", "microseconds",
                       {own: {store: us.get(f"{own}.{store}") for store in stores} for own in table61.OWN}))
    values = {(line["metric"], line["name"]): line["value"] for line in results}
    asked = {store: {} for store in stores}
    for over, _, _, bound, metric in table61.BOUNDS:
        what = f"{short(over.removesuffix('.{store}'))} {metric.removeprefix('table61_').replace('_', ' ')} ({bound:g})"
        ratios = {store: values.get((metric, over.format(store=store))) for store in stores}
        for store in stores if any(ratios.values()) else ():
            asked[store][what] = ratios[store]
    return [panel("Table 6.1, what was asked for (at most)", "ratio", asked), *shown]


def panels(results):
    shown = [*(of_programs(results, metric) for metric in OF_PROGRAMS), *of_the_seed(results)]
    return [panel for panel in shown if panel.groups]


def read_results(paths):
    """Of several files, which must not have a figure twice. Raises ValueError."""
    results, seen = [], {}
    for path in paths:
        with open(path, encoding="utf-8") as file:
            read = json.load(file)
        if read.get("bench") != "translate" or read.get("format") != report.FORMAT:
            raise ValueError(f"{path}: not figures of this benchmark, or of another format")
        for line in read["results"]:
            key = line["name"], line["metric"]
            if key in seen and line["metric"] != "load_average":
                raise ValueError(f"{path}: {key[0]} {key[1]} is in {seen[key]}, too")
            seen[key] = path
            results.append(line)
    return results
