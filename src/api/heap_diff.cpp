// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Heap::diff(): objects are paired, then all pages that the two maps have in different slots are read and compared, and
// each that differs is looked up among the objects. What the maps share is never read.
#include "api/heap_diff.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <farheap/farheap.hpp>
#include <map>
#include <optional>
#include <tuple>

#include "segment/map_difference.hpp"
#include "segment/slot_io.hpp"

namespace farheap {
namespace {

using base::kPageBytes;
using What = ObjectDifference::What;

std::uint64_t address_of(const ObjectInfo& object) { return reinterpret_cast<std::uintptr_t>(object.address); }

// An object of a, one of b, or one that both have.
struct Pair {
  const ObjectInfo* a = nullptr;
  const ObjectInfo* b = nullptr;
  std::uint64_t offset_a = 0, offset_b = 0;  // in the heap, which may have been moved between the two
  bool bytes_differ = false;
  std::uint64_t pages = 0;
  std::uint64_t last_page = UINT64_MAX;  // that was counted

  [[nodiscard]] bool both() const { return a != nullptr && b != nullptr; }
  [[nodiscard]] bool in_place() const { return both() && offset_a == offset_b; }
  void count(std::uint64_t page) {
    if (std::exchange(last_page, page) != page) ++pages;
  }
};

// Named and unique objects are known by kind and name, anonymous ones by where they lie.
std::vector<Pair> paired(const std::vector<ObjectInfo>& of_a, std::uint64_t base_a, const std::vector<ObjectInfo>& of_b,
                         std::uint64_t base_b) {
  using Key = std::tuple<ObjectKind, std::string_view, std::uint64_t>;
  const auto key = [](const ObjectInfo& one, std::uint64_t base) {
    const bool by_place = one.kind == ObjectKind::kAnonymous;
    return Key(one.kind, by_place ? std::string_view() : one.name, by_place ? address_of(one) - base : 0);
  };
  std::vector<Pair> pairs;
  std::map<Key, std::size_t> known;
  for (const ObjectInfo& one : of_a) {
    known.emplace(key(one, base_a), pairs.size());
    pairs.push_back({.a = &one, .offset_a = address_of(one) - base_a});
  }
  for (const ObjectInfo& one : of_b) {
    const auto found = known.find(key(one, base_b));
    if (found == known.end() || pairs[found->second].b != nullptr) pairs.emplace_back();
    Pair& pair = found == known.end() || pairs[found->second].b != nullptr ? pairs.back() : pairs[found->second];
    pair.b = &one;
    pair.offset_b = address_of(one) - base_b;
  }
  return pairs;
}

// Where a version's objects lie. Objects do not overlap; in a damaged heap some may not be found.
class Places {
 public:
  Places(std::vector<Pair>& pairs, const ObjectInfo* Pair::* side, std::uint64_t base) {
    for (Pair& pair : pairs) {
      if (pair.*side == nullptr) continue;
      const std::uint64_t begin = address_of(*(pair.*side)) - base;
      all_.push_back({begin, begin + (pair.*side)->bytes, &pair});
    }
    std::ranges::sort(all_, {}, &Place::begin);
  }

  struct Place {
    std::uint64_t begin, end;  // offsets in the heap
    Pair* pair;
  };
  // Those that have a byte in [begin, end).
  template <class Visit>
  void for_each_in(std::uint64_t begin, std::uint64_t end, Visit visit) const {
    auto at = std::ranges::upper_bound(all_, begin, {}, &Place::begin);
    if (at != all_.begin() && std::prev(at)->end > begin) --at;
    for (; at != all_.end() && at->begin < end; ++at) visit(*at);
  }

 private:
  std::vector<Place> all_;
};

struct Side {
  api::HeapReader* reader;
  api::StoredVersion version;
  api::VersionBytes bytes;
  api::StoredBooks books;
  std::vector<ObjectInfo> objects;
  [[nodiscard]] segment::MapSide map() const { return {&reader->store(), version.map, reader->newest().end_slot}; }
};

Result<Side> side_of(api::HeapReader& reader, std::string_view snapshot) {
  auto version = reader.version(snapshot);
  if (!version) return fail(std::move(version.error()));
  api::VersionBytes bytes = reader.bytes_of(*version);
  auto books = api::read_books(bytes);
  if (!books) return fail(std::move(books.error()));
  auto objects = api::read_objects(bytes, reader.pages_of(*version));
  if (!objects) return fail(std::move(objects.error()));
  return Side{&reader, std::move(*version), std::move(bytes), std::move(*books), std::move(*objects)};
}

class Comparison {
 public:
  Comparison(Side& a, Side& b)
      : a_(a),
        b_(b),
        pairs_(paired(a.objects, a.version.base, b.objects, b.version.base)),
        places_a_(pairs_, &Pair::a, a.bytes.range().base),
        places_b_(pairs_, &Pair::b, b.bytes.range().base),
        end_of_books_(std::max(a.books.end_of_tables, b.books.end_of_tables)) {}

