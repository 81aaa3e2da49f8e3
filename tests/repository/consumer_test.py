#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Installs into an empty prefix and builds programs of others against it: by find_package and by pkg-config."""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

CONSUMER = pathlib.Path(__file__).resolve().parent / "consumer"


def run(*command, **more):
    print("+", *command, flush=True)
    done = subprocess.run([str(word) for word in command], check=False, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, **more)
    print(done.stdout, end="", flush=True)
    if done.returncode != 0:
        sys.exit(f"failed with status {done.returncode}: {command[0]}")
    return done.stdout


def expect(what, holds):
    if not holds:
        sys.exit(f"FAILED: {what}")


def by_find_package(arguments, prefix, work):
    run(arguments.cmake, "-G", arguments.generator, "-S", CONSUMER, "-B", work, f"-DCMAKE_PREFIX_PATH={prefix}",
        f"-DCMAKE_CXX_COMPILER={arguments.cxx}", f"-DCMAKE_C_COMPILER={arguments.cc}")
    run(arguments.cmake, "--build", work)
    expect("the C++ consumer runs", "stored and read back" in run(work / "consumer"))
    expect("the C consumer finds no runtime", run(work / "consumer_c") == "no runtime\n")
    if has_metall(prefix):
        expect("Metall's consumer runs", run(work / "consumer_metall", work / "store") == "5\n")


def has_metall(prefix):
    there = any(prefix.rglob("metall/metall.hpp"))
    if not there:
        print("SKIPPED, NOT TESTED: Metall's interface is not part of this build")
    return there


def by_pkg_config(arguments, prefix, work):
    work.mkdir()
    folders = ":".join(str(path.parent) for path in prefix.rglob("farheap.pc"))
    environment = dict(os.environ, PKG_CONFIG_PATH=folders)
    flags = run("pkg-config", "--cflags", "--libs", "farheap", env=environment).split()
    run(arguments.cxx, "-std=c++20", CONSUMER / "consumer.cpp", "-o", work / "consumer", *flags)
    expect("the C++ consumer runs", "stored and read back" in run(work / "consumer"))
    run(arguments.cc, CONSUMER / "consumer.c", "-o", work / "consumer_c", *flags)
    expect("the C consumer finds no runtime", run(work / "consumer_c") == "no runtime\n")
    if has_metall(prefix):
        compat = next(prefix.rglob("metall/metall.hpp")).parents[1]
        run(arguments.cxx, "-std=c++20", "-I", compat, CONSUMER / "metall.cpp", "-o", work / "metall", *flags)
        expect("Metall's consumer runs", run(work / "metall", work / "store") == "5\n")


def the_command(prefix):
    run(prefix / "bin" / "farheap", "--version")
    manual = list(prefix.rglob("farheap.1"))
    expect("the manual page is installed", manual and "FARHEAP_MEMORY" in manual[0].read_text(encoding="utf-8"))
    expect("the completion is installed", any(prefix.rglob("completions/farheap")))
    if any(prefix.rglob("libfarheap-preload.so")):
        doctor = subprocess.run([prefix / "bin" / "farheap", "doctor"], capture_output=True, text=True, check=False)
        expect("the installed command finds its runtime\n" + doctor.stdout,
               f"preload library {prefix.resolve()}" in " ".join(doctor.stdout.split()))
    else:
        print("SKIPPED, NOT TESTED: the runtime is not part of this build")


def built(arguments, work, *settings):
    run(arguments.cmake, "-G", arguments.generator, "-S", CONSUMER / "compiled", "-B", work,
        "-DCMAKE_BUILD_TYPE=Release", *settings)
    run(arguments.cmake, "--build", work)
    expect("the compiled program does what it did", run(work / "sweep") == "-1499808\n")
    return b"__farheap_loop" in (work / "sweep").read_bytes()


def translated(arguments, work, *settings):
    """A target by farheap_enable(): it has far addresses in mode direct, and none, but a paged heap, in mode cached."""
    for options, globals_are_far in (("translate-heap;BORROW;s*", 0), ("translate-heap;GLOBALS;STACK", 1),
                                     ("translate-all", 1)):
        run(arguments.cmake, "-G", arguments.generator, "-S", CONSUMER / "compiled", "-B", work,
            "-DCMAKE_BUILD_TYPE=Release", *settings, f"-DLEVEL=LEVEL;{options}")
        run(arguments.cmake, "--build", work)
        for mode, is_far in (("direct", 1), ("cached", 0)):
            environment = dict(os.environ, FARHEAP_FAR_MODE=mode)
            expect(f"the heap is where mode {mode} has it, and so are globals ({options})",
                   run(work / "far", env=environment) == f"{is_far} {is_far & globals_are_far} 55\n")


