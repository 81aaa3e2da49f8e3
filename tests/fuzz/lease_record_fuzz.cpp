// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A lease record, written by anybody: it is none, or one that is written again with the same content. Where the first
// byte of all is odd, the checksum is made to fit, so that what it guards is reached. And whatever process it names,
// somebody can say where that is.
#include <xxhash.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "share/lease_record.hpp"

using namespace farheap;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  if (bytes == 0) return 0;
  std::vector<std::byte> block(512);
  std::memcpy(block.data(), data + 1, std::min(bytes - 1, block.size()));
  constexpr std::size_t kChecksum = 8, kFormat = 16, kEndOfFirst = 360, kEnd = 384;
  if ((data[0] & 1) != 0) {
    const std::size_t end = static_cast<unsigned char>(block[kFormat]) == 1 ? kEndOfFirst : kEnd;
    const std::uint64_t checksum = XXH3_64bits(block.data() + kFormat, end - kFormat);
    std::memcpy(block.data() + kChecksum, &checksum, sizeof checksum);
  }
  const auto record = share::decode(block);
  if (!record) return 0;
  if (record->fence > record->reserved || record->name.size() > share::LeaseRecord::kLongestName) std::abort();
  std::vector<std::byte> written(block.size());
  share::encode(*record, written);
  const auto again = share::decode(written);
  if (!again || again->owner != record->owner || again->token != record->token || again->process != record->process ||
      again->fence != record->fence || again->reserved != record->reserved || again->name != record->name) {
    std::abort();
  }
  (void)os::presence_of(record->process);
  return 0;
}
