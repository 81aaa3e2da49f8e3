// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// vprintf() and its kin: what the list of arguments points to may be far, which only the format tells.
#include <printf.h>

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "far.hpp"

namespace farheap::translate {
namespace {

class Lent {
 public:
  explicit Lent(void* own) : own_(own), local_(__farheap_borrow(own)) {}
  ~Lent() { __farheap_return(local_, own_); }
  Lent(const Lent&) = delete;
  Lent& operator=(const Lent&) = delete;
  template <class T>
  [[nodiscard]] T* get() const {
    return static_cast<T*>(local_);
  }

 private:
  void* own_;
  void* local_;
};

#if defined(__x86_64__)

// As the System V ABI has it.
struct List {
  unsigned general_offset, vector_offset;
  std::byte* overflow;
  const std::byte* saved;
};
constexpr unsigned kGeneralEnd = 48, kVectorEnd = 176;

bool is_long_double(int type) { return type == (PA_DOUBLE | PA_FLAG_LONG_DOUBLE); }
bool is_vector(int type) {
  const int base = type & ~PA_FLAG_MASK;
  return (type & PA_FLAG_PTR) == 0 && (base == PA_DOUBLE || base == PA_FLOAT);
}
bool points(int type) { return (type & PA_FLAG_PTR) != 0 || type == PA_STRING || type == PA_WSTRING; }

// The arguments again, all where those are that no register has room for, with copies in place of what is far.
class Arguments {
 public:
  Arguments(const char* format, void* list) {
    List from = load(static_cast<const List*>(list));
    std::vector<int> types(parse_printf_format(format, 0, nullptr));
    parse_printf_format(format, types.size(), types.data());
    room_.resize(2 * types.size() + 2);
    // Long doubles are at multiples of 16.
    for (const int type : types) {
      if (is_long_double(type)) {
        take_long_double(from);
      } else {
        room_[used_++] = word(from, type);
      }
    }
    const List made{kGeneralEnd, kVectorEnd, reinterpret_cast<std::byte*>(room_.data()), nullptr};
    static_assert(sizeof list_ == sizeof made);
    std::memcpy(&list_, &made, sizeof made);
  }

  [[nodiscard]] std::va_list& list() { return list_; }

 private:
  std::uint64_t word(List& from, int type) {
    unsigned& offset = is_vector(type) ? from.vector_offset : from.general_offset;
    const std::byte* at = from.overflow;
    if (offset < (is_vector(type) ? kVectorEnd : kGeneralEnd)) {
      at = from.saved + offset;
      offset += is_vector(type) ? 16 : 8;
    } else {
      from.overflow += 8;
    }
    auto value = load(reinterpret_cast<const std::uint64_t*>(at));
    if (!points(type) || !is_far(reinterpret_cast<void*>(value))) return value;
    lent_.push_back(std::make_unique<Lent>(reinterpret_cast<void*>(value)));
    return reinterpret_cast<std::uint64_t>(lent_.back()->get<void>());
  }

  void take_long_double(List& from) {
    from.overflow += -reinterpret_cast<std::uintptr_t>(from.overflow) & 15;
    used_ += used_ & 1;
    __farheap_copy(&room_[used_], from.overflow, 16);
    used_ += 2;
    from.overflow += 16;
  }

  std::vector<std::uint64_t> room_;  // operator new's alignment is 16
  std::size_t used_ = 0;
  std::vector<std::unique_ptr<Lent>> lent_;
  std::va_list list_;
};

#else

class Arguments {
 public:
  Arguments(const char*, std::va_list list) { va_copy(list_, list); }
  ~Arguments() { va_end(list_); }
  [[nodiscard]] std::va_list& list() { return list_; }

 private:
  std::va_list list_;
};

#endif

// `format` may be far.
template <class Print>
int print(char* format, std::va_list list, const Print& how) {
  const Lent text(format);
  Arguments arguments(text.get<char>(), list);
  return how(text.get<char>(), arguments.list());
}

}  // namespace
}  // namespace farheap::translate

using farheap::translate::Lent;
using farheap::translate::print;

// NOLINTBEGIN(bugprone-reserved-identifier): names that no program has.
FARHEAP_ENTRY int __farheap_vfprintf(FILE* file, char* format, std::va_list list) {
  return print(format, list, [&](const char* text, std::va_list& all) { return std::vfprintf(file, text, all); });
}
FARHEAP_ENTRY int __farheap_vprintf(char* format, std::va_list list) {
  return __farheap_vfprintf(stdout, format, list);
}
FARHEAP_ENTRY int __farheap_vdprintf(int file, char* format, std::va_list list) {
  return print(format, list, [&](const char* text, std::va_list& all) { return vdprintf(file, text, all); });
}
FARHEAP_ENTRY int __farheap_vsprintf(char* into, char* format, std::va_list list) {
  const Lent room(into);
  return print(format, list,
               [&](const char* text, std::va_list& all) { return std::vsprintf(room.get<char>(), text, all); });
}
FARHEAP_ENTRY int __farheap_vsnprintf(char* into, std::size_t bytes, char* format, std::va_list list) {
  const Lent room(into);
  return print(format, list,
               [&](const char* text, std::va_list& all) { return std::vsnprintf(room.get<char>(), bytes, text, all); });
}
FARHEAP_ENTRY int __farheap_vasprintf(char** into, char* format, std::va_list list) {
  const Lent room(static_cast<void*>(into));
  return print(format, list,
               [&](const char* text, std::va_list& all) { return vasprintf(room.get<char*>(), text, all); });
}
// What -D_FORTIFY_SOURCE makes of them. Behind a copy there is a closed page.
FARHEAP_ENTRY int __farheap_vfprintf_chk(FILE* file, int, char* format, std::va_list list) {
  return __farheap_vfprintf(file, format, list);
}
FARHEAP_ENTRY int __farheap_vprintf_chk(int, char* format, std::va_list list) {
  return __farheap_vprintf(format, list);
}
FARHEAP_ENTRY int __farheap_vsprintf_chk(char* into, int, std::size_t room, char* format, std::va_list list) {
  const int bytes = __farheap_vsnprintf(into, room, format, list);
  if (bytes >= 0 && static_cast<std::size_t>(bytes) >= room && room != SIZE_MAX) std::abort();
  return bytes;
}
FARHEAP_ENTRY int __farheap_vsnprintf_chk(char* into, std::size_t bytes, int, std::size_t room, char* format,
                                          std::va_list list) {
  if (bytes > room) std::abort();
  return __farheap_vsnprintf(into, bytes, format, list);
}
// NOLINTEND(bugprone-reserved-identifier)
