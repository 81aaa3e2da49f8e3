// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Datastores as a whole: opening, closing, copies, and what a killed program leaves.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <fstream>
#include <metall/metall.hpp>
#include <metall/utility/datastore_ls.hpp>
#include <string>

#include "store_folder.hpp"

namespace farheap::testing {
namespace {

using metall::manager;

class MetallStoreTest : public ::testing::Test {
 protected:
  MetallStoreTest() { metall::logger::set_log_level(metall::logger::level_filter::silent); }
  ~MetallStoreTest() override { metall::logger::set_log_level(metall::logger::level_filter::error); }
  manager create() { return {metall::create_only, path, kCapacity}; }
  static int number(const std::filesystem::path& where) {
    manager store(metall::open_read_only, where);
    const int* const found = store.find<int>("number").first;
    return found == nullptr ? -1 : *found;
  }
  // In a process of its own, which does not close anything.
  template <class Do>
  static void killed_after(const Do& act) {
    const pid_t child = fork();
    if (child == 0) {
      act();
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }

  StoreFolder folder;
  const std::filesystem::path path = folder / "store";
};

TEST_F(MetallStoreTest, LiesAtAPathOfAnyName) {
  for (const char* const name : {"what?now", "me@home", "100%41", "a,b#c&d"}) {
    const auto where = folder / name / "store";
    {
      manager store(metall::create_only, where, kCapacity);
      ASSERT_TRUE(store.check_sanity()) << name;
      *store.construct<int>("number")() = 42;
      EXPECT_TRUE(store.snapshot(folder / name / "copy"));
    }
    EXPECT_TRUE(std::filesystem::exists(where / "farheap" / "heap")) << name;
    EXPECT_EQ(number(where), 42);
    EXPECT_EQ(number(folder / name / "copy"), 42);
    EXPECT_TRUE(manager::remove(where));
  }
}

TEST_F(MetallStoreTest, ALinkInThePlaceOfItsFilesIsNotFollowed) {
  {
    manager store = create();
  }
  std::ofstream(folder / "victim") << "secret";
  std::filesystem::create_symlink(folder / "victim", path / "farheap" / "description.new");
  EXPECT_TRUE(manager::set_description(path, "about it"));
  std::string text;
  EXPECT_TRUE(manager::get_description(path, &text));
  EXPECT_EQ(text, "about it");
  std::ifstream victim(folder / "victim");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(victim), {}), "secret");
}

TEST_F(MetallStoreTest, CreateReplacesWhatIsThere) {
  std::string uuid;
  {
    manager store = create();
    (void)store.construct<int>("number")(1);
    uuid = store.get_uuid();
    EXPECT_EQ(uuid.size(), 36U);
  }
  EXPECT_EQ(manager::get_uuid(path), uuid);
  manager store = create();
  EXPECT_EQ(store.find<int>("number").first, nullptr);
  EXPECT_NE(store.get_uuid(), uuid);
  EXPECT_EQ(store.get_version(), METALL_VERSION);
  EXPECT_EQ(manager::get_version(path), METALL_VERSION);
}

TEST_F(MetallStoreTest, AStoreIsConsistentWhenItWasClosed) {
  EXPECT_FALSE(manager::consistent(path));
  {
    manager store = create();
    EXPECT_FALSE(manager::consistent(path)) << "open for writing";
    (void)store.construct<int>("number")(1);
    store.flush();
    EXPECT_FALSE(manager::consistent(path));
  }
  EXPECT_TRUE(manager::consistent(path));
  manager reader(metall::open_read_only, path);
  EXPECT_TRUE(manager::consistent(path));
}

TEST_F(MetallStoreTest, AKilledProgramLeavesItsLastFlush) {
  killed_after([&] {
    auto* const store = new manager(metall::create_only, path, kCapacity);
    int* const number = store->construct<int>("number")(1);
    store->flush();
    *number = 2;
  });
  EXPECT_TRUE(manager::consistent(path));
  EXPECT_EQ(number(path), 1);
}

TEST_F(MetallStoreTest, WhatWasNeverFlushedIsNotConsistent) {
  killed_after([&] { (void)(new manager(metall::create_only, path, kCapacity))->construct<int>("number")(1); });
  EXPECT_FALSE(manager::consistent(path));
  EXPECT_FALSE(manager(metall::open_only, path).check_sanity());
  EXPECT_TRUE(create().check_sanity());
}

TEST_F(MetallStoreTest, OneMayWrite) {
  manager store = create();
  EXPECT_FALSE(manager(metall::open_only, path).check_sanity());
  EXPECT_FALSE(manager(metall::create_only, path).check_sanity());
  EXPECT_FALSE(manager::remove(path));
  EXPECT_TRUE(store.check_sanity());
  EXPECT_NE(store.construct<int>("number")(1), nullptr);
}

TEST_F(MetallStoreTest, ASnapshotIsAStoreBesideTheLiveOne) {
  manager store = create();
  int* const number_here = store.construct<int>("number")(1);
  ASSERT_TRUE(store.snapshot(folder / "monday"));
  *number_here = 2;
  ASSERT_TRUE(store.snapshot(folder / "tuesday"));
  EXPECT_TRUE(manager::consistent(folder / "monday"));
  EXPECT_EQ(number(folder / "monday"), 1);
  EXPECT_EQ(number(folder / "tuesday"), 2);
  EXPECT_NE(manager::get_uuid(folder / "monday"), store.get_uuid());
  *number_here = 3;
  ASSERT_TRUE(store.snapshot(folder / "monday")) << "one that is there is replaced";
  EXPECT_EQ(number(folder / "monday"), 3);
}

TEST_F(MetallStoreTest, TwoCopiesAreOpenAtOnceAndDoNotMeet) {
  {
    manager store = create();
    (void)store.construct<int>("number")(1);
  }
  ASSERT_TRUE(manager::copy(path, folder / "copy"));
  manager first(metall::open_only, path);
  manager second(metall::open_only, folder / "copy");
  ASSERT_TRUE(first.check_sanity());
  ASSERT_TRUE(second.check_sanity());
  EXPECT_NE(first.get_address(), second.get_address());
  *first.find<int>("number").first = 10;
  EXPECT_EQ(*second.find<int>("number").first, 1);
  EXPECT_NE(second.construct<int>("more")[100](5), nullptr);
  EXPECT_EQ(first.find<int>("more").first, nullptr);
}

TEST_F(MetallStoreTest, CopiesAndRemovals) {
  {
    manager store = create();
    (void)store.construct<int>("number")(1);
    EXPECT_TRUE(store.set_description("a store"));
    EXPECT_FALSE(manager::copy(path, folder / "copy")) << "open for writing";
  }
  EXPECT_TRUE(manager::copy_async(path, folder / "copy").get());
  EXPECT_EQ(number(folder / "copy"), 1);
  std::string text;
  EXPECT_TRUE(manager::get_description(folder / "copy", &text));
  EXPECT_EQ(text, "a store");
  EXPECT_TRUE(manager::remove(path));
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_TRUE(manager::remove(path)) << "there is none";
  EXPECT_TRUE(manager::remove_async(folder / "copy").get());
  EXPECT_FALSE(manager::copy(path, folder / "copy"));
}

TEST_F(MetallStoreTest, ACopyOntoItselfLeavesIt) {
  {
    manager store = create();
    (void)store.construct<int>("number")(1);
  }
  EXPECT_FALSE(manager::copy(path, path));
  EXPECT_FALSE(manager::copy(path, folder / "." / "store"));
  EXPECT_EQ(number(path), 1);
  manager store(metall::open_only, path);
  EXPECT_FALSE(store.snapshot(path));
  EXPECT_EQ(*store.find<int>("number").first, 1);
}

TEST_F(MetallStoreTest, OnlyWhatIsTheStoresIsRemoved) {
  std::filesystem::create_directories(path);
  std::ofstream(path / "mine") << "kept";
  {
    manager store = create();
  }
  EXPECT_TRUE(manager::remove(path));
  EXPECT_TRUE(std::filesystem::exists(path / "mine"));
}

TEST_F(MetallStoreTest, DescriptionsAreWrittenWhileItIsOpen) {
  std::string text = "before";
  {
    manager store = create();
    EXPECT_FALSE(store.get_description(&text));
    EXPECT_EQ(text, "before");
    EXPECT_TRUE(store.set_description("one"));
    EXPECT_TRUE(manager::set_description(path, "two"));
  }
  EXPECT_TRUE(manager::get_description(path, &text));
  EXPECT_EQ(text, "two");
  EXPECT_FALSE(manager::set_description(folder / "nowhere", "three"));
}

TEST_F(MetallStoreTest, AttributesAreReadWithoutOpeningIt) {
  std::ptrdiff_t offset = 0;
  {
    manager store = create();
    auto* const numbers = store.construct<int>("numbers")[3](1);
    offset = reinterpret_cast<const char*>(numbers) - static_cast<const char*>(store.get_address());
    (void)store.construct<float>(metall::unique_instance)(1.5F);
    (void)store.construct<int>(metall::anonymous_instance)(2);
    store.flush();
    EXPECT_TRUE(manager::access_named_object_attribute(path).good()) << "beside the writer";
    EXPECT_FALSE(manager::access_named_object_attribute(path).set_description("numbers", "no"));
  }
  auto named = manager::access_named_object_attribute(path);
  EXPECT_EQ(named.num_objects(), 1U);
  EXPECT_EQ(named.count("numbers"), 1U);
  EXPECT_EQ(named.count("none"), 0U);
  EXPECT_EQ(named.find("none"), named.end());
  manager::const_named_iterator at = named.find("numbers");
  EXPECT_EQ(at->length(), 3U);
  EXPECT_EQ(at->offset(), offset);
  EXPECT_TRUE(at->is_type<int>());
  EXPECT_TRUE(named.set_description(at, "three ones"));
  EXPECT_EQ(at->description(), "three ones");
  auto unique = manager::access_unique_object_attribute(path);
  EXPECT_EQ(unique.count<float>(metall::unique_instance), 1U);
  EXPECT_EQ(unique.find<float>(metall::unique_instance)->name(), typeid(float).name());
  EXPECT_TRUE(unique.set_description<float>(metall::unique_instance, "alone"));
  auto anonymous = manager::access_anonymous_object_attribute(path);
  EXPECT_EQ(anonymous.num_objects(), 1U);
  EXPECT_TRUE(anonymous.set_description(anonymous.begin(), "nameless"));
  EXPECT_FALSE(manager::access_named_object_attribute(folder / "nowhere").good());

  manager store(metall::open_only, path);
  std::string text;
  EXPECT_TRUE(store.get_instance_description(store.find<int>("numbers").first, &text));
  EXPECT_EQ(text, "three ones");
}

TEST_F(MetallStoreTest, OffsetsAreTheSameWhereverItLies) {
  manager original = create();
  auto* const number_here = original.construct<int>("number")(1);
  const std::ptrdiff_t offset = reinterpret_cast<char*>(number_here) - static_cast<const char*>(original.get_address());
  ASSERT_TRUE(original.snapshot(folder / "copy"));
  {
    manager copy(metall::open_only, folder / "copy");
    ASSERT_NE(copy.get_address(), original.get_address());
    EXPECT_EQ(copy.named_begin()->offset(), offset);
    EXPECT_EQ(reinterpret_cast<char*>(copy.find<int>("number").first),
              static_cast<const char*>(copy.get_address()) + offset);
  }
  auto attributes = manager::access_named_object_attribute(folder / "copy");
  EXPECT_EQ(attributes.begin()->offset(), offset);
  EXPECT_TRUE(attributes.set_description("number", "moved"));
  EXPECT_EQ(manager::access_named_object_attribute(folder / "copy").begin()->description(), "moved");
}

TEST_F(MetallStoreTest, AListOfItsObjects) {
  {
    manager store = create();
    (void)store.construct<int>("numbers")[3](1);
  }
  ::testing::internal::CaptureStdout();
  metall::utility::ls_named_object(path);
  metall::utility::ls_unique_object(path);
  const std::string shown = ::testing::internal::GetCapturedStdout();
  EXPECT_NE(shown.find("numbers"), shown.npos);
  EXPECT_NE(shown.find("[Unique Object]"), shown.npos);
}

TEST_F(MetallStoreTest, WhatMetallItselfWroteIsRefusedInWords) {
  std::filesystem::create_directories(path / "mds");
  metall::logger::set_log_level(metall::logger::level_filter::error);
  ::testing::internal::CaptureStderr();
  EXPECT_FALSE(manager(metall::open_only, path).check_sanity());
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("was written by Metall itself"), std::string::npos);
}

TEST_F(MetallStoreTest, ProfileSaysWhatItHolds) {
  manager store = create();
  (void)store.construct<int>("numbers")[3](1);
  std::ostringstream out;
  store.profile(&out);
  EXPECT_NE(out.str().find("objects\t1\n"), std::string::npos) << out.str();
}

}  // namespace
}  // namespace farheap::testing
