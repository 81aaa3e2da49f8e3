// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// libstdc++'s containers, strings, streams, smart pointers, threads and exceptions, all of them alive at once and
// looked at again when the last has been filled. Its argument: how many thousand entries each has; 120 are about 160
// MiB.
#include <algorithm>
#include <any>
#include <array>
#include <atomic>
#include <bitset>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <exception>
#include <forward_list>
#include <functional>
#include <future>
#include <iomanip>
#include <iostream>
#include <list>
#include <map>
#include <memory>
#include <memory_resource>
#include <mutex>
#include <numeric>
#include <optional>
#include <queue>
#include <regex>
#include <set>
#include <shared_mutex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <valarray>
#include <variant>
#include <vector>

namespace {

std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

std::string text_of(std::uint64_t number) {
  return std::to_string(mixed(number)) + std::string(mixed(number) % 90, static_cast<char>('a' + number % 26));
}

std::uint64_t sum_of(std::string_view text) {
  std::uint64_t sum = 0;
  for (const char c : text) sum = sum * 131 + static_cast<unsigned char>(c);
  return sum;
}

// ---- what is filled first and looked at last

// A tree whose nodes know their parents, too.
struct Node {
  std::uint64_t key = 0;
  std::shared_ptr<Node> left, right;
  std::weak_ptr<Node> parent;
  std::variant<std::monostate, std::uint64_t, std::string, std::vector<std::uint16_t>> value;
};

struct Everything {
  std::vector<std::string> texts;
  std::vector<std::array<double, 16>> rows;
  std::map<std::string, std::uint32_t> ordered;
  std::multimap<std::uint32_t, std::string> grouped;
  std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> hashed;
  std::unordered_set<std::string> known;
  std::set<std::pair<std::uint32_t, std::string>> pairs;
  std::list<std::pair<std::uint64_t, std::string>> listed;
  std::forward_list<std::uint64_t> single;
  std::deque<std::string> queued;
  std::priority_queue<std::pair<std::uint64_t, std::string>> first;
  std::vector<bool> bits;
  std::shared_ptr<Node> root;
  std::vector<std::unique_ptr<std::bitset<512>>> sets;
  std::vector<std::any> anything;
  std::vector<std::function<std::uint64_t(std::uint64_t)>> functions;
};

std::shared_ptr<Node> tree_of(std::uint64_t from, std::uint64_t to, const std::shared_ptr<Node>& parent) {
  if (from == to) return nullptr;
  const std::uint64_t middle = from + (to - from) / 2;
  auto node = std::make_shared<Node>();
  node->key = mixed(middle);
  node->parent = parent;
  switch (middle % 3) {
    case 0: node->value = node->key; break;
    case 1: node->value = text_of(middle); break;
    default: node->value = std::vector<std::uint16_t>(middle % 40, static_cast<std::uint16_t>(middle)); break;
  }
  node->left = tree_of(from, middle, node);
  node->right = tree_of(middle + 1, to, node);
  return node;
}

std::uint64_t sum_of(const std::shared_ptr<Node>& node) {
  if (node == nullptr) return 1;
  std::uint64_t sum = node->key;
  if (const auto* number = std::get_if<std::uint64_t>(&node->value)) sum += *number;
  if (const auto* text = std::get_if<std::string>(&node->value)) sum += sum_of(*text);
  if (const auto* all = std::get_if<std::vector<std::uint16_t>>(&node->value)) {
    sum = std::accumulate(all->begin(), all->end(), sum);
  }
  if (const auto parent = node->parent.lock()) sum ^= parent->key;
  return sum + 3 * sum_of(node->left) + 5 * sum_of(node->right);
}

// One after the other, so that each lies together: otherwise a walk of one would go through the memory of all.
void fill(Everything& all, std::uint32_t entries) {
  const auto each = [entries](std::uint32_t step, const auto& add) {
    for (std::uint32_t i = 0; i < entries; i += step) add(i);
  };
  each(1, [&](std::uint32_t i) { all.texts.push_back(text_of(i)); });
  each(1, [&](std::uint32_t i) { all.rows.emplace_back().fill(static_cast<double>(i % 997) / 3); });
  each(1, [&](std::uint32_t i) {
    all.ordered.emplace_hint(all.ordered.end(), std::to_string(1000000 + i) + text_of(i), i);
  });
  each(1, [&](std::uint32_t i) { all.grouped.emplace(i / 64, text_of(i)); });
  each(1, [&](std::uint32_t i) { all.hashed[i / 4].push_back(i); });
  each(4, [&](std::uint32_t i) { all.known.insert(text_of(i)); });
  each(1, [&](std::uint32_t i) { all.pairs.emplace(i / 3, text_of(i)); });
  each(1, [&](std::uint32_t i) { all.listed.emplace_back(mixed(i), text_of(i)); });
  each(1, [&](std::uint32_t i) { all.single.push_front(mixed(i)); });
  each(1, [&](std::uint32_t i) {
    all.queued.push_back(text_of(i));
    if (i % 5 == 0) all.queued.pop_front();
  });
  each(16, [&](std::uint32_t i) { all.first.emplace(mixed(i), text_of(i)); });
  each(1, [&](std::uint32_t i) { all.bits.push_back(mixed(i) % 2 != 0); });
  each(8, [&](std::uint32_t i) { all.sets.push_back(std::make_unique<std::bitset<512>>(mixed(i))); });
  each(8, [&](std::uint32_t i) {
    all.anything.emplace_back(std::make_tuple(i, text_of(i), 1.5F));
    all.anything.emplace_back(mixed(i));
  });
  each(32, [&](std::uint32_t i) {
    all.functions.emplace_back([text = text_of(i), i](std::uint64_t x) { return x * sum_of(text) + i; });
  });
  all.root = tree_of(0, entries, nullptr);
}

void change(Everything& all) {
  all.listed.remove_if([](const auto& entry) { return entry.first % 3 == 0; });
  for (auto at = all.ordered.begin(); at != all.ordered.end();) at = at->second % 5 == 0 ? all.ordered.erase(at) : ++at;
  for (auto at = all.pairs.begin(); at != all.pairs.end() && all.pairs.size() > 100;) at = all.pairs.erase(at), ++at;
  for (auto& row : all.rows) row[3] += row[2];
  all.single.reverse();
  std::sort(all.texts.begin(), all.texts.end());
  all.texts.erase(std::unique(all.texts.begin(), all.texts.end()), all.texts.end());
  auto node = all.ordered.extract(all.ordered.begin());
  node.key() += "!";
  all.ordered.insert(std::move(node));
}

void show(const Everything& all) {
  const auto texts = [](const auto& range) {
    std::uint64_t sum = 0;
    for (const auto& text : range) sum = sum * 3 + sum_of(text);
    return sum;
  };
  std::uint64_t ordered = 0, grouped = 0, hashed = 0, pairs = 0, listed = 0, sets = 0, anything = 0, functions = 1;
  for (const auto& [text, number] : all.ordered) ordered = ordered * 3 + sum_of(text) + number;
  for (const auto& [number, text] : all.grouped) grouped = grouped * 3 + sum_of(text) + number;
  for (std::uint64_t i = 0; i < all.hashed.size(); ++i) {
    for (const std::uint32_t number : all.hashed.at(i)) hashed = hashed * 3 + number;
  }
  for (const auto& [number, text] : all.pairs) pairs = pairs * 3 + sum_of(text) + number;
  for (const auto& [number, text] : all.listed) listed = listed * 3 + sum_of(text) + number;
  for (const auto& set : all.sets) sets = sets * 3 + set->count();
  for (const auto& one : all.anything) {
    if (const auto* number = std::any_cast<std::uint64_t>(&one)) anything += *number;
    if (const auto* three = std::any_cast<std::tuple<std::uint32_t, std::string, float>>(&one)) {
      anything = anything * 3 + std::get<0>(*three) + sum_of(std::get<1>(*three));
    }
  }
  for (const auto& function : all.functions) functions = function(functions);
  double rows = 0;
  for (const auto& row : all.rows) rows += std::accumulate(row.begin(), row.end(), 0.0);
  std::cout << "texts " << all.texts.size() << " " << texts(all.texts) << "\nqueued " << all.queued.size() << " "
            << texts(all.queued) << "\nordered " << all.ordered.size() << " " << ordered << "\ngrouped "
            << all.grouped.count(7) << " " << grouped << "\nhashed " << hashed << "\nknown " << all.known.size()
            << "\npairs " << all.pairs.size() << " " << pairs << "\nlisted " << all.listed.size() << " " << listed
            << "\nsingle " << std::accumulate(all.single.begin(), all.single.end(), std::uint64_t{0}) << "\nfirst "
            << all.first.size() << " " << all.first.top().second << "\nbits "
            << std::count(all.bits.begin(), all.bits.end(), true) << "\nsets " << sets << "\nanything " << anything
            << "\nfunctions " << functions << "\nrows " << std::fixed << std::setprecision(3) << rows << "\ntree "
            << sum_of(all.root) << "\n";
}

// ---- what comes and goes

void streams(std::uint32_t entries) {
  std::stringstream stream;
  for (std::uint32_t i = 0; i < entries; ++i) {
    stream << std::setw(9) << i << std::hex << std::showbase << i << std::dec << " " << std::quoted(text_of(i)) << "\n";
  }
  std::uint64_t lines = 0, sum = 0;
  for (std::string line; std::getline(stream, line); ++lines) sum = sum * 3 + sum_of(line);
  std::istringstream numbers("17 -4 2.25 0x1f true word");
  int one = 0, two = 0, hexadecimal = 0;
  double three = 0;
  bool four = false;
  std::string word;
  numbers >> one >> two >> three >> std::hex >> hexadecimal >> std::dec >> std::boolalpha >> four >> word;
  std::cout << "streams " << lines << " " << sum << " " << one << two << three << hexadecimal << four << word << "\n";
  const std::string text = text_of(4) + " and " + text_of(5);
  std::smatch found;
  if (std::regex_search(text, found, std::regex("([0-9]+)([a-z]*) and ([0-9]+)"))) {
    std::cout << "regex " << found[1] << " " << found[3] << "\n";
  }
}

struct Failure : std::runtime_error {
  Failure(const std::string& why, std::uint64_t its_number)
      : std::runtime_error(why), number(std::make_shared<std::uint64_t>(its_number)) {}
  std::shared_ptr<std::uint64_t> number;
};

std::uint64_t down(std::uint32_t depth, std::vector<std::string>& words) {
  const std::string word = text_of(depth);
  words.push_back(word);
  if (depth == 0) throw Failure("at the bottom of " + words.front(), words.size());
  try {
    return down(depth - 1, words) + 1;
  } catch (const Failure& failure) {
    if (depth % 7 == 0) std::throw_with_nested(std::logic_error("through " + word + " " + failure.what()));
    throw;
  }
}

void exceptions() {
  std::uint64_t sum = 0;
  for (std::uint32_t depth = 0; depth < 60; ++depth) {
    std::vector<std::string> words;
    try {
      sum += down(depth, words);
    } catch (const Failure& failure) {
      sum = sum * 3 + sum_of(failure.what()) + *failure.number;
    } catch (const std::logic_error& error) {
      sum = sum * 5 + sum_of(error.what());
      try {
        std::rethrow_if_nested(error);
      } catch (const std::exception& inner) {
        sum = sum * 7 + sum_of(inner.what());
      }
    }
  }
  try {
    (void)std::vector<int>(3).at(7);
  } catch (const std::out_of_range&) {
    ++sum;
  }
  try {
    (void)std::stoi("none");
  } catch (const std::invalid_argument&) {
    ++sum;
  }
  std::cout << "exceptions " << sum << "\n";
}

struct Shared {
  std::mutex mutex;
  std::shared_mutex readers;
  std::condition_variable filled;
  std::queue<std::shared_ptr<std::string>> queue;
  std::atomic<std::uint64_t> sum{0};
  std::map<std::uint64_t, std::string> answers;
  bool done = false;
};

void consume(Shared& shared) {
  while (true) {
    std::unique_lock lock(shared.mutex);
    shared.filled.wait(lock, [&] { return shared.done || !shared.queue.empty(); });
    if (shared.queue.empty()) return;
    const auto text = std::move(shared.queue.front());
    shared.queue.pop();
    lock.unlock();
    const std::uint64_t sum = sum_of(*text);
    shared.sum += sum;
    const std::unique_lock writing(shared.readers);
    shared.answers.emplace(sum, text->substr(0, 5));
  }
}

void threads(const Everything& all) {
  auto shared = std::make_unique<Shared>();
  std::vector<std::thread> workers;
  for (int i = 0; i < 3; ++i) workers.emplace_back([&shared] { consume(*shared); });
  for (std::uint32_t i = 0; i < all.texts.size(); i += 8) {
    const std::lock_guard lock(shared->mutex);
    shared->queue.push(std::make_shared<std::string>(all.texts[i]));
    shared->filled.notify_one();
  }
  {
    const std::lock_guard lock(shared->mutex);
    shared->done = true;
  }
  shared->filled.notify_all();
  for (auto& worker : workers) worker.join();
  const std::shared_lock reading(shared->readers);
  std::uint64_t sum = 0;
  for (const auto& [number, text] : shared->answers) sum = sum * 3 + number + sum_of(text);
  std::vector<std::future<std::uint64_t>> later;
  for (std::size_t part = 0; part < 4; ++part) {
    later.push_back(std::async(std::launch::async, [&all, part] {
      if (part == 3) throw Failure("part three", part);
      std::uint64_t found = 0;
      for (std::size_t i = part; i < all.rows.size(); i += 4)
        found += static_cast<std::uint64_t>(all.rows[i][part] * 3);
      return found;
    }));
  }
  for (auto& one : later) {
    try {
      sum = sum * 3 + one.get();
    } catch (const Failure& failure) {
      sum = sum * 5 + *failure.number + sum_of(failure.what());
    }
  }
  std::once_flag once;
  std::call_once(once, [&] { ++sum; });
  thread_local std::string mine = "mine";
  mine += std::to_string(sum);
  std::cout << "threads " << shared->sum << " " << shared->answers.size() << " " << mine << "\n";
}

void others(std::uint32_t entries) {
  std::pmr::monotonic_buffer_resource buffer;
  std::pmr::map<std::pmr::string, std::pmr::vector<int>> map(&buffer);
  for (std::uint32_t i = 0; i < entries; ++i) map[std::pmr::string(text_of(i % 500))].push_back(static_cast<int>(i));
  std::uint64_t sum = 0;
  for (const auto& [text, all] : map) sum = sum * 3 + sum_of(text) + all.size();
  std::valarray<double> numbers(1.5, entries);
  numbers[std::slice(0, entries / 3, 3)] *= std::valarray<double>(2.0, entries / 3);
  std::optional<std::string> maybe = text_of(9);
  std::string moved = std::move(*maybe);
  maybe.reset();
  std::wstring wide(entries, L'w');
  wide += L"ide";
  std::cout << "others " << sum << " " << numbers.sum() << " " << moved << maybe.value_or("-") << wide.size() << "\n";
}

}  // namespace

int main(int argc, char** argv) {
  const auto entries = argc > 1 ? static_cast<std::uint32_t>(std::atoi(argv[1])) * 1000 : 1000;
  auto all = std::make_unique<Everything>();
  fill(*all, entries);
  streams(entries / 4);
  exceptions();
  show(*all);
  change(*all);
  threads(*all);
  others(entries);
  const Everything copy = std::move(*all);
  show(copy);
  return 0;
}
