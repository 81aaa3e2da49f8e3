// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Signals while memory is far: storms of them, handlers on stacks in the heap, faults that a program handles itself.
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>

#include <atomic>
#include <thread>

#include "guests.hpp"

using namespace guests;

namespace {

const Pieces* g_data = nullptr;
std::uint64_t* g_written = nullptr;  // by handlers; as far away as the rest
constexpr std::size_t kWritten = 16 * kMebibyte;
std::atomic<std::uint64_t> g_handled{0};
thread_local Random t_random(13);

// Reads data that left and writes to memory that left. It runs with faults of the same thread half done.
void on_any_signal(int) {
  for (int i = 0; i < 3; ++i) g_data->check_a_word(t_random);
  const std::uint64_t mine = g_handled.fetch_add(1);
  g_written[mine * 521 % (kWritten / 8)] = word(14, mine);
}

void take_a_stack_from_the_heap() {
  stack_t stack{};
  stack.ss_size = 128 << 10;
  stack.ss_sp = aligned_alloc(kPage, stack.ss_size);
  CHECK(stack.ss_sp != nullptr && sigaltstack(&stack, nullptr) == 0);
}

void handle(int signal, void (*handler)(int), int flags) {
  struct sigaction action{};
  action.sa_handler = handler;
  action.sa_flags = flags;
  CHECK(sigaction(signal, &action, nullptr) == 0);
}

void set_alarm(suseconds_t every) {
  const itimerval interval{{0, every}, {0, every}};
  CHECK(setitimer(ITIMER_REAL, &interval, nullptr) == 0);
}

// Until so many signals came, and everything was looked at once.
void work(std::size_t first, std::uint64_t least_signals) {
  take_a_stack_from_the_heap();
  Random random(first);
  for (std::size_t i = first; i < g_data->count(); i += 3) g_data->check(i);
  while (g_handled.load() < least_signals) g_data->check_a_word(random);
}

}  // namespace

// Alarms from a timer and signals from a thread that does nothing but send them, to threads that page all the time.
CASE(storms_of_signals) {
  constexpr std::uint64_t kSignals = 1500;
  const Pieces data(data_bytes() - kWritten, 12);
  g_data = &data;
  g_written = static_cast<std::uint64_t*>(calloc(kWritten, 1));
  take_a_stack_from_the_heap();
  for (int signal : {SIGALRM, SIGUSR1, SIGUSR2, SIGRTMIN}) handle(signal, on_any_signal, SA_RESTART | SA_ONSTACK);
  set_alarm(1000);
  std::thread workers[3];
  for (std::size_t i = 0; i < 3; ++i) workers[i] = std::thread(work, i, kSignals);
  const int kinds[] = {SIGUSR1, SIGUSR2, SIGRTMIN};
  for (std::size_t i = 0; g_handled.load() < kSignals; ++i) {
    CHECK(pthread_kill(workers[i % 3].native_handle(), kinds[i / 3 % 3]) == 0);
    if (i % 8 == 7) std::this_thread::yield();
  }
  for (auto& worker : workers) worker.join();
  set_alarm(0);
  for (int signal : {SIGALRM, SIGUSR1, SIGUSR2, SIGRTMIN}) handle(signal, SIG_IGN, 0);
  for (std::uint64_t i = 0; i < kSignals; ++i) CHECK(g_written[i * 521 % (kWritten / 8)] == word(14, i));
  data.check_all();
  print_digest("first", digest(data.piece(0), Pieces::kPiece));
}

