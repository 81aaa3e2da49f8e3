// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sockets of 127.0.0.1, for the servers of tests and for what stands between them and their clients.
//
// Thread-safety: any thread.
#pragma once

#include <netinet/in.h>

#include <cstddef>
#include <cstdint>

namespace farheap::test {

[[nodiscard]] sockaddr_in loopback(std::uint16_t port);
// A port of 127.0.0.1 that was free a moment ago.
[[nodiscard]] std::uint16_t free_port();
// Without a delay for small writes. -1: nobody is there.
[[nodiscard]] int connect_to(std::uint16_t port);
// A socket that listens on a port of its own, which it says.
[[nodiscard]] int listen_on_any(std::uint16_t& port);
// False: the other side is gone.
[[nodiscard]] bool send_all(int socket, const char* bytes, std::size_t count);

}  // namespace farheap::test
