// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "plan/planner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>

#include "base/units.hpp"
#include "plan/object_uses.hpp"
#include "plan/page_owners.hpp"
#include "plan/regions.hpp"
#include "plan/round.hpp"
#include "plan/site_numbers.hpp"
#include "plan/strides.hpp"
#include "profile/page_trace.hpp"
#include "profile/recording.hpp"

namespace farheap::plan {

namespace {

constexpr char kCannotPlan[] = "cannot make a plan";
constexpr std::uint64_t kLeastUses = 64;      // fewer tell nothing
constexpr std::uint32_t kLeastForeseen = 75;  // of 100: below it a program gets no plan
constexpr std::uint32_t kLeastOfObject = 50;  // ... and an object is left out of it
constexpr std::uint64_t kMostWindow = 1 << 20;
constexpr std::size_t kMostParts = 1024;  // of an object
constexpr double kMostInUse = 0.4;
constexpr double kSmall = 16;              // a part of all that is planned
constexpr double kSoon = 6, kLongest = 3;  // part of memory; times that (joined_uses)
constexpr std::uint64_t kNear = 16;        // a use is foreseen if it comes so part of memory early or late

constexpr std::uint32_t kMostLeft = 4;  // a part of all uses: a round that is over before is not what the program does
constexpr std::uint32_t kLeastOfPhase = 8;  // a part of all uses: what is shorter is no phase of its own
constexpr double kOtherRound = 0.1;         // rounds whose lengths, or orders, differ by more are not the same
constexpr std::size_t kComparedParts = 8;   // of each object
constexpr double kAlikeRounds = 0.75;       // so many of these are used alike in rounds that are the same

// A plan without phases, and what is known of the process's objects before their uses are.
struct NumberedObjects {
  Plan plan;
  std::vector<ObjectUses> objects;  // by site and number: those of which one follows the other are one
  std::vector<std::size_t> named;   // by the profile's objects: which of `objects` it is
};

NumberedObjects number_objects(const profile::ProcessProfile& process) {
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
  NumberedObjects found;
  found.plan.program = process.name;
  found.plan.sites = sites.names();
  std::vector<ObjectUses>& all = found.objects;
  all.reserve(known.size());
  found.named.assign(process.objects.size(), 0);
  for (const auto& [key, objects] : known) {
    for (const std::size_t object : objects) found.named[object] = all.size();
    all.push_back({key.first, key.second, {}});
    for (const std::size_t object : objects) {
      all.back().lives.push_back({process.objects[object].first, process.objects[object].bytes, {}});
    }
  }
  return found;
}

// The share of the time in which a part is, or may be, in use. The order of an object that is in use as a whole tells
// nothing of what may leave.
double time_in_use(const PlannedObject& object, const PlannedPhase& phase, const Joining& joining) {
  const double from = phase.round != 0 ? phase.once : 0, to = phase.times().end();
  double sum = 0;
  for (const auto& uses : object.parts) {
    double until = from;
    for (const PlannedUse& use : uses) {
      if (use.time < from) continue;
      const double half = use.pages / joining.pages_a_time / 2;
      const double end = std::min(use.time + half + phase.window, to);
      sum += std::max(end - std::max(use.time - half, until), 0.0);
      until = std::max(until, end);
    }
  }
  return to > from ? sum / (to - from) / static_cast<double>(object.parts.size()) : 0;
}

// A small object that is used all the time is in the sampler's window most of the time, and looks as if it was not used
// at all. It stays with the pager's own policy.
void leave_out_small_unused(PlannedPhase& phase) {
  if (phase.round == 0) return;
  double all = 0;  // the sizes may be anything
  for (const PlannedObject& object : phase.objects) all += static_cast<double>(object.bytes);
  std::erase_if(phase.objects, [&](const PlannedObject& object) {
    const auto is_used = [&](const std::vector<PlannedUse>& uses) {
      return !uses.empty() && uses.back().time >= phase.once;
    };
    if (!object.strides.empty()) return false;
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

// A part of the uses that were seen, counted in them.
struct Stretch {
  std::uint32_t from = 0, to = ~std::uint32_t{0};
};

// What a profile says of all objects in a stretch.
struct SeenUses {
  PlannedPhase phase;  // without objects
  std::vector<ObjectUses> objects;
  std::vector<TimedUse> planned;  // of the objects' pages
  std::size_t pages = 0;          // of the sample, that were used
  std::uint32_t uses = 0;
  std::uint32_t fresh_elsewhere = 0;  // first uses of what is in no large object
  std::uint32_t near = 0;
  Round round;

  [[nodiscard]] Joining joining(const profile::Touches& touches) const {
    const double soon = static_cast<double>(pages) / kSoon;
    return {soon, kLongest * soon, std::exp2(touches.one_in_log2)};
  }
};

Result<SeenUses> seen_uses(const NumberedObjects& numbered, const profile::ProcessProfile& process,
                           const profile::Touches& touches, Touched touched, const std::string& name,
                           Stretch stretch = {}) {
  SeenUses found;
  PlannedPhase& phase = found.phase;
  phase.window = std::max<std::uint32_t>(touches.window, 1);
  phase.window_pages = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(std::uint64_t{phase.window} << touches.one_in_log2, kMostWindow));

  found.objects = numbered.objects;
  const std::vector<std::size_t>& named = numbered.named;
  const PageOwners owners(process.objects, named);
  std::unordered_map<pager::PageNumber, std::size_t> seen;  // sampled pages
  std::uint32_t now = 0, skipped = 0;
  for (const std::uint32_t word : touches.words) {
    const auto entry = profile::unpack_entry(word);
    if (!entry || (entry->event != profile::PageEvent::kCame && entry->event != profile::PageEvent::kCameFresh))
      continue;
    if (skipped < stretch.from) {
      ++skipped;
      continue;
    }
    if (now == stretch.to - stretch.from) break;
    seen.try_emplace(entry->page, seen.size());
    const auto object = touched == Touched::kThroughout ? owners.last(entry->page) : owners.alone(entry->page);
    if (object) {
      found.objects[named[*object]].use(entry->page * base::kPageBytes + base::kPageBytes / 2, now);
      found.planned.push_back({now, static_cast<std::uint32_t>(seen[entry->page])});
    } else if (entry->event == profile::PageEvent::kCameFresh) {
      ++found.fresh_elsewhere;
    }
    ++now;
  }
  if (now < kLeastUses) {
    return fail(ErrorCode::kInvalidArgument, kCannotPlan, name, fmt::format("only {} uses of its pages were seen", now),
                "record a run that takes a second or more, and uses some ten megabytes");
  }
  found.uses = now;
  found.pages = seen.size();
  found.near = std::max<std::uint32_t>(phase.window, static_cast<std::uint32_t>(seen.size() / kNear));
  found.round = find_round(found.planned, now, found.near);
  if (now - found.round.end > now / kMostLeft) found.round = {};
  phase.once = found.round.length == 0 ? now : found.round.begin;
  phase.round = found.round.length;
  return found;
}

// Those that begin before the round is repeated.
std::vector<PlannedStride> planned_strides(std::span<const StridedPass> passes, const PlanTimes& times) {
  std::vector<PlannedStride> planned;
  const auto end = static_cast<std::uint32_t>(times.end());
  for (const StridedPass& pass : passes) {
    if (pass.begin >= end) break;
    planned.push_back({pass.repeats, pass.times});
    for (std::uint32_t& time : planned.back().times) time = std::min(time, end);
    if (planned.back().begin() >= end) planned.pop_back();  // rounded
  }
  return planned;
}

Result<PlannedPhase> phase_of(const SeenUses& seen, const profile::Touches& touches, const std::string& program,
                              const std::string& name) {
  PlannedPhase phase = seen.phase;
  const Joining joining = seen.joining(touches);
  // Uses that chance does not tell. Of what is not planned a first use needs nothing to be read.
  double told = 0, to_tell = seen.uses - seen.fresh_elsewhere;
  std::vector<double> errors;
  for (ObjectUses object : seen.objects) {
    if (object.uses() == 0) continue;
    std::vector<StridedPass> strided;
    if (object.lives.size() == 1) strided = take_strided(object.lives.front(), seen.near);
    auto foreseen = object.foreseen({.once = static_cast<double>(seen.uses), .round = 0}, seen.near, seen.round);
    for (const StridedPass& pass : strided) foreseen += pass.foreseen;
    const double share = foreseen.share();
    to_tell -= foreseen.by_chance;
    PlannedObject one{.site = object.site,
                      .number = object.number,
                      .bytes = object.bytes(),
                      .foreseen = static_cast<std::uint32_t>(std::lround(100 * share)),
                      .parts = {},
                      .strides = planned_strides(strided, phase.times())};
    if (one.foreseen < kLeastOfObject) continue;
    one.parts = object.parts(phase.times(), joining, kMostParts);
    if (time_in_use(one, phase, joining) > kMostInUse) continue;
    told += share * (foreseen.uses - foreseen.by_chance);
    std::ranges::copy(object.errors(phase.times(), joining), std::back_inserter(errors));
    phase.objects.push_back(std::move(one));
  }
  leave_out_small_unused(phase);
  phase.unsure = usual_error(errors, phase.window);
  phase.foreseen = static_cast<std::uint32_t>(std::lround(to_tell > 0 ? 100 * told / to_tell : 0));
  if (phase.foreseen < kLeastForeseen) {
    return fail(
        ErrorCode::kUnavailable, kCannotPlan, name,
        fmt::format("of {}'s uses of memory only {} % could have been foreseen ({} % of them were of objects of {} or "
                    "more, which a plan speaks of), and a plan is worth its while from {} % on",
                    program, phase.foreseen, std::uint64_t{100} * seen.planned.size() / seen.uses,
                    base::format_size(profile::kLargeObjectBytes), kLeastForeseen),
        "run it without one");
  }
  return phase;
}

std::vector<TimedUse> uses_within(std::span<const TimedUse> uses, Stretch stretch) {
  const auto first = std::ranges::lower_bound(uses, stretch.from, {}, &TimedUse::time);
  const auto end = std::ranges::lower_bound(uses, stretch.to, {}, &TimedUse::time);
  std::vector<TimedUse> found(first, end);
  for (TimedUse& use : found) use.time -= stretch.from;
  return found;
}

// The stretches in which a round is repeated, each from the end of the one before on. `least`: none is shorter.
void find_stretches(std::span<const TimedUse> uses, Stretch within, std::uint32_t near, std::uint32_t least,
                    std::vector<Stretch>& into) {
  if (within.to - within.from < least) return;
  const Round round = find_round(uses_within(uses, within), within.to - within.from, near);
  if (round.length == 0 || round.end - round.begin < least) return;
  const std::uint32_t begin = within.from + round.begin, end = within.from + round.end;
  const std::size_t before = into.size();
  find_stretches(uses, {within.from, begin}, near, least, into);
  into.push_back({into.size() == before ? within.from : into.back().to, end});
  find_stretches(uses, {end, within.to}, near, least, into);
}

// The parts that are compared lie equally far from each other. This is the i-th of them.
std::size_t compared_part(std::size_t i, std::size_t parts) { return (2 * i + 1) * parts / (2 * kComparedParts); }

// When in the round this part of an object is used, from 0 to 1.
std::vector<double> places_in_round(const PlannedPhase& phase, const std::vector<PlannedUse>& part) {
  std::vector<double> places;
  for (const PlannedUse& use : part) {
    if (use.time >= phase.once) places.push_back((use.time - phase.once) / static_cast<double>(phase.round));
  }
  return places;
}

// The same of a part of all pieces, in its passes across an object.
std::vector<double> places_of_strides(const PlannedPhase& phase, const PlannedObject& object, std::size_t part) {
  std::vector<double> places;
  for (const PlannedStride& stride : object.strides) {
    const std::uint32_t time = stride.times[compared_part(part, stride.times.size())];
    if (time < phase.once || time >= phase.times().end()) continue;  // a pass may go on beyond the round
    places.push_back((time - phase.once) / static_cast<double>(phase.round));
  }
  return places;
}

// In how many pieces the object is for the passes of the round.
std::set<std::uint32_t> widths_in_round(const PlannedPhase& phase, const PlannedObject& object) {
  std::set<std::uint32_t> found;
  for (const PlannedStride& stride : object.strides) {
    if (std::ranges::max(stride.times) >= phase.once) found.insert(stride.repeats);
  }
  return found;
}

// What looks like two phases may be one that something else has interrupted: then rounds are equally long, and parts of
// objects are used in the same order, wherever in it the round is taken to begin.
bool is_same_round(const PlannedPhase& one, const PlannedPhase& other) {
  const double length = one.round, difference = std::abs(length - static_cast<double>(other.round));
  if (difference > kOtherRound * length) return false;
  std::map<std::pair<std::uint32_t, std::uint32_t>, const PlannedObject*> objects;
  for (const PlannedObject& object : other.objects) objects[{object.site, object.number}] = &object;
  std::optional<double> turned;
  std::uint32_t compared = 0, alike = 0;
  const auto compare = [&](const std::vector<double>& places, const std::vector<double>& others) {
    if (places.empty() && others.empty()) return;
    ++compared;
    if (places.size() != others.size()) return;
    if (!turned) turned = others.front() - places.front();
    alike += std::ranges::all_of(places, [&](double place) {
      return std::ranges::any_of(
          others, [&](double its) { return std::abs(std::remainder(its - place - *turned, 1.0)) <= kOtherRound; });
    });
  };
  for (const PlannedObject& object : one.objects) {
    const auto found = objects.find({object.site, object.number});
    const PlannedObject* const same = found == objects.end() ? nullptr : found->second;
    const bool is_comparable = same != nullptr && widths_in_round(one, object) == widths_in_round(other, *same);
    for (std::size_t i = 0; i < kComparedParts; ++i) {
      const auto places_of = [i](const PlannedPhase& phase, const PlannedObject& its) {
        return places_in_round(phase, its.parts[compared_part(i, its.parts.size())]);
      };
      compare(places_of(one, object), same == nullptr ? std::vector<double>() : places_of(other, *same));
      compare(places_of_strides(one, object, i),
              is_comparable ? places_of_strides(other, *same, i) : std::vector<double>());
    }
  }
  return alike >= kAlikeRounds * compared;
}

// Of a run that repeats one thing after another; none, if it is not known to.
std::vector<PlannedPhase> phases_of(const SeenUses& all, const NumberedObjects& numbered,
                                    const profile::ProcessProfile& process, const std::string& name) {
  const profile::Touches& touches = process.touches;
  std::vector<Stretch> stretches;
  find_stretches(all.planned, {0, all.uses}, all.near, all.uses / kLeastOfPhase, stretches);
  std::vector<PlannedPhase> phases;
  for (const Stretch& stretch : stretches) {
    const auto seen = seen_uses(numbered, process, touches, Touched::kThroughout, name, stretch);
    if (!seen || seen->round.length == 0) continue;
    auto phase = phase_of(*seen, touches, process.name, name);
    if (!phase || phase->objects.empty()) continue;
    if (phases.empty() || !is_same_round(phases.back(), *phase)) phases.push_back(std::move(*phase));
  }
  if (phases.size() < 2) phases.clear();
  return phases;
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
  return {ErrorCode::kInvalidArgument, kCannotPlan, name, "it does not tell in which order pages were used",
          counts ? "a program that counts its contexts does not look at it: record it with `farheap record -- PROGRAM`"
                 : "record a run that uses some ten megabytes or more"};
}

// A file's reader refuses such figures; whoever made the profile otherwise hears of them here.
Status check_order(const profile::Touches& touches, const char* section, const std::string& name) {
  if (touches.is_sound()) return {};
  return fail(ErrorCode::kCorrupt, kCannotPlan, name,
              fmt::format("its section {} says what no sampler does: one page in 2^{}, a window of {}, {} pages, {} "
                          "words",
                          section, touches.one_in_log2, touches.window, touches.pages, touches.words.size()),
              "record it again");
}

Status check_process(const profile::ProcessProfile& process, const std::string& name) {
  if (process.is_attached) {
    return fail(ErrorCode::kInvalidArgument, kCannotPlan, name,
                "it was recorded in the middle of a run: what was allocated before is not known",
                "record the program from its start, as `farheap record -- PROGRAM`");
  }
  if (Status sound = check_order(process.touches, "5 (the order of its pages)", name); !sound) return sound;
  if (Status sound = check_order(process.detailed, "8 (the beginning in detail)", name); !sound) return sound;
  if (std::ranges::all_of(process.objects, &profile::LargeObject::is_sound)) return {};
  return fail(ErrorCode::kCorrupt, kCannotPlan, name, "its section 7 has large objects that cannot have been",
              "record it again");
}

}  // namespace

namespace {

// Where all is one phase, the beginning in detail tells it best, if there are rounds in it already.
Result<std::vector<PlannedPhase>> phases_of(const NumberedObjects& numbered, const profile::ProcessProfile& process,
                                            const std::string& name) {
  const auto whole = seen_uses(numbered, process, process.touches, Touched::kThroughout, name);
  if (whole) {
    if (auto several = phases_of(*whole, numbered, process, name); !several.empty()) return several;
  }
  if (!process.detailed.words.empty()) {
    const auto begin = seen_uses(numbered, process, process.detailed, Touched::kInTheBeginning, name);
    if (begin && begin->round.length != 0) {
      if (auto phase = phase_of(*begin, process.detailed, process.name, name)) return std::vector{std::move(*phase)};
    }
  }
  if (!whole) return fail(whole.error());
  auto phase = phase_of(*whole, process.touches, process.name, name);
  if (!phase) return fail(std::move(phase.error()));
  return std::vector{std::move(*phase)};
}

Result<MadePlan> plan_process(const profile::Profile& profile, const profile::ProcessProfile& process,
                              const std::string& name) {
  if (Status sound = check_process(process, name); !sound) return fail(std::move(sound.error()));
  NumberedObjects numbered = number_objects(process);
  auto phases = phases_of(numbered, process, name);
  plan_regions(process, numbered.plan);
  if (!phases && numbered.plan.regions.empty()) {
    if (phases.error().code == ErrorCode::kUnavailable) {
      phases.error().why += ", and to sort its small objects would save too little, as far as that is known";
    }
    return fail(std::move(phases.error()));
  }
  numbered.plan.files = profile.files;
  if (phases) numbered.plan.phases = std::move(*phases);
  return MadePlan{std::move(numbered.plan), &process};
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

std::vector<LiveObject> recorded_objects(const profile::ProcessProfile& process, const PlannedPhase& phase) {
  const NumberedObjects numbered = number_objects(process);  // sites and objects have the same numbers
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> planned;
  for (std::uint32_t i = 0; i < phase.objects.size(); ++i) {
    planned[{phase.objects[i].site, phase.objects[i].number}] = i;
  }
  std::vector<LiveObject> found;
  for (const ObjectUses& object : numbered.objects) {
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
  NumberedObjects numbered = number_objects(*process);
  const auto whole = seen_uses(numbered, *process, process->touches, Touched::kThroughout, name);
  if (!whole) return fail(whole.error());
  const auto begin = seen_uses(numbered, *process, process->detailed, Touched::kInTheBeginning, name);
  const bool is_in_detail = begin && begin->round.length != 0;
  const SeenUses& timed = is_in_detail ? *begin : *whole;
  const Joining joining = timed.joining(is_in_detail ? process->detailed : process->touches);
  numbered.plan.files = profile.files;
  numbered.plan.phases = {timed.phase};
  HintPlan hints{std::move(numbered.plan), {}};
  PlannedPhase& phase = hints.plan.phases.front();
  for (std::size_t i = 0; i < whole->objects.size(); ++i) {  // the same in both
    const ObjectUses& object = timed.objects[i];
    const std::uint64_t uses = whole->objects[i].uses();
    if (uses == 0 && object.uses() == 0) continue;
    PlannedObject one{.site = object.site, .number = object.number, .bytes = object.bytes(), .parts = {{}}};
    if (object.uses() != 0) one.parts = object.parts(phase.times(), joining, kMostParts);
    phase.objects.push_back(std::move(one));
    hints.accesses.push_back(uses << process->touches.one_in_log2);
  }
  return hints;
}

}  // namespace farheap::plan
