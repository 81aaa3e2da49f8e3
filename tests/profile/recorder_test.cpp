// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The recorder over a heap that nobody may touch, beside a model of what lives. What it says is read as the tool reads
// it, out of the file.
#include "profile/recorder.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "base/inside_runtime.hpp"
#include "os/mapping.hpp"
#include "profile/harvest.hpp"

namespace farheap::profile {
namespace {

constexpr std::uint64_t kPage = kSamplePageBytes;
constexpr std::uint64_t kHeapBytes = std::uint64_t{1} << 30;
constexpr std::uint64_t kHeapPages = kHeapBytes / kPage;
constexpr unsigned kCallers = 4;

// ---- functions of a program that allocate

std::array<std::atomic<std::uintptr_t>, kCallers> g_returns_to;  // each of them, from malloc()

// What is asked for memory, as malloc() would be.
__attribute__((noinline)) void allocate(Recorder& recorder, unsigned caller, const void* object, std::size_t bytes) {
  g_returns_to[caller] = reinterpret_cast<std::uintptr_t>(__builtin_return_address(0));
  recorder.allocated(object, bytes, __builtin_return_address(0), __builtin_frame_address(0));
  asm volatile("" ::: "memory");  // no tail call
}

template <unsigned kCaller>
__attribute__((noinline)) void ask(Recorder& recorder, const void* object, std::size_t bytes) {
  allocate(recorder, kCaller, object, bytes);
  asm volatile("" ::"i"(kCaller) : "memory");  // and none like another
}

constexpr void (*kAsk[kCallers])(Recorder&, const void*, std::size_t) = {ask<0>, ask<1>, ask<2>, ask<3>};

// ---- recordings

std::vector<std::byte> bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

void expect_sound(const Profile& profile) {
  for (const ProcessProfile& one : profile.processes) {
    for (std::size_t i = 1; i < one.frames.size(); ++i) {
      EXPECT_LT(one.frames[i].inner, i);
      EXPECT_LT(one.frames[i].returns_to.file, profile.files.size());
    }
    for (const SiteTotals& site : one.sites) {
      EXPECT_TRUE(site.site != 0 && site.site < one.frames.size());
      EXPECT_LE(site.live_bytes, kHeapBytes);
      EXPECT_GE(site.peak_bytes, site.live_bytes);
    }
    for (const Stall& stall : one.stalls) {
      EXPECT_TRUE(stall.place == 0 || stall.place < one.places.size());
      EXPECT_TRUE(stall.site == 0 || stall.site < one.frames.size());
    }
    EXPECT_LE(one.live_bytes, kHeapBytes);
    EXPECT_GE(one.peak_bytes, one.live_bytes);
  }
}

// Of a file of this process's code, as the profile has it.
CodePlace place_of_code(const Profile& profile, std::uintptr_t address) {
  std::ifstream maps("/proc/self/maps");
  for (std::string text; std::getline(maps, text);) {
    MapsLine line;
    if (!read_maps_line(text, line) || address < line.first || address >= line.end) continue;
    for (std::uint32_t file = 1; file < profile.files.size(); ++file) {
      if (profile.files[file].path == line.path) return {file, address - line.first + line.offset};
    }
  }
  return {};
}

std::string own_path() { return std::filesystem::read_symlink("/proc/self/exe").string(); }

struct Totals {
  double objects = 0;
  std::uint64_t allocated = 0, live = 0, peak = 0;
};

// The innermost frame of the site: who called malloc().
CodePlace who_asked(const ProcessProfile& one, SiteId site) {
  while (one.frames[site].inner != 0) site = one.frames[site].inner;
  return one.frames[site].returns_to;
}

Totals totals_of(const Profile& profile, const ProcessProfile& one, unsigned caller) {
  const CodePlace wanted = place_of_code(profile, g_returns_to[caller]);
  Totals sum;
  for (const SiteTotals& site : one.sites) {
    if (who_asked(one, site.site) != wanted) continue;
    sum.objects += site.objects;
    sum.allocated += site.allocated_bytes;
    sum.live += site.live_bytes;
    sum.peak += site.peak_bytes;
  }
  return sum;
}

std::uint64_t sum_of(const ProcessProfile& one, std::uint64_t Stall::* figure) {
  std::uint64_t sum = 0;
  for (const Stall& stall : one.stalls) sum += stall.*figure;
  return sum;
}

// ---- a model

// Whose object covers the point of each page.
class Model {
 public:
  struct Owner {
    unsigned caller;
    std::uint64_t object;
  };
  static std::uint64_t point(std::uint64_t page) { return page * kPage + sample_point(page); }
  void allocated(unsigned caller, std::uint64_t offset, std::uint64_t bytes) {
    for (std::uint64_t page = offset / kPage; page <= (offset + bytes) / kPage; ++page) {
      if (point(page) < offset || point(page) >= offset + bytes) continue;
      owners_[page] = {caller, offset};
      allocated_[caller] += kPage;
      // Points are multiples of 16: of 65 bytes five are met as often as of 80.
      const std::uint64_t covered = (bytes + 15) / 16 * 16;
      objects_[caller] += static_cast<double>(kPage) / static_cast<double>(covered);
    }
    for (unsigned one = 0; one < kCallers; ++one) peak_[one] = std::max(peak_[one], live(one));
  }
  void freed(std::uint64_t offset) {
    std::erase_if(owners_, [offset](const auto& one) { return one.second.object == offset; });
  }
  void unmapped(std::uint64_t offset, std::uint64_t bytes) {
    const std::uint64_t end = (offset + bytes + kPage - 1) / kPage;
    owners_.erase(owners_.lower_bound(offset / kPage), owners_.lower_bound(end));
  }
  [[nodiscard]] std::uint64_t live(unsigned caller) const {
    const auto mine = [caller](const auto& one) { return one.second.caller == caller; };
    return kPage * static_cast<std::uint64_t>(std::count_if(owners_.begin(), owners_.end(), mine));
  }
  [[nodiscard]] std::uint64_t live() const { return kPage * owners_.size(); }

