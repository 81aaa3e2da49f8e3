// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "store/redis/place.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <charconv>

#include "store/secrets.hpp"

namespace farheap::store::redis {
namespace {

constexpr char kNotRedis[] = "not a store";
constexpr std::uint64_t kMostSeconds = 1'000'000;

constexpr char kServerForm[] =
    "write it as redis://HOST[:PORT][/DATABASE[/NAME]], or redis:///PATH/SOCKET[/DATABASE[/NAME]]";
constexpr char kClusterForm[] = "write it as redis+cluster://HOST[:PORT][,HOST[:PORT]]...[/NAME]";

template <class Number>
bool read_digits(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return !text.empty() && error == std::errc() && end == text.data() + text.size();
}

bool is_socket(const std::string& path) {
  struct stat status{};
  return stat(path.c_str(), &status) == 0 && S_ISSOCK(status.st_mode);
}

// A name is a part of every key, and between braces it chooses the slot of a cluster. '~' is for scratch stores.
bool is_name(std::string_view name) {
  return !name.empty() && name.size() <= 128 && std::ranges::all_of(name, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '.' || c == '_' || c == '-' || c == '~';
  });
}

struct Parser {
  const Parameters& parameters;
  Place result;

  auto wrong(std::string why) const {
    return fail(ErrorCode::kInvalidArgument, kNotRedis, result.shown, std::move(why),
                result.is_cluster() ? kClusterForm : kServerForm);
  }

  Status take_name(std::string_view name) {
    if (!is_name(name)) return wrong(fmt::format("'{}' is no name: letters, digits, '.', '_' and '-' make one", name));
    result.name = name;
    result.is_named = true;
    return {};
  }

  // "DATABASE[/NAME]"
  Status take_database(std::string_view rest) {
    if (rest.empty()) return {};
    const auto slash = rest.find('/');
    if (!read_digits(rest.substr(0, slash), result.database)) {
      return wrong(fmt::format("'{}' is no number of a database", rest.substr(0, slash)));
    }
    return slash == std::string_view::npos ? Status{} : take_name(rest.substr(slash + 1));
  }

  // Where the path of the socket ends is seen on the disk; while the server is away, by what looks like a database.
  Status take_socket(const std::string& path) {
    if (path == "/") return wrong("the path of the socket is missing");
    std::size_t end = path.size();
    while (end != std::string::npos && end > 1 && !is_socket(path.substr(0, end))) end = path.rfind('/', end - 1);
    if (end == std::string::npos || end <= 1) {
      end = path.size();
      unsigned number = 0;
      const auto last = path.rfind('/');
      const auto before = last == 0 ? 0 : path.rfind('/', last - 1);
      if (read_digits(std::string_view(path).substr(last + 1), number)) {
        end = last;
      } else if (before != 0 && read_digits(std::string_view(path).substr(before + 1, last - before - 1), number)) {
        end = before;
      }
    }
    if (end == 0) return wrong("the path of the socket is missing");
    result.addresses = {{.port = 0, .socket = path.substr(0, end)}};
    return take_database(std::string_view(path).substr(std::min(end + 1, path.size())));
  }

  Status take_hosts(std::string_view hosts) {
    while (!hosts.empty()) {
      const auto comma = hosts.find(',');
      Address address;
      if (!parse_address(hosts.substr(0, comma), address)) {
        return wrong(fmt::format("'{}' is no HOST[:PORT]", hosts.substr(0, comma)));
      }
      result.addresses.push_back(std::move(address));
      hosts.remove_prefix(comma == std::string_view::npos ? hosts.size() : comma + 1);
    }
    if (result.addresses.empty()) return wrong("the host is missing");
    if (result.addresses.size() > 1 && !result.is_cluster()) {
      return wrong("one server has one host; of a cluster, redis+cluster:// names several");
    }
    return {};
  }

  Status take_place(std::string_view place) {
    if (!place.starts_with("//")) return wrong("'//' is missing");
    place.remove_prefix(2);
    if (place.starts_with('/')) {
      if (result.scheme != "redis") return wrong("a Unix socket is for redis:// alone");
      return take_socket(std::string(place));
    }
    const auto slash = place.find('/');
    if (auto ok = take_hosts(place.substr(0, slash)); !ok) return ok;
    if (slash == std::string_view::npos) return {};
    const auto rest = place.substr(slash + 1);
    if (!result.is_cluster()) return take_database(rest);
    return rest.empty() ? Status{} : take_name(rest);
  }

