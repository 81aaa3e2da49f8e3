// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// encrypt+: nothing is readable below it, changed and moved blocks are found, and only the right key opens a store.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sodium.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <set>

#include "store/encrypt_store.hpp"
#include "tests/store/store_fixture.hpp"

namespace farheap::test {
namespace {

StoreOptions kept_with(const std::string& key_file) {
  return {.lifetime = Lifetime::kKeep, .encrypt_key_file = key_file};
}

bool file_holds(const std::string& path, const Bytes& bytes) {
  std::string text(std::filesystem::file_size(path), '\0');
  EXPECT_TRUE(std::ifstream(path, std::ios::binary).read(text.data(), static_cast<std::streamsize>(text.size())));
  return text.find(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size())) != std::string::npos;
}

class Encrypt : public testing::Test {
 protected:
  TemporaryFolder folder_;
  std::string path_ = folder_.path() + "/blocks";
  std::string key_ = key_file_in(folder_.path());

  // Fills a new store with blocks 0 to 99, and closes it.
  void fill(const std::string& path, const std::string& decorators = "encrypt+") {
    auto store = open_or_fail(decorators + "file:" + path, kept_with(key_));
    (void)put_blocks(*store, 0, make_blocks(0, 100, 4096));
    ASSERT_TRUE(store->sync());
  }
  std::unique_ptr<Store> reopen() { return open_or_fail("encrypt+file:" + path_, kept_with(key_)); }
  Outcome outcome_of(Store& store, std::uint64_t block) {
    Bytes into(4096);
    Get entry{.block = block, .into = into};
    (void)store.get({&entry, 1}).has_value();
    EXPECT_TRUE(entry.outcome != Outcome::kOk || into == make_blocks(block, 1, 4096)) << block;
    return entry.outcome;
  }
};

TEST_F(Encrypt, NothingIsReadableBelow) {
  fill(path_);
  const auto bytes = make_blocks(7, 1, 4096);
  const Bytes piece(bytes.begin(), bytes.begin() + 32);
  EXPECT_FALSE(file_holds(path_, piece));
  fill(folder_.path() + "/plain", "");
  EXPECT_TRUE(file_holds(folder_.path() + "/plain", piece)) << "what this test looks for would never be found";
}

TEST_F(Encrypt, AKeyFileOfAnotherUserIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a file to another user";
  fill(path_);
  ASSERT_EQ(chown(key_.c_str(), 65534, 65534), 0);
  const auto opened = open_store("encrypt+file:" + path_, kept_with(key_));
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::kPermission);
  EXPECT_THAT(opened.error().message(), testing::HasSubstr("user 65534"));
  ASSERT_EQ(chown(key_.c_str(), 0, 0), 0);
  EXPECT_TRUE(open_store("encrypt+file:" + path_, kept_with(key_)));
}

TEST_F(Encrypt, AKeptStoreIsReadAgain) {
  fill(path_);
  auto store = reopen();
  EXPECT_EQ(expect_blocks(*store, 0, 100), Outcome::kOk);
  (void)put_blocks(*store, 50, make_blocks(50, 10, 4096, 1));
  store.reset();
  store = reopen();
  EXPECT_EQ(expect_blocks(*store, 50, 10, 1), Outcome::kOk);
  EXPECT_EQ(expect_blocks(*store, 60, 40), Outcome::kOk);
}

TEST_F(Encrypt, AnotherKeyIsRefusedInWords) {
  fill(path_);
  auto opened = open_store("encrypt+file:" + path_, kept_with(key_file_in(folder_.path(), 'b', "other")));
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::kPermission);
  EXPECT_THAT(opened.error().message(), testing::HasSubstr("another key"));
}

TEST_F(Encrypt, AStoreWithPlainBlocksIsRefused) {
  fill(path_, "");
  auto opened = open_store("encrypt+file:" + path_, kept_with(key_));
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().message(), testing::HasSubstr("not encrypted"));
}

TEST_F(Encrypt, AKeptStoreWithoutKeyIsRefusedAndNotMade) {
  auto opened = open_store("encrypt+file:" + path_, kept_with(""));
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().message(), testing::HasSubstr("FARHEAP_ENCRYPT_KEY"));
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(Encrypt, TheVariableIsAKeyToo) {
  setenv("FARHEAP_ENCRYPT_KEY", std::string(64, 'a').c_str(), 1);
  auto opened = open_store("encrypt+file:" + path_, kept_with(""));
  unsetenv("FARHEAP_ENCRYPT_KEY");
  ASSERT_TRUE(opened) << opened.error().message();
  (void)put_blocks(**opened, 0, make_blocks(0, 100, 4096));
  opened->reset();
  EXPECT_EQ(expect_blocks(*reopen(), 0, 100), Outcome::kOk);  // the file holds the same key
}

