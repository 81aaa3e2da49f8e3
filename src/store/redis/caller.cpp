// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "store/redis/caller.hpp"

#include <utility>

namespace farheap::store::redis {

namespace {
constexpr std::string_view kScanned =
    "1000";  // keys looked at in one go: a third of a millisecond of the server's time
// The answer: a few more than those, because a server ends with a whole bucket; a counter's name may be long.
constexpr std::size_t kLongestScan = reply_bytes(2000, 2048);
// A server that never comes to an end is left after a billion keys.
constexpr unsigned kMostScans = 1'000'000;
constexpr unsigned kScansWhileSlotsMove = 20;
}  // namespace

Command& Caller::open_command() {
  if (commands_.empty()) lane_.requests.clear();
  Command& command = commands_.emplace_back();
  command.first = lane_.requests.mark();
  return command;
}

void Caller::add(const std::string& key, bool writes, std::initializer_list<std::string_view> words, std::size_t most) {
  Command& command = open_command();
  lane_.requests.command(words.size());
  command.most = most;
  for (const auto word : words) lane_.requests.argument(word);
  command.last = lane_.requests.mark();
  command.slot = slot_of(key);
  command.writes = writes;
  keys_.push_back(key);
}

void Caller::add(const std::string& key, bool writes, std::span<const std::string> words) {
  Command& command = open_command();
  lane_.requests.command(words.size());
  for (const auto& word : words) lane_.requests.argument(word);
  command.last = lane_.requests.mark();
  command.slot = slot_of(key);
  command.writes = writes;
  keys_.push_back(key);
}

void Caller::add(const std::string& key, const std::function<void(Requests&)>& write) {
  Command& command = open_command();
  write(lane_.requests);
  command.last = lane_.requests.mark();
  command.slot = slot_of(key);
  command.writes = true;
  keys_.push_back(key);
}

void Caller::add_on(unsigned node, std::initializer_list<std::string_view> words, std::size_t most) {
  Command& command = open_command();
  lane_.requests.command(words.size());
  command.most = most;
  for (const auto word : words) lane_.requests.argument(word);
  command.last = lane_.requests.mark();
  command.node = node;
  keys_.emplace_back();
}

Result<std::vector<Reply>> Caller::run(std::string_view what) {
  for (std::size_t i = 0; i < commands_.size(); ++i) {
    if (commands_[i].writes && has_beats_) commands_[i].beat_beside = keys_[i];
  }
  const Status ran = commands_.empty() ? Status{} : exchange_.run(commands_);
  std::vector<Reply> replies;
  Status failed = ran;
  bool is_unknown = false;
  for (Command& command : commands_) {
    if (command.state == Command::State::kRefused && failed) {
      failed = fail(explain(command.why, std::string(what), shared_.place.shown));
    }
    is_unknown = is_unknown || command.is_unknown;
    replies.push_back(std::move(command.reply));
  }
  commands_.clear(), keys_.clear();
  if (failed) return replies;
  Error error = failed.error();
  error.what = what;
  if (is_unknown && error.code != ErrorCode::kCorrupt) error.code = ErrorCode::kUnknown;
  return fail(std::move(error));
}

Status Caller::scan(unsigned node, const std::string& pattern, std::string_view what,
                    const std::function<Status(std::vector<std::string>)>& visit) {
  std::string cursor = "0";
  unsigned scans = 0;
  do {
    if (++scans > kMostScans) {
      return fail(ErrorCode::kIo, std::string(what), shared_.place.shown, "SCAN does not come to an end there");
    }
    add_on(node, {"SCAN", cursor, "MATCH", pattern, "COUNT", kScanned}, kLongestScan);
    auto replies = run(what);
    if (!replies) return fail(std::move(replies.error()));
    Reply& reply = replies->front();
    if (reply.elements.size() != 2 || reply.elements[0].text.empty()) {
      return fail(ErrorCode::kIo, std::string(what), shared_.place.shown, "what SCAN answered is no answer of Redis");
    }
    cursor = reply.elements[0].text;
    std::vector<std::string> keys;
    for (Reply& one : reply.elements[1].elements) keys.push_back(std::move(one.text));
    if (keys.empty()) continue;
    if (Status visited = visit(std::move(keys)); !visited) return visited;
  } while (cursor != "0");
  return {};
}

Status Caller::each_key(const std::string& pattern, std::string_view what,
                        const std::function<Status(std::vector<std::string>)>& visit) {
  for (unsigned round = 0;; ++round) {
    const unsigned changes = shared_.nodes.changes();
    Status scanned;
    for (const unsigned node : shared_.nodes.primaries()) {
      scanned = scan(node, pattern, what, visit);
      if (!scanned) break;
    }
    // Keys that were moved meanwhile may have been missed.
    if (shared_.nodes.is_cluster()) (void)exchange_.learn_owners();
    if (changes == shared_.nodes.changes() || round == kScansWhileSlotsMove) return scanned;
  }
}

Status Caller::too_many(std::string_view what) const {
  return fail(ErrorCode::kIo, std::string(what), shared_.place.shown, "more is there than any store has",
              "see that the server is the one that is meant");
}

Status Caller::remove_keys(const std::vector<std::string>& keys, std::string_view what) {
  for (const auto& key : keys) add(key, true, {"UNLINK", key});
  auto replies = run(what);
  return replies ? Status{} : fail(std::move(replies.error()));
}

}  // namespace farheap::store::redis
