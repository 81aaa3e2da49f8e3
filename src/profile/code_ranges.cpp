// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "profile/code_ranges.hpp"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>

namespace farheap::profile {

namespace {

// Code that a program makes itself is in no file: after so many looks in vain only one in as many is taken.
constexpr unsigned kMostInVain = 16;

template <class Number>
bool take_number(std::string_view& text, Number& number, char after) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, 16);
  if (error != std::errc{} || end == text.data() + text.size() || *end != after) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()) + 1);
  return true;
}

std::string_view after_spaces(std::string_view text) {
  const std::size_t at = text.find_first_not_of(' ');
  return at == std::string_view::npos ? std::string_view{} : text.substr(at);
}

}  // namespace

bool read_maps_line(std::string_view line, MapsLine& into) {
  if (!take_number(line, into.first, '-') || !take_number(line, into.end, ' ')) return false;
  if (line.size() < 5 || line[4] != ' ') return false;
  into.is_code = line[2] == 'x';
  line.remove_prefix(5);
  if (!take_number(line, into.offset, ' ')) return false;
  into.file = line;
  const std::size_t device = line.find(' ');
  const std::size_t inode = device == std::string_view::npos ? device : line.find(' ', device + 1);
  if (device == std::string_view::npos) return false;
  into.path = inode == std::string_view::npos ? std::string_view{} : after_spaces(line.substr(inode));
  if (into.path.empty()) into.file = {};
  return into.first < into.end;
}

const CodeRanges::Range* CodeRanges::find(std::uintptr_t address) const {
  const auto after = std::ranges::upper_bound(ranges_, address, {}, [](const Range& range) { return range.first; });
  if (after == ranges_.begin()) return nullptr;
  const Range& range = *(after - 1);
  return address < range.end ? &range : nullptr;
}

int CodeRanges::file_at(std::uintptr_t address, std::string& fresh) {
  if (const Range* const known = find(address)) return known->file;
  if (in_vain_ >= kMostInVain && ++skipped_ % kMostInVain != 0) return kNone;
  read(fresh);
  const Range* const found = find(address);
  if (found == nullptr) ++in_vain_;
  return found != nullptr ? found->file : kNone;
}

int CodeRanges::number_of(std::string_view file) {
  const auto found = std::ranges::find(files_, file);
  if (found != files_.end()) return static_cast<int>(found - files_.begin());
  files_.emplace_back(file);
  return static_cast<int>(files_.size()) - 1;
}

void CodeRanges::note(std::string_view line, std::string& fresh) {
  MapsLine read;
  if (!read_maps_line(line, read) || !read.is_code || read.file.empty()) return;
  const auto at = std::ranges::lower_bound(ranges_, read.first, {}, [](const Range& range) { return range.first; });
  const int file = number_of(read.file);
  const bool is_known = at != ranges_.end() && at->first == read.first;
  if (is_known && at->end == read.end && at->file == file) return;
  if (is_known) {
    *at = {read.first, read.end, file};
  } else {
    ranges_.insert(at, {read.first, read.end, file});
  }
  fresh.append(line).push_back('\n');
}

void CodeRanges::read(std::string& fresh) {
  read_maps([&](std::string_view line) {
    note(line, fresh);
    return true;
  });
}

void read_maps(const std::function<bool(std::string_view line)>& take) {
  char room[8192];
  read_maps(take, room);
}

// In pieces, by the system calls: the program may have an open() and a read() of its own.
void read_maps(const std::function<bool(std::string_view line)>& take, std::span<char> room) {
  const auto file = static_cast<int>(syscall(SYS_openat, AT_FDCWD, "/proc/thread-self/maps", O_RDONLY | O_CLOEXEC));
  if (file < 0) return;
  std::size_t held = 0;
  bool goes_on = true;
  for (long bytes; goes_on && (bytes = syscall(SYS_read, file, room.data() + held, room.size() - held)) > 0;) {
    held += static_cast<std::size_t>(bytes);
    std::string_view text(room.data(), held);
    for (std::size_t end; goes_on && (end = text.find('\n')) != std::string_view::npos; text.remove_prefix(end + 1)) {
      goes_on = take(text.substr(0, end));
    }
    if (text.size() == room.size()) text = {};
    held = text.size();
    std::memmove(room.data(), text.data(), held);
  }
  syscall(SYS_close, file);
}

}  // namespace farheap::profile
