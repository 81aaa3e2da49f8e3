// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// farheap::FarHeap: the allocator of all heaps, over addresses without memory, or a counter in the store instead of it.
#include <fmt/format.h>
#include <farheap/far_heap.hpp>

#include <algorithm>
#include <unordered_map>

#include "base/mutex.hpp"
#include "base/units.hpp"
#include "heap/heap.hpp"
#include "segment/address_slots.hpp"
#include "share/far_memory.hpp"
#include "share/far_space.hpp"

namespace farheap {
namespace {

constexpr char kCannotOpenFar[] = "cannot open the far heap";
constexpr char kCounter[] = "far heap: allocated bytes";
constexpr std::size_t kAlignment = 16;

using share::FarMemory;

Result<os::Mapping> reserve(const FarHeapOptions& options, std::string_view uri) {
  const std::uint64_t bytes = base::round_up(options.capacity, base::kHugePageBytes);
  if (options.capacity == 0 || bytes > segment::kSlotBytes) {
    return fail(ErrorCode::kInvalidArgument, kCannotOpenFar,
                fmt::format("capacity = {}", base::format_size(options.capacity)), "that is none, or too much",
                fmt::format("up to {}", base::format_size(segment::kSlotBytes)));
  }
  // All processes of one shared heap have it at the same place; others go where there is room.
  const bool is_shared = options.books == FarHeapOptions::Books::kShared;
  for (std::uint32_t slot = segment::kAddressSlots - 1;; --slot) {
    auto range = os::Mapping::reserve_at(segment::slot_address(slot), bytes, os::Access::kNone);
    if (range || is_shared || slot == 0 || range.error().code != ErrorCode::kConflict) return range;
  }
  return fail(ErrorCode::kNoSpace, kCannotOpenFar, std::string(uri), "there are no addresses left");
}

std::size_t offset_in(const void* at, const void* object) {
  return static_cast<std::size_t>(static_cast<const std::byte*>(at) - static_cast<const std::byte*>(object));
}

tl::unexpected<Error> is_for_one(const char* what, std::string subject) {
  return fail(ErrorCode::kUnavailable, what, std::move(subject), "the books of a shared heap do not tell",
              "use FarHeapOptions::Books::kLocal");
}

Status check_for_many(Store& store) {
  constexpr Capability kNeeded[] = {Capability::kVersions, Capability::kCounters, Capability::kLinearisable,
                                    Capability::kManyProcesses};
  if (std::ranges::all_of(kNeeded, [&](Capability one) { return has(store.capabilities(), one); })) return {};
  return fail(ErrorCode::kUnavailable, kCannotOpenFar, store.describe(),
              "this store is not for several processes that count",
              "name another engine: `farheap store kinds` lists them");
}

}  // namespace

struct FarHeap::State {
  State(std::unique_ptr<Store> its_store, os::Mapping range, const FarHeapOptions& options)
      : store(std::move(its_store)),
        memory(*store,
               options.books == FarHeapOptions::Books::kShared ? FarMemory::Users::kMany : FarMemory::Users::kOne,
               std::max<std::size_t>(options.cache_bytes / store->limits().block_bytes, 2),
               options.is_direct ? FarMemory::Keep::kForWrites : FarMemory::Keep::kBlocks),
        space(std::move(range), memory) {
    if (options.books == FarHeapOptions::Books::kLocal) local = std::make_unique<heap::Heap>(space);
  }
  [[nodiscard]] std::uint64_t offset_of(const void* at) const {
    return static_cast<std::uint64_t>(static_cast<const std::byte*>(at) - space.base());
  }
  [[nodiscard]] Status check(const void* at, std::uint64_t bytes) const;
  [[nodiscard]] Result<void*> add_to_pointer(std::size_t bytes);
  [[nodiscard]] Result<std::size_t> size_of(void* at);
  [[nodiscard]] tl::unexpected<Error> is_full(std::size_t bytes) const {
    return fail(ErrorCode::kNoSpace, "cannot allocate", base::format_size(bytes), "the far heap is full",
                "give it a larger FarHeapOptions::capacity");
  }

