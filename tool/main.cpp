// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The command line: takes it apart, and calls the verb. CLI11 is known in this file only.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstring>
#include <optional>

#include "base/without_secrets.hpp"
#include "environment.hpp"
#include "interruption.hpp"
#include "terminal.hpp"
#include "verbs.hpp"

namespace farheap::tool {
namespace {

std::string examples_of(const Verb& verb) {
  std::string text = "Examples:\n";
  for (const auto example : verb.examples) text += "  " + std::string(example) + "\n";
  return text + "\n" + std::string(verb.summary) + ".";
}

// The usage line of the help is the verb's own: CLI11 does not know what comes behind "--".
class VerbHelp final : public CLI::Formatter {
 public:
  explicit VerbHelp(std::string_view usage) : usage_(usage) {}
  std::string make_usage(const CLI::App*, std::string) const override { return "Usage: farheap " + usage_ + "\n"; }

 private:
  std::string usage_;
};

// What bare `farheap` and `farheap --help` begin with: the verbs with one example each.
std::string overview() {
  std::string text = "Farheap: run programs whose heap is larger than memory.\n\n";
  for (const auto& verb : verbs()) {
    text += fmt::format("  {}\n      {}\n", coloured(Colour::kBold, verb.examples.front()), verb.summary);
  }
  return text + "\n`farheap VERB --help` says more; so does `man farheap`.";
}

// Everything behind the first "--" belongs to the program and is no business of ours.
struct Words {
  std::vector<std::string> ours;
  std::vector<std::string> program;
  bool separated = false;
};

Words split_words(int count, char** values) {
  Words words;
  for (int i = 1; i < count; ++i) {
    const std::string word = values[i];
    if (!words.separated && word == "--") {
      words.separated = true;
    } else {
      (words.separated ? words.program : words.ours).push_back(word);
    }
  }
  return words;
}

// From what ps shows. Requires: whoever needs the words has copies.
void hide_passwords(int count, char** values) {
  for (int i = 1; i < count && std::string_view(values[i]) != "--"; ++i) {
    const std::string_view word = values[i];
    const std::string shown = base::without_secrets(word);
    if (shown == word) continue;
    std::memset(values[i] + shown.copy(values[i], word.size()), 0, word.size() - std::min(shown.size(), word.size()));
  }
}

class CommandLine {
 public:
  explicit CommandLine(Words words) : words_(std::move(words)), app_(overview(), "farheap") {
    app_.set_version_flag("--version", std::string("farheap ") + FARHEAP_VERSION);
    app_.require_subcommand(0, 1);
    add_run();
    add_record();
    add_top();
    add_report();
    add_plan();
    add_doctor();
    add_core();
    add_options();
    add_store();
    add_heap();
    app_.add_subcommand("manual")->group("")->callback([this] { status_ = manual(); });
    app_.add_subcommand("completion")->group("")->callback([this] { status_ = completion(); });
  }

  int execute() {
    if (words_.ours.empty() && !words_.separated) {
      print_out("{}\n", overview());
      return kDone;
    }
    try {
      std::vector<std::string> reversed(words_.ours.rbegin(), words_.ours.rend());
      app_.parse(std::move(reversed));
    } catch (const CLI::ParseError& error) {
      if (error.get_exit_code() == 0) {  // --help, --version
        app_.exit(error);
        return kDone;
      }
      if (const auto unknown = unknown_verb()) return wrong_usage(*unknown);
      return wrong_usage(Error{ErrorCode::kInvalidArgument, "wrong command line", "", error.what(),
                               "`farheap --help` lists the verbs, `farheap VERB --help` what each takes"});
    }
    if (app_.get_subcommands().empty()) {
      return wrong_usage(Error{ErrorCode::kInvalidArgument, "no verb", "", "", "bare `farheap` lists them"});
    }
    return status_;
  }

