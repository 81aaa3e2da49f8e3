// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The entry by which a server knows that a scratch store is in use: whose it is, when its processes were last heard of,
// by the server's own clock, and for how long they need not be (grace_s). It is renewed with every new connection and
// by a heart while the program is idle. An entry that is gone is never made again: whoever removed it takes the store's
// contents, too.
//
// Thread-safety: plain values and functions; heard_ns: any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "store/redis/requests.hpp"

namespace farheap::store::redis {

struct ScratchEntry {
  std::string key;  // of the registry below the parent's name; empty: the store is kept
  std::string id;
  std::string machine;                    // FamilyLock::machine() where the lock is held; empty: it is not
  std::atomic<std::int64_t> heard_ns{0};  // when the server was last told, on the boot clock

  // Commands on `key`. The first makes the entry; the second answers 1, or 0 if it is gone.
  void write_first(Requests& requests, std::string_view run_id, unsigned grace_s) const;
  void write_renewal(Requests& requests, std::string_view run_id, unsigned grace_s) const;
  // Why it is gone, after that answer.
  [[nodiscard]] std::string why_gone(unsigned grace_s) const;
};

// As it stands there.
struct ScratchNote {
  std::string_view run_id;    // of the server's process that was told
  std::uint64_t heard_s = 0;  // since 1970
  std::uint64_t grace_s = 0;  // 0: of a Farheap that had none
  std::string_view machine;
};
[[nodiscard]] ScratchNote read_scratch_note(std::string_view text);
// By what is known on this machine. The server's process is `run_id` now, its time `now_s`.
[[nodiscard]] bool may_be_in_use(const ScratchNote& note, const std::string& id, std::string_view run_id,
                                 std::uint64_t now_s);

}  // namespace farheap::store::redis
