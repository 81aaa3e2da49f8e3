// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "store/redis/connection.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace farheap::store::redis {
namespace {

constexpr char kCannotConnect[] = "cannot connect";
// INFO: six thousand bytes, and a line for each database that is in use.
constexpr std::size_t kLongestInfo = std::size_t{64} * 1024;

std::string_view line_of(const std::string& info, std::string_view name) {
  const std::string start = fmt::format("\n{}:", name);
  const auto at = info.find(start);
  if (at == std::string::npos) return {};
  const auto from = at + start.size();
  return std::string_view(info).substr(from, info.find_first_of("\r\n", from) - from);
}

constexpr char kWrongLogin[] =
    "look at the user and the password that the store's URI has or names (docs/stores.md, \"Passwords\")";

struct Known {
  std::string_view start;
  ErrorCode code;
  bool passes;
  std::string_view remedy;
};
// https://redis.io/docs: the first word of each error.
constexpr Known kKnown[] = {
    {"LOADING", ErrorCode::kUnavailable, true, "wait until it has read its data"},
    {"BUSY", ErrorCode::kUnavailable, true, "a script runs there: wait, or end it with SCRIPT KILL"},
    {"TRYAGAIN", ErrorCode::kUnavailable, true, "wait until the slot has been moved"},
    {"CLUSTERDOWN", ErrorCode::kUnavailable, true, "a part of the cluster is missing: look at CLUSTER INFO"},
    {"MASTERDOWN", ErrorCode::kUnavailable, true, "it is a replica that has lost its primary"},
    {"READONLY", ErrorCode::kUnavailable, true, "it is a replica: name the primary"},
    {"NOREPLICAS", ErrorCode::kUnavailable, true, "fewer replicas are there than min-replicas-to-write wants"},
    {"MISCONF", ErrorCode::kUnavailable, true,
     "the server cannot save its data: look at its log, and for a disk that is full"},
    {"OOM", ErrorCode::kNoSpace, false, "raise maxmemory at the server, or take a store elsewhere"},
    {"NOAUTH", ErrorCode::kPermission, false, "name the password with ?password_file= or --set store_password_file="},
    {"WRONGPASS", ErrorCode::kPermission, false, kWrongLogin},
    {"NOPERM", ErrorCode::kPermission, false, "grant it to the user: docs/stores.md lists what is needed"},
    {"WRONGTYPE", ErrorCode::kConflict, false,
     "a key there was not made by Farheap: take another name, or remove the key"},
};

const Known* find(std::string_view error) {
  const auto word = error.substr(0, error.find(' '));
  const auto found = std::ranges::find(kKnown, word, &Known::start);
  return found == std::end(kKnown) ? nullptr : found;
}

}  // namespace

bool is_passing(std::string_view error) {
  const Known* const known = find(error);
  return known != nullptr && known->passes;
}

Error explain(std::string_view error, std::string what, std::string subject) {
  const Known* const known = find(error);
  // In one line, whatever it is: it ends up on a terminal.
  std::string said(error.substr(0, 200));
  std::ranges::replace_if(said, [](unsigned char c) { return c < ' ' || c == 0x7F; }, ' ');
  auto why = fmt::format("the server says \"{}\"", said);
  if (known == nullptr) return {ErrorCode::kIo, std::move(what), std::move(subject), std::move(why), {}};
  return {known->code, std::move(what), std::move(subject), std::move(why), std::string(known->remedy)};
}

bool Connection::ask(Requests& requests, std::size_t count, std::vector<Reply>& replies, std::size_t most) {
  std::vector<iovec> pieces;
  requests.append(0, requests.mark(), pieces);
  replies.assign(count, {});
  return socket_.send(pieces) && std::ranges::all_of(replies, [&](Reply& one) { return replies_.whole(one, most); });
}

bool Connection::read_facts(const std::string& info) {
  facts_ = {.run_id = std::string(line_of(info, "run_id")),
            .replica = std::string(line_of(info, "master_replid")),
            .version = std::string(line_of(info, "redis_version")),
            .eviction = std::string(line_of(info, "maxmemory_policy")),
            .is_cluster = line_of(info, "redis_mode") == "cluster",
            .is_primary = line_of(info, "role") != "slave",
            .is_loading = line_of(info, "loading") == "1",
            .has_log = line_of(info, "aof_enabled") == "1"};
  return !facts_.run_id.empty();
}

Status Connection::refused(const Place& place, const Address& address, const Reply& reply) const {
  auto error = explain(reply.text, kCannotConnect, place.shown);
  if (reply.text.starts_with("ERR DB index is out of range")) {
    error.code = ErrorCode::kNotFound;
    error.remedy = fmt::format("it has no database {}: name another", place.database);
  } else if (reply.text.starts_with("ERR AUTH") || reply.text.starts_with("ERR invalid password")) {
    error.code = ErrorCode::kPermission;
    error.remedy = kWrongLogin;
  } else if (place.addresses.size() > 1 || place.is_cluster()) {
    error.subject += fmt::format(" ({})", address.text());
  }
  return fail(std::move(error));
}

Status Connection::open(const Place& place, const Address& address, const std::string& client_name) {
  const auto away = [&] {
    return fail(ErrorCode::kUnavailable, kCannotConnect, place.shown,
                fmt::format("{}: {}", address.text(), socket_.why()),
                "see that the server runs there and lets this machine in");
  };
  replies_.forget();
  if (!socket_.connect(address, place.timeout_ms, place.tls)) return away();
  Requests requests;
  std::size_t count = 0;
  const auto add = [&](std::initializer_list<std::string_view> words) {
    requests.command(words.size());
    for (const auto word : words) requests.argument(word);
    ++count;
  };
  if (!place.password.empty() && !place.user.empty()) add({"AUTH", place.user, place.password.view()});
  if (!place.password.empty() && place.user.empty()) add({"AUTH", place.password.view()});
  if (place.database != 0) add({"SELECT", std::to_string(place.database)});
  add({"CLIENT", "SETNAME", client_name});
  add({"CLIENT", "ID"});
  add({"INFO"});
  std::vector<Reply> replies;
  if (!ask(requests, count, replies, kLongestInfo)) return away();
  for (const Reply& reply : replies) {
    if (!reply.is_error()) continue;
    socket_.close();
    return refused(place, address, reply);
  }
  client_id_ = replies[count - 2].number;
  if (!read_facts(replies.back().text)) {
    socket_.give_up("it does not say who it is (INFO)");
    return away();
  }
  if (facts_.is_loading) {
    socket_.give_up("it is reading its data");
    return away();
  }
  return {};
}

}  // namespace farheap::store::redis
