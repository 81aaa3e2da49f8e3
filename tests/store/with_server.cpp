// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// with_server ENGINE COMMAND...: starts the servers of an engine, runs the command with their URI in place of each word
// "@STORE", and ends with its status. 77, with a loud line, if this build or this machine has not what it takes.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "tests/store/server_engines.hpp"

namespace farheap::test {
namespace {

int run(const Engine& engine, std::vector<char*> words) {
  if (!is_in_build(engine)) return not_tested(engine.name, "it is not in this build");
  auto servers = engine.start();
  if (!servers) return not_tested(engine.name, servers.error().message());
  servers->set_environment();
  for (char*& word : words) {
    if (std::strcmp(word, "@STORE") == 0) word = servers->uri.data();
  }
  words.push_back(nullptr);
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    execvp(words[0], words.data());
    std::perror(words[0]);
    _exit(127);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) return 1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace
}  // namespace farheap::test

int main(int count, char** values) {
  for (const auto& engine : farheap::test::kEngines) {
    if (count > 2 && engine.name == values[1]) {
      return farheap::test::run(engine, std::vector<char*>(values + 2, values + count));
    }
  }
  std::puts("usage: with_server ENGINE COMMAND...; @STORE in it stands for the servers' URI");
  return 2;
}
