// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "program_file.hpp"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iterator>

namespace farheap::tool {
namespace {

constexpr std::size_t kHeadBytes = 65'536;  // program headers and the interpreter's name are near the start
constexpr int kDeepestScript = 5;           // an interpreter may be a script itself; the kernel follows as many

Result<std::string> read_head(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return fail(errno_error(errno, "cannot read the program", path));
  std::string head(kHeadBytes, '\0');
  std::size_t filled = 0;
  while (filled < head.size()) {
    const ssize_t got = pread(file, head.data() + filled, head.size() - filled, static_cast<off_t>(filled));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    filled += static_cast<std::size_t>(got);
  }
  close(file);
  head.resize(filled);
  return head;
}

tl::unexpected<Error> refuse(const std::string& path, std::string why, std::string remedy) {
  return fail(ErrorCode::kUnavailable, "cannot run this program on Farheap", path, std::move(why), std::move(remedy));
}

const char* const kRunPlainly = "run it with --plain to leave Farheap out";

// The kernel ignores LD_PRELOAD where a program gets rights that its caller has not.
Status check_rights(const std::string& path) {
  struct stat status{};
  if (stat(path.c_str(), &status) != 0) return fail(errno_error(errno, "cannot look at the program", path));
  const bool other_user = (status.st_mode & S_ISUID) != 0 && status.st_uid != getuid();
  const bool other_group =
      (status.st_mode & S_ISGID) != 0 && (status.st_mode & S_IXGRP) != 0 && status.st_gid != getgid();
  if (other_user || other_group) {
    return refuse(path, std::string("it is ") + (other_user ? "setuid" : "setgid") + ", where LD_PRELOAD has no effect",
                  kRunPlainly);
  }
  if (getuid() != 0 && getxattr(path.c_str(), "security.capability", nullptr, 0) > 0) {
    return refuse(path, "it has file capabilities, where LD_PRELOAD has no effect", kRunPlainly);
  }
  return {};
}

// What this very program is, as the measure of what the preload library fits into.
const ElfSummary& own_summary() {
  static const ElfSummary own = [] {
    const auto head = read_head("/proc/self/exe");
    return head ? read_elf(*head).value_or(ElfSummary{}) : ElfSummary{};
  }();
  return own;
}

bool is_own_loader(const std::string& path) {
  std::error_code none;
  return !own_summary().interpreter.empty() && std::filesystem::equivalent(path, own_summary().interpreter, none);
}

Status check_elf(const std::string& path, const ElfSummary& elf) {
  const ElfSummary& own = own_summary();
  if (!elf.is_64_bit) return refuse(path, "it is a 32-bit program", "use a 64-bit build of it");
  if (elf.machine != own.machine) return refuse(path, "it is for another kind of processor", kRunPlainly);
  if (elf.interpreter.empty()) {
    return refuse(path, "it is statically linked, so nothing can be loaded into it",
                  "use a dynamically linked build, or --plain to leave Farheap out");
  }
  if (!own.interpreter.empty() && elf.interpreter != own.interpreter) {
    return refuse(path, "it uses another C library's loader, " + elf.interpreter, kRunPlainly);
  }
  return {};
}

bool is_executable_file(const std::string& path) {
  struct stat status{};
  return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) && access(path.c_str(), X_OK) == 0;
}

template <class T>
bool copy_at(std::string_view bytes, std::uint64_t offset, T& into) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof into) return false;
  std::memcpy(&into, bytes.data() + offset, sizeof into);
  return true;
}

tl::unexpected<Error> broken_elf(const char* why) {
  return fail(ErrorCode::kInvalidArgument, "not a program that can be read", "ELF header", why);
}

}  // namespace

Result<std::string> find_program(const std::string& command, std::string_view search_path) {
  if (command.find('/') != std::string::npos) {
    if (access(command.c_str(), F_OK) != 0) return fail(errno_error(errno, "cannot run", command));
    if (is_executable_file(command)) return command;
    return fail(ErrorCode::kPermission, "cannot run", command, "it is not an executable file");
  }
  bool found = false;
  while (!command.empty()) {
    const auto colon = search_path.find(':');
    const std::string folder(search_path.substr(0, colon));
    std::string path = (folder.empty() ? "." : folder) + "/" + command;
    if (is_executable_file(path)) return path;
    found = found || access(path.c_str(), F_OK) == 0;
    if (colon == std::string_view::npos) break;
    search_path.remove_prefix(colon + 1);
  }
  if (found) return fail(ErrorCode::kPermission, "cannot run", command, "it is not an executable file");
  return fail(ErrorCode::kNotFound, "cannot run", command, "no such command in PATH");
}