  Status take_tls() {
    const auto certificate = parameters.word("cert_file", ""), key = parameters.word("key_file", "");
    if (!result.is_by_tls()) {
      // What would be silently in the clear was meant to be by TLS.
      for (const char* name : {"ca_file", "cert_file", "key_file", "server_name"}) {
        if (parameters.word(name, "").empty()) continue;
        return parameters.wrong(name, "it is for TLS, and this is without", "write rediss:// or rediss+cluster://");
      }
      return {};
    }
    if (certificate.empty() != key.empty()) {
      return parameters.wrong(certificate.empty() ? "key_file" : "cert_file", "the other one of the two is missing",
                              "write cert_file=FILE&key_file=FILE");
    }
    auto authorities = Authorities::load(parameters.word("ca_file", ""));
    if (!authorities) return fail(std::move(authorities.error()));
    auto tls = std::make_shared<TlsSettings>();
    tls->authorities = std::move(*authorities);
    tls->server_name = parameters.word("server_name", "");
    if (!certificate.empty()) {
      auto own = ClientCertificate::load(certificate, key);
      if (!own) return fail(std::move(own.error()));
      tls->own = std::move(*own);
    }
    result.tls = std::move(tls);
    return {};
  }

  Status take_parameters() {
    const auto timeout = parameters.number("timeout_ms", 5000);
    if (!timeout) return fail(timeout.error());
    const auto patience = parameters.number("patience_s", 60);
    if (!patience) return fail(patience.error());
    const auto replicas = parameters.number("replicas", 0);
    if (!replicas) return fail(replicas.error());
    const auto grace = parameters.number("grace_s", result.grace_s);
    if (!grace) return fail(grace.error());
    if (*grace == 0 || *grace > kMostSeconds) {
      return parameters.wrong("grace_s", "an idle program needs some time to be heard of", "write grace_s=3600");
    }
    result.grace_s = static_cast<unsigned>(*grace);
    if (*timeout == 0 || *timeout > kMostSeconds * 1000) {
      return parameters.wrong("timeout_ms", "an attempt takes some time", "write timeout_ms=5000");
    }
    result.timeout_ms = static_cast<int>(*timeout);
    result.patience_s = static_cast<int>(std::min(*patience, kMostSeconds));
    result.replicas = static_cast<unsigned>(std::min<std::uint64_t>(*replicas, 1000));
    return take_tls();
  }
};

}  // namespace

std::string Address::text() const {
  if (host.empty()) return socket;
  return host.find(':') == std::string::npos ? fmt::format("{}:{}", host, port) : fmt::format("[{}]:{}", host, port);
}

std::string Place::uri_of(const std::string& other) const {
  std::string uri = scheme + "://" + (user.empty() ? "" : user + "@");
  for (std::size_t i = 0; i < addresses.size(); ++i) uri += (i == 0 ? "" : ",") + addresses[i].text();
  return uri + (is_cluster() ? "" : fmt::format("/{}", database)) + "/" + other;
}

bool parse_address(std::string_view text, Address& address) {
  std::string_view port;
  if (text.starts_with('[')) {
    const auto end = text.find(']');
    if (end == std::string_view::npos) return false;
    address.host = text.substr(1, end - 1);
    const auto rest = text.substr(end + 1);
    if (!rest.empty() && rest.front() != ':') return false;
    port = rest.empty() ? "6379" : rest.substr(1);
  } else {
    const auto colon = text.rfind(':');
    address.host = text.substr(0, colon);
    port = colon == std::string_view::npos ? "6379" : text.substr(colon + 1);
  }
  return !address.host.empty() && read_digits(port, address.port) && address.port != 0;
}

Result<Place> parse_place(const std::string& place, const Parameters& parameters, const StoreOptions& options) {
  Parser parser{parameters, {}};
  parser.result.scheme = parameters.kind();
  parser.result.shown = without_secrets(fmt::format("{}:{}", parameters.kind(), place));
  if (auto ok = parser.take_place(place_without_login(place)); !ok) return fail(std::move(ok.error()));
  if (auto ok = parser.take_parameters(); !ok) return fail(std::move(ok.error()));
  auto login = find_login(place, parameters, options);
  if (!login) return fail(std::move(login.error()));
  parser.result.user = login->user;
  parser.result.password = login->password;
  return std::move(parser.result);
}

}  // namespace farheap::store::redis
