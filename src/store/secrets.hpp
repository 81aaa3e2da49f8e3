// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Who an engine is to say it is: the user and the password of a store's URI, or where the URI says they are.
//
//   redis://user:secret@host        in the URI itself, with %2F for a '/' and so on (RFC 3986)
//   ...?password_env=NAME           in a variable of the environment
//   ...?password_file=PATH          in a file that only its owner may use; its last line end does not count
//   option store_password_file      the same, for URIs that name none
//
// The first of these counts. No message names a password; base/without_secrets.hpp is for what shows a URI.
//
// Thread-safety: the environment must not be changed meanwhile.
#pragma once

#include <farheap/store.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/secret.hpp"
#include "base/without_secrets.hpp"
#include "store/uri.hpp"

namespace farheap::store {

using base::without_secrets;

struct Login {
  std::string user;       // empty: the engine's own
  base::Secret password;  // empty: none
};

// `place` is an engine's, as open_...() gets it. kPermission, kNotFound for the file; kNotFound for a variable that is
// not set; kInvalidArgument for a '%' that is no escape, and for blanks in the user's name.
[[nodiscard]] Result<Login> find_login(std::string_view place, const Parameters& parameters,
                                       const StoreOptions& options);
// "//user:secret@host:6379/7": "//host:6379/7".
[[nodiscard]] std::string place_without_login(std::string_view place);

// The URI with what password_env= names in its place, for a process that may find another environment later.
[[nodiscard]] Result<std::string> with_login_inside(std::string_view uri);
// The variables that password_env= names in it.
[[nodiscard]] std::vector<std::string> password_variables(std::string_view uri);
// The URI with the whole path of what password_file=, ca_file=, cert_file= and key_file= name.
[[nodiscard]] std::string with_whole_paths(std::string_view uri, const std::string& folder);

}  // namespace farheap::store
