// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// kmeans: points are assigned to the nearest of a few centers, which become the means of their points (Lloyd 1982).
// The two inner loops, over the centers and over the coordinates, are as short as they are in such programs; what is
// larger than memory is only walked by the outermost one. With `--batch MIB` a step takes a block of the points that is
// chosen at random instead of all (mini-batches: Sculley 2010): each walk is then too short to be learned from the
// last.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "common/program.hpp"

namespace farheap::bench {
namespace {

constexpr std::int64_t kClusters = 8;
constexpr std::uint32_t kNone = ~std::uint32_t{0};
constexpr double kApart = 64.0;  // along a coordinate; noise is below 1, so that nobody can be in doubt

// What the points are, by theory: the kernel never asks.
struct Cloud {
  std::uint64_t seed;

  // The first points are the first centers: one of each cluster.
  [[nodiscard]] std::int64_t cluster(std::int64_t point) const {
    if (point < kClusters) return point;
    return static_cast<std::int64_t>(scale_random(random_at(seed, point), kClusters));
  }
  [[nodiscard]] double coordinate(std::int64_t point, std::int64_t axis) const {
    const double noise = static_cast<double>(random_at(seed + 1 + axis, point) >> 11) * 0x1p-52 - 1.0;
    return static_cast<double>((cluster(point) >> (axis % 3)) & 1) * kApart + noise;
  }
};

// Sums of the points of each cluster, and how many they are.
struct Means {
  explicit Means(std::int64_t axes) : sums(kClusters * axes), counts(kClusters) {}

  std::vector<double> sums;
  std::vector<std::uint64_t> counts;
};

class KMeans final : public Workload {
 public:
  explicit KMeans(const Flags& flags)
      : axes_(static_cast<std::int64_t>(flags.extra.at("axes"))),
        points_(std::max<std::int64_t>(kClusters, static_cast<std::int64_t>(flags.size) / point_bytes() & ~1LL)),
        batch_(static_cast<std::int64_t>(flags.extra.at("batch") * 0x1p20) / point_bytes()),
        steps_(flags.steps),
        cloud_{flags.seed},
        coordinates_(new double[points_ * axes_]),
        labels_(new std::uint32_t[points_]),
        centers_(kClusters * axes_) {
    if (batch_ == 0 || batch_ > points_) batch_ = points_;
    for (std::int64_t point = 0; point < points_; ++point) {
      for (std::int64_t axis = 0; axis < axes_; ++axis) {
        coordinates_[point * axes_ + axis] = cloud_.coordinate(point, axis);
      }
    }
    std::fill_n(labels_.get(), points_, kNone);
    std::copy_n(coordinates_.get(), centers_.size(), centers_.data());
  }

  void run_kernel() override {
    Means means(axes_);
    for (std::uint64_t step = 0; step < steps_; ++step) {
      if (batch_ == points_) means = Means(axes_);  // else the means are of all that was ever seen
      assign(first_of(step), means);
      move_centers(means, centers_);
    }
  }

  std::string verify() override {
    std::vector<std::uint32_t> labels(points_, kNone);
    std::vector<double> centers(centers_.size());
    Means means(axes_);
    for (std::uint64_t step = 0; step < steps_; ++step) {
      if (batch_ == points_) means = Means(axes_);
      const std::int64_t first = first_of(step);
      for (std::int64_t point = first; point < first + batch_; ++point) {
        const std::int64_t cluster = cloud_.cluster(point);
        labels[point] = static_cast<std::uint32_t>(cluster);
        ++means.counts[cluster];
        for (std::int64_t axis = 0; axis < axes_; ++axis) {
          means.sums[cluster * axes_ + axis] += cloud_.coordinate(point, axis);
        }
      }
    }
    move_centers(means, centers);
    if (!std::equal(labels.begin(), labels.end(), labels_.get())) return "a point is not with its cluster";
    for (std::size_t i = 0; i < centers.size(); ++i) {
      if (!(std::abs(centers[i] - centers_[i]) <= 1e-9 * kApart)) return "a center is not where its points are";
    }
    return "";
  }

