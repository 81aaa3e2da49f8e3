// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/fields.hpp"

#include <bit>
#include <cstring>

namespace farheap::base {

static_assert(std::endian::native == std::endian::little);

void FieldWriter::number(std::uint64_t value) { bytes_.append(reinterpret_cast<const char*>(&value), sizeof value); }

void FieldWriter::text(std::string_view value) {
  number(value.size());
  bytes_.append(value);
}

std::uint64_t FieldReader::number() {
  std::uint64_t value = 0;
  if (left_.size() < sizeof value) return left_ = {}, whole_ = false, 0;
  std::memcpy(&value, left_.data(), sizeof value);
  left_.remove_prefix(sizeof value);
  return value;
}

std::string FieldReader::text() {
  const std::uint64_t bytes = number();
  if (bytes > left_.size()) return left_ = {}, whole_ = false, std::string();
  std::string value(left_.substr(0, bytes));
  left_.remove_prefix(bytes);
  return value;
}

}  // namespace farheap::base
