// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "os/userfault.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <thread>

#include "os/mapping.hpp"
#include "os/own_descriptors.hpp"

namespace farheap::os {
namespace {

constexpr std::size_t kPage = 4096;

class UserfaultTest : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    auto opened = Userfault::open({.move = GetParam(), .kernel_faults = true});
    if (!opened) {
      std::fprintf(stderr, "userfault_test: NOT TESTED: %s\n", opened.error().message().c_str());
      GTEST_SKIP() << opened.error().message();
    }
    fault_ = std::move(*opened);
    for (Mapping* one : {&view_, &aside_}) {
      auto mapping = Mapping::reserve(16 * kPage, Access::kReadWrite);
      ASSERT_TRUE(mapping.has_value());
      *one = std::move(*mapping);
      madvise(one->data(), one->size(), MADV_NOHUGEPAGE);
      ASSERT_TRUE(fault_.register_range(one->data(), one->size()).has_value());
    }
  }
  [[nodiscard]] FaultEvent next() {
    FaultEvent event;
    pollfd waiting{fault_.descriptor(), POLLIN, 0};
    EXPECT_EQ(poll(&waiting, 1, 60'000), 1);
    EXPECT_TRUE(fault_.read_event(event));
    return event;
  }
  void put(std::byte* at, int value) {
    alignas(kPage) std::byte bytes[kPage];
    std::memset(bytes, value, kPage);
    std::size_t done = 0;
    ASSERT_EQ(fault_.copy(at, bytes, kPage, done), 0);
    ASSERT_EQ(done, kPage);
  }
  Userfault fault_;
  Mapping view_, aside_;
};

TEST_P(UserfaultTest, ATouchIsToldAndWaitsForThePage) {
  FaultEvent none;
  EXPECT_FALSE(fault_.read_event(none));
  std::byte seen{0};
  std::thread reader([&] { seen = view_.data()[3 * kPage + 100]; });
  const FaultEvent event = next();
  EXPECT_EQ(event.address, reinterpret_cast<std::uintptr_t>(view_.data()) + 3 * kPage + 100) << "before Linux 5.18?";
  EXPECT_FALSE(event.write);
  EXPECT_NE(event.thread, 0u);
  EXPECT_NE(event.thread, static_cast<std::uint32_t>(getpid()));
  put(view_.data() + 3 * kPage, 9);
  reader.join();
  EXPECT_EQ(seen, std::byte{9});
}

TEST_P(UserfaultTest, AFaultInsideASystemCallIsServed) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  std::thread writer([&] { EXPECT_EQ(write(ends[1], view_.data() + kPage, 10), 10); });
  EXPECT_FALSE(next().write);
  put(view_.data() + kPage, 5);
  writer.join();
  char got[10];
  EXPECT_EQ(read(ends[0], got, 10), 10);
  EXPECT_EQ(got[9], 5);
  close(ends[0]);
  close(ends[1]);
}

// While another thread is held in its write to it: what ThreadSanitizer would call a race is what is tested.
__attribute__((no_sanitize("thread"), noinline)) std::byte read_meanwhile(const volatile std::byte* at) { return *at; }

TEST_P(UserfaultTest, AWriteToAProtectedPageIsToldAsSuch) {
  put(view_.data(), 1);
  ASSERT_EQ(fault_.write_protect(view_.data(), kPage, true), 0);
  std::thread writer([&] { view_.data()[5] = std::byte{77}; });
  const FaultEvent event = next();
  EXPECT_TRUE(event.write && event.write_protected);
  EXPECT_EQ(read_meanwhile(view_.data() + 5), std::byte{1}) << "reads go on";
  ASSERT_EQ(fault_.write_protect(view_.data(), kPage, false), 0);
  writer.join();
  EXPECT_EQ(view_.data()[5], std::byte{77});
}

TEST_P(UserfaultTest, APageThatIsThereIsNotOverwritten) {
  put(view_.data(), 1);
  alignas(kPage) static const std::byte bytes[3 * kPage]{};
  std::size_t done = 1;
  EXPECT_EQ(fault_.copy(view_.data(), bytes, kPage, done), EEXIST);
  EXPECT_EQ(done, 0u);
  EXPECT_EQ(view_.data()[0], std::byte{1});
  // Progress before the page that refuses is told.
  put(view_.data() + 6 * kPage, 6);
  EXPECT_NE(fault_.copy(view_.data() + 4 * kPage, bytes, 3 * kPage, done), 0);
  EXPECT_EQ(done, 2 * kPage);
  EXPECT_EQ(view_.data()[6 * kPage], std::byte{6});
}

TEST_P(UserfaultTest, APageMovesAtomically) {
  if (!fault_.features().move) {
    std::fputs("userfault_test: NOT TESTED: moves (masked, or the kernel has none)\n", stderr);
    GTEST_SKIP();
  }
  put(view_.data() + kPage, 3);
  put(view_.data() + 2 * kPage, 4);
  std::size_t done = 0;
  EXPECT_EQ(fault_.move(aside_.data(), view_.data() + kPage, 2 * kPage, done), 0);
  EXPECT_EQ(done, 2 * kPage);
  EXPECT_EQ(aside_.data()[kPage], std::byte{4});
  EXPECT_EQ(fault_.move(aside_.data() + 5 * kPage, view_.data() + kPage, kPage, done), ENOENT) << "it is gone";
  EXPECT_EQ(done, 0u);
  std::byte seen{0};
  std::thread reader([&] { seen = view_.data()[kPage]; });
  (void)next();
  EXPECT_EQ(fault_.move(view_.data() + kPage, aside_.data(), kPage, done), 0);
  reader.join();
  EXPECT_EQ(seen, std::byte{3});
}

TEST_P(UserfaultTest, ItsDescriptorIsKeptFromTheProgramAndReleased) {
  const int file = fault_.descriptor();
  EXPECT_TRUE(is_own_descriptor(file));
  Userfault moved = std::move(fault_);
  EXPECT_EQ(fault_.descriptor(), -1);
  EXPECT_EQ(moved.descriptor(), file);
  {
    Userfault last = std::move(moved);
  }
  EXPECT_FALSE(is_own_descriptor(file));
}

INSTANTIATE_TEST_SUITE_P(Features, UserfaultTest, testing::Bool(),
                         [](const auto& one) { return one.param ? "Move" : "NoMove"; });

}  // namespace
}  // namespace farheap::os
