# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Table 6.1 of seed 000: its three functions, plain and translated, on several stores. bench/translate/table61.c.

  ./dev bench translate --parts table61 --rounds 3

Each round has all tests in all ways on one store after the other; servers are started for each store and ended again.
"""

import json
import os
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(os.path.dirname(HERE), "common"), HERE]
# pylint: disable=wrong-import-position
import builder
import report
from farheap_command import complain

SOURCE = os.path.join(builder.BENCH, "translate", "table61.c")
TESTS = ("stack", "heap", "producer_consumer")
# By store: the server that is started for it, if any.
STORES = {"mem": None, "lmdb": None, "redis": "redis", "bigtable": "bigtable", "etcd": "etcd"}
# name: (level, variables, calls by test on stores here and on servers, flushes after each call)
WAYS = {
    "original": (None, {}, (100_000, 100_000, 500), False),
    "hint": (["-ffar=hint"], {}, (100_000, 100_000, 500), False),
    "translate-heap.direct": (["-ffar=translate-heap"], {"FARHEAP_FAR_MODE": "direct"}, (100_000, 100, 100), False),
    "translate-heap.cached": (["-ffar=translate-heap"], {"FARHEAP_FAR_MODE": "cached"}, (100_000, 100_000, 500), False),
    "translate-heap.cached_flushed":
        (["-ffar=translate-heap"], {"FARHEAP_FAR_MODE": "cached"}, (1000, 1000, 100), True),
    "translate-all.direct": (["-ffar=translate-all"], {"FARHEAP_FAR_MODE": "direct"}, (20, 20, 20), False),
}
SLOW_CALLS = 5  # of what goes to a server for each access
SEED = {"stack": (0.411, 2_798_858, 3), "heap": (0.521, 2_209_032, 284_047),
        "producer_consumer": (963.717, 1_272_932, 295_448)}


def program_name(folder, level):
    return os.path.join(folder, "table61." + (level[0].removeprefix("-ffar=") if level else "original"))


def build(built, folder):
    farcc = os.path.join(os.path.dirname(built.farcc), "farcc")
    for level, *_ in WAYS.values():
        command = [built.clang] if level is None else [farcc, *level]
        builder.run([*command, "-O2", "-pthread", SOURCE, "-o", program_name(folder, level)])


def run_one(folder, way, test, uri, on_server, number=None):
    """(microseconds a call, checksum, number of calls). Raises ValueError."""
    level, variables, calls, flushes = WAYS[way]
    number = number or calls[TESTS.index(test)]
    if on_server and way.endswith("direct") and (test != "stack" or way.startswith("translate-all")):
        number = min(number, SLOW_CALLS)
    command = [program_name(folder, level), test, str(number), *(["each"] if flushes else [])]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300,
                          env={**builder.environment(), **variables, "FARHEAP_FAR_STORE": uri or "mem:"})
    if done.returncode != 0:
        raise ValueError(f"{way} {test} {uri}: {done.returncode}: {done.stderr.strip()[-300:]}")
    line = json.loads(done.stdout)
    return line["us"], line["checksum"], number


def own_figures(tool, uri):
    done = subprocess.run([tool, "store", "bench", uri, "--json"], capture_output=True, text=True, check=False,
                          timeout=120)
    if done.returncode != 0:
        raise ValueError(f"store bench {uri}: {done.stderr.strip()[-300:]}")
    return {"own_" + one["name"].split()[0]: one["median"] for one in json.loads(done.stdout)["results"]
            if one["name"].endswith(", single")}


def inside(folder, tool, store, uri):
    """All of one store, once: prints {name: microseconds}."""
    found = {}
    for way in WAYS:
        if way in ("original", "hint"):
            continue
        for test in TESTS:
            found[f"{test}.{way}.{store}"], checksum, number = run_one(folder, way, test, uri, STORES[store] is not None)
            if checksum != run_one(folder, "original", test, None, False, number)[1]:
                raise ValueError(f"{way} {test} {uri}: a wrong result")
    for name, value in own_figures(tool, uri).items():
        found[f"{name}.{store}"] = value
    print(json.dumps(found))


def one_store(options, folder, tool, store):
    """The figures of one round, or None, with words, if the store is not here."""
    place = os.path.join(folder, store)
    os.makedirs(place, exist_ok=True)
    command = [sys.executable, os.path.abspath(__file__), folder, tool, store]
    if STORES[store] is None:
        command += [f"{store}:" + ("" if store == "mem" else place)]
    else:
        around = os.path.join(options.build_folder, "bench", "stores", "stores_with_server")
        command = [around, STORES[store], *command, "@STORE"]
    engines = os.path.join(options.build_folder, "src", "engines", "farheap-engines")  # the programs are elsewhere
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                          env={**os.environ, "FARHEAP_ENGINES": engines})
    if done.returncode == 77:
        complain(f"table61: {store}: NOT MEASURED: {done.stdout.strip()}")
        return None
    if done.returncode != 0:
        raise ValueError(f"table61: {store}: {done.stdout.strip()[-600:]}")
    return json.loads(done.stdout.splitlines()[-1])


def measure(options, built, tool, folder, progress):
    """{name: [microseconds, one a round]}."""
    build(built, folder)
    found, stores = {}, list(STORES)
    for turn in range(options.rounds):
        for way in ("original", "hint"):
            for test in TESTS:
                progress(f"table61: {test} {way}, {turn + 1}")
                found.setdefault(f"{test}.{way}", []).append(run_one(folder, way, test, None, False)[0])
        for store in list(stores):
            progress(f"table61: {store}, {turn + 1}")
            values = one_store(options, folder, tool, store)
            if values is None:
                stores.remove(store)
            for name, value in (values or {}).items():
                found.setdefault(name, []).append(value)
    return found


def results_of(found):
    return [report.result(name, "table61_us", statistics.median(values), "us", min(values), max(values))
            for name, values in found.items()]


def text_of(value):
    return f"{value:,.3f}" if value < 10 else f"{value:,.0f}"


def table(found):
    """Rows of tests and ways, columns of stores; the seed's numbers first."""
    middle = {name: statistics.median(values) for name, values in found.items()}
    stores = [store for store in STORES if any(name.endswith("." + store) for name in middle)]
    head = ["us a call", "original", "hint", *stores, "seed: original / all / heap"]
    rows = []
    for test in TESTS:
        for way in [way for way in WAYS if way not in ("original", "hint")]:
            cells = [text_of(middle[name]) if (name := f"{test}.{way}.{store}") in middle else "" for store in stores]
            first = way == "translate-heap.direct"
            rows.append([f"{test}, {way}", *(text_of(middle[name]) if first and (name := f"{test}.{kind}") in middle else ""
                           for kind in ("original", "hint")), *cells,
                         " / ".join(f"{value:,}" for value in SEED[test]) if first else ""])
    for own in ("own_get", "own_put"):
        rows.append([own, "", "",
                     *(text_of(middle[name]) if (name := f"{own}.{store}") in middle else "" for store in stores), ""])
    return head, rows


if __name__ == "__main__":
    inside(*sys.argv[1:5])
