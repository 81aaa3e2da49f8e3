// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "store/checksum_store.hpp"

#include "tests/fuzz/sealed_blocks.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  return farheap::test::change_and_read(data, bytes, farheap::store::make_kept_checksums);
}
