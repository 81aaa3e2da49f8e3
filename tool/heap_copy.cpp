// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// farheap heap copy|rollback|compact: what changes which versions there are, and where they lie.
#include <farheap/farheap.hpp>

#include "heap_text.hpp"
#include "heap_verbs.hpp"
#include "progress.hpp"
#include "terminal.hpp"

namespace farheap::tool {

int heap_copy(const HeapArguments& arguments) {
  Status status;
  {
    Progress progress("copying");
    status = Heap::copy(arguments.uri, arguments.other,
                        {.newest_only = arguments.newest_only,
                         .share_bytes = !arguments.own_bytes,
                         .progress = [&](auto done, auto total) { progress.show(done, total); }});
  }
  if (!status) return failed(status.error());
  return tell_heap(arguments.other, arguments, Json{{"from", arguments.uri}});
}

int heap_roll_back(const HeapArguments& arguments) {
  if (const Status status = Heap::roll_back(arguments.uri); !status) return failed(status.error());
  const std::size_t at = arguments.uri.rfind('@');
  const bool names_snapshot = at != std::string::npos && arguments.uri.find('/', at) == std::string::npos;
  return tell_heap(names_snapshot ? arguments.uri.substr(0, at) : arguments.uri, arguments);
}

int heap_compact(const HeapArguments& arguments) {
  {
    auto heap = Heap::open(arguments.uri, kAnyTypes);
    if (!heap) return failed(heap.error());
    Progress progress("compacting");
    const Status status = heap->compact([&](std::uint64_t done, std::uint64_t total) { progress.show(done, total); });
    if (!status) return failed(status.error());
  }
  return tell_heap(arguments.uri, arguments);
}

}  // namespace farheap::tool
