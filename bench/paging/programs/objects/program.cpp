// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "common/program.hpp"

#include "kernel.hpp"
#include "verify.hpp"

namespace farheap::bench {
namespace {

// Neighbours in a list that are neighbours in memory, malloc's bookkeeping between them included, make one range.
void append_list(ListNode* node, std::vector<ByteRange>& ranges) {
  for (; node != nullptr; node = node->next) {
    const ByteRange own = bytes_of(node, 1);
    std::byte* const last_end = ranges.empty() ? nullptr : ranges.back().data() + ranges.back().size();
    const bool follows =
        last_end != nullptr && own.data() >= last_end && own.data() <= last_end + kNodeBytes - sizeof(*node);
    if (follows) {
      ranges.back() = {ranges.back().data(), own.data() + own.size()};
    } else {
      ranges.push_back(own);
    }
  }
}

class ObjectsWork final : public Workload {
 public:
  explicit ObjectsWork(const Flags& flags) : flags_(flags), objects_(population_for(flags.size, flags.seed)) {}

  void run_kernel() override { objects_.run(flags_.steps); }
  std::uint64_t digest() override {
    return digest_bytes(objects_.sums().data(), objects_.sums().size() * sizeof(std::uint64_t));
  }
  std::string verify() override { return verify_objects(objects_, flags_.steps); }
  std::uint64_t bytes() const override { return objects_.population().bursts * kBurst * kNodeBytes; }
  std::uint64_t steps() const override { return flags_.steps; }

  // The sums, and of the nodes those that every walk starts from: there are too many to name all.
  std::vector<ByteRange> result() override {
    std::vector<ByteRange> ranges{bytes_of(objects_.sums().data(), objects_.sums().size())};
    for (ListNode* const first : objects_.lists()) {
      if (first != nullptr) ranges.push_back(bytes_of(&first->value, 1));
    }
    for (TreeNode* const root : objects_.trees()) ranges.push_back(bytes_of(&root->key, 1));
    return ranges;
  }

  // The lists that stay are walked twice as often as those that go; the trees do not exist yet.
  std::vector<ByteRange> hottest() override {
    std::vector<ByteRange> ranges;
    for (const bool stays : {true, false}) {
      for (std::uint64_t list = 0; list < objects_.lists().size(); ++list) {
        if (list_stays(list) == stays) append_list(objects_.lists()[list], ranges);
      }
    }
    return ranges;
  }

 private:
  Flags flags_;
  Objects objects_;
};

}  // namespace

Program this_program() {
  Program program;
  program.name = "objects";
  program.summary = "millions of small objects in phases; --steps is how often lists and trees are walked";
  program.kind = Kind::kOther;
  program.defaults.size = std::uint64_t{230} << 20;
  program.defaults.steps = 2;
  program.tiny_size = std::uint64_t{2} << 20;
  program.tiny_steps = 2;
  program.cases = {{"objects", {}, {"--size", "96M"}}};
  program.prepare = [](const Flags& flags) -> Workload* { return new ObjectsWork(flags); };
  return program;
}

}  // namespace farheap::bench
