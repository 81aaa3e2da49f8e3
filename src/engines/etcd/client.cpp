// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engines/etcd/client.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/mutex.hpp"
#include "store/private_file.hpp"

namespace farheap::engines::etcd {
namespace {

constexpr std::size_t kLongestName = 128;
constexpr std::size_t kLongestToken = 4096;  // it goes with every request

bool is_in_names(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
}

bool says(const grpc::Status& status, std::string_view words) {
  return status.error_message().find(words) != std::string::npos;
}

// The token is not, or no longer, that of a user.
bool is_about_token(const grpc::Status& status) {
  return says(status, "invalid auth token") || says(status, "revision of auth store is old") ||
         says(status, "user name is empty");
}

// Empty where the parameter is not there.
Result<std::string> text_of(const store::Parameters& parameters, std::string_view name, std::string_view what,
                            store::TrustedFile kind) {
  const auto path = parameters.word(name, "");
  if (path.empty()) return std::string();
  auto text = store::read_trusted_file(path, "cannot use TLS", kind);
  if (!text && text.error().code == ErrorCode::kPermission) return text;
  if (!text || text->find("-----BEGIN") == std::string::npos) {
    return parameters.wrong(name, "it cannot be read, or nothing is in it", fmt::format("name a file with {}", what));
  }
  return text;
}

Result<std::shared_ptr<grpc::ChannelCredentials>> credentials_of(const store::Parameters& parameters) {
  auto authorities =
      text_of(parameters, "ca_file", "the authorities' certificates in PEM", store::TrustedFile::kPublic);
  if (!authorities) return fail(std::move(authorities.error()));
  auto own = text_of(parameters, "cert_file", "this program's certificate in PEM", store::TrustedFile::kPublic);
  if (!own) return fail(std::move(own.error()));
  auto key = text_of(parameters, "key_file", "the key of cert_file in PEM", store::TrustedFile::kKey);
  if (!key) return fail(std::move(key.error()));
  if (own->empty() != key->empty()) {
    return parameters.wrong(own->empty() ? "key_file" : "cert_file", "the other one of the two is missing",
                            "write cert_file=FILE&key_file=FILE");
  }
  if (authorities->empty() && own->empty()) return grpc::InsecureChannelCredentials();
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = std::move(*authorities);  // empty: the system's
  options.pem_private_key = std::move(*key);
  options.pem_cert_chain = std::move(*own);
  return tls_credentials(options);
}

}  // namespace

std::string Place::shown_as(const std::string& other) const {
  const auto slash = shown.find('/', std::string_view("etcd://").size());
  return shown.substr(0, slash) + "/" + other;
}

Result<Place> etcd_place(std::string_view text) {
  Place place{.members = {}, .name = {}, .shown = store::without_secrets(fmt::format("etcd:{}", text))};
  const auto wrong = [&](std::string why) {
    return fail(ErrorCode::kInvalidArgument, "not a store", place.shown, std::move(why),
                "write it as etcd://HOST:2379/NAME, with more members as HOST:2379,HOST:2379");
  };
  const std::string without = store::place_without_login(text);
  if (!without.starts_with("//")) return wrong("the server is missing");
  std::string_view rest = std::string_view(without).substr(2);
  const auto slash = std::min(rest.find('/'), rest.size());
  place.name = rest.substr(std::min(slash + 1, rest.size()));
  const bool is_name = place.name.size() <= kLongestName && std::ranges::all_of(place.name, is_in_names);
  if (!is_name) {
    return wrong(
        fmt::format("'{}' is no name (letters, digits, and any of - _ ., at most {})", place.name, kLongestName));
  }
  for (auto hosts = rest.substr(0, slash); !hosts.empty();) {
    const auto comma = std::min(hosts.find(','), hosts.size());
    std::string host(hosts.substr(0, comma));
    hosts.remove_prefix(std::min(comma + 1, hosts.size()));
    if (host.empty()) continue;
    const bool has_port = host.rfind(':') != std::string::npos && !host.ends_with(']');
    place.members.push_back(has_port ? host : host + ":2379");
  }
  if (place.members.empty()) return wrong("the server is missing");
  return place;
}

std::string behind(std::string prefix) {
  ++prefix.back();  // ours end with '/', an identity or a number that is not the highest
  return prefix;
}

bool is_full(const grpc::Status& status) { return says(status, "database space exceeded"); }

// ---- Client

Result<std::unique_ptr<Client>> Client::open(const std::string& place, const store::Parameters& parameters,
                                             const StoreOptions& options) {
  auto where = etcd_place(place);
  if (!where) return fail(std::move(where.error()));
  const auto patience = server_patience(parameters);
  if (!patience) return fail(patience.error());
  auto login = store::find_login(place, parameters, options);
  if (!login) return fail(std::move(login.error()));
  auto credentials = credentials_of(parameters);
  if (!credentials) return fail(std::move(credentials.error()));
  std::unique_ptr<Client> client(new Client(std::move(*where), *patience, std::move(*login)));
  for (const auto& member : client->place_.members) {
    auto channel = make_channel(member, *credentials);
    client->members_.push_back({channel, api::KV::NewStub(channel), api::Lease::NewStub(channel)});
  }
  if (client->login_.user.empty()) return client;
  if (const auto status = client->authenticate(); !status.ok()) {
    return fail(client->error(status, "cannot open the store"));
  }
  return client;
}

Error Client::error(const grpc::Status& status, std::string what) const {
  if (is_full(status)) {
    return {ErrorCode::kNoSpace, std::move(what), place_.shown,
            "the cluster is full, and takes no more (alarm NOSPACE)",
            "make room: `etcdctl compact`, `etcdctl defrag`, `etcdctl alarm disarm`; or raise --quota-backend-bytes"};
  }
  if (is_about_token(status) || says(status, "authentication failed") || says(status, "permission denied")) {
    return {ErrorCode::kPermission, std::move(what), place_.shown,
            fmt::format("the server does not accept this user or password ({})", status.error_message()),
            "name the user in the URI, as etcd://USER@HOST, and the password with ?password_file="};
  }
  if (says(status, "request is too large")) {
    return {ErrorCode::kInvalidArgument, std::move(what), place_.shown, "the server takes only shorter requests",
            "start it with the usual --max-request-bytes, or use smaller blocks"};
  }
  return grpc_error(status, std::move(what), place_.shown, patience());
}

void Client::prepare(grpc::ClientContext& context) {
  if (login_.user.empty()) return;
  const base::LockGuard lock(token_mutex_);
  if (!token_.empty()) context.AddMetadata("token", token_);
}

grpc::Status Client::authenticate() {
  api::AuthenticateRequest request;
  request.set_name(login_.user);
  request.set_password(std::string(login_.password.view()));
  api::AuthenticateResponse response;
  {
    const base::LockGuard lock(token_mutex_);
    token_.clear();
  }
  auto status = ask([&](Member& member, grpc::ClientContext& context) {
    return api::Auth::NewStub(member.channel)->Authenticate(&context, request, &response);
  });
  if (says(status, "authentication is not enabled")) return {};  // anybody may do anything there
  if (status.ok() && response.token().size() > kLongestToken) {
    return {grpc::StatusCode::DATA_LOSS, "the token is longer than tokens are"};
  }
  const base::LockGuard lock(token_mutex_);
  if (status.ok()) token_ = response.token();
  return status;
}

bool Client::again(Attempts& attempts, const grpc::Status& status, std::size_t asked) {
  if (is_full(status)) return false;
  if (is_about_token(status) && !login_.user.empty()) {
    if (!authenticate().ok()) return false;
    return attempts.again(grpc::Status(grpc::StatusCode::ABORTED, "the token was too old"));
  }
  const auto reply = reply_of(status);
  if (reply == Reply::kNotSent || reply == Reply::kUnclear) {
    (void)current_.compare_exchange_strong(asked, (asked + 1) % members_.size());
  }
  if (is_hurrying_ && ++hurried_ >= members_.size()) return false;
  return attempts.again(status);
}

Answer<api::RangeResponse> Client::range(const api::RangeRequest& request) {
  api::RangeResponse response;
  const auto status = ask([&](Member& member, grpc::ClientContext& context) {
    response.Clear();
    return member.kv->Range(&context, request, &response);
  });
  if (!status.ok()) return tl::unexpected(status);
  return response;
}

Answer<api::TxnResponse> Client::transact(const api::TxnRequest& request) {
  api::TxnResponse response;
  const auto status = ask([&](Member& member, grpc::ClientContext& context) {
    response.Clear();
    return member.kv->Txn(&context, request, &response);
  });
  if (!status.ok()) return tl::unexpected(status);
  return response;
}

}  // namespace farheap::engines::etcd
