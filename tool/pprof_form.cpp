// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The wire format of protocol buffers is three rules, which the class Message has: so the tool does not need their
// library, which is there for engines alone, in a process of its own. Fields that have their default are left out.
//
// A profile of ours knows code by file and offset, pprof by addresses in mappings. Each file gets a mapping of its own,
// from its first page that has code of the profile to the last one, at addresses that are made up: what lies at
// `memory_start` is at `file_offset` in the file, as it was when the program ran.
#include "pprof_form.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>
#include <vector>

#include "base/units.hpp"
#include "gzip.hpp"
#include "site_stacks.hpp"

namespace farheap::tool {

namespace {

// Field numbers of profile.proto.
enum ProfileField : unsigned {
  kSampleTypes = 1,
  kSamples = 2,
  kMappings = 3,
  kLocations = 4,
  kFunctions = 5,
  kStrings = 6,
  kDurationNanos = 10,
  kComments = 13,
  kDefaultSampleType = 14,
};
enum ValueTypeField : unsigned { kType = 1, kUnit = 2 };
enum SampleField : unsigned { kSampleLocations = 1, kSampleValues = 2, kSampleLabels = 3 };
enum LabelField : unsigned { kLabelKey = 1, kLabelText = 2 };
enum MappingField : unsigned {
  kMappingId = 1,
  kMemoryStart = 2,
  kMemoryLimit = 3,
  kFileOffset = 4,
  kFileName = 5,
  kBuildId = 6,
  kHasFunctions = 7,
  kHasFileNames = 8,
  kHasLineNumbers = 9,
  kHasInlineFrames = 10,
};
enum LocationField : unsigned { kLocationId = 1, kLocationMapping = 2, kLocationAddress = 3, kLocationLines = 4 };
enum LineField : unsigned { kLineFunction = 1, kLineNumber = 2 };
enum FunctionField : unsigned { kFunctionId = 1, kFunctionName = 2, kFunctionSystemName = 3, kFunctionFile = 4 };

class Message {
 public:
  void number(unsigned field, std::uint64_t value) {
    if (value == 0) return;
    tag(field, kVarint);
    varint(value);
  }
  // A repeated field has no default.
  void bytes(unsigned field, std::string_view content) {
    tag(field, kLengthDelimited);
    varint(content.size());
    bytes_ += content;
  }
  void message(unsigned field, const Message& content) { bytes(field, content.bytes_); }
  void packed(unsigned field, const std::vector<std::uint64_t>& numbers) {
    if (numbers.empty()) return;
    Message content;
    for (const std::uint64_t one : numbers) content.varint(one);
    message(field, content);
  }
  [[nodiscard]] const std::string& text() const { return bytes_; }

 private:
  enum WireType : unsigned { kVarint = 0, kLengthDelimited = 2 };
  void tag(unsigned field, WireType type) { varint(field << 3 | type); }
  // Seven bits a byte, the lowest first; the highest bit says that more come.
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }
  std::string bytes_;
};

struct SampleType {
  const char* name;
  const char* unit;
};
// The names of Go's heap profiles, where they mean the same: pprof's options know them.
enum Value : std::size_t {
  kFaults,
  kRead,
  kStall,
  kAllocObjects,
  kAllocSpace,
  kInuseSpace,
  kPeakSpace,
  kSiteStall,
  kValueCount
};
constexpr std::array<SampleType, kValueCount> kSampleTypeNames = {{{"faults", "count"},
                                                                   {"read", "bytes"},
                                                                   {"stall", "nanoseconds"},
                                                                   {"alloc_objects", "count"},
                                                                   {"alloc_space", "bytes"},
                                                                   {"inuse_space", "bytes"},
                                                                   {"peak_space", "bytes"},
                                                                   {"site_stall", "nanoseconds"}}};
using Values = std::array<double, kValueCount>;

struct Label {
  std::string key, text;
  friend auto operator<=>(const Label&, const Label&) = default;
};

// A damaged profile may say more than there is.
std::uint64_t rounded(double value) {
  constexpr double kMost = 9e18;
  return value > 0 ? static_cast<std::uint64_t>(std::llround(std::min(value, kMost))) : 0;  // NaN is 0, too
}

std::uint64_t page_floor(std::uint64_t offset) { return offset / base::kPageBytes * base::kPageBytes; }

class PprofWriter {
 public:
  explicit PprofWriter(const std::vector<profile::CodeFile>& files) : files_(files), ranges_(files.size()) {
    (void)string("");  // text 0 is the empty one
  }

