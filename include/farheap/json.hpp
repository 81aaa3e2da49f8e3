// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// JSON values that live in a heap.
//
//   auto& config = *heap.construct<farheap::json::value>("config")(heap.allocator<std::byte>());
//   if (auto status = farheap::json::parse_into(config, text); !status) complain(status.error().message());
//   if (const auto* port = config.find_path("/server/port")) use(port->as_int64());
//   config["server"]["port"] = 8080;
//   std::string printed = farheap::json::serialize(config, {.indent = 2}).value();
//
// farheap::json::offset_value is the same for heaps that open at any address. Numbers are int64, uint64 or double, and
// come back exactly. An object's members are in the order of their keys' bytes.
//
// Thread-safety: as of std:: containers. Values are as deep as they are nested by whoever makes them, and are
// destroyed, copied and compared recursively; parse() limits the depth.
#pragma once

#include <algorithm>
#include <boost/container/map.hpp>
#include <boost/container/string.hpp>
#include <boost/container/vector.hpp>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <farheap/allocator.hpp>
#include <farheap/json/text.hpp>
#include <farheap/offset_allocator.hpp>
#include <farheap/result.hpp>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace farheap::json {

enum class Kind : std::uint8_t { kNull, kBool, kInt64, kUint64, kDouble, kString, kArray, kObject };

template <class Allocator>
class basic_value {
  template <class T>
  using Rebound = typename std::allocator_traits<Allocator>::template rebind_alloc<T>;
  struct Less {  // of text and strings alike
    using is_transparent = void;
    [[nodiscard]] bool operator()(std::string_view a, std::string_view b) const noexcept { return a < b; }
  };

 public:
  using allocator_type = Allocator;
  using string = boost::container::basic_string<char, std::char_traits<char>, Rebound<char>>;
  using array = boost::container::vector<basic_value, Rebound<basic_value>>;
  using object = boost::container::map<string, basic_value, Less, Rebound<std::pair<const string, basic_value>>>;

  // null
  explicit basic_value(const allocator_type& allocator) noexcept : allocator_(allocator) {}
  template <class T>
    requires std::is_arithmetic_v<T>
  basic_value(T number, const allocator_type& allocator) noexcept : allocator_(allocator) {
    set(number);
  }
  basic_value(std::nullptr_t, const allocator_type& allocator) noexcept : allocator_(allocator) {}
  basic_value(std::string_view text, const allocator_type& allocator) : allocator_(allocator) { emplace_string(text); }
  basic_value(const char* text, const allocator_type& allocator) : basic_value(std::string_view(text), allocator) {}

  basic_value(const basic_value& other) : basic_value(other, other.allocator_) {}
  basic_value(const basic_value& other, const allocator_type& allocator) : allocator_(allocator) { copy(other); }
  basic_value(basic_value&& other) noexcept : allocator_(other.allocator_) { take(other); }
  // Of another heap's: a copy.
  basic_value(basic_value&& other, const allocator_type& allocator) : allocator_(allocator) {
    if (allocator_ == other.allocator_) {
      take(other);
    } else {
      copy(other);
    }
  }
  basic_value& operator=(const basic_value& other) {
    if (this != &other) *this = basic_value(other, allocator_);
    return *this;
  }
  // What it was in stays as it was: `value = std::move(value["part"])` is fine.
  // Of another heap's it copies, for which there may be no room.
  basic_value& operator=(basic_value&& other) {  // NOLINT(performance-noexcept-move-constructor)
    if (this == &other) return *this;
    basic_value taken(std::move(other), allocator_);
    clear();
    take(taken);
    return *this;
  }
  template <class T>
    requires std::is_arithmetic_v<T>
  basic_value& operator=(T number) noexcept {
    clear();
    set(number);
    return *this;
  }
  basic_value& operator=(std::string_view text) {
    *this = basic_value(text, allocator_);
    return *this;
  }
  basic_value& operator=(const char* text) { return *this = std::string_view(text); }
  basic_value& operator=(std::nullptr_t) noexcept {
    clear();
    return *this;
  }
  ~basic_value() { clear(); }

  [[nodiscard]] allocator_type get_allocator() const noexcept { return allocator_; }

