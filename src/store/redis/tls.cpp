// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The loop is that of BearSSL's own br_sslio, which wants to be told of a time-out as of an end.
// Source: https://bearssl.org/api1.html
#include "store/redis/tls.hpp"

#include <bearssl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <sstream>
#include <vector>

namespace farheap::store::redis {
namespace {

constexpr char kWhat[] = "cannot use TLS";
constexpr char kSystemsOwn[] = "/etc/ssl/certs/ca-certificates.crt";

using Bytes = std::vector<unsigned char>;

void append(void* to, const void* from, std::size_t count) {
  auto& bytes = *static_cast<Bytes*>(to);
  bytes.insert(bytes.end(), static_cast<const unsigned char*>(from), static_cast<const unsigned char*>(from) + count);
}

std::vector<Bytes> certificates_in(const std::string& text) {
  std::vector<Bytes> all;
  br_pem_decoder_context pem;
  br_pem_decoder_init(&pem);
  Bytes current;
  bool is_certificate = false;
  for (std::size_t at = 0; at < text.size();) {
    at += br_pem_decoder_push(&pem, text.data() + at, text.size() - at);
    const int event = br_pem_decoder_event(&pem);
    if (event == BR_PEM_BEGIN_OBJ) {
      is_certificate = std::string_view(br_pem_decoder_name(&pem)).ends_with("CERTIFICATE");
      current.clear();
      br_pem_decoder_setdest(&pem, is_certificate ? append : nullptr, &current);
    } else if (event == BR_PEM_END_OBJ && is_certificate) {
      all.push_back(current);
    }
  }
  return all;
}

std::string words_of(int error) {
  switch (error) {
    case BR_ERR_X509_NOT_TRUSTED: return "no authority that is trusted vouches for its certificate";
    case BR_ERR_X509_EXPIRED: return "its certificate is not valid now";
    case BR_ERR_X509_BAD_SERVER_NAME: return "its certificate is another host's";
    case BR_ERR_BAD_VERSION: return "it speaks no TLS, or not TLS 1.2";
    default:
      // 256 and 512 on: alerts that came, or were sent.
      if (error >= BR_ERR_SEND_FATAL_ALERT)
        return fmt::format("TLS ended with alert {}", error - BR_ERR_SEND_FATAL_ALERT);
      if (error >= BR_ERR_RECV_FATAL_ALERT)
        return fmt::format("it ended TLS with alert {}", error - BR_ERR_RECV_FATAL_ALERT);
      return fmt::format("TLS failed (BearSSL's error {})", error);
  }
}

}  // namespace

// What the anchors point to stays where it is.
struct Authorities::Parts {
  struct Anchor {
    Bytes name, n, e, q;
  };
  std::vector<std::unique_ptr<Anchor>> kept;
  std::vector<br_x509_trust_anchor> anchors;

