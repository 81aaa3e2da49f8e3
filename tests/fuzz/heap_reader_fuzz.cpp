// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A kept heap with words changed anywhere in its store, read without being opened: an error or an answer, without harm.
// Each change is 12 bytes: where (u16), the word there (u16), what it is now (u64). Where: below 0x8000 a block of the
// store; from 0x8000 on, the word is one of those that lead from object to object; from 0xc000 on it becomes an address
// in the heap. If the first byte of all is odd, checksums are made to fit again, so that what they guard is reached.
// Of superblocks only the address, the capacity and the number of pages are changed, and only then: a damaged one is
// waited for, and versions_fuzz has them.
#include <unistd.h>
#include <xxhash.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "api/heap_diff.hpp"
#include "api/heap_reader.hpp"
#include "farheap/farheap.hpp"

namespace {

using namespace farheap;
using namespace farheap::segment;

[[noreturn]] void give_up(const Error& error) {
  std::fprintf(stderr, "%s\n", error.message().c_str());
  std::abort();
}

template <class T>
T must(Result<T> result) {
  if (!result) give_up(result.error());
  return std::move(*result);
}

void must(const Status& status) {
  if (!status) give_up(status.error());
}

class NoLeases final : public VersionLeases {
 public:
  Status take(std::uint64_t) override { return {}; }
  Result<std::uint64_t> oldest() override { return kNobody; }
};

struct Image {
  std::vector<BlockWords> blocks;
  std::vector<std::pair<std::size_t, std::size_t>> leading;  // block and word of what leads from object to object
  std::uint64_t base = 0, capacity = 0;
};

void fill(Heap& heap) {
  heap.construct<long>("number")(1L);
  heap.construct<double>("many")[1000](0.5);
  heap.construct<int>(unique_instance)(2);
  must(heap.describe(heap.construct<char>(anonymous_instance)[100]('x'), "a hundred letters"));
  must(heap.snapshot("before"));
  *heap.find<long>("number") = 2;
  heap.destroy<double>("many");
  heap.construct<double>("moved")[200](1.5);
  heap.construct<double>("many")[1000](0.5);
  must(heap.commit());
}

// The block of the newest version that holds an address, and the word in it.
std::pair<std::size_t, std::size_t> place_of(const Image& image, const Superblock& newest, std::uint64_t address) {
  const std::uint64_t page = (address - image.base) / base::kPageBytes;
  SlotRef at = newest.map.at;
  for (std::uint64_t level = newest.map.levels; level != 0; --level) {
    const std::uint64_t index = page / 512 >> (8 * (level - 1)) & 255;
    at = SlotRef(image.blocks[at.slot()][2 * index]);
  }
  return {SlotRef(image.blocks[at.slot()][page % 512]).slot(), address % base::kPageBytes / 8};
}

// A real heap, out of its file.
Image pristine() {
  std::string folder = std::filesystem::temp_directory_path() / "farheap-fuzz-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) std::abort();
  const std::string uri = "file:" + folder + "/heap";
  {
    Heap heap = must(Heap::create(uri, {.memory = 32_MiB, .capacity = 256_MiB}));
    fill(heap);
  }
  Image image;
  {
    auto store = must(open_store(uri, {.lifetime = Lifetime::kKeep}));
    const Superblock newest = must(read_superblock(*store)).content;
    image.base = newest.base_address;
    image.capacity = newest.capacity_pages * base::kPageBytes;
    image.blocks.resize(newest.end_slot);
    for (std::size_t i = 0; i < image.blocks.size(); ++i) {
      Get get;
      get.block = i;
      get.into = std::as_writable_bytes(std::span(image.blocks[i]));
      must(store->get({&get, 1}));
    }
    const auto add = [&](std::uint64_t address) { image.leading.push_back(place_of(image, newest, address)); };
    constexpr std::uint64_t kDirectory = 5440;
    for (std::uint64_t word = 0; word < 17; ++word) add(image.base + kDirectory + 8 * word);
    const auto word_at = [&](std::uint64_t address) {
      const auto [block, word] = place_of(image, newest, address);
      return image.blocks[block][word];
    };
    for (std::uint64_t record = word_at(image.base + kDirectory + 24); record != 0; record = word_at(record + 24)) {
      for (std::uint64_t word = 0; word < 12; ++word) add(record + 8 * word);
    }
  }
  std::filesystem::remove_all(folder);
  return image;
}

// Makes the checksums of a tree fit, as deep as it goes; returns that of its top.
std::uint64_t mend(std::vector<BlockWords>& blocks, SlotRef at, std::uint64_t level, int& patience) {
  if (at.slot() < kSuperblocks || at.slot() >= blocks.size() || --patience < 0) return 0;
  BlockWords& words = blocks[at.slot()];
  for (std::size_t i = 0; level != 0 && level <= BlockTree::kMostLevels && i < 256; ++i) {
    if (words[2 * i] != 0) words[2 * i + 1] = mend(blocks, SlotRef(words[2 * i]), level - 1, patience);
  }
  return BlockTree::checksum_of(words);
}

void mend_all(std::vector<BlockWords>& blocks) {
  for (std::size_t block = 0; block < kSuperblocks; ++block) {
    int patience = 500;
    BlockWords& words = blocks[block];
    for (const std::size_t root : {13u, 16u, 19u, 23u}) {
      words[root + 1] = mend(blocks, SlotRef(words[root]), words[root + 2], patience);
    }
    words[511] = XXH3_64bits(words.data(), 511 * 8);
  }
}

std::unique_ptr<Store> damaged(const Image& whole, const std::uint8_t* data, std::size_t bytes) {
  std::vector<BlockWords> blocks = whole.blocks;
  for (std::size_t at = 1; at + 12 <= bytes; at += 12) {
    std::uint16_t where, word;
    std::uint64_t value;
    std::memcpy(&where, data + at, sizeof where);
    std::memcpy(&word, data + at + 2, sizeof word);
    std::memcpy(&value, data + at + 4, sizeof value);
    const auto place = where < 0x8000 ? std::pair<std::size_t, std::size_t>(where % blocks.size(), word % 512)
                                      : whole.leading[word % whole.leading.size()];
    const bool mended = (data[0] & 1) != 0;
    const bool is_told = place.second == 6 || place.second == 7 || place.second == 12;
    if (!is_waited_for)
      blocks[place.first][place.second] = where < 0xc000 ? value : whole.base + value % whole.capacity;
  }
  if (bytes != 0 && (data[0] & 1) != 0) mend_all(blocks);
  auto store = must(open_store("mem:", {.block_bytes = base::kPageBytes}));
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    Put put;
    put.block = i;
    put.from = std::as_bytes(std::span(blocks[i]));
    must(store->put({&put, 1}));
  }
  return store;
}

