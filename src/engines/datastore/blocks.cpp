// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engines/datastore/blocks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "engines/grpc/streams.hpp"
#include "store/contents.hpp"

namespace farheap::engines::datastore {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{512} << 10;  // an entity takes 1,048,572 bytes
constexpr std::size_t kRequestBytes = std::size_t{2} << 20;  // Datastore takes 10 MiB
constexpr std::size_t kRequestEntities = 400;                // Datastore takes 500 in a commit
constexpr std::size_t kInFlight = 4;
constexpr char kPage[] = "d";
constexpr char kCount[] = "n";

Outcome outcome_of(const grpc::Status& status, bool was_unclear) {
  if (was_unclear || status.error_code() == grpc::StatusCode::UNKNOWN) return Outcome::kUnknown;
  return status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED ? Outcome::kNoSpace : Outcome::kFailed;
}

}  // namespace

// One block of an entry.
struct Blocks::Wanted {
  Get* entry = nullptr;
  std::uint64_t block = 0;
  std::byte* to = nullptr;
  std::size_t found = 0;  // pieces
  Version version = 0;
  bool is_corrupt = false;
  bool is_mixed = false;
  bool is_answered = false;
};

Blocks::Blocks(Space& space)
    : space_(space),
      block_bytes_(space.block_bytes()),
      pieces_(std::max<std::size_t>(block_bytes_ / kPieceBytes, 1)),
      piece_bytes_(block_bytes_ / pieces_),
      blocks_a_request_(std::max<std::size_t>(std::min(kRequestEntities / pieces_, kRequestBytes / block_bytes_), 1)) {}

Limits Blocks::limits() const {
  return {.block_bytes = block_bytes_,
          .largest_value_bytes = std::size_t{4} << 20,
          .largest_batch_bytes = std::size_t{16} << 20,
          .largest_batch_operations = 4096,
          .best_run_bytes = std::size_t{1} << 20};
}

Capabilities Blocks::more_capabilities() const {
  return space_.client().is_emulator() ? 0 : static_cast<Capabilities>(Capability::kSurvivesFailover);
}

// In the order of numbers: "NAME/0000000000000005", or "NAME/0000000000000005.1".
std::string Blocks::name(std::uint64_t block, std::size_t piece) const {
  const auto whole = fmt::format("{}{:016x}", space_.prefix(), block);
  return pieces_ == 1 ? whole : fmt::format("{}.{}", whole, piece);
}

std::uint64_t Blocks::number_of(const api::Key& key) const {
  return std::strtoull(name_of(key).substr(space_.prefix().size(), 16).c_str(), nullptr, 16);
}

// ---- get

void Blocks::take(const api::Entity& entity, std::span<Wanted* const> wanted) const {
  const std::string_view text = std::string_view(name_of(entity.key())).substr(space_.prefix().size());
  const std::uint64_t block = number_of(entity.key());
  const std::size_t piece = text.size() > 17 ? static_cast<std::size_t>(text[17] - '0') : 0;
  const auto& bytes = blob_in(entity, kPage);
  const Version version = number_in(entity, kVersion);
  for (auto* one : wanted) {
    if (one->block != block) continue;
    one->is_corrupt = one->is_corrupt || bytes.size() != piece_bytes_ || piece >= pieces_ || version == 0;
    // Pieces are written together: two versions are two states, of which the answer has caught both.
    one->is_mixed = one->is_mixed || (one->found > 0 && one->version != version);
    if (one->is_corrupt) continue;
    one->version = version;
    ++one->found;
    if (one->entry->known == version) continue;  // the caller has it
    std::memcpy(one->to + piece * piece_bytes_, bytes.data(), piece_bytes_);
  }
}

