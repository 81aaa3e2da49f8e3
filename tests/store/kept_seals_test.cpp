// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Writers of sealed stores that are killed between two writes to the store below, again and again.
#include <gtest/gtest.h>

#include "store/checksum_store.hpp"
#ifdef FARHEAP_HAVE_SODIUM
#include "store/encrypt_store.hpp"
#endif
#include "store/decorator.hpp"
#include "tests/store/store_fixture.hpp"

namespace farheap::test {
namespace {

// Passes on so many puts, and is then as good as dead. What it passed on is in a store that outlives it.
class StopsAfter final : public Store {
 public:
  StopsAfter(Store& store, int puts) : store_(store), left_(puts) {}
  std::string describe() const override { return store_.describe(); }
  Capabilities capabilities() const override { return store_.capabilities(); }
  Limits limits() const override { return store_.limits(); }
  Status get(std::span<Get> batch) override { return store_.get(batch); }
  Status put(std::span<Put> batch) override {
    if (left_-- > 0) return store_.put(batch);
    left_ = 0;
    for (auto& entry : batch) entry.outcome = Outcome::kFailed;
    return fail(ErrorCode::kIo, "cannot write", describe(), "it has stopped");
  }
  Status erase(std::uint64_t first, std::uint64_t count) override { return store_.erase(first, count); }
  Result<std::int64_t> add(std::string_view counter, std::int64_t delta) override { return store_.add(counter, delta); }
  Status sync() override { return store_.sync(); }
  Result<StoreUsage> usage() override { return store_.usage(); }

 private:
  Store& store_;
  int left_;
};

std::unique_ptr<Store> with_checksums(std::unique_ptr<Store> inner) {
  return store::make_kept_checksums(std::move(inner));
}

std::unique_ptr<Store> with_encryption(std::unique_ptr<Store> inner) {
#ifdef FARHEAP_HAVE_SODIUM
  static const auto key = store::EncryptKey::parse(std::string(64, 'a'), "test");
  auto sealed = store::make_kept_encryption(std::move(inner), *key);
  EXPECT_TRUE(sealed) << sealed.error().message();
  return sealed ? std::move(*sealed) : nullptr;
#else
  return with_checksums(std::move(inner));
#endif
}

using Seal = std::unique_ptr<Store> (*)(std::unique_ptr<Store>);
class KilledBetweenSeals : public testing::TestWithParam<Seal> {};

// Each of five writers puts the block once and is killed after so many writes: of the counters' first side block, of
// the seals, of the block. A kill after the seals and a second one at the same place made the block, which nobody had
// touched, corrupt.
TEST_P(KilledBetweenSeals, ABlockIsTheOldOneOrTheNewOne) {
  constexpr int kWriters = 5, kMostPuts = 4;
  for (int sequence = 0; sequence < 1 << 2 * kWriters; ++sequence) {
    auto below = open_or_fail("mem:");
    std::uint64_t last = 0;
    for (int writer = 0; writer < kWriters; ++writer) {
      const int puts = (sequence >> 2 * writer) % kMostPuts;
      const std::uint64_t next = 1 + static_cast<std::uint64_t>(writer);
      const auto bytes = make_blocks(1, 1, 4096, next);
      Put entry{.block = 1, .from = bytes};
      auto sealed = GetParam()(std::make_unique<StopsAfter>(*below, puts));
      ASSERT_TRUE(sealed);
      const bool done = sealed->put({&entry, 1}).has_value();
      sealed = GetParam()(std::make_unique<StopsAfter>(*below, 0));
      Bytes into(4096);
      Get now{.block = 1, .into = into};
      const Status got = sealed->get({&now, 1});
      if (now.outcome == Outcome::kAbsent) {
        ASSERT_EQ(last, 0u) << "lost in sequence " << sequence;
        continue;
      }
      ASSERT_TRUE(got) << "sequence " << sequence << ", writer " << writer << ": " << got.error().message();
      const bool is_new = into == bytes;
      ASSERT_TRUE(is_new || (!done && into == make_blocks(1, 1, 4096, last))) << "sequence " << sequence;
      if (is_new) last = next;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seals, KilledBetweenSeals, testing::Values(with_checksums, with_encryption),
                         [](const auto& one) { return one.index == 0 ? "checksum" : "encrypt"; });

}  // namespace
}  // namespace farheap::test
