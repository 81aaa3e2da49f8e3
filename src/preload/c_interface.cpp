// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The C interface of farheap.h, where there is a runtime. Loaded first, these take the place of libfarheap's.
#include "farheap/farheap.h"

#include "preload/runtime.hpp"

using namespace farheap;

extern "C" __attribute__((visibility("default"))) int farheap_hint(const void* address, size_t bytes,
                                                                   farheap_hint_kind kind) {
  if (kind < FARHEAP_WILL_NEED || kind > FARHEAP_KEEP) return -1;
  preload::Runtime* made = preload::g_runtime.load(std::memory_order_acquire);
  if (made == nullptr) return 1;
  return made->segment->hint(static_cast<pager::HintKind>(kind), address, bytes) ? 0 : 1;
}

extern "C" __attribute__((visibility("default"))) int farheap_active(void) {
  preload::Runtime* made = preload::g_runtime.load(std::memory_order_acquire);
  return made != nullptr && made->segment->is_paging() ? 1 : 0;
}
