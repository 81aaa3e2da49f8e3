// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "profile/profile.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/fields.hpp"

namespace farheap::profile {

namespace {

using base::FieldReader;
using base::FieldWriter;

// Of a section. Numbers of sections that are not known are passed by: a newer program may write more.
enum class Section : std::uint64_t {
  kFiles = 1,
  kProcess = 2,
  kTrace = 3,
  kEnd = 4,
  kTouches = 5,
  kStore = 6,
  kObjects = 7,
  kDetailed = 8,
  kAttached = 9,
  kSiteTouches = 10,
  kTouchOrder = 11,
  kContexts = 32,
  kFolded = 33
};

constexpr std::uint32_t kMostDepth = 256;                  // of a stack
constexpr std::size_t kMostListed = std::size_t{1} << 24;  // elements of a list; far more than a recording has

// Of its kind, too: a changed bit in that must not make another section of it.
std::uint64_t checksum_of(Section kind, std::string_view bytes) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), static_cast<std::uint64_t>(kind));
}

void put_section(FieldWriter& out, Section kind, const std::string& bytes) {
  out.number(static_cast<std::uint64_t>(kind));
  out.number(checksum_of(kind, bytes));
  out.text(bytes);
}

void put(FieldWriter& out, const CodePlace& place) {
  out.number(place.file);
  out.number(place.offset);
}

CodePlace take_place(FieldReader& in) {
  CodePlace place;
  place.file = static_cast<std::uint32_t>(in.number());
  place.offset = in.number();
  return place;
}

template <class Element, class Take>
bool take_list(FieldReader& in, std::vector<Element>& into, Take take) {
  return in.list(into, take, kMostListed);
}

// Elements of 32-bit numbers.
template <class Element>
std::string_view text_of(const std::vector<Element>& all) {
  return {reinterpret_cast<const char*>(all.data()), all.size() * sizeof(Element)};
}

template <class Element>
bool take_elements(const std::string& text, std::vector<Element>& into) {
  if (text.size() % sizeof(Element) != 0) return false;
  into.resize(text.size() / sizeof(Element));
  if (!text.empty()) std::memcpy(into.data(), text.data(), text.size());
  return true;
}

std::string encode_touches(const Touches& one) {
  FieldWriter out;
  out.number(one.one_in_log2);
  out.number(one.window);
  out.number(one.pages);
  out.text(text_of(one.words));
  return out.bytes();
}

// Numbers of 32 bits; more is none.
std::uint32_t take_small(FieldReader& in, bool& is_small) {
  const std::uint64_t value = in.number();
  is_small &= value <= ~std::uint32_t{0};
  return static_cast<std::uint32_t>(value);
}

bool take_touches(std::string_view bytes, Touches& into) {
  FieldReader in(bytes);
  Touches one;
  bool is_small = true;
  one.one_in_log2 = take_small(in, is_small);
  one.window = take_small(in, is_small);
  one.pages = in.number();
  const std::string words = in.text();
  if (!in.is_whole() || !is_small || !take_elements(words, one.words) || !one.is_sound()) return false;
  into = std::move(one);
  return true;
}

std::string encode_objects(const std::vector<LargeObject>& objects) {
  FieldWriter out;
  out.number(objects.size());
  for (const LargeObject& one : objects) {
    for (const std::uint64_t figure : {std::uint64_t{one.site}, one.first, one.bytes, one.born, one.died}) {
      out.number(figure);
    }
  }
  return out.bytes();
}

// Of the process in the section before.
bool take_objects(std::string_view bytes, Profile& into) {
  if (into.processes.empty()) return false;
  ProcessProfile& process = into.processes.back();
  FieldReader in(bytes);
  process.objects.clear();
  bool is_small = true;
  const bool is_read = take_list(in, process.objects, [&] {
    LargeObject one;
    one.site = take_small(in, is_small);
    for (std::uint64_t* const figure : {&one.first, &one.bytes, &one.born, &one.died}) *figure = in.number();
    return one;
  });
  return is_read && is_small && in.is_whole() && std::ranges::all_of(process.objects, [&](const LargeObject& one) {
           return one.site < process.frames.size() && one.is_sound();
         });
}

std::string encode_touch_order(const std::vector<SiteTouch>& order) {
  FieldWriter out;
  out.text(text_of(order));
  return out.bytes();
}

