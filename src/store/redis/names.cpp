// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "store/redis/names.hpp"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <charconv>

#include "base/clock.hpp"
#include "base/random_number.hpp"
#include "os/boot_clock.hpp"

namespace farheap::store::redis {
namespace {

constexpr char kCannotOpenRedis[] = "cannot open the store";
// HGETALL of those that run below one name, and of what is left: ten thousand.
constexpr std::size_t kLongestScratch = reply_bytes(20'000, 128);
// CLIENT LIST: ten thousand of them.
constexpr std::size_t kLongestClients = std::size_t{4} << 20;

constexpr std::string_view kMakeMeta =
    "if redis.call('EXISTS',KEYS[1])==0 then "
    "redis.call('HSET',KEYS[1],'format',ARGV[1],'block_bytes',ARGV[2],'identity',ARGV[3],'lifetime',ARGV[4]) end "
    "return redis.call('HMGET',KEYS[1],'format','block_bytes','identity','lifetime')";

std::uint64_t number_of(std::string_view text) {
  std::uint64_t number = 0;
  (void)std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

Meta meta_of(const Reply& reply) {
  if (reply.elements.size() != 4 || reply.elements[0].kind != Kind::kBulk) return {};
  return {.is_there = true,
          .format = number_of(reply.elements[0].text),
          .block_bytes = number_of(reply.elements[1].text),
          .identity = reply.elements[2].text,
          .lifetime = reply.elements[3].text == "scratch" ? Lifetime::kScratch : Lifetime::kKeep};
}

auto refuse(Caller& caller, ErrorCode code, std::string why, std::string remedy) {
  return fail(code, kCannotOpenRedis, caller.shared().place.shown, std::move(why), std::move(remedy));
}

// 6.2 has SET with GET.
bool is_too_old(std::string_view version) {
  const auto dot = version.find('.');
  const auto major = number_of(version), minor = dot == std::string_view::npos ? 0 : number_of(version.substr(dot + 1));
  return major < 6 || (major == 6 && minor < 2);
}

Status check_facts(Caller& caller, const ServerFacts& facts) {
  const bool is_cluster = caller.shared().nodes.is_cluster();
  if (facts.is_cluster != is_cluster) {
    return refuse(caller, ErrorCode::kUnavailable,
                  is_cluster ? "the server is not part of a cluster" : "the server is part of a cluster",
                  fmt::format("write {}{}://", caller.shared().place.is_by_tls() ? "rediss" : "redis",
                              is_cluster ? "" : "+cluster"));
  }
  if (is_too_old(facts.version)) {
    return refuse(caller, ErrorCode::kUnavailable, fmt::format("the server is Redis {}", facts.version),
                  "6.2 or later is needed");
  }
  if (facts.eviction.starts_with("allkeys")) {
    return refuse(caller, ErrorCode::kUnavailable,
                  fmt::format("the server throws data away when it is full (maxmemory-policy {})", facts.eviction),
                  "set maxmemory-policy noeviction there");
  }
  if (facts.eviction.starts_with("volatile")) caller.shared().keep_notes();
  return {};
}

// "farheap:{NAME:IDENTITY:...": of a store of that name.
bool is_of_a_store(const Keys& keys, std::string_view key) {
  constexpr std::size_t kIdentity = 16;
  if (!key.starts_with(keys.prefix())) return false;
  key.remove_prefix(keys.prefix().size());
  return key.size() > kIdentity && key[kIdentity] == ':' && key.find_first_not_of("0123456789abcdef") == kIdentity;
}

// A namespace without the record that says what it is was not made here, or has lost it.
Status refuse_foreign_keys(Caller& caller, const Keys& keys) {
  return caller.each_key(keys.prefix() + "*", kCannotOpenRedis, [&](const std::vector<std::string>& found) -> Status {
    for (const auto& key : found) {
      if (key == keys.scratch()) continue;
      if (is_of_a_store(keys, key)) {
        return refuse(caller, ErrorCode::kConflict,
                      fmt::format("there are keys of an earlier store of that name ({}), but not the record that says "
                                  "what they are: it was removed, or the server emptied, while a program wrote to it",
                                  key),
                      "`farheap store rm` with this URI removes them");
      }
      return refuse(caller, ErrorCode::kConflict,
                    fmt::format("there are keys of that name ({}), but not the record that says what they are", key),
                    "take another name: redis://HOST/DATABASE/NAME; or remove them");
    }
    return {};
  });
}

}  // namespace

Status reach_servers(Caller& caller) {
  Exchange& exchange = caller.exchange();
  Nodes& nodes = caller.shared().nodes;
  if (nodes.is_cluster() && !exchange.learn_owners()) {
    Error error = exchange.trouble();
    if (error.why.empty()) {  // it answered, and has no slots
      if (const Line* const line = exchange.ready(0)) {
        if (Status ok = check_facts(caller, line->connection.facts()); !ok) return ok;
      }
      error = {ErrorCode::kUnavailable, kCannotOpenRedis, caller.shared().place.shown, "the cluster has no slots",
               "make it whole with redis-cli --cluster create"};
    }
    error.what = kCannotOpenRedis;
    return fail(std::move(error));
  }
  for (const unsigned node : nodes.primaries()) {
    caller.add_on(node, {"PING"});
    if (auto reached = caller.run(kCannotOpenRedis); !reached) return fail(std::move(reached.error()));
    const Line* const line = exchange.ready(node);
    if (line == nullptr) return fail(exchange.trouble());
    if (Status ok = check_facts(caller, line->connection.facts()); !ok) return ok;
    // Nobody has this number: only whether it may be done counts.
    caller.add_on(node, {"CLIENT", "KILL", "ID", "9223372036854775807"});
    if (auto allowed = caller.run(kCannotOpenRedis); !allowed) return fail(std::move(allowed.error()));
  }
  return {};
}

bool is_each_write_durable(Caller& caller) {
  for (const unsigned node : caller.shared().nodes.primaries()) {
    const Line* const line = caller.exchange().ready(node);
    if (line == nullptr || !line->connection.facts().has_log) return false;
    caller.add_on(node, {"CONFIG", "GET", "appendfsync"});
    const auto replies = caller.run(kCannotOpenRedis);  // may be forbidden: then nobody knows
    if (!replies || replies->front().elements.size() != 2) return false;
    if (replies->front().elements[1].text != "always") return false;
  }
  return true;
}

Result<Meta> read_meta(Caller& caller, const std::string& name) {
  const Keys keys(name);
  caller.add(keys.meta(), false, {"HMGET", keys.meta(), "format", "block_bytes", "identity", "lifetime"});
  auto replies = caller.run(kCannotOpenRedis);
  if (!replies) return fail(std::move(replies.error()));
  return meta_of(replies->front());
}

Status open_meta(Caller& caller, const std::string& name, const StoreOptions& options) {
  const Keys keys(name);
  auto found = read_meta(caller, name);
  if (!found) return fail(std::move(found.error()));
  const bool is_scratch = options.lifetime == Lifetime::kScratch;
  if (!found->is_there) {
    if (!is_scratch) {
      if (Status ok = refuse_foreign_keys(caller, keys); !ok) {
        // Unless another process has just made it.
        found = read_meta(caller, name);
        if (!found || !found->is_there) return ok;
      }
    }
    caller.add(keys.meta(), true,
               {"EVAL", kMakeMeta, "1", keys.meta(), std::to_string(kFormat), std::to_string(options.block_bytes),
                fmt::format("{:016x}", base::random_number()), is_scratch ? "scratch" : "kept"});
    auto made = caller.run(kCannotOpenRedis);
    if (!made) return fail(std::move(made.error()));
    found = meta_of(made->front());
  }
  if (found->format > kFormat) {
    return refuse(caller, ErrorCode::kCorrupt, fmt::format("it has format {}", found->format),
                  "open it with the newer Farheap that made it");
  }
  if (found->format == 0 || found->identity.empty()) {
    return refuse(caller, ErrorCode::kConflict, fmt::format("the key {} was not made by Farheap", keys.meta()),
                  "take another name, or remove the key");
  }
  if (found->block_bytes != options.block_bytes) {
    return refuse(caller, ErrorCode::kInvalidArgument,
                  fmt::format("it holds blocks of {} bytes, not of {}", found->block_bytes, options.block_bytes),
                  "open it with the block size it was made with");
  }
  caller.shared().identity = found->identity;
  caller.shared().keys = Keys(name, found->identity);
  return {};
}

Status register_scratch(Caller& caller) {
  Shared& shared = caller.shared();
  const auto& entry = shared.scratch;
  const unsigned node = shared.nodes.owner(slot_of(entry.key));
  Line* const line = node == Nodes::kNobody ? nullptr : caller.exchange().ready(node);
  if (line == nullptr) return fail(caller.exchange().trouble());
  caller.add(entry.key, [&](Requests& requests) {
    entry.write_first(requests, line->connection.facts().run_id, shared.place.grace_s);
  });
  auto done = caller.run(kCannotOpenRedis);
  if (!done) return fail(std::move(done.error()));
  shared.scratch.heard_ns.store(os::boot_clock_ns());
  return {};
}

void renew_scratch(Caller& caller) {
  Shared& shared = caller.shared();
  const auto& entry = shared.scratch;
  caller.exchange().set_impatient();
  const unsigned node = shared.nodes.owner(slot_of(entry.key));
  Line* const line = node == Nodes::kNobody || shared.is_lost() ? nullptr : caller.exchange().ready(node);
  if (line == nullptr) return;
  caller.add(entry.key, [&](Requests& requests) {
    entry.write_renewal(requests, line->connection.facts().run_id, shared.place.grace_s);
  });
  const auto done = caller.run(kCannotOpenRedis);
  if (done && done->front().kind == Kind::kInteger) (void)caller.exchange().is_renewed(done->front());
}

namespace {

// The server's, or ours where its user may not ask for it.
std::uint64_t seconds_at(Caller& caller, unsigned node) {
  caller.add_on(node, {"TIME"});
  const auto told = caller.run("cannot look at scratch stores");
  const bool is_time = told && told->front().elements.size() == 2;
  return is_time ? number_of(told->front().elements[0].text) : static_cast<std::uint64_t>(base::real_time_s());
}

}  // namespace

Result<std::vector<ScratchStore>> scratch_below(Caller& caller, const std::string& parent) {
  constexpr char kLooking[] = "cannot look at scratch stores";
  const auto key = Keys(parent).scratch();
  caller.add(key, false, {"HGETALL", key}, kLongestScratch);
  auto registered = caller.run(kLooking);
  if (!registered) return fail(std::move(registered.error()));
  std::vector<ScratchStore> all;
  const auto& pairs = registered->front().elements;
  if (pairs.size() < 2) return all;
  const unsigned node = caller.shared().nodes.owner(slot_of(key));
  const std::uint64_t now_s = seconds_at(caller, node);
  const Line* const line = caller.exchange().ready(node);
  const std::string run_id = line != nullptr ? line->connection.facts().run_id : "";
  for (std::size_t i = 0; i + 1 < pairs.size(); i += 2) {
    all.push_back({pairs[i].text, may_be_in_use(read_scratch_note(pairs[i + 1].text), pairs[i].text, run_id, now_s)});
  }
  if (std::ranges::all_of(all, &ScratchStore::is_in_use)) return all;
  // A program that was stopped for a long time, and whose connection is there.
  caller.add_on(node, {"CLIENT", "LIST"}, kLongestClients);
  auto clients = caller.run(kLooking);
  if (!clients) return fail(std::move(clients.error()));
  for (auto& one : all) {
    const auto named = fmt::format(" name=farheap:{}~{} ", parent, one.id);
    one.is_in_use = one.is_in_use || clients->front().text.find(named) != std::string::npos;
  }
  return all;
}

Status remove_scratch(Caller& caller, const std::string& parent, const std::string& id) {
  if (Status removed = remove_namespace(caller, parent + "~" + id); !removed) return removed;
  const auto key = Keys(parent).scratch();
  caller.add(key, true, {"HDEL", key, id});
  auto done = caller.run("cannot remove a scratch store");
  return done ? Status{} : fail(std::move(done.error()));
}

Status collect_scratch(Caller& caller, const std::string& parent) {
  auto all = scratch_below(caller, parent);
  if (!all) return fail(std::move(all.error()));
  for (const auto& one : *all) {
    if (one.is_in_use) continue;
    if (Status removed = remove_scratch(caller, parent, one.id); !removed) return removed;
  }
  return {};
}

Result<bool> remove_leftovers(Caller& caller, const std::string& name) {
  const Keys keys(name);
  constexpr char kRemoving[] = "cannot remove what is left of a store";
  bool any = false;
  Status removed = caller.each_key(keys.prefix() + "*", kRemoving, [&](std::vector<std::string> found) {
    std::erase_if(found, [&](const auto& key) { return !is_of_a_store(keys, key); });
    any = any || !found.empty();
    return caller.remove_keys(found, kRemoving);
  });
  if (!removed) return fail(std::move(removed.error()));
  return any;
}

Status remove_namespace(Caller& caller, const std::string& name) {
  const Keys keys(name);
  constexpr char kRemoving[] = "cannot remove a store";
  // What says what it is goes last: an interrupted removal can be gone on with.
  Status removed = caller.each_key(keys.prefix() + "*", kRemoving, [&](std::vector<std::string> found) {
    std::erase_if(found, [&](const auto& key) { return key == keys.meta() || key == keys.scratch(); });
    return caller.remove_keys(found, kRemoving);
  });
  return removed ? caller.remove_keys({keys.meta()}, kRemoving) : removed;
}

}  // namespace farheap::store::redis
