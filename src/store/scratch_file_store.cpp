// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Invariant: a presence bit is set after the block's bytes are in the file and cleared before its space is given
// back; so a block that is present has been written.
#include <bit>
#include <vector>

#include "store/batch.hpp"
#include "store/file_store.hpp"

namespace farheap::store {
namespace {

constexpr std::uint64_t kBits = 64;

// Calls visit(word index, mask of the bits) for every word that [first, first + count) touches, until it is false.
template <class Visit>
bool each_word(std::uint64_t first, std::uint64_t count, Visit visit) {
  while (count != 0) {
    const std::uint64_t bit = first % kBits;
    const std::uint64_t here = std::min(count, kBits - bit);
    const std::uint64_t mask = (here == kBits ? ~std::uint64_t{0} : (std::uint64_t{1} << here) - 1) << bit;
    if (!visit(first / kBits, mask)) return false;
    first += here, count -= here;
  }
  return true;
}

class ScratchFileStore final : public FileStore {
 public:
  using FileStore::FileStore;

  Capabilities capabilities() const override {
    auto all = static_cast<Capabilities>(Capability::kCounters) | static_cast<Capabilities>(Capability::kForks);
    if (device_->gives_back()) all |= static_cast<Capabilities>(Capability::kSparse);
    return all;
  }

  Status erase(std::uint64_t first, std::uint64_t count) override {
    const std::uint64_t end = table_->end() * kBits;
    if (first >= end) return {};
    count = std::min(count, end - first);
    if (count == 0) return {};
    SideTable::Guard guard(*table_, device_->has_small_blocks() ? stripes_of(first, count) : 0);
    Status result;
    std::uint64_t run = first;  // [run, run_end): present until now, not yet given back
    std::uint64_t run_end = first;
    auto give_back = [&] {
      if (run == run_end) return;
      auto ok = device_->punch(run, run_end, [&](std::uint64_t block) { return !is_present(block, 1); });
      if (!ok && result) result = std::move(ok);
    };
    each_word(first, count, [&](std::uint64_t index, std::uint64_t mask) {
      for (std::uint64_t cleared = clear(index, mask); cleared != 0;) {
        const auto low = static_cast<std::uint64_t>(std::countr_zero(cleared));
        const auto length = static_cast<std::uint64_t>(std::countr_one(cleared >> low));
        const std::uint64_t block = index * kBits + low;
        if (block != run_end) {
          give_back();
          run = block;
        }
        run_end = block + length;
        cleared &= low + length == kBits ? 0 : ~std::uint64_t{0} << (low + length);
      }
      return true;
    });
    give_back();
    return result;
  }

  std::unique_ptr<GetsInFlight> gets_in_flight(unsigned most) override {
    auto ring = device_->read_ring(most);
    return ring ? std::make_unique<InFlight>(*this, std::move(ring), most) : nullptr;
  }

  // Blocks that are absent would be filled with zeros by being looked at.
  const std::byte* find_in_memory(std::uint64_t first, std::size_t count) override {
    return is_present(first, count) ? device_->find_in_memory(first, count) : nullptr;
  }

  Status sync() override { return {}; }  // there is nobody to read it after a power loss

 private:
  class InFlight final : public GetsInFlight {
   public:
    InFlight(ScratchFileStore& store, std::unique_ptr<os::ReadRing> ring, unsigned most)
        : store_(store), ring_(std::move(ring)), places_(most) {
      for (auto& place : places_) free_.push_back(&place);
    }

    bool begin(Get& entry) override {
      if (free_.empty() || !store_.is_present(entry.block, store_.blocks_in(entry.into.size()))) return false;
      Place& place = *free_.back();
      static_cast<os::IoRequest&>(place) = store_.request(entry);
      place.file = store_.device_->file();
      place.entry = &entry;
      if (!store_.device_->fits(place) || !ring_->begin(place)) return false;
      free_.pop_back();
      return true;
    }

    Get* take() override {
      auto* place = static_cast<Place*>(ring_->take());
      if (place == nullptr) return nullptr;
      free_.push_back(place);
      const char* why = "";
      place->entry->outcome = store_.settle(*place, why);
      place->entry->version = place->entry->outcome == Outcome::kOk ? 1 : 0;
      return place->entry;
    }

