// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "os/robust_list.hpp"

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/units.hpp"

namespace farheap::os {

namespace {

constexpr std::uintptr_t kInheritsPriority = 1;  // in the lowest bit of a link

std::uintptr_t address_of(const robust_list* link) {
  return reinterpret_cast<std::uintptr_t>(link) & ~kInheritsPriority;
}

// False where nothing is mapped: a lock may be gone, and only its owner was to blame.
bool touch(std::uintptr_t lock, long to_word) {
  const std::uintptr_t word = lock + static_cast<std::uintptr_t>(to_word);
  const std::uintptr_t first = std::min(lock, word) / base::kPageBytes * base::kPageBytes;
  const std::uintptr_t end = std::max(lock + sizeof(robust_list), word + sizeof(std::uint32_t));
  return syscall(SYS_madvise, first, end - first, MADV_POPULATE_WRITE) == 0;
}

// nullptr where the thread has none.
robust_list_head* own_list() {
  robust_list_head* head = nullptr;
  std::size_t bytes = 0;
  return syscall(SYS_get_robust_list, 0, &head, &bytes) == 0 ? head : nullptr;
}

}  // namespace

void touch_robust_list() {
  const robust_list_head* head = own_list();
  if (head == nullptr) return;
  std::uintptr_t lock = address_of(head->list.next);
  for (int left = ROBUST_LIST_LIMIT; left > 0; --left) {  // where the kernel gives up, too
    if (lock == address_of(&head->list) || !touch(lock, head->futex_offset)) return;
    lock = address_of(reinterpret_cast<const robust_list*>(lock)->next);
  }
}

RobustListAside::RobustListAside() : head_(own_list()) {
  if (head_ == nullptr) return;
  first_ = head_->list.next;
  head_->list.next = &head_->list;
}

RobustListAside::~RobustListAside() {
  if (head_ != nullptr) head_->list.next = first_;
}

}  // namespace farheap::os
