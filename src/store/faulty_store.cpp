// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "store/faulty_store.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/mutex.hpp"
#include "store/batch.hpp"
#include "store/kinds.hpp"

namespace farheap::store {
namespace {

std::uint64_t mix(std::uint64_t value) {  // splitmix64
  value += 0x9E3779B97F4A7C15u;
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9u;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBu;
  return value ^ (value >> 31);
}

}  // namespace

// The chances of one entry: each question draws one.
class FaultyStore::Dice {
 public:
  Dice(std::uint64_t seed, std::uint64_t entry, std::atomic<std::uint64_t>& faults)
      : state_(mix(seed) ^ mix(entry)), faults_(faults) {}
  bool hits(double rate) {
    const bool hit = static_cast<double>(next() >> 11) * 0x1p-53 < rate;
    if (hit) faults_.fetch_add(1, std::memory_order_relaxed);
    return hit;
  }
  std::uint64_t next() { return state_ = mix(state_); }

 private:
  std::uint64_t state_;
  std::atomic<std::uint64_t>& faults_;
};

FaultyStore::FaultyStore(std::unique_ptr<Store> inner, const FaultPlan& plan)
    : Decorator("faulty", std::move(inner)), plan_(plan) {}

void FaultyStore::set_plan(const FaultPlan& plan) {
  base::LockGuard lock(plan_lock_);
  plan_ = plan;
}

FaultPlan FaultyStore::plan() {
  base::LockGuard lock(plan_lock_);
  return plan_;
}

FaultyStore::Dice FaultyStore::throw_dice() { return {plan().seed, entries_.fetch_add(1), faults_}; }

Status FaultyStore::get(std::span<Get> batch) {
  if (auto ok = check(batch, limits(), capabilities(), *this); !ok) return ok;
  const auto now = plan();
  for (auto& entry : batch) get_one(entry, now);
  return summary(batch, *this, "a fault of faulty+, or of the store below it");
}

void FaultyStore::get_one(Get& entry, const FaultPlan& now) {
  auto dice = throw_dice();
  if (dice.hits(now.error)) {
    entry.outcome = Outcome::kFailed;
    return;
  }
  const auto block_bytes = limits().block_bytes;
  if (entry.into.size() > block_bytes && dice.hits(now.short_)) {
    Get part = entry;
    part.into = entry.into.first(block_bytes);
    (void)inner_->get({&part, 1}).has_value();
    entry.outcome = Outcome::kFailed;
    return;
  }
  (void)inner_->get({&entry, 1}).has_value();
  if (entry.outcome != Outcome::kOk || !dice.hits(now.flip)) return;
  const auto bit = dice.next() % (entry.into.size() * 8);
  entry.into[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
}

Status FaultyStore::put(std::span<Put> batch) {
  if (auto ok = check(batch, limits(), capabilities(), *this); !ok) return ok;
  const auto now = plan();
  for (auto& entry : batch) {
    for (std::size_t i = 0; now.sync_lost != 0 && i < entry.from.size() / limits().block_bytes; ++i) {
      remember(entry.block + i);
    }
    put_one(entry, now);
  }
  return summary(batch, *this, "a fault of faulty+, or of the store below it");
}

void FaultyStore::put_one(Put& entry, const FaultPlan& now) {
  auto dice = throw_dice();
  const auto block_bytes = limits().block_bytes;
  if (is_full(entry, now)) {
    entry.outcome = Outcome::kNoSpace;
  } else if (dice.hits(now.error)) {
    entry.outcome = Outcome::kFailed;
  } else if (dice.hits(now.unknown)) {
    if (dice.next() % 2 == 0) (void)inner_->put({&entry, 1}).has_value();
    entry.outcome = Outcome::kUnknown;
    entry.version = 0;
  } else if (entry.from.size() > block_bytes && dice.hits(now.short_)) {
    Put part = entry;
    part.from = entry.from.first(block_bytes);
    (void)inner_->put({&part, 1}).has_value();
    entry.outcome = Outcome::kFailed;
  } else if (!entry.expected && dice.hits(now.lost)) {
    entry.outcome = Outcome::kOk;
    entry.version = has(capabilities(), Capability::kVersions) ? dice.next() | 1 : 1;
  } else if (!entry.expected && dice.hits(now.torn)) {
    put_torn(entry, dice.next());
  } else {
    (void)inner_->put({&entry, 1}).has_value();
  }
}

// The first part new, the rest as it was (zeros where nothing was).
void FaultyStore::put_torn(Put& entry, std::uint64_t chance) {
  const auto block_bytes = limits().block_bytes;
  std::vector<std::byte> mixed(entry.from.size());
  for (std::size_t at = 0; at < mixed.size(); at += block_bytes) {
    Get old{.block = entry.block + at / block_bytes, .into = std::span(mixed).subspan(at, block_bytes)};
    (void)inner_->get({&old, 1}).has_value();
  }
  std::memcpy(mixed.data(), entry.from.data(), 1 + chance % (mixed.size() - 1));
  Put torn{.block = entry.block, .from = mixed};
  (void)inner_->put({&torn, 1}).has_value();
  entry.outcome = torn.outcome;
  entry.version = torn.version;
}

bool FaultyStore::is_full(const Put& entry, const FaultPlan& now) {
  if (now.full_after == 0) return false;
  auto usage = inner_->usage();
  return usage && usage->blocks * limits().block_bytes + entry.from.size() > now.full_after;
}

Status FaultyStore::erase(std::uint64_t first, std::uint64_t count) {
  if (throw_dice().hits(plan().error)) return fail(ErrorCode::kIo, "cannot erase", describe(), "a fault of faulty+");
  return inner_->erase(first, count);
}

Result<std::int64_t> FaultyStore::add(std::string_view counter, std::int64_t delta) {
  const auto now = plan();
  auto dice = throw_dice();
  if (dice.hits(now.error)) return fail(ErrorCode::kIo, "cannot count", describe(), "a fault of faulty+");
  if (dice.hits(now.unknown)) {
    if (dice.next() % 2 == 0) (void)inner_->add(counter, delta).has_value();
    return fail(ErrorCode::kUnknown, "cannot count", describe(), "faulty+ lost the answer", "read it back");
  }
  return inner_->add(counter, delta);
}

void FaultyStore::remember(std::uint64_t block) {
  base::LockGuard lock(before_lock_);
  const auto [at, is_first] = before_.try_emplace(block);
  if (!is_first) return;
  std::vector<std::byte> bytes(limits().block_bytes);
  Get get{.block = block, .into = bytes};
  if (inner_->get({&get, 1}) && get.outcome == Outcome::kOk) at->second = std::move(bytes);
}

void FaultyStore::forget_some(Dice& dice) {
  base::LockGuard lock(before_lock_);
  std::erase_if(before_, [&](const auto& one) {
    if (dice.next() % 2 == 0) return false;  // it waits for the next sync
    if (one.second) {
      Put put{.block = one.first, .from = *one.second};
      (void)inner_->put({&put, 1}).has_value();
    } else {
      (void)inner_->erase(one.first, 1).has_value();
    }
    return true;
  });
}

Status FaultyStore::sync() {
  const auto now = plan();
  auto dice = throw_dice();
  if (dice.hits(now.error)) return fail(ErrorCode::kIo, "cannot sync", describe(), "a fault of faulty+");
  if (now.sync_lost != 0 && dice.hits(now.sync_lost)) {
    forget_some(dice);
    return fail(ErrorCode::kIo, "cannot sync", describe(), "a fault of faulty+, which has lost what was written");
  }
  Status done = inner_->sync();
  if (done) {
    base::LockGuard lock(before_lock_);
    before_.clear();
  }
  return done;
}

StoreResult open_faulty(const OpenInner& open_inner, const Parameters& parameters, const StoreOptions& options) {
  FaultPlan plan;
  auto seed = parameters.number("seed", plan.seed);
  if (!seed) return fail(std::move(seed.error()));
  plan.seed = *seed;
  auto full_after = parameters.size("full_after", 0);
  if (!full_after) return fail(std::move(full_after.error()));
  plan.full_after = *full_after;
  const std::pair<std::string_view, double*> rates[] = {
      {"error", &plan.error}, {"torn", &plan.torn},       {"lost", &plan.lost},          {"short", &plan.short_},
      {"flip", &plan.flip},   {"unknown", &plan.unknown}, {"sync_lost", &plan.sync_lost}};
  for (auto [name, rate] : rates) {
    auto value = parameters.rate(name, 0);
    if (!value) return fail(std::move(value.error()));
    *rate = *value;
  }
  auto inner = open_inner(options);
  if (!inner) return inner;
  return std::make_unique<FaultyStore>(std::move(*inner), plan);
}

}  // namespace farheap::store
