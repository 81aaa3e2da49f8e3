// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What page faults cost on this machine, and how many of them its kernel serves a second, without any of Farheap's
// pager. Prints lines NAME METRIC VALUE.
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "faults/bare_pager.hpp"
#include "faults/kernel.hpp"
#include "faults/price_list.hpp"
#include "faults/refill.hpp"

namespace {

using namespace farheap::bench::faults;

constexpr char kUsage[] =
    "faults pager [--threads N] [--handlers N] [--userfaultfds N] [--evictors N] [--ranges N] [--size 1G]\n"
    "             [--resident PERCENT] [--batch PAGES] [--events N] [--wait poll|epoll|spin] [--spin-us N]\n"
    "             [--evict drop|move] [--seconds N | --touches N] [--seed N]\n"
    "    threads touch pages at random, handlers fill the missing ones in, evictors drop the oldest\n"
    "faults refill [--mapping shared|private] [--threads N] [--size 1G] [--seconds N] [--seed N]\n"
    "    threads touch pages of a file in memory that one more takes out of the page tables\n"
    "faults prices [--beside N] [--size 256M] [--seed N]\n"
    "    single operations, in microseconds, with N threads beside that read\n";

using Words = std::map<std::string, std::string, std::less<>>;

[[noreturn]] void wrong_usage(const std::string& why) {
  std::fprintf(stderr, "faults: %s\n%s", why.c_str(), kUsage);
  std::exit(2);
}

// Takes a flag's value out of the words; those that are left at the end are unknown.
std::string take(Words& words, std::string_view flag, const char* otherwise) {
  const auto found = words.find(flag);
  if (found == words.end()) return otherwise;
  std::string value = found->second;
  words.erase(found);
  return value;
}

std::uint64_t take_number(Words& words, std::string_view flag, const char* otherwise, std::uint64_t least) {
  const std::string text = take(words, flag, otherwise);
  char* end = nullptr;
  std::uint64_t value = std::strtoull(text.c_str(), &end, 10);
  const std::string_view unit(end);
  if (unit == "M") value <<= 20;
  if (unit == "G") value <<= 30;
  if (text.empty() || text[0] == '-' || (!unit.empty() && unit != "M" && unit != "G") || value < least) {
    wrong_usage("--" + std::string(flag) + ": cannot use '" + text + "'");
  }
  return value;
}

unsigned take_count(Words& words, std::string_view flag, const char* otherwise, unsigned least = 1) {
  const std::uint64_t value = take_number(words, flag, otherwise, least);
  if (value > 1024) wrong_usage("--" + std::string(flag) + ": at most 1024");
  return static_cast<unsigned>(value);
}

double take_seconds(Words& words) {
  const double value = std::atof(take(words, "seconds", "2").c_str());
  if (value <= 0) wrong_usage("--seconds: more than 0");
  return value;
}

// One of two or three names; its number.
std::size_t take_choice(Words& words, std::string_view flag, std::initializer_list<std::string_view> names) {
  const std::string value = take(words, flag, std::string(*names.begin()).c_str());
  std::size_t number = 0;
  for (const std::string_view name : names) {
    if (value == name) return number;
    ++number;
  }
  wrong_usage("--" + std::string(flag) + ": cannot use '" + value + "'");
}

void refuse_rest(const Words& words) {
  if (!words.empty()) wrong_usage("no flag --" + words.begin()->first);
}

void pager(Words& words) {
  Shape shape;
  shape.threads = take_count(words, "threads", "1");
  shape.handlers = take_count(words, "handlers", "1");
  shape.userfaultfds = take_count(words, "userfaultfds", "1");
  shape.evictors = take_count(words, "evictors", "1");
  shape.ranges = take_count(words, "ranges", "0", 0);
  shape.bytes = take_number(words, "size", "1G", 1 << 20);
  shape.resident_percent = take_count(words, "resident", "75");
  shape.batch = take_count(words, "batch", "256");
  shape.events = take_count(words, "events", "1");
  shape.spin_us = static_cast<unsigned>(take_number(words, "spin-us", "0", 0));
  shape.wait = static_cast<Wait>(take_choice(words, "wait", {"poll", "epoll", "spin"}));
  shape.eviction = static_cast<Eviction>(take_choice(words, "evict", {"drop", "move"}));
  shape.seconds = take_seconds(words);
  shape.touches = take_number(words, "touches", "0", 0);
  shape.seed = take_number(words, "seed", "1", 0);
  refuse_rest(words);
  run_bare_pager(shape);
}

void refill(Words& words) {
  RefillShape shape;
  shape.threads = take_count(words, "threads", "1");
  shape.shared = take_choice(words, "mapping", {"shared", "private"}) == 0;
  shape.bytes = take_number(words, "size", "1G", kHuge);
  shape.seconds = take_seconds(words);
  shape.seed = take_number(words, "seed", "1", 0);
  refuse_rest(words);
  run_refill(shape);
}

void prices(Words& words) {
  const unsigned beside = take_count(words, "beside", "0", 0);
  const std::size_t bytes = take_number(words, "size", "256M", 2 * kHuge);
  const std::uint64_t seed = take_number(words, "seed", "1", 0);
  refuse_rest(words);
  const PriceList list(bytes, beside, seed);
  price_file(list, true);
  price_file(list, false);
  price_write_protection(list);
  price_copy_and_drop(list);
  price_move(list);
  price_handler(list);
}

}  // namespace

int main(int count, char** arguments) {
  const std::map<std::string_view, void (*)(Words&)> programs{{"pager", pager}, {"refill", refill}, {"prices", prices}};
  const auto chosen = programs.find(count > 1 ? arguments[1] : "");
  if (chosen == programs.end()) wrong_usage("which program?");
  Words words;
  for (int i = 2; i < count; i += 2) {
    const std::string_view word = arguments[i];
    if (!word.starts_with("--") || i + 1 >= count) wrong_usage("cannot use '" + std::string(word) + "'");
    words[std::string(word.substr(2))] = arguments[i + 1];
  }
  chosen->second(words);
}
