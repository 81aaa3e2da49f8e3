// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "store/uri.hpp"

#include <farheap/file_uri.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/units.hpp"
#include "base/uri_path.hpp"
#include "base/without_secrets.hpp"

namespace farheap::store {
namespace {

constexpr char kNotStore[] = "not a store";
constexpr char kUriForm[] = "[decorator+]...engine:place[?key=value&...]";

std::size_t edits(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t up = row[j];
      row[j] = std::min({up + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
      diagonal = up;
    }
  }
  return row[b.size()];
}

struct UriParser {
  std::string_view uri;
  std::span<const Vocabulary> known;
  StoreUri result;

  auto wrong(std::string why, std::string remedy) const {
    return fail(ErrorCode::kInvalidArgument, kNotStore, base::without_secrets(uri), std::move(why), std::move(remedy));
  }

  std::vector<std::string_view> names(bool decorator) const {
    std::vector<std::string_view> found;
    for (const auto& kind : known) {
      if (kind.decorator == decorator) found.push_back(kind.scheme);
    }
    return found;
  }

  std::string choices() const {
    std::string text = fmt::format("write it as {}, for example file:/mnt/nvme; engines:", kUriForm);
    for (auto name : names(false)) text += fmt::format(" {}:", name);
    text += "; decorators:";
    for (auto name : names(true)) text += fmt::format(" {}+", name);
    return text;
  }

  auto unknown(std::string_view name, bool decorator) const {
    const auto candidates = names(decorator);
    const auto near = nearest(name, candidates);
    const char mark = decorator ? '+' : ':';
    std::string remedy = near.empty() ? choices() : fmt::format("did you mean {}{}? {}", near, mark, choices());
    return wrong(fmt::format("there is no {} '{}'", decorator ? "decorator" : "engine", name), std::move(remedy));
  }

  const Vocabulary* find(std::string_view name, bool decorator) const {
    for (const auto& kind : known) {
      if (kind.scheme == name && kind.decorator == decorator) return &kind;
    }
    return nullptr;
  }

  // An engine may have a '+' in its name: "redis+cluster".
  Status schemes(std::string_view text) {
    for (auto plus = text.find('+'); plus != std::string_view::npos; plus = text.find('+')) {
      if (find(text, false) != nullptr) break;
      const auto name = text.substr(0, plus);
      if (find(name, true) == nullptr) {
        if (find(name, false) != nullptr) {
          return wrong(fmt::format("'{}' is an engine, and an engine comes last", name), choices());
        }
        return unknown(name, true);
      }
      if (std::ranges::count(result.decorators, name) != 0) {
        return wrong(fmt::format("{}+ stands twice", name), "name each decorator once");
      }
      result.decorators.emplace_back(name);
      text.remove_prefix(plus + 1);
    }
    if (find(text, false) == nullptr) {
      if (find(text, true) != nullptr) {
        return wrong(fmt::format("'{}' is a decorator, and an engine must follow it", text),
                     fmt::format("write it as {}+file:DIR", text));
      }
      return unknown(text, false);
    }
    result.engine = text;
    return {};
  }

  // All kinds named in the URI that know this parameter.
  std::vector<const Vocabulary*> takers(std::string_view kind, std::string_view name) const {
    std::vector<const Vocabulary*> found;
    auto consider = [&](const Vocabulary* candidate) {
      if (candidate == nullptr || (!kind.empty() && candidate->scheme != kind)) return;
      if (std::ranges::count(candidate->parameters, name) != 0) found.push_back(candidate);
    };
    for (const auto& decorator : result.decorators) consider(find(decorator, true));
    consider(find(result.engine, false));
    return found;
  }