  // `functions`: the innermost first.
  std::uint64_t location(const profile::CodePlace& place, const std::vector<CodeName>& functions) {
    std::vector<Line> lines;
    for (const CodeName& one : functions) {
      if (one.function.empty() && place.file != 0) continue;  // pprof says file and address by itself
      lines.push_back({function(one.function.empty() ? one.text() : one.function, one.source), one.line});
    }
    ranges_[place.file].add(place.offset, lines.empty() ? CodeName{} : functions.front(), functions.size() > 1);
    const auto [found, is_new] =
        locations_.try_emplace({place.file, place.offset, std::move(lines)}, locations_.size() + 1);
    return found->second;
  }
  // A location without a place, whose name is all.
  std::uint64_t named(const char* name) { return location({}, {CodeName{.function = name}}); }

  // The leaf first. Samples with the same stack and labels become one.
  void sample(const std::vector<std::uint64_t>& stack, const std::vector<Label>& labels, const Values& values) {
    Values& into = samples_.try_emplace({stack, labels}).first->second;
    for (std::size_t i = 0; i < values.size(); ++i) into[i] += values[i];
  }

  // `main_file`: of the program; pprof looks for it in front.
  std::string finish(std::uint32_t main_file, const ProfileFigures& figures, double seconds) {
    for (const SampleType& one : kSampleTypeNames) {
      Message type;
      type.number(kType, string(one.name));
      type.number(kUnit, string(one.unit));
      whole_.message(kSampleTypes, type);
    }
    add_samples();
    add_mappings(main_file);
    add_locations();
    add_functions();
    whole_.number(kDurationNanos, rounded(seconds * 1e9));
    std::vector<std::uint64_t> comments;
    for (const std::string& note : figures.notes) comments.push_back(string(note));
    whole_.packed(kComments, comments);
    whole_.number(kDefaultSampleType, string(kSampleTypeNames[figures.all.faults > 0 ? kStall : kPeakSpace].name));
    for (const std::string& text : strings_) whole_.bytes(kStrings, text);
    return whole_.text();
  }

 private:
  struct Line {
    std::uint64_t function = 0;
    int number = 0;
    friend auto operator<=>(const Line&, const Line&) = default;
  };
  // The part of a file that the profile names.
  struct Range {
    std::uint64_t first = std::numeric_limits<std::uint64_t>::max(), last = 0, start = 0;
    bool has_functions = false, has_sources = false, has_inlined = false;
    [[nodiscard]] bool is_used() const { return first <= last; }
    void add(std::uint64_t offset, const CodeName& name, bool inlined) {
      first = std::min(first, offset);
      last = std::max(last, offset);
      has_functions |= !name.function.empty();
      has_sources |= !name.source.empty();
      has_inlined |= inlined;
    }
  };

  // Protocol buffers have no strings but UTF-8, and names of files are any bytes.
  std::uint64_t string(const std::string& bytes) {
    using nlohmann::json;
    const auto text = json::parse(json(bytes).dump(-1, ' ', false, json::error_handler_t::replace)).get<std::string>();
    const auto [found, is_new] = string_numbers_.try_emplace(text, strings_.size());
    if (is_new) strings_.push_back(text);
    return found->second;
  }

