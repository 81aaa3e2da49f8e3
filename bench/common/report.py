# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a benchmark prints: results with spread as JSON, a table for people, a plot, the machine."""

import dataclasses
import json
import math
import os
import platform
import shutil
import statistics
import subprocess
import sys

FORMAT = 1
MIB = 1 << 20


def result(name, metric, value, unit, low=None, high=None, bound=None):
    """One line of the JSON file. `bound`: "lower" or "upper" when the value is only a bound of the true one."""
    line = {"name": name, "metric": metric, "value": value, "unit": unit,
            "min": value if low is None else low, "max": value if high is None else high}
    if bound:
        line["bound"] = bound
    return line


def spread(values):
    return statistics.median(values), min(values), max(values)


def geometric_mean(values):
    return math.exp(sum(math.log(value) for value in values) / len(values))


def write_json(path, bench, results, **more):
    folder = os.path.dirname(os.path.abspath(path))
    os.makedirs(folder, exist_ok=True)
    with open(path, "w", encoding="utf-8") as out:
        json.dump({"format": FORMAT, "bench": bench, **more, "results": results}, out, indent=1)
        out.write("\n")


def seconds_text(values, bound=False):
    middle, low, high = spread(values)
    text = f"{middle:.3g} s"
    if len(values) > 1:
        text += f" ({low:.3g}-{high:.3g})"
    return f">= {text}" if bound else text


def print_table(head, rows, out=sys.stdout):
    cells = [head, *[[str(cell) for cell in row] for row in rows]]
    widths = [max(len(row[i]) for row in cells) for i in range(len(head))]
    bold = out.isatty() and "NO_COLOR" not in os.environ
    for number, row in enumerate(cells):
        line = "  ".join(cell.ljust(width) if i == 0 else cell.rjust(width)
                         for i, (cell, width) in enumerate(zip(row, widths))).rstrip()
        print(f"\033[1m{line}\033[0m" if bold and number == 0 else line, file=out, flush=True)


def markdown_table(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def machine(folder):
    """One line on where the numbers come from."""
    model = "unknown processor"
    with open("/proc/cpuinfo", encoding="utf-8") as lines:
        for line in lines:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / (1 << 30)
    file_system = subprocess.run(["findmnt", "-no", "FSTYPE", "-T", folder], capture_output=True, text=True,
                                 check=False).stdout.strip() or "unknown file system"
    return (f"Linux {platform.release()}, {os.cpu_count()} x {model}, {memory:.0f} GiB, "
            f"store and swap on {file_system}")


@dataclasses.dataclass
class Panel:
    """Clustered bars on a logarithmic axis that begins at 1: {group: {way: value or None}}, the same ways in each."""
    title: str
    axis: str
    groups: dict

    def ways(self):
        return list(next(iter(self.groups.values()), {}))

    def script(self, number):
        data = f"$data{number}"
        lines = [f"{data} << END", "group " + " ".join(f'"{way}"' for way in self.ways())]
        for name, values in self.groups.items():
            cells = ("-" if value is None else f"{value:.4g}" for value in values.values())
            lines.append(f'"{name}" ' + " ".join(cells))
        bars = (f"{data} using {i + 2}:xtic(1) title columnheader({i + 2})" for i in range(len(self.ways())))
        values = [value for row in self.groups.values() for value in row.values() if value]
        least, most = min(values, default=1.0), max(values, default=1.0)
        floor = 1.0 if least >= 1 else least * 0.7  # so that the shortest bar is seen
        # Powers of ten alone would be one line or two where all is near to one another.
        is_wide = most > 30 * floor
        tics = "autofreq" if is_wide else "(0.1, 0.2, 0.5, 0.7, 1, 1.5, 2, 5, 10, 20, 50, 100)"
        labels = [f"set yrange [{floor}:{'*' if is_wide else most * 1.2}]", f"set ytics {tics}",
                  f"set title '{self.title}' noenhanced", f"set ylabel '{self.axis}' noenhanced"]
        return [*lines, "END", *labels, "plot " + ", ".join(bars)]


def plot(path, panels):
    """The first panel over the whole width, the others below it, up to three beside each other. Returns None, or why
    there is no plot."""
    if not path.endswith((".svg", ".png")):
        return f"cannot plot to {path}: the name must end in .svg or .png"
    if not panels:
        return "no plot: nothing was measured that it could show"
    if not shutil.which("gnuplot"):
        return "no plot: gnuplot is not here (apt install gnuplot-nox)"
    others = len(panels) - 1
    below = max(1, others if others <= 3 else 2)  # in a row
    rows = 1 + -(-others // below)
    size = f"1100,{440 * rows}"
    terminal = f"svg size {size} font 'sans,12' background 'white'" if path.endswith(".svg") else f"png size {size}"
    lines = [f"set terminal {terminal}", f"set output '{path}'", "set style data histogram",
             "set style histogram clustered gap 1", "set style fill solid 0.85 border -1", "set boxwidth 0.9",
             "set logscale y", "set key outside center bottom horizontal noenhanced samplen 1",
             "set rmargin 10", "set grid ytics", "set datafile missing '-'",
             "set xtics noenhanced rotate by -30", "set multiplot"]
    for number, panel in enumerate(panels):
        width, left = (1.0, 0.0) if number == 0 else (1.0 / below, (number - 1) % below / below)
        row = 0 if number == 0 else 1 + (number - 1) // below
        bottom = (rows - 1 - row) / rows
        lines += [f"set size {width},{1.0 / rows}", f"set origin {left},{bottom}", *panel.script(number)]
    done = subprocess.run(["gnuplot"], input="\n".join([*lines, "unset multiplot"]), capture_output=True, text=True,
                          check=False)
    return None if done.returncode == 0 else f"gnuplot failed: {done.stderr.strip()}"
