// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "common/program.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string_view>

#include "common/lock_memory.hpp"

namespace farheap::bench {
namespace {

constexpr std::uint64_t kMostMlockMib = std::uint64_t{1} << 30;

std::optional<std::uint64_t> parse_number(std::string_view text) {
  char* end = nullptr;
  const std::string copy(text);
  const unsigned long long value = std::strtoull(copy.c_str(), &end, 10);
  if (end == copy.c_str() || copy.front() == '-') return std::nullopt;
  const std::string_view unit(end);
  if (unit.empty()) return value;
  if (unit == "K") return value << 10;
  if (unit == "M") return value << 20;
  if (unit == "G") return value << 30;
  return std::nullopt;
}

std::optional<double> parse_fraction(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (end == text.c_str() || *end != '\0') return std::nullopt;
  return value;
}

bool set_flag(Flags& flags, const std::string& name, const std::string& text) {
  if (const auto extra = flags.extra.find(name); extra != flags.extra.end()) {
    const auto fraction = parse_fraction(text);
    if (fraction) extra->second = *fraction;
    return fraction.has_value();
  }
  const auto number = parse_number(text);
  if (!number) return false;
  if (name == "size") {
    flags.size = *number;
  } else if (name == "steps") {
    flags.steps = *number;
  } else if (name == "threads" && *number >= 1 && *number <= 1024) {
    flags.threads = static_cast<unsigned>(*number);
  } else if (name == "seed") {
    flags.seed = *number;
  } else if (name == "mlock" && *number <= kMostMlockMib) {
    flags.mlock_bytes = *number << 20;
  } else {
    return false;
  }
  return true;
}

void print_usage(const Program& program) {
  fmt::print(stderr, "{}: {}\n  {} [--size 246M] [--steps N] [--threads N] [--seed N] [--mlock MIB] [--verify]",
             program.name, program.summary, program.name);
  for (const auto& [name, value] : program.defaults.extra) fmt::print(stderr, " [--{} {}]", name, value);
  fmt::print(stderr, "\n  defaults: --size {} --steps {} --threads {} --seed {}\n", program.defaults.size,
             program.defaults.steps, program.defaults.threads, program.defaults.seed);
}

std::string json_list(const std::vector<std::string>& words) {
  std::string text = "[";
  for (const std::string& word : words) text += fmt::format("{}\"{}\"", text.size() > 1 ? "," : "", word);
  return text + "]";
}

const char* name_of(Kind kind) {
  switch (kind) {
    case Kind::kSweeping: return "sweeping";
    case Kind::kRandom: return "random";
    case Kind::kOther: return "other";
  }
  return "";
}

void describe(const Program& program) {
  fmt::print(
      "{{\"format\":1,\"program\":\"{}\",\"summary\":\"{}\",\"class\":\"{}\",\"random_trace\":{},"
      "\"defaults\":{{\"size\":{},\"steps\":{},\"seed\":{}}},\"cases\":[",
      program.name, program.summary, name_of(program.kind), program.random_trace, program.defaults.size,
      program.defaults.steps, program.defaults.seed);
  const char* separator = "";
  for (const Case& one : program.cases) {
    fmt::print("{}{{\"name\":\"{}\",\"arguments\":{},\"quick_arguments\":{}}}", separator, one.name,
               json_list(one.arguments), json_list(one.quick_arguments));
    separator = ",";
  }
  fmt::print("]}}\n");
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

int run_phases(const Program& program, const Flags& flags) {
  const auto start = std::chrono::steady_clock::now();
  const std::unique_ptr<Workload> work(program.prepare(flags));
  const double prepare_seconds = seconds_since(start);
  // Of a run that does not come to its end, the driver knows by this how long the timed phase took at the least.
  fmt::print(stderr, "{}: prepared after {:.6f} s\n", program.name, prepare_seconds);
  std::uint64_t locked = 0;
  if (flags.mlock_bytes > 0) {
    const auto done = lock_memory(work->hottest(), flags.mlock_bytes);
    if (!done) return fmt::print(stderr, "{}: {}\n", program.name, done.error()), 1;
    locked = *done;
  }
  const auto kernel_start = std::chrono::steady_clock::now();
  work->run_kernel();
  const double kernel_seconds = seconds_since(kernel_start);
  const std::uint64_t digest = work->digest();
  const std::string wrong = flags.verify ? work->verify() : std::string();
  fmt::print(
      "{{\"format\":1,\"program\":\"{}\",\"seconds\":{:.6f},\"prepare_seconds\":{:.6f},\"total_seconds\":{:.6f},"
      "\"checksum\":\"{:016x}\",\"bytes\":{},\"steps\":{},\"threads\":{},\"mlocked_bytes\":{},\"verified\":{}}}\n",
      program.name, kernel_seconds, prepare_seconds, seconds_since(start), digest, work->bytes(), work->steps(),
      flags.threads, locked,
      !flags.verify   ? "null"
      : wrong.empty() ? "true"
                      : "false");
  if (wrong.empty()) return 0;
  fmt::print(stderr, "{}: wrong result: {}\n", program.name, wrong);
  return 1;
}

}  // namespace

std::uint64_t Workload::digest() {
  std::uint64_t digest = 0;
  for (const ByteRange range : result()) digest = digest_bytes(range.data(), range.size(), digest);
  return digest;
}

int benchmark_main(int count, char** arguments, const Program& program) {
  Flags flags = program.defaults;
  for (int i = 1; i < count; ++i) {
    const std::string word = arguments[i];
    if (word == "--help") return print_usage(program), 0;
    if (word == "--describe") return describe(program), 0;
    if (word == "--verify") {
      flags.verify = true;
      continue;
    }
    if (word.rfind("--", 0) != 0 || i + 1 >= count || !set_flag(flags, word.substr(2), arguments[i + 1])) {
      fmt::print(stderr, "{}: cannot use '{}{}{}'\n", program.name, word, i + 1 < count ? " " : "",
                 i + 1 < count ? arguments[i + 1] : "");
      print_usage(program);
      return 2;
    }
    ++i;
  }
  return run_phases(program, flags);
}

std::uint64_t digest_bytes(const void* data, std::size_t bytes, std::uint64_t seed) {
  return XXH3_64bits_withSeed(data, bytes, seed);
}

}  // namespace farheap::bench