def refuses(arguments, work, words, *settings):
    done = subprocess.run([arguments.cmake, "-G", arguments.generator, "-S", CONSUMER / "compiled", "-B", work, *settings],
                          capture_output=True, text=True, check=False)
    expect(f"farheap_enable() says: {words}\n{done.stderr}", done.returncode != 0 and words in " ".join(done.stderr.split()))


def the_compiler(arguments, prefix, work):
    if not (prefix / "bin" / "farcc").exists():
        print("SKIPPED, NOT TESTED: farcc is not part of this build")
        return
    expect("far++ is farcc", (prefix / "bin" / "far++").resolve().name == "farcc")
    toolchain = f"--toolchain={next(prefix.rglob('farcc.toolchain.cmake'))}"
    enable = ("-DENABLE=ON", f"-DCMAKE_PREFIX_PATH={prefix}")
    expect("the toolchain file compiles with hints", built(arguments, work / "toolchain", toolchain))
    expect("farheap_enable() works with farcc", built(arguments, work / "both", toolchain, *enable))
    command = run(prefix / "bin" / "farcc", "-ffar-print", "-c", "x.c").split()
    clang = f"-DCMAKE_C_COMPILER={next(word for word in command if 'clang' in word)}"
    expect("clang alone knows nothing of hints", not built(arguments, work / "plain", clang))
    expect("farheap_enable() works with clang", built(arguments, work / "enabled", clang, *enable))
    expect("farheap_enable() leaves out what it is told to",
           not built(arguments, work / "left", clang, *enable, "-DCMAKE_C_FLAGS=-Dsweep=other_sweep"))
    for name, compiler in (("guards", clang), ("guards-by-farcc", toolchain)):
        profile = pathlib.Path(f"{work}-{name}.txt")
        os.environ["FARCC_GUARDS"] = str(profile)
        built(arguments, work / name, compiler, *enable, "-DLEVEL=LEVEL;guard;GUARD;record")
        expect(f"farheap_enable(LEVEL guard GUARD record) makes a profile ({name})",
               profile.exists() and re.search("0 1 [0-9a-f]{16} 1 0 ", profile.read_text(encoding="utf-8")) is not None)
        profile.unlink()
        expect("so does a program with a static library that counts, each of them told so",
               run(work / name / "far") == "0 0 55\n" and profile.read_text(encoding="utf-8").count("end\n") == 1)
    for name, compiler in (("recorded", clang), ("recorded-by-farcc", toolchain)):
        profile = pathlib.Path(f"{work}-{name}.profile")
        os.environ["FARCC_PROFILE"] = str(profile)
        built(arguments, work / name, compiler, *enable, "-DLEVEL=LEVEL;record")
        expect(f"farheap_enable(LEVEL record) makes a program that leaves a profile ({name})",
               profile.exists() and profile.read_bytes().startswith(b"FHPROFIL"))
        del os.environ["FARCC_PROFILE"]
    for name, compiler in (("translated", clang), ("translated-by-farcc", toolchain)):
        translated(arguments, work / name, compiler, *enable)
    for level, words in (("translate", "there is no level translate; there are none, count"),
                         ("hint;STACK", "STACK is for LEVEL translate-heap"),
                         ("translate-all;BORROWS;f", "it takes LEVEL, GUARD")):
        refuses(arguments, work / "refused", words, clang, *enable, f"-DLEVEL=LEVEL;{level}")
    refuses(arguments, work / "refused", "does not go with -static", clang, *enable, "-DLEVEL=LEVEL;translate-heap",
            "-DCMAKE_EXE_LINKER_FLAGS=-static")
    refused = subprocess.run([arguments.cmake, "-G", arguments.generator, "-S", CONSUMER / "compiled", "-B",
                              work / "other", f"-DCMAKE_C_COMPILER={arguments.cc}", *enable],
                             capture_output=True, text=True, check=False)
    if "clang" not in pathlib.Path(arguments.cc).resolve().name:
        expect("farheap_enable() refuses a compiler that has no passes\n" + refused.stderr,
               refused.returncode != 0 and "cannot load passes" in refused.stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("build", "cmake", "generator", "cxx", "cc"):
        parser.add_argument(f"--{name}", required=True)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="farheap-consumer-") as folder:
        prefix = pathlib.Path(folder, "prefix")
        run(arguments.cmake, "--install", arguments.build, "--prefix", prefix)
        by_find_package(arguments, prefix, pathlib.Path(folder, "cmake"))
        by_pkg_config(arguments, prefix, pathlib.Path(folder, "pkg-config"))
        the_command(prefix)
        the_compiler(arguments, prefix, pathlib.Path(folder, "compiler"))


if __name__ == "__main__":
    main()
