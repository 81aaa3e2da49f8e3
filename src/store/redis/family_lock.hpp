// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Whether any process of a family, the one that opened a store and all that were forked from it, is still there: as
// others on the same machine can tell for certain, and at once. All of the family hold a socket open that has an
// abstract name of its own; the kernel gives the name free when the last of them has ended, however it ends. The name
// means nothing on another machine or in another network namespace: so it goes with machine().
//
// Thread-safety: one thread at a time.
#pragma once

#include <string>

namespace farheap::store::redis {

class FamilyLock {
 public:
  FamilyLock() = default;
  ~FamilyLock();
  FamilyLock(const FamilyLock&) = delete;
  FamilyLock& operator=(const FamilyLock&) = delete;

  // False: there is none to be had, or somebody has it.
  [[nodiscard]] bool take(const std::string& id);

  enum class Holder { kSomebody, kNobody, kUnknown };
  // Requires: it was taken where machine() is what it is here.
  [[nodiscard]] static Holder holder(const std::string& id);
  // This boot of this machine, and this network namespace: a word. Empty: not to be found out.
  [[nodiscard]] static std::string machine();

 private:
  int socket_ = -1;
};

}  // namespace farheap::store::redis
