// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "segment/superblock.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>

namespace farheap::segment {
namespace {

constexpr std::uint64_t kMagic = 0x0a0d4745'53484146;    // "FAHSEG\r\n"
constexpr std::uint64_t kNothing = 0x0a454e4f'4e484146;  // "FAHNONE\n"

// The words of the block, in order. Whoever reads it and whoever writes it go through the same list.
template <class Block, class Visit>
void for_each_word(Block& block, Visit visit) {
  visit(block.writer);
  visit(block.commit);
  visit(block.base_address);
  visit(block.capacity_pages);
  visit(block.time_ns);
  visit(block.end_slot);
  visit(block.epoch);
  visit(block.taken_slots);
  visit(block.pages);
  const auto tree = [&](auto& root) {
    visit(root.at);
    visit(root.checksum);
    visit(root.levels);
  };
  tree(block.map);
  tree(block.space);
  tree(block.snapshots);
  visit(block.snapshot_count);
  tree(block.dead);
  visit(block.dead_count);
}

constexpr std::size_t kFirstWord = 4;  // behind magic, format and id
constexpr std::size_t kWriterWord = kFirstWord;
constexpr std::size_t kCommitWord = kFirstWord + 1;
constexpr std::size_t kOriginWord = 27;
constexpr std::size_t kChecksumWord = std::tuple_size_v<BlockWords> - 1;

struct alignas(base::kPageBytes) Block {
  BlockWords words{};
  [[nodiscard]] std::span<std::byte> bytes() { return std::as_writable_bytes(std::span(words)); }
  [[nodiscard]] bool is_nothing() const {
    return words[0] == kNothing &&
           std::ranges::all_of(words.begin() + 1, words.end(), [](auto word) { return word == 0; });
  }
  [[nodiscard]] std::uint64_t checksum() const { return XXH3_64bits(words.data(), kChecksumWord * 8); }
};

void encode(const Superblock& from, Block& block) {
  block.words[0] = kMagic;
  block.words[1] = std::uint64_t{base::kPageBytes} << 32 | kSegmentFormat;
  std::memcpy(&block.words[2], from.id.data(), from.id.size());
  std::memcpy(&block.words[kOriginWord], from.origin.data(), from.origin.size());
  std::size_t at = kFirstWord;
  for_each_word(from, [&](const auto& word) { block.words[at++] = std::bit_cast<std::uint64_t>(word); });
  block.words[kChecksumWord] = block.checksum();
}

Error damaged(const Store& store, std::string why) {
  return {ErrorCode::kCorrupt, "cannot open the heap", store.describe(), std::move(why), ""};
}

// Who looks below a decorator sees what that has made of the blocks.
bool is_below_decorator(Store& store, Error& error) {
  const auto counters = store.counters();  // not every engine tells
  if (!counters || error.code != ErrorCode::kCorrupt) return false;
  for (const std::string_view decorator : {"checksum", "encrypt"}) {
    const auto is_its = [&](const NamedCounter& one) { return one.name == std::string(decorator) + ".groups"; };
    if (std::ranges::none_of(*counters, is_its)) continue;
    error.why = fmt::format("it was made through {}+, and is opened without", decorator);
    error.remedy = fmt::format("write {}+{}", decorator, store.describe());
    return true;
  }
  return false;
}

// What one of the two blocks says; an error tells why it does not count.
Result<Superblock> decode(const Block& block, const Store& store) {
  if (block.words[0] != kMagic) return fail(damaged(store, "there is no heap in it"));
  if (const auto format = static_cast<std::uint32_t>(block.words[1]); format > kSegmentFormat) {
    return fail(ErrorCode::kUnavailable, "cannot open the heap", store.describe(),
                fmt::format("it has format {}, and this Farheap reads formats up to {}", format, kSegmentFormat),
                "use the newer Farheap that wrote it");
  }
  if (block.words[kChecksumWord] != block.checksum()) return fail(damaged(store, "its superblock is damaged"));
  if (block.words[1] >> 32 != base::kPageBytes) return fail(damaged(store, "its pages have another size"));
  Superblock content;
  std::memcpy(content.id.data(), &block.words[2], content.id.size());
  std::memcpy(content.origin.data(), &block.words[kOriginWord], content.origin.size());
  std::size_t at = kFirstWord;
  for_each_word(content, [&](auto& word) { word = std::bit_cast<std::decay_t<decltype(word)>>(block.words[at++]); });
  bool makes_sense = content.end_slot >= kSuperblocks && content.end_slot <= SlotRef::kSlots &&
                     content.taken_slots <= content.end_slot && content.dead_count <= content.end_slot &&
                     content.epoch < SlotRef::kEpochs && content.snapshot_count <= content.epoch;
  for (const auto& root : {content.map, content.space, content.snapshots, content.dead}) {
    makes_sense = makes_sense && root.levels <= BlockTree::kMostLevels;
  }
  if (!makes_sense) return fail(damaged(store, "its superblock makes no sense"));
  return content;
}

}  // namespace

void encode_nothing(std::span<std::byte> block) {
  std::ranges::fill(block, std::byte{0});
  std::memcpy(block.data(), &kNothing, sizeof kNothing);
}

Result<bool> is_any_taken_back(Store& store) {
  for (std::uint64_t number = 0; number < kSuperblocks; ++number) {
    Block block;
    Get get{.block = number, .into = block.bytes()};
    if (Status status = store.get({&get, 1}); !status) return fail(std::move(status.error()));
    if (get.outcome == Outcome::kOk && block.is_nothing()) return true;
  }
  return false;
}

Result<Superblock> read_one_superblock(Store& store, std::uint64_t number) {
  Block block;
  Get get{.block = number, .into = block.bytes()};
  if (Status status = store.get({&get, 1}); !status) return fail(std::move(status.error()));
  if (get.outcome == Outcome::kAbsent || block.is_nothing()) {
    return fail(ErrorCode::kNotFound, "cannot open the heap", store.describe(), "one of its superblocks is not there");
  }
  return decode(block, store);
}

Result<FoundSuperblock> read_superblock(Store& store) {
  FoundSuperblock found;
  std::optional<Superblock> newest;
  std::optional<Error> why_not;
  for (std::uint64_t number = 0; number < kSuperblocks; ++number) {
    Block block;
    Get get{.block = number, .into = block.bytes()};
    if (Status status = store.get({&get, 1}); !status) {
      if (get.outcome != Outcome::kCorrupt) return fail(std::move(status.error()));
      why_not = std::move(status.error());  // a decorator's checksum: the other one may be whole
      found.one_is_damaged = true;
      continue;
    }
    found.versions[number] = get.version;
    if (get.outcome == Outcome::kAbsent || block.is_nothing()) continue;
    auto content = decode(block, store);
    if (!content && content.error().code == ErrorCode::kUnavailable) return fail(std::move(content.error()));
    if (!content) {
      why_not = std::move(content.error());
      found.one_is_damaged = true;
    }
    if (!content) continue;
    found.other_is_the_one_before =
        newest && std::max(newest->commit, content->commit) - std::min(newest->commit, content->commit) == 1;
    if (!newest || content->commit > newest->commit) newest = *content;
  }
  if (why_not && (is_below_decorator(store, *why_not) || !newest)) return fail(std::move(*why_not));
  if (!newest) {
    return fail(ErrorCode::kNotFound, "cannot open the heap", store.describe(), "there is none", "create it first");
  }
  found.content = *newest;
  return found;
}

namespace {

// What is there is no commit of another writer: an older one, one that nobody can open, or an attempt of our own at
// this one that seemed to fail.
bool may_replace(const Block& there, const Superblock& content) {
  if (there.words[0] != kMagic || there.words[kChecksumWord] != there.checksum()) return true;
  const auto commit = there.words[kCommitWord];
  return commit < content.commit || (commit == content.commit && there.words[kWriterWord] == content.writer);
}

// A commit whose superblock is written fails nevertheless, if that could not be made durable. Then it is taken back:
// the commit before is the newest again, in the other block.
Status make_durable(Store& store, std::uint64_t number, Version& version) {
  Status synced = store.sync();
  if (synced) return synced;
  if (Status gone = store.erase(number, 1); gone) {
    version = 0;
    return synced;
  }
  return fail(ErrorCode::kUnknown, "cannot commit", store.describe(),
              "it was written, and could neither be made durable nor be taken back: " + synced.error().why,
              "see to the device, and commit again: either version may be the newest until then");
}

}  // namespace

Status write_superblock(Store& store, const Superblock& content, std::array<Version, kSuperblocks>& versions) {
  Block block;
  encode(content, block);
  const std::uint64_t number = content.commit % kSuperblocks;
  for (int attempt = 0;; ++attempt) {
    Put put;
    put.block = number;
    put.from = block.bytes();
    if (has(store.capabilities(), Capability::kVersions)) put.expected = versions[number];
    Status status = store.put({&put, 1});
    if (put.outcome != Outcome::kConflict && put.outcome != Outcome::kUnknown) {
      if (!status) return status;
      versions[number] = put.version;
      return make_durable(store, number, versions[number]);
    }
    Block there;
    Get get{.block = number, .into = there.bytes()};
    if (Status read = store.get({&get, 1}); !read && get.outcome != Outcome::kCorrupt) return read;
    versions[number] = get.version;
    if (get.outcome == Outcome::kOk && there.words == block.words) return make_durable(store, number, versions[number]);
    if (put.outcome == Outcome::kUnknown) return status;
    if (attempt == 1 || !may_replace(there, content)) {
      return fail(ErrorCode::kConflict, "cannot commit", store.describe(), "another process has committed to it",
                  "open the heap again; only one process at a time may have it open for writing");
    }
  }
}

Status write_first_superblocks(Store& store, const Superblock& content, std::array<Version, kSuperblocks> versions) {
  if (Status status = store.sync(); !status) return status;
  if (content.commit > 1) {
    Superblock earlier = content;
    --earlier.commit;
    if (Status status = write_superblock(store, earlier, versions); !status) return status;
  }
  return write_superblock(store, content, versions);
}

}  // namespace farheap::segment
