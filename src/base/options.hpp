// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every knob of Farheap, in one table. The table gives the fields of Options, the FARHEAP_* environment variables,
// `--set key=value`, the listing of `farheap options`, the manual page and the shell completion.
//
// A value comes from the command line if given there, else from the environment, else it is the default.
// Nothing here uses streams or static constructors: the preload library loads its options before main.
//
// Thread-safety: plain values and pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <farheap/result.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.hpp"

namespace farheap::base {

// What `disable=` can mask, so that a new kernel behaves as an old or a strict one.
enum class Feature : std::uint32_t {
  kMove = 1u << 0,          // UFFDIO_MOVE, Linux 6.8
  kWpAsync = 1u << 1,       // asynchronous write protection, 6.7
  kPagemapScan = 1u << 2,   // PAGEMAP_SCAN, 6.7
  kIoUring = 1u << 3,       // asynchronous file I/O
  kKernelFaults = 1u << 4,  // faults that system calls make
  kHugePages = 1u << 5,     // transparent huge pages in the heap
};

struct FeatureSet {
  std::uint32_t bits = 0;
  [[nodiscard]] constexpr bool has(Feature one) const { return (bits & static_cast<std::uint32_t>(one)) != 0; }
  constexpr void add(Feature one) { bits |= static_cast<std::uint32_t>(one); }
  friend constexpr bool operator==(FeatureSet, FeatureSet) = default;
};

// Below this budget the runtime's own memory and staging leave the program nothing to run in.
inline constexpr std::uint64_t kLeastBudgetBytes = std::uint64_t{32} << 20;

enum class EvictionPolicy : std::uint8_t { kClock, kPeriod, kS3Fifo };
enum class OnFull : std::uint8_t { kPause, kFail };
enum class StatsForm : std::uint8_t { kText, kJson };

// Kinds of values: the C++ type each becomes. Parsing, printing and the right form are in options.cpp.
namespace option_kind {
using Size = std::uint64_t;       // bytes
using BlockSize = std::uint64_t;  // bytes; a power of two of pages, 4 KiB to 2 MiB
using Text = std::string;
using Uri = std::string;
using Features = FeatureSet;
using Policy = EvictionPolicy;
using Full = OnFull;
using Stats = StatsForm;
using Switch = bool;
using Number = std::uint32_t;
using Threads = std::uint32_t;     // 1 to 64
using FewThreads = std::uint32_t;  // 0 to 8
using Percent = std::uint32_t;     // 0 to 90
using Log = LogLevel;
}  // namespace option_kind

// X(kind, key, default, hidden, what it does)
// Keys are lower case; the variable of `key` is FARHEAP_ + the key in upper case. Hidden ones are for the tool and
// the runtime to speak with each other: not listed, not settable by --set.
// clang-format off
#define FARHEAP_OPTION_TABLE(X)                                                                                        \
  X(Size, memory, "0", false,                                                                                          \
    "The budget: how much of the heap may be in memory. 0: the control group's limit less slack, or else the "         \
    "machine's memory")                                                                                                \
  X(Uri, store, "", false,                                                                                            \
    "The store that takes what is not in memory. Empty: file: in $TMPDIR if that is on a disk, or else in /var/tmp")   \
  X(Text, encrypt_key_file, "", false,                                                                                 \
    "For encrypt+: a file of 64 hexadecimal digits that only its owner may use. Empty: a run's store has a random "    \
    "key that nobody knows")                                                                                           \
  X(Text, store_password_file, "", false,                                                                              \
    "For stores that ask for a password: a file that holds it, where the URI names none")                              \
  X(Features, disable, "", false,                                                                                      \
    "Kernel features to leave unused, to run as on an older or stricter kernel")                                       \
  X(Policy, policy, "period", false, "Which pages leave first")                                                        \
  X(BlockSize, block_min, "4K", false, "The smallest block that travels between memory and the store")                 \
  X(BlockSize, block_max, "2M", false, "The largest block that travels between memory and the store")                  \
  X(Size, read_ahead, "4M", false, "How far ahead of a sweep to read, for each stream. 0: not at all")                 \
  X(Threads, handlers, "4", false, "Threads that serve faults, at the most")                                           \
  X(FewThreads, fault_queues, "0", false,                                                                              \
    "Queues of faults, each with handlers of its own; 1, 2, 4 or 8. 0: one for every four processors, up to four")     \
  X(FewThreads, evictors, "0", false,                                                                                  \
    "Threads that bring pages out of memory, at the most. 0: one for every four processors, up to four, and two at "   \
    "least where the store is at a server")                                                                            \
  X(Switch, keep_awake, "on", false,                                                                                   \
    "While faults follow each other closely, keep processors that are free from falling asleep")                        \
  X(Percent, probation, "10", false,                                                                                   \
    "Largest share of the budget for pages that are out of the program's view but still in memory")                    \
  X(Switch, tier, "on", false,                                                                                         \
    "Keep pages that may soon be wanted again compressed in memory, as a part of the budget, as long as that pays")    \
  X(Full, on_full, "pause", false, "When the store is full: pause until there is room, or fail")                       \
  X(Size, mmap_threshold, "32K", false, "Private anonymous mappings from this size up are part of the heap")          \
  X(Size, huge_pages_from, "256M", false,                                                                              \
    "Before paging begins, the heap has huge pages where the budget is at least so large")                             \
  X(Number, heap_id, "0", false, "Which slot of addresses the heap takes")                                             \
  X(Switch, whole_core, "off", false,                                                                                  \
    "Keep the store when the program is ended by a signal, so that `farheap core` can put all data into its core")     \
  X(Switch, follow_exec, "on", false, "Programs that the program starts run on Farheap too")                           \
  X(Text, record_pages, "", false,                                                                                     \
    "Record in which order pages are used, in this file with the process's number added. Slow: one page a fault")       \
  X(Size, record_window, "4M", false, "While recording, at most so much is in view, where uses are not seen")          \
  X(Text, expect_pages, "", false,                                                                                     \
    "A recording of an earlier run (record_pages, with the process's number): pages are brought in and let go of in "  \
    "expectation of the same order. Advice: where the program leaves it, all is as without")                           \
  X(Text, plan, "", false,                                                                                             \
    "A plan of how the program uses its memory, as `farheap plan` makes it from a profile. Advice, as expect_pages")   \
  X(Log, log, "warn", false, "What is worth a line on standard error")                                                 \
  X(Switch, quiet, "off", false, "No report at the end of a run")                                                      \
  X(Stats, stats, "text", false, "Form of the report at the end of a run")                                             \
  X(Text, record_into, "", true, "The folder in which each process of a recorded run keeps its part of the profile")   \
  X(Text, run_page, "", true, "The page of memory that all processes of a run share")                                  \
  X(Text, preload, "", true, "The preload library, where it is not beside the tool")                                  \
  X(Text, engines, "", true, "The program farheap-engines, where it is not beside the tool")
// clang-format on

struct Options {
#define FARHEAP_FIELD(kind, key, initial, hidden, help) option_kind::kind key{};
  FARHEAP_OPTION_TABLE(FARHEAP_FIELD)
#undef FARHEAP_FIELD

