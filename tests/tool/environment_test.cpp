// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tool/environment.hpp"

#include <gtest/gtest.h>

#include <cerrno>

#include "base/units.hpp"
#include "tool/address_room.hpp"

namespace farheap::tool {
namespace {

TEST(AbsoluteStore, OnlyPathsBecomeAbsolute) {
  EXPECT_EQ(absolute_store("file:data", "/here"), "file:/here/data");
  EXPECT_EQ(absolute_store("checksum+compress+file:data?size=1G", "/here"),
            "checksum+compress+file:/here/data?size=1G");
  EXPECT_EQ(absolute_store("lmdb:./x.mdb", "/here"), "lmdb:/here/./x.mdb");
  EXPECT_EQ(absolute_store("file:data", "/what?now@home"), "file:/what%3Fnow%40home/data");
  for (const char* uri : {"file:/var/tmp", "mem:", "slow+mem:?delay_us=100", "redis:localhost", "file:", "file", ""}) {
    EXPECT_EQ(absolute_store(uri, "/here"), uri);
  }
}

TEST(CheckStoreSavesMemory, OnlyWhatIsPackedMayStayInMemory) {
  for (const char* uri : {"mem:", "slow+mem:?delay_us=1", "checksum+mem:"}) {
    const auto saves = check_store_saves_memory(uri);
    ASSERT_FALSE(saves) << uri;
    EXPECT_NE(saves.error().message().find("compress+mem:"), std::string::npos);
  }
  for (const char* uri : {"compress+mem:", "checksum+compress+mem:?codec=lz4", "file:/mem:", "lmdb:/tmp"}) {
    EXPECT_TRUE(check_store_saves_memory(uri)) << uri;
  }
}

TEST(CheckUserfault, NamesEveryGrantWhenSystemCallsAreNotServed) {
  os::KernelFeatures kernel;
  kernel.userfault = os::UserfaultAccess::kUserModeOnly;
  kernel.userfault_errno = EPERM;
  kernel.write_protect = true;
  const auto refused = check_userfault(kernel);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kPermission);
  for (const auto& grant : userfault_grants()) {
    EXPECT_NE(refused.error().message().find(grant.command), std::string::npos) << grant.command;
  }
}

TEST(CheckUserfault, EitherWayOfEvictionIsEnough) {
  os::KernelFeatures kernel;
  kernel.kernel_faults = true;
  EXPECT_EQ(check_userfault(kernel).error().code, ErrorCode::kUnavailable);
  kernel.write_protect = true;
  EXPECT_TRUE(check_userfault(kernel)) << "Linux 6.1";
  kernel.write_protect = false;
  kernel.move = true;
  EXPECT_TRUE(check_userfault(kernel));
}

constexpr std::uint64_t kNeeded = 2 * base::kTiB;

TEST(CheckAddresses, ALimitThatMayBeRaisedComesWithTheCommand) {
  os::MachineLimits limits;
  EXPECT_TRUE(check_address_limit(limits, kNeeded));
  limits.address_space_bytes = kNeeded;
  EXPECT_TRUE(check_address_limit(limits, kNeeded));
  limits.address_space_bytes = kNeeded - 1;
  const auto refused = check_address_limit(limits, kNeeded);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().remedy, "ulimit -S -v unlimited");
  EXPECT_NE(refused.error().message().find("RLIMIT_AS (`ulimit -v`)"), std::string::npos);
}

TEST(CheckAddresses, AHardLimitSaysSo) {
  os::MachineLimits limits;
  limits.address_space_bytes = limits.address_space_hard_bytes = base::kGiB;
  const auto refused = check_address_limit(limits, kNeeded);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().remedy.find("hard"), std::string::npos);
}

TEST(CheckAddresses, NeverOvercommittingIsRefusedUnlessItGrantsAllTheSame) {
  os::MachineLimits limits;
  EXPECT_TRUE(check_overcommit_mode(limits, false)) << "not this setting's fault";
  limits.overcommit = os::OvercommitMode::kNever;
  EXPECT_TRUE(check_overcommit_mode(limits, true)) << "with a huge vm.overcommit_kbytes";
  const auto refused = check_overcommit_mode(limits, false);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().remedy, "sudo sysctl vm.overcommit_memory=0");
}

TEST(CheckAddresses, AStoreThatMapsItselfNeedsMore) {
  EXPECT_GT(addresses_needed("checksum+lmdb:/x"), addresses_needed("checksum+file:/lmdb:"));
}

}  // namespace
}  // namespace farheap::tool
