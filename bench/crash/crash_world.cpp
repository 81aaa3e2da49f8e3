// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "crash_world.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "crash_program.hpp"

namespace farheap::crash {

namespace {

std::uint64_t digest_of(int key, std::uint32_t length, char letter) {
  std::uint64_t x =
      (static_cast<std::uint64_t>(key) << 40) ^ (std::uint64_t{length} << 8) ^ static_cast<std::uint64_t>(letter);
  x = (x ^ (x >> 31)) * 0x9e3779b97f4a7c15u;
  return (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9u;
}

// What a table holds; nothing if one of its texts is none that a step makes.
std::optional<std::uint64_t> digest_of(const Table& table) {
  std::uint64_t digest = 0;
  for (const auto& [key, text] : table) {
    const char letter = text.empty() ? '\0' : text[0];
    if (!std::ranges::all_of(text, [&](char one) { return one == letter; })) return {};
    digest += digest_of(key, static_cast<std::uint32_t>(text.size()), letter);
  }
  return digest;
}

// Starts it in a process that ends with this one: who waits for it may be killed himself, by a limit of time.
template <typename Program>
pid_t start(Program program) {
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child != 0) return child;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() == parent) program();
  _exit(0);
}

// Empty when it was killed by us.
std::string kill_and_wait(pid_t child) {
  kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) return {};
  return fmt::format("the program ended by itself, with status {:#x}", status);
}

}  // namespace

