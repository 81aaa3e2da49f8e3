// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the tests of versions share: random steps against a model of three maps: what is written, what is committed,
// and each snapshot.
#pragma once

#include <map>
#include <random>
#include <string>
#include <vector>

#include "segment/versions.hpp"
#include "test_pages.hpp"

namespace farheap::segment {

using ModelPages = std::map<PageNumber, std::uint64_t>;  // absent: zeros
struct ModelState {
  ModelPages pages;
  std::vector<std::pair<std::string, ModelPages>> snapshots;
};

// Pages near the beginning, and a few far away.
inline constexpr std::uint64_t kTestPages = 1500;
inline constexpr PageNumber kFarPage = PageNumber{1} << 30;

class VersionsWorker {
 public:
  // Its snapshots' numbers come after `names`.
  explicit VersionsWorker(unsigned seed, unsigned names = 0) : random_(seed), names_(names) {}

  // What it does, or what went wrong with "!" in front. A step that fails leaves the model as it was.
  std::string step(Versions& versions) {
    const std::uint64_t dice = random_() % 100;
    if (dice < 55) return write(versions);
    if (dice < 65) return forget(versions);
    if (dice < 85) return commit(versions);
    if (dice < 92) return snapshot(versions);
    if (dice < 97) return remove(versions);
    return roll_back(versions);
  }

  // Empty, or what is wrong: with the newest state, and all snapshots.
  std::string compare(Versions& versions, const ModelState& state) {
    auto read = [&](auto runs) { return versions.read(runs); };
    if (auto wrong = compare_pages(state.pages, read); !wrong.empty()) return wrong;
    auto snapshots = versions.snapshots();
    if (!snapshots) return snapshots.error().message();
    if (snapshots->size() != state.snapshots.size()) return "the number of snapshots";
    for (std::size_t i = 0; i < snapshots->size(); ++i) {
      if ((*snapshots)[i].name != state.snapshots[i].first) return "the name of snapshot " + std::to_string(i);
      auto read_past = [&](auto runs) { return versions.read((*snapshots)[i], runs); };
      if (auto wrong = compare_pages(state.snapshots[i].second, read_past); !wrong.empty()) {
        return state.snapshots[i].first + ": " + wrong;
      }
    }
    return {};
  }

  [[nodiscard]] const ModelState& written() const { return now_; }
  [[nodiscard]] const ModelState& committed() const { return committed_; }
  // What a commit that was tried would have made.
  [[nodiscard]] const std::vector<ModelState>& attempted() const { return attempted_; }
  // The process has ended: what was not committed is lost.
  void reopened(const ModelState& at) {
    now_ = committed_ = at;
    attempted_.clear();
  }
  [[nodiscard]] unsigned failures() const { return failures_; }

 private:
  template <class Read>
  std::string compare_pages(const ModelPages& pages, Read read) {
    auto check = [&](PageNumber first, std::uint32_t count) -> std::string {
      const pager::Backing::Read run{{first, count}, bytes_.data()};
      if (Status status = read(std::span(&run, 1)); !status) return status.error().message();
      for (std::uint32_t i = 0; i < count; ++i) {
        const auto there = pages.find(first + i);
        const bool fits = there == pages.end() ? bytes_.is_zero(i) : bytes_.has(i, first + i, there->second);
        if (!fits) return "page " + std::to_string(first + i) + (there == pages.end() ? " is not zero" : " is wrong");
      }
      return {};
    };
    for (PageNumber first = 0; first < kTestPages; first += kMostPages) {
      if (auto wrong = check(first, kMostPages); !wrong.empty()) return wrong;
    }
    return check(kFarPage, kMostPages);
  }

  pager::PageRun some_run() {
    const bool near = random_() % 16 != 0;
    const std::uint64_t pages = near ? kTestPages : kMostPages;
    const std::uint64_t offset = random_() % pages;
    const std::uint64_t most = std::min<std::uint64_t>(kMostPages, pages - offset);
    const auto count =
        static_cast<std::uint32_t>(1 + random_() % (random_() % 4 == 0 ? most : std::min<std::uint64_t>(most, 3)));
    return {(near ? 0 : kFarPage) + offset, count};
  }

