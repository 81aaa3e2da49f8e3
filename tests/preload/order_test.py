# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A program that says in which order it uses its memory, and other hints: `order_test.py --tool FARHEAP --guest PROGRAM
[--set KEY=VALUE] MODE`. MODE is one of the program's."""

import argparse
import json
import sys
import tempfile

from guest_run import run

MIB, MEMORY_MIB, ROUNDS = 96, 56, 5


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tool", required=True)
    parser.add_argument("--guest", required=True)
    parser.add_argument("--set", default=None)
    parser.add_argument("mode")
    wanted = parser.parse_args()
    if not json.loads(run(wanted.tool, "doctor", "--json")[0])["run_works"]:
        print("NOT TESTED: `farheap doctor` says that programs cannot be run here", flush=True)
        sys.exit(77)

    def paged(mode):
        with tempfile.TemporaryDirectory(prefix="farheap-preload-", dir="/var/tmp") as folder:
            settings = ("--set", wanted.set) if wanted.set else ()
            output, said = run(wanted.tool, "run", "--memory", f"{MEMORY_MIB}M", "--store", f"file:{folder}",
                               "--stats=json", *settings, "--", wanted.guest, MIB, ROUNDS, mode)
        report = json.loads(said.splitlines()[-1])
        keys = ("seconds", "faults", "faults_waited", "bytes_read", "bytes_read_ahead", "touches_expected",
                "touches_unexpected", "orders_given_up", "order_bytes_read", "order_bytes_expected")
        figures = {key: report[key] for key in keys}
        print(mode, figures, flush=True)
        return output, figures

    plain, _ = run(wanted.guest, MIB, ROUNDS, wanted.mode)
    output, figures = paged(wanted.mode)
    if output != plain:
        sys.exit(f"FAILED: other output:\n{plain}{output}")
    counted = figures["touches_expected"] + figures["touches_unexpected"]
    if wanted.mode in ("silent", "ended", "hints") and counted != 0:
        sys.exit("FAILED: an order is followed that nobody said, or that was taken back")
    if wanted.mode == "others" and figures["orders_given_up"] != 1:
        sys.exit("FAILED: an order that the program does not keep to is not given up")
    if wanted.mode in ("said", "early", "once"):
        if figures["touches_expected"] <= 4 * figures["touches_unexpected"] or figures["orders_given_up"] != 0:
            sys.exit("FAILED: what was said is not followed")
        if figures["bytes_read_ahead"] < figures["bytes_read"] / 2:
            sys.exit("FAILED: most of it was waited for")
        _, silent = paged("silent")
        if wanted.mode != "once" and figures["bytes_read"] > 0.9 * silent["bytes_read"]:
            sys.exit("FAILED: no less is read with the order than without")
        if figures["faults"] > silent["faults"]:
            sys.exit("FAILED: there are more faults with the order than without")


main()
