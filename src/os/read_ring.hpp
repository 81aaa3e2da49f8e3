// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads that one thread has in flight and asks after, instead of waiting for each: answers come in any order.
//
// Thread-safety: one thread at a time; another may go on with the ring when nothing is in flight.
#pragma once

#include <memory>

#include "os/io_ring.hpp"

namespace farheap::os {

class ReadRing {
 public:
  // nullptr where there is no io_uring.
  [[nodiscard]] static std::unique_ptr<ReadRing> make(unsigned most_in_flight);
  virtual ~ReadRing() = default;

  // `io` must stay where it is until take() returns it. False: there is no room, or the kernel refuses; `io` is not in
  // flight then.
  [[nodiscard]] virtual bool begin(IoRequest& io) = 0;
  // One that is answered, done as run_io() leaves it; nullptr: none yet.
  [[nodiscard]] virtual IoRequest* take() = 0;
  // Readable when an answer is there.
  [[nodiscard]] virtual int descriptor() const = 0;
};

}  // namespace farheap::os
