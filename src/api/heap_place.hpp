// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where a kept heap lies: in files of this machine, or in a store on a server.
//
// Thread-safety: plain values.
#pragma once

#include <farheap/result.hpp>
#include <farheap/store.hpp>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace farheap::api {

class HeapLock;

struct HeapPlace {
  std::string uri;                  // of the store; symbolic links to its file are followed
  std::string snapshot;             // empty: the newest version
  std::string file;                 // that a store of this kind keeps its blocks in; empty: it is on a server
  std::vector<std::string> others;  // the store's other files
  std::string locked;               // the file without symbolic links: whatever its name, it has one lock

  // kInvalidArgument for stores in which no heap can live.
  [[nodiscard]] static Result<HeapPlace> parse(std::string_view uri);
  [[nodiscard]] bool is_on_server() const { return file.empty(); }
  // In file:, with decorators or without.
  [[nodiscard]] bool is_file_store() const { return !others.empty() && others.front() == file + ".versions"; }
  [[nodiscard]] Result<bool> is_there() const;
  // Of a heap that is in a file: nothing is in that.
  [[nodiscard]] bool is_empty_file() const;
  // Nothing if it is; kNotFound, in words, if not, and kCorrupt if the table of its blocks is left alone.
  [[nodiscard]] Status check_is_there() const;
  // Before anything is made beside it: kNotFound, too, for a file with nothing in it, kInvalidArgument for what is no
  // store of Farheap, kCorrupt for a heap whose table of blocks is lost; kPermission where it is to be written and
  // belongs to somebody else.
  enum class Use { kRead, kWrite };
  [[nodiscard]] Status check_is_heap(Use use) const;
  // Through the lock, which outlives it.
  [[nodiscard]] Result<std::unique_ptr<Store>> open(HeapLock& lock) const;
  // The same kind of store in another file.
  [[nodiscard]] std::string uri_with(const std::string& other_file) const;
  [[nodiscard]] std::string lock_file() const { return locked + ".lock"; }

  // Its files, which were just created, may be used by those whom `mode` lets, less the process's umask. Of file: only.
  [[nodiscard]] Status set_mode(unsigned mode) const;
  // kPermission, in words, if its file may be read and not written.
  [[nodiscard]] Status check_is_writable() const;

  // A full disk, told of what is done with the heap (`what`), what of it is whole (`stands`), and what to do again.
  [[nodiscard]] Error no_room(Error error, const char* what, std::string_view stands, std::string_view again) const;

  // Removes the store. Whoever is killed in the middle leaves a removal that was begun: the next one who creates or
  // removes a heap there ends it. Requires: the lock is held alone; the store is closed.
  [[nodiscard]] Status remove(HeapLock& lock) const;
  [[nodiscard]] bool is_half_removed() const;

 private:
  [[nodiscard]] Status find_files(std::string_view engine);
  [[nodiscard]] Status why_no_store() const;
  [[nodiscard]] Status remove_from_server(HeapLock& lock) const;
  [[nodiscard]] std::string leaving_file() const { return file + ".removed"; }
};

}  // namespace farheap::api
