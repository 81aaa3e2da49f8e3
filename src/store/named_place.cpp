// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "store/named_place.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <vector>

#include "store/kinds.hpp"

namespace farheap::store {
namespace {

// What stands between the server and the name: "//AUTHORITY/before/.../NAME".
struct NamedEngine {
  std::string_view scheme;
  std::size_t before;
  std::string_view default_before = {};  // where it may be left out
};
constexpr NamedEngine kNamed[] = {
    {"redis", 1, "0"}, {"rediss", 1, "0"}, {"redis+cluster", 0}, {"rediss+cluster", 0},
    {"bigtable", 2},   {"etcd", 0},        {"datastore", 0},     {"spanner", 2},
};
constexpr std::string_view kFolders[] = {"file", "lmdb", "rocksdb"};

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const auto end = std::min(text.find('/'), text.size());
    parts.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

bool is_decimal(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// "///PATH/SOCKET[/DATABASE[/NAME]]": where the socket's path ends is told by the number behind it.
std::string on_socket(std::string_view path, std::string_view name) {
  auto parts = split(path);
  if (parts.size() > 2 && is_decimal(parts[parts.size() - 2])) {
    parts.back() = name;
  } else if (parts.size() > 1 && is_decimal(parts.back())) {
    parts.emplace_back(name);
  } else {
    parts.insert(parts.end(), {"0", std::string(name)});
  }
  return fmt::format("///{}", fmt::join(parts, "/"));
}

Result<std::string> on_server(const NamedEngine& engine, std::string_view place, std::string_view name,
                              std::string_view shown) {
  if (place.starts_with("///")) return on_socket(place.substr(3), name);
  auto parts = split(place.starts_with("//") ? place.substr(2) : place);
  if (parts.size() == 1 && !engine.default_before.empty()) parts.emplace_back(engine.default_before);
  if (!place.starts_with("//") || parts.size() < engine.before + 1 || parts.front().empty()) {
    const auto all = vocabulary();
    const auto known = std::ranges::find(all, engine.scheme, &Vocabulary::scheme);
    return fail(ErrorCode::kInvalidArgument, "not a store", std::string(shown), "it says too little",
                fmt::format("write it as {}", known->form));
  }
  parts.resize(engine.before + 1);
  parts.emplace_back(name);
  return fmt::format("//{}", fmt::join(parts, "/"));
}

}  // namespace

std::string folder_of(std::string_view uri) {
  const auto parsed = parse_uri(uri, vocabulary());
  return parsed && std::ranges::find(kFolders, parsed->engine) != std::end(kFolders) ? parsed->place : std::string();
}

Result<std::string> with_name(std::string_view uri, std::string_view name) {
  const auto parsed = parse_uri(uri, vocabulary());
  if (!parsed) return fail(parsed.error());
  if (!folder_of(uri).empty()) return place_inside(uri, name);
  const auto engine = std::ranges::find(kNamed, parsed->engine, &NamedEngine::scheme);
  if (engine == std::end(kNamed)) return std::string(uri);
  auto place = on_server(*engine, parsed->place, name, parsed->text());
  if (!place) return place;
  std::string named(uri);
  return named.replace(uri.find(':') + 1, parsed->place.size(), *place);
}

Status check_scratch_folder(const std::string& place, const std::string& uri) {
  constexpr char kWhat[] = "cannot open the store";
  struct stat status{};
  const std::string example = uri.substr(0, uri.find(':')) + ":/tmp";
  if (stat(place.c_str(), &status) != 0) {
    return fail(errno_error(errno, kWhat, uri,
                            "make the folder (mkdir -p), or name another one, as " + example +
                                ", for a store that does not outlive its process"));
  }
  if (S_ISDIR(status.st_mode)) return {};
  return fail(ErrorCode::kInvalidArgument, kWhat, uri, "it is not a folder",
              "name a folder, as " + example + ", for a store that does not outlive its process");
}

}  // namespace farheap::store
