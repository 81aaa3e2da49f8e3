// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The functions of the C library behind those of the same name here. All are looked up when the program starts: a
// look-up takes the loader's lock, which a program may hold in a constructor of dlopen() while it waits for a page that
// a thread of the runtime, with this very function, is to bring.
//
// Thread-safety: any thread, and signal handlers.
#pragma once

#include <dlfcn.h>

#include <atomic>

namespace farheap::preload {

template <class Function>
class NextFunction {
 public:
  explicit constexpr NextFunction(const char* name) : name_(name) {}

  // Constructors of other libraries may call before all are looked up.
  Function* get() {
    Function* found = found_.load(std::memory_order_relaxed);
    if (found == nullptr) {
      found = reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name_));
      found_.store(found, std::memory_order_relaxed);
    }
    return found;
  }
  template <class... Arguments>
  auto operator()(Arguments... arguments) {
    return get()(arguments...);
  }

 private:
  const char* name_;
  std::atomic<Function*> found_ = nullptr;
};

// To be called by a constructor, with all functions of a file.
template <class... Functions>
void look_up(NextFunction<Functions>&... all) {
  (all.get(), ...);
}

}  // namespace farheap::preload
