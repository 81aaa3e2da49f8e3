// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "profile/contexts.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "profile/profile.hpp"

namespace farheap::profile {
namespace {

using ::testing::ElementsAre;

const ContextPlace kMain = {"main", "a.c", 1, false}, kLoop = {"main", "a.c", 2, true}, kA = {"a", "a.c", 9, false},
                   kB = {"b", "a.c", 19, false};

// main calls a() by itself and in a loop; b() takes the longest.
Contexts small(std::size_t most = 100) {
  ContextCollector collector;
  const std::uint32_t main = collector.child(ContextCollector::kTop, kMain);
  const std::uint32_t first_a = collector.child(main, kA);
  const std::uint32_t loop = collector.child(main, kLoop);
  const std::uint32_t second_a = collector.child(loop, kA);
  const std::uint32_t b = collector.child(main, kB);
  collector.add(main, 1, 10, 1, 2);
  collector.add(first_a, 1, 20, 3, 4);
  collector.add(loop, 1, 5, 0, 0);
  collector.add(second_a, 7, 30, 5, 6);
  collector.add(b, 2, 100, 7, 8);
  const std::uint32_t site = collector.site({.context = first_a, .objects = 2, .allocated_bytes = 64});
  collector.add(ContextAccesses{second_a, site, 5, 1});
  collector.add(ContextAccesses{first_a, site, 2, 1});
  return collector.finish(most);
}

std::vector<std::string> names(const Contexts& contexts) {
  std::vector<std::string> found;
  for (std::uint32_t i = 1; i < contexts.contexts.size(); ++i) {
    const ContextPlace& place = contexts.places[contexts.contexts[i].place];
    found.push_back(std::string(place.is_loop ? "loop of " : "") + place.function);
  }
  return found;
}

TEST(Contexts, AreInPreorderTheLongestTakingFirst) {
  const Contexts contexts = small();
  EXPECT_THAT(names(contexts), ElementsAre("main", "b", "loop of main", "a", "a"));
  EXPECT_EQ(contexts.contexts[4].entries, 7u);
  EXPECT_EQ(contexts.parent(4), 3u);
  EXPECT_EQ(contexts.parent(5), 1u);
}

TEST(Contexts, AnIdIsThatOfTheParentAndALocalId) {
  const Contexts contexts = small();
  for (std::uint32_t i = 1; i < contexts.contexts.size(); ++i) {
    EXPECT_EQ(i, contexts.parent(i) + contexts.contexts[i].local_id);
    EXPECT_GT(contexts.contexts[i].local_id, 0u);
  }
}

TEST(Contexts, OfThreadsAreOneWhereTheirPathsAre) {
  ContextCollector collector;
  for (int thread = 0; thread < 3; ++thread) {
    const std::uint32_t main = collector.child(ContextCollector::kTop, kMain);
    collector.add(collector.child(main, kA), 2, 5, 1, 1);
  }
  const Contexts contexts = collector.finish(100);
  ASSERT_EQ(contexts.contexts.size(), 3u);
  EXPECT_EQ(contexts.contexts[2].entries, 6u);
  EXPECT_EQ(contexts.contexts[2].own_ns, 15u);
}

TEST(Contexts, TimeMayBeTakenAwayBeforeItIsThere) {
  ContextCollector collector;
  const std::uint32_t main = collector.child(ContextCollector::kTop, kMain);
  collector.add(main, 0, -70, 0, 0);
  collector.add(main, 1, 100, 0, 0);
  const std::uint32_t a = collector.child(main, kA);
  collector.add(a, 1, -5, 0, 0);
  const Contexts contexts = collector.finish(100);
  EXPECT_EQ(contexts.contexts[1].own_ns, 30u);
  EXPECT_EQ(contexts.contexts[2].own_ns, 0u);
}

TEST(Contexts, TheColdestBecomePartOfWhatIsAboveThem) {
  const Contexts contexts = small(3);
  EXPECT_THAT(names(contexts), ElementsAre("main", "b"));
  EXPECT_EQ(contexts.folded, 3u);
  EXPECT_EQ(contexts.contexts[1].own_ns, 65u);
  EXPECT_EQ(contexts.contexts[1].reads, 9u);
  EXPECT_EQ(contexts.contexts[1].writes, 12u);
  EXPECT_EQ(contexts.contexts[1].entries, 1u);
  EXPECT_EQ(contexts.contexts[1].folded, 3u);
  EXPECT_EQ(contexts.contexts[1].folded_entries, 9u);
  EXPECT_EQ(contexts.contexts[2].folded, 0u);
  EXPECT_THAT(contexts.accesses, ElementsAre(ContextAccesses{1, 1, 7, 2}));
  EXPECT_EQ(contexts.sites[1].context, 1u);
}

TEST(Contexts, WhatWasFoldedWhileTheProgramRanStaysCounted) {
  for (const std::size_t most : {100, 2}) {
    ContextCollector collector;
    const std::uint32_t main = collector.child(ContextCollector::kTop, kMain);
    const std::uint32_t a = collector.child(main, kA);
    collector.add(main, 1, 10, 1, 2);
    collector.add(a, 2, 5, 3, 4);
    collector.add(a, 0, 7, 30, 40);  // what was folded into it
    collector.add_folded(a, 6, 50);
    collector.add_folded(ContextCollector::kTop, 1, 3);
    const Contexts contexts = collector.finish(most);
    EXPECT_EQ(contexts.folded, most == 2 ? 8u : 7u);
    CountedContext sum;
    for (const CountedContext& one : contexts.contexts) {
      sum.entries += one.entries + one.folded_entries;
      sum.own_ns += one.own_ns;
      sum.reads += one.reads;
      sum.folded += one.folded;
    }
    EXPECT_EQ(sum.entries, 1u + 1 + 2 + 50 + 3);
    EXPECT_EQ(sum.own_ns, 22u);
    EXPECT_EQ(sum.reads, 34u);
    EXPECT_EQ(sum.folded, contexts.folded);
    EXPECT_EQ(contexts.contexts.back().folded_entries, most == 2 ? 52u : 50u);
  }
}

TEST(Contexts, AreATreeForPlans) {
  const Contexts contexts = small();
  const ContextTree tree = tree_of(contexts);
  ASSERT_EQ(tree.size(), contexts.contexts.size());
  EXPECT_EQ(tree[4].parent, 3u);
  EXPECT_EQ(tree[4].accesses.of(1), 6u);
  EXPECT_DOUBLE_EQ(tree[2].seconds, 100e-9);
  EXPECT_EQ(tree_of(Contexts{}).size(), 1u);
}

Profile whole(Contexts contexts) {
  Profile profile;
  profile.processes.emplace_back();
  profile.processes[0].process = 7;
  profile.processes[0].contexts = std::move(contexts);
  return profile;
}

TEST(Contexts, AreReadAsTheyWereWritten) {
  for (const std::size_t most : {100, 3}) {
    const Profile profile = whole(small(most));
    const auto read = read_profile(encode(profile), "test");
    ASSERT_TRUE(read) << read.error().message();
    EXPECT_EQ(*read, profile);
  }
}

TEST(Contexts, OfADamagedProfileAreNotBelieved) {
  const std::string bytes = encode_contexts(small());
  Contexts into;
  ASSERT_TRUE(take_contexts(bytes, 1, into));
  EXPECT_FALSE(take_contexts(std::string_view(bytes).substr(0, bytes.size() - 1), 1, into));
  EXPECT_FALSE(take_contexts(bytes + "x", 1, into));
  EXPECT_FALSE(take_contexts("", 1, into));
  const Contexts few = small(3);
  const std::string folded = encode_folded(few);
  ASSERT_TRUE(take_contexts(encode_contexts(few), 1, into));
  EXPECT_FALSE(take_folded(std::string_view(folded).substr(0, folded.size() - 1), into));
  EXPECT_FALSE(take_folded(folded + "x", into));
  EXPECT_FALSE(take_folded("", into));
  EXPECT_NE(into, few);
  EXPECT_TRUE(take_folded(folded, into));
  EXPECT_EQ(into, few);
  Contexts fewer = few;
  fewer.contexts.resize(1);
  EXPECT_FALSE(take_folded(folded, fewer)) << "it is of a context that is not there";
}

TEST(Contexts, WhoseNumbersNameNothingAreRefused) {
  const auto is_taken = [](auto change) {
    Contexts one = small();
    change(one);
    Contexts into;
    return take_contexts(encode_contexts(one), 1, into);
  };
  EXPECT_TRUE(is_taken([](Contexts&) {}));
  EXPECT_FALSE(is_taken([](Contexts& one) { one = {}; }));
  EXPECT_FALSE(is_taken([](Contexts& one) { one.contexts[0].local_id = 1; }));
  EXPECT_FALSE(is_taken([](Contexts& one) { one.contexts[3].local_id = 0; }));
  EXPECT_FALSE(is_taken([](Contexts& one) { one.contexts[3].local_id = 4; }));
  EXPECT_FALSE(is_taken([](Contexts& one) { one.contexts[5].local_id = 3; }));  // below b(), which has ended
  EXPECT_FALSE(is_taken([](Contexts& one) { one.contexts[2].place = 77; }));
  EXPECT_FALSE(is_taken([](Contexts& one) { one.sites[1].context = 6; }));
  EXPECT_FALSE(is_taken([](Contexts& one) { one.sites[1].file = 1; }));
  EXPECT_FALSE(is_taken([](Contexts& one) { one.accesses[0].site = 2; }));
  EXPECT_FALSE(is_taken([](Contexts& one) { one.accesses[0].context = 6; }));
}

}  // namespace
}  // namespace farheap::profile
