// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// bigtable: answers that the emulator never gives, from a server in this process: refusals, and cells in pieces.
#include <atomic>
#include <cstdlib>

#include "engines/bigtable/client.hpp"
#include "engines/space/version_clock.hpp"
#include "tests/engines/engine_fixture.hpp"

namespace farheap::test {
namespace {

using testing::HasSubstr;
namespace bt = engines::bigtable;

// Refuses everything in the same way, `times` times or for ever.
class RefusingService final : public bt::api::Bigtable::Service {
 public:
  RefusingService(grpc::Status status, int times) : status_(std::move(status)), left_(times) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
    setenv("BIGTABLE_EMULATOR_HOST", ("127.0.0.1:" + std::to_string(port_)).c_str(), 1);
  }
  ~RefusingService() override { server_->Shutdown(); }

  grpc::Status ReadRows(grpc::ServerContext* /*context*/, const bt::api::ReadRowsRequest* /*request*/,
                        grpc::ServerWriter<bt::api::ReadRowsResponse>* writer) override {
    if (left_-- > 0) return status_;
    writer->Write(bt::api::ReadRowsResponse());
    return grpc::Status::OK;
  }

 private:
  grpc::Status status_;
  std::atomic<int> left_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

// Answers with one row that is many messages of some bytes each.
class FloodingService final : public bt::api::Bigtable::Service {
 public:
  FloodingService(std::size_t bytes, int messages) : bytes_(bytes), messages_(messages) {
    grpc::ServerBuilder builder;
    builder.SetMaxSendMessageSize(-1);
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
    setenv("BIGTABLE_EMULATOR_HOST", ("127.0.0.1:" + std::to_string(port_)).c_str(), 1);
  }
  ~FloodingService() override { server_->Shutdown(); }

  grpc::Status ReadRows(grpc::ServerContext* /*context*/, const bt::api::ReadRowsRequest* /*request*/,
                        grpc::ServerWriter<bt::api::ReadRowsResponse>* writer) override {
    bt::api::ReadRowsResponse response;
    auto& chunk = *response.add_chunks();
    chunk.set_row_key("k");
    chunk.mutable_qualifier()->set_value("about");
    chunk.set_value(std::string(bytes_, 'x'));
    chunk.set_value_size(1 << 30);
    for (int i = 0; i < messages_ && writer->Write(response); ++i) {
    }
    return grpc::Status::OK;
  }

