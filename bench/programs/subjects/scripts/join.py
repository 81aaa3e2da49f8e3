# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""join.py FOLDER ROWS: duckdb, from FOLDER, joins a table in memory with itself and groups what comes out."""

import sys

sys.path.insert(0, sys.argv[1])
import duckdb  # pylint: disable=wrong-import-position


def main():
    rows = int(sys.argv[2])
    data = duckdb.connect(":memory:", config={"threads": "2", "memory_limit": "4GB"})
    data.execute(f"CREATE TABLE t AS SELECT i, (i * 7919) % {rows} AS j, i % 1000 AS g, md5(i::VARCHAR) AS text"
                 f" FROM range({rows}) r(i)")
    print(data.execute("SELECT count(*), sum(a.g + b.g), max(b.text) FROM t a JOIN t b ON a.j = b.i").fetchall())
    print(data.execute("SELECT g, count(*), min(text) FROM t GROUP BY g ORDER BY g LIMIT 5").fetchall())
    print(data.execute("SELECT count(*) FROM (SELECT j % 200000 k, sum(i) s FROM t GROUP BY k HAVING s % 2 = 0)")
          .fetchall())


if __name__ == "__main__":
    main()
