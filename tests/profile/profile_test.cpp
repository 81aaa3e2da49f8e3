// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "profile/profile.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "made_up_profile.hpp"

namespace farheap::profile {
namespace {

// What is there is right; what is not is told of.
void expect_a_beginning_of(const Profile& whole, const Profile& seen) {
  expect_sound(seen);
  ASSERT_LE(seen.processes.size(), whole.processes.size());
  for (std::size_t i = 0; i < seen.processes.size(); ++i) {
    ProcessProfile wanted = whole.processes[i];
    // Its large objects and the order of its pages are sections of their own.
    if (i + 1 == seen.processes.size() && seen.processes[i].objects.empty()) wanted.objects = {};
    if (i + 1 == seen.processes.size() && seen.processes[i].touches == Touches{}) wanted.touches = {};
    if (i + 1 == seen.processes.size() && seen.processes[i].touch_order.empty()) wanted.touch_order = {};
    EXPECT_EQ(seen.processes[i], wanted) << i;
  }
  EXPECT_TRUE(seen.store.empty() || seen.store == whole.store);
  EXPECT_TRUE(seen.trace.empty() || seen.trace == whole.trace) << seen.trace;
  EXPECT_TRUE(seen.files == whole.files || (seen.files == Profile{}.files && seen.processes.empty()));
  EXPECT_TRUE(seen.processes_left_out == whole.processes_left_out || seen.files == Profile{}.files);
  if (!seen.is_cut) {
    EXPECT_EQ(seen, whole);
  }
}

// ---- whole

TEST(Profile, ComesBackAsItWasWritten) {
  const Profile profile = made_up();
  const auto read = read_profile(encode(profile), "p");
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(*read, profile);
  EXPECT_FALSE(read->is_cut);
}

TEST(Profile, OfNothingComesBackToo) {
  const auto read = read_profile(encode(Profile{}), "p");
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(*read, Profile{});
}

TEST(Profile, OfRandomFiguresComesBackAsItWasWritten) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 100; ++round) {
    Profile profile;
    for (auto files = random() % 5; files != 0; --files) {
      (void)profile.file({std::string(random() % 30, 'a'), std::to_string(random())});
    }
    const auto place = [&] { return CodePlace{static_cast<std::uint32_t>(random() % profile.files.size()), random()}; };
    for (auto processes = random() % 5; processes != 0; --processes) {
      ProcessProfile one = made_up_process(static_cast<int>(random()));
      one.is_attached = random() % 2 != 0;
      one.frames = {{}};
      for (auto frames = random() % 20; frames != 0; --frames) {
        one.frames.push_back({static_cast<SiteId>(random() % one.frames.size()), place()});
      }
      one.places = {{}};
      for (auto places = random() % 5; places != 0; --places)
        one.places.push_back({place(), random() % 2 != 0, place()});
      for (SiteTotals& site : one.sites) site.site = static_cast<SiteId>(random() % one.frames.size());
      for (Stall& stall : one.stalls) {
        stall.site = static_cast<SiteId>(random() % one.frames.size());
        stall.place = static_cast<std::uint32_t>(random() % one.places.size());
      }
      profile.processes.push_back(one);
    }
    const auto read = read_profile(encode(profile), "p");
    ASSERT_TRUE(read) << read.error().message();
    EXPECT_EQ(*read, profile);
  }
}

TEST(Profile, WhatIsReadOfACutOneIsWrittenAsAWholeOne) {
  const std::string bytes = encode(made_up());
  auto cut = read_profile(std::string_view(bytes).substr(0, bytes.size() - 1), "p");
  ASSERT_TRUE(cut);
  EXPECT_TRUE(cut->is_cut);
  const auto again = read_profile(encode(*cut), "p");
  ASSERT_TRUE(again);
  cut->is_cut = false;
  EXPECT_EQ(*again, *cut);
}

// ---- cut and changed

TEST(Profile, ThatIsCutAtAnyByteIsReadUpToThere) {
  const Profile whole = made_up();
  const std::string bytes = encode(whole);
  const auto begins = sections_of(bytes);
  ASSERT_EQ(begins.size(), 10u)
      << "files, a process, its touches, its objects, its pages, another, the store, the trace, the end";
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    const auto read = read_profile(std::string_view(bytes).substr(0, length), "the file");
    if (length < kProfileMagic.size()) {
      ASSERT_FALSE(read) << length;
      EXPECT_EQ(read.error().code, ErrorCode::kCorrupt);
      EXPECT_EQ(read.error().subject, "the file");
      continue;
    }
    ASSERT_TRUE(read) << length << ": " << read.error().message();
    EXPECT_TRUE(read->is_cut) << length;
    EXPECT_FALSE(read->is_damaged) << length;
    expect_a_beginning_of(whole, *read);
    const auto has = [&](std::size_t number) { return length >= begins[number + 1]; };
    EXPECT_EQ(read->files.size(), has(0) ? 3u : 1u) << length;
    EXPECT_EQ(read->processes.size(), has(5) ? 2u : has(1) ? 1u : 0u) << length;
    if (has(1)) {
      EXPECT_EQ(read->processes[0].touch_order.empty(), !has(2)) << length;
      EXPECT_EQ(read->processes[0].objects.empty(), !has(3)) << length;
      EXPECT_EQ(read->processes[0].touches == Touches{}, !has(4)) << length;
    }
    EXPECT_EQ(read->store.empty(), !has(6)) << length;
    EXPECT_EQ(read->trace.empty(), !has(7)) << length;
    ASSERT_FALSE(HasFailure()) << length;
  }
}

