// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// farheap-engines: started by a program's store (store/beside/process.hpp), never by hand; descriptor 3 is the socket.
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>

#include "engines/engine_table.hpp"
#include "engines/process/server.hpp"

namespace {

constexpr int kSocket = 3;

// Engines over many files open many.
void allow_many_files() {
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
}

}  // namespace

int main() {
  struct stat status{};
  if (fstat(kSocket, &status) != 0 || !S_ISSOCK(status.st_mode)) {
    std::fputs("farheap-engines: Farheap starts this by itself, for stores like rocksdb:DIR\n", stderr);
    return 2;
  }
  prctl(PR_SET_DUMPABLE, 0);  // it gets passwords: no core, and nobody but root looks into it
  fcntl(kSocket, F_SETFD, FD_CLOEXEC);
  signal(SIGPIPE, SIG_IGN);
  signal(SIGHUP, SIG_IGN);
  signal(SIGINT, SIG_IGN);
  allow_many_files();
  mallopt(M_ARENA_MAX, 2);        // what is over in one arena is of no use to the threads of another
  if (chdir("/") != 0) return 1;  // so that no file system stays in use
  farheap::engines::serve(kSocket, farheap::engines::engine_table());
  return 0;
}
