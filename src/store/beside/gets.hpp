// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Gets in flight at `farheap-engines`: each in a slot of its own. The descriptor is an epoll of an eventfd, which the
// process writes to with every answer, and of the socket, which hangs up when the process ends; what was in flight
// then is asked again, and waited for, by take().
//
// Thread-safety: as GetsInFlight.
#pragma once

#include <farheap/store.hpp>
#include <vector>

#include "store/beside/beside_store.hpp"

namespace farheap::store::beside {

class BesideGets final : public GetsInFlight {
 public:
  // nullptr: no descriptor, or no number, is to be had.
  [[nodiscard]] static std::unique_ptr<BesideGets> make(BesideStore& store, unsigned most);
  ~BesideGets() override;
  BesideGets(const BesideGets&) = delete;
  BesideGets& operator=(const BesideGets&) = delete;

  bool begin(Get& entry) override;
  Get* take() override;
  int descriptor() const override { return epoll_; }

 private:
  struct Flying {
    Connection* connection;
    std::uint32_t slot;
    Get* entry;
  };

  explicit BesideGets(BesideStore& store, unsigned most);
  [[nodiscard]] bool watch(Connection& connection);
  [[nodiscard]] Get* take_answered();
  [[nodiscard]] Get* take_abandoned();
  [[nodiscard]] Get* remove(std::size_t index);
  [[nodiscard]] bool is_mine() const;

  BesideStore& store_;
  int owner_;
  std::uint32_t number_;
  int event_ = -1;
  int epoll_ = -1;
  Connection* watched_ = nullptr;
  std::vector<Flying> flying_;
  std::size_t most_;
};

}  // namespace farheap::store::beside
