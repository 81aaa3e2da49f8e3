# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs a program plainly and under `farheap run` with a small budget: the same output, the same end, and a peak
within the budget."""

import argparse
import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile

MIB = 1 << 20
# The kernel features of a Linux 6.1.
OLD_KERNEL = ["disable=move,wp_async,pagemap_scan"]
MODES = {
    "plain": ("file:{folder}", []),
    "linux_6_1": ("file:{folder}", OLD_KERNEL),
    "s3fifo": ("file:{folder}", ["policy=s3fifo"]),
    "lmdb": ("lmdb:{folder}", []),
    "encrypted": ("encrypt+file:{folder}", []),
    "checked": ("checksum+compress+file:{folder}", []),
    "one_handler": ("file:{folder}", ["handlers=1", "read_ahead=0", "block_max=64K"]),
    # As with sixteen processors.
    "many_processors": ("file:{folder}", ["fault_queues=4", "evictors=4"]),
    # A device that is busy: a batch of pages takes it a quarter of a second.
    "slow": ("slow+file:{folder}?mb_s=4", OLD_KERNEL),
    # As with large budgets, where plain memory has huge pages.
    "huge": ("file:{folder}", ["huge_pages_from=0"]),
    # What leaves stays in the process and counts: over the budget, and every process has its own copy.
    "mem": ("mem:", []),
}
CHECK_FAILED = 3  # of preload_cases


def die_with_parent():
    """ctest may kill this test, and what it runs has a session of its own."""
    PR_SET_PDEATHSIG = 1
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def run(command, environment, patience):
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
                               env=environment, start_new_session=True, preexec_fn=die_with_parent)
    try:
        output, errors = process.communicate(timeout=patience)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        output, errors = process.communicate()
        show("it printed", output)
        show("it complained", errors)
        sys.exit(f"FAILED: still running after {patience} s: {' '.join(command)}")
    return process.returncode, output, errors


def show(title, text):
    print(f"{title}:", flush=True)
    print(text.decode(errors="replace")[-4000:], flush=True)


def report_of(errors):
    for line in errors.decode(errors="replace").splitlines():
        start = line.find('{"format"')
        if start >= 0:
            return json.loads(line[start:])
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tool", required=True)
    parser.add_argument("--mode", choices=MODES, default="plain")
    parser.add_argument("--memory", type=int, default=32, help="MiB")
    parser.add_argument("--shares", action="store_true", help="a child that is about to become another program shares all")
    parser.add_argument("--over", action="store_true", help="it may go over its budget: it locks memory")
    parser.add_argument("--stays-plain", action="store_true", help="it need not come near its budget")
    parser.add_argument("--peak", type=int, help="MiB: what the report must show, within 8 MiB; all stays plain")
    parser.add_argument("--patience", type=int, default=100, help="seconds, after which it hangs")
    parser.add_argument("program", nargs=argparse.REMAINDER)
    wanted = parser.parse_args()
    program = wanted.program[1:] if wanted.program[:1] == ["--"] else wanted.program

    environment = {key: value for key, value in os.environ.items() if not key.startswith("FARHEAP_")}
    plain = run(program, environment, wanted.patience)
    folder = tempfile.mkdtemp(prefix="farheap-preload-", dir="/var/tmp")
    try:
        store, settings = MODES[wanted.mode]
        command = [wanted.tool, "run", "--memory", f"{wanted.memory}M", "--stats=json",
                   "--store", store.format(folder=folder)]
        for setting in settings:
            command += ["--set", setting]
        paged = run(command + ["--"] + program, environment, wanted.patience)
    finally:
        shutil.rmtree(folder, ignore_errors=True)

    complaints = []
    if plain[0] == CHECK_FAILED:
        complaints.append("it fails plainly")
    report = report_of(paged[2])
    # As a shell, the tool answers 128 + N for a program that signal N ended.
    expected = plain[0] if plain[0] >= 0 else 128 - plain[0]
    got = paged[0] if paged[0] >= 0 else 128 - paged[0]
    if got != expected:
        complaints.append(f"ended with {got}, plainly with {expected}")
    if paged[1] != plain[1]:
        complaints.append("other output")
    if report is None:
        complaints.append("no report")
    else:
        budget = wanted.memory * MIB
        limit = budget + max(budget // 50, 8 * MIB)
        if wanted.shares:  # each of the two is counted with it, though there is one copy
            limit += budget
        if report["peak_bytes"] > limit and not wanted.over and wanted.mode != "mem":
            complaints.append(f"peak {report['peak_bytes'] / MIB:.1f} MiB of a budget of {wanted.memory} MiB")
        if wanted.peak is not None and abs(report["peak_bytes"] / MIB - wanted.peak) > 8:
            complaints.append(f"a peak of {report['peak_bytes'] / MIB:.1f} MiB was reported, not {wanted.peak} MiB")
        if wanted.peak is not None and report["paging_processes"] != 0:
            complaints.append("it was paged: the peak tells nothing")
        if report["faults"] == 0 and not wanted.stays_plain:
            complaints.append("nothing was paged: this tests nothing")
        print({key: report[key] for key in ("seconds", "peak_bytes", "processes", "paging_processes", "faults",
                                            "bytes_read", "bytes_written", "stall_seconds")}, flush=True)
    if b"NOT TESTED" in paged[2] or b"NOT TESTED" in plain[2]:
        print("NOT TESTED (see below)", flush=True)
        show("it said", paged[2])
        if not complaints:
            sys.exit(77)
    if complaints:
        show("plain output", plain[1])
        show("output", paged[1])
        show("errors", paged[2])
        sys.exit("FAILED: " + "; ".join(complaints))


main()
