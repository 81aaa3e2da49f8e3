// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "os/memory_group.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <iostream>

#include "base/units.hpp"

namespace farheap::os {
namespace {

constexpr char kVersion2Mounts[] =
    "24 29 0:22 / /sys rw,nosuid,nodev,noexec,relatime shared:7 - sysfs sysfs rw\n"
    "29 24 0:26 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";

constexpr char kHybridMounts[] =
    "32 24 0:28 / /sys/fs/cgroup ro,nosuid,nodev,noexec shared:9 - tmpfs tmpfs ro,mode=755\n"
    "33 32 0:29 / /sys/fs/cgroup/unified rw,nosuid shared:10 - cgroup2 cgroup2 rw,nsdelegate\n"
    "36 32 0:33 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:15 - cgroup cgroup rw,cpu,cpuacct\n"
    "40 32 0:37 / /sys/fs/cgroup/memory rw,relatime shared:19 - cgroup cgroup rw,memory\n";

TEST(FindMemoryGroup, Version2) {
  const auto place = find_memory_group(kVersion2Mounts, "0::/user.slice/user-1000.slice/session-3.scope\n");
  ASSERT_TRUE(place);
  EXPECT_EQ(place->version, 2);
  EXPECT_EQ(place->mount, "/sys/fs/cgroup");
  EXPECT_EQ(place->folder, "/sys/fs/cgroup/user.slice/user-1000.slice/session-3.scope");
}

TEST(FindMemoryGroup, Version2AtItsRoot) {
  EXPECT_EQ(find_memory_group(kVersion2Mounts, "0::/\n"), (GroupPlace{2, "/sys/fs/cgroup", "/sys/fs/cgroup"}));
}

TEST(FindMemoryGroup, HybridMeansVersion1WhereThatHasTheMemoryController) {
  const auto place = find_memory_group(kHybridMounts, "5:cpu,cpuacct:/x\n4:memory:/user.slice\n0::/user.slice/y\n");
  EXPECT_EQ(place, (GroupPlace{1, "/sys/fs/cgroup/memory", "/sys/fs/cgroup/memory/user.slice"}));
}

TEST(FindMemoryGroup, HybridMeansVersion2WhereVersion1HasNoMemoryController) {
  std::string mounts = kHybridMounts;
  mounts.resize(mounts.find("40 32"));
  const auto place = find_memory_group(mounts, "5:cpu,cpuacct:/x\n0::/y\n");
  EXPECT_EQ(place, (GroupPlace{2, "/sys/fs/cgroup/unified", "/sys/fs/cgroup/unified/y"}));
}

TEST(FindMemoryGroup, ContainerOfVersion1SeesItsOwnGroupOnly) {
  const std::string mounts =
      "700 690 0:33 /docker/4f5c /sys/fs/cgroup/memory ro,nosuid master:17 - cgroup cgroup rw,memory\n";
  EXPECT_EQ(find_memory_group(mounts, "9:memory:/docker/4f5c\n")->folder, "/sys/fs/cgroup/memory");
  EXPECT_EQ(find_memory_group(mounts, "9:memory:/docker/4f5c/inner\n")->folder, "/sys/fs/cgroup/memory/inner");
  EXPECT_EQ(find_memory_group(mounts, "9:memory:/docker/4f5cde\n")->folder, "/sys/fs/cgroup/memory")
      << "a name that only begins alike is another group";
}

TEST(FindMemoryGroup, ContainerWithItsOwnNamespace) {
  const std::string mounts = "1200 1100 0:26 / /sys/fs/cgroup ro,nosuid - cgroup2 cgroup rw\n";
  EXPECT_EQ(find_memory_group(mounts, "0::/\n"), (GroupPlace{2, "/sys/fs/cgroup", "/sys/fs/cgroup"}));
}

TEST(FindMemoryGroup, ControllersThatShareAMountAndPathsWithBlanks) {
  const std::string mounts =
      "40 32 0:37 / /my\\040groups/m rw shared:19 master:2 - cgroup none rw,cpu,memory,hugetlb\n";
  const auto place = find_memory_group(mounts, "4:cpu,memory,hugetlb:/a\n");
  EXPECT_EQ(place, (GroupPlace{1, "/my groups/m", "/my groups/m/a"}));
}

TEST(FindMemoryGroup, NothingThere) {
  EXPECT_FALSE(find_memory_group("", ""));
  EXPECT_FALSE(find_memory_group("24 29 0:22 / /sys rw - sysfs sysfs rw\n", "0::/\n"));
  EXPECT_FALSE(find_memory_group(kVersion2Mounts, ""));
  EXPECT_FALSE(find_memory_group(" - \n- -\n29 24 - cgroup2\n", "0::/\n:\n::\n"));
  const std::string other = "40 32 0:37 / /x rw - cgroup cgroup rw,memory_extra\n";
  EXPECT_FALSE(find_memory_group(other, "4:memory_extra:/\n"));
}

TEST(FindCounter, WholeKeysOnly) {
  constexpr char kText[] = "cache 1\nrss 22\nrss_huge 4096\ntotal_rss 333\nbad x\n";
  EXPECT_EQ(find_counter(kText, "rss"), 22U);
  EXPECT_EQ(find_counter(kText, "rss_huge"), 4096U);
  EXPECT_EQ(find_counter(kText, "total_rss"), 333U);
  EXPECT_FALSE(find_counter(kText, "ss"));
  EXPECT_FALSE(find_counter(kText, "bad"));
}

TEST(BudgetBelow, LeavesSlackThatFitsTheLimit) {
  using base::kGiB;
  using base::kMiB;
  EXPECT_EQ(budget_below(16 * kMiB), 8 * kMiB);
  EXPECT_EQ(budget_below(128 * kMiB), 112 * kMiB);
  EXPECT_EQ(budget_below(4 * kGiB), 4 * kGiB - 256 * kMiB);
  EXPECT_EQ(budget_below(64 * kGiB), 63 * kGiB);
  EXPECT_EQ(budget_below(0), 0U);
}

// A process that is put into a group, touches 64 MiB and waits to be ended.
class Eater {
 public:
  explicit Eater(const MemoryGroup& group) {
    EXPECT_EQ(pipe(ready_), 0);
    EXPECT_EQ(pipe(go_), 0);
    pid_ = fork();
    if (pid_ == 0) eat();
    const Status added = group.add_process(pid_);
    EXPECT_TRUE(added) << added.error().message();
    char byte = 0;
    EXPECT_EQ(write(go_[1], &byte, 1), 1);
    EXPECT_EQ(read(ready_[0], &byte, 1), 1);
  }
  ~Eater() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    for (int end : {ready_[0], ready_[1], go_[0], go_[1]}) close(end);
  }
  Eater(const Eater&) = delete;
  Eater& operator=(const Eater&) = delete;

