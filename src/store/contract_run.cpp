// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The child works through the list of trials and says after each what came out, in a record on a pipe. When it dies,
// its trial is broken, and another child goes on with the next one.
#include "store/contract_run.hpp"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <optional>

#include "base/clock.hpp"
#include "base/random_number.hpp"
#include "store/named_place.hpp"

namespace farheap::store {
namespace {

constexpr char kWordsFollow = '\x1F';
constexpr char kEnd = '\x1E';

struct Work {
  StoreOptions options;
  const ContractCheck* check = nullptr;  // nullptr: whether a store of these options opens
  std::string uri;
};

class Runner {
 public:
  explicit Runner(const ContractRun& run) : run_(run) {}

  Result<ContractSummary> all() {
    if (auto ok = plan(); !ok) return fail(std::move(ok.error()));
    if (auto ok = reach(); !ok) return fail(std::move(ok.error()));
    for (std::size_t at = 0; at < works_.size() && !summary_.broken_off;) at = run_from(at);
    if (!left_.empty()) {
      return fail(ErrorCode::kIo, "cannot clean up", left_.front(), why_left_, "remove it with `farheap store rm`");
    }
    if (no_process_) return fail(*no_process_);
    if (!opened_ && !summary_.broken_off) {
      StoreOptions scratch = run_.options;
      scratch.lifetime = Lifetime::kScratch, scratch.block_bytes = run_.block_bytes.front();
      if (auto opened = open(works_.front(), scratch); !opened) return fail(std::move(opened.error()));
    }
    return summary_;
  }

 private:
  Status plan() {
    const auto name = fmt::format("check-{:016x}", base::random_number());
    for (const auto lifetime : {Lifetime::kKeep, Lifetime::kScratch}) {
      for (const auto bytes : run_.block_bytes) {
        StoreOptions options = run_.options;
        options.lifetime = lifetime, options.block_bytes = bytes;
        works_.push_back({.options = options});
        for (const auto& check : contract_checks()) {
          if (run_.only.empty() || run_.only == check.name) works_.push_back({.options = options, .check = &check});
        }
      }
    }
    if (works_.size() == 2 * run_.block_bytes.size()) {
      return fail(ErrorCode::kInvalidArgument, "no such check", run_.only, "",
                  "without --only it runs, and lists, all");
    }
    for (std::size_t i = 0; i < works_.size(); ++i) {
      auto uri = with_name(run_.uri, fmt::format("{}-{}", name, i));
      if (!uri) return fail(std::move(uri.error()));
      works_[i].uri = std::move(*uri);
    }
    return {};
  }

  // Who does not answer, or does not let anybody in, breaks no promise.
  Status reach() const {
    auto there = is_store_there(works_.front().uri, run_.options);
    if (there || there.error().code == ErrorCode::kInvalidArgument) return {};  // what it is for is found out later
    return fail(std::move(there.error()));
  }

  bool is_stopped() const { return run_.stop != nullptr && *run_.stop != 0; }

  // Starts a child at this trial; the first one that was not tried.
  std::size_t run_from(std::size_t first) {
    int ends[2] = {-1, -1};
    if (pipe(ends) != 0) return no_process(errno_error(errno, "cannot check the store", run_.uri));
    const pid_t parent = getpid();
    const pid_t child = fork();
    if (child == 0) {
      close(ends[0]);
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      setpgid(0, 0);  // with the processes it makes, a group that ends together
      for (const int one : {SIGHUP, SIGINT, SIGTERM}) signal(one, SIG_DFL);
      if (getppid() == parent) work_through(first, ends[1]);
      _exit(0);
    }
    close(ends[1]);
    if (child < 0) return no_process(errno_error(errno, "cannot check the store", run_.uri));
    setpgid(child, child);
    const std::size_t next = listen(first, ends[0]);
    close(ends[0]);
    kill(-child, SIGKILL);
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    return after_the_child(next, status);
  }

  std::size_t after_the_child(std::size_t next, int status) {
    if (next >= works_.size()) return next;
    clean_up(works_[next]);
    if (is_stopped()) {
      summary_.broken_off = true;
    } else if (next < works_.size()) {
      take(works_[next], {Verdict::kBroken, {fmt::format("the process that ran it ended: wait status {:#x}", status)}},
           0);
    }
    return next + 1;
  }

  std::size_t no_process(Error error) {
    no_process_ = std::move(error);
    return works_.size();
  }

  // Records until the child has no more; the first trial without one.
  std::size_t listen(std::size_t next, int from) {
    std::string record;
    char byte = 0;
    while (!is_stopped()) {
      const ssize_t got = read(from, &byte, 1);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) break;
      if (byte != kEnd) {
        record += byte;
        continue;
      }
      next = take_record(next, record);
      record.clear();
    }
    return next;
  }

