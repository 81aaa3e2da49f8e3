// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "interruption.hpp"

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string_view>

namespace farheap::tool {
namespace {

constexpr int kSignals[] = {SIGHUP, SIGINT, SIGTERM};

}  // namespace

volatile std::sig_atomic_t Interruption::noted_ = 0;

Interruption::Interruption() {
  struct sigaction noting{}, before{};
  noting.sa_handler = [](int signal) {
    const int error = errno;
    for (const int one : kSignals) ::signal(one, SIG_DFL);
    noted_ = signal;
    constexpr std::string_view kText = "farheap: ending, and removing what was begun; once more ends at once\n";
    (void)!write(STDERR_FILENO, kText.data(), kText.size());
    errno = error;
  };
  for (const int one : kSignals) {  // without SA_RESTART: who waits, wakes up
    if (sigaction(one, nullptr, &before) == 0 && before.sa_handler == SIG_DFL) sigaction(one, &noting, nullptr);
  }
}

Interruption::~Interruption() {
  struct sigaction now{};
  for (const int one : kSignals) {
    if (sigaction(one, nullptr, &now) == 0 && now.sa_handler != SIG_IGN) signal(one, SIG_DFL);
  }
}

void Interruption::end() {
  const int number = noted_;
  signal(number, SIG_DFL);
  raise(number);
  _exit(128 + number);  // blocked by whoever started the tool
}

}  // namespace farheap::tool
