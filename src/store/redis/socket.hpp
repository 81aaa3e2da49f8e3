// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One connection's bytes. Close-on-exec, never a signal, and a number that the program under us leaves alone
// (os/own_descriptors.hpp). A call waits while something moves, for timeout_ms without, and never beyond its deadline:
// neither for an answer that comes byte by byte, nor for a connection, nor for TLS.
//
// Thread-safety: one thread at a time.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "store/deadline.hpp"
#include "store/redis/place.hpp"
#include "store/redis/replies.hpp"
#include "store/redis/tls.hpp"

namespace farheap::store::redis {

class Socket final : public ByteSource {
 public:
  Socket() = default;
  ~Socket() override { close(); }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  // Of all that follows, the connecting included, until the next: after it nothing is sent or waited for. Never, at
  // first.
  void set_deadline(Deadline deadline) { deadline_ = deadline; }
  // False: why() says it. The host's name is looked up anew (names_of_hosts.hpp).
  [[nodiscard]] bool connect(const Address& address, int timeout_ms, std::shared_ptr<const TlsSettings> tls = {});
  void close();
  [[nodiscard]] bool is_open() const { return file_ >= 0; }
  [[nodiscard]] int descriptor() const { return file_; }

  // All of it; what the pieces refer to is changed. False: the connection is of no use any more.
  [[nodiscard]] bool send(std::span<iovec> pieces);
  [[nodiscard]] std::size_t receive(std::span<iovec> pieces) override;
  // 0 and still open if nothing is there.
  [[nodiscard]] std::size_t receive_at_once(std::span<iovec> pieces) override;

  [[nodiscard]] const std::string& why() const { return why_; }
  void give_up(std::string why) override;

 private:
  [[nodiscard]] bool connect_to(const void* address, unsigned length, int family);
  [[nodiscard]] std::size_t receive_by(std::span<iovec> pieces, int flags);
  [[nodiscard]] ssize_t receive_plain(std::span<iovec> pieces, int flags);
  [[nodiscard]] ssize_t send_plain(std::span<iovec> pieces);
  void start_tls(std::shared_ptr<const TlsSettings> tls, const std::string& host);

  // Has the kernel wait for what timeout_ms and the deadline leave. False: they leave nothing (errno is ETIME).
  [[nodiscard]] bool limit_wait();

  int file_ = -1;
  int timeout_ms_ = 0;
  int limit_ms_ = 0;  // that the kernel has been told
  Deadline deadline_;
  int flags_ = 0;  // of recv(), below TLS
  std::unique_ptr<TlsSession> tls_;
  std::string why_;
};

}  // namespace farheap::store::redis