  // As the pager does: what could not be written is written again.
  template <class Call>
  Status patiently(Call call) {
    Status status = call();
    for (int i = 0; i < 100 && !status; ++i, status = call()) ++failures_;
    return status;
  }

  std::string write(Versions& versions) {
    const pager::PageRun run = some_run();
    ++value_;
    for (std::uint32_t i = 0; i < run.count; ++i) bytes_.set(i, run.first + i, value_);
    const pager::Backing::Write one{run, bytes_.data()};
    if (Status status = patiently([&] { return versions.write({&one, 1}); }); !status) return failed(status);
    for (std::uint32_t i = 0; i < run.count; ++i) now_.pages[run.first + i] = value_;
    return "write";
  }
  std::string forget(Versions& versions) {
    const pager::PageRun run = some_run();
    Status status = patiently([&] { return versions.forget(run.first, run.count); });
    if (!status) return failed(status);
    for (std::uint32_t i = 0; i < run.count; ++i) now_.pages.erase(run.first + i);
    return "forget";
  }
  std::string settle(const Status& status, const ModelState& next) {
    if (!status) {
      attempted_.push_back(next);
      return failed(status);
    }
    now_ = committed_ = next;
    attempted_.clear();
    return "commit";
  }
  std::string commit(Versions& versions) { return settle(versions.commit(), now_); }
  std::string snapshot(Versions& versions) {
    ModelState next = now_;
    next.snapshots.emplace_back("snapshot " + std::to_string(++names_), now_.pages);
    return settle(versions.snapshot(next.snapshots.back().first), next);
  }
  // These commit what there is first; either commit may be what is found.
  std::string remove(Versions& versions) {
    if (now_.snapshots.empty()) return "nothing to remove";
    ModelState next = now_;
    const std::size_t number = random_() % next.snapshots.size();
    const std::string name = next.snapshots[number].first;
    next.snapshots.erase(next.snapshots.begin() + static_cast<std::ptrdiff_t>(number));
    attempted_.push_back(now_);
    return settle(versions.remove(name), next);
  }
  std::string roll_back(Versions& versions) {
    if (now_.snapshots.empty()) return "nothing to go back to";
    ModelState next = now_;
    const bool named = random_() % 2 == 0;
    if (named) next.snapshots.resize(1 + random_() % next.snapshots.size());
    next.pages = next.snapshots.back().second;
    attempted_.push_back(now_);
    return settle(named ? versions.roll_back(next.snapshots.back().first) : versions.roll_back(), next);
  }
  std::string failed(const Status& status) {
    ++failures_;
    return "!" + status.error().message();
  }

  std::mt19937_64 random_;
  Pages bytes_;
  std::uint64_t value_ = 0;
  unsigned names_;
  unsigned failures_ = 0;
  ModelState now_, committed_;
  std::vector<ModelState> attempted_;
};

// Empty if what is in the store opens at one of the states; then its books are whole, too.
inline std::string opens_at_one_of(Store& store, VersionsWorker& worker, const std::vector<const ModelState*>& states) {
  auto versions = Versions::open(store);
  if (!versions) return versions.error().message();
  std::string wrong;
  for (const ModelState* state : states) {
    wrong = worker.compare(**versions, *state);
    if (!wrong.empty()) continue;
    const Status books = (*versions)->check();
    return books ? "" : books.error().message();
  }
  return wrong;
}

// What may be found: the last commit that returned, and those that failed since.
inline std::vector<const ModelState*> all_of(const std::vector<ModelState>& states) {
  std::vector<const ModelState*> all;
  for (const ModelState& one : states) all.push_back(&one);
  return all;
}

}  // namespace farheap::segment
