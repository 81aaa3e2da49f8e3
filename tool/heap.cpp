// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// farheap heap ls|show|check|snapshot|compact|rm|rollback: what can be done to a kept heap from outside of its
// programs.
#include <cxxabi.h>
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <cstdlib>
#include <farheap/farheap.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/units.hpp"
#include "terminal.hpp"
#include "verbs.hpp"

namespace farheap::tool {
namespace {

using Json = nlohmann::ordered_json;

int failed(const Error& error) {
  complain(error);
  return error.code == ErrorCode::kInvalidArgument ? kUsage : kFailed;
}

int outcome(const Status& status) { return status ? kDone : failed(status.error()); }

// As it stands in a source file; what the compiler does not know stays as it is.
std::string readable_type(const std::string& type) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> name(abi::__cxa_demangle(type.c_str(), nullptr, nullptr, &status),
                                                         &std::free);
  return status == 0 ? name.get() : type;
}

std::string_view word_of(ObjectKind kind) {
  switch (kind) {
    case ObjectKind::kNamed: return "named";
    case ObjectKind::kUnique: return "unique";
    case ObjectKind::kAnonymous: return "anonymous";
  }
  return "unknown";
}

std::string time_of(std::uint64_t ns) {
  return fmt::format("{:%Y-%m-%d %H:%M:%S}", fmt::localtime(static_cast<std::time_t>(ns / 1'000'000'000)));
}

Json json_of(const ObjectInfo& object) {
  return {{"name", object.name},
          {"kind", word_of(object.kind)},
          {"type", readable_type(object.type)},
          {"length", object.length},
          {"bytes", object.bytes},
          {"description", object.description},
          {"address", reinterpret_cast<std::uintptr_t>(object.address)}};
}

std::string label_of(const ObjectInfo& object) {
  if (object.kind == ObjectKind::kNamed) return object.name;
  if (object.kind == ObjectKind::kUnique) return "(unique)";
  return fmt::format("({})", object.address);
}

void print_listing(Heap& heap, const std::vector<VersionInfo>& versions) {
  std::vector<std::vector<std::string>> objects{{"OBJECT", "COUNT", "BYTES", "TYPE", ""}};
  heap.for_each_object([&](const ObjectInfo& one) {
    objects.push_back({label_of(one), fmt::format("{}", one.length), base::format_size(one.bytes),
                       readable_type(one.type), one.description});
  });
  print_out("{}", objects.size() > 1 ? aligned(objects) : "no objects\n");
  std::vector<std::vector<std::string>> rows{{"VERSION", "WHEN", "COMMIT", "PAGES", "BYTES"}};
  for (const auto& one : versions) {
    rows.push_back({one.name.empty() ? "(newest)" : one.name, time_of(one.time_ns), fmt::format("{}", one.commit),
                    fmt::format("{}", one.pages), base::format_size(one.pages * base::kPageBytes)});
  }
  print_out("\n{}", aligned(rows));
}

int list(const HeapArguments& arguments) {
  auto heap = Heap::open_read_only(arguments.uri);
  if (!heap) return failed(heap.error());
  const auto versions = heap->versions();
  if (!versions) return failed(versions.error());
  if (!arguments.json) {
    print_listing(*heap, *versions);
    return kDone;
  }
  Json objects = Json::array(), rows = Json::array();
  heap->for_each_object([&](const ObjectInfo& one) { objects.push_back(json_of(one)); });
  for (const auto& one : *versions) {
    rows.push_back({{"name", one.name}, {"time_ns", one.time_ns}, {"commit", one.commit}, {"pages", one.pages}});
  }
  print_out("{}\n", Json{{"format", kJsonFormat},
                         {"heap", heap->uri()},
                         {"id", heap->id()},
                         {"objects", std::move(objects)},
                         {"versions", std::move(rows)}}
                        .dump(2));
  return kDone;
}

int show(const HeapArguments& arguments) {
  auto heap = Heap::open_read_only(arguments.uri);
  if (!heap) return failed(heap.error());
  std::vector<ObjectInfo> found;
  heap->for_each_object([&](const ObjectInfo& one) {
    if (one.name == arguments.name) found.push_back(one);
  });
  if (found.empty()) {
    return failed({ErrorCode::kNotFound, "cannot show the object", arguments.name, "the heap has none of that name",
                   fmt::format("`farheap heap ls {}` lists them", shell_word(arguments.uri))});
  }
  if (arguments.json) {
    Json objects = Json::array();
    for (const auto& one : found) objects.push_back(json_of(one));
    print_out("{}\n", Json{{"format", kJsonFormat}, {"heap", heap->uri()}, {"objects", std::move(objects)}}.dump(2));
    return kDone;
  }
  for (const auto& one : found) {
    print_out("{}", aligned({{"name", label_of(one)},
                             {"kind", std::string(word_of(one.kind))},
                             {"type", readable_type(one.type)},
                             {"count", fmt::format("{}", one.length)},
                             {"bytes", fmt::format("{}", one.bytes)},
                             {"address", fmt::format("{}", one.address)},
                             {"description", one.description}}));
  }
  return kDone;
}

int check(const HeapArguments& arguments) {
  if (Status status = Heap::check(arguments.uri); !status) return failed(status.error());
  if (arguments.json) {
    print_out("{}\n", Json{{"format", kJsonFormat}, {"heap", arguments.uri}, {"sound", true}}.dump(2));
  } else {
    print_out("{}: sound\n", arguments.uri);
  }
  return kDone;
}

int snapshot(const HeapArguments& arguments) {
  auto heap = Heap::open(arguments.uri);
  if (!heap) return failed(heap.error());
  return outcome(heap->snapshot(arguments.name));
}

int compact(const HeapArguments& arguments) {
  auto heap = Heap::open(arguments.uri);
  if (!heap) return failed(heap.error());
  return outcome(heap->compact());
}

// The whole heap, or the snapshot behind the last '@'.
int remove(const HeapArguments& arguments) {
  const std::size_t at = arguments.uri.rfind('@');
  if (at == std::string::npos || arguments.uri.find('/', at) != std::string::npos) {
    return outcome(Heap::remove(arguments.uri));
  }
  auto heap = Heap::open(arguments.uri.substr(0, at));
  if (!heap) return failed(heap.error());
  return outcome(heap->remove_snapshot(arguments.uri.substr(at + 1)));
}

}  // namespace

int heap(const HeapArguments& arguments) {
  switch (arguments.what) {
    case HeapArguments::kList: return list(arguments);
    case HeapArguments::kShow: return show(arguments);
    case HeapArguments::kCheck: return check(arguments);
    case HeapArguments::kSnapshot: return snapshot(arguments);
    case HeapArguments::kRemove: return remove(arguments);
    case HeapArguments::kCompact: return compact(arguments);
    case HeapArguments::kRollBack: return outcome(Heap::roll_back(arguments.uri));
  }
  return kUsage;
}

}  // namespace farheap::tool
