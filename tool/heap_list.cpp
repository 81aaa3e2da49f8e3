// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// farheap heap ls|show: what is in a kept heap. It is not opened: its store is read.
#include <fmt/format.h>

#include "base/units.hpp"
#include "heap_text.hpp"
#include "heap_verbs.hpp"
#include "terminal.hpp"

namespace farheap::tool {
namespace {

void print_objects(const HeapArguments& arguments, const HeapFacts& facts) {
  std::vector<std::vector<std::string>> rows{{"OBJECT", "COUNT", "BYTES", "TYPE", ""}};
  for (const ObjectInfo& one : facts.objects) {
    rows.push_back({cell_of(one, arguments), fmt::format("{}", one.length), base::format_size(one.bytes),
                    printable(type_of(one, arguments.long_names)), printable(one.description)});
  }
  print_out("{}", rows.size() == 1 ? "no objects\n" : arguments.long_names ? aligned(rows) : fitted(rows, {4, 3, 0}));
}

void print_versions(const HeapArguments& arguments, const HeapFacts& facts) {
  std::vector<std::vector<std::string>> rows{{"VERSION", "WHEN", "COMMIT", "PAGES", "BYTES"}};
  for (const VersionInfo& one : facts.versions) {
    rows.push_back({cell_of(one, arguments), time_of(one.time_ns), fmt::format("{}", one.commit),
                    fmt::format("{}", one.pages), base::format_size(one.pages * base::kPageBytes)});
  }
  print_out("\n{}", arguments.long_names ? aligned(rows) : fitted(rows, {0}));
}

Json head_of(const HeapFacts& facts) {
  return {{"format", kJsonFormat},
          {"heap", facts.version.name.empty() ? facts.uri : facts.uri + "@" + facts.version.name},
          {"id", facts.id},
          {"heap_format", facts.format},
          {"description", facts.description},
          {"address", facts.address},
          {"capacity_bytes", facts.capacity_bytes}};
}

Json versions_of(const HeapFacts& facts) {
  Json rows = Json::array();
  for (const VersionInfo& one : facts.versions) rows.push_back(json_of(one));
  return rows;
}

// Of the heap itself.
int show_heap(const HeapArguments& arguments, const HeapFacts& facts) {
  std::uint64_t bytes = 0;
  for (const ObjectInfo& one : facts.objects) bytes += one.bytes;
  if (arguments.json) {
    Json json = head_of(facts);
    json["version"] = json_of(facts.version);
    json["object_count"] = facts.objects.size();
    json["object_bytes"] = bytes;
    json["versions"] = versions_of(facts);
    print_out("{}\n", text_of(json));
    return kDone;
  }
  print_out("{}",
            aligned({{"heap", printable(facts.uri)},
                     {"id", facts.id},
                     {"description", printable(facts.description)},
                     {"format", fmt::format("{}", facts.format)},
                     {"address", fmt::format("{:#x}", facts.address)},
                     {"capacity", base::format_size(facts.capacity_bytes)},
                     {"version", label_of(facts.version)},
                     {"when", time_of(facts.version.time_ns)},
                     {"commit", fmt::format("{}", facts.version.commit)},
                     {"pages", fmt::format("{} ({})", facts.version.pages,
                                           base::format_size(facts.version.pages * base::kPageBytes))},
                     {"objects", fmt::format("{} ({} of their own)", facts.objects.size(), base::format_size(bytes))},
                     {"snapshots", fmt::format("{}", facts.versions.size() - 1)}}));
  return kDone;
}

}  // namespace

int heap_list(const HeapArguments& arguments) {
  const auto facts = Heap::look(arguments.uri);
  if (!facts) return failed(facts.error());
  if (!arguments.json) {
    print_objects(arguments, *facts);
    print_versions(arguments, *facts);
    return kDone;
  }
  Json json = head_of(*facts);
  Json objects = Json::array();
  for (const ObjectInfo& one : facts->objects) objects.push_back(json_of(one));
  json["objects"] = std::move(objects);
  json["versions"] = versions_of(*facts);
  print_out("{}\n", text_of(json));
  return kDone;
}

int heap_show(const HeapArguments& arguments) {
  const auto facts = Heap::look(arguments.uri);
  if (!facts) return failed(facts.error());
  if (arguments.name.empty()) return show_heap(arguments, *facts);
  const auto found = objects_named(*facts, arguments.name, arguments.uri);
  if (!found) return failed(found.error());
  if (arguments.json) {
    Json json = head_of(*facts);
    json["objects"] = Json::array();
    for (const ObjectInfo& one : *found) json["objects"].push_back(json_of(one));
    print_out("{}\n", text_of(json));
    return kDone;
  }
  for (const ObjectInfo& one : *found) {
    print_out("{}", aligned({{"name", label_of(one)},
                             {"kind", std::string(word_of(one.kind))},
                             {"type", printable(type_of(one, true))},
                             {"count", fmt::format("{}", one.length)},
                             {"bytes", fmt::format("{}", one.bytes)},
                             {"address", fmt::format("{}", one.address)},
                             {"description", printable(one.description)}}));
  }
  return kDone;
}

}  // namespace farheap::tool
