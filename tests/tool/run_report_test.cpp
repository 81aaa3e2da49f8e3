// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tool/run_report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/options.hpp"
#include "base/units.hpp"

namespace farheap::tool {
namespace {

using base::kMiB;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

RunSummary paged_run() {
  RunSummary run;
  run.command = {"python3", "my index.py", "it's"};
  run.store = "file:/var/tmp";
  run.seconds = 10;
  run.budget_bytes = 400 * kMiB;
  run.peak_bytes = 399 * kMiB;
  run.processes = 2;
  run.paging_processes = 1;
  run.faults = 1000;
  run.faults_store = 600;
  run.bytes_read = 3 * kMiB;
  run.stall_seconds = 1;
  return run;
}

std::string text_of(const RunSummary& run) {
  std::string text;
  for (const auto& line : report_lines(run)) text += line + "\n";
  return text;
}

TEST(RunReport, SaysWhatHappened) {
  EXPECT_THAT(
      text_of(paged_run()),
      AllOf(HasSubstr("python3 ended well after 10.0 s"), HasSubstr("399.0 MiB of 400.0 MiB"),
            HasSubstr("2 processes, 1 of them paged"), HasSubstr("1000 faults"), HasSubstr("600 from the store"),
            HasSubstr("3.0 MiB read"), HasSubstr("10 % of the time"), HasSubstr("next: ")));
}

// It said "peak 0 B", and that the heap was smaller than the least budget.
TEST(RunReport, APeakThatNobodySawIsNotZero) {
  RunSummary run = paged_run();
  run.paging_processes = 0;
  run.peak_bytes = 0;
  EXPECT_THAT(text_of(run), AllOf(HasSubstr("peak not seen, budget 400.0 MiB"), HasSubstr("nothing is known"),
                                  Not(HasSubstr("0 B")), Not(HasSubstr("smaller"))));
}

TEST(RunReport, SaysWhatGuardsFoundIfThereAreAny) {
  RunSummary run = paged_run();
  EXPECT_THAT(text_of(run), Not(HasSubstr("guards")));
  run.guard_fetches = 900;
  EXPECT_THAT(text_of(run), HasSubstr("guards found 900 of the faults"));
}

TEST(RunReport, SaysWhatWasCompressedIfAnythingWas) {
  RunSummary run = paged_run();
  EXPECT_THAT(text_of(run), Not(HasSubstr("compressed")));
  run.faults_probation = 300;
  run.faults_packed = 200;
  EXPECT_THAT(text_of(run), HasSubstr("300 still in memory (200 of them compressed), 600 from the store"));
}

TEST(RunReport, SaysHowMuchCameAsExpectedWhereAnOrderIs) {
  RunSummary run = paged_run();
  EXPECT_THAT(text_of(run), Not(HasSubstr("foreseen")));
  run.touches_expected = 300;
  run.touches_unexpected = 100;
  EXPECT_THAT(text_of(run), HasSubstr("of 400 touches that could be foreseen 75 % came as expected"));
  const auto json = nlohmann::json::parse(report_json(run));
  EXPECT_EQ(json["touches_expected"], 300);
  EXPECT_EQ(json["touches_unexpected"], 100);
}

TEST(RunReport, SaysWhatAnOrderLetExpectAndWhatHappened) {
  RunSummary run = paged_run();
  EXPECT_THAT(text_of(run), Not(HasSubstr("planned")));
  run.order_bytes_read = 300 * base::kMiB;
  run.order_bytes_expected = 200 * base::kMiB;
  EXPECT_THAT(text_of(run),
              HasSubstr("300.0 MiB of what is planned were read; followed exactly it would have been 200.0 MiB"));
  const auto json = nlohmann::json::parse(report_json(run));
  EXPECT_EQ(json["order_bytes_read"], 300 * base::kMiB);
  EXPECT_EQ(json["order_bytes_expected"], 200 * base::kMiB);
}

TEST(RunReport, SaysWhyAnOrderWasGivenUp) {
  RunSummary run = paged_run();
  EXPECT_THAT(text_of(run), Not(HasSubstr("given up")));
  run.orders_given_up = 3;
  run.orders_too_dear = 1;
  EXPECT_THAT(text_of(run), HasSubstr("1 order was given up: much more was read than it let expect"));
  EXPECT_THAT(text_of(run), HasSubstr("2 orders were given up: memory was used in another order"));
  const auto json = nlohmann::json::parse(report_json(run));
  EXPECT_EQ(json["orders_given_up"], 3);
  EXPECT_EQ(json["orders_too_dear"], 1);
}

TEST(RunReport, SaysHowItEnded) {
  RunSummary run = paged_run();
  run.exit_status = 137;
  run.signal = 9;
  EXPECT_THAT(text_of(run), HasSubstr("was ended by signal 9 (Killed)"));
  run.exit_status = 3;
  run.signal = 0;
  EXPECT_THAT(text_of(run), HasSubstr("ended with status 3"));
}

TEST(RunReport, IsLoudWhenTheRuntimeNeverCameUp) {
  RunSummary run = paged_run();
  run.processes = 0;
  EXPECT_THAT(text_of(run), AllOf(HasSubstr("WARNING"), HasSubstr("WITHOUT FARHEAP")));
  EXPECT_EQ(next_step(run), "");
}

TEST(RunReport, AProgramThatCouldNotStartDidNotRunWithoutFarheap) {
  RunSummary run = paged_run();
  run.processes = 0;
  run.failed_starts = 1;
  EXPECT_THAT(text_of(run), AllOf(HasSubstr("DID NOT RUN"), HasSubstr("farheap doctor")));
  EXPECT_THAT(text_of(run), Not(HasSubstr("WITHOUT FARHEAP")));
  run.processes = 3;
  EXPECT_THAT(text_of(run),
              AllOf(HasSubstr("ended well"), HasSubstr("1 process did not run"), HasSubstr("farheap doctor")));
}

TEST(RunReport, SaysThatABudgetThrashesAndWhatWouldDo) {
  RunSummary run = paged_run();
  EXPECT_THAT(text_of(run), Not(HasSubstr("waiting")));
  run.stall_seconds = 8;
  EXPECT_THAT(text_of(run), HasSubstr("8 of 10 s waiting for pages\n")) << "what would do is not known";
  run.used_again_bytes = 300 * kMiB;
  EXPECT_THAT(text_of(run), HasSubstr("8 of 10 s waiting for pages\n")) << "it has more, and waits for something else";
  run.used_again_bytes = 512 * kMiB;
  EXPECT_THAT(text_of(run), AllOf(HasSubstr("8 of 10 s waiting for pages: 544 MiB would do (it used 512.0 MiB of its"),
                                  HasSubstr("next: `farheap run --memory 544M -- python3")));
  run.stall_seconds = 4;
  EXPECT_THAT(text_of(run), Not(HasSubstr("waiting for pages"))) << "less than half";
  run.stall_seconds = 25;  // several threads at once
  EXPECT_THAT(text_of(run), HasSubstr("10 of 10 s waiting"));
}

Sample sample_of(std::initializer_list<std::array<std::uint64_t, 2>> probation_and_read_pages) {
  Sample sample;
  sample.counters.paging_processes = 1;
  for (const auto& [probation, read] : probation_and_read_pages) {
    RangeSample range;
    range.bytes = 2 * kMiB;
    range.counts[base::Heat::kProbation] = probation;
    range.counts[base::Heat::kBytesRead] = read * base::kPageBytes;
    range.counts[base::Heat::kBytesWritten] = kMiB;
    sample.ranges.push_back(range);
  }
  return sample;
}

constexpr std::uint64_t kBudget = 64 * kMiB;

TEST(UsedAgain, IsWhatWasReadOrTouchedAfterItWasPutAside) {
  EXPECT_EQ(used_again(sample_of({}), kBudget), 0U);
  EXPECT_EQ(used_again(sample_of({{0, 0}, {0, 0}}), kBudget), 0U) << "written once, and never wanted again";
  EXPECT_EQ(used_again(sample_of({{0, 500}, {500, 0}, {0, 0}, {300, 400}}), kBudget), 6 * kMiB);
  EXPECT_EQ(used_again(sample_of({{0, 1}, {10'000, 0}, {0, 10'000}}), kBudget), 4 * kMiB)
      << "what is next to never used";
  Sample family = sample_of({{0, 500}});
  family.counters.paging_processes = 2;
  EXPECT_EQ(used_again(family, kBudget), 0U) << "they share, and nobody knows what";
}

// A JVM's heap was told to need 17 GiB: its two parts lie so far from each other that a range had 8.
TEST(UsedAgain, IsNotKnownWhereARangeIsLargeBesideTheBudget) {
  EXPECT_EQ(used_again(sample_of({{500, 0}, {500, 0}}), 8 * kMiB), 4 * kMiB);
  EXPECT_EQ(used_again(sample_of({{500, 0}, {500, 0}}), 7 * kMiB), 0U);
}

TEST(NextStep, AskedForWhatDominates) {
  RunSummary run = paged_run();
  EXPECT_THAT(next_step(run), HasSubstr("farheap options"));
  run.stall_seconds = 8;
  EXPECT_THAT(next_step(run), HasSubstr("farheap store bench file:/var/tmp"));
  run.stall_no_room_seconds = 7;
  EXPECT_THAT(next_step(run), HasSubstr("farheap run --memory 600M -- python3 'my index.py' 'it'\\''s'"));
  run.stall_seconds = run.stall_no_room_seconds = 0.1;
  EXPECT_THAT(next_step(run), HasSubstr("--memory 300M"));
  run.store_full_waits = 1;
  EXPECT_THAT(next_step(run), HasSubstr("df -h, and a larger place with --store file:DIR"));
}

TEST(NextStep, AFullServerWasLookedForOnTheDisksOfThisMachine) {
  RunSummary run = paged_run();
  run.store_full_waits = 1;
  for (const auto& [store, remedy] : {std::pair{"redis://h/1", "CONFIG SET maxmemory"},
                                      {"checksum+redis+cluster://h/x", "CONFIG SET maxmemory"},
                                      {"pages=redis://h/1,sync=etcd://h", "CONFIG SET maxmemory"},
                                      {"etcd://h/x", "--quota-backend-bytes"},
                                      {"bigtable://p/i/t", "quota of its server"},
                                      {"mem:?size=1M", "size="}}) {
    run.store = store;
    EXPECT_THAT(next_step(run), HasSubstr(remedy));
    EXPECT_THAT(next_step(run), Not(HasSubstr("df -h")));
  }
}

// "It hardly waited, so less may do", for a program whose store could not grow.
TEST(NextStep, SuggestsNoBudgetForWhatFarheapEnded) {
  RunSummary run = paged_run();
  run.exit_status = 74;
  EXPECT_THAT(next_step(run), HasSubstr("above"));
  run.paging_processes = 0;
  EXPECT_THAT(next_step(run), HasSubstr("above"));
}

// "It never came near the budget", at four times as much.
TEST(NextStep, SuggestsNoLessForWhatIsFarOverItsBudget) {
  RunSummary run = paged_run();
  run.budget_bytes = 32 * kMiB;
  run.peak_bytes = 120 * kMiB;
  run.stall_seconds = 0;
  EXPECT_THAT(next_step(run), AllOf(HasSubstr("--memory 120M"), HasSubstr("cannot leave")));
  run.paging_processes = 0;
  EXPECT_THAT(next_step(run), AllOf(HasSubstr("--memory 120M"), HasSubstr("cannot leave")));
}

TEST(NextStep, SuggestsLessWhereNothingWasPaged) {
  RunSummary run = paged_run();
  run.paging_processes = 0;
  run.peak_bytes = 200 * kMiB;
  EXPECT_THAT(next_step(run), HasSubstr("--memory 220M"));
  run.peak_bytes = base::kLeastBudgetBytes;
  EXPECT_THAT(next_step(run), HasSubstr("nothing"));
}

// A recorded run pages from its beginning. One of 40 MiB on a machine of 24 GiB was told to take 17 GiB: "it hardly
// waited, so less may do"; and one that the recording had slowed down, to look at its options.
TEST(NextStep, ARecordedRunThatFittedWasSuggestedThreeQuartersOfTheMachine) {
  RunSummary run = paged_run();
  run.budget_bytes = 24'000 * kMiB;
  run.peak_bytes = 40 * kMiB;
  run.bytes_read = 0;
  for (const double stall : {0.0, 1.0}) {
    run.stall_seconds = stall;
    EXPECT_THAT(next_step(run), HasSubstr("--memory 44M"));
  }
  run.bytes_written = kMiB;
  EXPECT_THAT(next_step(run), Not(HasSubstr("needed no more")));
}

// "It never came near the budget", at 95 % of it, with half as much as a remedy; and then three times as much again.
TEST(NextStep, WhatFittedIsNotSentInACircle) {
  RunSummary run = paged_run();
  run.paging_processes = 0;
  for (const std::uint64_t peak : {60 * kMiB, 200 * kMiB, 320 * kMiB}) {
    run.peak_bytes = peak;
    run.budget_bytes = peak + peak / 10;  // what it suggests
    EXPECT_THAT(next_step(run), HasSubstr("nothing"));
  }
}

// "--memory 32M; less may do", after a run with 32M.
TEST(NextStep, SuggestsNoLessThanTheLeastBudget) {
  RunSummary run = paged_run();
  run.budget_bytes = run.peak_bytes = base::kLeastBudgetBytes;
  run.stall_seconds = run.stall_no_room_seconds = 0;
  EXPECT_THAT(next_step(run), HasSubstr("nothing"));
}

TEST(RunReport, WaitsOfManyThreadsAreNoMoreThanTheWholeTime) {
  RunSummary run = paged_run();
  run.stall_seconds = 40;
  EXPECT_THAT(text_of(run), HasSubstr("(100 % of the time)"));
}

TEST(RunReport, JsonHoldsEveryFigure) {
  RunSummary run = paged_run();
  run.command.push_back("\xff");  // arguments need not be UTF-8
  const auto json = nlohmann::json::parse(report_json(run));
  EXPECT_EQ(json["format"], 1);
  EXPECT_EQ(json["peak_bytes"], 399 * kMiB);
  EXPECT_EQ(json["faults_store"], 600);
  EXPECT_EQ(json["stall_seconds"], 1.0);
  EXPECT_EQ(json["command"][1], "my index.py");
}

// They were printed as they were: "16777216.0 TiB read".
TEST(RunReport, FiguresThatCannotBeAreDoubtedAndNotShown) {
  const Machine machine{8 * base::kGiB, 2};
  EXPECT_EQ(doubt_of(paged_run(), machine), "");
  RunSummary busy = paged_run();  // as much as 2 processors may come to
  busy.bytes_read = 200 * base::kGiB, busy.faults = busy.faults_fresh = 20'000'000, busy.processes = 20'000;
  busy.peak_bytes = 8 * base::kGiB;
  busy.stall_seconds = 10'000;  // of many threads
  EXPECT_EQ(doubt_of(busy, machine), "");
  const std::uint64_t wild = UINT64_MAX - 7;
  const auto doubt = [&](auto write) {
    RunSummary run = paged_run();
    write(run);
    return doubt_of(run, machine);
  };
  EXPECT_THAT(doubt([&](RunSummary& run) { run.peak_bytes = 9 * base::kGiB; }), HasSubstr("the machine has 8.0 GiB"));
  EXPECT_THAT(doubt([&](RunSummary& run) { run.bytes_read = wild; }), HasSubstr("read in 10.0 s"));
  EXPECT_THAT(doubt([&](RunSummary& run) { run.bytes_written = wild; }), HasSubstr("written in 10.0 s"));
  for (auto figure : {&RunSummary::faults, &RunSummary::faults_fresh, &RunSummary::faults_probation,
                      &RunSummary::faults_store, &RunSummary::faults_waited, &RunSummary::guard_fetches,
                      &RunSummary::faults_packed, &RunSummary::touches_expected, &RunSummary::touches_unexpected,
                      &RunSummary::processes, &RunSummary::paging_processes, &RunSummary::failed_starts,
                      &RunSummary::orders_given_up, &RunSummary::orders_too_dear, &RunSummary::plans_met,
                      &RunSummary::bytes_read_ahead, &RunSummary::pages_dropped_clean, &RunSummary::store_full_waits}) {
    EXPECT_NE(doubt([&](RunSummary& run) { run.*figure = wild; }), "");
  }
  EXPECT_NE(doubt([&](RunSummary& run) { run.stall_seconds = static_cast<double>(wild) * 1e-9; }), "");

  RunSummary run = paged_run();
  run.bytes_read = wild;
  run.doubt = doubt_of(run, machine);
  EXPECT_THAT(text_of(run), AllOf(HasSubstr("python3 ended well after 10.0 s"), HasSubstr("figures cannot be right"),
                                  HasSubstr("next: look for the process"), Not(HasSubstr("faults"))));
  const auto json = nlohmann::json::parse(report_json(run));
  EXPECT_TRUE(json["bytes_read"].is_null() && json["processes"].is_null());
  EXPECT_EQ(json["doubt"], run.doubt);
  EXPECT_EQ(json["exit_status"], 0);
  EXPECT_FALSE(nlohmann::json::parse(report_json(paged_run())).contains("doubt"));
}

// It was told as a program that ran without Farheap.
TEST(RunReport, ALoaderThatFoundNoProgramRanNothing) {
  RunSummary run = paged_run();
  run.command = {"/lib64/ld-linux-x86-64.so.2", "/no/such/program"};
  run.loaded = "/no/such/program";
  run.processes = 0;
  run.exit_status = 127;
  EXPECT_THAT(text_of(run), AllOf(HasSubstr("/no/such/program DID NOT RUN"), HasSubstr("could not find it"),
                                  HasSubstr("next: "), Not(HasSubstr("WITHOUT FARHEAP"))));
  run.loaded = "";  // a program's own loader finds a library not, with the same status; or it was a static program's
  EXPECT_THAT(text_of(run), AllOf(HasSubstr("WARNING"), HasSubstr("DID NOT RUN"), HasSubstr("WITHOUT FARHEAP")));
  run.exit_status = 1;
  EXPECT_THAT(text_of(run), Not(HasSubstr("DID NOT RUN")));
}

TEST(RunReport, TakesTheCountersOver) {
  base::RunCounters counters;
  counters.stall_ns = 2'500'000'000;
  counters.faults_waited = 5;
  RunSummary run;
  add_counters(run, counter_values(counters));
  EXPECT_DOUBLE_EQ(run.stall_seconds, 2.5);
  EXPECT_EQ(run.faults_waited, 5U);
}

}  // namespace
}  // namespace farheap::tool
