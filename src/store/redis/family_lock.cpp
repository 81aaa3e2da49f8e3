// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "store/redis/family_lock.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include "os/own_descriptors.hpp"
#include "os/process_name.hpp"

namespace farheap::store::redis {
namespace {

// The socket, or an errno value negated.
int bind_to(const std::string& id) {
  const int file = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (file < 0) return -errno;
  const std::string name = "farheap-scratch:" + id;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (name.size() >= sizeof address.sun_path) return close(file), -ENAMETOOLONG;
  std::memcpy(address.sun_path + 1, name.data(), name.size());  // behind a zero: abstract
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (bind(file, reinterpret_cast<const sockaddr*>(&address), length) == 0) return file;
  const int why = errno;
  close(file);
  return -why;
}

}  // namespace

FamilyLock::~FamilyLock() { os::release_descriptor(socket_); }

bool FamilyLock::take(const std::string& id) {
  const int file = bind_to(id);
  if (file >= 0) socket_ = os::keep_descriptor(file);
  return file >= 0;
}

FamilyLock::Holder FamilyLock::holder(const std::string& id) {
  const int file = bind_to(id);
  if (file < 0) return file == -EADDRINUSE ? Holder::kSomebody : Holder::kUnknown;
  close(file);
  return Holder::kNobody;
}

std::string FamilyLock::machine() {
  struct stat network{};
  const auto boot = os::name_of_this_process().boot;
  if (boot == 0 || stat("/proc/self/ns/net", &network) != 0) return {};
  return fmt::format("{:016x}.{:x}", boot, network.st_ino);
}

}  // namespace farheap::store::redis
