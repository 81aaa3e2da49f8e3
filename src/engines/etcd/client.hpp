// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An etcd cluster: its members, of which one is asked until it does not answer and then the next, and the token of a
// user. The messages are those of https://etcd.io/docs/v3.4/learning/api/.
//
// Thread-safety: any thread.
#pragma once

#include <etcdserverpb/rpc.grpc.pb.h>

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.hpp"
#include "engines/grpc/server_client.hpp"
#include "store/secrets.hpp"

namespace farheap::engines::etcd {

namespace api = etcdserverpb;

// What a request and the operations in it may take (etcd's --max-txn-ops, and a part of its --max-request-bytes).
inline constexpr std::size_t kMostOperations = 128;
inline constexpr std::size_t kMostRequestBytes = std::size_t{5} << 18;  // 1.25 MiB of 1.5

struct Place {
  std::vector<std::string> members;  // "h:2379"
  std::string name;                  // of the store; empty where the URI names none
  std::string shown;                 // the URI without secrets and parameters
  // With another name.
  [[nodiscard]] std::string shown_as(const std::string& other) const;
};
// "//[USER@]HOST[:PORT][,HOST[:PORT]]...[/NAME]"; kInvalidArgument, with the right form, if it is not of that form.
[[nodiscard]] Result<Place> etcd_place(std::string_view place);

// The first key behind all that begin with `prefix`.
[[nodiscard]] std::string behind(std::string prefix);

// The cluster is full: NOSPACE, until it is compacted, defragmented and disarmed.
[[nodiscard]] bool is_full(const grpc::Status& status);

class Client final : public ServerClient {
 public:
  // Asks nothing yet, but for the token of a user.
  [[nodiscard]] static Result<std::unique_ptr<Client>> open(const std::string& place, const store::Parameters&,
                                                            const StoreOptions& options);

  [[nodiscard]] const Place& place() const { return place_; }
  void hurry() override { is_hurrying_ = true; }
  [[nodiscard]] Error error(const grpc::Status& status, std::string what) const override;

  // ---- one attempt; the member that is asked, for again()

  struct Member {
    std::shared_ptr<grpc::Channel> channel;
    std::unique_ptr<api::KV::Stub> kv;
    std::unique_ptr<api::Lease::Stub> lease;
  };
  [[nodiscard]] std::size_t current() const { return current_; }
  [[nodiscard]] Member& member(std::size_t index) { return members_[index % members_.size()]; }
  void prepare(grpc::ClientContext& context);  // with the token
  // Whether another attempt makes sense, after the pause it takes: with another member, with another token.
  [[nodiscard]] bool again(Attempts& attempts, const grpc::Status& status, std::size_t asked);

  // ---- with patience; requires: doing it twice does no harm

  template <class Call>
  [[nodiscard]] grpc::Status ask(Call call) {
    auto asking = attempts();
    return ask(asking, call);
  }
  template <class Call>
  [[nodiscard]] grpc::Status ask(Attempts& asking, Call call) {
    for (;;) {
      const auto asked = current();
      grpc::ClientContext context;
      context.set_deadline(asking.deadline());
      prepare(context);
      const grpc::Status status = call(member(asked), context);
      if (status.ok()) asking.over();
      if (status.ok() || !again(asking, status, asked)) return status;
    }
  }
  [[nodiscard]] Answer<api::RangeResponse> range(const api::RangeRequest& request);
  [[nodiscard]] Answer<api::TxnResponse> transact(const api::TxnRequest& request);

 private:
  Client(Place place, ServerPatience patience, store::Login login)
      : ServerClient(place.shown, patience, false), place_(std::move(place)), login_(std::move(login)) {}
  // A new token, from any member.
  [[nodiscard]] grpc::Status authenticate();

  Place place_;
  store::Login login_;
  std::vector<Member> members_;
  std::atomic<std::size_t> current_{0};
  std::atomic<bool> is_hurrying_{false};
  std::atomic<std::size_t> hurried_{0};  // attempts that failed since
  base::Mutex token_mutex_;
  std::string token_ FARHEAP_GUARDED_BY(token_mutex_);
};

}  // namespace farheap::engines::etcd
