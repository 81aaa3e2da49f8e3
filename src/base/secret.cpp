// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/secret.hpp"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "base/sealed_file.hpp"
#include "base/units.hpp"

namespace farheap::base {

static constexpr char kCannotKeepSecret[] = "cannot keep a password";
static constexpr std::size_t kMostBytes = 64 * kKiB;

// Pages of their own: what the kernel is told holds for whole pages. The system calls, because inside a program that
// runs on Farheap mmap() is Farheap's own.
class Secret::Bytes {
 public:
  explicit Bytes(std::size_t size) : size_(size), pages_(round_up(size, kPageBytes)) {
    const long at = syscall(SYS_mmap, nullptr, pages_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0L);
    if (at == -1) return;
    at_ = reinterpret_cast<char*>(at);
    syscall(SYS_madvise, at_, pages_, MADV_DONTDUMP);
    syscall(SYS_mlock, at_, pages_);
  }
  ~Bytes() {
    if (at_ == nullptr) return;
    explicit_bzero(at_, size_);
    syscall(SYS_munmap, at_, pages_);
  }
  Bytes(const Bytes&) = delete;
  Bytes& operator=(const Bytes&) = delete;
  [[nodiscard]] char* data() const { return at_; }
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  char* at_ = nullptr;
  std::size_t size_, pages_;
};

Result<Secret> Secret::make(std::string_view text) {
  Secret secret;
  if (text.empty()) return secret;
  const auto bytes = std::make_shared<Bytes>(text.size());
  if (bytes->data() == nullptr) return fail(errno_error(errno, kCannotKeepSecret, "memory"));
  memcpy(bytes->data(), text.data(), text.size());
  secret.bytes_ = bytes;
  return secret;
}

Result<Secret> Secret::take(std::string& text) {
  auto secret = make(text);
  wipe(text);
  return secret;
}

std::string_view Secret::view() const {
  return bytes_ == nullptr ? std::string_view() : std::string_view(bytes_->data(), bytes_->size());
}

void wipe(std::string& text) {
  text.resize(text.capacity());  // allocates nothing
  explicit_bzero(text.data(), text.size());
  text.clear();
}

Result<int> make_secret_file(const Secret& secret, int number_from) {
  const auto text = secret.view();
  if (text.size() > kMostBytes)
    return fail(ErrorCode::kInvalidArgument, kCannotKeepSecret, "the store's URI", "it is too long");
  return make_sealed_file("farheap-secret", text.data(), text.size(), Sealed::kContent, number_from);
}

static Result<Secret> read_secret(int file, const std::string& path) {
  struct stat status{};
  if (fstat(file, &status) != 0) return fail(errno_error(errno, "cannot read the password", path));
  const auto bytes = static_cast<std::size_t>(status.st_size);
  const char* const why = bytes > kMostBytes ? "it is too long" : distrust_of(file, bytes, Sealed::kContent);
  if (why != nullptr) return fail(ErrorCode::kPermission, "cannot read the password", path, why);
  std::string text(bytes, '\0');
  const bool whole = pread(file, text.data(), bytes, 0) == status.st_size;
  auto secret = Secret::take(text);
  if (!whole) return fail(errno_error(errno, "cannot read the password", path));
  return secret;
}

Result<Secret> read_secret_file(const std::string& path) {
  const int file = open_plain_file(path.c_str(), O_RDONLY);
  if (file < 0) return fail(errno_error(errno, "cannot read the password", path));
  auto secret = read_secret(file, path);
  syscall(SYS_close, file);
  return secret;
}

}  // namespace farheap::base
