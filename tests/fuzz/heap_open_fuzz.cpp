// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A whole heap, a small one, with words of its store changed: Heap::check() says so, or the heap opens and works.
// Nothing crashes, nothing hangs, and where only the books of versions are damaged no data is wrong.
//
// The first byte: bit 0: checksums are made to fit again, so that what they guard is reached; bit 1: only the books of
// versions are changed; bit 2: the store is cut off behind a block, whose number is the second and third byte. Then
// each change is 12 bytes: the block (u16), the word in it (lower 9 bits of a u16) and how it changes (the next two
// bits: becomes a value, is flipped by it, grows by it, becomes the address of that byte of the heap), and the value
// (u64).
#include <farheap/farheap.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "tests/api/heap_on_store.hpp"
#include "tests/fuzz/heap_image.hpp"

namespace {

using namespace farheap;
using namespace farheap::test;
using namespace farheap::literals;

constexpr HeapOptions kOptions{.memory = 16_MiB, .capacity = 256_MiB};

void must(bool right, const char* what) {
  if (right) return;
  std::fprintf(stderr, "heap_open_fuzz: %s\n", what);
  std::abort();
}

using Text = std::basic_string<char, std::char_traits<char>, allocator<char>>;
using Table = std::map<int, Text, std::less<>, allocator<std::pair<const int, Text>>>;

std::string value(int key, int version) {
  return std::string(static_cast<std::size_t>(key * 13), static_cast<char>('a' + version));
}

void fill(Heap& heap, int version) {
  auto* const table = heap.find_or_construct<Table>("table")(heap.allocator<std::byte>());
  for (int key = 0; key < 40; ++key) {
    const std::string text = value(key, version);
    table->insert_or_assign(key, Text(text.begin(), text.end(), heap.allocator<char>()));
  }
  *heap.find_or_construct<int>("version")(0) = version;
}

// The state that one of the commits has made.
bool is_right(const Heap& heap) {
  const int* const version = heap.find<int>("version");
  const auto* const table = heap.find<Table>("table");
  if (version == nullptr || table == nullptr || table->size() != 40) return false;
  return std::ranges::all_of(
      *table, [&](const auto& one) { return value(one.first, *version) == std::string_view(one.second); });
}

// Never destroyed: what is done at exit uses it.
const std::string& place() {
  static const std::string& file = *[] {
    std::string folder = (std::filesystem::temp_directory_path() / "farheap-fuzz-XXXXXX").string();
    must(mkdtemp(folder.data()) != nullptr, "no folder");
    testing::touch(folder + "/heap");
    std::atexit([] { std::filesystem::remove_all(std::filesystem::path(place()).parent_path()); });
    return new std::string(folder + "/heap");
  }();
  return file;
}
std::string uri() { return "file:" + place(); }

// Snapshots, objects of all kinds, freed memory of several sizes, a large object.
HeapImage pristine() {
  const auto below = new_store();
  const testing::HeapsOn ours([&](const api::HeapPlace&) { return std::make_unique<testing::SharedStore>(*below); });
  {
    auto heap = Heap::create(uri(), kOptions);
    must(heap.has_value(), heap ? "" : heap.error().message().c_str());
    fill(*heap, 0);
    must(heap->snapshot("one").has_value(), "no snapshot");
    (void)heap->construct<double>(unique_instance)[3](1.5);
    (void)heap->describe(heap->construct<int>(anonymous_instance)(4), "an int");
    std::vector<void*> freed;
    for (std::size_t bytes = 16; bytes < 100'000; bytes *= 2) freed.push_back(heap->allocate(bytes));
    for (std::size_t i = 0; i < freed.size(); i += 2) heap->deallocate(freed[i]);
    std::memset(heap->construct<std::byte>("large")[200'000](), 1, 200'000);
    fill(*heap, 1);
    must(heap->snapshot("two").has_value(), "no snapshot");
    fill(*heap, 2);
    must(heap->commit().has_value(), "no commit");
  }
  return HeapImage(*below);
}

void list(const std::string& version, bool data_is_whole) {
  auto heap = Heap::open_read_only(version, kOptions);
  if (!heap) return must(!heap.error().message().empty(), "an error without a word");
  std::size_t objects = 0;
  heap->for_each_object([&](const ObjectInfo& one) {
    ++objects;
    must(heap->owns(one.address), "an object elsewhere");
  });
  must(objects == heap->statistics().objects, "another number of objects");
  must(!data_is_whole || is_right(*heap), "wrong data");
}

// Whatever passes the check can be worked with.
void work() {
  auto heap = Heap::open(uri(), kOptions);
  if (!heap) return must(!heap.error().message().empty(), "an error without a word");
  std::vector<void*> mine;
  for (std::size_t bytes = 16; bytes < 3_MiB; bytes += bytes / 2) {
    mine.push_back(heap->allocate(bytes));
    if (mine.back() != nullptr) std::memset(mine.back(), 7, std::min<std::size_t>(bytes, 5000));
  }
  for (void* const one : mine) heap->deallocate(one);
  (void)heap->construct<int>("mine")(1);
  (void)heap->destroy<int>("mine");
  (void)heap->commit();
}

}  // namespace

// Each input opens a heap several times.
extern "C" int farheap_corpus_changes() { return 5; }

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  static const HeapImage whole = pristine();
  if (bytes < 3) return 0;
  HeapImage image = whole;
  const bool mended = (data[0] & 1) != 0, books_only = (data[0] & 2) != 0, cut = (data[0] & 4) != 0;
  for (std::size_t at = 3; at + 12 <= bytes; at += 12) image.change(data + at, books_only);
  if (mended) image.mend();
  if (cut) image.cut(static_cast<std::size_t>(data[1] | data[2] << 8));
  const auto below = image.as_store();
  const testing::HeapsOn ours([&](const api::HeapPlace&) { return std::make_unique<testing::SharedStore>(*below); });
  bool sound = true;
  for (const std::string version : {"@one", "@two", ""}) {
    const Status status = Heap::check(uri() + version);
    if (status) {
      // Without mending nothing of the books can have changed, and then the data are those of a commit.
      list(uri() + version, books_only && !mended && !cut);
    } else {
      must(!status.error().message().empty(), "an error without a word");
      sound = false;
    }
  }
  if (sound) work();
  return 0;
}
