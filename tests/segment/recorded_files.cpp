// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "recorded_files.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <span>

#include "tests/words.hpp"

namespace farheap::testing {
namespace {

RecordedFiles* g_current = nullptr;
std::uint64_t g_failing_inode = 0;

void on_fault(int, siginfo_t* fault, void*) {
  if (g_current != nullptr && g_current->was_written_to(fault->si_addr)) return;
  signal(SIGSEGV, SIG_DFL);
}

struct stat status_of(const std::string& path) {
  struct stat status{};
  if (stat(path.c_str(), &status) != 0) std::abort();
  return status;
}

RecordedFiles::Bytes contents(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  RecordedFiles::Bytes bytes(static_cast<std::size_t>(status_of(path).st_size));
  if (file < 0 || read(file, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) std::abort();
  close(file);
  return bytes;
}

}  // namespace

RecordedFiles::RecordedFiles(std::string file) : name_(std::move(file)) {
  const struct stat data = status_of(name_), table = status_of(name_ + ".versions");
  device_ = data.st_dev, file_inode_ = data.st_ino, table_inode_ = table.st_ino;
  table_ = contents(name_ + ".versions");
  const Bytes bytes = contents(name_);
  file_.bytes = bytes.size();
  for (std::size_t at = 0; at < bytes.size(); at += kPage) {
    const std::span<const std::byte> block(bytes.data() + at, kPage);
    if (!test::repeats_word(block.data(), kPage, 0)) file_.at[at / kPage] = Bytes(block.begin(), block.end());
  }
  struct sigaction action{};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSEGV, &action, nullptr);
  g_current = this;
}

RecordedFiles::~RecordedFiles() {
  g_current = nullptr;
  signal(SIGSEGV, SIG_DFL);
}

RecordedFiles* RecordedFiles::current() { return g_current; }

bool RecordedFiles::is_file(int descriptor) const {
  struct stat status{};
  return fstat(descriptor, &status) == 0 && status.st_dev == device_ && status.st_ino == file_inode_;
}
bool RecordedFiles::is_table(int descriptor) const {
  struct stat status{};
  return fstat(descriptor, &status) == 0 && status.st_dev == device_ && status.st_ino == table_inode_;
}

// All calls are of whole blocks.
void RecordedFiles::apply(Blocks& to, const Change& change) {
  if (change.kind == Change::Kind::kSize) {
    to.bytes = change.offset;
    return;
  }
  for (std::uint64_t at = 0; at < change.length; at += kPage) {
    const std::uint64_t block = (change.offset + at) / kPage;
    if (change.kind == Change::Kind::kHole) {
      to.at.erase(block);
    } else {
      const auto begin = change.bytes.begin() + static_cast<std::ptrdiff_t>(at);
      to.at[block] = Bytes(begin, begin + kPage);
      to.bytes = std::max(to.bytes, change.offset + at + kPage);
    }
  }
}

void RecordedFiles::note(Change change) {
  ++calls_;
  look_at_table();
  since_.push_back(std::move(change));
  changed();
}

// A page that was lost keeps what it had on the disk until it is written to again.
void RecordedFiles::look_at_table() {
  const Bytes now = contents(name_ + ".versions");
  if (table_.size() < now.size()) table_.resize(now.size());  // its room is taken, of zeros
  for (std::size_t page = 0; page * kPage < now.size(); ++page) {
    if (const auto lost = lost_pages_.find(page); lost != lost_pages_.end() && !lost->second) continue;
    const auto begin = now.begin() + static_cast<std::ptrdiff_t>(page * kPage);
    const Bytes bytes(begin, begin + static_cast<std::ptrdiff_t>(std::min(kPage, now.size() - page * kPage)));
    auto& held = pages_since_[page];
    const auto on_disk = std::span<const std::byte>(table_).subspan(page * kPage, bytes.size());
    if (!test::same_bytes(bytes, held.empty() ? on_disk : held.back())) held.push_back(bytes);
  }
}

int RecordedFiles::sync_file() {
  ++calls_;
  look_at_table();
  if (fails()) {
    std::erase_if(since_, [&](const Change& one) {
      const bool is_lost = one.kind != Change::Kind::kSize && chance() % 3 != 0;
      if (is_lost && chance() % 2 == 0) show_what_is_durable(one);
      return is_lost;
    });
    ++failed_syncs_;
    changed();
    return EIO;
  }
  for (const Change& one : since_) apply(file_, one);
  since_.clear();
  changed();
  return 0;
}

// The page cache has let go of it.
void RecordedFiles::show_what_is_durable(const Change& lost) const {
  const int again = open(name_.c_str(), O_WRONLY | O_CLOEXEC);
  for (std::uint64_t at = lost.offset; at < lost.offset + lost.length; at += kPage) {
    const auto there = file_.at.find(at / kPage);
    const Bytes bytes = there == file_.at.end() ? Bytes(kPage) : there->second;
    (void)syscall(SYS_pwrite64, again, bytes.data(), bytes.size(), at);
  }
  close(again);
}

int RecordedFiles::sync_table() {
  ++calls_;
  look_at_table();
  const bool has_failed = fails();
  for (auto& [page, held] : pages_since_) {
    if (held.empty()) continue;
    if (has_failed && chance() % 3 != 0) {
      lost_pages_[page] = false;
    } else {
      std::ranges::copy(held.back(), table_.begin() + static_cast<std::ptrdiff_t>(page * kPage));
      lost_pages_.erase(page);
    }
    held.clear();
  }
  if (has_failed) {
    ++failed_syncs_;
    watch_lost_pages();
  }
  changed();
  return has_failed ? EIO : 0;
}

// Their next write is a fault.
void RecordedFiles::watch_lost_pages() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t begin = 0, end = 0;
    std::uint64_t offset = 0, inode = 0;
    char access[8] = {};
    if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " %7s %" SCNx64 " %*s %" SCNu64, &begin, &end, access,
                    &offset, &inode) != 5 ||
        inode != table_inode_ || access[3] != 's') {
      continue;
    }
    for (const auto& [page, is_written] : lost_pages_) {
      if (is_written || page * kPage < offset || page * kPage - offset >= end - begin) continue;
      const std::uintptr_t at = begin + (page * kPage - offset);
      watched_[at] = page;
      mprotect(reinterpret_cast<void*>(at), kPage, PROT_READ);
    }
  }
}

