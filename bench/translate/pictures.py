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


def of_the_seed(results):
    """Two panels: microseconds a call, and what was asked for as ratios."""
    us = {line["name"]: line["value"] for line in results if line["metric"] == "table61_us"}
    stores = [store for store in table61.STORES if any(name.endswith("." + store) for name in us)]
    calls = {}
    for test in table61.TESTS:
        for way in table61.WAYS:
            row = {store: us.get(f"{test}.{way}.{store}", us.get(f"{test}.{way}")) for store in stores}
            if any(row.values()):
                calls[f"{test}, {way}"] = row
    for own in table61.OWN:
        if any(f"{own}.{store}" in us for store in stores):
            calls[own] = {store: us.get(f"{own}.{store}") for store in stores}
    ratios = {}
    for line in results:
        if line["metric"] in {metric for *_, metric in table61.BOUNDS}:
            name, _, store = line["name"].rpartition(".")
            ratios.setdefault(f"{name.replace('.', ', ', 1)}, {line['metric'].removeprefix('table61_').replace('_', ' ')}",
                              {})[store] = line["value"]
    return [report.Panel("Table 6.1: a call", "microseconds", calls),
            report.Panel("Table 6.1: what was asked for", "ratio", {name: {store: row.get(store) for store in stores}
                                                                    for name, row in ratios.items()})]


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
