// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engines/process/server.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <optional>
#include <vector>

#include "base/uri_path.hpp"
#include "engines/process/served_connection.hpp"

namespace farheap::engines {
namespace {

using namespace store::beside;

constexpr char kEngines[] = "farheap-engines";

tl::unexpected<Error> refuse_malformed() {
  return fail(ErrorCode::kInvalidArgument, "cannot answer", kEngines, "the message is not of its form",
              "use the farheap-engines that was installed with this Farheap");
}

// "key=value&key=value", as Parameters::text() writes it.
store::StoreUri uri_of(const Opening& opening) {
  store::StoreUri uri{.engine = opening.scheme, .place = opening.place};
  std::string_view left = opening.parameters;
  while (!left.empty()) {
    const auto one = left.substr(0, left.find('&'));
    left.remove_prefix(std::min(one.size() + 1, left.size()));
    const auto equals = std::min(one.find('='), one.size());
    const auto value = one.substr(std::min(equals + 1, one.size()));
    uri.parameters.push_back({opening.scheme, std::string(one.substr(0, equals)), base::unescape_path(value)});
  }
  return uri;
}

class Server {
 public:
  explicit Server(std::span<const Engine> table) : table_(table) {}
  // Who waits hears of it when the store is closed.
  ~Server() {
    connections_.clear();
    store_.reset();
    close_waiting();
  }

  void run(int socket);

 private:
  void close_waiting();
  void let_overdue_go();
  [[nodiscard]] int patience_ms() const;
  [[nodiscard]] bool serve_one(ServedConnection& connection);
  [[nodiscard]] Result<std::string> answer(ServedConnection& connection, Message kind, Reader& message, int descriptor);
  [[nodiscard]] Result<std::string> open(Reader& message);
  [[nodiscard]] Result<std::string> attach(ServedConnection& connection, Reader& message, int file);
  [[nodiscard]] Result<std::string> ask_keeper(ServedConnection& connection, Message kind, Reader& message);

