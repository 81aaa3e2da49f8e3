// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A segment that outlives its process: pages at the same address in every run, whose versions a store keeps. All of it
// is paged from the beginning; what is touched comes, what has changed is known, and commit() makes it a version.
//
// Its first pages are its books: KeptBooks, then kRootBytes for whoever stands above (the heap), then the tables that
// both reserve as they need them. They are committed like all other pages, so opening rebuilds nothing.
//
// Thread-safety: any thread, once it is made; commit() and snapshot() exclude each other.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "base/address_shift.hpp"
#include "base/metadata_source.hpp"
#include "base/mutex.hpp"
#include "base/run_page.hpp"
#include "farheap/store.hpp"
#include "os/mapping.hpp"
#include "segment/idle_cleaner.hpp"
#include "segment/kept_backing.hpp"
#include "segment/page_space.hpp"
#include "segment/paging.hpp"
#include "segment/run_allocator.hpp"
#include "segment/versions.hpp"

namespace farheap::segment {

// At the segment's base. A part of the format of kept heaps (docs/formats.md).
struct KeptBooks {
  static constexpr std::uint64_t kMagic = 0x3170'6165'6872'6166;  // "farheap1"
  std::uint64_t magic = kMagic;
  static constexpr std::uint32_t kFormat = 2;
  std::uint32_t format = kFormat;
  static constexpr std::uint32_t kRelocatable = 1;
  std::uint32_t flags = 0;
  static constexpr std::size_t kBytes = 4096;        // they have
  static constexpr std::size_t kRootBytes = 61'440;  // behind them, for who stands above
  std::uint64_t next_table = kBytes + kRootBytes;    // offset: what lies below is reserved
  std::uint64_t end_of_tables = 0;
  // At offset 32: of the base, for which all pointers in the books are right; 0: the superblock's.
  std::uint64_t address = 0;
  alignas(64) RunAllocator runs;

  KeptBooks(std::byte* base, std::size_t bytes, std::size_t tables, std::uint32_t its_flags,
            base::MetadataSource& source)
      : flags(its_flags),
        end_of_tables(tables),
        address(reinterpret_cast<std::uintptr_t>(base)),
        runs(base + tables, bytes - tables, source) {}
};
static_assert(sizeof(KeptBooks) <= KeptBooks::kBytes);

class KeptSegment final : public PageSpace, private base::MetadataSource {
 public:
  struct Settings {
    std::uint64_t memory_bytes = 0;    // that pages may take
    std::uint64_t capacity_bytes = 0;  // of a new one; 0: a whole slot of addresses
    bool relocatable = false;          // a new one: it may lie elsewhere when its addresses are taken
    bool clean_when_idle = true;       // see IdleCleaner
    VersionLeases* leases = nullptr;   // outlive the segment; to read, there have to be some
  };
  // In an empty store. Errors: Versions::create; no addresses.
  [[nodiscard]] static Result<std::unique_ptr<KeptSegment>> create(std::unique_ptr<Store> store,
                                                                   const Settings& settings);
  // kConflict if its addresses are taken in this process and it is not relocatable. One that is may lie elsewhere:
  // whoever stands above then puts right what they have written, as moved() says.
  [[nodiscard]] static Result<std::unique_ptr<KeptSegment>> open(std::unique_ptr<Store> store,
                                                                 const Settings& settings);
  // The newest version, or the snapshot of that name. Who writes to it ends the program with a message, but for what is
  // written before seal(): that is this process's own.
  [[nodiscard]] static Result<std::unique_ptr<KeptSegment>> open_read_only(std::unique_ptr<Store> store,
                                                                           std::string_view snapshot,
                                                                           const Settings& settings);
  // What was not committed is lost. Requires: nobody touches it any more.
  ~KeptSegment() override = default;

  [[nodiscard]] std::byte* base() const override { return range_.data(); }
  [[nodiscard]] std::size_t capacity_bytes() const override { return range_.size(); }
  [[nodiscard]] std::byte* obtain(std::size_t bytes, std::size_t alignment) override;
  void give_back(std::byte* at, std::size_t bytes) override;
  void discard(std::byte* at, std::size_t bytes) override;
  [[nodiscard]] bool extend(std::byte* at, std::size_t bytes, std::size_t new_bytes) override;

  // Paging::hint().
  bool hint(pager::HintKind kind, const void* at, std::size_t bytes) { return paging_->hint(kind, at, bytes); }
  // Paging::expect_order().
  bool expect_order(std::span<const farheap_step> steps, std::size_t round) {
    return paging_->expect_order(steps, round);
  }

