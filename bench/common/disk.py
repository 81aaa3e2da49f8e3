# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the disk of a folder can do, as `farheap store bench` measures it: without the page cache, one ring."""

import json
import os
import subprocess

# The tool's results that are wanted: its name for each -> the name here.
SINGLE_READ, READS, WRITES = "single_read", "reads", "writes"
WANTED = {"get 4.0 KiB, single": SINGLE_READ, "get 1.0 MiB, sequential, batch": READS,
          "put 1.0 MiB, sequential, batch": WRITES}


def measure(tool, folder):
    """{name: median}: single_read in us, reads and writes in MB/s; raises ValueError where it says nothing."""
    done = subprocess.run([tool, "store", "bench", "--json", f"file:{os.path.abspath(folder)}"], capture_output=True,
                          text=True, check=False)
    if done.returncode != 0:
        raise ValueError(done.stderr.strip())
    found = {WANTED[one["name"]]: one["median"] for one in json.loads(done.stdout)["results"] if one["name"] in WANTED}
    if len(found) != len(WANTED):
        raise ValueError(f"farheap store bench says only {', '.join(found) or 'nothing'} of the disk")
    return found


def text(found):
    return (f"a single read of 4 KiB takes {found[SINGLE_READ]:.0f} us, in pieces of 1 MiB it reads "
            f"{found[READS] / 1000:.1f} and writes {found[WRITES] / 1000:.1f} GB/s")
