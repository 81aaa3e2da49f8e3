// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "profile/harvest.hpp"

#include <elf.h>
#include <gtest/gtest.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "profile/recording.hpp"
#include "profile/touch_order.hpp"

namespace farheap::profile {
namespace {

// ---- build-ids

// As the loader has it in memory. The first object that it tells of is the program.
std::string build_id_in_memory() {
  std::string found;
  const auto look = [](dl_phdr_info* info, std::size_t, void* into) {
    for (unsigned i = 0; i < info->dlpi_phnum; ++i) {
      if (info->dlpi_phdr[i].p_type != PT_NOTE) continue;
      const auto* at = reinterpret_cast<const char*>(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
      const char* const end = at + info->dlpi_phdr[i].p_memsz;
      while (at + sizeof(ElfW(Nhdr)) <= end) {
        const auto* const note = reinterpret_cast<const ElfW(Nhdr)*>(at);
        const char* const name = at + sizeof *note;
        const char* const descriptor = name + (note->n_namesz + 3) / 4 * 4;
        if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 && std::memcmp(name, "GNU", 4) == 0) {
          for (unsigned byte = 0; byte < note->n_descsz; ++byte) {
            char digits[3];
            std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned char>(descriptor[byte]));
            static_cast<std::string*>(into)->append(digits);
          }
          return 1;
        }
        at = descriptor + (note->n_descsz + 3) / 4 * 4;
      }
    }
    return 1;
  };
  dl_iterate_phdr(look, &found);
  return found;
}

// Files in memory: many are looked at.
class BuildIdTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_GE(file_, 0); }
  ~BuildIdTest() override { close(file_); }
  [[nodiscard]] std::string file_of(std::string_view bytes) const {
    EXPECT_EQ(ftruncate(file_, 0), 0);
    EXPECT_EQ(pwrite(file_, bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
    return "/proc/self/fd/" + std::to_string(file_);
  }
  const int file_ = memfd_create("farheap-harvest", MFD_CLOEXEC);
};

TEST_F(BuildIdTest, OfThisProgramIsThatInItsMemory) {
  const std::string wanted = build_id_in_memory();
  EXPECT_EQ(build_id_of_file("/proc/self/exe"), wanted);
  if (wanted.empty()) GTEST_SKIP() << "NOT TESTED: this program is built without a build-id";
  EXPECT_GE(wanted.size(), 16u);
}

TEST_F(BuildIdTest, OfWhatIsNoProgramIsEmpty) {
  EXPECT_EQ(build_id_of_file(::testing::TempDir() + "no such folder/nothing"), "");
  EXPECT_EQ(build_id_of_file(::testing::TempDir()), "");
  EXPECT_EQ(build_id_of_file(""), "");
  EXPECT_EQ(build_id_of_file("[vdso]"), "");
  EXPECT_EQ(build_id_of_file("/dev/null"), "");
  EXPECT_EQ(build_id_of_file(file_of("")), "");
  EXPECT_EQ(build_id_of_file(file_of("#!/bin/sh\necho\n")), "");
  EXPECT_EQ(build_id_of_file(file_of(std::string(5000, 'x'))), "");
}

// A small file of one part with notes.
struct Elf {
  Elf64_Ehdr head{};
  Elf64_Phdr part{};
  std::string notes;
  Elf() {
    std::memcpy(head.e_ident, ELFMAG, SELFMAG);
    head.e_ident[EI_CLASS] = ELFCLASS64;
    head.e_phoff = sizeof head;
    head.e_phnum = 1;
    head.e_phentsize = sizeof part;
    part.p_type = PT_NOTE;
    part.p_offset = sizeof head + sizeof part;
  }
  void add(std::uint32_t type, std::string name, std::string descriptor) {
    const Elf64_Nhdr note{static_cast<Elf64_Word>(name.size()), static_cast<Elf64_Word>(descriptor.size()), type};
    name.resize((name.size() + 3) / 4 * 4);
    descriptor.resize((descriptor.size() + 3) / 4 * 4);
    notes.append(reinterpret_cast<const char*>(&note), sizeof note).append(name).append(descriptor);
    part.p_filesz = notes.size();
  }
  [[nodiscard]] std::string bytes() const {
    return std::string(reinterpret_cast<const char*>(&head), sizeof head)
        .append(reinterpret_cast<const char*>(&part), sizeof part)
        .append(notes);
  }
};

Elf with_build_id() {
  Elf elf;
  elf.add(1, std::string("GNU\0", 4), std::string(16, '\1'));
  elf.add(NT_GNU_BUILD_ID, std::string("Other\0", 6), "xyz");
  elf.add(NT_GNU_BUILD_ID, std::string("GNU\0", 4), std::string("\x00\x7f\x80\xff\x1a", 5));
  return elf;
}

TEST_F(BuildIdTest, IsFoundAmongOtherNotes) {
  EXPECT_EQ(build_id_of_file(file_of(with_build_id().bytes())), "007f80ff1a");
}

TEST_F(BuildIdTest, OfAFileThatIsCutIsEmpty) {
  const std::string whole = with_build_id().bytes();
  for (std::size_t length = 0; length < whole.size(); ++length) {
    EXPECT_EQ(build_id_of_file(file_of(whole.substr(0, length))), "") << length;
  }
}

TEST_F(BuildIdTest, OfForeignProgramsIsEmpty) {
  Elf elf = with_build_id();
  elf.head.e_ident[EI_CLASS] = ELFCLASS32;
  EXPECT_EQ(build_id_of_file(file_of(elf.bytes())), "");
  elf = with_build_id();
  elf.part.p_type = PT_LOAD;
  EXPECT_EQ(build_id_of_file(file_of(elf.bytes())), "");
  elf = with_build_id();
  elf.head.e_phnum = 0;
  EXPECT_EQ(build_id_of_file(file_of(elf.bytes())), "");
}

TEST_F(BuildIdTest, OffsetsAndLengthsBeyondTheFileAreSurvived) {
  for (const std::uint64_t wrong : {std::uint64_t{1} << 16, std::uint64_t{1} << 32, std::uint64_t{1} << 63,
                                    std::numeric_limits<std::uint64_t>::max()}) {
    Elf elf = with_build_id();
    elf.head.e_phoff = wrong;
    EXPECT_EQ(build_id_of_file(file_of(elf.bytes())), "");
    elf = with_build_id();
    elf.part.p_offset = wrong;
    EXPECT_EQ(build_id_of_file(file_of(elf.bytes())), "");
    elf = with_build_id();
    elf.part.p_filesz = wrong;
    EXPECT_EQ(build_id_of_file(file_of(elf.bytes())), "");
  }
}

// No byte of it can be changed so that more than the notes is read. (AddressSanitizer looks.)
TEST_F(BuildIdTest, AnyChangeOfAFileIsSurvived) {
  const std::string whole = with_build_id().bytes();
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (const char value : {'\x00', '\x01', '\x7f', '\xff'}) {
      std::string changed = whole;
      changed[at] = value;
      const std::string found = build_id_of_file(file_of(changed));
      EXPECT_LE(found.size(), 2 * whole.size());
    }
  }
}