std::string script_interpreter(std::string_view bytes) {
  if (!bytes.starts_with("#!")) return {};
  std::string_view line = bytes.substr(2, bytes.find('\n') - 2);
  const auto start = line.find_first_not_of(" \t");
  if (start == std::string_view::npos) return {};
  line.remove_prefix(start);
  return std::string(line.substr(0, line.find_first_of(" \t\r")));
}

Result<ElfSummary> read_elf(std::string_view bytes) {
  Elf64_Ehdr header{};
  if (!bytes.starts_with(ELFMAG)) return broken_elf("the file is of another kind");
  if (bytes.size() > EI_CLASS && bytes[EI_CLASS] == ELFCLASS32) return ElfSummary{};
  if (!copy_at(bytes, 0, header)) return broken_elf("the file is cut off");
  ElfSummary summary{header.e_ident[EI_CLASS] == ELFCLASS64, header.e_machine, {}};
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr program{};
    if (header.e_phentsize < sizeof program) return broken_elf("its program headers are too short");
    if (!copy_at(bytes, header.e_phoff + std::uint64_t{i} * header.e_phentsize, program)) {
      return broken_elf("its program headers are not near the start");
    }
    if (program.p_type != PT_INTERP) continue;
    if (program.p_offset > bytes.size() || program.p_filesz > bytes.size() - program.p_offset) {
      return broken_elf("the name of its loader is cut off");
    }
    summary.interpreter = std::string(bytes.substr(program.p_offset, program.p_filesz));
    summary.interpreter.resize(std::strlen(summary.interpreter.c_str()));
  }
  return summary;
}

// ld.so(8).
std::string program_of_loader(std::span<const std::string> words) {
  constexpr std::string_view kWithValue[] = {"--library-path",     "--inhibit-rpath", "--audit",
                                             "--preload",          "--argv0",         "--glibc-hwcaps-prepend",
                                             "--glibc-hwcaps-mask"};
  while (!words.empty() && words.front().starts_with("--")) {
    if (words.front() != "--inhibit-cache" && std::ranges::find(kWithValue, words.front()) == std::end(kWithValue)) {
      return {};
    }
    const std::size_t used = words.front() == "--inhibit-cache" ? 1 : 2;
    words = words.subspan(std::min(used, words.size()));
  }
  return words.empty() ? "" : words.front();
}

std::string loaded_by(const std::string& path, const std::vector<std::string>& words) {
  if (!is_own_loader(path)) return {};
  return program_of_loader(std::span(words).subspan(std::min<std::size_t>(1, words.size())));
}

Status check_program(const std::string& path, const std::vector<std::string>& words) {
  std::string at = path;
  for (int depth = 0; depth < kDeepestScript; ++depth) {
    const auto head = read_head(at);
    // A program may be executable and not readable; then the loader decides.
    if (!head) return head.error().code == ErrorCode::kPermission ? check_rights(at) : fail(head.error());
    if (head->starts_with(ELFMAG)) {
      // The bits of scripts count for nothing: only here.
      if (auto rights = check_rights(at); !rights) return rights;
      const auto elf = read_elf(*head);
      if (!elf) return refuse(at, elf.error().why, "");
      if (elf->interpreter.empty() && is_own_loader(at)) {
        const std::string loaded = loaded_by(at, words);
        // Without a slash the loader looks for it among libraries; what is not there, it says itself.
        if (loaded.find('/') == std::string::npos || access(loaded.c_str(), F_OK) != 0) return {};
        at = loaded;
        continue;
      }
      return check_elf(at, *elf);
    }
    // What is neither ELF nor "#!" is a script for the shell.
    const std::string interpreter = script_interpreter(*head);
    at = interpreter.empty() ? "/bin/sh" : interpreter;
  }
  return refuse(path, "its interpreters are scripts too, too many of them", "");
}

}  // namespace farheap::tool
