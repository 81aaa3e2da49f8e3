# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Finds the built tool, makes its command lines and reads the numbers it prints."""

import json
import os
import sys

FORMAT = 1
MASK_LINUX_6_1 = "move,wp_async,pagemap_scan"  # what a kernel of Debian 12 does not have


def find_build(given=None):
    """The build folder: the argument, or FARHEAP_BUILD, or build/release of this repository."""
    repository = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    return os.path.abspath(given or os.environ.get("FARHEAP_BUILD") or os.path.join(repository, "build/release"))


def find_tool(build):
    """The tool in a build folder, or None."""
    for place in ("tool/farheap", "bin/farheap", "farheap"):
        path = os.path.join(build, place)
        if os.access(path, os.X_OK) and os.path.isfile(path):
            return path
    return None


def run_command(tool, budget_bytes, command, *, store=None, mask=False, settings=(), plan=None, stats=True):
    """`settings`: further key=value of --set. `plan`: the path of one to follow."""
    words = [tool, "run", "--memory", str(budget_bytes)]
    if store:
        words += ["--store", store]
    if plan:
        words += ["--plan", plan]
    words += ["--stats=json"] if stats else ["--quiet"]
    if mask:
        words += ["--set", f"disable={MASK_LINUX_6_1}"]
    for setting in settings:
        words += ["--set", setting]
    return words + ["--", *command]


def hints_command(tool, budget_bytes, command, hints, profile, share=None):
    """Kernel swap with the seeds' hints. `hints`: kernel:mlock or kernel:madvise; `share`: per cent that is locked."""
    words = [tool, "run", "--memory", str(budget_bytes), f"--hints={hints}", "--plan", profile, "--stats=json",
             "--quiet"]
    return words + (["--hints-share", str(share)] if share else []) + ["--", *command]


def parse_stats(stderr):
    """The last JSON object with a format number on stderr, whatever the program itself wrote there; or None."""
    text = stderr.decode("utf-8", "replace")
    decoder = json.JSONDecoder()
    at = len(text)
    while (at := text.rfind("{", 0, at)) >= 0:
        try:
            found, _ = decoder.raw_decode(text, at)
        except json.JSONDecodeError:
            continue
        if isinstance(found, dict) and "format" in found:
            if found["format"] != FORMAT:
                raise ValueError(f"the tool prints format {found['format']}, this script reads {FORMAT}")
            return found
    return None


def counter(stats, name):
    """A counter of base::RunCounters, at the top of the object or in its `counters`."""
    for place in (stats, stats.get("counters", {})):
        if name in place:
            return int(place[name])
    raise KeyError(f"the tool's statistics have no '{name}': {json.dumps(stats)}")


def complain(text):
    """One loud line on stderr."""
    colour = sys.stderr.isatty() and "NO_COLOR" not in os.environ
    print(f"\033[1;33m{text}\033[0m" if colour else text, file=sys.stderr, flush=True)
