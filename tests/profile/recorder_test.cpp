// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a program allocates, in a recording.
#include "profile/recorder.hpp"

#include <random>
#include <set>
#include <thread>

#include "base/inside_runtime.hpp"

#include "recorder_world.hpp"

namespace farheap::profile::testing {
namespace {

TEST_F(RecorderTest, MakesNothingBeforeThereIsASample) {
  const auto recorder = make();
  recorder->freed(at(4096));
  recorder->unmapped(at(0), 16 * kPage);
  kAsk[0](*recorder, at(Model::point(5) + 16), 16);  // beside the point
  EXPECT_EQ(recordings(), 0u);
  kAsk[0](*recorder, at(Model::point(5)), 16);
  EXPECT_EQ(recordings(), 1u);
}

TEST_F(RecorderTest, SaysOfWhomTheRecordingIs) {
  const auto recorder = make();
  ask_pages(*recorder, 0, 3, 1);
  const Profile profile = read();
  const ProcessProfile& one = profile.processes[0];
  EXPECT_EQ(one.process, getpid());
  EXPECT_EQ(one.parent, getppid());
  EXPECT_EQ(one.name, std::string(program_invocation_short_name).substr(0, 63));
  ASSERT_EQ(one.sites.size(), 1u);
  EXPECT_EQ(profile.files[who_asked(one, one.sites[0].site).file].path, own_path());
  // The stack leads from the function that asked out to the C library, which called main().
  std::set<std::string> files;
  for (SiteId frame = one.sites[0].site; frame != 0; frame = one.frames[frame].inner) {
    files.insert(profile.files[one.frames[frame].returns_to.file].path);
  }
  EXPECT_TRUE(files.contains(own_path()));
}

// Objects of malloc() in one half of some pages, mappings in the other.
class RandomProgram {
 public:
  RandomProgram(Recorder& recorder, const std::byte* heap, std::uint64_t first_page, unsigned seed)
      : recorder_(recorder), heap_(heap), first_(first_page), random_(seed) {}
  void step() {
    switch (random_() % 8) {
      case 0:
      case 1:
      case 2: return allocate();
      case 3:
      case 4: return give_back();
      case 5: return reallocate();
      case 6: return map();
      default: return unmap();
    }
  }
  void give_all_back() {
    while (!objects_.empty()) give_back();
    recorder_.unmapped(heap_ + (first_ + kHalf) * kPage, kHalf * kPage);
    model.unmapped((first_ + kHalf) * kPage, kHalf * kPage);
  }
  Model model;
  static constexpr std::uint64_t kHalf = 1500;  // pages

 private:
  [[nodiscard]] std::uint64_t random_bytes() {
    switch (random_() % 4) {
      case 0: return 1 + random_() % 200;
      case 1: return 1 + random_() % 5000;
      case 2: return 1 + random_() % 40000;
      default: return kPage * (1 + random_() % 30);
    }
  }
  [[nodiscard]] bool is_free(std::uint64_t offset, std::uint64_t bytes) const {
    const auto after = objects_.lower_bound(offset + bytes);
    if (after == objects_.begin()) return true;
    const auto before = std::prev(after);
    return before->first + before->second <= offset;
  }
  void tell(std::uint64_t offset, std::uint64_t bytes) {
    const unsigned caller = random_() % kCallers;
    kAsk[caller](recorder_, heap_ + offset, bytes);
    model.allocated(caller, offset, bytes);
  }
  void allocate() {
    const std::uint64_t bytes = random_bytes();
    const std::uint64_t offset = first_ * kPage + random_() % ((kHalf * kPage - bytes) / 16) * 16;
    if (!is_free(offset, bytes)) return;
    objects_[offset] = bytes;
    tell(offset, bytes);
  }
  [[nodiscard]] std::map<std::uint64_t, std::uint64_t>::iterator any() {
    return std::next(objects_.begin(), static_cast<std::ptrdiff_t>(random_() % objects_.size()));
  }
  void give_back() {
    if (objects_.empty()) return;
    const auto one = any();
    recorder_.freed(heap_ + one->first);
    model.freed(one->first);
    objects_.erase(one);
  }
  // In place, as malloc.cpp does it: larger or smaller, by whoever asks now.
  void reallocate() {
    if (objects_.empty()) return;
    const auto one = any();
    const std::uint64_t bytes = 1 + random_() % (one->second + 2 * kPage), offset = one->first;
    const auto next = std::next(one);
    if (next != objects_.end() ? offset + bytes > next->first : offset + bytes > (first_ + kHalf) * kPage) return;
    recorder_.freed(heap_ + offset);
    model.freed(offset);
    one->second = bytes;
    tell(offset, bytes);
  }
  [[nodiscard]] std::pair<std::uint64_t, std::uint64_t> any_pages() {
    const std::uint64_t pages = 1 + random_() % 40;
    return {(first_ + kHalf + random_() % (kHalf - pages)) * kPage, pages * kPage};
  }
  // Over what may be there.
  void map() {
    const auto [offset, bytes] = any_pages();
    recorder_.unmapped(heap_ + offset, bytes);
    model.unmapped(offset, bytes);
    tell(offset, bytes);
  }
  void unmap() {
    const auto [offset, bytes] = any_pages();
    recorder_.unmapped(heap_ + offset, bytes);
    model.unmapped(offset, bytes);
  }