// ---- recordings

constexpr char kMaps[] =
    "10000-20000 r-xp 00001000 08:01 7 /bin/program\n"
    "30000-40000 r-xp 00000000 08:01 8 /lib/library\n"
    "no such line\n"
    "50000-60000 r-xp 00000000 00:00 0 \n";

// One that is made by hand.
class Made {
 public:
  explicit Made(
      RecordingRoom room = {.sites = 16, .places = 8, .stalls = 8, .objects = 4, .touches = 8, .module_bytes = 256})
      : bytes_(RecordingTables::bytes(room) / 8 + 1), size_(RecordingTables::bytes(room)) {
    tables = RecordingTables::over(reinterpret_cast<std::byte*>(bytes_.data()), room);
    RecordingHeader& header = *tables.header;
    header.magic = RecordingHeader::kMagic;
    header.format = RecordingHeader::kFormat;
    header.process = 12;
    header.parent = 11;
    header.site_room = room.sites;
    header.place_room = room.places;
    header.stall_room = room.stalls;
    header.object_room = room.objects;
    header.touch_room = room.touches;
    header.module_room = room.module_bytes;
    std::strcpy(header.name.data(), "made");
  }
  void modules(std::string_view text) {
    std::memcpy(tables.modules, text.data(), text.size());
    tables.header->module_bytes = static_cast<std::uint32_t>(text.size());
  }
  void frame(SiteId site, SiteId inner, std::uint64_t address) {
    tables.frames[site].inner = inner;
    tables.frames[site].address = address;
  }
  void figures(SiteId site, std::uint64_t allocated, std::uint64_t objects, std::uint64_t live, std::uint64_t peak) {
    SiteFigures& all = tables.figures[site];
    all.allocated_bytes = allocated, all.objects = objects, all.live_bytes = live, all.peak_bytes = peak;
  }
  void stall(std::uint32_t at, std::uint32_t place, std::uint32_t site, std::uint64_t faults) {
    tables.stalls[at].key = stall_key(place, site);
    tables.stalls[at].faults = faults;
  }
  [[nodiscard]] std::span<const std::byte> bytes() const {
    return {reinterpret_cast<const std::byte*>(bytes_.data()), size_};
  }
  RecordingTables tables;

