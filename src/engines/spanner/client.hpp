// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One database of Spanner, asked with patience: sessions, which the server may forget and which are then made again,
// strong reads, and transactions that are carried out once whatever gets lost.
//
// Thread-safety: any thread.
#pragma once

#include <google/spanner/v1/spanner.grpc.pb.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.hpp"
#include "engines/grpc/google_place.hpp"
#include "engines/grpc/server_client.hpp"
#include "engines/spanner/rows.hpp"

namespace farheap::engines::spanner {

// A session serves one request at a time.
class Sessions {
 public:
  Sessions(api::Spanner::Stub& stub, std::string database) : stub_(stub), database_(std::move(database)) {}
  ~Sessions();

  // Given back when it goes.
  class Lease {
   public:
    Lease(Sessions& sessions, std::string name, std::uint64_t age)
        : sessions_(&sessions), name_(std::move(name)), age_(age) {}
    Lease(Lease&& other) noexcept : sessions_(other.sessions_), name_(std::move(other.name_)), age_(other.age_) {
      other.sessions_ = nullptr;
    }
    Lease& operator=(Lease&&) = delete;
    ~Lease() {
      if (sessions_ != nullptr) sessions_->give_back(std::move(name_), age_);
    }
    [[nodiscard]] const std::string& name() const { return name_; }

   private:
    Sessions* sessions_;
    std::string name_;
    std::uint64_t age_;
  };
  [[nodiscard]] Answer<Lease> take(std::chrono::system_clock::time_point deadline);
  // The server does not know them any more.
  void forget_all();

 private:
  void give_back(std::string name, std::uint64_t age);
  api::Spanner::Stub& stub_;
  std::string database_;
  base::Mutex mutex_;
  std::vector<std::string> free_ FARHEAP_GUARDED_BY(mutex_);
  std::uint64_t age_ FARHEAP_GUARDED_BY(mutex_) = 0;  // counts forget_all()
};

// A read-write transaction that is under way.
class Transaction {
 public:
  Transaction(api::Spanner::Stub& stub, std::string session, std::string id,
              std::chrono::system_clock::time_point deadline)
      : stub_(stub), session_(std::move(session)), id_(std::move(id)), deadline_(deadline) {}
  [[nodiscard]] Answer<std::vector<Row>> read(api::ReadRequest request);
  // To be done together, if all goes well.
  google::protobuf::RepeatedPtrField<api::Mutation> mutations;

 private:
  api::Spanner::Stub& stub_;
  std::string session_;
  std::string id_;
  std::chrono::system_clock::time_point deadline_;
};

class Client final : public ServerClient {
 public:
  [[nodiscard]] static Result<std::unique_ptr<Client>> open(const std::string& place, const store::Parameters&,
                                                            const StoreOptions&);
  Client(GooglePlace place, ServerPatience patience, const GoogleChannel& channel);

  [[nodiscard]] const GooglePlace& place() const { return place_; }
  [[nodiscard]] std::string database_path() const { return place_.instance_path() + "/databases/" + place_.table; }
  [[nodiscard]] api::Spanner::Stub& stub() { return *stub_; }
  [[nodiscard]] Sessions& sessions() { return *sessions_; }
  // What a lost session makes of an attempt: it did not happen, and is worth another one.
  [[nodiscard]] grpc::Status noticed(grpc::Status status);

  // ---- each asks again where that does no harm

  // Whole rows, few of them, as they are now.
  [[nodiscard]] Answer<std::vector<Row>> read(api::ReadRequest request);
  [[nodiscard]] Answer<std::vector<Row>> query(api::ExecuteSqlRequest request);
  // `fill` reads, and says what is to be done. It is called again when the transaction has to be done again; then it
  // may find that an earlier one was carried out, though its answer was lost. kUnclear only when patience is over.
  using Fill = std::function<grpc::Status(Transaction&)>;
  [[nodiscard]] grpc::Status transact(const Fill& fill);

 private:
  template <class Ask>
  [[nodiscard]] Answer<std::vector<Row>> rows_from(Ask ask_once);
  [[nodiscard]] grpc::Status transact_now(const Fill& fill);
  [[nodiscard]] grpc::Status try_transaction(const Fill& fill, Attempts& attempts);

  GooglePlace place_;
  base::Mutex turn_;  // an emulator carries out one transaction at a time, and refuses the others
  std::unique_ptr<api::Spanner::Stub> stub_;
  std::unique_ptr<Sessions> sessions_;
};

// Makes what is missing: the database and its tables; in an emulator the instance, too.
[[nodiscard]] Status make_database(Client& client);

}  // namespace farheap::engines::spanner
