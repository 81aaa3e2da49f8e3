// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Servers for tests: started on free ports of 127.0.0.1, in folders of their own, and ended by their own process
// number, also when the test dies first. None that was there already is ever touched.
//
// Thread-safety: one thread, which lives as long as the servers do (the kernel ends them with it).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <farheap/result.hpp>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace farheap::test {

// A port of 127.0.0.1 that was free a moment ago.
[[nodiscard]] std::uint16_t free_port();

struct ServerCommand {
  std::string name;                // "redis"
  std::string program;             // its path
  std::vector<std::string> words;  // its arguments; the first is what it is called as. @ stands for its folder
  std::uint16_t port = 0;
  std::function<bool(std::uint16_t port)> is_ready;
};

// One process. What it says is in `server.log` of its folder, and in the error when it does not start.
class TestServer {
 public:
  // The folder is made, and goes away with the server. kUnavailable if it ends at once or is not ready in a minute.
  [[nodiscard]] static Result<std::unique_ptr<TestServer>> start(ServerCommand command, const std::string& folder);
  // The same without waiting: for servers that are ready only together.
  [[nodiscard]] static Result<std::unique_ptr<TestServer>> begin(ServerCommand command, const std::string& folder);
  [[nodiscard]] Status await_ready();
  ~TestServer();
  TestServer(const TestServer&) = delete;
  TestServer& operator=(const TestServer&) = delete;

  [[nodiscard]] std::uint16_t port() const { return command_.port; }
  [[nodiscard]] std::string address() const;  // "127.0.0.1:6379"
  [[nodiscard]] const std::string& folder() const { return folder_; }
  [[nodiscard]] bool is_running() const { return process_ > 0; }
  void kill();                         // as kill -9 does
  [[nodiscard]] Status start_again();  // where kill() was: in the same folder, on the same port
  void freeze();                       // it takes connections and answers nothing
  void thaw();

 private:
  TestServer(ServerCommand command, std::string folder) : command_(std::move(command)), folder_(std::move(folder)) {}
  [[nodiscard]] Status launch();
  [[nodiscard]] std::string last_words() const;
  ServerCommand command_;
  std::string folder_;
  pid_t process_ = 0;
};

// All that one engine needs.
struct TestServers {
  std::vector<std::unique_ptr<TestServer>> members;
  std::string uri;  // of the namespace `contract` there: "redis://127.0.0.1:7001/0/contract"
  // Variables that the engine reads, and where the build's farheap-engines is; set them before it is opened.
  std::vector<std::pair<std::string, std::string>> environment;
  void set_environment() const;
};
// kUnavailable, with what was looked for, if the program is not on this machine.
[[nodiscard]] Result<TestServers> start_redis(const std::vector<std::string>& arguments = {});
[[nodiscard]] Result<TestServers> start_redis_cluster();  // three primaries with a replica each
[[nodiscard]] Result<TestServers> start_etcd(unsigned count, const std::vector<std::string>& arguments = {});
[[nodiscard]] Result<TestServers> start_bigtable();
[[nodiscard]] Result<TestServers> start_datastore();
[[nodiscard]] Result<TestServers> start_spanner();

}  // namespace farheap::test
