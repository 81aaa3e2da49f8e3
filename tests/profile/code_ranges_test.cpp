// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "profile/code_ranges.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <link.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <fstream>
#include <string>

namespace farheap::profile {
namespace {

// ---- lines

struct Line {
  std::string_view text;
  bool is_one = false;
  std::uintptr_t first = 0, end = 0;
  std::uint64_t offset = 0;
  bool is_code = false;
  std::string_view file = {}, path = {};
};

TEST(MapsLine, IsReadAsTheKernelWritesIt) {
  const Line lines[] = {
      {"55d0c8a00000-55d0c8a28000 r-xp 00002000 08:01 1835 /usr/bin/cat", true, 0x55d0c8a00000, 0x55d0c8a28000, 0x2000,
       true, "08:01 1835 /usr/bin/cat", "/usr/bin/cat"},
      {"7f1c40228000-7f1c403bd000 r-xp 00028000 08:01 2628                       /usr/lib/x86_64-linux-gnu/libc.so.6",
       true, 0x7f1c40228000, 0x7f1c403bd000, 0x28000, true,
       "08:01 2628                       /usr/lib/x86_64-linux-gnu/libc.so.6", "/usr/lib/x86_64-linux-gnu/libc.so.6"},
      {"7f1c40228000-7f1c403bd000 r--p 00028000 08:01 2628    /lib/a", true, 0x7f1c40228000, 0x7f1c403bd000, 0x28000,
       false, "08:01 2628    /lib/a", "/lib/a"},
      {"1000-2000 r-xp 0 fd:00 7 /home/a b/c  d.so", true, 0x1000, 0x2000, 0, true, "fd:00 7 /home/a b/c  d.so",
       "/home/a b/c  d.so"},
      {"1000-2000 r-xp 0 fd:00 7    /tmp/x.so (deleted)", true, 0x1000, 0x2000, 0, true,
       "fd:00 7    /tmp/x.so (deleted)", "/tmp/x.so (deleted)"},
      {"7ffd1d5f2000-7ffd1d5f4000 r-xp 00000000 00:00 0          [vdso]", true, 0x7ffd1d5f2000, 0x7ffd1d5f4000, 0, true,
       "00:00 0          [vdso]", "[vdso]"},
      {"ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0  [vsyscall]", true, 0xffffffffff600000,
       0xffffffffff601000, 0, true, "00:00 0  [vsyscall]", "[vsyscall]"},
      // Memory of no file has no name.
      {"1000-2000 rwxp 00000000 00:00 0 ", true, 0x1000, 0x2000, 0, true, "", ""},
      {"1000-2000 rw-p 00000000 00:00 0", true, 0x1000, 0x2000, 0, false, "", ""},
      {"1000-2000 rwxs ffffffffff000 00:01 9 /dev/zero (deleted)", true, 0x1000, 0x2000, 0xffffffffff000, true,
       "00:01 9 /dev/zero (deleted)", "/dev/zero (deleted)"},
  };
  for (const Line& line : lines) {
    MapsLine read;
    ASSERT_TRUE(read_maps_line(line.text, read)) << line.text;
    EXPECT_EQ(read.first, line.first) << line.text;
    EXPECT_EQ(read.end, line.end) << line.text;
    EXPECT_EQ(read.offset, line.offset) << line.text;
    EXPECT_EQ(read.is_code, line.is_code) << line.text;
    EXPECT_EQ(read.file, line.file) << line.text;
    EXPECT_EQ(read.path, line.path) << line.text;
  }
}

TEST(MapsLine, OfAnotherFormIsNone) {
  for (const std::string_view text : {"",
                                      " ",
                                      "-",
                                      "1000",
                                      "1000-",
                                      "1000-2000",
                                      "1000-2000 ",
                                      "1000-2000 r-x",
                                      "1000-2000 r-xp",
                                      "1000-2000 r-xp ",
                                      "1000-2000 r-xp 0",
                                      "1000-2000 r-xp 0 ",
                                      "1000-2000 r-xp 0 08:01",
                                      "1000-2000 r-xpp 0 08:01 1 /a",
                                      "1000 2000 r-xp 0 08:01 1 /a",
                                      "1000-2000-r-xp 0 08:01 1 /a",
                                      "g000-2000 r-xp 0 08:01 1 /a",
                                      "-1000-2000 r-xp 0 08:01 1 /a",
                                      "2000-1000 r-xp 0 08:01 1 /a",
                                      "1000-1000 r-xp 0 08:01 1 /a",
                                      "10000000000000000-20000000000000000 r-xp 0 08:01 1 /a",
                                      "1000-2000 r-xp zz 08:01 1 /a",
                                      "Size:                  4 kB",
                                      "VmFlags: rd ex mr mw me"}) {
    MapsLine read;
    EXPECT_FALSE(read_maps_line(text, read)) << "'" << text << "'";
  }
}

// Cut anywhere it is another line or none, and nothing behind its end is read.
TEST(MapsLine, ThatIsCutIsSurvived) {
  const std::string whole = "55d0c8a00000-55d0c8a28000 r-xp 00002000 08:01 1835    /usr/bin/cat";
  for (std::size_t length = 0; length < whole.size(); ++length) {
    const std::string cut(whole, 0, length);
    MapsLine read;
    if (read_maps_line(cut, read)) {
      EXPECT_TRUE(cut.ends_with(read.path)) << cut;
    }
  }
}

// ---- addresses of this program

std::uintptr_t address_of(const void* code) { return reinterpret_cast<std::uintptr_t>(code); }

__attribute__((noinline)) int own_function() {
  asm volatile("");
  return 1;
}
std::uintptr_t own_code() { return address_of(reinterpret_cast<const void*>(&own_function)); }
// As the linker has it at run time: the address of a function may be that of a table in this program.
std::uintptr_t code_of_libc() { return address_of(dlsym(RTLD_DEFAULT, "abs")); }

TEST(CodeRanges, TellTheFilesOfCodeApart) {
  CodeRanges code;
  std::string fresh;
  const int own = code.file_at(own_code(), fresh);
  const int library = code.file_at(code_of_libc(), fresh);
  EXPECT_NE(own, CodeRanges::kNone);
  EXPECT_NE(library, CodeRanges::kNone);
  EXPECT_NE(own, library);
  EXPECT_EQ(code.file_at(own_code() + 1, fresh), own);
  EXPECT_EQ(code.known_file_at(own_code()), own);
  EXPECT_EQ(code.known_file_at(code_of_libc()), library);
}

TEST(CodeRanges, KnowNothingBeforeTheyHaveLooked) {
  const CodeRanges code;
  EXPECT_EQ(code.known_file_at(own_code()), CodeRanges::kNone);
}

TEST(CodeRanges, GiveTheLinesOfMapsOnceAndOnlyThoseOfCode) {
  CodeRanges code;
  std::string fresh;
  EXPECT_NE(code.file_at(own_code(), fresh), CodeRanges::kNone);
  bool has_own = false, has_library = false;
  ASSERT_TRUE(fresh.ends_with('\n'));
  for (std::string_view left = fresh; !left.empty(); left.remove_prefix(left.find('\n') + 1)) {
    MapsLine line;
    ASSERT_TRUE(read_maps_line(left.substr(0, left.find('\n')), line)) << left;
    EXPECT_TRUE(line.is_code);
    EXPECT_FALSE(line.path.empty());
    has_own |= own_code() >= line.first && own_code() < line.end;
    has_library |= code_of_libc() >= line.first && code_of_libc() < line.end;
  }
  EXPECT_TRUE(has_own);
  EXPECT_TRUE(has_library);
  fresh.clear();
  EXPECT_NE(code.file_at(code_of_libc(), fresh), CodeRanges::kNone);
  EXPECT_EQ(fresh, "");
}

TEST(CodeRanges, EndWhereTheFilesCodeEnds) {
  CodeRanges code;
  std::string fresh;
  const int own = code.file_at(own_code(), fresh);
  std::uintptr_t first = 0, end = 0;
  for (std::string_view left = fresh; !left.empty(); left.remove_prefix(left.find('\n') + 1)) {
    MapsLine line;
    ASSERT_TRUE(read_maps_line(left.substr(0, left.find('\n')), line));
    if (own_code() >= line.first && own_code() < line.end) first = line.first, end = line.end;
  }
  EXPECT_EQ(code.known_file_at(first), own);
  EXPECT_EQ(code.known_file_at(end - 1), own);
  EXPECT_NE(code.known_file_at(first - 1), own);
  EXPECT_NE(code.known_file_at(end), own);
}

TEST(CodeRanges, DataIsInNoFile) {
  CodeRanges code;
  std::string fresh;
  static int data = 1;
  const int local = 2;
  EXPECT_EQ(code.file_at(address_of(&data), fresh), CodeRanges::kNone);
  EXPECT_EQ(code.file_at(address_of(&local), fresh), CodeRanges::kNone);
  EXPECT_EQ(code.file_at(0, fresh), CodeRanges::kNone);
  EXPECT_EQ(code.file_at(~std::uintptr_t{0}, fresh), CodeRanges::kNone);
}

// A program that makes code asks for it again and again: most of that is not looked for. What comes later in a file is
// found all the same, at one look of some.
TEST(CodeRanges, CodeInNoFileIsNotLookedForEachTime) {
  void* const made = mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (made == MAP_FAILED) GTEST_SKIP() << "NOT TESTED: no code can be made here";
  CodeRanges code;
  std::string fresh;
  EXPECT_EQ(code.file_at(address_of(made), fresh), CodeRanges::kNone);
  EXPECT_NE(fresh, "") << "the first look reads maps";
  fresh.clear();
  for (int i = 0; i < 100; ++i) EXPECT_EQ(code.file_at(address_of(made), fresh), CodeRanges::kNone);
  EXPECT_EQ(fresh, "");

  // A file's code that appears now: whether a call read maps shows in `fresh`.
  std::string path = ::testing::TempDir() + "farheap-code-XXXXXX";
  const int file = mkstemp(path.data());
  ASSERT_GE(file, 0);
  ASSERT_EQ(ftruncate(file, 4096), 0);
  void* const late = mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
  unlink(path.c_str());
  close(file);
  if (late == MAP_FAILED) GTEST_SKIP() << "NOT TESTED: files of the temporary folder cannot be mapped as code";
  int looks = 0;
  for (; fresh.empty() && looks < 1000; ++looks) (void)code.file_at(address_of(made), fresh);
  EXPECT_NE(fresh.find(path), std::string::npos);
  EXPECT_GT(looks, 0);
  EXPECT_LE(looks, 16);
  EXPECT_NE(code.file_at(address_of(late), fresh), CodeRanges::kNone);
  munmap(late, 4096);
  munmap(made, 4096);
}

// As it is after a hundred looks in vain: some of them are between two that count.
TEST(CodeRanges, MostLooksInVainAreSkipped) {
  CodeRanges code;
  std::string fresh;
  for (int i = 0; i < 100; ++i) (void)code.file_at(0, fresh);
  int read = 0;
  for (int i = 0; i < 64; ++i) {
    std::string path = ::testing::TempDir() + "farheap-code-XXXXXX";
    const int file = mkstemp(path.data());
    ASSERT_GE(file, 0);
    ASSERT_EQ(ftruncate(file, 4096), 0);
    void* const late = mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
    unlink(path.c_str());
    close(file);
    if (late == MAP_FAILED) GTEST_SKIP() << "NOT TESTED: files of the temporary folder cannot be mapped as code";
    fresh.clear();
    (void)code.file_at(0, fresh);
    read += fresh.empty() ? 0 : 1;
    munmap(late, 4096);
  }
  EXPECT_GE(read, 1);
  EXPECT_LE(read, 8);
}

TEST(CodeRanges, ALibraryThatIsLoadedLaterIsFound) {
  CodeRanges code;
  std::string fresh;
  (void)code.file_at(own_code(), fresh);
  void* library = nullptr;
  for (const char* const name :
       {"libz.so.1", "libbz2.so.1.0", "liblzma.so.5", "libexpat.so.1", "libcrypt.so.1", "libanl.so.1", "libutil.so.1",
        "libnsl.so.1", "libthread_db.so.1", "libBrokenLocale.so.1"}) {
    if (dlopen(name, RTLD_NOW | RTLD_NOLOAD) != nullptr) continue;  // it is here already
    library = dlopen(name, RTLD_NOW);
    if (library != nullptr) break;
  }
  if (library == nullptr) GTEST_SKIP() << "NOT TESTED: no small library of the system is left to be loaded";
  const link_map* map = nullptr;
  ASSERT_EQ(dlinfo(library, RTLD_DI_LINKMAP, &map), 0);
  // An address of its code.
  std::uintptr_t inside = 0;
  std::ifstream maps("/proc/self/maps");
  for (std::string text; inside == 0 && std::getline(maps, text);) {
    MapsLine line;
    const std::string_view path = map->l_name;
    const std::string_view name = path.substr(path.rfind('/') + 1);
    if (!read_maps_line(text, line) || !line.is_code) continue;
    if (line.first > map->l_addr && line.path.find(name.substr(0, name.find('.'))) != std::string_view::npos)
      inside = line.first;
  }
  ASSERT_NE(inside, 0u) << map->l_name;
  fresh.clear();
  EXPECT_EQ(code.known_file_at(inside), CodeRanges::kNone);
  const int found = code.file_at(inside, fresh);
  EXPECT_NE(found, CodeRanges::kNone);
  EXPECT_NE(found, code.known_file_at(own_code()));
  EXPECT_NE(fresh, "");
  dlclose(library);
}

}  // namespace
}  // namespace farheap::profile
