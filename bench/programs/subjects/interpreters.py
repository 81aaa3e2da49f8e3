# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs in languages with an interpreter or a virtual machine: a large table of records, and skewed use of it."""

import os
import subprocess

import subject
from subject import Job, Subject, environment, made, script


class PerlForks(Subject):
    name = "perl_forks"
    does = "a hash of 160,000 records; three children at once look up and change what they see of it"
    tools = (("perl", "perl"),)
    unrecorded = "the work is done by forked children"

    def prepare(self, folder):
        return Job(["perl", script("forks.pl"), "160000"], env=environment())


class Java(Subject):
    name = "java_map"
    does = "a HashMap of 700,000 records under the serial collector"
    tools = (("java", "openjdk-17-jre-headless"),)

    def missing(self):
        return super().missing() or subject.missing_command("javac", "openjdk-17-jdk-headless")

    def prepare(self, folder):
        def compile_it(path):
            subprocess.run(["javac", "-d", path, script("Records.java")], check=True)
        classes = made(folder, "classes", compile_it)
        return Job(["java", "-XX:+UseSerialGC", "-Xms32m", "-Xmx400m", "-cp", classes, "Records", "700000", "3000000"],
                   env=environment())


class Gawk(Subject):
    name = "gawk_keys"
    does = "counts, sums and last values of 600,000 lines by 300,000 keys, most lines with few of them"
    tools = (("gawk", "gawk"),)

    def prepare(self, folder):
        def write(path):
            numbers = list(range(300_000)) + subject.skewed_numbers(1, 300_000, 300_000)
            with open(path, "w", encoding="ascii") as out:
                out.writelines(f"key-{number} {at % 1000} value-{at * 7919 % 1000003}\n"
                               for at, number in enumerate(numbers))
        lines = made(folder, "lines", write)
        return Job(["gawk", "-f", script("keys.awk"), lines], env=environment())


class Lua(Subject):
    name = "lua_table"
    does = "a table of 350,000 records, collected as it goes"
    tools = (("lua5.4", "lua5.4"),)

    def prepare(self, folder):
        return Job(["lua5.4", script("records.lua"), "350000", "700000"], env=environment())


class LuaJit(Subject):
    name = "luajit_table"
    does = "the same with 600,000 records, compiled"
    tools = (("luajit", "luajit"),)

    def prepare(self, folder):
        return Job(["luajit", script("records.lua"), "600000", "1000000"], env=environment())


class Ruby(Subject):
    name = "ruby_hash"
    does = "a Hash of 500,000 records"
    tools = (("ruby", "ruby"),)

    def prepare(self, folder):
        return Job(["ruby", script("records.rb"), "500000", "700000"], env=environment())


class Node(Subject):
    name = "node_map"
    does = "a Map of 700,000 records"
    tools = (("node", "nodejs"),)

    def prepare(self, folder):
        return Job(["node", script("records.js"), "700000", "3000000"], env=environment())


class Python(Subject):
    name = "python_objects"
    does = "a dict of 300,000 objects"

    def missing(self):
        return None if os.access("/usr/bin/python3", os.X_OK) else "/usr/bin/python3 is not there: apt install python3"

    def prepare(self, folder):
        return Job(["/usr/bin/python3", script("records.py"), "300000", "700000"], env=environment())
