// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "store/beside/connection.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <bit>
#include <cerrno>

#include "base/inside_runtime.hpp"
#include "base/mutex.hpp"
#include "os/own_descriptors.hpp"

namespace farheap::store::beside {
namespace {

constexpr char kEngines[] = "farheap-engines";
// How often one who sleeps for an answer looks whether the process still is there.
constexpr int kLookAfterMs = 50;

Error ended_error() {
  return {ErrorCode::kUnknown, "no answer", kEngines, "the process has ended",
          "look in the system's log for what ended it"};
}
Error foreign_error() {
  return {ErrorCode::kIo, "no answer", kEngines, "what came is not of its form",
          "use the farheap-engines that was installed with this Farheap"};
}

}  // namespace

Connection::Connection(int socket) : socket_(socket), owner_(getpid()) {}

Connection::~Connection() {
  os::release_descriptor(socket_);
  if (memory_.address() == nullptr || owner_ != getpid()) return;  // a forked child has no mapping of it
  base::InsideRuntime inside;
  munmap(memory_.address(), memory_.bytes());
}

Result<Received> Connection::exchange(std::string_view message, int descriptor) {
  if (!send_message(socket_, message, descriptor)) return fail(ended_error());
  auto answer = receive_message(socket_);
  if (!answer) return fail(ended_error());
  if (answer->descriptor >= 0) os::release_descriptor(answer->descriptor);
  return std::move(*answer);
}

Result<std::string> Connection::ask(std::string_view message, int descriptor) {
  base::LockGuard lock(messages_);
  auto answer = exchange(message, descriptor);
  if (!answer) return fail(std::move(answer.error()));
  Reader reader(answer->bytes);
  const auto kind = static_cast<Message>(reader.number());
  if (kind == Message::kDone) return answer->bytes.substr(sizeof(std::uint64_t));
  auto error = kind == Message::kFailed ? read_error(reader) : std::nullopt;
  return fail(error ? std::move(*error) : foreign_error());
}

Result<std::vector<StoreListing>> Connection::ask_for_listings(std::string_view message) {
  base::LockGuard lock(messages_);
  std::vector<StoreListing> all;
  std::size_t bytes = 0;
  auto answer = exchange(message, -1);
  while (answer) {
    if ((bytes += answer->bytes.size()) > kMostListedBytes) return fail(foreign_error());
    Reader reader(answer->bytes);
    const auto kind = static_cast<Message>(reader.number());
    if (kind == Message::kDone) return all;
    if (kind != Message::kListing) {
      auto error = kind == Message::kFailed ? read_error(reader) : std::nullopt;
      return fail(error ? std::move(*error) : foreign_error());
    }
    auto listing = read_listing(reader);
    if (!listing) return fail(foreign_error());
    all.push_back(std::move(*listing));
    auto next = receive_message(socket_);
    if (!next) return fail(ended_error());
    if (next->descriptor >= 0) os::release_descriptor(next->descriptor);
    answer = std::move(*next);
  }
  return fail(std::move(answer.error()));
}

Status Connection::attach() {
  constexpr char kWhat[] = "cannot share memory with farheap-engines";
  const int file = memfd_create("farheap-engines", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  const auto bytes = shared_bytes(kDataBytes);
  if (file < 0 || ftruncate(file, static_cast<off_t>(bytes)) != 0) {
    const int why = errno;
    os::release_descriptor(file);
    return fail(errno_error(why, kWhat, "memfd"));
  }
  // A mapping of what can be cut off could end the other side.
  fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
  void* at = MAP_FAILED;
  {
    base::InsideRuntime inside;
    at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (at != MAP_FAILED) madvise(at, bytes, MADV_DONTFORK), madvise(at, bytes, MADV_DONTDUMP);
  }
  if (at == MAP_FAILED) {
    const int why = errno;
    os::release_descriptor(file);
    return fail(errno_error(why, kWhat, "memfd"));
  }
  memory_ = SharedMemory(static_cast<std::byte*>(at), kDataBytes);
  Writer message(Message::kAttach);
  message.number(kFormat);
  message.number(kSlots);
  message.number(kDataBytes);
  auto done = ask(message.bytes(), file);
  os::release_descriptor(file);
  if (!done) return fail(std::move(done.error()));
  return {};
}

Result<std::unique_ptr<Connection>> Connection::join(const Connection& other) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return fail(errno_error(errno, "cannot reach farheap-engines", "a pair of sockets"));
  }
  auto mine = std::make_unique<Connection>(os::keep_descriptor(ends[0]));
  const bool sent = send_message(other.socket_, Writer(Message::kJoin).bytes(), ends[1]);
  os::release_descriptor(ends[1]);
  if (!sent) return fail(ended_error());
  if (auto attached = mine->attach(); !attached) return fail(std::move(attached.error()));
  return mine;
}

