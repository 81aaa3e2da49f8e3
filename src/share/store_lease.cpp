// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "share/store_lease.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <vector>

#include "base/clock.hpp"
#include "base/random_number.hpp"
#include "os/boot_clock.hpp"

namespace farheap::share {
namespace {

constexpr char kWhat[] = "cannot hold a lease";
std::atomic<std::int64_t> term_ms{20000};

std::string name_for_people() {
  char host[64] = {};
  gethostname(host, sizeof host - 1);
  return fmt::format("'{}' (process {} on {}) since {:%Y-%m-%d %H:%M:%S} UTC", program_invocation_short_name, getpid(),
                     host, fmt::gmtime(base::real_time_s()));
}

}  // namespace

void set_lease_term(std::chrono::milliseconds term) { term_ms = term.count(); }
std::chrono::milliseconds lease_term() { return std::chrono::milliseconds(term_ms.load()); }

Result<bool> StoreLease::look() {
  std::vector<std::byte> block(store_.limits().block_bytes);
  Get get{.block = block_, .into = block};
  if (Status status = store_.get({&get, 1}); !status) return fail(std::move(status.error()));
  seen_ = get.outcome == Outcome::kAbsent ? 0 : get.version;
  record_ = {};
  if (seen_ == 0) return false;
  const auto record = decode(block);
  if (!record) {
    return fail(ErrorCode::kCorrupt, kWhat, store_.describe(), fmt::format("block {} is no lease", block_),
                "no heap of this Farheap lives there; choose another name");
  }
  record_ = *record;
  return true;
}

Result<bool> StoreLease::is_held() {
  std::int64_t since = 0;
  for (Version first = 0;;) {
    auto there = look();
    if (!there) return fail(std::move(there.error()));
    if (record_.use == LeaseUse::kNone) return false;
    const os::Presence presence = os::presence_of(record_.process);
    if (presence != os::Presence::kElsewhere) return presence == os::Presence::kHere;
    if (first != 0 && seen_ != first) return true;
    if (first == 0) first = seen_, since = os::boot_clock_ns();
    if (os::boot_clock_ns() - since > term_ms * 1'000'000) return false;
    os::boot_clock_sleep(lease_term() / 16);
  }
}

// A put whose answer was lost is told by what stands there: no two writes are alike.
Result<bool> StoreLease::write(const LeaseRecord& record) {
  const std::int64_t began = os::boot_clock_ns();
  std::vector<std::byte> block(store_.limits().block_bytes);
  encode(record, block);
  Put put{.block = block_, .from = block, .expected = seen_};
  Status status = store_.put({&put, 1});
  if (put.outcome == Outcome::kUnknown) {
    std::vector<std::byte> found(block.size());
    Get get{.block = block_, .into = found};
    if (Status read = store_.get({&get, 1}); !read) return fail(std::move(read.error()));
    if (get.outcome != Outcome::kOk || found != block) return fail(std::move(status.error()));
    put.version = get.version;
  } else if (!status) {
    return fail(std::move(status.error()));
  } else if (put.outcome == Outcome::kConflict) {
    return false;
  }
  seen_ = put.version;
  record_ = record;
  renewed_ns_ = began;
  return true;
}

Result<bool> StoreLease::take(LeaseUse use, std::uint64_t commit) {
  auto written = write({.use = use,
                        .owner = base::random_number(),
                        .token = record_.token + 1,
                        .commit = commit,
                        .fence = record_.use == LeaseUse::kNone ? record_.fence : record_.reserved,
                        .reserved = record_.reserved,
                        .process = os::name_of_this_process(),
                        .name = name_for_people()});
  if (written && *written) taken_ = true;
  return written;
}

// A process that was restored from a checkpoint is another one than it was, and says so with the next beat.
Status StoreLease::set(LeaseRecord next) {
  ++next.beat;
  next.process = os::name_of_this_process();
  auto written = write(next);
  if (!written) return fail(std::move(written.error()));
  if (*written) return {};
  taken_ = false;
  return fail(
      ErrorCode::kConflict, "the lease is lost", store_.describe(),
      fmt::format("this process did not renew it for {} s, and somebody else has it", lease_term().count() / 1000),
      "what was not committed is lost; open the heap again. Give a process that is stopped for long no heap that "
      "others write");
}

void StoreLease::release(std::uint64_t fence) {
  if (!taken_) return;
  taken_ = false;
  LeaseRecord last = record_;
  last.use = LeaseUse::kNone;
  last.fence = fence;
  last.name.clear();
  constexpr int kTries = 3;  // what stays is held for as long as this process runs
  for (int i = 0; i < kTries; ++i) {
    if (write(last)) return;
  }
}

std::int64_t StoreLease::sure_until_ns() const {
  return renewed_ns_.load() + std::int64_t{term_ms} * 1'000'000 / 8 * 7;
}

bool StoreLease::is_sure() const {
  return taken_ && os::boot_clock_ns() - renewed_ns_.load() < std::int64_t{term_ms} * 1'000'000 / 2;
}

}  // namespace farheap::share
