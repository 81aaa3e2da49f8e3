// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The C library's functions on memory and strings, for every mix of far and near.
#include <array>
#include <cstdlib>
#include <cstring>
#include <string>

#include "far.hpp"

namespace farheap::translate {
namespace {

// Bytes at an address, far ones fetched by pieces. What is far is never read beyond the next multiple of 256: the heap
// ends at one.
class Bytes {
 public:
  explicit Bytes(const void* at) : at_(static_cast<const unsigned char*>(at)), is_far_(is_far(at)) {}

  unsigned char operator[](std::size_t index) {
    if (!is_far_) return at_[index];
    if (index < first_ || index >= end_) fetch(index);
    return piece_[index - first_];
  }

 private:
  static constexpr std::size_t kPiece = 256;

  void fetch(std::size_t index) {
    const unsigned char* const from = at_ + index;
    const std::size_t count = kPiece - reinterpret_cast<std::uintptr_t>(from) % kPiece;
    __farheap_get(piece_.data(), from, count);
    first_ = index;
    end_ = index + count;
  }

  const unsigned char* at_;
  bool is_far_;
  std::size_t first_ = 0, end_ = 0;
  std::array<unsigned char, kPiece> piece_;
};

std::size_t length(const void* text, std::size_t most = SIZE_MAX) {
  Bytes bytes(text);
  std::size_t count = 0;
  while (count < most && bytes[count] != 0) ++count;
  return count;
}

int compare(const void* left, const void* right, std::size_t most, bool is_text) {
  Bytes a(left), b(right);
  for (std::size_t i = 0; i < most; ++i) {
    if (a[i] != b[i]) return a[i] - b[i];  // C asks for the sign; the C library says the difference
    if (is_text && a[i] == 0) break;
  }
  return 0;
}

constexpr std::size_t kNone = SIZE_MAX;

std::size_t find(const void* in, int wanted, std::size_t most, bool is_text) {
  Bytes bytes(in);
  for (std::size_t i = 0; i < most; ++i) {
    if (bytes[i] == static_cast<unsigned char>(wanted)) return i;
    if (is_text && bytes[i] == 0) break;
  }
  return kNone;
}

std::string local(const char* text) {
  std::string copy(length(text), '\0');
  __farheap_copy(copy.data(), text, copy.size());
  return copy;
}

// `read` is the C library's, and gets a local copy.
template <class Read>
auto number(const char* text, char** end, const Read& read) {
  if (!is_far(text) && !is_far(static_cast<const void*>(end))) return read(text, end);
  const std::string copy = local(text);
  char* stopped = nullptr;
  const auto value = read(copy.c_str(), &stopped);
  if (end != nullptr) store(end, const_cast<char*>(text) + (stopped - copy.c_str()));
  return value;
}

bool is_one_of(char c, const std::string& all) { return c != '\0' && all.find(c) != std::string::npos; }

char* next_token(char* text, const char* between, char** rest) {
  if (text == nullptr) text = load(rest);
  if (text == nullptr) return nullptr;
  const std::string all = local(between);
  Bytes bytes(text);
  std::size_t begin = 0;
  while (is_one_of(static_cast<char>(bytes[begin]), all)) ++begin;
  if (bytes[begin] == 0) {
    store(rest, text + begin);
    return nullptr;
  }
  std::size_t end = begin;
  while (bytes[end] != 0 && !is_one_of(static_cast<char>(bytes[end]), all)) ++end;
  const bool is_last = bytes[end] == 0;
  if (!is_last) store(text + end, '\0');
  store(rest, text + end + (is_last ? 0 : 1));
  return text + begin;
}

char* g_rest = nullptr;  // strtok(), which is for one thread

}  // namespace
}  // namespace farheap::translate

using namespace farheap::translate;  // NOLINT(google-build-using-namespace): all that follows is its face

// NOLINTBEGIN(bugprone-reserved-identifier): names that no program has.
FARHEAP_ENTRY void* __farheap_memmove(void* to, const void* from, std::size_t bytes) {
  __farheap_copy(to, from, bytes);
  return to;
}
FARHEAP_ENTRY void* __farheap_mempcpy(void* to, const void* from, std::size_t bytes) {
  __farheap_copy(to, from, bytes);
  return static_cast<char*>(to) + bytes;
}
FARHEAP_ENTRY void* __farheap_memset(void* to, int byte, std::size_t bytes) {
  __farheap_fill(to, static_cast<unsigned char>(byte), bytes);
  return to;
}
FARHEAP_ENTRY void __farheap_bzero(void* to, std::size_t bytes) { __farheap_fill(to, 0, bytes); }
FARHEAP_ENTRY void __farheap_bcopy(const void* from, void* to, std::size_t bytes) { __farheap_copy(to, from, bytes); }

