// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An ELF core as the memory of a process: bytes by their addresses. What the file says of itself is not believed:
// parts that are not where they claim to be are left out.
//
// Thread-safety: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <farheap/result.hpp>
#include <span>
#include <string>
#include <vector>

namespace farheap::tool {

class CoreFile {
 public:
  struct Part {
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
    std::uint64_t offset = 0;  // in the file
  };

  // Takes the open file over, which must be writable if write() is called. kInvalidArgument if it is no core of a
  // 64-bit x86 process.
  [[nodiscard]] static Result<CoreFile> take(int file, std::string name);
  CoreFile(CoreFile&& other) noexcept;
  CoreFile& operator=(CoreFile&&) = delete;
  ~CoreFile();

  [[nodiscard]] const std::string& name() const { return name_; }
  // By address; they do not overlap.
  [[nodiscard]] std::span<const Part> parts() const { return parts_; }
  // False if the core does not have all of these bytes.
  [[nodiscard]] bool read(std::uint64_t address, std::span<std::byte> into) const;
  // Over bytes that the core has. kNotFound if it has not all of them.
  [[nodiscard]] Status write(std::uint64_t address, std::span<const std::byte> bytes);

 private:
  CoreFile(int file, std::string name) : file_(file), name_(std::move(name)) {}
  [[nodiscard]] Status read_parts();
  // Where the bytes are in the file, or nullptr.
  [[nodiscard]] const Part* find(std::uint64_t address, std::size_t bytes) const;
  int file_;
  std::string name_;
  std::vector<Part> parts_;
};

}  // namespace farheap::tool
