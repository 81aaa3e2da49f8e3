// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// farheap-engines with engines that need no library of their own, as tests want it.
#include <fcntl.h>

#include "engines/process/server.hpp"

namespace {

using namespace farheap;

constexpr engines::Engine kEngines[] = {
    {"mem", store::open_mem},
    {"file", store::open_file},
#ifdef FARHEAP_HAVE_LMDB
    {"lmdb", store::open_lmdb},
#endif
};

}  // namespace

int main() {
  fcntl(3, F_SETFD, FD_CLOEXEC);
  engines::serve(3, kEngines);
  return 0;
}
