// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Replays a trace of uses (use_recorder) through policies that differ in what they know of use:
//
//   replay_uses FILE SHARE...      SHARE: of the most pages that were in use at once, in per cent
//
//   lru, optimum     know every use, and the future
//   clock            read and write bits of all memory, looked at when a page's turn comes
//   written P        write bits, and P % of memory on probation
//   nothing P        P % of memory on probation: a page there is out of view, and touching it is a fault
//
// One JSON line for each. `misses`: a page that is read again, alone. `rescues`: touches on probation. `refills`: pages
// that were spared for their bit, each of which the kernel had to set. Within a window the order is not known: it is
// drawn at random, the same for all. First touches miss nothing.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <list>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "recency/use_trace.hpp"

namespace {

using namespace farheap::bench;

struct Use {
  std::uint32_t page;
  bool written = false;
  bool drop = false;
};

struct Trace {
  std::vector<Use> uses;
  std::uint32_t pages = 0;
  std::size_t most_in_use = 0;
  std::size_t windows = 0;
};

bool read_words(std::FILE* file, std::uint32_t* words, std::size_t count) {
  return std::fread(words, sizeof *words, count, file) == count;
}

Trace read_trace(std::FILE* file) {
  Trace trace;
  std::mt19937 random(1);
  std::uint32_t head = 0, pair[2];
  while (read_words(file, &head, 1)) {
    const bool drop = head == kDropped;
    const std::uint32_t runs = drop ? 1 : head;
    const std::size_t from = trace.uses.size();
    for (std::uint32_t i = 0; i < runs && read_words(file, pair, 2); ++i) {
      const std::uint32_t count = drop ? pair[1] : pair[1] >> 1;
      for (std::uint32_t k = 0; k < count; ++k) trace.uses.push_back({pair[0] + k, !drop && (pair[1] & 1) != 0, drop});
    }
    if (!drop) std::shuffle(trace.uses.begin() + static_cast<std::ptrdiff_t>(from), trace.uses.end(), random);
    trace.windows += drop ? 0 : 1;
  }
  for (const Use& use : trace.uses) trace.pages = std::max(trace.pages, use.page + 1);
  std::vector<bool> here(trace.pages);
  std::size_t now = 0;
  for (const Use& use : trace.uses) {
    if (here[use.page] == use.drop) now += use.drop ? -1 : 1;
    here[use.page] = !use.drop;
    trace.most_in_use = std::max(trace.most_in_use, now);
  }
  return trace;
}

struct Counts {
  std::size_t misses = 0, rescues = 0, refills = 0;
};

// Evicts the page with the least key. `key(i)`: of the page that is used at i.
Counts by_key(const Trace& trace, std::size_t memory, const std::function<std::uint64_t(std::size_t)>& key) {
  std::vector<std::uint64_t> keys(trace.pages);
  std::vector<bool> here(trace.pages), known(trace.pages);
  std::set<std::pair<std::uint64_t, std::uint32_t>> resident;
  Counts counts;
  for (std::size_t i = 0; i < trace.uses.size(); ++i) {
    const auto [page, written, drop] = trace.uses[i];
    if (here[page]) resident.erase({keys[page], page});
    if (drop) {
      here[page] = known[page] = false;
      continue;
    }
    if (!here[page]) {
      counts.misses += known[page] ? 1 : 0;
      if (resident.size() >= memory) {
        here[resident.begin()->second] = false;
        resident.erase(resident.begin());
      }
    }
    here[page] = known[page] = true;
    keys[page] = key(i);
    resident.insert({keys[page], page});
  }
  return counts;
}

Counts optimum(const Trace& trace, std::size_t memory) {
  std::vector<std::uint64_t> next(trace.uses.size()), coming(trace.pages, UINT64_MAX);
  for (std::size_t i = trace.uses.size(); i-- > 0;) {
    const Use& use = trace.uses[i];
    next[i] = coming[use.page];
    coming[use.page] = use.drop ? UINT64_MAX : i;
  }
  return by_key(trace, memory, [&](std::size_t i) { return UINT64_MAX - next[i]; });
}

enum class Bits : std::uint8_t { kNone, kWritten, kAll };

// A list of pages in the order in which they came, and one of those on probation.
class Pager {
 public:
  Pager(const Trace& trace, std::size_t memory, Bits bits, std::size_t probation)
      : memory_(memory), bits_(bits), probation_pages_(probation), pages_(trace.pages) {
    for (const Use& use : trace.uses) use.drop ? drop(use.page) : touch(use);
  }
  [[nodiscard]] const Counts& counts() const { return counts_; }

