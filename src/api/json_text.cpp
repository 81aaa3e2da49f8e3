// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// JSON text by way of nlohmann::json: its parser's events, its escapes. Numbers are written by std::to_chars.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <farheap/heap.hpp>
#include <farheap/json/text.hpp>
#include <nlohmann/json.hpp>

namespace farheap::json {

namespace {

using Nlohmann = nlohmann::json;

tl::unexpected<Error> wrong_text(std::string_view text, std::size_t at, std::string why, std::string remedy = {}) {
  const std::string_view before = text.substr(0, at);
  const auto line = std::ranges::count(before, '\n') + 1;
  const std::size_t line_start = before.rfind('\n') + 1;  // npos + 1: the first line
  return fail(ErrorCode::kInvalidArgument, "cannot read JSON",
              "line " + std::to_string(line) + ", column " + std::to_string(at - line_start + 1), std::move(why),
              std::move(remedy));
}

// "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error while ...; last read: '...'", of
// which the sentence stays: the place is told already, and what was read may be any bytes.
std::string sentence_of(std::string message) {
  if (const auto at = message.find("; last read"); at != message.npos) message.resize(at);
  if (const auto at = message.find("] "); at != message.npos) message.erase(0, at + 2);
  if (message.starts_with("parse error")) {
    if (const auto at = message.find(": "); at != message.npos) message.erase(0, at + 2);
  }
  // An invalid number is quoted; an unprintable byte never gets here otherwise.
  for (char& c : message) {
    if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) > 0x7e) c = '?';
  }
  return message;
}

// Where the text opens more than `depth` arrays and objects. Requires: up to there it is JSON.
std::size_t where_too_deep(std::string_view text, std::size_t depth) {
  std::size_t open = 0;
  bool in_string = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (in_string) {
      if (c == '\\') ++at;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++open > depth) return at;
    } else if (c == ']' || c == '}') {
      --open;
    }
  }
  return text.size();
}

class Reader final : public nlohmann::json_sax<Nlohmann> {
 public:
  Reader(std::string_view text, std::size_t depth, Events& events) : text_(text), depth_(depth), events_(events) {}
  Status status;

  bool null() override { return events_.on_null(), true; }
  bool boolean(bool truth) override { return events_.on_bool(truth), true; }
  bool number_integer(std::int64_t number) override { return events_.on_int64(number), true; }
  bool number_unsigned(std::uint64_t number) override {
    if (number > INT64_MAX) return events_.on_uint64(number), true;
    return events_.on_int64(static_cast<std::int64_t>(number)), true;
  }
  bool number_float(double number, const std::string&) override { return events_.on_double(number), true; }
  bool string(std::string& text) override { return events_.on_string(text), true; }
  bool key(std::string& key) override { return events_.on_key(key), true; }
  bool start_array(std::size_t) override { return open() && (events_.on_array(), true); }
  bool start_object(std::size_t) override { return open() && (events_.on_object(), true); }
  bool end_array() override { return close(); }
  bool end_object() override { return close(); }
  bool binary(Nlohmann::binary_t&) override { return false; }  // not in text
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& error) override {
    status = wrong_text(text_, std::min(position == 0 ? 0 : position - 1, text_.size()), sentence_of(error.what()));
    return false;
  }

 private:
  bool open() {
    if (open_++ < depth_) return true;
    status = wrong_text(text_, where_too_deep(text_, depth_),
                        "more than " + std::to_string(depth_) + " arrays and objects are within each other",
                        "allow more with ParseOptions::depth");
    return false;
  }
  bool close() {
    --open_;
    events_.on_end();
    return true;
  }

  std::string_view text_;
  std::size_t depth_;
  std::size_t open_ = 0;
  Events& events_;
};

}  // namespace

Status read(std::string_view text, std::size_t depth, Events& events) {
  // The parser takes it for the end.
  if (const auto zero = text.find('\0'); zero != text.npos) return wrong_text(text, zero, "a zero byte is no JSON");
  Reader reader(text, depth, events);
  (void)Nlohmann::sax_parse(text.begin(), text.end(), &reader);
  return std::move(reader.status);
}

Status read_into_heap(std::string_view text, std::size_t depth, Events& events) {
  const auto wrong = [&](ErrorCode code, const char* why, const char* remedy) {
    return fail(code, "cannot read JSON", std::to_string(text.size()) + " bytes", why, remedy);
  };
  try {
    return read(text, depth, events);
  } catch (const ReadOnlyHeap& error) {
    return wrong(ErrorCode::kInvalidArgument, error.what(), "");
  } catch (const std::bad_alloc& error) {
    return wrong(ErrorCode::kNoSpace, error.what(), "");
  }
}

Status append_text(std::string& to, std::string_view text) {
  const bool plain = std::ranges::all_of(text, [](char c) { return c >= 0x20 && c < 0x7f && c != '"' && c != '\\'; });
  if (plain) {
    to += '"';
    to += text;
    to += '"';
    return {};
  }
  try {
    to += Nlohmann(std::string(text)).dump();
  } catch (const Nlohmann::type_error&) {
    return fail(ErrorCode::kInvalidArgument, "cannot write JSON",
                "a string of " + std::to_string(text.size()) + " bytes", "it is not UTF-8",
                "JSON has no other text: encode bytes, for example as base64");
  }
  return {};
}

Status append_number(std::string& to, double number) {
  if (!std::isfinite(number)) {
    return fail(ErrorCode::kInvalidArgument, "cannot write JSON", std::isnan(number) ? "not a number" : "infinity",
                "JSON has finite numbers only", "store null or a text instead");
  }
  char digits[32];
  const char* const end = std::to_chars(digits, digits + sizeof digits, number).ptr;
  const std::string_view text(digits, static_cast<std::size_t>(end - digits));
  to += text;
  if (text.find_first_of(".e") == text.npos) to += ".0";  // or it would be read as an integer
  return {};
}

std::optional<Step> next_step(std::string_view& pointer) {
  if (!pointer.starts_with('/')) return std::nullopt;
  pointer.remove_prefix(1);
  const std::string_view token = pointer.substr(0, pointer.find('/'));
  pointer.remove_prefix(token.size());
  Step step;
  for (std::size_t i = 0; i < token.size(); ++i) {
    if (token[i] != '~') {
      step.key += token[i];
      continue;
    }
    ++i;
    const char escaped = i < token.size() ? token[i] : '\0';
    if (escaped != '0' && escaped != '1') return std::nullopt;
    step.key += escaped == '0' ? '~' : '/';
  }
  std::size_t index = 0;
  const char* const end = step.key.data() + step.key.size();
  const auto [stop, error] = std::from_chars(step.key.data(), end, index);
  const bool canonical = token == "0" || !token.starts_with('0');
  if (error == std::errc() && stop == end && canonical) step.index = index;
  return step;
}

void wrong_kind() noexcept {
  std::fputs("farheap: a JSON value was taken for a kind that it is not of; ask it for kind() or if_...() first\n",
             stderr);
  std::abort();
}

}  // namespace farheap::json
