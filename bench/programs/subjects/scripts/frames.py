# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""frames.py ROWS: pandas groups, merges and sorts two frames."""

import sys

import numpy
import pandas


def main():
    rows = int(sys.argv[1])
    rng = numpy.random.default_rng(1)
    sales = pandas.DataFrame({"shop": rng.zipf(1.3, rows) % 50_000, "day": rng.integers(0, 365, rows),
                              "amount": rng.integers(1, 1000, rows)})
    shops = pandas.DataFrame({"shop": numpy.arange(50_000), "region": rng.integers(0, 40, 50_000)})
    merged = sales.merge(shops, on="shop")
    by_region = merged.groupby(["region", "day"])["amount"].agg(["sum", "count", "max"])
    by_shop = merged.groupby("shop")["amount"].sum().sort_values(kind="stable")
    top = merged.sort_values(["amount", "shop", "day"], kind="stable").head(1000)
    print(by_region["sum"].sum(), by_region["count"].max(), int(by_shop.iloc[-1]), top["day"].sum())


if __name__ == "__main__":
    main()
