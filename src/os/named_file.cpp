// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "os/named_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace farheap::os {
namespace {

constexpr int kMostLinks = 40;  // as the kernel's

class Descriptor {
 public:
  explicit Descriptor(int file) : file_(file) {}
  ~Descriptor() {
    if (file_ < 0) return;
    const int error = errno;
    close(file_);
    errno = error;
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  [[nodiscard]] int get() const { return file_; }
  [[nodiscard]] int release() { return std::exchange(file_, -1); }

 private:
  int file_;
};

bool is_own(uid_t owner) { return owner == geteuid() || owner == 0; }

tl::unexpected<Error> refuse(const char* what, const std::string& path, std::string why, std::string remedy) {
  return fail(ErrorCode::kPermission, what, path, std::move(why), std::move(remedy));
}

std::string folder_of(const std::string& path) {
  const auto slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

tl::unexpected<Error> not_opened(const char* what, const std::string& path) {
  if (errno == ELOOP) {
    return refuse(what, path, "it is a symbolic link, and those are not followed here",
                  "look who has put it there; remove it if it is not yours");
  }
  const bool folder = errno == EACCES || errno == ENOENT || errno == EROFS;
  return fail(errno_error(errno, what, path, folder ? "name a file in a folder that you may write" : ""));
}

tl::unexpected<Error> not_plain(const char* what, const std::string& path) {
  return fail(ErrorCode::kInvalidArgument, what, path, "it is not an ordinary file", "name another one");
}

Status check_others(const struct stat& status, const std::string& path, const char* what) {
  if ((status.st_mode & S_IWOTH) == 0) return {};
  return refuse(what, path, fmt::format("everybody may write to it (mode {:04o})", status.st_mode & 07777),
                fmt::format("chmod o-w {}, if what is in it is yours", path));
}

Status check_owner(const struct stat& status, const std::string& path, const char* what) {
  if (is_own(status.st_uid)) return {};
  return refuse(what, path, fmt::format("it belongs to user {}, and you are user {}", status.st_uid, geteuid()),
                "do it as its owner, or name another file");
}

Status check_own(const struct stat& status, const std::string& path, const char* what) {
  if (!S_ISREG(status.st_mode)) return not_plain(what, path);
  if (Status owner = check_owner(status, path, what); !owner) return owner;
  if (Status others = check_others(status, path, what); !others) return others;
  if (status.st_nlink <= 1) return {};
  return refuse(what, path,
                fmt::format("it has {} names (hard links), and what is written here is changed there", status.st_nlink),
                fmt::format("make a copy under a name of its own; `find / -samefile {}` shows the other names", path));
}

}  // namespace

Result<std::string> follow_links(const std::string& path, const char* what) {
  std::string at = path;
  uid_t stranger = 0;  // whose link was followed; root's and our own apart
  bool has_stranger = false;
  for (int links = 0; links <= kMostLinks; ++links) {
    struct stat status{};
    const bool is_there = lstat(at.c_str(), &status) == 0;
    if (!is_there || !S_ISLNK(status.st_mode)) {
      if (!has_stranger || (is_there && status.st_uid == stranger)) return at;
      return refuse(what, path,
                    fmt::format("it is a symbolic link of user {} to {}, which is not theirs", stranger, at),
                    fmt::format("name {} itself, if that is what you mean", at));
    }
    if (!is_own(status.st_uid)) {
      if (has_stranger && stranger != status.st_uid) {
        return refuse(what, path, "symbolic links of several other users lead there", "name the file itself");
      }
      has_stranger = true, stranger = status.st_uid;
    }
    char target[PATH_MAX];
    const ssize_t bytes = readlink(at.c_str(), target, sizeof target);
    if (bytes < 0) return fail(errno_error(errno, what, at));
    const std::string next(target, static_cast<std::size_t>(bytes));
    at = next.starts_with('/') ? next : folder_of(at) + "/" + next;
  }
  return fail(errno_error(ELOOP, what, path));
}

Status check_own_file(int file, const std::string& path, const char* what) {
  struct stat status{};
  if (fstat(file, &status) != 0) return fail(errno_error(errno, what, path));
  return check_own(status, path, what);
}

Result<NamedFile> open_own_file(const std::string& path, mode_t mode, const char* what) {
  for (;;) {
    if (mode != 0) {
      const int made = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
      if (made >= 0) {
        (void)fchmod(made, mode);  // a umask may have taken bits away
        return NamedFile{made, true};
      }
      if (errno != EEXIST) return not_opened(what, path);
    }
    // O_NONBLOCK: to open a pipe must not wait for its other side.
    Descriptor there(open(path.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (there.get() < 0 && errno == ENOENT && mode != 0) continue;  // it was removed in between
    if (there.get() < 0) return not_opened(what, path);
    if (Status own = check_own_file(there.get(), path, what); !own) return fail(std::move(own.error()));
    return NamedFile{there.release(), false};
  }
}

Result<int> open_file_to_read(const std::string& path, const char* what) {
  Descriptor there(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat status{};
  if (there.get() < 0 || fstat(there.get(), &status) != 0) return not_opened(what, path);
  if (!S_ISREG(status.st_mode)) return not_plain(what, path);
  if (Status others = check_others(status, path, what); !others) return fail(std::move(others.error()));
  return there.release();
}

Status check_trusted_file(int file, const std::string& path, const char* what) {
  struct stat status{};
  if (fstat(file, &status) != 0) return fail(errno_error(errno, what, path));
  if (Status owner = check_owner(status, path, what); !owner) return owner;
  return check_others(status, path, what);
}

Result<int> open_output_file(const std::string& path, mode_t mode, const char* what) {
  struct stat status{};
  if (stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
    const int file = open(path.c_str(), O_WRONLY | O_CLOEXEC);
    return file >= 0 ? Result<int>(file) : not_opened(what, path);
  }
  const auto followed = follow_links(path, what);
  if (!followed) return fail(followed.error());
  for (;;) {
    const int made = open(followed->c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    if (made >= 0) return made;
    if (errno != EEXIST) return not_opened(what, path);
    Descriptor there(open(followed->c_str(), O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (there.get() < 0 && errno == ENOENT) continue;
    if (there.get() < 0) return not_opened(what, path);
    if (Status own = check_own_file(there.get(), *followed, what); !own) return fail(std::move(own.error()));
    if (ftruncate(there.get(), 0) != 0) return fail(errno_error(errno, what, path));
    return there.release();
  }
}

Result<int> replace_file(const std::string& path, mode_t mode, const char* what) {
  for (;;) {
    const int made = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    if (made >= 0) return made;
    if (errno != EEXIST) return not_opened(what, path);
    if (unlink(path.c_str()) != 0 && errno != ENOENT) return not_opened(what, path);
  }
}

// A folder that may be written and not read, and file systems that cannot make one folder durable: then all of the file
// system is made so.
Status make_names_durable(const std::string& path, const char* what) {
  const std::string folder = folder_of(path);
  Descriptor opened(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (opened.get() >= 0 && fsync(opened.get()) == 0) return {};
  const int why = errno;
  if (opened.get() < 0 && why == EACCES) {
    const Descriptor file(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (file.get() >= 0 && syncfs(file.get()) == 0) return {};
  }
  if (opened.get() >= 0 && (why == EINVAL || why == EOPNOTSUPP) && syncfs(opened.get()) == 0) return {};
  return fail(errno_error(why, what, folder,
                          "the names of its files may not survive a power loss: look for a failing "
                          "device"));
}

}  // namespace farheap::os
