// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One server of a test: a process on a free port of 127.0.0.1, in a folder of its own, ended by its own process number,
// also when the test dies first. None that was there already is ever touched.
//
// Thread-safety: one thread, which lives as long as the server does (the kernel ends it with it).
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

// Asks again until it holds, for a minute: far longer than any server takes, so that only a broken one fails.
[[nodiscard]] bool await(const std::function<bool()>& holds);

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
  [[nodiscard]] std::string last_words() const;  // of its log
  void kill();                                   // as kill -9 does
  [[nodiscard]] Status start_again();            // where kill() was: in the same folder, on the same port
  void freeze();                                 // it takes connections and answers nothing
  void thaw();

 private:
  TestServer(ServerCommand command, std::string folder) : command_(std::move(command)), folder_(std::move(folder)) {}
  [[nodiscard]] Status launch();
  ServerCommand command_;
  std::string folder_;
  pid_t process_ = 0;
};

}  // namespace farheap::test