  void expect_in(const Profile& profile) const {
    expect_sound(profile);
    ASSERT_EQ(profile.processes.size(), 1u);
    const ProcessProfile& one = profile.processes[0];
    std::uint64_t allocated = 0;
    for (unsigned caller = 0; caller < kCallers; ++caller) {
      if (allocated_[caller] == 0) continue;
      const Totals seen = totals_of(profile, one, caller);
      EXPECT_EQ(seen.live, live(caller)) << caller;
      EXPECT_EQ(seen.allocated, allocated_[caller]) << caller;
      EXPECT_NEAR(seen.objects, objects_[caller], 0.01 * objects_[caller] + 1) << caller;
      EXPECT_GE(seen.peak, peak_[caller]) << caller;
      allocated += seen.allocated;
    }
    EXPECT_EQ(one.live_bytes, live());
    std::uint64_t of_all = 0;
    for (const SiteTotals& site : one.sites) of_all += site.allocated_bytes;
    EXPECT_EQ(of_all, allocated) << "there are sites that nobody is";
    EXPECT_EQ(one.without_room, 0u);
  }

 private:
  std::map<std::uint64_t, Owner> owners_;
  std::array<std::uint64_t, kCallers> allocated_{}, peak_{};
  std::array<double, kCallers> objects_{};
};

class RecorderTest : public testing::Test {
 protected:
  RecorderTest() {
    std::string name = testing::TempDir() + "farheap-recorder-XXXXXX";
    folder_ = mkdtemp(name.data());
    auto heap = os::Mapping::reserve(kHeapBytes, os::Access::kNone);
    if (heap) heap_ = std::move(*heap);
  }
  ~RecorderTest() override { std::filesystem::remove_all(folder_); }
  void SetUp() override { ASSERT_NE(heap_.data(), nullptr) << "no addresses"; }

