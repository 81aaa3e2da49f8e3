// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// farheap heap copy|rollback|compact: what changes which versions there are, and where they lie.
#include <fmt/format.h>

#include <farheap/farheap.hpp>
#include <vector>

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

namespace {

// Of versions by age, the one that is gone back to, and those behind it, which go.
struct Return {
  VersionInfo to;  // without a name: there is no such snapshot
  std::vector<VersionInfo> gone;
};

Return return_to(const std::string& snapshot, const std::vector<VersionInfo>& versions) {
  Return found;
  for (const VersionInfo& one : versions) {
    if (snapshot.empty() ? !one.name.empty() : one.name == snapshot) {
      found = {one, {}};
    } else {
      found.gone.push_back(one);
    }
  }
  return found;
}

void say_gone(const Return& back, std::string_view word) {
  for (const VersionInfo& one : back.gone) say(fmt::format("{}: {}", word, described(one)));
}

// What would be lost is shown before the question. Without a snapshot of that name there is nothing to ask.
bool is_return_wanted(const HeapArguments& arguments, const std::string& uri, const Return& back) {
  if (arguments.yes || back.to.name.empty() || !can_ask()) return true;
  say_gone(back, "would go");
  return is_wanted(fmt::format("take {} back to {}", base::without_secrets(uri), described(back.to)));
}

}  // namespace

int heap_roll_back(const HeapArguments& arguments) {
  const auto place = api::HeapPlace::parse(arguments.uri);
  if (!place) return failed(place.error());
  const auto before = Heap::look(place->uri);
  if (!before) return failed(before.error());
  const Return done = return_to(place->snapshot, before->versions);
  if (!is_return_wanted(arguments, place->uri, done)) return kFailed;
  if (const Status status = Heap::roll_back(arguments.uri); !status) return failed(status.error());
  if (!arguments.json) {
    say(fmt::format("{}: went back to {}", base::without_secrets(place->uri), described(done.to)));
    say_gone(done, "gone");
    return kDone;
  }
  Json gone = Json::array();
  for (const VersionInfo& one : done.gone) gone.push_back(json_of(one));
  return tell_heap(place->uri, arguments, Json{{"back_to", done.to.name}, {"gone", std::move(gone)}});
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
