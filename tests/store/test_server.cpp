// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tests/store/test_server.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

namespace farheap::test {

namespace fs = std::filesystem;

bool await(const std::function<bool()>& holds) {
  for (const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
       std::chrono::steady_clock::now() < end;) {
    if (holds()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return false;
}

Result<std::unique_ptr<TestServer>> TestServer::start(ServerCommand command, const std::string& folder) {
  auto server = begin(std::move(command), folder);
  if (!server) return server;
  if (auto ready = (*server)->await_ready(); !ready) return fail(std::move(ready.error()));
  return server;
}

Result<std::unique_ptr<TestServer>> TestServer::begin(ServerCommand command, const std::string& folder) {
  std::unique_ptr<TestServer> server(new TestServer(std::move(command), folder));
  fs::create_directories(folder);
  if (auto ok = server->launch(); !ok) return fail(std::move(ok.error()));
  return server;
}

TestServer::~TestServer() {
  kill();
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

std::string TestServer::address() const { return fmt::format("127.0.0.1:{}", command_.port); }

Status TestServer::start_again() {
  if (auto ok = launch(); !ok) return ok;
  return await_ready();
}

Status TestServer::launch() {
  std::vector<char*> words;
  for (auto& word : command_.words) words.push_back(word.data());
  words.push_back(nullptr);
  const std::string log = folder_ + "/server.log";
  const pid_t parent = getpid();
  process_ = fork();
  if (process_ < 0) return fail(errno_error(errno, "cannot start a server", command_.name));
  if (process_ > 0) return {};
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // it has died in the meantime
  setpgid(0, 0);                      // Ctrl-C is for the test
  const int out = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  dup2(out, STDOUT_FILENO);
  dup2(out, STDERR_FILENO);
  const int none = open("/dev/null", O_RDONLY);
  dup2(none, STDIN_FILENO);
  close_range(3, ~0u, 0);
  if (chdir(folder_.c_str()) == 0) execv(command_.program.c_str(), words.data());
  _exit(127);
}

Status TestServer::await_ready() {
  bool has_ended = false;
  const bool ready = await([&] {
    int status = 0;
    has_ended = waitpid(process_, &status, WNOHANG) == process_;
    return has_ended || command_.is_ready(command_.port);
  });
  if (has_ended) process_ = 0;
  if (ready && !has_ended) return {};
  const auto why = fmt::format("{}:\n{}", has_ended ? "it ended at once" : "it is not ready", last_words());
  kill();
  return fail(ErrorCode::kUnavailable, "cannot start a server", command_.program, why);
}

std::string TestServer::last_words() const {
  std::ostringstream all;
  all << std::ifstream(folder_ + "/server.log").rdbuf();
  const auto text = all.str();
  return text.substr(text.size() - std::min<std::size_t>(text.size(), 2000));
}

void TestServer::kill() {
  if (process_ <= 0) return;
  ::kill(process_, SIGKILL);
  while (waitpid(process_, nullptr, 0) < 0 && errno == EINTR) continue;
  process_ = 0;
}

void TestServer::freeze() { ::kill(process_, SIGSTOP); }
void TestServer::thaw() { ::kill(process_, SIGCONT); }

}  // namespace farheap::test