  [[nodiscard]] Result<HeapDifference> run() {
    if (!buffer_a_.is_there() || !buffer_b_.is_there()) {
      return fail(ErrorCode::kNoSpace, "cannot compare versions", a_.reader->store().describe(), "no memory");
    }
    found_.id = a_.reader->id();
    found_.a = a_.version.info;
    found_.b = b_.version.info;
    Status status = segment::for_each_difference(
        a_.map(), b_.map(), [&](std::span<const segment::PageDifference> pages) { return compare(pages); });
    if (!status) return fail(std::move(status.error()));
    for (Pair& pair : pairs_) {
      if (Status told = tell(pair); !told) return fail(std::move(told.error()));
    }
    return std::move(found_);
  }

 private:
  static constexpr std::size_t kAtOnce = 256;

  [[nodiscard]] Status compare(std::span<const segment::PageDifference> pages) {
    while (!pages.empty()) {
      const auto some = pages.first(std::min(pages.size(), kAtOnce));
      Status status = read(a_, some, &segment::PageDifference::a, buffer_a_);
      if (status) status = read(b_, some, &segment::PageDifference::b, buffer_b_);
      if (!status) return status;
      for (std::size_t i = 0; i < some.size(); ++i) {
        const std::byte* const bytes_a = buffer_a_.part(i * kPageBytes, kPageBytes).data();
        const std::byte* const bytes_b = buffer_b_.part(i * kPageBytes, kPageBytes).data();
        if (std::memcmp(bytes_a, bytes_b, kPageBytes) != 0) note(some[i], bytes_a, bytes_b);
      }
      pages = pages.subspan(some.size());
    }
    return {};
  }

  [[nodiscard]] static Status read(const Side& side, std::span<const segment::PageDifference> pages,
                                   segment::SlotRef segment::PageDifference::* at, const store::AlignedBuffer& buffer) {
    const std::size_t longest = segment::longest_read(side.reader->store());
    std::vector<segment::SlotRead> entries;
    for (std::size_t i = 0; i < pages.size(); ++i) {
      std::byte* const into = buffer.part(i * kPageBytes, kPageBytes).data();
      if ((pages[i].*at).is_nowhere()) {
        std::memset(into, 0, kPageBytes);
      } else {
        append(entries, (pages[i].*at).slot(), into, longest);
      }
    }
    return entries.empty() ? Status{} : segment::read_slots(side.reader->store(), entries);
  }

  // A page that differs.
  void note(const segment::PageDifference& page, const std::byte* bytes_a, const std::byte* bytes_b) {
    ++(page.b.is_nowhere()   ? found_.pages_only_in_a
       : page.a.is_nowhere() ? found_.pages_only_in_b
                             : found_.pages_changed);
    const std::uint64_t begin = page.page * kPageBytes;
    if (begin < end_of_books_) {
      ++found_.pages_of_books;
      return;
    }
    bool has_object = false;
    const auto look = [&](const Places::Place& place) {
      has_object = true;
      place.pair->count(page.page);
      if (!place.pair->in_place() || place.pair->bytes_differ) return;
      const std::uint64_t from = std::max(place.begin, begin) - begin;
      const std::uint64_t to = std::min(place.end, begin + kPageBytes) - begin;
      place.pair->bytes_differ = std::memcmp(bytes_a + from, bytes_b + from, to - from) != 0;
    };
    places_a_.for_each_in(begin, begin + kPageBytes, look);
    places_b_.for_each_in(begin, begin + kPageBytes, look);
    ++(has_object ? found_.pages_of_objects : found_.pages_of_others);
  }

  // Into the result, if there is something to tell.
  [[nodiscard]] Status tell(Pair& pair) {
    if (!pair.both()) {
      const bool is_a = pair.a != nullptr;
      found_.objects.push_back({is_a ? What::kOnlyInA : What::kOnlyInB, is_a ? *pair.a : ObjectInfo(),
                                is_a ? ObjectInfo() : *pair.b, false, pair.pages});
      return {};
    }
    const ObjectInfo &a = *pair.a, &b = *pair.b;
    if (a.bytes != b.bytes) {
      pair.bytes_differ = true;
    } else if (!pair.in_place()) {
      if (Status status = compare_moved(pair); !status) return status;
    }
    if (pair.bytes_differ || !pair.in_place() || a.type != b.type || a.length != b.length ||
        a.description != b.description) {
      found_.objects.push_back({What::kChanged, a, b, pair.bytes_differ, pair.pages});
    }
    return {};
  }