 private:
  // "farheap frob", "farheap store frob".
  std::optional<Error> unknown_verb() const {
    const CLI::App* above = &app_;
    std::string full_name;
    for (const auto& word : words_.ours) {
      if (word.starts_with("-")) return std::nullopt;
      const auto below = above->get_subcommands([](const CLI::App* one) { return !one->get_group().empty(); });
      if (below.empty()) return std::nullopt;  // a verb's own word
      const auto found = std::ranges::find(below, word, [](const CLI::App* one) { return one->get_name(); });
      if (found != below.end()) {
        above = *found, full_name += word + " ";
        continue;
      }
      std::vector<std::string> names;
      names.reserve(below.size());
      for (const CLI::App* one : below) names.push_back(one->get_name());
      return Error{ErrorCode::kInvalidArgument, "unknown verb", full_name + word, "",
                   fmt::format("there are {}; `farheap {}--help` says more", fmt::join(names, ", "), full_name)};
    }
    return std::nullopt;
  }

  CLI::App* add_verb(CLI::App* above, const char* name, const char* full_name) {
    const Verb& described = verb(full_name);
    return above->add_subcommand(name, examples_of(described))->formatter(std::make_shared<VerbHelp>(described.usage));
  }

  static void add_settings(CLI::App* verb, std::vector<std::string>& into) {
    verb->add_option("--set", into, "Set one option; `farheap options` lists them")
        ->type_name("KEY=VALUE")
        ->allow_extra_args(false)
        ->take_all();
  }

  // --NAME VALUE as a short form of --set NAME=VALUE.
  static void add_short_form(CLI::App* verb, const char* name, const char* type, const char* help,
                             std::vector<std::string>& into) {
    verb->add_option_function<std::string>(
            std::string("--") + name,
            [&into, name](const std::string& value) { into.push_back(fmt::format("{}={}", name, value)); }, help)
        ->type_name(type);
  }

  // What `run` and `record` have in common.
  CLI::App* add_running(const char* name) {
    CLI::App* verb = add_verb(&app_, name, name);
    add_settings(verb, run_.settings);
    add_short_form(verb, "memory", "SIZE", "The budget: at most so much of the heap in memory, 32M at the least",
                   shorts_);
    add_short_form(verb, "store", "URI", "Where the rest of the heap is; `farheap store kinds` lists them", shorts_);
    add_short_form(verb, "stats", "text|json", "Form of the report at the end, on standard error", shorts_);
    verb->add_flag_callback("--quiet", [this] { shorts_.emplace_back("quiet=on"); }, "No report at the end");
    verb->prefix_command();
    verb->callback([this, verb] { status_ = run_program(verb->get_name(), verb->remaining()); });
    return verb;
  }

  void add_record() {
    CLI::App* verb = add_running("record");
    verb->add_option("-o,--output", run_.profile, "The profile to write: farheap.profile")->type_name("FILE");
    verb->add_option("--attach", attach_.process,
                     "Record a program that runs already under `farheap run`: this process of it, or all of the run "
                     "whose number this is")
        ->type_name("PID");
    verb->add_option("--seconds", attach_.seconds, "With --attach: for so long; otherwise until Ctrl-C")
        ->type_name("N");
    verb->footer(
        "\nThe program runs as under `farheap run`; with less --memory than it needs, the profile tells which lines "
        "wait "
        "for it. The exit status is the program's own. With --attach the program goes on as before when the "
        "recording "
        "ends; what was allocated before it is memory of no known site.");
  }

  void add_run() {
    CLI::App* verb = add_running("run");
    verb->add_flag("--plain", run_.plain, "Run the program without Farheap");
    add_short_form(verb, "plan", "FILE", "Follow this plan, which `farheap plan` has made of a profile", shorts_);
    verb->add_option("--trace", run_.trace, "Record the run in this file, for `farheap report`")->type_name("FILE");
    verb->add_option(
            "--trace-interval", run_.trace_interval,
            "Time between two samples; otherwise 0.1, or a thousandth of the run's time so far if that is more")
        ->type_name("SECONDS");
    verb->add_option(
            "--hints", run_.hints,
            "Kernel swap instead of Farheap, with what --plan (a profile, too) says of its objects told to the "
            "kernel: the hottest locked, or what comes next asked for")
        ->type_name("kernel[:mlock|:madvise]");
    verb->add_option("--hints-share", run_.hints_share, "Of --memory, what such hints may lock: 80")
        ->type_name("PERCENT");
    verb->footer(
        "\nThe exit status is the program's own. If it was not started: 1, 2 (command line), 126 or 127 (no program).");
  }

