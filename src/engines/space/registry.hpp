// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The stores of a server, as its engine keeps them. What is done with them is written once, above this: opening one
// (space.hpp), and looking for, listing and removing them from outside (keeper.hpp).
//
// A store has a name, "NAME". Below it are scratch stores, each with an id by chance and a beat that says that its
// program lives.
//
// Thread-safety: any thread.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "engines/grpc/server_client.hpp"
#include "engines/space/about.hpp"

namespace farheap::engines {

inline constexpr std::string_view kUsualName = "farheap";  // of a store whose URI names none

struct StoreKey {
  std::string name;
  std::string id = {};  // of a scratch store; empty: the kept one
};
// What stands where a store's description is.
struct Found {
  std::string about;        // about_in() says what it means
  std::uint64_t epoch = 0;  // only grows; 0 from engines that have none
};
// Nothing: none is there, or it is not one of Farheap's.
[[nodiscard]] inline std::optional<About> about_in(const std::optional<Found>& found) {
  return found ? about_in(std::string_view(found->about)) : std::nullopt;
}
struct Scratch {
  std::string id;
  std::uint64_t block_bytes = 0;  // 0: unknown
  std::uint64_t beat = 0;         // as the engine has it
  bool is_stale = false;          // its program seems to be gone
};

// So long after the last one a program is taken for gone.
inline constexpr std::chrono::minutes kStaleAfter{10};
inline constexpr std::chrono::seconds kBeatEvery{20};

class Registry {
 public:
  virtual ~Registry() = default;
  [[nodiscard]] virtual ServerClient& server() = 0;
  [[nodiscard]] virtual const std::string& own_name() const = 0;  // as in the URI; empty where that names none
  [[nodiscard]] std::string store_name() const { return own_name().empty() ? std::string(kUsualName) : own_name(); }
  [[nodiscard]] virtual std::string shown_as(const std::string& name) const = 0;  // the URI of another one
  [[nodiscard]] virtual std::string_view form() const = 0;                        // "etcd://HOST:2379/NAME"

  // NOT_FOUND, from here as from the others: not even the table or database is there.
  [[nodiscard]] virtual Answer<std::optional<Found>> find(const StoreKey& key) = 0;
  // In words, one thing below a name that has no description: "the row 'n/b/users'". Nothing: it is free.
  [[nodiscard]] virtual Answer<std::optional<std::string>> foreign(const std::string& name) = 0;
  [[nodiscard]] virtual Answer<std::vector<std::string>> names() = 0;
  [[nodiscard]] virtual Answer<std::vector<Scratch>> scratch_below(const std::string& name) = 0;
  // With all that it holds; what says that it is there goes last, so that what was interrupted can be done again.
  [[nodiscard]] virtual grpc::Status remove(const std::string& name) = 0;
  // The same, of a program that was killed. Nothing happens if its beat is another one by now.
  [[nodiscard]] virtual grpc::Status collect(const std::string& name, const Scratch& scratch) = 0;
};

}  // namespace farheap::engines
