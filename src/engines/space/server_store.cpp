// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engines/space/server_store.hpp"

#include <algorithm>

namespace farheap::engines {
namespace {

template <class... Each>
constexpr Capabilities all_of(Each... each) {
  return (static_cast<Capabilities>(each) | ...);
}

Capabilities capabilities_of(ServerSpace& space, const ServerBlocks& blocks) {
  auto all = all_of(Capability::kVersions, Capability::kCounters, Capability::kLinearisable, Capability::kSparse) |
             blocks.more_capabilities();
  if (!space.is_kept()) return all;
  all |= all_of(Capability::kManyProcesses, Capability::kManyMachines);
  if (!space.server().is_emulator()) all |= all_of(Capability::kDurable);
  return all;
}

template <class Entry>
void set_all(std::span<Entry> batch, Outcome outcome) {
  for (auto& entry : batch) entry.outcome = outcome;
}

}  // namespace

ServerStore::ServerStore(std::unique_ptr<ServerSpace> space, std::unique_ptr<ServerBlocks> blocks)
    : space_(std::move(space)),
      blocks_(std::move(blocks)),
      limits_(blocks_->limits()),
      capabilities_(capabilities_of(*space_, *blocks_)) {}

Status ServerStore::get(std::span<Get> batch) {
  if (auto ok = store::check(batch, limits_, capabilities_, *this); !ok) return ok;
  if (batch.empty()) return {};
  auto* watch = space_->server().watch();
  if (watch != nullptr) watch->look();
  const auto status = blocks_->get(batch);
  // Seldom asked for, and the first that a server would say that lost everything.
  const bool any_absent = std::ranges::any_of(batch, [](auto& entry) { return entry.outcome == Outcome::kAbsent; });
  if (any_absent && watch != nullptr) watch->doubt();
  return settle(batch, status, done(status, "cannot read blocks"));
}

Status ServerStore::put(std::span<Put> batch) {
  if (auto ok = store::check(batch, limits_, capabilities_, *this); !ok) return ok;
  if (batch.empty()) return {};
  if (auto ok = space_->still_there(); !ok) {
    set_all(batch, Outcome::kFailed);
    return ok;
  }
  const auto status = blocks_->put(batch);
  return settle(batch, status, done(status, "cannot write blocks", Changes::kSomething));
}

Status ServerStore::erase(std::uint64_t first, std::uint64_t count) {
  if (auto ok = space_->still_there(); !ok || count == 0) return ok;
  const std::uint64_t last = count - 1 > ~std::uint64_t{0} - first ? ~std::uint64_t{0} : first + count - 1;
  return done(blocks_->erase(first, last), "cannot erase blocks", Changes::kSomething);
}

Result<std::int64_t> ServerStore::add(std::string_view counter, std::int64_t delta) {
  if (auto ok = space_->still_there(); !ok) return fail(std::move(ok.error()));
  const auto value = blocks_->add(counter, delta);
  auto ok = done(value ? grpc::Status() : value.error(), "cannot count",
                 delta != 0 ? Changes::kSomething : Changes::kNothing);
  if (!ok) return fail(std::move(ok.error()));
  return *value;
}

template <class T>
Result<T> ServerStore::looked(Answer<T> answer) {
  if (auto ok = done(answer ? grpc::Status() : answer.error(), "cannot look at the store"); !ok) {
    return fail(std::move(ok.error()));
  }
  return std::move(*answer);
}

Result<std::vector<BlockRun>> ServerStore::runs_from(std::uint64_t first) { return looked(blocks_->runs_from(first)); }
Result<std::vector<NamedCounter>> ServerStore::counters() { return looked(blocks_->counters()); }

Result<StoreUsage> ServerStore::usage() {
  const auto count = looked(blocks_->count());
  if (!count) return fail(count.error());
  return StoreUsage{.blocks = *count, .space_bytes = *count * (limits_.block_bytes + blocks_->overhead_bytes())};
}

Status ServerStore::done(const grpc::Status& status, const char* what, Changes changes) {
  if (space_->says_all_is_lost(status)) return space_->lost("the server lost all that was in it");
  if (status.ok()) return space_->still_there();
  if (space_->is_lost()) return space_->lost({});
  if (changes == Changes::kSomething && status.error_code() == grpc::StatusCode::UNKNOWN) {
    return fail(ErrorCode::kUnknown, what, describe(), "no answer came: it may or may not have happened",
                "read it back to know");
  }
  return fail(space_->server().error(status, what));
}

template <class Entry>
Status ServerStore::settle(std::span<Entry> batch, const grpc::Status& status, Status ok) {
  if (ok) return store::summary(std::span<const Entry>(batch), *this);
  if (ok.error().code == ErrorCode::kCorrupt) {
    set_all(batch, Outcome::kCorrupt);
  } else if (status.ok()) {  // done, but nobody knows where
    set_all(batch, Outcome::kUnknown);
  }
  return ok;
}

}  // namespace farheap::engines
