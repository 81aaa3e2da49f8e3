// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Copies objects out of a file of Boost.Interprocess (managed_mapped_file) into a heap. Such a file tells the names of
// its objects and not their types: the caller names both types, and how one is made from the other.
//
//   auto file = farheap::InterprocessFile::open("/data/old.bin").value();
//   auto* sizes = file.copy<Sizes>("sizes", heap).value();                       // plain values, arrays too
//   auto* words = file.copy<OldWords, Words>("words", heap, [&](const OldWords& old) {
//     return Words(old.begin(), old.end(), heap.allocator<Word>());
//   }).value();
//
// The file is not changed. It is read by the Boost that this program is compiled with, which has to be like the one
// that wrote it (docs/moving.md).
//
// Thread-safety: one thread.
#pragma once

#if !defined(__cpp_exceptions) || !defined(__cpp_rtti)
#error "Boost.Interprocess needs exceptions and RTTI: compile this file with -fexceptions -frtti"
#endif

#include <boost/interprocess/managed_mapped_file.hpp>
#include <cstddef>
#include <exception>
#include <farheap/heap.hpp>
#include <farheap/type_name.hpp>
#include <memory>
#include <new>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace farheap {

class InterprocessFile {
 public:
  using Segment = boost::interprocess::managed_mapped_file;

  // Requires: nobody writes to it meanwhile; Boost keeps no lock that would tell.
  [[nodiscard]] static Result<InterprocessFile> open(const std::string& file) {
    try {
      // Not open_read_only: to find an object, Boost takes a lock that lies in the file.
      return InterprocessFile(file, Segment(boost::interprocess::open_copy_on_write, file.c_str()));
    } catch (const boost::interprocess::interprocess_exception& error) {
      return fail(
          error.get_error_code() == boost::interprocess::not_found_error ? ErrorCode::kNotFound : ErrorCode::kCorrupt,
          "cannot open the file of Boost.Interprocess", file, error.what());
    }
  }

  // Of its named objects.
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (auto at = segment_.named_begin(); at != segment_.named_end(); ++at) {
      found.emplace_back(at->name(), at->name_length());
    }
    return found;
  }

  // An object or array of T with that name, as the same in the heap.
  template <class T>
  [[nodiscard]] Result<T*> copy(const std::string& name, Heap& heap) {
    static_assert(std::is_trivially_copyable_v<T>, "say how it is made: copy<From, To>(name, heap, make)");
    return copy<T, T>(name, heap, [](const T& from) { return from; });
  }
  // make(const From&) returns a To that takes its memory from the heap's allocator. kNotFound if the file has no such
  // name, kConflict if the heap has it already. What `make` throws passes through, and nothing is left.
  // Requires: From is the type it was constructed with.
  template <class From, class To, class Make>
  [[nodiscard]] Result<To*> copy(const std::string& name, Heap& heap, const Make& make) {
    const auto [from, length] = segment_.find<From>(name.c_str());
    if (from == nullptr) return fail(ErrorCode::kNotFound, kWhat, file_, "it has no object '" + name + "'");
    void* const memory = heap.allocate(length * sizeof(To), alignof(To));
    if (memory == nullptr) {
      if (!heap.is_read_only()) return fail(ErrorCode::kNoSpace, kWhat, name, "the heap is full");
      return fail(ErrorCode::kInvalidArgument, kWhat, name, heap.uri() + " was opened for reading",
                  "open it with Heap::open()");
    }
    To* const first = static_cast<To*>(memory);
    std::size_t made = 0;
    bool entered = false;
    try {
      for (; made < length; ++made) ::new (static_cast<void*>(first + made)) To(make(from[made]));
      entered = heap.add_entry({.kind = ObjectKind::kNamed,
                                .name = name,
                                .type = detail::type_name<To>(),
                                .length = length,
                                .element_bytes = sizeof(To),
                                .address = first});
    } catch (...) {
      std::destroy_n(first, made);
      heap.deallocate(memory);
      throw;
    }
    if (entered) return first;
    std::destroy_n(first, made);
    heap.deallocate(memory);
    return fail(ErrorCode::kConflict, kWhat, name, "the heap has an object of that name");
  }

  // For all else that Boost can do with it. What is changed there is not in the file.
  [[nodiscard]] Segment& segment() noexcept { return segment_; }

 private:
  static constexpr char kWhat[] = "cannot copy an object";

  InterprocessFile(std::string file, Segment segment) : file_(std::move(file)), segment_(std::move(segment)) {}

  std::string file_;
  Segment segment_;
};

}  // namespace farheap
