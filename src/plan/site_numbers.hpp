// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The allocation sites of a plan, numbered as they come: stacks that differ farther out than their names go are one
// site. A number is found by a hash where the stack is known, and by a binary search where it is new.
//
// Thread-safety: plain data.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <unordered_map>
#include <vector>

#include "plan/plan.hpp"
#include "profile/profile.hpp"

namespace farheap::plan {

class SiteNumbers {
 public:
  // Of a process; they outlive it.
  explicit SiteNumbers(std::span<const profile::StackFrame> frames) : frames_(frames) {}

  [[nodiscard]] std::uint32_t number_of(profile::SiteId site);
  struct Before {
    [[nodiscard]] bool operator()(const SiteName& one, const SiteName& other) const;
  };
  // By number.
  [[nodiscard]] const std::vector<SiteName>& names() const { return names_; }

 private:
  [[nodiscard]] SiteName name_of(profile::SiteId site) const;

  const std::span<const profile::StackFrame> frames_;
  std::vector<SiteName> names_;
  std::map<SiteName, std::uint32_t, Before> by_name_;
  std::unordered_map<profile::SiteId, std::uint32_t> by_site_;
};

}  // namespace farheap::plan
