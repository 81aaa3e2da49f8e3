// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A kept segment with words changed in its superblock and books: an error or an answer, without harm. Each change is 11
// bytes: the block (u8), the word in it (u16), what it is now (u64). Where the first byte of all is odd, checksums are
// made to fit again, so that what they guard is reached.
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "segment/versions_salvage.hpp"
#include "tests/fuzz/heap_image.hpp"

namespace {

using namespace farheap;
using namespace farheap::segment;

void must(const Status& status) {
  if (!status) std::abort();
}

void write(Versions& versions, pager::PageNumber page, unsigned char value) {
  alignas(base::kPageBytes) static std::byte bytes[base::kPageBytes];
  std::memset(bytes, value, sizeof bytes);
  const pager::Backing::Write one{{page, 1}, bytes};
  (void)versions.write({&one, 1});
}

// Two snapshots, dead slots between them and after, pages far apart.
test::HeapImage pristine() {
  auto store = test::new_store();
  auto versions = Versions::create(*store, {});
  if (!versions) std::abort();
  for (unsigned round = 1; round <= 3; ++round) {
    for (const pager::PageNumber page : {0ul, 1ul, 513ul, 1ul << 20, 1ul << 30}) {
      write(**versions, page + (page == 1 ? round : 0), static_cast<unsigned char>(round));
    }
    must(round == 3 ? (*versions)->commit() : (*versions)->snapshot(round == 1 ? "one" : "two"));
  }
  return test::HeapImage(*store);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  static const test::HeapImage whole = pristine();
  test::HeapImage image = whole;
  const bool mended = bytes != 0 && (data[0] & 1) != 0;
  for (std::size_t at = 1; at + 11 <= bytes; at += 11) {
    std::uint16_t word;
    std::uint64_t value;
    std::memcpy(&word, data + at + 1, sizeof word);
    std::memcpy(&value, data + at + 3, sizeof value);
    image.block(data[at] % image.size())[word % 512] = value;
  }
  if (mended) image.mend();
  const auto store = image.as_store();
  auto versions = Versions::open(*store);
  if (!versions) return versions.error().message().empty() ? std::abort(), 0 : 0;
  (void)(*versions)->check();
  alignas(base::kPageBytes) static std::byte into[8 * base::kPageBytes];
  const pager::Backing::Read reads[] = {{{0, 8}, into}, {{1 << 20, 1}, into}, {{1 << 30, 1}, into}};
  (void)(*versions)->read(reads);
  if (const auto snapshots = (*versions)->snapshots()) {
    for (const Snapshot& snapshot : *snapshots) (void)(*versions)->read(snapshot, reads);
  }
  auto other = test::new_store();
  if (auto salvaged = salvage(*store, *other, {}, {})) {
    auto made = Versions::open(*other);
    if (!made || salvaged->kept.empty()) std::abort();
    must((*made)->check());
  }
  write(**versions, 3, 7);
  (void)(*versions)->commit();
  (void)(*versions)->remove("one");
  (void)(*versions)->roll_back();
  return 0;
}
