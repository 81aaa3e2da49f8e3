// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Private mappings of files that became part of a segment. What a program writes to such a mapping is its own memory,
// and the kernel alone would move it; so the contents are copied, and paged as all else is. The file stays mapped
// elsewhere to be read, which takes no memory, because it shows again where the program drops pages (MADV_DONTNEED).
//
// Thread-safety: none; the owner locks. Changes allocate: only as the runtime (base::InsideRuntime).
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <utility>

namespace farheap::segment {

class FileCopies {
 public:
  FileCopies() = default;
  ~FileCopies();
  FileCopies(const FileCopies&) = delete;
  FileCopies& operator=(const FileCopies&) = delete;

  // [at, at + bytes) has what the mapping at `file` has, which belongs to this object from now on. All of it is
  // readable and writable. Requires: multiples of the page size; no copy is known there.
  void note(std::byte* at, std::size_t bytes, std::byte* file);
  // The program protected what is copied there: PROT_*.
  void note_protection(std::byte* at, std::size_t bytes, int protection);
  // No file shows there any more.
  void forget(std::byte* at, std::size_t bytes);

  struct Part {
    std::byte* at;
    std::size_t bytes;
    std::byte* file;
    int protection;
  };
  // The first that lies in the range. Allocates nothing.
  [[nodiscard]] std::optional<Part> first_within(std::byte* at, std::size_t bytes) const;

  // Copies from a mapping of a file, and lets go of the memory that takes. False, and some of it may be copied, if the
  // file cannot be read. Any thread; allocates nothing.
  [[nodiscard]] static bool copy(std::byte* to, std::byte* file, std::size_t bytes);

 private:
  struct Copy {
    std::size_t bytes;
    std::byte* file;
    int protection;
  };
  using Copies = std::map<std::byte*, Copy>;
  // Those of the range, none of which goes beyond it.
  std::pair<Copies::iterator, Copies::iterator> cut(std::byte* at, std::size_t bytes);
  void split(std::byte* at);

  Copies copies_;  // by their first address
};

}  // namespace farheap::segment
