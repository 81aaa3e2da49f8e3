#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which engine a heap should live in: paging over each beside what the engine's own client does, and YCSB.

  ./dev bench stores
  ./dev bench stores --engines redis,lmdb --rounds 7 --mib 512 --json stores.json --plot stores.svg

In each round all engines have their turn, with servers that are started for it on free ports and ended again. The
engine's own client and Farheap begin by turns, after a few MiB by the own client that nobody counts: servers are slow
at first. Figures are medians over the rounds, with the least and the greatest. What is not on this machine is said.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "common"))
# pylint: disable=wrong-import-position
import report

NOT_HERE = 77
WARM_MIB = 8
# Of each engine: which of the servers of the tests it needs, and its own client's name (paging is compared with it).
ENGINES = {
    "file": (None, "file"), "lmdb": (None, "lmdb"), "rocksdb": (None, "rocksdb"),
    "redis": ("redis", "redis"), "redis-unix": ("redis", "redis"), "redis-cluster": ("redis-cluster", "redis-cluster"),
    "etcd": ("etcd", "etcd"), "etcd-3": ("etcd-3", "etcd"), "bigtable": ("bigtable", "bigtable"),
    "datastore": ("datastore", "datastore"), "spanner": ("spanner", "spanner"),
}
PAGING = ("seq_read_over_bound", "seq_write_over_bound", "miss_overhead_us", "seq_read_mb_s", "seq_write_mb_s",
          "miss_us", "own_get_us")
UNITS = {"load": "ratio", "over_bound": "ratio", "_us": "us", "_mb_s": "MB/s", "_ops": "op/s"}


def unit_of(metric):
    return next(unit for end, unit in UNITS.items() if metric.endswith(end))


def lines_of(command, **more):
    """The last word of each line of output by the others."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False, **more)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} failed ({done.returncode}): {done.stderr.strip()[-600:]}")
    return {name: float(value) for name, value in (line.split() for line in done.stdout.splitlines())}


class Round:
    """All that is measured of one engine, whose server runs."""

    def __init__(self, options, engine, uri):
        self.options, self.engine, self.uri = options, engine, uri
        self.programs = os.path.join(options.build, "bench/stores")
        self.farheap = os.path.join(options.build, "tool/farheap")

    def own_place(self):
        """Where the engine's own client finds it."""
        if self.engine == "redis-unix":
            return self.uri.split("//")[1].rsplit("/", 2)[0]
        if self.engine.startswith(("redis", "etcd")):
            return self.uri.split("//")[1].split("/")[0].split(",")[0]
        return os.environ.get(f"{self.engine.upper()}_EMULATOR_HOST", self.options.folder)

    def own(self, mib):
        return lines_of([os.path.join(self.programs, "stores_own"), ENGINES[self.engine][1], self.own_place(),
                         str(mib)])

    def paged(self):
        return lines_of([self.farheap, "run", "--quiet", "--memory", f"{max(32, self.options.mib // 4)}M", "--store",
                         self.uri, "--", os.path.join(self.programs, "stores_paging"), str(self.options.mib)])

    def paging(self):
        self.own(WARM_MIB)
        if self.options.turn % 2 == 0:
            own = self.own(self.options.mib)
            run = self.paged()
        else:
            run = self.paged()
            own = self.own(self.options.mib)
        mib = 1 << 20
        read_bound = run["read_bytes"] / mib * (own["read_us_mib"] + own["place_us_mib"]) / 1e6
        write_bound = (run["written_bytes"] / mib * own["write_us_mib"] + self.options.mib * own["fresh_us_mib"]) / 1e6
        return {
            "seq_read_over_bound": run["read_s"] / read_bound,
            "seq_write_over_bound": run["write_s"] / write_bound,
            "miss_overhead_us": run["miss_us"] - own["get_us"],
            "seq_read_mb_s": run["read_bytes"] / 1e6 / run["read_s"],
            "seq_write_mb_s": self.options.mib * mib / 1e6 / run["write_s"],
            "miss_us": run["miss_us"], "own_get_us": own["get_us"],
        }

    def ycsb(self):
        done = subprocess.run([self.farheap, "store", "bench", self.uri, "--json"], capture_output=True, text=True,
                              timeout=900, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"store bench {self.uri} failed: {done.stderr.strip()[-600:]}")
        found = {row["name"] + " " + row["unit"]: row["median"] for row in json.loads(done.stdout)["results"]}
        values = {}
        for workload in ("load", "a", "f"):
            values[f"ycsb_{workload}_p50_us"] = found[f"YCSB {workload}, all us"]
            values[f"ycsb_{workload}_ops"] = found[f"YCSB {workload} op/s"]
            for operation in ("insert", "read", "write", "read-modify-write"):
                if f"YCSB {workload}, {operation} us" in found:
                    name = operation.replace("-", "_")
                    values[f"ycsb_{workload}_{name}_p50_us"] = found[f"YCSB {workload}, {operation} us"]
        return values

    def go_ycsb(self):
        """The same counts by an outside program, where it knows the engine: {} if not."""
        program = os.path.abspath("build/tools/go-ycsb")
        if self.engine not in ("redis", "etcd") or not os.path.exists(program):
            return {}
        address = self.uri.split("//")[1].split("/")[0]
        kinds = {"redis": ["redis", "-p", f"redis.addr={address}", "-p", "redis.db=8"],
                 "etcd": ["etcd", "-p", f"etcd.endpoints={address}"]}
        values = {}
        for verb, workload in (("load", "a"), ("run", "a"), ("run", "f")):
            command = [program, verb, *kinds[self.engine], "-P", self.workload(workload), "-p", "threadcount=1"]
            done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
            name = "load" if verb == "load" else workload
            for line in done.stdout.splitlines():
                kind = line.split(" ")[0]
                words = dict(part.split(": ") for part in line.partition(" - ")[2].split(", ") if ": " in part)
                if kind in ("INSERT", "READ", "UPDATE", "READ_MODIFY_WRITE", "TOTAL") and "50th(us)" in words:
                    end = "" if kind == "TOTAL" else f"_{kind.lower()}"
                    values[f"goycsb_{name}{end}_p50_us"] = float(words["50th(us)"])
                    if kind == "TOTAL":
                        values[f"goycsb_{name}_ops"] = float(words["OPS"])
            if done.returncode != 0 or not any(key.startswith(f"goycsb_{name}") for key in values):
                print(f"stores: go-ycsb {name} on {self.engine}: {done.stderr.strip()[-300:]}", file=sys.stderr)
        return values

    def workload(self, letter):
        path = os.path.join(self.options.scratch, f"workload{letter}")
        with open(path, "w", encoding="utf-8") as out:
            share = "updateproportion" if letter == "a" else "readmodifywriteproportion"
            other = "readmodifywriteproportion" if letter == "a" else "updateproportion"
            out.write("recordcount=1000\noperationcount=1000\nworkload=core\nreadallfields=true\nreadproportion=0.5\n"
                      f"{share}=0.5\n{other}=0\nscanproportion=0\ninsertproportion=0\nrequestdistribution=zipfian\n")
        return path

    def measure(self):
        values = {"load": os.getloadavg()[0]}
        values.update(self.paging())
        values.update(self.ycsb())
        values.update(self.go_ycsb())
        return values


