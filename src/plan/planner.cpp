// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "plan/planner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "base/units.hpp"
#include "plan/object_uses.hpp"
#include "plan/page_owners.hpp"
#include "plan/round.hpp"
#include "plan/site_numbers.hpp"
#include "profile/page_trace.hpp"
#include "profile/recording.hpp"

namespace farheap::plan {

namespace {

constexpr char kWhat[] = "cannot make a plan";
constexpr std::uint64_t kLeastUses = 64;      // fewer tell nothing
constexpr std::uint32_t kLeastForeseen = 75;  // of 100: below it a program gets no plan
constexpr std::uint32_t kLeastOfObject = 50;  // ... and an object is left out of it
constexpr std::uint64_t kMostWindow = 1 << 20;
constexpr std::size_t kMostParts = 1024;  // of an object
constexpr double kMostInUse = 0.4;
constexpr double kSmall = 16;              // a part of all that is planned
constexpr double kSoon = 6, kLongest = 3;  // part of memory; times that (joined_uses)
constexpr std::uint64_t kNear = 16;        // a use is foreseen if it comes so part of memory early or late

// Objects by site and number: those of which one follows the other are one. `named` says which one each is.
std::vector<ObjectUses> number_objects(const profile::ProcessProfile& process, Plan& plan,
                                       std::vector<std::size_t>& named) {
  struct Event {
    std::uint64_t at;
    std::size_t object;
    bool is_birth;
  };
  std::vector<Event> events;
  for (std::size_t i = 0; i < process.objects.size(); ++i) {
    events.push_back({process.objects[i].born, i, true});
    if (process.objects[i].died != 0) events.push_back({process.objects[i].died, i, false});
  }
  std::ranges::sort(events, {}, &Event::at);
  SiteNumbers sites(process.frames);
  ObjectNumbers numbers;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::size_t>> known;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> keys(process.objects.size());
  for (const Event& event : events) {
    auto& [site, number] = keys[event.object];
    if (event.is_birth) {
      site = sites.number_of(process.objects[event.object].site);
      number = numbers.born(site);
      known[keys[event.object]].push_back(event.object);
    } else {
      numbers.died(site, number);
    }
  }
  plan.sites = sites.names();
  std::vector<ObjectUses> all;
  all.reserve(known.size());
  named.assign(process.objects.size(), 0);
  for (const auto& [key, objects] : known) {
    for (const std::size_t object : objects) named[object] = all.size();
    all.push_back({key.first, key.second, {}});
    for (const std::size_t object : objects) {
      all.back().lives.push_back({process.objects[object].first, process.objects[object].bytes, {}});
    }
  }
  return all;
}

// The share of the time in which a part is, or may be, in use. The order of an object that is in use as a whole tells
// nothing of what may leave.
double time_in_use(const PlannedObject& object, const Plan& plan, const Joining& joining) {
  const double from = plan.round != 0 ? plan.once : 0, to = plan.times().end();
  double sum = 0;
  for (const auto& uses : object.parts) {
    double until = from;
    for (const PlannedUse& use : uses) {
      if (use.time < from) continue;
      const double half = use.pages / joining.pages_a_time / 2;
      const double end = std::min(use.time + half + plan.window, to);
      sum += std::max(end - std::max(use.time - half, until), 0.0);
      until = std::max(until, end);
    }
  }
  return to > from ? sum / (to - from) / static_cast<double>(object.parts.size()) : 0;
}

// A small object that is used all the time is in the sampler's window most of the time, and looks as if it was not used
// at all. It stays with the pager's own policy.
void leave_out_small_unused(Plan& plan) {
  if (plan.round == 0) return;
  double all = 0;  // the sizes may be anything
  for (const PlannedObject& object : plan.objects) all += static_cast<double>(object.bytes);
  std::erase_if(plan.objects, [&](const PlannedObject& object) {
    const auto is_used = [&](const std::vector<PlannedUse>& uses) {
      return !uses.empty() && uses.back().time >= plan.once;
    };
    const auto used = static_cast<std::uint64_t>(std::ranges::count_if(object.parts, is_used));
    return static_cast<double>(object.bytes) < all / kSmall && 2 * used < object.parts.size();
  });
}

// Nine of ten errors are below it; it is not less than `least`.
std::uint32_t usual_error(std::vector<double> errors, std::uint32_t least) {
  if (errors.empty()) return least;
  const auto high = errors.begin() + std::ssize(errors) * 9 / 10;
  std::ranges::nth_element(errors, high);
  return std::max(least, static_cast<std::uint32_t>(std::ceil(*high)));
}

// Which of an object's pages are its own. Of the beginning it is not known who had a page then that had several owners:
// the last one may not have been there yet.
enum class Touched : std::uint8_t { kThroughout, kInTheBeginning };

// What a profile says of all objects.
struct SeenUses {
  Plan plan;  // without objects
  std::vector<ObjectUses> objects;
  std::size_t pages = 0;  // of the sample, that were used
  std::uint32_t uses = 0, in_large = 0;
  std::uint32_t fresh_elsewhere = 0;  // first uses of what is in no large object
  std::uint32_t near = 0;
  Round round;

