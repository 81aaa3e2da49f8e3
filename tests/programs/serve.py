#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Starts a server on a socket in a temporary folder, fills it, asks it, prints its answers and ends it.

  serve.py memcached|postgres quick|full

The server is ended by its own process number; nothing of it is left.
"""

import hashlib
import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import time

from servers import POSTGRES

PATIENCE_SECONDS = 60


class Running:
    """A server in a folder of its own, from its start to its end."""

    def __init__(self, command, folder, is_up):
        self._log = os.path.join(folder, "log")
        with open(self._log, "wb") as log:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self._is_up = is_up

    def __enter__(self):
        until = time.monotonic() + PATIENCE_SECONDS
        while not self._is_up():
            if self._process.poll() is not None or time.monotonic() > until:
                self._end()
                with open(self._log, encoding="utf-8", errors="replace") as log:
                    sys.exit(f"the server did not come up: {log.read()[-2000:]}")
            time.sleep(0.05)
        return self

    def __exit__(self, *_):
        status = self._end()
        if status != 0:
            with open(self._log, encoding="utf-8", errors="replace") as log:
                sys.exit(f"the server ended with status {status}: {log.read()[-2000:]}")

    def _end(self):
        if self._process.poll() is None:
            self._process.terminate()
        return self._process.wait(PATIENCE_SECONDS)


# ---- memcached

class Memcached:
    """Its text protocol, as far as it is needed here."""

    def __init__(self, path):
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(path)
        self._file = self._socket.makefile("rwb")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._file.close()
        self._socket.close()

    def ask(self, line, data=None):
        """One line of answer; without reading it when `line` ends with noreply."""
        self._file.write(line.encode() + b"\r\n" + (b"" if data is None else data + b"\r\n"))
        if line.endswith(" noreply"):
            return b""
        self._file.flush()
        return self._file.readline().strip()

    def get(self, key):
        head = self.ask(f"get {key}")
        if head == b"END":
            return None
        value = self._file.read(int(head.split()[3]) + 2)[:-2]
        assert self._file.readline() == b"END\r\n"
        return value


def value_of(number, version=0):
    seed = hashlib.sha256(f"{number} {version}".encode()).digest()
    return seed * (8 + number * 7919 % 600)


def exercise_memcached(client, items):
    """What is stored, changed, extended and deleted is what is read afterwards, in any order."""
    for number in range(items):
        client.ask(f"set key-{number} 0 0 {len(value_of(number))} noreply", value_of(number))
    expected, rng, answers = {}, random.Random(1), hashlib.sha256()
    for _ in range(items // 8):
        number = rng.randrange(items)
        key, kind = f"key-{number}", rng.randrange(4)
        if kind == 0:
            expected[number] = value_of(number, 1)
            assert client.ask(f"set {key} 0 0 {len(expected[number])}", expected[number]) == b"STORED"
        elif kind == 1:
            now = expected.get(number, value_of(number))
            answer = client.ask(f"append {key} 0 0 4", b"more")
            assert answer == (b"NOT_STORED" if now is None else b"STORED")
            expected[number] = None if now is None else now + b"more"
        elif kind == 2:
            client.ask(f"delete {key}")
            expected[number] = None
        found = client.get(key)
        assert found == expected.get(number, value_of(number)), key
        answers.update(found or b"none")
    for number in range(items):
        found = client.get(f"key-{number}")
        assert found == expected.get(number, value_of(number)), number
        answers.update(found or b"none")
    print(f"{items} items, answers {answers.hexdigest()}")


def serve_memcached(folder, size):
    path = os.path.join(folder, "socket")
    items, mebibytes = {"quick": (13_000, 300), "full": (40_000, 900)}[size]
    # -M: a full cache says so, instead of forgetting something.
    command = ["memcached", "-s", path, "-m", str(mebibytes), "-M", "-t", "2", "-U", "0"]
    if os.geteuid() == 0:
        command += ["-u", "root"]
    with Running(command, folder, lambda: os.path.exists(path)), Memcached(path) as client:
        exercise_memcached(client, items)


# ---- PostgreSQL

# Rows of a KiB, so that a sort or a hash table has few that are large.
WIDE = "(SELECT i, md5(i::text) || repeat(md5(i::text), 31) m FROM generate_series(1, {{rows}} / {part}) i)"
QUERIES = (
    f"SELECT count(*), sum(length(m)), min(m), max(m) FROM (SELECT m FROM {WIDE.format(part=1)} x ORDER BY m) y",
    f"SELECT count(*), sum(length(m)) FROM {WIDE.format(part=2)} a JOIN"
    " (SELECT j * 2 i FROM generate_series(1, {rows}) j) b USING (i)",
    "WITH RECURSIVE chain(n, v) AS (SELECT 1, 7::bigint UNION ALL SELECT n + 1, v * 48271 % 2147483647 FROM chain"
    " WHERE n < {rows}) SELECT count(DISTINCT v), sum(v) FROM chain",
    f"SELECT i % 20, count(*), md5(string_agg(m, '' ORDER BY i)) FROM {WIDE.format(part=4)} x GROUP BY 1 ORDER BY 1",
)
TABLES = ("CREATE TABLE kept AS SELECT i, md5(i::text) m FROM generate_series(1, {rows}) i",
          "CREATE INDEX by_m ON kept(m)", "UPDATE kept SET m = reverse(m) WHERE i % 3 = 0",
          "SELECT count(*), md5(string_agg(m, '' ORDER BY m)) FROM kept")
SETTINGS = {"listen_addresses": "", "shared_buffers": "1MB", "wal_buffers": "64kB", "max_connections": "8",
            "work_mem": "1GB", "maintenance_work_mem": "64MB", "max_parallel_workers_per_gather": "0", "jit": "off",
            "max_parallel_maintenance_workers": "0", "fsync": "off", "autovacuum": "off"}


def as_postgres(*command):
    """The server refuses to run as root."""
    return [*(("unshare", "--user", "--map-user=postgres") if os.geteuid() == 0 else ()), *command]


def ask_postgres(folder, *queries):
    words = ["psql", "-h", folder, "-U", "farheap", "-qtAX", "-v", "ON_ERROR_STOP=1", "postgres"]
    for query in queries:
        words += ["-c", query]
    return subprocess.run(words, check=False, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)


def serve_postgres(folder, size):
    rows = {"quick": 120_000, "full": 360_000}[size]
    data = os.path.join(folder, "data")
    subprocess.run(as_postgres(f"{POSTGRES}/initdb", "-D", data, "-U", "farheap", "--no-sync", "--no-locale",
                               "-E", "UTF8", "-A", "trust"), check=True, stdout=subprocess.DEVNULL)
    command = as_postgres(f"{POSTGRES}/postgres", "-D", data, "-k", folder)
    for name, value in SETTINGS.items():
        command += ["-c", f"{name}={value}"]
    with Running(command, folder, lambda: ask_postgres(folder, "SELECT 1").returncode == 0):
        clients = [[query.format(rows=rows) for query in TABLES]] + [[query.format(rows=rows)] for query in QUERIES]
        for queries in clients:  # a process of the server for each
            answer = ask_postgres(folder, *queries)
            if answer.returncode != 0:
                sys.exit(f"no answer to: {'; '.join(queries)}")
            sys.stdout.buffer.write(answer.stdout)
            sys.stdout.buffer.flush()


def main():
    kind, size = sys.argv[1:3]
    folder = tempfile.mkdtemp(prefix="farheap-")  # short: a socket's path has a hundred characters
    try:
        {"memcached": serve_memcached, "postgres": serve_postgres}[kind](folder, size)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
