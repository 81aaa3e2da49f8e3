// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Several requests of one batch in flight, waited for by the thread that asked: no thread of its own, no lock.
//
// Thread-safety: plain functions; the stubs are gRPC's, which any thread may use.
#pragma once

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <memory>
#include <vector>

namespace farheap::engines {
namespace in_flight {

// A completion queue must be emptied before it goes.
class Queue {
 public:
  ~Queue() {
    queue_.Shutdown();
    void* tag = nullptr;
    bool ok = false;
    while (queue_.Next(&tag, &ok)) {
    }
  }
  [[nodiscard]] grpc::CompletionQueue* get() { return &queue_; }

 private:
  grpc::CompletionQueue queue_;
};

}  // namespace in_flight

// Streams of answers: `start(i, context, queue, tag)` begins request i and returns its reader, `take(i, response)` gets
// its answers in order. At most `most` are in flight. The status of each.
template <class Response, class Start, class Take>
[[nodiscard]] std::vector<grpc::Status> run_streams(std::size_t count, std::size_t most,
                                                    std::chrono::system_clock::time_point deadline, Start start,
                                                    Take take) {
  struct Stream {
    std::size_t index = 0;
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientAsyncReader<Response>> reader;
    Response response;
    grpc::Status status;
    enum { kStarting, kReading, kFinishing } step = kStarting;
  };
  std::vector<grpc::Status> statuses(count);
  in_flight::Queue queue;
  std::vector<std::unique_ptr<Stream>> streams;
  std::size_t begun = 0;
  std::size_t done = 0;
  const auto begin_next = [&](std::unique_ptr<Stream>& place) {
    place = std::make_unique<Stream>();
    place->index = begun++;
    place->context.set_deadline(deadline);
    place->reader = start(place->index, place->context, queue.get(), place.get());
  };
  streams.resize(std::min(count, most));
  for (auto& stream : streams) begin_next(stream);
  while (done < count) {
    void* tag = nullptr;
    bool ok = false;
    queue.get()->Next(&tag, &ok);
    auto* stream = static_cast<Stream*>(tag);
    if (stream->step == Stream::kFinishing) {
      statuses[stream->index] = stream->status;
      ++done;
      if (begun < count) begin_next(*std::ranges::find(streams, stream, &std::unique_ptr<Stream>::get));
      continue;
    }
    if (stream->step == Stream::kReading && ok) take(stream->index, stream->response);
    if (ok) {
      stream->step = Stream::kReading;
      stream->reader->Read(&stream->response, stream);
    } else {
      stream->step = Stream::kFinishing;
      stream->reader->Finish(&stream->status, stream);
    }
  }
  return statuses;
}

// Single answers: `start(i, context, queue)` begins request i and returns its reader; responses[i] is its answer.
template <class Response, class Start>
[[nodiscard]] std::vector<grpc::Status> run_calls(std::vector<Response>& responses, std::size_t most,
                                                  std::chrono::system_clock::time_point deadline, Start start) {
  struct Call {
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientAsyncResponseReader<Response>> reader;
  };
  const std::size_t count = responses.size();
  std::vector<grpc::Status> statuses(count);
  std::vector<Call> calls(count);
  in_flight::Queue queue;
  std::size_t begun = 0;
  const auto begin_next = [&] {
    auto& call = calls[begun];
    call.context.set_deadline(deadline);
    call.reader = start(begun, call.context, queue.get());
    call.reader->Finish(&responses[begun], &statuses[begun], &call);
    ++begun;
  };
  while (begun < std::min(count, most)) begin_next();
  for (std::size_t done = 0; done < count; ++done) {
    void* tag = nullptr;
    bool ok = false;
    queue.get()->Next(&tag, &ok);
    static_cast<Call*>(tag)->reader.reset();
    if (begun < count) begin_next();
  }
  return statuses;
}

}  // namespace farheap::engines
