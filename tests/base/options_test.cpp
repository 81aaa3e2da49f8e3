// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/options.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <set>

namespace farheap::base {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class Environment {
 public:
  Environment(std::initializer_list<std::string> lines) : lines_(lines) {
    for (const auto& line : lines_) pointers_.push_back(line.c_str());
    pointers_.push_back(nullptr);
  }
  [[nodiscard]] const char* const* get() const { return pointers_.data(); }

 private:
  std::vector<std::string> lines_;
  std::vector<const char*> pointers_;
};

std::size_t row_of(std::string_view key) {
  const auto table = option_table();
  for (std::size_t i = 0; i < table.size(); ++i) {
    if (table[i].key == key) return i;
  }
  ADD_FAILURE() << "no option " << key;
  return 0;
}

TEST(OptionTable, EveryDefaultIsUnderstoodAndPrintedAsWritten) {
  const Options options;
  const auto table = option_table();
  for (std::size_t i = 0; i < table.size(); ++i)
    EXPECT_EQ(option_text(options, i), table[i].default_text) << table[i].key;
}

TEST(OptionTable, EveryExampleIsOfItsForm) {
  for (const auto& row : option_table()) {
    if (row.hidden) continue;
    Options options;
    const auto status = set_option(options, row.key, row.example);
    EXPECT_TRUE(status) << status.error().message();
  }
}

TEST(OptionTable, EveryChoiceIsUnderstoodAndKept) {
  const auto table = option_table();
  for (std::size_t i = 0; i < table.size(); ++i) {
    for (const auto choice : table[i].choices) {
      Options options;
      ASSERT_TRUE(set_option(options, table[i].key, choice)) << table[i].key << "=" << choice;
      EXPECT_EQ(option_text(options, i), choice);
    }
  }
}

TEST(OptionTable, KeysAreUniqueAndLowerCase) {
  std::set<std::string_view> seen;
  for (const auto& row : option_table()) {
    EXPECT_TRUE(seen.insert(row.key).second) << row.key;
    for (unsigned char c : row.key) EXPECT_TRUE(std::islower(c) || c == '_') << row.key;
    EXPECT_FALSE(row.help.empty()) << row.key;
  }
}

TEST(LoadOptions, TheCommandLineWinsOverTheEnvironmentAndThatOverTheDefault) {
  const Environment environment{"FARHEAP_MEMORY=1G", "FARHEAP_POLICY=clock", "HOME=/root"};
  const std::vector<std::string> settings{"memory=64M", "memory=2G"};
  const auto loaded = load_options(environment.get(), settings);
  ASSERT_TRUE(loaded) << loaded.error().message();
  EXPECT_EQ(loaded->options.memory, std::uint64_t{2} << 30);
  EXPECT_EQ(loaded->options.policy, EvictionPolicy::kClock);
  EXPECT_EQ(loaded->sources[row_of("memory")], OptionSource::kCommandLine);
  EXPECT_EQ(loaded->sources[row_of("policy")], OptionSource::kEnvironment);
  EXPECT_EQ(loaded->sources[row_of("handlers")], OptionSource::kDefault);
  EXPECT_THAT(loaded->warnings, IsEmpty());
}

TEST(LoadOptions, NoEnvironmentAtAllIsFine) {
  const auto loaded = load_options(nullptr);
  ASSERT_TRUE(loaded);
  EXPECT_EQ(loaded->options.store, "file:/var/tmp");
}

TEST(LoadOptions, TheDefaultStoreLeavesOutFoldersThatAreKeptInMemory) {
  const Environment in_memory{"TMPDIR=/dev/shm"};
  EXPECT_EQ(load_options(in_memory.get())->options.store, "file:/var/tmp");
  const Environment not_there{"TMPDIR=/no/such/folder"};
  EXPECT_EQ(load_options(not_there.get())->options.store, "file:/var/tmp");
  const Environment kernel_files{"TMPDIR=/proc/self/status"};
  EXPECT_EQ(load_options(kernel_files.get())->options.store, "file:/var/tmp");
}

TEST(LoadOptions, AnUnknownVariableIsReportedWithASuggestion) {
  const Environment environment{"FARHEAP_MEMROY=1G", "FARHEAP_QQQQQQQQ=1", "FARHEAP_RUN_PAGE=/proc/1/fd/3"};
  const auto loaded = load_options(environment.get());
  ASSERT_TRUE(loaded);
  ASSERT_EQ(loaded->warnings.size(), 2U);
  EXPECT_THAT(loaded->warnings[0].message(), HasSubstr("did you mean FARHEAP_MEMORY?"));
  EXPECT_THAT(loaded->warnings[1].message(), HasSubstr("farheap options"));
  EXPECT_EQ(loaded->options.run_page, "/proc/1/fd/3");
}

TEST(LoadOptions, AWrongValueShowsTheRightForm) {
  const Environment environment{"FARHEAP_MEMORY=12Q"};
  const auto loaded = load_options(environment.get());
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(loaded.error().message(), HasSubstr("FARHEAP_MEMORY=12Q"));
  EXPECT_THAT(loaded.error().message(), HasSubstr("write it as FARHEAP_MEMORY=512M"));
}

TEST(LoadOptions, ASettingWithoutValueIsRefused) {
  const std::vector<std::string> settings{"memory"};
  const auto loaded = load_options(nullptr, settings);
  ASSERT_FALSE(loaded);
  EXPECT_THAT(loaded.error().message(), HasSubstr("KEY=VALUE"));
}

TEST(LoadOptions, BlocksMustFitIntoEachOther) {
  const std::vector<std::string> settings{"block_min=64K", "block_max=4K"};
  ASSERT_FALSE(load_options(nullptr, settings));
}

TEST(SetOption, RefusesWhatIsOutOfRange) {
  Options options;
  for (const auto& [key, value] :
       std::initializer_list<std::pair<const char*, const char*>>{{"block_min", "3K"},
                                                                  {"block_min", "2K"},
                                                                  {"block_max", "4M"},
                                                                  {"block_max", "12K"},
                                                                  {"handlers", "0"},
                                                                  {"handlers", "65"},
                                                                  {"probation", "91"},
                                                                  {"probation", "-1"},
                                                                  {"policy", "lru"},
                                                                  {"quiet", "maybe"},
                                                                  {"log", ""},
                                                                  {"disable", "mov"},
                                                                  {"disable", "move,,wp_async"},
                                                                  {"memory", ""},
                                                                  {"heap_id", "1x"},
                                                                  {"heap_id", "4294967296"}}) {
    const auto status = set_option(options, key, value);
    ASSERT_FALSE(status) << key << "=" << value;
    EXPECT_THAT(status.error().message(), HasSubstr(std::string("--set ") + key + "=")) << "shows the right form";
  }
  for (std::size_t i = 0; i < option_table().size(); ++i) {
    EXPECT_EQ(option_text(options, i), option_table()[i].default_text) << "a refused value changed the option";
  }
}

TEST(SetOption, HiddenOptionsAreForTheToolOnly) {
  Options options;
  EXPECT_FALSE(set_option(options, "run_page", "/proc/1/fd/3"));
  const auto status = set_option(options, "memry", "1G");
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message(), HasSubstr("did you mean memory?"));
}

