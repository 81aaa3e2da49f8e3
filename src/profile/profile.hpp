// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A profile: what a recorded run did with its memory, by places in the program. It holds no address: code is named by
// file and offset, so that it can be read elsewhere and later, wherever the files of that build are. (The format:
// docs/formats.md.)
//
// Thread-safety: values, and pure functions.
#pragma once

#include <cstdint>
#include <farheap/result.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "profile/access_counts.hpp"
#include "profile/contexts.hpp"

namespace farheap::profile {

struct CodeFile {
  std::string path;
  std::string build_id;  // hexadecimal; empty: it has none, or could not be read
  friend bool operator==(const CodeFile&, const CodeFile&) = default;
};

struct CodePlace {
  std::uint32_t file = 0;    // of Profile::files; 0 is code in no file
  std::uint64_t offset = 0;  // in the file; in file 0: the address
  friend bool operator==(const CodePlace&, const CodePlace&) = default;
};

// A frame of the tree of call stacks, whose root is the function that allocates. A site is the frame that ends its
// stack.
struct StackFrame {
  SiteId inner = 0;  // what it called; 0: it called the allocation
  CodePlace returns_to;
  friend bool operator==(const StackFrame&, const StackFrame&) = default;
};

// Of all processes together where there are several. Figures are estimates from samples (sample_point.hpp).
struct SiteTotals {
  SiteId site = 0;
  double objects = 0;
  std::uint64_t allocated_bytes = 0, live_bytes = 0, peak_bytes = 0;
  // How often its objects were touched, an estimate that is good to tell one site from another; of how many small ones
  // that is known, and how many of their touches were seen.
  double touches = 0;
  std::uint64_t seen_objects = 0, seen_touches = 0;
  friend bool operator==(const SiteTotals&, const SiteTotals&) = default;
};

// A place in the program where threads waited for pages.
struct WaitPlace {
  CodePlace instruction;
  bool has_caller = false;  // a function of another file waits, on behalf of this return address
  CodePlace caller;
  friend bool operator==(const WaitPlace&, const WaitPlace&) = default;
};

// What threads waited for at a place, on pages of a site.
struct Stall {
  std::uint32_t place = 0;  // of ProcessProfile::places; 0: not known
  SiteId site = 0;          // 0: nobody's
  std::uint64_t faults = 0, stalled_ns = 0, pages_read = 0;
  friend bool operator==(const Stall&, const Stall&) = default;
};

// What no recording goes beyond (profile/page_sampler.hpp). With less the arithmetic of whoever reads it stays whole.
inline constexpr std::uint32_t kMostSampleLog2 = 20, kMostSampleWindow = 1u << 20;
inline constexpr std::uint64_t kMostUsedPages = std::uint64_t{1} << 45;  // all that an address of 57 bits tells
inline constexpr std::uint64_t kMostObjectEnd = std::uint64_t{1} << 57;
inline constexpr std::size_t kMostTouches = std::size_t{1} << 24;  // words
inline constexpr double kMostSiteTouches = 0x1p64;

// A large object (recording.hpp), for plans.
struct LargeObject {
  SiteId site = 0;
  std::uint64_t first = 0, bytes = 0;  // counted from where the pages of Touches are
  std::uint64_t born = 0, died = 0;    // by a clock that each birth and each death moves on; died 0: it lived
  friend bool operator==(const LargeObject&, const LargeObject&) = default;
  // There may have been such a one.
  [[nodiscard]] bool is_sound() const {
    return first <= kMostObjectEnd && bytes <= kMostObjectEnd - first && (died == 0 || died > born);
  }
};

// The order in which a sample of the pages was used (profile/page_sampler.hpp).
struct Touches {
  std::uint32_t one_in_log2 = 0;     // one page in 2^this is in the sample
  std::uint32_t window = 0;          // sampled pages that were in view at once
  std::uint64_t pages = 0;           // that were used, in the sample or not
  std::vector<std::uint32_t> words;  // of a page trace; all of pages in the sample
  friend bool operator==(const Touches&, const Touches&) = default;
  // No figure is beyond what a sampler writes.
  [[nodiscard]] bool is_sound() const {
    return one_in_log2 <= kMostSampleLog2 && window <= kMostSampleWindow && pages <= kMostUsedPages &&
           words.size() <= kMostTouches;
  }
};

// A touch of a small object, which stands for others (touch_order.hpp).
struct SiteTouch {
  SiteId site = 0;
  std::uint32_t weight = 0;
  friend bool operator==(const SiteTouch&, const SiteTouch&) = default;
};

struct ProcessProfile {
  int process = 0, parent = 0;
  std::string name;
  bool is_attached = false;  // it ran already when it began to be recorded: what it had before is of no known site
  std::uint64_t faults = 0, stalled_ns = 0, pages_read = 0;  // exact; stalls are estimates
  std::uint64_t live_bytes = 0, peak_bytes = 0;
  std::uint64_t faults_without_place = 0;  // an estimate, as stalls are
  std::uint64_t without_room = 0;
  std::vector<StackFrame> frames;  // by SiteId; [0] is unused. Invariant: frames[i].inner < i
  std::vector<SiteTotals> sites;
  std::vector<WaitPlace> places;  // [0] is unused
  std::vector<Stall> stalls;
  std::vector<LargeObject> objects;  // in the order of allocation
  Touches touches;
  Touches detailed;  // those of the beginning, of a larger sample; no words: touches are all that is known
  std::vector<SiteTouch> touch_order;  // some of all, in order (touch_order.hpp)
  Contexts contexts;                   // of the instrumented recorder
  friend bool operator==(const ProcessProfile&, const ProcessProfile&) = default;
};

// What the store of the run can do, as `farheap store bench` measures it.
struct StoreSpeed {
  std::string name, unit;
  double median = 0, min = 0, max = 0;
  friend bool operator==(const StoreSpeed&, const StoreSpeed&) = default;
};

struct Profile {
  std::vector<CodeFile> files = {{}};  // [0] is unused
  std::vector<ProcessProfile> processes;
  std::uint64_t processes_left_out = 0;  // there were more than are kept
  std::vector<StoreSpeed> store;
  std::string trace;        // of the run: JSON lines, docs/formats.md "A sample, and a trace"
  bool is_cut = false;      // what follows was not read: the file ends before the profile did, or is damaged
  bool is_damaged = false;  // then is_cut, too: what follows does not fit its checksum
  friend bool operator==(const Profile&, const Profile&) = default;

  // The number of the file, which joins if it is new.
  [[nodiscard]] std::uint32_t file(const CodeFile& one);
  // In words for the user; empty where all of it was read.
  [[nodiscard]] std::string what_is_missing() const;
};

// A run may have thousands of processes: those that waited longest and held most are kept.
inline constexpr std::size_t kMostProcesses = 64;
void keep_most_important(Profile& profile);

inline constexpr std::string_view kProfileMagic = "FHPROFIL";
inline constexpr std::uint32_t kProfileFormat = 1;
[[nodiscard]] std::string encode(const Profile& profile);
// `bytes`: of a file, or of its beginning. Sections are read until the file ends, or one is damaged; is_cut is true
// then. kCorrupt for what is no profile; kUnavailable for a newer format.
// `name` is for messages.
[[nodiscard]] Result<Profile> read_profile(std::string_view bytes, const std::string& name);

}  // namespace farheap::profile
