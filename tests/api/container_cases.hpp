// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What every container is put through: filled with the same numbers, and asked for them again.
#pragma once

#include <cinttypes>
#include <concepts>
#include <cstdio>
#include <cstring>
#include <farheap/heap.hpp>
#include <fstream>
#include <string>

namespace farheap::testing {

constexpr int kElements = 3000;

template <class Container>
void add(Container& container, int number) {
  using Value = typename Container::value_type;
  if constexpr (requires { typename Container::mapped_type; }) {
    container.emplace(number, number + 1);
  } else if constexpr (requires { container.push_back(Value()); }) {
    container.push_back(static_cast<Value>(number));
  } else if constexpr (requires { container.push_front(Value()); }) {
    container.push_front(static_cast<Value>(number));
  } else {
    container.insert(number);
  }
}

template <class Container>
void fill(Container& container) {
  for (int i = 0; i < kElements; ++i) add(container, i);
}

template <class Container>
long sum(const Container& container) {
  long total = 0;
  for (const auto& element : container) {
    if constexpr (requires { element.second; }) {
      total += element.first + 3L * element.second;
    } else {
      total += static_cast<long>(element);
    }
  }
  return total;
}

// Of a container that was filled with kElements numbers on the stack of this function's caller.
template <class Container>
long expected_sum() {
  long total = 0;
  for (int i = 0; i < kElements; ++i) {
    if constexpr (requires { typename Container::mapped_type; }) {
      total += i + 3L * (i + 1);
    } else {
      total += static_cast<long>(static_cast<typename Container::value_type>(i));
    }
  }
  return total;
}

// By look-up, where there is one.
template <class Container>
int found(const Container& container) {
  int count = 0;
  for (int i = 0; i < kElements; ++i) {
    if constexpr (requires { typename Container::key_type; }) {
      count += container.find(i) != container.end();
    } else {
      ++count;
    }
  }
  return count;
}

// Words of the object that point into the program or its libraries and stacks: these are elsewhere in the next run.
template <class Object>
int outward_pointers(const Heap& heap, const Object& object) {
  int count = 0;
  for (std::size_t at = 0; at + sizeof(void*) <= sizeof(Object); at += sizeof(void*)) {
    std::uintptr_t word = 0;
    std::memcpy(&word, reinterpret_cast<const char*>(&object) + at, sizeof word);
    if (heap.owns(reinterpret_cast<const void*>(word))) continue;
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
      std::uintptr_t first = 0, last = 0;
      if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR, &first, &last) != 2) continue;
      if (first <= word && word < last) ++count;
    }
  }
  return count;
}

}  // namespace farheap::testing
