// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pages on their way in: what a fault and the read-ahead have in common.
#include <utility>

#include "pager/pager.hpp"

namespace farheap::pager {

void Pager::begin_filling(PageRun run, BlockId id) {
  table_.extent(run.first).was_filled = true;
  for (std::uint32_t i = 0; i < run.count; ++i) {
    table_.set_state(run.first + i, PageState::kFilling);
    table_.tag(run.first + i) = id;
  }
  room_.came(run.count);
  moving_.begin();
}

void Pager::finish_filling(PageRun run, BlockId id, bool ghost, bool stream) {
  for (std::uint32_t i = 0; i < run.count; ++i) table_.set_state(run.first + i, PageState::kPresent);
  policy_.entered(id, ghost, stream);
  keep_if_said(id);
  read_ahead_.came(run, false);
  if (table_.block(id).leave_first) policy_.leaves_next(id);
  moving_.end();
}

void Pager::finish_on_probation(PageRun run, BlockId id) {
  for (std::uint32_t i = 0; i < run.count; ++i) table_.set_state(run.first + i, PageState::kProbation);
  table_.block(id).leave_first ? probation_.push_oldest(id) : probation_.push_newest(id);
  moving_.end();
  view_.wake(run);  // who touched them while they were on their way tries again, and is noticed
}

void Pager::undo_filling(PageRun run, BlockId id) {
  for (std::uint32_t i = 0; i < run.count; ++i) {
    table_.set_state(run.first + i, PageState::kStored);
    table_.tag(run.first + i) = 0;
  }
  room_.went(run.count);
  table_.free_block(id);
  freed_.notify_all();
  moving_.end();
  view_.wake(run);
}

void Pager::begin_incoming(Incoming& incoming) {
  for (Incoming::Part& part : incoming.parts()) {
    part.block = table_.new_block(part.run.first, part.run.count);
    begin_filling(part.run, part.block);
  }
}

void Pager::show(const Incoming& incoming, const std::byte* bytes, bool hash) {
  // First what somebody waits for.
  for (const bool in_view : {true, false}) {
    const std::byte* from = bytes;
    for (const Incoming::Part& part : incoming.parts()) {
      const std::byte* const own = std::exchange(from, from + part.run.count * base::kPageBytes);
      if (part.in_view() != in_view) continue;
      if (in_view) {
        // What comes from the store is not changed.
        view_.put_in(part.run, own, options_.track_changes ? View::Guard::kOn : View::Guard::kOff);
      } else {
        view_.stage(part.run, own);
      }
      if (hash) table_.block(part.block).known.set_hashes(own, part.run.count);
    }
  }
}

void Pager::finish_incoming(const Incoming& incoming, bool ghost, bool stream) {
  for (const Incoming::Part& part : incoming.parts()) {
    if (part.in_view()) {
      finish_filling(part.run, part.block, ghost, stream);
    } else {
      Block& block = table_.block(part.block);
      block.guessed = part.as == Incoming::As::kGuess;
      block.marker = part.as == Incoming::As::kMarker;
      finish_on_probation(part.run, part.block);
    }
  }
}

void Pager::undo_incoming(const Incoming& incoming) {
  for (const Incoming::Part& part : incoming.parts()) undo_filling(part.run, part.block);
}

}  // namespace farheap::pager
