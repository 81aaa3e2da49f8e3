// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Certificates and keys out of files in PEM.
// Source: https://bearssl.org/api1.html
#include <fmt/format.h>
#include <string.h>

#include <functional>

#include "store/private_file.hpp"
#include "store/redis/tls_parts.hpp"

namespace farheap::store::redis {
namespace {

constexpr char kCannotUseTls[] = "cannot use TLS";
constexpr char kSystemsOwn[] = "/etc/ssl/certs/ca-certificates.crt";
constexpr char kAuthoritiesForm[] = "name the authorities' certificates in PEM with ?ca_file=";
constexpr char kCertificateForm[] =
    "name this program's certificate in PEM with ?cert_file=, and its key with ?key_file=";

void append(void* to, const void* from, std::size_t count) {
  auto& bytes = *static_cast<Bytes*>(to);
  bytes.insert(bytes.end(), static_cast<const unsigned char*>(from), static_cast<const unsigned char*>(from) + count);
}

void wipe(auto& bytes) { explicit_bzero(bytes.data(), bytes.size()); }

Result<std::string> read_text(const std::string& path, const char* remedy, TrustedFile kind) {
  auto text = read_trusted_file(path, kCannotUseTls, kind);
  if (text) {
    *text += "\n";
  } else if (text.error().code == ErrorCode::kNotFound) {
    text.error().remedy = remedy;
  }
  return text;
}

// Calls take(name, bytes) for each object.
void each_object(const std::string& text, const std::function<void(std::string_view, const Bytes&)>& take) {
  br_pem_decoder_context pem;
  br_pem_decoder_init(&pem);
  Bytes current;
  std::string name;
  for (std::size_t at = 0; at < text.size();) {
    at += br_pem_decoder_push(&pem, text.data() + at, text.size() - at);
    const int event = br_pem_decoder_event(&pem);
    if (event == BR_PEM_BEGIN_OBJ) {
      name = br_pem_decoder_name(&pem);
      current.clear();
      current.reserve(text.size());  // so that no half of a key stays behind
      br_pem_decoder_setdest(&pem, append, &current);
    } else if (event == BR_PEM_END_OBJ) {
      take(name, current);
      wipe(current);
    }
  }
  wipe(current);
}

std::vector<Bytes> certificates_in(const std::string& text) {
  std::vector<Bytes> all;
  each_object(text, [&](std::string_view name, const Bytes& bytes) {
    if (name.ends_with("CERTIFICATE")) all.push_back(bytes);
  });
  return all;
}

bool equal(const unsigned char* one, std::size_t length, const unsigned char* other, std::size_t other_length) {
  return length == other_length && memcmp(one, other, length) == 0;
}

}  // namespace

// ---- Authorities

bool Authorities::Parts::add(const Bytes& certificate) {
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

Authorities::Authorities() : parts_(std::make_unique<Parts>()) {}
Authorities::~Authorities() = default;

Result<std::shared_ptr<const Authorities>> Authorities::load(const std::string& file) {
  const std::string path = file.empty() ? kSystemsOwn : file;
  // The system's own is as trustworthy as the system, whoever it says it belongs to (in a sandbox: nobody).
  const auto text = read_text(path, kAuthoritiesForm, file.empty() ? TrustedFile::kAnybodys : TrustedFile::kPublic);
  if (!text) return fail(text.error());
  std::shared_ptr<Authorities> made(new Authorities);
  for (const auto& certificate : certificates_in(*text)) (void)made->parts_->add(certificate);
  if (made->parts_->anchors.empty()) {
    return fail(ErrorCode::kInvalidArgument, kCannotUseTls, path, "there is no certificate in it", kAuthoritiesForm);
  }
  return made;
}

// ---- ClientCertificate

ClientCertificate::Parts::~Parts() { explicit_bzero(&key, sizeof key); }

ClientCertificate::ClientCertificate() : parts_(std::make_unique<Parts>()) {}
ClientCertificate::~ClientCertificate() = default;

namespace {

// Whether the key is the certificate's: a server would only say that it is not satisfied.
bool belongs_to(const br_skey_decoder_context& key, const br_x509_pkey& certificate) {
  const int kind = br_skey_decoder_key_type(&key);
  if (kind != certificate.key_type) return false;
  if (kind == BR_KEYTYPE_RSA) {
    const br_rsa_private_key* const own = br_skey_decoder_get_rsa(&key);
    Bytes modulus(br_rsa_compute_modulus_get_default()(nullptr, own));
    br_rsa_compute_modulus_get_default()(modulus.data(), own);
    return equal(modulus.data(), modulus.size(), certificate.key.rsa.n, certificate.key.rsa.nlen);
  }
  unsigned char room[BR_EC_KBUF_PUB_MAX_SIZE];
  br_ec_public_key made{};
  const auto length = br_ec_compute_pub(br_ec_get_default(), &made, room, br_skey_decoder_get_ec(&key));
  return length != 0 && equal(made.q, made.qlen, certificate.key.ec.q, certificate.key.ec.qlen);
}

Status read_key(br_skey_decoder_context& key, const std::string& path) {
  auto text = read_text(path, kCertificateForm, TrustedFile::kKey);
  if (!text) return fail(std::move(text.error()));
  br_skey_decoder_init(&key);
  bool is_there = false, is_locked = false;
  each_object(*text, [&](std::string_view name, const Bytes& bytes) {
    is_locked = is_locked || name.starts_with("ENCRYPTED");
    if (is_there || is_locked || !name.ends_with("PRIVATE KEY")) return;
    is_there = true;
    br_skey_decoder_push(&key, bytes.data(), bytes.size());
  });
  is_locked = is_locked || text->find("Proc-Type: 4,ENCRYPTED") != std::string::npos;
  wipe(*text);
  if (is_locked) {
    return fail(ErrorCode::kInvalidArgument, kCannotUseTls, path, "the key in it is encrypted",
                "name a file with the key as it is, that only its owner can read");
  }
  if (!is_there || br_skey_decoder_last_error(&key) != 0) {
    return fail(ErrorCode::kInvalidArgument, kCannotUseTls, path,
                "there is no key of RSA or of an elliptic curve in it", kCertificateForm);
  }
  return {};
}

}  // namespace

Result<std::shared_ptr<const ClientCertificate>> ClientCertificate::load(const std::string& certificates,
                                                                         const std::string& key) {
  const auto text = read_text(certificates, kCertificateForm, TrustedFile::kPublic);
  if (!text) return fail(text.error());
  std::shared_ptr<ClientCertificate> made(new ClientCertificate);
  Parts& parts = *made->parts_;
  parts.kept = certificates_in(*text);
  for (Bytes& one : parts.kept) parts.chain.push_back({one.data(), one.size()});
  br_x509_decoder_context decoder;
  br_x509_decoder_init(&decoder, nullptr, nullptr);
  if (!parts.kept.empty()) br_x509_decoder_push(&decoder, parts.kept[0].data(), parts.kept[0].size());
  const br_x509_pkey* const own = parts.kept.empty() ? nullptr : br_x509_decoder_get_pkey(&decoder);
  if (own == nullptr) {
    return fail(ErrorCode::kInvalidArgument, kCannotUseTls, certificates, "there is no certificate in it",
                kCertificateForm);
  }
  parts.issuer = static_cast<unsigned>(br_x509_decoder_get_signer_key_type(&decoder));
  if (Status read = read_key(parts.key, key); !read) return fail(std::move(read.error()));
  if (!belongs_to(parts.key, *own)) {
    return fail(ErrorCode::kInvalidArgument, kCannotUseTls, key, fmt::format("it is not the key of {}", certificates),
                kCertificateForm);
  }
  return made;
}

}  // namespace farheap::store::redis