bool take_touch_order(std::string_view bytes, Profile& into) {
  if (into.processes.empty()) return false;
  ProcessProfile& process = into.processes.back();
  FieldReader in(bytes);
  return take_elements(in.text(), process.touch_order) && in.is_whole() && process.touch_order.size() <= kMostTouches &&
         std::ranges::all_of(process.touch_order,
                             [&](const SiteTouch& one) { return one.site != 0 && one.site < process.frames.size(); });
}

// Of the process in the section before.
bool take_its_contexts(std::string_view bytes, Profile& into) {
  return !into.processes.empty() && take_contexts(bytes, into.files.size(), into.processes.back().contexts);
}

bool take_its_folded(std::string_view bytes, Profile& into) {
  return !into.processes.empty() && take_folded(bytes, into.processes.back().contexts);
}

std::string encode_store(const std::vector<StoreSpeed>& store) {
  FieldWriter out;
  out.number(store.size());
  for (const StoreSpeed& one : store) {
    out.text(one.name);
    out.text(one.unit);
    for (const double value : {one.median, one.min, one.max}) out.number(std::bit_cast<std::uint64_t>(value));
  }
  return out.bytes();
}

bool take_store(std::string_view bytes, Profile& into) {
  FieldReader in(bytes);
  into.store.clear();
  const bool is_read = take_list(in, into.store, [&] {
    StoreSpeed one;
    one.name = in.text();
    one.unit = in.text();
    for (double* const value : {&one.median, &one.min, &one.max}) *value = std::bit_cast<double>(in.number());
    return one;
  });
  return is_read && in.is_whole();
}

std::string encode_process(const ProcessProfile& one) {
  FieldWriter out;
  out.number(static_cast<std::uint64_t>(one.process));
  out.number(static_cast<std::uint64_t>(one.parent));
  out.text(one.name);
  for (const std::uint64_t figure : {one.faults, one.stalled_ns, one.pages_read, one.live_bytes, one.peak_bytes,
                                     one.faults_without_place, one.without_room}) {
    out.number(figure);
  }
  out.number(one.frames.size());
  for (const StackFrame& frame : one.frames) {
    out.number(frame.inner);
    put(out, frame.returns_to);
  }
  out.number(one.sites.size());
  for (const SiteTotals& site : one.sites) {
    out.number(site.site);
    out.number(std::bit_cast<std::uint64_t>(site.objects));
    out.number(site.allocated_bytes);
    out.number(site.live_bytes);
    out.number(site.peak_bytes);
  }
  out.number(one.places.size());
  for (const WaitPlace& place : one.places) {
    put(out, place.instruction);
    out.number(place.has_caller ? 1 : 0);
    put(out, place.caller);
  }
  out.number(one.stalls.size());
  for (const Stall& stall : one.stalls) {
    for (const std::uint64_t figure :
         {std::uint64_t{stall.place}, std::uint64_t{stall.site}, stall.faults, stall.stalled_ns, stall.pages_read}) {
      out.number(figure);
    }
  }
  return out.bytes();
}

// Of the sites in the order of the process's section.
std::string encode_site_touches(const std::vector<SiteTotals>& sites) {
  FieldWriter out;
  out.number(sites.size());
  for (const SiteTotals& site : sites) {
    out.number(std::bit_cast<std::uint64_t>(site.touches));
    out.number(site.seen_objects);
    out.number(site.seen_touches);
  }
  return out.bytes();
}

bool take_site_touches(std::string_view bytes, Profile& into) {
  if (into.processes.empty()) return false;
  std::vector<SiteTotals>& sites = into.processes.back().sites;
  FieldReader in(bytes);
  std::vector<SiteTotals> read;
  const bool is_read = take_list(in, read, [&] {
    SiteTotals one;
    one.touches = std::bit_cast<double>(in.number());
    one.seen_objects = in.number();
    one.seen_touches = in.number();
    return one;
  });
  if (!is_read || !in.is_whole() || read.size() != sites.size()) return false;
  for (std::size_t i = 0; i < sites.size(); ++i) {
    if (!(read[i].touches >= 0 && read[i].touches <= kMostSiteTouches)) return false;
    sites[i].touches = read[i].touches;
    sites[i].seen_objects = read[i].seen_objects;
    sites[i].seen_touches = read[i].seen_touches;
  }
  return true;
}