 private:
  std::vector<std::uint64_t> bytes_;
  std::size_t size_;
};

Status add(std::span<const std::byte> bytes, Profile& to) {
  return add_recording(bytes, "a recording", [](const std::string& path) { return "id of " + path; }, to);
}

void expect_harvested(const Profile& profile) {
  for (const ProcessProfile& one : profile.processes) {
    ASSERT_FALSE(one.frames.empty());
    ASSERT_FALSE(one.places.empty());
    for (std::size_t i = 1; i < one.frames.size(); ++i) {
      EXPECT_LT(one.frames[i].inner, i);
      EXPECT_LT(one.frames[i].returns_to.file, profile.files.size());
    }
    for (const SiteTotals& site : one.sites) EXPECT_TRUE(site.site != 0 && site.site < one.frames.size());
    for (const WaitPlace& place : one.places) {
      EXPECT_LT(place.instruction.file, profile.files.size());
      EXPECT_LT(place.caller.file, profile.files.size());
    }
    for (const Stall& stall : one.stalls) {
      EXPECT_TRUE(stall.place == 0 || stall.place < one.places.size());
      EXPECT_TRUE(stall.site == 0 || stall.site < one.frames.size());
    }
    for (const LargeObject& object : one.objects) EXPECT_TRUE(object.site != 0 && object.site < one.frames.size());
    for (const SiteTouch& touch : one.touch_order) EXPECT_TRUE(touch.site != 0 && touch.site < one.frames.size());
  }
}

ProcessProfile taken(const Made& made, Profile* all = nullptr) {
  Profile profile;
  const Status status = add(made.bytes(), profile);
  EXPECT_TRUE(status) << status.error().message();
  EXPECT_EQ(profile.processes.size(), 1u);
  expect_harvested(profile);
  if (all != nullptr) *all = profile;
  return profile.processes.empty() ? ProcessProfile{} : profile.processes[0];
}

