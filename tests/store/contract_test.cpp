// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The contract of include/farheap/store.hpp (src/store/contract.hpp), over every engine that is no server and many
// stacks of decorators. Each check has a store of its own.
#include "store/contract.hpp"

#include <iostream>

#include "tests/store/store_fixture.hpp"

namespace farheap::test {
namespace {

struct Subject {
  std::string name;
  std::string uri;  // @ stands for the temporary folder
  StoreOptions options;
};

// What a test name says when it fails.
void PrintTo(const Subject& subject, std::ostream* out) { *out << subject.uri; }

std::string expand(std::string uri, const std::string& folder) {
  for (auto at = uri.find('@'); at != std::string::npos; at = uri.find('@')) uri.replace(at, 1, folder);
  return uri;
}

class StoreContract : public testing::TestWithParam<Subject> {};

TEST_P(StoreContract, Holds) {
  if (!is_in_build(GetParam().uri)) GTEST_SKIP() << "NOT IN THIS BUILD: " << GetParam().uri;
  for (const auto& check : store::contract_checks()) {
    const TemporaryFolder folder;
    const auto uri = expand(GetParam().uri, folder.path());
    const auto answer = store::run_contract_check(
        check, {.open = [&](const StoreOptions& options) { return open_store(uri, options); },
                .options = GetParam().options,
                .describes = uri.substr(0, uri.find('?')),
                .child_may_go_on = uri.find("file:") != uri.npos && uri.find("lmdb:") == uri.npos});
    if (answer.verdict == store::Verdict::kNotForThisStore) {
      std::cout << check.name << ": not for this store: " << answer.words.front() << "\n";
    } else {
      std::cout << check.name << ": " << check.proves << "\n";
    }
    if (answer.verdict != store::Verdict::kBroken) continue;
    for (const auto& words : answer.words) ADD_FAILURE() << check.name << ": " << words;
  }
}

// The suite itself: it must not say that a store holds what it does not hold.
TEST(StoreContractSuite, FindsStoresThatBreakTheirPromises) {
  for (const std::string uri : {"faulty+mem:?lost=0.3", "faulty+mem:?flip=0.3", "faulty+mem:?error=0.3&seed=5"}) {
    std::size_t broken = 0;
    for (const auto& check : store::contract_checks()) {
      const auto open = [&](const StoreOptions& options) { return open_store(uri, options); };
      const auto answer = store::run_contract_check(check, {.open = open, .options = {}, .describes = "faulty+mem:"});
      broken += answer.verdict == store::Verdict::kBroken ? 1 : 0;
    }
    EXPECT_GE(broken, 10u) << uri;
  }
  const auto& first = store::contract_checks().front();
  const auto none = [](const StoreOptions& options) { return open_store("nowhere:", options); };
  EXPECT_EQ(store::run_contract_check(first, {.open = none, .options = {}}).verdict, store::Verdict::kBroken);
}

std::string name_of(const testing::TestParamInfo<Subject>& info) { return info.param.name; }

constexpr StoreOptions kKept{.lifetime = Lifetime::kKeep};
constexpr StoreOptions kPlain{.use_io_uring = false};

// A key file for every store that is kept encrypted.
StoreOptions with_key(StoreOptions options) {
  static const TemporaryFolder kFolder;
  options.encrypt_key_file = key_file_in(kFolder.path());
  return options;
}

INSTANTIATE_TEST_SUITE_P(Mem, StoreContract,
                         testing::Values(Subject{"Pages", "mem:", {}}, Subject{"Sectors", "mem:", {.block_bytes = 512}},
                                         Subject{"Large", "mem:", {.block_bytes = 65536}}),
                         name_of);

INSTANTIATE_TEST_SUITE_P(
    File, StoreContract,
    testing::Values(Subject{"Scratch", "file:@", {}}, Subject{"ScratchPlain", "file:@", kPlain},
                    Subject{"ScratchNamed", "file:@/blocks", {}},
                    Subject{"ScratchSectors", "file:@", {.block_bytes = 512}},
                    Subject{"ScratchLarge", "file:@", {.block_bytes = 65536}}, Subject{"Kept", "file:@/blocks", kKept},
                    Subject{"KeptFolder", "file:@", kKept},
                    Subject{"KeptPlain", "file:@/blocks", {.lifetime = Lifetime::kKeep, .use_io_uring = false}},
                    Subject{"KeptSectors", "file:@/blocks", {.block_bytes = 512, .lifetime = Lifetime::kKeep}}),
    name_of);

INSTANTIATE_TEST_SUITE_P(Lmdb, StoreContract,
                         testing::Values(Subject{"Scratch", "lmdb:@", {}},
                                         Subject{"ScratchSectors", "lmdb:@", {.block_bytes = 512}},
                                         Subject{"ScratchLarge", "lmdb:@", {.block_bytes = 65536}},
                                         Subject{"Kept", "lmdb:@/blocks.mdb?sync=asked", kKept},
                                         Subject{"KeptFolder", "lmdb:@?sync=asked", kKept}),
                         name_of);

INSTANTIATE_TEST_SUITE_P(
    Decorated, StoreContract,
    testing::Values(
        Subject{"ChecksumMem", "checksum+mem:", {}}, Subject{"ChecksumFile", "checksum+file:@", {}},
        Subject{"ChecksumKept", "checksum+file:@/blocks", kKept},
        Subject{"ChecksumKeptLarge", "checksum+file:@/blocks", {.block_bytes = 65536, .lifetime = Lifetime::kKeep}},
        Subject{"ChecksumKeptLmdb", "checksum+lmdb:@/blocks?sync=asked", kKept},
        Subject{"CompressMem", "compress+mem:", {}}, Subject{"CompressFile", "compress+file:@", {}},
        Subject{"CompressLz4File", "compress+file:@?codec=lz4", {}},
        Subject{"CompressLmdb", "compress+lmdb:@?level=3", {}},
        Subject{"CompressLarge", "compress+file:@", {.block_bytes = 65536}},
        Subject{"ChecksumCompress", "checksum+compress+mem:", {}},
        Subject{"CompressChecksum", "compress+checksum+file:@", {}},
        Subject{"All", "checksum+compress+slow+faulty+mem:?delay_us=1&mb_s=10000&seed=3", {}},
        Subject{"Reversed", "faulty+slow+compress+checksum+file:@?delay_us=0", {}}),
    name_of);

INSTANTIATE_TEST_SUITE_P(
    Split, StoreContract,
    testing::Values(Subject{"Mem", "pages=mem:,sync=mem:", {}}, Subject{"FileAndMem", "pages=file:@,sync=mem:", {}},
                    Subject{"Sectors", "pages=mem:,sync=file:@", {.block_bytes = 512}},
                    Subject{"KeptFiles", "pages=file:@/pages,sync=file:@/sync", kKept},
                    Subject{"KeptFileAndLmdb", "pages=file:@/pages,sync=lmdb:@/sync?sync=asked", kKept},
                    Subject{"KeptLmdbAndFile", "pages=checksum+lmdb:@/pages,sync=file:@/sync", kKept}),
    name_of);

INSTANTIATE_TEST_SUITE_P(Encrypted, StoreContract,
                         testing::Values(Subject{"Mem", "encrypt+mem:", {}}, Subject{"File", "encrypt+file:@", {}},
                                         Subject{"FileSectors", "encrypt+file:@", {.block_bytes = 512}},
                                         Subject{"FileLarge", "encrypt+file:@", {.block_bytes = 65536}},
                                         Subject{"Lmdb", "encrypt+lmdb:@", {}},
                                         Subject{"Kept", "encrypt+file:@/blocks", with_key(kKept)},
                                         Subject{"KeptSectors", "encrypt+file:@/blocks",
                                                 with_key({.block_bytes = 512, .lifetime = Lifetime::kKeep})},
                                         Subject{"KeptLmdb", "encrypt+lmdb:@/blocks?sync=asked", with_key(kKept)},
                                         Subject{"Compressed", "compress+encrypt+file:@", {}},
                                         Subject{"Slow", "slow+encrypt+faulty+mem:", {}}),
                         name_of);

}  // namespace
}  // namespace farheap::test
