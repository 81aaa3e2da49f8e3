// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// farheap heap check|snapshot|compact|rm|rollback: what can be done to a kept heap from outside of its programs.
#include <farheap/farheap.hpp>

#include "heap_text.hpp"
#include "heap_verbs.hpp"
#include "terminal.hpp"

namespace farheap::tool {
namespace {

int outcome(const Status& status) { return status ? kDone : failed(status.error()); }

int check(const HeapArguments& arguments) {
  if (Status status = Heap::check(arguments.uri); !status) return failed(status.error());
  if (arguments.json) {
    print_out("{}\n", Json{{"format", kJsonFormat}, {"heap", arguments.uri}, {"sound", true}}.dump(2));
  } else {
    print_out("{}: sound\n", arguments.uri);
  }
  return kDone;
}

int snapshot(const HeapArguments& arguments) {
  auto heap = Heap::open(arguments.uri);
  if (!heap) return failed(heap.error());
  return outcome(heap->snapshot(arguments.name));
}

int compact(const HeapArguments& arguments) {
  auto heap = Heap::open(arguments.uri);
  if (!heap) return failed(heap.error());
  return outcome(heap->compact());
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
    case HeapArguments::kDiff: return heap_diff(arguments);
    case HeapArguments::kExport: return heap_export(arguments);
    case HeapArguments::kCheck: return check(arguments);
    case HeapArguments::kSnapshot: return snapshot(arguments);
    case HeapArguments::kRemove: return remove(arguments);
    case HeapArguments::kCompact: return compact(arguments);
    case HeapArguments::kRollBack: return outcome(Heap::roll_back(arguments.uri));
  }
  return kUsage;
}

}  // namespace farheap::tool
