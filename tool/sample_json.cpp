// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A sample as JSON and back. The bytes that are read may be anybody's.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "run_sample.hpp"

namespace farheap::tool {
namespace {

struct CounterName {
  const char* name;
  std::uint64_t CounterValues::* value;
  bool was_added = false;  // traces of before do not have it
};
constexpr CounterName kCounterNames[] = {
    {"processes", &CounterValues::processes},
    {"paging_processes", &CounterValues::paging_processes},
    {"faults", &CounterValues::faults},
    {"faults_fresh", &CounterValues::faults_fresh},
    {"faults_probation", &CounterValues::faults_probation},
    {"faults_store", &CounterValues::faults_store},
    {"faults_waited", &CounterValues::faults_waited},
    {"bytes_read", &CounterValues::bytes_read},
    {"bytes_written", &CounterValues::bytes_written},
    {"bytes_read_ahead", &CounterValues::bytes_read_ahead},
    {"pages_dropped_clean", &CounterValues::pages_dropped_clean},
    {"stall_ns", &CounterValues::stall_ns},
    {"stall_no_room_ns", &CounterValues::stall_no_room_ns},
    {"store_full_waits", &CounterValues::store_full_waits},
    {"peak_bytes", &CounterValues::peak_bytes},
    {"failed_starts", &CounterValues::failed_starts},
    {"guard_fetches", &CounterValues::guard_fetches, true},
    {"faults_packed", &CounterValues::faults_packed, true},
    {"touches_expected", &CounterValues::touches_expected, true},
    {"touches_unexpected", &CounterValues::touches_unexpected, true},
    {"orders_given_up", &CounterValues::orders_given_up, true},
    {"orders_too_dear", &CounterValues::orders_too_dear, true},
    {"plans_met", &CounterValues::plans_met, true},
    {"region_bytes", &CounterValues::region_bytes, true},
    {"region_spare_bytes", &CounterValues::region_spare_bytes, true},
    {"order_bytes_read", &CounterValues::order_bytes_read, true},
    {"order_bytes_expected", &CounterValues::order_bytes_expected, true},
};
static_assert(std::size(kCounterNames) * sizeof(std::uint64_t) == sizeof(CounterValues));

// In the order of base::Heat.
constexpr const char* kHeatNames[] = {"faults_fresh", "faults_probation", "faults_store", "faults_waited",
                                      "bytes_read",   "bytes_written",    "stall_ns"};
static_assert(std::size(kHeatNames) == base::kHeatKinds);

constexpr double kMostSeconds = 1e10;

// Takes members out of an object; what is missing or of another type is remembered.
class Members {
 public:
  explicit Members(const nlohmann::json& object) : object_(object) {
    if (!object.is_object()) wrong_ = "it is no object";
  }
  std::uint64_t number(const char* name) {
    const auto* const found = find(name);
    if (found != nullptr && found->is_number_unsigned()) return found->get<std::uint64_t>();
    return wrong(name, "a number"), 0;
  }
  [[nodiscard]] bool has(const char* name) const { return find(name) != nullptr; }
  double seconds(const char* name) {
    const auto* const found = find(name);
    const double value = found != nullptr && found->is_number() ? found->get<double>() : -1;
    if (value >= 0 && value <= kMostSeconds) return value;
    return wrong(name, "a time in seconds"), 0;
  }
  std::string text(const char* name) {
    const auto* const found = find(name);
    if (found != nullptr && found->is_string()) return found->get<std::string>();
    return wrong(name, "a text"), std::string();
  }
  bool truth(const char* name) {
    const auto* const found = find(name);
    if (found != nullptr && found->is_boolean()) return found->get<bool>();
    return wrong(name, "true or false"), false;
  }
  const nlohmann::json& list(const char* name) {
    static const nlohmann::json kNothing = nlohmann::json::array();
    const auto* const found = find(name);
    if (found != nullptr && found->is_array()) return *found;
    return wrong(name, "a list"), kNothing;
  }
  const nlohmann::json& object(const char* name) {
    static const nlohmann::json kNothing;
    const auto* const found = find(name);
    return found != nullptr ? *found : kNothing;
  }
  void take_over(std::string wrong) {
    if (wrong_.empty()) wrong_ = std::move(wrong);
  }
  [[nodiscard]] const std::string& wrong() const { return wrong_; }

