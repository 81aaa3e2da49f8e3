// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A class of one's own with text in it, in a vector and in a map (docs/containers.md).
//
//   people HEAP [NAME AGE [TAG...]]      adds one to those of all runs, and prints them
#include <cstdio>
#include <cstdlib>
#include <farheap/containers/std.hpp>
#include <farheap/farheap.hpp>
#include <string>
#include <utility>

struct Person {
  using allocator_type = farheap::allocator<std::byte>;  // containers hand theirs on, as the last argument
  farheap::string name;
  int age = 0;
  farheap::vector<farheap::string> tags;

  explicit Person(const allocator_type& heap) : name(heap), tags(heap) {}
  Person(std::string_view who, int years, const allocator_type& heap) : name(who, heap), age(years), tags(heap) {}
  Person(const Person& other, const allocator_type& heap)
      : name(other.name, heap), age(other.age), tags(other.tags, heap) {}
  Person(Person&& other, const allocator_type& heap)
      : name(std::move(other.name), heap), age(other.age), tags(std::move(other.tags), heap) {}
  Person(const Person&) = default;
  Person(Person&&) = default;
  Person& operator=(const Person&) = default;
  Person& operator=(Person&&) = default;
};

int main(int count, char** words) {
  if (count < 2 || count == 3) {
    std::fprintf(stderr, "usage: people HEAP [NAME AGE [TAG...]], as in: people file:/tmp/people Ada 36\n");
    return 2;
  }
  auto opened = farheap::Heap::open_or_create(words[1]);
  farheap::Status status;
  if (opened && count > 3) {
    auto& people = *opened->find_or_construct<farheap::vector<Person>>("people")();
    Person& added = people.emplace_back(words[2], std::atoi(words[3]));
    for (int i = 4; i < count; ++i) added.tags.emplace_back(words[i]);
    opened->find_or_construct<farheap::map<farheap::string, Person>>("by name")()->emplace(words[2], added);
    status = opened->commit();
  }
  if (!opened || !status) {
    std::fprintf(stderr, "%s\n", (opened ? status.error() : opened.error()).message().c_str());
    return 1;
  }
  const auto* const by_name = opened->find<farheap::map<farheap::string, Person>>("by name");
  if (by_name == nullptr) return 0;
  for (const auto& [name, person] : *by_name) {
    std::printf("%s, %d", name.c_str(), person.age);
    for (const auto& tag : person.tags) std::printf(", %s", tag.c_str());
    std::printf("\n");
  }
}
