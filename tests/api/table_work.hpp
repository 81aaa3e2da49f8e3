// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Work on a heap for tests of failures: step k is the same whenever it is made, so the state after k steps is known to
// who counts.
#pragma once

#include <cstdint>
#include <farheap/farheap.hpp>
#include <map>
#include <random>
#include <string>
#include <utility>

namespace farheap::testing {

class TableWork {
 public:
  using Text = std::basic_string<char, std::char_traits<char>, allocator<char>>;
  using Table = std::map<int, Text, std::less<>, allocator<std::pair<const int, Text>>>;
  using Model = std::map<int, std::string>;

  // `changes` to a step.
  explicit TableWork(int changes = 40) : changes_(changes) {}

  void step(Heap& heap) const {
    auto* const steps = heap.find_or_construct<std::uint64_t>("steps")(0u);
    auto* const table = heap.find_or_construct<Table>("table")(heap.allocator<std::byte>());
    change(
        *steps + 1,
        [&](int key, const std::string& value) {
          table->insert_or_assign(key, Text(value.begin(), value.end(), heap.allocator<char>()));
        },
        [&](int key) { table->erase(key); });
    ++*steps;
  }

  [[nodiscard]] static std::uint64_t steps_of(const Heap& heap) {
    const auto* const steps = heap.find<std::uint64_t>("steps");
    return steps == nullptr ? 0 : *steps;
  }

  [[nodiscard]] Model after(std::uint64_t steps) const {
    Model model;
    for (std::uint64_t k = 1; k <= steps; ++k) {
      change(k, [&](int key, std::string value) { model[key] = std::move(value); }, [&](int key) { model.erase(key); });
    }
    return model;
  }

  // Empty if the heap is in the state after as many steps as it says.
  [[nodiscard]] std::string compare(const Heap& heap) const {
    const std::uint64_t steps = steps_of(heap);
    const Model model = after(steps);
    const auto* const table = heap.find<Table>("table");
    if (table == nullptr) return steps == 0 ? "" : "there is no table";
    if (table->size() != model.size()) return "another number of entries";
    for (const auto& [key, value] : model) {
      const auto at = table->find(key);
      if (at == table->end() || std::string_view(at->second) != value) {
        return "key " + std::to_string(key) + " after " + std::to_string(steps) + " steps";
      }
    }
    return {};
  }

 private:
  template <class Set, class Erase>
  void change(std::uint64_t k, const Set& set, const Erase& erase) const {
    std::mt19937_64 random(k * 977 + 13);
    for (int i = 0; i < changes_; ++i) {
      const int key = static_cast<int>(random() % 400);
      if (random() % 3 == 0) {
        erase(key);
      } else {
        set(key, std::string(random() % 3000, static_cast<char>('a' + random() % 26)));
      }
    }
  }

  const int changes_;
};

}  // namespace farheap::testing
