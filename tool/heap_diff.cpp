// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// farheap heap diff: how two versions of a kept heap differ.
#include <fmt/format.h>

#include "base/units.hpp"
#include "base/without_secrets.hpp"
#include "heap_text.hpp"
#include "heap_verbs.hpp"
#include "terminal.hpp"

namespace farheap::tool {
namespace {

using What = ObjectDifference::What;

// What of an object differs.
std::vector<std::string_view> parts_of(const ObjectDifference& one) {
  std::vector<std::string_view> parts;
  if (one.what != What::kChanged) return parts;
  if (one.bytes_differ) parts.emplace_back("bytes");
  if (one.a.length != one.b.length) parts.emplace_back("length");
  if (one.a.type != one.b.type) parts.emplace_back("type");
  if (one.a.address != one.b.address) parts.emplace_back("address");
  if (one.a.description != one.b.description) parts.emplace_back("description");
  return parts;
}

std::string_view word_of(What what) {
  switch (what) {
    case What::kOnlyInA: return "only in a";
    case What::kOnlyInB: return "only in b";
    case What::kChanged: return "changed";
  }
  return "unknown";
}

void print_difference(const HeapArguments& arguments, const HeapDifference& found) {
  std::vector<std::vector<std::string>> versions{{"", "VERSION", "WHEN", "COMMIT", "PAGES"}};
  const auto add = [&](const char* name, const std::string& uri, const VersionInfo& one) {
    versions.push_back(
        {name, printable(uri), time_of(one.time_ns), fmt::format("{}", one.commit), fmt::format("{}", one.pages)});
  };
  add("a", base::without_secrets(arguments.uri), found.a);
  add("b", base::without_secrets(arguments.other), found.b);
  print_out("{}\n", aligned(versions));
  if (found.is_none()) {
    print_out("no difference\n");
    return;
  }
  print_out("{}",
            aligned({{"pages that differ", fmt::format("{} changed, {} only in a, {} only in b", found.pages_changed,
                                                       found.pages_only_in_a, found.pages_only_in_b)},
                     {"what lies in them",
                      fmt::format("objects {}, what they point to and the rest {}, books {}", found.pages_of_objects,
                                  found.pages_of_others, found.pages_of_books)}}));
  if (found.objects.empty()) return;
  std::vector<std::vector<std::string>> rows{{"OBJECT", "DIFFERS", "IN", "PAGES", "BYTES", "TYPE"}};
  for (const ObjectDifference& one : found.objects) {
    const ObjectInfo& object = one.what == What::kOnlyInB ? one.b : one.a;
    const bool resized = one.what == What::kChanged && one.a.bytes != one.b.bytes;
    rows.push_back({cell_of(object, arguments), std::string(word_of(one.what)),
                    fmt::format("{}", fmt::join(parts_of(one), ", ")), fmt::format("{}", one.pages),
                    base::format_size(object.bytes) + (resized ? " -> " + base::format_size(one.b.bytes) : ""),
                    printable(type_of(object, arguments.long_names))});
  }
  print_out("\n{}", arguments.long_names ? aligned(rows) : fitted(rows, {5, 0, 2}));
}

void print_json(const HeapArguments& arguments, const HeapDifference& found) {
  Json objects = Json::array();
  for (const ObjectDifference& one : found.objects) {
    Json row = {{"what", one.what == What::kOnlyInA   ? "only_in_a"
                         : one.what == What::kOnlyInB ? "only_in_b"
                                                      : "changed"},
                {"pages", one.pages}};
    if (one.what == What::kChanged) row["differs"] = parts_of(one);
    if (one.what != What::kOnlyInB) row["a"] = json_of(one.a);
    if (one.what != What::kOnlyInA) row["b"] = json_of(one.b);
    objects.push_back(std::move(row));
  }
  Json a = json_of(found.a), b = json_of(found.b);
  a["heap"] = base::without_secrets(arguments.uri);
  b["heap"] = base::without_secrets(arguments.other);
  print_out("{}\n", text_of({{"format", kJsonFormat},
                             {"id", found.id},
                             {"a", std::move(a)},
                             {"b", std::move(b)},
                             {"differ", !found.is_none()},
                             {"pages",
                              {{"changed", found.pages_changed},
                               {"only_in_a", found.pages_only_in_a},
                               {"only_in_b", found.pages_only_in_b},
                               {"of_objects", found.pages_of_objects},
                               {"of_others", found.pages_of_others},
                               {"of_books", found.pages_of_books}}},
                             {"objects", std::move(objects)}}));
}

}  // namespace

int heap_diff(const HeapArguments& arguments) {
  const auto found = Heap::diff(arguments.uri, arguments.other);
  if (!found) return failed(found.error());
  if (arguments.json) {
    print_json(arguments, *found);
  } else {
    print_difference(arguments, *found);
  }
  return kDone;
}

}  // namespace farheap::tool
