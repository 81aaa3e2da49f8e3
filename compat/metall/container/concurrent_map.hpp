// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A map that several threads of one process may change: its keys are spread over banks, each behind one of the
// process' mutexes (no lock is kept with the map).
//
// Thread-safety: insert(), edit() and scoped_edit() from any thread. count(), find() and the iterators while nobody
// changes the map; size() always.
#pragma once

#include <atomic>
#include <boost/container/map.hpp>
#include <boost/container/scoped_allocator.hpp>
#include <boost/container/vector.hpp>
#include <cstddef>
#include <functional>
#include <memory>
#include <metall/utility/container_of_containers_iterator_adaptor.hpp>
#include <metall/utility/mutex.hpp>
#include <mutex>
#include <utility>

namespace metall::container {

template <class Key, class T, class Compare = std::less<Key>, class BankHash = std::hash<Key>,
          class Allocator = std::allocator<std::pair<const Key, T>>, int kBanks = 1024>
class concurrent_map {
  using bank_type = boost::container::map<Key, T, Compare, Allocator>;
  using bank_allocator_type = boost::container::scoped_allocator_adaptor<
      typename std::allocator_traits<Allocator>::template rebind_alloc<bank_type>>;
  using banks_type = boost::container::vector<bank_type, bank_allocator_type>;

 public:
  using key_type = Key;
  using mapped_type = T;
  using value_type = typename bank_type::value_type;
  using size_type = std::size_t;
  using allocator_type = Allocator;
  using const_iterator = utility::container_of_containers_iterator_adaptor<typename banks_type::const_iterator,
                                                                           typename bank_type::const_iterator>;

  explicit concurrent_map(const Allocator& allocator = Allocator()) : banks_(kBanks, bank_allocator_type(allocator)) {}

  // True if it was not there.
  bool insert(value_type&& value) { return insert_one(std::move(value)); }
  bool insert(const value_type& value) { return insert_one(value); }

  // The value, made if there is none, and the lock it is changed under.
  std::pair<mapped_type&, std::unique_lock<std::mutex>> scoped_edit(const key_type& key) {
    auto lock = lock_of(key);
    return {at(key), std::move(lock)};
  }
  void edit(const key_type& key, const std::function<void(mapped_type&)>& editor) {
    const auto lock = lock_of(key);
    editor(at(key));
  }

  size_type size() const { return std::atomic_ref(size_).load(std::memory_order_relaxed); }
  size_type count(const key_type& key) const { return banks_[bank_of(key)].count(key); }
  const_iterator find(const key_type& key) const {
    const auto bank = banks_.cbegin() + static_cast<std::ptrdiff_t>(bank_of(key));
    const auto found = bank->find(key);
    return found == bank->cend() ? cend() : const_iterator(bank, found, banks_.cend());
  }
  const_iterator cbegin() const { return {banks_.cbegin(), banks_.cend()}; }
  const_iterator cend() const { return {banks_.cend(), banks_.cend()}; }
  const_iterator begin() const { return cbegin(); }
  const_iterator end() const { return cend(); }
  allocator_type get_allocator() const { return allocator_type(banks_.get_allocator().outer_allocator()); }

 private:
  static std::size_t bank_of(const key_type& key) { return BankHash()(key) % kBanks; }
  static std::unique_lock<std::mutex> lock_of(const key_type& key) {
    return utility::mutex::mutex_lock<kBanks>(bank_of(key));
  }
  void count_one() { std::atomic_ref(size_).fetch_add(1, std::memory_order_relaxed); }
  template <class Value>
  bool insert_one(Value&& value) {
    const auto lock = lock_of(value.first);
    const bool is_new = banks_[bank_of(value.first)].insert(std::forward<Value>(value)).second;
    if (is_new) count_one();
    return is_new;
  }
  // Requires: the lock of its bank.
  mapped_type& at(const key_type& key) {
    const auto [found, is_new] = banks_[bank_of(key)].try_emplace(key);
    if (is_new) count_one();
    return found->second;
  }

  banks_type banks_;
  mutable size_type size_ = 0;  // changed as an atomic
};

}  // namespace metall::container