TEST(Harvest, TakesAllThatARecordingHas) {
  Made made;
  RecordingHeader& header = *made.tables.header;
  made.modules(kMaps);
  header.faults = 1, header.stalled_ns = 2, header.pages_read = 3, header.live_bytes = 4, header.peak_bytes = 5;
  header.faults_without_place = 6, header.without_room = 7;
  made.frame(1, 0, 0x10010);
  made.frame(2, 1, 0x30020);
  made.frame(4, 2, 0x10040);  // 3 is not there
  made.frame(5, 0, 0x99999);
  made.figures(2, 8192, 3 * SiteFigures::kPerObject / 2, 4096, 8192);
  made.figures(4, 0, 0, 4096, 4096);  // inherited
  made.figures(5, 0, 0, 0, 0);        // nobody's
  header.places = 2;
  made.tables.places[1] = {0x30008, 0x10009};
  made.tables.places[2] = {0x10007, 0};
  made.stall(5, 1, 4, 9);
  made.tables.stalls[5].stalled_ns = 10, made.tables.stalls[5].pages_read = 11;
  made.stall(7, 0, 0, 3);
  header.objects = 1;
  made.tables.objects[0].first = 4096, made.tables.objects[0].bytes = 1 << 20;
  made.tables.objects[0].site = 4, made.tables.objects[0].born = 1;

  Profile all;
  const ProcessProfile one = taken(made, &all);
  const std::vector<CodeFile> files = {
      {}, {"/bin/program", "id of /bin/program"}, {"/lib/library", "id of /lib/library"}};
  EXPECT_EQ(all.files, files);
  EXPECT_EQ(one.process, 12);
  EXPECT_EQ(one.parent, 11);
  EXPECT_EQ(one.name, "made");
  EXPECT_EQ(std::vector({one.faults, one.stalled_ns, one.pages_read, one.live_bytes, one.peak_bytes,
                         one.faults_without_place, one.without_room}),
            (std::vector<std::uint64_t>{1, 2, 3, 4, 5, 6, 7}));
  const std::vector<StackFrame> frames = {{}, {0, {1, 0x1010}}, {1, {2, 0x20}}, {2, {1, 0x1040}}, {0, {0, 0x99999}}};
  EXPECT_EQ(one.frames, frames);
  EXPECT_EQ(one.sites, (std::vector<SiteTotals>{{2, 1.5, 8192, 4096, 8192}, {3, 0, 0, 4096, 4096}}));
  EXPECT_EQ(one.places, (std::vector<WaitPlace>{{}, {{2, 8}, true, {1, 0x1009}}, {{1, 0x1007}, false, {}}}));
  EXPECT_EQ(one.stalls, (std::vector<Stall>{{1, 3, 9, 10, 11}, {0, 0, 3, 0, 0}}));
  EXPECT_EQ(one.objects, (std::vector<LargeObject>{{3, 4096, 1 << 20, 1, 0}}));
}

TEST(Harvest, ProcessesOfAProfileShareItsFiles) {
  Made made;
  made.modules(kMaps);
  made.frame(1, 0, 0x30020);
  Profile profile;
  ASSERT_TRUE(add(made.bytes(), profile));
  ASSERT_TRUE(add(made.bytes(), profile));
  EXPECT_EQ(profile.files.size(), 3u);
  ASSERT_EQ(profile.processes.size(), 2u);
  EXPECT_EQ(profile.processes[0], profile.processes[1]);
}

TEST(Harvest, WhatWasLoadedLaterCounts) {
  Made made;
  made.modules(
      "10000-20000 r-xp 00000000 08:01 7 /bin/first\n"
      "18000-19000 r-xp 00000000 08:01 8 /bin/second\n");
  made.frame(1, 0, 0x18010);
  made.frame(2, 0, 0x17fff);
  made.frame(3, 0, 0x19000);
  EXPECT_EQ(taken(made).frames, (std::vector<StackFrame>{{}, {0, {2, 0x10}}, {0, {1, 0x7fff}}, {0, {1, 0x9000}}}));
}

TEST(Harvest, OfWhatIsNoRecordingIsAnErrorAndNothingIsAdded) {
  Profile profile;
  const auto expect_none = [&](std::span<const std::byte> bytes, const char* what) {
    const Status status = add(bytes, profile);
    ASSERT_FALSE(status) << what;
    EXPECT_EQ(status.error().code, ErrorCode::kCorrupt) << what;
    EXPECT_EQ(status.error().subject, "a recording");
    EXPECT_EQ(profile, Profile{}) << what;
  };
  const Made whole;
  expect_none({}, "empty");
  for (std::size_t length = 0; length < whole.bytes().size(); ++length) {
    expect_none(whole.bytes().first(length), "cut");
    if (HasFailure()) break;
  }
  const std::vector<std::byte> zeros(whole.bytes().size());
  expect_none(zeros, "never begun");
  std::vector<std::byte> longer(whole.bytes().begin(), whole.bytes().end());
  longer.emplace_back();
  expect_none(longer, "longer");
  Made other;
  other.tables.header->magic[7] = 'X';
  expect_none(other.bytes(), "another magic");
  other.tables.header->magic = RecordingHeader::kMagic;
  other.tables.header->format = RecordingHeader::kFormat + 1;
  expect_none(other.bytes(), "another format");
  other.tables.header->format = RecordingHeader::kFormat;
  EXPECT_TRUE(add(other.bytes(), profile));
}

