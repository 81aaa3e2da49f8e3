// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The locks of concurrent maps: a hash table of lists by the map's address, looked up without a lock.
//
// Invariant: a node is in one list for ever, so who walks the list needs no protection; whose it is changes under
// `changes` alone. A map that is used was not dropped, so its node keeps its address meanwhile.
#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <farheap/concurrent_map.hpp>

#include "base/mutex.hpp"

namespace farheap::detail {

namespace {

struct Node {
  std::atomic<const void*> map;  // nullptr: free
  Node* next;
  MapLocks locks;
};

constexpr std::size_t kLists = 1024;
std::array<std::atomic<Node*>, kLists> lists;
base::Mutex changes;  // held by who adds a node, or changes whose it is

std::atomic<Node*>& list_of(const void* map) {
  // Maps are at multiples of 64.
  return lists[(std::bit_cast<std::uintptr_t>(map) * 0x9e37'79b9'7f4a'7c15u >> 40) % kLists];
}

Node* find_node(const std::atomic<Node*>& list, const void* map) {
  Node* node = list.load(std::memory_order_acquire);
  while (node != nullptr && node->map.load(std::memory_order_acquire) != map) node = node->next;
  return node;
}

}  // namespace

MapLocks& map_locks(const void* map) {
  std::atomic<Node*>& list = list_of(map);
  if (Node* const node = find_node(list, map)) return node->locks;
  const base::LockGuard lock(changes);
  if (Node* const node = find_node(list, map)) return node->locks;
  Node* node = find_node(list, nullptr);
  if (node == nullptr) {
    node = new Node{map, list.load(std::memory_order_relaxed), {}};
    list.store(node, std::memory_order_release);
  } else {
    node->map.store(map, std::memory_order_release);
  }
  return node->locks;
}

void drop_map_locks(const void* map) noexcept {
  const base::LockGuard lock(changes);
  if (Node* const node = find_node(list_of(map), map)) node->map.store(nullptr, std::memory_order_release);
}

}  // namespace farheap::detail
