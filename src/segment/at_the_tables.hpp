// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// While it lives, the calling thread works on the pager's tables or the segment's books. No signal may come in
// between: its handler could touch a page that left, and wait for a lock that this thread holds.
#pragma once

#include <signal.h>

#include "base/inside_runtime.hpp"
#include "base/mutex.hpp"

namespace farheap::segment {

class AtTheTables {
 public:
  AtTheTables() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~AtTheTables() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  AtTheTables(const AtTheTables&) = delete;
  AtTheTables& operator=(const AtTheTables&) = delete;

 private:
  base::InsideRuntime inside_;
  sigset_t before_;
};

// The same with the lock of the books. Who is stopped by a signal (as garbage collectors do) never holds it: the one
// that stopped him may be about to map memory.
class FARHEAP_SCOPED_CAPABILITY AtTheBooks {
 public:
  explicit AtTheBooks(base::Mutex& mutex) FARHEAP_ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~AtTheBooks() FARHEAP_RELEASE() { mutex_.unlock(); }
  AtTheBooks(const AtTheBooks&) = delete;
  AtTheBooks& operator=(const AtTheBooks&) = delete;

 private:
  AtTheTables working_;
  base::Mutex& mutex_;
};

}  // namespace farheap::segment
