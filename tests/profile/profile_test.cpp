// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "profile/profile.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "base/fields.hpp"

namespace farheap::profile {
namespace {

// Sections, as docs/formats.md has them.
constexpr std::uint64_t kFiles = 1, kProcess = 2, kTrace = 3, kEnd = 4, kTouches = 5, kObjects = 7, kDetailed = 8,
                        kAttached = 9, kSiteTouches = 10;
constexpr std::size_t kHead = 16;  // the magic and the format

ProcessProfile made_up_process(int number) {
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

Profile made_up() {
  Profile profile;
  profile.files = {{}, {"/bin/a program", "00ff"}, {"/lib/library.so (deleted)", ""}};
  profile.processes = {made_up_process(1), made_up_process(2)};
  profile.processes[0].touches = {.one_in_log2 = 3, .window = 70, .pages = 900, .words = {1, 0xffffffff, 3}};
  profile.processes[0].objects = {{2, 4096, 1 << 20, 1, 3}, {3, 0, std::uint64_t{1} << 56, 2, 0}};
  profile.store = {{"reads", "1/s", 2.5, 1, 1e300}, {"", "", 0, 0, 0}};
  profile.processes_left_out = 5;
  profile.trace = "{\"t\": 1}\n{\"t\": 2}\n";
  return profile;
}

// ---- sections by hand

std::uint64_t checksum(std::uint64_t kind, const std::string& bytes) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), kind);
}

std::string section(std::uint64_t kind, const std::string& bytes) {
  base::FieldWriter out;
  out.number(kind);
  out.number(checksum(kind, bytes));
  out.text(bytes);
  return out.bytes();
}

std::string numbers(std::initializer_list<std::uint64_t> all) {
  base::FieldWriter out;
  for (const std::uint64_t one : all) out.number(one);
  return out.bytes();
}

std::string text(std::string_view value) {
  base::FieldWriter out;
  out.text(value);
  return out.bytes();
}

std::string head(std::uint64_t format = kProfileFormat) { return std::string(kProfileMagic) + numbers({format}); }

std::string files_section(std::size_t files) {
  std::string bytes = numbers({0, files});
  for (std::size_t i = 0; i < files; ++i) bytes += text("/file " + std::to_string(i)) + text("");
  return section(kFiles, bytes);
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
std::vector<std::size_t> sections_of(const std::string& bytes) {
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

void expect_sound(const Profile& profile) {
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
    for (const LargeObject& object : one.objects) {
      EXPECT_LT(object.site, one.frames.size());
      EXPECT_GE(object.first + object.bytes, object.first);
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

// What is there is right; what is not is told of.
void expect_a_beginning_of(const Profile& whole, const Profile& seen) {
  expect_sound(seen);
  ASSERT_LE(seen.processes.size(), whole.processes.size());
  for (std::size_t i = 0; i < seen.processes.size(); ++i) {
    ProcessProfile wanted = whole.processes[i];
    // Its large objects and the order of its pages are sections of their own.
    if (i + 1 == seen.processes.size() && seen.processes[i].objects.empty()) wanted.objects = {};
    if (i + 1 == seen.processes.size() && seen.processes[i].touches == Touches{}) wanted.touches = {};
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
  ASSERT_EQ(begins.size(), 9u) << "files, a process, its objects, its pages, another, the store, the trace, the end";
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
    EXPECT_EQ(read->processes.size(), has(4) ? 2u : has(1) ? 1u : 0u) << length;
    if (has(1)) {
      EXPECT_EQ(read->processes[0].objects.empty(), !has(2)) << length;
      EXPECT_EQ(read->processes[0].touches == Touches{}, !has(3)) << length;
    }
    EXPECT_EQ(read->store.empty(), !has(5)) << length;
    EXPECT_EQ(read->trace.empty(), !has(6)) << length;
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
      EXPECT_EQ(read->processes.size(), number > 4 ? 2u : number > 1 ? 1u : 0u) << at;
      EXPECT_EQ(read->store.empty(), number < 6) << at;
      EXPECT_EQ(read->trace.empty(), number < 7) << at;
    }
  }
}

// ---- other forms

TEST(Profile, OfSomethingElseIsCorrupt) {
  for (const std::string& bytes :
       {std::string(), std::string("FHPROFI"), std::string("FHPROFIX") + numbers({1}), std::string(1000, '\0'),
        std::string("{\"profile\": 1}\n"), "x" + encode(made_up())}) {
    const auto read = read_profile(bytes, "p");
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().code, ErrorCode::kCorrupt);
    EXPECT_NE(read.error().remedy.find("farheap record"), std::string::npos);
  }
}

TEST(Profile, OfANewerFormatIsUnavailable) {
  std::string bytes = encode(made_up());
  for (const std::uint64_t format : {std::uint64_t{kProfileFormat} + 1, ~std::uint64_t{0}}) {
    bytes.replace(0, kHead, head(format));
    const auto read = read_profile(bytes, "p");
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().code, ErrorCode::kUnavailable);
    EXPECT_NE(read.error().message().find(std::to_string(format)), std::string::npos) << read.error().message();
    EXPECT_FALSE(read_profile(head(format), "p"));
  }
}

// There was never one.
TEST(Profile, OfFormatZeroIsCorrupt) {
  std::string bytes = encode(made_up());
  bytes.replace(0, kHead, head(0));
  const auto read = read_profile(bytes, "p");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::kCorrupt);
  EXPECT_NE(read.error().message().find("format 0"), std::string::npos) << read.error().message();
}

