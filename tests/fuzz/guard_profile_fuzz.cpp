// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A profile of guards of whatever text: an error that names the file, or counts.
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>

#include "compiler/passes/guard_profile.hpp"

// A few lines took all memory there is. (libFuzzer has a limit of its own, and its sanitizer needs addresses.)
#if !defined(__clang__) && !defined(__SANITIZE_ADDRESS__)
static const bool is_limited = [] {
  const rlimit limit{std::uint64_t{1} << 30, std::uint64_t{1} << 30};
  return setrlimit(RLIMIT_DATA, &limit) == 0;
}();
#endif

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  using farheap::passes::GuardProfile;
#if !defined(__clang__) && !defined(__SANITIZE_ADDRESS__)
  if (!is_limited) std::abort();
#endif
  const int file = memfd_create("profile", 0);
  if (write(file, data, bytes) != static_cast<ssize_t>(bytes)) std::abort();
  const std::string path = "/proc/self/fd/" + std::to_string(file);
  auto profile = GuardProfile::read(path);
  close(file);
  if (!profile) {
    if (llvm::toString(profile.takeError()).find(path) == std::string::npos) std::abort();
    return 0;
  }
  static llvm::LLVMContext context;
  llvm::Module module("file.c", context);
  auto* const type = llvm::FunctionType::get(llvm::Type::getVoidTy(context), false);
  for (const char* const name : {"f", "two", ""}) {
    const auto* const function = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, name, module);
    std::string why;
    for (const std::size_t guards : {1, 2, 3}) {
      const auto* const found = profile->find(*function, 0xa, guards, why);
      for (std::size_t i = 0; found != nullptr && i < guards; ++i) (void)is_worth_a_guard(found->of(i));
      if (found == nullptr && why.empty()) std::abort();
    }
  }
  (void)profile->warning();
  return 0;
}
