// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A database of Datastore, asked with patience. All that is Farheap's is in the namespace `farheap` of it.
//
// Thread-safety: any thread.
#pragma once

#include <google/datastore/v1/datastore.grpc.pb.h>

#include <farheap/store.hpp>
#include <memory>
#include <string>
#include <vector>

#include "engines/grpc/server_client.hpp"

namespace farheap::engines::datastore {

namespace api = google::datastore::v1;

struct Place {
  std::string project;
  std::string name;  // of the store; empty where the URI names none
  [[nodiscard]] std::string describe() const { return "datastore://" + project + (name.empty() ? "" : "/" + name); }
};
// "//PROJECT[/NAME]"; kInvalidArgument, with the right form, if it is not of that form.
[[nodiscard]] Result<Place> datastore_place(std::string_view place);

// ---- entities

inline constexpr char kStoreKind[] = "FarheapStore";
inline constexpr char kBlockKind[] = "FarheapBlock";
inline constexpr char kCounterKind[] = "FarheapCounter";
inline constexpr char kSlotKind[] = "FarheapSlot";

// Properties are not indexed: nobody asks for them, and an indexed blob has at most 1500 bytes.
void set_text(api::Entity& entity, const char* property, std::string value);
void set_blob(api::Entity& entity, const char* property, std::string value);
void set_number(api::Entity& entity, const char* property, std::uint64_t value);
// Empty, or 0, if there is none of that type.
[[nodiscard]] const std::string& text_in(const api::Entity& entity, const char* property);
[[nodiscard]] const std::string& blob_in(const api::Entity& entity, const char* property);
[[nodiscard]] std::uint64_t number_in(const api::Entity& entity, const char* property);
[[nodiscard]] inline const std::string& name_of(const api::Key& key) { return key.path(0).name(); }

class Client final : public ServerClient {
 public:
  [[nodiscard]] static Result<std::unique_ptr<Client>> open(const std::string& place, const store::Parameters&,
                                                            const StoreOptions&);

  [[nodiscard]] const Place& place() const { return place_; }
  [[nodiscard]] api::Datastore::Stub& stub() { return *stub_; }

  void set_key(api::Key& key, const char* kind, const std::string& name) const;
  // Entities of a kind whose names are in [from, to), in order.
  [[nodiscard]] api::Query names_between(const char* kind, const std::string& from, const std::string& to) const;

  // ---- each asks again where that does no harm

  // `keys_only`: without their properties.
  [[nodiscard]] Answer<std::vector<api::Entity>> query(api::Query query, bool keys_only, int limit);
  [[nodiscard]] Answer<api::LookupResponse> lookup(const api::LookupRequest& request);
  [[nodiscard]] Answer<std::unique_ptr<api::Entity>> find(const char* kind, const std::string& name);
  // Requires: doing it twice, and late, does no harm.
  [[nodiscard]] grpc::Status mutate(const std::vector<api::Mutation>& mutations);
  // All entities of a kind whose names are in [from, to).
  [[nodiscard]] grpc::Status remove_between(const char* kind, const std::string& from, const std::string& to);
  // (The emulator never lets go of what a transaction has locked that begins with a lookup, as Datastore allows.)
  [[nodiscard]] api::BeginTransactionRequest begin_request() const;
  [[nodiscard]] Answer<std::string> begin();
  // Afterwards the transaction has been committed, or never will be.
  [[nodiscard]] grpc::Status close(const std::string& transaction, Attempts& attempts);

 private:
  Client(Place place, ServerPatience patience, const GoogleChannel& channel)
      : ServerClient(place.describe(), patience, channel.is_emulator),
        place_(std::move(place)),
        stub_(api::Datastore::NewStub(channel.channel)) {}

  Place place_;
  std::unique_ptr<api::Datastore::Stub> stub_;
};

}  // namespace farheap::engines::datastore
