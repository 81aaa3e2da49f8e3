// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernel.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace farheap::bench {
namespace {

constexpr double kDiffusion = 0.01;
constexpr std::int64_t kTogether = 16;  // lines that are transformed side by side: 256 bytes of each row

std::vector<Complex> roots_of(std::int64_t length) {
  std::vector<Complex> roots(static_cast<std::size_t>(length / 2));
  for (std::size_t k = 0; k < roots.size(); ++k) {
    const double angle = -2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(length);
    roots[k] = {std::cos(angle), std::sin(angle)};
  }
  return roots;
}

}  // namespace

LineTransform::LineTransform(std::int64_t length, std::int64_t lines)
    : length_(length), lines_(lines), roots_(roots_of(length)) {}

// Stockham: a stage turns `half` butterflies of `stride` interleaved transforms into transforms twice as long.
void LineTransform::run(std::vector<Complex>& lines, std::vector<Complex>& spare, bool inverse) const {
  for (std::int64_t half = length_ / 2, stride = 1; half >= 1; half /= 2, stride *= 2) {
    const std::int64_t together = stride * lines_;
    for (std::int64_t butterfly = 0; butterfly < half; ++butterfly) {
      Complex root = roots_[butterfly * stride];
      if (inverse) root.im = -root.im;
      const Complex* const low = lines.data() + butterfly * together;
      const Complex* const high = low + half * together;
      Complex* const sum = spare.data() + 2 * butterfly * together;
      Complex* const difference = sum + together;
      for (std::int64_t i = 0; i < together; ++i) {
        sum[i] = low[i] + high[i];
        difference[i] = root * (low[i] - high[i]);
      }
    }
    lines.swap(spare);
  }
}

double damping(std::int64_t fx, std::int64_t fy, std::int64_t fz) {
  return std::exp(-kDiffusion * static_cast<double>(fx * fx + fy * fy + fz * fz));
}

void HeatBox::transform_planes(bool inverse) {
  const auto [nx, ny, nz] = shape_.edges;
  const LineTransform along_x(nx, 1);
  const LineTransform along_y(ny, kTogether);
  std::vector<Complex> row(nx), spare_row(nx), block(ny * kTogether), spare_block(ny * kTogether);
  for (std::int64_t z = 0; z < nz; ++z) {
    Complex* const plane = data_.get() + z * ny * nx;
    for (std::int64_t y = 0; y < ny; ++y) {
      std::copy_n(plane + y * nx, nx, row.data());
      along_x.run(row, spare_row, inverse);
      std::copy_n(row.data(), nx, plane + y * nx);
    }
    for (std::int64_t x = 0; x < nx; x += kTogether) {
      for (std::int64_t y = 0; y < ny; ++y) std::copy_n(plane + y * nx + x, kTogether, &block[y * kTogether]);
      along_y.run(block, spare_block, inverse);
      for (std::int64_t y = 0; y < ny; ++y) std::copy_n(&block[y * kTogether], kTogether, plane + y * nx + x);
    }
  }
}

void HeatBox::damp(std::vector<Complex>& columns, std::int64_t y) const {
  const auto [nx, ny, nz] = shape_.edges;
  const double share = 1.0 / static_cast<double>(shape_.points());  // forth and back multiplies by the points
  std::vector<double> along_x(nx);
  for (std::int64_t x = 0; x < nx; ++x) along_x[x] = damping(frequency_at(x, nx), frequency_at(y, ny), 0) * share;
  for (std::int64_t z = 0; z < nz; ++z) {
    const double along_z = damping(0, 0, frequency_at(z, nz));
    for (std::int64_t x = 0; x < nx; ++x) columns[z * nx + x] = (along_z * along_x[x]) * columns[z * nx + x];
  }
}

void HeatBox::transform_columns(bool inverse) {
  const auto [nx, ny, nz] = shape_.edges;
  const LineTransform along_z(nz, nx);
  std::vector<Complex> columns(nz * nx), spare(nz * nx);
  for (std::int64_t y = 0; y < ny; ++y) {
    Complex* const first = data_.get() + y * nx;
    for (std::int64_t z = 0; z < nz; ++z) std::copy_n(first + z * ny * nx, nx, &columns[z * nx]);
    along_z.run(columns, spare, inverse);
    if (!inverse) damp(columns, y);
    for (std::int64_t z = 0; z < nz; ++z) std::copy_n(&columns[z * nx], nx, first + z * ny * nx);
  }
}

void HeatBox::transform(bool inverse) {
  transform_planes(inverse);
  transform_columns(inverse);
}

void HeatBox::step() {
  transform(false);
  transform(true);
}

}  // namespace farheap::bench
