// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A run's blocks, in nameless files. Until the first fork there is one. At a fork the file that was written to is
// closed to writing for ever: parent and child each go on in a fresh file of their own, which the other never has open,
// and the child keeps the older ones for reading only. So a child that turns against its parent (it has become another
// user, and is broken into) finds no byte that was written after the fork, and can change none that was written before.
// No page is encrypted for that, and nothing that is known of a block lies in memory that the two share.
//
// Block N lies at byte N * block_bytes of whichever file it was last written to, its home. A file is closed when none
// of this process's blocks is in it any more. The space of single blocks is given back at once in the file that is
// written to; in an older one by who opened it, as soon as all children have ended that may read it: each of them holds
// the end of a pipe. When there are many files, the one with the fewest blocks is copied into another.
//
// Invariant: a block's home is set after its bytes are there, and cleared before its space is given back.
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <map>
#include <new>
#include <vector>

#include "base/log.hpp"
#include "base/mutex.hpp"
#include "base/units.hpp"
#include "os/own_descriptors.hpp"
#include "os/spare_descriptors.hpp"
#include "store/aligned_buffer.hpp"
#include "store/batch.hpp"
#include "store/block_table.hpp"
#include "store/contents.hpp"
#include "store/copied_by_fork.hpp"
#include "store/file_store.hpp"
#include "store/stripes.hpp"

#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

namespace farheap::store {
namespace {

using Home = std::uint8_t;  // the number of a file; kNowhere: the block is absent
constexpr Home kNowhere = 0;
constexpr Home kMostFiles = 24;

class ScratchFile {
 public:
  std::unique_ptr<FileDevice> device;
  bool mine = true;                      // opened by this process, and not by one that it was forked from
  std::atomic<std::uint64_t> blocks{0};  // of this process that have their home here

  void add_left(std::uint64_t block) {
    base::LockGuard lock(left_lock_);
    add_block(left_, block);
  }
  [[nodiscard]] std::vector<BlockRun> take_left() {
    base::LockGuard lock(left_lock_);
    return std::exchange(left_, {});
  }
  [[nodiscard]] bool has_left() {
    base::LockGuard lock(left_lock_);
    return !left_.empty();
  }

 private:
  base::Mutex left_lock_;
  std::vector<BlockRun> left_ FARHEAP_GUARDED_BY(left_lock_);  // have left, but children may still read them
};

// One end of a pipe. Where children have the other, this one says when the last of them has gone.
class PipeEnd {
 public:
  explicit PipeEnd(int file = -1) : file_(file < 0 ? file : os::keep_descriptor(file)) {}
  ~PipeEnd() { os::release_descriptor(file_); }
  PipeEnd(PipeEnd&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
  PipeEnd& operator=(PipeEnd&& other) noexcept {
    std::swap(file_, other.file_);
    return *this;
  }
  [[nodiscard]] bool is_there() const { return file_ >= 0; }
  [[nodiscard]] bool is_the_last() const {
    pollfd one{.fd = file_, .events = POLLIN, .revents = 0};
    return poll(&one, 1, 0) == 1 && (one.revents & POLLHUP) != 0;
  }

 private:
  int file_;
};

class ScratchFileStore final : public FileStore, public CopiedByFork {
 public:
  ScratchFileStore(std::string place, const StoreOptions& options, OpenScratchFile open_file,
                   std::unique_ptr<FileDevice> first)
      : FileStore(std::move(place), options.block_bytes), open_file_(std::move(open_file)) {
    gives_back_ = first->gives_back();
    has_small_blocks_ = first->has_small_blocks();
    files_[current_ = 1] = file_of(std::move(first));
  }

  Capabilities capabilities() const override {
    auto all = static_cast<Capabilities>(Capability::kCounters) | static_cast<Capabilities>(Capability::kForks);
    if (gives_back_) all |= static_cast<Capabilities>(Capability::kSparse);
    return all;
  }

