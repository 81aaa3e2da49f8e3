// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// slow+: a fixed delay for each call and a bandwidth that all callers share, as a far device has them. One batch is
// one call: its entries are in flight together.
#include <atomic>
#include <chrono>
#include <thread>

#include "base/clock.hpp"
#include "store/decorator.hpp"
#include "store/kinds.hpp"

namespace farheap::store {
namespace {

class SlowStore final : public Decorator {
 public:
  SlowStore(std::unique_ptr<Store> inner, std::uint64_t delay_us, std::uint64_t mb_s)
      : Decorator("slow", std::move(inner)),
        delay_ns_(static_cast<std::int64_t>(delay_us) * 1000),
        ns_per_byte_(mb_s == 0 ? 0 : 1e3 / static_cast<double>(mb_s)) {}

  Status get(std::span<Get> batch) override {
    std::size_t bytes = 0;
    for (const auto& entry : batch) bytes += entry.into.size();
    pause(bytes);
    return inner_->get(batch);
  }
  Status put(std::span<Put> batch) override {
    std::size_t bytes = 0;
    for (const auto& entry : batch) bytes += entry.from.size();
    pause(bytes);
    return inner_->put(batch);
  }
  Status erase(std::uint64_t first, std::uint64_t count) override {
    pause(0);
    return inner_->erase(first, count);
  }
  Result<std::int64_t> add(std::string_view counter, std::int64_t delta) override {
    pause(0);
    return inner_->add(counter, delta);
  }
  Status sync() override {
    pause(0);
    return inner_->sync();
  }

 private:
  // The wire is busy until wire_free_; whoever comes takes its turn at the end.
  void pause(std::size_t bytes) {
    using base::Clock;
    using std::chrono::nanoseconds;
    const std::int64_t now = nanoseconds(Clock::now().time_since_epoch()).count();
    std::int64_t until = now;
    const auto busy = static_cast<std::int64_t>(static_cast<double>(bytes) * ns_per_byte_);
    if (busy != 0) {
      std::int64_t free = wire_free_.load();
      do {
        until = std::max(free, now) + busy;
      } while (!wire_free_.compare_exchange_weak(free, until));
    }
    until += delay_ns_;
    if (until > now) base::sleep_until(Clock::time_point(nanoseconds(until)));
  }

  std::int64_t delay_ns_;
  double ns_per_byte_;
  std::atomic<std::int64_t> wire_free_{0};
};

}  // namespace

StoreResult open_slow(const OpenInner& open_inner, const Parameters& parameters, const StoreOptions& options) {
  auto delay_us = parameters.number("delay_us", 100);
  if (!delay_us) return fail(std::move(delay_us.error()));
  auto mb_s = parameters.number("mb_s", 0);
  if (!mb_s) return fail(std::move(mb_s.error()));
  if (*delay_us > 60'000'000) return parameters.wrong("delay_us", "over a minute", "write delay_us=100");
  auto inner = open_inner(options);
  if (!inner) return inner;
  return std::make_unique<SlowStore>(std::move(*inner), *delay_us, *mb_s);
}

}  // namespace farheap::store
