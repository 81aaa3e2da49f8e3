// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "share/lease_record.hpp"

#include <xxhash.h>

#include <algorithm>
#include <cstring>

namespace farheap::share {
namespace {

constexpr char kMagic[8] = {'F', 'a', 'r', 'L', 'e', 'a', 's', 'e'};
constexpr std::uint64_t kFormat = 2;
constexpr std::uint64_t kFormatWithoutTimeNamespace = 1;

struct Layout {
  char magic[8];
  std::uint64_t checksum;  // XXH3 of all that follows
  std::uint64_t format;
  std::uint64_t use;
  std::uint64_t owner, token, beat, commit;
  std::uint64_t boot, pid_namespace, pid, start;
  std::uint64_t name_bytes;
  char name[LeaseRecord::kLongestName + 1];
  std::uint64_t time_namespace;  // since format 2; zeros before it, like the rest of the block
};
static_assert(sizeof(Layout) <= 512 && std::is_trivially_copyable_v<Layout>);

std::uint64_t checksum_of(const Layout& layout) {
  constexpr std::size_t kFrom = offsetof(Layout, format);
  const std::size_t end =
      layout.format == kFormatWithoutTimeNamespace ? offsetof(Layout, time_namespace) : sizeof layout;
  return XXH3_64bits(reinterpret_cast<const char*>(&layout) + kFrom, end - kFrom);
}

bool is_known(std::uint64_t format) { return format == kFormat || format == kFormatWithoutTimeNamespace; }

}  // namespace

void encode(const LeaseRecord& record, std::span<std::byte> block) {
  Layout layout{};
  std::memcpy(layout.magic, kMagic, sizeof kMagic);
  layout.format = kFormat;
  layout.use = static_cast<std::uint64_t>(record.use);
  layout.owner = record.owner, layout.token = record.token, layout.beat = record.beat, layout.commit = record.commit;
  layout.boot = record.process.boot, layout.pid_namespace = record.process.pid_namespace;
  layout.time_namespace = record.process.time_namespace;
  layout.pid = record.process.pid, layout.start = record.process.start;
  layout.name_bytes = std::min(record.name.size(), LeaseRecord::kLongestName);
  std::memcpy(layout.name, record.name.data(), layout.name_bytes);
  layout.checksum = checksum_of(layout);
  std::ranges::fill(block, std::byte{0});
  std::memcpy(block.data(), &layout, sizeof layout);
}

std::optional<LeaseRecord> decode(std::span<const std::byte> block) {
  Layout layout;
  if (block.size() < sizeof layout) return std::nullopt;
  std::memcpy(&layout, block.data(), sizeof layout);
  if (std::memcmp(layout.magic, kMagic, sizeof kMagic) != 0 || layout.checksum != checksum_of(layout) ||
      !is_known(layout.format) || layout.use > static_cast<std::uint64_t>(LeaseUse::kAlone) ||
      layout.name_bytes > LeaseRecord::kLongestName) {
    return std::nullopt;
  }
  return LeaseRecord{.use = static_cast<LeaseUse>(layout.use),
                     .owner = layout.owner,
                     .token = layout.token,
                     .beat = layout.beat,
                     .commit = layout.commit,
                     .process = {.boot = layout.boot,
                                 .pid_namespace = layout.pid_namespace,
                                 .time_namespace = layout.format == kFormat ? layout.time_namespace : 0,
                                 .pid = layout.pid,
                                 .start = layout.start},
                     .name = std::string(layout.name, layout.name_bytes)};
}

}  // namespace farheap::share
