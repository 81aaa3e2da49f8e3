// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A program that links the library and may be given rights that who starts it has not. Says what it finds in its
// environment; with "start PROGRAM", starts that as farheap-engines, and waits for the end of its input.
#include <unistd.h>

#include <cstdio>
#include <string>

#include "base/environment.hpp"
#include "base/options.hpp"
#include "store/beside/process.hpp"

int main(int count, char** words) {
  using namespace farheap;
  std::printf("raised %d\n", static_cast<int>(base::has_raised_rights()));
  const char* const telltale = base::environment("TELLTALE");
  std::printf("variable %s\n", telltale != nullptr ? telltale : "none");
  std::size_t lines = 0;
  for (auto at = base::environment_lines(); *at != nullptr; ++at) ++lines;
  std::printf("lines %s\n", lines == 0 ? "none" : "some");
  const auto loaded = base::load_options(base::environment_lines());
  std::printf("store %s\n", loaded ? loaded->options.store.c_str() : "wrong");
  const auto engines = store::beside::find_engines();
  std::printf("engines %s\n", engines ? engines->c_str() : "none");
  if (count > 2 && std::string(words[1]) == "start") {
    const auto started = store::beside::start_engines(words[2]);
    std::printf("started %d\n", static_cast<int>(started.has_value()));
    std::fflush(stdout);
    char input = 0;
    while (read(STDIN_FILENO, &input, 1) > 0) {
    }
  }
  return 0;
}
