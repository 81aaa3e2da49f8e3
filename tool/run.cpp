// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// farheap run --memory 256M -- PROGRAM ARGS: looks at everything that could go wrong before the program starts,
// because afterwards its output is its own; then starts it with the preload library, waits, and reports.
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <farheap/store.hpp>
#include <filesystem>
#include <optional>

#include "address_room.hpp"
#include "api/heap_reader.hpp"
#include "base/clock.hpp"
#include "base/environment.hpp"
#include "base/format_into.hpp"
#include "base/options.hpp"
#include "base/run_page.hpp"
#include "base/secret.hpp"
#include "base/units.hpp"
#include "child.hpp"
#include "environment.hpp"
#include "hinted_run.hpp"
#include "idle_watch.hpp"
#include "interval.hpp"
#include "keep_awake.hpp"
#include "kept_store.hpp"
#include "memory_advice.hpp"
#include "os/kernel_features.hpp"
#include "os/memory_group.hpp"
#include "plan_for_run.hpp"
#include "profile_figures.hpp"
#include "program_file.hpp"
#include "recording_folder.hpp"
#include "run_report.hpp"
#include "run_sample.hpp"
#include "store/beside/process.hpp"
#include "store/encrypt_key.hpp"
#include "store/kinds.hpp"
#include "store/measure.hpp"
#include "store/secrets.hpp"
#include "terminal.hpp"
#include "trace_recorder.hpp"
#include "verbs.hpp"

namespace farheap::tool {
namespace {

std::string variable_or_empty(const char* name) {
  const char* const value = base::environment(name);
  return value != nullptr ? value : "";
}

int start_plainly(const std::string& path, const RunArguments& arguments) {
  Variables variables = own_environment();
  for (auto& line : variables) {
    if (line.starts_with("FARHEAP_")) line = store::without_secrets(line);
  }
  const auto end = run_child(path, arguments.command, variables, {});
  if (end) return end->exit_status;
  complain(end.error());
  return shell_status(end.error());
}

Status check_budget(std::uint64_t bytes) {
  if (bytes >= base::kLeastBudgetBytes) return {};
  const std::string least = base::format_size(base::kLeastBudgetBytes);
  return fail(ErrorCode::kInvalidArgument, "the budget is too small", base::format_size(bytes), "the least is " + least,
              fmt::format("use --memory {}M or more", base::kLeastBudgetBytes / base::kMiB));
}

// A budget that the machine or the control group has not got is none: the kernel is out of memory first.
void warn_of_budget(std::uint64_t bytes) {
  const std::uint64_t most = os::automatic_budget();
  if (bytes <= most) return;
  say(coloured(Colour::kYellow,
               fmt::format("WARNING: the budget is larger than this machine or control group can give: {}: pages leave "
                           "only when it is full; use --memory {}M or less",
                           base::format_size(bytes), most / base::kMiB),
               true));
}

Status check_trace(const RunArguments& arguments) {
  if (!arguments.trace.empty() && arguments.plain) {
    return fail(ErrorCode::kInvalidArgument, "a plain run cannot be recorded", arguments.trace, "",
                "leave out --plain or --trace");
  }
  if (arguments.trace.empty() && arguments.trace_interval != 0) {
    return fail(ErrorCode::kInvalidArgument, "an interval of nothing", "--trace-interval", "nothing is recorded",
                "add --trace FILE");
  }
  return arguments.trace_interval == 0 ? Status{} : check_interval("--trace-interval", arguments.trace_interval);
}

// A kept heap is for programs that open it. What another program allocates has no names in it, and holds pointers to
// what is not kept: nothing of it could be used again.
Status check_is_no_heap(const std::string& store) {
  const auto place = api::HeapPlace::parse(store);
  std::error_code unknown;  // who may not look there is told by the store
  if (!place || place->is_on_server() || !std::filesystem::exists(place->lock_file(), unknown)) return {};
  if (!api::HeapReader::open(*place)) return {};  // something else, or what nobody can tell: the store says so
  return fail(ErrorCode::kInvalidArgument, "cannot run a program in a kept heap", store,
              "a program that was not written for it could not find again what it leaves there, nor keep what is there",
              "for this run name another place, as --store file:DIR; to use the heap, a program opens it with "
              "farheap::Heap (docs/heaps.md)");
}

// As the runtime opens it.
StoreOptions scratch_options(const base::Options& options) {
  StoreOptions how;
  how.lifetime = Lifetime::kScratch;
  how.use_io_uring = !options.disable.has(base::Feature::kIoUring);
  how.encrypt_key_file = options.encrypt_key_file;
  how.password_file = options.store_password_file;
  return how;
}

Status check_store(const std::string& uri, const base::Options& options) {
  const auto store = open_store(uri, scratch_options(options));
  if (!store) return fail(store.error());
  return {};
}

// The processes of a program end without closing their store. On a server it stays until the next one is opened there.
void collect_scratch(const std::string& uri, const base::Options& options) {
  if (!store::outlives_its_process(uri)) return;
  if (const auto collected = check_store(uri, options); !collected) complain(collected.error());
}

Error offer_plain(Error error) {
  error.remedy += (error.remedy.empty() ? "" : "\n") + std::string("--plain runs the program without Farheap");
  return error;
}

constexpr int kInheritedFrom = 700;

// The page that all processes of the run share, and the store's URI with its password, which only those of this user
// get; both live as long as this object.
class SharedRun {
 public:
  // `secret_store`: empty if the URI has no password.
  static Result<SharedRun> make(std::uint64_t budget_bytes, const std::vector<std::string>& command,
                                const base::Secret& secret_store) {
    SharedRun run;
    const auto files = base::make_run_files(budget_bytes, fmt::format("{}", fmt::join(command, " ")), kInheritedFrom);
    if (!files) return fail(files.error());
    run.place_ = {getpid(), *files, -1};
    const auto page = base::map_run_page(*files);
    if (!page) return fail(page.error());
    run.page_ = *page;
    base::open_locks(*run.page_, files->counters);
    if (secret_store.empty()) return run;
    const auto password = base::make_secret_file(secret_store, kInheritedFrom);
    if (!password) return fail(password.error());
    run.place_.password = *password;
    return run;
  }
  SharedRun(SharedRun&& other) noexcept
      : place_(std::exchange(other.place_, {})), page_(std::exchange(other.page_, nullptr)) {}
  SharedRun& operator=(SharedRun&&) = delete;
  ~SharedRun() {
    if (page_ != nullptr && page_->locks >= 0) close(page_->locks);
    if (page_ != nullptr) munmap(page_, sizeof *page_);
    for (const int file : {place_.files.configuration, place_.files.counters, place_.password}) {
      if (file >= 0) close(file);
    }
  }
  // Where programs do not look. Not the password: who becomes another user on the way would have it.
  [[nodiscard]] std::vector<int> inherited() const {
    const auto& [configuration, counters] = place_.files;
    const bool high = configuration >= kInheritedFrom && counters >= kInheritedFrom;
    return high ? std::vector<int>{configuration, counters} : std::vector<int>{};
  }
  [[nodiscard]] const base::RunPlace& place() const { return place_; }
  [[nodiscard]] const base::RunPage& page() const { return *page_; }
  [[nodiscard]] base::RunPage& page_to_write() const { return *page_; }

