// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where the programs of servers are on this machine, and how each says that it is ready.
//
// Thread-safety: any thread.
#pragma once

#include <cstdint>
#include <farheap/result.hpp>
#include <string>
#include <string_view>

namespace farheap::test {

// In PATH; kUnavailable with the package that has it, if it is not.
[[nodiscard]] Result<std::string> program(std::string_view name, std::string_view package);
[[nodiscard]] Result<std::string> redis_program();
[[nodiscard]] Result<std::string> of_cloud_sdk(std::string_view path, std::string_view component);

[[nodiscard]] bool takes_connections(std::uint16_t port);
[[nodiscard]] bool answers_as_redis(std::uint16_t port);
[[nodiscard]] bool is_whole_cluster(std::uint16_t port);
[[nodiscard]] bool answers_as_etcd(std::uint16_t port);
[[nodiscard]] bool answers_as_grpc(std::uint16_t port);

}  // namespace farheap::test