  // Everything at its default, `store` left empty.
  Options();
};

enum class OptionSource : std::uint8_t { kDefault, kEnvironment, kCommandLine };
[[nodiscard]] std::string_view to_string(OptionSource source);

struct OptionInfo {
  std::string_view key;
  std::string_view default_text;
  std::string_view help;
  std::string_view form;     // "SIZE", "pause|fail"
  std::string_view example;  // "512M", "pause"
  bool hidden = false;
  std::span<const std::string_view> choices = {};  // for completion; empty: free text

  [[nodiscard]] std::string variable() const;  // "FARHEAP_MEMORY"
};

// In the order of the table; the index is the option's number everywhere below.
[[nodiscard]] std::span<const OptionInfo> option_table();

// The value as parse_option() takes it ("512M", "move,io_uring").
[[nodiscard]] std::string option_text(const Options& options, std::size_t index);

// Sets one option from text. kInvalidArgument with the right form for a wrong value, with a suggestion for an
// unknown key; hidden options count as unknown.
[[nodiscard]] Status set_option(Options& options, std::string_view key, std::string_view value);

struct LoadedOptions {
  Options options;
  std::vector<OptionSource> sources;  // one for each row of the table
  std::vector<Error> warnings;        // unknown FARHEAP_* variables
};

// `environment` is an environ: pointers to "NAME=value", ended by a null pointer; it may be null itself.
// `settings` are "key=value" of the command line, later ones win. Fills in `store` when nobody names one.
[[nodiscard]] Result<LoadedOptions> load_options(const char* const* environment,
                                                 std::span<const std::string> settings = {});

// What differs from the defaults, as "FARHEAP_KEY=value" lines: the environment that gives the same options.
[[nodiscard]] std::vector<std::string> option_environment(const Options& options);

// The word of `words` that `text` is most likely a misspelling of; empty if none is near.
[[nodiscard]] std::string_view nearest_word(std::string_view text, std::span<const std::string_view> words);

}  // namespace farheap::base