  std::uint64_t function(const std::string& name, const std::string& source) {
    return functions_.try_emplace({name, source}, functions_.size() + 1).first->second;
  }

  void add_samples() {
    for (const auto& [key, values] : samples_) {
      std::vector<std::uint64_t> numbers;
      for (const double one : values) numbers.push_back(rounded(one));
      if (std::ranges::all_of(numbers, [](std::uint64_t one) { return one == 0; })) continue;
      Message sample;
      sample.packed(kSampleLocations, key.first);
      sample.packed(kSampleValues, numbers);
      for (const Label& one : key.second) {
        Message label;
        label.number(kLabelKey, string(one.key));
        label.number(kLabelText, string(one.text));
        sample.message(kSampleLabels, label);
      }
      whole_.message(kSamples, sample);
    }
  }

  void add_mappings(std::uint32_t main_file) {
    constexpr std::uint64_t kApart = base::kMiB;
    std::uint64_t next = kApart;
    if (main_file != 0) {
      if (!ranges_[main_file].is_used()) ranges_[main_file].first = 0;  // its name is told all the same
      add_mapping(main_file, next);
    }
    for (std::uint32_t file = 1; file < ranges_.size(); ++file) {
      if (file == main_file || !ranges_[file].is_used()) continue;
      next += kApart;
      add_mapping(file, next);
    }
  }

  // Puts it at `start`, and moves that to its end.
  void add_mapping(std::uint32_t file, std::uint64_t& start) {
    Range& range = ranges_[file];
    const std::uint64_t offset = page_floor(range.first), bytes = page_floor(range.last) - offset + base::kPageBytes;
    range.start = start;
    start += bytes;
    Message mapping;
    mapping.number(kMappingId, file);
    mapping.number(kMemoryStart, range.start);
    mapping.number(kMemoryLimit, range.start + bytes);
    mapping.number(kFileOffset, offset);
    mapping.number(kFileName, string(files_[file].path));
    mapping.number(kBuildId, string(files_[file].build_id));
    mapping.number(kHasFunctions, range.has_functions);
    mapping.number(kHasFileNames, range.has_sources);
    mapping.number(kHasLineNumbers, range.has_sources);
    mapping.number(kHasInlineFrames, range.has_inlined);
    whole_.message(kMappings, mapping);
  }

  void add_locations() {
    for (const auto& [key, id] : locations_) {
      const auto& [file, offset, lines] = key;
      const Range& range = ranges_[file];
      Message location;
      location.number(kLocationId, id);
      location.number(kLocationMapping, file);
      location.number(kLocationAddress, file == 0 ? offset : range.start + (offset - page_floor(range.first)));
      for (const Line& one : lines) {
        Message line;
        line.number(kLineFunction, one.function);
        line.number(kLineNumber, static_cast<std::uint64_t>(one.number));
        location.message(kLocationLines, line);
      }
      whole_.message(kLocations, location);
    }
  }

  void add_functions() {
    for (const auto& [key, id] : functions_) {
      Message function;
      function.number(kFunctionId, id);
      function.number(kFunctionName, string(key.first));
      function.number(kFunctionSystemName, string(key.first));
      function.number(kFunctionFile, string(key.second));
      whole_.message(kFunctions, function);
    }
  }

  const std::vector<profile::CodeFile>& files_;
  std::vector<Range> ranges_;  // by file
  Message whole_;
  std::vector<std::string> strings_;
  std::map<std::string, std::uint64_t> string_numbers_;
  std::map<std::pair<std::string, std::string>, std::uint64_t> functions_;  // by name and source
  std::map<std::tuple<std::uint32_t, std::uint64_t, std::vector<Line>>, std::uint64_t> locations_;  // by place, lines
  std::map<std::pair<std::vector<std::uint64_t>, std::vector<Label>>, Values> samples_;
};

// The instruction of the call: pprof looks there.
profile::CodePlace call_before(profile::CodePlace returns_to) {
  if (returns_to.offset > 0) --returns_to.offset;
  return returns_to;
}

// Adds the samples of one process.
class ProcessSamples {
 public:
  ProcessSamples(const profile::ProcessProfile& process, CodeNames& names, double share, PprofWriter& into)
      : process_(process), names_(names), sites_(process, names), share_(share), into_(into) {
    process_label_ = {"process", fmt::format("{} ({})", process.name, process.process)};
  }