// Each bit of the file, the magic aside: no figure is wrong, and nothing is missing without a word.
TEST(Profile, WithABitChangedIsNeverWrong) {
  const Profile whole = made_up();
  const std::string bytes = encode(whole);
  for (std::size_t at = kHead; at < bytes.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      SCOPED_TRACE("bit " + std::to_string(bit) + " of byte " + std::to_string(at));
      std::string changed = bytes;
      changed[at] = static_cast<char>(changed[at] ^ (1 << bit));
      const auto read = read_profile(changed, "p");
      ASSERT_TRUE(read) << read.error().message();
      EXPECT_TRUE(read->is_cut);
      expect_a_beginning_of(whole, *read);
      ASSERT_FALSE(HasFailure());
    }
  }
}

TEST(Profile, WithAByteChangedInASectionEndsBeforeIt) {
  const Profile whole = made_up();
  const std::string bytes = encode(whole);
  const auto begins = sections_of(bytes);
  for (std::size_t number = 0; number + 1 < begins.size(); ++number) {
    // In its checksum, its length, and its bytes: first, middle and last.
    std::vector<std::size_t> places = {begins[number] + 8, begins[number] + 16, begins[number] + 23};
    if (begins[number + 1] > begins[number] + 24) {
      places.insert(places.end(),
                    {begins[number] + 24, (begins[number] + 24 + begins[number + 1]) / 2, begins[number + 1] - 1});
    }
    for (const std::size_t at : places) {
      std::string changed = bytes;
      changed[at] = static_cast<char>(changed[at] ^ 0x55);
      const auto read = read_profile(changed, "p");
      ASSERT_TRUE(read) << read.error().message();
      EXPECT_TRUE(read->is_cut) << at;
      if (at != begins[number] + 16 &&
          at != begins[number] + 23) {  // its length: then it may seem to end behind the file
        EXPECT_TRUE(read->is_damaged) << at;
        EXPECT_THAT(read->what_is_missing(), testing::HasSubstr("damaged"));
      }
      expect_a_beginning_of(whole, *read);
      EXPECT_EQ(read->files.size(), number > 0 ? 3u : 1u) << at;
      EXPECT_EQ(read->processes.size(), number > 5 ? 2u : number > 1 ? 1u : 0u) << at;
      EXPECT_EQ(read->store.empty(), number < 7) << at;
      EXPECT_EQ(read->trace.empty(), number < 8) << at;
    }
  }
}

TEST(ProfileFile, TheBeginningInDetailComesBack) {
  Profile profile;
  profile.processes.resize(2);
  for (ProcessProfile& one : profile.processes) {
    one.frames.resize(1);
    one.places.resize(1);
  }
  profile.processes[1].touches = {.one_in_log2 = 9, .window = 8, .pages = 900, .words = {1, 2}};
  profile.processes[1].detailed = {.one_in_log2 = 6, .window = 8, .pages = 0, .words = {1, 3, 2}};
  const auto read = read_profile(encode(profile), "p");
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(*read, profile);
}

TEST(ProfileFile, TouchesOfSitesComeBack) {
  Profile profile = made_up();
  profile.processes[1].sites[0].touches = 12.75;
  profile.processes[1].sites[1].touches = 1e12;
  profile.processes[1].sites[1].seen_objects = 7, profile.processes[1].sites[1].seen_touches = ~std::uint64_t{0};
  const auto read = read_profile(encode(profile), "it");
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(*read, profile);
}

// ---- files and processes

TEST(Profile, AFileJoinsOnce) {
  Profile profile;
  EXPECT_EQ(profile.file({"/a", "1"}), 1u);
  EXPECT_EQ(profile.file({"/b", "1"}), 2u);
  EXPECT_EQ(profile.file({"/a", "2"}), 3u) << "another build";
  EXPECT_EQ(profile.file({"/a", "1"}), 1u);
  EXPECT_EQ(profile.file({}), 4u) << "file 0 is nobody's";
  EXPECT_EQ(profile.files.size(), 5u);
}

TEST(Profile, KeepsThoseThatWaitedLongestAndHeldMost) {
  Profile profile;
  profile.processes_left_out = 3;
  std::mt19937 random(1);
  for (int i = 0; i < 200; ++i) {
    ProcessProfile one;
    one.process = i;
    // Half of them waited for nothing; of those the largest are kept.
    one.stalled_ns = i < 50 ? 1000 + static_cast<std::uint64_t>(i) : 0;
    one.peak_bytes = i < 50 ? 0 : static_cast<std::uint64_t>(i);
    profile.processes.push_back(one);
  }
  std::shuffle(profile.processes.begin(), profile.processes.end(), random);
  keep_most_important(profile);
  ASSERT_EQ(profile.processes.size(), kMostProcesses);
  EXPECT_EQ(profile.processes_left_out, 3u + 200 - kMostProcesses);
  std::vector<int> kept;
  for (const ProcessProfile& one : profile.processes) kept.push_back(one.process);
  std::sort(kept.begin(), kept.end());
  std::vector<int> wanted;
  for (int i = 0; i < 50; ++i) wanted.push_back(i);
  for (int i = 200 - (static_cast<int>(kMostProcesses) - 50); i < 200; ++i) wanted.push_back(i);
  EXPECT_EQ(kept, wanted);
}

TEST(Profile, KeepsAllWhereThereAreFew) {
  Profile profile = made_up();
  const Profile before = profile;
  keep_most_important(profile);
  EXPECT_EQ(profile, before);
  profile.processes.assign(kMostProcesses, made_up_process(1));
  keep_most_important(profile);
  EXPECT_EQ(profile.processes.size(), kMostProcesses);
  EXPECT_EQ(profile.processes_left_out, before.processes_left_out);
}

}  // namespace
}  // namespace farheap::profile
