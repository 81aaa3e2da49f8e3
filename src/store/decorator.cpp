// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "store/decorator.hpp"

#include "store/batch.hpp"
#include "store/copied_by_fork.hpp"

namespace farheap::store {
namespace {

template <class Entry, class Call>
void in_pieces(const Limits& limits, std::span<Entry> batch, Call call) {
  while (!batch.empty()) {
    std::size_t count = 0;
    std::size_t bytes = 0;
    while (count < batch.size() && count < limits.largest_batch_operations) {
      bytes += bytes_of(batch[count]);
      if (count != 0 && bytes > limits.largest_batch_bytes) break;
      ++count;
    }
    call(batch.first(count));
    batch = batch.subspan(count);
  }
}

}  // namespace

CopiedByFork* copied_by_fork(Store& store) {
  auto* const decorator = dynamic_cast<Decorator*>(&store);
  return decorator != nullptr ? copied_by_fork(decorator->behind()) : dynamic_cast<CopiedByFork*>(&store);
}

// The outcomes tell; the Status only repeats the first of them.
void get_in_pieces(Store& store, std::span<Get> batch) {
  in_pieces(store.limits(), batch, [&](std::span<Get> piece) { (void)store.get(piece).has_value(); });
}
void put_in_pieces(Store& store, std::span<Put> batch) {
  in_pieces(store.limits(), batch, [&](std::span<Put> piece) { (void)store.put(piece).has_value(); });
}

}  // namespace farheap::store
