// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Input and output whose buffers have left: in vectors, through pipes and sockets, by sendfile and splice.
#include <fcntl.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <thread>

#include "guests.hpp"

using namespace guests;

namespace {

constexpr std::size_t kPiece = Pieces::kPiece, kVector = 16;

// Pieces that lie far from each other, from `first` on.
void spread(const Pieces& data, std::size_t first, iovec (&vector)[kVector]) {
  for (std::size_t i = 0; i < kVector; ++i) vector[i] = {data.piece((first + i * 37) % data.count()), kPiece};
}

void skip(iovec*& vector, std::size_t& count, std::size_t bytes) {
  while (count > 0 && bytes >= vector->iov_len) bytes -= vector->iov_len, ++vector, --count;
  if (bytes > 0) vector->iov_base = static_cast<char*>(vector->iov_base) + bytes, vector->iov_len -= bytes;
}

// All of it, by as many calls as it takes.
template <class Call>
void transfer(iovec (&given)[kVector], Call call) {
  iovec* vector = given;
  std::size_t count = kVector;
  while (count > 0) {
    const ssize_t size = call(vector, count);
    CHECK(size > 0);
    skip(vector, count, static_cast<std::size_t>(size));
  }
}

ssize_t message(int socket, iovec* vector, std::size_t count, bool sends) {
  msghdr header{};
  header.msg_iov = vector;
  header.msg_iovlen = count;
  return sends ? sendmsg(socket, &header, 0) : recvmsg(socket, &header, 0);
}

}  // namespace

CASE(vectors_to_files_and_back) {
  const Pieces data(data_bytes() / 2, 28), copy(data_bytes() / 2, 5000);
  const int file = nameless_file();
  std::uint64_t sum = 0;
  for (std::size_t first = 0; first < data.count(); first += kVector) {
    iovec vector[kVector];
    spread(data, first, vector);
    CHECK(lseek(file, 0, SEEK_SET) == 0);
    transfer(vector, [&](iovec* at, std::size_t count) { return writev(file, at, static_cast<int>(count)); });
    spread(copy, first, vector);
    off_t place = 0;
    transfer(vector, [&](iovec* at, std::size_t count) {
      const ssize_t size = preadv(file, at, static_cast<int>(count), place);
      place += size;
      return size;
    });
    for (std::size_t i = 0; i < kVector; ++i) {
      const std::size_t number = (first + i * 37) % data.count();
      CHECK(memcmp(copy.piece(number), data.piece(number), kPiece) == 0);
      sum = digest(copy.piece(number), kPiece, sum);
    }
  }
  data.check_all();
  print_digest("copies", sum);
}

// A thread sends everything in messages of vectors, another receives it into pages that left.
CASE(messages_between_threads) {
  const Pieces data(data_bytes() / 2, 28), copy(data_bytes() / 2, 5000);
  int ends[2];
  CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
  const auto all = [&](const Pieces& pieces, int socket, bool sends) {
    for (std::size_t first = 0; first < pieces.count(); first += kVector) {
      iovec vector[kVector];
      spread(pieces, first, vector);
      transfer(vector, [&](iovec* at, std::size_t count) { return message(socket, at, count, sends); });
    }
  };
  std::thread sender([&] { all(data, ends[0], true); });
  all(copy, ends[1], false);
  sender.join();
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < data.count(); ++i) {
    CHECK(memcmp(copy.piece(i), data.piece(i), kPiece) == 0);
    sum = digest(copy.piece(i), kPiece, sum);
  }
  print_digest("copies", sum);
}

// From the heap to a file, by sendfile to another, by splice through a pipe to a third, and back.
CASE(sendfile_splice_and_copy) {
  const Pieces data(data_bytes(), 29);
  const int files[3] = {nameless_file(), nameless_file(), nameless_file()};
  int pipe_ends[2];
  CHECK(pipe(pipe_ends) == 0);
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < data.count(); ++i) {
    const auto place = static_cast<off_t>(i * kPiece);
    CHECK(pwrite(files[0], data.piece(i), kPiece, place) == static_cast<ssize_t>(kPiece));
    off_t from = place;
    CHECK(sendfile(files[1], files[0], &from, kPiece) == static_cast<ssize_t>(kPiece));
    off64_t source = place, target = place;
    for (std::size_t left = kPiece; left > 0;) {
      const ssize_t in = splice(files[1], &source, pipe_ends[1], nullptr, left, 0);
      CHECK(in > 0);
      for (ssize_t out = 0; out < in;) {
        const ssize_t size = splice(pipe_ends[0], nullptr, files[2], &target, static_cast<std::size_t>(in - out), 0);
        CHECK(size > 0);
        out += size;
      }
      left -= static_cast<std::size_t>(in);
    }
    const std::size_t other = (i + data.count() / 2) % data.count();
    if (other < i)
      CHECK(pread(files[2], data.piece(other), kPiece, static_cast<off_t>(other * kPiece)) ==
            static_cast<ssize_t>(kPiece));
  }
  data.check_all();
  for (std::size_t i = 0; i < data.count(); ++i) sum = digest(data.piece(i), kPiece, sum);
  for (int file : files) CHECK(close(file) == 0);
  print_digest("bytes", sum);
}