  // ---- what it is
  [[nodiscard]] Kind kind() const noexcept { return kind_; }
  [[nodiscard]] bool is_null() const noexcept { return kind_ == Kind::kNull; }
  [[nodiscard]] bool is_number() const noexcept { return Kind::kInt64 <= kind_ && kind_ <= Kind::kDouble; }
  // nullptr if it is of another kind. An integer that fits both is an int64.
  [[nodiscard]] const bool* if_bool() const noexcept { return kind_ == Kind::kBool ? &plain_.truth : nullptr; }
  [[nodiscard]] const std::int64_t* if_int64() const noexcept {
    return kind_ == Kind::kInt64 ? &plain_.integer : nullptr;
  }
  [[nodiscard]] const std::uint64_t* if_uint64() const noexcept {
    return kind_ == Kind::kUint64 ? &plain_.natural : nullptr;
  }
  [[nodiscard]] const double* if_double() const noexcept { return kind_ == Kind::kDouble ? &plain_.real : nullptr; }
  [[nodiscard]] const string* if_string() const noexcept { return part<string>(Kind::kString); }
  [[nodiscard]] const array* if_array() const noexcept { return part<array>(Kind::kArray); }
  [[nodiscard]] const object* if_object() const noexcept { return part<object>(Kind::kObject); }
  [[nodiscard]] string* if_string() noexcept { return part<string>(Kind::kString); }
  [[nodiscard]] array* if_array() noexcept { return part<array>(Kind::kArray); }
  [[nodiscard]] object* if_object() noexcept { return part<object>(Kind::kObject); }
  // Requires: it is of that kind.
  [[nodiscard]] bool as_bool() const noexcept { return *must(if_bool()); }
  [[nodiscard]] std::int64_t as_int64() const noexcept { return *must(if_int64()); }
  [[nodiscard]] std::uint64_t as_uint64() const noexcept { return *must(if_uint64()); }
  [[nodiscard]] double as_double() const noexcept { return *must(if_double()); }
  [[nodiscard]] std::string_view as_text() const noexcept { return *must(if_string()); }
  [[nodiscard]] const string& as_string() const noexcept { return *must(if_string()); }
  [[nodiscard]] const array& as_array() const noexcept { return *must(if_array()); }
  [[nodiscard]] const object& as_object() const noexcept { return *must(if_object()); }
  [[nodiscard]] string& as_string() noexcept { return *must(if_string()); }
  [[nodiscard]] array& as_array() noexcept { return *must(if_array()); }
  [[nodiscard]] object& as_object() noexcept { return *must(if_object()); }
  // Any number, rounded. Requires: is_number().
  [[nodiscard]] double to_double() const noexcept {
    if (kind_ == Kind::kInt64) return static_cast<double>(plain_.integer);
    if (kind_ == Kind::kUint64) return static_cast<double>(plain_.natural);
    return as_double();
  }

  // ---- parts
  // Elements or members; 0 of anything else.
  [[nodiscard]] std::size_t size() const noexcept {
    if (const array* const elements = if_array()) return elements->size();
    if (const object* const members = if_object()) return members->size();
    return 0;
  }
  // nullptr if there is none, or this is no object.
  [[nodiscard]] const basic_value* find(std::string_view key) const noexcept {
    const object* const members = if_object();
    if (members == nullptr) return nullptr;
    const auto found = members->find(key);
    return found == members->end() ? nullptr : &found->second;
  }
  [[nodiscard]] basic_value* find(std::string_view key) noexcept {
    return const_cast<basic_value*>(std::as_const(*this).find(key));
  }
  // nullptr if there are not that many, or this is no array.
  [[nodiscard]] const basic_value* find(std::size_t index) const noexcept {
    const array* const elements = if_array();
    return elements != nullptr && index < elements->size() ? &(*elements)[index] : nullptr;
  }
  [[nodiscard]] basic_value* find(std::size_t index) noexcept {
    return const_cast<basic_value*>(std::as_const(*this).find(index));
  }
  // By a JSON pointer (RFC 6901): "/servers/0/name". nullptr if there is none, or it is malformed.
  [[nodiscard]] const basic_value* find_path(std::string_view path) const {
    const basic_value* at = this;
    while (at != nullptr && !path.empty()) {
      const auto step = next_step(path);
      if (!step) return nullptr;
      if (at->if_array() == nullptr) {
        at = at->find(std::string_view(step->key));
      } else {
        at = step->index ? at->find(*step->index) : nullptr;
      }
    }
    return at;
  }
  [[nodiscard]] basic_value* find_path(std::string_view path) {
    return const_cast<basic_value*>(std::as_const(*this).find_path(path));
  }
  // The member of that key, null if it is new. A null becomes an object. Requires: this is null or an object.
  [[nodiscard]] basic_value& operator[](std::string_view key) {
    if (is_null()) emplace_object();
    object& members = as_object();
    const auto there = members.find(key);
    if (there != members.end()) return there->second;
    return members.emplace(string(key.data(), key.size(), allocator_), basic_value(allocator_)).first->second;
  }
  // Requires: an array with that many.
  [[nodiscard]] basic_value& operator[](std::size_t index) { return *must(find(index)); }
  [[nodiscard]] const basic_value& operator[](std::size_t index) const { return *must(find(index)); }
  // The last element, made from `value`, a number, text, or nothing. A null becomes an array. Requires: this is null or
  // an array.
  template <class... Value>
  basic_value& emplace_back(Value&&... value) {
    if (is_null()) emplace_array();
    return as_array().emplace_back(std::forward<Value>(value)..., allocator_);
  }
  // False if there was none.
  bool erase(std::string_view key) {
    object* const members = if_object();
    const auto there = members == nullptr ? typename object::iterator() : members->find(key);
    if (members == nullptr || there == members->end()) return false;
    members->erase(there);
    return true;
  }
  string& emplace_string(std::string_view text = {}) {
    return emplace<string>(Kind::kString, text.data(), text.size(), Rebound<char>(allocator_));
  }
  array& emplace_array() { return emplace<array>(Kind::kArray, Rebound<basic_value>(allocator_)); }
  object& emplace_object() {
    return emplace<object>(Kind::kObject, Rebound<std::pair<const string, basic_value>>(allocator_));
  }