  // `farheap run ls -l` is understood without "--" as well; an option that nobody knows is not a program.
  int run_program(const std::string& verb, std::vector<std::string> command) {
    if (!command.empty() && command.front().starts_with("-")) {
      return wrong_usage(Error{ErrorCode::kInvalidArgument, "unknown option", command.front(), "",
                               fmt::format("`farheap {} --help` lists them; the program goes behind --", verb)});
    }
    if (verb == "record" && run_.profile.empty()) run_.profile = "farheap.profile";
    if (attach_.process || attach_.seconds) return attach_to_run(command);
    if (!command.empty() && words_.separated) command.emplace_back("--");
    command.insert(command.end(), words_.program.begin(), words_.program.end());
    run_.command = std::move(command);
    run_.settings.insert(run_.settings.end(), shorts_.begin(), shorts_.end());
    return run(run_);
  }

  int attach_to_run(const std::vector<std::string>& command) {
    const auto wrong = [](const char* what, const std::string& subject, const char* remedy) {
      return wrong_usage(Error{ErrorCode::kInvalidArgument, what, subject, "", remedy});
    };
    if (!attach_.process) return wrong("it goes with --attach alone", "--seconds", "leave it out, or name a process");
    if (*attach_.process <= 0) return wrong("no process has this number", "--attach", "name one, as --attach 4711");
    if (!command.empty() || words_.separated) {
      return wrong("--attach takes no program", command.empty() ? "--" : command.front(),
                   "leave out --attach to start it, or the program");
    }
    std::vector<std::string> settings = run_.settings;
    settings.insert(settings.end(), shorts_.begin(), shorts_.end());
    attach_.quiet = std::erase(settings, "quiet=on") != 0;
    if (!settings.empty()) {
      return wrong("settings are for a program that is started", settings.front(), "leave it out with --attach");
    }
    attach_.profile = run_.profile;
    return attach(attach_);
  }

  void add_top() {
    CLI::App* verb = add_verb(&app_, "top", "top");
    verb->add_option("PROCESS", top_.process, "Only the run with this process number, or the run that it belongs to");
    verb->add_flag("--once", top_.once, "One picture, then end");
    verb->add_option("--interval", top_.interval, "Time between two pictures: 1")->type_name("SECONDS");
    verb->add_flag("--json", top_.json, "For machines: one object a line");
    verb->footer("\nEnds when you press Ctrl-C, or with the last run. The exit status is 1 if there is none.");
    verb->callback([this] { status_ = top(top_); });
  }

  void add_report() {
    CLI::App* verb = add_verb(&app_, "report", "report");
    verb->add_option("FILE", report_.file, "What `farheap record` or `farheap run --trace FILE` has recorded")
        ->required();
    verb->add_option("--html", report_.html, "Write a page for browsers to this file: tables, call stacks, charts")
        ->type_name("OUT");
    verb->add_option("--pprof", report_.pprof, "Write a profile for https://github.com/google/pprof to this file")
        ->type_name("OUT");
    verb->add_flag("--json", report_.json, "For machines");
    verb->add_flag("--folded", report_.folded, "Stacks of allocations of a profile, a line each, for flame graphs");
    verb->add_option("--weight", report_.weight,
                     "What --folded counts: microseconds of waiting (waits), bytes held at the most (peak), or bytes "
                     "allocated")
        ->type_name("waits|peak|allocated");
    verb->add_flag("--speedscope", report_.speedscope, "The same for https://www.speedscope.app");
    verb->add_flag(
        "--compare", report_.compare,
        "Two runs: profiles, traces, or what --stats=json printed; the exit status is 1 where the second one "
        "is worse");
    verb->add_option("AFTER", report_.other, "The second run of --compare");
    verb->add_option("--tolerance", report_.tolerance, "What is not worse yet, in per cent: 10")->type_name("PERCENT");
    verb->footer("\nFILE may also be the folder FILE.parts of a recording that goes on, or that was killed.");
    verb->callback([this] { status_ = report(report_); });
  }

