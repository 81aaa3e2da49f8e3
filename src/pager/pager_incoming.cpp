// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pages on their way in: what a fault and the read-ahead have in common.
#include "pager/pager.hpp"

namespace farheap::pager {

void Pager::begin_filling(PageRun run, BlockId id) {
  table_.extent(run.first).was_filled = true;
  for (std::uint32_t i = 0; i < run.count; ++i) {
    table_.set_state(run.first + i, PageState::kFilling);
    table_.tag(run.first + i) = id;
  }
  resident_ += run.count;
  begin_io();
}

void Pager::finish_filling(PageRun run, BlockId id, bool ghost, bool stream) {
  for (std::uint32_t i = 0; i < run.count; ++i) table_.set_state(run.first + i, PageState::kPresent);
  policy_.entered(id, ghost, stream);
  end_io();
}

void Pager::finish_on_probation(PageRun run, BlockId id) {
  for (std::uint32_t i = 0; i < run.count; ++i) table_.set_state(run.first + i, PageState::kProbation);
  probation_.push_newest(id);
  end_io();
  view_.wake(run);  // who touched them while they were on their way tries again, and is noticed
}

void Pager::undo_filling(PageRun run, BlockId id) {
  for (std::uint32_t i = 0; i < run.count; ++i) {
    table_.set_state(run.first + i, PageState::kStored);
    table_.tag(run.first + i) = 0;
  }
  resident_ -= run.count;
  table_.free_block(id);
  freed_.notify_all();
  end_io();
  view_.wake(run);
}

Pager::Incoming Pager::begin_incoming(PageRun run, PageRun middle, bool middle_in_view) {
  Incoming incoming{.run = run, .middle_in_view = middle_in_view};
  const PageNumber after = middle.first + middle.count;
  incoming.parts[0].run = {run.first, static_cast<std::uint32_t>(middle.first - run.first)};
  incoming.parts[1].run = middle;
  incoming.parts[2].run = {after, static_cast<std::uint32_t>(run.first + run.count - after)};
  for (auto& part : incoming.parts) {
    if (part.run.count == 0) continue;
    part.id = table_.new_block(part.run.first, part.run.count);
    begin_filling(part.run, part.id);
  }
  return incoming;
}

void Pager::show(const Incoming& incoming, const std::byte* bytes, bool hash) {
  for (const int i : {1, 0, 2}) {  // the middle first: somebody waits for it
    const auto& part = incoming.parts[i];
    if (part.run.count == 0) continue;
    const std::byte* from = bytes + (part.run.first - incoming.run.first) * base::kPageBytes;
    if (incoming.in_view(i)) {
      // What comes from the store is not changed.
      view_.put_in(part.run, from, changes_.tracked() ? View::Guard::kOn : View::Guard::kOff);
    } else {
      view_.stage(part.run, from);
    }
    if (hash) table_.block(part.id).known.set_hashes(from, part.run.count);
  }
}

void Pager::finish_incoming(const Incoming& incoming, bool ghost, bool stream) {
  for (int i = 0; i < 3; ++i) {
    const auto& part = incoming.parts[i];
    if (part.run.count == 0) continue;
    if (incoming.in_view(i)) {
      finish_filling(part.run, part.id, ghost, stream);
    } else {
      Block& block = table_.block(part.id);
      // (A conditional expression of bit-fields is more than clang 19 can compile.)
      if (incoming.middle_in_view) {
        block.guessed = true;
      } else {
        block.marker = true;
      }
      finish_on_probation(part.run, part.id);
    }
  }
}

void Pager::undo_incoming(const Incoming& incoming) {
  for (const auto& part : incoming.parts) {
    if (part.run.count != 0) undo_filling(part.run, part.id);
  }
}

}  // namespace farheap::pager
