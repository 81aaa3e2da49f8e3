// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Exceptions pass frames of the far stack by, and objects on it and in global variables are built and destroyed.
#include <algorithm>
#include <array>
#include <cstdio>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

struct Guard {
  explicit Guard(int which) : number(which) { ++alive; }
  ~Guard() {
    --alive;
    last = number + scratch();
  }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;
  // Needs a frame of its own while others are unwound.
  int scratch() const {
    std::array<int, 20> values{};
    for (int i = 0; i < 20; i++) values[i] = number + i;
    return values[number % 20];
  }
  int number;
  static int alive, last;
};
int Guard::alive = 0, Guard::last = 0;

struct Base {
  virtual ~Base() = default;
  virtual int value() const { return 1; }
};
struct Derived : Base {
  explicit Derived(int n) : own{n, n + 1, n + 2} {}
  int value() const override { return own[2]; }
  std::array<int, 3> own;
};

std::vector<int> global_vector = {3, 1, 2};
Derived global_object(40);
const Base& global_reference = global_object;
std::function<int(int)> global_function = [](int x) { return x + global_object.value(); };

const void* deepest = nullptr;

[[gnu::noinline]] int fall(int depth) {
  Guard guard(depth);
  std::array<long, 30> frame;
  frame.fill(depth);
  deepest = frame.data();
  if (depth == 0) throw std::runtime_error("fell");
  return fall(depth - 1) + static_cast<int>(frame[7]);
}

[[gnu::noinline]] int once_caught(int depth) {
  std::array<int, 10> kept;
  for (int i = 0; i < 10; i++) kept[i] = i * depth;
  try {
    return fall(depth);
  } catch (const std::runtime_error&) {
    Guard guard(depth + 100);
    return kept[9] + guard.scratch();
  }
}

// No frame of its own where the optimiser has been: what is left behind must not add up.
[[gnu::noinline]] long many_times(int times) {
  long total = 0;
  const void* before = nullptr;
  for (int i = 0; i < times; i++) {
    try {
      total += fall(20);
    } catch (...) {
      total += before == nullptr || before == deepest ? 3 : 1000;
      before = deepest;
    }
  }
  return total;
}

int again(int depth) {
  try {
    if (depth == 0) throw depth;
    std::array<int, 5> kept = {depth, 1, 2, 3, 4};
    try {
      return again(depth - 1);
    } catch (int value) {
      throw value + kept[0];
    }
  } catch (int value) {
    if (depth == 12) return value;
    throw;
  }
}

struct Large {
  std::array<double, 30> values;
};
[[gnu::noinline]] Large made(double begin) {
  Large result;
  for (auto& value : result.values) value = begin++;
  return result;
}
[[gnu::noinline]] double total(Large large) {
  large.values[0] += 1;
  double sum = 0;
  for (const double value : large.values) sum += value;
  return sum;
}

Base* chosen(bool second) {
  static Derived first(5), other(6);
  return second ? &other : &first;
}

}  // namespace

int main() {
  std::printf("%d %d\n", once_caught(25), Guard::last);
  std::printf("%ld %d\n", many_times(300), Guard::alive);
  std::printf("%d\n", again(12));
  Large large = made(2);
  std::printf("%.1f %.1f\n", total(large), large.values[29]);
  std::sort(global_vector.begin(), global_vector.end());
  std::vector<std::unique_ptr<Base>> all;
  for (int i = 0; i < 5; i++) all.push_back(std::make_unique<Derived>(i));
  int sum = 0;
  for (const auto& one : all) sum += one->value();
  std::array<Derived, 3> local = {Derived(1), Derived(2), Derived(3)};
  const auto count = [&](int x) { return x + local[1].value() + sum; };
  std::printf("%d %d %d %d %d\n", sum, count(1), global_vector[2], global_function(2), global_reference.value());
  std::printf("%d %d\n", chosen(true)->value(), chosen(false)->value());
  // Short enough to be where its object is, and that is where libstdc++ can touch it.
  std::string text = std::string("sho") + "rt";
  text.append("er").replace(0, 1, "S");
  std::printf("%s %d\n", text.c_str(), static_cast<int>(text.find("er")));
  return 0;
}
