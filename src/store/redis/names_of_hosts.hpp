// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The addresses of a host, asked for anew with each connection: a server that was moved is found by its name again. A
// look-up that is less than a second old is not repeated.
//
// The C library allocates for it, by a malloc() that the program may have locked while its page is fetched, and may
// wait for long. So a thread of the runtime's does it, who asks waits only so long, and where no answer comes in time,
// or none at all, what was found before is used.
//
// Thread-safety: any thread; also after a fork while another thread was inside.
#pragma once

#include <sys/socket.h>

#include <chrono>
#include <cstring>
#include <string>
#include <vector>

#include "store/redis/place.hpp"

namespace farheap::store::redis {

struct HostAddress {
  sockaddr_storage address{};
  socklen_t length = 0;
  friend bool operator==(const HostAddress& one, const HostAddress& other) {
    return one.length == other.length && std::memcmp(&one.address, &other.address, one.length) == 0;
  }
};

// At most sixteen. Empty: `why` says it.
[[nodiscard]] std::vector<HostAddress> addresses_of(const Address& host, std::chrono::nanoseconds patience,
                                                    std::string& why);
// Nobody was there: the next one asks again, however soon.
void forget_addresses_of(const Address& host);
// In a forked child, where no thread is: one again, if there was one. The runtime starts no other thread meanwhile.
void renew_names_of_hosts();

}  // namespace farheap::store::redis