  static constexpr std::size_t kBytes = 64 * base::kMiB;

 private:
  [[noreturn]] void eat() const {
    char byte = 0;
    if (read(go_[0], &byte, 1) != 1) _exit(1);
    // Touched by the kernel, not by us: a sanitizer would add a shadow of the same pages to the group.
    void* at = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (at == MAP_FAILED) _exit(1);
    if (write(ready_[1], &byte, 1) != 1) _exit(1);
    while (true) pause();
  }
  int ready_[2];
  int go_[2];
  pid_t pid_ = 0;
};

TEST(MemoryGroup, CountsWhatAProcessUsesAndIsRemoved) {
  const auto group = MemoryGroup::create("farheap-test-" + std::to_string(getpid()));
  if (!group) GTEST_SKIP() << "SKIPPED, NOT TESTED: no control group can be made here: " << group.error().message();
  EXPECT_TRUE(group->set_limit(512 * base::kMiB));
  EXPECT_EQ(group->limit_bytes(), 512 * base::kMiB);
  {
    const Eater eater(*group);
    const auto anonymous = group->anonymous_bytes();
    ASSERT_TRUE(anonymous) << anonymous.error().message();
    // The kernel sums its counters lazily, in batches for each processor.
    EXPECT_GE(*anonymous, Eater::kBytes / 2);
    EXPECT_LE(*anonymous, Eater::kBytes + 16 * base::kMiB);
    const auto charged = group->charged_bytes();
    ASSERT_TRUE(charged) << charged.error().message();
    EXPECT_GE(*charged, Eater::kBytes / 2);
    EXPECT_FALSE(group->remove()) << "a group in use is not removed";
  }
  if (const auto peak = group->peak_bytes()) {
    EXPECT_GE(*peak, Eater::kBytes);
  } else {
    std::cout << "SKIPPED, NOT TESTED: no peak on this kernel: " << peak.error().message() << "\n";
  }
  EXPECT_EQ(group->oom_kills().value_or(0), 0U);
  const Status removed = group->remove();
  EXPECT_TRUE(removed) << removed.error().message();
}

TEST(AutomaticBudget, IsBelowTheMachinesMemoryAndNotNothing) {
  const auto pages = static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES));
  EXPECT_GT(automatic_budget(), 0U);
  EXPECT_LT(automatic_budget(), pages * base::kPageBytes);
}

}  // namespace
}  // namespace farheap::os
