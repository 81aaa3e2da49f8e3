// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engines/space/space.hpp"

#include <fmt/format.h>

#include "base/random_number.hpp"

namespace farheap::engines {
namespace {

constexpr char kWhat[] = "cannot open the store";

}  // namespace

std::string no_sign_of_life() {
  return fmt::format("it gave no sign of life for {} minutes, and was taken for one of a killed program",
                     kStaleAfter.count());
}

ServerSpace::ServerSpace(ServerClient& server, Registry& registry, const StoreOptions& options)
    : server_(server),
      registry_(registry),
      kept_(options.lifetime == Lifetime::kKeep),
      block_bytes_(options.block_bytes),
      key_{registry.store_name(), kept_ ? "" : fmt::format("{:016x}", base::random_number())},
      about_(new_about(options.block_bytes)),
      health_(server.shown(), server.watch()) {}

Status ServerSpace::enter() {
  if (auto ok = prepare(); !ok) return ok;
  auto found = find();
  if (found && !*found) {
    if (auto ok = refuse_foreign(); !ok) return ok;
    if (const auto made = make(about_); !made.ok()) return fail(server_.error(made, kWhat));
    found = find();  // another one may have been quicker
  }
  if (!found) return fail(server_.error(found.error(), kWhat));
  auto about = checked_about(about_in(*found), block_bytes_, server_.shown(), registry_.form());
  if (!about) return fail(std::move(about.error()));
  about_ = std::move(*about);
  const auto epoch = begin();
  if (!epoch) return fail(server_.error(epoch.error(), kWhat));
  if (is_lost()) return lost({});
  epoch_ = *epoch;
  has_entered_ = true;
  server_.ask_before_writing_again([this] { return still_there().has_value(); });
  if (!has_beats()) return {};
  collect();
  // A server that cannot be reached is for the calls to tell.
  if (!kept_) heartbeat_.start(kBeatEvery, [this] { beat(); });
  return {};
}

bool ServerSpace::leave() {
  heartbeat_.stop();
  if (has_entered_) server_.hurry();
  return has_entered_;
}

Status ServerSpace::refuse_foreign() {
  if (!kept_) return {};  // its place was drawn by chance
  const auto foreign = registry_.foreign(key_.name);
  if (!foreign) return fail(server_.error(foreign.error(), kWhat));
  const auto& thing = *foreign;
  if (!thing) return {};
  // Another opener may have made it in between.
  if (const auto found = find(); found && *found) return {};
  return fail(ErrorCode::kConflict, kWhat, server_.shown(),
              fmt::format("below its name there is {}, which is not Farheap's", *thing),
              fmt::format("name another one: {}", registry_.form()));
}

// What cannot be collected now is collected by the next.
void ServerSpace::collect() {
  const auto found = registry_.scratch_below(key_.name);
  if (!found) return;
  for (const auto& scratch : *found) {
    if (scratch.is_stale) (void)registry_.collect(key_.name, scratch);
  }
}

Status ServerSpace::still_there() {
  return health_.check([this] { return verify(); });
}

Status ServerSpace::verify() {
  const auto found = find();
  if (found) return believe(*found);
  if (says_all_is_lost(found.error())) return believe(std::nullopt);
  return fail(server_.error(found.error(), "cannot reach the store"));
}

Status ServerSpace::believe(const std::optional<Found>& found) {
  const auto about = about_in(found);
  if (!found || !about) return lost("the server lost all that was in it, or somebody has removed it");
  if (about->identity != about_.identity) return lost("the server lost it, and somebody has made a new one since");
  if (found->epoch < epoch_) {
    return lost(fmt::format("the server went back to an older state (epoch {}, was {})", found->epoch, epoch_.load()));
  }
  epoch_ = found->epoch;
  return {};
}

}  // namespace farheap::engines