  // Numbers are equal if they are the same integer, or the same double. Of values in different heaps, too.
  template <class Other>
  [[nodiscard]] bool operator==(const basic_value<Other>& other) const;

 private:
  template <class>
  friend class basic_value;
  using Memory = typename std::allocator_traits<Rebound<std::byte>>::void_pointer;

  template <class T>
  static T* must(T* there) noexcept {
    if (there == nullptr) wrong_kind();
    return there;
  }
  template <class T>
  [[nodiscard]] T* part(Kind kind) const noexcept {
    if (kind_ != kind) return nullptr;
    return static_cast<T*>(std::to_address(parts_));
  }
  template <class T>
  void set(T number) noexcept {
    if constexpr (std::same_as<T, bool>) {
      kind_ = Kind::kBool;
      plain_.truth = number;
    } else if constexpr (std::floating_point<T>) {
      kind_ = Kind::kDouble;
      plain_.real = static_cast<double>(number);
    } else if (std::in_range<std::int64_t>(number)) {
      kind_ = Kind::kInt64;
      plain_.integer = static_cast<std::int64_t>(number);
    } else {
      kind_ = Kind::kUint64;
      plain_.natural = static_cast<std::uint64_t>(number);
    }
  }
  // For one part; it is given back unless it is taken.
  template <class PartAllocator>
  struct Room {
    explicit Room(const Allocator& of) : allocator(of), memory(allocator.allocate(1)) {}
    Room(const Room&) = delete;
    Room& operator=(const Room&) = delete;
    ~Room() {
      if (memory != nullptr) allocator.deallocate(memory, 1);
    }
    PartAllocator allocator;
    typename std::allocator_traits<PartAllocator>::pointer memory;
  };
  // In the place of what was there, and nothing is lost when there is no room.
  template <class T, class... Arguments>
  T& emplace(Kind kind, Arguments&&... arguments) {
    Room<Rebound<T>> room(allocator_);
    ::new (static_cast<void*>(std::to_address(room.memory))) T(std::forward<Arguments>(arguments)...);
    clear();
    kind_ = kind;
    parts_ = std::exchange(room.memory, nullptr);
    return *part<T>(kind);
  }
  template <class T>
  void drop(T* there) noexcept {
    Rebound<T> allocator(allocator_);
    there->~T();
    allocator.deallocate(std::pointer_traits<typename std::allocator_traits<Rebound<T>>::pointer>::pointer_to(*there),
                         1);
  }
  void clear() noexcept {
    if (string* const text = if_string()) drop(text);
    if (array* const elements = if_array()) drop(elements);
    if (object* const members = if_object()) drop(members);
    kind_ = Kind::kNull;
    parts_ = nullptr;
  }
  // Requires: this is null; equal allocators.
  void take(basic_value& other) noexcept {
    kind_ = std::exchange(other.kind_, Kind::kNull);
    plain_ = other.plain_;
    parts_ = other.parts_;
    other.parts_ = nullptr;
  }
  // Requires: this is null.
  template <class Other>
  void copy(const basic_value<Other>& other);

  union Plain {
    bool truth;
    std::int64_t integer;
    std::uint64_t natural;
    double real;
  };
  Plain plain_{.natural = 0};
  Memory parts_ = nullptr;  // of a string, an array or an object
  [[no_unique_address]] Allocator allocator_;
  Kind kind_ = Kind::kNull;
};

using value = basic_value<allocator<std::byte>>;
using offset_value = basic_value<offset_allocator<std::byte>>;

struct ParseOptions {
  std::size_t depth = 256;  // arrays and objects within each other
};

// One JSON text (RFC 8259) in UTF-8, whole. Of several members with one key the last stays. kInvalidArgument with line
// and column where it is wrong; kNoSpace when the heap is full. An integer beyond 64 bits becomes a double.
template <class Allocator>
[[nodiscard]] Result<basic_value<Allocator>> parse(std::string_view text, const Allocator& allocator,
                                                   const ParseOptions& options = {});
// `target` stays as it was if there is an error.
template <class Allocator>
[[nodiscard]] Status parse_into(basic_value<Allocator>& target, std::string_view text,
                                const ParseOptions& options = {});

struct SerializeOptions {
  unsigned indent = 0;  // blanks for each level; 0: all on one line
};
// kInvalidArgument for what JSON cannot say: a double that is no finite number, text that is not UTF-8.
template <class Allocator>
[[nodiscard]] Result<std::string> serialize(const basic_value<Allocator>& whole, const SerializeOptions& options = {});

}  // namespace farheap::json

#include <farheap/json/value_text.hpp>
