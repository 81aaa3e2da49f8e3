// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// open_beside() and kBesideKeeper: every call starts a process; an open store keeps it.
#include <filesystem>

#include "store/batch.hpp"
#include "store/beside/beside_store.hpp"
#include "store/beside/process.hpp"
#include "store/kinds.hpp"

namespace farheap::store {
namespace {

// A place that is no server's is a path; the process is in another folder.
beside::Opening opening_of(const std::string& place, const Parameters& parameters, const StoreOptions& options) {
  std::error_code ignored;
  const bool is_relative = !place.empty() && place[0] != '/';
  const std::string whole = is_relative ? (std::filesystem::current_path(ignored) / place).string() : place;
  beside::Opening opening{std::string(parameters.kind()), whole, parameters.text(), options};
  if (!options.password_file.empty()) {
    opening.options.password_file = std::filesystem::absolute(options.password_file, ignored).string();
  }
  return opening;
}

Result<std::unique_ptr<beside::Connection>> start() {
  auto program = beside::find_engines();
  if (!program) return fail(std::move(program.error()));
  auto socket = beside::start_engines(*program);
  if (!socket) return fail(std::move(socket.error()));
  return std::make_unique<beside::Connection>(*socket);
}

Result<bool> is_there(const std::string& place, const Parameters& parameters, const StoreOptions& options) {
  auto process = start();
  if (!process) return fail(std::move(process.error()));
  auto answer = (*process)->ask(encode(beside::Message::kIsThere, opening_of(place, parameters, options)));
  if (!answer) return fail(std::move(answer.error()));
  return beside::Reader(*answer).number() != 0;
}

Result<std::vector<StoreListing>> list(const std::string& place, const Parameters& parameters,
                                       const StoreOptions& options) {
  auto process = start();
  if (!process) return fail(std::move(process.error()));
  return (*process)->ask_for_listings(encode(beside::Message::kList, opening_of(place, parameters, options)));
}

Status remove(const std::string& place, const Parameters& parameters, const StoreOptions& options) {
  auto process = start();
  if (!process) return fail(std::move(process.error()));
  auto answer = (*process)->ask(encode(beside::Message::kRemove, opening_of(place, parameters, options)));
  if (!answer) return fail(std::move(answer.error()));
  return {};
}

}  // namespace

const Keeper kBesideKeeper{is_there, list, remove};

StoreResult open_beside(const std::string& place, const Parameters& parameters, const StoreOptions& options) {
  const std::string subject = std::string(parameters.kind()) + ":" + place;
  if (auto ok = check_block_bytes(options.block_bytes, subject); !ok) return fail(std::move(ok.error()));
  auto opening = opening_of(place, parameters, options);
  auto opened = beside::open_in_process(opening);
  if (!opened) return fail(std::move(opened.error()));
  return std::make_unique<beside::BesideStore>(std::move(opening), std::move(opened->first), std::move(opened->second));
}

}  // namespace farheap::store
