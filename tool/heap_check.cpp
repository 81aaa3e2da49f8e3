// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// farheap heap check: whether a heap is whole, and with --repair, to make it so.
#include <farheap/farheap.hpp>

#include "base/without_secrets.hpp"
#include "heap_text.hpp"
#include "heap_verbs.hpp"
#include "progress.hpp"
#include "terminal.hpp"

namespace farheap::tool {
namespace {

int print_sound(const HeapArguments& arguments) {
  if (arguments.json) {
    print_out("{}\n",
              text_of(Json{{"format", kJsonFormat}, {"heap", base::without_secrets(arguments.uri)}, {"sound", true}}));
  } else {
    print_out("{}: sound\n", base::without_secrets(arguments.uri));
  }
  return kDone;
}

void print_report(const std::string& uri, const RepairReport& report) {
  print_out("{}: repaired\n", uri);
  for (const VersionInfo& one : report.kept) print_out("whole: {}, of {}\n", label_of(one), time_of(one.time_ns));
  for (const std::string& one : report.lost) print_out("lost: {}\n", one);
  for (const std::string& one : report.old_files) print_out("as it was: {}\n", one);
}

int repair(const HeapArguments& arguments) {
  const auto report = [&] {
    Progress progress("repairing");
    return Heap::repair(arguments.uri, [&](auto done, auto total) { progress.show(done, total); });
  }();
  if (!report) return failed(report.error());
  if (report->was_sound) return print_sound(arguments);
  if (!arguments.json) {
    print_report(base::without_secrets(arguments.uri), *report);
    return kDone;
  }
  Json versions = Json::array();
  for (const VersionInfo& one : report->kept) versions.push_back(json_of(one));
  print_out("{}\n", text_of(Json{{"format", kJsonFormat},
                                 {"heap", base::without_secrets(arguments.uri)},
                                 {"sound", true},
                                 {"repaired", true},
                                 {"versions", std::move(versions)},
                                 {"lost", report->lost},
                                 {"old_files", report->old_files}}));
  return kDone;
}

}  // namespace

int heap_check(const HeapArguments& arguments) {
  if (arguments.repair) return repair(arguments);
  Status status;
  {
    Progress progress("checking");
    status = Heap::check(arguments.uri, {.data = arguments.data,
                                         .progress = [&](auto done, auto total) { progress.show(done, total); }});
  }
  return status ? print_sound(arguments) : failed(status.error());
}

}  // namespace farheap::tool