TEST(Profile, SectionsThatAreNotKnownArePassedBy) {
  const Profile whole = made_up();
  const std::string bytes = encode(whole);
  for (const std::uint64_t kind :
       {std::uint64_t{0}, std::uint64_t{77}, std::uint64_t{1} << 32 | kEnd, ~std::uint64_t{0}}) {
    for (const std::size_t at : sections_of(bytes)) {
      std::string more = bytes;
      more.insert(at, section(kind, std::string("anything\0", 9)));
      const auto read = read_profile(more, "p");
      ASSERT_TRUE(read) << read.error().message();
      EXPECT_EQ(*read, whole);
    }
  }
}

TEST(Profile, WhatLiesBehindItsEndIsNotRead) {
  const Profile whole = made_up();
  const auto read = read_profile(encode(whole) + section(kProcess, "no process") + "x", "p");
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(*read, whole);
}

TEST(Profile, MadeByHandIsRead) {
  const auto read =
      read_profile(head() + files_section(2) + section(kProcess, Process{}.bytes()) + section(kEnd, ""), "p");
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_FALSE(read->is_cut);
  ASSERT_EQ(read->processes.size(), 1u);
  EXPECT_EQ(read->processes[0].frames, (std::vector<StackFrame>{{}, {0, {1, 16}}}));
}

// With checksums that fit: a writer of another mind.
TEST(Profile, ThatNamesWhatIsNotThereIsCorrupt) {
  std::vector<Process> all(14);
  all[0].frames = {0, 0, 0, 1, 1, 16};             // a frame that called itself
  all[1].frames = {0, 0, 0, 2, 1, 16, 0, 1, 16};   // forward
  all[2].frames = {0, 0, 0, 0, 2, 16};             // no such file
  all[3].frames = {0, 2, 0, 0, 1, 16};             // in the unused one
  all[4].sites = {2, 0, 1, 1, 1};                  // no such frame
  all[5].frames = {};                              // nor here
  all[6].places = {0, 0, 0, 0, 0, 2, 1, 0, 0, 0};  // no such file
  all[7].places = {0, 0, 0, 0, 0, 1, 1, 1, 2, 0};  // nor of the caller
  all[8].stalls = {1, 0, 1, 1, 1};                 // no such place
  all[9].stalls = {0, 2, 1, 1, 1};                 // no such site
  all[10].frames = {0, 0, 0, 0xffffffff, 1, 16};
  all[11].frames = {0, 0, 0, 0, 0xffffffff, 16};
  all[12].sites = {0xffffffff, 0, 1, 1, 1};
  all[13].stalls = {0xffffffff, 0, 1, 1, 1};
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto read = read_profile(head() + files_section(2) + section(kProcess, all[i].bytes()), "p");
    ASSERT_FALSE(read) << i;
    EXPECT_EQ(read.error().code, ErrorCode::kCorrupt) << i;
  }
}

