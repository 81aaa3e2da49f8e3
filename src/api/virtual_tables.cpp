// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A virtual table, as an object's pointer sees it: two words before it the distance to the top of the object (0 or
// negative), one word before it the address of the type's type_info, and there its first function. No other data in a
// program's read-only parts looks so.
#include "api/virtual_tables.hpp"

#include <cxxabi.h>
#include <fmt/format.h>
#include <link.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <farheap/polymorphic.hpp>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/mutex.hpp"

namespace farheap::api {
namespace {

struct Span {
  std::uintptr_t begin = 0, end = 0;
  [[nodiscard]] bool holds(std::uintptr_t address) const { return address >= begin && address < end; }
};

// Of all that is loaded: what can be executed; and of the part that holds a type_info, what is read only by now.
struct Modules {
  const std::type_info* type;
  std::vector<Span> code;
  std::vector<Span> constants;
};

int look_at_module(dl_phdr_info* module, std::size_t, void* context) {
  auto& found = *static_cast<Modules*>(context);
  std::vector<Span> constants;
  bool holds_type = false;
  for (int i = 0; i < module->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = module->dlpi_phdr[i];
    const std::uintptr_t begin = module->dlpi_addr + part.p_vaddr;
    const Span span{begin, begin + part.p_memsz};
    if (part.p_type == PT_GNU_RELRO) constants.push_back(span);
    if (part.p_type != PT_LOAD) continue;
    holds_type = holds_type || span.holds(reinterpret_cast<std::uintptr_t>(found.type));
    if ((part.p_flags & PF_X) != 0) {
      found.code.push_back(span);
    } else if ((part.p_flags & PF_W) == 0) {
      constants.push_back(span);
    }
  }
  if (holds_type) found.constants = std::move(constants);
  return 0;
}

// Between globals there may be bytes that a sanitizer wants nobody to read.
__attribute__((no_sanitize("address", "thread", "undefined"))) void find_in(const Span& span, const Modules& modules,
                                                                            std::size_t bytes,
                                                                            std::vector<VirtualTable>& tables) {
  constexpr std::size_t kWord = sizeof(std::uintptr_t);
  const auto type = reinterpret_cast<std::uintptr_t>(modules.type);
  const std::uintptr_t begin = (span.begin + 2 * kWord - 1) / kWord * kWord;
  for (std::uintptr_t at = begin; at + 2 * kWord <= span.end; at += kWord) {
    const auto* const words = reinterpret_cast<const std::uintptr_t*>(at);
    if (words[0] != type) continue;
    const std::uintptr_t offset = ~words[-1] + 1;  // from the top: what is written is the way back
    if (offset >= bytes || offset % kWord != 0) continue;
    const std::uintptr_t first_function = words[1];
    bool is_code = false;
    for (const Span& code : modules.code) is_code = is_code || code.holds(first_function);
    if (is_code) tables.push_back({offset, words + 1});
  }
}

struct Registered {
  const std::type_info* type;
  std::size_t bytes;
  std::optional<std::vector<VirtualTable>> tables;  // when they were first asked for
};

struct Registry {
  base::Mutex mutex;
  std::map<std::string, Registered, std::less<>> types FARHEAP_GUARDED_BY(mutex);
};

// Never destroyed: heaps may be opened while the process ends.
Registry& registry() {
  static auto& the_one = *new Registry;
  return the_one;
}

std::vector<VirtualTable> find_tables(const std::type_info& type, std::size_t bytes) {
  Modules modules{&type, {}, {}};
  dl_iterate_phdr(look_at_module, &modules);
  std::vector<VirtualTable> tables;
  for (const Span& span : modules.constants) find_in(span, modules, bytes, tables);
  const auto by_place = [](const VirtualTable& a, const VirtualTable& b) {
    return a.offset != b.offset ? a.offset < b.offset : a.table < b.table;
  };
  std::ranges::sort(tables, by_place);
  const auto same = [](const VirtualTable& a, const VirtualTable& b) {
    return !(a.offset != b.offset || a.table != b.table);
  };
  tables.erase(std::unique(tables.begin(), tables.end(), same), tables.end());  // parts of a file may overlap
  return tables;
}

std::string readable(std::string_view type) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> name(
      abi::__cxa_demangle(std::string(type).c_str(), nullptr, nullptr, &status), &std::free);
  return status == 0 ? name.get() : std::string(type);
}

}  // namespace

Result<const std::vector<VirtualTable>*> virtual_tables(std::string_view type, std::size_t element_bytes) {
  constexpr auto kWhat = "cannot use an object with virtual functions";
  Registry& all = registry();
  base::LockGuard lock(all.mutex);
  const auto at = all.types.find(type);
  if (at == all.types.end()) {
    return fail(ErrorCode::kUnavailable, kWhat, readable(type), "this program has not registered its type",
                "FARHEAP_POLYMORPHIC(type) registers it (farheap/polymorphic.hpp); HeapOptions::any_types opens the "
                "heap without");
  }
  Registered& mine = at->second;
  if (mine.bytes != element_bytes) {
    return fail(ErrorCode::kInvalidArgument, kWhat, readable(type),
                fmt::format("it has {} bytes in this program, and {} in the heap", mine.bytes, element_bytes),
                "use the program that has made it, or give the changed type another name");
  }
  if (!mine.tables) mine.tables = find_tables(*mine.type, mine.bytes);
  const auto twice = std::ranges::adjacent_find(*mine.tables, {}, &VirtualTable::offset);
  if (twice == mine.tables->end() && !mine.tables->empty() && mine.tables->front().offset == 0) return &*mine.tables;
  return fail(ErrorCode::kInvalidArgument, kWhat, readable(type),
              mine.tables->empty() ? "its virtual table is not in the read-only data of the program"
                                   : "which virtual table is its own cannot be told",
              "types with virtual bases, and programs linked with -z norelro, cannot have such objects in a heap");
}

void set_virtual_tables(const std::vector<VirtualTable>& tables, void* first, std::size_t length,
                        std::size_t element_bytes) {
  for (std::size_t i = 0; i < length; ++i) {
    auto* const object = static_cast<std::byte*>(first) + i * element_bytes;
    for (const VirtualTable& one : tables) {
      std::byte* const at = object + one.offset;
      const auto* const right = reinterpret_cast<const std::byte*>(&one.table);
      if (std::memcmp(at, right, sizeof one.table) == 0) continue;  // a page that stays as it is stays clean
      std::memcpy(at, right, sizeof one.table);
    }
  }
}

}  // namespace farheap::api

bool farheap::detail::register_polymorphic(const std::type_info& type, std::size_t bytes) {
  auto& all = farheap::api::registry();
  base::LockGuard lock(all.mutex);
  all.types.insert_or_assign(type.name(), farheap::api::Registered{&type, bytes, {}});
  return true;
}
