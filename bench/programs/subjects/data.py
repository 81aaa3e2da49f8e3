# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Frames of data."""

import subprocess

from subject import Job, Subject, environment, script


class Pandas(Subject):
    name = "pandas_merge"
    does = "groups, merges and sorts 1,400,000 rows"

    def missing(self):
        done = subprocess.run(["/usr/bin/python3", "-c", "import pandas"], capture_output=True, check=False)
        return None if done.returncode == 0 else "pandas is not installed: apt install python3-pandas"

    def prepare(self, folder):
        return Job(["/usr/bin/python3", script("frames.py"), "1400000"],
                   env=environment(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1"))


class R(Subject):
    name = "r_frames"
    does = "merges, orders and aggregates a frame of 300,000 rows"
    tools = (("Rscript", "r-base-core"),)
    unrecorded = "its front end, a shell, becomes it: one process, and two recordings"

    def prepare(self, folder):
        return Job(["Rscript", "--vanilla", script("frames.R"), "300000"], env=environment())
