// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The two seams of the pager: what the program sees (View) and where bytes rest when they are not in memory
// (Backing). With the kernel's page tables behind View and a store behind Backing the pager serves a program;
// with plain arrays behind both, the same pager runs inside a test.
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <farheap/result.hpp>
#include <memory>
#include <optional>
#include <span>

namespace farheap::pager {

using PageNumber = std::uint64_t;  // counted from the start of the segment

struct PageRun {
  PageNumber first = 0;
  std::uint32_t count = 0;
};

// The program's view of its pages. Every page has one staging place of its own, where its bytes are while it is
// out of view but still in memory.
//
// A run that a call is about lies in one extent (512 pages, from a multiple of 512 on).
//
// Thread-safety: calls for different pages may be made at the same time; calls for one page are serialised by
// the pager (a page is in exactly one state).
class View {
 public:
  virtual ~View() = default;

  enum class Taken : std::uint8_t {
    kTaken,    // now in its staging place; whoever touches it faults
    kGone,     // the program dropped it behind our back (madvise): it reads as zeros
    kRefused,  // the kernel will not let go of it now: it stays in view
  };

  // Takes pages out of view, atomically with respect to the program's writes: what it wrote before is in the
  // staging place, what it writes after faults first. One answer a page. Requires: answers.size() == run.count.
  virtual void take_out(PageRun run, std::span<Taken> answers) = 0;
  // Guarded pages are read as others; a write to one faults and waits until the page is released.
  enum class Guard : bool { kOff, kOn };
  // Puts pages from their staging places back into view, not guarded, and wakes who waits for them.
  virtual void put_back(PageRun run) = 0;
  // The same, but the staging place is still being read (written to the store): its bytes stay there.
  virtual void copy_back(PageRun run, Guard guard) = 0;
  // Puts bytes into view (pages that were in neither place) and wakes who waits for them.
  virtual void put_in(PageRun run, const std::byte* bytes, Guard guard) = 0;
  // 512 pages of zeros from a huge page's boundary on, not guarded, and none of which has been in view before; wakes
  // who waits for them. Returns how many of them, from the first on, are there now.
  [[nodiscard]] virtual std::uint32_t put_in_huge(PageNumber /*first*/) { return 0; }
  // Pages in view: what was written before is there, what is written after faults first.
  virtual void guard(PageRun run) = 0;
  // Whether a page that was taken out and is copied back guarded tells of every write, whoever makes it: pages that a
  // device writes to must not be let go by take_out(), and writes within system calls must fault, too.
  [[nodiscard]] virtual bool tells_every_write() const { return false; }
  // Pages of an extent in view that were written to since they were asked about before, or since they came: a page
  // counts as written that came since. False: the view does not know.
  using Written = std::bitset<512>;
  [[nodiscard]] virtual bool take_written(PageNumber /*first*/, Written& /*written*/) { return false; }
  // Writes to pages in view go on, and who waits for them is woken.
  virtual void release(PageRun run) = 0;
  // A page in view. Requires: it is guarded, or nobody writes to it.
  [[nodiscard]] virtual const std::byte* shown(PageNumber page) const = 0;
  // Copies pages in view, also what the program itself may not read now. What it writes meanwhile may come or not.
  // False if that cannot be. Requires: they stay in view.
  [[nodiscard]] virtual bool read_shown(PageRun run, std::byte* into) const = 0;
  // Puts bytes into the staging places; the pages stay out of view.
  virtual void stage(PageRun run, const std::byte* bytes) = 0;

  [[nodiscard]] virtual const std::byte* staging(PageNumber page) const = 0;
  virtual void drop_staging(std::span<const PageRun> runs) = 0;
  // Drops pages in view; the next touch faults.
  virtual void drop_view(PageRun run) = 0;
  // For a page that should be in view: puts zeros there if the program dropped it behind our back, and wakes who waits.
  virtual void mend(PageNumber page) { wake({page, 1}); }
  // Wakes who waits for these pages without changing anything: the touch is tried again.
  virtual void wake(PageRun run) = 0;

  // Told of pages that are not moved: they were in view before the pager was there; what they hold out of view is
  // dropped.
  virtual void adopted(PageRun /*run*/) {}
  virtual void forgotten(PageRun /*run*/) {}
};

// Where the contents of pages rest. Thread-safety: as View; calls block until the store has answered.
class Backing {
 public:
  virtual ~Backing() = default;

