// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engines/spanner/space.hpp"

namespace farheap::engines::spanner {

Space::Space(std::unique_ptr<Client> client, std::unique_ptr<Stores> stores, const StoreOptions& options)
    : ServerSpace(*client, *stores, options),
      client_(std::move(client)),
      stores_(std::move(stores)),
      name_(row_name(key())) {}

Result<std::unique_ptr<Space>> Space::open(std::unique_ptr<Client> client, const StoreOptions& options) {
  auto stores = std::make_unique<Stores>(*client);
  std::unique_ptr<Space> space(new Space(std::move(client), std::move(stores), options));
  if (auto ok = space->enter(); !ok) return fail(std::move(ok.error()));
  return space;
}

Space::~Space() {
  if (leave() && !is_kept()) (void)remove_row(*client_, name_);
}

Status Space::prepare() {
  const auto found = find();
  if (found) return {};
  // "Database not found", "Table not found" and the like.
  if (found.error().error_code() == grpc::StatusCode::NOT_FOUND) return make_database(*client_);
  return fail(client_->error(found.error(), "cannot open the store"));
}

grpc::Status Space::make(const About& about) {
  return client_->transact([&](Transaction& transaction) {
    const auto found = read_store(transaction, name_);
    if (!found) return found.error();
    if (!*found) write_store(transaction, {.name = name_, .about = about, .beat = is_kept() ? 0 : now_us()});
    return grpc::Status();
  });
}

Answer<std::uint64_t> Space::begin() {
  std::uint64_t epoch = 0;
  const auto status = client_->transact([&](Transaction& transaction) {
    auto found = read_store(transaction, name_);
    if (!found) return found.error();
    if (!*found) return grpc::Status(grpc::StatusCode::NOT_FOUND, "somebody has removed it");
    epoch = ++(*found)->epoch;
    write_store(transaction, **found);
    return grpc::Status();
  });
  if (!status.ok()) return tl::unexpected(status);
  return epoch;
}

void Space::beat() {
  bool is_gone = false;
  const auto status = client_->transact([&](Transaction& transaction) {
    auto found = read_store(transaction, name_);
    if (!found) return found.error();
    is_gone = !*found || (*found)->about.identity != about().identity;
    if (is_gone) return grpc::Status();
    (*found)->beat = now_us();
    write_store(transaction, **found);
    return grpc::Status();
  });
  if (status.ok() && is_gone) (void)lost(no_sign_of_life());
}

}  // namespace farheap::engines::spanner
