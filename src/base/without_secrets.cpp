// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/without_secrets.hpp"

#include <algorithm>

namespace farheap::base {
namespace {

constexpr std::string_view kStrokes = "://";
constexpr std::string_view kParts[] = {",sync=", ",pages="};  // another URI begins behind them
constexpr std::string_view kSecretParameters[] = {
    "password=", "passwd=", "pass=", "pwd=", "secret=", "token=", "auth="};

// Where the part of `text` ends that belongs to one URI.
std::size_t end_of_part(std::string_view text) {
  std::size_t end = text.size();
  for (auto part : kParts) end = std::min(end, text.find(part));
  return end;
}

// Hosts with ports, as in "h1:7000,[::1],h2": else a ':' stands before a password.
bool is_host_list(std::string_view text) {
  while (!text.empty()) {
    auto host = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), host.size() + 1));
    if (host.starts_with('[')) host.remove_prefix(std::min(host.size(), host.find(']')));
    const auto colon = host.find(':');
    if (colon == host.npos) continue;
    const auto port = host.substr(colon + 1);
    if (colon == 0 || port.empty() || port.find_first_not_of("0123456789") != port.npos) return false;
  }
  return true;
}

// "password=secret" becomes "password=***" where it is a parameter of a URI.
void hide_parameters(std::string& text) {
  for (auto name : kSecretParameters) {
    for (auto at = text.find(name); at != text.npos; at = text.find(name, at + name.size())) {
      if (at == 0 || std::string_view("?&.").find(text[at - 1]) == std::string_view::npos) continue;
      const auto value = at + name.size();
      const auto end = std::min(text.find_first_of("&, '\"\n", value), text.size());
      text.replace(value, end - value, "***");
    }
  }
}

// Up to the path; in a message, without what a sentence puts behind it.
std::string_view hosts_of(std::string_view whole) {
  const auto end = std::min(whole.find_first_of("/?# \t\n'\""), whole.size());
  auto hosts = whole.substr(0, end);
  const bool in_sentence = end == whole.size() || std::string_view(" \t\n'\"").find(whole[end]) != whole.npos;
  while (in_sentence && !hosts.empty() && std::string_view(":;,.").find(hosts.back()) != whole.npos) {
    hosts.remove_suffix(1);
  }
  return hosts;
}

// "user:pass@wo/rd@host:1": a password with an '@' and a '/', which should be %40 and %2F. In "user:password@host/x@y"
// the last one is a snapshot's, whose name does not look like a host with a port.
bool has_another_end(std::string_view whole, std::size_t at, std::string_view hosts) {
  if (whole.substr(0, at).find(':') == whole.npos) return false;
  const auto word = whole.substr(0, whole.find_first_of(" \t\n'\""));
  const auto last = word.rfind('@');
  if (last == word.npos || last <= at) return false;
  return !is_host_list(hosts.substr(at + 1)) || word.find_first_of(".:/[", last) != word.npos;
}

// "my user:password@host": blanks, which should be %20. In a sentence, what is behind a blank is not of the URI, and a
// blank follows its punctuation.
std::size_t at_behind_blanks(std::string_view whole) {
  const auto at = whole.find('@');
  if (at == whole.npos) return at;
  const auto login = whole.substr(0, at);
  const bool is_sentence = login.find_first_of("/\n'\"") != login.npos || login.find(": ") != login.npos ||
                           login.find("; ") != login.npos || login.find(", ") != login.npos;
  return is_sentence ? whole.npos : whole.rfind('@', whole.find_first_of(" \t\n'\"", at));
}

}  // namespace

Authority take_authority(std::string_view text) {
  const auto whole = text.substr(0, end_of_part(text));
  const auto hosts = hosts_of(whole);
  auto at = hosts.rfind('@');
  bool unclear = false;
  if (at == hosts.npos && hosts.size() < whole.size() && whole[hosts.size()] == ' ') {
    at = at_behind_blanks(whole);
    unclear = at != whole.npos;
  }
  if (!unclear && at == hosts.npos && !is_host_list(hosts)) {
    at = whole.rfind('@');
    unclear = at != whole.npos;
  }
  if (!unclear && at != whole.npos && has_another_end(whole, at, hosts)) at = whole.rfind('@'), unclear = true;
  if (at == whole.npos) return {.login = {}, .rest = text};
  return {.login = text.substr(0, at), .rest = text.substr(at + 1), .has_login = true, .unclear = unclear};
}

std::string without_secrets(std::string_view text) {
  std::string shown;
  for (auto strokes = text.find(kStrokes); strokes != text.npos; strokes = text.find(kStrokes)) {
    shown += text.substr(0, strokes + kStrokes.size());
    const auto authority = take_authority(text.substr(strokes + kStrokes.size()));
    const auto user = authority.login.substr(0, authority.login.find(':'));
    if (!authority.unclear && !user.empty()) shown.append(user).append("@");
    text = authority.rest;
  }
  shown += text;
  hide_parameters(shown);
  return shown;
}

}  // namespace farheap::base