  void add_plan() {
    CLI::App* verb = add_verb(&app_, "plan", "plan");
    verb->add_option("PROFILE", plan_.file, "What `farheap record` has written")->required();
    verb->add_option("-o,--output", plan_.output, "The plan to write: farheap.plan")->type_name("FILE");
    verb->add_flag("--explain", plan_.explain, "Tell in words what the plan says, and what it can save");
    verb->add_flag("--anyway", plan_.anyway, "Make it also where a replay of the profile takes much longer with it");
    verb->footer(
        "\nRecord with more memory than the program needs: then it is seen best. The exit status is 1 where a plan "
        "would "
        "not help.");
    verb->callback([this] {
      if (plan_.output.empty()) plan_.output = "farheap.plan";
      status_ = plan(plan_);
    });
  }

  void add_doctor() {
    CLI::App* verb = add_verb(&app_, "doctor", "doctor");
    add_settings(verb, doctor_.settings);
    verb->add_flag("--json", doctor_.json, "For machines");
    verb->footer("\nThe exit status is 1 if `farheap run` cannot work here.");
    verb->callback([this] { status_ = doctor(doctor_); });
  }

  void add_core() {
    CLI::App* verb = add_verb(&app_, "core", "core");
    verb->add_option("CORE", core_.core, "The core, as the kernel wrote it");
    verb->add_option("--pid", core_.process, "A running program instead; it stops for as long as it takes")
        ->type_name("PID");
    verb->add_option("--store", core_.store, "Where its program had its pages: `farheap run` has said it")
        ->type_name("URI");
    verb->add_option("--out", core_.out, "The file to make, with all data in it")->required()->type_name("FILE");
    add_settings(verb, core_.settings);
    verb->add_flag("--json", core_.json, "For machines");
    verb->footer("\nThe exit status is 1 if pages are missing. The new file holds all data of the program in plain.");
    verb->callback([this] { status_ = core(core_); });
  }

  void add_options() {
    CLI::App* verb = add_verb(&app_, "options", "options");
    add_settings(verb, options_.settings);
    verb->add_flag("--json", options_.json, "For machines");
    verb->callback([this] { status_ = options(options_); });
  }

  void add_store() {
    CLI::App* store = app_.add_subcommand("store", "What stores there are and what they can do");
    store->require_subcommand(1);
    CLI::App* bench = add_verb(store, "bench", "store bench");
    bench->add_option("URI", bench_.uri, "The store")->required();
    bench->add_option("--plot", bench_.plot, "Write a picture of YCSB's figures to this file")->type_name("FILE.svg");
    bench->add_flag("--json", bench_.json, "For machines");
    bench->footer(
        "\nYCSB: 1000 records of 1000 bytes, loaded; workload A, 500 reads and 500 writes; workload F, 500 reads and "
        "500 "
        "read-modify-writes. What it wrote is removed.");
    bench->callback([this] { status_ = store_bench(bench_); });
    add_store_check(store);
    add_kept_stores(store);
    CLI::App* kinds = add_verb(store, "kinds", "store kinds");
    kinds->add_flag("--json", kinds_.json, "For machines");
    kinds->callback([this] { status_ = store_kinds(kinds_); });
  }

  void add_kept_stores(CLI::App* store) {
    const auto add = [&](const char* name, const char* full_name, StoreArguments::What what, const char* uri) {
      CLI::App* verb = add_verb(store, name, full_name);
      verb->add_option(what == StoreArguments::kCopy ? "FROM" : "URI", store_.uri, uri)->required();
      add_settings(verb, store_.settings);
      verb->add_flag("--json", store_.json, "For machines");
      verb->callback([this, what] {
        store_.what = what;
        status_ = tool::store(store_);
      });
      return verb;
    };
    add("ls", "store ls", StoreArguments::kList, "Of one store, or of the place where several are");
    CLI::App* copy = add("copy", "store copy", StoreArguments::kCopy, "The store; nobody may have it open");
    copy->add_option("TO", store_.other, "Where no store is; it gets blocks of the same size")->required();
    copy->footer(
        "\nWhat was begun is removed again if it cannot be ended. `farheap heap copy` copies a heap that is open.");
    CLI::App* remove = add("rm", "store rm", StoreArguments::kRemove, "The store; nobody may have it open");
    remove->add_flag("--yes", store_.yes, "Do not ask, which is done on a terminal only");
    remove->footer("\nThe exit status is 1 if there is none, or if it is open.");
  }

