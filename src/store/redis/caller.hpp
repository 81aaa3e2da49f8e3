// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Single commands with small answers: for whatever is not a batch of blocks.
//
// Thread-safety: one thread at a time, with a lane of its own.
#pragma once

#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "store/redis/exchange.hpp"

namespace farheap::store::redis {

// What is collected from each_key() is kept only up to here: no server is believed to have more.
inline constexpr std::size_t kMostCollected = std::size_t{64} << 20;  // groups, or bytes of names

class Caller {
 public:
  Caller(Shared& shared, Lane& lane) : shared_(shared), lane_(lane), exchange_(shared, lane) {}
  [[nodiscard]] Exchange& exchange() { return exchange_; }
  [[nodiscard]] Shared& shared() { return shared_; }

  // Writes of blocks and counters are followed by a beat; those about the store as a whole leave none.
  void set_beats() { has_beats_ = true; }

  // Collects commands for run(). Each answer is a small one, unless `most` says that it may take more.
  void add(const std::string& key, bool writes, std::initializer_list<std::string_view> words,
           std::size_t most = kSmallReply);
  void add(const std::string& key, bool writes, std::span<const std::string> words);
  // One that writes, as it is written by `write`.
  void add(const std::string& key, const std::function<void(Requests&)>& write);
  void add_on(unsigned node, std::initializer_list<std::string_view> words, std::size_t most = kSmallReply);
  [[nodiscard]] std::size_t count() const { return commands_.size(); }
  // Their answers, in order, and none left to run. An error if one was left or refused: `what` is what could not be
  // done.
  [[nodiscard]] Result<std::vector<Reply>> run(std::string_view what);

  // Calls visit(keys) for what the servers have under a pattern; some may come twice. While slots move, again.
  [[nodiscard]] Status each_key(const std::string& pattern, std::string_view what,
                                const std::function<Status(std::vector<std::string>)>& visit);
  // Of each_key(): more than kMostCollected came.
  [[nodiscard]] Status too_many(std::string_view what) const;
  [[nodiscard]] Status remove_keys(const std::vector<std::string>& keys, std::string_view what);

 private:
  [[nodiscard]] Status scan(unsigned node, const std::string& pattern, std::string_view what,
                            const std::function<Status(std::vector<std::string>)>& visit);
  Command& open_command();

  Shared& shared_;
  Lane& lane_;
  Exchange exchange_;
  std::vector<Command> commands_;
  std::vector<std::string> keys_;
  bool has_beats_ = false;
};

}  // namespace farheap::store::redis
