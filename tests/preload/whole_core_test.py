# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A program fills 96 MiB under 32 MiB and aborts; `farheap core` makes its core whole, and gdb reads from it what the
program had written. From the core as it was, gdb reads zeros."""

import argparse
import mmap
import os
import pathlib
import random
import re
import resource
import shutil
import socket
import subprocess
import sys
import tempfile

MASK = (1 << 64) - 1
FACTOR = 0x9E3779B97F4A7C15
COUNT = (96 << 20) // 8 - 512


def why_not():
    """Where the kernel puts cores is a setting of the whole machine, which a test leaves alone."""
    pattern = pathlib.Path("/proc/sys/kernel/core_pattern").read_text(encoding="utf-8").strip()
    if pattern.startswith("|") or "/" in pattern or not pattern:
        return f"kernel.core_pattern is '{pattern}', not a name in the current folder"
    if resource.getrlimit(resource.RLIMIT_CORE)[1] != resource.RLIM_INFINITY:
        return "the hard limit of RLIMIT_CORE is not unlimited"
    if shutil.which("gdb") is None:
        return "gdb is not installed"
    return None


def expected(index, forked):
    """What the guest has written there."""
    if index // 512 % 100 == 0:
        return 0 if index != 1 else None  # a sum
    factor = FACTOR + 2 if forked and index < COUNT // 2 else FACTOR
    return (index + 1) * factor & MASK


def words_by_gdb(guest, core, indices):
    commands = [part for index in indices for part in ("-ex", f'printf "<%lx>\\n", g_words[{index}]')]
    done = subprocess.run(["gdb", "-batch", "-nx", *commands, guest, core], check=False, capture_output=True,
                          text=True, timeout=200)
    words = [int(word, 16) for word in re.findall(r"^<([0-9a-f]+)>", done.stdout, re.MULTILINE)]
    if len(words) != len(indices):
        sys.exit(f"FAILED: gdb read {len(words)} of {len(indices)} words:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    return words


class Run:
    """One run of the guest, in a folder that goes with it."""

    def __init__(self, wanted, settings, guest_words=(), live=False):
        self.wanted = wanted
        self.folder = tempfile.TemporaryDirectory(prefix="farheap-core-", dir="/var/tmp")
        self.environment = {key: value for key, value in os.environ.items() if not key.startswith("FARHEAP_")}
        self.key = f"{self.folder.name}/key"
        with open(os.open(self.key, os.O_CREAT | os.O_WRONLY, 0o600), "w", encoding="utf-8") as file:
            file.write("5a" * 32)
        self.stores = f"{self.folder.name}/stores"
        os.mkdir(self.stores)
        os.symlink(self.stores, f"{self.folder.name}/link")
        place = f"{self.folder.name}/link" if live else self.stores  # the kernel names the files in another way
        self.place = f"{wanted.decorators}file:{place}"
        command = [wanted.tool, "run", "--memory", "32M", "--store", self.place]
        for setting in settings:
            command += ["--set", setting]
        if wanted.decorators:
            command += ["--set", f"encrypt_key_file={self.key}"]
        command += ["--", wanted.guest, *guest_words]
        if live:
            self.process = subprocess.Popen(command, cwd=self.folder.name, stdout=subprocess.PIPE, text=True,
                                            stderr=subprocess.PIPE, env=self.environment)
            return
        self.done = subprocess.run(command, cwd=self.folder.name, check=False,
                                   capture_output=True, text=True, timeout=100, env=self.environment)

    def store(self):
        """As `farheap run` says it: where the stores of the run are."""
        folders = [path.name for path in pathlib.Path(self.stores).glob("farheap-core-*")]
        return f"{self.place}/{folders[0]}" if folders else self.place

    def core(self):
        cores = list(pathlib.Path(self.folder.name).glob("core*"))
        if len(cores) != 1:
            sys.exit(f"FAILED: not one core: {cores}\n{self.done.stderr}")
        return cores[0]

    def make_whole(self, *more, store=True):
        whole = f"{self.folder.name}/whole"
        command = [self.wanted.tool, "core", str(self.core()), "--out", whole, *more]
        if store:
            command += ["--store", self.store()]
        return whole, subprocess.run(command, check=False, capture_output=True, text=True, timeout=100,
                                     env=self.environment)


def try_core(wanted, forked):
    run = Run(wanted, ["whole_core=on", *wanted.settings], ["fork"] if forked else [])
    if not re.search(r"\d of them paged|1 process, paged", run.done.stderr) or run.done.returncode != 128 + 6:
        return [f"it ended with {run.done.returncode}: {run.done.stderr}"]
    faults = []
    if stat := [path for path in pathlib.Path(run.stores).rglob("*") if path.is_file() and path.stat().st_mode & 0o77]:
        faults.append(f"others may use {stat}")
    whole, made = run.make_whole(*(["--set", f"encrypt_key_file={run.key}"] if wanted.decorators else []))
    if made.returncode != 0:
        return faults + [f"farheap core ended with {made.returncode}: {made.stderr}"]
    if os.stat(whole).st_mode & 0o777 != 0o600:
        faults.append("others may read the whole core")
    indices = random.Random(1).sample(range(2, COUNT), 300) + [0, 511, 512, COUNT - 1]
    words = words_by_gdb(wanted.guest, whole, indices)
    wrong = [index for index, word in zip(indices, words) if word != expected(index, forked)]
    if wrong:
        faults.append(f"{len(wrong)} of {len(indices)} words of the whole core are wrong, among them {wrong[:5]}")
    before = words_by_gdb(wanted.guest, run.core(), indices)
    zeros = sum(1 for index, word in zip(indices, before) if word == 0 and expected(index, forked) != 0)
    if zeros < len(indices) // 3:
        faults.append(f"only {zeros} of {len(indices)} words are zeros without the command: nothing is tested")
    print(f"{'forked, ' if forked else ''}{made.stderr.strip()}; {zeros} of {len(indices)} were zeros", flush=True)
    return faults


def try_live(wanted, guest_does):
    """A core of the program while it runs; afterwards it goes on. One that writes may be stopped with locks held."""
    run = Run(wanted, ["whole_core=on", *wanted.settings], [guest_does], live=True)
    line = run.process.stdout.readline()
    guest = int(line.split()[1])
    whole = f"{run.folder.name}/whole"
    command = [wanted.tool, "core", "--pid", str(guest), "--store", run.store(), "--out", whole]
    if wanted.decorators:
        command += ["--set", f"encrypt_key_file={run.key}"]
    made = subprocess.run(command, check=False, capture_output=True, text=True, timeout=200, env=run.environment)
    with open(f"/proc/{guest}/stat", encoding="utf-8") as file:
        state = file.read().rsplit(")", 1)[1].split()[0]
    run.process.kill()
    run.process.communicate()
    if made.returncode != 0:
        return [f"farheap core --pid ended with {made.returncode}: {made.stderr}"]
    faults = ["the program is stopped afterwards"] if state in "Tt" else []
    if os.stat(whole).st_mode & 0o777 != 0o600:
        faults.append("others may read the live core")
    indices = random.Random(2).sample(range(2, COUNT // 2 if guest_does == "write" else COUNT), 300)
    wrong = [index for index, word in zip(indices, words_by_gdb(wanted.guest, whole, indices))
             if word != expected(index, False)]
    if wrong:
        faults.append(f"{len(wrong)} of {len(indices)} words of the live core are wrong, among them {wrong[:5]}")
    print(f"live, {guest_does}, {made.stderr.strip()}", flush=True)
    return faults


def try_unsaid_store(kept):
    """What a core names is not opened: not a store of its program's, of which it says how to say it, and no server."""
    faults = []
    whole, made = kept.make_whole(store=False)
    said = re.search(r"--store '([^']+)'", made.stderr)
    if made.returncode != 1 or os.path.exists(whole) or not said:
        faults.append(f"without the store's name: {made.returncode} {made.stderr}")
    elif f"--store {kept.store()} " not in kept.done.stderr:
        faults.append(f"the run does not say how: {kept.done.stderr}")
    with socket.socket(socket.AF_UNIX) as listener:
        path = f"{kept.folder.name}/server"
        listener.bind(path)
        listener.listen()
        uri = f"redis://{path}?timeout_ms=500&patience_s=0".encode()
        with open(kept.core(), "r+b") as file, mmap.mmap(file.fileno(), 0) as core:
            at = core.find(b"FHCORE\r\n") + 48
            was = core[at:at + 3072]
            core[at:at + 3072] = uri + bytes(3072 - len(uri))
            whole, made = kept.make_whole(store=False)
            core[at:at + 3072] = was
        listener.setblocking(False)
        try:
            listener.accept()
            faults.append("a server that a core names was connected to")
        except BlockingIOError:
            pass
    if made.returncode != 1 or f"redis://{path}" not in made.stderr:
        faults.append(f"a core that names a server: {made.returncode} {made.stderr}")
    return faults


