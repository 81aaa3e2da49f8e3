// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How the verbs of kept heaps write what they found: for people and as JSON. Names and descriptions come from the heap:
// nothing in them reaches a terminal as a command to it.
//
// Thread-safety: the tool has one thread.
#pragma once

#include <cstdint>
#include <farheap/farheap.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "terminal.hpp"
#include "verbs.hpp"

namespace farheap::tool {

using Json = nlohmann::ordered_json;

// Says what is wrong; the exit status for it.
int failed(const Error& error);

// As it stands in a source file; not whole: without what everybody knows.
[[nodiscard]] const std::string& type_of(const ObjectInfo& object, bool whole);
[[nodiscard]] std::string_view word_of(ObjectKind kind);
[[nodiscard]] std::string time_of(std::uint64_t ns);
[[nodiscard]] std::string label_of(const ObjectInfo& object);
[[nodiscard]] std::string label_of(const VersionInfo& version);

// In a table, which stays one: longer names are shortened, unless --long asks for all of them.
template <class Info>
[[nodiscard]] std::string cell_of(const Info& info, const HeapArguments& arguments) {
  constexpr std::size_t kMostOfAName = 64;
  return arguments.long_names ? label_of(info) : shortened(label_of(info), kMostOfAName);
}

// In a sentence: "the snapshot 'monday' (commit 3, of 2026-01-01 12:00:00)".
[[nodiscard]] std::string described(const VersionInfo& version);

[[nodiscard]] Json json_of(const ObjectInfo& object);
[[nodiscard]] Json json_of(const VersionInfo& version);
// One text; bytes that are no UTF-8 are replaced. `indent`: -1 for one line.
[[nodiscard]] std::string text_of(const Json& json, int indent = 2);

// For what changes heaps and calls none of their objects.
inline const HeapOptions kAnyTypes{.any_types = true};

// With --json, the heap and its versions as they are now, and `more`: what a verb says that has changed it. The exit
// status.
int tell_heap(const std::string& uri, const HeapArguments& arguments, const Json& more = Json::object());

// Those of this name, or at this address ("0x..." as `ls` prints it). kNotFound, with what lists them.
[[nodiscard]] Result<std::vector<ObjectInfo>> objects_named(const HeapFacts& facts, const std::string& name,
                                                            const std::string& uri);

}  // namespace farheap::tool
