// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A store's entities in a Datastore (docs/formats.md), and what makes sure of two things:
//
// - It is still the store that was opened: every call looks at its description as well.
// - No request is carried out late: whatever is written is written in a transaction, and one whose commit got no answer
//   is closed before anything else is done: then it has happened, or never will. What must not happen twice writes a
//   stamp into a slot in the same transaction, so that it can be told.
//
// Thread-safety: any thread.
#pragma once

#include <atomic>
#include <farheap/store.hpp>
#include <functional>
#include <memory>
#include <vector>

#include "engines/datastore/client.hpp"
#include "engines/datastore/registry.hpp"
#include "engines/space/slots.hpp"
#include "engines/space/space.hpp"

namespace farheap::engines::datastore {

// The mutation that writes an entity only over what was found (nullptr: nothing).
[[nodiscard]] api::Entity& over(const api::EntityResult* found, api::Mutation& mutation);

// Counters may have any name.
[[nodiscard]] std::string escaped(std::string_view name);
[[nodiscard]] std::string unescaped(std::string_view name);

class Space final : public ServerSpace {
 public:
  [[nodiscard]] static Result<std::unique_ptr<Space>> open(std::unique_ptr<Client> client, const StoreOptions& options);
  ~Space() override;

  [[nodiscard]] Client& client() { return *client_; }
  // Of its entities: "NAME/" or "NAME/s/ID/".
  [[nodiscard]] std::string prefix() const { return store_ + "/"; }
  [[nodiscard]] Version next_version();

  // ---- requests that look at the description, too

  // With the key of the description, which answers come back by believe_answer().
  [[nodiscard]] api::LookupRequest look() const;
  // False if the description is not the one that was there: then the store is lost. Takes it out of the answer.
  [[nodiscard]] bool believe_answer(api::LookupResponse& response);

  // Carries out commits of some mutations each, each of which may be done twice without harm, several in flight.
  struct Writes {
    grpc::Status status;       // why some are not done
    bool was_unclear = false;  // one that is not done may have happened
    std::vector<bool> done;
  };
  [[nodiscard]] Writes write(std::vector<std::vector<api::Mutation>> commits);

  // Once and only once: `decide` is shown what is there under `keys` and says what to write over it (over()), or
  // nothing. Whether it was done; UNKNOWN if that cannot be told.
  using Decide = std::function<std::vector<api::Mutation>(const api::LookupResponse&)>;
  [[nodiscard]] Answer<bool> once(const std::vector<api::Key>& keys, const Decide& decide);

 private:
  Space(std::unique_ptr<Client> client, std::unique_ptr<Stores> stores, const StoreOptions& options);
  [[nodiscard]] grpc::Status make(const About& about) override;
  void beat() override;
  [[nodiscard]] bool says_all_is_lost(const grpc::Status&) const override { return false; }
  [[nodiscard]] api::Entity description(const About& about) const;
  [[nodiscard]] grpc::Status commit(const std::string& transaction, std::vector<api::Mutation> mutations,
                                    Attempts& attempts);

  std::unique_ptr<Client> client_;
  std::unique_ptr<Stores> stores_;
  std::string store_;  // the name of its description
  std::string handle_;
  std::atomic<Version> version_;
  StampSlots slots_;
};

}  // namespace farheap::engines::datastore