bool RecordedFiles::was_written_to(const void* address) {
  const std::uintptr_t at = reinterpret_cast<std::uintptr_t>(address) / kPage * kPage;
  const auto found = watched_.find(at);
  if (found == watched_.end()) return false;
  if (const auto lost = lost_pages_.find(found->second); lost != lost_pages_.end()) lost->second = true;
  return mprotect(reinterpret_cast<void*>(at), kPage, PROT_READ | PROT_WRITE) == 0;
}

RecordedFiles::Pair RecordedFiles::lost(Left left, std::mt19937_64& random) {
  look_at_table();
  Pair pair{file_, table_};
  if (left == Left::kNone) return pair;
  const bool all = left == Left::kAll;
  for (Change one : since_) {
    if (!all && random() % 4 == 0) continue;
    if (!all && one.kind == Change::Kind::kWrite && random() % 4 == 0) {
      for (std::size_t at = 0; at < one.length; at += kSector) {
        if (random() % 2 == 0) continue;
        const auto there = pair.file.at.find((one.offset + at) / kPage);
        const Bytes before = there == pair.file.at.end() ? Bytes(kPage) : there->second;
        std::copy_n(before.begin() + static_cast<std::ptrdiff_t>(at % kPage), kSector,
                    one.bytes.begin() + static_cast<std::ptrdiff_t>(at));
      }
    }
    apply(pair.file, one);
  }
  for (const auto& [page, held] : pages_since_) {
    if (held.empty()) continue;
    for (std::size_t at = 0; at < held.back().size(); at += kSector) {
      // Mostly one moment for the whole page; now and then one for each sector of it.
      static thread_local std::size_t moment = 0;
      if (at == 0 || random() % 16 == 0) moment = random() % (held.size() + 1);
      if (all) moment = held.size();
      if (moment == 0) continue;
      std::copy_n(held[moment - 1].begin() + static_cast<std::ptrdiff_t>(at), kSector,
                  pair.table.begin() + static_cast<std::ptrdiff_t>(page * kPage + at));
    }
  }
  return pair;
}

