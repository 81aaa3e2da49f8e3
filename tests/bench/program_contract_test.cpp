// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What every benchmark program promises, checked on its smallest shape. Linked once with each program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/lock_memory.hpp"
#include "common/program.hpp"

namespace farheap::bench {
namespace {

class ProgramContract : public testing::TestWithParam<std::string> {
 protected:
  static std::unique_ptr<Workload> prepared(std::uint64_t seed = 1, unsigned threads = 1) {
    const Program program = this_program();
    Flags flags = program.defaults;
    flags.size = program.tiny_size;
    flags.steps = program.tiny_steps;
    flags.seed = seed;
    flags.threads = threads;
    return std::unique_ptr<Workload>(program.prepare(flags));
  }

  static std::unique_ptr<Workload> finished(std::uint64_t seed = 1, unsigned threads = 1) {
    auto work = prepared(seed, threads);
    work->run_kernel();
    return work;
  }

  // What the command prints; `status` is what it returned.
  static std::string printed(std::vector<std::string> words, int& status) {
    words.insert(words.begin(), "program");
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    testing::internal::CaptureStdout();
    status = benchmark_main(static_cast<int>(arguments.size()), arguments.data(), this_program());
    return testing::internal::GetCapturedStdout();
  }

  static std::vector<std::string> tiny_arguments() {
    const Program program = this_program();
    return {"--size", std::to_string(program.tiny_size), "--steps", std::to_string(program.tiny_steps)};
  }
};

// A result is made of words of 8 bytes; the second highest bit decides about half of an integer or of a number's size.
void flip(const ByteRange& range, std::size_t word) {
  std::uint64_t value = 0;
  std::memcpy(&value, range.data() + word * sizeof(value), sizeof(value));
  value ^= std::uint64_t{1} << 62;
  std::memcpy(range.data() + word * sizeof(value), &value, sizeof(value));
}

TEST_P(ProgramContract, TheVerifierIsContentWithTheRightResult) {
  for (const std::uint64_t seed : {1, 2, 3}) EXPECT_EQ(finished(seed)->verify(), "") << "seed " << seed;
}

TEST_P(ProgramContract, TheVerifierIsContentWithWhatTwoThreadsDid) { EXPECT_EQ(finished(1, 2)->verify(), ""); }

TEST_P(ProgramContract, TheVerifierFindsOneBrokenWord) {
  const auto work = finished();
  const std::vector<ByteRange> ranges = work->result();
  ASSERT_FALSE(ranges.empty());
  for (int attempt = 0; attempt < 24; ++attempt) {
    const ByteRange range = ranges[scale_random(random_at(7, attempt), ranges.size())];
    const std::size_t words = range.size() / 8;
    ASSERT_GT(words, 0U);
    const std::size_t word = attempt == 0 ? 0 : attempt == 1 ? words - 1 : scale_random(random_at(8, attempt), words);
    flip(range, word);
    EXPECT_NE(work->verify(), "") << "word " << word << " of " << words;
    flip(range, word);
  }
  EXPECT_EQ(work->verify(), "");
}

TEST_P(ProgramContract, TheVerifierFindsAKernelThatDidNotRun) { EXPECT_NE(prepared()->verify(), ""); }

TEST_P(ProgramContract, TheDigestFollowsFromTheSeedAlone) {
  const std::uint64_t digest = finished(1)->digest();
  EXPECT_EQ(finished(1)->digest(), digest);
  EXPECT_EQ(finished(1, 2)->digest(), digest) << "with two threads";
  EXPECT_NE(finished(2)->digest(), digest);
}

TEST_P(ProgramContract, TheHottestDataAreItsOwnAndCanBeLocked) {
  const auto work = prepared();
  std::size_t hot = 0;
  for (const ByteRange range : work->hottest()) hot += range.size();
  EXPECT_GE(hot, std::size_t{16} << 10);
  EXPECT_LE(hot, work->bytes());
  const std::uint64_t most = 64 << 10;
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_MEMLOCK, &limit), 0);
  if (limit.rlim_cur < most) GTEST_SKIP() << "SKIPPED: ulimit -l allows only " << limit.rlim_cur << " bytes";
  const auto locked = lock_memory(work->hottest(), most);
  ASSERT_TRUE(locked.has_value()) << locked.error();
  EXPECT_GT(*locked, 0U);
  EXPECT_LE(*locked, most);
  work->run_kernel();
  EXPECT_EQ(work->verify(), "");
}

TEST_P(ProgramContract, ItsDescriptionNamesClassAndCases) {
  int status = -1;
  const auto described = nlohmann::json::parse(printed({"--describe"}, status));
  EXPECT_EQ(status, 0);
  EXPECT_EQ(described["program"], GetParam());
  EXPECT_THAT(std::string(described["class"]), testing::AnyOf("sweeping", "random", "other"));
  EXPECT_TRUE(described["random_trace"].is_boolean());
  ASSERT_FALSE(described["cases"].empty());
  for (const auto& one : described["cases"]) EXPECT_FALSE(std::string(one["name"]).empty());
}

TEST_P(ProgramContract, EveryCaseRunsVerifiedAndTellsWhatItDid) {
  for (const Case& one : this_program().cases) {
    std::vector<std::string> words = one.arguments;
    for (const std::string& word : one.quick_arguments) words.push_back(word);
    for (const std::string& word : tiny_arguments()) words.push_back(word);  // the last one said counts
    words.emplace_back("--verify");
    int status = -1;
    const auto line = nlohmann::json::parse(printed(words, status));
    EXPECT_EQ(status, 0) << one.name;
    EXPECT_EQ(line["verified"], true) << one.name;
    EXPECT_EQ(line["mlocked_bytes"], 0) << one.name;
    EXPECT_GT(line["bytes"], 0) << one.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Bench, ProgramContract, testing::Values(this_program().name),
                         [](const auto& tested) { return tested.param; });

}  // namespace
}  // namespace farheap::bench
