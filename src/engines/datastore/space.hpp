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
#include <condition_variable>
#include <farheap/store.hpp>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "engines/datastore/client.hpp"

namespace farheap::engines::datastore {

struct About {
  std::uint64_t format = 0;
  std::uint64_t block_bytes = 0;
  std::string identity;
};
[[nodiscard]] std::optional<About> about_in(std::string_view text);
inline constexpr char kAbout[] = "about";  // properties of a store's description
inline constexpr char kBeat[] = "beat";
inline constexpr char kVersion[] = "v";  // of blocks and slots

// The mutation that writes an entity only over what was found (nullptr: nothing).
[[nodiscard]] api::Entity& over(const api::EntityResult* found, api::Mutation& mutation);

// Counters may have any name.
[[nodiscard]] std::string escaped(std::string_view name);

class Space {
 public:
  // Makes the store where it is missing.
  [[nodiscard]] static Result<std::unique_ptr<Space>> open(std::unique_ptr<Client> client, const StoreOptions& options);
  ~Space();

  [[nodiscard]] Client& client() { return *client_; }
  [[nodiscard]] bool is_kept() const { return kept_; }
  // Of its entities: "NAME/" or "NAME/s/ID/".
  [[nodiscard]] std::string prefix() const { return store_ + "/"; }
  [[nodiscard]] Version next_version();

  // ---- requests that look at the description, too

  // With the key of the description, which answers come back by believe().
  [[nodiscard]] api::LookupRequest look() const;
  // False if the description is not the one that was there: then the store is lost. Takes it out of the answer.
  [[nodiscard]] bool believe(api::LookupResponse& response);

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

  [[nodiscard]] bool is_lost() const { return is_lost_; }
  [[nodiscard]] Error lost_error() const;

 private:
  Space(std::unique_ptr<Client> client, const StoreOptions& options);
  [[nodiscard]] Status set_up();
  [[nodiscard]] Status check(const About& about) const;
  [[nodiscard]] Status refuse_foreign_entities();
  [[nodiscard]] api::Mutation description() const;
  [[nodiscard]] grpc::Status commit(const std::string& transaction, std::vector<api::Mutation> mutations,
                                    Attempts& attempts);
  void lost(std::string why);
  void keep_beating(const std::stop_token& stop);
  void collect();
  [[nodiscard]] std::size_t take_slot();
  void give_slot(std::size_t slot);

  std::unique_ptr<Client> client_;
  bool kept_;
  std::size_t block_bytes_;
  std::string store_;  // the name of its description
  std::string handle_;
  std::string identity_;
  std::atomic<Version> version_;
  std::mutex slots_mutex_;
  std::vector<std::size_t> free_slots_;
  std::size_t slots_ = 0;

  mutable std::mutex lost_mutex_;
  std::string lost_;
  std::atomic<bool> is_lost_{false};
  bool is_made_ = false;

  std::mutex beat_mutex_;
  std::condition_variable_any beat_now_;
  std::jthread beating_;
};

// Scratch stores below a name, and whether their programs seem to be gone.
struct Scratch {
  std::string store;
  std::uint64_t block_bytes = 0;
  bool is_stale = false;
};
[[nodiscard]] Answer<std::vector<Scratch>> scratch_stores(Client& client, const std::string& name);
// All entities of a store; what says that it is there goes last.
[[nodiscard]] grpc::Status remove_store(Client& client, const std::string& store);

}  // namespace farheap::engines::datastore
