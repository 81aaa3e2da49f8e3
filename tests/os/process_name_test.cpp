// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "os/process_name.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <functional>
#include <string_view>

namespace farheap::os {
namespace {

#ifndef CLONE_NEWTIME
constexpr int CLONE_NEWTIME = 0x80;  // Debian 12's headers have it in linux/sched.h only
#endif

// A process that tells its name and then waits to be ended.
class Other {
 public:
  explicit Other(const std::function<void()>& live = [] { pause(); }) {
    int said[2];
    std::array<char, sizeof(ProcessName)> bytes{};
    EXPECT_EQ(pipe(said), 0);
    pid_ = fork();
    if (pid_ == 0) {
      const ProcessName name = name_of_this_process();
      std::memcpy(bytes.data(), &name, sizeof name);
      if (write(said[1], bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) _exit(1);
      close(said[0]), close(said[1]);
      live();
      _exit(0);
    }
    EXPECT_EQ(read(said[0], bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
    std::memcpy(&name_, bytes.data(), sizeof name_);
    close(said[0]), close(said[1]);
  }
  ~Other() { end(); }
  Other(const Other&) = delete;
  Other& operator=(const Other&) = delete;

  [[nodiscard]] const ProcessName& name() const { return name_; }
  [[nodiscard]] pid_t pid() const { return pid_; }
  void kill_it() const { kill(pid_, SIGKILL); }
  void end() {
    if (pid_ == 0) return;
    kill_it();
    EXPECT_EQ(waitpid(pid_, nullptr, 0), pid_);
    pid_ = 0;
  }

 private:
  pid_t pid_ = 0;
  ProcessName name_;
};

constexpr int kForbidden = 99;

// What `look` returns in a child of a process in which `prepare` was called, or kForbidden if that fails.
int in_another_process(const std::function<bool()>& prepare, const std::function<int()>& look) {
  const pid_t outer = fork();
  if (outer == 0) {
    if (!prepare()) _exit(kForbidden);
    const pid_t inner = fork();
    if (inner == 0) _exit(look());
    int status = 0;
    if (inner < 0 || waitpid(inner, &status, 0) != inner || !WIFEXITED(status)) _exit(kForbidden + 1);
    _exit(WEXITSTATUS(status));
  }
  int status = 0;
  EXPECT_EQ(waitpid(outer, &status, 0), outer);
  EXPECT_TRUE(WIFEXITED(status));
  return WEXITSTATUS(status);
}

int seen_from(const std::function<bool()>& place, const ProcessName& name) {
  return in_another_process(place, [&] { return static_cast<int>(presence_of(name)); });
}

bool mount_proc(const char* options) {
  return unshare(CLONE_NEWNS) == 0 && mount("", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         mount("proc", "/proc", "proc", 0, options) == 0;
}

bool be_somebody_who_sees_no_others() { return mount_proc("hidepid=2") && setgid(65534) == 0 && setuid(65534) == 0; }

bool shift_the_clock() {
  if (unshare(CLONE_NEWTIME) != 0) return false;
  const int file = open("/proc/self/timens_offsets", O_WRONLY | O_CLOEXEC);
  if (file < 0) return false;
  constexpr std::string_view kOffsets = "monotonic 100000 0\nboottime 100000 0\n";
  const bool written = write(file, kOffsets.data(), kOffsets.size()) == static_cast<ssize_t>(kOffsets.size());
  close(file);
  return written;
}

bool have_numbers_of_ones_own() { return unshare(CLONE_NEWPID) == 0; }

constexpr int kHere = static_cast<int>(Presence::kHere);
constexpr int kGone = static_cast<int>(Presence::kGone);
constexpr int kElsewhere = static_cast<int>(Presence::kElsewhere);

TEST(ProcessName, HasAllOfItsParts) {
  const ProcessName own = name_of_this_process();
  EXPECT_NE(own.boot, 0u);
  EXPECT_NE(own.pid_namespace, 0u);
  EXPECT_NE(own.time_namespace, 0u);
  EXPECT_EQ(own.pid, static_cast<std::uint64_t>(getpid()));
  EXPECT_NE(own.start, 0u);
  EXPECT_EQ(presence_of(own), Presence::kHere);
}

TEST(ProcessName, IsHereUntilItsEndAlsoWhileItIsStopped) {
  Other other;
  EXPECT_EQ(presence_of(other.name()), Presence::kHere);
  kill(other.pid(), SIGSTOP);
  EXPECT_EQ(waitpid(other.pid(), nullptr, WUNTRACED), other.pid());
  EXPECT_EQ(presence_of(other.name()), Presence::kHere);
  other.end();
  EXPECT_EQ(presence_of(other.name()), Presence::kGone);
}

TEST(ProcessName, IsGoneBeforeItsParentAsks) {
  const Other other;
  other.kill_it();
  siginfo_t info{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(other.pid()), &info, WEXITED | WNOWAIT), 0);
  EXPECT_EQ(presence_of(other.name()), Presence::kGone);
}

// Its state is that of a process that has ended.
TEST(ProcessName, IsHereAfterTheEndOfItsFirstThread) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "NOT TESTED: ThreadSanitizer ends a process whose first thread is waited for";
#endif
  int ended[2];
  ASSERT_EQ(pipe(ended), 0);
  static int first_thread_waits_on = -1;
  first_thread_waits_on = ended[1];
  const Other other([] {
    pthread_t second;
    const auto rest = [](void* first) -> void* {
      pthread_join(*static_cast<pthread_t*>(first), nullptr);
      (void)write(first_thread_waits_on, "", 1);
      for (;;) pause();
    };
    static pthread_t first = pthread_self();
    if (pthread_create(&second, nullptr, rest, &first) != 0) _exit(1);
    syscall(SYS_exit, 0);  // this thread alone; pthread_exit() would unwind into the test
  });
  close(ended[1]);
  char word = 0;
  ASSERT_EQ(read(ended[0], &word, 1), 1);
  close(ended[0]);
  EXPECT_EQ(presence_of(other.name()), Presence::kHere);
}

TEST(ProcessName, IsGoneWhenItsNumberIsAnothers) {
  Other other;
  ProcessName before = other.name();
  before.start -= 1;
  EXPECT_EQ(presence_of(before), Presence::kGone);
}

TEST(ProcessName, IsElsewhereWhereAPartOfItIsNotKnown) {
  const Other other;
  for (auto part : {&ProcessName::boot, &ProcessName::pid_namespace, &ProcessName::time_namespace, &ProcessName::pid,
                    &ProcessName::start}) {
    ProcessName name = other.name();
    name.*part = 0;
    EXPECT_EQ(presence_of(name), Presence::kElsewhere);
    name.*part = other.name().*part + (std::uint64_t{1} << 40);
    EXPECT_EQ(presence_of(name), part == &ProcessName::start ? Presence::kGone : Presence::kElsewhere);
  }
}

// A file that is not there was taken for a process that is not there.
TEST(ProcessName, OneThatIsHiddenIsNotGone) {
  Other other;
  const int seen = seen_from(be_somebody_who_sees_no_others, other.name());
  if (seen == kForbidden) GTEST_SKIP() << "NOT TESTED: /proc with hidepid=2 cannot be mounted here; it takes root";
  EXPECT_EQ(seen, kElsewhere);
  other.end();
  EXPECT_EQ(seen_from(be_somebody_who_sees_no_others, other.name()), kGone) << "kill() sees also what is hidden";
}

TEST(ProcessName, OneUnderAnotherClockIsNotGone) {
  Other other;
  const int seen = seen_from(shift_the_clock, other.name());
  if (seen == kForbidden)
    GTEST_SKIP() << "NOT TESTED: time namespaces cannot be made here; it takes root and Linux 5.6";
  EXPECT_EQ(seen, kElsewhere);
  other.end();
  EXPECT_EQ(seen_from(shift_the_clock, other.name()), kGone) << "nobody has its number, by whatever clock";
}

TEST(ProcessName, OneOfAnotherNamespaceOfNumbersIsElsewhere) {
  const Other other;
  const int seen = in_another_process(have_numbers_of_ones_own, [&] {
    if (!mount_proc("")) return kForbidden;
    return static_cast<int>(presence_of(other.name())) + 10 * static_cast<int>(presence_of(name_of_this_process()));
  });
  if (seen == kForbidden) GTEST_SKIP() << "NOT TESTED: pid namespaces cannot be made here; it takes root";
  EXPECT_EQ(seen, kElsewhere + 10 * kHere);
}

// `unshare --pid` without `--mount-proc`: the numbers in /proc are another namespace's, and say nothing of its own.
TEST(ProcessName, TheNumbersInAProcOfAnotherNamespaceMeanNothing) {
  const int seen = in_another_process(have_numbers_of_ones_own, [] {
    const ProcessName own = name_of_this_process();
    if (own.pid != 1 || own.start != 0) return 50;
    ProcessName with_start = own;  // as if it had been told under a /proc of its own
    with_start.start = 1;
    return static_cast<int>(presence_of(with_start));
  });
  if (seen == kForbidden) GTEST_SKIP() << "NOT TESTED: pid namespaces cannot be made here; it takes root";
  EXPECT_EQ(seen, kElsewhere);
}

}  // namespace
}  // namespace farheap::os
