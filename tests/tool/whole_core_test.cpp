// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which place a page is taken from, for every state that a core may find it in.
#include "tool/whole_core.hpp"

#include <elf.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include "pager/core_index.hpp"
#include "pager/page_table.hpp"

namespace farheap::tool {
namespace {

using pager::PageState;

constexpr std::size_t kPage = 4096;
constexpr std::uint64_t kBase = std::uint64_t{1} << 45;
constexpr std::uint64_t kStaging = 0x7f0000000000;
constexpr std::uint64_t kNotes = 0x7e0000000000;

// A page as the core has it: what is in view, what is staged (0: zeros), and what the runtime noted.
struct Page {
  char view;
  char staged;
  PageState state;
  std::uint32_t slot;  // 0: none
  char wanted;
};

class Core {
 public:
  explicit Core(const std::vector<Page>& pages) {
    const std::size_t bytes = pages.size() * kPage;
    contents_.resize(kPage);
    part(kNotes, kPage);
    part(kNotes + kPage, pages.size() * 8);
    part(kBase, bytes);
    part(kStaging, bytes);
    pager::CoreHeader notes{};
    std::memcpy(notes.magic, pager::kCoreMagic, sizeof notes.magic);
    notes.format = pager::kCoreFormat;
    notes.page_bytes = kPage;
    notes.base = kBase, notes.staging = kStaging, notes.entries = kNotes + kPage;
    notes.held = pages.size();
    std::strcpy(notes.store, "file:/somewhere");
    std::memcpy(at(0), &notes, sizeof notes);
    for (std::size_t i = 0; i < pages.size(); ++i) {
      std::memcpy(at(1) + i * 8, &pages[i].slot, 4);
      at(1)[i * 8 + 4] = static_cast<char>(pages[i].state);
      std::memset(at(2) + i * kPage, pages[i].view, kPage);
      std::memset(at(3) + i * kPage, pages[i].staged, kPage);
    }
    Elf64_Ehdr head{};
    std::memcpy(head.e_ident, ELFMAG, SELFMAG);
    head.e_ident[EI_CLASS] = ELFCLASS64, head.e_ident[EI_DATA] = ELFDATA2LSB;
    head.e_type = ET_CORE, head.e_machine = EM_X86_64;
    head.e_phoff = sizeof head, head.e_phentsize = sizeof(Elf64_Phdr), head.e_phnum = 4;
    std::memcpy(contents_.data(), &head, sizeof head);
    std::memcpy(contents_.data() + sizeof head, parts_.data(), sizeof(Elf64_Phdr) * 4);
  }

  CoreFile file() const {
    const int file = memfd_create("core", MFD_CLOEXEC);
    EXPECT_EQ(write(file, contents_.data(), contents_.size()), static_cast<ssize_t>(contents_.size()));
    auto core = CoreFile::take(file, "core");
    EXPECT_TRUE(core) << core.error().message();
    return std::move(*core);
  }

 private:
  void part(std::uint64_t address, std::size_t bytes) {
    Elf64_Phdr header{};
    header.p_type = PT_LOAD, header.p_vaddr = address, header.p_offset = contents_.size(), header.p_filesz = bytes;
    parts_.push_back(header);
    contents_.resize(contents_.size() + bytes);
  }
  char* at(std::size_t number) { return contents_.data() + parts_[number].p_offset; }
  std::vector<char> contents_;
  std::vector<Elf64_Phdr> parts_;
};

// Block N holds the letter 'A' + N; block 9 is lost.
Status letters(std::span<Get> batch) {
  for (auto& entry : batch) {
    std::memset(entry.into.data(), static_cast<int>('A' + entry.block), entry.into.size());
    entry.outcome = entry.block == 9 ? Outcome::kAbsent : Outcome::kOk;
  }
  return {};
}

TEST(WholeCore, EveryPageComesFromWhereItsNewestBytesAre) {
  const std::vector<Page> pages = {
      {0, 0, PageState::kFresh, 0, 0},           {'v', 0, PageState::kPresent, 4, 'v'},  // the store has an older one
      {0, 0, PageState::kPresent, 4, 0},                                                 // zeros that the program wrote
      {0, 's', PageState::kProbation, 4, 's'},                                           // newer than the store's
      {0, 's', PageState::kWriting, 4, 's'},                                             // may not have arrived
      {0, 0, PageState::kStored, 4, 'D'},                                                // slot 4 is block 3
      {0, 's', PageState::kStored, 4, 'D'},       // staging that is not dropped yet
      {0, 0, PageState::kFilling, 4, 'D'},        // was just being read
      {0, 0, PageState::kFilling, 0, 0},          // was just being touched for the first time
      {'v', 's', PageState::kProbation, 4, 'v'},  // was just taken back
      {0, 's', PageState::kPresent, 4, 's'},      // was just taken out
      {0, 0, PageState::kStored, 10, 0},          // the store has lost it
      {'v', 0, PageState::kTakingOut, 4, 'v'},    // not taken out yet,
      {0, 's', PageState::kTakingOut, 4, 's'},    // just taken out,
      {0, 0, PageState::kTakingOut, 4, 0},        // or zeros that the program wrote
      {0, 's', PageState::kDropping, 4, 's'},     // not dropped yet,
      {0, 0, PageState::kDropping, 4, 'D'},       // just dropped,
      {0, 0, PageState::kDropping, 0, 0},         // or zeros
  };
  auto core = Core(pages).file();
  const auto notes = find_notes(core);
  ASSERT_TRUE(notes);
  EXPECT_EQ(notes->store, "file:/somewhere");
  const auto filled = fill_in(core, *notes, letters);
  ASSERT_TRUE(filled) << filled.error().message();
  EXPECT_EQ(filled->from_store, 4u);
  EXPECT_EQ(filled->from_staging, 5u);
  EXPECT_EQ(filled->missing, 1u);
  for (std::size_t i = 0; i < pages.size(); ++i) {
    std::vector<std::byte> bytes(kPage);
    ASSERT_TRUE(core.read(kBase + i * kPage, bytes));
    EXPECT_EQ(bytes, std::vector(kPage, static_cast<std::byte>(pages[i].wanted))) << "page " << i;
  }
}

TEST(WholeCore, MoreThanOneBatchOfPagesIsPutBack) {
  const std::vector<Page> pages(3000, {0, 0, PageState::kStored, 2, 'B'});
  auto core = Core(pages).file();
  const auto filled = fill_in(core, *find_notes(core), letters);
  ASSERT_TRUE(filled);
  EXPECT_EQ(filled->from_store, pages.size());
}

TEST(WholeCore, AProcessWithoutNotesIsSaid) {
  auto core = CoreFile::take(memfd_create("empty", MFD_CLOEXEC), "empty");
  ASSERT_FALSE(core);
  EXPECT_EQ(core.error().code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace farheap::tool
