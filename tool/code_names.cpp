// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "code_names.hpp"

#include <cxxabi.h>
#include <fmt/format.h>

#include <cstdlib>

#include "profile/harvest.hpp"

#ifdef FARHEAP_HAVE_LIBDW
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <gelf.h>
#endif

namespace farheap::tool {

namespace {

std::string last_part(const std::string& path) { return path.substr(path.rfind('/') + 1); }

#ifdef FARHEAP_HAVE_LIBDW
std::string demangled(const char* name) {
  if (name == nullptr) return {};
  if (name[0] != '_' || name[1] != 'Z') return name;  // "f" is a type for the demangler: float
  int status = 0;
  char* const plain = abi::__cxa_demangle(name, nullptr, nullptr, &status);
  std::string text = plain != nullptr ? plain : name;
  std::free(plain);
  return text;
}

// Without the parameters, which for C++ are longer than the name: "f(int) const" becomes "f".
std::string without_parameters(std::string name) {
  const std::size_t end = name.rfind(')');
  if (end == std::string::npos || name.ends_with("operator()")) return name;
  int depth = 0;
  for (std::size_t at = end + 1; at-- > 0;) {
    if (name[at] == ')') ++depth;
    if (name[at] == '(' && --depth == 0) return at == 0 ? name : name.substr(0, at);
  }
  return name;
}

// "char*& std::vector<char*>::emplace_back<char*>" becomes "std::vector<>::emplace_back<>": neither what it returns nor
// what it is made for.
std::string shortened_template(const std::string& name) {
  if (name.find("operator") != std::string::npos) return name;
  std::string text;
  int depth = 0;
  for (const char one : name) {
    if (one == '<' && depth++ == 0) text += "<>";
    if (depth == 0) text += one;
    if (one == '>' && depth > 0) --depth;
  }
  return text.substr(text.rfind(' ') + 1);
}

std::string name_of(Dwarf_Die* function) {
  Dwarf_Attribute attribute;
  const char* name = nullptr;
  if (dwarf_attr_integrate(function, DW_AT_linkage_name, &attribute) != nullptr) name = dwarf_formstring(&attribute);
  if (name == nullptr && dwarf_attr_integrate(function, DW_AT_name, &attribute) != nullptr) {
    name = dwarf_formstring(&attribute);
  }
  return shortened_template(without_parameters(demangled(name)));
}

std::uint64_t number_of(Dwarf_Die* function, unsigned attribute_name) {
  Dwarf_Attribute attribute;
  Dwarf_Word value = 0;
  if (dwarf_attr(function, attribute_name, &attribute) == nullptr) return 0;
  return dwarf_formudata(&attribute, &value) == 0 ? value : 0;
}

// The functions at the address, the innermost first, each with the line in it: that of the instruction, and of the
// calls that the compiler put in place. `found`: the line of the instruction, and the file.
void add_functions(Dwarf_Die* unit, Dwarf_Addr address, CodeName found, std::vector<CodeName>& into) {
  // By address libdw goes on with where an inlined function was written; by the entry, with where it was put.
  Dwarf_Die* innermost = nullptr;
  Dwarf_Die* scopes = nullptr;
  if (dwarf_getscopes(unit, address, &innermost) <= 0) return;
  const int count = dwarf_getscopes_die(&innermost[0], &scopes);
  std::free(innermost);
  Dwarf_Files* files = nullptr;
  std::size_t file_count = 0;
  (void)dwarf_getsrcfiles(unit, &files, &file_count);
  for (int i = 0; i < count; ++i) {
    const int tag = dwarf_tag(&scopes[i]);
    if (tag != DW_TAG_subprogram && tag != DW_TAG_inlined_subroutine) continue;
    found.function = name_of(&scopes[i]);
    into.push_back(found);
    if (tag == DW_TAG_subprogram) break;
    const std::uint64_t file = number_of(&scopes[i], DW_AT_call_file);
    const char* const source = file < file_count ? dwarf_filesrc(files, file, nullptr, nullptr) : nullptr;
    found.source = source != nullptr ? source : "";
    found.line = static_cast<int>(number_of(&scopes[i], DW_AT_call_line));
  }
  std::free(scopes);
}
#endif

}  // namespace

std::string CodeName::text() const {
  const std::string where = source.empty() ? last_part(file) : fmt::format("{}:{}", last_part(source), line);
  if (!function.empty()) return fmt::format("{} ({})", function, where);
  if (file.empty()) return fmt::format("code in no file, {:#x}", offset);
  return source.empty() ? fmt::format("{}+{:#x}", where, offset) : where;
}

std::string CodeName::function_text() const {
  if (!function.empty()) return function;
  return file.empty() ? "code in no file" : fmt::format("{}+{:#x}", last_part(file), offset);
}

#ifdef FARHEAP_HAVE_LIBDW

struct CodeNames::Module {
  explicit Module(const profile::CodeFile& file) {
    static const Dwfl_Callbacks kCallbacks = {.find_elf = dwfl_build_id_find_elf,
                                              .find_debuginfo = dwfl_standard_find_debuginfo,
                                              .section_address = dwfl_offline_section_address,
                                              .debuginfo_path = nullptr};
    if (profile::build_id_of_file(file.path) != file.build_id) {
      is_changed = true;
      return;
    }
    session = dwfl_begin(&kCallbacks);
    if (session == nullptr) return;
    module = dwfl_report_offline(session, last_part(file.path).c_str(), file.path.c_str(), -1);
    dwfl_report_end(session, nullptr, nullptr);
    if (module != nullptr) elf = dwfl_module_getelf(module, &bias);
  }
  ~Module() {
    if (session != nullptr) dwfl_end(session);
  }
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  // Where the loader would put what lies at the offset; false if it puts nothing of it anywhere.
  bool address_of(std::uint64_t offset, Dwarf_Addr& address) const {
    std::size_t parts = 0;
    if (elf == nullptr || elf_getphdrnum(elf, &parts) != 0) return false;
    for (std::size_t i = 0; i < parts; ++i) {
      GElf_Phdr part;
      if (gelf_getphdr(elf, static_cast<int>(i), &part) == nullptr || part.p_type != PT_LOAD) continue;
      if (offset < part.p_offset || offset - part.p_offset >= part.p_filesz) continue;
      address = offset - part.p_offset + part.p_vaddr + bias;
      return true;
    }
    return false;
  }

