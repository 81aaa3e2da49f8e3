// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "store/file_device.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <linux/stat.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "base/log.hpp"
#include "base/units.hpp"
#include "os/own_descriptors.hpp"

namespace farheap::store {
namespace {

struct Alignment {
  std::size_t memory = 4096;
  std::size_t offset = 4096;
};

// What direct I/O on this file asks for. Kernels before 6.1 do not say: then a page is safe everywhere.
Alignment direct_alignment(int file) {
  struct statx status{};
  if (syscall(SYS_statx, file, "", AT_EMPTY_PATH, STATX_DIOALIGN, &status) != 0) return {};
  if ((status.stx_mask & STATX_DIOALIGN) == 0 || status.stx_dio_mem_align == 0) return {};
  return {status.stx_dio_mem_align, status.stx_dio_offset_align};
}

bool is_in_memory(int file) {
  struct statfs status{};
  if (fstatfs(file, &status) != 0) return false;
  return status.f_type == TMPFS_MAGIC || status.f_type == RAMFS_MAGIC;
}

std::uint64_t file_size_limit() {
  rlimit limit{};
  return getrlimit(RLIMIT_FSIZE, &limit) == 0 ? limit.rlim_cur : RLIM_INFINITY;
}

}  // namespace

FileDevice::FileDevice(int file, int reader, std::string name, const StoreOptions& options)
    : file_(file), reader_(reader), name_(std::move(name)), block_bytes_(options.block_bytes) {
  choose_direct();
  // Buffered writes through a ring are slower than plain ones; and in memory the copy is all there is to do, but a ring
  // would wake a thread for it.
  const bool in_memory = is_in_memory(file_);
  use_ring_ = direct_ && options.use_io_uring && !in_memory;
  // A kept file has a name, and who cut it off would end us where read() is an error.
  if (in_memory && options.lifetime == Lifetime::kScratch) {
    // What is mapped from a file that is open for writing could be made writable, in a forked child, too.
    window_ = std::make_unique<os::FileWindow>(has_reader() ? reader_ : file_);
  }
  struct stat status{};
  if (fstat(file_, &status) == 0) size_.store(static_cast<std::uint64_t>(status.st_size));
  const auto end = static_cast<off_t>(base::round_up(size_.load(), kHoleBytes));
  gives_back_ = fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, end, kHoleBytes) == 0;
  if (!gives_back_ && errno != EBADF) {  // EBADF: it is open to be read
    base::log(base::LogLevel::kInfo, "{}: this file system makes no holes: erased blocks keep their space", name_);
  }
}

std::unique_ptr<FileDevice> FileDevice::take(int file, std::string name, const StoreOptions& options, int reader) {
  if (reader >= 0) reader = os::keep_descriptor(reader);
  return std::unique_ptr<FileDevice>(new FileDevice(os::keep_descriptor(file), reader, std::move(name), options));
}

FileDevice::~FileDevice() {
  window_.reset();
  os::release_descriptor(file_);
  os::release_descriptor(reader_);
}

void FileDevice::leave_only_reader() {
  os::release_descriptor(file_);
  file_ = std::exchange(reader_, -1);
  gives_back_ = false;
}

void FileDevice::choose_direct() {
  const auto alignment = direct_alignment(file_);
  const int flags = fcntl(file_, F_GETFL);
  if (block_bytes_ % alignment.offset != 0) {
    base::log(base::LogLevel::kInfo, "{}: blocks of {} bytes are too small for direct I/O: through the page cache",
              name_, block_bytes_);
    return;
  }
  direct_ = flags >= 0 && fcntl(file_, F_SETFL, flags | O_DIRECT) == 0;
  if (direct_ && has_reader()) direct_ = fcntl(reader_, F_SETFL, fcntl(reader_, F_GETFL) | O_DIRECT) == 0;
  memory_alignment_ = alignment.memory;
  if (!direct_) {
    base::log(base::LogLevel::kInfo, "{}: this file system has no direct I/O: through the page cache", name_);
  }
}

