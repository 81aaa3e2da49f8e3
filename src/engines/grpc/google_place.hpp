// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// "//PROJECT/INSTANCE/TABLE[/NAME]": where a store of Bigtable or Spanner is.
//
// Thread-safety: plain values.
#pragma once

#include <farheap/result.hpp>
#include <string>
#include <string_view>

namespace farheap::engines {

struct GooglePlace {
  std::string scheme;    // "bigtable"
  std::string project;   // "p"
  std::string instance;  // "i"
  std::string table;     // or database: "t"
  std::string name;      // of the store in it; empty where the URI names none

  [[nodiscard]] std::string instance_path() const { return "projects/" + project + "/instances/" + instance; }
  // As it was written: "bigtable://p/i/t".
  [[nodiscard]] std::string describe() const;
};

// kInvalidArgument, with the right form, if it is not of that form. `table_words` says what the third part is: "TABLE".
[[nodiscard]] Result<GooglePlace> google_place(std::string_view scheme, std::string_view place,
                                               std::string_view table_words);

}  // namespace farheap::engines
