// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How a gRPC server is asked, and what its answer means: every attempt has a time limit, and a server that does not
// answer, or refuses for the time being, is asked again with growing pauses until patience is over.
//
// What a gRPC code says about whether a request was carried out is in the table of reply_of(); the codes are those of
// https://grpc.github.io/grpc/core/md_doc_statuscodes.html.
//
// Thread-safety: Attempts: one thread; the rest are plain values and functions.
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <farheap/result.hpp>
#include <functional>
#include <string>

#include "engines/grpc/channel.hpp"
#include "store/uri.hpp"

namespace farheap::engines {

struct ServerPatience {
  std::chrono::milliseconds attempt{5000};  // timeout_ms
  std::chrono::milliseconds all{60000};     // patience_s
};
[[nodiscard]] Result<ServerPatience> server_patience(const store::Parameters& parameters);

enum class Reply {
  kDone,
  kNotSent,  // there was no connection: it has not happened
  kNotNow,   // refused for the time being: it has not happened
  kUnclear,  // sent, perhaps, and no answer: it may have happened, or may still happen
  kRefused,  // for good
};
[[nodiscard]] Reply reply_of(const grpc::Status& status);
// Worth another attempt, if doing it twice does no harm.
[[nodiscard]] inline bool is_passing(Reply reply) { return reply != Reply::kDone && reply != Reply::kRefused; }

// The attempts of one operation.
class Attempts {
 public:
  // `watch` is told of every attempt that failed. `may_go_on`, where there is one, is asked before another attempt:
  // what answers now may not be what it was, and must not be written to.
  explicit Attempts(const ServerPatience& patience, ConnectionWatch* watch = nullptr,
                    const std::function<bool()>* may_go_on = nullptr)
      : patience_(patience), watch_(watch), may_go_on_(may_go_on) {}

  [[nodiscard]] std::chrono::system_clock::time_point deadline() const;
  // After a failed attempt: pauses and is true, if it is worth another one and patience is left. Counts from the first
  // failure on, so that it may go on to be used after a success: then call over().
  [[nodiscard]] bool again(const grpc::Status& status);
  void over() { failing_ = false; }
  // One of the attempts may have happened although it failed.
  [[nodiscard]] bool was_unclear() const { return was_unclear_; }

 private:
  ServerPatience patience_;
  ConnectionWatch* watch_;
  const std::function<bool()>* may_go_on_;
  std::chrono::steady_clock::time_point since_{};
  std::chrono::milliseconds pause_{10};
  bool failing_ = false;
  bool was_unclear_ = false;
};

// Asks until there is an answer that lasts. `call` takes a grpc::ClientContext& and makes one attempt.
// Requires: doing it twice does no harm.
template <class Call>
[[nodiscard]] grpc::Status ask(Attempts& attempts, Call call) {
  for (;;) {
    grpc::ClientContext context;
    context.set_deadline(attempts.deadline());
    grpc::Status status = call(context);
    if (status.ok()) attempts.over();
    if (status.ok() || !attempts.again(status)) return status;
  }
}

// In words, with what to do about it. `subject` is the store without secrets.
[[nodiscard]] Error grpc_error(const grpc::Status& status, std::string what, std::string subject,
                               const ServerPatience& patience);

}  // namespace farheap::engines