TEST(Harvest, OfRoomsThatDoNotFitIsAnError) {
  for (const auto room : {&RecordingHeader::site_room, &RecordingHeader::place_room, &RecordingHeader::stall_room,
                          &RecordingHeader::object_room, &RecordingHeader::module_room}) {
    for (const std::uint32_t wrong : {0u, 1u, 7u, 1u << 27, 1u << 28, 0x80000000u, 0xffffffffu}) {
      Made made;
      made.tables.header->*room = wrong;
      Profile profile;
      EXPECT_FALSE(add(made.bytes(), profile)) << wrong;
    }
  }
  // Rooms of nothing leave no element 0.
  for (const RecordingRoom room :
       {RecordingRoom{.sites = 0, .places = 8, .stalls = 8, .objects = 0, .touches = 0, .module_bytes = 8},
        RecordingRoom{.sites = 8, .places = 0, .stalls = 8, .objects = 0, .touches = 0, .module_bytes = 8}}) {
    const Made made(room);
    Profile profile;
    EXPECT_FALSE(add(made.bytes(), profile));
  }
  const Made least(RecordingRoom{.sites = 1, .places = 1, .stalls = 0, .objects = 0, .touches = 0, .module_bytes = 0});
  EXPECT_EQ(taken(least).frames.size(), 1u);
}

TEST(Harvest, FramesThatLeadNowhereAreLeftOutWithAllAboveThem) {
  Made made;
  made.frame(1, 1, 0x100);  // in a circle
  made.frame(2, 3, 0x200);  // forward
  made.frame(3, 2, 0x300);
  made.frame(4, 0, 0x400);  // good
  made.frame(5, 4, 0x500);  // good
  made.frame(6, 7, 0x600);  // of one that is not there
  made.frame(8, 7, 0x800);
  made.frame(9, 0xffffffff, 0x900);
  made.frame(10, 15, 0xa00);
  made.frame(11, 8, 0xb00);
  made.frame(12, 5, 0xc00);  // good
  for (SiteId site = 1; site < 16; ++site) made.figures(site, 4096 * site, 256, 4096, 4096);
  const ProcessProfile one = taken(made);
  EXPECT_EQ(one.frames, (std::vector<StackFrame>{{}, {0, {0, 0x400}}, {1, {0, 0x500}}, {2, {0, 0xc00}}}));
  ASSERT_EQ(one.sites.size(), 3u);
  EXPECT_EQ(one.sites[0].allocated_bytes, 4096u * 4);
  EXPECT_EQ(one.sites[1].allocated_bytes, 4096u * 5);
  EXPECT_EQ(one.sites[2].allocated_bytes, 4096u * 12);
}

TEST(Harvest, StallsOfWhatIsNotThereAreNobodys) {
  Made made;
  made.frame(4, 0, 0x400);
  made.tables.header->places = 1;
  made.tables.places[1] = {0x1, 0};
  made.stall(0, 1, 4, 1);
  made.stall(1, 2, 4, 2);  // no such place
  made.stall(2, 0x7fffffff, 4, 3);
  made.stall(3, 1, 5, 4);   // no such frame
  made.stall(4, 1, 16, 5);  // beyond the table
  made.stall(5, 1, 0xffffffff, 6);
  EXPECT_EQ(taken(made).stalls,
            (std::vector<Stall>{
                {1, 1, 1, 0, 0}, {0, 1, 2, 0, 0}, {0, 1, 3, 0, 0}, {1, 0, 4, 0, 0}, {1, 0, 5, 0, 0}, {1, 0, 6, 0, 0}}));
}

TEST(Harvest, LargeObjectsThatWereBornAreTaken) {
  Made made;
  made.frame(2, 0, 0x400);
  const auto object = [&](std::uint32_t at, std::uint64_t first, std::uint32_t site, std::uint32_t born,
                          std::uint32_t died) {
    RecordedObject& one = made.tables.objects[at];
    one.first = first, one.bytes = 1 << 20, one.site = site, one.born = born, one.died = died;
  };
  object(0, 4096, 2, 1, 4);
  object(1, 8192, 2, 0, 0);  // it is being written
  object(2, 16, 3, 2, 0);    // no such frame
  object(3, 0, 2, 3, 0);
  made.tables.header->objects = 3;
  EXPECT_EQ(taken(made).objects, (std::vector<LargeObject>{{1, 4096, 1 << 20, 1, 4}}));
  made.tables.objects[2].site = 2, made.tables.objects[2].first = ~std::uint64_t{0};  // it ends before it begins
  EXPECT_EQ(taken(made).objects.size(), 1u);
  made.tables.header->objects = 0xffffffff;  // more than there is room for
  EXPECT_EQ(taken(made).objects, (std::vector<LargeObject>{{1, 4096, 1 << 20, 1, 4}, {1, 0, 1 << 20, 3, 0}}));
}

