// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a fork does to the files of a scratch store. What the parent writes next is opened before there is a child; what
// the child does, when it is there, but before the program can shut itself in.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/log.hpp"
#include "store/scratch_files.hpp"

#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

namespace farheap::store {

void ScratchFiles::before_fork() {
  gate.lock();
  tidy_up_alone();
  spare_.let_go();
  const Status ready = get_ready_to_fork();
  handed_on_ = ready.has_value();
  if (!ready) base::log(base::LogLevel::kWarn, "a forked child has nothing of {}", ready.error().message());
}

void ScratchFiles::after_fork_in_parent(bool forked) {
  if (forked && parents_end_.is_there()) children_.push_back(std::exchange(parents_end_, PipeEnd()));
  if (next_ != kNowhere && forked) {
    current_ = next_;
  } else if (next_ != kNowhere) {
    files_[next_] = nullptr;
  }
  forget_fork();
  spare_.take_again();
  gate.unlock();
}

// What the parent alone writes to goes first: with that there are descriptors again.
void ScratchFiles::after_fork_in_child() {
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
    files_[current_] = std::make_unique<ScratchFile>(std::move(*opened));
  } else {
    why_no_file_ = opened.error().message();
  }
  spare_.take_again();
  gate.unlock_in_child();
#ifdef __SANITIZE_THREAD__
  __tsan_mutex_pre_unlock(&gate, 0);  // which the sanitizer takes for locked all the same
  __tsan_mutex_post_unlock(&gate, 0);
#endif
}

Status ScratchFiles::get_ready_to_fork() {
  bool any = false;
  for (const auto& file : files_) {
    any = any || (file != nullptr && file->blocks.load() != 0);
    if (file != nullptr && file->mine && !file->device->has_reader()) {
      return fail(ErrorCode::kUnavailable, kWhat, subject_, "it could not be opened for reading alone",
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
    return fail(errno_error(errno, kWhat, subject_));
  }
  parents_end_ = PipeEnd(ends[0]);
  childs_end_ = PipeEnd(ends[1]);
  return {};
}

// One number stays free: the child's own file needs it.
Status ScratchFiles::open_next() {
  while (free_numbers() < 2) {
    if (auto ok = fold_one(); !ok) return ok;
  }
  auto opened = open_file_();
  if (!opened) return fail(std::move(opened.error()));
  next_ = free_number();
  files_[next_] = std::make_unique<ScratchFile>(std::move(*opened));
  return {};
}

void ScratchFiles::forget_fork() {
  next_ = kNowhere;
  parents_end_ = PipeEnd();
  childs_end_ = PipeEnd();
}

Home ScratchFiles::free_number() const {
  Home home = 1;
  while (files_[home] != nullptr) ++home;
  return home;
}

std::ptrdiff_t ScratchFiles::free_numbers() const { return std::count(files_.begin() + 1, files_.end(), nullptr); }

}  // namespace farheap::store
