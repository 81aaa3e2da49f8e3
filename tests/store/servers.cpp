// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tests/store/servers.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

namespace farheap::test {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

// What a server answers to `question`; empty if it does not.
std::string ask(std::uint16_t port, std::string_view question) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const timeval patience{.tv_sec = 2, .tv_usec = 0};
  setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  const auto address = loopback(port);
  std::string answer;
  if (connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
      send(socket, question.data(), question.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(question.size())) {
    char buffer[4096];
    const ssize_t got = recv(socket, buffer, sizeof buffer, 0);
    if (got > 0) answer.assign(buffer, static_cast<std::size_t>(got));
  }
  close(socket);
  return answer;
}

bool takes_connections(std::uint16_t port) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const auto address = loopback(port);
  const bool taken = connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  close(socket);
  return taken;
}

bool says(std::uint16_t port, std::string_view question, std::string_view wanted) {
  return ask(port, question).find(wanted) != std::string::npos;
}

bool answers_as_redis(std::uint16_t port) {
  const auto answer = ask(port, "PING\r\n");
  return answer.starts_with("+PONG") || answer.starts_with("-NOAUTH");
}
bool is_whole_cluster(std::uint16_t port) { return says(port, "CLUSTER INFO\r\n", "cluster_state:ok"); }
bool answers_as_etcd(std::uint16_t port) {
  return says(port, "GET /health HTTP/1.0\r\nHost: localhost\r\n\r\n", "\"health\":\"true\"");
}
// The first frame of a gRPC server is its settings (RFC 9113, 3.4), which a Java program may take seconds for.
bool answers_as_grpc(std::uint16_t port) {
  constexpr std::string_view kPreface("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0", 33);
  const auto answer = ask(port, kPreface);
  return answer.size() >= 9 && answer[3] == 4;
}

// Asks again until it holds, for a minute: far longer than any server takes, so that only a broken one fails.
bool await(const std::function<bool()>& holds) {
  for (const auto end = std::chrono::steady_clock::now() + 60s; std::chrono::steady_clock::now() < end;) {
    if (holds()) return true;
    std::this_thread::sleep_for(20ms);
  }
  return false;
}

std::string in_path(std::string_view program) {
  std::istringstream folders(std::getenv("PATH") != nullptr ? std::getenv("PATH") : "");
  for (std::string folder; std::getline(folders, folder, ':');) {
    const auto path = fs::path(folder) / program;
    if (access(path.c_str(), X_OK) == 0) return path;
  }
  return {};
}

// The folder of a Cloud SDK: FARHEAP_CLOUD_SDK, or where gcloud or cbt in PATH belong to. Empty: there is none.
fs::path cloud_sdk() {
  if (const char* named = std::getenv("FARHEAP_CLOUD_SDK"); named != nullptr && *named != '\0') return named;
  for (const auto* program : {"gcloud", "cbt"}) {
    std::error_code error;
    const auto real = fs::canonical(in_path(program), error);
    if (!error && real.parent_path().filename() == "bin") return real.parent_path().parent_path();
  }
  return {};
}

tl::unexpected<Error> not_there(std::string what, std::string remedy) {
  return fail(ErrorCode::kUnavailable, "cannot start a server", std::move(what), "it is not on this machine",
              std::move(remedy));
}

Result<std::string> program(std::string_view name, std::string_view package) {
  auto found = in_path(name);
  if (found.empty()) return not_there(std::string(name), fmt::format("apt install {}", package));
  return found;
}

// Debian's redis-server is a link to this program of redis-tools, which looks at the name it is called by. So no
// service has to be installed.
Result<std::string> redis_program() { return program("redis-check-rdb", "redis-tools"); }

Result<std::string> of_cloud_sdk(std::string_view path, std::string_view component) {
  const auto sdk = cloud_sdk();
  std::error_code error;
  if (!sdk.empty() && fs::exists(sdk / path, error)) return (sdk / path).string();
  return not_there(
      fmt::format("{} of a Cloud SDK ({})", path, sdk.empty() ? "none found" : sdk.string()),
      fmt::format("put a Cloud SDK with the component {} into PATH, or name it in FARHEAP_CLOUD_SDK", component));
}

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

std::uint16_t free_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  auto address = loopback(0);
  socklen_t length = sizeof address;
  const bool known = bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
                     getsockname(socket, reinterpret_cast<sockaddr*>(&address), &length) == 0;
  close(socket);
  if (!known) throw std::runtime_error("no free port on 127.0.0.1");
  return ntohs(address.sin_port);
}

// ---- one process

Result<std::unique_ptr<TestServer>> TestServer::start(ServerCommand command, const std::string& folder) {
  auto server = begin(std::move(command), folder);
  if (!server) return server;
  if (auto ready = (*server)->await_ready(); !ready) return fail(std::move(ready.error()));
  return server;
}

Result<std::unique_ptr<TestServer>> TestServer::begin(ServerCommand command, const std::string& folder) {
  std::unique_ptr<TestServer> server(new TestServer(std::move(command), folder));
  fs::create_directories(folder);
  if (auto ok = server->launch(); !ok) return fail(std::move(ok.error()));
  return server;
}

TestServer::~TestServer() {
  kill();
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

std::string TestServer::address() const { return fmt::format("127.0.0.1:{}", command_.port); }

Status TestServer::start_again() {
  if (auto ok = launch(); !ok) return ok;
  return await_ready();
}

Status TestServer::launch() {
  std::vector<char*> words;
  for (auto& word : command_.words) words.push_back(word.data());
  words.push_back(nullptr);
  const std::string log = folder_ + "/server.log";
  const pid_t parent = getpid();
  process_ = fork();
  if (process_ < 0) return fail(errno_error(errno, "cannot start a server", command_.name));
  if (process_ > 0) return {};
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // it has died in the meantime
  setpgid(0, 0);                      // Ctrl-C is for the test
  const int out = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  dup2(out, STDOUT_FILENO);
  dup2(out, STDERR_FILENO);
  const int none = open("/dev/null", O_RDONLY);
  dup2(none, STDIN_FILENO);
  close_range(3, ~0u, 0);
  if (chdir(folder_.c_str()) == 0) execv(command_.program.c_str(), words.data());
  _exit(127);
}

Status TestServer::await_ready() {
  bool has_ended = false;
  const bool ready = await([&] {
    int status = 0;
    has_ended = waitpid(process_, &status, WNOHANG) == process_;
    return has_ended || command_.is_ready(command_.port);
  });
  if (has_ended) process_ = 0;
  if (ready && !has_ended) return {};
  const auto why = fmt::format("{}:\n{}", has_ended ? "it ended at once" : "it is not ready", last_words());
  kill();
  return fail(ErrorCode::kUnavailable, "cannot start a server", command_.program, why);
}

std::string TestServer::last_words() const {
  std::ostringstream all;
  all << std::ifstream(folder_ + "/server.log").rdbuf();
  const auto text = all.str();
  return text.substr(text.size() - std::min<std::size_t>(text.size(), 2000));
}

void TestServer::kill() {
  if (process_ <= 0) return;
  ::kill(process_, SIGKILL);
  while (waitpid(process_, nullptr, 0) < 0 && errno == EINTR) continue;
  process_ = 0;
}

void TestServer::freeze() { ::kill(process_, SIGSTOP); }
void TestServer::thaw() { ::kill(process_, SIGCONT); }

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
