// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where a Metall datastore P lies here, in the folder P/farheap:
//
//   heap ...      a kept heap, file:P/farheap/heap (docs/heaps.md)
//   facts         the version of Metall's interface and the store's UUID
//   description   set_description(); may be written while the store is open
//   complete      there since the first flush, snapshot or close: the heap holds what somebody meant to keep
//
// Thread-safety: as Metall's: two threads must not change the same store at once.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <farheap/heap.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <metall/logger.hpp>
#include <metall/version.hpp>
#include <random>
#include <string>
#include <system_error>

namespace metall::kernel {

inline void log_error(const char* file, int line, const std::string& message) noexcept {
  logger::out(logger::level::error, file, line, message.c_str());
}

class store_folder {
 public:
  using path_type = std::filesystem::path;

  explicit store_folder(path_type base) : base_(std::move(base)), folder_(base_ / "farheap") {}

  [[nodiscard]] const path_type& base() const { return base_; }
  [[nodiscard]] std::string uri() const { return farheap::file_uri((folder_ / "heap").string()); }

  struct facts {
    version_type version = 0;  // 0: there is no store
    std::string uuid;
  };
  [[nodiscard]] facts read_facts() const {
    facts found;
    std::ifstream file(folder_ / "facts");
    std::string key, value;
    while (file >> key >> value) {
      if (key == "version") found.version = static_cast<version_type>(std::stoul(value));
      if (key == "uuid") found.uuid = value;
    }
    return found;
  }
  // False after a message, as all below.
  [[nodiscard]] bool make(const std::string& uuid) const {
    std::error_code error;
    std::filesystem::create_directories(folder_, error);
    if (error) return said("cannot make the folder " + folder_.string() + ": " + error.message());
    return write("facts", "version " + std::to_string(METALL_VERSION) + "\nuuid " + uuid + "\n");
  }
  // The heap first: it is refused while somebody has it open, and then all stays.
  [[nodiscard]] bool remove() const {
    std::error_code error;
    if (!std::filesystem::exists(folder_, error)) return true;
    const auto removed = farheap::Heap::remove(uri());
    if (!removed && removed.error().code != farheap::ErrorCode::kNotFound) return said(removed.error().message());
    std::filesystem::remove_all(folder_, error);
    if (error) return said("cannot remove " + folder_.string() + ": " + error.message());
    std::filesystem::remove(base_, error);  // if it is empty
    return true;
  }

  // Nobody has it open for writing, and something was kept in it.
  [[nodiscard]] bool consistent() const {
    if (!is_complete() || read_facts().version != METALL_VERSION) return false;
    const auto writer = farheap::Heap::has_writer(uri());
    return writer && !*writer;
  }
  [[nodiscard]] bool is_complete() const {
    std::error_code error;
    return std::filesystem::exists(folder_ / "complete", error);
  }
  [[nodiscard]] bool set_complete() const { return is_complete() || write("complete", ""); }

  [[nodiscard]] bool write_description(const std::string& text) const {
    if (read_facts().version == 0) return said("there is no datastore in " + base_.string());
    return write("description", text);
  }
  // Leaves `text` alone and returns false if there is none.
  [[nodiscard]] bool read_description(std::string& text) const {
    std::ifstream file(folder_ / "description", std::ios::binary);
    if (!file) return false;
    text.assign(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    return true;
  }

  // Why there is no store to open.
  [[nodiscard]] std::string what_is_missing() const {
    std::error_code error;
    if (std::filesystem::exists(folder_, error)) {
      return "the datastore " + base_.string() + " was never flushed or closed: there is nothing in it";
    }
    if (std::filesystem::exists(base_ / "mds", error)) {
      return base_.string() + " was written by Metall itself, whose files are not read here (docs/moving.md)";
    }
    return "there is no datastore in " + base_.string();
  }

  [[nodiscard]] static std::string new_uuid() {
    std::random_device random;
    std::string text;
    for (int i = 0; i < 32; ++i) {
      if (i == 8 || i == 12 || i == 16 || i == 20) text += '-';
      const unsigned digit = random() % 16;
      text += "0123456789abcdef"[i == 12 ? 4 : i == 16 ? 8 + digit % 4 : digit];
    }
    return text;
  }

 private:
  static bool said(const std::string& message) {
    log_error(__FILE__, __LINE__, message);
    return false;
  }
  // Whole or not at all.
  [[nodiscard]] bool write(const char* name, const std::string& text) const {
    const path_type temporary = folder_ / (std::string(name) + ".new");
    std::error_code error;
    std::filesystem::remove(temporary, error);  // whatever had the name keeps its contents
    const int file = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    bool done = file >= 0 && ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
    done = done && ::fsync(file) == 0;
    if (file >= 0) ::close(file);
    if (done) std::filesystem::rename(temporary, folder_ / name, error);
    if (done && !error && is_durable()) return true;
    return said("cannot write " + (folder_ / name).string() + ": " + std::strerror(errno));
  }

  // The names in the folder; a file system that cannot make a folder durable has none to lose.
  [[nodiscard]] bool is_durable() const {
    const int folder = ::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) return false;
    const bool done = ::fsync(folder) == 0 || errno == EINVAL || errno == EOPNOTSUPP;
    ::close(folder);
    return done;
  }

  path_type base_;
  path_type folder_;
};

}  // namespace metall::kernel