  [[nodiscard]] std::unique_ptr<Recorder> make(RecordingRoom room = {}) const { return make_in(folder_, room); }
  [[nodiscard]] std::unique_ptr<Recorder> make_in(const std::string& folder, RecordingRoom room = {}) const {
    auto made = Recorder::make(folder, {heap_.data(), heap_.size()}, room);
    EXPECT_TRUE(made) << made.error().message();
    return made ? std::move(*made) : nullptr;
  }
  [[nodiscard]] std::string path_of(pid_t process, const char* more = "") const {
    return folder_ + "/" + std::to_string(process) + more + ".recording";
  }
  [[nodiscard]] Profile read(const std::string& path) const {
    Profile profile;
    const Status status = add_recording(bytes_of(path), path, [](const std::string&) { return ""; }, profile);
    EXPECT_TRUE(status) << status.error().message();
    if (profile.processes.empty()) profile.processes.emplace_back();
    return profile;
  }
  [[nodiscard]] Profile read() const { return read(path_of(getpid())); }
  [[nodiscard]] std::size_t recordings() const {
    const auto all = std::filesystem::directory_iterator(folder_);
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
  }
  [[nodiscard]] const std::byte* at(std::uint64_t offset) const { return heap_.data() + offset; }
  // Whole pages, each of which has its point in them.
  void ask_pages(Recorder& recorder, unsigned caller, std::uint64_t page, std::uint64_t pages) const {
    kAsk[caller](recorder, at(page * kPage), pages * kPage);
  }

  std::string folder_;
  os::Mapping heap_;
};

// ---- allocations

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
      recorder->ended(10000 + i, recorder->begun(0), std::chrono::nanoseconds(10), 1);
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

// ---- large objects

constexpr std::uint64_t kLarge = kLargeObjectBytes;

TEST_F(RecorderTest, LargeObjectsAreNotedWithTheirBirthsAndDeaths) {
  const auto recorder = make();
  kAsk[0](*recorder, at(kLarge), kLarge);
  kAsk[1](*recorder, at(16 * kLarge + 64), 5 * kLarge + 1);
  kAsk[0](*recorder, at(64 * kLarge), kLarge - 1);  // it is not large
  recorder->freed(at(kLarge));
  recorder->freed(at(64 * kLarge));
  kAsk[0](*recorder, at(kLarge), 2 * kLarge);
  const Profile profile = read();
  const ProcessProfile& one = profile.processes[0];
  ASSERT_EQ(one.objects.size(), 3u);
  EXPECT_EQ(one.objects[0], (LargeObject{one.objects[0].site, kLarge, kLarge, 1, 3}));
  EXPECT_EQ(one.objects[1], (LargeObject{one.objects[1].site, 16 * kLarge + 64, 5 * kLarge + 1, 2, 0}));
  EXPECT_EQ(one.objects[2], (LargeObject{one.objects[2].site, kLarge, 2 * kLarge, 4, 0}));
  EXPECT_EQ(who_asked(one, one.objects[0].site), place_of_code(profile, g_returns_to[0]));
  EXPECT_EQ(who_asked(one, one.objects[1].site), place_of_code(profile, g_returns_to[1]));
  EXPECT_EQ(one.objects[2].site != 0, true);
}

TEST_F(RecorderTest, AnObjectWhoseBeginIsUnmappedIsGone) {
  const auto recorder = make();
  for (const std::uint64_t first : {0, 8, 16}) kAsk[0](*recorder, at(first * kLarge), 4 * kLarge);
  recorder->unmapped(at(9 * kLarge), 2 * kLarge);   // of the second the middle
  recorder->unmapped(at(16 * kLarge), 2 * kLarge);  // of the third the begin
  const ProcessProfile one = read().processes[0];
  ASSERT_EQ(one.objects.size(), 3u);
  EXPECT_EQ(one.objects[0].died, 0u);
  EXPECT_EQ(one.objects[1].died, 0u);
  EXPECT_NE(one.objects[2].died, 0u);
  recorder->unmapped(at(0), kHeapBytes);
  for (const LargeObject& object : read().processes[0].objects) EXPECT_NE(object.died, 0u);
}

// As who wants a mapping aligned does it. A plan at work heard of it, and the recorder did not.
TEST_F(RecorderTest, AnObjectIsGoneHoweverLittleOfItsBeginIsUnmapped) {
  const auto recorder = make();
  kAsk[0](*recorder, at(0), 4 * kLarge);
  recorder->unmapped(at(0), kPage);
  EXPECT_NE(read().processes[0].objects.at(0).died, 0u);
}

TEST_F(RecorderTest, WhatIsFreedTwiceDiesOnce) {
  const auto recorder = make();
  kAsk[0](*recorder, at(0), 4 * kLarge);
  recorder->freed(at(0));
  const auto died = read().processes[0].objects.at(0).died;
  recorder->freed(at(0));
  EXPECT_EQ(read().processes[0].objects.at(0).died, died);
}

TEST_F(RecorderTest, MoreLargeObjectsThanThereIsRoomForAreCounted) {
  const auto recorder = make({.objects = 3});
  for (std::uint64_t i = 0; i < 5; ++i) kAsk[0](*recorder, at(i * kLarge), kLarge);
  const ProcessProfile one = read().processes[0];
  EXPECT_EQ(one.objects.size(), 3u);
  EXPECT_EQ(one.without_room, 2u);
}

TEST_F(RecorderTest, LargeObjectsOfManyThreadsAreAllNoted) {
  const auto recorder = make();
  ask_pages(*recorder, 0, 0, 1);
  std::vector<std::thread> threads;
  for (std::uint64_t i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      for (std::uint64_t k = 0; k < 200; ++k) {
        const std::uint64_t offset = (16 + 64 * i + k % 32) * kLarge;
        kAsk[i](*recorder, at(offset), kLarge);
        recorder->freed(at(offset));
      }
    });
  }
  for (auto& thread : threads) thread.join();
  const ProcessProfile one = read().processes[0];
  ASSERT_EQ(one.objects.size(), 800u);
  std::set<std::uint64_t> times;
  for (const LargeObject& object : one.objects) {
    EXPECT_LT(object.born, object.died);
    times.insert(object.born);
    times.insert(object.died);
  }
  EXPECT_EQ(times.size(), 1600u);
  EXPECT_EQ(*times.rbegin(), 1600u);
}

