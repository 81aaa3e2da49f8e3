// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// farheap heap snapshot|rm, and which file has the other verbs.
#include <farheap/farheap.hpp>

#include "heap_text.hpp"
#include "heap_verbs.hpp"
#include "terminal.hpp"

namespace farheap::tool {
namespace {

int outcome(const Status& status) { return status ? kDone : failed(status.error()); }

int snapshot(const HeapArguments& arguments) {
  auto heap = Heap::open(arguments.uri);
  if (!heap) return failed(heap.error());
  return outcome(heap->snapshot(arguments.name));
}

// The whole heap, or the snapshot behind the last '@'.
int remove(const HeapArguments& arguments) {
  const std::size_t at = arguments.uri.rfind('@');
  if (at == std::string::npos || arguments.uri.find('/', at) != std::string::npos) {
    return outcome(Heap::remove(arguments.uri));
  }
  auto heap = Heap::open(arguments.uri.substr(0, at));
  if (!heap) return failed(heap.error());
  return outcome(heap->remove_snapshot(arguments.uri.substr(at + 1)));
}

}  // namespace

int heap(const HeapArguments& arguments) {
  switch (arguments.what) {
    case HeapArguments::kList: return heap_list(arguments);
    case HeapArguments::kShow: return heap_show(arguments);
    case HeapArguments::kStats: return heap_stats(arguments);
    case HeapArguments::kDiff: return heap_diff(arguments);
    case HeapArguments::kExport: return heap_export(arguments);
    case HeapArguments::kCheck: return heap_check(arguments);
    case HeapArguments::kSnapshot: return snapshot(arguments);
    case HeapArguments::kRemove: return remove(arguments);
    case HeapArguments::kCompact: return heap_compact(arguments);
    case HeapArguments::kRollBack: return heap_roll_back(arguments);
    case HeapArguments::kCopy: return heap_copy(arguments);
  }
  return kUsage;
}

}  // namespace farheap::tool