  Status erase(std::uint64_t first, std::uint64_t count) override {
    const std::uint64_t end = homes_.end();
    if (first >= end) return {};
    count = std::min(count, end - first);
    if (count == 0) return {};
    std::vector<BlockRun> gone;
    Status result;
    {
      base::SharedGuard working(gate_);
      const Stripes::Guard guard(stripes_, has_small_blocks_ ? Stripes::of(first, count) : 0);
      for (std::uint64_t block = first; block < first + count; ++block) {
        auto* const home = homes_.find(block);
        if (home == nullptr) {  // nor are its neighbours there
          block |= BlockTable<std::atomic<Home>>::kPerLeaf - 1;
          continue;
        }
        const Home was = home->load(std::memory_order_relaxed) == kNowhere ? kNowhere : home->exchange(kNowhere);
        if (was == kNowhere) continue;
        present_.fetch_sub(1, std::memory_order_relaxed);
        if (was == current_) add_block(gone, block);
        leave(was, block);
      }
      for (const BlockRun& run : gone) {
        if (auto ok = give_back(current_, run); !ok && result) result = std::move(ok);
      }
    }
    tidy_up();
    return result;
  }

  std::unique_ptr<GetsInFlight> gets_in_flight(unsigned most) override {
    base::SharedGuard working(gate_);
    if (files_[current_] == nullptr) return nullptr;
    auto ring = files_[current_]->device->read_ring(most);
    return ring ? std::make_unique<InFlight>(*this, std::move(ring), most) : nullptr;
  }

  // Blocks that are absent would be filled with zeros by being looked at.
  const std::byte* find_in_memory(std::uint64_t first, std::size_t count) override {
    base::SharedGuard working(gate_);
    const Home home = home_of(first);
    if (home == kNowhere || files_[home] == nullptr || same_home(first, count) != count) return nullptr;
    return files_[home]->device->find_in_memory(first, count);
  }

  Status sync() override { return {}; }  // there is nobody to read it after a power loss

  Result<std::int64_t> add(std::string_view counter, std::int64_t delta) override {
    base::LockGuard lock(counters_mutex_);
    auto& value = counters_[std::string(counter)];
    value = static_cast<std::int64_t>(static_cast<std::uint64_t>(value) + static_cast<std::uint64_t>(delta));
    return value;
  }

  Result<std::vector<NamedCounter>> counters() override {
    base::LockGuard lock(counters_mutex_);
    std::vector<NamedCounter> all;
    for (const auto& [name, value] : counters_) all.push_back({name, value});
    return all;
  }

  Result<StoreUsage> usage() override {
    base::SharedGuard working(gate_);
    std::uint64_t bytes = 0;
    for (const auto& file : files_) {
      if (file == nullptr) continue;
      const auto space = file->device->space_bytes();
      if (!space) return fail(space.error());
      bytes += *space;
    }
    return StoreUsage{present_.load(), bytes};
  }

  // What the parent writes next is opened before there is a child; what the child does, when it is there, but before
  // the program can shut itself in.
  void before_fork() override FARHEAP_ACQUIRE(gate_) {
    gate_.lock();
    tidy_up_alone();
    spare_.let_go();
    const Status ready = get_ready_to_fork();
    handed_on_ = ready.has_value();
    if (!ready) base::log(base::LogLevel::kWarn, "a forked child has nothing of {}", ready.error().message());
  }

  void after_fork_in_parent(bool forked) override FARHEAP_RELEASE(gate_) {
    if (forked && parents_end_.is_there()) children_.push_back(std::exchange(parents_end_, PipeEnd()));
    if (next_ != kNowhere && forked) {
      current_ = next_;
    } else if (next_ != kNowhere) {
      files_[next_] = nullptr;
    }
    forget_fork();
    spare_.take_again();
    gate_.unlock();
  }