  // How many bytes from there on are zeros in both, as far as that is known without reading them.
  [[nodiscard]] Result<std::uint64_t> zeros_in_both(std::uint64_t address_a, std::uint64_t address_b) {
    auto zeros_a = a_.bytes.zeros_from(address_a);
    if (!zeros_a || *zeros_a == 0) return zeros_a;
    auto zeros_b = b_.bytes.zeros_from(address_b);
    return zeros_b ? std::min(*zeros_a, *zeros_b) : zeros_b;
  }

  // An object that lies elsewhere: no page tells.
  [[nodiscard]] Status compare_moved(Pair& pair) {
    constexpr std::uint64_t kPiece = 64 * base::kKiB;
    std::vector<std::byte> bytes_a(kPiece), bytes_b(kPiece);
    for (std::uint64_t at = 0, count = 0; at < pair.a->bytes && !pair.bytes_differ; at += count) {
      const std::uint64_t address_a = address_of(*pair.a) + at, address_b = address_of(*pair.b) + at;
      auto zeros = zeros_in_both(address_a, address_b);
      if (!zeros) return fail(std::move(zeros.error()));
      count = std::min(*zeros != 0 ? *zeros : kPiece, pair.a->bytes - at);
      if (*zeros != 0) continue;
      Status status = a_.bytes.read(address_a, std::span(bytes_a).first(count));
      if (status) status = b_.bytes.read(address_b, std::span(bytes_b).first(count));
      if (!status) return status;
      pair.bytes_differ = std::memcmp(bytes_a.data(), bytes_b.data(), count) != 0;
    }
    return {};
  }

  Side& a_;
  Side& b_;
  std::vector<Pair> pairs_;
  Places places_a_, places_b_;
  const std::uint64_t end_of_books_;
  store::AlignedBuffer buffer_a_{kAtOnce * kPageBytes}, buffer_b_{kAtOnce * kPageBytes};
  HeapDifference found_;
};

// Whether both names are of one store, whose slots mean the same then.
bool is_one_place(const api::HeapPlace& a, const api::HeapPlace& b) {
  if (a.uri == b.uri) return true;
  if (a.is_on_server() || b.is_on_server()) return false;
  struct stat file_a{}, file_b{};
  return a.uri.substr(0, a.uri.find(':')) == b.uri.substr(0, b.uri.find(':')) && stat(a.file.c_str(), &file_a) == 0 &&
         stat(b.file.c_str(), &file_b) == 0 && file_a.st_dev == file_b.st_dev && file_a.st_ino == file_b.st_ino;
}

}  // namespace

Result<HeapDifference> api::difference_between(HeapReader& a, std::string_view version_a, HeapReader& b,
                                               std::string_view version_b) {
  auto side_a = side_of(a, version_a);
  if (!side_a) return fail(std::move(side_a.error()));
  auto side_b = side_of(b, version_b);
  if (!side_b) return fail(std::move(side_b.error()));
  return Comparison(*side_a, *side_b).run();
}

Result<HeapDifference> Heap::diff(std::string_view uri_a, std::string_view uri_b) {
  const auto place_a = api::HeapPlace::parse(uri_a);
  if (!place_a) return fail(place_a.error());
  const auto place_b = api::HeapPlace::parse(uri_b);
  if (!place_b) return fail(place_b.error());
  auto reader_a = api::HeapReader::open(*place_a);
  if (!reader_a) return fail(std::move(reader_a.error()));
  std::optional<api::HeapReader> other;
  if (!is_one_place(*place_a, *place_b)) {
    auto reader_b = api::HeapReader::open(*place_b);
    if (!reader_b) return fail(std::move(reader_b.error()));
    other = std::move(*reader_b);
    if (other->newest().line() != reader_a->newest().line()) {
      return fail(ErrorCode::kInvalidArgument, "cannot compare two heaps", fmt::format("{} and {}", uri_a, uri_b),
                  "they are different heaps, and none is a copy of the other: nothing says what of one belongs to what "
                  "of the other",
                  "compare versions of one heap, URI@SNAPSHOT and URI, or a heap with its copy");
    }
  }
  return api::difference_between(*reader_a, place_a->snapshot, other ? *other : *reader_a, place_b->snapshot);
}

}  // namespace farheap
