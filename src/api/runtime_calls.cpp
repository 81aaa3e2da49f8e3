// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The C interface as a program links it: hints are for the heap in which they begin, if it is open in this process, and
// else for the runtime. That one, which `farheap run` loads, exports functions of the same names: they are found
// through the dynamic linker. Without it the answer is that there is no runtime.
//
// Thread-safety: any thread; the looked-up address is kept in an atomic.
#include "api/runtime_calls.hpp"

#include <dlfcn.h>
#include <farheap/farheap.h>
#include <farheap/loop_hint.h>

#include "pager/public_hints.hpp"

namespace farheap::api {

constinit std::atomic<HeapHint> g_heap_hint{nullptr};
constinit std::atomic<HeapOrder> g_heap_order{nullptr};

namespace {

bool said_to_a_heap(pager::HintKind kind, const void* at, std::size_t bytes) {
  const HeapHint hint = g_heap_hint.load(std::memory_order_acquire);
  return hint != nullptr && hint(kind, at, bytes);
}

using LoopCall = decltype(&__farheap_loop);
using HintCall = int (*)(const void*, size_t, farheap_hint_kind);
using OrderCall = int (*)(const farheap_step*, size_t, size_t);
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
std::atomic<OrderCall> g_order{nullptr};
std::atomic<ActiveCall> g_active{nullptr};

// Early, because a signal handler may say a hint, and must not look anything up. Until then, and where there is no
// runtime: nullptr.
const LoopCall g_loop = find_in_runtime("__farheap_loop", &__farheap_loop);  // NOLINT(cert-err58-cpp): throws nothing

}  // namespace
}  // namespace farheap::api

using namespace farheap;

extern "C" int farheap_hint(const void* address, size_t bytes, farheap_hint_kind kind) {
  const auto said = pager::hint_kind(kind);
  if (!said) return -1;
  if (api::said_to_a_heap(*said, address, bytes)) return 0;
  const api::HintCall call = api::runtime_call(api::g_hint, "farheap_hint", &farheap_hint);
  return call != nullptr ? call(address, bytes, kind) : 1;
}

// Without steps it is for all: the heaps and the runtime.
extern "C" int farheap_expect_order(const farheap_step* steps, size_t count, size_t round) {
  if (!pager::is_order(steps, count, round)) return -1;
  const api::HeapOrder of_heap = api::g_heap_order.load(std::memory_order_acquire);
  const bool is_heard = of_heap != nullptr && of_heap({steps, count}, round);
  if (is_heard && count != 0) return 0;
  const api::OrderCall call = api::runtime_call(api::g_order, "farheap_expect_order", &farheap_expect_order);
  const int answer = call != nullptr ? call(steps, count, round) : 1;
  return is_heard ? 0 : answer;
}

extern "C" int farheap_active(void) {
  const api::ActiveCall call = api::runtime_call(api::g_active, "farheap_active", &farheap_active);
  return call != nullptr ? call() : 0;
}

// A program that opens heaps has it without a runtime, too.
// NOLINTNEXTLINE(bugprone-reserved-identifier): a name that no program has
extern "C" void __farheap_loop(const void* begin, size_t bytes, ptrdiff_t stride, unsigned flags) {
  const auto said = pager::loop_hint_kind(bytes, stride, flags);
  if (!said || api::said_to_a_heap(*said, begin, bytes)) return;
  if (api::g_loop != nullptr) api::g_loop(begin, bytes, stride, flags);
}
