// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Files that are opened by a name. In a folder that others may write to (/tmp, a group's) the name may lead to a file
// of somebody else's, or be one that others change behind our back: a symbolic link, a second name of the same file (a
// hard link), a file that was made before us. What is opened here is looked at through its descriptor, so that nobody
// can put another one there in between. The folders on the way are not looked at: who may rename them decides what a
// name means.
//
// Thread-safety: any thread.
#pragma once

#include <sys/types.h>

#include <farheap/result.hpp>
#include <string>

namespace farheap::os {

// The file that a name which a user has typed leads to: `path`, unless its last part is a symbolic link. Links are
// followed if they are this user's, root's, or belong to the owner of what they lead to; the others are kPermission,
// with the file's own name as the remedy. What is not there yet is no error. `what` fails, for messages: "cannot open
// the heap".
[[nodiscard]] Result<std::string> follow_links(const std::string& path, const char* what);

struct NamedFile {
  int file = -1;
  bool is_new = false;
};

// To be read and written, and trusted: a heap's, a store's. Made if it is not there and `mode` is not 0; then it has
// that mode, whatever the umask. kPermission unless it is a plain file of this user's or root's with one name that not
// everybody may write to. A symbolic link is never followed.
[[nodiscard]] Result<NamedFile> open_own_file(const std::string& path, mode_t mode, const char* what);

// To be read, whoever's it is: a plain file that not everybody may write to. A symbolic link is never followed.
[[nodiscard]] Result<int> open_file_to_read(const std::string& path, const char* what);

// What open_own_file() asks of a file, for one that a library has opened.
[[nodiscard]] Status check_own_file(int file, const std::string& path, const char* what);

// What decides whom to trust: this user's or root's, and nobody else may write to it.
[[nodiscard]] Status check_trusted_file(int file, const std::string& path, const char* what);

// For what a user wishes to have written: a trace, a page. A plain file as open_own_file() takes it, emptied, or a new
// one; what is none (a terminal, a pipe, /dev/null) is written to as it is. To write only.
[[nodiscard]] Result<int> open_output_file(const std::string& path, mode_t mode, const char* what);

// A new file in the place of whatever had the name, which keeps its contents. To write only.
[[nodiscard]] Result<int> replace_file(const std::string& path, mode_t mode, const char* what);

// The names in the folder of `path` survive a power loss from now on: new ones, changed ones, those that are gone.
[[nodiscard]] Status make_names_durable(const std::string& path, const char* what);

}  // namespace farheap::os