def uri_of(engine, server_uri, folder):
    if server_uri is None:
        return f"{engine}:{folder}"
    return server_uri.replace("/contract", "/bench")


def measure(options, engine, turn):
    """One round of one engine: starts its server around a further call of this script. None if it is not here."""
    server, _ = ENGINES[engine]
    out = os.path.join(options.scratch, engine + ".json")
    inner = [sys.executable, os.path.abspath(__file__), "--inside", engine, "--build", options.build, "--turn",
             str(turn), "--mib", str(options.mib), "--folder", options.folder, "--scratch", options.scratch,
             "--json", out]
    if server is None:
        done = subprocess.run(inner, check=False, stdout=subprocess.PIPE, text=True)
    else:
        around = os.path.join(options.build, "bench/stores/stores_with_server")
        done = subprocess.run([around, server, *inner, "--uri", "@STORE"], check=False, stdout=subprocess.PIPE,
                              text=True)
    if done.returncode == NOT_HERE:
        print(f"stores: {engine}: NOT MEASURED: {done.stdout.strip()}", file=sys.stderr)
    elif done.returncode != 0:
        print(f"stores: {engine}: FAILED: {done.stdout.strip()[-600:]}", file=sys.stderr)
    if done.returncode != 0:
        return None
    with open(out, encoding="utf-8") as text:
        return json.load(text)


def all_rounds(options, engines):
    """Of each engine that is here, the values of all rounds."""
    found = {}
    for turn in range(options.rounds):
        for engine in engines:
            if turn > 0 and engine not in found:
                continue  # it is not here
            print(f"{engine}: round {turn + 1} of {options.rounds}", file=sys.stderr, flush=True)
            for metric, value in (measure(options, engine, turn) or {}).items():
                found.setdefault(engine, {}).setdefault(metric, []).append(value)
    return found


def inside(options):
    engine = options.inside
    uri = uri_of(engine, options.uri, options.folder)
    kinds = subprocess.run([os.path.join(options.build, "tool/farheap"), "store", "kinds", "--json"],
                           capture_output=True, text=True, check=True).stdout
    scheme = uri.split(":")[0]
    if scheme not in {row["scheme"] for row in json.loads(kinds)["kinds"]}:
        print(f"{scheme}: is not in this build")
        return NOT_HERE
    if engine == "redis-unix":
        uri = unix_uri(options.uri)
    values = Round(options, engine, uri).measure()
    with open(options.json, "w", encoding="utf-8") as out:
        json.dump(values, out)
    return 0