// Every byte of a text can be read, and the sentence of an error is there.
template <class T>
void look_at(const Result<T>& result) {
  if (!result && result.error().message().empty()) std::abort();
}

void read_version(api::HeapReader& reader, const api::StoredVersion& version) {
  api::VersionBytes bytes = reader.bytes_of(version);
  look_at(api::read_books(bytes));
  const auto objects = api::read_objects(bytes, reader.pages_of(version));
  look_at(objects);
  if (!objects) return;
  for (const ObjectInfo& one : *objects) {
    std::uint64_t seen = 0;
    (void)bytes.stream(reinterpret_cast<std::uintptr_t>(one.address), one.bytes, [&](auto piece) -> Status {
      seen += piece.size();
      if (seen > one.bytes) std::abort();
      return seen < 4 * base::kMiB ? Status{} : fail(ErrorCode::kIo, "enough", "", "");
    });
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  static const Image whole = pristine();
  auto reader = api::HeapReader::open(damaged(whole, data, bytes), std::make_unique<NoLeases>());
  look_at(reader);
  if (!reader) return 0;
  const auto versions = reader->versions();
  look_at(versions);
  if (!versions) return 0;
  for (const api::StoredVersion& version : *versions) {
    read_version(*reader, version);
    const auto difference = api::difference_between(*reader, version.info.name, *reader, {});
    look_at(difference);
    if (bytes < 13 && !difference) std::abort();  // nothing was changed
  }
  return 0;
}