// ---- faults

TEST_F(RecorderTest, OneFaultAmongFewCountsOnce) {
  const auto recorder = make();
  ask_pages(*recorder, 0, 10, 1);
  recorder->ended(10, recorder->begun(0), std::chrono::nanoseconds(700), 3);
  recorder->ended(11, recorder->begun(0), std::chrono::nanoseconds(50), 0);
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
  recorder->ended(kHeapPages + 1000, recorder->begun(0), std::chrono::nanoseconds(7), 1);
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
    recorder->ended(10 + i % 2, recorder->begun(0), std::chrono::nanoseconds(3), 1 + i % 2);
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
    recorder->ended(5, recorder->begun(waiter.number()), std::chrono::nanoseconds(100), 1);
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
  recorder->ended(5, recorder->begun(waiter.number()), std::chrono::nanoseconds(100), 1);
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
  recorder->ended(5, recorder->begun(0xffffffff), std::chrono::nanoseconds(100), 1);
  const Profile profile = read();
  EXPECT_EQ(profile.processes[0].faults_without_place, 1u);
  EXPECT_EQ(profile.processes[0].places.size(), 1u);
  EXPECT_EQ(profile.processes[0].stalls, (std::vector<Stall>{{0, 0, 1, 100, 1}}));
}

// ---- files

TEST_F(RecorderTest, WithoutAFolderNothingFailsAndItIsSaidOnce) {
  const auto recorder = make_in(folder_ + "/no such folder");
  testing::internal::CaptureStderr();
  for (unsigned i = 0; i < 10; ++i) {
    ask_pages(*recorder, i % kCallers, 10 * i, 3);
    recorder->ended(10, recorder->begun(0), std::chrono::nanoseconds(3), 1);
    recorder->freed(at(10 * i * kPage));
    recorder->unmapped(at(0), kPage);
  }
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("is not in the profile: "), std::string::npos) << said;
  EXPECT_NE(said.find("No such file or directory"), std::string::npos) << said;
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
  EXPECT_EQ(recordings(), 0u);
}

TEST_F(RecorderTest, KeepsErrno) {
  const auto good = make(), bad = make_in(folder_ + "/no such folder");
  testing::internal::CaptureStderr();
  errno = 77;
  ask_pages(*bad, 0, 10, 3);
  EXPECT_EQ(errno, 77);
  ask_pages(*good, 0, 10, 3);
  EXPECT_EQ(errno, 77);
  (void)testing::internal::GetCapturedStderr();
}

TEST_F(RecorderTest, TheSecondOfAProcessNumberHasAnotherFile) {
  std::vector<std::unique_ptr<Recorder>> recorders;
  for (unsigned i = 0; i < 3; ++i) {
    recorders.push_back(make());
    ask_pages(*recorders.back(), 0, 10, i + 1);
  }
  EXPECT_EQ(recordings(), 3u);
  EXPECT_EQ(read(path_of(getpid())).processes[0].live_bytes, kPage);
  EXPECT_EQ(read(path_of(getpid(), ".1")).processes[0].live_bytes, 2 * kPage);
  EXPECT_EQ(read(path_of(getpid(), ".2")).processes[0].live_bytes, 3 * kPage);
}

