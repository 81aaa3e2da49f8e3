// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Profiles for tests: one that was made up, and files whose sections are written by hand (docs/formats.md).
#pragma once

#include <gtest/gtest.h>
#include <xxhash.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "base/fields.hpp"
#include "profile/profile.hpp"

namespace farheap::profile {

// Kinds of sections, as docs/formats.md has them.
inline constexpr std::uint64_t kFilesSection = 1, kProcessSection = 2, kTraceSection = 3, kEndSection = 4,
                               kTouchesSection = 5, kObjectsSection = 7, kDetailedSection = 8, kAttachedSection = 9,
                               kSiteTouchesSection = 10, kTouchOrderSection = 11;
inline constexpr std::size_t kHead = 16;  // the magic and the format

inline ProcessProfile made_up_process(int number) {
  ProcessProfile one;
  one.process = number;
  one.parent = -number;
  one.name = "program " + std::to_string(number);
  one.faults = 1000 + static_cast<std::uint64_t>(number), one.stalled_ns = ~std::uint64_t{0}, one.pages_read = 3;
  one.live_bytes = 1, one.peak_bytes = std::uint64_t{1} << 40, one.faults_without_place = 6, one.without_room = 7;
  one.frames = {{}, {0, {1, 0x1234}}, {1, {2, 0x5678}}, {1, {0, ~std::uint64_t{0}}}};
  one.sites = {{2, 1.25, 4096, 0, 4096}, {3, 1e9, 8192, 4096, 8192}};
  one.places = {{}, {{2, 0x99}, true, {1, 0x77}}, {{1, 5}, false, {}}};
  one.stalls = {{0, 0, 1, 2, 3}, {2, 3, ~std::uint64_t{0}, 5, 6}, {1, 0, 7, 8, 9}};
  return one;
}

inline Profile made_up() {
  Profile profile;
  profile.files = {{}, {"/bin/a program", "00ff"}, {"/lib/library.so (deleted)", ""}};
  profile.processes = {made_up_process(1), made_up_process(2)};
  profile.processes[0].touches = {.one_in_log2 = 3, .window = 70, .pages = 900, .words = {1, 0xffffffff, 3}};
  profile.processes[0].objects = {{2, 4096, 1 << 20, 1, 3}, {3, 0, std::uint64_t{1} << 56, 2, 0}};
  profile.processes[0].touch_order = {{2, 30}, {3, ~std::uint32_t{0}}, {2, 1}};
  profile.store = {{"reads", "1/s", 2.5, 1, 1e300}, {"", "", 0, 0, 0}};
  profile.processes_left_out = 5;
  profile.trace = "{\"t\": 1}\n{\"t\": 2}\n";
  return profile;
}

// ---- sections by hand

inline std::uint64_t checksum(std::uint64_t kind, const std::string& bytes) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), kind);
}

inline std::string section(std::uint64_t kind, const std::string& bytes) {
  base::FieldWriter out;
  out.number(kind);
  out.number(checksum(kind, bytes));
  out.text(bytes);
  return out.bytes();
}

inline std::string numbers(std::initializer_list<std::uint64_t> all) {
  base::FieldWriter out;
  for (const std::uint64_t one : all) out.number(one);
  return out.bytes();
}

inline std::string text(std::string_view value) {
  base::FieldWriter out;
  out.text(value);
  return out.bytes();
}

inline std::string head(std::uint64_t format = kProfileFormat) {
  return std::string(kProfileMagic) + numbers({format});
}

inline std::string files_section(std::size_t files) {
  std::string bytes = numbers({0, files});
  for (std::size_t i = 0; i < files; ++i) bytes += text("/file " + std::to_string(i)) + text("");
  return section(kFilesSection, bytes);
}

// One frame in a file, and a site of it.
struct Process {
  std::vector<std::uint64_t> frames = {0, 0, 0, 0, 1, 16}, sites = {1, 0, 4096, 4096, 4096}, places = {}, stalls = {};
  [[nodiscard]] std::string bytes() const {
    std::string all = numbers({12, 11}) + text("name") + numbers({1, 2, 3, 4, 5, 6, 7});
    const auto add = [&all](const std::vector<std::uint64_t>& list, std::size_t each) {
      all += numbers({list.size() / each});
      for (const std::uint64_t one : list) all += numbers({one});
    };
    add(frames, 3), add(sites, 5), add(places, 5), add(stalls, 5);
    return all;
  }
};

// Where each section of a file begins, and the file's end.
inline std::vector<std::size_t> sections_of(const std::string& bytes) {
  std::vector<std::size_t> begins;
  std::size_t at = kHead;
  while (at < bytes.size()) {
    begins.push_back(at);
    std::uint64_t length = 0;
    std::memcpy(&length, bytes.data() + at + 16, sizeof length);
    at += 24 + length;
  }
  begins.push_back(at);
  return begins;
}

inline void expect_sound(const Profile& profile) {
  const std::size_t files = profile.files.size();
  for (const ProcessProfile& one : profile.processes) {
    for (std::size_t i = 0; i < one.frames.size(); ++i) {
      EXPECT_TRUE(i == 0 || one.frames[i].inner < i);
      EXPECT_LT(one.frames[i].returns_to.file, files);
    }
    for (const SiteTotals& site : one.sites) EXPECT_TRUE(site.site == 0 || site.site < one.frames.size());
    for (const WaitPlace& place : one.places) {
      EXPECT_LT(place.instruction.file, files);
      EXPECT_LT(place.caller.file, files);
    }
    for (const Stall& stall : one.stalls) {
      EXPECT_TRUE(stall.site == 0 || stall.site < one.frames.size());
      EXPECT_TRUE(stall.place == 0 || stall.place < one.places.size());
    }
    for (const SiteTouch& touch : one.touch_order) EXPECT_TRUE(touch.site != 0 && touch.site < one.frames.size());
    for (const LargeObject& object : one.objects) {
      EXPECT_LT(object.site, one.frames.size());
      EXPECT_GE(object.first + object.bytes, object.first);
    }
  }
}

}  // namespace farheap::profile