  void add_store_check(CLI::App* store) {
    CLI::App* verb = add_verb(store, "check", "store check");
    verb->add_option("URI", check_.uri, "The store; its name is replaced by one that nobody else has")->required();
    verb->add_option("--only", check_.only, "This check alone")->type_name("CHECK");
    verb->add_option("--block", check_.blocks, "With blocks of this size instead of 4K and 64K")
        ->type_name("SIZE")
        ->allow_extra_args(false)
        ->take_all();
    add_settings(verb, check_.settings);
    verb->add_flag("--json", check_.json, "For machines");
    verb->footer(
        "\nThe exit status is 1 if a check is broken. What it makes on the server is removed, also after Ctrl-C.");
    verb->callback([this] { status_ = store_check(check_); });
  }

  void add_heap() {
    CLI::App* heap = app_.add_subcommand("heap", "Kept heaps: what is in them, and their versions");
    heap->require_subcommand(1);
    struct HeapVerb {
      const char* name;
      const char* full_name;
      HeapArguments::What what;
      const char* wants_name;  // what NAME is; nullptr: none
      bool has_json;
      bool needs_name = true;
    };
    static constexpr HeapVerb kVerbs[] = {
        {"ls", "heap ls", HeapArguments::kList, nullptr, true},
        {"show", "heap show", HeapArguments::kShow, "The object, or 0xADDRESS; none: the heap itself", true, false},
        {"stats", "heap stats", HeapArguments::kStats, nullptr, true},
        {"snapshot", "heap snapshot", HeapArguments::kSnapshot, "The snapshot's", true},
        {"compact", "heap compact", HeapArguments::kCompact, nullptr, true},
    };
    for (const HeapVerb& one : kVerbs) {
      CLI::App* verb = add_verb(heap, one.name, one.full_name);
      verb->add_option("URI", heap_.uri, "The heap: file:FILE, lmdb:FILE, decorators before it")->required();
      if (one.wants_name != nullptr) verb->add_option("NAME", heap_.name, one.wants_name)->required(one.needs_name);
      if (one.has_json) verb->add_flag("--json", heap_.json, "For machines");
      add_wait(verb);
      if (one.what == HeapArguments::kList || one.what == HeapArguments::kStats) add_long_names(verb);
      verb->callback([this, what = one.what] { status_ = heap_verb(what); });
    }
    add_heap_remove(heap);
    add_heap_roll_back(heap);
    add_heap_diff(heap);
    add_heap_export(heap);
    add_heap_check(heap);
    add_heap_copy(heap);
  }

  void add_wait(CLI::App* verb) {
    verb->add_option("--wait", heap_.wait, "How long to wait for a program that has the heap open; by default 1")
        ->type_name("SECONDS")
        ->check(CLI::Range(0.0, 1e6));
  }

  void add_long_names(CLI::App* verb) {
    verb->add_flag("--long", heap_.long_names, "All of each name and type, and lines as long as that takes");
  }

  void add_heap_remove(CLI::App* heap) {
    CLI::App* verb = add_verb(heap, "rm", "heap rm");
    verb->add_option("URI", heap_.uri, "The heap, which nobody may have open; or URI@SNAPSHOT")->required();
    verb->add_flag("--yes", heap_.yes, "Do not ask, which is done on a terminal only");
    verb->add_flag("--json", heap_.json, "For machines");
    verb->footer("\nThe exit status is 1 if there is none, or if it is open.");
    add_wait(verb);
    verb->callback([this] { status_ = heap_verb(HeapArguments::kRemove); });
  }

  void add_heap_roll_back(CLI::App* heap) {
    CLI::App* verb = add_verb(heap, "rollback", "heap rollback");
    verb->add_option("URI", heap_.uri, "The heap, which nobody may write; or URI@SNAPSHOT: by default the newest one")
        ->required();
    verb->add_flag("--yes", heap_.yes, "Do not ask, which is done on a terminal only");
    verb->add_flag("--json", heap_.json, "For machines");
    add_wait(verb);
    verb->callback([this] { status_ = heap_verb(HeapArguments::kRollBack); });
  }

