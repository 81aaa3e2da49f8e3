// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// hiredis: a key for each page; MGET of 64 pages, and pipelined SETs of 64 (256 KiB), which are its fastest forms. In a
// cluster, 64 pages share a slot (so that MGET can have them), and what all nodes are asked for is sent before any
// answer is waited for.
#include <hiredis/hiredis.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

#include "stores/own.hpp"

namespace farheap::bench {
namespace {

constexpr std::size_t kGroup = 64;
constexpr std::size_t kSlots = 16384;

using Context = std::unique_ptr<redisContext, decltype([](redisContext* context) { redisFree(context); })>;
using Reply = std::unique_ptr<redisReply, decltype([](redisReply* reply) { freeReplyObject(reply); })>;

Context connect(const std::string& place) {
  const auto colon = place.rfind(':');
  Context context(colon == std::string::npos
                      ? redisConnectUnix(place.c_str())
                      : redisConnect(place.substr(0, colon).c_str(), std::stoi(place.substr(colon + 1))));
  if (context != nullptr && context->err == 0) return context;
  std::fprintf(stderr, "stores_own: redis: %s\n", context != nullptr ? context->errstr : "no memory");
  return nullptr;
}

Reply ask(redisContext* context, const char* command) {
  return Reply(static_cast<redisReply*>(redisCommand(context, command)));
}

// "{GROUP}PAGE", both in hexadecimal.
struct Key {
  explicit Key(std::uint64_t page) { std::snprintf(text, sizeof text, "{%08zx}%02zx", page / kGroup, page % kGroup); }
  static constexpr std::size_t kLength = 12;
  char text[kLength + 1];
};

// CRC16 (XMODEM) of what stands between the braces. Source: https://redis.io/docs/reference/cluster-spec/
std::size_t slot_of(const Key& key) {
  unsigned crc = 0;
  for (int i = 1; i <= 8; ++i) {
    crc ^= static_cast<unsigned>(key.text[i]) << 8;
    for (int bit = 0; bit < 8; ++bit) crc = (crc << 1) ^ ((crc & 0x8000) != 0 ? 0x1021 : 0);
  }
  return (crc & 0xFFFF) % kSlots;
}

class Redis final : public OwnClient {
 public:
  Redis(std::vector<Context> nodes, std::vector<std::size_t> node_of_slot, std::size_t batch)
      : nodes_(std::move(nodes)), node_of_slot_(std::move(node_of_slot)), batch_(batch) {}
  ~Redis() override {
    for (const auto& node : nodes_) (void)ask(node.get(), "FLUSHDB");
  }
  std::size_t batch() const override { return batch_; }

  bool write(std::uint64_t first, std::size_t count, const char* bytes) override {
    for (std::size_t i = 0; i < count; ++i) {
      const Key key(first + i);
      redisAppendCommand(node_of(first + i), "SET %b %b", key.text, Key::kLength, bytes + i * kPage, kPage);
    }
    if (!send_all()) return false;
    for (std::size_t i = 0; i < count; ++i) {
      const Reply reply = next(node_of(first + i));
      if (reply == nullptr || reply->type != REDIS_REPLY_STATUS) return said("SET", node_of(first + i), reply.get());
    }
    return true;
  }

  bool read(std::uint64_t first, std::size_t count, char* into) override {
    if (count == 1) {
      const Key key(first);
      redisAppendCommand(node_of(first), "GET %b", key.text, Key::kLength);
      const Reply reply = next(node_of(first));
      return (reply != nullptr && take(reply.get(), into)) || said("GET", node_of(first), reply.get());
    }
    for (std::size_t at = 0; at < count; at += here(first + at, count - at)) {
      append_mget(first + at, here(first + at, count - at));
    }
    if (!send_all()) return false;
    for (std::size_t at = 0; at < count;) {
      const std::size_t pages = here(first + at, count - at);
      const Reply reply = next(node_of(first + at));
      bool whole = reply != nullptr && reply->type == REDIS_REPLY_ARRAY && reply->elements == pages;
      for (std::size_t i = 0; i < pages && whole; ++i) whole = take(reply->element[i], into + (at + i) * kPage);
      if (!whole) return said("MGET", node_of(first + at), reply.get());
      at += pages;
    }
    return true;
  }