  [[nodiscard]] Joining joining(const profile::Touches& touches) const {
    const double soon = static_cast<double>(pages) / kSoon;
    return {soon, kLongest * soon, std::exp2(touches.one_in_log2)};
  }
};

Result<SeenUses> seen_uses(const profile::Profile& profile, const profile::ProcessProfile& process,
                           const profile::Touches& touches, Touched touched, const std::string& name) {
  SeenUses found;
  Plan& plan = found.plan;
  plan.program = process.name;
  plan.files = profile.files;
  plan.window = std::max<std::uint32_t>(touches.window, 1);
  plan.window_pages = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(std::uint64_t{plan.window} << touches.one_in_log2, kMostWindow));

  std::vector<std::size_t> named;
  found.objects = number_objects(process, plan, named);
  const PageOwners owners(process.objects, named);
  std::unordered_map<pager::PageNumber, std::size_t> seen;  // sampled pages
  std::uint32_t now = 0;
  std::vector<TimedUse> planned;
  for (const std::uint32_t word : touches.words) {
    const auto entry = profile::unpack_entry(word);
    if (!entry || (entry->event != profile::PageEvent::kCame && entry->event != profile::PageEvent::kCameFresh))
      continue;
    seen.try_emplace(entry->page, seen.size());
    const auto object = touched == Touched::kThroughout ? owners.last(entry->page) : owners.alone(entry->page);
    if (object) {
      found.objects[named[*object]].use(entry->page * base::kPageBytes + base::kPageBytes / 2, now);
      planned.push_back({now, static_cast<std::uint32_t>(seen[entry->page])});
    } else if (entry->event == profile::PageEvent::kCameFresh) {
      ++found.fresh_elsewhere;
    }
    ++now;
  }
  if (now < kLeastUses) {
    return fail(ErrorCode::kInvalidArgument, kWhat, name, fmt::format("only {} uses of its pages were seen", now),
                "record a run that takes a second or more, and uses some ten megabytes");
  }
  found.uses = now;
  found.in_large = static_cast<std::uint32_t>(planned.size());
  found.pages = seen.size();
  found.near = std::max<std::uint32_t>(plan.window, static_cast<std::uint32_t>(seen.size() / kNear));
  found.round = find_round(planned, now, found.near);
  plan.once = found.round.length == 0 ? now : found.round.begin;
  plan.round = found.round.length;
  return found;
}

Result<Plan> plan_of(const profile::Profile& profile, const profile::ProcessProfile& process,
                     const profile::Touches& touches, Touched touched, const std::string& name) {
  auto seen = seen_uses(profile, process, touches, touched, name);
  if (!seen) return fail(std::move(seen.error()));
  Plan plan = std::move(seen->plan);
  const Joining joining = seen->joining(touches);
  // Uses that chance does not tell. Of what is not planned a first use needs nothing to be read.
  double told = 0, to_tell = seen->uses - seen->fresh_elsewhere;
  std::vector<double> errors;
  for (const ObjectUses& object : seen->objects) {
    const std::uint64_t uses = object.uses();
    if (uses == 0) continue;
    const auto foreseen =
        object.foreseen({.once = static_cast<double>(seen->uses), .round = 0}, seen->near, seen->round);
    const double share = foreseen.share();
    to_tell -= foreseen.by_chance;
    PlannedObject one{.site = object.site,
                      .number = object.number,
                      .bytes = object.bytes(),
                      .foreseen = static_cast<std::uint32_t>(std::lround(100 * share)),
                      .parts = {}};
    if (one.foreseen < kLeastOfObject) continue;
    one.parts = object.parts(plan.times(), joining, kMostParts);
    if (time_in_use(one, plan, joining) > kMostInUse) continue;
    told += share * (foreseen.uses - foreseen.by_chance);
    std::ranges::copy(object.errors(plan.times(), joining), std::back_inserter(errors));
    plan.objects.push_back(std::move(one));
  }
  leave_out_small_unused(plan);
  plan.unsure = usual_error(errors, plan.window);
  plan.foreseen = static_cast<std::uint32_t>(std::lround(to_tell > 0 ? 100 * told / to_tell : 0));
  if (plan.foreseen < kLeastForeseen) {
    return fail(
        ErrorCode::kUnavailable, kWhat, name,
        fmt::format("of {}'s uses of memory only {} % could have been foreseen ({} % of them were of objects of {} or "
                    "more, which a plan speaks of), and a plan is worth its while from {} % on",
                    plan.program, plan.foreseen, std::uint64_t{100} * seen->in_large / seen->uses,
                    base::format_size(profile::kLargeObjectBytes), kLeastForeseen),
        "run it without one");
  }
  return plan;
}

}  // namespace

