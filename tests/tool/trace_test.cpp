// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A trace: samples as lines and back, what is refused and how, and the sums of what is drawn from it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>

#include "base/units.hpp"
#include "tool/page_assets.hpp"
#include "tool/report_forms.hpp"
#include "tool/top_picture.hpp"
#include "tool/trace_reader.hpp"
#include "tool/trace_series.hpp"

namespace farheap::tool {
namespace {

using base::Heat;
using base::kMiB;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kHead =
    R"({"format":1,"kind":"farheap trace","command":["prog","<b>&"],"store":"file:/x","pid":41})"
    "\n";
constexpr const char* kEnd = R"({"end":true,"seconds":2.0,"exit_status":3,"signal":0})"
                             "\n";

Sample sample_at(double seconds, std::uint64_t faults) {
  Sample sample;
  sample.seconds = seconds;
  sample.resident_bytes = 50 * kMiB;
  sample.budget_bytes = 64 * kMiB;
  sample.heap_address = 0x200000000000;
  sample.counters.processes = sample.counters.paging_processes = 1;
  sample.counters.faults = sample.counters.faults_store = faults;
  sample.counters.bytes_read = faults * 4096;
  sample.counters.peak_bytes = 60 * kMiB;
  return sample;
}

std::string line(const Sample& sample) { return sample_json(sample).dump() + "\n"; }

Trace trace_of(const std::vector<Sample>& samples) {
  Trace trace;
  trace.command = {"prog"};
  trace.samples = samples;
  trace.end = Trace::End{};
  return trace;
}

TEST(Trace, LinesSayWhatTheSampleWas) {
  Sample sample = sample_at(1.25, 7);
  sample.processes = {{42, "name \"x\"\xff", 50 * kMiB, true, {}}};
  sample.processes[0].counts[Heat::kStore] = 7;
  sample.ranges = {{42, 2 * kMiB, 4 * kMiB, {}}};
  sample.ranges[0].counts[Heat::kStallNs] = 123456789012;
  const std::string text = kHead + line(sample_at(0.5, 1)) +
                           sample_json(sample).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n" +
                           kEnd;
  const auto trace = parse_trace(text, "t");
  ASSERT_TRUE(trace) << trace.error().message();
  EXPECT_EQ(trace->command, (std::vector<std::string>{"prog", "<b>&"}));
  EXPECT_EQ(trace->pid, 41);
  ASSERT_EQ(trace->samples.size(), 2U);
  EXPECT_EQ(sample_json(trace->last()).dump(),
            sample_json(sample).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  EXPECT_EQ(trace->end->exit_status, 3);
  EXPECT_FALSE(trace->cut_line);
}

TEST(Trace, OneOfBeforeGuardsWereCountedIsRead) {
  auto old = sample_json(sample_at(0.5, 1));
  ASSERT_EQ(old["counters"].erase("guard_fetches"), 1U);
  const auto trace = parse_trace(kHead + old.dump() + "\n" + kEnd, "t");
  ASSERT_TRUE(trace) << trace.error().message();
  EXPECT_EQ(trace->last().counters.faults, 1U);
  EXPECT_EQ(trace->last().counters.guard_fetches, 0U);
}

TEST(Trace, OneOfBeforeOrdersWereExpectedIsRead) {
  auto old = sample_json(sample_at(0.5, 1));
  for (const char* const name :
       {"touches_expected", "touches_unexpected", "orders_given_up", "orders_too_dear", "order_bytes_read",
        "order_bytes_expected", "plans_met", "region_bytes", "region_spare_bytes"}) {
    ASSERT_EQ(old["counters"].erase(name), 1U);
  }
  const auto trace = parse_trace(kHead + old.dump() + "\n" + kEnd, "t");
  ASSERT_TRUE(trace) << trace.error().message();
  EXPECT_EQ(trace->last().counters.touches_expected, 0U);
}

TEST(Trace, OneThatWasCutOffIsReadUpToItsLastWholeLine) {
  const std::string whole = kHead + line(sample_at(0.5, 1)) + line(sample_at(1, 2));
  const std::size_t second = whole.find('\n', std::strlen(kHead)) + 1;
  for (std::size_t length = second; length < whole.size(); ++length) {
    const auto trace = parse_trace(whole.substr(0, length), "t");
    ASSERT_TRUE(trace) << trace.error().message();
    EXPECT_EQ(trace->samples.size(), 1U);
    EXPECT_EQ(trace->cut_line, length != second);
    EXPECT_FALSE(trace->end);
  }
}

TEST(Trace, WhatIsWrongIsSaidWithItsLineAndARemedy) {
  const std::string good = line(sample_at(1, 5));
  const auto without = [&](const std::string& part, const std::string& instead) {
    std::string text = good;
    return text.replace(text.find(part), part.size(), instead);
  };
  const std::vector<std::tuple<std::string, std::string, std::string>> cases = {
      {"", "line 1", "first line is missing"},
      {"{}\n", "line 1", "not a trace"},
      {"[1]\n", "line 1", "no JSON object"},
      {std::string(kHead), "line 1", "no sample"},
      {kHead + std::string("nonsense\n"), "line 2", "no JSON object"},
      {kHead + good + "{}\n", "line 3", "\"seconds\""},
      {kHead + good + line(sample_at(0.5, 6)), "line 3", "time runs backwards"},
      {kHead + good + line(sample_at(1.5, 4)), "line 3", "counter runs backwards"},
      {kHead + good + kEnd + good, "line 4", "follows the end"},
      {kHead + without("\"faults\":5", "\"faults\":-5"), "line 2", "\"faults\" is not a number"},
      {kHead + without("\"seconds\":1.0", "\"seconds\":1e99"), "line 2", "\"seconds\""},
      {kHead + without("\"ranges\":[]", "\"ranges\":[[1,2]]"), "line 2", "a range"},
      {kHead + without("\"ranges\":[]", "\"ranges\":[[1,0,0,0,0,0,0,0,0,0]]"), "line 2", "nowhere"},
      {kHead + without("\"processes\":[]", "\"processes\":[3]"), "line 2", "no object"},
      {kHead + good + R"({"end":true,"exit_status":256,"signal":0})" + "\n", "line 3", "exit_status"},
  };
  for (const auto& [text, where, why] : cases) {
    const auto trace = parse_trace(text, "some.trace");
    ASSERT_FALSE(trace) << text;
    EXPECT_EQ(trace.error().code, ErrorCode::kCorrupt);
    for (const auto& part : {std::string("some.trace"), where, why, std::string("--trace FILE")}) {
      EXPECT_THAT(trace.error().message(), HasSubstr(part)) << text;
    }
  }
}

TEST(Trace, ANewerFormatIsRefusedByName) {
  std::string head = kHead;
  head.replace(head.find(":1,"), 3, ":2,");
  const auto trace = parse_trace(head + line(sample_at(1, 5)), "t");
  ASSERT_FALSE(trace);
  EXPECT_EQ(trace.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(trace.error().message(), HasSubstr("its format is 2"));
}

TEST(Series, RatesTimesTheirTimeAreWhatWasCounted) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 200; ++round) {
    std::vector<Sample> samples;
    double seconds = 0;
    std::uint64_t faults = 0;
    for (std::size_t i = 0; i <= random() % 30; ++i) {
      seconds += static_cast<double>(random() % 1000) / 1000;
      samples.push_back(sample_at(seconds, faults += random() % 1000));
    }
    const Trace trace = trace_of(samples);
    const std::size_t pieces = 1 + random() % 100;
    const Series series = rate_series(trace, pieces, &CounterValues::faults);
    const double sum = std::accumulate(series.begin(), series.end(), 0.0) * duration(trace) / pieces;
    ASSERT_NEAR(sum, static_cast<double>(faults), 1e-6 * static_cast<double>(faults + 1));
  }
}

TEST(Series, LevelsKeepTheLargestOfEachPieceAndCarryOn) {
  std::vector<Sample> samples = {sample_at(0.1, 0), sample_at(0.2, 0), sample_at(4, 0)};
  samples[0].resident_bytes = 30;
  samples[1].resident_bytes = 20;
  samples[2].resident_bytes = 10;
  const auto level = [](const Sample& sample) { return sample.resident_bytes; };
  EXPECT_EQ(level_series(trace_of(samples), 4, level), (Series{30, 30, 30, 10}));
}

TEST(Series, TheHeatMapHoldsAllBytes) {
  std::vector<Sample> samples = {sample_at(1, 0), sample_at(2, 0), sample_at(4, 0)};
  const auto add = [](Sample& sample, std::uint64_t offset, std::uint64_t in, std::uint64_t out) {
    sample.ranges.push_back({1, offset, 2 * kMiB, {}});
    sample.ranges.back().counts[Heat::kBytesRead] = in;
    sample.ranges.back().counts[Heat::kBytesWritten] = out;
  };
  add(samples[1], 0, 100, 20);
  add(samples[2], 6 * kMiB, 50, 5);
  const HeatMap map = heat_map(trace_of(samples), 3, 8);
  EXPECT_EQ(map.end_offset, 8 * kMiB);
  const double sum = std::accumulate(map.bytes_per_second.begin(), map.bytes_per_second.end(), 0.0);
  EXPECT_NEAR(sum * 4 / 8, 175, 1e-6);
  EXPECT_GT(map.bytes_per_second[2], 0) << "the lowest row, from second 1 to 2";
  EXPECT_EQ(map.bytes_per_second[0], 0);
  EXPECT_GT(map.bytes_per_second[2 * 8 + 7], 0) << "the highest row, at the end";
}

TEST(Series, RangesOfAHeapThatGrewAreOneLength) {
  std::vector<Sample> samples = {sample_at(1, 0), sample_at(2, 0)};
  samples[0].ranges = {{1, 2 * kMiB, 2 * kMiB, {}}, {2, 2 * kMiB, 2 * kMiB, {}}};
  samples[1].ranges = {{1, 0, 4 * kMiB, {}}};
  for (auto& sample : samples) {
    for (auto& range : sample.ranges) range.counts[Heat::kStore] = 5;
  }
  const auto ranges = whole_ranges(trace_of(samples));
  ASSERT_EQ(ranges.size(), 2U);
  EXPECT_EQ(ranges[0].offset, 0U);
  EXPECT_EQ(ranges[0].bytes, 4 * kMiB);
  EXPECT_EQ(ranges[0].counts[Heat::kStore], 10U);
  EXPECT_EQ(ranges[1].bytes, 2 * kMiB) << "another process";
}

TEST(Report, TextHasPlotsWithTheirScale) {
  const Trace trace = trace_of({sample_at(1, 60), sample_at(2, 60)});
  const std::string text = report_text(trace, true);
  for (const char* part : {"budget, 64.0 MiB", "67.2 MiB │┄", "faults a second", "60 │█", "2.0 s"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
  for (const unsigned char c : report_text(trace, false)) EXPECT_LT(c, 128) << "not ASCII";
}

TEST(Report, OfARunThatNeverPagedHasMemoryOnly) {
  Sample sample = sample_at(1, 0);
  sample.counters.paging_processes = 0;
  const std::string text = report_text(trace_of({sample}), true);
  EXPECT_THAT(text, HasSubstr("all of it fitted"));
  EXPECT_THAT(text, Not(HasSubstr("faults a second")));
  EXPECT_THAT(trace_page(trace_of({sample})), Not(HasSubstr("\"faults_per_second\"")));
}

TEST(Report, OneThatWasCutOffSaysSo) {
  Trace trace = trace_of({sample_at(1, 60)});
  trace.end.reset();
  for (const auto& form : {report_text(trace, false), trace_page(trace)}) {
    EXPECT_THAT(form, HasSubstr("prog was still running after 1.0 s"));
    EXPECT_THAT(form, HasSubstr("the recording was cut off"));
  }
}

// A process of the run had written over them; the last good ones were shown as the run's.
TEST(Report, CountersThatFellAreNotShown) {
  Sample sample = sample_at(1, 5);
  EXPECT_EQ(sample_json(sample).contains("counters_fell"), false);
  sample.counters_fell = true;
  const auto trace = parse_trace(kHead + line(sample) + kEnd, "t");
  ASSERT_TRUE(trace) << trace.error().message();
  ASSERT_TRUE(trace->last().counters_fell);
  const std::string text = report_text(*trace, true);
  EXPECT_NE(text.find("its figures cannot be right (counts that only grow fell)"), std::string::npos) << text;
  EXPECT_EQ(text.find("memory"), std::string::npos) << text;
  RunPicture picture;
  picture.now = picture.before = sample;
  EXPECT_NE(picture_text(picture).find("its figures cannot be right"), std::string::npos);
}

// The JSON between the data's tags.
nlohmann::json data_of(const std::string& page) {
  constexpr std::string_view kBegin = R"(id="data">)";
  const std::size_t begin = page.find(kBegin) + kBegin.size();
  return nlohmann::json::parse(page.substr(begin, page.find("</script>", begin) - begin));
}

TEST(Report, ThePageHasTheReportsNumbersAndEscapesWhatItShows) {
  Sample sample = sample_at(1, 60);
  sample.processes = {{42, "</script><i>", 5, true, {}}};
  Trace trace = trace_of({sample});
  trace.command = {"a<b>", "\"&'", "</script>"};
  const std::string page = trace_page(trace);
  EXPECT_THAT(page, HasSubstr("a&lt;b&gt; &quot;&amp;&#39; &lt;/script&gt;"));
  const std::string without_libraries = page.substr(0, page.find("<script>"));
  for (const char* part : {"<b>", "<i>", "src=", "@import", "url(", "href="}) {
    EXPECT_THAT(without_libraries, Not(HasSubstr(part)));
  }
  const auto data = data_of(page);
  EXPECT_EQ(data["report"], nlohmann::json::parse(json_text(trace_json(trace))));
  EXPECT_EQ(data["processes"][0]["name"], "</script><i>");
  EXPECT_EQ(data["timeline"]["resident_bytes"].back(), 50.0 * kMiB);
}

TEST(Report, ThePagesScriptsCannotEndEarly) {
  for (const auto text : {kPageScript, kPageStyle}) {
    EXPECT_EQ(text.find("</script"), std::string_view::npos);
    EXPECT_EQ(text.find("</style"), std::string_view::npos);
    EXPECT_EQ(text.find("<!--"), std::string_view::npos);
  }
  EXPECT_NE(kPageLicences.find("Mike Bostock"), std::string_view::npos);
}

TEST(Report, ValuesAtTheEdgeOfTheirTypeAreInThePage) {
  Sample sample = sample_at(0, 0);
  for (auto* value : {&sample.resident_bytes, &sample.budget_bytes, &sample.counters.faults,
                      &sample.counters.bytes_read, &sample.counters.stall_ns, &sample.counters.peak_bytes}) {
    *value = ~std::uint64_t{0};
  }
  EXPECT_TRUE(data_of(trace_page(trace_of({sample}))).contains("report"));
}

TEST(TopPicture, ShowsWhatHappenedBetweenTwoSamples) {
  RunPicture run{"prog\x1b[2J", 41, sample_at(1, 100), sample_at(3, 300)};
  run.now.processes = {{42, "prog", 50 * kMiB, true, {}}};
  run.now.processes[0].counts[Heat::kStore] = 300;
  run.before.processes = run.now.processes;
  run.before.processes[0].counts[Heat::kStore] = 100;
  run.now.ranges = {{42, 4 * kMiB, 2 * kMiB, {}}};
  run.now.ranges[0].counts[Heat::kStore] = 200;
  const std::string text = picture_text(run);
  for (const char* part : {"50.0 MiB of 64.0 MiB", "faults  100/s", "100 from the store", "in 400.0 KiB/s",
                           "0x200000400000 + 2.0 MiB", "prog?[2J"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
}

TEST(TopPicture, HottestIsWhereMostTimeWasLost) {
  std::vector<RangeSample> ranges(3);
  for (std::size_t i = 0; i < 3; ++i) ranges[i].offset = i;
  ranges[2].counts[Heat::kStallNs] = 5;
  ranges[1].counts[Heat::kBytesRead] = 1 << 30;
  const auto order = hottest(ranges, 2);
  ASSERT_EQ(order.size(), 2U);
  EXPECT_EQ(order[0].offset, 2U);
  EXPECT_EQ(order[1].offset, 1U);
}

}  // namespace
}  // namespace farheap::tool
