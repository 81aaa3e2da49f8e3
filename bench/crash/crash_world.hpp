// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A program with a kept heap that is killed again and again, and what must be true each time: the heap opens at the
// last commit that returned or the one in flight, every object is as the model says, its books are in order, and
// nothing is left allocated when all that is known of is freed.
//
// The program: some threads that change tables of their own, step by step (texts up to 200 KB come, change and go;
// named objects, too), and one that commits, compacts, makes snapshots and removes them. Step k of a thread is the same
// whenever it is made, so that the state after k steps is known to who counts; a step is one pause(), so that no cut
// halves it.
//
// Thread-safety: one thread; the calling process must have no others when it forks.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <farheap/farheap.hpp>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace farheap::crash {

inline constexpr unsigned kThreads = 3;

// Shared with the program that is killed.
struct Progress {
  std::atomic<std::uint64_t> commits_begun, commits_returned;
  std::array<std::atomic<std::uint64_t>, kThreads> steps_begun;
  std::array<std::atomic<std::uint64_t>, kThreads> steps_returned;  // in the last commit that returned, at the least
};

struct Counts {
  std::uint64_t kills = 0;
  std::uint64_t at_the_last = 0;  // opened at the last commit that had returned
  std::uint64_t in_flight = 0;    // ... at the one that was under way
  std::uint64_t commits = 0, steps = 0;
  std::uint64_t snapshots_read = 0;
  std::uint64_t objects_compared = 0;
  std::uint64_t creations_killed = 0;
  std::uint64_t most_file_bytes = 0;
};

class World {
 public:
  // The heap's file must not exist.
  World(std::string file, std::uint64_t seed);
  ~World();
  World(const World&) = delete;

  // Starts the program, kills it, and looks. Empty, or what is wrong; then the file is as it was found.
  [[nodiscard]] std::string kill_once();
  // A program that creates a heap and removes it, for ever, is killed; then creating it must succeed.
  [[nodiscard]] std::string kill_while_created();
  [[nodiscard]] const Counts& counts() const { return counts_; }

 private:
  struct Text {
    std::uint32_t length;
    char letter;
  };
  // Of one thread.
  struct Model {
    std::map<int, Text> texts;
    std::uint64_t digest = 0;
    std::vector<std::uint64_t> digests{0};  // after so many steps
  };
  [[nodiscard]] std::string compare(Heap& heap, std::array<std::uint64_t, kThreads>& steps);
  [[nodiscard]] std::string look();
  [[nodiscard]] std::string look_at_newest();
  [[nodiscard]] std::string look_at_snapshots();
  [[nodiscard]] std::string look_for_leaks(Heap& heap) const;
  [[nodiscard]] std::string wait_for_commit(pid_t child, std::uint64_t before) const;
  void advance(unsigned thread, std::uint64_t steps);

  const std::string file_, uri_;
  std::mt19937_64 random_;
  Progress* progress_;
  std::array<Model, kThreads> models_;
  std::uint64_t empty_bytes_ = 0;  // allocated in a heap without objects
  Counts counts_;
};

}  // namespace farheap::crash
