// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Messages and slots of farheap-engines, with what is not of their form too. The server runs in a thread of the test.
#include "store/beside/protocol.hpp"

#include <sys/mman.h>
#include <sys/socket.h>

#include <cstring>
#include <filesystem>
#include <random>
#include <thread>

#include "engines/process/server.hpp"
#include "engines/process/slot_answer.hpp"
#include "store/beside/connection.hpp"
#include "tests/store/store_fixture.hpp"

namespace farheap::test {
namespace {

using namespace store::beside;

constexpr engines::Engine kEngines[] = {{"mem", store::open_mem}};

// A server and the client's end.
class InThread {
 public:
  InThread() {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) throw std::runtime_error("no sockets");
    client_ = ends[0];
    server_ = std::thread([end = ends[1]] { engines::serve(end, kEngines); });
  }
  ~InThread() {
    if (client_ >= 0) close(client_);
    server_.join();
  }
  InThread(const InThread&) = delete;
  InThread& operator=(const InThread&) = delete;
  [[nodiscard]] int client() const { return client_; }
  int take_client() { return std::exchange(client_, -1); }

 private:
  int client_;
  std::thread server_;
};

// An engines' end that goes on for ever, and passes a descriptor each time.
TEST(BesideMessages, ListingsWithoutEndAreRefused) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
  std::thread engines([end = ends[1]] {
    (void)receive_message(end);
    const auto listing = encode(StoreListing{.uri = std::string(30'000, 'u'), .block_bytes = 4096});
    unsigned sent = 0;
    while (sent < 3000 && send_message(end, listing, 0)) ++sent;
    (void)send_message(end, Writer(Message::kDone).bytes());
    close(end);
  });
  {
    Connection connection(ends[0]);
    const auto before = std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
    const auto listed = connection.ask_for_listings(Writer(Message::kList).bytes());
    ASSERT_FALSE(listed);
    EXPECT_EQ(listed.error().code, ErrorCode::kIo);
    EXPECT_LE(std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}), before);
  }
  engines.join();
}

TEST(BesideMessages, ComeOutAsTheyWentIn) {
  const Opening opening{"bigtable",
                        "//p/i/t",
                        "timeout_ms=7&patience_s=1",
                        {.block_bytes = 8192, .lifetime = Lifetime::kKeep, .password_file = "/x"}};
  Reader reader(std::string_view(encode(Message::kOpen, opening)));
  const std::string bytes = encode(Message::kOpen, opening);
  Reader again(bytes);
  EXPECT_EQ(static_cast<Message>(again.number()), Message::kOpen);
  const auto read = read_opening(again);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->scheme, "bigtable");
  EXPECT_EQ(read->place, "//p/i/t");
  EXPECT_EQ(read->parameters, "timeout_ms=7&patience_s=1");
  EXPECT_EQ(read->options.block_bytes, 8192u);
  EXPECT_EQ(read->options.lifetime, Lifetime::kKeep);
  EXPECT_EQ(read->options.password_file, "/x");

  const std::string text = encode(Error{ErrorCode::kConflict, "a", "b", std::string(5000, 'c'), "d"});
  EXPECT_LE(text.size(), kTextBytes);
  Reader failed(text);
  EXPECT_EQ(static_cast<Message>(failed.number()), Message::kFailed);
  const auto error = read_error(failed);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, ErrorCode::kConflict);
  EXPECT_EQ(error->what, "a");
  EXPECT_EQ(error->remedy, "d");
}

TEST(BesideMessages, EveryShorterOneIsRefused) {
  const std::string whole = encode(Message::kOpen, Opening{"mem", "", "a=b", {}});
  for (std::size_t bytes = 8; bytes < whole.size(); ++bytes) {
    const std::string cut = whole.substr(0, bytes);
    Reader reader(cut);
    (void)reader.number();
    EXPECT_FALSE(read_opening(reader)) << bytes;
  }
  const std::string longer = whole + "x";
  Reader reader(longer);
  (void)reader.number();
  EXPECT_FALSE(read_opening(reader));
}