TEST(SetOption, FeaturesAreAList) {
  Options options;
  ASSERT_TRUE(set_option(options, "disable", "io_uring,move"));
  EXPECT_TRUE(options.disable.has(Feature::kMove));
  EXPECT_TRUE(options.disable.has(Feature::kIoUring));
  EXPECT_FALSE(options.disable.has(Feature::kWpAsync));
  ASSERT_TRUE(set_option(options, "disable", ""));
  EXPECT_EQ(options.disable, FeatureSet{});
}

TEST(OptionEnvironment, GivesTheSameOptionsAgain) {
  Options options;
  options.memory = 300 * std::uint64_t{1048576} + 1;
  options.store = "checksum+file:/tmp/a b?x=1";
  options.disable.add(Feature::kMove);
  options.follow_exec = false;
  options.log = LogLevel::kDebug;
  const auto lines = option_environment(options);
  EXPECT_EQ(lines.size(), 5U);
  std::vector<const char*> environment;
  for (const auto& line : lines) environment.push_back(line.c_str());
  environment.push_back(nullptr);
  const auto loaded = load_options(environment.data());
  ASSERT_TRUE(loaded) << loaded.error().message();
  for (std::size_t i = 0; i < option_table().size(); ++i) {
    EXPECT_EQ(option_text(loaded->options, i), option_text(options, i));
  }
}

TEST(NearestWord, FindsMisspellingsOnly) {
  const std::string_view words[] = {"memory", "store", "stats"};
  EXPECT_EQ(nearest_word("memroy", words), "memory");
  EXPECT_EQ(nearest_word("stor", words), "store");
  EXPECT_EQ(nearest_word("stat", words), "stats");
  EXPECT_EQ(nearest_word("handlers", words), "");
  EXPECT_EQ(nearest_word("", words), "");
}

}  // namespace
}  // namespace farheap::base
