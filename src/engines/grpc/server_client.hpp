// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the clients of all servers have in common: how long they wait, whether their connection is still the one that it
// was, and words for what went wrong.
//
// Thread-safety: any thread.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "engines/grpc/answer.hpp"
#include "engines/grpc/channel.hpp"
#include "engines/grpc/patience.hpp"

namespace farheap::engines {

class ServerClient {
 public:
  virtual ~ServerClient() = default;
  ServerClient(const ServerClient&) = delete;
  ServerClient& operator=(const ServerClient&) = delete;

  [[nodiscard]] const std::string& shown() const { return shown_; }  // the URI without secrets
  [[nodiscard]] const ServerPatience& patience() const { return patience_; }
  [[nodiscard]] bool is_emulator() const { return is_emulator_; }  // which keeps nothing
  // nullptr: every request makes sure by itself that the store is the one that was opened.
  [[nodiscard]] ConnectionWatch* watch() { return watch_ ? &*watch_ : nullptr; }

  // Of what only reads; and of what writes, which must not go on in a store that was made anew.
  [[nodiscard]] Attempts attempts() { return Attempts(patience_, watch()); }
  [[nodiscard]] Attempts writing_attempts() { return Attempts(patience_, watch(), &may_write_); }
  void ask_before_writing_again(std::function<bool()> may_write) { may_write_ = std::move(may_write); }
  // For the end, when there is nothing to lose: a server that is gone is not waited for.
  virtual void hurry() { patience_.all = std::min<std::chrono::milliseconds>(patience_.all, std::chrono::seconds(3)); }

  [[nodiscard]] virtual Error error(const grpc::Status& status, std::string what) const {
    return grpc_error(status, std::move(what), shown_, patience_);
  }

 protected:
  ServerClient(std::string shown, ServerPatience patience, bool is_emulator,
               std::shared_ptr<grpc::Channel> watched = nullptr)
      : shown_(std::move(shown)), patience_(patience), is_emulator_(is_emulator) {
    if (watched != nullptr) watch_.emplace(std::move(watched));
  }

 private:
  std::string shown_;
  ServerPatience patience_;
  bool is_emulator_;
  std::optional<ConnectionWatch> watch_;
  std::function<bool()> may_write_;
};

}  // namespace farheap::engines
