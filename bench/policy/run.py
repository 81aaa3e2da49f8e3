#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs policy_sim of a build: which eviction policy pays on which trace. `./dev bench policy [--json FILE]`."""
import argparse
import os
import subprocess
import sys

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--build", default=os.environ.get("FARHEAP_BUILD", "build/release"))
parser.add_argument("--json", metavar="FILE")
parser.add_argument("--trace", nargs="+", metavar=("BUDGET_BYTES", "FILE"), help="recorded traces instead")
arguments = parser.parse_args()
program = os.path.join(arguments.build, "bench", "policy", "policy_sim")
if not os.path.exists(program):
    sys.exit(f"{program} is not there: build it with `./dev build release`")
options = ["--json", arguments.json] if arguments.json else []
if arguments.trace:
    options = ["--trace", *arguments.trace]
sys.exit(subprocess.call([program, *options]))
