// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What only works where the heap has addresses of its own, in mode cached: libstdc++'s compiled functions, the C
// library's that keep what they are given, locks in the heap, signal handlers, forks. Its arguments: how many thousand
// entries the map has, so that there may be more of them than there is memory; and "forks", which not all stores do.
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

extern "C" __attribute__((weak)) void __farheap_flush();

namespace {

void flush() {
  if (&__farheap_flush != nullptr) __farheap_flush();
}

std::string text_of(unsigned number) {
  return std::to_string(number * 2654435761u) + std::string(number % 300, static_cast<char>('a' + number % 26));
}

void maps_and_strings(unsigned entries) {
  std::map<std::string, unsigned> numbers;
  for (unsigned i = 0; i < entries; ++i) numbers.emplace(text_of(i), i);
  flush();
  std::unordered_map<unsigned, std::list<std::string>> texts;
  for (const auto& [text, number] : numbers) texts[number % 100].push_back(text);
  unsigned long sum = 0, wrong = 0;
  for (const auto& [rest, all] : texts) {
    for (const auto& text : all) {
      const auto found = numbers.find(text);
      wrong += found == numbers.end() || found->second % 100 != rest;
      sum += text.size() * (rest + 1);
    }
  }
  std::cout << "map: " << numbers.size() << " " << sum << " " << wrong << "\n";
}

void streams() {
  auto text = std::make_unique<std::ostringstream>();
  *text << "one " << 2 << " " << 3.5 << " " << std::boolalpha << true;
  std::istringstream words(text->str());
  std::string word;
  while (words >> word) std::cout << "[" << word << "]";
  std::cout << "\n";
}

struct Shared {
  std::mutex mutex;
  std::condition_variable condition;
  pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
  long turns = 0;
  long sum = 0;
};

void locks() {
  auto shared = std::make_unique<Shared>();
  std::vector<std::thread> threads;
  for (int mine = 0; mine < 3; ++mine) {
    threads.emplace_back([&shared, mine] {
      for (int i = 0; i < 100; ++i) {
        std::unique_lock lock(shared->mutex);
        shared->condition.wait(lock, [&] { return shared->turns % 3 == mine; });
        ++shared->turns;
        pthread_rwlock_wrlock(&shared->lock);
        shared->sum += shared->turns;
        pthread_rwlock_unlock(&shared->lock);
        shared->condition.notify_all();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  std::cout << "locks: " << shared->turns << " " << shared->sum << "\n";
}

__attribute__((format(printf, 2, 3))) void print_into(char* into, const char* format, ...) {
  auto* const list = static_cast<va_list*>(std::malloc(sizeof(va_list)));
  va_start(*list, format);
  std::vsnprintf(into, 100, format, *list);
  va_end(*list);
  std::free(list);
}

void the_c_library() {
  char* const format = strdup("%s-%d-%g");
  auto* const into = static_cast<char*>(std::malloc(100));
  char* const name = strdup("name");
  print_into(into, format, name, 7, 2.5);
  std::cout << into << "\n";
  FILE* const file = std::tmpfile();
  auto* const buffer = static_cast<char*>(std::malloc(1 << 14));
  std::setvbuf(file, buffer, _IOFBF, 1 << 14);
  for (int i = 0; i < 3000; ++i) std::fprintf(file, "line %d\n", i);
  std::rewind(file);
  auto* const line = static_cast<char**>(std::calloc(1, sizeof(char*)));
  auto* const room = static_cast<std::size_t*>(std::calloc(1, sizeof(std::size_t)));
  long lines = 0, bytes = 0;
  for (ssize_t length = 0; (length = getline(line, room, file)) > 0; ++lines) bytes += length;
  std::cout << "lines: " << lines << " " << bytes << "\n";
  std::fclose(file);
  for (void* one :
       {static_cast<void*>(format), static_cast<void*>(into), static_cast<void*>(name), static_cast<void*>(buffer),
        static_cast<void*>(*line), static_cast<void*>(line), static_cast<void*>(room)}) {
    std::free(one);
  }
}

volatile long* g_counted;

void signals() {
  g_counted = static_cast<long*>(std::calloc(1, sizeof(long)));
  std::signal(SIGUSR1, [](int) { ++*g_counted; });
  for (int i = 0; i < 10; ++i) (void)std::raise(SIGUSR1);
  std::cout << "signals: " << *g_counted << "\n";
}

void forks(unsigned entries) {
  std::vector<std::string> texts;
  for (unsigned i = 0; i < entries; ++i) texts.push_back(text_of(i));
  flush();
  std::cout << std::flush;
  const pid_t child = fork();
  if (child == 0) {
    unsigned wrong = 0;
    for (unsigned i = 0; i < entries; ++i) wrong += texts[i] != text_of(i);
    for (auto& text : texts) text = "the child's";
    flush();
    _exit(wrong == 0 && texts[entries / 2] == "the child's" ? 5 : 6);
  }
  int status = 0;
  waitpid(child, &status, 0);
  unsigned wrong = 0;
  for (unsigned i = 0; i < entries; ++i) wrong += texts[i] != text_of(i);
  std::cout << "fork: " << WEXITSTATUS(status) << " " << wrong << "\n";
}

// What is shut holds what it held.
void pages_that_are_shut() {
  constexpr std::size_t kBytes = 1 << 16;
  auto* const pages = static_cast<char*>(std::aligned_alloc(4096, kBytes));
  std::memset(pages, 'x', kBytes);
  mprotect(pages, kBytes, PROT_NONE);
  flush();
  mprotect(pages, kBytes, PROT_READ | PROT_WRITE);
  std::cout << "shut: " << std::count(pages, pages + kBytes, 'x') << "\n";
  std::free(pages);
}

}  // namespace

int main(int argc, char** argv) {
  const unsigned entries = argc > 1 ? static_cast<unsigned>(std::atoi(argv[1])) * 1000 : 1000;
  maps_and_strings(entries);
  streams();
  locks();
  the_c_library();
  signals();
  if (argc > 2) forks(entries);
  pages_that_are_shut();
  return 0;
}
