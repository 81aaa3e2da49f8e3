// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A store in front of a store. Passes everything on; each decorator overrides what it changes.
//
// Thread-safety: as Store.
#pragma once

#include <farheap/store.hpp>
#include <memory>
#include <string>

namespace farheap::store {

class Decorator : public Store {
 public:
  Decorator(std::string_view name, std::unique_ptr<Store> inner) : name_(name), inner_(std::move(inner)) {}
  std::string describe() const override { return name_ + "+" + inner_->describe(); }
  Capabilities capabilities() const override { return inner_->capabilities(); }
  Limits limits() const override { return inner_->limits(); }
  Status get(std::span<Get> batch) override { return inner_->get(batch); }
  Status put(std::span<Put> batch) override { return inner_->put(batch); }
  Status erase(std::uint64_t first, std::uint64_t count) override { return inner_->erase(first, count); }
  Result<std::int64_t> add(std::string_view counter, std::int64_t delta) override {
    return inner_->add(counter, delta);
  }
  Status sync() override { return inner_->sync(); }
  Result<StoreUsage> usage() override { return inner_->usage(); }
  Result<std::vector<BlockRun>> runs_from(std::uint64_t first) override { return inner_->runs_from(first); }
  Result<std::vector<NamedCounter>> counters() override { return inner_->counters(); }
  [[nodiscard]] Store& behind() { return *inner_; }

 protected:
  std::string name_;
  std::unique_ptr<Store> inner_;
};

// For decorators whose batches grow on their way down: keeps within the limits of `store`. Every entry is tried,
// whatever happened to those before.
void get_in_pieces(Store& store, std::span<Get> batch);
void put_in_pieces(Store& store, std::span<Put> batch);

}  // namespace farheap::store
