// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "store/contract_trial.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <thread>
#include <utility>

#include "base/mutex.hpp"
#include "store/batch.hpp"

namespace farheap::store {
namespace {

constexpr std::size_t kMostFaults = 20;  // of one check: more say nothing new

std::string read_all(int descriptor) {
  std::string text;
  char buffer[4096];
  for (;;) {
    const ssize_t got = read(descriptor, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return text;
    text.append(buffer, static_cast<std::size_t>(got));
  }
}

void write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t put = write(descriptor, text.data(), text.size());
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(put));
  }
}

void repeat(std::span<std::byte> into, std::uint64_t word) {
  std::memcpy(into.data(), &word, sizeof word);
  for (std::size_t done = sizeof word; done < into.size(); done *= 2) {
    std::memcpy(into.data() + done, into.data(), std::min(done, into.size() - done));
  }
}

}  // namespace

Bytes make_blocks(std::uint64_t block, std::size_t count, std::size_t block_bytes, std::uint64_t tint) {
  Bytes bytes(count * block_bytes);
  for (std::size_t i = 0; i < count; ++i) {
    const auto here = std::span(bytes).subspan(i * block_bytes, block_bytes);
    const std::uint64_t of_block = (block + i + 1) * 0x9E3779B97F4A7C15u ^ tint * 0xC2B2AE3D27D4EB4Fu;
    for (std::size_t at = 0; at < block_bytes / 2; at += 8) {
      std::uint64_t word = of_block + at;
      word ^= word >> 29, word *= 0xBF58476D1CE4E5B9u, word ^= word >> 32;
      std::memcpy(here.data() + at, &word, 8);
    }
    repeat(here.subspan(block_bytes / 2), of_block);
  }
  return bytes;
}

bool same_bytes(std::span<const std::byte> one, std::span<const std::byte> other) {
  return one.size() == other.size() && (one.empty() || std::memcmp(one.data(), other.data(), one.size()) == 0);
}

std::uint64_t number_in(const Bytes& block) {
  std::uint64_t number = 0;
  std::memcpy(&number, block.data(), sizeof number);
  return number;
}

void set_number(Bytes& block, std::uint64_t number) { std::memcpy(block.data(), &number, sizeof number); }

std::string_view name_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::kPending: return "not carried out";
    case Outcome::kOk: return "done";
    case Outcome::kSame: return "same";
    case Outcome::kAbsent: return "absent";
    case Outcome::kConflict: return "conflict";
    case Outcome::kUnknown: return "unknown";
    case Outcome::kCorrupt: return "corrupt";
    case Outcome::kNoSpace: return "no space";
    case Outcome::kFailed: return "failed";
  }
  return "none that there is";
}

// ---- Client

template <class Entry>
void Client::each_part(std::span<Entry> batch, Status (Store::*call)(std::span<Entry>)) {
  while (!batch.empty()) {
    std::size_t count = 0, bytes = 0;
    while (count < batch.size() && count < limits_.largest_batch_operations &&
           (count == 0 || bytes + bytes_of(batch[count]) <= limits_.largest_batch_bytes)) {
      bytes += bytes_of(batch[count++]);
    }
    trial_.expect((store_.*call)(batch.first(count)),
                  fmt::format("a batch of {} from block {}", count, batch[0].block));
    batch = batch.subspan(count);
  }
}

void Client::put(std::span<Put> batch) {
  each_part(batch, &Store::put);
  for (const auto& entry : batch) {
    const bool ok = entry.outcome == Outcome::kOk || (entry.expected && entry.outcome == Outcome::kConflict);
    trial_.expect(ok, "put of block {}: {}", entry.block, name_of(entry.outcome));
  }
}

void Client::get(std::span<Get> batch) {
  each_part(batch, &Store::get);
  for (const auto& entry : batch) {
    const bool ok = entry.outcome == Outcome::kOk || entry.outcome == Outcome::kAbsent ||
                    (entry.known != 0 && entry.outcome == Outcome::kSame);
    trial_.expect(ok, "get of block {}: {}", entry.block, name_of(entry.outcome));
  }
}

Put Client::put(std::uint64_t block, const Bytes& bytes, std::optional<Version> expected) {
  std::vector<Put> parts;
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t length = std::min(limits_.largest_value_bytes, bytes.size() - at);
    parts.push_back({.block = block + at / limits_.block_bytes, .from = {bytes.data() + at, length}});
    at += length;
  }
  parts.front().expected = expected;
  put(parts);
  return parts.front();
}

