// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engines/spanner/space.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/random_number.hpp"

namespace farheap::engines::spanner {
namespace {

constexpr char kWhat[] = "cannot open the store";
constexpr std::int64_t kFormat = 1;
constexpr std::chrono::seconds kBeatEvery{20};
constexpr std::chrono::minutes kStaleAfter{10};
constexpr const char* kColumns[] = {"Name", "Format", "BlockBytes", "Identity", "Epoch", "Beat"};

std::int64_t now_us() { return static_cast<std::int64_t>(VersionClock().now()); }

api::ReadRequest read_stores() {
  api::ReadRequest request;
  request.set_table(kStores);
  for (const auto* column : kColumns) request.add_columns(column);
  return request;
}

std::optional<About> about_in(const Row& row) {
  About about{.name = row[0], .identity = row[3]};
  std::int64_t* const numbers[] = {nullptr, &about.format, &about.block_bytes, nullptr, &about.epoch, &about.beat};
  for (std::size_t i = 0; i < std::size(kColumns); ++i) {
    if (numbers[i] == nullptr) continue;
    const auto number = number_in(row[i]);
    if (!number) return std::nullopt;
    *numbers[i] = *number;
  }
  return about;
}

// The row as this transaction sees it.
Answer<std::optional<About>> read_about(Transaction& transaction, const std::string& name) {
  auto request = read_stores();
  add(*request.mutable_key_set()->add_keys(), name);
  const auto rows = transaction.read(std::move(request));
  if (!rows) return tl::unexpected(rows.error());
  return rows->empty() ? std::nullopt : about_in(rows->front());
}

// "Database not found", "Table not found" and the like.
bool is_missing(const grpc::Status& status) { return status.error_code() == grpc::StatusCode::NOT_FOUND; }

}  // namespace

void write_about(Transaction& transaction, const About& about) {
  auto& write = *transaction.mutations.Add()->mutable_insert_or_update();
  write.set_table(kStores);
  for (const auto* column : kColumns) write.add_columns(column);
  auto& row = *write.add_values();
  add(row, about.name), add(row, about.format), add(row, about.block_bytes);
  add(row, about.identity), add(row, about.epoch), add(row, about.beat);
}

bool is_stale(const About& about) { return about.beat + std::chrono::microseconds(kStaleAfter).count() < now_us(); }

Answer<std::vector<About>> stores_of(Client& client, std::string_view name, bool and_below) {
  auto request = read_stores();
  auto& keys = *request.mutable_key_set();
  if (name.empty()) {
    keys.set_all(true);
  } else {
    add(*keys.add_keys(), name);
    if (and_below) {
      auto& range = *keys.add_ranges();
      add(*range.mutable_start_closed(), std::string(name) + "/");
      add(*range.mutable_end_open(), std::string(name) + "0");
    }
  }
  const auto rows = client.read(std::move(request));
  std::vector<About> found;
  if (!rows && is_missing(rows.error())) return found;
  if (!rows) return tl::unexpected(rows.error());
  for (const auto& row : *rows) {
    if (auto about = about_in(row)) found.push_back(std::move(*about));
  }
  return found;
}

grpc::Status remove_store(Client& client, const About& about) {
  return client.transact([&](Transaction& transaction) {
    const auto now = read_about(transaction, about.name);
    if (!now) return now.error();
    if (!*now || (*now)->beat != about.beat || (*now)->identity != about.identity) return grpc::Status();
    for (const auto* table : {kBlocks, kCounters}) {
      auto& erase = *transaction.mutations.Add()->mutable_delete_();
      erase.set_table(table);
      add_name(*erase.mutable_key_set(), about.name);
    }
    auto& erase = *transaction.mutations.Add()->mutable_delete_();
    erase.set_table(kStores);
    add(*erase.mutable_key_set()->add_keys(), about.name);
    return grpc::Status();
  });
}

Space::Space(std::unique_ptr<Client> client, const StoreOptions& options)
    : client_(std::move(client)),
      kept_(options.lifetime == Lifetime::kKeep),
      health_(client_->place().describe(), client_->watch()) {
  about_.name = client_->place().store_name();
  if (!kept_) about_.name += fmt::format("/{:016x}", base::random_number());
  about_.format = kFormat;
  about_.block_bytes = static_cast<std::int64_t>(options.block_bytes);
  about_.identity = fmt::format("{:016x}", base::random_number());
}

Result<std::unique_ptr<Space>> Space::open(std::unique_ptr<Client> client, const StoreOptions& options) {
  std::unique_ptr<Space> space(new Space(std::move(client), options));
  if (auto ok = space->set_up(); !ok) return fail(std::move(ok.error()));
  return space;
}

Status Space::set_up() {
  auto looked = client_->read([this] {
    auto request = read_stores();
    add(*request.mutable_key_set()->add_keys(), about_.name);
    return request;
  }());
  if (!looked && is_missing(looked.error())) {
    if (auto ok = make_database(*client_); !ok) return ok;
  } else if (!looked) {
    return fail(client_->error(looked.error(), kWhat));
  }
  if (auto ok = make_or_find(); !ok) return ok;
  is_set_up_ = true;
  client_->ask_before_writing_again([this] { return still_there().has_value(); });
  collect();
  // A server that cannot be reached is for the calls to tell.
  if (!kept_) heartbeat_.start(kBeatEvery, [this] { beat(); });
  return {};
}

Status Space::make_or_find() {
  Status wrong;
  const auto wanted = about_;
  const auto status = client_->transact([&](Transaction& transaction) {
    wrong = {};
    auto found = read_about(transaction, wanted.name);
    if (!found) return found.error();
    about_ = wanted;
    if (*found) {
      about_ = **found;
      if (about_.format > kFormat) {
        wrong = fail(ErrorCode::kCorrupt, kWhat, client_->place().describe(),
                     fmt::format("it has format {}", about_.format), "open it with the newer Farheap that made it");
      } else if (about_.block_bytes != wanted.block_bytes) {
        wrong = fail(ErrorCode::kInvalidArgument, kWhat, client_->place().describe(),
                     fmt::format("it holds blocks of {} bytes, not of {}", about_.block_bytes, wanted.block_bytes),
                     "open it with the block size it was made with");
      }
    } else {
      api::ReadRequest any;
      any.set_table(kBlocks);
      any.add_columns("Block");
      add_name(*any.mutable_key_set(), wanted.name);
      any.set_limit(1);
      const auto rows = transaction.read(std::move(any));
      if (!rows) return rows.error();
      if (!rows->empty()) {
        wrong = fail(ErrorCode::kInvalidArgument, kWhat, client_->place().describe(),
                     "there are blocks of this name that belong to no store", "name another NAME behind the database");
      }
    }
    if (!wrong) return grpc::Status();
    ++about_.epoch;
    about_.beat = kept_ ? 0 : now_us();
    write_about(transaction, about_);
    return grpc::Status();
  });
  if (!status.ok()) return fail(client_->error(status, kWhat));
  epoch_ = about_.epoch;
  return wrong;
}

Status Space::still_there() {
  return health_.check([this] { return verify(); });
}

Status Space::verify() {
  const auto found = stores_of(*client_, about_.name, false);
  if (!found) return fail(client_->error(found.error(), "cannot reach the store"));
  if (found->empty()) return lost("the server lost all that was in it");
  const auto& now = found->front();
  if (now.identity != about_.identity) return lost("the server lost it, and somebody has made a new one since");
  if (now.epoch < epoch_) {
    return lost(fmt::format("the server went back to an older state (epoch {}, was {})", now.epoch, epoch_.load()));
  }
  epoch_ = now.epoch;
  return {};
}

// ---- scratch stores

void Space::beat() {
  bool is_gone = false;
  const auto status = client_->transact([&](Transaction& transaction) {
    const auto found = read_about(transaction, about_.name);
    if (!found) return found.error();
    is_gone = !*found || (*found)->identity != about_.identity;
    if (is_gone) return grpc::Status();
    auto now = **found;
    now.beat = now_us();
    write_about(transaction, now);
    return grpc::Status();
  });
  if (status.ok() && is_gone) {
    (void)lost(fmt::format("it gave no sign of life for {} minutes, and was taken for one of a killed program",
                           kStaleAfter.count()));
  }
}

// What cannot be collected now is collected by the next.
void Space::collect() {
  const auto name = client_->place().store_name();
  const auto found = stores_of(*client_, name, true);
  if (!found) return;
  for (const auto& one : *found) {
    if (one.name != name && is_stale(one)) (void)remove_store(*client_, one);
  }
}

Space::~Space() {
  heartbeat_.stop();
  if (kept_ || !is_set_up_) return;
  client_->hurry();
  const auto found = stores_of(*client_, about_.name, false);
  if (found && !found->empty()) (void)remove_store(*client_, found->front());
}

}  // namespace farheap::engines::spanner