 private:
  std::size_t bytes_;
  int messages_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

TEST(BigtableAnswers, AnAnswerThatIsLongerThanWhatWasAskedForIsRefused) {
  {
    const FloodingService in_pieces(1 << 20, 100);
    const auto opened = open_here(engines::open_bigtable, "bigtable://p/i/t?patience_s=0&timeout_ms=60000");
    EXPECT_THAT(words_of(opened), HasSubstr("longer than what was asked for"));
  }
  const FloodingService in_one(20 << 20, 1);
  const auto opened = open_here(engines::open_bigtable, "bigtable://p/i/t?patience_s=0&timeout_ms=60000");
  EXPECT_THAT(words_of(opened), HasSubstr("larger than max"));
}

constexpr int kAlways = 1 << 30;

Error refusal(grpc::StatusCode code) {
  const RefusingService service({code, "by order"}, kAlways);
  const auto opened = open_here(engines::open_bigtable, "bigtable://p/i/t?patience_s=0");
  EXPECT_FALSE(opened);
  return opened ? Error{} : opened.error();
}

TEST(BigtableAnswers, RefusalsSayWhatToDo) {
  const auto wrong = refusal(grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(wrong.code, ErrorCode::kPermission);
  EXPECT_THAT(wrong.message(), HasSubstr("does not accept these credentials (by order)"));
  EXPECT_EQ(refusal(grpc::StatusCode::PERMISSION_DENIED).code, ErrorCode::kPermission);
  EXPECT_EQ(refusal(grpc::StatusCode::RESOURCE_EXHAUSTED).code, ErrorCode::kNoSpace);
  EXPECT_EQ(refusal(grpc::StatusCode::UNAVAILABLE).code, ErrorCode::kUnavailable);
  EXPECT_EQ(refusal(grpc::StatusCode::UNIMPLEMENTED).code, ErrorCode::kIo);
}

TEST(BigtableAnswers, WhatIsRefusedForTheTimeBeingIsAskedAgain) {
  const RefusingService service({grpc::StatusCode::RESOURCE_EXHAUSTED, "later"}, 3);
  const auto parsed = store::parse_uri("bigtable://p/i/t", store::vocabulary());
  const auto client = bt::Client::open(parsed->place, store::Parameters(*parsed, "bigtable"), {});
  const auto rows = (*client)->read(bt::row_of("any"));
  EXPECT_TRUE(rows && rows->empty());
}

TEST(BigtableAnswers, WhatWasNeverSentIsToldFromWhatMayHaveHappened) {
  using engines::Reply, engines::reply_of, grpc::StatusCode;
  EXPECT_EQ(reply_of({StatusCode::UNAVAILABLE, "failed to connect to all addresses; last error: refused"}),
            Reply::kNotSent);
  EXPECT_EQ(reply_of({StatusCode::UNAVAILABLE, "Socket closed"}), Reply::kUnclear);
  EXPECT_EQ(reply_of({StatusCode::DEADLINE_EXCEEDED, ""}), Reply::kUnclear);
  EXPECT_EQ(reply_of({StatusCode::RESOURCE_EXHAUSTED, "quota"}), Reply::kNotNow);
  EXPECT_EQ(reply_of({StatusCode::RESOURCE_EXHAUSTED, "Received message larger than max (9 vs. 8)"}), Reply::kRefused);
  EXPECT_EQ(reply_of({StatusCode::ABORTED, ""}), Reply::kNotNow);
  EXPECT_EQ(reply_of({StatusCode::PERMISSION_DENIED, ""}), Reply::kRefused);
  EXPECT_EQ(reply_of(grpc::Status()), Reply::kDone);
}

TEST(BigtableAnswers, CellsInPiecesAndRowsThatComeAgain) {
  bt::RowsTaker taker;
  bt::ChunkReader reader(taker);
  bt::api::ReadRowsResponse response;
  const auto add = [&](const char* key, const char* column, const std::string& value, int more) -> auto& {
    auto& chunk = *response.add_chunks();
    if (*key != '\0') chunk.set_row_key(key);
    if (*column != '\0') chunk.mutable_qualifier()->set_value(column);
    chunk.set_timestamp_micros(5000);
    chunk.set_value(value);
    chunk.set_value_size(more);
    return chunk;
  };
  add("one", "p", "he", 5);
  add("", "", "llo", 0).set_commit_row(true);
  add("two", "p", "half a", 10);
  response.add_chunks()->set_reset_row(true);
  reader.take(response);
  response.Clear();
  add("two", "n", "whole", 0);
  add("", "p", "", 0).set_commit_row(true);
  reader.take(response);
  ASSERT_EQ(taker.rows().size(), 2u);
  EXPECT_EQ(taker.rows()[0].find("p")->value, "hello");
  EXPECT_EQ(taker.rows()[1].key, "two");
  EXPECT_EQ(taker.rows()[1].find("n")->value, "whole");
  EXPECT_EQ(taker.rows()[1].find("p")->value, "");
}

TEST(BigtableAnswers, KeysAreThereAndBack) {
  const bt::Keys keys{"n/"};
  for (const std::uint64_t number : {std::uint64_t{0}, std::uint64_t{1} << 50, ~std::uint64_t{0}}) {
    EXPECT_EQ(keys.number_of(keys.block(number)), number);
    EXPECT_EQ(bt::number_in(bt::number_bytes(number)), number);
  }
  EXPECT_LT(keys.block(9), keys.block(10));
  for (const auto* key : {"n/b/12", "n/b/000000000000000g", "m/b/0000000000000001", "n/b/00000000000000001"}) {
    EXPECT_FALSE(keys.number_of(key)) << key;
  }
  EXPECT_EQ(bt::behind("n/"), "n0");
}

TEST(VersionClock, IsAlwaysAheadOfWhatItMadeAndSaw) {
  engines::VersionClock clock;
  const auto first = clock.first_of(1000);
  const auto next = clock.next();
  EXPECT_GE(engines::VersionClock::microseconds_of(next), engines::VersionClock::microseconds_of(first) + 1000);
  const Version far = (clock.now() + 3600ull * 1000 * 1000) << engines::VersionClock::kChanceBits;
  clock.has_seen(far);
  EXPECT_GT(clock.next(), far);
  EXPECT_GT(bt::cell_time_of(far), 0);
  EXPECT_EQ(bt::cell_time_of(far) % 1000, 0);
}

}  // namespace
}  // namespace farheap::test
