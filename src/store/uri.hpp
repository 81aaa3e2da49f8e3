// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// "[decorator+]...engine:place[?key=value&...]" taken apart. What may stand in it comes from the table of kinds.
//
// Thread-safety: plain values.
#pragma once

#include <cstdint>
#include <farheap/result.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace farheap::store {

// What a URI may name: the table that everything else derives from (kinds.cpp).
struct Vocabulary {
  std::string_view scheme;
  std::string_view form;
  bool decorator = false;
  std::span<const std::string_view> parameters;
};

struct Parameter {
  std::string kind;   // the engine or decorator it is for: "slow"
  std::string name;   // "delay_us"
  std::string value;  // without escapes
};

struct StoreUri {
  std::vector<std::string> decorators;  // outermost first
  std::string engine;
  std::string place;  // of an engine on a disk: the path, without escapes
  std::vector<Parameter> parameters;

  // Without parameters and passwords: "checksum+file:/mnt/nvme". For people.
  [[nodiscard]] std::string text() const;
};

// "pages=URI,sync=URI": two stores that are used as one (split_store.hpp).
struct SplitUri {
  std::string pages;
  std::string sync;
  [[nodiscard]] std::string text() const { return "pages=" + pages + ",sync=" + sync; }
};
// Nothing if the URI does not begin so; in either order; the part that is not named is empty.
[[nodiscard]] std::optional<SplitUri> split_uri(std::string_view uri);

// Of one store. kInvalidArgument, with the right form and the nearest known name, if the URI is not of the form above.
// A parameter that two of the named kinds know must say which it is for: "faulty.seed=7".
[[nodiscard]] Result<StoreUri> parse_uri(std::string_view uri, std::span<const Vocabulary> known);

// The parameters of one kind, with their types. Every getter refuses a malformed value with kInvalidArgument.
class Parameters {
 public:
  Parameters(const StoreUri& uri, std::string_view kind) : uri_(uri), kind_(kind) {}
  [[nodiscard]] std::string_view kind() const { return kind_; }  // "redis+cluster"
  [[nodiscard]] Result<std::uint64_t> number(std::string_view name, std::uint64_t fallback) const;
  [[nodiscard]] Result<std::uint64_t> size(std::string_view name, std::uint64_t fallback) const;  // "64M"
  [[nodiscard]] Result<double> rate(std::string_view name, double fallback) const;                // 0 to 1
  [[nodiscard]] std::string word(std::string_view name, std::string_view fallback) const;
  // As in a URI: "key=value&key=value"; empty if there are none.
  [[nodiscard]] std::string text() const;
  [[nodiscard]] tl::unexpected<Error> wrong(std::string_view name, std::string why, std::string remedy) const;

 private:
  [[nodiscard]] const std::string* find(std::string_view name) const;
  const StoreUri& uri_;
  std::string_view kind_;
};

// The URI of a file of this name, which is a path's part as it is, in the folder that is the place of `uri`.
[[nodiscard]] std::string place_inside(std::string_view uri, std::string_view name);

// The candidate that is the fewest edits away from `name`; empty if none is near.
[[nodiscard]] std::string_view nearest(std::string_view name, std::span<const std::string_view> candidates);

}  // namespace farheap::store
