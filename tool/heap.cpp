// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// farheap heap snapshot|rm, and which file has the other verbs.
#include <fmt/format.h>

#include <farheap/farheap.hpp>

#include "api/heap_place.hpp"
#include "api/patience.hpp"
#include "base/without_secrets.hpp"
#include "heap_text.hpp"
#include "heap_verbs.hpp"
#include "terminal.hpp"

namespace farheap::tool {
namespace {

int snapshot(const HeapArguments& arguments) {
  {
    auto heap = Heap::open(arguments.uri, kAnyTypes);
    // Who writes knows which places of the store are free, and would use those of a version that we name.
    if (!heap && heap.error().code == ErrorCode::kConflict) {
      heap.error().remedy = fmt::format(
          "only that program can make a snapshot now, with Heap::snapshot(); `farheap heap "
          "copy {} TO` copies its last commit meanwhile",
          shell_word(base::without_secrets(arguments.uri)));
    }
    if (!heap) return failed(heap.error());
    if (const Status status = heap->snapshot(arguments.name); !status) return failed(status.error());
  }
  return tell_heap(arguments.uri, arguments);
}

int remove_snapshot(const HeapArguments& arguments, const api::HeapPlace& place) {
  VersionInfo gone;
  {
    auto heap = Heap::open(place.uri, kAnyTypes);
    if (!heap) return failed(heap.error());
    if (const auto versions = heap->versions()) {
      for (const VersionInfo& one : *versions) gone = one.name == place.snapshot ? one : gone;
    }
    const Status status = heap->remove_snapshot(place.snapshot);
    if (!status) return failed(status.error());
  }
  if (!arguments.json) {
    say(fmt::format("removed {} of {}; the heap and its other versions stay", described(gone),
                    base::without_secrets(place.uri)));
  }
  return tell_heap(place.uri, arguments, Json{{"removed", gone.name}});
}

// The whole heap, or the snapshot behind the last '@'.
int remove(const HeapArguments& arguments) {
  const std::string shown = base::without_secrets(arguments.uri);
  const auto place = api::HeapPlace::parse(arguments.uri);
  if (!place) return failed(place.error());
  if (!arguments.yes && !is_wanted(fmt::format("remove {}", shown))) return kFailed;
  if (!place->snapshot.empty()) return remove_snapshot(arguments, *place);
  if (const Status status = Heap::remove(arguments.uri); !status) return failed(status.error());
  if (arguments.json) {
    print_out("{}\n", text_of({{"format", kJsonFormat}, {"heap", shown}, {"removed", true}}));
  } else {
    say(fmt::format("removed {}", base::without_secrets(place->uri)));
  }
  return kDone;
}

}  // namespace

int heap(const HeapArguments& arguments) {
  if (arguments.wait >= 0) {
    api::Patience::set_usual(std::chrono::milliseconds(static_cast<std::int64_t>(arguments.wait * 1000)));
  }
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
