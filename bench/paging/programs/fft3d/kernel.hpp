// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Three-dimensional fast Fourier transform of a box whose edges are powers of two, where it is: lines are transformed
// along x, then y, then z, each by Stockham's radix-2 algorithm (no bit reversal) in a buffer that fits in a cache.
// Planes are swept once for x and y together. For z, a plane of the lines that share a y is gathered and scattered:
// a row of one plane at a time, so the third pass walks through memory in strides of a whole plane.
// The heat equation is what it is used for: to the frequencies and back, with every wave damped in between.
//
// Thread-safety: none; one thread.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace farheap::bench {

struct Complex {  // not std::complex, whose product looks for infinities
  double re = 0;
  double im = 0;
};
inline Complex operator+(Complex a, Complex b) { return {a.re + b.re, a.im + b.im}; }
inline Complex operator-(Complex a, Complex b) { return {a.re - b.re, a.im - b.im}; }
inline Complex operator*(Complex a, Complex b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }
inline Complex operator*(double a, Complex b) { return {a * b.re, a * b.im}; }

struct Shape {
  std::array<std::int64_t, 3> edges;  // x (contiguous), y, z
  [[nodiscard]] std::int64_t points() const { return edges[0] * edges[1] * edges[2]; }
};

// Transforms many lines of one length side by side: element i of line j is at [i * lines + j].
class LineTransform {
 public:
  LineTransform(std::int64_t length, std::int64_t lines);
  // The result is left in `lines`, of which `spare` has the size.
  void run(std::vector<Complex>& lines, std::vector<Complex>& spare, bool inverse) const;

 private:
  std::int64_t length_;
  std::int64_t lines_;
  std::vector<Complex> roots_;  // exp(-2 pi i k / length), k < length / 2
};

// The frequency that index i of an axis stands for: 0, 1, ..., -2, -1.
[[nodiscard]] inline std::int64_t frequency_at(std::int64_t i, std::int64_t edge) {
  return i <= edge / 2 ? i : i - edge;
}

// exp(-kDiffusion |frequency|^2): what one step leaves of a wave.
[[nodiscard]] double damping(std::int64_t fx, std::int64_t fy, std::int64_t fz);

class HeatBox {
 public:
  explicit HeatBox(const Shape& shape) : shape_(shape), data_(new Complex[static_cast<std::size_t>(shape.points())]) {}

  void step();  // to the frequencies, damped, and back
  [[nodiscard]] const Shape& shape() const { return shape_; }
  [[nodiscard]] std::span<Complex> data() { return {data_.get(), static_cast<std::size_t>(shape_.points())}; }

 private:
  void transform(bool inverse);
  void transform_planes(bool inverse);   // along x and y
  void transform_columns(bool inverse);  // along z; damps as well on the way to the frequencies
  void damp(std::vector<Complex>& columns, std::int64_t y) const;

  Shape shape_;
  std::unique_ptr<Complex[]> data_;
};

}  // namespace farheap::bench
