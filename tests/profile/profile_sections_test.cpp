// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Profiles of other forms: newer, foreign, and with sections that no recording writes.
#include <gtest/gtest.h>

#include <bit>
#include <limits>
#include <string>

#include "made_up_profile.hpp"

namespace farheap::profile {
namespace {

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
       {std::uint64_t{0}, std::uint64_t{77}, std::uint64_t{1} << 32 | kEndSection, ~std::uint64_t{0}}) {
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
  const auto read = read_profile(encode(whole) + section(kProcessSection, "no process") + "x", "p");
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(*read, whole);
}

TEST(Profile, MadeByHandIsRead) {
  const auto read = read_profile(
      head() + files_section(2) + section(kProcessSection, Process{}.bytes()) + section(kEndSection, ""), "p");
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
    const auto read = read_profile(head() + files_section(2) + section(kProcessSection, all[i].bytes()), "p");
    ASSERT_FALSE(read) << i;
    EXPECT_EQ(read.error().code, ErrorCode::kCorrupt) << i;
  }
}

TEST(Profile, WithSectionsOfAnotherFormIsCorrupt) {
  const std::string process = Process{}.bytes();
  for (std::size_t length = 0; length < process.size(); ++length) {
    EXPECT_FALSE(read_profile(head() + files_section(2) + section(kProcessSection, process.substr(0, length)), "p"))
        << length;
  }
  EXPECT_FALSE(read_profile(head() + files_section(2) + section(kProcessSection, process + "x"), "p"));
  const std::string files = numbers({0, 1}) + text("/file") + text("");
  for (std::size_t length = 0; length < files.size(); ++length) {
    EXPECT_FALSE(read_profile(head() + section(kFilesSection, files.substr(0, length)), "p")) << length;
  }
  EXPECT_FALSE(read_profile(head() + section(kFilesSection, files + "x"), "p"));
}

TEST(Profile, ThatWasAttachedToSaysSoOfTheProcessBefore) {
  const std::string process = section(kProcessSection, Process{}.bytes());
  const auto read = read_profile(head() + files_section(2) + process + section(kAttachedSection, "") + process, "p");
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_TRUE(read->processes[0].is_attached);
  EXPECT_FALSE(read->processes[1].is_attached);
  EXPECT_FALSE(read_profile(head() + files_section(2) + section(kAttachedSection, ""), "p")) << "of no process";
  EXPECT_FALSE(read_profile(head() + files_section(2) + process + section(kAttachedSection, "x"), "p"));
}

// Counts that say more than there is take no memory.
TEST(Profile, WithCountsBeyondItsBytesIsCorrupt) {
  for (const std::uint64_t count :
       {std::uint64_t{3}, std::uint64_t{1} << 24, std::uint64_t{1} << 40, std::uint64_t{1} << 61, ~std::uint64_t{0}}) {
    EXPECT_FALSE(read_profile(head() + section(kFilesSection, numbers({0, count})), "p")) << count;
    const std::string before = numbers({12, 11}) + text("name") + numbers({1, 2, 3, 4, 5, 6, 7});
    EXPECT_FALSE(read_profile(head() + files_section(2) + section(kProcessSection, before + numbers({count})), "p"))
        << count;
  }
}

