// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the own clients of gRPC engines share: one connection, batches that are cut into requests with several of them
// under way, and answers waited for by the thread that asked. An engine says only how a request for a run of pages is
// begun, and what its answer holds.
//
// Thread-safety: one thread.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "stores/own.hpp"

namespace farheap::bench {

// How an engine is asked; docs/benchmarks/stores.md says of which other shapes were tried.
struct RpcShape {
  std::size_t pages_a_write = 0;
  std::size_t pages_a_read = 0;
  std::size_t writes_under_way = 4;
  std::size_t reads_under_way = 4;
};

class RpcClient : public OwnClient {
 public:
  ~RpcClient() override;
  std::size_t batch() const final { return kBatch; }
  bool write(std::uint64_t first, std::size_t count, const char* bytes) final;
  bool read(std::uint64_t first, std::size_t count, char* into) final;

 protected:
  RpcClient(const char* engine, RpcShape shape) : engine_(engine), shape_(shape) {}
  // Each begins one request by call() or stream().
  virtual void begin_write(std::uint64_t first, std::size_t count, const char* bytes) = 0;
  virtual void begin_read(std::uint64_t first, std::size_t count, char* into) = 0;

  // A single answer. `begin(context, queue)` gives its reader; `take(response)`, whether it holds what it should.
  template <class Response, class Begin, class Take>
  void call(Begin begin, Take take) {
    auto* const call = new Single<Response, Take>(std::move(take));
    call->reader = begin(&call->context, &queue_);
    call->reader->Finish(&call->response, &call->status, call);
    ++under_way_;
  }
  // Many answers: `begin(context, queue, tag)`; `take(response)` gets each; `end()` says whether all came.
  template <class Response, class Begin, class Take, class End>
  void stream(Begin begin, Take take, End end) {
    auto* const call = new Stream<Response, Take, End>(std::move(take), std::move(end));
    call->reader = begin(&call->context, &queue_, call);
    ++under_way_;
  }
  // A request of setting up or clearing away, waited for: `ask(context)` gives its status.
  template <class Ask>
  [[nodiscard]] bool settle(const char* what, Ask ask) const {
    grpc::ClientContext context;
    return said(what, ask(&context));
  }
  bool said(const char* what, const grpc::Status& status) const;

 private:
  static constexpr std::size_t kBatch = 2048;  // 8 MiB
  struct Call {
    virtual ~Call() = default;
    virtual bool is_over(bool ok) = 0;  // after one event
    grpc::ClientContext context;
    grpc::Status status;
    bool is_whole = true;
  };
  template <class Response, class Take>
  struct Single final : Call {
    explicit Single(Take taker) : take(std::move(taker)) {}
    bool is_over(bool /*ok*/) override {
      this->is_whole = this->status.ok() && take(response);
      return true;
    }
    Take take;
    Response response;
    std::unique_ptr<grpc::ClientAsyncResponseReader<Response>> reader;
  };
  template <class Response, class Take, class End>
  struct Stream final : Call {
    Stream(Take taker, End ender) : take(std::move(taker)), end(std::move(ender)) {}
    bool is_over(bool ok) override {
      if (is_finishing) {
        this->is_whole = this->status.ok() && end();
        return true;
      }
      if (is_begun && ok) take(response);
      is_begun = true;
      is_finishing = !ok;
      if (ok) {
        reader->Read(&response, this);
      } else {
        reader->Finish(&this->status, this);
      }
      return false;
    }
    Take take;
    End end;
    bool is_begun = false;
    bool is_finishing = false;
    Response response;
    std::unique_ptr<grpc::ClientAsyncReader<Response>> reader;
  };
  // Waits until fewer than `most` requests are under way. False if one failed.
  bool wait_for_room(const char* what, std::size_t most);

  const char* engine_;
  RpcShape shape_;
  grpc::CompletionQueue queue_;
  std::size_t under_way_ = 0;
};

// HOST:PORT, without TLS.
[[nodiscard]] std::shared_ptr<grpc::Channel> rpc_channel(const std::string& place);

// In the order of numbers.
[[nodiscard]] std::string ordered_key(std::uint64_t number);

}  // namespace farheap::bench