 private:
  const nlohmann::json* find(const char* name) const {
    if (!object_.is_object()) return nullptr;
    const auto found = object_.find(name);
    return found == object_.end() ? nullptr : &*found;
  }
  void wrong(const char* name, const char* wanted) { take_over(std::string("\"") + name + "\" is not " + wanted); }
  const nlohmann::json& object_;
  std::string wrong_;
};

nlohmann::ordered_json counts_json(const base::HeatCounts& counts) {
  nlohmann::ordered_json object;
  for (std::size_t i = 0; i < base::kHeatKinds; ++i) object[kHeatNames[i]] = counts.values[i];
  return object;
}

ProcessSample parse_process(const nlohmann::json& object, std::string& wrong) {
  Members members(object);
  ProcessSample process;
  process.pid = static_cast<int>(members.number("pid") & 0x7fffffff);
  process.name = members.text("name");
  process.resident_bytes = members.number("resident_bytes");
  process.paging = members.truth("paging");
  Members counts(members.object("counters"));
  for (std::size_t i = 0; i < base::kHeatKinds; ++i) process.counts.values[i] = counts.number(kHeatNames[i]);
  members.take_over(counts.wrong());
  wrong = members.wrong();
  return process;
}

RangeSample parse_range(const nlohmann::json& row, std::string& wrong) {
  RangeSample range;
  bool numbers = row.is_array() && row.size() == 3 + base::kHeatKinds;
  for (std::size_t i = 0; numbers && i < row.size(); ++i) numbers = row[i].is_number_unsigned();
  if (!numbers) {
    wrong = "a range is not a list of " + std::to_string(3 + base::kHeatKinds) + " numbers";
    return range;
  }
  range.pid = static_cast<int>(row[0].get<std::uint64_t>() & 0x7fffffff);
  range.offset = row[1].get<std::uint64_t>();
  range.bytes = row[2].get<std::uint64_t>();
  for (std::size_t i = 0; i < base::kHeatKinds; ++i) range.counts.values[i] = row[3 + i].get<std::uint64_t>();
  if (range.bytes == 0 || range.bytes > kMostOffset || range.offset > kMostOffset) wrong = "a range is nowhere";
  return range;
}

}  // namespace

nlohmann::ordered_json range_json(const RangeSample& range) {
  auto row = nlohmann::ordered_json::array({range.pid, range.offset, range.bytes});
  for (const auto value : range.counts.values) row.push_back(value);
  return row;
}

bool CounterValues::not_below(const CounterValues& earlier) const {
  return std::all_of(std::begin(kCounterNames), std::end(kCounterNames),
                     [&](const CounterName& one) { return this->*one.value >= earlier.*one.value; });
}

nlohmann::ordered_json sample_json(const Sample& sample) {
  nlohmann::ordered_json counters;
  for (const auto& one : kCounterNames) counters[one.name] = sample.counters.*one.value;
  auto processes = nlohmann::ordered_json::array();
  for (const auto& one : sample.processes) {
    processes.push_back({{"pid", one.pid},
                         {"name", one.name},
                         {"resident_bytes", one.resident_bytes},
                         {"paging", one.paging},
                         {"counters", counts_json(one.counts)}});
  }
  auto ranges = nlohmann::ordered_json::array();
  for (const auto& one : sample.ranges) ranges.push_back(range_json(one));
  nlohmann::ordered_json json = {{"seconds", std::round(sample.seconds * 1e6) / 1e6},
                                 {"resident_bytes", sample.resident_bytes},
                                 {"budget_bytes", sample.budget_bytes},
                                 {"heap_address", sample.heap_address},
                                 {"counters", std::move(counters)},
                                 {"processes", std::move(processes)},
                                 {"ranges", std::move(ranges)}};
  if (sample.counters_fell) json["counters_fell"] = true;
  return json;
}

Result<Sample> parse_sample(const nlohmann::json& object) {
  Sample sample;
  Members members(object);
  sample.seconds = members.seconds("seconds");
  sample.resident_bytes = members.number("resident_bytes");
  sample.budget_bytes = members.number("budget_bytes");
  sample.heap_address = members.number("heap_address");
  Members counters(members.object("counters"));
  for (const auto& one : kCounterNames) {
    if (one.was_added && !counters.has(one.name)) continue;
    sample.counters.*one.value = counters.number(one.name);
  }
  members.take_over(counters.wrong());
  if (members.has("counters_fell")) sample.counters_fell = members.truth("counters_fell");
  std::string wrong;
  for (const auto& one : members.list("processes")) {
    wrong.clear();
    sample.processes.push_back(parse_process(one, wrong));
    members.take_over(wrong);
  }
  for (const auto& one : members.list("ranges")) {
    wrong.clear();
    sample.ranges.push_back(parse_range(one, wrong));
    members.take_over(wrong);
  }
  if (!members.wrong().empty()) return fail(ErrorCode::kCorrupt, "cannot read a sample", "", members.wrong());
  return sample;
}

}  // namespace farheap::tool
