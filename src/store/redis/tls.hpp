// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// TLS 1.2 over a socket, by BearSSL: it allocates nothing, has no threads and no state of its own, so it may be used
// where a page of a program is fetched, beside whatever TLS library the program has, and after a fork.
//
// The server's certificate is checked against the authorities of ca_file (by default those of the system) and against
// the host's name, or server_name. BearSSL knows names and no addresses: a server that is named by its address needs
// that as a name in its certificate. A server that asks who we are is shown the certificate of cert_file.
//
// Thread-safety: TlsSettings and what they hold: any thread. TlsSession: one thread at a time.
#pragma once

#include <sys/uio.h>

#include <farheap/result.hpp>
#include <functional>
#include <memory>
#include <span>
#include <string>

namespace farheap::store::redis {

// Who may vouch for a server.
class Authorities {
 public:
  // Of a file in PEM. kNotFound, kInvalidArgument if it has no certificate in it; kUnavailable without BearSSL.
  [[nodiscard]] static Result<std::shared_ptr<const Authorities>> load(const std::string& file);
  ~Authorities();
  Authorities(const Authorities&) = delete;
  Authorities& operator=(const Authorities&) = delete;
  struct Parts;

 private:
  friend class TlsSession;
  Authorities();
  std::unique_ptr<Parts> parts_;
};

// Who we are: a certificate, those of the authorities below its root if the server has only that, and its key.
class ClientCertificate {
 public:
  // Of files in PEM. kNotFound, kInvalidArgument: what is not in them, in words without a byte of the key.
  [[nodiscard]] static Result<std::shared_ptr<const ClientCertificate>> load(const std::string& certificates,
                                                                             const std::string& key);
  ~ClientCertificate();
  ClientCertificate(const ClientCertificate&) = delete;
  ClientCertificate& operator=(const ClientCertificate&) = delete;
  struct Parts;

 private:
  friend class TlsSession;
  ClientCertificate();
  std::unique_ptr<Parts> parts_;
};

struct TlsSettings {
  std::shared_ptr<const Authorities> authorities;
  std::shared_ptr<const ClientCertificate> own;  // null: none
  std::string server_name;                       // empty: the host's
};

// How bytes get to the other side and back: as send() and recv(), -1 and 0 for "no more".
struct TlsTransport {
  std::function<ssize_t(const void*, std::size_t)> send;
  std::function<ssize_t(void*, std::size_t)> receive;
};

class TlsSession {
 public:
  // `host`: the name that must be in the certificate, unless the settings have one. The handshake comes with the first
  // bytes.
  TlsSession(std::shared_ptr<const TlsSettings> settings, const std::string& host, TlsTransport transport);
  ~TlsSession();
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  // False, or 0: it has ended; why() says so, or is empty where the transport failed.
  [[nodiscard]] bool send(std::span<const iovec> pieces);
  [[nodiscard]] std::size_t receive(std::span<const iovec> pieces);
  [[nodiscard]] std::string why() const;

 private:
  struct State;
  [[nodiscard]] bool run_until(unsigned wanted);
  [[nodiscard]] bool take_last_words();
  std::unique_ptr<State> state_;
};

}  // namespace farheap::store::redis
