// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the store tests share: a folder that goes away, blocks with recognisable contents, and short forms of the
// calls.
//
// Thread-safety: plain values.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <farheap/store.hpp>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "tests/words.hpp"

namespace farheap::test {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    // Beside the build and not in /tmp, which may be memory: these tests want a real file system.
    std::string name = (std::filesystem::current_path() / "farheap-test-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make a temporary folder here");
    path_ = name;
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// The path of a file with a key for encrypt+; its owner's alone.
inline std::string key_file_in(const std::string& folder, char digit = 'a', const std::string& name = "key") {
  const std::string path = folder + "/" + name;
  std::ofstream(path) << std::string(64, digit) << "\n";
  std::filesystem::permissions(path, std::filesystem::perms(0600));
  return path;
}

using Bytes = std::vector<std::byte>;

// `count` blocks that start at `block`; every block is told from every other, and from those of another `tint`.
// Half of each block repeats, so that it can be compressed.
inline Bytes make_blocks(std::uint64_t block, std::size_t count, std::size_t block_bytes, std::uint64_t tint = 0) {
  Bytes bytes(count * block_bytes);
  for (std::size_t i = 0; i < count; ++i) {
    std::byte* const here = bytes.data() + i * block_bytes;
    const std::uint64_t of_block = (block + i + 1) * 0x9E3779B97F4A7C15u ^ tint * 0xC2B2AE3D27D4EB4Fu;
    for (std::size_t at = 0; at < block_bytes / 2; at += 8) {
      std::uint64_t word = of_block + at;
      word ^= word >> 29, word *= 0xBF58476D1CE4E5B9u, word ^= word >> 32;
      std::memcpy(here + at, &word, 8);
    }
    repeat_word(here + block_bytes / 2, block_bytes - block_bytes / 2, of_block);
  }
  return bytes;
}

inline std::unique_ptr<Store> open_or_fail(const std::string& uri, const StoreOptions& options = {}) {
  auto opened = open_store(uri, options);
  if (!opened) {
    ADD_FAILURE() << opened.error().message();
    throw std::runtime_error("no store");
  }
  return std::move(*opened);
}

// False if the URI names an engine or decorator that this build lacks.
inline bool is_in_build(const std::string& uri) {
  const auto has_kind = [](std::string_view scheme) {
    for (const auto& kind : store_kinds()) {
      if (kind.scheme == scheme) return true;
    }
    return false;
  };
  for (const std::string scheme : {"lmdb", "compress", "encrypt"}) {
    const bool named = uri.starts_with(scheme) || uri.find("+" + scheme) != std::string::npos ||
                       uri.find("=" + scheme) != std::string::npos;
    if (named && !has_kind(scheme)) return false;
  }
  return true;
}

inline Put put_blocks(Store& store, std::uint64_t block, const Bytes& bytes,
                      std::optional<Version> expected = std::nullopt) {
  Put entry{.block = block, .from = bytes, .expected = expected};
  auto status = store.put({&entry, 1});
  const bool is_answer = entry.outcome == Outcome::kOk || entry.outcome == Outcome::kConflict;
  EXPECT_EQ(status.has_value(), is_answer) << (status ? "" : status.error().message());
  return entry;
}

inline Get get_blocks(Store& store, std::uint64_t block, Bytes& into, Version known = 0) {
  Get entry{.block = block, .into = into, .known = known};
  auto status = store.get({&entry, 1});
  const bool is_answer = entry.outcome <= Outcome::kAbsent && entry.outcome != Outcome::kPending;
  EXPECT_EQ(status.has_value(), is_answer) << (status ? "" : status.error().message());
  return entry;
}

// The outcome of reading `count` blocks; if they are there, they must be what make_blocks() makes.
inline Outcome expect_blocks(Store& store, std::uint64_t block, std::size_t count, std::uint64_t tint = 0) {
  const auto block_bytes = store.limits().block_bytes;
  Bytes into(count * block_bytes, std::byte{0xEE});
  const auto entry = get_blocks(store, block, into);
  if (entry.outcome == Outcome::kOk) {
    EXPECT_TRUE(same_bytes(into, make_blocks(block, count, block_bytes, tint))) << "block " << block << " + " << count;
  }
  return entry.outcome;
}

}  // namespace farheap::test