TEST_F(Encrypt, AKeyFileForOthersIsRefused) {
  for (const mode_t mode : {0640, 0604, 0660}) {
    ASSERT_EQ(chmod(key_.c_str(), mode), 0);
    auto opened = open_store("encrypt+mem:", {.encrypt_key_file = key_});
    ASSERT_FALSE(opened) << mode;
    EXPECT_EQ(opened.error().code, ErrorCode::kPermission);
    EXPECT_THAT(opened.error().message(), testing::HasSubstr("chmod 600"));
  }
}

TEST_F(Encrypt, WhatIsNoKeyIsRefused) {
  for (const std::string text : {"", "secret", "0123456789abcdef"}) {
    EXPECT_FALSE(store::EncryptKey::parse(text, "test")) << text;
  }
  EXPECT_FALSE(store::EncryptKey::parse(std::string(63, 'a'), "test"));
  EXPECT_FALSE(store::EncryptKey::parse(std::string(65, 'a'), "test"));
  EXPECT_FALSE(store::EncryptKey::parse(std::string(63, 'a') + "g", "test"));
  EXPECT_TRUE(store::EncryptKey::parse(std::string(64, 'a') + "\r\n", "test"));
  EXPECT_TRUE(store::EncryptKey::parse(std::string(32, '\xff'), "test"));
}

TEST_F(Encrypt, AChangedByteIsFoundAndNamed) {
  fill(path_);
  const int file = open(path_.c_str(), O_RDWR);
  constexpr off_t kAt = 57 * 4096 + 77;  // 51 blocks a group: block 55, behind two side blocks
  char byte = 0;
  ASSERT_EQ(pread(file, &byte, 1, kAt), 1);
  byte ^= 1;  // not a letter: one time in 256 it was there already
  ASSERT_EQ(pwrite(file, &byte, 1, kAt), 1);
  close(file);
  auto store = reopen();
  for (std::uint64_t block = 0; block < 100; ++block) {
    EXPECT_EQ(outcome_of(*store, block), block == 55 ? Outcome::kCorrupt : Outcome::kOk) << block;
  }
  Bytes into(100 * 4096);
  Get all{.block = 0, .into = into};
  auto status = store->get({&all, 1});
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message(), testing::HasSubstr("block 55"));
}

TEST_F(Encrypt, BlocksThatChangedPlacesAreFound) {
  fill(path_);
  // Blocks 3 and 4 with all that belongs to them: bytes and records.
  const int file = open(path_.c_str(), O_RDWR);
  auto swap = [&](off_t one, off_t other, std::size_t bytes) {
    std::string first(bytes, 0), second(bytes, 0);
    ASSERT_EQ(pread(file, first.data(), bytes, one), static_cast<ssize_t>(bytes));
    ASSERT_EQ(pread(file, second.data(), bytes, other), static_cast<ssize_t>(bytes));
    ASSERT_EQ(pwrite(file, second.data(), bytes, one), static_cast<ssize_t>(bytes));
    ASSERT_EQ(pwrite(file, first.data(), bytes, other), static_cast<ssize_t>(bytes));
  };
  swap(4 * 4096, 5 * 4096, 4096);
  swap(3 * 80, 4 * 80, 80);
  close(file);
  auto store = reopen();
  EXPECT_EQ(outcome_of(*store, 2), Outcome::kOk);
  EXPECT_EQ(outcome_of(*store, 3), Outcome::kCorrupt);
  EXPECT_EQ(outcome_of(*store, 4), Outcome::kCorrupt);
}

TEST_F(Encrypt, BlocksOfAnotherStoreOfTheSameKeyAreFound) {
  const std::string other = folder_.path() + "/other";
  fill(path_);
  fill(other);
  std::filesystem::copy_file(other, path_, std::filesystem::copy_options::overwrite_existing);
  auto store = reopen();
  EXPECT_EQ(outcome_of(*store, 0), Outcome::kCorrupt);
}

// What docs/stores.md says is not found; when it is, the page must change.
TEST_F(Encrypt, AWholeOlderStoreIsNotFound) {
  fill(path_);
  std::filesystem::copy_file(path_, path_ + ".old");
  auto store = reopen();
  (void)put_blocks(*store, 0, make_blocks(0, 100, 4096, 1));
  ASSERT_TRUE(store->sync());
  store.reset();
  std::filesystem::copy_file(path_ + ".old", path_, std::filesystem::copy_options::overwrite_existing);
  EXPECT_EQ(expect_blocks(*reopen(), 0, 100, 0), Outcome::kOk);
}

