// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "store/redis/exchange.hpp"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <functional>

#include "os/boot_clock.hpp"

namespace farheap::store::redis {
namespace {

constexpr char kCannotReach[] = "cannot reach the store";
constexpr unsigned kRedirections = 16;  // one after the other, before there is a pause
constexpr std::string_view kAsking = "*1\r\n$6\r\nASKING\r\n";

// CLUSTER SLOTS: sixteen thousand ranges at the worst, with a primary and a replica each, would be 20 MiB. No cluster
// is that scattered; a thousand ranges take one.
constexpr std::size_t kLongestSlots = std::size_t{8} << 20;

// Longer and longer pauses.
class Patience {
 public:
  Patience(Deadline end, std::int64_t start_ns) : start_ns_(start_ns), end_(end) {}
  // False: it is over.
  [[nodiscard]] bool wait() {
    if (end_.has_passed()) return false;
    os::boot_clock_sleep(std::min(pause_, end_.left()));
    pause_ = std::min<std::chrono::nanoseconds>(pause_ * 2, std::chrono::seconds(1));
    return true;
  }
  [[nodiscard]] std::string so_far() const {
    return fmt::format("for {:.1f} s now", static_cast<double>(os::boot_clock_ns() - start_ns_) / 1e9);
  }

 private:
  std::int64_t start_ns_;
  Deadline end_;
  std::chrono::nanoseconds pause_ = std::chrono::milliseconds(5);
};

bool is_pending(const Command& command) { return command.state == Command::State::kPending; }

// What a server has in the place of a beat that it acknowledged.
std::string loss_of(const Reply& found, const Address& address) {
  if (found.kind == Kind::kNil) {
    return fmt::format(
        "{} does not have it any more: the store was removed, or the server emptied, restarted without its data, or "
        "replaced by one with older contents",
        address.text());
  }
  return fmt::format(
      "{} has older contents: it was restarted from an older copy, or replaced by a replica that had not got them yet",
      address.text());
}

}  // namespace

void Exchange::note(ErrorCode code, std::string why, std::string remedy, bool may_pass) {
  trouble_ = {code, kCannotReach, shared_.place.shown, std::move(why), std::move(remedy)};
  may_pass_ = may_pass;
}

void Exchange::note_connection(Line& line) {
  auto& connection = line.connection;
  note(connection.replies().is_nonsense() ? ErrorCode::kIo : ErrorCode::kUnavailable,
       fmt::format("{}: {}", shared_.nodes.address(line.connection.node()).text(), connection.socket().why()),
       "see that the server runs there and lets this machine in", !connection.replies().is_nonsense());
}

Status Exchange::run(std::span<Command> commands) {
  set_deadlines();
  Patience patience(begin_until_, start_ns_);
  unsigned redirections = 0;
  for (;;) {
    trouble_ = {}, may_pass_ = true, has_moved_ = false;
    if (!shared_.is_lost()) attempt(commands);
    if (shared_.is_lost()) {  // what was answered just now is of no use either
      trouble_ = shared_.loss(), may_pass_ = false;
      for (auto& command : commands) command.state = Command::State::kPending;
      break;
    }
    if (std::ranges::none_of(commands, is_pending)) return {};
    // Sent elsewhere, and nothing else is wrong.
    const bool is_redirected = has_moved_ && trouble_.why.empty() && ++redirections < kRedirections;
    if (!is_redirected && (!may_pass_ || !patience.wait())) break;
    if (shared_.nodes.is_cluster() && (!is_redirected || redirections == 1)) (void)learn_owners();
  }
  if (may_pass_) trouble_.why += ", " + patience.so_far();
  for (auto& command : commands) {
    if (is_pending(command)) command.state = Command::State::kLeft;
  }
  return fail(trouble_);
}

unsigned Exchange::destination(const Command& command) const {
  if (command.ask != Nodes::kNobody) return command.ask;
  return command.node != Nodes::kNobody ? command.node : shared_.nodes.owner(command.slot);
}

void Exchange::attempt(std::span<Command> commands) {
  for (auto& line : lane_.lines) {
    if (line) line->under_way.clear(), line->writes = false, line->beat_number = 0;
  }
  for (unsigned i = 0; i < commands.size(); ++i) {
    if (!is_pending(commands[i])) continue;
    const unsigned node = destination(commands[i]);
    if (node == Nodes::kNobody) {
      note(ErrorCode::kUnavailable, fmt::format("no server has slot {}", commands[i].slot),
           "see that the cluster is whole (CLUSTER INFO)", true);
      continue;
    }
    if (commands[i].node != Nodes::kNobody && !shared_.nodes.is_primary(node)) {
      note(ErrorCode::kUnavailable, fmt::format("{} has no slots any more", shared_.nodes.address(node).text()), "",
           false);
      continue;
    }
    Line& line = lane_.line(node);
    line.under_way.push_back(i);
    line.writes = line.writes || commands[i].writes;
  }
  // All are asked before any answer is waited for.
  for (unsigned node = 0; node < lane_.lines.size(); ++node) {
    if (!lane_.lines[node] || lane_.lines[node]->under_way.empty()) continue;
    if (Line* const line = may_pass_ ? ready(node) : nullptr) {
      send(*line, commands);
    } else {
      lane_.lines[node]->under_way.clear();
    }
  }
  for (auto& line : lane_.lines) {
    if (line && !line->under_way.empty()) receive(*line, commands);
  }
}

// With one look at the clock, which costs as much as a fiftieth of a call.
void Exchange::set_deadlines() {
  const Deadline call = Deadline::of_this_call();
  start_ns_ = os::boot_clock_ns();
  const std::int64_t until_ns = start_ns_ + patience_.count();
  begin_until_ = std::min(call, Deadline::at(until_ns));
  end_ = std::min(call, Deadline::at(until_ns + shared_.place.timeout_ms * std::int64_t{1'000'000}));
}

Line* Exchange::ready(unsigned node) {
  Line& line = lane_.line(node);
  auto& connection = line.connection;
  if (end_.is_never()) set_deadlines();
  connection.socket().set_deadline(end_);
  if (!connection.socket().is_open()) {
    const Address address = shared_.nodes.address(node);
    if (Status opened = connection.open(shared_.place, address, shared_.client_name); !opened) {
      trouble_ = opened.error();
      may_pass_ = trouble_.code == ErrorCode::kUnavailable && !connection.replies().is_nonsense() &&
                  (!is_hasty_ || connection.facts().is_loading);
      return nullptr;
    }
    if (!shared_.nodes.is_cluster() && !connection.facts().is_primary) {
      connection.socket().give_up("it is a replica, which takes no writes");
      note_connection(line);
      return nullptr;
    }
    line.contents = std::hash<std::string>{}(connection.contents());
    line.looked_at_changes = shared_.nodes.changes() - 1;
    if (!is_same_namespace(line)) return nullptr;
  }
  if (!shared_.suspects.none() && !forget_suspects(line)) return nullptr;
  if (line.looked_at_changes != shared_.nodes.changes() && !look_at_beats(line)) return nullptr;
  return &line;
}

// The namespace that was opened, and not one that was made anew since; and a scratch store says that it lives.
bool Exchange::is_same_namespace(Line& line) {
  if (shared_.identity.empty()) return true;
  const auto meta = shared_.keys.meta();
  const auto is_here = [&](const std::string& key) {
    return !key.empty() && shared_.nodes.owner(slot_of(key)) == line.connection.node();
  };
  const bool has_meta = is_here(meta), has_entry = is_here(shared_.scratch.key);
  Requests requests;
  if (has_meta) requests.command(3), requests.argument("HGET"), requests.argument(meta), requests.argument("identity");
  if (has_entry) {
    shared_.scratch.write_renewal(requests, line.connection.facts().run_id, shared_.place.grace_s);
  }
  std::vector<Reply> replies;
  const std::size_t count = (has_meta ? 1 : 0) + (has_entry ? 1 : 0);
  if (count != 0 && !line.connection.ask(requests, count, replies)) return note_connection(line), false;
  if (has_entry && !is_renewed(replies.back())) return line.connection.socket().close(), false;
  if (!has_meta) return true;
  if (replies[0].is_error()) {
    trouble_ = explain(replies[0].text, kCannotReach, shared_.place.shown);
    may_pass_ = is_passing(replies[0].text) || replies[0].text.starts_with("MOVED");
    line.connection.socket().close();
    return false;
  }
  if (replies[0].text == shared_.identity) return true;
  shared_.lose(replies[0].kind == Kind::kNil
                   ? "the server does not have it any more: it was restarted without its data, emptied, or replaced"
                   : "it was removed, and another was made under its name");
  line.connection.socket().close();
  return false;
}

bool Exchange::is_renewed(const Reply& reply) {
  if (reply.kind != Kind::kInteger) return true;  // for the time being it takes no writes, or the slot has moved
  if (reply.number == 1) return shared_.scratch.heard_ns.store(os::boot_clock_ns()), true;
  shared_.lose(shared_.scratch.why_gone(shared_.place.grace_s));
  return false;
}

bool Exchange::forget_suspects(Line& line) {
  for (const Suspect& suspect : shared_.suspects.of(line.connection.node())) {
    if (suspect.run_id == line.connection.facts().run_id) {
      Requests requests;
      requests.command(4), requests.argument("CLIENT"), requests.argument("KILL"), requests.argument("ID");
      requests.argument(static_cast<std::uint64_t>(suspect.client_id));
      std::vector<Reply> replies;
      if (!line.connection.ask(requests, 1, replies)) return note_connection(line), false;
      if (replies[0].is_error()) {
        trouble_ = explain(replies[0].text, kCannotReach, shared_.place.shown);
        return may_pass_ = false;
      }
    }
    shared_.suspects.remove(suspect);
  }
  return true;
}

bool Exchange::look_at_beats(Line& line) {
  const unsigned changes = shared_.nodes.changes();
  const unsigned node = line.connection.node();
  const auto beats =
      shared_.beats.unseen(line.contents, [&](std::uint16_t slot) { return shared_.nodes.owner(slot) == node; });
  Requests requests;
  for (const Beat* beat : beats) requests.command(2), requests.argument("GET"), requests.argument(beat->key);
  std::vector<Reply> replies;
  if (!beats.empty() && !line.connection.ask(requests, beats.size(), replies)) return note_connection(line), false;
  for (std::size_t i = 0; i < beats.size(); ++i) {
    if (replies[i].is_error()) continue;  // on its way to another server, and looked at there
    if (Beats::is_whole(*beats[i], replies[i])) {
      beats[i]->seen_on.store(line.contents);
      continue;
    }
    shared_.lose(loss_of(replies[i], shared_.nodes.address(node)));
    return may_pass_ = false;
  }
  line.looked_at_changes = changes;
  return true;
}

// Beside the first key this line ever wrote there; beside another when that has moved.
Beat& Exchange::beat_of(Line& line, const Command& command) {
  if (line.beats.empty() || shared_.nodes.owner(line.beats.back()->slot) != line.connection.node()) {
    line.beats.push_back(&shared_.beats.make(command.beat_beside, lane_.id));
  }
  return *line.beats.back();
}

void Exchange::send(Line& line, std::span<Command> commands) {
  auto& pieces = lane_.pieces;
  pieces.clear();
  const auto append = [&](Command& command) {
    if (command.ask != Nodes::kNobody) pieces.push_back({const_cast<char*>(kAsking.data()), kAsking.size()});
    lane_.requests.append(command.first, command.last, pieces);
    command.is_unknown = command.writes;
  };
  for (const unsigned i : line.under_way) {
    Command& command = commands[i];
    if (command.answered_on != 0 && command.answered_on == line.contents) {
      command.state = Command::State::kDone;  // and its beat is still to be written
    } else {
      append(command);
    }
    if (command.writes && command.ask == Nodes::kNobody && line.beat_number == 0 && !command.beat_beside.empty()) {
      line.beat_number = shared_.next_number();
      line.beat.clear();
      Beats::write(line.beat, beat_of(line, command), line.beat_number, shared_.note_seconds() != 0);
    }
  }
  if (line.beat_number != 0) line.beat.append(0, line.beat.mark(), pieces);
  if (line.connection.socket().send(pieces)) return;
  note_connection(line);
  abandon(line);
  line.under_way.clear();
}

void Exchange::receive(Line& line, std::span<Command> commands) {
  bool is_whole = true;
  for (const unsigned i : line.under_way) {
    if (is_pending(commands[i])) is_whole = answer(line, commands[i]);
    if (!is_whole) break;
  }
  if (is_whole && line.beat_number != 0) is_whole = receive_beat(line);
  if (!is_whole) {
    note_connection(line);
    abandon(line);
    // What was answered, and whose beat was not, counts if the server that is found next has the same contents.
    for (const unsigned i : line.under_way) {
      Command& command = commands[i];
      if (!command.writes || command.state != Command::State::kDone) continue;
      command.state = Command::State::kPending;
      command.answered_on = line.contents;
      command.is_unknown = true;
    }
  } else if (line.is_stale) {
    line.connection.socket().close();
  }
  line.is_stale = false;
  line.under_way.clear();
}

bool Exchange::receive_beat(Line& line) {
  Reply before;
  if (!line.connection.replies().whole(before)) return false;
  if (before.is_error()) return true;  // no memory, or its slot has just moved: the next write tries again
  Beat& beat = *line.beats.back();
  if (!Beats::is_whole(beat, before)) {
    shared_.lose(loss_of(before, shared_.nodes.address(line.connection.node())));
    return true;
  }
  Beats::acknowledge(beat, line.beat_number, line.contents);
  return true;
}

bool Exchange::answer(Line& line, Command& command) {
  Replies& replies = line.connection.replies();
  Head head;
  if (command.ask != Nodes::kNobody && !(replies.head(head) && replies.skip(head))) return false;
  if (!replies.head(head)) return false;
  if (head.kind == Kind::kError) {
    command.is_unknown = false;
    refuse(line, command, head.text);
    return true;
  }
  const bool is_taken = command.sink != nullptr ? command.sink->take(replies, head, command.tag)
                                                : replies.rest(head, command.reply, command.most);
  if (!is_taken) return false;
  command.is_unknown = false;
  command.state = Command::State::kDone;
  return true;
}

void Exchange::refuse(Line& line, Command& command, std::string_view error) {
  command.ask = Nodes::kNobody;
  if (shared_.nodes.is_cluster() && (error.starts_with("MOVED ") || error.starts_with("ASK "))) {
    redirect(line, command, error);
  } else if (is_passing(error)) {
    trouble_ = explain(error, kCannotReach, shared_.place.shown);
    line.is_stale = error.starts_with("READONLY");  // the address may lead to the primary by now
  } else {
    command.state = Command::State::kRefused;
    command.why = error;
  }
}

void Exchange::redirect(Line& line, Command& command, std::string_view error) {
  const bool is_moved = error.starts_with("MOVED ");
  const auto to = parse_redirection(error.substr(is_moved ? 6 : 4), shared_.nodes.address(line.connection.node()));
  const unsigned node = to ? shared_.nodes.number_of(to->address) : Nodes::kNobody;
  if (!to || node == Nodes::kNobody) {
    command.state = Command::State::kRefused;
    command.why = error;
    return;
  }
  has_moved_ = true;
  if (is_moved) {
    shared_.nodes.set_owner(to->slot, node);
  } else {
    command.ask = node;
  }
}

// What it sent may still be on its way to be carried out.
void Exchange::abandon(Line& line) {
  auto& connection = line.connection;
  if (line.writes) {
    shared_.suspects.add({connection.node(), connection.facts().run_id, connection.client_id()});
  }
  connection.socket().close();
}

bool Exchange::learn_owners() {
  if (end_.is_never()) set_deadlines();
  Requests requests;
  requests.command(2), requests.argument("CLUSTER"), requests.argument("SLOTS");
  std::vector<Reply> replies;
  const unsigned count = shared_.nodes.count();
  // Connections that are open first: to find out that a server is gone takes a while. Another one first each time: one
  // that is cut off from the rest tells of old times.
  const unsigned start = learned_++;
  for (const bool is_open : {true, false}) {
    for (unsigned i = 0; i < count; ++i) {
      const unsigned node = (start + i) % count;
      Line& line = lane_.line(node);
      if (line.connection.socket().is_open() != is_open) continue;
      line.connection.socket().set_deadline(end_);
      if (!is_open) {
        Status opened = line.connection.open(shared_.place, shared_.nodes.address(node), shared_.client_name);
        if (!opened) trouble_ = opened.error();
        if (!opened) continue;
      }
      const bool is_answered = line.connection.ask(requests, 1, replies, kLongestSlots);
      const bool is_known = is_answered && shared_.nodes.learn(replies[0], node);
      // Let in, and not looked at (ready()): that is done when it is used.
      if (!is_open || !is_answered) line.connection.socket().close();
      if (is_known) return true;
    }
  }
  return false;
}

}  // namespace farheap::store::redis
