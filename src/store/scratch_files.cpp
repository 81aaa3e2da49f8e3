// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "store/scratch_files.hpp"

#include <poll.h>

#include <algorithm>

#include "base/log.hpp"
#include "base/units.hpp"
#include "os/own_descriptors.hpp"
#include "store/aligned_buffer.hpp"
#include "store/contents.hpp"

namespace farheap::store {

void ScratchFile::add_left(std::uint64_t block) {
  base::LockGuard lock(left_lock_);
  add_block(left_, block);
}

std::vector<BlockRun> ScratchFile::take_left() {
  base::LockGuard lock(left_lock_);
  return std::exchange(left_, {});
}

bool ScratchFile::has_left() {
  base::LockGuard lock(left_lock_);
  return !left_.empty();
}

PipeEnd::PipeEnd(int file) : file_(file < 0 ? file : os::keep_descriptor(file)) {}

PipeEnd::~PipeEnd() { os::release_descriptor(file_); }

bool PipeEnd::is_the_last() const {
  pollfd one{.fd = file_, .events = POLLIN, .revents = 0};
  return poll(&one, 1, 0) == 1 && (one.revents & POLLHUP) != 0;
}

ScratchFiles::ScratchFiles(std::string subject, std::size_t block_bytes, OpenScratchFile open_file,
                           std::unique_ptr<FileDevice> first)
    : subject_(std::move(subject)),
      block_bytes_(block_bytes),
      open_file_(std::move(open_file)),
      gives_back_(first->gives_back()),
      has_small_blocks_(first->has_small_blocks()) {
  files_[current_ = 1] = std::make_unique<ScratchFile>(std::move(first));
}

std::size_t ScratchFiles::same_home(std::uint64_t first, std::size_t count) const {
  const Home home = home_of(first);
  std::size_t same = 1;
  while (same < count && home_of(first + same) == home) ++same;
  return same;
}

bool ScratchFiles::make_room(std::uint64_t first, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) {
    if (homes_.make(first + i) == nullptr) return false;
  }
  return true;
}

Result<std::uint64_t> ScratchFiles::space_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& file : files_) {
    if (file == nullptr) continue;
    const auto space = file->device->space_bytes();
    if (!space) return fail(space.error());
    bytes += *space;
  }
  return bytes;
}

// Its home is another one now, or none.
void ScratchFiles::leave(Home home, std::uint64_t block) {
  ScratchFile* const file = files_[home].get();
  if (file == nullptr) return;
  const bool last = file->blocks.fetch_sub(1) == 1;
  if (home == current_) return;
  if (file->mine && gives_back_) file->add_left(block);
  if (last || file->mine) untidy_.store(true, std::memory_order_relaxed);
}

void ScratchFiles::settle_in(Home home, std::uint64_t first, std::uint64_t count) {
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

Status ScratchFiles::forget(std::uint64_t first, std::uint64_t count) {
  std::vector<BlockRun> gone;
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
  Status result;
  for (const BlockRun& run : gone) {
    if (auto ok = give_back(current_, run); !ok && result) result = std::move(ok);
  }
  return result;
}

Status ScratchFiles::give_back(Home home, const BlockRun& run) {
  return files_[home]->device->punch(run.first, run.first + run.count,
                                     [&](std::uint64_t block) { return home_of(block) != home; });
}

void ScratchFiles::tidy_up() {
  if (!untidy_.load(std::memory_order_relaxed)) return;
  if (!gate.try_lock()) return;
  tidy_up_alone();
  gate.unlock();
}

void ScratchFiles::tidy_up_alone() {
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

void ScratchFiles::give_back_left(Home home) {
  for (const BlockRun& run : files_[home]->take_left()) {
    if (auto ok = give_back(home, run); !ok) {
      base::log(base::LogLevel::kWarn, "{}", ok.error().message());  // space is lost, no data
    }
  }
}

Status ScratchFiles::fold_one() {
  Home least = kNowhere;
  for (Home home = 1; home <= kMostFiles; ++home) {
    if (home == current_ || files_[home] == nullptr) continue;
    if (least == kNowhere || files_[home]->blocks.load() < files_[least]->blocks.load()) least = home;
  }
  if (auto ok = copy_all(least, current_); !ok) return ok;
  files_[least] = nullptr;
  return {};
}

Status ScratchFiles::copy_all(Home from, Home to) {
  const std::size_t most = std::max<std::size_t>(1, base::kMiB / block_bytes_);
  const AlignedBuffer room(most * block_bytes_);
  if (!room.is_there()) return fail(ErrorCode::kNoSpace, kWhat, subject_, "no memory to copy blocks");
  for (std::uint64_t block = 0; block < homes_.end() && files_[from]->blocks.load() != 0;) {
    if (home_of(block) != from) {
      ++block;
      continue;
    }
    const std::size_t count = same_home(block, most);
    os::IoRequest io{.write = false,
                     .offset = block * block_bytes_,
                     .data = room.part(0, count * block_bytes_).data(),
                     .bytes = count * block_bytes_};
    const char* why = "";
    files_[from]->device->run({&io, 1});
    if (outcome_of(io, why) == Outcome::kOk) {
      io.write = true, io.done = 0, io.error = 0;
      files_[to]->device->reach((block + count) * block_bytes_);
      files_[to]->device->run({&io, 1});
    }
    if (outcome_of(io, why) != Outcome::kOk) return fail(ErrorCode::kIo, kWhat, subject_, why);
    settle_in(to, block, count);
    block += count;
  }
  return {};
}

}  // namespace farheap::store
