// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Whatever a key file holds, it is a key or is refused with a reason; 64 hexadecimal digits and 32 bytes always are.
#include <cstdlib>

#include "store/encrypt_key.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  using farheap::store::EncryptKey;
  const auto key = EncryptKey::parse({reinterpret_cast<const char*>(data), bytes}, "fuzz");
  if (!key && key.error().why.empty()) std::abort();
  if (key && bytes < EncryptKey::kBytes) std::abort();
  if (!key && bytes == EncryptKey::kBytes) std::abort();
  return 0;
}