SiteTotals take_site(FieldReader& in) {
  SiteTotals site;
  site.site = static_cast<SiteId>(in.number());
  site.objects = std::bit_cast<double>(in.number());
  site.allocated_bytes = in.number();
  site.live_bytes = in.number();
  site.peak_bytes = in.number();
  return site;
}

Stall take_stall(FieldReader& in) {
  Stall stall;
  stall.place = static_cast<std::uint32_t>(in.number());
  stall.site = static_cast<SiteId>(in.number());
  stall.faults = in.number();
  stall.stalled_ns = in.number();
  stall.pages_read = in.number();
  return stall;
}

// Whether all numbers name something.
bool is_sound(const ProcessProfile& one, std::size_t files) {
  const auto is_code = [&](const CodePlace& place) { return place.file < files; };
  std::vector<std::uint32_t> depths(one.frames.size());
  for (std::size_t i = 0; i < one.frames.size(); ++i) {
    if (!is_code(one.frames[i].returns_to)) return false;
    if (i == 0) continue;
    if (one.frames[i].inner >= i) return false;
    depths[i] = depths[one.frames[i].inner] + 1;
    if (depths[i] > kMostDepth) return false;
  }
  const auto is_site = [&](SiteId site) { return site == 0 || site < one.frames.size(); };
  return std::ranges::all_of(one.sites, [&](const SiteTotals& site) { return is_site(site.site); }) &&
         std::ranges::all_of(
             one.places, [&](const WaitPlace& place) { return is_code(place.instruction) && is_code(place.caller); }) &&
         std::ranges::all_of(one.stalls, [&](const Stall& stall) {
           return is_site(stall.site) && (stall.place == 0 || stall.place < one.places.size());
         });
}

bool take_process(std::string_view bytes, Profile& into) {
  FieldReader in(bytes);
  ProcessProfile one;
  one.process = static_cast<int>(in.number());
  one.parent = static_cast<int>(in.number());
  one.name = in.text();
  for (std::uint64_t* const figure : {&one.faults, &one.stalled_ns, &one.pages_read, &one.live_bytes, &one.peak_bytes,
                                      &one.faults_without_place, &one.without_room}) {
    *figure = in.number();
  }
  const bool is_read = take_list(in, one.frames,
                                 [&] {
                                   const auto inner = static_cast<SiteId>(in.number());
                                   return StackFrame{inner, take_place(in)};
                                 }) &&
                       take_list(in, one.sites, [&] { return take_site(in); }) &&
                       take_list(in, one.places,
                                 [&] {
                                   WaitPlace place;
                                   place.instruction = take_place(in);
                                   place.has_caller = in.number() != 0;
                                   place.caller = take_place(in);
                                   return place;
                                 }) &&
                       take_list(in, one.stalls, [&] { return take_stall(in); });
  if (!is_read || !in.is_whole() || !is_sound(one, into.files.size())) return false;
  into.processes.push_back(std::move(one));
  return true;
}

bool take_files(std::string_view bytes, Profile& into) {
  if (!into.processes.empty()) return false;  // they name files of another list
  FieldReader in(bytes);
  into.processes_left_out = in.number();
  into.files.clear();
  const bool is_read = take_list(in, into.files, [&] {
    CodeFile file;
    file.path = in.text();
    file.build_id = in.text();
    return file;
  });
  if (into.files.empty()) into.files.emplace_back();
  return is_read && in.is_whole();
}

}  // namespace

std::uint32_t Profile::file(const CodeFile& one) {
  const auto found = std::find(files.begin() + 1, files.end(), one);
  if (found == files.end()) {
    files.push_back(one);
    return static_cast<std::uint32_t>(files.size()) - 1;
  }
  return static_cast<std::uint32_t>(found - files.begin());
}

void keep_most_important(Profile& profile) {
  const auto weight = [](const ProcessProfile& one) { return std::pair(one.stalled_ns, one.peak_bytes); };
  if (profile.processes.size() <= kMostProcesses) return;
  std::ranges::stable_sort(profile.processes, std::greater{}, weight);
  profile.processes_left_out += profile.processes.size() - kMostProcesses;
  profile.processes.resize(kMostProcesses);
}

