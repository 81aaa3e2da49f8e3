// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engines/grpc/patience.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <string_view>
#include <thread>

#include "store/deadline.hpp"

namespace farheap::engines {
namespace {

constexpr std::chrono::milliseconds kLongestPause{1000};

// gRPC has one code for 'never sent' and 'sent, and the connection broke'. These are the words of its channel when no
// connection could be made.
bool was_never_sent(const grpc::Status& status) {
  const std::string words = status.error_message();  // it is a copy
  return words.starts_with("failed to connect to all addresses") || words.starts_with("DNS resolution failed") ||
         words.starts_with("empty address list");
}

// One line, of a length that can be read.
std::string words_of(const grpc::Status& status) {
  constexpr std::size_t kLongest = 300;
  std::string words = status.error_message().substr(0, kLongest);
  std::ranges::replace_if(words, [](unsigned char c) { return c < ' '; }, ' ');
  return words.empty() ? fmt::format("gRPC status {}", static_cast<int>(status.error_code())) : words;
}

}  // namespace

Result<ServerPatience> server_patience(const store::Parameters& parameters) {
  constexpr std::uint64_t kDay = std::uint64_t{24} * 60 * 60;
  const ServerPatience usual;
  const auto attempt = parameters.number("timeout_ms", static_cast<std::uint64_t>(usual.attempt.count()));
  if (!attempt) return fail(attempt.error());
  if (*attempt == 0 || *attempt > kDay * 1000) {
    return parameters.wrong("timeout_ms", "it is not between 1 ms and a day", "write timeout_ms=5000");
  }
  const auto all = parameters.number("patience_s", static_cast<std::uint64_t>(usual.all.count()) / 1000);
  if (!all) return fail(all.error());
  if (*all > kDay) return parameters.wrong("patience_s", "it is more than a day", "write patience_s=60");
  return ServerPatience{.attempt = std::chrono::milliseconds(*attempt), .all = std::chrono::seconds(*all)};
}

Reply reply_of(const grpc::Status& status) {
  switch (status.error_code()) {
    case grpc::StatusCode::OK: return Reply::kDone;
    case grpc::StatusCode::UNAVAILABLE: return was_never_sent(status) ? Reply::kNotSent : Reply::kUnclear;
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
      // gRPC's own limit of one message has the same code, and does not pass.
      return status.error_message().find("larger than max") != std::string::npos ? Reply::kRefused : Reply::kNotNow;
    case grpc::StatusCode::ABORTED: return Reply::kNotNow;
    case grpc::StatusCode::DEADLINE_EXCEEDED:
    case grpc::StatusCode::CANCELLED:
    case grpc::StatusCode::INTERNAL:  // a stream that was cut is this, or UNKNOWN
    case grpc::StatusCode::UNKNOWN: return Reply::kUnclear;
    default: return Reply::kRefused;
  }
}

std::chrono::system_clock::time_point Attempts::deadline() const {
  const std::chrono::nanoseconds left = store::Deadline::of_this_call().left();
  return std::chrono::system_clock::now() + std::min<std::chrono::nanoseconds>(patience_.attempt, left);
}

bool Attempts::again(const grpc::Status& status) {
  const auto reply = reply_of(status);
  if (reply == Reply::kUnclear) was_unclear_ = true;
  if (watch_ != nullptr) watch_->doubt();
  if (!is_passing(reply)) return false;
  const auto now = std::chrono::steady_clock::now();
  if (!failing_) {
    failing_ = true;
    pause_ = std::chrono::milliseconds(10);
    // An attempt that timed out has waited already.
    since_ = status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED ? now - patience_.attempt : now;
  }
  if (now - since_ >= patience_.all || store::Deadline::of_this_call().has_passed()) return false;
  // Between half of it and all of it, so that clients that were refused together do not come back together.
  thread_local std::minstd_rand random{std::random_device{}()};
  const auto half = pause_.count() / 2;
  const std::chrono::milliseconds pause(half + static_cast<std::int64_t>(random() % (half + 1)));
  std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(pause, store::Deadline::of_this_call().left()));
  pause_ = std::min(pause_ * 2, kLongestPause);
  if (store::Deadline::of_this_call().has_passed()) return false;
  return may_go_on_ == nullptr || !*may_go_on_ || (*may_go_on_)();
}

Error grpc_error(const grpc::Status& status, std::string what, std::string subject, const ServerPatience& patience) {
  const std::string words = words_of(status);
  const double seconds = static_cast<double>(patience.all.count()) / 1000;
  switch (status.error_code()) {
    case grpc::StatusCode::UNAVAILABLE:
    case grpc::StatusCode::DEADLINE_EXCEEDED:
    case grpc::StatusCode::CANCELLED:
      return {ErrorCode::kUnavailable, std::move(what), std::move(subject),
              fmt::format("the server has not answered for {:.0f} s ({})", seconds, words),
              "see that it runs and can be reached; patience_s= says how long it is waited for"};
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
      return {ErrorCode::kNoSpace, std::move(what), std::move(subject),
              fmt::format("the server has no room ({})", words), "raise its quota, or make room"};
    case grpc::StatusCode::UNAUTHENTICATED:
    case grpc::StatusCode::PERMISSION_DENIED:
      return {ErrorCode::kPermission, std::move(what), std::move(subject),
              fmt::format("the server does not accept these credentials ({})", words),
              "use an account that may read and write there"};
    case grpc::StatusCode::NOT_FOUND:
      return {ErrorCode::kNotFound, std::move(what), std::move(subject), words,
              "see that the names in the URI are right"};
    case grpc::StatusCode::INVALID_ARGUMENT:
      return {ErrorCode::kInvalidArgument, std::move(what), std::move(subject), words, ""};
    default: return {ErrorCode::kIo, std::move(what), std::move(subject), words, ""};
  }
}

}  // namespace farheap::engines