 private:
  SharedRun() = default;
  base::RunPlace place_;
  base::RunPage* page_ = nullptr;
};

Variables program_environment(const base::Options& options, const std::string& library, const base::RunPlace& place) {
  Variables variables = own_environment();
  for (const auto& line : base::option_environment(options)) {
    const auto equals = line.find('=');
    set_variable(variables, line.substr(0, equals), line.substr(equals + 1));
  }
  set_variable(variables, base::kRunPageVariable, place.text());
  // A program is not where the tool is.
  if (const auto engines = store::beside::find_engines()) set_variable(variables, "FARHEAP_ENGINES", *engines);
  // Not a secret for the program, or for what it starts. A run's store does without: its key is drawn at random.
  remove_variable(variables, store::kEncryptKeyVariable);
  load_before_others(variables, library);
  return variables;
}

void print_report(const RunSummary& summary, const base::Options& options) {
  if (options.stats == base::StatsForm::kJson) {
    put_error(report_json(summary) + "\n");
    return;
  }
  // That nothing was paged at all is said even to those who want no report.
  const bool unreached = summary.processes == 0 && summary.doubt.empty();
  if (options.quiet && !unreached) return;
  for (const auto& line : report_lines(summary)) {
    say(unreached ? coloured(Colour::kRed, line, true) : line);
  }
}

// The recording in that file; nothing if there is to be none.
Result<std::unique_ptr<TraceRecorder>> start_trace(const std::string& file, const RunArguments& arguments,
                                                   const base::Options& options, const base::RunPage& page) {
  if (file.empty()) return nullptr;
  auto trace = TraceRecorder::open(file, arguments.trace_interval, page);
  if (trace) (*trace)->start(arguments.command, options.store);
  return trace;
}

void finish_trace(TraceRecorder& trace, const RunArguments& arguments, const ChildEnd& end, bool quiet) {
  trace.finish(end.exit_status, end.signal);
  if (quiet) return;
  say(fmt::format("trace: {} samples in {}; `farheap report {}` shows them", trace.samples(), arguments.trace,
                  shell_word(arguments.trace)));
}

// Nothing if the run is not recorded.
Result<std::unique_ptr<RecordingFolder>> start_profile(const RunArguments& arguments, base::Options& options) {
  if (arguments.profile.empty()) return nullptr;
  auto folder = RecordingFolder::make(arguments.profile);
  if (folder) options.record_into = (*folder)->path();
  return folder;
}

// What the run's store can do, in about a second. Where it, or the machine, is too busy for that, in more: what there
// is no time for is not measured. Nothing where it does not say.
std::vector<profile::StoreSpeed> speed_of_store(const std::string& uri, const base::Options& options) {
  const auto store = open_store(uri, scratch_options(options));
  for (const double seconds : {1.0, 4.0, 16.0}) {
    const auto measured =
        store ? store::measure_store(**store, {.seconds = seconds, .rounds = 3}) : fail(store.error());
    if (!measured) {
      say("WARNING: the profile has no predictions: " + measured.error().message());
      return {};
    }
    std::vector<profile::StoreSpeed> speed;
    for (const auto& one : *measured) speed.push_back({one.name, one.unit, one.median, one.min, one.max});
    if (tells_reading(speed)) return speed;
  }
  say("WARNING: the profile has no predictions: the store could not be measured in 16 s; record on a quieter machine");
  return {};
}

Result<int> run_paged(const std::string& path, const RunArguments& arguments, base::Options& options,
                      const base::Secret& secret_store, std::optional<KeptStore>& kept) {
  const auto library = find_preload_library(options);
  if (!library) return fail(library.error());
  const auto shared = SharedRun::make(options.memory, arguments.command, secret_store);
  if (!shared) return fail(shared.error());
  const auto profile = start_profile(arguments, options);
  if (!profile) return fail(profile.error());
  RecordingFolder* const recording = profile->get();
  const auto trace =
      start_trace(recording != nullptr ? recording->trace_path() : arguments.trace, arguments, options, shared->page());
  if (!trace) {
    if (recording != nullptr) recording->remove();
    return fail(trace.error());
  }
  std::optional<KeepAwake> keep_awake;
  if (options.keep_awake) keep_awake.emplace(shared->page_to_write().pulse);
  std::optional<IdleWatchThread> idle_watch(std::in_place, shared->page_to_write());
  const auto start = base::Clock::now();
  const auto end =
      run_child(path, arguments.command, program_environment(options, *library, shared->place()), shared->inherited());
  if (!end) {
    if (recording != nullptr) recording->remove();
    complain(end.error());
    return shell_status(end.error());
  }
  idle_watch.reset();
  RunSummary summary;
  summary.command = arguments.command;
  summary.store = options.store;
  summary.exit_status = end->exit_status;
  summary.signal = end->signal;
  summary.seconds = std::chrono::duration<double>(base::Clock::now() - start).count();
  summary.budget_bytes = options.memory;
  const Sample whole = Sampler(shared->page()).take();
  add_counters(summary, whole.counters);
  summary.used_again_bytes = used_again(whole, options.memory);
  summary.doubt = doubt_of(summary, Machine::here());
  summary.loaded = loaded_by(path, arguments.command);
  const bool follows = summary.touches_expected + summary.touches_unexpected != 0;
  const bool is_unmet = summary.paging_processes != 0 && summary.plans_met == 0 && !follows;
  if (!options.plan.empty() && is_unmet && recording == nullptr) {
    say(coloured(Colour::kYellow,
                 fmt::format("WARNING: {}: no process of the run used what it plans: it is of another program, or of "
                             "another build of this one",
                             options.plan),
                 true));
  }
  signal(SIGPIPE, SIG_IGN);  // the program's status counts, whether or not anybody still reads the report
  print_report(summary, options);
  const bool json = options.stats == base::StatsForm::kJson;
  const bool quiet = options.quiet || json;
  if (*trace != nullptr) finish_trace(**trace, arguments, *end, quiet || recording != nullptr);
  if (kept) kept->program_ended(*end);
  if (recording == nullptr) return end->exit_status;
  auto speed = summary.paging_processes != 0
                   ? speed_of_store(secret_store.empty() ? options.store : std::string(secret_store.view()), options)
                   : std::vector<profile::StoreSpeed>{};
  return finish_profile(*recording, arguments.profile, end->exit_status, quiet, std::move(speed));
}

}  // namespace

int run(const RunArguments& arguments) {
  auto loaded = load_tool_options(arguments.settings);
  if (!loaded) return wrong_usage(loaded.error());
  base::Options& options = loaded->options;
  if (arguments.command.empty()) {
    return wrong_usage(Error{ErrorCode::kInvalidArgument, "no program to run", "", "",
                             "write it after --, for example farheap run --memory 256M -- python3 index.py"});
  }
  if (const auto trace = check_trace(arguments); !trace) return wrong_usage(trace.error());
  if (const auto hints = check_hints(arguments); !hints) return wrong_usage(hints.error());
  const auto path = find_program(arguments.command.front(), variable_or_empty("PATH"));
  if (!path) {
    complain(path.error());
    return shell_status(path.error());
  }
  if (arguments.plain) return start_plainly(*path, arguments);
  if (!arguments.hints.empty()) return run_hinted(*path, arguments, options);

  if (options.memory == 0) options.memory = os::automatic_budget();
  std::error_code ignored;
  const auto folder = std::filesystem::current_path(ignored);
  for (auto* file : {&options.encrypt_key_file, &options.store_password_file, &options.plan}) {
    if (!file->empty()) *file = (folder / *file).string();
  }
  if (!options.plan.empty()) {
    const Status plan = check_plan(options.plan);
    if (!plan && plan.error().code != ErrorCode::kInvalidArgument) {
      complain(plan.error());
      return kFailed;
    }
    // A program that was built anew runs without.
    if (!plan) {
      say(coloured(Colour::kYellow, "WARNING: " + plan.error().message(), true));
      options.plan.clear();
    }
  }
  options.store = store::with_whole_paths(absolute_store(options.store, folder.string()), folder.string());
  auto whole_store = store::with_login_inside(options.store);
  if (!whole_store) {
    complain(whole_store.error());
    return whole_store.error().code == ErrorCode::kInvalidArgument ? kUsage : kFailed;
  }
  // The run has it: neither the program nor what it starts needs the variable.
  for (const auto& name : store::password_variables(options.store)) take_from_environment(name);
  options.store = store::without_secrets(options.store);  // as it is from here on, and in what the program inherits
  auto secret_store = base::Secret::make(*whole_store != options.store ? *whole_store : "");
  if (!secret_store) {
    complain(secret_store.error());
    return kFailed;
  }
  if (const auto budget = check_budget(options.memory); !budget) return wrong_usage(budget.error());
  Status ready = check_program(*path, arguments.command);
  if (ready) ready = check_userfault(os::detect_kernel_features(options.disable));
  if (ready) ready = check_addresses(options.store);
  if (!ready) {
    complain(offer_plain(ready.error()));
    return kFailed;
  }
  if (const auto scratch = check_is_no_heap(*whole_store); !scratch) return wrong_usage(scratch.error());
  std::optional<KeptStore> kept;
  if (options.whole_core) {
    auto made = KeptStore::make(options);
    if (!made) return wrong_usage(made.error());
    kept.emplace(std::move(*made));
    if (const auto why = why_no_core(); !why.empty()) say(coloured(Colour::kYellow, "WARNING: " + why, true));
  }
  if (const auto store = kept ? kept->check(options) : check_store(*whole_store, options); !store) {
    complain(store.error());
    return store.error().code == ErrorCode::kInvalidArgument ? kUsage : kFailed;
  }
  if (!options.quiet) warn_of_budget(options.memory);
  if (const auto saves = check_store_saves_memory(options.store); !saves && !options.quiet) {
    say(coloured(Colour::kYellow, "WARNING: " + saves.error().message(), true));
  }
  const auto status = run_paged(*path, arguments, options, *secret_store, kept);
  // What a lost server holds cannot be had now: to ask for it would wait for it once more.
  if (!status || *status != base::kStatusNotKept) {
    collect_scratch(*whole_store, options);
  } else if (store::is_at_a_server(*whole_store) && !options.quiet) {
    say("what it left in " + options.store + " goes when the next run opens it");  // files went with their processes
  }
  if (status) return *status;
  complain(status.error());
  return kFailed;
}

}  // namespace farheap::tool
