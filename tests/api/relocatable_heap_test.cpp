// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Heaps that open at other addresses than they were written at.
#include <gtest/gtest.h>

#include <boost/interprocess/offset_ptr.hpp>
#include <filesystem>
#include <map>
#include <optional>
#include <random>
#include <string>

#include "heap_folder.hpp"

namespace farheap::testing {
namespace {

HeapOptions relocatable() {
  HeapOptions options = kSmall;
  options.relocatable = true;
  return options;
}

// A list of texts, whose model is a map.
struct Node {
  boost::interprocess::offset_ptr<Node> next;
  std::uint64_t key = 0;
  std::size_t bytes = 0;
  [[nodiscard]] char* text() { return reinterpret_cast<char*>(this + 1); }
};
struct List {
  boost::interprocess::offset_ptr<Node> first;
};
using Model = std::map<std::uint64_t, std::string>;

void add(Heap& heap, List& list, std::uint64_t key, const std::string& text) {
  void* const memory = heap.allocate(sizeof(Node) + text.size());
  ASSERT_NE(memory, nullptr);
  auto* const node = ::new (memory) Node;
  node->key = key;
  node->bytes = text.size();
  std::copy(text.begin(), text.end(), node->text());
  node->next = list.first;
  list.first = node;
}

void remove_some(Heap& heap, List& list, Model& model, std::mt19937_64& random) {
  boost::interprocess::offset_ptr<Node>* at = &list.first;
  while (*at) {
    Node* const node = at->get();
    if (random() % 3 == 0) {
      model.erase(node->key);
      *at = node->next;
      heap.deallocate(node);
    } else {
      at = &node->next;
    }
  }
}

void expect_equal(const Heap& heap, const Model& model) {
  const auto* const list = heap.find<List>("list");
  ASSERT_NE(list, nullptr);
  std::size_t found = 0;
  for (Node* node = list->first.get(); node != nullptr; node = node->next.get(), ++found) {
    const auto at = model.find(node->key);
    ASSERT_NE(at, model.end());
    ASSERT_EQ(std::string_view(node->text(), node->bytes), at->second);
  }
  EXPECT_EQ(found, model.size());
}

void work(Heap& heap, Model& model, std::mt19937_64& random) {
  auto* const list = heap.find_or_construct<List>("list")();
  remove_some(heap, *list, model, random);
  for (int i = 0; i < 300; ++i) {
    const std::uint64_t key = random();
    const std::size_t bytes = random() % 50 == 0 ? random() % 3'000'000 : random() % 3000;
    model[key] = std::string(bytes, static_cast<char>('a' + key % 26));
    add(heap, *list, key, model[key]);
    if (i % 10 == 0) {
      ASSERT_NE(heap.construct<std::uint64_t>(std::to_string(key))(key), nullptr);
    }
  }
}

// As `cp` does it: the same heap twice.
void copy_files(const HeapFolder& folder) {
  for (const char* end : {"", ".versions"}) std::filesystem::copy_file(folder.file("a") + end, folder.file("b") + end);
}

TEST(RelocatableHeapTest, ACopyOpensBesideItsOriginalAndBothGoOn) {
  const HeapFolder folder;
  std::mt19937_64 random(1);
  Model model;
  {
    Heap heap = must(Heap::create(folder.uri("a"), relocatable()));
    EXPECT_TRUE(heap.is_relocatable());
    work(heap, model, random);
    ASSERT_TRUE(heap.set_description("of texts"));
    ASSERT_TRUE(heap.commit());
  }
  copy_files(folder);
  Model models[2] = {model, model};
  const void* places[2] = {nullptr, nullptr};
  for (int generation = 0; generation < 6; ++generation) {
    const bool swapped = generation % 2 == 1;  // who comes first has its old addresses
    std::optional<Heap> heaps[2];
    for (const int i : {swapped ? 1 : 0, swapped ? 0 : 1}) {
      heaps[i].emplace(must(Heap::open(folder.uri(i == 0 ? "a" : "b"), relocatable())));
    }
    for (const int i : {0, 1}) {
      Heap& heap = *heaps[i];
      expect_equal(heap, models[i]);
      EXPECT_EQ(heap.description(), "of texts");
      const auto* const list = heap.find<List>("list");
      if (generation != 0) {
        EXPECT_EQ(list, places[i]) << "what was moved once is where it was moved to";
      }
      work(heap, models[i], random);
      expect_equal(heap, models[i]);
      ASSERT_TRUE(heap.commit());
      places[i] = list;
    }
    EXPECT_NE(places[0], places[1]);
    if (generation == 5) {
      EXPECT_GT(heaps[0]->statistics().objects, 150u);
    }
  }
  for (const char* name : {"a", "b"}) {
    const Status sound = Heap::check(folder.uri(name));
    EXPECT_TRUE(sound) << sound.error().message();
  }
}

TEST(RelocatableHeapTest, ASnapshotOpensBesideItsLiveHeap) {
  const HeapFolder folder;
  std::mt19937_64 random(2);
  Model then, now;
  Heap heap = must(Heap::create(folder.uri(), relocatable()));
  work(heap, then, random);
  ASSERT_TRUE(heap.snapshot("monday"));
  now = then;
  work(heap, now, random);
  ASSERT_TRUE(heap.commit());
  const Heap past = must(Heap::open_read_only(folder.uri() + "@monday", relocatable()));
  const Heap newest = must(Heap::open_read_only(folder.uri(), relocatable()));
  expect_equal(past, then);
  expect_equal(newest, now);
  expect_equal(heap, now);
  std::size_t objects = 0;
  past.for_each_object([&](const ObjectInfo& one) {
    objects += 1;
    EXPECT_TRUE(past.owns(one.address)) << one.name;
  });
  EXPECT_EQ(objects, 31u);
  const Status sound = Heap::check(folder.uri() + "@monday");  // elsewhere, too: all of its books move
  EXPECT_TRUE(sound) << sound.error().message();
}

TEST(RelocatableHeapTest, TheResourceOfAMovedHeapIsMovedToo) {
  const HeapFolder folder;
  {
    (void)must(Heap::create(folder.uri("a"), relocatable()));
  }
  copy_files(folder);
  Heap a = must(Heap::open(folder.uri("a"), relocatable()));
  Heap b = must(Heap::open(folder.uri("b"), relocatable()));
  void* const memory = b.resource()->allocate(100);
  EXPECT_TRUE(b.owns(memory));
  EXPECT_FALSE(a.owns(memory));
  b.resource()->deallocate(memory, 100);
}

TEST(RelocatableHeapTest, AnotherHeapIsNotMoved) {
  const HeapFolder folder;
  Heap heap = must(Heap::create(folder.uri(), kSmall));
  EXPECT_FALSE(heap.is_relocatable());
  const auto beside = Heap::open_read_only(folder.uri(), kSmall);
  ASSERT_FALSE(beside);
  EXPECT_EQ(beside.error().code, ErrorCode::kConflict);
  EXPECT_NE(beside.error().message().find("relocatable"), std::string::npos) << beside.error().message();
}

}  // namespace
}  // namespace farheap::testing
