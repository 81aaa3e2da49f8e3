# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Table 6.1 of seed 000: its three functions, plain and translated, on several stores. bench/translate/table61.c.

  ./dev bench translate --parts table61 --rounds 3

Each round has all tests in all ways on one store after the other; servers are started for each store and ended again.
Beside them, in the same round, what the store itself takes:
  own_get, own_put            a block of 4 KiB, by Farheap's own adapter, back to back (`farheap store bench`)
  own_get_part, own_put_part  one byte of one block, back to back, by the engine's own client in its fastest form
                              (GETRANGE and SETRANGE on Redis, a get or put of the block on others)
  adapter_get_part, adapter_put_part  the same by Farheap's adapter, as a translated program has it (get_part(), put())
                              but without the program and its heap (both: bench/stores/own.cpp)
Ratios are taken within a round.
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
TESTS = ("stack", "heap", "heap_loads", "producer_consumer")
ACCESSES = 100  # of a call of heap, which stores, and of heap_loads
# By store: the server that is started for it, if any.
STORES = {"mem": None, "lmdb": None, "redis": "redis", "bigtable": "bigtable", "etcd": "etcd"}
# name: (level, variables, calls by test, flushes after each call)
WAYS = {
    "original": (None, {}, (100_000, 100_000, 100_000, 500), False),
    "hint": (["-ffar=hint"], {}, (100_000, 100_000, 100_000, 500), False),
    "translate-heap.direct":
        (["-ffar=translate-heap"], {"FARHEAP_FAR_MODE": "direct"}, (100_000, 100, 100, 100), False),
    "translate-heap.cached":
        (["-ffar=translate-heap"], {"FARHEAP_FAR_MODE": "cached"}, (100_000, 100_000, 100_000, 500), False),
    "translate-heap.cached_flushed":
        (["-ffar=translate-heap"], {"FARHEAP_FAR_MODE": "cached"}, (100_000, 100_000, 100_000, 100), True),
    "translate-all.direct": (["-ffar=translate-all"], {"FARHEAP_FAR_MODE": "direct"}, (20, 20, 20, 20), False),
}
SLOW_CALLS = 5  # of what goes to a server for each access
SERVER_FLUSHES = 2000
# How often; mem: has no other client than Farheap's adapter.
OWN_ACCESSES = {None: 10_000, "redis": 2_000, "bigtable": 500, "etcd": 500}  # by server
SEED = {"stack": (0.411, 2_798_858, 3), "heap": (0.521, 2_209_032, 284_047),
        "producer_consumer": (963.717, 1_272_932, 295_448)}
# What was asked for (issue 6): what is measured, over what, the factor in between, the bound, the metric's name.
BOUNDS = (
    ("heap.translate-heap.cached.{store}", "heap.original", 1, 3, "table61_over_original"),
    ("stack.translate-heap.direct.{store}", "stack.original", 1, 2, "table61_over_original"),
    ("stack.translate-heap.cached.{store}", "stack.original", 1, 2, "table61_over_original"),
    ("heap.translate-heap.cached_flushed.{store}", "own_put.{store}", 1, 2, "table61_puts"),
    ("heap.translate-heap.direct.{store}", "own_put_part.{store}", ACCESSES, 1.2, "table61_over_own"),
    ("heap_loads.translate-heap.direct.{store}", "own_get_part.{store}", ACCESSES, 1.2, "table61_over_own"),
    ("heap.translate-heap.direct.{store}", "adapter_put_part.{store}", ACCESSES, 1.2, "table61_over_adapter"),
    ("heap_loads.translate-heap.direct.{store}", "adapter_get_part.{store}", ACCESSES, 1.2, "table61_over_adapter"),
)
OWN = ("own_get", "own_put", "own_get_part", "own_put_part", "adapter_get_part", "adapter_put_part")


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
    if on_server and flushes:
        number = min(number, SERVER_FLUSHES)
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


def own_place(store, uri):
    """Where the engine's own client finds it."""
    if store in ("redis", "etcd"):
        return uri.split("//")[1].split("/")[0].split(",")[0]
    return os.environ.get(f"{store.upper()}_EMULATOR_HOST") or uri.split(":", 1)[1]


