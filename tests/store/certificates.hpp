// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Certificates that vouch for themselves, made for a test and gone with it.
//
// Thread-safety: one thread at a time.
#pragma once

#include <fmt/format.h>

#include <cstdlib>
#include <stdexcept>
#include <string>

#include "tests/store/store_fixture.hpp"

namespace farheap::test {

class Certificates {
 public:
  static constexpr char kRsa[] = "-newkey rsa:2048";
  static constexpr char kCurve[] = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1";

  // NAME.crt and NAME.key, for `host`.
  void make(const std::string& name, const std::string& host, const std::string& key = kRsa) const {
    const auto command = fmt::format(
        "openssl req -x509 {} -nodes -days 2 -subj /CN={} -addext subjectAltName=DNS:{} -keyout {} -out {} 2>/dev/null",
        key, host, host, this->key(name), certificate(name));
    if (std::system(command.c_str()) != 0) throw std::runtime_error("openssl makes no certificate");
  }
  [[nodiscard]] std::string certificate(const std::string& name) const { return folder_.path() + "/" + name + ".crt"; }
  [[nodiscard]] std::string key(const std::string& name) const { return folder_.path() + "/" + name + ".key"; }
  // "&cert_file=...&key_file=..."
  [[nodiscard]] std::string shown(const std::string& name) const {
    return fmt::format("&cert_file={}&key_file={}", certificate(name), key(name));
  }

 private:
  TemporaryFolder folder_;
};

}  // namespace farheap::test
