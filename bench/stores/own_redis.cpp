// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// hiredis: a key for each page; MGET of 64 pages, and pipelined SETs of 64 (256 KiB), which are its fastest forms.
#include <hiredis/hiredis.h>

#include <cstdio>
#include <cstring>
#include <vector>

#include "stores/own.hpp"

namespace farheap::bench {
namespace {

class Redis final : public OwnClient {
 public:
  explicit Redis(redisContext* context) : context_(context) {}
  ~Redis() override {
    if (auto* reply = redisCommand(context_, "FLUSHDB")) freeReplyObject(reply);
    redisFree(context_);
  }
  std::size_t batch() const override { return 64; }

  bool write(std::uint64_t first, std::size_t count, const char* bytes) override {
    for (std::size_t i = 0; i < count; ++i) {
      const Key key(first + i);
      redisAppendCommand(context_, "SET %b %b", key.text, sizeof key.text, bytes + i * kPage, kPage);
    }
    bool whole = true;
    for (std::size_t i = 0; i < count; ++i) {
      redisReply* const reply = next();
      whole = whole && reply != nullptr && reply->type == REDIS_REPLY_STATUS;
      if (reply != nullptr) freeReplyObject(reply);
    }
    return whole || said("SET");
  }

  bool read(std::uint64_t first, std::size_t count, char* into) override {
    std::vector<Key> keys;
    std::vector<const char*> words{count == 1 ? "GET" : "MGET"};
    std::vector<std::size_t> lengths{std::strlen(words[0])};
    for (std::size_t i = 0; i < count; ++i) keys.emplace_back(first + i);
    for (const Key& key : keys) words.push_back(key.text), lengths.push_back(sizeof key.text);
    redisAppendCommandArgv(context_, static_cast<int>(words.size()), words.data(), lengths.data());
    redisReply* const reply = next();
    bool whole = reply != nullptr &&
                 (count == 1 ? take(reply, into) : reply->type == REDIS_REPLY_ARRAY && reply->elements == count);
    for (std::size_t i = 0; count > 1 && i < count && whole; ++i) whole = take(reply->element[i], into + i * kPage);
    if (reply != nullptr) freeReplyObject(reply);
    return whole || said("MGET");
  }

 private:
  struct Key {
    explicit Key(std::uint64_t number) { std::memcpy(text, &number, sizeof text); }
    char text[8];
  };
  static bool take(const redisReply* reply, char* into) {
    if (reply->type != REDIS_REPLY_STRING || reply->len != kPage) return false;
    std::memcpy(into, reply->str, kPage);
    return true;
  }
  redisReply* next() {
    void* reply = nullptr;
    return redisGetReply(context_, &reply) == REDIS_OK ? static_cast<redisReply*>(reply) : nullptr;
  }
  bool said(const char* command) {
    std::fprintf(stderr, "stores_own: redis: %s: %s\n", command, context_->errstr);
    return false;
  }
  redisContext* context_;
};

}  // namespace

std::unique_ptr<OwnClient> own_redis(const std::string& place) {
  const auto colon = place.find(':');
  redisContext* const context = colon == std::string::npos
                                    ? redisConnectUnix(place.c_str())
                                    : redisConnect(place.substr(0, colon).c_str(), std::stoi(place.substr(colon + 1)));
  if (context == nullptr || context->err != 0) {
    std::fprintf(stderr, "stores_own: redis: %s\n", context != nullptr ? context->errstr : "no memory");
    return nullptr;
  }
  if (auto* reply = redisCommand(context, "SELECT 9")) freeReplyObject(reply);  // beside Farheap's database
  return std::make_unique<Redis>(context);
}

}  // namespace farheap::bench
