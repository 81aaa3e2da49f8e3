// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A program's end of one connection to `farheap-engines`: a socket for messages, and shared memory with slots for
// questions. It belongs to the process that made it: a forked child makes one of its own, join(), and has no mapping
// of its parent's.
//
// Thread-safety: any thread of its process.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "store/beside/protocol.hpp"
#include "store/fork_lock.hpp"
#include "store/spin.hpp"

namespace farheap::store::beside {

class Connection {
 public:
  // Takes the socket over; nothing is attached yet.
  explicit Connection(int socket);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // The answer to a message: what is behind kDone; the Error of kFailed; kUnknown if the process has ended.
  [[nodiscard]] Result<std::string> ask(std::string_view message, int descriptor = -1);
  // kList: kListing after kListing, until kDone.
  [[nodiscard]] Result<std::vector<StoreListing>> ask_for_listings(std::string_view message);
  // Makes the shared memory. Before this there are no slots.
  [[nodiscard]] Status attach();
  // In a forked child: a connection of its own to the store of `other`.
  [[nodiscard]] static Result<std::unique_ptr<Connection>> join(const Connection& other);

  // Closes the socket, and waits until the store is closed, unless others have it open too. No question is open any
  // more; only the owner calls this, once.
  void leave();

  [[nodiscard]] int socket() const { return socket_; }
  [[nodiscard]] int owner() const { return owner_; }  // a process
  // Its process has ended: nothing will be answered any more.
  [[nodiscard]] bool has_ended() const { return ended_.load(std::memory_order_acquire); }

  // ---- slots: take one, write the question, submit(), wait(), read the answer, give it back

  [[nodiscard]] std::uint32_t take_slot();
  // For questions in flight, which nobody waits for: leaves half of the slots to those who wait. nullopt: none.
  [[nodiscard]] std::optional<std::uint32_t> take_spare_slot();
  void give_back(std::uint32_t index);
  [[nodiscard]] Slot& slot(std::uint32_t index) const { return memory_.slot(index); }
  [[nodiscard]] std::size_t data_bytes() const { return memory_.data_bytes(); }
  [[nodiscard]] std::byte* data(std::uint32_t index) const { return memory_.data(index); }
  void submit(std::uint32_t index);
  // False: the process ended without an answer.
  [[nodiscard]] bool wait(std::uint32_t index);
  [[nodiscard]] bool is_answered(std::uint32_t index) const {
    return slot(index).state.load(std::memory_order_acquire) == static_cast<std::uint32_t>(SlotState::kAnswered);
  }
  // Asks the socket; true for good once the process has ended.
  bool check_ended();

 private:
  [[nodiscard]] Result<Received> exchange(std::string_view message, int descriptor) FARHEAP_REQUIRES(messages_);
  [[nodiscard]] bool sleep_until_answered(std::uint32_t index);

  int socket_;
  int owner_;
  SharedMemory memory_;
  ForkLock messages_;  // one question at a time over socket_
  Spin spin_;
  std::atomic<bool> ended_{false};
  std::atomic<std::uint32_t> free_{~std::uint32_t{0}};
};
static_assert(kSlots == 32, "one bit of free_ for each");

}  // namespace farheap::store::beside
