// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs one fuzzer's function over its corpus, and over every shortening and many changes of each file, without
// libFuzzer. Whose corpus says the program's name: NAME_corpus_test takes the folder NAME of FARHEAP_CORPORA.
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/steps.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes);
// How many changes of each file are tried: a slow fuzzer defines it, and is spared the shortenings between them, too.
extern "C" __attribute__((weak)) int farheap_corpus_changes();

namespace {

std::filesystem::path corpus() {
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").filename();
  return std::filesystem::path(FARHEAP_CORPORA) / program.substr(0, program.rfind("_corpus_test"));
}

}  // namespace

TEST(Corpus, IsSurvived) {
  const int usual = farheap::test::steps(300, 3);
  const bool is_slow = farheap_corpus_changes != nullptr;
  const int changes = is_slow ? std::min(farheap_corpus_changes(), usual) : usual;
  int files = 0;
  for (const auto& file : std::filesystem::directory_iterator(corpus())) {
    std::ifstream in(file.path(), std::ios::binary);
    std::vector<char> text{std::istreambuf_iterator<char>(in), {}};
    std::vector<std::uint8_t> bytes(text.begin(), text.end());
    ++files;
    const std::size_t step = is_slow ? 1 + bytes.size() / 4 : static_cast<std::size_t>(300 / usual);
    EXPECT_EQ(LLVMFuzzerTestOneInput(bytes.data(), bytes.size()), 0) << file.path();
    for (std::size_t length = 0; length < bytes.size(); length += step) {
      EXPECT_EQ(LLVMFuzzerTestOneInput(bytes.data(), length), 0) << file.path();
    }
    std::uint64_t state = bytes.size();
    for (int i = 0; i < changes && !bytes.empty(); ++i) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      auto changed = bytes;
      changed[(state >> 33) % changed.size()] = static_cast<std::uint8_t>(state >> 56);
      EXPECT_EQ(LLVMFuzzerTestOneInput(changed.data(), changed.size()), 0) << file.path();
    }
  }
  EXPECT_GT(files, 2) << "no corpus in " << corpus();
}