  Recorder& recorder_;
  const std::byte* const heap_;
  const std::uint64_t first_;
  std::mt19937_64 random_;
  std::map<std::uint64_t, std::uint64_t> objects_;
};

TEST_F(RecorderTest, BytesOfSitesAreThoseOfTheirLiveObjectsPoints) {
  for (unsigned seed = 1; seed <= 3; ++seed) {
    const auto recorder = make();
    RandomProgram program(*recorder, heap_.data(), 1000 * seed, seed);
    for (int round = 0; round < 4; ++round) {
      for (int i = 0; i < 5000; ++i) program.step();
      program.model.expect_in(read());
      ASSERT_FALSE(HasFailure()) << "seed " << seed << ", round " << round;
    }
    EXPECT_GT(program.model.live(), 100 * kPage);
    program.give_all_back();
    EXPECT_EQ(program.model.live(), 0u);
    program.model.expect_in(read());
    std::filesystem::remove(path_of(getpid()));
  }
}

TEST_F(RecorderTest, ObjectsAreAsManyAsWereAllocated) {
  const auto recorder = make();
  constexpr std::uint64_t kObjects = 40000, kBytes = 208;
  for (std::uint64_t i = 0; i < kObjects; ++i) kAsk[0](*recorder, at(i * kBytes), kBytes);
  const Profile profile = read();
  const Totals seen = totals_of(profile, profile.processes[0], 0);
  EXPECT_NEAR(seen.objects, kObjects, 0.04 * kObjects);
  EXPECT_NEAR(static_cast<double>(seen.allocated), kObjects * kBytes, 0.04 * kObjects * kBytes);
}

TEST_F(RecorderTest, PeaksStayWhenObjectsGo) {
  const auto recorder = make();
  struct Step {
    unsigned caller;
    std::uint64_t page, pages;
  };
  for (const Step& step : {Step{0, 0, 100}, Step{0, 200, 10}, Step{1, 300, 60}}) {  // one place of the call
    ask_pages(*recorder, step.caller, step.page, step.pages);
    recorder->freed(at(0));
  }
  const Profile profile = read();
  const ProcessProfile& one = profile.processes[0];
  EXPECT_EQ(totals_of(profile, one, 0).peak, 100 * kPage);
  EXPECT_EQ(totals_of(profile, one, 0).live, 10 * kPage);
  EXPECT_EQ(totals_of(profile, one, 1).peak, 60 * kPage);
  EXPECT_EQ(one.peak_bytes, 100 * kPage);
  EXPECT_EQ(one.live_bytes, 70 * kPage);
}

// The runtime gave it back unseen, and gives it away again.
TEST_F(RecorderTest, WhoeverHasAPageNowHasItAlone) {
  const auto recorder = make();
  ask_pages(*recorder, 0, 10, 20);
  ask_pages(*recorder, 1, 15, 20);
  const Profile profile = read();
  EXPECT_EQ(totals_of(profile, profile.processes[0], 0).live, 5 * kPage);
  EXPECT_EQ(totals_of(profile, profile.processes[0], 1).live, 20 * kPage);
  EXPECT_EQ(profile.processes[0].live_bytes, 25 * kPage);
}

TEST_F(RecorderTest, WhatLiesElsewhereIsPassedBy) {
  const auto recorder = make();
  static char elsewhere[8 * 4096];
  ask_pages(*recorder, 0, 7, 1);
  const auto before = bytes_of(path_of(getpid()));
  for (const void* const object :
       {static_cast<const void*>(elsewhere), static_cast<const void*>(nullptr),
        static_cast<const void*>(heap_.data() + kHeapBytes), static_cast<const void*>(heap_.data() - 4096),
        reinterpret_cast<const void*>(~std::uintptr_t{0})}) {
    kAsk[1](*recorder, object, 8 * 4096);
    recorder->freed(object);
    recorder->unmapped(object, 8 * 4096);
  }
  kAsk[1](*recorder, at(20 * kPage), 0);
  EXPECT_EQ(bytes_of(path_of(getpid())), before);
}

TEST_F(RecorderTest, WhatTheRuntimeAllocatesIsPassedBy) {
  const auto recorder = make();
  ask_pages(*recorder, 0, 7, 4);
  const auto before = bytes_of(path_of(getpid()));
  {
    base::InsideRuntime inside;
    ask_pages(*recorder, 1, 50, 10);
    recorder->freed(at(7 * kPage));
    recorder->unmapped(at(7 * kPage), 4 * kPage);
  }
  EXPECT_EQ(bytes_of(path_of(getpid())), before);
  EXPECT_FALSE(base::t_inside_runtime);
}

TEST_F(RecorderTest, TheHeapsLastPageIsRecordedAndNothingBehindIt) {
  const auto recorder = make();
  ask_pages(*recorder, 0, kHeapPages - 1, 1);
  kAsk[1](*recorder, at((kHeapPages - 1) * kPage), 100 * kPage);  // more than there is
  const Profile profile = read();
  EXPECT_EQ(totals_of(profile, profile.processes[0], 0).live, 0u);
  EXPECT_EQ(totals_of(profile, profile.processes[0], 1).live, kPage);
  recorder->unmapped(at((kHeapPages - 1) * kPage), 100 * kPage);
  EXPECT_EQ(read().processes[0].live_bytes, 0u);
}

TEST_F(RecorderTest, AnObjectThatIsFreedTwiceIsTakenBackOnce) {
  const auto recorder = make();
  ask_pages(*recorder, 0, 10, 5);
  ask_pages(*recorder, 0, 15, 5);
  recorder->freed(at(10 * kPage));
  recorder->freed(at(10 * kPage));
  recorder->freed(at(12 * kPage));
  EXPECT_EQ(read().processes[0].live_bytes, 5 * kPage);
}

// Unmapping takes whole pages, whatever length is asked for: mremap() and mmap() over a mapping come with any.
TEST_F(RecorderTest, APageOfWhichAPartIsUnmappedIsUnmapped) {
  const auto recorder = make();
  ask_pages(*recorder, 0, 10, 5);
  recorder->unmapped(at(10 * kPage), 4 * kPage + 1);
  EXPECT_EQ(read().processes[0].live_bytes, 0u);
}

// Its outermost frame returns to nowhere: that was taken for a frame that is not there, and the site was lost.
TEST_F(RecorderTest, WhatAThreadAllocatesHasItsSite) {
  const auto recorder = make();
  std::thread([&] { ask_pages(*recorder, 0, 10, 5); }).join();
  const Profile profile = read();
  const ProcessProfile& one = profile.processes[0];
  EXPECT_EQ(totals_of(profile, one, 0).live, 5 * kPage);
  for (std::size_t i = 1; i < one.frames.size(); ++i) EXPECT_NE(one.frames[i].returns_to, (CodePlace{0, 0})) << i;
}

TEST_F(RecorderTest, AddsUpWhatManyThreadsAllocate) {
  constexpr std::uint64_t kEach = 4000;
  const auto recorder = make();
  ask_pages(*recorder, 0, 0, 1);  // who finds that another thread makes the tables goes on without
  recorder->freed(at(0));
  std::vector<std::unique_ptr<RandomProgram>> programs;
  for (unsigned i = 0; i < 4; ++i) {
    programs.push_back(std::make_unique<RandomProgram>(*recorder, heap_.data(), 10000 * (i + 1), i));
  }
  std::vector<std::thread> threads;
  for (const auto& program : programs) {
    threads.emplace_back([&program] {
      for (int i = 0; i < 5000; ++i) program->step();
    });
  }
  std::thread faults([&recorder] {
    for (std::uint64_t i = 0; i < kEach; ++i) {
      recorder->ended(10000 + i, recorder->begun(0, 0), std::chrono::nanoseconds(10), 1);
    }
  });
  for (auto& thread : threads) thread.join();
  faults.join();
  const Profile profile = read();
  expect_sound(profile);
  const ProcessProfile& one = profile.processes[0];
  for (unsigned caller = 0; caller < kCallers; ++caller) {
    std::uint64_t wanted = 0;
    for (const auto& program : programs) wanted += program->model.live(caller);
    EXPECT_EQ(totals_of(profile, one, caller).live, wanted) << caller;
  }
  EXPECT_EQ(one.faults, kEach);
  EXPECT_EQ(one.stalled_ns, 10 * kEach);
  for (const auto& program : programs) program->give_all_back();
  EXPECT_EQ(read().processes[0].live_bytes, 0u);
}

}  // namespace
}  // namespace farheap::profile::testing
