// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tests/store/servers.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "tests/store/loopback.hpp"
#include "tests/store/server_programs.hpp"

namespace farheap::test {
namespace {

namespace fs = std::filesystem;

// A folder in /tmp: a server's data is small, and its sockets want short names.
std::string fresh_folder(std::string_view name) {
  std::string folder = fmt::format("{}/farheap-{}-XXXXXX", fs::temp_directory_path().string(), name);
  if (mkdtemp(folder.data()) == nullptr) throw std::runtime_error("cannot make a temporary folder");
  return folder;
}

Result<std::unique_ptr<TestServer>> begin(ServerCommand command) {
  const auto folder = fresh_folder(command.name);
  for (auto& word : command.words) {
    if (const auto at = word.find('@'); at != std::string::npos) word.replace(at, 1, folder);
  }
  return TestServer::begin(std::move(command), folder);
}

Result<std::unique_ptr<TestServer>> start(ServerCommand command) {
  auto server = begin(std::move(command));
  if (!server) return server;
  if (auto ready = (*server)->await_ready(); !ready) return fail(std::move(ready.error()));
  return server;
}

Result<TestServers> alone(ServerCommand command, std::string uri, const char* variable = nullptr) {
  auto server = start(std::move(command));
  if (!server) return fail(std::move(server.error()));
  TestServers servers;
  servers.uri = std::move(uri);
  if (variable != nullptr) servers.environment.emplace_back(variable, (*server)->address());
  servers.members.push_back(std::move(*server));
  return servers;
}

}  // namespace

void TestServers::set_environment() const {
#ifdef FARHEAP_ENGINES_PROGRAM
  setenv("FARHEAP_ENGINES", FARHEAP_ENGINES_PROGRAM, 0);
#endif
  for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
}

// ---- engines

Result<TestServers> start_redis(const std::vector<std::string>& arguments) {
  auto path = redis_program();
  if (!path) return fail(std::move(path.error()));
  const auto port = free_port();
  std::vector<std::string> words{"redis-server",
                                 "--port",
                                 std::to_string(port),
                                 "--bind",
                                 "127.0.0.1",
                                 "--unixsocket",
                                 "@/socket",
                                 "--save",
                                 "",
                                 "--appendonly",
                                 "no",
                                 "--dir",
                                 "@"};
  words.insert(words.end(), arguments.begin(), arguments.end());  // the last of two settings counts
  return alone({.name = "redis", .program = *path, .words = words, .port = port, .is_ready = answers_as_redis},
               fmt::format("redis://127.0.0.1:{}/0/contract", port));
}

Result<TestServers> start_redis_cluster() {
  auto path = redis_program();
  if (!path) return fail(std::move(path.error()));
  auto client = program("redis-cli", "redis-tools");
  if (!client) return fail(std::move(client.error()));
  TestServers servers;
  std::string create = *client + " --cluster create";
  for (int i = 0; i < 6; ++i) {
    const auto port = free_port();
    auto server = start({.name = "redis-cluster",
                         .program = *path,
                         .words = {"redis-server", "--port", std::to_string(port), "--bind", "127.0.0.1",
                                   "--cluster-port", std::to_string(free_port()), "--cluster-enabled", "yes",
                                   "--cluster-node-timeout", "2000", "--save", "", "--appendonly", "no", "--dir", "@"},
                         .port = port,
                         .is_ready = answers_as_redis});
    if (!server) return fail(std::move(server.error()));
    create += " " + (*server)->address();
    servers.uri += (i == 0 ? "redis+cluster://" : i < 3 ? "," : "") + (i < 3 ? (*server)->address() : "");
    servers.members.push_back(std::move(*server));
  }
  servers.uri += "/contract";
  const std::string log = servers.members.front()->folder() + "/create.log";
  create += fmt::format(" --cluster-replicas 1 --cluster-yes >{} 2>&1 </dev/null", log);
  const bool made = std::system(create.c_str()) == 0;
  for (const auto& member : servers.members) {
    if (made && await([&] { return is_whole_cluster(member->port()); })) continue;
    std::ostringstream words;
    words << std::ifstream(log).rdbuf();
    return fail(ErrorCode::kUnavailable, "cannot start a server", "a Redis Cluster", words.str());
  }
  return servers;
}

Result<TestServers> start_redis_cluster_by_tls(const ServerTls& tls) {
  auto path = redis_program();
  if (!path) return fail(std::move(path.error()));
  auto client = program("redis-cli", "redis-tools");
  if (!client) return fail(std::move(client.error()));
  TestServers servers;
  std::string create = fmt::format("{} --tls --cacert {} --cert {} --key {} --cluster create", *client, tls.certificate,
                                   tls.certificate, tls.key);
  std::string log;
  for (int i = 0; i < 3; ++i) {
    const auto port = free_port();
    ServerCommand command{.name = "redis-cluster-tls",
                          .program = *path,
                          .words = {"redis-server",
                                    "--port",
                                    "0",
                                    "--tls-port",
                                    std::to_string(port),
                                    "--bind",
                                    "127.0.0.1",
                                    "--tls-cert-file",
                                    tls.certificate,
                                    "--tls-key-file",
                                    tls.key,
                                    "--tls-ca-cert-file",
                                    tls.certificate,
                                    "--tls-auth-clients",
                                    tls.clients.empty() ? "no" : "yes",
                                    "--tls-cluster",
                                    "yes",
                                    "--tls-replication",
                                    "yes",
                                    "--cluster-port",
                                    std::to_string(free_port()),
                                    "--cluster-enabled",
                                    "yes",
                                    "--cluster-announce-hostname",
                                    "localhost",
                                    "--cluster-preferred-endpoint-type",
                                    "hostname",
                                    "--save",
                                    "",
                                    "--appendonly",
                                    "no",
                                    "--dir",
                                    "@"},
                          .port = port,
                          .is_ready = takes_connections};
    auto server = start(std::move(command));
    if (!server) return fail(std::move(server.error()));
    create += " " + (*server)->address();
    servers.uri += fmt::format("{}localhost:{}", i == 0 ? "rediss+cluster://" : ",", port);
    log = (*server)->folder() + "/create.log";
    servers.members.push_back(std::move(*server));
  }
  servers.uri += "/contract";
  create += fmt::format(" --cluster-yes >{} 2>&1 </dev/null", log);
  if (std::system(create.c_str()) == 0) return servers;  // it says so when all know of all
  std::ostringstream words;
  words << std::ifstream(log).rdbuf();
  return fail(ErrorCode::kUnavailable, "cannot start a server", "a Redis Cluster by TLS", words.str());
}

Result<TestServers> start_etcd(unsigned count, const std::vector<std::string>& arguments) {
  auto path = program("etcd", "etcd-server");
  if (!path) return fail(std::move(path.error()));
  std::vector<std::uint16_t> clients(count), peers(count);
  std::string cluster;
  for (unsigned i = 0; i < count; ++i) {
    clients[i] = free_port(), peers[i] = free_port();
    cluster += fmt::format("{}m{}=http://127.0.0.1:{}", i == 0 ? "" : ",", i, peers[i]);
  }
  TestServers servers;
  for (unsigned i = 0; i < count; ++i) {
    const auto client = fmt::format("http://127.0.0.1:{}", clients[i]);
    const auto peer = fmt::format("http://127.0.0.1:{}", peers[i]);
    ServerCommand command{
        .name = "etcd",
        .program = *path,
        .words = {"etcd", "--name", fmt::format("m{}", i), "--data-dir", "@/data", "--listen-client-urls", client,
                  "--advertise-client-urls", client, "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
                  "--initial-cluster", cluster, "--log-level", "warn"},
        .port = clients[i],
        .is_ready = answers_as_etcd};
    command.words.insert(command.words.end(), arguments.begin(), arguments.end());
    auto server = begin(std::move(command));
    if (!server) return fail(std::move(server.error()));
    servers.uri += (i == 0 ? "etcd://" : ",") + (*server)->address();
    servers.members.push_back(std::move(*server));
  }
  servers.uri += "/contract";
  for (const auto& member : servers.members) {
    if (auto ready = member->await_ready(); !ready) return fail(std::move(ready.error()));
  }
  return servers;
}

Result<TestServers> start_etcd_by_tls(const ServerTls& tls) {
  auto path = program("etcd", "etcd-server");
  if (!path) return fail(std::move(path.error()));
  const auto port = free_port();
  const auto client = fmt::format("https://127.0.0.1:{}", port), peer = fmt::format("http://127.0.0.1:{}", free_port());
  ServerCommand command{
      .name = "etcd-tls",
      .program = *path,
      .words = {"etcd", "--data-dir", "@/data", "--listen-client-urls", client, "--advertise-client-urls", client,
                "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster",
                "default=" + peer, "--cert-file", tls.certificate, "--key-file", tls.key, "--log-level", "warn"},
      .port = port,
      .is_ready = takes_connections};
  if (!tls.clients.empty()) {
    for (const auto& word : {std::string("--client-cert-auth"), std::string("--trusted-ca-file"), tls.clients}) {
      command.words.push_back(word);
    }
  }
  return alone(std::move(command), fmt::format("etcd://localhost:{}/contract", port));
}

Result<TestServers> start_bigtable() {
  // ./dev builds it of its Go module; a Cloud SDK has it, too.
  std::string path = fmt::format("{}/cbtemulator", FARHEAP_TOOLS_FOLDER);
  if (access(path.c_str(), X_OK) != 0) {
    auto found = of_cloud_sdk("platform/bigtable-emulator/cbtemulator", "bigtable");
    if (!found) return fail(std::move(found.error()));
    path = *found;
  }
  const auto port = free_port();
  return alone({.name = "bigtable",
                .program = path,
                .words = {"cbtemulator", "-host", "127.0.0.1", "-port", std::to_string(port)},
                .port = port,
                .is_ready = takes_connections},
               "bigtable://project/instance/table/contract", "BIGTABLE_EMULATOR_HOST");
}

Result<TestServers> start_redis_and_etcd() {
  auto pages = start_redis();
  if (!pages) return pages;
  auto sync = start_etcd(1);
  if (!sync) return sync;
  pages->uri = "pages=" + pages->uri + ",sync=" + sync->uri;
  std::ranges::move(sync->members, std::back_inserter(pages->members));
  std::ranges::move(sync->environment, std::back_inserter(pages->environment));
  return pages;
}

// The one of Firestore in the mode of Datastore, which is what all databases of Datastore are: the older emulator keeps
// rules of before, as that a transaction has at most 25 entities.
Result<TestServers> start_datastore() {
  auto java = program("java", "openjdk-17-jre-headless");
  if (!java) return fail(std::move(java.error()));
  auto jar = of_cloud_sdk("platform/cloud-firestore-emulator/cloud-firestore-emulator.jar", "cloud-firestore-emulator");
  if (!jar) return fail(std::move(jar.error()));
  const auto port = free_port();
  return alone({.name = "datastore",
                .program = *java,
                .words = {"java", "-XX:+UseSerialGC", "-cp", *jar,
                          "com.google.cloud.datastore.emulator.firestore.CloudFirestore", "start", "--host=127.0.0.1",
                          fmt::format("--port={}", port), "--database-mode=datastore-mode"},
                .port = port,
                .is_ready = answers_as_grpc},
               "datastore://project/contract", "DATASTORE_EMULATOR_HOST");
}

Result<TestServers> start_spanner() {
  auto path = of_cloud_sdk("bin/cloud_spanner_emulator/emulator_main", "cloud-spanner-emulator");
  if (!path) return fail(std::move(path.error()));
  const auto port = free_port();
  return alone({.name = "spanner",
                .program = *path,
                .words = {"emulator_main", fmt::format("--host_port=127.0.0.1:{}", port)},
                .port = port,
                .is_ready = takes_connections},
               "spanner://project/instance/database/contract", "SPANNER_EMULATOR_HOST");
}

}  // namespace farheap::test
