// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A program that takes Metall's messages itself (METALL_LOGGER_EXTERN_C).
#include <gtest/gtest.h>

#include <metall/metall.hpp>
#include <string>
#include <vector>

#include "store_folder.hpp"

static std::vector<std::pair<metall_log_level, std::string>> said;

extern "C" void metall_log(metall_log_level level, const char*, std::size_t, const char* message) {
  said.emplace_back(level, message);
}

namespace farheap::testing {
namespace {

TEST(MetallHookTest, AProgramGetsTheMessages) {
  StoreFolder folder;
  EXPECT_FALSE(metall::manager(metall::open_only, folder / "nowhere").check_sanity());
  ASSERT_EQ(said.size(), 1U);
  EXPECT_EQ(said[0].first, metall_error);
  EXPECT_NE(said[0].second.find("there is no datastore in "), std::string::npos);
}

}  // namespace
}  // namespace farheap::testing
