// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// etcd's own stubs: transactions of 128 puts, the most it takes, and ranges of 256 pages. Reads are linearisable, as
// those of every other engine here.
#include <etcdserverpb/rpc.grpc.pb.h>

#include <cstring>

#include "stores/own_grpc.hpp"

namespace farheap::bench {
namespace {

namespace api = etcdserverpb;

std::string key_of(std::uint64_t page) { return "own/" + ordered_key(page); }

class Etcd final : public RpcClient {
 public:
  explicit Etcd(const std::string& place)
      : RpcClient("etcd", {.pages_a_write = 128, .pages_a_read = 256}), stub_(api::KV::NewStub(rpc_channel(place))) {}
  ~Etcd() override {
    api::DeleteRangeRequest all;
    all.set_key("own/");
    all.set_range_end("own0");
    api::DeleteRangeResponse gone;
    if (!settle("deleting", [&](auto* context) { return stub_->DeleteRange(context, all, &gone); })) return;
    api::CompactionRequest history;
    history.set_revision(gone.header().revision());
    history.set_physical(true);
    api::CompactionResponse compacted;
    (void)settle("compacting", [&](auto* context) { return stub_->Compact(context, history, &compacted); });
  }

 private:
  void begin_write(std::uint64_t first, std::size_t count, const char* bytes) override {
    api::TxnRequest request;
    for (std::size_t i = 0; i < count; ++i) {
      auto& put = *request.add_success()->mutable_request_put();
      put.set_key(key_of(first + i));
      put.set_value(bytes + i * kPage, kPage);
    }
    call<api::TxnResponse>([&](auto* context, auto* queue) { return stub_->AsyncTxn(context, request, queue); },
                           [](const api::TxnResponse& response) { return response.succeeded(); });
  }

  void begin_read(std::uint64_t first, std::size_t count, char* into) override {
    api::RangeRequest request;
    request.set_key(key_of(first));
    if (count > 1) request.set_range_end(key_of(first + count));
    call<api::RangeResponse>([&](auto* context, auto* queue) { return stub_->AsyncRange(context, request, queue); },
                             [count, into](const api::RangeResponse& response) {
                               char* to = into;
                               for (const auto& kv : response.kvs()) {
                                 if (kv.value().size() != kPage) return false;
                                 std::memcpy(to, kv.value().data(), kPage);
                                 to += kPage;
                               }
                               return to == into + count * kPage;
                             });
  }

  std::unique_ptr<api::KV::Stub> stub_;
};

}  // namespace

std::unique_ptr<OwnClient> own_etcd(const std::string& place) { return std::make_unique<Etcd>(place); }

}  // namespace farheap::bench
