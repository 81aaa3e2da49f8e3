// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a recorded process writes: tables of fixed size in a shared file (os/shared_file.hpp), always up to date, so
// that nothing is lost when the process is killed. The tool that runs it makes a profile of it (harvest.hpp). Both are
// of one build; another layout has another number.
//
// Sites are numbered as in CallSites: the frame of a site leads to the frames that it called. A page belongs to the
// site that made the object at the page's *sample point* (sample_point.hpp): so a site's bytes are 4,096 for each such
// page, right in the mean, and its objects as many as fit there.
//
// Of a page that comes into view only the first touch is seen. An object that is always touched right behind its
// neighbour would seem not to be touched at all, if that lies on the same page. So touches are counted of those objects
// alone that are the first on their page, or the last: one of the two neighbours is on another page.
//
// Thread-safety: all that changes is atomic.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace farheap::profile {

struct RecordingHeader {
  static constexpr std::array<char, 8> kMagic = {'F', 'H', 'R', 'E', 'C', 'O', 'R', 'D'};
  static constexpr std::uint32_t kFormat = 4;

  std::array<char, 8> magic;
  std::uint32_t format;
  std::int32_t process, parent;
  // Elements of the tables; bytes of text.
  std::uint32_t site_room, place_room, stall_room, object_room, touch_room, module_room;
  std::atomic<std::uint32_t> places;        // made
  std::atomic<std::uint32_t> module_bytes;  // written
  std::atomic<std::uint32_t> objects;       // noted
  std::atomic<std::uint32_t> touches;       // TouchTable::noted
  std::uint32_t is_attached;                // 1: what was allocated before is not known
  std::uint64_t heap_address;
  std::array<char, 64> name;                                  // of the program; ends with 0
  std::atomic<std::uint64_t> live_bytes, peak_bytes;          // of all sites
  std::atomic<std::uint64_t> faults, stalled_ns, pages_read;  // exact
  std::atomic<std::uint64_t> faults_without_place;            // looked at in vain
  std::atomic<std::uint64_t> without_room;                    // samples and faults that a full table left out
};

struct RecordedFrame {
  std::atomic<std::uint64_t> address;  // a return address; 0: nothing is here (yet)
  std::uint32_t inner;                 // written before the address
  std::uint32_t unused;
};

struct SiteFigures {
  static constexpr std::uint64_t kPerObject = 256;  // the unit of `objects`
  std::atomic<std::uint64_t> allocated_bytes, objects, live_bytes, peak_bytes;
  // Of its objects of less than a page: those that were the first to begin on a sampled page (page_sampler.hpp), and
  // those that were the last. How many there were, and how often they were touched there.
  struct Edge {
    std::atomic<std::uint64_t> objects, touches;
  };
  std::array<Edge, 2> edges;
  std::atomic<std::uint64_t> large_touches;  // of sampled pages that larger objects have
};

// Where threads waited for pages. Place 0 is not known.
struct RecordedPlace {
  std::uint64_t instruction;
  std::uint64_t caller;  // of the function, if that is in another module and has no frame yet; 0 if not
};

// Faults at a place on pages of a site.
struct StallFigures {
  std::atomic<std::uint64_t> key;  // stall_key(); 0: nothing is here
  std::atomic<std::uint64_t> faults, stalled_ns, pages_read;
};
[[nodiscard]] constexpr std::uint64_t stall_key(std::uint32_t place, std::uint32_t site) {
  return (std::uint64_t{1} << 63) | (std::uint64_t{place} << 32) | site;
}
[[nodiscard]] constexpr std::uint32_t place_of(std::uint64_t key) {
  return static_cast<std::uint32_t>((key & ~(std::uint64_t{1} << 63)) >> 32);
}
[[nodiscard]] constexpr std::uint32_t site_of(std::uint64_t key) { return static_cast<std::uint32_t>(key); }

// An object of so many bytes or more is noted by itself: plans speak of these (plan/plan.hpp).
inline constexpr std::uint64_t kLargeObjectBytes = 256 << 10;

// One of them, in the order of allocation.
struct RecordedObject {
  std::atomic<std::uint64_t> first, bytes;  // counted from the heap's first byte
  std::atomic<std::uint32_t> site;
  // By a clock that each of them moves on. Not born (0): nothing is here (yet). Not dead: it lives.
  std::atomic<std::uint32_t> born, died;
  std::uint32_t unused;
};

// A process that pages has a second file beside its recording: the order in which a sample of its pages was used
// (profile/page_sampler.hpp).
inline constexpr char kTouches[] = ".touches";

struct RecordingRoom {
  std::uint32_t sites = 1u << 15, places = 1u << 12, stalls = 1u << 14, objects = 1u << 13, touches = 1u << 13,
                module_bytes = 1u << 16;
};

// The tables over the file's bytes, in this order: header, frames, figures, places, stalls, objects, touches
// (touch_order.hpp), text of modules (the executable lines of /proc/PID/maps). Element 0 of frames, figures and places
// is unused.
struct RecordingTables {
  RecordingHeader* header = nullptr;
  RecordedFrame* frames = nullptr;
  SiteFigures* figures = nullptr;
  RecordedPlace* places = nullptr;
  StallFigures* stalls = nullptr;
  RecordedObject* objects = nullptr;
  std::atomic<std::uint64_t>* touches = nullptr;
  char* modules = nullptr;

  [[nodiscard]] static constexpr std::size_t bytes(const RecordingRoom& room) {
    return sizeof(RecordingHeader) + std::size_t{room.sites} * (sizeof(RecordedFrame) + sizeof(SiteFigures)) +
           std::size_t{room.places} * sizeof(RecordedPlace) + std::size_t{room.stalls} * sizeof(StallFigures) +
           std::size_t{room.objects} * sizeof(RecordedObject) + std::size_t{room.touches} * sizeof(std::uint64_t) +
           room.module_bytes;
  }
  // Requires: so many bytes are at `file`, which is aligned to 8.
  [[nodiscard]] static RecordingTables over(std::byte* file, const RecordingRoom& room) {
    RecordingTables tables;
    const auto take = [&file]<class T>(T*& table, std::size_t elements) {
      table = reinterpret_cast<T*>(file);
      file += elements * sizeof(T);
    };
    take(tables.header, 1);
    take(tables.frames, room.sites);
    take(tables.figures, room.sites);
    take(tables.places, room.places);
    take(tables.stalls, room.stalls);
    take(tables.objects, room.objects);
    take(tables.touches, room.touches);
    take(tables.modules, room.module_bytes);
    return tables;
  }
};

}  // namespace farheap::profile
