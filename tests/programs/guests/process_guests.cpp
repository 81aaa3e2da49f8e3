// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A program with a big heap that starts others all the time, by vfork, posix_spawn, popen and system. Their arguments
// lie in pages that left.
#include <fcntl.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "guests.hpp"

using namespace guests;

namespace {

constexpr int kPrograms = 120;

// What a child of ours is told to say, in pages of its own.
struct Words {
  std::vector<char*> all;
  explicit Words(const std::string& text) {
    for (const std::string& one : {std::string("/bin/echo"), text}) {
      char* place = static_cast<char*>(malloc(2 * kPage));
      CHECK(place != nullptr);
      all.push_back(strcpy(place, one.c_str()));
    }
    all.push_back(nullptr);
  }
};

std::string read_all(int file) {
  std::string text;
  char part[200];
  for (ssize_t size; (size = read(file, part, sizeof part)) > 0;) text.append(part, static_cast<std::size_t>(size));
  CHECK(close(file) == 0);
  return text;
}

std::string by_spawn(const Words& words) {
  int ends[2];
  CHECK(pipe2(ends, O_CLOEXEC) == 0);
  posix_spawn_file_actions_t actions;
  CHECK(posix_spawn_file_actions_init(&actions) == 0);
  CHECK(posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO) == 0);
  pid_t child = 0;
  CHECK(posix_spawn(&child, words.all[0], &actions, nullptr, words.all.data(), environ) == 0);
  CHECK(posix_spawn_file_actions_destroy(&actions) == 0 && close(ends[1]) == 0);
  std::string text = read_all(ends[0]);
  CHECK(status_of(child) == 0);
  return text;
}

[[gnu::noinline]] pid_t vfork_echo(const Words& words, int output, const Pieces& data, Random& random) {
  const pid_t child = vfork();
  if (child == 0) {
    data.check_a_word(random);  // it still runs in our memory
    if (dup2(output, STDOUT_FILENO) < 0) _exit(1);
    execv(words.all[0], words.all.data());
    _exit(2);
  }
  return child;
}

std::string by_vfork(const Words& words, const Pieces& data, Random& random) {
  int ends[2];
  CHECK(pipe2(ends, O_CLOEXEC) == 0);
  const pid_t child = vfork_echo(words, ends[1], data, random);
  CHECK(close(ends[1]) == 0);
  std::string text = read_all(ends[0]);
  CHECK(status_of(child) == 0);
  return text;
}

std::string by_popen(const Words& words) {
  FILE* stream = popen((std::string(words.all[0]) + " " + words.all[1]).c_str(), "r");
  CHECK(stream != nullptr);
  char text[200] = "";
  CHECK(fgets(text, sizeof text, stream) != nullptr && pclose(stream) == 0);
  return text;
}

}  // namespace

CASE(starts_programs_from_a_big_heap) {
  const Pieces data(data_bytes(), 19);
  std::vector<Words> words;
  for (int i = 0; i < kPrograms; ++i) words.emplace_back("program-" + std::to_string(i * 7919));
  data.check_all();  // by now the words have left
  Random random(20);
  for (int i = 0; i < kPrograms; ++i) {
    std::string said;
    const Words& to_say = words[static_cast<std::size_t>(i)];
    if (i % 8 < 3) {
      said = by_spawn(to_say);
    } else if (i % 8 < 6) {
      said = by_vfork(to_say, data, random);
    } else if (i % 8 == 6) {
      said = by_popen(to_say);
    } else {
      CHECK(system("exit 7") == 7 << 8);
      continue;
    }
    CHECK(said == std::string(to_say.all[1]) + "\n");
    std::fputs(said.c_str(), stdout);
    for (int k = 0; k < 50; ++k) data.check_a_word(random);
  }
  data.check_all();
}