  bool add(const Bytes& certificate) {
    auto anchor = std::make_unique<Anchor>();
    br_x509_decoder_context decoder;
    br_x509_decoder_init(&decoder, append, &anchor->name);
    br_x509_decoder_push(&decoder, certificate.data(), certificate.size());
    const br_x509_pkey* const key = br_x509_decoder_get_pkey(&decoder);
    if (key == nullptr) return false;
    br_x509_trust_anchor made{};
    made.dn = {anchor->name.data(), anchor->name.size()};
    made.flags = br_x509_decoder_isCA(&decoder) != 0 ? BR_X509_TA_CA : 0;
    made.pkey = *key;
    const auto keep = [](Bytes& bytes, unsigned char*& from, std::size_t count) {
      bytes.assign(from, from + count);
      from = bytes.data();
    };
    if (key->key_type == BR_KEYTYPE_RSA) {
      keep(anchor->n, made.pkey.key.rsa.n, made.pkey.key.rsa.nlen);
      keep(anchor->e, made.pkey.key.rsa.e, made.pkey.key.rsa.elen);
    } else {
      keep(anchor->q, made.pkey.key.ec.q, made.pkey.key.ec.qlen);
    }
    anchors.push_back(made);
    kept.push_back(std::move(anchor));
    return true;
  }
};

Authorities::Authorities() : parts_(std::make_unique<Parts>()) {}
Authorities::~Authorities() = default;

Result<std::shared_ptr<const Authorities>> Authorities::load(const std::string& file) {
  const std::string path = file.empty() ? kSystemsOwn : file;
  std::ifstream in(path);
  if (!in) {
    return fail(ErrorCode::kNotFound, kWhat, path, "it cannot be read",
                "name the authorities' certificates in PEM with ?ca_file=");
  }
  std::ostringstream text;
  text << in.rdbuf();
  std::shared_ptr<Authorities> made(new Authorities);
  for (const auto& certificate : certificates_in(text.str() + "\n")) (void)made->parts_->add(certificate);
  if (made->parts_->anchors.empty()) {
    return fail(ErrorCode::kInvalidArgument, kWhat, path, "there is no certificate in it",
                "name the authorities' certificates in PEM with ?ca_file=");
  }
  return made;
}

struct TlsSession::State {
  std::shared_ptr<const Authorities> authorities;
  TlsTransport transport;
  br_ssl_client_context client;
  br_x509_minimal_context checker;
  unsigned char buffer[BR_SSL_BUFSIZE_BIDI];
};

TlsSession::TlsSession(std::shared_ptr<const Authorities> authorities, const std::string& host, TlsTransport transport)
    : state_(std::make_unique<State>()) {
  state_->authorities = std::move(authorities);
  state_->transport = std::move(transport);
  const auto& anchors = state_->authorities->parts_->anchors;
  br_ssl_client_init_full(&state_->client, &state_->checker, anchors.data(), anchors.size());
  br_ssl_engine_set_versions(&state_->client.eng, BR_TLS12, BR_TLS12);
  br_ssl_engine_set_buffer(&state_->client.eng, state_->buffer, sizeof state_->buffer, 1);
  br_ssl_client_reset(&state_->client, host.c_str(), 0);
}

TlsSession::~TlsSession() = default;

std::string TlsSession::why() const {
  const int error = br_ssl_engine_last_error(&state_->client.eng);
  return error == BR_ERR_OK ? std::string() : words_of(error);
}

// False: nothing more will come of it, or (why() is empty) nothing has come yet.
bool TlsSession::run_until(unsigned wanted) {
  br_ssl_engine_context* const engine = &state_->client.eng;
  for (;;) {
    const unsigned state = br_ssl_engine_current_state(engine);
    if ((state & BR_SSL_CLOSED) != 0) return false;
    std::size_t count = 0;
    if ((state & BR_SSL_SENDREC) != 0) {
      const unsigned char* const bytes = br_ssl_engine_sendrec_buf(engine, &count);
      const ssize_t sent = state_->transport.send(bytes, count);
      if (sent <= 0) return false;
      br_ssl_engine_sendrec_ack(engine, static_cast<std::size_t>(sent));
      continue;
    }
    if (wanted == 0 || (state & wanted) != 0) return true;
    if ((state & BR_SSL_RECVREC) == 0) return false;  // what came must be taken first
    unsigned char* const room = br_ssl_engine_recvrec_buf(engine, &count);
    const ssize_t got = state_->transport.receive(room, count);
    if (got <= 0) return false;
    br_ssl_engine_recvrec_ack(engine, static_cast<std::size_t>(got));
  }
}

bool TlsSession::send(std::span<const iovec> pieces) {
  br_ssl_engine_context* const engine = &state_->client.eng;
  for (const iovec& piece : pieces) {
    const auto* from = static_cast<const unsigned char*>(piece.iov_base);
    for (std::size_t left = piece.iov_len; left > 0;) {
      if (!run_until(BR_SSL_SENDAPP)) return false;
      std::size_t count = 0;
      unsigned char* const room = br_ssl_engine_sendapp_buf(engine, &count);
      count = std::min(count, left);
      std::memcpy(room, from, count);
      br_ssl_engine_sendapp_ack(engine, count);
      from += count, left -= count;
    }
  }
  br_ssl_engine_flush(engine, 0);
  return run_until(0);
}

std::size_t TlsSession::receive(std::span<const iovec> pieces) {
  br_ssl_engine_context* const engine = &state_->client.eng;
  if (!run_until(BR_SSL_RECVAPP)) return 0;
  std::size_t all = 0, count = 0;
  const unsigned char* from = br_ssl_engine_recvapp_buf(engine, &count);
  for (const iovec& piece : pieces) {
    const std::size_t here = std::min(piece.iov_len, count - all);
    std::memcpy(piece.iov_base, from + all, here);
    all += here;
  }
  br_ssl_engine_recvapp_ack(engine, all);
  return all;
}

}  // namespace farheap::store::redis
