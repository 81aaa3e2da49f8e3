// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What BearSSL wants to be given, and who keeps it.
//
// Thread-safety: not changed after it was made.
#pragma once

#include <bearssl.h>

#include <memory>
#include <vector>

#include "store/redis/tls.hpp"

namespace farheap::store::redis {

using Bytes = std::vector<unsigned char>;

// What the anchors point to stays where it is.
struct Authorities::Parts {
  struct Anchor {
    Bytes name, n, e, q;
  };
  std::vector<std::unique_ptr<Anchor>> kept;
  std::vector<br_x509_trust_anchor> anchors;
  [[nodiscard]] bool add(const Bytes& certificate);
};

struct ClientCertificate::Parts {
  std::vector<Bytes> kept;
  std::vector<br_x509_certificate> chain;
  br_skey_decoder_context key{};    // keeps what its key is made of
  unsigned issuer = BR_KEYTYPE_EC;  // of what kind the key is that signed the first of the chain
  ~Parts();                         // wipes the key
};

}  // namespace farheap::store::redis