  std::uint64_t bytes() const override { return points_ * point_bytes(); }
  std::uint64_t steps() const override { return steps_; }
  std::vector<ByteRange> result() override {
    return {bytes_of(labels_.get(), points_), bytes_of(centers_.data(), centers_.size())};
  }
  std::vector<ByteRange> hottest() override {
    return {bytes_of(labels_.get(), points_), bytes_of(coordinates_.get(), points_ * axes_)};
  }

 private:
  [[nodiscard]] std::int64_t point_bytes() const {
    return axes_ * static_cast<std::int64_t>(sizeof(double)) + static_cast<std::int64_t>(sizeof(std::uint32_t));
  }

  [[nodiscard]] std::int64_t first_of(std::uint64_t step) const {
    return static_cast<std::int64_t>(scale_random(random_at(~cloud_.seed, step), points_ / batch_)) * batch_;
  }

  void assign(std::int64_t first, Means& means) {
    const std::int64_t axes = axes_;
    const std::int64_t count = batch_;
    const double* const points = coordinates_.get() + first * axes;
    const double* const centers = centers_.data();
    std::uint32_t* const labels = labels_.get() + first;
    double* const sums = means.sums.data();
    std::uint64_t* const counts = means.counts.data();
    for (std::int64_t point = 0; point < count; ++point) {
      std::int64_t nearest = 0;
      double least = std::numeric_limits<double>::infinity();
      for (std::int64_t cluster = 0; cluster < kClusters; ++cluster) {
        double square = 0;
        for (std::int64_t axis = 0; axis < axes; ++axis) {
          const double off = points[point * axes + axis] - centers[cluster * axes + axis];
          square += off * off;
        }
        if (square < least) {
          least = square;
          nearest = cluster;
        }
      }
      labels[point] = static_cast<std::uint32_t>(nearest);
      ++counts[nearest];
      for (std::int64_t axis = 0; axis < axes; ++axis) sums[nearest * axes + axis] += points[point * axes + axis];
    }
  }

  // A cluster of which no point was seen has no mean: its center stays.
  void move_centers(const Means& means, std::vector<double>& centers) const {
    for (std::int64_t cluster = 0; cluster < kClusters; ++cluster) {
      for (std::int64_t axis = 0; axis < axes_; ++axis) {
        const std::int64_t i = cluster * axes_ + axis;
        const double seen = static_cast<double>(means.counts[cluster]);
        centers[i] = means.counts[cluster] != 0 ? means.sums[i] / seen : cloud_.coordinate(cluster, axis);
      }
    }
  }

  std::int64_t axes_;
  std::int64_t points_;
  std::int64_t batch_;  // points
  std::uint64_t steps_;
  Cloud cloud_;
  std::unique_ptr<double[]> coordinates_;
  std::unique_ptr<std::uint32_t[]> labels_;
  std::vector<double> centers_;
};

}  // namespace

Program this_program() {
  Program program;
  program.name = "kmeans";
  program.summary = "k-means; --steps is the number of assignments, --batch MIB the size of a random block for each";
  program.kind = Kind::kSweeping;
  program.defaults.size = std::uint64_t{256} << 20;
  program.defaults.steps = 4;
  program.defaults.extra["axes"] = 8;
  program.defaults.extra["batch"] = 0;
  program.tiny_size = std::uint64_t{1} << 20;
  program.tiny_steps = 3;
  program.cases = {{"kmeans", {}, {"--size", "64M", "--steps", "3"}},
                   {"kmeans_batches", {"--batch", "2", "--steps", "400"}, {"--size", "64M", "--steps", "80"}}};
  program.prepare = [](const Flags& flags) -> Workload* { return new KMeans(flags); };
  return program;
}

}  // namespace farheap::bench
