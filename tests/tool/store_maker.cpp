// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Makes kept stores for tests of the command, and looks at them.
//   fill URI BLOCK_BYTES     puts blocks and a counter
//   look URI BLOCK_BYTES     exit status 0 if they are all there
//   hold URI                 makes a heap, says so, and has it open until its input ends
//   keep URI NAME            makes a heap with an object of that name
//   read URI                 exit status 0 if that heap is there
#include <cstdio>
#include <cstring>
#include <farheap/farheap.hpp>
#include <farheap/store.hpp>
#include <string>
#include <vector>

namespace {

using farheap::Status;

int ended(const farheap::Error& error) { return std::fprintf(stderr, "%s\n", error.message().c_str()), 1; }

constexpr std::uint64_t kBlocks[] = {0, 1, 5, 6, 7, 1000};
constexpr std::int64_t kCount = 42;

std::vector<std::byte> block(std::uint64_t number, std::size_t bytes) {
  return std::vector<std::byte>(bytes, static_cast<std::byte>(number + 1));
}

int fill(farheap::Store& store) {
  for (const auto number : kBlocks) {
    const auto bytes = block(number, store.limits().block_bytes);
    farheap::Put put{.block = number, .from = bytes};
    if (const Status done = store.put({&put, 1}); !done) return ended(done.error());
  }
  if (const auto sum = store.add("count", kCount); !sum) return ended(sum.error());
  const Status synced = store.sync();
  return synced ? 0 : ended(synced.error());
}

int look(farheap::Store& store) {
  for (const auto number : kBlocks) {
    auto bytes = block(0, store.limits().block_bytes);
    farheap::Get get{.block = number, .into = bytes};
    if (const Status done = store.get({&get, 1}); !done) return ended(done.error());
    if (get.outcome != farheap::Outcome::kOk || bytes != block(number, bytes.size())) return 1;
  }
  const auto sum = store.add("count", 0);
  return sum && *sum == kCount && store.usage()->blocks == std::size(kBlocks) ? 0 : 1;
}

int hold(const std::string& uri) {
  auto heap = farheap::Heap::create(uri);
  if (!heap) return ended(heap.error());
  if (heap->construct<int>("answer")(static_cast<int>(kCount)) == nullptr) return 1;
  if (const Status done = heap->commit(); !done) return ended(done.error());
  std::puts("open");
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
  return 0;
}

int keep(const std::string& uri, const std::string& name) {
  auto heap = farheap::Heap::create(uri);
  if (!heap) return ended(heap.error());
  (void)heap->construct<int>(name)(static_cast<int>(kCount));
  const Status done = heap->commit();
  return done ? 0 : ended(done.error());
}

int read(const std::string& uri) {
  auto heap = farheap::Heap::open_read_only(uri);
  if (!heap) return ended(heap.error());
  const auto* const answer = heap->find<int>("answer");
  return answer != nullptr && *answer == kCount ? 0 : 1;
}

}  // namespace

int main(int count, char** words) {
  if (count < 3) return 2;
  const std::string what = words[1];
  if (what == "hold") return hold(words[2]);
  if (what == "read") return read(words[2]);
  if (count < 4) return 2;
  if (what == "keep") return keep(words[2], words[3]);
  const auto store =
      farheap::open_store(words[2], {.block_bytes = std::stoul(words[3]), .lifetime = farheap::Lifetime::kKeep});
  if (!store) return ended(store.error());
  return what == "fill" ? fill(**store) : look(**store);
}
