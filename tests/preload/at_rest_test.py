# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a run's store file holds while the program runs, and what is left of it: with encrypt+ no plaintext, without it
plaintext (so that this test can fail); no name, nobody else's to read, and nothing left after kill -9."""

import argparse
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

MARKER = b"farheap-at-rest-plaintext-marker"
GUEST = pathlib.Path(__file__).with_name("at_rest_guest.py")


def store_files(process, folder):
    """The files in `folder` that the process has open, nameless ones included."""
    found = []
    for descriptor in pathlib.Path(f"/proc/{process}/fd").iterdir():
        try:
            if os.readlink(descriptor).startswith(folder):
                found.append(descriptor)
        except FileNotFoundError:
            pass
    return found


def holds_marker(path):
    """Whether the file holds the marker somewhere, read in pieces that overlap."""
    rest = b""
    with open(path, "rb") as file:
        while piece := file.read(1 << 20):
            if MARKER in rest + piece:
                return True
            rest = piece[-len(MARKER):]
    return False


def look_into(files, readable):
    """Faults of the open store files."""
    faults = [] if files else ["the program has no store file open: nothing is tested"]
    written = sum(os.stat(file).st_blocks * 512 for file in files)
    if written < 32 << 20:
        faults.append(f"only {written} bytes are in the store")
    for file in files:
        status = os.stat(file)
        if status.st_nlink != 0:
            faults.append(f"{os.readlink(file)} has a name")
        if status.st_mode & 0o7777 != 0o600:
            faults.append(f"{os.readlink(file)} has mode {status.st_mode & 0o7777:o}")
    if any(holds_marker(file) for file in files) != readable:
        faults.append("plaintext is " + ("not " if readable else "") + "in the store file")
    return faults


def try_store(tool, decorators, how_it_ends):
    faults = []
    environment = {key: value for key, value in os.environ.items() if not key.startswith("FARHEAP_")}
    environment["FARHEAP_ENCRYPT_KEY"] = "5a" * 32
    with tempfile.TemporaryDirectory(prefix="farheap-rest-", dir="/var/tmp") as folder:
        command = [tool, "run", "--memory", "64M", "--store", f"{decorators}file:{folder}", "--", sys.executable, GUEST]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, umask=0,
                              env=environment) as run:
            line = run.stdout.readline()
            if not line.startswith("no key"):
                faults.append(f"the program says: {line!r}")
            process = int(line.split()[-1])
            faults += look_into(store_files(process, folder), readable=not decorators)
            if how_it_ends == signal.SIGKILL:
                os.kill(process, signal.SIGKILL)
            run.communicate()
        if run.returncode != (128 + 9 if how_it_ends == signal.SIGKILL else 0):
            faults.append(f"it ended with {run.returncode}")
        if left := os.listdir(folder):
            faults.append(f"left behind: {left}")
    return [f"{decorators}file: {fault}" for fault in faults]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tool", required=True)
    parser.add_argument("--encrypts", action="store_true")
    wanted = parser.parse_args()
    faults = try_store(wanted.tool, "", signal.SIGKILL)
    if wanted.encrypts:
        faults += try_store(wanted.tool, "encrypt+", None) + try_store(wanted.tool, "encrypt+", signal.SIGKILL)
    else:
        print("NOT TESTED: this build is without encrypt+")
    if faults:
        sys.exit("FAILED: " + "; ".join(faults))


main()