  struct Read {
    PageRun run;
    std::byte* into;  // aligned to the page size
  };
  struct Write {
    PageRun run;
    const std::byte* from;  // aligned to the page size; must not change until the call returns
    bool soon = false;      // it may well be wanted again soon, and page by page
  };
  // Reads that one thread has in flight and asks after, instead of waiting for each. Thread-safety: one thread at a
  // time; another may go on when nothing is in flight.
  class Reads {
   public:
    virtual ~Reads() = default;
    // Begins a read under a number of the caller's, below the `most` of reads_in_flight() and not in use. False: not
    // this one; read() it.
    [[nodiscard]] virtual bool begin(unsigned number, const Read& read) = 0;
    struct Answer {
      unsigned number;
      bool arrived;  // otherwise read() it, which tells why
    };
    // In any order; nothing: none yet.
    [[nodiscard]] virtual std::optional<Answer> take() = 0;
    // Readable (poll) when an answer is there.
    [[nodiscard]] virtual int descriptor() const = 0;
  };
  // nullptr where answers have to be waited for.
  [[nodiscard]] virtual std::unique_ptr<Reads> reads_in_flight(unsigned /*most*/) { return nullptr; }

  // Where stored pages lie in memory, one after the other; nullptr: read() them. There until one of them is written or
  // forgotten.
  [[nodiscard]] virtual const std::byte* at_rest(PageRun /*run*/) { return nullptr; }
  // How near stored pages are.
  struct Rest {
    std::uint32_t in_memory = 0;  // so many of them are read without I/O
    bool stays = true;  // all of them rest there after a read(), too; otherwise, what is read is to be written
  };
  [[nodiscard]] virtual Rest where(PageRun /*run*/) const { return {}; }
  // On error some of the pages may have arrived; none may be relied on.
  [[nodiscard]] virtual Status read(std::span<const Read> runs) = 0;
  // On error the pages' former contents may be gone: keep the bytes and try again.
  [[nodiscard]] virtual Status write(std::span<const Write> runs) = 0;
  // They rest there as they are, and leave memory now: it may keep them nearer. Called with none now and then: what it
  // has near may have become too much.
  virtual void offer(std::span<const Write> /*runs*/) {}
  // Between the two, which may overlap, what is written rests where it is to last.
  virtual void begin_flush() {}
  virtual void end_flush() {}
  // Of what was written before, and is nearer, some comes to rest there; it may stay near, too. `from` is 0 at first,
  // and kFlushed when all has.
  static constexpr std::uint64_t kFlushed = UINT64_MAX;
  [[nodiscard]] virtual Status flush_some(std::uint64_t& from) {
    from = kFlushed;
    return {};
  }
  // Says which of the pages [first, first + 512) it holds. The pager asks about pages that nobody has touched yet, or
  // that were invalidated, and takes the others of them for fresh. Requires: first is a multiple of 512.
  using Stored = std::bitset<512>;
  [[nodiscard]] virtual Result<Stored> stored_from(PageNumber /*first*/) { return Stored(); }
  // The contents are not needed any more.
  virtual void forget(PageRun run) = 0;

  // ---- what others may change, too (a space that several processes map, a region that has an owner)
  // Only claim() may wait for others. The other calls are made with locks of the pager that others wait for when they
  // commit or invalidate.
  //
  // Pages are to be claimed before they are written to. The answer never changes. Requires of a backing that says so:
  // what it does not hold reads as zeros; at_rest() shows nothing; every pager that ever asked stored_from() is told
  // when another has changed a page, if it has read the page or not; forget() comes for pages that were not claimed.
  [[nodiscard]] virtual bool has_owners() const { return false; }
  // Returns when this process may write to the pages, at once if it already may; waits for others as long as it takes.
  // If others have written to them since they were read here, they are invalidated first. The process may write to
  // them until the backing grants no more, and then a commit begins or invalidate() is called: a claim that is under
  // way at that moment is made again. Only when invalidate() has returned may the backing grant them to another. It
  // should leave them to who claimed them for a while, or two that want the same page take it from each other before
  // either has written. Meanwhile a fault waits, and so may one that is behind it: who lets go of pages must touch
  // none that may be away, and take no lock of a thread that may be faulting. On error the program ends.
  [[nodiscard]] virtual Status claim(PageRun /*run*/) { return {}; }
  // Others have changed these pages (Pager::invalidate()). What it keeps nearer of them is no longer right, and goes.
  virtual void invalidate(PageRun /*run*/) {}
};

}  // namespace farheap::pager
