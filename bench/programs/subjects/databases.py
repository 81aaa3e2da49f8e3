# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Databases that keep their data, or what they sort and join, in memory."""

import os
import subprocess
import sys

import subject
from subject import Job, Subject, environment, made, script

sys.path.append(os.path.join(subject.REPOSITORY, "tests", "programs"))
import redis_job  # pylint: disable=wrong-import-position,import-error
import serve  # pylint: disable=wrong-import-position,import-error
import servers  # pylint: disable=wrong-import-position,import-error

PYTHON = "/usr/bin/python3"


class Redis(Subject):
    name = "redis_skewed"
    does = "600,000 keys, then 900,000 commands most of which go to few of them"
    keys = 600_000

    def missing(self):
        return None if os.path.exists(redis_job.PROGRAM) else f"{redis_job.PROGRAM} is not there: apt install redis-tools"

    def _write(self, path):
        with open(path, "wb") as out:
            for key in range(self.keys):
                out.write(redis_job.encode([b"SET", b"key:%d" % key, b"value %d of a table of many values" % key]))
            for at, key in enumerate(subject.skewed_numbers(1, 3 * self.keys // 2, self.keys)):
                name = b"key:%d" % key
                out.write(redis_job.encode([b"APPEND", name, b"."] if at % 8 == 0 else [b"GET", name]))

    def prepare(self, folder):
        commands = made(folder, "commands", self._write)
        return Job([PYTHON, script("ask_redis.py"), commands], env=environment(TMPDIR="/tmp"))


class Postgres(Subject):
    query = ""
    unrecorded = "the work is done by a forked child"

    def missing(self):
        return servers.PostgresServer("postgres", ()).missing()

    def prepare(self, folder):
        def make(path):
            subprocess.run(serve.as_postgres(f"{servers.POSTGRES}/initdb", "-D", path, "-U", "farheap", "--no-sync",
                                             "--no-locale", "-E", "UTF8", "-A", "trust"),
                           check=True, stdout=subprocess.DEVNULL)
        data = made(folder, "data", make)
        return Job([PYTHON, script("ask_postgres.py"), data, self.query], env=environment(TMPDIR="/tmp"))


class PostgresSort(Postgres):
    name = "postgres_sort"
    does = "sorts 900,000 small rows in work_mem"
    query = ("SELECT count(*), min(m), max(m), sum(n) FROM (SELECT m, row_number() OVER (ORDER BY m) % 7 n FROM"
             " (SELECT md5(i::text) m FROM generate_series(1, 900000) i) x) y")


class PostgresJoin(Postgres):
    name = "postgres_join"
    does = "a hash join of 700,000 rows with 1,000,000, most of which meet few of them"
    query = ("SELECT count(*), sum(length(a.m)), sum(a.i) FROM"
             " (SELECT (700000 * power(((j * 7919::bigint) % 1000003) / 1000003.0::float8, 3))::int k"
             " FROM generate_series(1, 1000000) j) b"
             " JOIN (SELECT i, md5(i::text) || i m FROM generate_series(0, 700000) i) a ON a.i = b.k")


class Sqlite(Subject):
    name = "sqlite_updates"
    does = "600,000 rows with an index in memory, skewed updates, then joins"
    tools = (("sqlite3", "sqlite3"),)

    @staticmethod
    def _write(path):
        with open(path, "w", encoding="ascii") as out:
            out.write("""
CREATE TABLE t(i INTEGER PRIMARY KEY, name TEXT, n INTEGER, note TEXT);
WITH RECURSIVE r(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM r WHERE i < 599999)
INSERT INTO t SELECT i, 'name-' || (i * 7919 % 1000003), i, 'a note on row ' || i || ' of the table' FROM r;
CREATE INDEX by_name ON t(name);
WITH RECURSIVE r(k, s) AS (SELECT 0, 1 UNION ALL SELECT k + 1, (s * 1103515245 + 12345) & 2147483647 FROM r
  WHERE k < 300000)
SELECT count(*), sum(length(note)), sum(n) FROM r JOIN t ON t.name = 'name-' ||
  ((((s >> 8) & 1048575) * ((s >> 8) & 1048575) / 1048576 * ((s >> 8) & 1048575) / 1048576 * 600000 / 1048576)
   * 7919 % 1000003);
UPDATE t SET n = n + 1 WHERE i % 16 = 0;
SELECT sum(n), max(name) FROM t;
""")

    def prepare(self, folder):
        return Job(["sqlite3", "-batch", ":memory:"], stdin=made(folder, "updates.sql", self._write),
                   env=environment())


class DuckDb(Subject):
    name = "duckdb_join"
    does = "joins 700,000 rows with themselves, and groups them"
    folder = os.path.join(subject.TOOLS, "duckdb")

    def missing(self):
        return None if os.path.isdir(os.path.join(self.folder, "duckdb")) else (
            f"there is no duckdb in {self.folder}: pip install --target {self.folder} duckdb")

    def prepare(self, folder):
        return Job([PYTHON, script("join.py"), self.folder, "700000"], env=environment())
