// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// In the place of tls.cpp where BearSSL is missing.
#include "store/redis/tls.hpp"

namespace farheap::store::redis {

struct Authorities::Parts {};
Authorities::~Authorities() = default;

Result<std::shared_ptr<const Authorities>> Authorities::load(const std::string&) {
  return fail(
      ErrorCode::kUnavailable, "cannot use TLS", "rediss:", "this build of Farheap is without BearSSL",
      "configure with libbearssl-dev installed; or run a tunnel (docs/stores.md) and name its end with redis://");
}

struct ClientCertificate::Parts {};
ClientCertificate::~ClientCertificate() = default;

// Nobody gets here without authorities.
Result<std::shared_ptr<const ClientCertificate>> ClientCertificate::load(const std::string&, const std::string&) {
  return std::shared_ptr<const ClientCertificate>();
}

struct TlsSession::State {};
TlsSession::TlsSession(std::shared_ptr<const TlsSettings>, const std::string&, TlsTransport) {}
TlsSession::~TlsSession() = default;
bool TlsSession::send(std::span<const iovec>) { return false; }
std::size_t TlsSession::receive(std::span<const iovec>) { return 0; }
std::string TlsSession::why() const { return {}; }

}  // namespace farheap::store::redis
