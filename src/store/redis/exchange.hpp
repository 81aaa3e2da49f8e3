// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Carries commands to the servers that have their keys, and their answers back: in one request to each server, to all
// of them at once; again where a server did not answer, sends elsewhere (MOVED, ASK) or refuses for the time being;
// until patience_s is over.
//
// A command may be carried out twice, its first answer having been lost: commands must be such that this is the same as
// once. What an abandoned connection sent is never carried out later than what follows (Suspect).
//
// Thread-safety: one thread at a time, with a lane of its own.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>

#include "store/deadline.hpp"
#include "store/redis/lane.hpp"
#include "store/redis/shared.hpp"

namespace farheap::store::redis {

// Takes the answer of a command apart as it comes. False: the connection is of no use any more.
class Sink {
 public:
  virtual ~Sink() = default;
  virtual bool take(Replies& replies, const Head& head, std::size_t tag) = 0;
};

struct Command {
  enum class State : std::uint8_t {
    kPending,
    kDone,
    kRefused,  // the server says no; `why` has its words
    kLeft,     // patience ended, or the store is broken
  };
  std::uint16_t slot = 0;
  unsigned node = Nodes::kNobody;  // a server rather than a key's owner
  bool writes = false;
  std::size_t first = 0, last = 0;  // marks in the lane's requests
  Sink* sink = nullptr;             // nullptr: into `reply`, which takes at most so many bytes:
  std::size_t most = kSmallReply;
  std::size_t tag = 0;
  std::string_view beat_beside = {};  // a key of this command
  // Outcome
  State state = State::kPending;
  bool is_unknown = false;  // a write that was sent, and whose answer did not come
  Reply reply = {};
  std::string why = {};
  // While it is under way
  unsigned ask = Nodes::kNobody;
  std::uint64_t answered_on = 0;  // these contents; the beat is still to come
};

class Exchange {
 public:
  Exchange(Shared& shared, Lane& lane)
      : shared_(shared), lane_(lane), patience_(std::chrono::seconds(shared.place.patience_s)) {}

  // The Status is an error if a command was left; refusals are the caller's to look at. Ends, whatever the servers do,
  // patience_s and timeout_ms after it began, or at the deadline of the call.
  [[nodiscard]] Status run(std::span<Command> commands);

  // A connection to this server that may be used now. For run(), and for gets in flight.
  [[nodiscard]] Line* ready(unsigned node);
  // Asks who owns which slot. False if nobody answers.
  [[nodiscard]] bool learn_owners();
  // The answer to a renewal of the scratch store's entry. False: the store is lost.
  [[nodiscard]] bool is_renewed(const Reply& reply);
  // Why the last attempt failed.
  [[nodiscard]] const Error& trouble() const { return trouble_; }
  // ... and whether another may do better.
  [[nodiscard]] bool may_pass() const { return may_pass_; }
  // A server that is not there at once is not there: for opening.
  void set_hasty() { is_hasty_ = true; }
  // Asks once, and not again: for what is done again anyhow.
  void set_impatient() { patience_ = {}; }

 private:
  void attempt(std::span<Command> commands);
  [[nodiscard]] unsigned destination(const Command& command) const;
  void send(Line& line, std::span<Command> commands);
  void receive(Line& line, std::span<Command> commands);
  [[nodiscard]] bool receive_beat(Line& line);
  [[nodiscard]] bool answer(Line& line, Command& command);
  void refuse(Line& line, Command& command, std::string_view error);
  void redirect(Line& line, Command& command, std::string_view error);
  void abandon(Line& line);
  [[nodiscard]] bool forget_suspects(Line& line);
  [[nodiscard]] bool is_same_namespace(Line& line);
  [[nodiscard]] bool look_at_beats(Line& line);
  [[nodiscard]] Beat& beat_of(Line& line, const Command& command);
  void note(ErrorCode code, std::string why, std::string remedy, bool may_pass);
  void note_connection(Line& line);

  // Attempts begin until patience ends; the last one may take timeout_ms.
  void set_deadlines();

  Shared& shared_;
  Lane& lane_;
  std::chrono::nanoseconds patience_;
  std::int64_t start_ns_ = 0;
  Deadline begin_until_, end_;  // never: they are not set yet
  Error trouble_{};
  bool may_pass_ = true;
  bool is_hasty_ = false;
  bool has_moved_ = false;
  unsigned learned_ = 0;
};

}  // namespace farheap::store::redis
