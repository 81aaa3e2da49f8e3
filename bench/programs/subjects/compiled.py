# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs compiled from languages with an allocator of their own, or the C library's."""

import subprocess

from subject import Job, Subject, environment, made, script


class Rust(Subject):
    name = "rust_map"
    does = "a HashMap of 900,000 records; it allocates with malloc"
    tools = (("rustc", "rustc"),)

    def prepare(self, folder):
        program = made(folder, "records", lambda path: subprocess.run(
            ["rustc", "-O", "-o", path, script("records.rs")], check=True))
        return Job([program, "900000", "4000000"], env=environment())


class Go(Subject):
    name = "go_map"
    does = "a map of 900,000 records; linked statically; it asks the kernel for memory by itself"
    tools = (("go", "golang-go"),)
    reached = False
    unrecorded = "it is not reached"

    def prepare(self, folder):
        program = made(folder, "records", lambda path: subprocess.run(
            ["go", "build", "-o", path, script("records.go")], check=True))
        return Job([program, "900000", "4000000"], env=environment(GOMAXPROCS="2"))
