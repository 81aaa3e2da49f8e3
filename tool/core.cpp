// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// farheap core CORE --store URI --out WHOLE: a copy of a core with the pages in it that had left memory. With --pid PID
// instead of CORE: the core of a program that goes on running.
//
// A core, and the memory of another's process, is foreign input. So the store that it names is said, and not opened: it
// could be any file, or a server that would be told the user's password. The user says which store it is.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/without_secrets.hpp"
#include "environment.hpp"
#include "interruption.hpp"
#include "live_core.hpp"
#include "store/kinds.hpp"
#include "store/uri.hpp"
#include "terminal.hpp"
#include "verbs.hpp"
#include "whole_core.hpp"

namespace farheap::tool {
namespace {

constexpr char kCannotMakeWhole[] = "cannot make the core whole";

// For a program that follows whatever link it finds under a name: nobody else can make one in here.
class OwnFolder {
 public:
  static Result<OwnFolder> make_beside(const std::string& path) {
    std::string folder = path + ".XXXXXX";
    if (mkdtemp(folder.data()) == nullptr) {
      return fail(errno_error(errno, "cannot write the core", path, "name a file in a folder that you may write"));
    }
    return OwnFolder(std::move(folder));
  }
  OwnFolder(OwnFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  OwnFolder& operator=(OwnFolder&&) = delete;
  ~OwnFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] std::string file() const { return path_ + "/core"; }

 private:
  explicit OwnFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

std::string live_or_core(const CoreArguments& arguments) {
  return arguments.process != 0 ? fmt::format("process {}", arguments.process) : arguments.core;
}

// A file that is gone again unless it is kept: half a core is none.
class NewFile {
 public:
  static Result<NewFile> make(const std::string& path) { return open_with(path, O_CREAT | O_EXCL); }
  // That another program has made for us, under another name in the same file system.
  static Result<NewFile> adopt(const std::string& made, const std::string& path) {
    if (renameat2(AT_FDCWD, made.c_str(), AT_FDCWD, path.c_str(), RENAME_NOREPLACE) != 0) {
      return fail(errno_error(errno, "cannot write the core", path, "name a file that is not there yet"));
    }
    return open_with(path, O_NOFOLLOW);
  }
  NewFile(NewFile&& other) noexcept : file_(std::exchange(other.file_, -1)), path_(std::exchange(other.path_, {})) {}
  NewFile& operator=(NewFile&&) = delete;
  ~NewFile() {
    if (file_ >= 0) close(file_);
    if (!path_.empty()) unlink(path_.c_str());
  }
  [[nodiscard]] int file() const { return file_; }
  [[nodiscard]] int take_file() { return std::exchange(file_, -1); }
  void keep() { path_.clear(); }

