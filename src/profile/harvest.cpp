// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Invariant: frames of a recording are numbered behind those that they called, so one pass from the first on finds
// every frame's inner one renumbered already.
#include "profile/harvest.hpp"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "profile/code_places.hpp"
#include "profile/page_sampler.hpp"
#include "profile/recording.hpp"
#include "profile/touch_order.hpp"

namespace farheap::profile {

namespace {

constexpr char kWhat[] = "cannot read a recording";

// The number of each frame in the profile; 0: it is not there.
std::vector<SiteId> take_frames(const RecordingTables& from, const CodePlaces& code, ProcessProfile& to) {
  const std::uint32_t room = from.header->site_room;
  std::vector<SiteId> numbers(room, 0);
  to.frames.emplace_back();
  for (SiteId site = 1; site < room; ++site) {
    const std::uint64_t address = from.frames[site].address.load(std::memory_order_acquire);
    const SiteId inner = from.frames[site].inner;
    if (address == 0 || inner >= site || (inner != 0 && numbers[inner] == 0)) continue;
    numbers[site] = static_cast<SiteId>(to.frames.size());
    to.frames.push_back({numbers[inner], code.at(address)});
  }
  return numbers;
}

// Below zero (Recorder's add_live()) is nothing.
std::uint64_t not_negative(std::uint64_t live) { return static_cast<std::int64_t>(live) < 0 ? 0 : live; }

// Of all its objects, if each was touched as often as those at edges of pages. At the one edge they may be hidden by
// their neighbours, at the other they are not.
void take_touches(const SiteFigures& figures, SiteTotals& to) {
  constexpr double kPagesForOne = 1u << PageSampler::kFirstOneInLog2;
  double most = 0;
  std::uint64_t largest = 0;
  for (const SiteFigures::Edge& edge : figures.edges) largest = std::max(largest, edge.objects.load());
  for (const SiteFigures::Edge& edge : figures.edges) {
    const std::uint64_t objects = edge.objects, touches = edge.touches;
    to.seen_objects += objects;
    to.seen_touches += touches;
    if (objects == 0 || objects < largest / 4) continue;  // a figure of few is by chance
    most = std::max(most, static_cast<double>(touches) / static_cast<double>(objects));
  }
  const double of_large = static_cast<double>(figures.large_touches.load()) * kPagesForOne;
  to.touches = std::min(most * to.objects + of_large, kMostSiteTouches);
}

void take_sites(const RecordingTables& from, const std::vector<SiteId>& numbers, ProcessProfile& to) {
  for (SiteId site = 1; site < numbers.size(); ++site) {
    const SiteFigures& figures = from.figures[site];
    const std::uint64_t allocated = figures.allocated_bytes, live = not_negative(figures.live_bytes);
    if (numbers[site] == 0 || (allocated == 0 && live == 0)) continue;
    const auto objects = static_cast<double>(figures.objects.load()) / SiteFigures::kPerObject;
    take_touches(figures, to.sites.emplace_back(numbers[site], objects, allocated, live, figures.peak_bytes));
  }
}

void take_places(const RecordingTables& from, const CodePlaces& code, ProcessProfile& to) {
  const std::uint32_t made = std::min(from.header->places.load(std::memory_order_acquire), from.header->place_room - 1);
  to.places.emplace_back();
  for (std::uint32_t place = 1; place <= made; ++place) {
    const RecordedPlace& one = from.places[place];
    to.places.push_back(
        {code.at(one.instruction), one.caller != 0, one.caller != 0 ? code.at(one.caller) : CodePlace{}});
  }
}

void take_stalls(const RecordingTables& from, const std::vector<SiteId>& numbers, ProcessProfile& to) {
  for (std::uint32_t i = 0; i < from.header->stall_room; ++i) {
    const StallFigures& one = from.stalls[i];
    const std::uint64_t key = one.key;
    if (key == 0) continue;
    const SiteId site = site_of(key);
    const std::uint32_t place = place_of(key);
    to.stalls.push_back({place < to.places.size() ? place : 0, site < numbers.size() ? numbers[site] : 0, one.faults,
                         one.stalled_ns, one.pages_read});
  }
}

void take_objects(const RecordingTables& from, const std::vector<SiteId>& numbers, ProcessProfile& to) {
  const std::uint32_t made = std::min(from.header->objects.load(), from.header->object_room);
  for (std::uint32_t i = 0; i < made; ++i) {
    const RecordedObject& one = from.objects[i];
    const std::uint32_t born = one.born.load(std::memory_order_acquire);
    if (born == 0 || one.site >= numbers.size() || numbers[one.site] == 0) continue;
    const LargeObject object = {numbers[one.site], one.first, one.bytes, born, one.died.load()};
    if (object.is_sound()) to.objects.push_back(object);  // otherwise a profile of it could not be read
  }
}

void take_order(const RecordingTables& from, const std::vector<SiteId>& numbers, ProcessProfile& to) {
  for (const auto [site, weight] : touches_in(from.header->touches, {from.touches, from.header->touch_room})) {
    if (site < numbers.size() && numbers[site] != 0) to.touch_order.push_back({numbers[site], weight});
  }
}

bool is_recording(const RecordingHeader& header, std::size_t bytes) {
  constexpr std::uint32_t kMost = 1u << 28;
  if (header.magic != RecordingHeader::kMagic || header.format != RecordingHeader::kFormat) return false;
  const RecordingRoom room = {header.site_room,   header.place_room, header.stall_room,
                              header.object_room, header.touch_room, header.module_room};
  const bool is_small = room.sites < kMost && room.places < kMost && room.stalls < kMost && room.objects < kMost &&
                        room.touches <= kMostTouches && room.module_bytes < kMost;
  return is_small && room.sites > 0 && room.places > 0 && RecordingTables::bytes(room) == bytes;
}

// The descriptor of a build-id among the notes; empty if there is none.
std::string find_build_id(std::string_view notes) {
  while (notes.size() >= sizeof(Elf64_Nhdr)) {
    Elf64_Nhdr note;
    std::memcpy(&note, notes.data(), sizeof note);
    notes.remove_prefix(sizeof note);
    const auto padded = [](std::uint64_t bytes) { return (bytes + 3) / 4 * 4; };
    if (padded(note.n_namesz) > notes.size()) return {};
    const std::string_view name = notes.substr(0, note.n_namesz);
    notes.remove_prefix(padded(note.n_namesz));
    if (note.n_descsz > notes.size()) return {};
    if (note.n_type == NT_GNU_BUILD_ID && name == std::string_view("GNU\0", 4)) {
      std::string hexadecimal;
      for (const char byte : notes.substr(0, note.n_descsz)) {
        constexpr char kDigits[] = "0123456789abcdef";
        hexadecimal += kDigits[static_cast<unsigned char>(byte) >> 4];
        hexadecimal += kDigits[static_cast<unsigned char>(byte) & 15];
      }
      return hexadecimal;
    }
    notes.remove_prefix(std::min<std::uint64_t>(padded(note.n_descsz), notes.size()));
  }
  return {};
}

}  // namespace

// Nothing of the C library that allocates: a program's own malloc() may have led here, and wait for itself.
std::string build_id_of_file(const std::string& path) {
  constexpr std::uint64_t kMostNotes = 1u << 16;
  constexpr unsigned kMostParts = 256;
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return {};
  const auto read_at = [file](void* into, std::size_t bytes, std::uint64_t offset) {
    return pread(file, into, bytes, static_cast<off_t>(offset)) == static_cast<ssize_t>(bytes);
  };
  const auto find = [&]() -> std::string {
    struct stat about{};
    if (fstat(file, &about) != 0 || !S_ISREG(about.st_mode)) return {};  // to read a device may do things
    Elf64_Ehdr head;
    if (!read_at(&head, sizeof head, 0)) return {};
    if (std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_ident[EI_CLASS] != ELFCLASS64) return {};
    for (unsigned i = 0; i < std::min<unsigned>(head.e_phnum, kMostParts); ++i) {
      Elf64_Phdr part;
      if (!read_at(&part, sizeof part, head.e_phoff + i * sizeof part)) return {};
      if (part.p_type != PT_NOTE) continue;
      std::string notes(std::min<std::uint64_t>(part.p_filesz, kMostNotes), '\0');
      if (!read_at(notes.data(), notes.size(), part.p_offset)) return {};
      if (std::string found = find_build_id(notes); !found.empty()) return found;
    }
    return {};
  };
  std::string found = find();
  close(file);
  return found;
}

Status add_recording(std::span<const std::byte> bytes, const std::string& name, const BuildIdOf& build_id_of,
                     Profile& to) {
  if (bytes.size() < sizeof(RecordingHeader)) return fail(ErrorCode::kCorrupt, kWhat, name, "it is too short");
  // Aligned, and all at once: the process may still write.
  const auto words = std::make_unique<std::uint64_t[]>(bytes.size() / sizeof(std::uint64_t) + 1);
  std::memcpy(words.get(), bytes.data(), bytes.size());
  auto* const copy = reinterpret_cast<std::byte*>(words.get());
  const auto& header = *reinterpret_cast<const RecordingHeader*>(copy);
  if (!is_recording(header, bytes.size())) {
    return fail(ErrorCode::kCorrupt, kWhat, name, "it is none, or of another build of Farheap", "record it again");
  }
  const RecordingTables from = RecordingTables::over(copy, {header.site_room, header.place_room, header.stall_room,
                                                            header.object_room, header.touch_room, header.module_room});
  ProcessProfile one;
  one.process = header.process;
  one.parent = header.parent;
  one.name.assign(header.name.data(), strnlen(header.name.data(), header.name.size()));
  one.is_attached = header.is_attached != 0;
  one.faults = header.faults;
  one.stalled_ns = header.stalled_ns;
  one.pages_read = header.pages_read;
  one.live_bytes = not_negative(header.live_bytes);
  one.peak_bytes = header.peak_bytes;
  one.faults_without_place = header.faults_without_place;
  one.without_room = header.without_room;
  const std::uint32_t text = std::min(header.module_bytes.load(), header.module_room);
  const CodePlaces code({from.modules, text},
                        [&](const std::string& path) { return to.file({path, build_id_of(path)}); });
  const std::vector<SiteId> numbers = take_frames(from, code, one);
  take_sites(from, numbers, one);
  take_places(from, code, one);
  take_stalls(from, numbers, one);
  take_objects(from, numbers, one);
  take_order(from, numbers, one);
  to.processes.push_back(std::move(one));
  return {};
}

// What a sampler writes, a profile's reader takes.
static_assert(PageSampler::kMostOneInLog2 <= kMostSampleLog2 && PageSampler::kWindow <= kMostSampleWindow &&
              PageSampler::kRoomWords <= kMostTouches);

Status add_touches(std::span<const std::byte> bytes, const std::string& name, ProcessProfile& to) {
  if (bytes.size() < sizeof(SampledTraceHeader)) return fail(ErrorCode::kCorrupt, kWhat, name, "it is too short");
  const auto words = std::make_unique<std::uint64_t[]>(bytes.size() / sizeof(std::uint64_t) + 1);
  std::memcpy(words.get(), bytes.data(), bytes.size());
  const auto& header = *reinterpret_cast<const SampledTraceHeader*>(words.get());
  const std::size_t room = (bytes.size() - sizeof header) / sizeof(std::uint32_t);
  if (header.magic == 0 || header.is_sorting != 0) return {};
  if (header.magic != SampledTraceHeader::kMagic || header.room != room || header.one_in_log2 > kMostSampleLog2 ||
      header.window > kMostSampleWindow || header.pages > kMostUsedPages) {
    return fail(ErrorCode::kCorrupt, kWhat, name, "it is none, or of another build of Farheap", "record it again");
  }
  to.touches.one_in_log2 = header.one_in_log2;
  to.touches.window = header.window;
  to.touches.pages = header.pages;
  const auto* const first = reinterpret_cast<const std::uint32_t*>(&header + 1);
  const std::span<const std::uint32_t> all(first, std::min<std::size_t>(header.words, room));
  const auto is_in_sample = [](std::uint32_t one_in_log2) {
    return [one_in_log2](std::uint32_t word) {
      const auto entry = unpack_entry(word);
      return entry && is_sampled(entry->page, one_in_log2);
    };
  };
  std::ranges::copy_if(all, std::back_inserter(to.touches.words), is_in_sample(header.one_in_log2));
  if (const std::uint32_t detailed = header.detailed; detailed != 0) {
    constexpr std::uint32_t kLog2 = PageSampler::kFirstOneInLog2;
    to.detailed.one_in_log2 = kLog2;
    to.detailed.window = header.window;
    std::ranges::copy_if(all.first(std::min<std::size_t>(detailed, all.size())), std::back_inserter(to.detailed.words),
                         is_in_sample(kLog2));
  }
  return {};
}

}  // namespace farheap::profile