TEST(BesideServer, RefusesWhatIsNotOfItsFormAndServesOn) {
  const InThread server;
  std::mt19937_64 random(11);
  const std::string good = encode(Message::kOpen, Opening{"mem", "", "", {}});
  for (int i = 0; i < 2000; ++i) {
    std::string bytes = good;
    for (int changes = 1 + static_cast<int>(random() % 4); changes > 0; --changes) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    if (random() % 4 == 0) bytes.resize(1 + random() % bytes.size());
    // One that opens the store all the same does no harm; others follow.
    ASSERT_TRUE(send_message(server.client(), bytes));
    Reader sent(bytes);
    const auto kind = static_cast<Message>(sent.number());
    if (kind == Message::kJoin || kind == Message::kLeave) continue;
    const auto answer = receive_message(server.client());
    ASSERT_TRUE(answer);
    Reader reader(answer->bytes);
    const auto said = static_cast<Message>(reader.number());
    EXPECT_TRUE(said == Message::kDone || said == Message::kFailed);
  }
}

TEST(BesideServer, TakesNoMemoryThatCanBeCutOff) {
  InThread server;
  Connection connection(server.take_client());
  ASSERT_TRUE(connection.ask(encode(Message::kOpen, Opening{"mem", "", "", {}})));
  const int file = memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  ASSERT_EQ(ftruncate(file, static_cast<off_t>(shared_bytes(kDataBytes))), 0);
  Writer attach(Message::kAttach);
  attach.number(kFormat), attach.number(kSlots), attach.number(kDataBytes);
  EXPECT_FALSE(connection.ask(attach.bytes(), file));
  close(file);
  EXPECT_TRUE(connection.attach());
}

// What the tests of the store do with a process, here under the sanitizers' eyes on both sides.
TEST(BesideServer, AnswersManyThreadsAtOnce) {
  InThread server;
  Connection connection(server.take_client());
  ASSERT_TRUE(connection.ask(encode(Message::kOpen, Opening{"mem", "", "", {}})));
  ASSERT_TRUE(connection.attach());
  std::vector<std::thread> threads;
  for (std::uint64_t me = 0; me < 4; ++me) {
    threads.emplace_back([&, me] {
      for (std::uint64_t i = 0; i < 300; ++i) {
        const auto index = connection.take_slot();
        Slot& slot = connection.slot(index);
        slot.operation = static_cast<std::uint32_t>(Operation::kAdd);
        slot.notify = 0, slot.number = 1, slot.text_bytes = 4;
        std::memcpy(slot.text, "hits", 4);
        connection.submit(index);
        ASSERT_TRUE(connection.wait(index));
        EXPECT_EQ(slot.failed, 0u);
        connection.give_back(index);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  const auto index = connection.take_slot();
  Slot& slot = connection.slot(index);
  slot.operation = static_cast<std::uint32_t>(Operation::kAdd);
  slot.number = 0, slot.text_bytes = 4, slot.notify = 0;
  std::memcpy(slot.text, "hits", 4);
  connection.submit(index);
  ASSERT_TRUE(connection.wait(index));
  EXPECT_EQ(slot.result, 1200u);
  connection.give_back(index);
}

// Whatever stands in a slot: nothing is read or written outside of it, and there is an answer.
TEST(BesideSlots, OfAnyContentAreAnswered) {
  constexpr std::size_t kData = 64 * 1024;
  const store::StoreUri uri{.engine = "mem"};
  auto engine = store::open_mem("", store::Parameters(uri, "mem"), {}).value();
  auto slot = std::make_unique<Slot>();
  Bytes data(kData);
  std::mt19937_64 random(5);
  for (int i = 0; i < 3000; ++i) {
    slot->operation = static_cast<std::uint32_t>(random() % 8);
    slot->entries = static_cast<std::uint32_t>(random() % 3 == 0 ? random() : random() % 6);
    slot->text_bytes = static_cast<std::uint32_t>(random() % 2 == 0 ? random() : random() % 10);
    slot->first = random() % 100, slot->number = random() % 100;
    for (auto& entry : std::span(slot->entry).first(8)) {
      entry = {.block = random() % 2 == 0 ? random() : random() % 20,
               .version = random() % 3,
               .bytes = static_cast<std::uint32_t>(random() % 3 == 0 ? random() : random() % 5 * 4096),
               .expects = static_cast<std::uint8_t>(random() % 3)};
    }
    engines::answer_slot(*slot, data, *engine);
    if (slot->failed != 0) {
      const std::string text(slot->text, slot->answer_bytes);
      Reader reader(text);
      (void)reader.number();
      EXPECT_TRUE(read_error(reader));
    }
  }
}

}  // namespace
}  // namespace farheap::test
