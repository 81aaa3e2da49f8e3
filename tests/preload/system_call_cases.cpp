// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// System calls on memory that left, and descriptors.
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include "cases.hpp"

using namespace cases;

namespace {

constexpr std::size_t kBuffer = 16 * kMebibyte;

int scratch_file(int flags) {
  char name[] = "/var/tmp/preload-cases-XXXXXX";
  int file = mkstemp(name);
  CHECK(file >= 0);
  if (flags != 0) {
    close(file);
    file = open(name, O_RDWR | flags);
  }
  unlink(name);
  return file;
}

void* buffer(std::uint64_t seed) {
  void* at = aligned_alloc(kPage, kBuffer);
  fill(at, kBuffer, seed);
  return at;
}

// The whole file into pieces that lie apart, in one call. It stands at its start.
using ReadPieces = ssize_t (*)(int, const iovec*, int);
constexpr ReadPieces kReadPieces[] = {
    [](int file, const iovec* pieces, int count) { return readv(file, pieces, count); },
    [](int file, const iovec* pieces, int count) { return preadv(file, pieces, count, 0); },
    [](int file, const iovec* pieces, int count) { return preadv2(file, pieces, count, 0, 0); },
    [](int file, const iovec* pieces, int count) { return preadv2(file, pieces, count, -1, 0); }};

void through_a_file(int flags) {
  const int file = scratch_file(flags);
  if (file < 0 && errno == EINVAL) {
    fputs("NOT TESTED: the file system has no O_DIRECT\n", stderr);
    return;
  }
  CHECK(file >= 0);
  char* from = static_cast<char*>(buffer(1));
  char* to = static_cast<char*>(buffer(2));
  push_out();
  for (std::size_t done = 0; done < kBuffer; done += kMebibyte) {
    CHECK(pwrite(file, from + done, kMebibyte, static_cast<off_t>(done)) == static_cast<ssize_t>(kMebibyte));
  }
  std::vector<iovec> pieces;
  for (std::size_t done = 0; done < kBuffer; done += kBuffer / 64) pieces.push_back({to + done, kBuffer / 64});
  for (const ReadPieces read_pieces : kReadPieces) {
    fill(to, kBuffer, 2);
    push_out();
    CHECK(lseek(file, 0, SEEK_SET) == 0);
    CHECK(read_pieces(file, pieces.data(), 64) == static_cast<ssize_t>(kBuffer));
    CHECK_FILLED(to, kBuffer, 1);
  }
  push_out();
  CHECK_FILLED(to, kBuffer, 1);
  CHECK_FILLED(from, kBuffer, 1);
  close(file);
}

}  // namespace

CASE(file_input_and_output) { through_a_file(0); }
CASE(direct_input_and_output) { through_a_file(O_DIRECT); }

// Reads of devices in flight into pages whose turn to leave has come.
CASE(direct_reads_while_paging) {
  const int file = scratch_file(O_DIRECT);
  if (file < 0) {
    fputs("NOT TESTED: the file system has no O_DIRECT\n", stderr);
    return;
  }
  void* written = buffer(1);
  CHECK(pwrite(file, written, kBuffer, 0) == static_cast<ssize_t>(kBuffer));
  std::vector<std::thread> readers;
  for (int number = 0; number < 3; ++number) {
    readers.emplace_back([file, number] {
      void* into = buffer(50);
      for (int round = 0; round < 12; ++round) {
        memset(into, number + 1, kBuffer);
        CHECK(pread(file, into, kBuffer, 0) == static_cast<ssize_t>(kBuffer));
        CHECK_FILLED(into, kBuffer, 1);
      }
    });
  }
  for (auto& reader : readers) reader.join();
}

CASE(pipes_and_sockets) {
  for (bool socket : {false, true}) {
    int ends[2];
    CHECK((socket ? socketpair(AF_UNIX, SOCK_STREAM, 0, ends) : pipe(ends)) == 0);
    char* from = static_cast<char*>(buffer(3));
    char* to = static_cast<char*>(buffer(4));
    push_out();
    std::thread writer([&] {
      for (std::size_t done = 0; done < kBuffer;) {
        const ssize_t size = write(ends[1], from + done, kBuffer - done);
        CHECK(size > 0);
        done += static_cast<std::size_t>(size);
      }
    });
    for (std::size_t done = 0; done < kBuffer;) {
      const ssize_t size = read(ends[0], to + done, kBuffer - done);
      CHECK(size > 0);
      done += static_cast<std::size_t>(size);
    }
    writer.join();
    CHECK_FILLED(to, kBuffer, 3);
  }
}

// Pages given to a pipe without a copy are read later: they may leave, but what the pipe has stays.
CASE(pages_lent_to_a_pipe) {
  int ends[2];
  CHECK(pipe(ends) == 0);
  char* from = static_cast<char*>(buffer(5));
  const iovec piece{from, 16 * kPage};
  CHECK(vmsplice(ends[1], &piece, 1, 0) == static_cast<ssize_t>(16 * kPage));
  push_out();
  CHECK_FILLED(from, kBuffer, 5);
  char to[16 * kPage];
  CHECK(read(ends[0], to, sizeof to) == static_cast<ssize_t>(sizeof to));
  CHECK_FILLED(to, sizeof to, 5);
}

