// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "store/redis/nodes.hpp"

#include <algorithm>
#include <charconv>

#include "base/mutex.hpp"

namespace farheap::store::redis {
namespace {

constexpr std::size_t kLongestHost = 255;  // of the name system

}  // namespace

Nodes::Nodes(const Place& place) : is_cluster_(place.is_cluster()) {
  addresses_.reserve(kMost);  // does not move: a child may be forked while it grows
  for (const Address& address : place.addresses) (void)number_of(address);
  for (auto& owner : owners_) owner.store(is_cluster_ ? kNobody : 0);
}

Address Nodes::address(unsigned node) const {
  base::LockGuard guard(lock_);
  return addresses_[node];
}

unsigned Nodes::number_of(const Address& address) {
  base::LockGuard guard(lock_);
  const auto found = std::ranges::find(addresses_, address);
  if (found != addresses_.end()) return static_cast<unsigned>(found - addresses_.begin());
  if (addresses_.size() == kMost) return kNobody;
  addresses_.push_back(address);
  count_.store(static_cast<unsigned>(addresses_.size()), std::memory_order_release);
  return count_.load() - 1;
}

void Nodes::set_owner(std::uint16_t slot, unsigned node) {
  if (owners_[slot].exchange(static_cast<std::uint16_t>(node)) != node) changes_.fetch_add(1);
}

bool Nodes::is_primary(unsigned node) const {
  return std::ranges::any_of(owners_, [&](const auto& owner) { return owner.load() == node; });
}

std::vector<unsigned> Nodes::primaries() const {
  std::vector<bool> owns(count());
  for (const auto& owner : owners_) {
    const unsigned node = owner.load();
    if (node < owns.size()) owns[node] = true;
  }
  std::vector<unsigned> all;
  for (unsigned node = 0; node < owns.size(); ++node) {
    if (owns[node]) all.push_back(node);
  }
  return all;
}

// [[first, last, [host, port, ...], ...], ...]
bool Nodes::learn(const Reply& slots, unsigned asked) {
  if (slots.kind != Kind::kArray) return false;
  const Address from = address(asked);
  for (const Reply& range : slots.elements) {
    if (range.elements.size() < 3 || range.elements[2].elements.size() < 2) return false;
    const std::int64_t first = range.elements[0].number, last = range.elements[1].number;
    const Reply& host = range.elements[2].elements[0];
    const std::int64_t port = range.elements[2].elements[1].number;
    if (host.text.size() > kLongestHost) return false;
    if (first < 0 || last < first || last >= kSlots || port <= 0 || port > 0xFFFF) return false;
    const unsigned node = number_of({host.text.empty() ? from.host : host.text, static_cast<std::uint16_t>(port), {}});
    if (node == kNobody) return false;
    for (auto slot = first; slot <= last; ++slot) set_owner(static_cast<std::uint16_t>(slot), node);
  }
  return !slots.elements.empty();
}

std::optional<Redirection> parse_redirection(std::string_view text, const Address& asked) {
  const auto space = text.find(' ');
  if (space == std::string_view::npos) return {};
  Redirection to;
  const auto slot = text.substr(0, space);
  const auto [end, error] = std::from_chars(slot.data(), slot.data() + slot.size(), to.slot);
  if (error != std::errc() || end != slot.data() + slot.size() || to.slot >= kSlots) return {};
  auto where = text.substr(space + 1);
  // An IPv6 address comes without its brackets: the port is behind the last colon.
  const auto colon = where.rfind(':');
  if (colon == std::string_view::npos) return {};
  std::uint16_t port = 0;
  const auto number = where.substr(colon + 1);
  const auto [port_end, port_error] = std::from_chars(number.data(), number.data() + number.size(), port);
  if (port_error != std::errc() || port_end != number.data() + number.size() || port == 0) return {};
  if (colon > kLongestHost) return {};
  to.address.host = colon == 0 ? asked.host : std::string(where.substr(0, colon));
  to.address.port = port;
  return to;
}

}  // namespace farheap::store::redis