void Connection::leave() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return;
  const bool sent = send_message(socket_, Writer(Message::kLeave).bytes(), ends[1]);
  os::release_descriptor(ends[1]);
  os::release_descriptor(socket_);
  socket_ = -1;
  pollfd closed{ends[0], POLLIN, 0};
  while (sent && poll(&closed, 1, -1) < 0 && errno == EINTR) {
  }
  os::release_descriptor(ends[0]);
}

// ---- slots

// The lowest that is free: so the same few pages of shared memory are used again and again.
std::uint32_t Connection::take_slot() {
  std::uint32_t seen = free_.load(std::memory_order_relaxed);
  for (;;) {
    if (seen == 0) {
      futex_wait(free_, 0, kLookAfterMs);
      seen = free_.load(std::memory_order_relaxed);
    } else if (free_.compare_exchange_weak(seen, seen & (seen - 1), std::memory_order_acquire)) {
      return static_cast<std::uint32_t>(std::countr_zero(seen));
    }
  }
}

std::optional<std::uint32_t> Connection::take_spare_slot() {
  std::uint32_t seen = free_.load(std::memory_order_relaxed);
  while (std::popcount(seen) > static_cast<int>(kSlots / 2)) {
    if (free_.compare_exchange_weak(seen, seen & (seen - 1), std::memory_order_acquire)) {
      return static_cast<std::uint32_t>(std::countr_zero(seen));
    }
  }
  return {};
}

void Connection::give_back(std::uint32_t index) {
  slot(index).state.store(static_cast<std::uint32_t>(SlotState::kFree), std::memory_order_relaxed);
  if (free_.fetch_or(std::uint32_t{1} << index, std::memory_order_release) == 0) futex_wake(free_, INT32_MAX);
}

// A worker says that it falls asleep before it looks for the last time, and we ring before we ask who sleeps: one of
// the two sees the other.
void Connection::submit(std::uint32_t index) {
  slot(index).waited.store(0, std::memory_order_relaxed);
  slot(index).state.store(static_cast<std::uint32_t>(SlotState::kAsked), std::memory_order_release);
  SharedHead& head = memory_.head();
  head.doorbell.fetch_add(1);
  if (head.asleep.load() != 0 && head.looking.load() == 0) futex_wake(head.doorbell, 1);
}

bool Connection::wait(std::uint32_t index) {
  const std::int64_t start = Spin::now_ns();
  const bool answered = spin_.look([&] { return is_answered(index); }) || sleep_until_answered(index);
  spin_.learn(Spin::now_ns() - start);
  return answered;
}

bool Connection::sleep_until_answered(std::uint32_t index) {
  Slot& one = slot(index);
  one.waited.store(1);
  for (;;) {
    const std::uint32_t seen = one.state.load();
    if (seen == static_cast<std::uint32_t>(SlotState::kAnswered)) return true;
    futex_wait(one.state, seen, kLookAfterMs);
    if (!is_answered(index) && check_ended()) return is_answered(index);
  }
}

bool Connection::check_ended() {
  if (has_ended()) return true;
  pollfd asked{socket_, POLLRDHUP, 0};
  if (poll(&asked, 1, 0) > 0 && (asked.revents & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL)) != 0) {
    ended_.store(true, std::memory_order_release);
  }
  return has_ended();
}

}  // namespace farheap::store::beside
