// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A plan that names this program's own functions, in a heap that nobody may touch.
#include "plan/planned_run.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "base/inside_runtime.hpp"
#include "os/mapping.hpp"
#include "profile/code_ranges.hpp"
#include "profile/harvest.hpp"
#include "profile/recording.hpp"

namespace farheap::plan {
namespace {

using pager::PageOrder;
using profile::kLargeObjectBytes;

constexpr std::uint64_t kHeapBytes = std::uint64_t{1} << 30;
constexpr std::uint64_t kBlockBytes = PageOrder::kBlockPages * std::uint64_t{4096};

// ---- functions of a program that allocate

class Asked {
 public:
  Asked() = default;
  Asked(const Asked&) = delete;
  Asked& operator=(const Asked&) = delete;
  virtual ~Asked() = default;
  virtual void asked(const void* caller, const void* frame) = 0;
};

__attribute__((noinline)) void allocate(Asked& who) {
  who.asked(__builtin_return_address(0), __builtin_frame_address(0));
  asm volatile("" ::: "memory");  // no tail call
}

template <unsigned kCaller>
__attribute__((noinline)) void ask(Asked& who) {
  allocate(who);
  asm volatile("" ::"i"(kCaller) : "memory");  // and none like another
}

template <unsigned kCaller>
__attribute__((noinline)) void work(Asked& who) {
  ask<kCaller>(who);
  asm volatile("" ::"i"(kCaller + 100) : "memory");
}

template <unsigned kCaller>
__attribute__((noinline)) void begin(Asked& who) {
  work<kCaller>(who);
  asm volatile("" ::"i"(kCaller + 200) : "memory");
}

template <unsigned kCaller>
__attribute__((noinline)) void program(Asked& who) {
  begin<kCaller>(who);
  asm volatile("" ::"i"(kCaller + 300) : "memory");
}

constexpr void (*kProgram[])(Asked&) = {program<0>, program<1>, program<2>};

std::string own_path() { return std::filesystem::read_symlink("/proc/self/exe").string(); }

std::string own_maps() {
  std::ifstream in("/proc/self/maps");
  std::string lines;
  for (std::string text; std::getline(in, text);) {
    profile::MapsLine line;
    if (profile::read_maps_line(text, line) && line.is_code) lines += text + "\n";
  }
  return lines;
}

// The name of a site as a profile of this program has it.
SiteName name_of(unsigned caller) {
  struct Finder final : Asked {
    void asked(const void* caller, const void* frame) override {
      auto sites = profile::CallSites::make({.tree_frames = 1u << 12, .frames = kNameFrames});
      const auto site = sites->site_of(caller, frame);
      stack = sites->stack(site);
    }
    std::vector<std::uintptr_t> stack;
  } finder;
  kProgram[caller](finder);
  const profile::CodePlaces code(own_maps(), [](const std::string& path) { return path == own_path() ? 1u : 0u; });
  SiteName name;
  for (const std::uintptr_t address : finder.stack) name.push_back(code.at(address));
  return name;
}

// Forwards, in four parts.
PlannedObject object(std::uint32_t site, std::uint32_t number, std::uint32_t first_time = 0) {
  PlannedObject one{.site = site, .number = number, .bytes = 1 << 20, .foreseen = 100, .parts = {}};
  for (std::uint32_t i = 0; i < 4; ++i) one.parts.push_back({{first_time + 10 * i + 5, 0}});
  return one;
}

class PlannedRunTest : public ::testing::Test {
 protected:
  PlannedRunTest() {
    void* const at = mmap(nullptr, kHeapBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    EXPECT_NE(at, MAP_FAILED);
    heap_ = {static_cast<std::byte*>(at), kHeapBytes};
  }
  ~PlannedRunTest() override { munmap(heap_.data(), heap_.size()); }
  PlannedRunTest(const PlannedRunTest&) = delete;
  PlannedRunTest& operator=(const PlannedRunTest&) = delete;

  // Of the functions 0 and 1; two objects of the first.
  static Plan plan() {
    Plan plan;
    plan.program = "planned_run_test";
    plan.files = {{}, {own_path(), profile::build_id_of_file(own_path())}};
    plan.sites = {name_of(0), name_of(1)};
    plan.phases = {{.objects = {object(0, 0), object(0, 1, 40), object(1, 0, 80)}, .once = 120}};
    return plan;
  }
  // Then the second function's object is used, and the first one's first before it.
  static Plan plan_of_two_phases() {
    Plan two = plan();
    two.phases.push_back({.objects = {object(1, 0, 40), object(0, 0)}, .once = 80});
    return two;
  }
  std::unique_ptr<PlannedRun> make(Plan plan, std::uint64_t most_visits = kMostVisits) {
    return PlannedRun::make(std::move(plan), heap_, most_visits).value();
  }
  [[nodiscard]] std::byte* at(std::uint64_t offset) const { return heap_.data() + offset; }
  void allocated(PlannedRun& run, unsigned caller, std::uint64_t offset, std::uint64_t bytes = kBlockBytes) const {
    struct Teller final : Asked {
      Teller(PlannedRun& run, const void* object, std::uint64_t bytes) : run(run), object(object), bytes(bytes) {}
      void asked(const void* caller, const void* frame) override { run.allocated(object, bytes, caller, frame); }
      PlannedRun& run;
      const void* object;
      std::uint64_t bytes;
    } teller(run, at(offset), bytes);
    kProgram[caller](teller);
  }
  // The blocks that are visited, in their order.
  static std::vector<std::uint32_t> blocks(PlannedRun& run) {
    std::vector<std::uint32_t> all;
    if (const auto order = run.order()) {
      for (const auto& visit : order->visits()) all.push_back(visit.block);
    }
    return all;
  }
  using Blocks = std::vector<std::uint32_t>;

  std::span<std::byte> heap_;
};

TEST_F(PlannedRunTest, SitesOfThisTestAreFourFramesOfIt) {
  const SiteName name = name_of(0);
  ASSERT_EQ(name.size(), kNameFrames);
  for (const auto& place : name) EXPECT_EQ(place.file, 1u);
  EXPECT_NE(name, name_of(1));
  EXPECT_EQ(name, name_of(0));
}

TEST_F(PlannedRunTest, WithoutObjectsThereIsNoOrder) { EXPECT_EQ(make(plan())->order(), nullptr); }

TEST_F(PlannedRunTest, WhatThePlanKnowsIsInTheOrder) {
  const auto run = make(plan());
  allocated(*run, 1, 100 * kBlockBytes, 3 * kBlockBytes);
  EXPECT_EQ(blocks(*run), (Blocks{100, 101, 102}));
  allocated(*run, 0, 7 * kBlockBytes, 2 * kBlockBytes);
  EXPECT_EQ(blocks(*run), (Blocks{7, 8, 100, 101, 102}));
}

TEST_F(PlannedRunTest, AnOrderThatIsLeftIsFollowedByTheNextPhases) {
  using pager::OrderState;
  const auto run = make(plan_of_two_phases());
  allocated(*run, 0, 10 * kBlockBytes);
  allocated(*run, 0, 20 * kBlockBytes);
  allocated(*run, 1, 5 * kBlockBytes);
  EXPECT_EQ(blocks(*run), (Blocks{10, 20, 5}));
  EXPECT_EQ(run->part(), 0u);
  EXPECT_FALSE(run->left(OrderState::kKept));
  EXPECT_TRUE(run->left(OrderState::kLeft));
  EXPECT_EQ(blocks(*run), (Blocks{10, 5}));
  EXPECT_EQ(run->part(), 1u);
  EXPECT_TRUE(run->left(OrderState::kGivenUp)) << "the first one again";
  EXPECT_EQ(blocks(*run), (Blocks{10, 20, 5}));
}

TEST_F(PlannedRunTest, APhaseWithoutLivingObjectsIsPassedBy) {
  Plan apart = plan();
  apart.phases = {{.objects = {object(0, 0)}, .once = 40}, {.objects = {object(1, 0)}, .once = 40}};
  const auto run = make(apart);
  EXPECT_EQ(run->order(), nullptr);
  EXPECT_EQ(run->part(), 0u);
  allocated(*run, 1, 5 * kBlockBytes);
  EXPECT_EQ(blocks(*run), (Blocks{5}));
  EXPECT_EQ(run->part(), 1u);
  run->freed(at(5 * kBlockBytes));
  allocated(*run, 0, 10 * kBlockBytes);
  EXPECT_EQ(blocks(*run), (Blocks{10}));
  EXPECT_EQ(run->part(), 0u);
}

// Whatever a plan says, its order was made, and took 200 bytes for each of four million visits, in any budget.
TEST_F(PlannedRunTest, AnOrderOfTooManyVisitsIsNotMade) {
  for (const bool is_enough : {true, false}) {
    const auto run = make(plan(), is_enough ? 1000 : 1);
    allocated(*run, 0, 0);
    EXPECT_EQ(run->order() != nullptr, is_enough);
    EXPECT_TRUE(run->is_met()) << "it is of this program all the same";
  }
}

TEST_F(PlannedRunTest, AnObjectOfALaterPhaseOnlyIsKnownThere) {
  Plan later = plan();
  later.phases = {{.objects = {object(0, 0)}, .once = 40}, {.objects = {object(0, 1)}, .once = 40}};
  const auto run = make(later);
  allocated(*run, 0, 10 * kBlockBytes);
  allocated(*run, 0, 20 * kBlockBytes);
  EXPECT_EQ(blocks(*run), (Blocks{10}));
  EXPECT_TRUE(run->left(pager::OrderState::kLeft));
  EXPECT_EQ(blocks(*run), (Blocks{20}));
}

TEST_F(PlannedRunTest, WhatItDoesNotKnowIsNot) {
  const auto run = make(plan());
  allocated(*run, 2, 7 * kBlockBytes);
  EXPECT_EQ(run->order(), nullptr);
}

TEST_F(PlannedRunTest, ObjectsOfASiteAreToldApartByTheirNumbers) {
  const auto run = make(plan());
  allocated(*run, 0, 10 * kBlockBytes);
  allocated(*run, 0, 5 * kBlockBytes);
  EXPECT_EQ(blocks(*run), (Blocks{10, 5})) << "in the plan the first comes before the second";
  allocated(*run, 0, 20 * kBlockBytes);
  EXPECT_EQ(blocks(*run), (Blocks{10, 5})) << "the plan knows no third one";
  run->freed(at(10 * kBlockBytes));
  EXPECT_EQ(blocks(*run), (Blocks{5}));
  allocated(*run, 0, 30 * kBlockBytes);
  EXPECT_EQ(blocks(*run), (Blocks{30, 5})) << "it has the number of the one that is gone";
}

TEST_F(PlannedRunTest, SmallObjectsDoNotCount) {
  const auto run = make(plan());
  allocated(*run, 0, 0, kLargeObjectBytes - 1);
  allocated(*run, 0, 10 * kBlockBytes, kLargeObjectBytes);
  EXPECT_EQ(blocks(*run), (Blocks{10})) << "it has the first number";
}

TEST_F(PlannedRunTest, WhatLiesElsewhereIsPassedBy) {
  const auto run = make(plan());
  allocated(*run, 0, kHeapBytes);
  allocated(*run, 0, ~std::uint64_t{0} - (1 << 20));
  static char elsewhere[8];
  run->freed(elsewhere);
  run->freed(nullptr);
  run->unmapped(elsewhere, 4096);
  run->unmapped(at(0), 0);
  EXPECT_EQ(run->order(), nullptr);
}

TEST_F(PlannedRunTest, WhatTheRuntimeAllocatesIsPassedBy) {
  const auto run = make(plan());
  {
    base::InsideRuntime inside;
    allocated(*run, 0, 0);
  }
  EXPECT_EQ(run->order(), nullptr);
  allocated(*run, 0, 0);
  EXPECT_FALSE(base::t_inside_runtime);
  EXPECT_NE(run->order(), nullptr);
}

TEST_F(PlannedRunTest, AnObjectEndsWithTheHeap) {
  const auto run = make(plan());
  allocated(*run, 0, kHeapBytes - kBlockBytes, 100 * kBlockBytes);
  EXPECT_EQ(blocks(*run), (Blocks{kHeapBytes / kBlockBytes - 1}));
  run->unmapped(at(kHeapBytes - kBlockBytes), 100 * kBlockBytes);
  EXPECT_EQ(run->order(), nullptr);
}

TEST_F(PlannedRunTest, FreeingTakesTheObjectThatBeginsThere) {
  const auto run = make(plan());
  allocated(*run, 0, 4 * kBlockBytes + 16, 2 * kBlockBytes);
  run->freed(at(4 * kBlockBytes));
  run->freed(at(5 * kBlockBytes));
  EXPECT_NE(run->order(), nullptr);
  run->freed(at(4 * kBlockBytes + 16));
  EXPECT_EQ(run->order(), nullptr);
  run->freed(at(4 * kBlockBytes + 16));
  allocated(*run, 0, 8 * kBlockBytes);
  EXPECT_EQ(blocks(*run), (Blocks{8}));
}

TEST_F(PlannedRunTest, UnmappingTakesTheObjectsThatBeginThere) {
  const auto run = make(plan());
  allocated(*run, 0, 10 * kBlockBytes, 4 * kBlockBytes);
  allocated(*run, 0, 20 * kBlockBytes, 4 * kBlockBytes);
  run->unmapped(at(12 * kBlockBytes), 2 * kBlockBytes);
  EXPECT_EQ(blocks(*run).size(), 8u) << "their begins are still there";
  run->unmapped(at(9 * kBlockBytes), 2 * kBlockBytes);
  EXPECT_EQ(blocks(*run), (Blocks{20, 21, 22, 23}));
  run->unmapped(at(0), kHeapBytes);
  EXPECT_EQ(run->order(), nullptr);
}

// Given back unseen, again and again: what counts how many begin in a piece is a byte.
TEST_F(PlannedRunTest, ManyThatBeginInOnePlaceAreCounted) {
  const auto run = make(plan());
  for (int i = 0; i < 300; ++i) allocated(*run, 0, 10 * kBlockBytes);
  run->freed(at(10 * kBlockBytes));
  EXPECT_EQ(run->order(), nullptr);
  allocated(*run, 0, 10 * kBlockBytes);
  EXPECT_EQ(blocks(*run), (Blocks{10}));
  run->freed(at(10 * kBlockBytes));
  EXPECT_EQ(run->order(), nullptr);
}

// ---- of which file

TEST_F(PlannedRunTest, AProgramThatWasMovedIsTheSame) {
  Plan moved = plan();
  ASSERT_FALSE(moved.files[1].build_id.empty()) << "this program is built without a build-id";
  moved.files[1].path = "/somewhere/else/" + std::filesystem::path(own_path()).filename().string();
  const auto run = make(moved);
  allocated(*run, 0, 0);
  EXPECT_NE(run->order(), nullptr);
}

TEST_F(PlannedRunTest, AnotherBuildIsAnotherProgram) {
  Plan other = plan();
  other.files[1].build_id = "00ff";
  const auto run = make(other);
  allocated(*run, 0, 0);
  EXPECT_EQ(run->order(), nullptr);
}

TEST_F(PlannedRunTest, AnotherNameIsAnotherProgram) {
  Plan other = plan();
  other.files[1].path += "x";
  const auto run = make(other);
  allocated(*run, 0, 0);
  EXPECT_EQ(run->order(), nullptr);
}

TEST_F(PlannedRunTest, OfAnotherPlaceInTheProgramNothingIsKnown) {
  Plan other = plan();
  for (auto& site : other.sites) site.back().offset += 1;
  const auto run = make(other);
  allocated(*run, 0, 0);
  EXPECT_EQ(run->order(), nullptr);
}

TEST_F(PlannedRunTest, AnEmptyPlanDoesNothing) {
  const auto run = make({});
  allocated(*run, 0, 0);
  run->freed(at(0));
  EXPECT_EQ(run->order(), nullptr);
}

// ---- who is told

TEST_F(PlannedRunTest, WhoeverWaitsIsToldThatAnObjectCameAndThatItWent) {
  const auto run = make(plan());
  for (int i = 0; i < 5; ++i) {
    std::thread waits([&] { EXPECT_TRUE(run->wait_for_change(std::chrono::hours(1))); });
    allocated(*run, 0, 0);
    waits.join();
    EXPECT_NE(run->order(), nullptr);
    std::thread again([&] { EXPECT_TRUE(run->wait_for_change(std::chrono::hours(1))); });
    run->freed(at(0));
    again.join();
    EXPECT_EQ(run->order(), nullptr);
  }
}

TEST_F(PlannedRunTest, WhoeverWaitsIsToldThatNothingChanged) {
  const auto run = make(plan());
  EXPECT_FALSE(run->wait_for_change(std::chrono::milliseconds(1)));
  allocated(*run, 0, 0);
  EXPECT_TRUE(run->wait_for_change(std::chrono::hours(1)));
}

TEST_F(PlannedRunTest, ThreadsMayAllocateWhileTheOrderIsAsked) {
  const auto run = make(plan());
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 3; ++i) {
    threads.emplace_back([&, i] {
      std::mt19937 random(i);
      for (int k = 0; k < 300; ++k) {
        const std::uint64_t offset = (100 * i + random() % 50) * kBlockBytes;
        allocated(*run, i, offset, kBlockBytes + random() % 4 * kBlockBytes);
        random() % 4 == 0 ? run->unmapped(at(100 * i * kBlockBytes), 60 * kBlockBytes) : run->freed(at(offset));
      }
    });
  }
  for (int i = 0; i < 100; ++i) (void)run->order();
  for (auto& thread : threads) thread.join();
  run->unmapped(at(0), kHeapBytes);
  EXPECT_EQ(run->order(), nullptr);
  allocated(*run, 0, 0);
  EXPECT_EQ(blocks(*run), (Blocks{0})) << "its number is the first again";
}

// ---- regions

class PlannedRegionsTest : public PlannedRunTest {
 protected:
  // The functions 1 and 0 each have one; two is in none.
  static Plan sorted() {
    Plan two = plan();
    two.phases.clear();
    two.regions = {{.sites = {1}}, {.sites = {0}}};
    return two;
  }
  static unsigned region_of(PlannedRun& run, unsigned caller) {
    struct Teller final : Asked {
      explicit Teller(PlannedRegions& regions) : regions(regions) {}
      void asked(const void* caller, const void* frame) override { region = regions.region_of(caller, frame); }
      PlannedRegions& regions;
      unsigned region = 99;
    } teller(*run.regions());
    kProgram[caller](teller);
    return teller.region;
  }
};

TEST_F(PlannedRegionsTest, APlanWithoutThemHasNone) { EXPECT_EQ(make(plan())->regions(), nullptr); }

TEST_F(PlannedRegionsTest, ASiteIsInItsRegionEachTime) {
  const auto run = make(sorted());
  ASSERT_NE(run->regions(), nullptr);
  EXPECT_EQ(run->regions()->count(), 2u);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(region_of(*run, 2), 0u);
    EXPECT_EQ(run->is_met(), i != 0) << "nothing of the plan was there yet";
    EXPECT_EQ(region_of(*run, 1), 1u);
    EXPECT_EQ(region_of(*run, 0), 2u);
    EXPECT_TRUE(run->is_met());
  }
  EXPECT_EQ(run->order(), nullptr);
}

TEST_F(PlannedRegionsTest, ACallerThatTellsItByItselfIsEnough) {
  Plan plan = sorted();
  plan.sites[1].resize(1);
  const auto run = make(plan);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(region_of(*run, 1), 1u);
    EXPECT_EQ(region_of(*run, 0), 2u);
    EXPECT_EQ(region_of(*run, 2), 0u);
  }
}

