// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "stores/own_grpc.hpp"

#include <algorithm>
#include <cstdio>

namespace farheap::bench {

RpcClient::~RpcClient() {  // nothing is under way between calls
  queue_.Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (queue_.Next(&tag, &ok)) {
  }
}

bool RpcClient::write(std::uint64_t first, std::size_t count, const char* bytes) {
  bool whole = true;
  for (std::size_t at = 0; at < count && whole; at += shape_.pages_a_write) {
    whole = wait_for_room("writing", shape_.writes_under_way);
    begin_write(first + at, std::min(shape_.pages_a_write, count - at), bytes + at * kPage);
  }
  return wait_for_room("writing", 1) && whole;
}

bool RpcClient::read(std::uint64_t first, std::size_t count, char* into) {
  bool whole = true;
  for (std::size_t at = 0; at < count && whole; at += shape_.pages_a_read) {
    whole = wait_for_room("reading", shape_.reads_under_way);
    begin_read(first + at, std::min(shape_.pages_a_read, count - at), into + at * kPage);
  }
  return wait_for_room("reading", 1) && whole;
}

bool RpcClient::wait_for_room(const char* what, std::size_t most) {
  bool whole = true;
  while (under_way_ >= most) {
    void* tag = nullptr;
    bool ok = false;
    if (!queue_.Next(&tag, &ok)) return false;
    auto* const call = static_cast<Call*>(tag);
    if (!call->is_over(ok)) continue;
    const std::unique_ptr<Call> over(call);
    --under_way_;
    if (over->is_whole) continue;
    whole = false;
    if (said(what, over->status)) std::fprintf(stderr, "stores_own: %s: %s: pages are missing\n", engine_, what);
  }
  return whole;
}

bool RpcClient::said(const char* what, const grpc::Status& status) const {
  if (!status.ok()) {
    std::fprintf(stderr, "stores_own: %s: %s: %s\n", engine_, what, status.error_message().c_str());
  }
  return status.ok();
}

std::shared_ptr<grpc::Channel> rpc_channel(const std::string& place) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetMaxSendMessageSize(-1);
  return grpc::CreateCustomChannel(place, grpc::InsecureChannelCredentials(), arguments);
}

std::string ordered_key(std::uint64_t number) {
  std::string key(8, '\0');
  for (std::size_t i = 0; i < key.size(); ++i) key[i] = static_cast<char>(number >> (56 - 8 * i));
  return key;
}

}  // namespace farheap::bench
