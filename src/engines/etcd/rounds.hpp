// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Many guarded transactions in flight, and those that got no answer again: each may be done twice without harm.
//
// Thread-safety: one thread; any number of them at the same time.
#pragma once

#include <vector>

#include "engines/etcd/space.hpp"
#include "engines/grpc/streams.hpp"

namespace farheap::engines::etcd {

struct RoundsEnd {
  grpc::Status status;       // why some are not done
  bool was_unclear = false;  // one that is not done may have happened
  std::vector<bool> done;
};

// `fill(i, request)` writes the success branch of transaction i; with `writes` it is guarded by the fence as well.
// `take(i, response)` gets its answer. Stops when the store is lost.
template <class Fill, class Take>
[[nodiscard]] RoundsEnd run_rounds(Space& space, std::size_t count, bool writes, Fill fill, Take take) {
  constexpr std::size_t kInFlight = 4;
  auto& client = space.client();
  auto attempts = client.attempts();
  RoundsEnd end{.status = {}, .was_unclear = false, .done = std::vector<bool>(count)};
  std::vector<std::size_t> pending(count);
  for (std::size_t i = 0; i < count; ++i) pending[i] = i;
  while (!pending.empty() && !space.is_lost()) {
    const auto fence = space.fence();
    const auto before = space.revision();
    const auto asked = client.current();
    std::vector<api::TxnResponse> responses(pending.size());
    api::TxnRequest request;
    const auto statuses = run_calls(responses, kInFlight, attempts.deadline(),
                                    [&](std::size_t i, grpc::ClientContext& context, grpc::CompletionQueue* queue) {
                                      request.Clear();
                                      writes ? space.guard(request, fence) : space.guard(request);
                                      fill(pending[i], request);
                                      client.prepare(context);
                                      return client.member(asked).kv->AsyncTxn(&context, request, queue);
                                    });
    end.status = {};
    bool unclear = false;
    std::vector<std::size_t> left;
    for (std::size_t i = 0; i < pending.size(); ++i) {
      if (statuses[i].ok() && space.believe_answer(responses[i].header(), before) && responses[i].succeeded()) {
        take(pending[i], responses[i]);
        end.done[pending[i]] = true;
        continue;
      }
      left.push_back(pending[i]);
      if (statuses[i].ok()) {
        if (!space.is_lost()) (void)space.told_by(responses[i], fence);
      } else {
        unclear = unclear || reply_of(statuses[i]) == Reply::kUnclear;
        if (end.status.ok() || reply_of(statuses[i]) == Reply::kRefused) end.status = statuses[i];
      }
    }
    pending = std::move(left);
    if (end.status.ok()) continue;
    end.was_unclear = end.was_unclear || unclear;
    if (!client.again(attempts, end.status, asked)) break;
    if (!writes || !unclear) continue;
    if (const auto moved = space.move_fence(fence, attempts); !moved.ok()) {
      end.status = moved;
      break;
    }
    end.was_unclear = false;  // what is still not done will not happen any more
  }
  return end;
}

}  // namespace farheap::engines::etcd
