// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "api/new_place.hpp"

#include <fmt/format.h>

#include "base/full_disk.hpp"
#include "base/log.hpp"
#include "base/without_secrets.hpp"
#include "segment/superblock.hpp"
#include "share/segment_leases.hpp"

namespace farheap::api {
namespace {

// Nothing that anybody has put there: no store at all, or a heap that is not finished, or whose removal is not.
Result<bool> is_unfinished(const HeapPlace& place, HeapLock& lock, const char* what) {
  auto store = place.open(lock);
  if (!store) return fail(std::move(store.error()));
  auto found = segment::read_superblock(**store);
  if (found && found->content.is_unfinished()) return true;
  if (!found && found.error().code == ErrorCode::kNotFound) {
    auto usage = (*store)->usage();
    if (!usage) return fail(std::move(usage.error()));
    if (usage->blocks == 0) return true;
    auto removed = segment::is_any_taken_back(**store);
    if (!removed || *removed) return removed;
  }
  return fail(ErrorCode::kConflict, what, place.uri, found ? "there is a heap already" : "there is something else",
              "choose another place");
}

}  // namespace

Result<NewPlace> NewPlace::claim(std::string_view uri, const char* what, std::chrono::milliseconds wait) {
  auto place = HeapPlace::parse(uri);
  if (!place) return fail(std::move(place.error()));
  if (!place->snapshot.empty()) {
    const auto name = fmt::format("behind '@' stands the name of a snapshot, here '{}': a new heap's cannot have one",
                                  place->snapshot);
    return fail(ErrorCode::kInvalidArgument, what, base::without_secrets(uri), name,
                place->is_on_server() ? "give it a name without '@'"
                                      : "give it a name without '@'; in the name of a file it is written %40");
  }
  // Before anything is made: what is no heap gets no lock file beside it.
  if (!place->is_on_server() && !place->is_half_removed()) {
    Status is = place->check_is_heap(HeapPlace::Use::kWrite);
    if (!is && is.error().code != ErrorCode::kNotFound) {
      is.error().what = what;
      return fail(std::move(is.error()));
    }
  }
  auto lock = HeapLock::take(*place, HeapLock::For::kAlone, wait);
  if (!lock) return fail(std::move(lock.error()));
  NewPlace made(Held{std::move(*place), std::move(*lock), true});
  const HeapPlace& mine = made.place();
  made.keep();
  if (mine.is_half_removed()) {
    if (Status removed = mine.remove(*made.held_->lock); !removed) return fail(std::move(removed.error()));
  }
  auto there = mine.is_there();
  if (!there) return fail(std::move(there.error()));
  if (*there && (mine.is_on_server() || !mine.is_empty_file())) {
    auto unfinished = is_unfinished(mine, *made.held_->lock, what);
    if (!unfinished) return fail(std::move(unfinished.error()));
    Status removed = mine.is_on_server() ? made.erase_blocks() : mine.remove(*made.held_->lock);
    if (!removed) return fail(std::move(removed.error()));
  }
  made.held_->removes = true;
  return made;
}

// All but the leases.
Status NewPlace::erase_blocks() const {
  auto store = open();
  if (!store) return fail(std::move(store.error()));
  return (*store)->erase(0, share::kFirstLease);
}

Error NewPlace::told(Error error, const char* what, std::string_view again) const {
  if (!base::is_full_disk(error)) return error;
  return place().no_room(std::move(error), what, "nothing of the new heap is left", again);
}

NewPlace::~NewPlace() {
  if (!held_ || !held_->removes) return;
  const HeapPlace& place = held_->place;
  const auto there = place.is_there();
  const bool is_any = place.is_half_removed() || (there && *there);
  const Status removed = is_any ? place.remove(*held_->lock) : Status{};
  if (!removed) base::log(base::LogLevel::kWarn, "{}", removed.error().message());
  held_->lock->remove();
}

}  // namespace farheap::api