const profile::ProcessProfile* process_to_plan(const profile::Profile& profile) {
  const auto most =
      std::ranges::max_element(profile.processes, {}, [](const auto& one) { return one.touches.words.size(); });
  return most == profile.processes.end() || most->touches.words.empty() ? nullptr : &*most;
}

namespace {

Error no_order(const profile::Profile& profile, const std::string& name) {
  const bool counts =
      std::ranges::any_of(profile.processes, [](const auto& one) { return !one.contexts.contexts.empty(); });
  return {ErrorCode::kInvalidArgument, kWhat, name, "it does not tell in which order pages were used",
          counts ? "a program that counts its contexts does not look at it: record it with `farheap record -- PROGRAM`"
                 : "record a run that uses some ten megabytes or more"};
}

// A file's reader refuses such figures; whoever made the profile otherwise hears of them here.
Status check_order(const profile::Touches& touches, const char* section, const std::string& name) {
  if (touches.is_sound()) return {};
  return fail(ErrorCode::kCorrupt, kWhat, name,
              fmt::format("its section {} says what no sampler does: one page in 2^{}, a window of {}, {} pages, {} "
                          "words",
                          section, touches.one_in_log2, touches.window, touches.pages, touches.words.size()),
              "record it again");
}

Status check_process(const profile::ProcessProfile& process, const std::string& name) {
  if (process.is_attached) {
    return fail(ErrorCode::kInvalidArgument, kWhat, name,
                "it was recorded in the middle of a run: what was allocated before is not known",
                "record the program from its start, as `farheap record -- PROGRAM`");
  }
  if (Status sound = check_order(process.touches, "5 (the order of its pages)", name); !sound) return sound;
  if (Status sound = check_order(process.detailed, "8 (the beginning in detail)", name); !sound) return sound;
  if (std::ranges::all_of(process.objects, &profile::LargeObject::is_sound)) return {};
  return fail(ErrorCode::kCorrupt, kWhat, name, "its section 7 has large objects that cannot have been",
              "record it again");
}

}  // namespace