  // What the parent alone writes to goes first: with that there are descriptors again.
  void after_fork_in_child() override FARHEAP_RELEASE(gate_) {
    files_[next_ != kNowhere ? next_ : current_] = nullptr;
    for (auto& file : files_) {
      if (!handed_on_) file = nullptr;
      if (file == nullptr) continue;
      if (std::exchange(file->mine, false)) file->device->leave_only_reader();
      (void)file->take_left();
    }
    children_.clear();
    if (childs_end_.is_there()) held_.push_back(std::exchange(childs_end_, PipeEnd()));
    forget_fork();
    current_ = free_number();
    auto opened = open_file_();
    if (opened) {
      files_[current_] = file_of(std::move(*opened));
    } else {
      why_no_file_ = opened.error().message();
    }
    spare_.take_again();
    gate_.unlock_in_child();
#ifdef __SANITIZE_THREAD__
    __tsan_mutex_pre_unlock(&gate_, 0);  // which the sanitizer takes for locked all the same
    __tsan_mutex_post_unlock(&gate_, 0);
#endif
  }

 private:
  static constexpr char kWhat[] = "the store";
  static constexpr int kToFork = 6;  // descriptors: the next file twice, a pipe, and to move them
  static constexpr char kNotHandedOn[] = "this process was forked when the store could open no further file";

  class InFlight final : public GetsInFlight {
   public:
    InFlight(ScratchFileStore& store, std::unique_ptr<os::ReadRing> ring, unsigned most)
        : store_(store), ring_(std::move(ring)), places_(most) {
      for (auto& place : places_) free_.push_back(&place);
    }

    bool begin(Get& entry) override {
      if (free_.empty()) return false;
      base::SharedGuard working(store_.gate_);
      const std::size_t count = store_.blocks_in(entry.into.size());
      const Home home = store_.home_of(entry.block);
      if (home == kNowhere || store_.files_[home] == nullptr || store_.same_home(entry.block, count) != count) {
        return false;
      }
      const FileDevice& device = *store_.files_[home]->device;
      Place& place = *free_.back();
      static_cast<os::IoRequest&>(place) = store_.request(entry);
      place.file = device.file();
      place.entry = &entry;
      if (!device.fits(place) || !ring_->begin(place)) return false;
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

  static std::unique_ptr<ScratchFile> file_of(std::unique_ptr<FileDevice> device) {
    auto file = std::make_unique<ScratchFile>();
    file->device = std::move(device);
    return file;
  }

  [[nodiscard]] Home home_of(std::uint64_t block) const {
    const auto* const home = homes_.find(block);
    return home == nullptr ? kNowhere : home->load(std::memory_order_acquire);
  }
  // How many blocks from `first` on, at most `count`, have the home of the first.
  [[nodiscard]] std::size_t same_home(std::uint64_t first, std::size_t count) const {
    const Home home = home_of(first);
    std::size_t same = 1;
    while (same < count && home_of(first + same) == home) ++same;
    return same;
  }

  bool make_room(std::uint64_t first, std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) {
      if (homes_.make(first + i) == nullptr) return false;
    }
    return true;
  }

  // Its home is another one now, or none.
  void leave(Home home, std::uint64_t block) FARHEAP_REQUIRES_SHARED(gate_) {
    ScratchFile* const file = files_[home].get();
    if (file == nullptr) return;
    const bool last = file->blocks.fetch_sub(1) == 1;
    if (home == current_) return;
    if (file->mine && gives_back_) file->add_left(block);
    if (last || file->mine) untidy_.store(true, std::memory_order_relaxed);
  }

  void settle_in(Home home, std::uint64_t first, std::uint64_t count) FARHEAP_REQUIRES_SHARED(gate_) {
    for (std::uint64_t block = first; block < first + count; ++block) {
      auto& place = *homes_.find(block);
      if (place.load(std::memory_order_relaxed) == home) continue;
      files_[home]->blocks.fetch_add(1);
      const Home was = place.exchange(home, std::memory_order_release);
      if (was == kNowhere) {
        present_.fetch_add(1, std::memory_order_relaxed);
      } else {
        leave(was, block);
      }
    }
  }

