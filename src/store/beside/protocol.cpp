// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "store/beside/protocol.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/futex.hpp"

namespace farheap::store::beside {

// ---- what messages carry

std::string encode(Message kind, const Opening& opening) {
  Writer out(kind);
  out.number(kFormat);
  out.text(opening.scheme);
  out.text(opening.place);
  out.text(opening.parameters);
  out.number(opening.options.block_bytes);
  out.number(opening.options.lifetime == Lifetime::kKeep ? 1 : 0);
  out.text(opening.options.password_file);
  return out.bytes();
}

std::optional<Opening> read_opening(Reader& from) {
  if (from.number() != kFormat) return {};
  Opening opening;
  opening.scheme = from.text();
  opening.place = from.text();
  opening.parameters = from.text();
  opening.options.block_bytes = from.number();
  opening.options.lifetime = from.number() != 0 ? Lifetime::kKeep : Lifetime::kScratch;
  opening.options.password_file = from.text();
  if (!from.is_whole()) return {};
  return opening;
}

std::string encode(const Opened& opened) {
  Writer out(Message::kDone);
  out.text(opened.description);
  out.number(opened.capabilities);
  for (const std::size_t one :
       {opened.limits.block_bytes, opened.limits.largest_value_bytes, opened.limits.largest_batch_bytes,
        opened.limits.largest_batch_operations, opened.limits.best_run_bytes}) {
    out.number(one);
  }
  return out.bytes();
}

std::optional<Opened> read_opened(Reader& from) {
  Opened opened;
  opened.description = from.text();
  opened.capabilities = static_cast<Capabilities>(from.number());
  for (std::size_t* one :
       {&opened.limits.block_bytes, &opened.limits.largest_value_bytes, &opened.limits.largest_batch_bytes,
        &opened.limits.largest_batch_operations, &opened.limits.best_run_bytes}) {
    *one = from.number();
  }
  if (!from.is_whole()) return {};
  return opened;
}

std::string encode(const StoreListing& listing) {
  Writer out(Message::kListing);
  out.text(listing.uri);
  out.number(listing.block_bytes);
  out.number(listing.lifetime == Lifetime::kKeep ? 1 : 0);
  out.number(listing.in_use ? 1 : 0);
  return out.bytes();
}

std::optional<StoreListing> read_listing(Reader& from) {
  StoreListing listing;
  listing.uri = from.text();
  listing.block_bytes = from.number();
  listing.lifetime = from.number() != 0 ? Lifetime::kKeep : Lifetime::kScratch;
  listing.in_use = from.number() != 0;
  if (!from.is_whole()) return {};
  return listing;
}

std::string encode(std::span<const BlockRun> runs, std::size_t most_bytes) {
  Writer out;
  for (const BlockRun& run : runs.first(std::min(runs.size(), most_bytes / (2 * sizeof(std::uint64_t))))) {
    out.number(run.first);
    out.number(run.count);
  }
  return out.bytes();
}

std::string encode(std::span<const NamedCounter> counters, std::size_t most_bytes) {
  Writer out;
  for (const NamedCounter& counter : counters) {
    if (out.bytes().size() + counter.name.size() + 2 * sizeof(std::uint64_t) > most_bytes) break;
    out.text(counter.name);
    out.number(static_cast<std::uint64_t>(counter.value));
  }
  return out.bytes();
}

std::optional<std::vector<BlockRun>> read_runs(std::string_view bytes) {
  Reader from(bytes);
  std::vector<BlockRun> runs;
  while (!from.is_empty()) {
    const std::uint64_t first = from.number();
    runs.push_back({first, from.number()});
  }
  if (!from.is_whole()) return {};
  return runs;
}

std::optional<std::vector<NamedCounter>> read_counters(std::string_view bytes) {
  Reader from(bytes);
  std::vector<NamedCounter> counters;
  while (!from.is_empty()) {
    auto name = from.text();
    counters.push_back({std::move(name), static_cast<std::int64_t>(from.number())});
  }
  if (!from.is_whole()) return {};
  return counters;
}

// Cut so that all of it fits into a slot's text: reasons come from servers, and may be long.
std::string encode(const Error& error) {
  constexpr std::size_t kMost = 900;
  Writer out(Message::kFailed);
  out.number(static_cast<std::uint64_t>(error.code));
  for (const std::string* one : {&error.what, &error.subject, &error.why, &error.remedy}) {
    out.text(std::string_view(*one).substr(0, kMost));
  }
  static_assert(6 * sizeof(std::uint64_t) + 4 * kMost <= kTextBytes);
  return out.bytes();
}

std::optional<Error> read_error(Reader& from) {
  Error error{};
  const std::uint64_t code = from.number();
  for (std::string* one : {&error.what, &error.subject, &error.why, &error.remedy}) *one = from.text();
  if (!from.is_whole() || code > static_cast<std::uint64_t>(ErrorCode::kIo)) return {};
  error.code = static_cast<ErrorCode>(code);
  return error;
}

Limits narrowed(Limits limits, std::size_t data_bytes) {
  const std::size_t whole = data_bytes / limits.block_bytes * limits.block_bytes;
  limits.largest_value_bytes = std::min(limits.largest_value_bytes, whole);
  limits.largest_batch_bytes = std::min(limits.largest_batch_bytes, whole);
  limits.largest_batch_operations = std::min(limits.largest_batch_operations, kMostEntries);
  limits.best_run_bytes = std::min(limits.best_run_bytes, limits.largest_value_bytes);
  return limits;
}

// ---- system calls

bool send_message(int socket, std::string_view bytes, int descriptor) {
  iovec part{const_cast<char*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (descriptor >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
  }
  ssize_t sent = 0;
  do {
    sent = sendmsg(socket, &message, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(bytes.size());
}

std::optional<Received> receive_message(int socket) {
  Received received;
  received.bytes.resize(kMostMessageBytes);
  iovec part{received.bytes.data(), received.bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t got = 0;
  do {
    got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  if (got <= 0) return {};
  received.bytes.resize(static_cast<std::size_t>(got));
  const cmsghdr* const header = CMSG_FIRSTHDR(&message);
  if (header != nullptr && header->cmsg_type == SCM_RIGHTS && header->cmsg_len == CMSG_LEN(sizeof(int))) {
    std::memcpy(&received.descriptor, CMSG_DATA(header), sizeof(int));
  }
  return received;
}

void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t seen, int milliseconds) {
  if (milliseconds < 0) return base::futex_wait(word, seen, base::Reach::kShared);
  const auto moment = base::Clock::now() + std::chrono::milliseconds(milliseconds);
  base::futex_wait_until(word, seen, moment, base::Reach::kShared);
}

void futex_wake(std::atomic<std::uint32_t>& word, int how_many) {
  base::futex_wake(word, how_many, base::Reach::kShared);
}

}  // namespace farheap::store::beside
