// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Objects with virtual functions in a kept heap. Each look at one is in a process with tables of its own places: the
// test runs itself anew.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "heap_folder.hpp"

namespace farheap::testing {

struct Shape {
  virtual ~Shape() = default;
  [[nodiscard]] virtual double area() const = 0;
  virtual void grow(double by) = 0;
};
struct Named {
  virtual ~Named() = default;
  [[nodiscard]] virtual std::string name() const { return "nobody"; }
  int number = 7;
};
struct Square final : Shape {
  explicit Square(double its_side) : side(its_side) {}
  [[nodiscard]] double area() const override { return side * side; }
  void grow(double by) override { side += by; }
  double side;
};
// Two bases, two tables in each object.
struct Label final : Named, Shape {
  explicit Label(double its_width) : width(its_width) {}
  [[nodiscard]] std::string name() const override { return "label" + std::to_string(number); }
  [[nodiscard]] double area() const override { return width; }
  void grow(double by) override { width += by; }
  double width;
};
struct Drawing {
  Shape* shapes[2];
  Named* named;
};
struct Unregistered {
  virtual ~Unregistered() = default;
};
struct Root {
  virtual int value() { return root; }
  virtual ~Root() = default;
  int root = 1;
};
struct Left : virtual Root {
  [[gnu::noinline]] Left() { left = root; }
  int value() override { return left; }
  int left = 0;
};
struct Right : virtual Root {};
struct Diamond : Left, Right {};
Root* volatile a_diamond = new Diamond;  // so that its tables are there

}  // namespace farheap::testing

FARHEAP_POLYMORPHIC(farheap::testing::Square)
FARHEAP_POLYMORPHIC(farheap::testing::Label)
FARHEAP_POLYMORPHIC(farheap::testing::Diamond)
FARHEAP_POLYMORPHIC(farheap::testing::Left)

namespace farheap::testing {
namespace {

constexpr char kHeapVariable[] = "FARHEAP_TEST_POLYMORPHIC_HEAP";

// Runs one test of this program in a process of its own.
int run_anew(const std::string& filter, const std::string& uri) {
  const pid_t child = fork();
  if (child == 0) {
    setenv(kHeapVariable, uri.c_str(), 1);
    const std::string argument = "--gtest_filter=" + filter;
    execl("/proc/self/exe", "polymorphic_test", argument.c_str(), "--gtest_also_run_disabled_tests", nullptr);
    _exit(127);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// What PolymorphicTest.ObjectsWorkInTheNextRun runs in other processes.
TEST(PolymorphicRunTest, DISABLED_Grows) {
  const char* const uri = getenv(kHeapVariable);
  ASSERT_NE(uri, nullptr);
  Heap heap = must(Heap::open(uri, kSmall));
  auto* const drawing = heap.find<Drawing>("drawing");
  ASSERT_NE(drawing, nullptr);
  for (Shape* const shape : drawing->shapes) {
    const double area = shape->area();
    shape->grow(1);
    EXPECT_GT(shape->area(), area);
  }
  EXPECT_EQ(drawing->named->name(), "label7");
  EXPECT_NE(dynamic_cast<Label*>(drawing->shapes[1]), nullptr);
  const auto squares = heap.find_array<Square>("squares");
  ASSERT_EQ(squares.length, 1000u);
  for (std::size_t i = 0; i < squares.length; ++i) {
    const Shape& shape = squares.first[i];
    ASSERT_EQ(shape.area(), 4.0);
  }
  ASSERT_TRUE(heap.commit());
}

TEST(PolymorphicTest, ObjectsWorkInTheNextRun) {
  const HeapFolder folder;
  {
    Heap heap = must(Heap::create(folder.uri(), kSmall));
    auto* const drawing = heap.construct<Drawing>("drawing")();
    auto* const label = heap.construct<Label>(anonymous_instance)(3.0);
    drawing->shapes[0] = heap.construct<Square>("square")(2.0);
    drawing->shapes[1] = label;
    drawing->named = label;
    ASSERT_NE(heap.construct<Square>("squares")[1000](2.0), nullptr);
    ASSERT_TRUE(heap.commit());
  }
  for (int run = 0; run < 3; ++run) EXPECT_EQ(run_anew("PolymorphicRunTest.DISABLED_Grows", folder.uri()), 0);
  Heap heap = must(Heap::open_read_only(folder.uri(), kSmall));
  const auto* const drawing = heap.find<Drawing>("drawing");
  EXPECT_EQ(drawing->shapes[0]->area(), 25.0);
  EXPECT_EQ(drawing->shapes[1]->area(), 6.0);
}

TEST(PolymorphicTest, AHeapWithTypesThatAreNotRegisteredIsRefusedWithTheReason) {
  const HeapFolder folder;
  {
    Heap heap = must(Heap::create(folder.uri(), kSmall));
    ASSERT_NE(heap.construct<Square>("square")(2.0), nullptr);
    ASSERT_TRUE(heap.commit());
  }
  const std::string command = std::string(FARHEAP_ANOTHER_PROGRAM) + " " + folder.uri() + " 2>&1";
  FILE* const program = popen(command.c_str(), "r");
  ASSERT_NE(program, nullptr);
  char text[1000] = {};
  (void)fread(text, 1, sizeof text - 1, program);
  EXPECT_NE(pclose(program), 0);
  EXPECT_NE(std::string_view(text).find("Square: this program has not registered its type"), std::string_view::npos)
      << text;
  EXPECT_NE(std::string_view(text).find("FARHEAP_POLYMORPHIC"), std::string_view::npos) << text;
  EXPECT_TRUE(Heap::check(folder.uri()));
}

TEST(PolymorphicTest, DestroyedObjectsAskForNothing) {
  const HeapFolder folder;
  Heap heap = must(Heap::create(folder.uri(), kSmall));
  ASSERT_NE(heap.construct<Square>("square")(2.0), nullptr);
  EXPECT_TRUE(heap.destroy<Square>("square"));
  EXPECT_EQ(heap.find<Square>("square"), nullptr);
}

TEST(PolymorphicTest, TypesWhoseTablesCannotBeToldAreRefusedWhenTheyAreMade) {
  static_assert(polymorphic<Square>::value && !polymorphic<Unregistered>::value);
  const HeapFolder folder;
  Heap heap = must(Heap::create(folder.uri(), kSmall));
  // Left's own table, and the one it has while it is a part of a Diamond.
  EXPECT_THROW((void)heap.construct<Left>("left")(), TypeMismatch);
  EXPECT_EQ(heap.find<Left>("left"), nullptr);
}

}  // namespace
}  // namespace farheap::testing