  auto unknown_parameter(std::string_view key) const {
    std::vector<std::string_view> all;
    for (const auto& kind : known) {
      const bool named =
          kind.decorator ? std::ranges::count(result.decorators, kind.scheme) != 0 : kind.scheme == result.engine;
      if (named) all.insert(all.end(), kind.parameters.begin(), kind.parameters.end());
    }
    const auto near = nearest(key, all);
    std::string remedy = near.empty() ? "" : fmt::format("did you mean {}=? ", near);
    remedy += all.empty() ? "this store takes no parameters" : fmt::format("known here: {}", fmt::join(all, ", "));
    return wrong(fmt::format("there is no parameter '{}'", key), std::move(remedy));
  }

  Status parameter(std::string_view text) {
    const auto equals = text.find('=');
    if (equals == std::string_view::npos || equals == 0) {
      return wrong(fmt::format("'{}' is not a parameter", text), "write parameters as ?key=value&key=value");
    }
    const auto key = text.substr(0, equals);
    const auto dot = key.find('.');
    const auto kind = dot == std::string_view::npos ? std::string_view() : key.substr(0, dot);
    const auto name = dot == std::string_view::npos ? key : key.substr(dot + 1);
    const auto found = takers(kind, name);
    if (found.empty()) return unknown_parameter(key);
    if (found.size() > 1) {
      return wrong(fmt::format("'{}' could be for {} or {}", name, found[0]->scheme, found[1]->scheme),
                   fmt::format("write {}.{}=", found[0]->scheme, name));
    }
    for (const auto& earlier : result.parameters) {
      if (earlier.kind == found[0]->scheme && earlier.name == name) {
        return wrong(fmt::format("'{}' stands twice", name), "say it once");
      }
    }
    result.parameters.push_back(
        {std::string(found[0]->scheme), std::string(name), base::unescape_path(text.substr(equals + 1))});
    return {};
  }

  // What is behind the name of an engine that is a server. Where a login cannot be told from the rest, the rest is not
  // shown.
  Status server(std::string_view rest) const {
    constexpr std::string_view kStrokes = "//";
    const std::string_view form = find(result.engine, false)->form;
    if (form.find(kStrokes) == form.npos) return {};
    if (!rest.starts_with(kStrokes)) {
      return fail(ErrorCode::kInvalidArgument, kNotStore, result.engine + ":...",
                  fmt::format("'//' must stand behind '{}:'", result.engine), fmt::format("write it as {}", form));
    }
    if (!base::take_authority(rest.substr(kStrokes.size())).unclear) return {};
    return wrong("it cannot be told where the password ends",
                 "write %2F for a '/' in it, %3F for '?', %23 for '#', %20 for a blank, or name a file with "
                 "?password_file=");
  }

  // Of a server it is a name, whose parts the engine takes apart.
  bool is_path() const { return find(result.engine, false)->form.find("//") == std::string_view::npos; }

  Result<StoreUri> parse() {
    if (split_uri(uri)) return wrong("it names two stores", "name one of them here");
    const auto colon = uri.find(':');
    if (colon == std::string_view::npos) {
      if (uri.starts_with('/') || uri.starts_with('.')) {
        return wrong("the engine is missing", fmt::format("write it as {}", base::path_uri("file", uri)));
      }
      return wrong("there is no ':'", choices());
    }
    if (uri.find('\0') != std::string_view::npos) return wrong("it has a zero byte in it", choices());
    if (auto ok = schemes(uri.substr(0, colon)); !ok) return fail(std::move(ok.error()));
    auto rest = uri.substr(colon + 1);
    if (auto ok = server(rest); !ok) return fail(std::move(ok.error()));
    const auto question = rest.find('?');
    result.place = rest.substr(0, question);
    if (is_path()) result.place = base::unescape_path(result.place);
    if (result.place.find('\0') != std::string::npos) return wrong("it has a zero byte in it", choices());
    if (question == std::string_view::npos) return std::move(result);
    rest.remove_prefix(question + 1);
    while (!rest.empty()) {
      const auto end = rest.find('&');
      if (auto ok = parameter(rest.substr(0, end)); !ok) return fail(std::move(ok.error()));
      rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    }
    return std::move(result);
  }
};

}  // namespace
}  // namespace farheap::store

