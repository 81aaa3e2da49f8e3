// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Moves the objects of a Boost.Interprocess file into a heap: import FILE URI. Without a FILE there, it makes one.
#include <boost/interprocess/allocators/allocator.hpp>
#include <boost/interprocess/containers/vector.hpp>
#include <cstdio>
#include <farheap/farheap.hpp>
#include <farheap/import_interprocess.hpp>
#include <filesystem>
#include <vector>

namespace bip = boost::interprocess;
using OldNumbers = bip::vector<int, bip::allocator<int, bip::managed_mapped_file::segment_manager>>;
using Numbers = std::vector<int, farheap::allocator<int>>;

static void make_old(const char* file) {
  bip::managed_mapped_file old(bip::create_only, file, 1 << 20);
  auto* const numbers = old.construct<OldNumbers>("numbers")(old.get_allocator<int>());
  for (int i = 0; i < 100; ++i) numbers->push_back(i * i);
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  if (!std::filesystem::exists(argv[1])) make_old(argv[1]);
  auto file = farheap::InterprocessFile::open(argv[1]);
  auto heap = farheap::Heap::create(argv[2]);
  if (!file || !heap) {
    std::fprintf(stderr, "%s\n", (!file ? file.error() : heap.error()).message().c_str());
    return 1;
  }
  for (const auto& name : file->names()) std::printf("found %s\n", name.c_str());
  auto numbers = file->copy<OldNumbers, Numbers>(
      "numbers", *heap, [&](const OldNumbers& old) { return Numbers(old.begin(), old.end(), heap->allocator<int>()); });
  if (!numbers || !heap->commit()) return 1;
  std::printf("%zu numbers, the last is %d\n", (*numbers)->size(), (*numbers)->back());
  return 0;
}