// ---- forks

// Runs `act` in a child, after `meanwhile` in the parent; answers the child's number.
pid_t in_a_child(const std::function<void()>& meanwhile, const std::function<void()>& act) {
  int go[2];
  EXPECT_EQ(pipe(go), 0);
  const pid_t child = fork();
  if (child == 0) {
    char word = 0;
    if (::read(go[0], &word, 1) != 1) _exit(1);
    act();
    _exit(testing::Test::HasFailure() ? 1 : 0);
  }
  meanwhile();
  EXPECT_EQ(write(go[1], "", 1), 1);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  close(go[0]), close(go[1]);
  return child;
}

TEST_F(RecorderTest, AForkedChildBeginsWithWhatLives) {
  const auto recorder = make();
  ask_pages(*recorder, 0, 10, 30);
  ask_pages(*recorder, 1, 100, 20);
  const auto before = bytes_of(path_of(getpid()));
  const pid_t child = in_a_child([] {},
                                 [&] {
                                   recorder->begin_in_child();
                                   ask_pages(*recorder, 2, 200, 7);
                                 });
  EXPECT_EQ(bytes_of(path_of(getpid())), before) << "the parent's recording changed";
  const Profile profile = read(path_of(child));
  expect_sound(profile);
  const ProcessProfile& one = profile.processes[0];
  EXPECT_EQ(one.process, child);
  EXPECT_EQ(one.parent, getpid());
  EXPECT_EQ(totals_of(profile, one, 0).live, 30 * kPage);
  EXPECT_EQ(totals_of(profile, one, 0).allocated, 0u);
  EXPECT_EQ(totals_of(profile, one, 1).live, 20 * kPage);
  EXPECT_EQ(one.live_bytes, 57 * kPage) << "the child allocated seven";
  EXPECT_EQ(one.faults, 0u);
}

TEST_F(RecorderTest, WhatAForkedChildFreesIsTakenFromWhatItBeganWith) {
  const auto recorder = make();
  ask_pages(*recorder, 0, 10, 30);
  ask_pages(*recorder, 1, 100, 20);
  const auto before = bytes_of(path_of(getpid()));
  const pid_t child = in_a_child([] {},
                                 [&] {
                                   recorder->begin_in_child();
                                   recorder->freed(at(10 * kPage));
                                   recorder->freed(at(10 * kPage));
                                   recorder->unmapped(at(100 * kPage), 5 * kPage);
                                 });
  EXPECT_EQ(bytes_of(path_of(getpid())), before) << "the parent's recording changed";
  const Profile profile = read(path_of(child));
  expect_sound(profile);
  EXPECT_EQ(totals_of(profile, profile.processes[0], 0).live, 0u);
  EXPECT_EQ(totals_of(profile, profile.processes[0], 1).live, 15 * kPage);
  EXPECT_EQ(profile.processes[0].live_bytes, 15 * kPage);
}

// The parent goes on at once. Its tables are shared memory, which told the child what lived a moment after the fork.
TEST_F(RecorderTest, AForkedChildBeginsWithWhatLivedAtTheFork) {
  const auto recorder = make();
  ask_pages(*recorder, 0, 10, 30);
  ask_pages(*recorder, 1, 100, 20);
  const pid_t child = in_a_child(
      [&] {
        recorder->freed(at(10 * kPage));
        ask_pages(*recorder, 1, 300, 40);
      },
      [&] {
        recorder->begin_in_child();
        recorder->freed(at(10 * kPage));
      });
  const Profile profile = read(path_of(child));
  EXPECT_EQ(totals_of(profile, profile.processes[0], 0).live, 0u);
  EXPECT_EQ(totals_of(profile, profile.processes[0], 1).live, 20 * kPage);
  EXPECT_EQ(profile.processes[0].live_bytes, 20 * kPage);
  expect_sound(profile);
}

