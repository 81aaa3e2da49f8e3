// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "verbs.hpp"

#include <cassert>

namespace farheap::tool {

std::span<const Verb> verbs() {
  static const std::vector<Verb> table = {
      {"run",
       "Run a program with its heap in a store and at most so much of it in memory",
       "run [--memory SIZE] [--store URI] [--plan FILE] [--set KEY=VALUE]... [--trace FILE [--trace-interval "
       "SECONDS]] [--quiet] "
       "[--stats text|json] [--plain] [--hints kernel[:mlock|:madvise] [--hints-share PERCENT]] -- PROGRAM ARGS",
       {"farheap run --memory 300M -- python3 index.py", "farheap run --memory 1G --store file:/mnt/nvme -- sqlite3",
        "farheap run --memory 512M --set read_ahead=8M --stats=json -- sort big.txt",
        "farheap run --memory 300M --trace index.trace -- python3 index.py"}},
      {"top",
       "What the programs that run under Farheap do just now: memory, faults, bytes, stalls, hottest ranges",
       "top [PROCESS] [--once] [--interval SECONDS] [--json]",
       {"farheap top", "farheap top 4711 --once", "farheap top --json --interval 0.5 > runs.jsonl"}},
      {"record",
       "Run a program as `farheap run` does, or attach to a run, and record where it allocates and which lines of it "
       "wait for memory",
       "record [-o FILE] [--memory SIZE] [--store URI] [--set KEY=VALUE]... [--quiet] [--stats text|json] -- PROGRAM "
       "ARGS | record --attach PID [-o FILE] [--seconds N] [--quiet]",
       {"farheap record -o index.profile --memory 300M -- python3 index.py",
        "farheap record --memory 1G -- ./simulation input",
        "farheap record --attach 4711 --seconds 30 -o server.profile"}},
      {"report",
       "What a recorded run did over time, and which lines of it waited for memory that was allocated where",
       "report FILE [--html OUT] [--pprof OUT] [--json | --folded [--weight waits|peak|allocated] | --speedscope] | "
       "report --compare "
       "BEFORE AFTER [--tolerance PERCENT] [--json] [--html OUT]",
       {"farheap report index.profile", "farheap report index.profile --html index.html",
        "farheap report index.profile --pprof index.pb.gz",
        "farheap report index.profile --speedscope > index.speedscope.json",
        "farheap report --compare before.profile after.profile --tolerance 5"}},
      {"plan",
       "From a profile, in which order a program uses its memory, for `farheap run --plan`",
       "plan PROFILE [-o FILE] [--explain] [--anyway]",
       {"farheap plan index.profile -o index.plan --explain",
        "farheap run --memory 300M --plan index.plan -- ./index other-input"}},
      {"doctor",
       "What this machine allows, what is missing, and the command that mends it",
       "doctor [--set KEY=VALUE]... [--json]",
       {"farheap doctor", "farheap doctor --json"}},
      {"core",
       "Put the pages that had left into the core of a program that ran with whole_core=on",
       "core CORE|--pid PID --store URI --out WHOLE [--set KEY=VALUE]... [--json]",
       {"farheap core core.1234 --store file:/var/tmp/farheap-core-x2Q1ab --out whole.1234",
        "farheap core --pid 1234 --store file:/var/tmp/farheap-core-x2Q1ab --out whole.1234",
        "farheap run --memory 1G --set whole_core=on -- python3 crash.py"}},
      {"options",
       "Every knob, its value, and where the value came from",
       "options [--set KEY=VALUE]... [--json]",
       {"farheap options", "FARHEAP_MEMORY=1G farheap options --json"}},
      {"heap ls",
       "What a kept heap holds: named objects and versions",
       "heap ls URI[@SNAPSHOT] [--long] [--json]",
       {"farheap heap ls file:/data/graph", "farheap heap ls file:/data/graph@monday --json"}},
      {"heap show",
       "One object of a kept heap: type, count, bytes, description; without a name, the heap itself",
       "heap show URI[@SNAPSHOT] [NAME] [--json]",
       {"farheap heap show file:/data/graph graph", "farheap heap show file:/data/graph"}},
      {"heap stats",
       "What a kept heap takes, and what each of its snapshots takes alone",
       "heap stats URI[@SNAPSHOT] [--long] [--json]",
       {"farheap heap stats file:/data/graph"}},
      {"heap diff",
       "How two versions of a kept heap differ: objects, and how many pages",
       "heap diff URI[@SNAPSHOT] URI[@SNAPSHOT] [--long] [--json]",
       {"farheap heap diff file:/data/graph@monday file:/data/graph",
        "farheap heap diff file:/data/graph@monday file:/data/graph@tuesday --json"}},
      {"heap export",
       "Write what is known of the objects of a kept heap as JSON lines, or the bytes of one object",
       "heap export URI[@SNAPSHOT] OUT [--object NAME]",
       {"farheap heap export file:/data/graph graph.jsonl",
        "farheap heap export file:/data/graph@monday weights.bin --object weights"}},
      {"heap check",
       "Read all books of a kept heap and say what is wrong, if anything",
       "heap check URI [--data] [--pointers [--long]] [--repair] [--json]",
       {"farheap heap check file:/data/graph", "farheap heap check checksum+file:/data/graph --data",
        "farheap heap check file:/data/graph --pointers", "farheap heap check file:/data/graph --repair"}},
      {"heap copy",
       "Copy a kept heap with its snapshots, or one version of it, into any store",
       "heap copy URI[@SNAPSHOT] URI [--newest] [--own-bytes] [--json]",
       {"farheap heap copy file:/data/graph lmdb:/backup/graph",
        "farheap heap copy file:/data/graph@monday file:/data/past",
        "farheap heap copy file:/data/graph file:/tmp/new --newest"}},
      {"heap snapshot",
       "Keep the newest version under a name",
       "heap snapshot URI NAME [--json]",
       {"farheap heap snapshot file:/data/graph monday"}},
      {"heap compact",
       "Give back what a kept heap holds for nothing",
       "heap compact URI [--json]",
       {"farheap heap compact file:/data/graph"}},
      {"heap rm",
       "Remove a kept heap with its files, or one of its snapshots",
       "heap rm URI[@SNAPSHOT] [--yes] [--json]",
       {"farheap heap rm file:/data/graph@monday", "farheap heap rm file:/data/graph"}},
      {"heap rollback",
       "Go back to a snapshot, the newest one if none is named: what came after it is lost",
       "heap rollback URI[@SNAPSHOT] [--yes] [--json]",
       {"farheap heap rollback file:/data/graph", "farheap heap rollback file:/data/graph@monday"}},
      {"store bench",
       "What a store itself can do: the bound of every run on it, and YCSB's load and workloads A and F",
       "store bench URI [--plot FILE.svg] [--json]",
       {"farheap store bench redis://127.0.0.1:6379/7", "farheap store bench file:/mnt/nvme --plot nvme.svg",
        "farheap store bench checksum+mem: --json"}},
      {"store check",
       "Put a store to the contract that every program here relies on, in a namespace of its own",
       "store check URI [--only CHECK] [--block SIZE]... [--set KEY=VALUE]... [--json]",
       {"farheap store check redis://127.0.0.1:6379/7", "farheap store check etcd://h1,h2,h3 --only killed-owner",
        "farheap store check file:/mnt/nvme --json"}},
      {"store ls",
       "The stores of a server, database, table or folder: kept ones, and those of runs",
       "store ls URI [--set KEY=VALUE]... [--json]",
       {"farheap store ls redis://127.0.0.1:6379/7", "farheap store ls file:/data",
        "farheap store ls lmdb:/data --json"}},
      {"store copy",
       "Copy all blocks and counters of a kept store to another engine",
       "store copy FROM TO [--set KEY=VALUE]... [--json]",
       {"farheap store copy file:/data/graph redis://127.0.0.1:6379/7/graph",
        "farheap store copy lmdb:/data/graph checksum+file:/backup/graph"}},
      {"store rm",
       "Remove a kept store with all that is in it",
       "store rm URI [--yes] [--set KEY=VALUE]... [--json]",
       {"farheap store rm redis://127.0.0.1:6379/7/graph", "farheap store rm file:/data/graph --yes"}},
      {"store kinds", "The engines and decorators of this build", "store kinds [--json]", {"farheap store kinds"}},
  };
  return table;
}

const Verb& verb(std::string_view name) {
  for (const auto& one : verbs()) {
    if (one.name == name) return one;
  }
  assert(!"an unknown verb");
  return verbs().front();
}

}  // namespace farheap::tool