  std::unique_ptr<Store> store;
  FarMemory memory;
  share::FarSpace space;
  std::unique_ptr<heap::Heap> local;  // kLocal
  base::Mutex mutex;
  std::unordered_map<void*, std::size_t> sizes FARHEAP_GUARDED_BY(mutex);  // kShared: of what this process allocated
  base::Mutex sync_mutex;
  Status sync FARHEAP_GUARDED_BY(sync_mutex);  // the first that failed
};

Status FarHeap::State::check(const void* at, std::uint64_t bytes) const {
  const std::uint64_t offset = offset_of(at);  // far beyond the capacity for what lies before it
  if (offset < space.capacity_bytes() && bytes <= space.capacity_bytes() - offset) return {};
  return fail(ErrorCode::kInvalidArgument, "cannot reach far memory", fmt::format("{} + {}", at, bytes),
              "that is outside of the far heap");
}

// An addition that nobody answered to may have been done: its bytes are lost then, and nobody else has them.
Result<void*> FarHeap::State::add_to_pointer(std::size_t bytes) {
  if (bytes > space.capacity_bytes()) return is_full(bytes);
  const auto rounded = static_cast<std::int64_t>(base::round_up(std::max<std::size_t>(bytes, 1), kAlignment));
  auto end = store->add(kCounter, rounded);
  if (!end) return fail(std::move(end.error()));
  if (*end < rounded) {
    return fail(ErrorCode::kCorrupt, "cannot allocate", store->describe(), "its counter went backwards",
                "what the far heap held is lost or overwritten: begin anew with another name");
  }
  if (static_cast<std::uint64_t>(*end) > space.capacity_bytes()) return is_full(bytes);
  void* const at = space.base() + (*end - rounded);
  base::LockGuard lock(mutex);
  sizes[at] = bytes;
  return at;
}

Result<std::size_t> FarHeap::State::size_of(void* at) {
  if (local) return local->usable_size(at);
  base::LockGuard lock(mutex);
  const auto found = sizes.find(at);
  if (found != sizes.end()) return found->second;
  return fail(ErrorCode::kInvalidArgument, "cannot reallocate", fmt::format("{}", at),
              "this process did not allocate it, and nobody else knows its size", "allocate anew, and copy");
}

FarHeap::FarHeap(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
FarHeap::FarHeap(FarHeap&&) noexcept = default;
FarHeap& FarHeap::operator=(FarHeap&&) noexcept = default;
FarHeap::~FarHeap() = default;

Result<FarHeap> FarHeap::open(std::string_view uri, const FarHeapOptions& options) {
  const bool is_shared = options.books == FarHeapOptions::Books::kShared;
  auto store = open_store(
      uri, {.lifetime = is_shared ? Lifetime::kKeep : Lifetime::kScratch, .password_file = options.password_file});
  if (!store) return fail(std::move(store.error()));
  if (is_shared) {
    if (Status able = check_for_many(**store); !able) return fail(std::move(able.error()));
  }
  auto range = reserve(options, uri);
  if (!range) return fail(std::move(range.error()));
  auto state = std::make_unique<State>(std::move(*store), std::move(*range), options);
  if (state->local && !state->local->usable()) {
    return fail(ErrorCode::kNoSpace, kCannotOpenFar, std::string(uri), "no memory for its books");
  }
  return FarHeap(std::move(state));
}

Result<void*> FarHeap::allocate(std::size_t bytes) {
  if (!state_->local) return state_->add_to_pointer(bytes);
  void* const at = state_->local->allocate(bytes);
  if (at == nullptr) return state_->is_full(bytes);
  return at;
}

Result<void*> FarHeap::allocate_aligned(std::size_t bytes, std::size_t alignment) {
  if (alignment <= kAlignment) return allocate(bytes);
  if (!state_->local) return is_for_one("cannot allocate", fmt::format("aligned to {}", alignment));
  void* const at = state_->local->allocate_aligned(bytes, alignment);
  if (at == nullptr) return state_->is_full(bytes);
  return at;
}

Result<std::size_t> FarHeap::bytes_from(const void* at) {
  if (!state_->local) return is_for_one("cannot tell an object's size", fmt::format("{}", at));
  const auto object = state_->local->object_at(at);
  if (object.begin != nullptr) return object.bytes - offset_in(at, object.begin);
  return fail(ErrorCode::kNotFound, "cannot tell an object's size", fmt::format("{}", at), "no object lies there");
}

// What a counter hands out was never written.
Result<void*> FarHeap::allocate_zeroed(std::size_t count, std::size_t bytes) {
  std::size_t all = 0;
  if (__builtin_mul_overflow(count, bytes, &all)) return state_->is_full(SIZE_MAX);
  auto at = allocate(all);
  if (!at || !state_->local || all == 0) return at;
  if (Status zeroed = state_->memory.fill_with_zeros(state_->offset_of(*at), all); !zeroed) {
    (void)free(*at);
    return fail(std::move(zeroed.error()));
  }
  return at;
}

Result<void*> FarHeap::reallocate(void* at, std::size_t bytes) {
  if (at == nullptr) return allocate(bytes);
  auto size = state_->size_of(at);
  if (!size) return fail(std::move(size.error()));
  if (bytes <= *size && bytes > *size / 2) return at;
  auto to = allocate(bytes);
  if (!to) return to;
  std::vector<std::byte> contents(std::min(bytes, *size));
  Status moved = read(at, contents);
  if (moved) moved = write(*to, contents);
  if (!moved) {
    (void)free(*to);
    return fail(std::move(moved.error()));
  }
  (void)free(at);
  return to;
}

Status FarHeap::free(void* at) {
  if (at == nullptr) return {};
  if (Status inside = state_->check(at, 1); !inside) return inside;
  if (state_->local) {
    state_->local->free(at);
    return {};
  }
  base::LockGuard lock(state_->mutex);
  state_->sizes.erase(at);
  return {};
}

const std::byte* FarHeap::begin() const { return state_->space.base(); }
const std::byte* FarHeap::end() const { return state_->space.base() + state_->space.capacity_bytes(); }

Status FarHeap::read(const void* at, std::span<std::byte> into) {
  if (Status inside = state_->check(at, into.size()); !inside) return inside;
  return state_->memory.read(state_->offset_of(at), into);
}

Status FarHeap::write(void* at, std::span<const std::byte> from) {
  if (Status inside = state_->check(at, from.size()); !inside) return inside;
  return state_->memory.write(state_->offset_of(at), from);
}

// What was written before a sync that failed may be lost, and is in memory no more: no later one makes it durable.
Status FarHeap::flush() {
  if (Status flushed = state_->memory.flush(); !flushed) return flushed;
  base::LockGuard lock(state_->sync_mutex);
  if (state_->sync) state_->sync = state_->store->sync();
  return state_->sync;
}

}  // namespace farheap
