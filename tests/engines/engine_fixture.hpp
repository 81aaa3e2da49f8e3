// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Engines in this process, over servers that are started for the test.
//
// Thread-safety: plain values.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "engines/engine_table.hpp"
#include "store/uri.hpp"
#include "tests/store/store_fixture.hpp"

namespace farheap::test {

// The engine's own opener: no process in between.
inline store::StoreResult open_here(decltype(engines::Engine::open) open, const std::string& uri,
                                    const StoreOptions& options = {.lifetime = Lifetime::kKeep}) {
  const auto parsed = store::parse_uri(uri, store::vocabulary());
  if (!parsed) return fail(parsed.error());
  return open(parsed->place, store::Parameters(*parsed, parsed->engine), options);
}

template <class Ask>
auto ask_keeper(Ask ask, const std::string& uri) {
  const auto parsed = store::parse_uri(uri, store::vocabulary());
  EXPECT_TRUE(parsed) << uri;
  return ask(parsed->place, store::Parameters(*parsed, parsed->engine), StoreOptions{});
}

// "a table that is not there" and the like, out of a Result or a Status.
template <class T>
std::string words_of(const Result<T>& result) {
  return result ? "it went well" : result.error().message();
}

}  // namespace farheap::test