  std::size_t take_record(std::size_t at, std::string_view record) {
    const auto verdict = static_cast<Verdict>(record.front() - '0');
    std::vector<std::string> words;
    for (record.remove_prefix(1); !record.empty();) {
      const auto end = std::min(record.find(kWordsFollow), record.size());
      words.emplace_back(record.substr(0, end));
      record.remove_prefix(std::min(end + 1, record.size()));
    }
    const double seconds = std::strtod(words.front().c_str(), nullptr);
    words.erase(words.begin());
    const Work& work = works_[at];
    const auto answer = ContractAnswer{verdict, std::move(words)};
    if (work.check != nullptr || answer.verdict != Verdict::kHolds) take(work, answer, seconds);
    if (work.check != nullptr) return at + 1;
    opened_ = opened_ || verdict == Verdict::kHolds;
    // A store that does not open with these options is not tried with them.
    while (verdict != Verdict::kHolds && at + 1 < works_.size() && works_[at + 1].check != nullptr) ++at;
    return at + 1;
  }

  void take(const Work& work, const ContractAnswer& answer, double seconds) {
    auto& counted = answer.verdict == Verdict::kHolds    ? summary_.holding
                    : answer.verdict == Verdict::kBroken ? summary_.broken
                                                         : summary_.not_for_it;
    ++counted;
    const auto name = work.check != nullptr ? work.check->name : std::string_view("opens");
    const auto proves = work.check != nullptr ? work.check->proves : std::string_view("it opens");
    run_.report({work.options, name, proves, answer, seconds});
  }

  // ---- in the child

  void work_through(std::size_t first, int to) {
    bool opens = true;
    for (std::size_t i = first; i < works_.size(); ++i) {
      const Work& work = works_[i];
      if (work.check != nullptr && !opens) continue;
      const auto begin = base::Clock::now();
      const auto answer = work.check != nullptr ? try_out(work) : try_to_open(work);
      if (work.check == nullptr) opens = answer.verdict == Verdict::kHolds;
      const std::chrono::duration<double> took = base::Clock::now() - begin;
      clean_up(work);
      std::string record = fmt::format("{}{:.3f}", static_cast<int>(answer.verdict), took.count());
      for (const auto& words : answer.words) record += kWordsFollow + words;
      for (const auto& left : left_) record += kWordsFollow + fmt::format("not cleaned up: {}: {}", left, why_left_);
      if (!left_.empty()) record.front() = static_cast<char>('0' + static_cast<int>(Verdict::kBroken));
      left_.clear();
      record += kEnd;
      if (write(to, record.data(), record.size()) != static_cast<ssize_t>(record.size())) return;
    }
  }

  static StoreResult open(const Work& work, const StoreOptions& options) {
    const auto folder = folder_of(work.uri);
    std::error_code ignored;
    if (!folder.empty()) std::filesystem::create_directory(folder, ignored);
    return open_store(work.uri, options);
  }

  static ContractAnswer try_out(const Work& work) {
    return run_contract_check(*work.check, {.open = [&](const StoreOptions& options) { return open(work, options); },
                                            .options = work.options});
  }

  // Stores that cannot be kept, or are for other sizes of blocks, say so.
  static ContractAnswer try_to_open(const Work& work) {
    const auto opened = open(work, work.options);
    if (opened) return {};
    const bool by_nature = opened.error().code == ErrorCode::kInvalidArgument;
    return {by_nature ? Verdict::kNotForThisStore : Verdict::kBroken, {opened.error().message()}};
  }

  // ---- afterwards

  void clean_up(const Work& work) {
    if (const auto folder = folder_of(work.uri); !folder.empty()) {
      std::error_code error;
      std::filesystem::remove_all(folder, error);
      if (error) keep_in_mind(work.uri, error.message());
      return;
    }
    const auto gone = remove_store(work.uri, run_.options);
    if (!gone && gone.error().code != ErrorCode::kNotFound && gone.error().code != ErrorCode::kInvalidArgument) {
      keep_in_mind(work.uri, gone.error().message());
    }
  }

  void keep_in_mind(const std::string& uri, std::string why) {
    left_.push_back(uri);
    why_left_ = std::move(why);
  }

  const ContractRun& run_;
  std::vector<Work> works_;
  ContractSummary summary_;
  bool opened_ = false;
  std::optional<Error> no_process_;
  std::vector<std::string> left_;
  std::string why_left_;
};

}  // namespace

Result<ContractSummary> run_contract(const ContractRun& run) { return Runner(run).all(); }

}  // namespace farheap::store
