// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An allocator that forgives nothing: one lock, held while it asks for memory and gives it back, as a real one may hold
// one of its many. Whoever allocates from within those calls, or from a thread that is not the program's, would sooner
// or later wait for that lock for ever; here the program ends at once. With GUEST_ALLOCATES_BY_SBRK its memory comes
// from sbrk(), else from mmap().
#include "own_allocator.hpp"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define IN_FRONT extern "C" __attribute__((visibility("default")))

namespace {

constexpr size_t kChunk = 1 << 20, kLargest = 1 << 17, kHeader = 16;
constexpr unsigned kClasses = 20;  // of powers of two

// In front of what is given: the class, or the length of a mapping.
struct Header {
  size_t bytes;
  uint32_t large;
  uint32_t size_class;
};
struct Free {
  Free* next;
};

pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
Free* g_free[kClasses];
unsigned char* g_bump;
unsigned char* g_end;
bool g_strict;  // once the program has begun
thread_local bool t_of_the_program, t_at_work;

[[noreturn]] void end(const char* why) {
  [[maybe_unused]] auto ignored = write(STDERR_FILENO, why, strlen(why));
  _exit(3);
}

class Work {
 public:
  Work() {
    if (t_at_work) end("own_allocator: allocates while it allocates\n");
    if (g_strict && !t_of_the_program) end("own_allocator: a thread that is not the program's allocates\n");
    t_at_work = true;
    pthread_mutex_lock(&g_lock);
  }
  ~Work() {
    pthread_mutex_unlock(&g_lock);
    t_at_work = false;
  }
};

unsigned char* more(size_t bytes) {
#ifdef GUEST_ALLOCATES_BY_SBRK
  void* at = sbrk(static_cast<intptr_t>(bytes));
#else
  void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
#endif
  return at == reinterpret_cast<void*>(-1) ? nullptr : static_cast<unsigned char*>(at);
}

unsigned char* from_chunk(size_t bytes) {
  if (g_bump == nullptr || bytes > static_cast<size_t>(g_end - g_bump)) {
    g_bump = more(kChunk);
    if (g_bump == nullptr) return nullptr;
    g_end = g_bump + kChunk;
  }
  unsigned char* at = g_bump;
  g_bump += bytes;
  return at;
}

unsigned class_of(size_t bytes) {
  unsigned number = 5;
  while ((size_t{1} << number) < bytes) ++number;
  return number;
}

unsigned char* take(size_t bytes) {
  const size_t whole = (bytes + kHeader + 4095) & ~size_t{4095};
  const bool large = bytes + kHeader > kLargest;
  const unsigned number = large ? 0 : class_of(bytes + kHeader);
  unsigned char* at;
  if (large) {
    at = more(whole);
  } else if (g_free[number] != nullptr) {
    at = reinterpret_cast<unsigned char*>(g_free[number]);
    g_free[number] = g_free[number]->next;
  } else {
    at = from_chunk(size_t{1} << number);
  }
  if (at == nullptr) return nullptr;
  *reinterpret_cast<Header*>(at) = {large ? whole : size_t{1} << number, large, number};
  return at + kHeader;
}

void give_back(unsigned char* at, Header header) {
  if (header.large == 0) {
    auto* freed = reinterpret_cast<Free*>(at);
    freed->next = g_free[header.size_class];
    g_free[header.size_class] = freed;
    return;
  }
#ifndef GUEST_ALLOCATES_BY_SBRK
  if (munmap(at, header.bytes) != 0) end("own_allocator: munmap fails\n");
#endif
}

Header& header_of(void* pointer) { return *reinterpret_cast<Header*>(static_cast<unsigned char*>(pointer) - kHeader); }

}  // namespace

void own::of_the_program() {
  t_of_the_program = true;
  g_strict = true;
}

IN_FRONT void* malloc(size_t bytes) {
  if (bytes > SIZE_MAX / 2) return nullptr;
  Work working;
  return take(bytes);
}

IN_FRONT void free(void* pointer) {
  if (pointer == nullptr) return;
  Work working;
  give_back(static_cast<unsigned char*>(pointer) - kHeader, header_of(pointer));
}

IN_FRONT void* calloc(size_t count, size_t bytes) {
  size_t total;
  if (__builtin_mul_overflow(count, bytes, &total)) return nullptr;
  void* pointer = malloc(total);
  return pointer != nullptr ? memset(pointer, 0, total) : nullptr;
}

IN_FRONT size_t malloc_usable_size(void* pointer) {
  return pointer == nullptr ? 0 : header_of(pointer).bytes - kHeader;
}

IN_FRONT void* realloc(void* pointer, size_t bytes) {
  if (pointer == nullptr) return malloc(bytes);
  const size_t before = malloc_usable_size(pointer);
  if (bytes <= before) return pointer;
  void* fresh = malloc(bytes);
  if (fresh == nullptr) return nullptr;
  memcpy(fresh, pointer, before);
  free(pointer);
  return fresh;
}

// Of an aligned object only the first bytes are used again: few ask for them.
IN_FRONT void* memalign(size_t alignment, size_t bytes) {
  if (alignment <= kHeader) return malloc(bytes);
  auto* pointer = static_cast<unsigned char*>(malloc(bytes + alignment + kHeader));
  if (pointer == nullptr) return nullptr;
  const size_t past = reinterpret_cast<uintptr_t>(pointer + kHeader) % alignment;
  unsigned char* aligned = pointer + kHeader + (past == 0 ? 0 : alignment - past);
  header_of(aligned) = {bytes + kHeader, 0, class_of(32)};
  return aligned;
}
IN_FRONT void* aligned_alloc(size_t alignment, size_t bytes) { return memalign(alignment, bytes); }
IN_FRONT int posix_memalign(void** result, size_t alignment, size_t bytes) {
  *result = memalign(alignment, bytes);
  return *result == nullptr ? ENOMEM : 0;
}

// A fork finds the lock free, whoever else allocates.
static void lock() { pthread_mutex_lock(&g_lock); }
static void unlock() { pthread_mutex_unlock(&g_lock); }
__attribute__((constructor)) static void watch_forks() {
  own::of_the_program();
  if (pthread_atfork(lock, unlock, unlock) != 0) end("own_allocator: pthread_atfork fails\n");
}
