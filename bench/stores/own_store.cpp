// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A store by Farheap's own adapter, opened as the far heap of a translated program opens it, without the program and
// without its heap.
#include <cstdio>
#include <farheap/store.hpp>

#include "stores/own.hpp"

namespace farheap::bench {
namespace {

class Adapter final : public OwnClient {
 public:
  explicit Adapter(std::unique_ptr<Store> store) : store_(std::move(store)) {}
  std::size_t batch() const override { return 1; }
  bool write(std::uint64_t first, std::size_t count, const char* bytes) override {
    Put put{.block = first, .from = std::as_bytes(std::span(bytes, count * kPage))};
    return said(store_->put({&put, 1}));
  }
  bool read(std::uint64_t first, std::size_t count, char* into) override {
    Get get{.block = first, .into = std::as_writable_bytes(std::span(into, count * kPage))};
    return said(store_->get({&get, 1})) && get.outcome == Outcome::kOk;
  }
  // As mode direct asks for it.
  bool get_byte(std::uint64_t page, std::size_t offset, char* into) override {
    const auto byte = std::as_writable_bytes(std::span(into + offset, 1));
    return store_->get_part(page, offset, byte) == Outcome::kOk || read(page, 1, into);
  }

 private:
  static bool said(const Status& status) {
    if (!status) std::fprintf(stderr, "stores_own: %s\n", status.error().message().c_str());
    return status.has_value();
  }
  std::unique_ptr<Store> store_;
};

}  // namespace

std::unique_ptr<OwnClient> own_store(const std::string& uri) {
  auto store = open_store(uri, {.block_bytes = kPage, .lifetime = Lifetime::kScratch});
  if (store) return std::make_unique<Adapter>(std::move(*store));
  std::fprintf(stderr, "stores_own: %s\n", store.error().message().c_str());
  return nullptr;
}

}  // namespace farheap::bench