World::World(std::string file, std::uint64_t seed)
    : file_(std::move(file)),
      uri_("file:" + file_),
      random_(seed),
      progress_(static_cast<Progress*>(
          mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {}

World::~World() { munmap(progress_, sizeof *progress_); }

void World::advance(unsigned thread, std::uint64_t steps) {
  Model& model = models_[thread];
  const auto erase = [&](int key) {
    const auto at = model.texts.find(key);
    if (at == model.texts.end()) return;
    model.digest -= digest_of(key, at->second.length, at->second.letter);
    model.texts.erase(at);
  };
  const auto set = [&](int key, std::uint32_t length, char letter) {
    erase(key);
    if (length == 0) letter = '\0';
    model.texts[key] = {length, letter};
    model.digest += digest_of(key, length, letter);
  };
  for (std::uint64_t k = model.digests.size(); k <= steps; ++k) {
    step(thread, k, set, erase);
    model.digests.push_back(model.digest);
  }
}

// Empty if every object is as the model says after the steps that the heap has counted. Requires: the models have been
// advanced as far, or are advanced now.
std::string World::compare(Heap& heap, std::array<std::uint64_t, kThreads>& steps) {
  std::uint64_t named = 1;  // the number of commits
  for (unsigned thread = 0; thread < kThreads; ++thread) {
    const auto* const counted = heap.find<std::uint64_t>(name_of("steps ", thread));
    const auto* const table = heap.find<Table>(name_of("table ", thread));
    if (counted == nullptr || table == nullptr) return fmt::format("the table of thread {} is lost", thread);
    steps[thread] = *counted;
    if (*counted > progress_->steps_begun[thread]) return fmt::format("{} steps of {}", *counted, thread);
    advance(thread, *counted);
    if (digest_of(*table) != models_[thread].digests[*counted]) {
      return fmt::format("the table of thread {} is not what {} steps make", thread, *counted);
    }
    counts_.objects_compared += table->size();
    const std::uint64_t names = std::min(*counted, kNamesKept);
    named += 2 + names;
    for (std::uint64_t k = *counted - names + 1; k <= *counted; ++k) {
      const auto* const one = heap.find<std::uint64_t>(step_name(thread, k));
      if (one == nullptr || *one != k) return fmt::format("the object {} is lost", step_name(thread, k));
    }
  }
  if (heap.statistics().objects != named) {
    return fmt::format("there are {} objects instead of {}", heap.statistics().objects, named);
  }
  return {};
}

// All that is known of is destroyed, and nothing is committed.
std::string World::look_for_leaks(Heap& heap) const {
  for (unsigned thread = 0; thread < kThreads; ++thread) {
    const std::uint64_t steps = *heap.find<std::uint64_t>(name_of("steps ", thread));
    for (std::uint64_t k = steps - std::min(steps, kNamesKept) + 1; k <= steps; ++k) {
      (void)heap.destroy<std::uint64_t>(step_name(thread, k));
    }
    (void)heap.destroy<std::uint64_t>(name_of("steps ", thread));
    (void)heap.destroy<Table>(name_of("table ", thread));
  }
  (void)heap.destroy<std::uint64_t>("commits");
  const std::uint64_t left = heap.statistics().allocated_bytes;
  if (left == empty_bytes_) return {};
  return fmt::format("{} bytes are allocated in a heap without objects, instead of {}", left, empty_bytes_);
}

std::string World::look_at_snapshots() {
  std::vector<std::string> names;
  {
    auto heap = Heap::open_read_only(uri_, kOptions);
    if (!heap) return heap.error().message();
    const auto versions = heap->versions();
    if (!versions) return versions.error().message();
    for (const VersionInfo& one : *versions) {
      if (!one.name.empty()) names.push_back(one.name);
    }
  }
  if (names.empty()) return {};
  const std::string name = names[random_() % names.size()];
  auto heap = Heap::open_read_only(uri_ + "@" + name, kOptions);
  if (!heap) return heap.error().message();
  ++counts_.snapshots_read;
  std::array<std::uint64_t, kThreads> steps{};
  const std::string wrong = compare(*heap, steps);
  if (!wrong.empty()) return fmt::format("{}: {}", name, wrong);
  return name == name_of("snapshot ", *heap->find<std::uint64_t>("commits")) ? std::string()
                                                                             : name + " is another commit";
}

// Opens it for writing, as the next run of the program does.
std::string World::look_at_newest() {
  auto heap = Heap::open(uri_, kOptions);
  if (!heap) return heap.error().message();
  const auto* const commits = heap->find<std::uint64_t>("commits");
  const std::uint64_t now = commits == nullptr ? 0 : *commits;
  const std::uint64_t returned = progress_->commits_returned, begun = progress_->commits_begun;
  if (now < returned || now > begun) {
    return fmt::format("it opens at commit {}; {} had returned, {} was begun", now, returned, begun);
  }
  ++(now == returned ? counts_.at_the_last : counts_.in_flight);
  counts_.commits = now;
  progress_->commits_begun = progress_->commits_returned = now;
  if (commits == nullptr) return {};
  std::array<std::uint64_t, kThreads> steps{};
  if (std::string wrong = compare(*heap, steps); !wrong.empty()) return wrong;
  counts_.steps = 0;
  for (unsigned thread = 0; thread < kThreads; ++thread) {
    if (steps[thread] < progress_->steps_returned[thread]) {
      return fmt::format("{} steps of thread {} are there, and more were committed", steps[thread], thread);
    }
    progress_->steps_begun[thread] = progress_->steps_returned[thread] = steps[thread];
    counts_.steps += steps[thread];
  }
  return look_for_leaks(*heap);
}

std::string World::look() {
  struct stat file{};
  if (stat(file_.c_str(), &file) == 0) {
    counts_.most_file_bytes = std::max(counts_.most_file_bytes, static_cast<std::uint64_t>(file.st_size));
  }
  if (const Status checked = Heap::check(uri_); !checked) return "check: " + checked.error().message();
  if (std::string wrong = look_at_newest(); !wrong.empty()) return wrong;
  return look_at_snapshots();
}

// However long a commit takes: a disk that others keep busy holds back a commit's fsync() for half a minute and more.
std::string World::wait_for_commit(pid_t child, std::uint64_t before) const {
  while (progress_->commits_returned <= before) {
    siginfo_t ended{};
    (void)waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOHANG | WNOWAIT);
    if (ended.si_pid == child)
      return fmt::format("the program ended by itself, with {}, before a commit", ended.si_status);
    usleep(1000);
  }
  return {};
}

std::string World::kill_once() {
  if (counts_.kills++ == 0) {
    auto heap = Heap::create(uri_, kOptions);
    if (!heap) return heap.error().message();
    (void)heap->construct<int>("first")(1);  // with which the directory gets a table
    (void)heap->destroy<int>("first");
    empty_bytes_ = heap->statistics().allocated_bytes;
  }
  const std::uint64_t seed = random_();
  const std::uint64_t before = progress_->commits_returned;
  const pid_t child = start([&] { work(uri_, seed, *progress_); });
  // By turns soon after a commit, so that a slow machine gets on, and at any instant.
  const bool after_a_commit = counts_.kills % 2 == 1;
  if (after_a_commit) {
    if (std::string wrong = wait_for_commit(child, before); !wrong.empty()) return wrong;
  }
  usleep(static_cast<useconds_t>(1000 + random_() % (after_a_commit ? 30'000 : 60'000)));
  if (std::string wrong = kill_and_wait(child); !wrong.empty()) return wrong;
  return look();
}

std::string World::kill_while_created() {
  ++counts_.creations_killed;
  const std::string uri = uri_ + ".new";
  const pid_t child = start([&] {
    for (;;) {
      if (!Heap::open_or_create(uri, kOptions)) _exit(1);
      if (!Heap::remove(uri)) _exit(2);
    }
  });
  usleep(static_cast<useconds_t>(random_() % 30'000));
  if (std::string wrong = kill_and_wait(child); !wrong.empty()) return wrong;
  {
    auto heap = Heap::open_or_create(uri, kOptions);
    if (!heap) return heap.error().message();
    if (heap->construct<int>("number")(1) == nullptr) return "a new heap has an object";
    if (const Status status = heap->commit(); !status) return status.error().message();
  }
  const Status removed = Heap::remove(uri);
  return removed ? std::string() : removed.error().message();
}

}  // namespace farheap::crash