  [[nodiscard]] bool read_only() const { return read_only_; }
  [[nodiscard]] bool relocatable() const { return relocatable_; }
  [[nodiscard]] std::uint32_t format() const { return books().format; }
  // For check() of one that was opened to be read: its own books are put right where it lies elsewhere than it did. Who
  // opens it to write has that already.
  void move_books();
  // From where the pointers in it were right to where it lies.
  [[nodiscard]] const base::AddressShift& moved() const { return moved_; }
  // Which pages the version that was opened holds, of the 512 from there on.
  [[nodiscard]] Result<pager::Backing::Stored> stored_from(std::uint64_t first) const {
    return backing_->stored_from(first);
  }
  void seal() { paging_->pager().forbid_writes(true); }
  [[nodiscard]] std::byte* root() const { return base() + KeptBooks::kBytes; }
  [[nodiscard]] base::MetadataSource& tables() { return *this; }

  // What was written until now becomes the newest version; it is kept under a name, or the snapshot of that name goes
  // (which is a commit in any case). at_cut() is called when it is
  // settled what that is: from then on nobody has to be kept from writing. On error the former version stands, and the
  // next commit takes it all in again.
  enum class Kind { kCommit, kSnapshot, kRemoval };
  [[nodiscard]] Status commit(Kind kind, std::string_view name, const std::function<void()>& at_cut);

  // Whether the books of addresses agree with each other, without a look at anything else; if not, why says where.
  [[nodiscard]] bool check(std::string& why) const;
  // What the first page says of itself, alone.
  [[nodiscard]] bool check_head(std::string& why) const;
  // Of these pages those stay in the list that may differ from the last commit; some may come twice.
  void keep_changed(std::vector<std::uint64_t>& pages) const;

  // Has the store let go of what no commit came to be, and brings pages together that commits have scattered over it:
  // part of the next commit. Calls progress(bytes
  // done, of how many), as HeapProgress.
  using Progress = std::function<void(std::uint64_t done, std::uint64_t total)>;
  [[nodiscard]] Status gather(const Progress& progress = {});

  [[nodiscard]] Versions& versions() { return *versions_; }
  [[nodiscard]] const Store& store() const { return *store_; }
  [[nodiscard]] const base::RunCounters& counters() const { return run_page_->counters; }
  [[nodiscard]] std::uint64_t resident_bytes() const;
  // Bytes handed out, whether they were ever touched or not.
  [[nodiscard]] std::uint64_t handed_out_bytes();

 private:
  class MemoryLimit final : public pager::Budget {
   public:
    explicit MemoryLimit(std::uint64_t bytes) : pages_(bytes / base::kPageBytes) {}
    std::uint64_t page_limit(std::uint64_t, std::uint64_t) override { return pages_; }

   private:
    std::uint64_t pages_;
  };

  KeptSegment(std::unique_ptr<Store> store, std::unique_ptr<Versions> versions, const Settings& settings);
  [[nodiscard]] static Result<std::unique_ptr<KeptSegment>> start(std::unique_ptr<Store> store,
                                                                  std::unique_ptr<Versions> versions,
                                                                  const Settings& settings, os::Mapping range,
                                                                  std::string_view snapshot, bool read_only);
  [[nodiscard]] static bool is_unfinished(const Versions& versions);
  [[nodiscard]] static Result<std::unique_ptr<KeptSegment>> make_new(std::unique_ptr<Store> store,
                                                                     std::unique_ptr<Versions> versions,
                                                                     const Settings& settings, os::Mapping range);
  [[nodiscard]] Status start_paging();
  [[nodiscard]] Status choose_version(std::string_view snapshot);
  [[nodiscard]] Status look_at_books();
  [[nodiscard]] Status take_addresses();
  [[nodiscard]] KeptBooks& books() const { return *reinterpret_cast<KeptBooks*>(base()); }
  void* reserve(std::size_t bytes) noexcept override;
  [[nodiscard]] static std::size_t table_bytes(std::size_t capacity);

  std::unique_ptr<Store> store_;
  std::unique_ptr<Versions> versions_;
  std::optional<Snapshot> snapshot_;
  bool read_only_ = false;
  bool relocatable_ = false;
  base::AddressShift moved_;
  MemoryLimit limit_;
  os::Mapping range_;
  os::Mapping run_page_memory_;
  base::RunPage* run_page_ = nullptr;
  std::optional<IdleCleaner> cleaner_;
  std::unique_ptr<KeptBacking> backing_;
  base::Mutex runs_mutex_;          // guards the books
  base::Mutex commit_mutex_;        // held by the one who commits
  std::unique_ptr<Paging> paging_;  // ends first: its threads use all of the above
};

}  // namespace farheap::segment
