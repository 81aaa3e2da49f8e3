// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Whatever a Redis server answers is read or refused, within the memory that was asked for. The input: a byte that says
// in pieces of how many bytes the rest arrives and how it is asked for, and the rest, read as replies to the end.
#include <cstdlib>
#include <cstring>

#include "store/redis/nodes.hpp"
#include "store/redis/replies.hpp"

namespace {

using namespace farheap::store::redis;

class Bytes final : public ByteSource {
 public:
  Bytes(const std::uint8_t* data, std::size_t bytes, std::size_t at_once)
      : left_(reinterpret_cast<const char*>(data), bytes), at_once_(at_once) {}

  std::size_t receive(std::span<iovec> pieces) override {
    std::size_t got = 0;
    for (const iovec& piece : pieces) {
      const std::size_t here = std::min({piece.iov_len, left_.size(), at_once_ - got});
      if (here != 0) std::memcpy(piece.iov_base, left_.data(), here);
      left_.remove_prefix(here);
      got += here;
    }
    return got;
  }
  std::size_t receive_at_once(std::span<iovec> pieces) override { return receive(pieces); }
  void give_up(std::string why) override {
    if (why.empty()) std::abort();
    left_ = {};
  }

 private:
  std::string_view left_;
  std::size_t at_once_;
};

std::size_t memory_of(const Reply& reply) {
  std::size_t all = reply.text.size() + reply.elements.size() * sizeof(Reply);
  for (const Reply& one : reply.elements) all += memory_of(one);
  return all;
}

// What is done with them where they are read whole.
void use(const Reply& reply) {
  static const Place place = [] {
    Place of_a_cluster;
    of_a_cluster.scheme = "redis+cluster";
    of_a_cluster.addresses = {{.host = "h", .port = 1, .socket = {}}};
    return of_a_cluster;
  }();
  Nodes nodes(place);
  if (nodes.learn(reply, 0) && nodes.primaries().empty()) std::abort();
  (void)parse_redirection(reply.text, place.addresses.front());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  if (bytes == 0) return 0;
  const unsigned how = data[0];
  constexpr std::size_t kPieces[] = {1, 2, 7, 1 << 20};
  Bytes source(data + 1, bytes - 1, kPieces[how & 3]);
  Replies replies(source);
  const std::size_t most = (how & 4) != 0 ? kSmallReply : 64;
  for (;;) {
    if ((how & 8) == 0) {
      Reply reply;
      const bool is_whole = replies.whole(reply, most);
      if (memory_of(reply) > most) std::abort();
      if (!is_whole) return 0;
      use(reply);
      continue;
    }
    Head head;
    if (!replies.head(head)) return 0;
    std::byte page[16];
    const bool is_page = head.kind == Kind::kBulk && head.number == sizeof page;
    if (!(is_page ? replies.bulk(page) : replies.skip(head))) return 0;
  }
}