    int descriptor() const override { return ring_->descriptor(); }

   private:
    struct Place : os::IoRequest {
      Get* entry = nullptr;
    };
    ScratchFileStore& store_;
    std::unique_ptr<os::ReadRing> ring_;
    std::vector<Place> places_;
    std::vector<Place*> free_;
  };

  bool is_present(std::uint64_t first, std::uint64_t count) {
    return each_word(first, count, [&](std::uint64_t index, std::uint64_t mask) {
      const Word* word = table_->find(index);
      return word != nullptr && (word->load(std::memory_order_acquire) & mask) == mask;
    });
  }

  bool make_room(std::uint64_t first, std::uint64_t count) {
    return each_word(first, count, [&](std::uint64_t index, std::uint64_t) { return table_->make(index) != nullptr; });
  }

  void set(std::uint64_t first, std::uint64_t count) {
    each_word(first, count, [&](std::uint64_t index, std::uint64_t mask) {
      Word* word = table_->find(index);
      if ((word->load(std::memory_order_relaxed) & mask) == mask) return true;
      const auto fresh = mask & ~word->fetch_or(mask, std::memory_order_release);
      table_->blocks_present().fetch_add(static_cast<std::uint64_t>(std::popcount(fresh)), std::memory_order_relaxed);
      return true;
    });
  }

  std::uint64_t clear(std::uint64_t index, std::uint64_t mask) {
    Word* word = table_->find(index);
    if (word == nullptr || (word->load(std::memory_order_relaxed) & mask) == 0) return 0;
    const auto cleared = mask & word->fetch_and(~mask, std::memory_order_acq_rel);
    table_->blocks_present().fetch_sub(static_cast<std::uint64_t>(std::popcount(cleared)), std::memory_order_relaxed);
    return cleared;
  }

  void get_together(std::span<Get> batch, const char*& why) override {
    os::IoRequest requests[kTogether];
    Get* entries[kTogether];
    std::size_t count = 0;
    for (auto& entry : batch) {
      entry.version = 0;
      if (!is_present(entry.block, blocks_in(entry.into.size()))) {
        entry.outcome = Outcome::kAbsent;
        continue;
      }
      requests[count] = request(entry);
      entries[count++] = &entry;
    }
    device_->run({requests, count});
    for (std::size_t i = 0; i < count; ++i) {
      entries[i]->outcome = settle(requests[i], why);
      entries[i]->version = entries[i]->outcome == Outcome::kOk ? 1 : 0;
    }
  }

  void put_together(std::span<Put> batch, const char*& why) override {
    os::IoRequest requests[kTogether];
    Put* entries[kTogether];
    std::size_t count = 0;
    std::uint64_t stripes = 0;
    for (auto& entry : batch) {
      const auto blocks = blocks_in(entry.from.size());
      entry.version = 0;
      if (!make_room(entry.block, blocks)) {
        entry.outcome = Outcome::kNoSpace;
        why = "no room in the table of blocks";
        continue;
      }
      device_->reach((entry.block + blocks) * limits_.block_bytes, *table_);
      if (!is_present(entry.block, blocks)) device_->prepare(entry.block, blocks, batch.size());
      if (device_->has_small_blocks()) stripes |= stripes_of(entry.block, blocks);
      requests[count] = request(entry);
      entries[count++] = &entry;
    }
    // A hole is made of whole pages: a neighbour must not make one while we write.
    SideTable::Guard guard(*table_, stripes);
    device_->run({requests, count});
    for (std::size_t i = 0; i < count; ++i) {
      auto& entry = *entries[i];
      entry.outcome = settle(requests[i], why);
      if (entry.outcome != Outcome::kOk) continue;
      set(entry.block, blocks_in(entry.from.size()));
      entry.version = 1;
    }
  }
};

}  // namespace

std::unique_ptr<Store> make_scratch_file_store(std::string place, std::unique_ptr<FileDevice> device,
                                               std::unique_ptr<SideTable> table) {
  return std::make_unique<ScratchFileStore>(std::move(place), std::move(device), std::move(table));
}

}  // namespace farheap::store
