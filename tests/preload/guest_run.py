# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs programs to their end, for tests that are scripts of their own."""

import os
import signal
import subprocess
import sys

PATIENCE = 200  # seconds, after which it hangs
ENVIRONMENT = {key: value for key, value in os.environ.items() if not key.startswith("FARHEAP_")}


def run(*words):
    """Its output and errors. Ends the test where it fails or hangs."""
    command = [str(word) for word in words]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT,
                               stdin=subprocess.DEVNULL, start_new_session=True)
    try:
        output, errors = process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        sys.exit(f"FAILED: still running after {PATIENCE} s: {' '.join(command)}")
    if process.returncode != 0:
        sys.exit(f"FAILED: ended with {process.returncode}: {' '.join(command)}\n{errors}")
    return output, errors
