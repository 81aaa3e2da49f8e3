// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What one caller needs for the length of a call: a connection to each server, and room to write requests in. There are
// as many lanes as callers at the same time; they are kept for the next.
//
// Thread-safety: a lane: one thread at a time. Lanes: any thread, also in a forked child, which makes its own.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "os/fork_mark.hpp"
#include "store/redis/connection.hpp"
#include "store/redis/requests.hpp"
#include "store/redis/shared.hpp"

namespace farheap::store::redis {

// A lane's dealings with one server.
struct Line {
  explicit Line(unsigned node) : connection(node) {}
  Connection connection;
  std::uint64_t contents = 0;       // hash of connection.contents()
  unsigned looked_at_changes = 0;   // Nodes::changes() when the beats were looked at
  std::vector<Beat*> beats;         // the last is in use
  Requests beat;                    // the beat of the request under way
  std::uint64_t beat_number = 0;    // 0: none
  std::vector<unsigned> under_way;  // commands, in the order they were sent
  bool writes = false;              // one of them does
  bool is_stale = false;            // the server takes no writes any more
};

struct Lane {
  std::string id;
  Requests requests;
  std::vector<std::unique_ptr<Line>> lines;  // by number of the server; nullptr: none yet
  std::vector<iovec> pieces;
  Line& line(unsigned node) {
    if (lines.size() <= node) lines.resize(node + 1);
    if (!lines[node]) lines[node] = std::make_unique<Line>(node);
    return *lines[node];
  }
};

class Lanes {
 public:
  static constexpr unsigned kMost = 64;
  explicit Lanes(Shared& shared);
  ~Lanes();
  Lanes(const Lanes&) = delete;
  Lanes& operator=(const Lanes&) = delete;

  // One for this call; waits if all are in use.
  class Guard {
   public:
    Guard(Lanes& lanes, unsigned number) : lanes_(lanes), number_(number) {}
    ~Guard() { lanes_.give_back(number_); }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;
    Lane* operator->() const { return lanes_.lanes_[number_].get(); }
    Lane& operator*() const { return *lanes_.lanes_[number_]; }

   private:
    Lanes& lanes_;
    unsigned number_;
  };
  [[nodiscard]] Guard take();
  [[nodiscard]] std::unique_ptr<Lane> make();

 private:
  void give_back(unsigned number);
  void renew_in_child();

  Shared& shared_;
  std::array<std::atomic<bool>, kMost> taken_{};
  std::array<std::unique_ptr<Lane>, kMost> lanes_;
  std::atomic<unsigned> given_back_{0};
  os::ForkMark mark_;
  ForkLock lock_;       // held by who makes all anew in a child
  std::string client_;  // of this process, among all that use the server
  std::atomic<unsigned> made_{0};
};

}  // namespace farheap::store::redis