void RecordedFiles::write(const Pair& pair, const std::string& file) {
  const auto make = [](const std::string& path) {
    unlink(path.c_str());
    return open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  };
  const int data = make(file), table = make(file + ".versions");
  bool ok = syscall(SYS_ftruncate, data, pair.file.bytes) == 0;
  for (const auto& [block, bytes] : pair.file.at) {
    ok = ok && syscall(SYS_pwrite64, data, bytes.data(), bytes.size(), block * kPage) == kPage;
  }
  ok = ok &&
       syscall(SYS_pwrite64, table, pair.table.data(), pair.table.size(), 0) == static_cast<long>(pair.table.size());
  if (!ok) std::abort();
  close(data), close(table);
}

FailingSyncs::FailingSyncs(const std::string& file) { g_failing_inode = status_of(file).st_ino; }
FailingSyncs::~FailingSyncs() { g_failing_inode = 0; }
bool FailingSyncs::fails(int descriptor) {
  struct stat status{};
  return g_failing_inode != 0 && fstat(descriptor, &status) == 0 && status.st_ino == g_failing_inode;
}

}  // namespace farheap::testing

using farheap::testing::RecordedFiles;

// ---- the system calls that change the two, instead of the library's

namespace {

using Kind = RecordedFiles::Change::Kind;

}  // namespace

extern "C" {

ssize_t pwrite(int file, const void* from, std::size_t bytes, off_t offset) {
  auto* const recorded = RecordedFiles::current();
  const bool is_file = recorded != nullptr && recorded->is_file(file);
  const long done = syscall(SYS_pwrite64, file, from, bytes, offset);
  if (is_file && done > 0) {
    const auto* const at = static_cast<const std::byte*>(from);
    recorded->note(
        {Kind::kWrite, static_cast<std::uint64_t>(offset), static_cast<std::uint64_t>(done), {at, at + done}});
  }
  return done;
}

ssize_t pwritev(int file, const iovec* parts, int count, off_t offset) {
  ssize_t all = 0;
  for (int i = 0; i < count; ++i) {
    const ssize_t done = pwrite(file, parts[i].iov_base, parts[i].iov_len, offset + all);
    if (done < 0) return all != 0 ? all : done;
    all += done;
    if (static_cast<std::size_t>(done) != parts[i].iov_len) break;
  }
  return all;
}

int fallocate(int file, int mode, off_t offset, off_t length) {
  auto* const recorded = RecordedFiles::current();
  const bool is_file = recorded != nullptr && recorded->is_file(file);
  const long done = syscall(SYS_fallocate, file, mode, offset, length);
  if (is_file && done == 0 && (mode & FALLOC_FL_PUNCH_HOLE) != 0) {
    recorded->note({Kind::kHole, static_cast<std::uint64_t>(offset), static_cast<std::uint64_t>(length)});
  }
  return static_cast<int>(done);
}

int ftruncate(int file, off_t length) noexcept {
  auto* const recorded = RecordedFiles::current();
  const bool is_file = recorded != nullptr && recorded->is_file(file);
  const long done = syscall(SYS_ftruncate, file, length);
  if (is_file && done == 0) recorded->note({Kind::kSize, static_cast<std::uint64_t>(length), 0});
  return static_cast<int>(done);
}

// Seen by libraries, too.
__attribute__((visibility("default"))) int fdatasync(int file) {
  if (farheap::testing::FailingSyncs::fails(file)) {
    errno = EIO;
    return -1;
  }
  auto* const recorded = RecordedFiles::current();
  if (recorded == nullptr || !(recorded->is_file(file) || recorded->is_table(file))) {
    return static_cast<int>(syscall(SYS_fdatasync, file));
  }
  const int error = recorded->is_file(file) ? recorded->sync_file() : recorded->sync_table();
  if (error == 0) return 0;
  errno = error;
  return -1;
}
int fsync(int file) { return fdatasync(file); }

}  // extern "C"