def own_accesses(program, store, uri):
    found = {}
    clients = {"adapter": ("store", uri), **({"own": (store, own_place(store, uri))} if store != "mem" else {})}
    for who, words in clients.items():
        done = subprocess.run([program, *words, "accesses", str(OWN_ACCESSES[STORES[store]])], capture_output=True,
                              text=True, check=False, timeout=300)
        if done.returncode != 0:
            raise ValueError(f"{program} {' '.join(words)}: {done.stderr.strip()[-300:]}")
        values = dict(line.split() for line in done.stdout.splitlines())
        found |= {f"{who}_{name}.{store}": float(values[f"{name}_us"]) for name in ("get_part", "put_part")}
    return found


def inside(folder, tool, program, store, uri):
    """All of one store, once: prints {name: microseconds}."""
    found = {}
    for way in WAYS:
        if way in ("original", "hint"):
            continue
        for test in TESTS:
            found[f"{test}.{way}.{store}"], checksum, number = run_one(folder, way, test, uri, STORES[store] is not None)
            if checksum != run_one(folder, "original", test, None, False, number)[1]:
                raise ValueError(f"{way} {test} {uri}: a wrong result")
        if way == "translate-heap.direct":  # right behind what it is compared with
            found |= own_accesses(program, store, uri)
    found |= {f"{name}.{store}": value for name, value in own_figures(tool, uri).items()}
    print(json.dumps(found))


def one_store(options, folder, tool, store):
    """The figures of one round, or None, with words, if the store is not here."""
    place = os.path.join(folder, store)
    os.makedirs(place, exist_ok=True)
    programs = os.path.join(options.build_folder, "bench", "stores")
    command = [sys.executable, os.path.abspath(__file__), folder, tool, os.path.join(programs, "stores_own"), store]
    if STORES[store] is None:
        command += [f"{store}:" + ("" if store == "mem" else place)]
    else:
        command = [os.path.join(programs, "stores_with_server"), STORES[store], *command, "@STORE"]
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


def ratios_of(found):
    """[(name, metric, ratios, one a round, bound)] of what was asked for and measured."""
    ratios = []
    for over, under, factor, bound, metric in BOUNDS:
        for store in STORES:
            one, other = over.format(store=store), under.format(store=store)
            if one in found and other in found:
                each = [value / factor / reference for value, reference in zip(found[one], found[other])]
                ratios.append((one, metric, each, bound))
    return ratios


def results_of(found):
    results = [report.result(name, "table61_us", statistics.median(values), "us", min(values), max(values))
               for name, values in found.items()]
    return results + [report.result(name, metric, statistics.median(each), "ratio", min(each), max(each))
                      for name, metric, each, _ in ratios_of(found)]


def verdicts(found):
    """A row for each bound, a column for each store: the ratio, its spread, and whether it is kept."""
    ratios = {(name, metric): each for name, metric, each, _ in ratios_of(found)}
    stores = [store for store in STORES if any(name.endswith("." + store) for name, _ in ratios)]
    rows = []
    for over, under, factor, bound, metric in BOUNDS:
        cells = []
        for store in stores:
            each = ratios.get((over.format(store=store), metric))
            middle, low, high = report.spread(each) if each else (None, None, None)
            cells.append(f"{middle:.2f} ({low:.2f}-{high:.2f}), {'kept' if middle <= bound else 'NOT KEPT'}" if each else "")
        what = over.removesuffix(".{store}").replace(".", ", ", 1) + (f", 1/{factor}" if factor != 1 else "")
        if any(cells):
            rows.append([what, under.removesuffix(".{store}"), f"{bound:g}", *cells])
    return ["ratio of", "to", "at most", *stores], rows


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
                         " / ".join(f"{value:,}" for value in SEED[test]) if first and test in SEED else ""])
    for own in OWN:
        rows.append([own, "", "",
                     *(text_of(middle[name]) if (name := f"{own}.{store}") in middle else "" for store in stores), ""])
    return head, rows


if __name__ == "__main__":
    inside(*sys.argv[1:6])
