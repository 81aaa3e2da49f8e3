// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A store's part of an etcd cluster (its keys are in docs/formats.md), and what makes sure of two things:
//
// - It is still the store that was opened. Every transaction compares the revision at which its description was made,
//   and every answer's revision must not be below one that was seen before.
// - No request is carried out late. Each handle has a fence, a key that only it writes; every transaction that writes
//   compares the fence's revision. When a request got no answer, the fence is moved first: then that request has
//   happened, or never will. What must not happen twice writes a stamp into a slot beside the fence, in the same
//   transaction, so that it can be told.
//
// Thread-safety: any thread.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <thread>
#include <vector>

#include "base/mutex.hpp"
#include "engines/etcd/client.hpp"
#include "engines/etcd/registry.hpp"
#include "engines/space/slots.hpp"
#include "engines/space/space.hpp"

namespace farheap::engines::etcd {

class Space final : public ServerSpace {
 public:
  // Makes the store where it is missing.
  [[nodiscard]] static Result<std::unique_ptr<Space>> open(std::unique_ptr<Client> client, const StoreOptions& options);
  ~Space() override;

  [[nodiscard]] Client& client() { return *client_; }
  [[nodiscard]] const Keys& keys() const { return keys_; }
  [[nodiscard]] std::int64_t lease() const { return is_kept() ? 0 : lease_.load(); }  // of blocks and counters

  // ---- guards

  // The store is still there. In front of a transaction's own compares; failed transactions then answer with what
  // told_by() reads, and after that with the caller's own failure branch.
  void guard(api::TxnRequest& request) const;
  // The same, and the fence has not moved.
  void guard(api::TxnRequest& request, std::int64_t fence) const;
  [[nodiscard]] std::int64_t fence() const { return fence_; }

  enum class Told {
    kOwn,         // the guards held: it was a compare of the caller's own
    kFenceMoved,  // do it again, with fence()
    kLost,
  };
  // Why a guarded transaction failed; kLost stays so.
  [[nodiscard]] Told told_by(const api::TxnResponse& failed, std::int64_t fence);
  // How many answers of the failure branch belong to the guards.
  static constexpr int kGuardAnswers = 2;
  // Every answer that was asked for after revision() was `before`.
  [[nodiscard]] bool believe_answer(const api::ResponseHeader& header, std::int64_t before);
  [[nodiscard]] std::int64_t revision() const { return revision_; }

  // Afterwards nothing that was sent with this fence will happen any more.
  [[nodiscard]] grpc::Status move_fence(std::int64_t from, Attempts& attempts);

  // ---- once and only once

  struct Once {
    bool done = false;          // false: the caller's compares did not hold
    std::int64_t revision = 0;  // at which it was done
    api::TxnResponse response;  // of the transaction; empty if it had been done by an attempt without answer
    [[nodiscard]] const api::RangeResponse& found(int i) const {  // of the caller's failure branch
      return response.responses(kGuardAnswers + 1 + i).response_range();
    }
  };
  // `wanted` has compares, success and failure branch of the caller. An unclear end is UNKNOWN.
  [[nodiscard]] Answer<Once> once(const api::TxnRequest& wanted);

  // So many bytes were written: what etcd keeps of the past is bounded by them.
  void has_written(std::size_t bytes);

  [[nodiscard]] bool says_all_is_lost(const grpc::Status&) const override { return false; }  // a lease, perhaps

 private:
  Space(std::unique_ptr<Client> client, std::unique_ptr<Stores> stores, const StoreOptions& options);
  [[nodiscard]] Status prepare() override;
  [[nodiscard]] Answer<std::optional<Found>> find() override;
  [[nodiscard]] grpc::Status make(const About& about) override;
  [[nodiscard]] Answer<std::uint64_t> begin() override;
  [[nodiscard]] bool has_beats() const override { return false; }
  [[nodiscard]] grpc::Status grant_lease();
  [[nodiscard]] grpc::Status keep_lease();
  void work(const std::stop_token& stop);
  std::string slot_key(std::size_t slot) const;

  std::unique_ptr<Client> client_;
  std::unique_ptr<Stores> stores_;
  Keys keys_;
  std::string fence_key_;
  std::int64_t lease_seconds_;
  std::atomic<std::int64_t> lease_{0};
  std::int64_t made_at_ = 0;  // the revision at which the description was made
  std::atomic<std::int64_t> fence_{0};
  base::Mutex fence_mutex_;  // held by who changes fence_
  std::uint64_t cluster_ = 0;
  std::atomic<std::int64_t> revision_{0};
  std::atomic<std::uint64_t> stamp_{1};
  StampSlots slots_;

  base::Mutex work_mutex_;
  std::condition_variable_any work_now_;
  std::size_t written_ FARHEAP_GUARDED_BY(work_mutex_) = 0;      // since the mark
  std::int64_t mark_ FARHEAP_GUARDED_BY(work_mutex_) = 0;        // a revision of the past
  std::int64_t compact_to_ FARHEAP_GUARDED_BY(work_mutex_) = 0;  // 0: nothing to do
  std::jthread working_;                                         // keeps the lease, compacts
};

}  // namespace farheap::engines::etcd
