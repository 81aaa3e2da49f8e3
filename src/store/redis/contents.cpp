// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a store on Redis holds, for those who copy it: the keys are asked for by SCAN, the blocks of each group by
// HKEYS.
#include "store/contents.hpp"

#include <algorithm>
#include <charconv>

#include "store/redis/redis_store.hpp"

namespace farheap::store::redis {
namespace {

constexpr char kCannotLookAtRedis[] = "cannot look at the store";
constexpr std::size_t kGroupsAtOnce = 1000;
// HKEYS of a group: two short fields for each block.
constexpr std::size_t kLongestGroup = reply_bytes(2 * kGroupBlocks, 8);

// "17": block 17 of its group; "s17": its stamp.
bool is_block(std::string_view field, std::uint64_t& index) {
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), index);
  return error == std::errc() && end == field.data() + field.size();
}

}  // namespace

Result<std::vector<BlockRun>> RedisStore::runs_from(std::uint64_t first) {
  auto lane = lanes_.take();
  Caller caller(shared_, *lane);
  auto groups = groups_present(caller);
  if (!groups) return fail(std::move(groups.error()));
  std::vector<BlockRun> runs;
  auto next = std::ranges::lower_bound(*groups, first / kGroupBlocks);
  while (next != groups->end() && runs.empty()) {
    const auto some = std::span(next, std::min(kGroupsAtOnce, static_cast<std::size_t>(groups->end() - next)));
    for (const auto group : some) {
      caller.add(shared_.keys.group(group), false, {"HKEYS", shared_.keys.group(group)}, kLongestGroup);
    }
    auto replies = caller.run(kCannotLookAtRedis);
    if (!replies) return fail(std::move(replies.error()));
    for (std::size_t i = 0; i < some.size(); ++i) {
      std::vector<std::uint64_t> blocks;
      for (const Reply& field : (*replies)[i].elements) {
        std::uint64_t index = 0;
        if (is_block(field.text, index)) blocks.push_back(some[i] * kGroupBlocks + index);
      }
      std::ranges::sort(blocks);
      for (const auto block : blocks) {
        if (block >= first) add_block(runs, block);
      }
    }
    next += static_cast<std::ptrdiff_t>(some.size());
  }
  return runs;
}

Result<std::vector<NamedCounter>> RedisStore::counters() {
  auto lane = lanes_.take();
  Caller caller(shared_, *lane);
  const std::string start = shared_.keys.counter("");
  std::vector<NamedCounter> all;
  std::size_t bytes = 0;
  Status listed = caller.each_key(shared_.keys.own_prefix() + "*", kCannotLookAtRedis, [&](const auto& keys) -> Status {
    for (const auto& key : keys) {
      if (!key.starts_with(start)) continue;
      all.push_back({key.substr(start.size()), 0});
      if ((bytes += key.size()) > kMostCollected) return caller.too_many(kCannotLookAtRedis);
    }
    return {};
  });
  if (!listed) return fail(std::move(listed.error()));
  std::ranges::sort(all, {}, &NamedCounter::name);
  const auto twice = std::ranges::unique(all, {}, &NamedCounter::name);
  all.erase(twice.begin(), twice.end());
  if (all.empty()) return all;
  for (const auto& one : all)
    caller.add(shared_.keys.counter(one.name), false, {"GET", shared_.keys.counter(one.name)});
  auto values = caller.run(kCannotLookAtRedis);
  if (!values) return fail(std::move(values.error()));
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::string& text = (*values)[i].text;
    (void)std::from_chars(text.data(), text.data() + text.size(), all[i].value);
  }
  return all;
}

}  // namespace farheap::store::redis