grpc::Status Blocks::get_round(std::vector<Wanted*> wanted, Attempts& attempts) {
  const std::size_t count = (wanted.size() + blocks_a_request_ - 1) / blocks_a_request_;
  const auto part = [&](std::size_t i) {
    return std::span(wanted).subspan(i * blocks_a_request_,
                                     std::min(blocks_a_request_, wanted.size() - i * blocks_a_request_));
  };
  std::vector<api::LookupResponse> responses(count);
  api::LookupRequest request;
  const auto statuses = run_calls(responses, kInFlight, attempts.deadline(),
                                  [&](std::size_t i, grpc::ClientContext& context, grpc::CompletionQueue* queue) {
                                    request = space_.look();
                                    std::uint64_t last = 0;
                                    for (const auto* one : part(i)) {
                                      if (one != part(i).front() && one->block == last) continue;  // asked for already
                                      last = one->block;
                                      for (std::size_t p = 0; p < pieces_; ++p) {
                                        space_.client().set_key(*request.add_keys(), kBlockKind, name(one->block, p));
                                      }
                                    }
                                    return space_.client().stub().AsyncLookup(&context, request, queue);
                                  });
  grpc::Status worst;
  for (std::size_t i = 0; i < count; ++i) {
    if (!statuses[i].ok()) {
      worst = statuses[i];
      continue;
    }
    if (!space_.believe_answer(responses[i])) return {};
    for (auto* one : part(i)) one->found = 0, one->is_corrupt = one->is_mixed = false, one->is_answered = true;
    for (const auto& result : responses[i].found()) take(result.entity(), part(i));
    for (auto* one : part(i)) {  // next time
      for (const auto& key : responses[i].deferred()) {
        for (std::size_t p = 0; p < pieces_; ++p) one->is_answered &= name_of(key) != name(one->block, p);
      }
      one->is_answered &= !one->is_mixed && (one->found == 0 || one->found == pieces_ || one->is_corrupt);
    }
  }
  return worst;
}

grpc::Status Blocks::get(std::span<Get> batch) {
  std::vector<Wanted> all;
  for (auto& entry : batch) {
    entry.version = 0;
    for (std::size_t at = 0; at < entry.into.size(); at += block_bytes_) {
      all.push_back({.entry = &entry, .block = entry.block + at / block_bytes_, .to = entry.into.data() + at});
    }
  }
  std::ranges::sort(all, {}, &Wanted::block);
  auto attempts = space_.client().attempts();
  grpc::Status status;
  // Whoever writes a block's pieces again and again can be in between; pieces that are missing are so every time.
  constexpr int kMostRounds = 50;
  for (int round = 0; round < kMostRounds; ++round) {
    std::vector<Wanted*> pending;
    for (auto& one : all) {
      if (!one.is_answered) pending.push_back(&one);
    }
    if (pending.empty() || space_.is_lost()) break;
    status = get_round(pending, attempts);
    if (!status.ok() && !attempts.again(status)) break;
  }
  for (const auto& one : all) {
    auto& entry = *one.entry;
    auto outcome = one.is_corrupt               ? Outcome::kCorrupt
                   : !one.is_answered           ? (status.ok() ? Outcome::kCorrupt : Outcome::kFailed)
                   : one.found == 0             ? Outcome::kAbsent
                   : one.found < pieces_        ? Outcome::kCorrupt
                   : entry.known == one.version ? Outcome::kSame
                                                : Outcome::kOk;
    if (entry.known == 0 && outcome == Outcome::kSame) outcome = Outcome::kOk;
    if (entry.into.size() == block_bytes_ && one.found > 0) entry.version = one.version;
    entry.outcome = std::max(entry.outcome, outcome);
  }
  return status;
}

// ---- put

void Blocks::add_mutations(std::vector<api::Mutation>& mutations, std::uint64_t block, std::span<const std::byte> page,
                           Version version, std::optional<const api::EntityResult*> over_found) const {
  for (std::size_t p = 0; p < pieces_; ++p) {
    auto& mutation = mutations.emplace_back();
    auto& entity = p == 0 && over_found ? over(*over_found, mutation) : *mutation.mutable_upsert();
    space_.client().set_key(*entity.mutable_key(), kBlockKind, name(block, p));
    const auto part = page.subspan(p * piece_bytes_, piece_bytes_);
    set_blob(entity, kPage, std::string(reinterpret_cast<const char*>(part.data()), part.size()));
    set_number(entity, kVersion, version);
  }
}