  std::span<const Engine> table_;
  std::optional<store::StoreUri> uri_;  // an engine's Parameters point into it
  std::unique_ptr<Store> store_;
  std::vector<std::unique_ptr<ServedConnection>> connections_;
  std::vector<int> waiting_;  // pipes of clients that wait until the store is closed
};

Result<const Engine*> engine_of(std::span<const Engine> table, const Opening& opening) {
  const Engine* const engine = find_engine(table, opening.scheme);
  if (engine != nullptr) return engine;
  return fail(ErrorCode::kUnavailable, "cannot open the store", opening.scheme + ":" + opening.place,
              fmt::format("this farheap-engines is without '{}'", opening.scheme),
              "configure Farheap with its library installed");
}

void Server::run(int socket) {
  connections_.push_back(std::make_unique<ServedConnection>(socket));
  while (!connections_.empty()) {
    std::vector<pollfd> waited;
    waited.reserve(connections_.size());
    for (const auto& one : connections_) waited.push_back({one->socket(), POLLIN, 0});
    if (poll(waited.data(), waited.size(), patience_ms()) < 0) continue;
    let_overdue_go();
    // From the end: what is served may add connections, and what has gone is taken out.
    for (std::size_t i = waited.size(); i-- > 0;) {
      if (waited[i].revents == 0 || serve_one(*connections_[i])) continue;
      connections_[i]->stop();
      if (const int waiting = connections_[i]->take_waiting(); waiting >= 0) {
        waiting_.push_back(waiting);
        if (connections_.size() > 1) close_waiting();
      }
      connections_.erase(connections_.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
}

void Server::close_waiting() {
  for (const int one : waiting_) close(one);
  waiting_.clear();
}

// Those who leave while forked children of theirs stay do not wait for these.
void Server::let_overdue_go() {
  for (const auto& one : connections_) {
    if (one->is_overdue(store::Spin::now_ns())) close(one->take_waiting());
  }
}

int Server::patience_ms() const {
  constexpr int kWhileOneLeaves = 20;
  return std::ranges::any_of(connections_, [](const auto& one) { return one->is_leaving(); }) ? kWhileOneLeaves : -1;
}

// False: the client has gone.
bool Server::serve_one(ServedConnection& connection) try {
  auto message = receive_message(connection.socket());
  if (!message) return false;
  Reader reader(message->bytes);
  const auto kind = static_cast<Message>(reader.number());
  if (kind == Message::kJoin && message->descriptor >= 0) {
    connections_.push_back(std::make_unique<ServedConnection>(message->descriptor));
    return true;
  }
  if (kind == Message::kLeave && message->descriptor >= 0) return connection.leaving(message->descriptor), true;
  auto answered = answer(connection, kind, reader, message->descriptor);
  return send_message(connection.socket(), answered ? *answered : encode(answered.error()));
} catch (const std::exception& thrown) {
  return send_message(connection.socket(), encode({ErrorCode::kIo, "cannot answer", kEngines, thrown.what(), ""}));
}

Result<std::string> Server::answer(ServedConnection& connection, Message kind, Reader& message, int descriptor) {
  if (kind == Message::kAttach && descriptor >= 0) return attach(connection, message, descriptor);
  if (kind == Message::kNotify && descriptor >= 0) {
    auto done = connection.notify(descriptor, message.number());
    if (!done) return fail(std::move(done.error()));
    return Writer(Message::kDone).bytes();
  }
  if (descriptor >= 0) close(descriptor);
  switch (kind) {
    case Message::kOpen: return open(message);
    case Message::kIsThere:
    case Message::kList:
    case Message::kRemove: return ask_keeper(connection, kind, message);
    default: return refuse_malformed();
  }
}

Result<std::string> Server::open(Reader& message) {
  const auto opening = read_opening(message);
  if (!opening || store_ != nullptr) return refuse_malformed();
  const auto engine = engine_of(table_, *opening);
  if (!engine) return fail(engine.error());
  uri_ = uri_of(*opening);
  auto opened = (*engine)->open(uri_->place, store::Parameters(*uri_, uri_->engine), opening->options);
  if (!opened) return fail(std::move(opened.error()));
  store_ = std::move(*opened);
  return encode(Opened{store_->describe(), store_->capabilities(), store_->limits()});
}

Result<std::string> Server::attach(ServedConnection& connection, Reader& message, int file) {
  const bool fits = message.number() == kFormat && message.number() == kSlots;
  const std::size_t data_bytes = message.number();
  if (!fits || !message.is_whole() || store_ == nullptr) {
    close(file);
    return refuse_malformed();
  }
  auto attached = connection.attach(file, data_bytes, *store_);
  if (!attached) return fail(std::move(attached.error()));
  return Writer(Message::kDone).bytes();
}

Result<std::string> Server::ask_keeper(ServedConnection& connection, Message kind, Reader& message) {
  const auto opening = read_opening(message);
  if (!opening) return refuse_malformed();
  const auto engine = engine_of(table_, *opening);
  if (!engine) return fail(engine.error());
  const store::Keeper* const keeper = (*engine)->keeper;
  if (keeper == nullptr) {
    return fail(ErrorCode::kInvalidArgument, "cannot look at kept stores", opening->scheme + ":" + opening->place,
                "it keeps none");
  }
  const store::StoreUri uri = uri_of(*opening);
  const store::Parameters parameters(uri, uri.engine);
  Writer done(Message::kDone);
  if (kind == Message::kIsThere) {
    const auto there = keeper->is_there(uri.place, parameters, opening->options);
    if (!there) return fail(there.error());
    done.number(*there ? 1 : 0);
  } else if (kind == Message::kRemove) {
    if (auto removed = keeper->remove(uri.place, parameters, opening->options); !removed) return fail(removed.error());
  } else {
    const auto all = keeper->list(uri.place, parameters, opening->options);
    if (!all) return fail(all.error());
    for (const auto& one : *all) {
      if (!send_message(connection.socket(), encode(one))) break;
    }
  }
  return done.bytes();
}

}  // namespace

void serve(int socket, std::span<const Engine> table) { Server(table).run(socket); }

}  // namespace farheap::engines
