// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The recorder over a heap that nobody may touch, beside a model of what lives. What it says is read as the tool reads
// it, out of the file.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "os/mapping.hpp"
#include "profile/harvest.hpp"
#include "profile/recorder.hpp"

namespace farheap::profile::testing {

inline constexpr std::uint64_t kPage = kSamplePageBytes;
inline constexpr std::uint64_t kHeapBytes = std::uint64_t{1} << 30;
inline constexpr std::uint64_t kHeapPages = kHeapBytes / kPage;
inline constexpr unsigned kCallers = 4;

// ---- functions of a program that allocate

inline std::array<std::atomic<std::uintptr_t>, kCallers> g_returns_to;  // each of them, from malloc()

// What is asked for memory, as malloc() would be.
__attribute__((noinline)) inline void allocate(Recorder& recorder, unsigned caller, const void* object,
                                               std::size_t bytes) {
  g_returns_to[caller] = reinterpret_cast<std::uintptr_t>(__builtin_return_address(0));
  recorder.allocated(object, bytes, __builtin_return_address(0), __builtin_frame_address(0));
  asm volatile("" ::: "memory");  // no tail call
}

template <unsigned kCaller>
__attribute__((noinline)) void ask(Recorder& recorder, const void* object, std::size_t bytes) {
  allocate(recorder, kCaller, object, bytes);
  asm volatile("" ::"i"(kCaller) : "memory");  // and none like another
}

inline constexpr void (*kAsk[kCallers])(Recorder&, const void*, std::size_t) = {ask<0>, ask<1>, ask<2>, ask<3>};

// ---- recordings

inline std::vector<std::byte> bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

inline void expect_sound(const Profile& profile) {
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
inline CodePlace place_of_code(const Profile& profile, std::uintptr_t address) {
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

inline std::string own_path() { return std::filesystem::read_symlink("/proc/self/exe").string(); }

struct Totals {
  double objects = 0;
  std::uint64_t allocated = 0, live = 0, peak = 0;
};

// The innermost frame of the site: who called malloc().
inline CodePlace who_asked(const ProcessProfile& one, SiteId site) {
  while (one.frames[site].inner != 0) site = one.frames[site].inner;
  return one.frames[site].returns_to;
}

inline Totals totals_of(const Profile& profile, const ProcessProfile& one, unsigned caller) {
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

inline std::uint64_t sum_of(const ProcessProfile& one, std::uint64_t Stall::* figure) {
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

inline constexpr RecordingRoom kSmall = {.sites = 4, .places = 2, .stalls = 2, .module_bytes = 64};

// Between two touches so much time passes: the least that a touch weighs.
inline std::atomic<std::int64_t> g_test_now_ns{0}, g_test_step_ns{1000};
inline base::Clock::time_point test_now() {
  const std::int64_t step = g_test_step_ns.load();
  return base::Clock::time_point(std::chrono::nanoseconds(g_test_now_ns.fetch_add(step) + step));
}

class RecorderTest : public ::testing::Test {
 protected:
  RecorderTest() {
    std::string name = ::testing::TempDir() + "farheap-recorder-XXXXXX";
    folder_ = mkdtemp(name.data());
    auto heap = os::Mapping::reserve(kHeapBytes, os::Access::kNone);
    if (heap) heap_ = std::move(*heap);
  }
  ~RecorderTest() override { std::filesystem::remove_all(folder_); }
  void SetUp() override {
    g_test_step_ns = 1000;
    ASSERT_NE(heap_.data(), nullptr) << "no addresses";
  }

  [[nodiscard]] std::unique_ptr<Recorder> make(RecordingRoom room = {}) const { return make_in(folder_, room); }
  [[nodiscard]] std::unique_ptr<Recorder> make_in(const std::string& folder, RecordingRoom room = {}) const {
    auto made = Recorder::make(folder, {heap_.data(), heap_.size()}, room, &test_now);
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

}  // namespace farheap::profile::testing