grpc::Status Blocks::put_plainly(std::span<Put*> entries) {
  std::vector<std::vector<api::Mutation>> commits;
  std::vector<std::vector<Put*>> owners;
  for (auto* entry : entries) {
    for (std::size_t at = 0; at < entry->from.size(); at += block_bytes_) {
      if (commits.empty() || commits.back().size() >= blocks_a_request_ * pieces_) {
        commits.emplace_back();
        owners.emplace_back();
      }
      const auto version = space_.next_version();
      if (entry->from.size() == block_bytes_) entry->version = version;
      add_mutations(commits.back(), entry->block + at / block_bytes_, entry->from.subspan(at, block_bytes_), version);
      if (owners.back().empty() || owners.back().back() != entry) owners.back().push_back(entry);
    }
  }
  const auto end = space_.write(std::move(commits));
  for (std::size_t i = 0; i < owners.size(); ++i) {
    for (auto* entry : owners[i]) {
      const auto outcome = end.done[i] ? Outcome::kOk : outcome_of(end.status, end.was_unclear);
      entry->outcome = std::max(entry->outcome, outcome);
      if (!end.done[i]) entry->version = 0;
    }
  }
  return end.status;
}

grpc::Status Blocks::swap(Put& entry) {
  std::vector<api::Key> keys(1);
  space_.client().set_key(keys[0], kBlockKind, name(entry.block, 0));
  const auto version = space_.next_version();
  Version present = 0;
  const auto done = space_.once(keys, [&](const api::LookupResponse& found) {
    const api::EntityResult* block = nullptr;
    for (const auto& result : found.found()) {
      if (result.entity().key().path(0).kind() == kBlockKind) block = &result;
    }
    present = block != nullptr ? number_in(block->entity(), kVersion) : 0;
    std::vector<api::Mutation> mutations;
    if (present == *entry.expected) add_mutations(mutations, entry.block, entry.from, version, block);
    return mutations;
  });
  if (!done) {
    entry.outcome = outcome_of(done.error(), false);
    return done.error();
  }
  entry.outcome = *done ? Outcome::kOk : Outcome::kConflict;
  entry.version = *done ? version : present;
  return {};
}

grpc::Status Blocks::put(std::span<Put> batch) {
  std::vector<Put*> plain;
  for (auto& entry : batch) {
    entry.version = 0;
    if (!entry.expected) plain.push_back(&entry);
  }
  grpc::Status worst;
  if (!plain.empty()) worst = put_plainly(plain);
  for (auto& entry : batch) {
    if (!entry.expected || space_.is_lost()) continue;
    if (const auto status = swap(entry); !status.ok()) worst = status;
  }
  return worst;
}

// ---- counters

Answer<std::int64_t> Blocks::add(std::string_view counter, std::int64_t delta) {
  std::vector<api::Key> keys(1);
  space_.client().set_key(keys[0], kCounterKind, space_.prefix() + escaped(counter));
  std::uint64_t sum = 0;
  const auto added = space_.once(keys, [&](const api::LookupResponse& found) {
    const api::EntityResult* counter_found = nullptr;
    for (const auto& result : found.found()) {
      if (result.entity().key().path(0).kind() == kCounterKind) counter_found = &result;
    }
    sum = static_cast<std::uint64_t>(delta);
    if (counter_found != nullptr) sum += number_in(counter_found->entity(), kCount);
    std::vector<api::Mutation> mutations;
    if (delta == 0) return mutations;
    auto& entity = over(counter_found, mutations.emplace_back());
    *entity.mutable_key() = keys[0];
    set_number(entity, kCount, sum);
    return mutations;
  });
  if (!added) return tl::unexpected(added.error());
  return static_cast<std::int64_t>(sum);
}

// ---- erasing, counting

grpc::Status Blocks::erase_keys(std::vector<api::Key> keys) {
  std::vector<std::vector<api::Mutation>> commits;
  for (auto& key : keys) {
    if (commits.empty() || commits.back().size() >= kRequestEntities) commits.emplace_back();
    commits.back().emplace_back().mutable_delete_()->Swap(&key);
  }
  return space_.write(std::move(commits)).status;
}

