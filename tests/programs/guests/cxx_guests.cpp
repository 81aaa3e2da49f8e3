// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Exceptions through frames whose data left, and libraries that are opened and closed again.
#include <dlfcn.h>

#include <exception>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

#include "guests.hpp"

using namespace guests;

namespace {

constexpr std::size_t kThreads = 4, kDepth = 16;

// An exception that carries much.
struct Refusal : std::runtime_error {
  std::uint64_t seed;
  std::shared_ptr<std::vector<std::uint64_t>> proof;
  explicit Refusal(std::uint64_t given)
      : std::runtime_error("refused " + std::to_string(given)),
        seed(given),
        proof(std::make_shared<std::vector<std::uint64_t>>(4000)) {
    fill(proof->data(), 32'000, seed);
  }
  void check() const {
    CHECK(what() == "refused " + std::to_string(seed));
    CHECK_FILLED(proof->data(), 32'000, seed);
  }
};

// A local object whose destructor finds its data as it was, also when an exception passes.
struct Frame {
  std::unique_ptr<std::uint64_t[]> words = std::make_unique<std::uint64_t[]>(kWords);
  std::uint64_t seed;
  static constexpr std::size_t kWords = 16'000;
  explicit Frame(std::uint64_t given) : seed(given) { fill(words.get(), kWords * 8, seed); }
  ~Frame() { CHECK_FILLED(words.get(), kWords * 8, seed); }
};

[[gnu::noinline]] void descend(std::size_t left, std::uint64_t seed, const Pieces& data, Random& random) {
  const Frame frame(seed + left);
  for (int k = 0; k < 4; ++k) data.check_a_word(random);
  if (left == 0) throw Refusal(seed);
  try {
    descend(left - 1, seed, data, random);
  } catch (const Refusal& refusal) {
    if (left % 4 != 0) throw;
    refusal.check();
    data.check_a_word(random);
    std::throw_with_nested(Refusal(seed + left));
  }
}

// The exceptions inside each other, from the outermost in.
std::uint64_t unfold(const std::exception_ptr& kept) {
  try {
    std::rethrow_exception(kept);
  } catch (const Refusal& refusal) {
    refusal.check();
    std::uint64_t inner = 0;
    const auto* nested = dynamic_cast<const std::nested_exception*>(&refusal);
    if (nested != nullptr && nested->nested_ptr() != nullptr) inner = unfold(nested->nested_ptr());
    return digest(refusal.proof->data(), 32'000, inner);
  }
}

}  // namespace

CASE(exceptions_through_far_frames) {
  const Pieces data(data_bytes() * 3 / 4, 23);
  std::vector<std::exception_ptr> kept[kThreads];
  const std::size_t rounds = data_bytes() / 4 / kThreads / (kDepth / 4 * 32'000);
  std::thread threads[kThreads];
  for (std::size_t number = 0; number < kThreads; ++number) {
    threads[number] = std::thread([&, number] {
      Random random(number);
      for (std::size_t round = 0; round < rounds; ++round) {
        try {
          descend(kDepth, 100'000 * number + 100 * round, data, random);
          CHECK(!"reached");
        } catch (...) {
          kept[number].push_back(std::current_exception());
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
  data.check_all();
  std::uint64_t sum = 0;
  for (const auto& list : kept) {
    for (const auto& one : list) sum += unfold(one);
  }
  print_digest("exceptions", sum);
}

namespace {

using PluginCall = std::uint64_t (*)(std::size_t);

// Copies of one file are different libraries, with data of their own.
struct Plugin {
  void* library;
  PluginCall call;
  explicit Plugin(const std::string& path) : library(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    CHECK(library != nullptr);
    call = reinterpret_cast<PluginCall>(dlsym(library, "plugin_word"));
    CHECK(call != nullptr);
  }
  void close() const { CHECK(dlclose(library) == 0); }
};

}  // namespace

// Arguments: MEBIBYTES, the plugin. Each copy holds 4 MiB while it is open; a few at a time are closed and opened anew.
CASE(opens_and_closes_plugins) {
  CHECK(g_count >= 2 && setenv("PLUGIN_MEBIBYTES", "4", 1) == 0);
  char folder[] = "plugins-XXXXXX";
  CHECK(mkdtemp(folder) != nullptr);
  std::vector<std::string> paths;
  std::vector<Plugin> open;
  for (std::size_t i = 0; i < data_bytes() / kMebibyte / 4; ++i) {
    paths.push_back(std::string("./") + folder + "/" + std::to_string(i) + ".so");
    std::filesystem::copy_file(g_arguments[1], paths.back());
    open.emplace_back(paths.back());
  }
  Random random(24);
  std::uint64_t sum = 0;
  for (int round = 0; round < 200; ++round) {
    const std::size_t number = random.below(open.size());
    for (int k = 0; k < 20; ++k) {
      const std::size_t place = random.below(1 << 19);
      const std::uint64_t found = open[random.below(open.size())].call(place);
      CHECK(found == word(12, place));
      sum = digest(&found, sizeof found, sum);
    }
    std::thread([&] { CHECK(open[number].call(7) == word(12, 7)); }).join();
    open[number].close();
    open[number] = Plugin(paths[number]);
  }
  for (const Plugin& one : open) one.close();
  std::filesystem::remove_all(folder);
  print_digest("words", sum);
}
