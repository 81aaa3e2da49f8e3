// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The loop is that of BearSSL's own br_sslio, which wants to be told of a time-out as of an end.
// Source: https://bearssl.org/api1.html
#include "store/redis/tls.hpp"

#include <bearssl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "store/redis/tls_parts.hpp"

namespace farheap::store::redis {
namespace {

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
      if (const int alert = error - BR_ERR_RECV_FATAL_ALERT; alert == 40 || alert == 42 || alert == 116)
        return fmt::format("it ended TLS with alert {}: it probably wants a certificate, or another one (?cert_file=)",
                           alert);
      if (error >= BR_ERR_RECV_FATAL_ALERT)
        return fmt::format("it ended TLS with alert {}", error - BR_ERR_RECV_FATAL_ALERT);
      return fmt::format("TLS failed (BearSSL's error {})", error);
  }
}

}  // namespace

// To a server that asks for it.
static void show(br_ssl_client_context& client, const ClientCertificate::Parts& own) {
  if (const auto* const rsa = br_skey_decoder_get_rsa(&own.key)) {
    br_ssl_client_set_single_rsa(&client, own.chain.data(), own.chain.size(), rsa, br_rsa_pkcs1_sign_get_default());
  } else if (const auto* const curve = br_skey_decoder_get_ec(&own.key)) {
    br_ssl_client_set_single_ec(&client, own.chain.data(), own.chain.size(), curve, BR_KEYTYPE_SIGN, own.issuer,
                                br_ec_get_default(), br_ecdsa_sign_asn1_get_default());
  }
}

struct TlsSession::State {
  std::shared_ptr<const TlsSettings> settings;
  TlsTransport transport;
  br_ssl_client_context client;
  br_x509_minimal_context checker;
  unsigned char buffer[BR_SSL_BUFSIZE_BIDI];
};

TlsSession::TlsSession(std::shared_ptr<const TlsSettings> settings, const std::string& host, TlsTransport transport)
    : state_(std::make_unique<State>()) {
  state_->settings = std::move(settings);
  state_->transport = std::move(transport);
  const TlsSettings& how = *state_->settings;
  const auto& anchors = how.authorities->parts_->anchors;
  br_ssl_client_init_full(&state_->client, &state_->checker, anchors.data(), anchors.size());
  br_ssl_engine_set_versions(&state_->client.eng, BR_TLS12, BR_TLS12);
  br_ssl_engine_set_buffer(&state_->client.eng, state_->buffer, sizeof state_->buffer, 1);
  if (how.own) show(state_->client, *how.own->parts_);
  br_ssl_client_reset(&state_->client, (how.server_name.empty() ? host : how.server_name).c_str(), 0);
}

TlsSession::~TlsSession() = default;

std::string TlsSession::why() const {
  const int error = br_ssl_engine_last_error(&state_->client.eng);
  return error == BR_ERR_OK ? std::string() : words_of(error);
}

// A server that hangs up has said why before, and that is still to be read. False: it has said nothing.
bool TlsSession::take_last_words() {
  br_ssl_engine_context* const engine = &state_->client.eng;
  const int failed = errno;
  const bool hung_up = failed == EPIPE || failed == ECONNRESET;
  if (!hung_up || (br_ssl_engine_current_state(engine) & BR_SSL_RECVREC) == 0) return false;
  std::size_t count = 0;
  unsigned char* const room = br_ssl_engine_recvrec_buf(engine, &count);
  const ssize_t got = state_->transport.receive(room, count);
  errno = failed;
  if (got <= 0) return false;
  br_ssl_engine_recvrec_ack(engine, static_cast<std::size_t>(got));
  return true;
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
      if (sent <= 0 && !take_last_words()) return false;
      if (sent <= 0) continue;
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
