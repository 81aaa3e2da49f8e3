// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Connections of gRPC engines, and whether they are still those that they were.
//
// Thread-safety: any thread.
#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <cstdint>
#include <farheap/result.hpp>
#include <memory>
#include <string>

namespace farheap::engines {

// Answers of at most 16 MiB each; a lost connection is made again at once, then after at most a second.
[[nodiscard]] std::shared_ptr<grpc::Channel> make_channel(const std::string& address,
                                                          const std::shared_ptr<grpc::ChannelCredentials>& credentials);

// For make_channel(): by TLS. To be asked for before the process uses OpenSSL in other ways; else what follows does not
// hold. OpenSSL goes on when the process ends: gRPC's threads may be in the middle of a handshake then, and crashed on
// its locks that were there no more (gRPC 1.51, OpenSSL 3.0).
[[nodiscard]] std::shared_ptr<grpc::ChannelCredentials> tls_credentials(const grpc::SslCredentialsOptions& options);

// A service of Google: where the environment variable says an emulator listens (without TLS, without credentials), else
// at `address` by TLS with the credentials that Google's libraries look for (GOOGLE_APPLICATION_CREDENTIALS, gcloud's
// default, the machine's account). kPermission if there are none. `subject` names the store in errors.
struct GoogleChannel {
  std::shared_ptr<grpc::Channel> channel;
  bool is_emulator = false;
};
[[nodiscard]] Result<GoogleChannel> google_channel(const char* emulator_variable, const std::string& address,
                                                   const std::string& subject);

// Remembers that a connection was, or may have been, lost: what is behind the new one may be another server, or the
// same one after it lost everything, so its identity has to be looked at before its answers are believed.
class ConnectionWatch {
 public:
  explicit ConnectionWatch(std::shared_ptr<grpc::Channel> channel) : channel_(std::move(channel)) {}
  // Before and after each call.
  void look() {
    if (channel_->GetState(false) != GRPC_CHANNEL_READY) doubt();
  }
  void doubt() { ++breaks_; }
  [[nodiscard]] bool is_verified() const { return verified_ == breaks_; }
  // Verifying: breaks(), then read the identity, then verified() with what breaks() said.
  [[nodiscard]] std::uint64_t breaks() const { return breaks_; }
  void verified(std::uint64_t breaks) { verified_ = breaks; }

 private:
  std::shared_ptr<grpc::Channel> channel_;
  std::atomic<std::uint64_t> breaks_{0};
  std::atomic<std::uint64_t> verified_{0};
};

}  // namespace farheap::engines
