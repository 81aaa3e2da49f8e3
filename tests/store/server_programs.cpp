// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tests/store/server_programs.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "tests/store/loopback.hpp"

namespace farheap::test {
namespace {

namespace fs = std::filesystem;

// What a server answers to `question`; empty if it does not.
std::string ask(std::uint16_t port, std::string_view question) {
  const int socket = connect_to(port);
  if (socket < 0) return {};
  const timeval patience{.tv_sec = 2, .tv_usec = 0};
  setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  std::string answer;
  if (send_all(socket, question.data(), question.size())) {
    char buffer[4096];
    const ssize_t got = recv(socket, buffer, sizeof buffer, 0);
    if (got > 0) answer.assign(buffer, static_cast<std::size_t>(got));
  }
  close(socket);
  return answer;
}

bool says(std::uint16_t port, std::string_view question, std::string_view wanted) {
  return ask(port, question).find(wanted) != std::string::npos;
}

std::string in_path(std::string_view program) {
  std::istringstream folders(std::getenv("PATH") != nullptr ? std::getenv("PATH") : "");
  for (std::string folder; std::getline(folders, folder, ':');) {
    const auto path = fs::path(folder) / program;
    if (access(path.c_str(), X_OK) == 0) return path;
  }
  return {};
}

// The folder of a Cloud SDK: FARHEAP_CLOUD_SDK, or where gcloud or cbt in PATH belong to. Empty: there is none.
fs::path cloud_sdk() {
  if (const char* named = std::getenv("FARHEAP_CLOUD_SDK"); named != nullptr && *named != '\0') return named;
  for (const auto* program : {"gcloud", "cbt"}) {
    std::error_code error;
    const auto real = fs::canonical(in_path(program), error);
    if (!error && real.parent_path().filename() == "bin") return real.parent_path().parent_path();
  }
  return {};
}

tl::unexpected<Error> not_there(std::string what, std::string remedy) {
  return fail(ErrorCode::kUnavailable, "cannot start a server", std::move(what), "it is not on this machine",
              std::move(remedy));
}

}  // namespace

Result<std::string> program(std::string_view name, std::string_view package) {
  auto found = in_path(name);
  if (found.empty()) return not_there(std::string(name), fmt::format("apt install {}", package));
  return found;
}

// Debian's redis-server is a link to this program of redis-tools, which looks at the name it is called by. So no
// service has to be installed.
Result<std::string> redis_program() { return program("redis-check-rdb", "redis-tools"); }

Result<std::string> of_cloud_sdk(std::string_view path, std::string_view component) {
  const auto sdk = cloud_sdk();
  std::error_code error;
  if (!sdk.empty() && fs::exists(sdk / path, error)) return (sdk / path).string();
  return not_there(
      fmt::format("{} of a Cloud SDK ({})", path, sdk.empty() ? "none found" : sdk.string()),
      fmt::format("put a Cloud SDK with the component {} into PATH, or name it in FARHEAP_CLOUD_SDK", component));
}

bool takes_connections(std::uint16_t port) {
  const int socket = connect_to(port);
  if (socket >= 0) close(socket);
  return socket >= 0;
}

bool answers_as_redis(std::uint16_t port) {
  const auto answer = ask(port, "PING\r\n");
  return answer.starts_with("+PONG") || answer.starts_with("-NOAUTH");
}
bool is_whole_cluster(std::uint16_t port) { return says(port, "CLUSTER INFO\r\n", "cluster_state:ok"); }
bool answers_as_etcd(std::uint16_t port) {
  return says(port, "GET /health HTTP/1.0\r\nHost: localhost\r\n\r\n", "\"health\":\"true\"");
}
// The first frame of a gRPC server is its settings (RFC 9113, 3.4), which a Java program may take seconds for.
bool answers_as_grpc(std::uint16_t port) {
  constexpr std::string_view kPreface("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0", 33);
  const auto answer = ask(port, kPreface);
  return answer.size() >= 9 && answer[3] == 4;
}

}  // namespace farheap::test