  void add_heap_check(CLI::App* heap) {
    CLI::App* verb = add_verb(heap, "check", "heap check");
    verb->add_option("URI", heap_.uri, "The heap: file:FILE, lmdb:FILE, decorators before it")->required();
    verb->add_flag("--data", heap_.data, "Read all pages, too: a store with checksums tells which are damaged");
    verb->add_flag("--pointers", heap_.pointers,
                   "Look for pointers out of the heap, too: a guess, by what their values look like");
    add_long_names(verb);
    verb->add_flag("--repair", heap_.repair,
                   "Make a damaged heap anew out of the versions that are whole; its files stay as FILE.damaged");
    verb->add_flag("--json", heap_.json, "For machines");
    verb->footer(
        "\nThe exit status is 1 if it is damaged, and with --repair if no version is whole; with --pointers it is 3 if "
        "the "
        "heap is sound and there is what looks like a pointer out of it.");
    add_wait(verb);
    verb->callback([this] { status_ = heap_verb(HeapArguments::kCheck); });
  }

  void add_heap_copy(CLI::App* heap) {
    CLI::App* verb = add_verb(heap, "copy", "heap copy");
    verb->add_option("FROM", heap_.uri, "The heap; URI@SNAPSHOT copies that version alone")->required();
    verb->add_option("TO", heap_.other, "Where no heap is: file:FILE, lmdb:FILE, decorators before it")->required();
    verb->add_flag("--newest", heap_.newest_only, "Without the snapshots");
    verb->add_flag("--own-bytes", heap_.own_bytes,
                   "Copy the bytes where the file system could share them: the copy lies in the order of addresses");
    verb->add_flag("--json", heap_.json, "For machines");
    verb->footer("\nA program may go on working with the heap: the copy is of its last commit.");
    add_wait(verb);
    verb->callback([this] { status_ = heap_verb(HeapArguments::kCopy); });
  }

  void add_heap_diff(CLI::App* heap) {
    CLI::App* verb = add_verb(heap, "diff", "heap diff");
    verb->add_option("A", heap_.uri, "A version: URI of the newest one, or URI@SNAPSHOT")->required();
    verb->add_option("B", heap_.other, "Another one of the same heap, or of its copy")->required();
    verb->add_flag("--json", heap_.json, "For machines");
    add_long_names(verb);
    verb->footer("\nThe cost follows what differs, and how many objects there are; of two copies, all pages are read.");
    add_wait(verb);
    verb->callback([this] { status_ = heap_verb(HeapArguments::kDiff); });
  }

  void add_heap_export(CLI::App* heap) {
    CLI::App* verb = add_verb(heap, "export", "heap export");
    verb->add_option("URI", heap_.uri, "The heap: file:FILE, lmdb:FILE, decorators before it")->required();
    verb->add_option("OUT", heap_.out, "The file to write; - is standard output")->required();
    verb->add_option("--object", heap_.name, "The bytes of this object instead, or of the one at 0xADDRESS")
        ->type_name("NAME");
    verb->footer(
        "\nThe bytes are the object's own, as they are in memory: an array of numbers is one of numbers; of a "
        "container "
        "they hold pointers, and what these point to is not in the file.");
    add_wait(verb);
    verb->callback([this] { status_ = heap_verb(HeapArguments::kExport); });
  }

  int heap_verb(HeapArguments::What what) {
    heap_.what = what;
    return tool::heap(heap_);
  }

  Words words_;
  CLI::App app_;
  int status_ = kDone;
  std::vector<std::string> shorts_;
  RunArguments run_;
  AttachArguments attach_;
  TopArguments top_;
  ReportArguments report_;
  PlanArguments plan_;
  DoctorArguments doctor_;
  CoreArguments core_;
  OptionsArguments options_;
  HeapArguments heap_;
  StoreBenchArguments bench_;
  StoreCheckArguments check_;
  StoreArguments store_;
  StoreKindsArguments kinds_;
};

}  // namespace
}  // namespace farheap::tool

int main(int count, char** values) {
  using namespace farheap::tool;
  open_standard_descriptors();
  CommandLine line(split_words(count, values));
  hide_passwords(count, values);
  hide_passwords_in_environment();
  const int status = line.execute();
  const auto written = finish_output();
  if (!written) complain(written.error());
  if (status != kDone && Interruption::noted() != 0) Interruption::end();
  if (written) return status;
  return status == kDone ? kFailed : status;
}
