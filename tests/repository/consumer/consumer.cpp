// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <farheap/farheap.h>

#include <array>
#include <cstdio>
#include <farheap/farheap.hpp>
#include <farheap/store.hpp>

int main() {
  auto store = farheap::open_store("checksum+mem:");
  if (!store) {
    std::puts(store.error().message().c_str());
    return 1;
  }
  std::array<std::byte, 4096> written{};
  std::array<std::byte, 4096> read{};
  written[17] = std::byte{42};
  farheap::Put put{.block = 3, .from = written};
  farheap::Get get{.block = 3, .into = read};
  if (!(*store)->put({&put, 1}) || !(*store)->get({&get, 1})) return 1;
  if (read != written || get.outcome != farheap::Outcome::kOk) return 1;
  if (farheap_active() != 0) return 1;
  auto heap = farheap::Heap::open_or_create("file:consumer.heap");
  if (!heap) {
    std::puts(heap.error().message().c_str());
    return 1;
  }
  if (heap->find_or_construct<int>("number")(42) == nullptr || !heap->commit()) return 1;
  std::puts("stored and read back");
  return 0;
}