std::string farheap::file_uri(std::string_view path) { return base::path_uri("file", path); }

namespace farheap::store {

std::string StoreUri::text() const {
  std::string all;
  for (const auto& decorator : decorators) all += decorator + "+";
  const bool is_path = !place.starts_with("//");
  return base::without_secrets(all + engine + ":" + (is_path ? base::escape_path(place) : place));
}

std::optional<SplitUri> split_uri(std::string_view uri) {
  constexpr std::string_view kPages = "pages=", kSync = "sync=";
  const bool pages_first = uri.starts_with(kPages);
  if (!pages_first && !uri.starts_with(kSync)) return std::nullopt;
  const auto other = pages_first ? kSync : kPages;
  const auto comma = uri.find("," + std::string(other));
  const auto first = uri.substr(0, comma).substr(uri.find('=') + 1);
  const auto second = comma == uri.npos ? std::string_view() : uri.substr(comma + 1 + other.size());
  return pages_first ? SplitUri{std::string(first), std::string(second)}
                     : SplitUri{std::string(second), std::string(first)};
}

Result<StoreUri> parse_uri(std::string_view uri, std::span<const Vocabulary> known) {
  return UriParser{uri, known, {}}.parse();
}

std::string place_inside(std::string_view uri, std::string_view name) {
  std::string inside(uri);
  return inside.insert(std::min(inside.find('?'), inside.size()), "/" + base::escape_path(name));
}

std::string_view nearest(std::string_view name, std::span<const std::string_view> candidates) {
  std::string_view best;
  std::size_t best_edits = 3;  // farther away is another word
  if (name.size() > 64) return best;
  for (auto candidate : candidates) {
    const auto distance = edits(name, candidate);
    if (distance < best_edits && distance < candidate.size()) best = candidate, best_edits = distance;
  }
  return best;
}

const std::string* Parameters::find(std::string_view name) const {
  for (const auto& parameter : uri_.parameters) {
    if (parameter.kind == kind_ && parameter.name == name) return &parameter.value;
  }
  return nullptr;
}

tl::unexpected<Error> Parameters::wrong(std::string_view name, std::string why, std::string remedy) const {
  return fail(ErrorCode::kInvalidArgument, kNotStore, fmt::format("{}?{}={}", uri_.text(), name, word(name, "")),
              std::move(why), std::move(remedy));
}

Result<std::uint64_t> Parameters::number(std::string_view name, std::uint64_t fallback) const {
  const auto* text = find(name);
  if (text == nullptr) return fallback;
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc() || end != text->data() + text->size()) {
    return wrong(name, "a whole number was expected", fmt::format("write {}=100", name));
  }
  return value;
}

Result<std::uint64_t> Parameters::size(std::string_view name, std::uint64_t fallback) const {
  const auto* text = find(name);
  if (text == nullptr) return fallback;
  auto value = base::parse_size(*text);
  if (!value) return wrong(name, "a size was expected", fmt::format("write {}=64M", name));
  return value;
}

Result<double> Parameters::rate(std::string_view name, double fallback) const {
  const auto* text = find(name);
  if (text == nullptr) return fallback;
  double value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc() || end != text->data() + text->size() || !(value >= 0 && value <= 1)) {
    return wrong(name, "a rate from 0 to 1 was expected", fmt::format("write {}=0.01", name));
  }
  return value;
}

std::string Parameters::word(std::string_view name, std::string_view fallback) const {
  const auto* text = find(name);
  return text != nullptr ? *text : std::string(fallback);
}

std::string Parameters::text() const {
  std::string all;
  for (const auto& parameter : uri_.parameters) {
    if (parameter.kind == kind_)
      all += fmt::format("{}{}={}", all.empty() ? "" : "&", parameter.name, base::escape_path(parameter.value));
  }
  return all;
}

}  // namespace farheap::store
