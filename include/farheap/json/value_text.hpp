// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What farheap/json.hpp promises, of values and of their text. Included by it.
#pragma once

#include <farheap/json.hpp>
#include <string>
#include <vector>

namespace farheap::json {

template <class Allocator>
template <class Other>
void basic_value<Allocator>::copy(const basic_value<Other>& other) {
  if (const auto* const text = other.if_string()) {
    emplace_string(*text);
  } else if (const auto* const elements = other.if_array()) {
    basic_value whole(allocator_);
    whole.emplace_array().reserve(elements->size());
    for (const auto& element : *elements) whole.emplace_back().copy(element);
    take(whole);
  } else if (const auto* const members = other.if_object()) {
    basic_value whole(allocator_);
    whole.emplace_object();
    for (const auto& [key, member] : *members) whole[key].copy(member);
    take(whole);
  } else {
    kind_ = other.kind_;
    switch (kind_) {
      case Kind::kBool: plain_.truth = other.plain_.truth; break;
      case Kind::kDouble: plain_.real = other.plain_.real; break;
      default: plain_.natural = other.plain_.natural;
    }
  }
}

template <class Allocator>
template <class Other>
bool basic_value<Allocator>::operator==(const basic_value<Other>& other) const {
  if (kind_ != other.kind_) return false;  // an integer has one kind only
  switch (kind_) {
    case Kind::kNull: return true;
    case Kind::kBool: return plain_.truth == other.plain_.truth;
    case Kind::kInt64: return plain_.integer == other.plain_.integer;
    case Kind::kUint64: return plain_.natural == other.plain_.natural;
    case Kind::kDouble: return plain_.real == other.plain_.real;
    case Kind::kString: return as_text() == other.as_text();
    case Kind::kArray:
      return std::ranges::equal(as_array(), other.as_array(), [](const auto& a, const auto& b) { return a == b; });
    case Kind::kObject:
      return std::ranges::equal(as_object(), other.as_object(), [](const auto& a, const auto& b) {
        return std::string_view(a.first) == std::string_view(b.first) && a.second == b.second;
      });
  }
  return false;
}

namespace detail {

// Makes a value of what is read.
template <class Value>
class Builder final : public Events {
 public:
  explicit Builder(Value& root) : root_(root) {}
  void on_null() override { place() = nullptr; }
  void on_bool(bool truth) override { place() = truth; }
  void on_int64(std::int64_t number) override { place() = number; }
  void on_uint64(std::uint64_t number) override { place() = number; }
  void on_double(double number) override { place() = number; }
  void on_string(std::string_view text) override { place().emplace_string(text); }
  void on_key(std::string_view key) override { member_ = &(*open_.back())[key]; }
  void on_array() override {
    Value& array = place();
    array.emplace_array();
    open_.push_back(&array);
  }
  void on_object() override {
    Value& object = place();
    object.emplace_object();
    open_.push_back(&object);
  }
  void on_end() override { open_.pop_back(); }

 private:
  // Where the next value goes. What is open is the last element of its array, and stays where it is.
  Value& place() {
    if (open_.empty()) return root_;
    if (open_.back()->if_array() != nullptr) return open_.back()->emplace_back();
    return *member_;
  }

  Value& root_;
  std::vector<Value*> open_;
  Value* member_ = nullptr;  // of the innermost object, announced
};

class Printer {
 public:
  explicit Printer(unsigned indent) : indent_(indent) {}

  template <class Value>
  [[nodiscard]] Status print(const Value& value) {
    if (const auto* const elements = value.if_array()) {
      return print_all(*elements, '[', ']', [this](const Value& element) { return print(element); });
    }
    if (const auto* const members = value.if_object()) {
      return print_all(*members, '{', '}', [this](const auto& member) {
        Status status = append_text(text, member.first);
        text += indent_ == 0 ? ":" : ": ";
        return status ? print(member.second) : status;
      });
    }
    if (const auto* const string = value.if_string()) return append_text(text, *string);
    if (const double* const real = value.if_double()) return append_number(text, *real);
    if (const bool* const truth = value.if_bool()) {
      text += *truth ? "true" : "false";
    } else if (const auto* const integer = value.if_int64()) {
      text += std::to_string(*integer);
    } else if (const auto* const natural = value.if_uint64()) {
      text += std::to_string(*natural);
    } else {
      text += "null";
    }
    return {};
  }

  std::string text;

 private:
  template <class Parts, class PrintOne>
  [[nodiscard]] Status print_all(const Parts& parts, char open, char close, const PrintOne& print_one) {
    text += open;
    ++depth_;
    bool first = true;
    for (const auto& part : parts) {
      if (!first) text += ',';
      first = false;
      new_line();
      if (Status status = print_one(part); !status) return status;
    }
    --depth_;
    if (!first) new_line();
    text += close;
    return {};
  }
  void new_line() {
    if (indent_ == 0) return;
    text += '\n';
    text.append(std::size_t{indent_} * depth_, ' ');
  }

  unsigned indent_;
  std::size_t depth_ = 0;
};

}  // namespace detail

template <class Allocator>
Result<basic_value<Allocator>> parse(std::string_view text, const Allocator& allocator, const ParseOptions& options) {
  basic_value<Allocator> parsed(allocator);
  detail::Builder<basic_value<Allocator>> builder(parsed);
  if (Status status = read_into_heap(text, options.depth, builder); !status) return fail(std::move(status.error()));
  return parsed;
}

template <class Allocator>
Status parse_into(basic_value<Allocator>& target, std::string_view text, const ParseOptions& options) {
  auto parsed = parse(text, target.get_allocator(), options);
  if (!parsed) return fail(std::move(parsed.error()));
  target = std::move(*parsed);
  return {};
}

template <class Allocator>
Result<std::string> serialize(const basic_value<Allocator>& whole, const SerializeOptions& options) {
  detail::Printer printer(options.indent);
  if (Status status = printer.print(whole); !status) return fail(std::move(status.error()));
  return std::move(printer.text);
}

}  // namespace farheap::json
