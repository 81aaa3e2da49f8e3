// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Stores on servers from outside: whether one is there, which there are, and removing one.
//
// Thread-safety: any thread.
#pragma once

#include <farheap/store.hpp>
#include <string>
#include <vector>

#include "engines/space/registry.hpp"
#include "store/kinds.hpp"

namespace farheap::engines {

[[nodiscard]] Result<bool> is_there(Registry& registry);
[[nodiscard]] Result<std::vector<StoreListing>> list(Registry& registry);
[[nodiscard]] Status remove(Registry& registry);

// That of an engine: `Client::open(place, parameters, options)` opens what a `Stores`, a Registry, is made of.
template <class Client, class Stores, auto ask>
[[nodiscard]] auto ask_stores(const std::string& place, const store::Parameters& parameters,
                              const StoreOptions& options) -> decltype(ask(std::declval<Registry&>())) {
  auto client = Client::open(place, parameters, options);
  if (!client) return fail(std::move(client.error()));
  Stores stores(**client);
  return ask(stores);
}
template <class Client, class Stores>
[[nodiscard]] constexpr store::Keeper keeper_of() {
  return {.is_there = ask_stores<Client, Stores, engines::is_there>,
          .list = ask_stores<Client, Stores, engines::list>,
          .remove = ask_stores<Client, Stores, engines::remove>};
}

}  // namespace farheap::engines