def unix_uri(uri):
    """The same server by a socket, which it is told to open."""
    host, port = uri.split("//")[1].split("/")[0].split(":")
    path = subprocess.run(["redis-cli", "-h", host, "-p", port, "CONFIG", "GET", "unixsocket"], capture_output=True,
                          text=True, check=True).stdout.split("\n")[1].strip()
    return f"redis://{path}/0/bench"


def print_tables(found):
    for title, metrics in (("paging", PAGING[:5]), ("a miss, us", PAGING[5:] + PAGING[2:3]),
                           ("YCSB, p50 us", [f"ycsb_{name}_p50_us" for name in ("load", "a", "f")]),
                           ("YCSB, op/s", [f"ycsb_{name}_ops" for name in ("load", "a", "f")]),
                           ("go-ycsb", ["goycsb_load_p50_us", "goycsb_a_p50_us", "goycsb_f_p50_us", "goycsb_load_ops",
                                        "goycsb_a_ops", "goycsb_f_ops"]),
                           ("the machine's load", ["load"])):
        rows = []
        for engine, values in found.items():
            if not any(metric in values for metric in metrics):
                continue
            cells = [f"{statistics.median(values[metric]):.4g} ({min(values[metric]):.4g}-{max(values[metric]):.4g})"
                     if metric in values else "-" for metric in metrics]
            rows.append([engine, *cells])
        if rows:
            report.print_table([title, *metrics], rows)
            print()


def plot(path, found):
    """Bars as in the seed's figures: latency and throughput of load and of the two workloads. Why not, or None."""
    if not path.endswith((".svg", ".png")):
        return f"cannot plot to {path}: the name must end in .svg or .png"
    if not shutil.which("gnuplot"):
        return "no plot: gnuplot is not here (apt install gnuplot-nox)"
    terminal = "svg size 1100,760 font 'sans,11' background 'white'" if path.endswith(".svg") else "png size 1100,760"
    lines = [f"set terminal {terminal}", f"set output '{path}'", "set multiplot layout 2,3", "set style fill solid 0.7",
             "set logscale y", "set grid ytics", "unset key", "set xtics rotate by -35"]
    for kind, label in (("p50_us", "latency, p50, us"), ("ops", "throughput, op/s")):
        for name, title in (("load", "1000 inserts"), ("a", "workload A"), ("f", "workload F")):
            rows = [(engine, values[f"ycsb_{name}_{kind}"]) for engine, values in found.items()
                    if f"ycsb_{name}_{kind}" in values]
            lines += [f"$d{name}{kind} << END"]
            lines += [f"{engine} {statistics.median(figures)} {min(figures)} {max(figures)}" for engine, figures in rows]
            floor = min((statistics.median(figures) for _, figures in rows), default=1) / 3
            lines += ["END", f"set title '{title}: {label}'", f"set yrange [{floor}:*]",
                      f"set xrange [-0.6:{len(rows) - 0.4}]",
                      f"plot $d{name}{kind} using 0:2:3:4:(0.6):xtic(1) with boxerrorbars lc rgb '#4878a8'"]
    done = subprocess.run(["gnuplot"], input="\n".join([*lines, "unset multiplot"]), capture_output=True, text=True,
                          check=False)
    return None if done.returncode == 0 else f"gnuplot failed: {done.stderr.strip()}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--engines", default=",".join(ENGINES), help="separated by commas (default: all)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--mib", type=int, default=256, help="what is paged through; a quarter of it fits (256)")
    parser.add_argument("--folder", default="/var/tmp", help="on the disk to be measured (default: /var/tmp)")
    parser.add_argument("--plot", metavar="FILE", help="a picture, .svg or .png")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--turn", type=int, default=0, help=argparse.SUPPRESS)  # and others of this script in itself
    for name in ("--inside", "--uri", "--scratch"):
        parser.add_argument(name, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        return inside(options)
    wanted = options.engines.split(",")
    if unknown := [name for name in wanted if name not in ENGINES]:
        parser.error(f"no engine {unknown[0]}; there are {', '.join(ENGINES)}")
    print(report.machine(options.folder), file=sys.stderr)
    with tempfile.TemporaryDirectory(prefix="stores-") as options.scratch:
        found = all_rounds(options, wanted)
    print_tables(found)
    if options.plot and (why := plot(options.plot, found)):
        print(f"stores: {why}", file=sys.stderr)
    if options.json:
        results = [report.result(engine, metric, statistics.median(figures), unit_of(metric), min(figures), max(figures))
                   for engine, values in found.items() for metric, figures in values.items()]
        report.write_json(options.json, "stores", results)
    return 0 if found else 1


if __name__ == "__main__":
    sys.exit(main())
