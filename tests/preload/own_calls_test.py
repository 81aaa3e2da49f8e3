# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The law of src/preload/own_calls.cpp, read from the library as it was linked.

Nothing inside of it calls, jumps to or takes the address of a function that it gives to the program: the program may
have overwritten that. And nothing goes to the C library for what a program may have replaced: time, waits, reads.
"""

import argparse
import re
import subprocess
import sys

# Tested by hand: a program sees from inside the library what it saw before.
REPLACED_BY_PROGRAMS = re.compile(
    r"(clock_gettime|gettimeofday|time|(clock_)?nanosleep|usleep|sleep|poll|ppoll|select|epoll_wait|epoll_pwait"
    r"|read|readv|pread|pread64|preadv|preadv64|write|writev|pwrite|pwrite64|pwritev|pwritev64"
    r"|open|open64|openat|openat64|close|fcntl|fcntl64|ioctl|fsync|fdatasync|ftruncate|dup|dup2|dup3"
    r"|mmap|mmap64|munmap|mremap|mprotect|madvise|mlock|brk|sbrk|fork|vfork|clone|syscall|_exit"
    r"|socket|connect|sendmsg|recvmsg|send|recv|getsockopt|setsockopt|sched_yield|getpid|kill"
    r"|(__libc_)?(malloc|free|calloc|realloc|memalign)|aligned_alloc|posix_memalign|_Zn[wa].*|_Zd[la].*"
    r"|pthread_mutex_.*lock|pthread_cond_.*|sem_.*)")
# Stay: what the C++ runtime of libgcc asks of programs with transactional memory.
WEAK = ("_ZGTtdlPv", "_ZGTtnam")


def lines_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()


def names(library, which):
    return [line.split()[-1].split("@")[0] for line in lines_of("nm", "-D", which, library)]


def calls_of_exported(library, exported):
    """(caller, callee) of all jumps into, and addresses taken of, exported functions."""
    caller = ""
    for line in lines_of("objdump", "-d", "--no-show-raw-insn", library):
        head = re.match(r"[0-9a-f]+ <([^>]+)>:", line)
        if head:
            caller = head.group(1).split("@")[0]
            continue
        target = re.search(r"\b(?:call|jmp|j[a-z]+|lea)\b.*<([^>+]+)>", line)
        if target and target.group(1).split("@")[0] in exported:
            yield caller, target.group(1).split("@")[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library")
    library = parser.parse_args().library
    exported = set(names(library, "--defined-only"))
    complaints = [f"{caller} calls {callee}, which the program may have overwritten"
                  for caller, callee in calls_of_exported(library, exported) if caller != callee]
    for line in lines_of("readelf", "-rW", library):
        fields = line.split()
        if len(fields) > 4 and fields[2].startswith("R_X86_64_") and fields[4].split("@")[0] in exported:
            complaints.append(f"a relocation leads to {fields[4]}")
    for name in names(library, "--undefined-only"):
        if REPLACED_BY_PROGRAMS.fullmatch(name) and name not in WEAK:
            complaints.append(f"{name} comes from the C library, or from a program that has a function of this name")
    if "mmap" not in exported:
        complaints.append(f"{library} exports nothing: this tests nothing")
    if complaints:
        sys.exit("\n".join(complaints))


main()