  Status give_back(Home home, const BlockRun& run) FARHEAP_REQUIRES_SHARED(gate_) {
    return files_[home]->device->punch(run.first, run.first + run.count,
                                       [&](std::uint64_t block) { return home_of(block) != home; });
  }

  // Where it fails, the parent goes on as it was, and the child has no blocks.
  Status get_ready_to_fork() FARHEAP_REQUIRES(gate_) {
    bool any = false;
    for (const auto& file : files_) {
      any = any || (file != nullptr && file->blocks.load() != 0);
      if (file != nullptr && file->mine && !file->device->has_reader()) {
        return fail(ErrorCode::kUnavailable, kWhat, describe(), "it could not be opened for reading alone",
                    "see that /proc is there");
      }
    }
    if (!any) return {};
    if (files_[current_] != nullptr && files_[current_]->blocks.load() != 0) {
      if (auto ok = open_next(); !ok) return ok;
    }
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
      if (next_ != kNowhere) files_[std::exchange(next_, kNowhere)] = nullptr;
      return fail(errno_error(errno, kWhat, describe()));
    }
    parents_end_ = PipeEnd(ends[0]);
    childs_end_ = PipeEnd(ends[1]);
    return {};
  }

  // One number stays free: the child's own file needs it.
  Status open_next() FARHEAP_REQUIRES(gate_) {
    while (free_numbers() < 2) {
      if (auto ok = fold_one(); !ok) return ok;
    }
    auto opened = open_file_();
    if (!opened) return fail(std::move(opened.error()));
    next_ = free_number();
    files_[next_] = file_of(std::move(*opened));
    return {};
  }

  void forget_fork() FARHEAP_REQUIRES(gate_) {
    next_ = kNowhere;
    parents_end_ = PipeEnd();
    childs_end_ = PipeEnd();
  }

  void tidy_up() {
    if (!untidy_.load(std::memory_order_relaxed)) return;
    if (!gate_.try_lock()) return;
    tidy_up_alone();
    gate_.unlock();
  }

  void tidy_up_alone() FARHEAP_REQUIRES(gate_) {
    if (!untidy_.exchange(false)) return;
    std::erase_if(children_, [](const PipeEnd& one) { return one.is_the_last(); });
    for (Home home = 1; home <= kMostFiles; ++home) {
      auto& file = files_[home];
      if (file == nullptr || home == current_) continue;
      if (file->blocks.load() == 0) {
        file = nullptr;
      } else if (!children_.empty()) {
        if (file->has_left()) untidy_.store(true);
      } else {
        give_back_left(home);
      }
    }
  }

  void give_back_left(Home home) FARHEAP_REQUIRES(gate_) {
    for (const BlockRun& run : files_[home]->take_left()) {
      if (auto ok = give_back(home, run); !ok) {
        base::log(base::LogLevel::kWarn, "{}", ok.error().message());  // space is lost, no data
      }
    }
  }

  [[nodiscard]] Home free_number() const FARHEAP_REQUIRES(gate_) {
    Home home = 1;
    while (files_[home] != nullptr) ++home;
    return home;
  }
  [[nodiscard]] std::ptrdiff_t free_numbers() const FARHEAP_REQUIRES(gate_) {
    return std::count(files_.begin() + 1, files_.end(), nullptr);
  }

  // Copies the file with the fewest blocks into the one that is written to, and closes it.
  Status fold_one() FARHEAP_REQUIRES(gate_) {
    Home least = kNowhere;
    for (Home home = 1; home <= kMostFiles; ++home) {
      if (home == current_ || files_[home] == nullptr) continue;
      if (least == kNowhere || files_[home]->blocks.load() < files_[least]->blocks.load()) least = home;
    }
    if (auto ok = copy_all(least, current_); !ok) return ok;
    files_[least] = nullptr;
    return {};
  }

