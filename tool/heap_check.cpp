// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// farheap heap check: whether a heap is whole, and with --repair, to make it so.
#include <fmt/format.h>

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

std::string owner_of(const ForeignPointers::Place& place, const HeapArguments& arguments) {
  if (place.object_address == 0) return "(no object leads there)";
  ObjectInfo object;
  object.name = place.object;
  object.kind = place.kind;
  object.address = reinterpret_cast<void*>(place.object_address);
  return cell_of(object, arguments);
}

std::string where_in(const ForeignPointers::Place& place) {
  return place.is_own ? fmt::format("at {} of {} bytes", place.offset, place.bytes)
                      : fmt::format("in memory of {} bytes that it leads to", place.bytes);
}

void print_pointers(const HeapArguments& arguments, const ForeignPointers& found) {
  constexpr std::size_t kMostRows = 20;
  const std::string heap = base::without_secrets(arguments.uri);
  if (found.words == 0) return print_out("{}: sound, and nothing in it looks like a pointer out of it\n", heap);
  print_out(
      "{}: sound; {} words in it look like pointers to a program, a library or a stack, which lie elsewhere in the "
      "next run. It is a guess: a number may look so.\n\n",
      heap, found.words);
  std::vector<std::vector<std::string>> rows{{"OBJECT", "WHERE", "COUNT", "FIRST", "TYPE"}};
  for (const ForeignPointers::Place& one : found.places) {
    if (rows.size() > kMostRows) break;
    ObjectInfo object;
    object.type = one.type;
    rows.push_back({owner_of(one, arguments), where_in(one), fmt::format("{}", one.count),
                    fmt::format("{:#x}", one.value), printable(type_of(object, arguments.long_names))});
  }
  print_out("{}", arguments.long_names ? aligned(rows) : fitted(rows, {4, 0}));
  const std::uint64_t more = found.places.size() + 1 - rows.size() + found.left_out;
  if (more != 0) print_out("and {} more places; --json lists the first 1000\n", more);
  say("have those members hold what stays in the heap (farheap::string, farheap::vector, a pointer into the heap), and "
      "construct the objects anew; what is a number or is never followed does no harm");
}

Json facts_of(const ForeignPointers::Place& place) {
  ObjectInfo object;
  object.type = place.type;
  return {{"object", place.object},        {"object_address", place.object_address},
          {"type", type_of(object, true)}, {"own_bytes", place.is_own},
          {"bytes", place.bytes},          {"offset", place.offset},
          {"count", place.count},          {"address", place.address},
          {"value", place.value}};
}

// What it finds is a guess: the heap is sound, and the status is one of its own.
int look_for_pointers(const HeapArguments& arguments) {
  const auto found = Heap::foreign_pointers(arguments.uri);
  if (!found) return failed(found.error());
  const int status = found->words == 0 ? kDone : kSuspect;
  if (!arguments.json) {
    print_pointers(arguments, *found);
    return status;
  }
  Json places = Json::array();
  for (const ForeignPointers::Place& one : found->places) places.push_back(facts_of(one));
  print_out("{}\n", text_of(Json{{"format", kJsonFormat},
                                 {"heap", base::without_secrets(arguments.uri)},
                                 {"sound", true},
                                 {"foreign_words", found->words},
                                 {"places", std::move(places)},
                                 {"places_left_out", found->left_out}}));
  return status;
}

}  // namespace

int heap_check(const HeapArguments& arguments) {
  if (arguments.repair) return repair(arguments);
  if (arguments.pointers && !arguments.data) return look_for_pointers(arguments);
  Status status;
  {
    Progress progress("checking");
    status = Heap::check(arguments.uri, {.data = arguments.data,
                                         .progress = [&](auto done, auto total) { progress.show(done, total); }});
  }
  if (!status) return failed(status.error());
  return arguments.pointers ? look_for_pointers(arguments) : print_sound(arguments);
}

}  // namespace farheap::tool
