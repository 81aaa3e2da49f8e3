// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "store/bare_file.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/units.hpp"
#include "base/uri_path.hpp"
#include "os/named_file.hpp"
#include "store/batch.hpp"

namespace farheap::store {
namespace {

class BareFile final : public Store {
 public:
  BareFile(int file, std::string path) : file_(file), path_(std::move(path)) {}
  ~BareFile() override { close(file_); }

  std::string describe() const override { return base::path_uri("file", path_); }
  Capabilities capabilities() const override { return 0; }
  Limits limits() const override {
    return {.block_bytes = base::kPageBytes,
            .largest_value_bytes = base::kMiB,
            .largest_batch_bytes = 64 * base::kMiB,
            .largest_batch_operations = 1024,
            .best_run_bytes = base::kMiB};
  }
  Status get(std::span<Get> batch) override {
    const char* why = "";
    for (Get& one : batch) one.outcome = read(one, why);
    return summary(batch, *this, why);
  }
  Status put(std::span<Put> batch) override {
    for (Put& one : batch) one.outcome = Outcome::kFailed;
    return read_only();
  }
  Status erase(std::uint64_t, std::uint64_t) override { return read_only(); }
  Result<std::int64_t> add(std::string_view, std::int64_t) override { return fail(std::move(read_only().error())); }
  Status sync() override { return {}; }
  Result<StoreUsage> usage() override { return StoreUsage{}; }

 private:
  Outcome read(Get& entry, const char*& why) const {
    entry.version = 1;
    for (std::size_t done = 0; done < entry.into.size();) {
      const ssize_t bytes = pread(file_, entry.into.data() + done, entry.into.size() - done,
                                  static_cast<off_t>(entry.block * base::kPageBytes + done));
      if (bytes == 0) return Outcome::kAbsent;
      if (bytes < 0 && errno != EINTR) {
        why = "it cannot be read";
        return Outcome::kFailed;
      }
      if (bytes > 0) done += static_cast<std::size_t>(bytes);
    }
    for (std::size_t at = 0; at < entry.into.size(); at += base::kPageBytes) {
      if (is_hole(entry.block * base::kPageBytes + at, entry.into.subspan(at, base::kPageBytes))) {
        return Outcome::kAbsent;
      }
    }
    return Outcome::kOk;
  }
  // What was written as zeros is there.
  [[nodiscard]] bool is_hole(std::uint64_t at, std::span<const std::byte> bytes) const {
    if (std::ranges::any_of(bytes, [](std::byte one) { return one != std::byte{}; })) return false;
    const off_t data = lseek(file_, static_cast<off_t>(at), SEEK_DATA);
    return data < 0 ? errno == ENXIO : static_cast<std::uint64_t>(data) >= at + bytes.size();
  }
  [[nodiscard]] Status read_only() const {
    return fail(ErrorCode::kInvalidArgument, "cannot write", describe(), "it was opened to be read");
  }

  int file_;
  std::string path_;
};

}  // namespace

Result<std::unique_ptr<Store>> open_bare_file(const std::string& path) {
  const auto file = os::open_file_to_read(path, "cannot open the store");
  if (!file) return fail(file.error());
  return std::make_unique<BareFile>(*file, path);
}

}  // namespace farheap::store