  Status copy_all(Home from, Home to) FARHEAP_REQUIRES(gate_) {
    const std::size_t most = std::max<std::size_t>(1, base::kMiB / limits_.block_bytes);
    const AlignedBuffer room(most * limits_.block_bytes);
    if (!room.is_there()) return fail(ErrorCode::kNoSpace, kWhat, describe(), "no memory to copy blocks");
    for (std::uint64_t block = 0; block < homes_.end() && files_[from]->blocks.load() != 0;) {
      if (home_of(block) != from) {
        ++block;
        continue;
      }
      const std::size_t count = same_home(block, most);
      os::IoRequest io{.write = false,
                       .offset = block * limits_.block_bytes,
                       .data = room.part(0, count * limits_.block_bytes).data(),
                       .bytes = count * limits_.block_bytes};
      const char* why = "";
      files_[from]->device->run({&io, 1});
      if (settle(io, why) == Outcome::kOk) {
        io.write = true, io.done = 0, io.error = 0;
        files_[to]->device->reach((block + count) * limits_.block_bytes);
        files_[to]->device->run({&io, 1});
      }
      if (settle(io, why) != Outcome::kOk) return fail(ErrorCode::kIo, kWhat, describe(), why);
      settle_in(to, block, count);
      block += count;
    }
    return {};
  }

  // Runs requests that belong to several files.
  void run_all(std::vector<os::IoRequest>& requests, const std::vector<Home>& homes) FARHEAP_REQUIRES_SHARED(gate_) {
    std::vector<os::IoRequest> some;
    for (Home home = 1; home <= kMostFiles; ++home) {
      const auto here = static_cast<std::size_t>(std::ranges::count(homes, home));
      if (here == 0) continue;
      if (here == homes.size()) return files_[home]->device->run(requests);
      some.clear();
      for (std::size_t i = 0; i < homes.size(); ++i) {
        if (homes[i] == home) some.push_back(requests[i]);
      }
      files_[home]->device->run(some);
      auto done = some.begin();
      for (std::size_t i = 0; i < homes.size(); ++i) {
        if (homes[i] == home) requests[i] = *done++;
      }
    }
  }

  // Of one entry, a request for each file that a part of it is in. The number of them; 0, with the outcome set, if it
  // cannot be read.
  std::size_t add_requests(Get& entry, std::vector<os::IoRequest>& requests, std::vector<Home>& homes, const char*& why)
      FARHEAP_REQUIRES_SHARED(gate_) {
    const std::size_t before = requests.size();
    const os::IoRequest whole = request(entry);
    const std::size_t count = blocks_in(entry.into.size());
    for (std::size_t at = 0; at < count;) {
      const Home home = home_of(entry.block + at);
      const std::size_t same = same_home(entry.block + at, count - at);
      if (home == kNowhere || files_[home] == nullptr) {
        requests.resize(before);
        homes.resize(before);
        entry.outcome = home == kNowhere ? Outcome::kAbsent : Outcome::kFailed;
        if (home != kNowhere) why = kNotHandedOn;
        return 0;
      }
      os::IoRequest part = whole;
      part.offset += at * limits_.block_bytes;
      part.data += at * limits_.block_bytes;
      part.bytes = same * limits_.block_bytes;
      requests.push_back(part);
      homes.push_back(home);
      at += same;
    }
    return requests.size() - before;
  }

  void get_together(std::span<Get> batch, const char*& why) override {
    std::vector<os::IoRequest> requests;
    std::vector<Home> homes;
    std::array<std::size_t, kTogether> parts;
    requests.reserve(batch.size());
    homes.reserve(batch.size());
    base::SharedGuard working(gate_);
    for (std::size_t i = 0; i < batch.size(); ++i) {
      batch[i].version = 0;
      parts[i] = add_requests(batch[i], requests, homes, why);
    }
    run_all(requests, homes);
    auto next = requests.begin();
    for (std::size_t i = 0; i < batch.size(); ++i) {
      if (parts[i] == 0) continue;
      batch[i].outcome = Outcome::kOk;
      for (; parts[i] != 0; --parts[i]) batch[i].outcome = std::max(batch[i].outcome, settle(*next++, why));
      batch[i].version = batch[i].outcome == Outcome::kOk ? 1 : 0;
    }
  }