// Of large objects: their site, first byte, bytes, birth and death.
TEST(Profile, LargeObjectsAreOfTheProcessBeforeThem) {
  const auto with = [](const std::string& objects) {
    return read_profile(head() + files_section(2) + section(kProcessSection, Process{}.bytes()) +
                            section(kObjectsSection, objects) + section(kEndSection, ""),
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
  EXPECT_FALSE(read_profile(head() + files_section(2) + section(kObjectsSection, numbers({0})), "p"))
      << "of no process";
}

TEST(Profile, LargeObjectsThatCannotHaveBeenAreCorrupt) {
  const auto with = [](std::initializer_list<std::uint64_t> object) {
    return read_profile(head() + files_section(2) + section(kProcessSection, Process{}.bytes()) +
                            section(kObjectsSection, numbers({1}) + numbers(object)) + section(kEndSection, ""),
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
    return read_profile(head() + files_section(2) + section(kProcessSection, Process{}.bytes()) +
                            section(kind, numbers(figures) + text("12345678")) + section(kEndSection, ""),
                        "p");
  };
  constexpr std::uint64_t kHuge = std::uint64_t{1} << 32;
  for (const std::uint64_t kind : {kTouchesSection, kDetailedSection}) {
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
  const auto read = read_profile(head() + files_section(2) + section(kProcessSection, Process{}.bytes()) +
                                     files_section(1) + section(kEndSection, ""),
                                 "p");
  if (read) {
    expect_sound(*read);
  } else {
    EXPECT_EQ(read.error().code, ErrorCode::kCorrupt);
  }
}

TEST(Profile, WithoutFilesStillHasTheUnusedOne) {
  const auto read = read_profile(head() + files_section(0) + section(kEndSection, ""), "p");
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(read->files.size(), 1u);
}

// ---- touches of sites

TEST(ProfileFile, TheOrderOfTouchesIsAsTheFormatSays) {
  const auto read = [](const std::string& order) {
    return read_profile(head() + files_section(2) + section(kProcessSection, Process().bytes()) +
                            section(kTouchOrderSection, order) + section(kEndSection, ""),
                        "it");
  };
  const auto words = [](std::initializer_list<std::uint32_t> all) {
    return text({reinterpret_cast<const char*>(all.begin()), all.size() * sizeof(std::uint32_t)});
  };
  const auto whole = read(words({1, 70, 1, 0}));
  ASSERT_TRUE(whole) << whole.error().message();
  EXPECT_EQ(whole->processes.at(0).touch_order, (std::vector<SiteTouch>{{1, 70}, {1, 0}}));
  for (const std::string& wrong :
       {words({0, 70}), words({2, 70}), words({1, 70, 1}), words({1, 70}) + "x", std::string()}) {
    const auto refused = read(wrong);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kCorrupt);
  }
  const auto nobodys = read_profile(
      head() + files_section(2) + section(kTouchOrderSection, words({1, 70})) + section(kEndSection, ""), "it");
  EXPECT_FALSE(nobodys) << "of no process";
}

// Of so many sites; each with 3 objects and 4 touches that were seen.
std::string touches_section(std::initializer_list<double> touches) {
  std::string bytes = numbers({touches.size()});
  for (const double one : touches) bytes += numbers({std::bit_cast<std::uint64_t>(one), 3, 4});
  return section(kSiteTouchesSection, bytes);
}

TEST(ProfileFile, TouchesOfSitesAreAsTheFormatSays) {
  const std::string whole = head() + files_section(2) + section(kProcessSection, Process().bytes()) +
                            touches_section({2.5}) + section(kEndSection, "");
  const auto read = read_profile(whole, "it");
  ASSERT_TRUE(read) << read.error().message();
  const SiteTotals& site = read->processes.at(0).sites.at(0);
  EXPECT_EQ(site.touches, 2.5);
  EXPECT_EQ(site.seen_objects, 3u);
  EXPECT_EQ(site.seen_touches, 4u);
}

TEST(ProfileFile, TouchesThatNoRecordingHasAreRefused) {
  const auto refused = [](const std::string& process, const std::string& touches, const char* what) {
    const auto read = read_profile(head() + files_section(2) + process + touches + section(kEndSection, ""), "it");
    ASSERT_FALSE(read) << what;
    EXPECT_EQ(read.error().code, ErrorCode::kCorrupt) << what;
  };
  const std::string process = section(kProcessSection, Process().bytes());
  refused("", touches_section({1}), "of no process");
  refused(process, touches_section({}), "too few");
  refused(process, touches_section({1, 2}), "too many");
  refused(process, touches_section({-1}), "fewer than none");
  refused(process, touches_section({std::numeric_limits<double>::quiet_NaN()}), "no number");
  refused(process, touches_section({std::numeric_limits<double>::infinity()}), "endless");
  refused(process, section(kSiteTouchesSection, numbers({1, 0, 0, 0, 0})), "longer");
}

}  // namespace
}  // namespace farheap::profile
