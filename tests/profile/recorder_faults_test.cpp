// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a recording says of threads that wait.
#include "profile/recorder.hpp"

#include <sched.h>
#include <sys/syscall.h>

#include <atomic>
#include <random>
#include <thread>

#include "profile/page_sampler.hpp"
#include "recorder_world.hpp"

namespace farheap::profile::testing {
namespace {

TEST_F(RecorderTest, OneFaultAmongFewCountsOnce) {
  const auto recorder = make();
  ask_pages(*recorder, 0, 10, 1);
  recorder->ended(10, recorder->begun(0, 0), std::chrono::nanoseconds(700), 3);
  recorder->ended(11, recorder->begun(0, 0), std::chrono::nanoseconds(50), 0);
  const Profile profile = read();
  const ProcessProfile& one = profile.processes[0];
  EXPECT_EQ(one.faults, 2u);
  EXPECT_EQ(one.stalled_ns, 750u);
  EXPECT_EQ(one.pages_read, 3u);
  EXPECT_EQ(one.faults_without_place, 2u) << "thread 0 is none";
  ASSERT_EQ(one.places.size(), 1u);
  ASSERT_EQ(one.sites.size(), 1u);
  ASSERT_EQ(one.stalls.size(), 2u);
  const auto is_of_site = [](const Stall& stall) { return stall.site != 0; };
  const auto mine = std::find_if(one.stalls.begin(), one.stalls.end(), is_of_site);
  const auto nobodys = std::find_if_not(one.stalls.begin(), one.stalls.end(), is_of_site);
  ASSERT_TRUE(mine != one.stalls.end() && nobodys != one.stalls.end());
  EXPECT_EQ(*mine, (Stall{0, one.sites[0].site, 1, 700, 3}));
  EXPECT_EQ(*nobodys, (Stall{0, 0, 1, 50, 0}));
}

TEST_F(RecorderTest, AFaultMakesTheRecordingToo) {
  const auto recorder = make();
  recorder->ended(kHeapPages + 1000, recorder->begun(0, 0), std::chrono::nanoseconds(7), 1);
  const Profile profile = read();
  EXPECT_EQ(profile.processes[0].faults, 1u);
  EXPECT_EQ(profile.processes[0].stalls, (std::vector<Stall>{{0, 0, 1, 7, 1}}));
}

// Only some of them are looked at, and each speaks for those that were not.
TEST_F(RecorderTest, ManyFaultsAreAsManyByTheirSamples) {
  constexpr std::uint64_t kFaults = 2'000'000;
  const auto recorder = make();
  ask_pages(*recorder, 0, 10, 1);
  for (std::uint64_t i = 0; i < kFaults; ++i) {
    recorder->ended(10 + i % 2, recorder->begun(0, 0), std::chrono::nanoseconds(3), 1 + i % 2);
  }
  const Profile profile = read();
  const ProcessProfile& one = profile.processes[0];
  EXPECT_EQ(one.faults, kFaults);
  EXPECT_EQ(one.stalled_ns, 3 * kFaults);
  const double wanted = static_cast<double>(kFaults);
  EXPECT_NEAR(static_cast<double>(one.faults_without_place), wanted, 0.06 * wanted);
  EXPECT_NEAR(static_cast<double>(sum_of(one, &Stall::faults)), wanted, 0.06 * wanted);
  EXPECT_EQ(sum_of(one, &Stall::stalled_ns), 3 * sum_of(one, &Stall::faults));
  ASSERT_EQ(one.stalls.size(), 2u);
  for (const Stall& stall : one.stalls) {
    EXPECT_NEAR(static_cast<double>(stall.faults), wanted / 2, 0.06 * wanted / 2);
    EXPECT_EQ(stall.pages_read, stall.faults * (stall.site != 0 ? 1 : 2));
  }
}

// ---- which site's objects are touched

double touches_of(const Profile& profile, unsigned caller) {
  const ProcessProfile& one = profile.processes[0];
  const CodePlace wanted = place_of_code(profile, g_returns_to[caller]);
  double sum = 0;
  for (const SiteTotals& site : one.sites) sum += who_asked(one, site.site) == wanted ? site.touches : 0;
  return sum;
}

// A program and what is seen of its touches: the first in a page that was not in view.
class Toucher {
 public:
  Toucher(Recorder& recorder, const std::byte* heap) : recorder_(recorder), heap_(heap) {}
  void touch(std::uint64_t offset) {
    const std::uint64_t page = offset / kPage;
    if (!is_sampled(page, PageSampler::kFirstOneInLog2)) return;
    const bool is_in_view = std::ranges::find(in_view_, page) != in_view_.end();
    if (is_in_view) return;
    in_view_[next_++ % in_view_.size()] = page;
    (void)recorder_.begun(0, reinterpret_cast<std::uintptr_t>(heap_ + offset));
  }