namespace {

// Cards of a garbage collector: written ones are found by protecting them and catching the fault.
constexpr std::size_t kCard = 16 * kPage;
char* g_cards = nullptr;
std::size_t g_card_count = 0;
unsigned char* g_is_written = nullptr;
sigjmp_buf g_back;
volatile sig_atomic_t g_jump_instead = 0;

void on_segmentation_fault(int, siginfo_t* info, void*) {
  const auto place = static_cast<std::size_t>(static_cast<char*>(info->si_addr) - g_cards);
  CHECK(place < g_card_count * kCard);
  if (g_jump_instead != 0) siglongjmp(g_back, 1);
  g_data->check_a_word(t_random);
  const std::size_t card = place / kCard;
  g_is_written[card * kPage] = 1;  // a page each, so that these leave, too
  CHECK(mprotect(g_cards + card * kCard, kCard, PROT_READ | PROT_WRITE) == 0);
}

void catch_segmentation_faults() {
  struct sigaction action{};
  action.sa_sigaction = on_segmentation_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  take_a_stack_from_the_heap();
  CHECK(sigaction(SIGSEGV, &action, nullptr) == 0);
}

}  // namespace

CASE(a_write_barrier_by_faults) {
  const Pieces data(data_bytes() / 2, 15);
  g_data = &data;
  g_card_count = data_bytes() / 2 / kCard;
  g_cards = static_cast<char*>(
      mmap(nullptr, g_card_count * kCard, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  CHECK(g_cards != MAP_FAILED);
  g_is_written = static_cast<unsigned char*>(calloc(g_card_count, kPage));
  for (std::size_t i = 0; i < g_card_count; ++i) fill(g_cards + i * kCard, kCard, i);
  catch_segmentation_faults();
  Random random(16);
  for (std::uint64_t round = 1; round <= 3; ++round) {
    // A part of them each time: protected pages do not leave (docs/limits.md).
    const std::size_t first = random.below(g_card_count * 15 / 16), count = g_card_count / 16;
    CHECK(mprotect(g_cards + first * kCard, count * kCard, PROT_READ) == 0);
    std::vector<bool> expected(count);
    for (std::size_t k = 0; k < count / 2; ++k) {
      const std::size_t card = first + random.below(count);
      fill(g_cards + card * kCard, kCard, card);
      expected[card - first] = true;
    }
    data.check_all();
    for (std::size_t k = 0; k < count; ++k) {
      CHECK(g_is_written[(first + k) * kPage] == (expected[k] ? 1 : 0));
      g_is_written[(first + k) * kPage] = 0;
    }
    CHECK(mprotect(g_cards + first * kCard, count * kCard, PROT_READ | PROT_WRITE) == 0);
  }
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < g_card_count; ++i) {
    CHECK_FILLED(g_cards + i * kCard, kCard, i);
    sum = digest(g_cards + i * kCard, kCard, sum);
  }
  print_digest("cards", sum);
}

// Faults that are given up: the handler jumps back over the frame that touched what it may not.
CASE(jumps_back_from_faults) {
  const Pieces data(data_bytes() / 2, 17);
  g_data = &data;
  g_card_count = data_bytes() / 2 / kCard;
  g_cards = static_cast<char*>(aligned_alloc(kPage, g_card_count * kCard));
  CHECK(g_cards != nullptr);
  for (std::size_t i = 0; i < g_card_count; ++i) fill(g_cards + i * kCard, kCard, i);
  catch_segmentation_faults();
  g_jump_instead = 1;
  Random random(18);
  volatile int jumps = 0;
  while (jumps < 1500) {
    const std::size_t card = random.below(g_card_count);
    char* volatile const at = g_cards + card * kCard;
    CHECK(mprotect(at, kCard, jumps % 2 == 0 ? PROT_NONE : PROT_READ) == 0);
    if (sigsetjmp(g_back, 1) == 0) {
      data.check_a_word(random);
      *static_cast<volatile char*>(at + 100) = 1;
      CHECK(!"reached");
    }
    jumps = jumps + 1;
    CHECK(mprotect(at, kCard, PROT_READ | PROT_WRITE) == 0);
    CHECK_FILLED(at, kPage, card);
  }
  for (std::size_t i = 0; i < g_card_count; ++i) CHECK_FILLED(g_cards + i * kCard, kCard, i);
  data.check_all();
  print_digest("jumps", static_cast<std::uint64_t>(jumps));
}