std::string encode(const Profile& profile) {
  FieldWriter out;
  FieldWriter files;
  files.number(profile.processes_left_out);
  files.number(profile.files.size());
  for (const CodeFile& file : profile.files) {
    files.text(file.path);
    files.text(file.build_id);
  }
  put_section(out, Section::kFiles, files.bytes());
  for (const ProcessProfile& one : profile.processes) {
    put_section(out, Section::kProcess, encode_process(one));
    if (one.is_attached) put_section(out, Section::kAttached, {});
    const auto is_told = [](const SiteTotals& site) {
      return site.touches != 0 || site.seen_objects != 0 || site.seen_touches != 0;
    };
    if (std::ranges::any_of(one.sites, is_told)) {
      put_section(out, Section::kSiteTouches, encode_site_touches(one.sites));
    }
    if (!one.touch_order.empty()) put_section(out, Section::kTouchOrder, encode_touch_order(one.touch_order));
    if (!one.objects.empty()) put_section(out, Section::kObjects, encode_objects(one.objects));
    if (!one.touches.words.empty()) put_section(out, Section::kTouches, encode_touches(one.touches));
    if (!one.detailed.words.empty()) put_section(out, Section::kDetailed, encode_touches(one.detailed));
    if (!one.contexts.contexts.empty()) put_section(out, Section::kContexts, encode_contexts(one.contexts));
    if (const std::string folded = encode_folded(one.contexts); !folded.empty()) {
      put_section(out, Section::kFolded, folded);
    }
  }
  if (!profile.store.empty()) put_section(out, Section::kStore, encode_store(profile.store));
  put_section(out, Section::kTrace, profile.trace);
  put_section(out, Section::kEnd, {});
  FieldWriter head;
  head.number(kProfileFormat);
  return std::string(kProfileMagic) + head.bytes() + out.bytes();
}

std::string Profile::what_is_missing() const {
  if (is_damaged) return "it is damaged in the middle, and this is what comes before that";
  return is_cut ? "it ends in the middle, and this is what is whole of it" : "";
}

Result<Profile> read_profile(std::string_view bytes, const std::string& name) {
  constexpr char kWhat[] = "cannot read the profile";
  if (!bytes.starts_with(kProfileMagic)) {
    return fail(ErrorCode::kCorrupt, kWhat, name, "it is none", "`farheap record -o FILE -- PROGRAM` makes one");
  }
  FieldReader in(bytes.substr(kProfileMagic.size()));
  const std::uint64_t format = in.number();
  if (format > kProfileFormat) {
    return fail(ErrorCode::kUnavailable, kWhat, name, fmt::format("it has the newer format {}", format),
                "use a newer farheap");
  }
  if (in.is_good() && format == 0) {
    return fail(ErrorCode::kCorrupt, kWhat, name, "it has the format 0, and there was never one", "record it again");
  }
  Profile profile;
  profile.is_cut = true;
  while (!in.is_empty()) {
    const auto kind = static_cast<Section>(in.number());
    const std::uint64_t checksum = in.number();
    const std::string section = in.text();
    if (!in.is_good()) break;
    profile.is_damaged = checksum != checksum_of(kind, section);
    if (profile.is_damaged) break;
    bool is_taken = true;
    if (kind == Section::kFiles) is_taken = take_files(section, profile);
    if (kind == Section::kProcess) is_taken = take_process(section, profile);
    if (kind == Section::kTouches || kind == Section::kDetailed) {  // of the process in the section before
      is_taken = !profile.processes.empty() &&
                 take_touches(section, kind == Section::kTouches ? profile.processes.back().touches
                                                                 : profile.processes.back().detailed);
    }
    if (kind == Section::kAttached) {
      is_taken = section.empty() && !profile.processes.empty();
      if (is_taken) profile.processes.back().is_attached = true;
    }
    if (kind == Section::kSiteTouches) is_taken = take_site_touches(section, profile);
    if (kind == Section::kTouchOrder) is_taken = take_touch_order(section, profile);
    if (kind == Section::kObjects) is_taken = take_objects(section, profile);
    if (kind == Section::kContexts) is_taken = take_its_contexts(section, profile);
    if (kind == Section::kFolded) is_taken = take_its_folded(section, profile);
    if (kind == Section::kStore) is_taken = take_store(section, profile);
    if (kind == Section::kTrace) profile.trace = section;
    if (!is_taken) {
      return fail(ErrorCode::kCorrupt, kWhat, name,
                  fmt::format("its section {} has another form, or says what no recording can",
                              static_cast<std::uint64_t>(kind)),
                  "record it again");
    }
    if (kind == Section::kEnd) {
      profile.is_cut = false;
      break;
    }
  }
  return profile;
}

}  // namespace farheap::profile
