// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engines/space/health.hpp"

#include "base/mutex.hpp"

namespace farheap::engines {

Status ServerHealth::check(const std::function<Status()>& verify) {
  if (is_lost_) return lost({});
  if (watch_ == nullptr) return {};
  watch_->look();
  if (watch_->is_verified()) return {};
  const base::LockGuard one_verifies(verify_mutex_);
  if (is_lost_) return lost({});
  if (watch_->is_verified()) return {};
  const auto breaks = watch_->breaks();
  if (auto ok = verify(); !ok) return ok;
  watch_->verified(breaks);
  return {};
}

Status ServerHealth::lost(std::string what) {
  const base::LockGuard lock(lost_mutex_);
  if (!is_lost_) lost_ = std::move(what);
  is_lost_ = true;
  return fail(ErrorCode::kCorrupt, "cannot go on with the store", subject_, lost_,
              "start again, or from a snapshot that is kept elsewhere");
}

void Heartbeat::start(std::chrono::milliseconds every, std::function<void()> beat) {
  thread_ = std::jthread([this, every, beat = std::move(beat)](const std::stop_token& stop) {
    base::UniqueLock lock(mutex_);
    for (;;) {
      now_.wait_for(lock, stop, every, [] { return false; });
      if (stop.stop_requested()) return;
      beat();
    }
  });
}

void Heartbeat::stop() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  thread_.join();
}

}  // namespace farheap::engines