TEST_F(Encrypt, NoNonceIsUsedTwice) {
  const store::Encrypter encrypter(*store::EncryptKey::random());
  std::set<std::array<unsigned char, 24>> nonces;
  Bytes from(512), into(512);
  for (int call = 0; call < 100; ++call) {
    auto session = encrypter.start();
    for (int i = 0; i < 100; ++i) {
      auto seal = session.seal(1, from, into);
      EXPECT_TRUE(nonces.insert(seal.nonce).second);
      EXPECT_TRUE(encrypter.fits(1, into, seal));
      EXPECT_FALSE(encrypter.fits(2, into, seal));
    }
  }
}

// What a machine draws that is resumed a second time from the same snapshot.
TEST_F(Encrypt, TheSameRandomBitsForOtherBytesAreAnotherNonce) {
  auto key = store::EncryptKey::random();
  ASSERT_TRUE(key);
  const store::Encrypter encrypter(std::move(*key));
  static randombytes_implementation always_the_same{};
  always_the_same.implementation_name = [] { return "the same"; };
  always_the_same.random = [] { return std::uint32_t{7}; };
  always_the_same.buf = [](void* const into, const size_t bytes) { std::memset(into, 7, bytes); };
  ASSERT_EQ(randombytes_set_implementation(&always_the_same), 0);
  std::set<std::array<unsigned char, 24>> nonces;
  Bytes into(4096);
  for (std::uint64_t tint = 0; tint < 50; ++tint) {
    auto session = encrypter.start();
    const auto bytes = make_blocks(1, 1, 4096, tint);
    const auto seal = session.seal(1, bytes, into);
    EXPECT_TRUE(nonces.insert(seal.nonce).second) << tint;
    EXPECT_TRUE(encrypter.open(1, into, seal) && into == bytes);
  }
  ASSERT_EQ(randombytes_set_implementation(&randombytes_sysrandom_implementation), 0);
}

TEST_F(Encrypt, AForkedChildSharesTheKeyAndNoNonces) {
  auto store = open_or_fail("encrypt+file:" + folder_.path());
  ASSERT_TRUE(has(store->capabilities(), Capability::kForks));
  (void)put_blocks(*store, 0, make_blocks(0, 64, 4096));
  const pid_t child = fork();
  if (child == 0) {
    const bool before = expect_blocks(*store, 0, 64) == Outcome::kOk;
    (void)put_blocks(*store, 1000, make_blocks(1000, 64, 4096));
    const bool own = expect_blocks(*store, 1000, 64) == Outcome::kOk;
    _exit(before && own && !testing::Test::HasFailure() ? 0 : 1);
  }
  (void)put_blocks(*store, 2000, make_blocks(2000, 64, 4096));
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(expect_blocks(*store, 0, 64), Outcome::kOk);
  EXPECT_EQ(expect_blocks(*store, 2000, 64), Outcome::kOk);
}

TEST_F(Encrypt, WhatDoesNotGoTogetherIsRefusedWithTheRightForm) {
  for (const auto& [uri, remedy] :
       std::vector<std::pair<std::string, std::string>>{{"encrypt+compress+mem:", "write compress+ before encrypt+"},
                                                        {"checksum+encrypt+mem:", "leave checksum+ out"},
                                                        {"encrypt+slow+checksum+mem:", "leave checksum+ out"}}) {
    auto opened = open_store(uri);
    ASSERT_FALSE(opened) << uri;
    EXPECT_EQ(opened.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(opened.error().message(), testing::HasSubstr(remedy));
  }
  EXPECT_TRUE(open_store("compress+encrypt+mem:"));
}

TEST_F(Encrypt, OldOrNewAfterAnUnknownWriteAreBothRight) {
  auto store = open_or_fail("encrypt+faulty+mem:?seed=9&unknown=0.5");
  int unknown = 0;
  for (std::uint64_t tint = 0; tint < 60; ++tint) {
    const auto bytes = make_blocks(1, 1, 4096, tint);
    Put entry{.block = 1, .from = bytes};
    (void)store->put({&entry, 1}).has_value();
    unknown += entry.outcome == Outcome::kUnknown ? 1 : 0;
    Bytes into(4096);
    EXPECT_NE(get_blocks(*store, 1, into).outcome, Outcome::kCorrupt);
    if (entry.outcome == Outcome::kOk) {
      EXPECT_TRUE(into == bytes);
    }
  }
  EXPECT_GT(unknown, 10);
}

}  // namespace
}  // namespace farheap::test
