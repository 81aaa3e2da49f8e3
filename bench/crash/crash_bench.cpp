// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//   crash_bench FOLDER SEED KILLS SECONDS      until so many kills are done or the time is over; 0: no such bound
//
// Lines `METRIC VALUE`; what is wrong goes to stderr, and the status is 1. The heap's file stays then.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "crash_world.hpp"

namespace {

using Clock = std::chrono::steady_clock;

double seconds(Clock::time_point since) { return std::chrono::duration<double>(Clock::now() - since).count(); }

void say(const char* metric, std::uint64_t value) {
  std::printf("%s %llu\n", metric, static_cast<unsigned long long>(value));
}

void say_all(const farheap::crash::Counts& counts) {
  say("kills", counts.kills);
  say("opened_at_the_last_commit", counts.at_the_last);
  say("opened_at_the_one_in_flight", counts.in_flight);
  say("commits", counts.commits);
  say("steps", counts.steps);
  say("objects_compared", counts.objects_compared);
  say("snapshots_read", counts.snapshots_read);
  say("creations_killed", counts.creations_killed);
  say("most_file_bytes", counts.most_file_bytes);
  std::fflush(stdout);
}

}  // namespace

int main(int count, char** words) {
  if (count != 5) {
    std::fprintf(stderr, "usage: crash_bench FOLDER SEED KILLS SECONDS\n");
    return 2;
  }
  const std::string file = std::string(words[1]) + "/heap";
  const std::uint64_t kills = std::strtoull(words[3], nullptr, 10);
  const double most_seconds = std::strtod(words[4], nullptr);
  farheap::crash::World world(file, std::strtoull(words[2], nullptr, 10));
  const auto began = Clock::now();
  auto told = began;
  const auto goes_on = [&] {
    return (kills == 0 || world.counts().kills < kills) && (most_seconds == 0 || seconds(began) < most_seconds);
  };
  while (goes_on()) {
    std::string wrong = world.kill_once();
    if (wrong.empty() && world.counts().kills % 20 == 0) wrong = world.kill_while_created();
    if (!wrong.empty()) {
      say_all(world.counts());
      std::fprintf(stderr, "WRONG after kill %llu: %s\nThe heap is in %s\n",
                   static_cast<unsigned long long>(world.counts().kills), wrong.c_str(), file.c_str());
      return 1;
    }
    if (seconds(told) > 10) {
      told = Clock::now();
      std::fprintf(stderr, "%.0f s: %llu kills, %llu commits survived\n", seconds(began),
                   static_cast<unsigned long long>(world.counts().kills),
                   static_cast<unsigned long long>(world.counts().commits));
    }
  }
  say_all(world.counts());
  return 0;
}