grpc::Status Blocks::erase(std::uint64_t first, std::uint64_t last) {
  // So few are erased unseen; of a wide range, only what is there is touched.
  constexpr std::uint64_t kFew = 256;
  std::vector<api::Key> keys;
  if (last - first < kFew) {
    for (std::uint64_t i = 0; i <= last - first; ++i) {
      for (std::size_t p = 0; p < pieces_; ++p) {
        space_.client().set_key(keys.emplace_back(), kBlockKind, name(first + i, p));
      }
    }
    return erase_keys(std::move(keys));
  }
  constexpr int kAtOnce = 2000;
  std::string from = name(first, 0);
  const std::string to = name(last, pieces_ - 1) + "~";
  for (;;) {
    const auto found = space_.client().query(space_.client().names_between(kBlockKind, from, to), true, kAtOnce);
    if (!found) return found.error();
    if (found->empty() || space_.is_lost()) return {};
    from = name_of(found->back().key()) + "!";
    keys.clear();
    for (const auto& entity : *found) keys.push_back(entity.key());
    if (const auto status = erase_keys(std::move(keys)); !status.ok()) return status;
  }
}

// Whether it is still the store that was opened, for what is asked by queries.
grpc::Status Blocks::look() {
  auto found = space_.client().lookup(space_.look());
  if (!found) return found.error();
  (void)space_.believe_answer(*found);
  return {};
}

Answer<std::uint64_t> Blocks::count() {
  if (const auto status = look(); !status.ok()) return tl::unexpected(status);
  if (space_.is_lost()) return 0;
  // Keys one by one: not every emulator can count.
  constexpr int kAtOnce = 10000;
  std::uint64_t entities = 0;
  std::string from = name(0, 0);
  const std::string to = name(~std::uint64_t{0}, pieces_ - 1) + "~";
  for (;;) {
    const auto keys = space_.client().query(space_.client().names_between(kBlockKind, from, to), true, kAtOnce);
    if (!keys) return tl::unexpected(keys.error());
    if (keys->empty()) return entities / pieces_;
    entities += keys->size();
    from = name_of(keys->back().key()) + "!";
  }
}

Answer<std::vector<BlockRun>> Blocks::runs_from(std::uint64_t first) {
  if (const auto status = look(); !status.ok()) return tl::unexpected(status);
  std::vector<BlockRun> runs;
  if (space_.is_lost()) return runs;
  constexpr int kAtOnce = 10000;
  const auto query =
      space_.client().names_between(kBlockKind, name(first, 0), name(~std::uint64_t{0}, pieces_ - 1) + "~");
  const auto found = space_.client().query(query, true, kAtOnce);
  if (!found) return tl::unexpected(found.error());
  for (const auto& entity : *found) {  // the pieces of a block follow each other
    const auto block = number_of(entity.key());
    if (runs.empty() || block >= runs.back().first + runs.back().count) store::add_block(runs, block);
  }
  return runs;
}

Answer<std::vector<NamedCounter>> Blocks::counters() {
  if (const auto status = look(); !status.ok()) return tl::unexpected(status);
  std::vector<NamedCounter> all;
  if (space_.is_lost()) return all;
  constexpr int kMost = 100000;
  const auto prefix = space_.prefix();
  // "NAME/s/" is for scratch stores.
  for (const auto& [from, to] : {std::pair(prefix, prefix + "s/"), std::pair(prefix + "s0", prefix + "~~")}) {
    const auto found = space_.client().query(space_.client().names_between(kCounterKind, from, to), false, kMost);
    if (!found) return tl::unexpected(found.error());
    for (const auto& entity : *found) {
      const auto value = static_cast<std::int64_t>(number_in(entity, kCount));
      all.push_back({unescaped(std::string_view(name_of(entity.key())).substr(prefix.size())), value});
    }
  }
  return all;
}

}  // namespace farheap::engines::datastore
