// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "doctor_checks.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <farheap/store.hpp>
#include <memory>

#include "address_room.hpp"
#include "base/units.hpp"
#include "base/uri_path.hpp"
#include "environment.hpp"
#include "os/kernel_features.hpp"
#include "os/memory_group.hpp"
#include "segment/address_slots.hpp"
#include "store/secrets.hpp"

namespace farheap::tool {
namespace {

using base::format_size;

constexpr std::uint64_t kLeastOpenFiles = 256;

Check check_userfaultfd(const os::KernelFeatures& kernel) {
  Check check{"userfaultfd", CheckState::kOk, "serves system calls too", "pages come back when they are touched", {}};
  if (const auto usable = check_userfault(kernel); !usable) {
    check.state = CheckState::kMissing;
    check.found = usable.error().subject + ": " + usable.error().why;
    if (!kernel.kernel_faults) {
      for (const auto& grant : userfault_grants()) check.mend.push_back(grant.command + "   # " + grant.meaning);
    }
  } else if (kernel.userfault == os::UserfaultAccess::kDevice) {
    check.found += ", through /dev/userfaultfd";
  }
  return check;
}

Check check_kernel(const os::KernelFeatures& kernel, const os::MachineLimits& limits) {
  Check check{"kernel", CheckState::kOk, "Linux " + limits.kernel_release, "newer kernels evict with less work", {}};
  std::string missing;
  const auto need = [&](bool there, const char* name) {
    if (!there) missing += (missing.empty() ? "" : ", ") + std::string(name);
  };
  need(kernel.write_protect, "write protection (5.7)");
  need(kernel.poison, "poison (6.6)");
  need(kernel.wp_async, "asynchronous write protection (6.7)");
  need(kernel.pagemap_scan, "pagemap scan (6.7)");
  need(kernel.move, "move (6.8)");
  if (missing.empty()) {
    check.found += ", everything of 6.8";
  } else {
    check.state = CheckState::kWarn;
    check.found += " without " + missing + "; runs as on 6.1, with more faults and copies";
  }
  return check;
}

Check check_io_uring(const os::KernelFeatures& kernel) {
  Check check{"io_uring", CheckState::kOk, "allowed", "many reads and writes at once, from few threads", {}};
  if (kernel.io_uring) return check;
  check.state = CheckState::kWarn;
  check.found = "not allowed or disabled; plain reads and writes by threads take its place";
  check.mend = {"sudo sysctl kernel.io_uring_disabled=0   # Linux 6.6 and later; in a container: its seccomp profile"};
  return check;
}

// A check that is missing with the error's own words and remedy.
Check failed_check(Check check, const Status& status) {
  if (status) return check;
  check.state = CheckState::kMissing;
  check.found += ": " + status.error().why;
  check.mend = {status.error().remedy};
  return check;
}

Check check_overcommit(const os::MachineLimits& limits) {
  Check check{
      "overcommit", CheckState::kOk, "", "the heap's addresses are reserved before there is memory for them", {}};
  check.found = fmt::format("vm.overcommit_memory = {}", static_cast<int>(limits.overcommit));
  // A limit of this process alone is the next check's business.
  const bool granted = limits.address_space_bytes || try_to_reserve(segment::kAddressesOfAProcess);
  return failed_check(std::move(check), check_overcommit_mode(limits, granted));
}

Check check_address_space(const os::MachineLimits& limits, const std::string& store) {
  Check check{"address space", CheckState::kOk, "no limit", "a heap reserves far more addresses than memory", {}};
  if (!limits.address_space_bytes) return check;
  check.found = "limited to " + format_size(*limits.address_space_bytes);
  return failed_check(std::move(check), check_address_limit(limits, addresses_needed(store)));
}

Check check_open_files(const os::MachineLimits& limits) {
  Check check{"open files",
              CheckState::kOk,
              fmt::format("{} allowed", limits.open_files),
              "the store and the pager need a few in every process",
              {}};
  if (limits.open_files >= kLeastOpenFiles) return check;
  check.state = CheckState::kWarn;
  check.mend = {"ulimit -n 1024"};
  return check;
}

Check check_huge_pages(const os::KernelFeatures& kernel) {
  Check check{"huge pages", CheckState::kOk, "allowed", "fewer faults while all fits into memory", {}};
  if (kernel.huge_pages) return check;
  check.state = CheckState::kWarn;
  check.found = "switched off";
  check.mend = {"echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled"};
  return check;
}

Check check_control_group(const base::Options& options) {
  const std::uint64_t budget = options.memory != 0 ? options.memory : os::automatic_budget();
  Check check{"memory", CheckState::kOk, "", "the kernel ends programs that go over their control group's limit", {}};
  const auto group = os::MemoryGroup::of_this_process();
  const auto limit = group ? group->limit_bytes() : std::nullopt;
  const std::uint64_t most = limit ? os::budget_below(*limit) : UINT64_MAX;
  check.found = (limit ? "control group limit " + format_size(*limit) : std::string("no control group limit")) +
                ", budget " + format_size(budget);
  if (budget < base::kLeastBudgetBytes) {
    check.state = CheckState::kMissing;
    check.found += ", the least is " + format_size(base::kLeastBudgetBytes);
    check.mend = {fmt::format("farheap run --memory {}M -- ...", base::kLeastBudgetBytes / base::kMiB)};
  } else if (budget > most) {
    check.state = CheckState::kWarn;
    check.found += ": that leaves too little for the rest of the program";
    check.mend = {fmt::format("farheap run --memory {}M -- ...", most / base::kMiB)};
  }
  return check;
}

// The folder of a file store's URI, "" for stores that are no files.
std::string folder_of_store(const std::string& uri) {
  const auto colon = uri.find(':');
  if (colon == std::string::npos) return {};
  const std::string engine = uri.substr(0, colon).substr(uri.substr(0, colon).rfind('+') + 1);
  if (engine != "file" && engine != "lmdb") return {};
  const std::string place = base::unescape_path(uri.substr(colon + 1, uri.find('?', colon) - colon - 1));
  struct stat status{};
  if (stat(place.c_str(), &status) == 0 && S_ISDIR(status.st_mode)) return place;
  const auto slash = place.rfind('/');
  return slash == std::string::npos ? "." : place.substr(0, slash + 1);
}

// 0, or the errno with which a page cannot be written past the page cache.
int try_direct_write(const std::string& folder) {
  const int file = open(folder.c_str(), O_TMPFILE | O_RDWR | O_DIRECT | O_CLOEXEC, 0600);
  if (file < 0) return errno;
  const std::unique_ptr<void, decltype(&std::free)> page(std::aligned_alloc(base::kPageBytes, base::kPageBytes),
                                                         &std::free);
  std::memset(page.get(), 1, base::kPageBytes);
  const ssize_t put = pwrite(file, page.get(), base::kPageBytes, 0);
  const int why = put == static_cast<ssize_t>(base::kPageBytes) ? 0 : errno;
  close(file);
  return why;
}

Check check_store(const base::Options& options) {
  Check check{"store", CheckState::kOk, store::without_secrets(options.store), "what is not in memory is there", {}};
  StoreOptions how;
  how.use_io_uring = !options.disable.has(base::Feature::kIoUring);
  how.password_file = options.store_password_file;
  if (const auto store = open_store(options.store, how); !store) {
    check.state = CheckState::kMissing;
    check.found = store.error().message();
    check.mend = {"farheap run --store file:DIR -- ...   # a folder you may write", "farheap store kinds"};
  } else if (const auto saves = check_store_saves_memory(options.store); !saves) {
    check.state = CheckState::kWarn;
    check.found += ": " + saves.error().why;
    check.mend = {"farheap run --store file:DIR -- ...   # or compress+mem: for data that packs well"};
  }
  return check;
}

Check check_store_disk(const base::Options& options, const std::string& folder) {
  const std::uint64_t budget = options.memory != 0 ? options.memory : os::automatic_budget();
  Check check{"store's disk", CheckState::kOk, folder, "a file in memory saves no memory; a full disk stops a run", {}};
  struct statvfs space{};
  if (statvfs(folder.c_str(), &space) != 0) {
    check.state = CheckState::kWarn;
    check.found += ": " + std::string(strerror(errno));
    return check;
  }
  const std::uint64_t room = std::uint64_t{space.f_bavail} * space.f_frsize;
  check.found += ", " + format_size(room) + " free";
  if (is_in_memory(folder)) {
    check.state = CheckState::kWarn;
    check.found += ", but it is kept in memory (tmpfs)";
    check.mend = {"farheap run --store file:/var/tmp -- ...   # any folder on a disk"};
  } else if (room < budget) {
    check.state = CheckState::kWarn;
    check.found += ", less than the budget";
    check.mend = {"df -h   # and choose another folder: --store file:DIR"};
  } else if (const int why = try_direct_write(folder); why != 0) {
    check.state = CheckState::kWarn;
    check.found += ", without O_DIRECT (" + std::string(strerror(why)) + "): the page cache holds a second copy";
    check.mend = {"farheap run --store file:DIR -- ...   # on ext4, xfs or btrfs"};
  }
  return check;
}

Check check_preload(const base::Options& options) {
  Check check{"preload library", CheckState::kOk, "", "it is what brings Farheap into a program", {}};
  const auto library = find_preload_library(options);
  check.found = library ? *library : library.error().message();
  if (!library) check.state = CheckState::kMissing;
  return check;
}

Check check_engines() {
  Check check{"store kinds", CheckState::kOk, "", "`farheap store kinds` explains them", {}};
  for (const auto& kind : farheap::store_kinds()) {
    check.found += (check.found.empty() ? "" : " ") + std::string(kind.scheme) + (kind.decorator ? "+" : ":");
  }
  return check;
}

}  // namespace

std::vector<Check> check_machine(const base::Options& options) {
  const auto kernel = os::detect_kernel_features(options.disable);
  const auto limits = os::detect_machine_limits();
  std::vector<Check> checks{check_userfaultfd(kernel),
                            check_kernel(kernel, limits),
                            check_io_uring(kernel),
                            check_overcommit(limits),
                            check_address_space(limits, options.store),
                            check_open_files(limits),
                            check_control_group(options),
                            check_huge_pages(kernel),
                            check_store(options)};
  if (const auto folder = folder_of_store(options.store); !folder.empty()) {
    checks.push_back(check_store_disk(options, folder));
  }
  checks.push_back(check_preload(options));
  checks.push_back(check_engines());
  return checks;
}

}  // namespace farheap::tool