Get Client::get(std::uint64_t block, Bytes& into, Version known) {
  std::vector<Get> parts;
  for (std::size_t at = 0; at < into.size();) {
    const std::size_t length = std::min(limits_.largest_value_bytes, into.size() - at);
    parts.push_back({.block = block + at / limits_.block_bytes, .into = {into.data() + at, length}});
    at += length;
  }
  parts.front().known = known;
  get(parts);
  for (const auto& part : parts) {
    if (part.outcome == Outcome::kAbsent) parts.front().outcome = Outcome::kAbsent;
  }
  return parts.front();
}

bool Client::holds(std::uint64_t block, std::size_t count, std::uint64_t tint) {
  Bytes into(count * limits_.block_bytes, std::byte{0xEE});
  const auto outcome = get(block, into).outcome;
  if (!trial_.expect(outcome == Outcome::kOk, "blocks {} + {}: {}, not there", block, count, name_of(outcome))) {
    return false;
  }
  return trial_.expect(same_bytes(into, blocks(block, count, tint)), "blocks {} + {} are not what was put", block,
                       count);
}

bool Client::lacks(std::uint64_t block, std::size_t count) {
  Bytes into(count * limits_.block_bytes);
  const auto outcome = get(block, into).outcome;
  return trial_.expect(outcome == Outcome::kAbsent, "blocks {} + {}: {}, not absent", block, count, name_of(outcome));
}

void Client::erase(std::uint64_t first, std::uint64_t count) { trial_.expect(store_.erase(first, count), "erase"); }

std::int64_t Client::add(std::string_view counter, std::int64_t delta) {
  const auto sum = store_.add(counter, delta);
  return trial_.expect(sum, "add") ? *sum : 0;
}

std::uint64_t Client::used_blocks() {
  const auto usage = store_.usage();
  return trial_.expect(usage, "usage") ? usage->blocks : 0;
}

// ---- Trial

std::unique_ptr<Store> Trial::open() {
  auto opened = subject_.open(subject_.options);
  if (!expect(opened, "open")) return nullptr;
  return std::move(*opened);
}

bool Trial::reopen() {
  store_.reset();
  store_ = open();
  return store_ != nullptr;
}

bool Trial::needs(Capability one, std::string_view in_words) {
  if (!can(one)) not_for_this_store(std::string(in_words));
  return can(one);
}

void Trial::note(std::string words) {
  const base::LockGuard lock(mutex_);
  if (faults_.size() < kMostFaults) faults_.push_back(std::move(words));
}

std::vector<std::string> Trial::take_faults() {
  const base::LockGuard lock(mutex_);
  return std::exchange(faults_, {});
}

ContractAnswer Trial::answer() const {
  const base::LockGuard lock(mutex_);
  if (!faults_.empty()) return {Verdict::kBroken, faults_};
  if (!why_not_.empty()) return {Verdict::kNotForThisStore, {why_not_}};
  return {};
}

void Trial::run_threads(int count, const std::function<void(int, Client&)>& work) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) {
    threads.emplace_back([this, &work, i] {
      Client mine = client();
      work(i, mine);
    });
  }
  for (auto& thread : threads) thread.join();
}

void Trial::run_clients(int count, const std::function<void(int, Client&)>& work) {
  const auto with_own_handle = [&](int i) {
    const auto handle = open();
    if (handle == nullptr) return;
    Client mine(*this, *handle);
    work(i, mine);
  };
  if (!subject_.may_fork) {
    std::vector<std::thread> threads;
    for (int i = 0; i < count; ++i) threads.emplace_back(with_own_handle, i);
    for (auto& thread : threads) thread.join();
    return;
  }
  std::vector<Child> children;
  for (int i = 0; i < count; ++i) children.push_back(start_child([&, i] { with_own_handle(i); }));
  for (const auto& child : children) await(child);
}

void Trial::run_child(const std::function<void()>& work) { await(start_child(work)); }

Trial::Child Trial::start_child(const std::function<void()>& work) {
  int ends[2] = {-1, -1};
  if (!expect(pipe(ends) == 0, "no pipe: {}", std::strerror(errno))) return {};
  const pid_t process = fork();
  if (process == 0) {
    close(ends[0]);
    new (&mutex_) base::Mutex;  // another thread may have had it
    (void)take_faults();
    work();
    for (const auto& fault : take_faults()) write_all(ends[1], fault + "\n");
    _exit(0);
  }
  close(ends[1]);
  expect(process > 0, "no child process: {}", std::strerror(errno));
  return {process, ends[0]};
}

void Trial::await(const Child& child) {
  if (child.words >= 0) {
    std::string words = read_all(child.words);
    close(child.words);
    for (std::size_t at = 0, end = 0; (end = words.find('\n', at)) != std::string::npos; at = end + 1) {
      note(words.substr(at, end - at));
    }
  }
  if (child.process <= 0) return;
  int status = 0;
  while (waitpid(child.process, &status, 0) < 0 && errno == EINTR) continue;
  expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "a client ended with wait status {:#x}", status);
}

}  // namespace farheap::store
