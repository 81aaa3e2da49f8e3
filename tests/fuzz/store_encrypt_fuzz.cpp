// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "store/encrypt_store.hpp"

#include "tests/fuzz/sealed_blocks.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  static const auto kKey = farheap::store::EncryptKey::random();
  return farheap::test::change_and_read(data, bytes, [](std::unique_ptr<farheap::Store> inner) {
    auto store = farheap::store::make_kept_encryption(std::move(inner), *kKey);
    if (!store) std::abort();
    return std::move(*store);
  });
}