namespace {

// The beginning in detail tells it best, if there are rounds in it already.
Result<MadePlan> plan_process(const profile::Profile& profile, const profile::ProcessProfile& process,
                              const std::string& name) {
  if (Status sound = check_process(process, name); !sound) return fail(std::move(sound.error()));
  if (!process.detailed.words.empty()) {
    auto detailed = plan_of(profile, process, process.detailed, Touched::kInTheBeginning, name);
    if (detailed && detailed->round != 0) return MadePlan{std::move(*detailed), &process};
  }
  auto whole = plan_of(profile, process, process.touches, Touched::kThroughout, name);
  if (!whole) return fail(std::move(whole.error()));
  return MadePlan{std::move(*whole), &process};
}

}  // namespace

Result<MadePlan> make_plan(const profile::Profile& profile, const std::string& name) {
  std::vector<const profile::ProcessProfile*> processes;
  for (const profile::ProcessProfile& process : profile.processes) {
    if (!process.touches.words.empty()) processes.push_back(&process);
  }
  if (processes.empty()) return fail(no_order(profile, name));
  std::ranges::stable_sort(processes, std::ranges::greater{},
                           [](const auto* one) { return one->touches.words.size(); });
  auto first = plan_process(profile, *processes.front(), name);
  for (auto next = processes.begin() + 1; !first && next != processes.end(); ++next) {
    if (auto made = plan_process(profile, **next, name)) return made;
  }
  return first;
}

std::vector<LiveObject> recorded_objects(const profile::ProcessProfile& process, const Plan& plan) {
  Plan sites;  // the same numbers of sites, and of objects
  std::vector<std::size_t> named;
  const std::vector<ObjectUses> objects = number_objects(process, sites, named);
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> planned;
  for (std::uint32_t i = 0; i < plan.objects.size(); ++i) planned[{plan.objects[i].site, plan.objects[i].number}] = i;
  std::vector<LiveObject> found;
  for (const ObjectUses& object : objects) {
    const auto one = planned.find({object.site, object.number});
    if (one == planned.end()) continue;
    for (const ObjectLife& life : object.lives) found.push_back({one->second, life.first, life.bytes});
  }
  return found;
}

// How often objects are used the whole run tells; when, the beginning in detail, as for a plan.
Result<HintPlan> plan_hints(const profile::Profile& profile, const std::string& name) {
  const profile::ProcessProfile* const process = process_to_plan(profile);
  if (process == nullptr) return fail(no_order(profile, name));
  if (Status sound = check_process(*process, name); !sound) return fail(std::move(sound.error()));
  const auto whole = seen_uses(profile, *process, process->touches, Touched::kThroughout, name);
  if (!whole) return fail(whole.error());
  const auto begin = seen_uses(profile, *process, process->detailed, Touched::kInTheBeginning, name);
  const bool is_in_detail = begin && begin->round.length != 0;
  const SeenUses& timed = is_in_detail ? *begin : *whole;
  const Joining joining = timed.joining(is_in_detail ? process->detailed : process->touches);
  HintPlan hints{timed.plan, {}};
  for (std::size_t i = 0; i < whole->objects.size(); ++i) {  // the same in both
    const ObjectUses& object = timed.objects[i];
    const std::uint64_t uses = whole->objects[i].uses();
    if (uses == 0 && object.uses() == 0) continue;
    PlannedObject one{.site = object.site, .number = object.number, .bytes = object.bytes(), .parts = {{}}};
    if (object.uses() != 0) one.parts = object.parts(timed.plan.times(), joining, kMostParts);
    hints.plan.objects.push_back(std::move(one));
    hints.accesses.push_back(uses << process->touches.one_in_log2);
  }
  return hints;
}

}  // namespace farheap::plan