TEST_F(PlannedRegionsTest, AStackIsComparedAsFarAsItsSiteIsNamed) {
  Plan plan = sorted();
  plan.sites[0].resize(2);
  plan.sites[1].resize(3);
  const auto run = make(plan);
  EXPECT_EQ(region_of(*run, 0), 2u);
  EXPECT_EQ(region_of(*run, 1), 1u);
  plan.sites[1].back().offset += 1;
  EXPECT_EQ(region_of(*make(plan), 1), 0u);
}

TEST_F(PlannedRegionsTest, OfAnotherBuildNothingIsInOne) {
  Plan other = sorted();
  other.files[1].build_id = "00ff";
  const auto run = make(other);
  for (unsigned caller = 0; caller < 3; ++caller) EXPECT_EQ(region_of(*run, caller), 0u);
  EXPECT_FALSE(run->is_met());
}

TEST_F(PlannedRegionsTest, ACallFromAStackInTheHeapIsInNone) {
  const auto run = make(sorted());
  EXPECT_EQ(run->regions()->region_of(__builtin_return_address(0), at(4096)), 0u);
}

TEST_F(PlannedRegionsTest, ThreadsThatAskAtOnceHearTheSame) {
  const auto run = make(sorted());
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      for (unsigned k = 0; k < 2'000; ++k) {
        const unsigned caller = (i + k) % 3;
        wrong += region_of(*run, caller) != (caller == 2 ? 0 : 2 - caller);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace farheap::plan
