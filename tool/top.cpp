// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// farheap top: what the programs that run under Farheap do just now. It only looks: a run does not notice.
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "interval.hpp"
#include "pause.hpp"
#include "run_finder.hpp"
#include "terminal.hpp"
#include "top_picture.hpp"
#include "verbs.hpp"

namespace farheap::tool {
namespace {

// A run that is looked at again and again.
struct Watched {
  explicit Watched(FoundRun found) : run(std::move(found)), sampler(run.view->page()) {}
  FoundRun run;
  Sampler sampler;
  Sample before;
  Sample now;
  bool present = true;
};

class Watch {
 public:
  explicit Watch(pid_t process) : process_(process) {}

  // Looks at all runs once more; false if there are none.
  bool look() {
    FoundRuns found = find_runs();
    for (auto& one : runs_) one->present = false;
    for (auto& run : found.runs) {
      if (process_ == 0 || run.has(process_)) take(std::move(run));
    }
    std::erase_if(runs_, [](const auto& one) { return !one->present; });
    unreadable_ = std::move(found.unreadable);
    return !runs_.empty();
  }

  [[nodiscard]] std::string text() const {
    std::string text;
    for (const auto& one : runs_) {
      text += (text.empty() ? "" : "\n") + picture_text({one->run.command(), one->run.tool, one->before, one->now});
    }
    for (const auto& run : unreadable_) {
      if (process_ == 0) text += "\n" + run.error.message() + "\n";
    }
    return text;
  }

  [[nodiscard]] std::string json() const {
    auto runs = nlohmann::ordered_json::array();
    for (const auto& one : runs_) {
      nlohmann::ordered_json run = {{"pid", one->run.tool}, {"command", one->run.command()}};
      run.update(sample_json(one->now));
      runs.push_back(std::move(run));
    }
    const double now = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
    const nlohmann::ordered_json line = {
        {"format", kJsonFormat}, {"time", std::round(now * 1e3) / 1e3}, {"runs", std::move(runs)}};
    return line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  }

  // Why there is nothing to see.
  [[nodiscard]] Error nothing() const {
    for (const auto& run : unreadable_) {
      if (process_ == 0 || process_ == run.tool) return run.error;
    }
    if (process_ == 0) {
      return {ErrorCode::kNotFound, "no program of yours runs under Farheap now", "", "",
              "`farheap run --memory 256M -- PROGRAM` starts one"};
    }
    return {ErrorCode::kNotFound, "no run has this process", fmt::format("{}", process_), "",
            "`farheap top` without a number shows all runs that you may look at"};
  }

 private:
  void take(FoundRun run) {
    auto known = std::find_if(runs_.begin(), runs_.end(),
                              [&](const auto& one) { return one->run.page_number == run.page_number; });
    if (known == runs_.end()) known = runs_.insert(runs_.end(), std::make_unique<Watched>(std::move(run)));
    Watched& one = **known;
    one.present = true;
    if (!one.run.view->refresh()) return;
    one.before = std::move(one.now);
    one.now = one.sampler.take();
  }

  pid_t process_;
  std::vector<std::unique_ptr<Watched>> runs_;
  std::vector<UnreadableRun> unreadable_;
};

// As much as a terminal shows, line by line over what stood there before.
std::string fitted(const std::string& text) {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row < 2) return text;
  std::string result = "\033[H";
  std::size_t from = 0;
  for (int row = 1; row < size.ws_row && from < text.size(); ++row) {
    const std::size_t end = text.find('\n', from);
    result += text.substr(from, end - from) + "\033[K\n";
    from = end + 1;
  }
  return result + "\033[J";
}

// Lines stay whole on a terminal that is too narrow; the cursor is out of the way.
class Screen {
 public:
  explicit Screen(bool wanted) : wanted_(wanted) {
    if (wanted_) print_out("\033[?25l\033[?7l\033[2J");
  }
  ~Screen() {
    if (wanted_) print_out("\033[?7h\033[?25h");
  }
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;
  void show(const std::string& text) {
    print_out("{}", wanted_ ? fitted(text) : (shown_ ? "\n" : "") + text);
    shown_ = true;
  }

 private:
  bool wanted_;
  bool shown_ = false;
};

int watch_on(Watch& watch, const TopArguments& arguments, const Pause& pause) {
  Screen screen(!arguments.json && isatty(STDOUT_FILENO) != 0);
  do {
    arguments.json ? print_out("{}\n", watch.json()) : screen.show(watch.text());
    if (std::fflush(stdout) != 0) return kFailed;  // nobody reads any more
  } while (pause.wait() && watch.look());
  return kDone;
}

}  // namespace

int top(const TopArguments& arguments) {
  if (const auto interval = check_interval("--interval", arguments.interval); !interval) {
    return wrong_usage(interval.error());
  }
  Watch watch(arguments.process);
  const Pause pause(arguments.interval);
  bool there = watch.look();
  // One picture needs a time to speak of; counters as they are do not.
  if (there && arguments.once && !arguments.json) there = pause.wait() && watch.look();
  if (!there) {
    complain(watch.nothing());
    return kFailed;
  }
  if (!arguments.once) return watch_on(watch, arguments, pause);
  print_out("{}", arguments.json ? watch.json() + "\n" : watch.text());
  return kDone;
}

}  // namespace farheap::tool