// A profile with them was written, and refused by its reader.
TEST(Harvest, LargeObjectsThatNoProgramHasAreLeftOut) {
  Made made;
  made.frame(2, 0, 0x400);
  RecordedObject& one = made.tables.objects[0];
  one.first = 4096, one.bytes = 1 << 20, one.site = 2, one.born = 5, one.died = 6;
  made.tables.header->objects = 1;
  EXPECT_EQ(taken(made).objects.size(), 1u);
  one.died = 5;  // before it was born
  EXPECT_EQ(taken(made).objects.size(), 0u);
  one.died = 0, one.bytes = kMostObjectEnd;  // beyond all addresses
  EXPECT_EQ(taken(made).objects.size(), 0u);
}

TEST(Harvest, TouchesOfSitesThatHaveNoStackAreLeftOut) {
  Made made;
  made.frame(3, 0, 0x10040);
  made.figures(3, 4096, 256, 4096, 4096);
  TouchOrder order;
  for (const SiteId site : {3u, 5u, 0u, 3u})
    order.note({made.tables.header->touches, {made.tables.touches, 8}}, site, 7);
  EXPECT_EQ(taken(made).touch_order, (std::vector<SiteTouch>{{1, 7}, {1, 7}}));
  made.tables.header->touches = ~std::uint32_t{0};
  EXPECT_TRUE(taken(made).touch_order.empty());
}

// More was taken back of a site than given, when a recorder was attached for the second time.
TEST(Harvest, LiveBytesBelowZeroAreNone) {
  Made made;
  made.frame(2, 0, 0x400);
  made.figures(2, 8192, 2 * SiteFigures::kPerObject, ~std::uint64_t{0} - 4095, 8192);
  made.tables.header->live_bytes = ~std::uint64_t{0} - 4095;
  const ProcessProfile one = taken(made);
  ASSERT_EQ(one.sites.size(), 1u);
  EXPECT_EQ(one.sites[0].live_bytes, 0u);
  EXPECT_EQ(one.live_bytes, 0u);
}

TEST(Harvest, CountsBeyondTheirTablesEndThere) {
  Made made;
  made.tables.header->places = 0xffffffff;
  made.tables.header->module_bytes = 0xffffffff;
  EXPECT_EQ(taken(made).places.size(), 8u);
  std::memset(made.tables.header->name.data(), 'n', made.tables.header->name.size());  // without an end
  EXPECT_EQ(taken(made).name, std::string(64, 'n'));
}

TEST(Harvest, TextOfModulesMayBeAnything) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    Made made;
    std::string text(random() % 257, '\0');
    constexpr char kSome[] = "0123456789abcdef-- rxp:/\n\n";
    for (char& one : text) one = kSome[random() % (sizeof kSome - 1)];
    made.modules(text);
    made.frame(1, 0, 0x10);
    (void)taken(made);
  }
  Made made;
  made.modules(std::string_view(kMaps).substr(0, 40));  // as a process leaves it that is read while it writes
  made.frame(1, 0, 0x10010);
  (void)taken(made);
}

TEST(Harvest, AnyBytesInTheTablesAreSurvived) {
  std::mt19937_64 random(2);
  for (int round = 0; round < 300; ++round) {
    Made made;
    const std::size_t first = sizeof(RecordingHeader);
    auto* const bytes = const_cast<std::byte*>(made.bytes().data());
    for (std::size_t i = first; i < made.bytes().size(); ++i) {
      bytes[i] = static_cast<std::byte>(random() % 3 == 0 ? random() % 20 : 0);
    }
    made.tables.header->places = static_cast<std::uint32_t>(random() % 20);
    made.tables.header->objects = static_cast<std::uint32_t>(random() % 10);
    made.tables.header->module_bytes = static_cast<std::uint32_t>(random() % 400);
    (void)taken(made);
  }
}

}  // namespace
}  // namespace farheap::profile
