// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "store/secrets.hpp"

#include <fmt/format.h>
#include <string.h>

#include <optional>

#include "base/environment.hpp"
#include "base/uri_path.hpp"
#include "store/private_file.hpp"

namespace farheap::store {
namespace {

constexpr char kNoPassword[] = "no password for the store";
constexpr std::string_view kStrokes = "//";
constexpr std::size_t kLongestPassword = 4096;

int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// Nothing if a '%' is not followed by two digits: then nobody knows what was meant.
std::optional<std::string> unescaped(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      plain += text[i];
      continue;
    }
    if (i + 2 >= text.size() || digit_of(text[i + 1]) < 0 || digit_of(text[i + 2]) < 0) return std::nullopt;
    plain += static_cast<char>(digit_of(text[i + 1]) * 16 + digit_of(text[i + 2]));
    i += 2;
  }
  return plain;
}

std::string escaped(std::string_view text) {
  std::string all;
  for (const char c : text) {
    const bool plain =
        (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_';
    all += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return all;
}

Result<base::Secret> read_password(const std::string& file) {
  char text[kLongestPassword + 2];
  const auto bytes = read_private_file(file, text, {kNoPassword, "store_password_file"});
  if (!bytes) return fail(bytes.error());
  std::string_view line(text, *bytes);
  if (line.ends_with('\n')) line.remove_suffix(1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  const std::size_t length = line.size();
  auto password = base::Secret::make(line);
  explicit_bzero(text, sizeof text);
  if (length != 0 && length <= kLongestPassword) return password;
  return fail(ErrorCode::kInvalidArgument, kNoPassword, file,
              length == 0 ? "it is empty" : fmt::format("a password has at most {} bytes", kLongestPassword),
              "write the password into it, and nothing else");
}

Result<base::Secret> password_in_environment(const std::string& name) {
  const char* const value = base::environment(name.c_str());
  if (value != nullptr && *value != '\0') return base::Secret::make(value);
  return fail(ErrorCode::kNotFound, kNoPassword, fmt::format("password_env={}", name), "this variable is not set",
              fmt::format("export {}=..., or name a file with ?password_file=", name));
}

// "name=value" in the query of `uri`: where it stands, up to the '&' behind it.
struct Found {
  std::size_t at = 0, value = 0, end = 0;
};
std::optional<Found> find_parameter(std::string_view uri, std::string_view name) {
  const auto question = uri.find('?');
  if (question == uri.npos) return std::nullopt;
  for (std::size_t at = question + 1; at < uri.size();) {
    const auto end = std::min(uri.find('&', at), uri.size());
    const auto one = uri.substr(at, end - at);
    const auto equals = std::min(one.find('='), one.size());
    auto key = one.substr(0, equals);
    key.remove_prefix(key.find('.') + 1);  // npos + 1 is 0
    if (key == name && equals < one.size()) return Found{at, at + equals + 1, end};
    at = end + 1;
  }
  return std::nullopt;
}

Result<std::string> one_with_login_inside(std::string uri) {
  const auto variable = find_parameter(uri, "password_env");
  const auto authority = uri.find("://");
  if (!variable || authority == uri.npos) return uri;
  const auto password = password_in_environment(uri.substr(variable->value, variable->end - variable->value));
  if (!password) return fail(password.error());
  uri.erase(variable->at - 1, variable->end - variable->at + 1);  // with the '?' or '&' before it
  if (variable->at - 1 < uri.size() && uri.find('?') == uri.npos) uri[variable->at - 1] = '?';
  const auto place = std::string_view(uri).substr(authority + 3);
  const auto taken = base::take_authority(place);
  if (taken.login.find(':') != taken.login.npos) return uri;  // the URI's own counts
  uri.insert(authority + 3 + taken.login.size(), ":" + escaped(password->view()) + (taken.has_login ? "" : "@"));
  return uri;
}

}  // namespace

Result<Login> find_login(std::string_view place, const Parameters& parameters, const StoreOptions& options) {
  Login login;
  if (place.starts_with(kStrokes)) {
    const auto authority = base::take_authority(place.substr(kStrokes.size()));
    const auto colon = authority.login.find(':');
    const auto user = unescaped(authority.login.substr(0, colon));
    auto password = unescaped(colon == authority.login.npos ? "" : authority.login.substr(colon + 1));
    if (!user || !password) {
      return fail(ErrorCode::kInvalidArgument, "not a store", fmt::format("{}:{}", parameters.kind(), place),
                  fmt::format("a '%' in the {} is not followed by two hexadecimal digits", user ? "password" : "user"),
                  "write %25 for a '%'");
    }
    auto kept = base::Secret::take(*password);
    if (!kept) return fail(std::move(kept.error()));
    login.user = *user, login.password = std::move(*kept);
  }
  if (login.user.empty()) login.user = parameters.word("user", "");
  if (!login.password.empty()) return login;
  const std::string variable = parameters.word("password_env", "");
  const std::string file = parameters.word("password_file", options.password_file);
  if (variable.empty() && file.empty()) return login;
  auto password = variable.empty() ? read_password(file) : password_in_environment(variable);
  if (!password) return fail(std::move(password.error()));
  login.password = std::move(*password);
  return login;
}

std::string place_without_login(std::string_view place) {
  if (!place.starts_with(kStrokes)) return std::string(place);
  return std::string(kStrokes).append(base::take_authority(place.substr(kStrokes.size())).rest);
}

Result<std::string> with_login_inside(std::string_view uri) {
  if (const auto parts = split_uri(uri)) {
    auto pages = one_with_login_inside(parts->pages);
    if (!pages) return pages;
    auto sync = one_with_login_inside(parts->sync);
    if (!sync) return sync;
    return SplitUri{std::move(*pages), std::move(*sync)}.text();
  }
  return one_with_login_inside(std::string(uri));
}

std::vector<std::string> password_variables(std::string_view uri) {
  std::vector<std::string> names;
  const auto parts = split_uri(uri);
  for (const auto one : {parts ? std::string_view(parts->pages) : uri, parts ? std::string_view(parts->sync) : ""}) {
    const auto found = find_parameter(one, "password_env");
    if (found) names.emplace_back(one.substr(found->value, found->end - found->value));
  }
  return names;
}

std::string with_whole_paths(std::string_view uri, const std::string& folder) {
  if (const auto parts = split_uri(uri)) {
    return SplitUri{with_whole_paths(parts->pages, folder), with_whole_paths(parts->sync, folder)}.text();
  }
  std::string whole(uri);
  for (auto name : {"password_file", "ca_file", "cert_file", "key_file"}) {
    const auto file = find_parameter(whole, name);
    if (file && file->value < file->end && whole[file->value] != '/')
      whole.insert(file->value, base::escape_path(folder) + "/");
  }
  return whole;
}

}  // namespace farheap::store