 private:
  static Result<NewFile> open_with(const std::string& path, int flags) {
    const int file = open(path.c_str(), O_RDWR | O_CLOEXEC | flags, 0600);
    if (file < 0) return fail(errno_error(errno, "cannot write the core", path, "name a file that is not there yet"));
    return NewFile(file, path);
  }
  NewFile(int file, std::string path) : file_(file), path_(std::move(path)) {}
  int file_;
  std::string path_;
};

bool copy_range(int from, int to, off_t begin, off_t end) {
  off_t in = begin, out = begin;
  while (in < end) {
    ssize_t done = copy_file_range(from, &in, to, &out, static_cast<std::size_t>(end - in), 0);
    if (done < 0 && (errno == EXDEV || errno == EOPNOTSUPP || errno == EINVAL)) {
      char bytes[65536];
      done = pread(from, bytes, std::min<std::size_t>(sizeof bytes, static_cast<std::size_t>(end - in)), in);
      if (done > 0) done = pwrite(to, bytes, static_cast<std::size_t>(done), out);
      if (done > 0) in += done, out += done;
    }
    if (done == 0 || (done < 0 && errno != EINTR)) return false;
  }
  return true;
}

// A core is mostly holes, and so is its copy.
Status copy_with_holes(int from, int to, const std::string& name) {
  const off_t end = lseek(from, 0, SEEK_END);
  bool ok = end >= 0 && ftruncate(to, end) == 0;
  for (off_t at = 0; ok && at < end;) {
    const off_t data = lseek(from, at, SEEK_DATA);
    if (data < 0 && errno == ENXIO) break;  // only a hole is left
    const off_t hole = data < 0 ? -1 : lseek(from, data, SEEK_HOLE);
    ok = hole >= 0 && copy_range(from, to, data, hole);
    at = hole;
  }
  if (!ok) return fail(errno_error(errno, "cannot copy the core", name));
  return {};
}

// Of what a core says, for a terminal and to be typed again: nothing but itself in a shell.
std::string shown(const std::string& uri) {
  std::string text = base::without_secrets(uri);
  std::ranges::replace_if(text, [](unsigned char c) { return c <= ' ' || c >= 0x7F || c == '\''; }, '?');
  return text;
}

// The last part of the store's name, which the run has chosen. Empty: it is no name.
std::string name_of_store(const std::string& uri) {
  const auto parts = store::parse_uri(uri, store::vocabulary());
  if (!parts) return {};
  const auto name = std::filesystem::path(parts->place).filename().string();
  return name == "." || name == ".." ? "" : name;
}

// The user's own word, and in the folder of the run that of the core for which of the stores there.
Result<std::string> store_of_user(const CoreNotes& notes, const CoreArguments& arguments) {
  if (arguments.store.empty()) {
    return fail(ErrorCode::kPermission, kCannotMakeWhole, live_or_core(arguments),
                fmt::format("it names the store '{}', and what a core says is not believed", shown(notes.store)),
                fmt::format("if that is where its program ran, say so: --store '{}'", shown(notes.store)));
  }
  const auto given = store::parse_uri(arguments.store, store::vocabulary());
  if (!given) return fail(given.error());
  const auto named = store::parse_uri(notes.store, store::vocabulary());
  const auto name = name_of_store(notes.store);
  const bool is_itself = named && named->place == given->place;
  std::error_code ignored;
  const bool is_folder = std::filesystem::is_directory(given->place, ignored);
  return is_itself || !is_folder || name.empty() ? arguments.store : store::place_inside(arguments.store, name);
}

// As the runtime had it. Nothing is made where nothing is.
Result<std::unique_ptr<Store>> open_kept_store(const CoreNotes& notes, const CoreArguments& arguments,
                                               const base::Options& options) {
  const auto store = store_of_user(notes, arguments);
  if (!store) return fail(store.error());
  const auto uri = store::parse_uri(*store, store::vocabulary());
  if (!uri) return fail(uri.error());
  std::error_code ignored;
  if (!std::filesystem::exists(uri->place, ignored)) {
    return fail(ErrorCode::kNotFound, kCannotMakeWhole, uri->place, "the store of its program is not there",
                "it stays only when `farheap run --set whole_core=on` sees its program ended by a signal");
  }
  StoreOptions how;
  how.lifetime = Lifetime::kKeep;
  how.encrypt_key_file = options.encrypt_key_file;
  how.password_file = options.store_password_file;
  return open_store(*store, how);
}

Status broken_off() { return fail(ErrorCode::kUnavailable, kCannotMakeWhole, "", "it was broken off before the end"); }

Status read_on(Store& store, std::span<Get> batch) {
  return Interruption::noted() != 0 ? broken_off() : store.get(batch);
}

Result<Filled> finish(Result<Filled> filled, NewFile& out) {
  if (Interruption::noted() != 0) return fail(broken_off().error());
  if (filled) out.keep();
  return filled;
}

Result<Filled> make_whole(const CoreArguments& arguments, const base::Options& options) {
  const int from = open(arguments.core.c_str(), O_RDONLY | O_CLOEXEC);
  if (from < 0) return fail(errno_error(errno, "cannot read the core", arguments.core));
  const auto core = CoreFile::take(from, arguments.core);
  if (!core) return fail(core.error());
  const auto notes = find_notes(*core);
  if (!notes) return fail(notes.error());
  const auto store = open_kept_store(*notes, arguments, options);
  if (!store) return fail(store.error());
  auto out = NewFile::make(arguments.out);
  if (!out) return fail(out.error());
  if (auto copied = copy_with_holes(from, out->file(), arguments.core); !copied) return fail(copied.error());
  auto whole = CoreFile::take(out->take_file(), arguments.out);
  if (!whole) return fail(whole.error());
  return finish(fill_in(*whole, *notes, [&](std::span<Get> batch) { return read_on(**store, batch); }), *out);
}

// Of a process that goes on afterwards. The store is opened before it stops: it may stop in the middle of anything.
Result<Filled> make_live(const CoreArguments& arguments, const base::Options& options) {
  std::error_code ignored;
  if (std::filesystem::exists(std::filesystem::symlink_status(arguments.out, ignored))) {
    return fail(errno_error(EEXIST, "cannot write the core", arguments.out, "name a file that is not there yet"));
  }
  const auto live = find_live_notes(arguments.process);
  if (!live) return fail(live.error());
  const auto store = open_kept_store(*live, arguments, options);
  if (!store) return fail(store.error());
  const auto place = store::parse_uri(store_of_user(*live, arguments).value(), store::vocabulary())->place;
  const auto stopped = StoppedProcess::stop(arguments.process, place);
  if (!stopped) return fail(stopped.error());
  const auto notes = find_live_notes(arguments.process);  // as they are now
  if (!notes) return fail(notes.error());
  const auto folder = OwnFolder::make_beside(arguments.out);
  if (!folder) return fail(folder.error());
  if (auto dumped = dump_by_gdb(arguments.process, folder->file()); !dumped) return fail(dumped.error());
  auto out = NewFile::adopt(folder->file(), arguments.out);
  if (!out) return fail(out.error());
  auto core = CoreFile::take(out->take_file(), arguments.out);
  if (!core) return fail(core.error());
  if (auto copied = copy_from_memory(arguments.process, *notes, *core); !copied) return fail(copied.error());
  return finish(fill_in(*core, *notes, [&](std::span<Get> batch) { return read_on(**store, batch); }), *out);
}

void print(const CoreArguments& arguments, const Filled& filled) {
  if (arguments.json) {
    const nlohmann::ordered_json whole = {{"format", kJsonFormat},
                                          {"core", arguments.core},
                                          {"out", arguments.out},
                                          {"pages_from_memory", filled.from_staging},
                                          {"pages_from_store", filled.from_store},
                                          {"pages_missing", filled.missing}};
    print_out("{}\n", whole.dump(2));
    return;
  }
  say(fmt::format("{}: {} pages put back from the store, {} from memory", arguments.out, filled.from_store,
                  filled.from_staging));
}

}  // namespace

int core(const CoreArguments& arguments) {
  const auto loaded = load_tool_options(arguments.settings);
  if (!loaded) return wrong_usage(loaded.error());
  if ((arguments.process != 0) != arguments.core.empty()) {
    return wrong_usage({ErrorCode::kInvalidArgument, "which core", "", "", "name a core, or a process with --pid"});
  }
  const bool live = arguments.process != 0;
  const Interruption ends_cleanly;  // a process that was stopped for it goes on
  const auto filled = live ? make_live(arguments, loaded->options) : make_whole(arguments, loaded->options);
  if (!filled) {
    complain(filled.error());
    return kFailed;
  }
  print(arguments, *filled);
  if (filled->missing == 0) return kDone;
  complain({ErrorCode::kCorrupt, fmt::format("{} pages are zeros in it", filled->missing), arguments.out, filled->why,
            "use the rest with care"});
  return kFailed;
}

}  // namespace farheap::tool