FARHEAP_ENTRY int __farheap_memcmp(const void* left, const void* right, std::size_t bytes) {
  if (!is_far(left) && !is_far(right)) return std::memcmp(left, right, bytes);
  return compare(left, right, bytes, false);
}
FARHEAP_ENTRY void* __farheap_memchr(const void* in, int wanted, std::size_t bytes) {
  const std::size_t at = find(in, wanted, bytes, false);
  return at == kNone ? nullptr : static_cast<char*>(const_cast<void*>(in)) + at;
}

FARHEAP_ENTRY std::size_t __farheap_strlen(const char* text) { return is_far(text) ? length(text) : std::strlen(text); }
FARHEAP_ENTRY std::size_t __farheap_strnlen(const char* text, std::size_t most) { return length(text, most); }

FARHEAP_ENTRY char* __farheap_stpcpy(char* to, const char* from) {
  const std::size_t bytes = __farheap_strlen(from);
  __farheap_copy(to, from, bytes + 1);
  return to + bytes;
}
FARHEAP_ENTRY char* __farheap_strcpy(char* to, const char* from) {
  (void)__farheap_stpcpy(to, from);
  return to;
}
FARHEAP_ENTRY char* __farheap_strncpy(char* to, const char* from, std::size_t bytes) {
  const std::size_t count = length(from, bytes);
  __farheap_copy(to, from, count);
  __farheap_fill(to + count, 0, bytes - count);
  return to;
}
FARHEAP_ENTRY char* __farheap_strcat(char* to, const char* from) {
  (void)__farheap_stpcpy(to + __farheap_strlen(to), from);
  return to;
}
FARHEAP_ENTRY char* __farheap_strncat(char* to, const char* from, std::size_t most) {
  char* const end = to + __farheap_strlen(to);
  const std::size_t count = length(from, most);
  __farheap_copy(end, from, count);
  __farheap_fill(end + count, 0, 1);
  return to;
}

FARHEAP_ENTRY int __farheap_strcmp(const char* left, const char* right) {
  if (!is_far(left) && !is_far(right)) return std::strcmp(left, right);
  return compare(left, right, SIZE_MAX, true);
}
FARHEAP_ENTRY int __farheap_strncmp(const char* left, const char* right, std::size_t most) {
  if (!is_far(left) && !is_far(right)) return std::strncmp(left, right, most);
  return compare(left, right, most, true);
}
FARHEAP_ENTRY char* __farheap_strchr(const char* in, int wanted) {
  const std::size_t at = find(in, wanted, SIZE_MAX, true);
  return at == kNone ? nullptr : const_cast<char*>(in) + at;
}
FARHEAP_ENTRY char* __farheap_strrchr(const char* in, int wanted) {
  char* last = nullptr;
  for (const char* from = in;; ++from) {
    from = __farheap_strchr(from, wanted);
    if (from == nullptr) return last;
    last = const_cast<char*>(from);
    if (static_cast<char>(wanted) == '\0') return last;
  }
}

FARHEAP_ENTRY char* __farheap_strdup(const char* text) {
  const std::size_t bytes = __farheap_strlen(text) + 1;
  auto* const copy = static_cast<char*>(__farheap_malloc(bytes));
  if (copy != nullptr) __farheap_copy(copy, text, bytes);
  return copy;
}
FARHEAP_ENTRY char* __farheap_strndup(const char* text, std::size_t most) {
  const std::size_t bytes = length(text, most);
  auto* const copy = static_cast<char*>(__farheap_malloc(bytes + 1));
  if (copy == nullptr) return nullptr;
  __farheap_copy(copy, text, bytes);
  __farheap_fill(copy + bytes, 0, 1);
  return copy;
}

FARHEAP_ENTRY char* __farheap_strtok_r(char* text, const char* between, char** rest) {
  return next_token(text, between, rest);
}
FARHEAP_ENTRY char* __farheap_strtok(char* text, const char* between) { return next_token(text, between, &g_rest); }

FARHEAP_ENTRY long __farheap_strtol(const char* text, char** end, int base) {
  return number(text, end, [&](const char* at, char** stop) { return std::strtol(at, stop, base); });
}
FARHEAP_ENTRY unsigned long __farheap_strtoul(const char* text, char** end, int base) {
  return number(text, end, [&](const char* at, char** stop) { return std::strtoul(at, stop, base); });
}
FARHEAP_ENTRY double __farheap_strtod(const char* text, char** end) {
  return number(text, end, [](const char* at, char** stop) { return std::strtod(at, stop); });
}
FARHEAP_ENTRY float __farheap_strtof(const char* text, char** end) {
  return number(text, end, [](const char* at, char** stop) { return std::strtof(at, stop); });
}
FARHEAP_ENTRY long double __farheap_strtold(const char* text, char** end) {
  return number(text, end, [](const char* at, char** stop) { return std::strtold(at, stop); });
}
// NOLINTEND(bugprone-reserved-identifier)