 private:
  enum class Where : std::uint8_t { kAway, kMain, kProbation };
  struct Page {
    std::list<std::uint32_t>::iterator place;
    Where where = Where::kAway;
    bool known = false, bit = false;
  };
  std::list<std::uint32_t>& list_of(const Page& page) { return page.where == Where::kMain ? main_ : probation_; }
  void put(std::uint32_t number, Where where) {
    Page& page = pages_[number];
    if (page.where != Where::kAway) list_of(page).erase(page.place);
    page.where = where;
    page.bit = false;
    if (where == Where::kAway) return;
    list_of(page).push_back(number);
    page.place = std::prev(list_of(page).end());
  }
  void drop(std::uint32_t number) {
    put(number, Where::kAway);
    pages_[number].known = false;
  }
  void touch(const Use& use) {
    Page& page = pages_[use.page];
    if (page.where == Where::kMain) {
      page.bit |= bits_ == Bits::kAll || (bits_ == Bits::kWritten && use.written);
      return;
    }
    (page.where == Where::kProbation ? counts_.rescues : counts_.misses) += page.known ? 1 : 0;
    page.known = true;
    put(use.page, Where::kMain);
    make_room();
  }
  void make_room() {
    std::size_t spared = 0;
    while (main_.size() + probation_.size() > memory_ ||
           (main_.size() + probation_.size() == memory_ && probation_.size() < probation_pages_)) {
      if (main_.empty() || (probation_.size() >= probation_pages_ && !probation_.empty())) {
        put(probation_.front(), Where::kAway);
        continue;
      }
      const std::uint32_t oldest = main_.front();
      if (pages_[oldest].bit && spared++ < 2 * memory_) {
        ++counts_.refills;
        put(oldest, Where::kMain);
      } else {
        put(oldest, probation_pages_ == 0 ? Where::kAway : Where::kProbation);
      }
    }
  }

  const std::size_t memory_;
  const Bits bits_;
  const std::size_t probation_pages_;
  std::vector<Page> pages_;
  std::list<std::uint32_t> main_, probation_;
  Counts counts_;
};

void print(const Trace& trace, int share, const std::string& policy, const Counts& counts) {
  fmt::print(R"({{"share":{},"policy":"{}","misses":{},"rescues":{},"refills":{},"pages":{},"uses":{},"windows":{}}})"
             "\n",
             share, policy, counts.misses, counts.rescues, counts.refills, trace.most_in_use, trace.uses.size(),
             trace.windows);
  std::fflush(stdout);
}

}  // namespace

int main(int count, char** arguments) {
  std::FILE* const file = count < 3 ? nullptr : std::fopen(arguments[1], "rb");
  if (file == nullptr) {
    fmt::print(stderr, "replay_uses: {}\n  replay_uses FILE SHARE...\n", count < 3 ? "which trace?" : "cannot open it");
    return 2;
  }
  const Trace trace = read_trace(file);
  std::fclose(file);
  for (int i = 2; i < count; ++i) {
    const int share = std::atoi(arguments[i]);
    const std::size_t memory = trace.most_in_use * static_cast<std::size_t>(share) / 100;
    if (memory < 64) {
      fmt::print(stderr, "replay_uses: {} % of {} pages is no memory to speak of\n", share, trace.most_in_use);
      return 1;
    }
    print(trace, share, "optimum", optimum(trace, memory));
    print(trace, share, "lru", by_key(trace, memory, [](std::size_t at) { return at; }));
    print(trace, share, "clock", Pager(trace, memory, Bits::kAll, 0).counts());
    for (const std::size_t percent : {5, 10, 25, 50}) {
      const std::size_t probation = memory * percent / 100;
      print(trace, share, fmt::format("written {}", percent), Pager(trace, memory, Bits::kWritten, probation).counts());
      print(trace, share, fmt::format("nothing {}", percent), Pager(trace, memory, Bits::kNone, probation).counts());
    }
  }
  return 0;
}
