// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// C++ in the heap: objects with virtual functions, containers that are whole in their headers, exceptions, new and
// delete in their many forms.
#include <algorithm>
#include <cstdio>
#include <deque>
#include <functional>
#include <memory>
#include <new>
#include <numeric>
#include <stdexcept>
#include <vector>

struct Shape {
  virtual ~Shape() { --living; }
  [[nodiscard]] virtual double area() const = 0;
  Shape() { ++living; }
  static int living;
};
int Shape::living = 0;

struct Square : Shape {
  explicit Square(double its_side) : side(its_side) {}
  [[nodiscard]] double area() const override { return side * side; }
  double side;
};
struct alignas(64) Circle : Shape {
  explicit Circle(double its_radius) : radius(its_radius) {}
  [[nodiscard]] double area() const override { return 3 * radius * radius; }
  double radius;
};

struct Thrower {
  explicit Thrower(int at) : value(new int(at)) {
    if (at == 3) throw std::out_of_range("three");
  }
  std::unique_ptr<int> value;
};

static int attempt(std::vector<Thrower>& all, int at) {
  try {
    all.emplace_back(at);
    return *all.back().value;
  } catch (const std::out_of_range& error) {
    std::printf("caught %s\n", error.what());
    return -1;
  }
}

int main() {
  std::vector<std::unique_ptr<Shape>> shapes;
  for (int i = 1; i <= 5; ++i) {
    if (i % 2 == 0) {
      shapes.push_back(std::make_unique<Square>(i));
    } else {
      shapes.push_back(std::make_unique<Circle>(i));
    }
  }
  std::sort(shapes.begin(), shapes.end(), [](const auto& a, const auto& b) { return a->area() > b->area(); });
  for (const auto& shape : shapes) std::printf("%.1f ", shape->area());
  shapes.erase(shapes.begin() + 1);
  std::printf("| %d living\n", Shape::living);

  std::vector<Thrower> throwers;
  int sum = 0;
  for (int i = 0; i < 6; ++i) sum += attempt(throwers, i);
  std::printf("%d of %zu\n", sum, throwers.size());

  std::deque<long> queue;
  for (long i = 0; i < 400; ++i) {
    queue.push_back(i * i % 37);
    if (i % 3 == 0) queue.pop_front();
  }
  std::printf("%ld\n", std::accumulate(queue.begin(), queue.end(), 0L));
  std::vector<bool> bits(100);
  for (std::size_t i = 0; i < bits.size(); i += 7) bits[i] = true;
  std::printf("%ld\n", static_cast<long>(std::count(bits.begin(), bits.end(), true)));
  const auto shared = std::make_shared<std::vector<int>>(20, 3);
  const std::function<int(int)> add = [shared, sum](int x) { return x + sum + (*shared)[7]; };
  std::printf("%d %ld\n", add(1), shared.use_count());

  char* volatile none = new (std::nothrow) char[std::size_t{1} << 46];
  std::printf("%d\n", none == nullptr);
  try {
    std::vector<char> much(std::size_t{1} << 46);
  } catch (const std::bad_alloc&) {
    std::printf("bad_alloc\n");
  }
  return 0;
}