// A write beyond the limit of a file's size is refused here: the kernel would raise SIGXFSZ, which ends most programs.
void FileDevice::run(std::span<os::IoRequest> batch) {
  const auto is_write = [](const os::IoRequest& io) { return io.write; };
  if (std::ranges::none_of(batch, is_write)) return run_within_limits(batch);
  const std::uint64_t limit = file_size_limit();
  const auto is_beyond = [&](const os::IoRequest& io) { return io.write && io.offset + io.bytes > limit; };
  if (limit == RLIM_INFINITY || std::ranges::none_of(batch, is_beyond)) return run_within_limits(batch);
  for (auto& io : batch) {
    if (is_beyond(io)) {
      io.done = 0, io.error = EFBIG;
    } else {
      run_within_limits({&io, 1});
    }
  }
}

void FileDevice::run_within_limits(std::span<os::IoRequest> batch) {
  std::size_t bounced = 0;
  for (auto& io : batch) {
    io.file = file_;
    if (!fits(io)) bounced += base::round_up(io.bytes, memory_alignment_);
  }
  if (bounced == 0) return run_io(batch, way());
  run_bounced(batch, bounced);
}

std::unique_ptr<os::ReadRing> FileDevice::read_ring(unsigned most) const {
  return use_ring_ ? os::ReadRing::make(most) : nullptr;
}

void FileDevice::run_bounced(std::span<os::IoRequest> batch, std::size_t bytes) {
  struct Free {
    void operator()(std::byte* at) const { std::free(at); }
  };
  const std::size_t alignment = std::max<std::size_t>(memory_alignment_, base::kPageBytes);
  std::unique_ptr<std::byte, Free> buffer(
      static_cast<std::byte*>(std::aligned_alloc(alignment, base::round_up(bytes, alignment))));
  if (!buffer) {
    for (auto& io : batch) io.done = 0, io.error = ENOMEM;
    return;
  }
  // The callers' own addresses are found again in the order in which they were replaced.
  std::vector<std::byte*> own;
  own.reserve(batch.size());
  std::byte* next = buffer.get();
  for (auto& io : batch) {
    own.push_back(io.data);
    if (fits(io)) continue;
    if (io.write) std::memcpy(next, io.data, io.bytes);
    io.data = next;
    next += base::round_up(io.bytes, memory_alignment_);
  }
  run_io(batch, way());
  for (std::size_t i = 0; i < batch.size(); ++i) {
    auto& io = batch[i];
    if (io.data != own[i] && !io.write) std::memcpy(own[i], io.data, io.done);
    io.data = own[i];
  }
}

void FileDevice::reach(std::uint64_t end_bytes) {
  // To go over the limit would raise SIGXFSZ, which ends most programs.
  const std::uint64_t step = std::clamp<std::uint64_t>(std::bit_ceil(end_bytes / 4), 64 * base::kMiB, base::kGiB);
  const std::uint64_t wanted = std::min<std::uint64_t>(base::round_up(end_bytes, step), file_size_limit());
  if (wanted < end_bytes) return;
  // A process with an older idea of the size would cut off what another has just written.
  struct stat status{};
  if (fstat(file_, &status) != 0) return;
  auto reached = static_cast<std::uint64_t>(status.st_size);
  if (reached < wanted && ftruncate(file_, static_cast<off_t>(wanted)) == 0) reached = wanted;
  size_.store(reached, std::memory_order_relaxed);
}

void FileDevice::prepare(std::uint64_t first, std::uint64_t count, std::size_t together) {
  const std::uint64_t end = (first + count) * block_bytes_;
  if (!use_ring_ || together < 2 || end > size_.load(std::memory_order_relaxed)) return;
  (void)fallocate(file_, FALLOC_FL_KEEP_SIZE, static_cast<off_t>(first * block_bytes_),
                  static_cast<off_t>(count * block_bytes_));
}

Status FileDevice::punch_bytes(std::uint64_t begin, std::uint64_t end) {
  if (!gives_back_) return {};
  if (fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(begin),
                static_cast<off_t>(end - begin)) == 0) {
    return {};
  }
  return fail(errno_error(errno, "cannot give space back", name_));
}

Status FileDevice::sync() {
  if (fdatasync(file_) == 0) return {};
  return fail(errno_error(errno, "cannot make it durable", name_, "look for a failing device"));
}

Result<std::uint64_t> FileDevice::space_bytes() const {
  struct stat status{};
  if (fstat(file_, &status) != 0) return fail(errno_error(errno, "cannot look at the store", name_));
  return static_cast<std::uint64_t>(status.st_blocks) * 512;
}

}  // namespace farheap::store
