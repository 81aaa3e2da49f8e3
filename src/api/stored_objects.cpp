// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A heap's books and directory, as their bytes say (docs/formats.md, "A heap in a kept segment"). Pointers are numbers
// here.
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

#include "api/directory.hpp"
#include "api/heap_reader.hpp"
#include "segment/kept_segment.hpp"

namespace farheap::api {
namespace {

constexpr std::uint64_t kRoot = segment::KeptBooks::kBytes;
constexpr std::uint64_t kDirectory = kRoot + base::round_up(sizeof(heap::Heap), 64);
// Behind the directory and what every process makes anew: a pointer to the text, or 0.
constexpr std::uint64_t kDescription = kDirectory + 128;
constexpr std::uint64_t kLongestDescription = base::kMiB;
constexpr std::uint64_t kLongestText = 16 * base::kMiB;  // longer ones are taken for damage

struct BooksHead {
  std::uint64_t magic;
  std::uint32_t format, flags;
  std::uint64_t next_table, end_of_tables;
};

struct DirectoryHead {
  std::uint64_t buckets, bucket_count, objects, oldest, newest, polymorphic_objects;
};
static_assert(sizeof(DirectoryHead) == sizeof(Directory) && sizeof(DirectoryHead) <= 128 - 64);

struct Record {
  std::uint64_t next_of_name, next_of_address, older, newer, object, length, element_bytes, name_hash;
  std::uint64_t name, type, description;
  std::uint32_t name_bytes;
  std::uint16_t kind, flags;
};
static_assert(sizeof(Record) == sizeof(ObjectRecord));
static_assert(offsetof(Record, older) == offsetof(ObjectRecord, older));
static_assert(offsetof(Record, object) == offsetof(ObjectRecord, object));
static_assert(offsetof(Record, name) == offsetof(ObjectRecord, name));
static_assert(offsetof(Record, kind) == offsetof(ObjectRecord, kind));

class DirectoryReader {
 public:
  DirectoryReader(VersionBytes& bytes, std::uint64_t pages) : bytes_(bytes), room_(pages * base::kPageBytes) {}

  [[nodiscard]] Result<std::vector<ObjectInfo>> all() {
    const auto head = bytes_.read_as<DirectoryHead>(bytes_.range().base + kDirectory);
    if (!head) return fail(head.error());
    std::vector<ObjectInfo> objects;
    std::uint64_t before = 0;
    for (std::uint64_t at = head->oldest; at != 0;) {
      const auto record = bytes_.read_as<Record>(at);
      if (!record) return fail(record.error());
      // A list that comes back to a record it has left comes from another one than the first time.
      if (record->older != before) return fail(wrong("a record does not know the one before it"));
      auto object = object_of(*record);
      if (!object) return fail(std::move(object.error()));
      objects.push_back(std::move(*object));
      before = at;
      at = record->newer;
    }
    if (objects.size() != head->objects || before != head->newest) {
      return fail(wrong(fmt::format("it has {} records instead of {}", objects.size(), head->objects)));
    }
    return objects;
  }

 private:
  [[nodiscard]] Result<ObjectInfo> object_of(const Record& record) {
    ObjectInfo object;
    std::uint64_t bytes = 0;
    if (record.kind < 1 || record.kind > 3 || record.length == 0 || record.element_bytes == 0 ||
        record.name_bytes > kLongestText || __builtin_mul_overflow(record.length, record.element_bytes, &bytes) ||
        !bytes_.range().holds(record.object, bytes)) {
      return fail(wrong("a record makes no sense"));
    }
    object.kind = static_cast<ObjectKind>(record.kind);
    object.length = record.length;
    object.bytes = bytes;
    object.address = reinterpret_cast<void*>(record.object);
    if (Status status = take(sizeof record); !status) return fail(std::move(status.error()));
    if (record.name != 0) {
      if (Status status = take(record.name_bytes); !status) return fail(std::move(status.error()));
      object.name.resize(record.name_bytes);
      Status status = bytes_.read(record.name, std::as_writable_bytes(std::span(object.name)));
      if (!status) return fail(std::move(status.error()));
    }
    if (Status status = add_text(record.type, object.type); !status) return fail(std::move(status.error()));
    if (Status status = add_text(record.description, object.description); !status) {
      return fail(std::move(status.error()));
    }
    return object;
  }

  [[nodiscard]] Status add_text(std::uint64_t address, std::string& into) {
    if (address == 0) return {};
    auto text = bytes_.text(address, std::min(room_ + 1, kLongestText));
    if (!text) return fail(std::move(text.error()));
    into = std::move(*text);
    return take(into.size());
  }

  // Each byte of the directory has a place of its own in pages that the version holds. Damaged lengths and texts that
  // many records share end here.
  [[nodiscard]] Status take(std::uint64_t bytes) {
    if (bytes > room_) return fail(wrong("it has more texts than the heap has room for"));
    room_ -= bytes;
    return {};
  }

  [[nodiscard]] static Error wrong(std::string why) {
    return {ErrorCode::kCorrupt, "cannot read the heap", "its directory of objects", std::move(why),
            "`farheap heap check` tells what else is damaged; an older snapshot may be whole"};
  }

  VersionBytes& bytes_;
  std::uint64_t room_;
};

}  // namespace

Result<StoredBooks> read_books(VersionBytes& bytes) {
  const std::uint64_t base = bytes.range().base;
  const auto head = bytes.read_as<BooksHead>(base);
  if (!head) return fail(head.error());
  if (head->magic != segment::KeptBooks::kMagic) {
    return fail(ErrorCode::kCorrupt, "cannot read the heap", "its first page", "it is not one of a heap",
                "`farheap heap check` looks at all of it");
  }
  if (head->format > segment::KeptBooks::kFormat) {
    return fail(
        ErrorCode::kUnavailable, "cannot read the heap", "its books",
        fmt::format("their format is {}, this Farheap reads 1 to {}", head->format, segment::KeptBooks::kFormat),
        "use a newer Farheap");
  }
  StoredBooks books{.format = head->format, .end_of_tables = head->end_of_tables, .description = {}};
  const auto description = bytes.read_as<std::uint64_t>(base + kDescription);
  if (!description) return fail(description.error());
  if (*description != 0) {
    auto text = bytes.text(*description, kLongestDescription);
    if (!text) return fail(std::move(text.error()));
    books.description = std::move(*text);
  }
  return books;
}

Result<std::vector<ObjectInfo>> read_objects(VersionBytes& bytes, std::uint64_t pages) {
  return DirectoryReader(bytes, pages).all();
}

}  // namespace farheap::api
