// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A ring of the pages in memory, the latest used behind the head, the one to evict before it. The head is an element of
// its own, number `pages`.
#include "plan/lru.hpp"

#include <cassert>
#include <vector>

namespace farheap::plan {

namespace {

class Ring {
 public:
  explicit Ring(std::uint32_t pages) : links_(std::size_t{pages} + 1), head_(pages) {
    for (std::uint32_t i = 0; i <= pages; ++i) links_[i] = {i, i};
  }
  [[nodiscard]] bool has(std::uint32_t page) const { return links_[page].next != page; }
  [[nodiscard]] std::uint32_t oldest() const { return links_[head_].before; }

  void take_out(std::uint32_t page) {
    const Link link = links_[page];
    links_[link.before].next = link.next;
    links_[link.next].before = link.before;
    links_[page] = {page, page};
  }

  void put_first(std::uint32_t page) {
    const std::uint32_t second = links_[head_].next;
    links_[page] = {head_, second};
    links_[head_].next = page;
    links_[second].before = page;
  }

 private:
  struct Link {
    std::uint32_t before, next;
  };
  std::vector<Link> links_;
  std::uint32_t head_;
};

}  // namespace

std::uint64_t lru_reads(const Uses& trace, std::uint64_t memory_pages) {
  assert(memory_pages != 0);
  Ring ring(trace.pages);
  std::uint64_t in_memory = 0, reads = 0;
  for (const PageUse use : trace.uses) {
    const std::uint32_t page = use.page;
    if (ring.has(page)) {
      ring.take_out(page);
    } else {
      reads += use.fresh ? 0 : 1;
      if (in_memory == memory_pages) {
        ring.take_out(ring.oldest());
      } else {
        ++in_memory;
      }
    }
    ring.put_first(page);
  }
  return reads;
}

}  // namespace farheap::plan
