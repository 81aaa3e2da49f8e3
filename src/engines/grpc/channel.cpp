// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engines/grpc/channel.hpp"

#include <openssl/crypto.h>

#include <string_view>

#include "base/environment.hpp"

namespace farheap::engines {

namespace {
// It counts at OpenSSL's first call alone, and does nothing later.
void keep_openssl() { OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, nullptr); }
}  // namespace

std::shared_ptr<grpc::ChannelCredentials> tls_credentials(const grpc::SslCredentialsOptions& options) {
  keep_openssl();
  return grpc::SslCredentials(options);
}

std::shared_ptr<grpc::Channel> make_channel(const std::string& address,
                                            const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
  // No engine asks for more in one request: they cut batches into requests of 1 to 4 MiB, or of one block where that is
  // longer, and a byte may become four thirds of one. Metadata have gRPC's own limit of 8 KiB.
  constexpr int kLongestAnswer = 16 << 20;
  constexpr int kLongestRequest = 256 << 20;
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kLongestAnswer);
  arguments.SetMaxSendMessageSize(kLongestRequest);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 1000);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  // A server that was moved is found by its name again.
  arguments.SetInt(GRPC_ARG_DNS_MIN_TIME_BETWEEN_RESOLUTIONS_MS, 1000);
  // What is asked again is decided in one place, which also knows that the connection is another one then.
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  // Otherwise two stores of a process share a connection, and one of them may take it for unbroken.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  return grpc::CreateCustomChannel(address, credentials, arguments);
}

Result<GoogleChannel> google_channel(const char* emulator_variable, const std::string& address,
                                     const std::string& subject) {
  if (const char* host = base::environment(emulator_variable); host != nullptr && *host != '\0') {
    std::string_view emulator = host;
    if (const auto at = emulator.find("://"); at != std::string_view::npos) emulator.remove_prefix(at + 3);
    return GoogleChannel{make_channel(std::string(emulator), grpc::InsecureChannelCredentials()), true};
  }
  keep_openssl();
  auto credentials = grpc::GoogleDefaultCredentials();
  if (credentials == nullptr) {
    return fail(
        ErrorCode::kPermission, "cannot open the store", subject, "there are no credentials for Google's services",
        "name a key file in GOOGLE_APPLICATION_CREDENTIALS or run `gcloud auth application-default login`; for an "
        "emulator, set " +
            std::string(emulator_variable));
  }
  return GoogleChannel{make_channel(address, credentials), false};
}

}  // namespace farheap::engines
