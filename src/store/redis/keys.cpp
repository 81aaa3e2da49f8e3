// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "store/redis/keys.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>

namespace farheap::store::redis {
namespace {

// CRC-16/XMODEM.
constexpr auto kCrc = [] {
  std::array<std::uint16_t, 256> table{};
  for (unsigned byte = 0; byte < 256; ++byte) {
    unsigned crc = byte << 8;
    for (int bit = 0; bit < 8; ++bit) crc = (crc << 1) ^ ((crc & 0x8000) != 0 ? 0x1021 : 0);
    table[byte] = static_cast<std::uint16_t>(crc);
  }
  return table;
}();

}  // namespace

// A counter's name is the user's: a brace in it must not choose the slot, nor end what does.
std::string Keys::counter(std::string_view name) const { return fmt::format("{}counter}}:of:{}", own_, name); }

std::string Keys::group(std::uint64_t number) const { return fmt::format("{}{:x}}}", own_, number); }

bool Keys::is_group(std::string_view key, std::uint64_t& number) const {
  if (!key.starts_with(own_) || !key.ends_with('}')) return false;
  key.remove_prefix(own_.size());
  key.remove_suffix(1);
  const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), number, 16);
  return !key.empty() && error == std::errc() && end == key.data() + key.size();
}

std::string beside(std::string_view key, std::string_view what, std::string_view lane) {
  return fmt::format("{}:{}:{}", key.substr(0, key.find('}') + 1), what, lane);
}

std::uint16_t slot_of(std::string_view key) {
  const auto open = key.find('{');
  if (open != std::string_view::npos) {
    const auto close = key.find('}', open + 1);
    if (close != std::string_view::npos && close > open + 1) key = key.substr(open + 1, close - open - 1);
  }
  unsigned crc = 0;
  for (const unsigned char byte : key) crc = (crc << 8) ^ kCrc[((crc >> 8) ^ byte) & 0xFF];
  return static_cast<std::uint16_t>((crc & 0xFFFF) % kSlots);
}

}  // namespace farheap::store::redis
