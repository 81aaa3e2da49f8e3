// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Invariant: the file only grows, and end_word is raised after the file has reached it. So a word below end_word
// can always be touched.
#include "store/side_table.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "base/log.hpp"
#include "base/units.hpp"
#include "os/named_file.hpp"
#include "os/own_descriptors.hpp"

namespace farheap::store {
namespace {

constexpr char kMagic[8] = {'F', 'H', 'S', 'I', 'D', 'E', '\r', '\n'};
constexpr std::uint32_t kTableFormat = 1;
constexpr char kCannotOpenTable[] = "cannot open the store's table";
constexpr char kTableRemedy[] = "a heap's file is whole without it: `farheap heap check --repair`";

// Versions must not come again after a power loss took back the counter that they are drawn from.
constexpr std::uint64_t kVersionsPerBoot = std::uint64_t{1} << 40;
constexpr std::uint64_t kMostVersions = std::uint64_t{1} << 61;  // a million boots

std::uint64_t this_boot() {
  char text[64] = {};
  const int file = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  const ssize_t bytes = read(file, text, sizeof text);
  close(file);
  return bytes > 0 ? XXH3_64bits(text, static_cast<std::size_t>(bytes)) : 0;
}

// Whoever made it was killed before the magic, which is written last: there has been no word in it yet.
bool is_unfinished(int file, std::uint64_t bytes, std::uint64_t words_at) {
  char magic[sizeof kMagic] = {};
  constexpr char kNone[sizeof kMagic] = {};
  return bytes <= words_at && pread(file, magic, sizeof magic, 0) >= 0 && std::memcmp(magic, kNone, sizeof magic) == 0;
}

}  // namespace

Result<std::unique_ptr<SideTable>> SideTable::open(int file, std::size_t block_bytes, std::string name, Use use) {
  std::unique_ptr<SideTable> table(new SideTable(os::keep_descriptor(file), std::move(name), use));
  auto ok = table->set_up(block_bytes);
  if (!ok) return fail(std::move(ok.error()));
  return table;
}

SideTable::SideTable(int file, std::string name, Use use)
    : file_(file),
      name_(std::move(name)),
      use_(use),
      for_us_alone_(os::is_kept_from_children(file)),
      born_(os::fork_generation()) {}

bool SideTable::is_the_parents() const { return for_us_alone_ && born_ != os::fork_generation(); }

void* SideTable::map(std::size_t bytes, std::uint64_t from) const {
  void* const at = mmap(nullptr, bytes, protection(), MAP_SHARED, file_, static_cast<off_t>(from));
  if (at != MAP_FAILED && for_us_alone_) (void)madvise(at, bytes, MADV_DONTFORK);
  return at;
}

SideTable::~SideTable() {
  const bool mapped = !is_the_parents();
  if (mapped && header_ != nullptr) munmap(header_, kWordsAt);
  for (auto& slot : chunks_) {
    if (auto* at = slot.load(); mapped && at != nullptr) munmap(at, kWordsPerChunk * sizeof(Word));
  }
  const auto own = lock_file_.load();
  if (own >> 32 == static_cast<std::uint64_t>(getpid()) && static_cast<int>(own) != file_) {
    os::release_descriptor(static_cast<int>(own));
  }
  os::release_descriptor(file_);
}

Status SideTable::set_up(std::size_t block_bytes) {
  Guard guard(*this, 0, true);
  struct stat status{};
  if (fstat(file_, &status) != 0) return fail(errno_error(errno, kCannotOpenTable, name_));
  const bool fresh = !is_only_read() && is_unfinished(file_, static_cast<std::uint64_t>(status.st_size), kWordsAt);
  if (fresh && fallocate(file_, 0, 0, kWordsAt) != 0 && (errno != EOPNOTSUPP || ftruncate(file_, kWordsAt) != 0)) {
    return fail(errno_error(errno, kCannotOpenTable, name_));
  }
  if (!fresh && static_cast<std::size_t>(status.st_size) < kWordsAt) {
    return fail(ErrorCode::kCorrupt, kCannotOpenTable, name_, "it is too short");
  }
  void* at = map(kWordsAt, 0);
  if (at == MAP_FAILED) return fail(errno_error(errno, kCannotOpenTable, name_));
  header_ = static_cast<Header*>(at);
  counters_ = reinterpret_cast<Counter*>(static_cast<std::byte*>(at) + kHeaderBytes);
  if (fresh) {
    header_->format = kTableFormat;
    header_->block_bytes = static_cast<std::uint32_t>(block_bytes);
    header_->next_version.store(1);
    std::atomic_thread_fence(std::memory_order_release);  // a process may be killed at any instant
    std::memcpy(header_->magic, kMagic, sizeof kMagic);
  }
  if (std::memcmp(header_->magic, kMagic, sizeof kMagic) != 0) {
    return fail(ErrorCode::kCorrupt, kCannotOpenTable, name_, "it is not a table of Farheap");
  }
  if (header_->format > kTableFormat) {
    return fail(ErrorCode::kCorrupt, kCannotOpenTable, name_, fmt::format("it has format {}", header_->format),
                "open it with the newer Farheap that made it");
  }
  // Numbers that no table has: they would lead out of it, or into the marks of a word.
  const auto next_version = header_->next_version.load();
  if (header_->end_word.load() > kWords || next_version == 0 || next_version > kMostVersions) {
    return fail(ErrorCode::kCorrupt, kCannotOpenTable, name_, "its header makes no sense", kTableRemedy);
  }
  if (static_cast<std::uint64_t>(status.st_size) < kWordsAt + header_->end_word.load() * sizeof(Word) && !fresh) {
    return fail(ErrorCode::kCorrupt, kCannotOpenTable, name_, "it is too short", kTableRemedy);
  }
  if (header_->block_bytes != block_bytes) {
    return fail(ErrorCode::kInvalidArgument, kCannotOpenTable, name_,
                fmt::format("it holds blocks of {} bytes, not of {}", header_->block_bytes, block_bytes),
                "open it with the block size it was made with");
  }
  if (const auto boot = this_boot(); !is_only_read() && header_->boot != boot) {
    header_->boot = boot;
    header_->next_version.fetch_add(kVersionsPerBoot);
  }
  return {};
}

Word* SideTable::chunk(std::size_t number) {
  auto& slot = chunks_[number];
  if (auto* there = slot.load(std::memory_order_acquire)) return there;
  constexpr std::size_t kBytes = kWordsPerChunk * sizeof(Word);
  void* at = map(kBytes, kWordsAt + number * kBytes);
  if (at == MAP_FAILED) return nullptr;
  Word* none = nullptr;
  if (slot.compare_exchange_strong(none, static_cast<Word*>(at))) return static_cast<Word*>(at);
  munmap(at, kBytes);
  return none;
}

Word* SideTable::find(std::uint64_t index) {
  if (index >= end()) return nullptr;
  auto* at = chunk(index / kWordsPerChunk);
  return at == nullptr ? nullptr : at + index % kWordsPerChunk;
}

// Writing to a hole of a mapped file on a full disk would kill the process, so the room is taken first.
bool SideTable::allocate(std::uint64_t segment) {
  Guard guard(*this, 0, true);
  constexpr std::size_t kBytes = kWordsPerSegment * sizeof(Word);
  const auto at = static_cast<off_t>(kWordsAt + segment * kBytes);
  if (fallocate(file_, 0, at, kBytes) != 0) {
    if (errno != EOPNOTSUPP) return false;
    struct stat status{};
    const auto wanted = at + static_cast<off_t>(kBytes);
    if (fstat(file_, &status) != 0 || (status.st_size < wanted && ftruncate(file_, wanted) != 0)) return false;
  }
  const auto words = (segment + 1) * kWordsPerSegment;
  if (header_->end_word.load() < words) header_->end_word.store(words, std::memory_order_release);
  allocated_[segment / 64].fetch_or(std::uint64_t{1} << segment % 64, std::memory_order_release);
  return true;
}

Word* SideTable::make(std::uint64_t index) {
  if (index >= kWords || is_only_read()) return nullptr;
  const auto segment = index / kWordsPerSegment;
  const bool there = allocated_[segment / 64].load(std::memory_order_acquire) >> segment % 64 & 1;
  if (!there && !allocate(segment)) return nullptr;
  return find(index);
}

Result<std::int64_t> SideTable::add(std::string_view counter, std::int64_t delta) {
  if (counter.empty() || counter.size() >= sizeof(Counter::name) || counter.find('\0') != std::string_view::npos) {
    return fail(ErrorCode::kInvalidArgument, "cannot count", std::string(counter),
                fmt::format("a counter's name has 1 to {} bytes, none of them zero", sizeof(Counter::name) - 1));
  }
  if (is_only_read()) return fail(ErrorCode::kPermission, "cannot count", name_, "it is open to be read alone");
  Guard guard(*this, 0, true);
  for (std::size_t i = 0; i < kCounters; ++i) {
    auto& slot = counters_[i];
    if (slot.name[0] == '\0') {
      // The value first: a process killed between the two leaves a free slot.
      std::atomic_ref(slot.value).store(0);
      std::memcpy(slot.name + 1, counter.data() + 1, counter.size() - 1);
      slot.name[counter.size()] = '\0';
      std::atomic_ref(slot.name[0]).store(counter[0]);
    }
    if (name_of(slot) != counter) continue;
    const auto sum = static_cast<std::uint64_t>(slot.value) + static_cast<std::uint64_t>(delta);
    std::atomic_ref(slot.value).store(static_cast<std::int64_t>(sum));
    return slot.value;
  }
  return fail(ErrorCode::kNoSpace, "cannot count", std::string(counter),
              fmt::format("all {} counters of {} are taken", kCounters, name_));
}

std::vector<NamedCounter> SideTable::counters() {
  Guard guard(*this, 0, true);
  std::vector<NamedCounter> all;
  for (std::size_t i = 0; i < kCounters && counters_[i].name[0] != '\0'; ++i) {
    all.push_back({std::string(name_of(counters_[i])), counters_[i].value});
  }
  return all;
}

Result<SideTable::Facts> SideTable::look(const std::string& path) {
  const auto file = os::open_file_to_read(path, "cannot look at the store");
  if (!file) return fail(file.error());
  char bytes[sizeof(Header)];
  const bool whole = pread(*file, bytes, sizeof bytes, 0) == sizeof bytes;
  close(*file);
  std::uint32_t block_bytes = 0;
  Facts facts;
  std::memcpy(&block_bytes, bytes + offsetof(Header, block_bytes), sizeof block_bytes);
  std::memcpy(&facts.blocks, bytes + offsetof(Header, blocks_present), sizeof facts.blocks);
  facts.block_bytes = block_bytes;
  if (whole && std::memcmp(bytes, kMagic, sizeof kMagic) == 0) return facts;
  return fail(ErrorCode::kCorrupt, "cannot look at the store", path, "it is not a table of Farheap");
}

// The kernel reports once that it could not write a page, and takes it for written from then on.
void SideTable::write_all_again() {
  const auto touch = [](void* page) {
    auto& word = *static_cast<Word*>(page);
    auto seen = word.load();
    while (!word.compare_exchange_weak(seen, seen)) continue;  // the same, but written
  };
  auto* const begin = reinterpret_cast<std::byte*>(header_);
  for (std::size_t at = 0; at < kWordsAt; at += base::kPageBytes) touch(begin + at);
  for (std::uint64_t word = 0; word < end(); word += base::kPageBytes / sizeof(Word)) {
    if (Word* const there = find(word)) touch(there);
  }
}

Status SideTable::sync() {
  if (is_only_read()) return {};
  if (sync_has_failed_.exchange(false)) write_all_again();
  if (fdatasync(file_) == 0) return {};
  const int error = errno;
  sync_has_failed_ = true;
  return fail(errno_error(error, "cannot make it durable", name_, "look for a failing device"));
}

int SideTable::lock_file() {
  auto own = lock_file_.load(std::memory_order_acquire);
  const auto me = static_cast<std::uint64_t>(getpid());
  while (own >> 32 != me) {
    int fresh = ::open(fmt::format("/proc/thread-self/fd/{}", file_).c_str(), O_RDWR | O_CLOEXEC);
    if (fresh < 0) {
      fresh = file_;  // without /proc, or out of descriptors
    } else {
      fresh = os::keep_descriptor(fresh);
      if (for_us_alone_) os::keep_from_children(fresh);
    }
    if (lock_file_.compare_exchange_strong(own, me << 32 | static_cast<std::uint32_t>(fresh))) return fresh;
    if (fresh != file_) os::release_descriptor(fresh);
  }
  return static_cast<int>(own);
}

// A lock of the process, where the file description may be its parent's: the two kinds exclude each other.
void SideTable::lock_byte(int number, bool take) {
  if (is_only_read()) return;
  const int file = lock_file();
  const bool shared = file == file_;
  struct flock range{};
  range.l_type = take ? F_WRLCK : F_UNLCK;
  range.l_whence = SEEK_SET;
  range.l_start = number;
  range.l_len = 1;
  const int how = shared ? (take ? F_SETLKW : F_SETLK) : (take ? F_OFD_SETLKW : F_OFD_SETLK);
  while (fcntl(file, how, &range) != 0) {
    if (errno == EINTR || errno == EAGAIN) continue;
    base::stop(fmt::format("{}: the file system refuses locks: {}", name_, strerror(errno)));
  }
}

SideTable::Guard::Guard(SideTable& table, std::uint64_t stripes, bool counters_and_size)
    : table_(table), stripes_(stripes), extra_(counters_and_size) {
  for (auto left = stripes_; left != 0; left &= left - 1) {
    const int stripe = std::countr_zero(left);
    table_.locks_[static_cast<std::size_t>(stripe)].lock();
    table_.lock_byte(stripe, true);
  }
  if (extra_) {
    table_.locks_[kStripes].lock();
    table_.lock_byte(kStripes, true);
  }
}

SideTable::Guard::~Guard() {
  if (extra_) {
    table_.lock_byte(kStripes, false);
    table_.locks_[kStripes].unlock();
  }
  for (auto left = stripes_; left != 0; left &= left - 1) {
    const int stripe = std::countr_zero(left);
    table_.lock_byte(stripe, false);
    table_.locks_[static_cast<std::size_t>(stripe)].unlock();
  }
}

}  // namespace farheap::store
