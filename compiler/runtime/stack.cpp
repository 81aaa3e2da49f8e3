// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The far stacks of -ffar-stack: one a thread, in chunks from the far heap.
//
// Invariant: everything below `top` in the current chunk, and all of the chunks before it, is in use; what follows is
// not. A thread's chunks are given back when it ends; the first thread's go with the process.
#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <vector>

#include "base/units.hpp"
#include "far.hpp"

namespace farheap::translate {
namespace {

constexpr std::size_t kChunkBytes = std::size_t{64} << 10;

struct Chunk {
  std::byte* begin;
  std::byte* end;
};

struct Stack {
  std::vector<Chunk> chunks;
  std::size_t current = 0;  // among them
  std::byte* top = nullptr;
};

thread_local Stack* t_stack = nullptr;

void release(void* stack) {
  auto* const all = static_cast<Stack*>(stack);
  t_stack = nullptr;  // handlers of the thread's end that run later have another
  for (const Chunk& chunk : all->chunks) __farheap_free(chunk.begin);
  delete all;
}

pthread_key_t key() {
  static const pthread_key_t made = [] {
    pthread_key_t one{};
    const int failed = pthread_key_create(&one, release);
    if (failed != 0) {
      die(errno_error(failed, "cannot begin the far stack", "pthread_key_create",
                      "use fewer keys of threads in the program"));
    }
    return one;
  }();
  return made;
}

Stack& own() {
  if (t_stack == nullptr) {
    auto* const made = new Stack();
    if (pthread_setspecific(key(), made) != 0) {
      die({ErrorCode::kNoSpace, "cannot begin the far stack", "a thread", "there is no memory for it",
           "use fewer threads"});
    }
    t_stack = made;
  }
  return *t_stack;
}

std::byte* aligned_up(std::byte* at, std::size_t alignment) {
  return at + (base::round_up(reinterpret_cast<std::uintptr_t>(at), alignment) - reinterpret_cast<std::uintptr_t>(at));
}

// The begin of the piece in the current chunk, or nullptr.
std::byte* place(const Stack& stack, std::size_t bytes, std::size_t alignment) {
  if (stack.chunks.empty()) return nullptr;
  std::byte* const end = stack.chunks[stack.current].end;
  std::byte* const at = aligned_up(stack.top, alignment);
  return at <= end && bytes <= static_cast<std::size_t>(end - at) ? at : nullptr;
}

// The next chunk, of which there is one already if the stack has been deeper.
void advance(Stack& stack, std::size_t bytes, std::size_t alignment) {
  const std::size_t next = stack.chunks.empty() ? 0 : stack.current + 1;
  const std::size_t wanted = std::max(kChunkBytes, bytes + alignment);
  if (next < stack.chunks.size()) {
    const Chunk& there = stack.chunks[next];
    if (static_cast<std::size_t>(there.end - there.begin) < wanted) {
      for (std::size_t i = next; i < stack.chunks.size(); ++i) __farheap_free(stack.chunks[i].begin);
      stack.chunks.resize(next);
    }
  }
  if (next == stack.chunks.size()) {
    auto* const begin = bytes > PTRDIFF_MAX ? nullptr : static_cast<std::byte*>(__farheap_malloc(wanted));
    if (begin == nullptr) {
      die({ErrorCode::kNoSpace, "cannot push a frame on the far stack", base::format_size(bytes),
           "the far heap is full", "give it a larger store, or look for recursion without an end"});
    }
    stack.chunks.push_back({begin, begin + wanted});
  }
  stack.current = next;
  stack.top = stack.chunks[next].begin;
}

}  // namespace

std::size_t on_stack_from(const void* at) {
  if (t_stack == nullptr) return 0;
  for (std::size_t i = 0; i < t_stack->chunks.size() && i <= t_stack->current; ++i) {
    const Chunk& chunk = t_stack->chunks[i];
    const std::byte* const end = i == t_stack->current ? t_stack->top : chunk.end;
    const auto* const begin = static_cast<const std::byte*>(at);
    if (begin >= chunk.begin && begin < end) return static_cast<std::size_t>(end - begin);
  }
  return 0;
}

}  // namespace farheap::translate

// NOLINTBEGIN(bugprone-reserved-identifier): names that no program has.
FARHEAP_ENTRY void* __farheap_push(std::size_t bytes, std::size_t alignment) {
  namespace translate = farheap::translate;
  translate::Stack& stack = translate::own();
  std::byte* at = translate::place(stack, bytes, alignment);
  if (at == nullptr) {
    translate::advance(stack, bytes, alignment);
    at = translate::place(stack, bytes, alignment);
  }
  stack.top = at + bytes;
  return at;
}

// Everything that was pushed later than what lies below `to` is gone: a frame, if `to` is its begin; what others left
// behind it, if it is its end.
FARHEAP_ENTRY void __farheap_pop(void* to) {
  farheap::translate::Stack& stack = *farheap::translate::t_stack;
  auto* const top = static_cast<std::byte*>(to);
  while (top < stack.chunks[stack.current].begin || top > stack.chunks[stack.current].end) --stack.current;
  stack.top = top;
}
// NOLINTEND(bugprone-reserved-identifier)
