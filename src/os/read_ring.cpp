// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "os/read_ring.hpp"

#ifdef FARHEAP_HAVE_LIBURING
#include "os/ring_setup.hpp"
#endif

namespace farheap::os {

#ifdef FARHEAP_HAVE_LIBURING

namespace {

class UringReads final : public ReadRing {
 public:
  explicit UringReads(const io_uring& ring) : ring_(ring) {}
  ~UringReads() override { close_ring(ring_, born_); }
  UringReads(const UringReads&) = delete;
  UringReads& operator=(const UringReads&) = delete;

  bool begin(IoRequest& io) override {
    io_uring_sqe* entry = io_uring_get_sqe(&ring_);
    if (entry == nullptr) return false;
    io_uring_prep_read(entry, io.file, io.data, static_cast<unsigned>(io.bytes), io.offset);
    io_uring_sqe_set_data(entry, &io);
    io.done = 0;
    io.error = 0;
    // An entry that the kernel did not take stays in the queue, and goes with the next look for an answer.
    (void)io_uring_submit(&ring_);
    return true;
  }

  IoRequest* take() override {
    if (io_uring_sq_ready(&ring_) != 0) (void)io_uring_submit(&ring_);
    io_uring_cqe* answer = nullptr;
    if (io_uring_peek_cqe(&ring_, &answer) != 0) return nullptr;
    auto* io = static_cast<IoRequest*>(io_uring_cqe_get_data(answer));
    if (answer->res > 0) io->done = static_cast<std::size_t>(answer->res);
    io_uring_cqe_seen(&ring_, answer);
    if (io->done < io->bytes) finish_plainly(*io);
    return io;
  }

  int descriptor() const override { return ring_.ring_fd; }

 private:
  io_uring ring_;
  const unsigned born_ = fork_generation();
};

}  // namespace

std::unique_ptr<ReadRing> ReadRing::make(unsigned most_in_flight) {
  io_uring ring{};
  if (open_ring(most_in_flight, ring) != 0) return nullptr;
  return std::make_unique<UringReads>(ring);
}

#else

std::unique_ptr<ReadRing> ReadRing::make(unsigned) { return nullptr; }

#endif

}  // namespace farheap::os
