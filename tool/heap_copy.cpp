// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// farheap heap copy|rollback|compact: what changes which versions there are, and where they lie.
#include <farheap/farheap.hpp>

#include "api/heap_place.hpp"
#include "base/without_secrets.hpp"
#include "heap_text.hpp"
#include "heap_verbs.hpp"
#include "interruption.hpp"
#include "progress.hpp"
#include "terminal.hpp"

namespace farheap::tool {

int heap_copy(const HeapArguments& arguments) {
  Status status;
  {
    const Interruption ends_cleanly;
    Progress progress("copying");
    status = Heap::copy(arguments.uri, arguments.other,
                        {.newest_only = arguments.newest_only,
                         .share_bytes = !arguments.own_bytes,
                         .progress = [&](auto done, auto total) { progress.show(done, total); },
                         .stop = [] { return Interruption::noted() != 0; }});
  }
  if (!status) return failed(status.error());
  return tell_heap(arguments.other, arguments, Json{{"from", base::without_secrets(arguments.uri)}});
}

int heap_roll_back(const HeapArguments& arguments) {
  if (const Status status = Heap::roll_back(arguments.uri); !status) return failed(status.error());
  const auto place = api::HeapPlace::parse(arguments.uri);
  if (!place) return failed(place.error());
  return tell_heap(place->uri, arguments);
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
