// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "store/redis/scratch_entry.hpp"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <charconv>

#include "base/clock.hpp"
#include "os/boot_clock.hpp"
#include "store/redis/family_lock.hpp"

namespace farheap::store::redis {
namespace {

constexpr std::uint64_t kDay = std::uint64_t{24} * 3600;

// A user that may not ask for the time leaves it to us.
constexpr std::string_view kWrite =
    "local t=redis.pcall('TIME') t=t.err and ARGV[4] or t[1] "
    "redis.call('HSET',KEYS[1],ARGV[1],ARGV[2]..' '..t..' '..ARGV[3]..' '..ARGV[5]) return 1";
constexpr std::string_view kIfThere = "if redis.call('HEXISTS',KEYS[1],ARGV[1])==0 then return 0 end ";

void write(const ScratchEntry& entry, Requests& requests, std::string_view script, std::string_view run_id,
           unsigned grace_s) {
  requests.command(9);
  requests.argument("EVAL"), requests.argument(script), requests.argument("1"), requests.argument(entry.key);
  requests.argument(entry.id), requests.argument(run_id), requests.argument(std::uint64_t{grace_s});
  requests.argument(static_cast<std::uint64_t>(base::real_time_s())), requests.argument(entry.machine);
}

std::uint64_t take_number(std::string_view& text) {
  std::uint64_t number = 0;
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return error == std::errc() ? number : 0;
}

}  // namespace

void ScratchEntry::write_first(Requests& requests, std::string_view run_id, unsigned grace_s) const {
  write(*this, requests, kWrite, run_id, grace_s);
}

void ScratchEntry::write_renewal(Requests& requests, std::string_view run_id, unsigned grace_s) const {
  write(*this, requests, std::string(kIfThere).append(kWrite), run_id, grace_s);
}

std::string ScratchEntry::why_gone(unsigned grace_s) const {
  const auto silent_s = (os::boot_clock_ns() - heard_ns.load()) / 1'000'000'000;
  if (silent_s < static_cast<std::int64_t>(grace_s)) {
    return "the server does not have it any more: it was restarted without its data, emptied, or replaced, or the "
           "store "
           "was removed by a command";
  }
  return fmt::format(
      "the server had not heard of this program for {} s, which is longer than grace_s={}: another run took the store "
      "for one that was left, and removed it",
      silent_s, grace_s);
}

ScratchNote read_scratch_note(std::string_view text) {
  ScratchNote note{.run_id = text.substr(0, text.find(' '))};
  text.remove_prefix(note.run_id.size());
  note.heard_s = take_number(text);
  note.grace_s = take_number(text);
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  note.machine = text;
  return note;
}

bool may_be_in_use(const ScratchNote& note, const std::string& id, std::string_view run_id, std::uint64_t now_s) {
  if (!note.machine.empty() && note.machine == FamilyLock::machine()) {
    const auto holder = FamilyLock::holder(id);
    if (holder != FamilyLock::Holder::kUnknown) return holder == FamilyLock::Holder::kSomebody;
  }
  // After a restart of the server its programs come back when they need it. Its seconds are whole ones.
  const std::uint64_t silent_s = now_s - std::min(now_s, note.heard_s);
  return silent_s <= (note.run_id == run_id ? note.grace_s : std::max(note.grace_s, kDay));
}

}  // namespace farheap::store::redis
