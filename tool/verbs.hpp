// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The verbs of the command line: what each takes and the function that does it, one source file each. Every
// function answers the exit status: 0, 1 failed, 2 wrong usage, 3 found what it looked for and what nobody wants
// (`run`: the program's own). Data goes to standard output, everything else to standard error.
//
// Thread-safety: the tool has one thread.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace farheap::tool {

inline constexpr int kDone = 0;
inline constexpr int kFailed = 1;
inline constexpr int kUsage = 2;
inline constexpr int kSuspect = 3;     // nothing failed; what was found wants to be looked at
inline constexpr int kJsonFormat = 1;  // "format" of every JSON this tool prints

struct Verb {
  std::string_view name;
  std::string_view summary;
  std::string_view usage;
  std::vector<std::string_view> examples;
};
// For the bare command, --help, the manual page and the completion.
[[nodiscard]] std::span<const Verb> verbs();
// Requires: there is a verb of this name.
[[nodiscard]] const Verb& verb(std::string_view name);

struct RunArguments {
  std::vector<std::string> settings;  // "key=value"
  std::vector<std::string> command;   // the program and its arguments
  bool plain = false;                 // without Farheap
  std::string trace;                  // the file to record to; empty: no recording
  double trace_interval = 0;          // seconds between two samples; 0: chosen by the length of the run
  std::string profile;                // `farheap record`: the profile to write
  std::string hints;                  // the seeds' hints on kernel swap instead of Farheap; empty: Farheap
  unsigned hints_share = 80;          // of the budget, to lock, in per cent
};
int run(const RunArguments& arguments);

struct AttachArguments {
  std::optional<int> process;     // of a run, or the run itself: then all of its processes
  std::string profile;            // to write
  std::optional<double> seconds;  // none: until Ctrl-C, or the program's end
  bool quiet = false;
};
int attach(const AttachArguments& arguments);

struct TopArguments {
  int process = 0;  // of the run, or the run itself; 0: all runs
  bool once = false;
  double interval = 1;  // seconds
  bool json = false;
};
int top(const TopArguments& arguments);

struct ReportArguments {
  std::string file;   // a trace, a profile, or the parts of one
  std::string html;   // the file to write; empty: none
  std::string pprof;  // the same, of a profile
  bool json = false;
  bool folded = false, speedscope = false;  // of a profile
  std::string weight;                       // of --folded; empty: waits
  bool compare = false;                     // with another file
  std::string other;                        // ... this one
  double tolerance = 10;                    // per cent
};
int report(const ReportArguments& arguments);

struct PlanArguments {
  std::string file;    // a profile, or the parts of one
  std::string output;  // the plan to write
  bool explain = false;
  bool anyway = false;  // also one that is of no use
};
int plan(const PlanArguments& arguments);

struct OptionsArguments {
  std::vector<std::string> settings;
  bool json = false;
};
int options(const OptionsArguments& arguments);

struct DoctorArguments {
  std::vector<std::string> settings;
  bool json = false;
};
int doctor(const DoctorArguments& arguments);

struct StoreBenchArguments {
  std::string uri;
  std::string plot;  // the picture to write; empty: none
  bool json = false;
};
int store_bench(const StoreBenchArguments& arguments);

struct StoreCheckArguments {
  std::string uri;
  std::vector<std::string> settings;
  std::vector<std::string> blocks;  // sizes; empty: 4K and 64K
  std::string only;                 // one check; empty: all
  bool json = false;
};
int store_check(const StoreCheckArguments& arguments);

struct StoreArguments {
  enum What { kList, kCopy, kRemove };
  What what = kList;
  std::string uri;
  std::string other;  // copy: where to
  std::vector<std::string> settings;
  bool json = false;
  bool yes = false;  // rm: do not ask
};
int store(const StoreArguments& arguments);

struct StoreKindsArguments {
  bool json = false;
};
int store_kinds(const StoreKindsArguments& arguments);

struct HeapArguments {
  enum What { kList, kShow, kStats, kDiff, kExport, kCheck, kSnapshot, kCompact, kRemove, kRollBack, kCopy };
  What what = kList;
  std::string uri;
  std::string name;   // of the object, or of the snapshot
  std::string other;  // diff: what it is compared with; copy: where to
  std::string out;    // export: the file to write; "-": standard output
  bool json = false;
  bool newest_only = false;  // copy
  bool own_bytes = false;    // copy
  bool long_names = false;   // tables: all of each name
  bool data = false;         // check
  bool pointers = false;     // check
  bool repair = false;       // check
  bool yes = false;          // rm, rollback: do not ask
  double wait = -1;          // seconds, for whoever has the heap open; negative: as usual
};
int heap(const HeapArguments& arguments);

struct CoreArguments {
  std::vector<std::string> settings;
  std::string core;
  int process = 0;    // instead of a core
  std::string store;  // of its program; empty: nobody has said which
  std::string out;
  bool json = false;
};
int core(const CoreArguments& arguments);

// The manual page (troff) and the completion of bash, from the tables of verbs and options.
int manual();
int completion();

}  // namespace farheap::tool