TEST(Profile, WithSectionsOfAnotherFormIsCorrupt) {
  const std::string process = Process{}.bytes();
  for (std::size_t length = 0; length < process.size(); ++length) {
    EXPECT_FALSE(read_profile(head() + files_section(2) + section(kProcess, process.substr(0, length)), "p")) << length;
  }
  EXPECT_FALSE(read_profile(head() + files_section(2) + section(kProcess, process + "x"), "p"));
  const std::string files = numbers({0, 1}) + text("/file") + text("");
  for (std::size_t length = 0; length < files.size(); ++length) {
    EXPECT_FALSE(read_profile(head() + section(kFiles, files.substr(0, length)), "p")) << length;
  }
  EXPECT_FALSE(read_profile(head() + section(kFiles, files + "x"), "p"));
}

TEST(Profile, ThatWasAttachedToSaysSoOfTheProcessBefore) {
  const std::string process = section(kProcess, Process{}.bytes());
  const auto read = read_profile(head() + files_section(2) + process + section(kAttached, "") + process, "p");
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_TRUE(read->processes[0].is_attached);
  EXPECT_FALSE(read->processes[1].is_attached);
  EXPECT_FALSE(read_profile(head() + files_section(2) + section(kAttached, ""), "p")) << "of no process";
  EXPECT_FALSE(read_profile(head() + files_section(2) + process + section(kAttached, "x"), "p"));
}

// Counts that say more than there is take no memory.
TEST(Profile, WithCountsBeyondItsBytesIsCorrupt) {
  for (const std::uint64_t count :
       {std::uint64_t{3}, std::uint64_t{1} << 24, std::uint64_t{1} << 40, std::uint64_t{1} << 61, ~std::uint64_t{0}}) {
    EXPECT_FALSE(read_profile(head() + section(kFiles, numbers({0, count})), "p")) << count;
    const std::string before = numbers({12, 11}) + text("name") + numbers({1, 2, 3, 4, 5, 6, 7});
    EXPECT_FALSE(read_profile(head() + files_section(2) + section(kProcess, before + numbers({count})), "p")) << count;
  }
}

// Of large objects: their site, first byte, bytes, birth and death.
TEST(Profile, LargeObjectsAreOfTheProcessBeforeThem) {
  const auto with = [](const std::string& objects) {
    return read_profile(head() + files_section(2) + section(kProcess, Process{}.bytes()) + section(kObjects, objects) +
                            section(kEnd, ""),
                        "p");
  };
  const auto read = with(numbers({2, 1, 4096, 8192, 1, 3, 0, 0, 0, 2, 0}));
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(read->processes[0].objects, (std::vector<LargeObject>{{1, 4096, 8192, 1, 3}, {0, 0, 0, 2, 0}}));
  EXPECT_TRUE(with(numbers({0})));
  EXPECT_FALSE(with(numbers({1, 2, 0, 0, 1, 0}))) << "no such site";
  EXPECT_FALSE(with(numbers({1, 1, ~std::uint64_t{0}, 1, 1, 0}))) << "it ends before it begins";
  EXPECT_FALSE(with(numbers({1, 1, 0, 0, 1}))) << "cut";
  EXPECT_FALSE(with(numbers({1, 1, 0, 0, 1, 0, 7}))) << "longer";
  EXPECT_FALSE(with(numbers({~std::uint64_t{0}, 1, 0, 0, 1, 0})));
  EXPECT_FALSE(with(""));
  EXPECT_FALSE(read_profile(head() + files_section(2) + section(kObjects, numbers({0})), "p")) << "of no process";
}

TEST(Profile, LargeObjectsThatCannotHaveBeenAreCorrupt) {
  const auto with = [](std::initializer_list<std::uint64_t> object) {
    return read_profile(head() + files_section(2) + section(kProcess, Process{}.bytes()) +
                            section(kObjects, numbers({1}) + numbers(object)) + section(kEnd, ""),
                        "p");
  };
  ASSERT_TRUE(with({1, 0, 4096, 7, 8}));
  for (const auto& object : std::initializer_list<std::initializer_list<std::uint64_t>>{
           {1, 0, 4096, 7, 7},                          // it died when it was born
           {1, 0, 4096, 7, 6},                          // or before that
           {1, std::uint64_t{1} << 58, 4096, 7, 0},     // no address
           {1, 0, std::uint64_t{1} << 58, 7, 0},        // nor its end
           {std::uint64_t{1} << 32 | 1, 0, 4096, 7, 0}  // a site whose low half is one
       }) {
    const auto read = with(object);
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().code, ErrorCode::kCorrupt);
    EXPECT_NE(read.error().message().find("section 7"), std::string::npos) << read.error().message();
  }
}

