// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/clock.hpp"

#include <elf.h>
#include <sys/auxv.h>

#include <atomic>
#include <cstdint>
#include <cstring>

#include "base/system_call.hpp"

namespace farheap::base {
namespace {

using GetTime = int (*)(clockid_t, timespec*);

// The kernel's own library, which it maps into every process (vdso(7)).
class KernelLibrary {
 public:
  explicit KernelLibrary(std::uintptr_t at) : at_(at) {
    const auto* const header = reinterpret_cast<const Elf64_Ehdr*>(at);
    const auto* const parts = reinterpret_cast<const Elf64_Phdr*>(at + header->e_phoff);
    for (int i = 0; i < header->e_phnum; ++i) {
      if (parts[i].p_type == PT_LOAD && shift_ == 0) shift_ = at - parts[i].p_vaddr;
      if (parts[i].p_type == PT_DYNAMIC) dynamic_ = at + parts[i].p_offset;
    }
  }

  [[nodiscard]] GetTime find(const char* name) const {
    if (dynamic_ == 0) return nullptr;
    const auto* const symbols = table<Elf64_Sym>(DT_SYMTAB);
    const auto* const names = table<char>(DT_STRTAB);
    if (symbols == nullptr || names == nullptr) return nullptr;
    // It says nowhere how many symbols there are, but the names lie behind them.
    const auto* const end = reinterpret_cast<const Elf64_Sym*>(names);
    for (const Elf64_Sym* symbol = symbols; symbol + 1 <= end; ++symbol) {
      if (symbol->st_shndx == SHN_UNDEF || std::strcmp(names + symbol->st_name, name) != 0) continue;
      return reinterpret_cast<GetTime>(shift_ + symbol->st_value);
    }
    return nullptr;
  }

 private:
  template <class T>
  [[nodiscard]] const T* table(Elf64_Sxword tag) const {
    for (const auto* entry = reinterpret_cast<const Elf64_Dyn*>(dynamic_); entry->d_tag != DT_NULL; ++entry) {
      if (entry->d_tag == tag) return reinterpret_cast<const T*>(shift_ + entry->d_un.d_ptr);
    }
    return nullptr;
  }

  std::uintptr_t at_;
  std::uintptr_t shift_ = 0;
  std::uintptr_t dynamic_ = 0;
};

int ask_by_system_call(clockid_t clock, timespec* time) {
  return static_cast<int>(system_call(SYS_clock_gettime, clock, time));
}

GetTime find_clock() {
  const std::uintptr_t library = getauxval(AT_SYSINFO_EHDR);
  const GetTime found = library != 0 ? KernelLibrary(library).find("__vdso_clock_gettime") : nullptr;
  return found != nullptr ? found : ask_by_system_call;
}

std::atomic<GetTime> g_get_time{nullptr};

}  // namespace

std::chrono::nanoseconds kernel_time(clockid_t clock) noexcept {
  GetTime get_time = g_get_time.load(std::memory_order_relaxed);
  if (get_time == nullptr) [[unlikely]] {
    get_time = find_clock();
    g_get_time.store(get_time, std::memory_order_relaxed);
  }
  timespec time{};
  get_time(clock, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

Clock::time_point Clock::now() noexcept { return time_point(kernel_time(CLOCK_MONOTONIC)); }

void sleep_until(Clock::time_point moment) noexcept {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(moment);
  const timespec until{seconds.time_since_epoch().count(), (moment - seconds).count()};
  long answer = -EINTR;
  while (answer == -EINTR) {
    answer = kernel_answer(SYS_clock_nanosleep, CLOCK_MONOTONIC, TIMER_ABSTIME, word_of(&until), 0, 0, 0);
  }
}

}  // namespace farheap::base