TEST_F(RecorderTest, AGrandchildInheritsThroughAChildThatRecordedNothing) {
  const auto recorder = make();
  ask_pages(*recorder, 0, 10, 30);
  const std::string number = folder_ + "/grandchild";
  const pid_t child = in_a_child([] {},
                                 [&] {
                                   recorder->begin_in_child();
                                   const pid_t grandchild = fork();
                                   if (grandchild == 0) {
                                     recorder->begin_in_child();
                                     recorder->unmapped(at(10 * kPage), 10 * kPage);
                                     _exit(0);
                                   }
                                   int status = 0;
                                   EXPECT_EQ(waitpid(grandchild, &status, 0), grandchild);
                                   std::ofstream(number) << grandchild;
                                 });
  pid_t grandchild = 0;
  std::ifstream(number) >> grandchild;
  EXPECT_FALSE(std::filesystem::exists(path_of(child)));
  const Profile profile = read(path_of(grandchild));
  EXPECT_EQ(totals_of(profile, profile.processes[0], 0).live, 20 * kPage);
  EXPECT_EQ(profile.processes[0].parent, child);
}

TEST_F(RecorderTest, AChildOfWhatCouldNotBeRecordedTriesAgain) {
  const std::string later = folder_ + "/later";
  const auto recorder = make_in(later);
  testing::internal::CaptureStderr();
  ask_pages(*recorder, 0, 10, 3);
  (void)testing::internal::GetCapturedStderr();
  std::filesystem::create_directory(later);
  ask_pages(*recorder, 0, 20, 3);
  EXPECT_TRUE(std::filesystem::is_empty(later)) << "it is not tried again";
  const pid_t child = in_a_child([] {},
                                 [&] {
                                   recorder->begin_in_child();
                                   recorder->freed(at(10 * kPage));
                                   ask_pages(*recorder, 1, 30, 4);
                                 });
  const Profile profile = read(later + "/" + std::to_string(child) + ".recording");
  expect_sound(profile);
  EXPECT_EQ(profile.processes[0].live_bytes, 4 * kPage);
}

// ---- no room

constexpr RecordingRoom kSmall = {.sites = 4, .places = 2, .stalls = 2, .module_bytes = 64};

TEST_F(RecorderTest, WhatFindsNoRoomIsCounted) {
  const auto recorder = make(kSmall);
  for (unsigned i = 0; i < 100; ++i) ask_pages(*recorder, i % kCallers, 10 * i, 4);
  const Profile full = read();
  expect_sound(full);
  const ProcessProfile& one = full.processes[0];
  EXPECT_EQ(one.frames.size(), 4u);
  EXPECT_EQ(one.sites.size(), 1u) << "the first stack fills the tree";
  EXPECT_EQ(one.sites[0].live_bytes, 25 * 4 * kPage);
  EXPECT_EQ(one.live_bytes, 25 * 4 * kPage);
  EXPECT_EQ(one.without_room, 75u + 1) << "those of other callers; and the lines of modules";
  EXPECT_EQ(full.files.size(), 1u);
  EXPECT_EQ(one.frames[1].returns_to, (CodePlace{0, g_returns_to[0]}));
  for (unsigned i = 0; i < 100; ++i) recorder->freed(at(10 * i * kPage));
  EXPECT_EQ(read().processes[0].live_bytes, 0u);
}

TEST_F(RecorderTest, StallsThatFindNoRoomAreCounted) {
  const auto recorder = make(kSmall);
  ask_pages(*recorder, 0, 10, 4);
  const std::uint64_t before = read().processes[0].without_room;
  const Waiter first, second;
  if (!first.waits() || !second.waits()) GTEST_SKIP() << "NOT TESTED: this kernel does not tell where a thread waits";
  const auto fault = [&](std::uint32_t thread, pager::PageNumber page) {
    recorder->ended(page, recorder->begun(thread), std::chrono::nanoseconds(10), 1);
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
  recorder->ended(10, recorder->begun(waiter.number()), std::chrono::nanoseconds(10), 1);
  const Profile profile = read();
  expect_sound(profile);
  EXPECT_EQ(profile.processes[0].places.size(), 1u);
  EXPECT_EQ(profile.processes[0].stalls, (std::vector<Stall>{{0, 0, 1, 10, 1}}));
  EXPECT_GE(profile.processes[0].without_room, 1u);
}

}  // namespace
}  // namespace farheap::profile
