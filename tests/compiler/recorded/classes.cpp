// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Virtual functions, templates, and objects of several sites.
#include <cstdio>
#include <memory>

namespace {

struct Shape {
  virtual ~Shape() = default;
  virtual long area() const = 0;
};
struct Square : Shape {
  explicit Square(long side) : side(side) {}
  long area() const override { return side * side; }
  long side;
};
struct Staircase : Shape {
  explicit Staircase(long steps) : steps(steps) {}
  long area() const override {
    long sum = 0;
    for (long i = 1; i <= steps; ++i) sum += i;
    return sum;
  }
  long steps;
};

template <class Number>
Number total(const Number *from, int n) {
  Number sum = 0;
  for (int i = 0; i < n; ++i) sum += from[i];
  return sum;
}

}  // namespace

int main() {
  Shape *shapes[40];
  for (long i = 0; i < 40; ++i) {
    if (i % 3 == 0) {
      shapes[i] = new Staircase(i);
    } else {
      shapes[i] = std::make_unique<Square>(i).release();
    }
  }
  long areas[40];
  int n = 0;
  for (const Shape *shape : shapes) {
    areas[n++] = shape->area();
    delete shape;
  }
  static const float parts[] = {0.5F, 0.25F, 2};
  std::printf("%ld %.2f\n", total(areas, n), static_cast<double>(total(parts, 3)));
  return 0;
}