CASE(names_and_structures_far_away) {
  char* name = strdup("/etc/passwd");
  auto* state = static_cast<struct stat*>(malloc(sizeof(struct stat)));
  memset(state, 0, sizeof *state);
  push_out();
  CHECK(stat(name, state) == 0 && S_ISREG(state->st_mode));
  push_out();
  const int file = open(name, O_RDONLY);
  CHECK(file >= 0);
  push_out();
  CHECK(fstat(file, state) == 0 && state->st_size > 0);
  // A path that is in no page at all is still an error, not an end.
  errno = 0;
  CHECK(open(reinterpret_cast<const char*>(8), O_RDONLY) == -1 && errno == EFAULT);
}

namespace {

void works_on(std::uint64_t seed) {
  void* at = malloc(kLarge);
  CHECK(at != nullptr);
  fill(at, kLarge, seed);
  CHECK_FILLED(at, kLarge, seed);
  free(at);
}

template <class Close>
void closing(Close close_all) {
  void* at = malloc(48 * kMebibyte);
  fill(at, 48 * kMebibyte, 1);
  push_out();
  const int mine = open("/dev/null", O_RDONLY);
  CHECK(mine >= 3);
  close_all();
  CHECK(fcntl(mine, F_GETFD) == -1);
  CHECK_FILLED(at, 48 * kMebibyte, 1);
  works_on(2);
  CHECK(open("/dev/null", O_RDONLY) == 3);  // the lowest number is free
  const int child = fork();
  if (child == 0) {
    CHECK_FILLED(at, 48 * kMebibyte, 1);
    _exit(0);
  }
  CHECK(status_of(child) == 0);
}

}  // namespace

CASE(closes_all_one_by_one) {
  closing([] {
    for (int file = 3; file < 4096; ++file) close(file);
  });
}
CASE(closes_all_in_a_range) {
  closing([] { CHECK(close_range(3, ~0u, 0) == 0); });
}
CASE(closes_all_from) {
  closing([] { closefrom(3); });
}
CASE(closes_all_before_paging) {
  for (int file = 3; file < 4096; ++file) close(file);
  works_on(1);
  closefrom(3);
  works_on(2);
}
CASE(marks_all_close_on_exec) {
  closing([] {
    CHECK(close_range(3, ~0u, CLOSE_RANGE_CLOEXEC) == 0);
    closefrom(3);
  });
}
CASE(copies_over_all_descriptors) {
  const int null = open("/dev/null", O_RDWR);
  push_out();
  for (int file = null + 1; file < 1000; ++file) dup2(null, file);
  works_on(1);
}

CASE(out_of_descriptors) {
  void* at = malloc(48 * kMebibyte);
  fill(at, 48 * kMebibyte, 1);
  std::vector<int> files;
  for (int file; (file = open("/dev/null", O_RDONLY)) >= 0;) files.push_back(file);
  CHECK(errno == EMFILE);
  CHECK_FILLED(at, 48 * kMebibyte, 1);
  fill(at, 48 * kMebibyte, 2);
  works_on(3);
  const int child = fork();
  if (child == 0) {
    CHECK_FILLED(at, 48 * kMebibyte, 2);
    fill(at, 48 * kMebibyte, 4);
    CHECK_FILLED(at, 48 * kMebibyte, 4);
    _exit(0);
  }
  CHECK_FILLED(at, 48 * kMebibyte, 2);
  fill(at, 48 * kMebibyte, 5);
  CHECK_FILLED(at, 48 * kMebibyte, 5);
  CHECK(status_of(child) == 0);
  for (int file : files) close(file);
}

CASE(few_descriptors) {
  const rlimit few{64, 64};
  CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
  works_on(1);
  const int child = fork();
  if (child == 0) {
    works_on(2);
    _exit(0);
  }
  CHECK(status_of(child) == 0);
}

// Locked pages cannot leave; the program goes on, over its budget.
CASE(locks_its_memory) {
  char* at = static_cast<char*>(aligned_alloc(kPage, 24 * kMebibyte));
  fill(at, 24 * kMebibyte, 1);
  CHECK(mlock(at + 4 * kMebibyte, 4 * kMebibyte) == 0);
  push_out();
  CHECK_FILLED(at, 24 * kMebibyte, 1);
  fill(at, 24 * kMebibyte, 2);
  push_out();
  CHECK_FILLED(at, 24 * kMebibyte, 2);
  CHECK(munlock(at + 4 * kMebibyte, 4 * kMebibyte) == 0);
  push_out();
  CHECK_FILLED(at, 24 * kMebibyte, 2);
}

CASE(locks_all_that_is_there) {
  char* at = static_cast<char*>(malloc(8 * kMebibyte));
  fill(at, 8 * kMebibyte, 1);
  rlimit limit{};
  CHECK(getrlimit(RLIMIT_MEMLOCK, &limit) == 0);
  const int flags = limit.rlim_cur > 2 * kLarge ? MCL_CURRENT | MCL_FUTURE : MCL_CURRENT;
  if (mlockall(flags) != 0) fputs("NOT TESTED: RLIMIT_MEMLOCK is too low for mlockall\n", stderr);
  char* more = static_cast<char*>(malloc(40 * kMebibyte));
  fill(more, 40 * kMebibyte, 2);
  CHECK_FILLED(at, 8 * kMebibyte, 1);
  CHECK_FILLED(more, 40 * kMebibyte, 2);
  free(more);
  more = static_cast<char*>(calloc(1, 40 * kMebibyte));
  CHECK(all_zero(more, 40 * kMebibyte));
  fill(more, 40 * kMebibyte, 3);
  CHECK(munlockall() == 0);
  push_out();
  CHECK_FILLED(at, 8 * kMebibyte, 1);
  CHECK_FILLED(more, 40 * kMebibyte, 3);
}
