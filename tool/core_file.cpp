// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "core_file.hpp"

#include <elf.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace farheap::tool {
namespace {

constexpr std::uint64_t kMostParts = 1 << 20;  // a process has at most 65,530 mappings unless somebody raised that

tl::unexpected<Error> no_core(const std::string& name, std::string why) {
  return fail(ErrorCode::kInvalidArgument, "not a core", name, std::move(why), "name the core of a program");
}

// All of it, or false.
bool read_at(int file, std::uint64_t offset, std::span<std::byte> into) {
  while (!into.empty()) {
    const ssize_t got = pread(file, into.data(), into.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    into = into.subspan(static_cast<std::size_t>(got));
    offset += static_cast<std::uint64_t>(got);
  }
  return true;
}

template <class T>
bool read_one(int file, std::uint64_t offset, T& into) {
  return read_at(file, offset, std::as_writable_bytes(std::span(&into, 1)));
}

}  // namespace

CoreFile::CoreFile(CoreFile&& other) noexcept
    : file_(std::exchange(other.file_, -1)), name_(std::move(other.name_)), parts_(std::move(other.parts_)) {}

CoreFile::~CoreFile() {
  if (file_ >= 0) close(file_);
}

Result<CoreFile> CoreFile::take(int file, std::string name) {
  CoreFile core(file, std::move(name));
  if (auto ok = core.read_parts(); !ok) return fail(std::move(ok.error()));
  return core;
}

Status CoreFile::read_parts() {
  struct stat status{};
  Elf64_Ehdr head{};
  if (fstat(file_, &status) != 0 || !read_one(file_, 0, head)) return no_core(name_, "it is too short");
  const bool fits = std::memcmp(head.e_ident, ELFMAG, SELFMAG) == 0 && head.e_ident[EI_CLASS] == ELFCLASS64 &&
                    head.e_ident[EI_DATA] == ELFDATA2LSB && head.e_type == ET_CORE && head.e_machine == EM_X86_64;
  if (!fits) return no_core(name_, "it is none of a 64-bit x86 process");
  std::uint64_t count = head.e_phnum;
  if (count == PN_XNUM) {  // too many for the field: the first section header has their number
    Elf64_Shdr first{};
    if (!read_one(file_, head.e_shoff, first)) return no_core(name_, "it is cut off");
    count = first.sh_info;
  }
  if (head.e_phentsize != sizeof(Elf64_Phdr) || count > kMostParts) return no_core(name_, "its headers are damaged");
  const auto file_bytes = static_cast<std::uint64_t>(status.st_size);
  if (count * sizeof(Elf64_Phdr) > file_bytes) return no_core(name_, "it is cut off");
  std::vector<Elf64_Phdr> headers(count);
  if (!read_at(file_, head.e_phoff, std::as_writable_bytes(std::span(headers)))) return no_core(name_, "it is cut off");
  for (const auto& one : headers) {
    const bool inside = one.p_offset <= file_bytes && one.p_filesz <= file_bytes - one.p_offset;
    if (one.p_type != PT_LOAD || one.p_filesz == 0 || !inside || one.p_vaddr + one.p_filesz < one.p_vaddr) continue;
    parts_.push_back({one.p_vaddr, one.p_filesz, one.p_offset});
  }
  std::ranges::sort(parts_, {}, &Part::address);
  const auto overlaps = [](const Part& one, const Part& next) { return one.address + one.bytes > next.address; };
  if (std::ranges::adjacent_find(parts_, overlaps) != parts_.end()) return no_core(name_, "its parts overlap");
  return {};
}

const CoreFile::Part* CoreFile::find(std::uint64_t address, std::size_t bytes) const {
  auto next = std::ranges::upper_bound(parts_, address, {}, &Part::address);
  if (next == parts_.begin()) return nullptr;
  const Part& part = *std::prev(next);
  const std::uint64_t inside = address - part.address;
  return inside <= part.bytes && bytes <= part.bytes - inside ? &part : nullptr;
}

bool CoreFile::read(std::uint64_t address, std::span<std::byte> into) const {
  while (!into.empty()) {
    const Part* const part = find(address, 1);
    if (part == nullptr) return false;
    // Neighbouring mappings are parts of their own.
    const auto here = std::min<std::uint64_t>(into.size(), part->address + part->bytes - address);
    if (!read_at(file_, part->offset + (address - part->address), into.first(here))) return false;
    into = into.subspan(here);
    address += here;
  }
  return true;
}

Status CoreFile::write(std::uint64_t address, std::span<const std::byte> bytes) {
  const Part* const part = find(address, bytes.size());
  if (part == nullptr) return fail(ErrorCode::kNotFound, "cannot fill in a page", name_, "the core has no room for it");
  std::uint64_t offset = part->offset + (address - part->address);
  while (!bytes.empty()) {
    const ssize_t done = pwrite(file_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return fail(errno_error(errno, "cannot write the core", name_));
    bytes = bytes.subspan(static_cast<std::size_t>(done));
    offset += static_cast<std::uint64_t>(done);
  }
  return {};
}

}  // namespace farheap::tool
