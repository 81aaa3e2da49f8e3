// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The graph of packages as it lies in a heap: packages by name, and plain pointers between them.
//
// Thread-safety: that of its std:: containers.
#pragma once

#include <cstddef>
#include <farheap/farheap.hpp>
#include <map>
#include <scoped_allocator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "package_list.hpp"

namespace packages {

using Text = std::basic_string<char, std::char_traits<char>, farheap::allocator<char>>;

struct Package {
  using Others = std::vector<const Package*, farheap::allocator<const Package*>>;  // by name
  using allocator_type = farheap::allocator<std::byte>;

  explicit Package(allocator_type memory) : version(memory), depends(memory), dependents(memory) {}
  const Text* name = nullptr;  // its key
  Text version;
  Others depends, dependents;
};

class PackageGraph {
 public:
  using allocator_type = farheap::allocator<std::byte>;
  explicit PackageGraph(allocator_type memory) : packages_(memory) {}

  // Makes it the graph of this list. What stays as it was is not written, so that a commit is as small as the change.
  // Of a choice the first package that is there counts; a name that is none's stands for the first that provides it.
  void become(const PackageList& list);

  [[nodiscard]] const Package* find(std::string_view name) const {
    const auto at = packages_.find(name);
    return at == packages_.end() ? nullptr : &at->second;
  }
  template <class Visit>
  void for_each(Visit visit) const {
    for (const auto& [name, package] : packages_) visit(package);
  }
  [[nodiscard]] std::size_t size() const { return packages_.size(); }

 private:
  using Memory = std::scoped_allocator_adaptor<farheap::allocator<std::pair<const Text, Package>>>;
  std::map<Text, Package, std::less<>, Memory> packages_;
};

}  // namespace packages
