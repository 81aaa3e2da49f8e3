// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "heap_text.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <unordered_map>

#include "api/type_text.hpp"
#include "base/units.hpp"
#include "base/without_secrets.hpp"
#include "terminal.hpp"
#include "verbs.hpp"

namespace farheap::tool {

int failed(const Error& error) {
  complain(error);
  return error.code == ErrorCode::kInvalidArgument ? kUsage : kFailed;
}

// Many objects have few types.
const std::string& type_of(const ObjectInfo& object, bool whole) {
  static std::unordered_map<std::string, std::string> known[2];
  const auto found = known[whole].find(object.type);
  if (found != known[whole].end()) return found->second;
  std::string text = whole ? api::readable_type(object.type) : api::short_type(object.type);
  return known[whole].emplace(object.type, std::move(text)).first->second;
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

std::string label_of(const ObjectInfo& object) {
  if (object.kind == ObjectKind::kNamed) return printable(object.name);
  if (object.kind == ObjectKind::kUnique) return "(unique)";
  return fmt::format("({})", object.address);
}

std::string label_of(const VersionInfo& version) { return version.name.empty() ? "(newest)" : printable(version.name); }

std::string described(const VersionInfo& version) {
  return fmt::format(
      "{} (commit {}, of {})",
      version.name.empty() ? "the newest version" : fmt::format("the snapshot '{}'", printable(version.name)),
      version.commit, time_of(version.time_ns));
}

Json json_of(const ObjectInfo& object) {
  return {{"name", object.name},
          {"kind", word_of(object.kind)},
          {"type", type_of(object, true)},
          {"length", object.length},
          {"bytes", object.bytes},
          {"description", object.description},
          {"address", reinterpret_cast<std::uintptr_t>(object.address)}};
}

Json json_of(const VersionInfo& version) {
  return {{"name", version.name},
          {"time_ns", version.time_ns},
          {"commit", version.commit},
          {"pages", version.pages},
          {"bytes", version.pages * base::kPageBytes}};
}

std::string text_of(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

Result<std::vector<ObjectInfo>> objects_named(const HeapFacts& facts, const std::string& name, const std::string& uri) {
  std::vector<ObjectInfo> found;
  for (const ObjectInfo& one : facts.objects) {
    if (one.name == name) found.push_back(one);
  }
  for (const ObjectInfo& one : facts.objects) {
    if (found.empty() && fmt::format("{}", one.address) == name) found.push_back(one);
  }
  if (!found.empty()) return found;
  return fail(ErrorCode::kNotFound, "cannot find the object", name, "the heap has none of that name",
              fmt::format("`farheap heap ls {}` lists them", shell_word(uri)));
}

int tell_heap(const std::string& uri, const HeapArguments& arguments, const Json& more) {
  if (!arguments.json) return kDone;
  const auto facts = Heap::look(uri);
  if (!facts) return failed(facts.error());
  Json versions = Json::array();
  for (const VersionInfo& one : facts->versions) versions.push_back(json_of(one));
  Json all{{"format", kJsonFormat}, {"heap", base::without_secrets(uri)}, {"id", facts->id}};
  all.update(more);
  all["versions"] = std::move(versions);
  print_out("{}\n", text_of(all));
  return kDone;
}

}  // namespace farheap::tool