  void add() {
    for (const profile::SiteTotals& one : process_.sites) {
      Values values{};
      values[kAllocObjects] = one.objects;
      values[kAllocSpace] = static_cast<double>(one.allocated_bytes);
      values[kInuseSpace] = static_cast<double>(one.live_bytes);
      values[kPeakSpace] = static_cast<double>(one.peak_bytes);
      into_.sample(site(one.site).stack, {process_label_}, values);
    }
    for (const profile::Stall& one : process_.stalls) {
      const Site& of = site(one.site);
      Values for_site{}, at_place{};
      for_site[kSiteStall] = at_place[kStall] = static_cast<double>(one.stalled_ns) * share_;
      at_place[kFaults] = static_cast<double>(one.faults);
      at_place[kRead] = static_cast<double>(one.pages_read * base::kPageBytes);
      into_.sample(of.stack, {process_label_}, for_site);
      into_.sample(place(one.place), {{"allocated_at", of.name}, process_label_}, at_place);
    }
  }

 private:
  struct Site {
    std::vector<std::uint64_t> stack;
    std::string name;
  };

  const Site& site(profile::SiteId number) {
    const auto [found, is_new] = known_.try_emplace(number);
    if (!is_new) return found->second;
    for (const SiteFrame& frame : sites_.stack(number)) {
      if (found->second.stack.empty()) found->second.name = frame.functions.front().text();
      found->second.stack.push_back(into_.location(call_before(frame.returns_to), frame.functions));
    }
    if (found->second.stack.empty()) found->second = {{into_.named(kNoSite)}, kNoSite};
    return found->second;
  }

  std::vector<std::uint64_t> place(std::uint32_t number) {
    if (number == 0) return {into_.named("not known")};
    const profile::WaitPlace& at = process_.places[number];
    std::vector<std::uint64_t> stack{into_.location(at.instruction, names_.instruction(at.instruction))};
    if (at.has_caller) stack.push_back(into_.location(call_before(at.caller), names_.call(at.caller)));
    return stack;
  }

  const profile::ProcessProfile& process_;
  CodeNames& names_;
  SiteStacks sites_;
  double share_;  // of the exact time in what was looked at
  PprofWriter& into_;
  Label process_label_;
  std::map<profile::SiteId, Site> known_;
};

// The program of the first process: of a file by its name, or else of one whose name goes on, as python3.11's does. 0
// if there is none.
std::uint32_t main_file_of(const profile::Profile& profile) {
  if (profile.processes.empty() || profile.processes.front().name.empty()) return 0;
  const std::string& name = profile.processes.front().name;
  std::uint32_t likely = 0;
  for (std::uint32_t file = 1; file < profile.files.size(); ++file) {
    const std::string& path = profile.files[file].path;
    const std::string last = path.substr(path.rfind('/') + 1);
    if (last == name) return file;
    if (likely == 0 && last.starts_with(name)) likely = file;
  }
  return likely;
}

}  // namespace

std::string profile_pprof(const profile::Profile& profile, CodeNames& names, const ProfileFigures& figures,
                          double seconds) {
  PprofWriter writer(profile.files);
  const double share = figures.in_sample.seconds > 0 ? figures.all.seconds / figures.in_sample.seconds : 1;
  for (const profile::ProcessProfile& process : profile.processes) ProcessSamples(process, names, share, writer).add();
  return gzipped(writer.finish(main_file_of(profile), figures, seconds));
}

}  // namespace farheap::tool