  // The compilation unit whose code lies there. clang writes no table of them by address: then all are asked.
  Dwarf_Die* unit_of(Dwarf_Addr address, Dwarf_Addr& unit_bias) const {
    if (Dwarf_Die* const unit = dwfl_module_addrdie(module, address, &unit_bias)) return unit;
    Dwarf_Die* unit = nullptr;
    while ((unit = dwfl_module_nextcu(module, unit, &unit_bias)) != nullptr) {
      if (dwarf_haspc(unit, address - unit_bias) > 0) return unit;
    }
    return nullptr;
  }

  Dwfl* session = nullptr;
  Dwfl_Module* module = nullptr;
  Elf* elf = nullptr;
  GElf_Addr bias = 0;
  bool is_changed = false;
};

std::vector<CodeName> CodeNames::names(const profile::CodePlace& place, std::uint64_t before) {
  CodeName found;
  found.offset = place.offset;
  if (place.file == 0) return {found};
  found.file = files_[place.file].path;
  const Module& in = module_of(place.file);
  Dwarf_Addr address = 0;
  if (place.offset < before || !in.address_of(place.offset - before, address)) return {found};
  std::vector<CodeName> names;
  Dwarf_Addr unit_bias = 0;
  if (Dwarf_Die* const unit = in.unit_of(address, unit_bias)) {
    if (Dwarf_Line* const line = dwarf_getsrc_die(unit, address - unit_bias)) {
      const char* const source = dwarf_linesrc(line, nullptr, nullptr);
      if (source != nullptr) found.source = source;
      (void)dwarf_lineno(line, &found.line);
    }
    add_functions(unit, address - unit_bias, found, names);
  }
  if (!names.empty()) return names;
  GElf_Off from_symbol = 0;
  GElf_Sym symbol;
  found.function = without_parameters(
      demangled(dwfl_module_addrinfo(in.module, address, &from_symbol, &symbol, nullptr, nullptr, nullptr)));
  return {found};
}

#else

struct CodeNames::Module {
  explicit Module(const profile::CodeFile& file) : is_changed(profile::build_id_of_file(file.path) != file.build_id) {}
  bool is_changed;
};

std::vector<CodeName> CodeNames::names(const profile::CodePlace& place, std::uint64_t) {
  CodeName found;
  found.offset = place.offset;
  if (place.file != 0) found.file = files_[place.file].path;
  return {found};
}

#endif

CodeNames::CodeNames(const std::vector<profile::CodeFile>& files) : files_(files), modules_(files.size()) {}
CodeNames::~CodeNames() = default;

CodeNames::Module& CodeNames::module_of(std::uint32_t file) {
  if (!modules_[file]) modules_[file] = std::make_unique<Module>(files_[file]);
  return *modules_[file];
}

std::vector<std::string> CodeNames::changed_files() {
  std::vector<std::string> changed;
  for (std::uint32_t file = 1; file < files_.size(); ++file) {
    if (files_[file].path.starts_with('/') && module_of(file).is_changed) changed.push_back(files_[file].path);
  }
  return changed;
}

}  // namespace farheap::tool
