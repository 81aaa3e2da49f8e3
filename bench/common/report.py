# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a benchmark prints: results with spread as JSON, a table for people, a plot, the machine."""

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


def _gnuplot(path, groups, ways, title, axis):
    terminal = "svg size 900,480 font 'sans,12' background 'white'" if path.endswith(".svg") else "png size 900,480"
    lines = [f"set terminal {terminal}", f"set output '{path}'", "set style data histogram",
             "set style histogram clustered gap 1", "set style fill solid 0.85 border -1", "set boxwidth 0.9",
             "set logscale y", f"set ylabel '{axis}'", f"set title '{title}'", "set key top left", "set grid ytics",
             "$data << END", "program " + " ".join(f'"{way}"' for way in ways)]
    for name, values in groups.items():
        lines.append(f'"{name}" ' + " ".join("-" if values.get(way) is None else f"{values[way]:.4g}" for way in ways))
    lines += ["END", "set datafile missing '-'", "set xtics noenhanced",
              "plot " + ", ".join(f"$data using {i + 2}:xtic(1) title columnheader({i + 2})"
                                  for i in range(len(ways)))]
    done = subprocess.run(["gnuplot"], input="\n".join(lines), capture_output=True, text=True, check=False)
    return None if done.returncode == 0 else f"gnuplot failed: {done.stderr.strip()}"


def _matplotlib(path, groups, ways, title, axis):
    import matplotlib  # pylint: disable=import-outside-toplevel
    matplotlib.use("Agg")
    from matplotlib import pyplot  # pylint: disable=import-outside-toplevel
    figure, axes = pyplot.subplots(figsize=(9, 4.8))
    width = 0.8 / len(ways)
    for i, way in enumerate(ways):
        places = [k + i * width for k in range(len(groups))]
        axes.bar(places, [values.get(way) or 0 for values in groups.values()], width, label=way)
    axes.set_xticks([k + 0.4 - width / 2 for k in range(len(groups))], list(groups))
    axes.set_yscale("log")
    axes.set_ylabel(axis)
    axes.set_title(title)
    axes.legend()
    figure.savefig(path)


def plot(path, groups, ways, title, axis):
    """Clustered bars: groups is {name: {way: value or None}}. Returns None, or why there is no plot."""
    if not path.endswith((".svg", ".png")):
        return f"cannot plot to {path}: the name must end in .svg or .png"
    if shutil.which("gnuplot"):
        return _gnuplot(path, groups, ways, title, axis)
    try:
        _matplotlib(path, groups, ways, title, axis)
    except ImportError:
        return "no plot: neither gnuplot nor matplotlib is here (apt install gnuplot-nox)"
    return None