  bool put_byte(std::uint64_t page, std::size_t offset, const char* bytes) override {
    const Key key(page);
    redisAppendCommand(node_of(page), "SETRANGE %b %d %b", key.text, Key::kLength, static_cast<int>(offset),
                       bytes + offset, std::size_t{1});
    const Reply reply = next(node_of(page));
    return (reply != nullptr && reply->type == REDIS_REPLY_INTEGER) || said("SETRANGE", node_of(page), reply.get());
  }
  bool get_byte(std::uint64_t page, std::size_t offset, char* into) override {
    const Key key(page);
    const int at = static_cast<int>(offset);
    redisAppendCommand(node_of(page), "GETRANGE %b %d %d", key.text, Key::kLength, at, at);
    const Reply reply = next(node_of(page));
    const bool is_there = reply != nullptr && reply->type == REDIS_REPLY_STRING && reply->len == 1;
    if (is_there) into[offset] = reply->str[0];
    return is_there || said("GETRANGE", node_of(page), reply.get());
  }

 private:
  static std::size_t here(std::uint64_t first, std::size_t left) {
    return std::min<std::size_t>(left, kGroup - first % kGroup);
  }
  static bool take(const redisReply* reply, char* into) {
    if (reply->type != REDIS_REPLY_STRING || reply->len != kPage) return false;
    std::memcpy(into, reply->str, kPage);
    return true;
  }
  redisContext* node_of(std::uint64_t page) {
    return nodes_.size() == 1 ? nodes_[0].get() : nodes_[node_of_slot_[slot_of(Key(page))]].get();
  }
  void append_mget(std::uint64_t first, std::size_t count) {
    std::vector<Key> keys;
    keys.reserve(count);
    std::vector<const char*> words{"MGET"};
    std::vector<std::size_t> lengths{4};
    for (std::size_t i = 0; i < count; ++i) keys.emplace_back(first + i);
    for (const Key& key : keys) words.push_back(key.text), lengths.push_back(Key::kLength);
    redisAppendCommandArgv(node_of(first), static_cast<int>(words.size()), words.data(), lengths.data());
  }
  bool send_all() {
    for (const auto& node : nodes_) {
      for (int done = 0; done == 0;) {
        if (redisBufferWrite(node.get(), &done) != REDIS_OK) return said("sending", node.get(), nullptr);
      }
    }
    return true;
  }
  static Reply next(redisContext* context) {
    void* reply = nullptr;
    (void)redisGetReply(context, &reply);
    return Reply(static_cast<redisReply*>(reply));
  }
  static bool said(const char* command, const redisContext* context, const redisReply* reply) {
    const bool is_error = reply != nullptr && reply->type == REDIS_REPLY_ERROR;
    std::fprintf(stderr, "stores_own: redis: %s: %s\n", command, is_error ? reply->str : context->errstr);
    return false;
  }

  std::vector<Context> nodes_;
  std::vector<std::size_t> node_of_slot_;
  std::size_t batch_;
};

}  // namespace

std::unique_ptr<OwnClient> own_redis(const std::string& place) {
  std::vector<Context> nodes;
  nodes.push_back(connect(place));
  if (nodes[0] == nullptr) return nullptr;
  (void)ask(nodes[0].get(), "SELECT 9");  // beside Farheap's database
  return std::make_unique<Redis>(std::move(nodes), std::vector<std::size_t>(), kGroup);
}

// FLUSHDB at the end takes Farheap's keys as well: their run is over then, or has not begun.
std::unique_ptr<OwnClient> own_redis_cluster(const std::string& place) {
  const Context first = connect(place);
  const Reply slots = first != nullptr ? ask(first.get(), "CLUSTER SLOTS") : nullptr;
  if (slots == nullptr || slots->type != REDIS_REPLY_ARRAY) return nullptr;
  std::vector<Context> nodes;
  std::vector<std::string> places;
  std::vector<std::size_t> node_of_slot(kSlots);
  for (std::size_t i = 0; i < slots->elements; ++i) {  // first slot, last slot, {host, port, ...} of the primary, ...
    const redisReply* const range = slots->element[i];
    const redisReply* const primary = range->element[2];
    const std::string where =
        std::string(primary->element[0]->str) + ":" + std::to_string(primary->element[1]->integer);
    auto node = static_cast<std::size_t>(std::ranges::find(places, where) - places.begin());
    if (node == places.size()) {
      places.push_back(where);
      nodes.push_back(connect(where));
      if (nodes.back() == nullptr) return nullptr;
    }
    for (auto slot = range->element[0]->integer; slot <= range->element[1]->integer; ++slot) {
      node_of_slot[static_cast<std::size_t>(slot)] = node;
    }
  }
  constexpr std::size_t kGroupsOfABatch = 12;  // four for each of three nodes
  return std::make_unique<Redis>(std::move(nodes), std::move(node_of_slot), kGroupsOfABatch * kGroup);
}

}  // namespace farheap::bench