def try_refusals(wanted):
    """A run without the option, a store that is gone, and another key: each says so, and leaves no file."""
    faults = []
    plain = Run(wanted, wanted.settings)
    whole, made = plain.make_whole()
    if made.returncode != 1 or "whole_core=on" not in made.stderr or os.path.exists(whole):
        faults.append(f"without the option: {made.returncode} {made.stderr}")
    if os.listdir(plain.stores):
        faults.append(f"without the option its store stays: {os.listdir(plain.stores)}")
    kept = Run(wanted, ["whole_core=on", *wanted.settings])
    faults += try_unsaid_store(kept)
    if wanted.decorators:
        whole, made = kept.make_whole()
        if made.returncode != 1 or "needs a key" not in made.stderr or os.path.exists(whole):
            faults.append(f"without the key: {made.returncode} {made.stderr}")
    shutil.rmtree(kept.store().rpartition(":")[2])
    whole, made = kept.make_whole()
    if made.returncode != 1 or "is not there" not in made.stderr or os.path.exists(whole):
        faults.append(f"without the store: {made.returncode} {made.stderr}")
    return faults


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tool", required=True)
    parser.add_argument("--guest", required=True)
    parser.add_argument("--decorators", default="")
    parser.add_argument("--fork", action="store_true")
    parser.add_argument("settings", nargs="*")
    wanted = parser.parse_args()
    if reason := why_not():
        print(f"NOT TESTED: {reason}")
        sys.exit(77)
    resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    faults = try_core(wanted, forked=False)
    if wanted.fork:
        faults += try_core(wanted, forked=True)
    faults += try_live(wanted, "wait") + try_live(wanted, "write") + try_refusals(wanted)
    if faults:
        sys.exit("FAILED: " + "; ".join(faults))


main()
