// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// farcc and far++: clang with Farheap's passes. One program; the name it is called by says whether it is for C or C++.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "clang.hpp"
#include "command_line.hpp"
#include "link.hpp"

namespace farheap::compiler {
namespace {

constexpr const char kHelp[] = R"(Examples:
  farcc -O2 -c simulation.c             # as clang: with hints to the pager before the loops
  far++ -O2 -o simulation *.cpp && farheap run --memory 1G -- ./simulation
  ./configure CC=farcc CXX=far++        # and: cmake -DCMAKE_C_COMPILER=farcc -DCMAKE_CXX_COMPILER=far++
  farcc -O2 -ffar-report -c kernel.c    # what was hinted, and what was not and why
  farcc -O2 -ffar=translate-heap -o sort sort.c && FARHEAP_FAR_STORE=lmdb:/data/heap ./sort

farcc (far++ for C++) takes every option of clang, and runs it. What it makes runs with and without Farheap; at the
translate levels it is linked to Farheap's runtime. Farheap {version}; docs/compiler.md says more.

  -ffar=LEVEL             one of
      hint                what loops will touch is told to the pager (if no level is said)
      guard               the same, and accesses that may miss look first, and bring their pages themselves
      record              the program counts time and accesses by context and allocation site, and writes a profile when
                          it ends, for `farheap report`; when linking, too
      translate-heap      loads and stores in the heap are gets and puts in a store; when linking, too
      translate-all       those on the stack and in global variables, too; when linking, too
      count               nothing is changed: counts of instructions, for -ffar-report
      none                clang alone
  -ffar-report[=FILE]     what was done, and what was not and why: to standard error, or added to FILE, as JSON lines if
                          its name ends with .jsonl
  -ffar-only=GLOB,...     only these functions (by name, mangled or not) or source files
  -ffar-leave=GLOB,...    not these; in the source: __attribute__((annotate("farheap_leave")))
  -ffar-threshold=SIZE    with hint, guard: a loop over less is not hinted (1M)
  -ffar-guard=record      with guard: the program writes how often its guards missed when it ends; when linking, too
  -ffar-guard=FILE        with guard: only the guards that this profile says miss
  -ffar-borrow=GLOB,...   with translate-heap: functions that were not translated, read or write what they are given
                          before they return, and keep none of it
  -ffar-stack             with translate-heap: the stack is in the store, too
  -ffar-globals           with translate-heap: so are global variables; translate-all is both
  -ffar-count=executed    with count: what is executed is counted, and printed when the program ends; when linking, too
  -ffar-print             print the command for clang, and run nothing
  -Wno-backend-plugin     clang's: no warnings of the passes

  When compiling:
  FARCC_LEVEL=LEVEL, FARCC_REPORT=FILE   the same, for builds that cannot pass options; options count more
  FARCC_CLANG=PROGRAM     the clang to run; it has to be of a version that there are passes for
  FARCC_LAUNCHER=PROGRAM  put in front of it, as ccache
  When what was compiled runs:
  FARHEAP_FAR_STORE=URI   where a translated program has its heap (mem:); `farheap store kinds` lists stores
  FARHEAP_FAR_MODE=MODE   direct: each access reaches the store (if nothing is said); cached: through memory, of
  FARHEAP_FAR_CACHE=SIZE  so much (64M)
  FARCC_PROFILE=FILE      where a program of -ffar=record writes its profile (PROGRAM.profile in its folder)
  FARCC_CONTEXTS_MEMORY=SIZE   what its contexts take at the most, for each thread (64M)
  FARCC_GUARDS=FILE       where a program of -ffar-guard=record adds its profile to (farheap-guards.txt)
  FARCC_COUNTS=FILE       where a program that counts what it executes writes to, instead of standard error

  In the source, for `#if`: __FARCC__ is defined at every level but none, and __FARCC_HINT__, __FARCC_GUARD__,
  __FARCC_COUNT__, __FARCC_RECORD__, __FARCC_TRANSLATE_HEAP__ or __FARCC_TRANSLATE_ALL__ (with the one before) says
  which it is.

{clang} --help lists clang's options.
)";

constexpr const char kBare[] =
    "farcc: no input files: name a source, as in `farcc -O2 -c simulation.c`; `farcc --help` says what it adds to "
    "clang";

int complain(const std::string& message, int status) {
  fmt::print(stderr, "{}\n", message);
  return status;
}

// Returns only if it fails.
int become(const std::vector<std::string>& words) {
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  const int error = errno;
  const char* remedy = error == E2BIG ? "; keep options that begin with -ffar out of response files" : "";
  return complain(fmt::format("farcc: cannot run {}: {}{}", words[0], std::strerror(error), remedy), 1);
}

int run(int argc, char** argv) {
  const std::string called = argc > 0 ? std::filesystem::path(argv[0]).filename().string() : "farcc";
  const auto line = read_command_line({argv + (argc > 0 ? 1 : 0), argv + argc});
  if (!line) return complain(line.error().message(), 2);
  if (line->clang.empty()) return complain(kBare, 1);
  if (line->wishes.help) {
    const auto clang = choose_clang(library_folders());
    const std::string name = clang ? clang->program.string() : "clang-19";
    fmt::print(kHelp, fmt::arg("version", FARHEAP_VERSION), fmt::arg("clang", name));
    return 0;
  }
  for (const std::string& warning : line->warnings) fmt::print(stderr, "farcc: warning: {}\n", warning);
  const auto words = command(*line, called.find("++") != std::string::npos);
  if (!words) return complain(words.error().message(), 1);
  if (line->wishes.print) {
    fmt::print("{}\n", quoted(*words));
    return 0;
  }
  return links_objects(*line) ? link(*line, *words) : become(*words);
}

}  // namespace
}  // namespace farheap::compiler

int main(int argc, char** argv) { return farheap::compiler::run(argc, argv); }