// Of the order of pages: one in so many (log2), the window, pages that were used, and the words.
TEST(Profile, AnOrderThatNoSamplerWritesIsCorrupt) {
  const auto with = [](std::uint64_t kind, std::initializer_list<std::uint64_t> figures) {
    return read_profile(head() + files_section(2) + section(kProcess, Process{}.bytes()) +
                            section(kind, numbers(figures) + text("12345678")) + section(kEnd, ""),
                        "p");
  };
  constexpr std::uint64_t kHuge = std::uint64_t{1} << 32;
  for (const std::uint64_t kind : {kTouches, kDetailed}) {
    ASSERT_TRUE(with(kind, {kMostSampleLog2, kMostSampleWindow, 900}));
    for (const auto& figures :
         std::initializer_list<std::initializer_list<std::uint64_t>>{{kMostSampleLog2 + 1, 8, 900},
                                                                     {63, 8, 900},
                                                                     {kHuge | 6, 8, 900},  // its low half is small
                                                                     {6, kMostSampleWindow + 1, 900},
                                                                     {6, 0xffffffff, 900},
                                                                     {6, kHuge | 8, 900},
                                                                     {6, 8, ~std::uint64_t{0}}}) {
      const auto read = with(kind, figures);
      ASSERT_FALSE(read) << kind;
      EXPECT_EQ(read.error().code, ErrorCode::kCorrupt);
      EXPECT_NE(read.error().message().find("section " + std::to_string(kind)), std::string::npos)
          << read.error().message();
    }
  }
}

// The processes before the second list name files of the first one.
TEST(Profile, WithItsFilesToldTwiceIsCorruptOrSound) {
  const auto read = read_profile(
      head() + files_section(2) + section(kProcess, Process{}.bytes()) + files_section(1) + section(kEnd, ""), "p");
  if (read) {
    expect_sound(*read);
  } else {
    EXPECT_EQ(read.error().code, ErrorCode::kCorrupt);
  }
}

TEST(Profile, WithoutFilesStillHasTheUnusedOne) {
  const auto read = read_profile(head() + files_section(0) + section(kEnd, ""), "p");
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(read->files.size(), 1u);
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

// ---- touches of sites

// Of so many sites; each with 3 objects and 4 touches that were seen.
std::string touches_section(std::initializer_list<double> touches) {
  std::string bytes = numbers({touches.size()});
  for (const double one : touches) bytes += numbers({std::bit_cast<std::uint64_t>(one), 3, 4});
  return section(kSiteTouches, bytes);
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

TEST(ProfileFile, TouchesOfSitesAreAsTheFormatSays) {
  const std::string whole =
      head() + files_section(2) + section(kProcess, Process().bytes()) + touches_section({2.5}) + section(kEnd, "");
  const auto read = read_profile(whole, "it");
  ASSERT_TRUE(read) << read.error().message();
  const SiteTotals& site = read->processes.at(0).sites.at(0);
  EXPECT_EQ(site.touches, 2.5);
  EXPECT_EQ(site.seen_objects, 3u);
  EXPECT_EQ(site.seen_touches, 4u);
}

TEST(ProfileFile, TouchesThatNoRecordingHasAreRefused) {
  const auto refused = [](const std::string& process, const std::string& touches, const char* what) {
    const auto read = read_profile(head() + files_section(2) + process + touches + section(kEnd, ""), "it");
    ASSERT_FALSE(read) << what;
    EXPECT_EQ(read.error().code, ErrorCode::kCorrupt) << what;
  };
  const std::string process = section(kProcess, Process().bytes());
  refused("", touches_section({1}), "of no process");
  refused(process, touches_section({}), "too few");
  refused(process, touches_section({1, 2}), "too many");
  refused(process, touches_section({-1}), "fewer than none");
  refused(process, touches_section({std::numeric_limits<double>::quiet_NaN()}), "no number");
  refused(process, touches_section({std::numeric_limits<double>::infinity()}), "endless");
  refused(process, section(kSiteTouches, numbers({1, 0, 0, 0, 0})), "longer");
}

}  // namespace
}  // namespace farheap::profile
