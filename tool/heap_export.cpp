// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// farheap heap export: what is known of a version's objects as JSON lines, or the bytes of one object. A file gets its
// name when all of it is written.
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <span>

#include "api/heap_reader.hpp"
#include "base/full_disk.hpp"
#include "heap_text.hpp"
#include "heap_verbs.hpp"
#include "interruption.hpp"
#include "os/named_file.hpp"
#include "terminal.hpp"

namespace farheap::tool {
namespace {

constexpr char kCannotExport[] = "cannot export";

// "-": standard output.
class Output {
 public:
  static Result<Output> open(const std::string& path) {
    if (path == "-") return Output();
    Output output;
    const auto target = os::follow_links(path, kCannotExport);
    if (!target) return fail(target.error());
    output.path_ = *target;
    std::error_code unknown;
    // What is there and no file (a device, a pipe, a link to what is not there yet) is written to, and never replaced.
    struct stat status{};
    const bool replaces =
        stat(path.c_str(), &status) == 0 ? S_ISREG(status.st_mode) : !std::filesystem::is_symlink(path, unknown);
    if (replaces && std::filesystem::exists(output.path_, unknown)) {
      const auto own = os::open_own_file(output.path_, 0, kCannotExport);  // what is somebody else's is not replaced
      if (!own) return fail(own.error());
      close(own->file);
    }
    if (replaces) output.part_ = output.path_ + ".part";
    const auto opened = replaces ? os::replace_file(output.part_, 0600, kCannotExport)
                                 : os::open_output_file(path, 0600, kCannotExport);
    if (!opened) return fail(opened.error());
    output.file_ = *opened;
    return output;
  }
  Output(Output&& other) noexcept
      : path_(std::move(other.path_)), part_(std::move(other.part_)), file_(std::exchange(other.file_, -1)) {}
  Output& operator=(Output&&) = delete;
  ~Output() {
    if (file_ < 0) return;
    close(file_);
    if (!part_.empty()) (void)unlink(part_.c_str());  // it was not finished
  }

  [[nodiscard]] Status write(std::span<const std::byte> bytes) {
    if (Interruption::noted() != 0) return fail(ErrorCode::kUnavailable, kCannotExport, path_, "it was broken off");
    if (path_.empty()) {
      put({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
      return {};
    }
    while (!bytes.empty()) {
      const ssize_t written = ::write(file_, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return fail(why_not(errno));
      bytes = bytes.subspan(static_cast<std::size_t>(written));
    }
    return {};
  }
  [[nodiscard]] Status finish() {
    if (path_.empty()) return {};
    // What is there is replaced when what replaces it survives a power loss.
    const bool durable = part_.empty() || fsync(file_) == 0;
    const bool closed = close(std::exchange(file_, -1)) == 0;
    if (durable && closed && part_.empty()) return {};
    if (durable && closed && rename(part_.c_str(), path_.c_str()) == 0)
      return os::make_names_durable(path_, kCannotExport);
    const Error error = why_not(errno);
    if (!part_.empty()) (void)unlink(part_.c_str());
    return fail(error);
  }

 private:
  Output() = default;
  [[nodiscard]] Error why_not(int errno_value) const {
    Error error = errno_error(errno_value, kCannotExport, path_);
    if (base::is_full_disk(error)) {
      const std::filesystem::path absolute = std::filesystem::absolute(path_);
      error.remedy = base::make_room("export again", shell_word(absolute.parent_path().string()));
    }
    return error;
  }
  std::string path_;  // empty: standard output
  std::string part_;
  int file_ = -1;
};

// A heap is not exported over itself.
Status check_output(const HeapArguments& arguments) {
  const auto place = api::HeapPlace::parse(arguments.uri);
  if (!place) return fail(place.error());
  if (place->is_on_server()) return {};
  std::vector<std::string> files = place->others;
  files.push_back(place->file);
  files.push_back(place->lock_file());
  struct stat out{}, own{};
  if (arguments.out == "-" || stat(arguments.out.c_str(), &out) != 0) return {};
  for (const std::string& file : files) {
    if (stat(file.c_str(), &own) != 0 || own.st_dev != out.st_dev || own.st_ino != out.st_ino) continue;
    return fail(ErrorCode::kInvalidArgument, kCannotExport, arguments.out, "it is a file of the heap itself",
                "name another file, or - for standard output");
  }
  return {};
}

Status write_line(Output& output, const Json& json) {
  const std::string line = text_of(json, -1) + "\n";
  return output.write(std::as_bytes(std::span(line)));
}

Status export_objects(const HeapArguments& arguments, Output& output) {
  const auto facts = Heap::look(arguments.uri);
  if (!facts) return fail(facts.error());
  Json head = {{"format", kJsonFormat},
               {"kind", "farheap heap"},
               {"heap", facts->uri},
               {"id", facts->id},
               {"description", facts->description},
               {"version", json_of(facts->version)},
               {"objects", facts->objects.size()}};
  Status status = write_line(output, head);
  for (std::size_t i = 0; i < facts->objects.size() && status; ++i) {
    status = write_line(output, json_of(facts->objects[i]));
  }
  return status;
}

// The facts and the bytes are of one version: the reader keeps it.
Status export_bytes(const HeapArguments& arguments, Output& output) {
  const auto place = api::HeapPlace::parse(arguments.uri);
  if (!place) return fail(place.error());
  auto reader = api::HeapReader::open(*place);
  if (!reader) return fail(std::move(reader.error()));
  const auto version = reader->version(place->snapshot);
  if (!version) return fail(version.error());
  api::VersionBytes bytes = reader->bytes_of(*version);
  if (const auto books = api::read_books(bytes); !books) return fail(books.error());
  HeapFacts facts;
  auto objects = api::read_objects(bytes, reader->pages_of(*version));
  if (!objects) return fail(std::move(objects.error()));
  facts.objects = std::move(*objects);
  const auto found = objects_named(facts, arguments.name, arguments.uri);
  if (!found) return fail(found.error());
  // A unique object may have the name of a named one: the named one is meant.
  const auto one = std::ranges::min_element(*found, {}, &ObjectInfo::kind);
  return bytes.stream(reinterpret_cast<std::uintptr_t>(one->address), one->bytes,
                      [&](std::span<const std::byte> piece) { return output.write(piece); });
}

}  // namespace

int heap_export(const HeapArguments& arguments) {
  if (const Status possible = check_output(arguments); !possible) return failed(possible.error());
  const Interruption ends_cleanly;
  auto output = Output::open(arguments.out);
  if (!output) return failed(output.error());
  Status status = arguments.name.empty() ? export_objects(arguments, *output) : export_bytes(arguments, *output);
  if (status) status = output->finish();
  return status ? kDone : failed(status.error());
}

}  // namespace farheap::tool
