// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// FILE.versions with words changed, or cut: an error or a store that answers, without harm. Each change is 12 bytes:
// the place (u32, in words of 8 bytes), what is there now (u64). The first byte says how much of the file is left, in
// sixteenths; where its top bit is set, what follows is the file.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "store/file_store.hpp"
#include "store/side_table.hpp"

namespace {

using namespace farheap;

constexpr std::size_t kBlock = 4096;

std::unique_ptr<Store> store_of(int data, int table) {
  auto opened = store::SideTable::open(table, kBlock, "fuzz.versions");
  if (!opened) {
    if (opened.error().message().empty()) std::abort();
    close(data);
    return nullptr;
  }
  auto device = store::FileDevice::take(data, "fuzz", {.lifetime = Lifetime::kKeep, .use_io_uring = false});
  return store::make_kept_file_store("fuzz", std::move(device), std::move(*opened));
}

std::vector<std::byte> bytes_of(int file) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(lseek(file, 0, SEEK_END)));
  if (pread(file, bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) std::abort();
  return bytes;
}

// Some blocks and two counters.
std::vector<std::byte> pristine() {
  const int table = memfd_create("versions", 0), kept = dup(table);
  const auto store = store_of(memfd_create("blocks", 0), table);
  alignas(kBlock) static std::byte block[kBlock] = {std::byte{1}};
  for (const std::uint64_t number : {0, 1, 5, 6, 4000}) {
    Put put{.block = number, .from = block};
    if (!store->put({&put, 1})) std::abort();
  }
  if (!store->add("one", 1) || !store->add("another", -5)) std::abort();
  auto bytes = bytes_of(kept);
  close(kept);
  return bytes;
}

void use(Store& store) {
  alignas(kBlock) static std::byte block[4 * kBlock];
  for (const std::uint64_t number : {0ul, 1ul, 5ul, 4000ul, 9000ul, 1ul << 40, ~0ul - 8}) {
    Get get{.block = number, .into = std::span(block, kBlock)};
    (void)store.get({&get, 1});
    Get some{.block = number, .into = block};
    (void)store.get({&some, 1});
  }
  (void)store.usage();
  (void)store.counters();
  std::uint64_t from = 0;
  for (int i = 0; i < 4; ++i) {
    const auto runs = store.runs_from(from);
    if (!runs || runs->empty()) break;
    from = runs->back().first + runs->back().count;
  }
  for (const char* const name : {"one", "another", "a third"}) (void)store.add(name, 3);
  // What is written now is there.
  for (const std::uint64_t number : {1ul, 7ul, 4001ul}) {
    block[0] = static_cast<std::byte>(number);
    Put put{.block = number, .from = std::span(block, kBlock)};
    if (!store.put({&put, 1})) continue;
    block[0] = {};
    Get get{.block = number, .into = std::span(block, kBlock)};
    if (!store.get({&get, 1}) || get.outcome != Outcome::kOk || get.version != put.version ||
        block[0] != static_cast<std::byte>(number)) {
      std::abort();
    }
    Put again{.block = number, .from = std::span(block, kBlock), .expected = put.version};
    if (!store.put({&again, 1}) || again.version == put.version) std::abort();
  }
  if (!store.sync()) std::abort();
  (void)store.erase(0, 8);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  static const std::vector<std::byte> whole = pristine();
  std::vector<std::byte> image = whole;
  if (bytes != 0 && (data[0] & 0x80) != 0) {
    const auto* const text = reinterpret_cast<const std::byte*>(data);
    image.assign(text + 1, text + bytes);
  } else {
    for (std::size_t at = 1; at + 12 <= bytes; at += 12) {
      std::uint32_t place;
      std::memcpy(&place, data + at, sizeof place);
      std::memcpy(image.data() + place % (image.size() / 8) * 8, data + at + 4, 8);
    }
    if (bytes != 0 && data[0] != 0) image.resize(image.size() * (16 - std::min<std::size_t>(data[0], 16)) / 16);
  }
  const int table = memfd_create("versions", 0);
  if (write(table, image.data(), image.size()) != static_cast<ssize_t>(image.size())) std::abort();
  const int blocks = memfd_create("blocks", 0);
  if (const auto store = store_of(blocks, table)) use(*store);
  return 0;
}
