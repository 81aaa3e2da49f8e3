// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "address_room.hpp"

#include <fmt/format.h>

#include "base/units.hpp"
#include "os/mapping.hpp"
#include "segment/address_slots.hpp"
#include "store/uri.hpp"

namespace farheap::tool {

using base::format_size;

static constexpr char kCannotReserve[] = "cannot reserve the addresses of a heap";

std::uint64_t addresses_needed(std::string_view store_uri) {
  if (const auto parts = store::split_uri(store_uri)) {
    const auto least = segment::kAddressesOfAProcess;
    return addresses_needed(parts->pages) + addresses_needed(parts->sync) - least;
  }
  const auto decorated = store_uri.substr(0, store_uri.find(':'));
  const auto engine = decorated.substr(decorated.rfind('+') + 1);  // npos + 1 is 0
  return segment::kAddressesOfAProcess + (engine == "lmdb" ? base::kTiB : 0);
}

Status check_address_limit(const os::MachineLimits& limits, std::uint64_t needed) {
  if (!limits.address_space_bytes || *limits.address_space_bytes >= needed) return {};
  const bool may_raise = !limits.address_space_hard_bytes || *limits.address_space_hard_bytes >= needed;
  return fail(ErrorCode::kNoSpace, kCannotReserve, "RLIMIT_AS (`ulimit -v`)",
              fmt::format("it allows {}, and a process of a run reserves {} (addresses, not memory)",
                          format_size(*limits.address_space_bytes), format_size(needed)),
              may_raise ? "ulimit -S -v unlimited"
                        : "run from a shell or service without this limit: it is a hard one, set by `ulimit -v`, "
                          "limits.conf or LimitAS=");
}

Status check_overcommit_mode(const os::MachineLimits& limits, bool grants_reservation) {
  if (grants_reservation || limits.overcommit != os::OvercommitMode::kNever) return {};
  return fail(
      ErrorCode::kNoSpace, kCannotReserve, "vm.overcommit_memory = 2",
      fmt::format("in this mode the kernel counts reserved addresses as memory, and a process of a run reserves {}",
                  format_size(segment::kAddressesOfAProcess)),
      "sudo sysctl vm.overcommit_memory=0");
}

bool try_to_reserve(std::uint64_t bytes) { return os::Mapping::reserve(bytes, os::Access::kReadWrite).has_value(); }

Status check_addresses(std::string_view store_uri) {
  const auto limits = os::detect_machine_limits();
  if (Status limited = check_address_limit(limits, addresses_needed(store_uri)); !limited) return limited;
  return check_overcommit_mode(limits, try_to_reserve(segment::kAddressesOfAProcess));
}

}  // namespace farheap::tool
