// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Whatever bytes a device gives back for a packed block: they are refused or unpacked, within their bounds. And
// whatever is packed comes back.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "store/codec.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  using namespace farheap::store;
  const std::span<const std::byte> input(reinterpret_cast<const std::byte*>(data), bytes);
  for (const std::size_t size : {512u, 4096u, 65536u}) {
    std::vector<std::byte> block(size);
    (void)unpack(input, block);
  }
  std::vector<std::byte> block(4096);
  std::memcpy(block.data(), input.data(), std::min(input.size(), block.size()));
  for (const auto* name : {"zstd", "lz4"}) {
    const auto codec = find_codec(name);
    if (!codec) continue;
    std::vector<std::byte> packed(4096 - 512);
    const std::size_t used = pack(*codec, 1, block, packed);
    if (used == 0) continue;
    std::vector<std::byte> back(4096);
    if (!unpack(std::span(packed).first(used), back) || back != block) std::abort();
  }
  return 0;
}
