// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "store/redis/beats.hpp"

#include <charconv>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "store/redis/keys.hpp"

namespace farheap::store::redis {
namespace {

constexpr std::string_view kSeconds = "604800";
constexpr std::int64_t kOld = std::int64_t{6} * 24 * 3600;

std::int64_t now_s() {
  return std::chrono::duration_cast<std::chrono::seconds>(base::Clock::now().time_since_epoch()).count();
}

}  // namespace

Beat& Beats::make(std::string_view key, std::string_view lane) {
  base::LockGuard guard(lock_);
  Beat& beat = beats_.emplace_back();
  beat.key = beside(key, "beat", lane);
  beat.slot = slot_of(beat.key);
  return beat;
}

bool Beats::is_old(const Beat& beat) { return now_s() - beat.when_s.load() > kOld; }

void Beats::write(Requests& requests, const Beat& beat, std::uint64_t number, bool expires) {
  requests.command(expires ? 6 : 4);
  requests.argument("SET");
  requests.argument(beat.key);
  requests.argument(number);
  requests.argument("GET");
  if (!expires) return;
  requests.argument("EX");
  requests.argument(kSeconds);
}

bool Beats::is_whole(const Beat& beat, const Reply& reply) {
  const auto acknowledged = beat.acknowledged.load();
  if (acknowledged == 0 || is_old(beat)) return true;
  std::uint64_t number = 0;
  const char* const last = reply.text.data() + reply.text.size();
  const auto [end, error] = std::from_chars(reply.text.data(), last, number);
  return reply.kind == Kind::kBulk && error == std::errc() && end == last && number >= acknowledged;
}

void Beats::acknowledge(Beat& beat, std::uint64_t number, std::uint64_t contents) {
  beat.acknowledged.store(number);
  beat.seen_on.store(contents);
  beat.when_s.store(now_s());
}

}  // namespace farheap::store::redis