  void put_together(std::span<Put> batch, const char*& why) override {
    put_in_current(batch, why);
    tidy_up();
  }

  void put_in_current(std::span<Put> batch, const char*& why) {
    os::IoRequest requests[kTogether];
    Put* entries[kTogether];
    std::size_t count = 0;
    std::uint64_t stripes = 0;
    base::SharedGuard working(gate_);
    FileDevice* const device = files_[current_] == nullptr ? nullptr : files_[current_]->device.get();
    for (auto& entry : batch) {
      const auto blocks = blocks_in(entry.from.size());
      entry.version = 0;
      if (device == nullptr) {
        entry.outcome = Outcome::kFailed;
        why = why_no_file_.c_str();
        continue;
      }
      if (!make_room(entry.block, blocks)) {
        entry.outcome = Outcome::kNoSpace;
        why = "no room in the table of blocks";
        continue;
      }
      if (const auto end = (entry.block + blocks) * limits_.block_bytes; !device->reaches(end)) {
        base::LockGuard lock(reaching_);
        device->reach(end);
      }
      if (home_of(entry.block) != current_ || same_home(entry.block, blocks) != blocks) {
        device->prepare(entry.block, blocks, batch.size());
      }
      if (has_small_blocks_) stripes |= Stripes::of(entry.block, blocks);
      requests[count] = request(entry);
      entries[count++] = &entry;
    }
    if (count == 0) return;
    // A hole is made of whole pages: a neighbour must not make one while we write.
    const Stripes::Guard guard(stripes_, stripes);
    device->run({requests, count});
    for (std::size_t i = 0; i < count; ++i) {
      auto& entry = *entries[i];
      entry.outcome = settle(requests[i], why);
      if (entry.outcome != Outcome::kOk) continue;
      settle_in(current_, entry.block, blocks_in(entry.from.size()));
      entry.version = 1;
    }
  }

  const OpenScratchFile open_file_;
  bool gives_back_ = true;
  bool has_small_blocks_ = false;
  os::SpareDescriptors spare_{kToFork};
  // Shared by who works with blocks, held alone while files come and go.
  base::SharedMutex gate_;
  std::array<std::unique_ptr<ScratchFile>, kMostFiles + 1> files_ FARHEAP_GUARDED_BY(gate_);
  Home current_ FARHEAP_GUARDED_BY(gate_) = kNowhere;
  BlockTable<std::atomic<Home>> homes_;
  std::atomic<std::uint64_t> present_{0};
  std::atomic<bool> untidy_{false};
  base::Mutex reaching_;  // held by who makes the file longer
  Stripes stripes_;

  // An end for each fork whose children may read our files, and the other ends of those of our parents.
  std::vector<PipeEnd> children_ FARHEAP_GUARDED_BY(gate_);
  std::vector<PipeEnd> held_ FARHEAP_GUARDED_BY(gate_);
  // From before_fork() until the fork is over:
  Home next_ FARHEAP_GUARDED_BY(gate_) = kNowhere;  // what the parent writes to then
  bool handed_on_ FARHEAP_GUARDED_BY(gate_) = true;
  PipeEnd parents_end_ FARHEAP_GUARDED_BY(gate_), childs_end_ FARHEAP_GUARDED_BY(gate_);

  std::string why_no_file_ FARHEAP_GUARDED_BY(gate_);

  base::Mutex counters_mutex_;
  std::map<std::string, std::int64_t> counters_ FARHEAP_GUARDED_BY(counters_mutex_);
};

}  // namespace

StoreResult make_scratch_file_store(std::string place, const StoreOptions& options, OpenScratchFile open_file) {
  auto first = open_file();
  if (!first) return fail(std::move(first.error()));
  return std::make_unique<ScratchFileStore>(std::move(place), options, std::move(open_file), std::move(*first));
}

}  // namespace farheap::store
