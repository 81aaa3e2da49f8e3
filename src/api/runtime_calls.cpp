// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The C interface as a program links it. The runtime that `farheap run` loads exports functions of the same names:
// they are found through the dynamic linker at the first call. Without it the answer is that there is no runtime.
//
// Thread-safety: any thread; the looked-up address is kept in an atomic.
#include <dlfcn.h>
#include <farheap/farheap.h>

#include <atomic>

namespace {

using HintCall = int (*)(const void*, size_t, farheap_hint_kind);
using ActiveCall = int (*)();

// The function of this name that is not `own`: with RTLD_DEFAULT the program's own copy would come first if it
// exports its symbols (-rdynamic).
template <class Call>
Call find_in_runtime(const char* name, Call own) {
  for (void* where : {RTLD_DEFAULT, RTLD_NEXT}) {
    const auto found = reinterpret_cast<Call>(dlsym(where, name));
    if (found != nullptr && found != own) return found;
  }
  return nullptr;
}

// Looked up once; `own` itself stands for "looked up and not there".
template <class Call>
Call runtime_call(std::atomic<Call>& kept, const char* name, Call own) {
  Call call = kept.load(std::memory_order_relaxed);
  if (call == nullptr) {
    call = find_in_runtime(name, own);
    if (call == nullptr) call = own;
    kept.store(call, std::memory_order_relaxed);
  }
  return call == own ? nullptr : call;
}

std::atomic<HintCall> g_hint{nullptr};
std::atomic<ActiveCall> g_active{nullptr};

bool is_known(farheap_hint_kind kind) {
  return kind == FARHEAP_WILL_NEED || kind == FARHEAP_DONE_WITH || kind == FARHEAP_STREAM || kind == FARHEAP_KEEP;
}

}  // namespace

extern "C" int farheap_hint(const void* address, size_t bytes, farheap_hint_kind kind) {
  if (!is_known(kind)) return -1;
  const HintCall call = runtime_call(g_hint, "farheap_hint", &farheap_hint);
  return call != nullptr ? call(address, bytes, kind) : 1;
}

extern "C" int farheap_active(void) {
  const ActiveCall call = runtime_call(g_active, "farheap_active", &farheap_active);
  return call != nullptr ? call() : 0;
}