 private:
  Recorder& recorder_;
  const std::byte* heap_;
  std::array<std::uint64_t, 4> in_view_{};
  std::size_t next_ = 0;
};

constexpr std::uint64_t kSlot = 80;
constexpr std::uint64_t kPairs = (std::uint64_t{256} << 20) / (2 * kSlot);

// Objects of two sites lie between each other on every page, and those of the one are touched ten times as often.
TEST_F(RecorderTest, TouchesAreTheSitesWhoseObjectIsTouchedAndNotThePages) {
  const auto recorder = make();
  for (std::uint64_t i = 0; i < 2 * kPairs; ++i) kAsk[i % 2](*recorder, at(i * kSlot), kSlot - i % 16);
  Toucher program(*recorder, at(0));
  std::mt19937_64 random(3);
  for (int i = 0; i < 24'000'000; ++i) {
    const std::uint64_t one = 2 * (random() % kPairs) + (random() % 11 == 0 ? 1 : 0);
    program.touch(one * kSlot + random() % 64);
  }
  const Profile profile = read();
  EXPECT_NEAR(touches_of(profile, 0) / touches_of(profile, 1), 10, 2);
}

// The second of two neighbours is never the first that is touched on a page, wherever it lies.
TEST_F(RecorderTest, NeighboursThatAreTouchedTogetherAreTouchedAsOften) {
  for (const bool backwards : {false, true}) {
    const auto recorder = make();
    for (std::uint64_t i = 0; i < 2 * kPairs; ++i) kAsk[i % 2](*recorder, at(i * kSlot), kSlot);
    Toucher program(*recorder, at(0));
    std::mt19937_64 random(3);
    for (int i = 0; i < 6'000'000; ++i) {
      const std::uint64_t first = 2 * (random() % kPairs) * kSlot;
      program.touch(backwards ? first + kSlot : first);
      program.touch(backwards ? first : first + kSlot);
    }
    const Profile profile = read(path_of(getpid(), backwards ? ".1" : ""));
    EXPECT_NEAR(touches_of(profile, 0) / touches_of(profile, 1), 1, 0.25) << backwards;
  }
}

TEST_F(RecorderTest, TouchesOfLargeObjectsAreThoseOfTheirSampledPages) {
  const auto recorder = make();
  ask_pages(*recorder, 2, 0, 20'000);  // 78 MiB
  double expected = 0;
  for (std::uint64_t page = 0; page < 40'000; ++page) {
    const bool is_counted = is_sampled(page, PageSampler::kFirstOneInLog2);
    expected += is_counted && page < 20'000 ? 1 : 0;
    (void)recorder->begun(0, reinterpret_cast<std::uintptr_t>(at(page * kPage + page % kPage)));
  }
  (void)recorder->begun(0, 0);
  (void)recorder->begun(0, reinterpret_cast<std::uintptr_t>(this));
  ASSERT_GT(expected, 100);
  EXPECT_EQ(touches_of(read(), 2), 0) << "the first touch makes a page";
  for (std::uint64_t page = 0; page < 40'000; ++page) {
    (void)recorder->begun(0, reinterpret_cast<std::uintptr_t>(at(page * kPage)));
  }
  EXPECT_EQ(touches_of(read(), 2), 64 * expected);
}

// By any byte of it on the page where it begins; and whoever lies there now is touched, not who was freed.
TEST_F(RecorderTest, TheFirstObjectOfAPageIsFoundByAnyOfItsBytes) {
  const auto recorder = make();
  std::uint64_t page = 7;
  while (!is_sampled(page, PageSampler::kFirstOneInLog2)) ++page;
  const std::uint64_t first = page * kPage + 48, bytes = 100;  // of a slot of 112: the one before begins elsewhere
  kAsk[0](*recorder, at(first), bytes);
  kAsk[2](*recorder, at(first + 112), bytes);  // the second
  const auto touch = [&](std::uint64_t offset) {
    (void)recorder->begun(0, reinterpret_cast<std::uintptr_t>(at(offset)));
  };
  const auto touches = [&] {
    const auto file = bytes_of(path_of(getpid()));
    const auto* const figures = reinterpret_cast<const SiteFigures*>(file.data() + sizeof(RecordingHeader) +
                                                                     RecordingRoom().sites * sizeof(RecordedFrame));
    std::uint64_t sum = 0;
    for (std::uint32_t site = 0; site < RecordingRoom().sites; ++site) {
      for (const auto& edge : figures[site].edges) sum += edge.touches.load();
    }
    return sum;
  };
  touch(first);
  EXPECT_EQ(touches(), 0u) << "the first time makes the page";
  touch(first);
  touch(first + bytes - 1);
  EXPECT_EQ(touches(), 2u);
  touch(first - 1);
  touch(first + 112);
  EXPECT_EQ(touches(), 2u) << "before it, and the second";
  recorder->freed(at(first));
  kAsk[1](*recorder, at(page * kPage + 32), 60);
  touch(first + bytes - 1);
  EXPECT_EQ(touches(), 2u) << "nobody lies there now";
  touch(page * kPage + 32);
  EXPECT_EQ(touches(), 3u);
}

// Whichever object of the page it is; and each weighs as much time as passes between two.
TEST_F(RecorderTest, TouchesOfSmallObjectsAreNotedInTheirOrder) {
  const auto recorder = make();
  std::uint64_t page = 7;
  while (!is_sampled(page, PageSampler::kFirstOneInLog2)) ++page;
  for (unsigned i = 0; i < 30; ++i) kAsk[i % 3](*recorder, at(page * kPage + 128 * i), 120);
  const auto touch = [&](unsigned object, std::int64_t passed_ns) {
    g_test_step_ns = passed_ns;
    (void)recorder->begun(0, reinterpret_cast<std::uintptr_t>(at(page * kPage + 128 * object + 100)));
  };
  touch(10, 1000);  // makes the page
  for (const unsigned object : {10u, 10u, 11u, 12u, 14u}) touch(object, 50'000);
  for (int i = 0; i < 400; ++i) touch(9, 1'000'000);
  const Profile profile = read();
  const ProcessProfile& one = profile.processes[0];
  std::vector<CodePlace> callers;
  for (const SiteTouch& touch : std::span(one.touch_order).first(5)) callers.push_back(who_asked(one, touch.site));
  EXPECT_EQ(one.touch_order[3].weight, 50u) << "microseconds between two";
  EXPECT_NEAR(one.touch_order.back().weight, 1'000, 10);
  EXPECT_TRUE(std::ranges::is_sorted(one.touch_order, {}, &SiteTouch::weight)) << "in the mean of the last ones";
  const auto of = [&](unsigned caller) { return place_of_code(profile, g_returns_to[caller]); };
  EXPECT_EQ(callers, (std::vector<CodePlace>{of(1), of(1), of(2), of(0), of(2)}));
}

// What begins on a page before it, and what lay there before.
TEST_F(RecorderTest, TouchesAreOfWhatLiesOnThePageNow) {
  const auto recorder = make();
  std::uint64_t page = 7;
  while (!is_sampled(page, PageSampler::kFirstOneInLog2)) ++page;
  const auto touches = [&] {
    for (int i = 0; i < 2; ++i) (void)recorder->begun(0, reinterpret_cast<std::uintptr_t>(at(page * kPage + 40)));
    return read().processes[0].touch_order.size();
  };
  kAsk[1](*recorder, at(page * kPage - 16), 3'000);
  EXPECT_EQ(touches(), 1u) << "the first touch makes the page";
  recorder->freed(at(page * kPage - 16));
  kAsk[2](*recorder, at((page - 1) * kPage), 5'000);  // larger than a page
  EXPECT_EQ(touches(), 1u);
  kAsk[0](*recorder, at(page * kPage + 32), 64);
  EXPECT_EQ(touches(), 3u);
}

TEST_F(RecorderTest, ARecorderThatIsAttachedAgainHasTouchesOfItsOwn) {
  const auto recorder = make();
  std::uint64_t page = 7;
  while (!is_sampled(page, PageSampler::kFirstOneInLog2)) ++page;
  kAsk[1](*recorder, at(page * kPage), 64);
  for (int i = 0; i < 20'000; ++i) (void)recorder->begun(0, reinterpret_cast<std::uintptr_t>(at(page * kPage + 40)));
  const std::string folder = folder_ + "/again";
  std::filesystem::create_directory(folder);
  ASSERT_TRUE(recorder->attach(folder));
  kAsk[2](*recorder, at(page * kPage), 64);
  for (int i = 0; i < 4; ++i) (void)recorder->begun(0, reinterpret_cast<std::uintptr_t>(at(page * kPage + 40)));
  const Profile profile = read(folder + "/" + std::to_string(getpid()) + ".recording");
  const ProcessProfile& one = profile.processes[0];
  ASSERT_EQ(one.touch_order.size(), 3u) << "each is noted by itself";
  for (const SiteTouch& touch : one.touch_order) {
    EXPECT_EQ(who_asked(one, touch.site), place_of_code(profile, g_returns_to[2]));
  }
}

// A thread that waits for a pipe.
class Waiter {
 public:
  // syscall() has no frame, as what copies and compares in the C library has none. read() has one where there are
  // threads.
  enum class In { kSystemCall, kRead };
  explicit Waiter(In in = In::kSystemCall) {
    EXPECT_EQ(pipe(pipe_), 0);
    thread_ = std::thread([this, in] {
      number_ = gettid();
      char word = 0;
      in == In::kRead ? wait_in_read(&word) : wait_in_system_call(&word);
    });
    while (number_ == 0) sched_yield();
  }
  ~Waiter() {
    EXPECT_EQ(write(pipe_[1], "", 1), 1);
    thread_.join();
    close(pipe_[0]), close(pipe_[1]);
  }
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;
  // False: the kernel does not tell.
  [[nodiscard]] bool waits() const {
    const std::string path = "/proc/self/task/" + std::to_string(number_) + "/syscall";
    char wanted[32];
    std::snprintf(wanted, sizeof wanted, "%ld 0x%x ", static_cast<long>(SYS_read), static_cast<unsigned>(pipe_[0]));
    for (;;) {
      std::ifstream in(path);
      std::string text;
      if (!std::getline(in, text)) return false;
      if (text.starts_with(wanted)) return true;
      sched_yield();
    }
  }
  [[nodiscard]] std::uint32_t number() const { return static_cast<std::uint32_t>(number_.load()); }

 private:
  __attribute__((noinline)) void wait_in_read(char* word) {
    EXPECT_EQ(::read(pipe_[0], word, 1), 1);
    asm volatile("" ::: "memory");
  }
  __attribute__((noinline)) void wait_in_system_call(char* word) {
    (void)syscall(SYS_read, pipe_[0], word, 1);
    asm volatile("" ::: "memory");
  }
  int pipe_[2] = {-1, -1};
  std::atomic<pid_t> number_{0};
  std::thread thread_;
};

TEST_F(RecorderTest, AThreadThatWaitsHasItsPlaceAndWhoCalledIt) {
  const auto recorder = make();
  const Waiter waiter;
  if (!waiter.waits()) GTEST_SKIP() << "NOT TESTED: this kernel does not tell where a thread waits";
  for (int i = 0; i < 3; ++i) {
    recorder->ended(5, recorder->begun(waiter.number(), 0), std::chrono::nanoseconds(100), 1);
  }
  const Profile profile = read();
  const ProcessProfile& one = profile.processes[0];
  EXPECT_EQ(one.faults_without_place, 0u);
  ASSERT_EQ(one.places.size(), 2u);
  EXPECT_NE(profile.files[one.places[1].instruction.file].path.find("/libc"), std::string::npos);
  EXPECT_TRUE(one.places[1].has_caller);
  EXPECT_EQ(profile.files[one.places[1].caller.file].path, own_path());
  EXPECT_EQ(one.stalls, (std::vector<Stall>{{1, 0, 3, 300, 3}}));
}

// The word at its stack pointer is none of a call.
TEST_F(RecorderTest, AThreadThatWaitsInAFunctionWithAFrameHasNoWrongCaller) {
  const auto recorder = make();
  const Waiter waiter(Waiter::In::kRead);
  if (!waiter.waits()) GTEST_SKIP() << "NOT TESTED: this kernel does not tell where a thread waits";
  recorder->ended(5, recorder->begun(waiter.number(), 0), std::chrono::nanoseconds(100), 1);
  const Profile profile = read();
  const ProcessProfile& one = profile.processes[0];
  ASSERT_EQ(one.places.size(), 2u);
  EXPECT_NE(profile.files[one.places[1].instruction.file].path.find("/libc"), std::string::npos);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // whose read() calls the C library's
  if (one.places[1].has_caller) {
    EXPECT_EQ(profile.files[one.places[1].caller.file].path, own_path());
  }
#endif
}

TEST_F(RecorderTest, AThreadThatIsNotThereHasNoPlace) {
  const auto recorder = make();
  recorder->ended(5, recorder->begun(0xffffffff, 0), std::chrono::nanoseconds(100), 1);
  const Profile profile = read();
  EXPECT_EQ(profile.processes[0].faults_without_place, 1u);
  EXPECT_EQ(profile.processes[0].places.size(), 1u);
  EXPECT_EQ(profile.processes[0].stalls, (std::vector<Stall>{{0, 0, 1, 100, 1}}));
}

TEST_F(RecorderTest, StallsThatFindNoRoomAreCounted) {
  const auto recorder = make(kSmall);
  ask_pages(*recorder, 0, 10, 4);
  const std::uint64_t before = read().processes[0].without_room;
  const Waiter first, second;
  if (!first.waits() || !second.waits()) GTEST_SKIP() << "NOT TESTED: this kernel does not tell where a thread waits";
  const auto fault = [&](std::uint32_t thread, pager::PageNumber page) {
    recorder->ended(page, recorder->begun(thread, 0), std::chrono::nanoseconds(10), 1);
  };
  fault(0, 10);
  fault(0, 1000);
  EXPECT_EQ(read().processes[0].without_room, before);
  fault(first.number(), 10);
  const Profile profile = read();
  expect_sound(profile);
  const ProcessProfile& one = profile.processes[0];
  EXPECT_EQ(one.places.size(), 2u);
  EXPECT_EQ(one.stalls.size(), 2u);
  EXPECT_EQ(one.without_room, before + 1);
  EXPECT_EQ(one.faults, 3u) << "what is exact stays so";
  EXPECT_EQ(one.stalled_ns, 30u);
  EXPECT_EQ(sum_of(one, &Stall::faults), 2u);
}

TEST_F(RecorderTest, PlacesThatFindNoRoomAreNotKnown) {
  RecordingRoom room = kSmall;
  room.stalls = 16;
  room.places = 1;
  const auto recorder = make(room);
  const Waiter waiter;
  if (!waiter.waits()) GTEST_SKIP() << "NOT TESTED: this kernel does not tell where a thread waits";
  recorder->ended(10, recorder->begun(waiter.number(), 0), std::chrono::nanoseconds(10), 1);
  const Profile profile = read();
  expect_sound(profile);
  EXPECT_EQ(profile.processes[0].places.size(), 1u);
  EXPECT_EQ(profile.processes[0].stalls, (std::vector<Stall>{{0, 0, 1, 10, 1}}));
  EXPECT_GE(profile.processes[0].without_room, 1u);
}

}  // namespace
}  // namespace farheap::profile::testing
