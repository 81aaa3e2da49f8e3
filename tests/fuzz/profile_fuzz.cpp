// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Any bytes as a profile: refused, or one whose numbers all name something, and that means the same when it is written
// again. Each is tried once as it is, and once with checksums that fit.
#include <xxhash.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "profile/profile.hpp"

namespace {

using namespace farheap;
using namespace farheap::profile;

constexpr std::size_t kHead = 16;     // the magic and the format
constexpr std::size_t kSection = 24;  // kind, checksum, length

void must(bool is_so) {
  if (!is_so) std::abort();
}

void must_be_sound(const Profile& profile) {
  const std::size_t files = profile.files.size();
  must(files != 0);
  for (const ProcessProfile& one : profile.processes) {
    for (std::size_t i = 0; i < one.frames.size(); ++i) {
      must(i == 0 || one.frames[i].inner < i);
      must(one.frames[i].returns_to.file < files);
    }
    for (const SiteTotals& site : one.sites) must(site.site == 0 || site.site < one.frames.size());
    for (const WaitPlace& place : one.places) must(place.instruction.file < files && place.caller.file < files);
    for (const Stall& stall : one.stalls) {
      must(stall.site == 0 || stall.site < one.frames.size());
      must(stall.place == 0 || stall.place < one.places.size());
    }
    for (const LargeObject& object : one.objects) {
      must(object.site < one.frames.size() && object.first + object.bytes >= object.first);
    }
    const Contexts& contexts = one.contexts;
    for (std::uint32_t i = 0; i < contexts.contexts.size(); ++i) {
      must(contexts.contexts[i].local_id <= i && (i == 0 || contexts.parent(i) < i));
      must(i == 0 || contexts.contexts[i].place < contexts.places.size());
    }
    for (const CountedSite& site : contexts.sites) must(site.file < files && site.context < contexts.contexts.size());
    for (const ContextAccesses& accesses : contexts.accesses) {
      must(accesses.context < contexts.contexts.size() && accesses.site < contexts.sites.size());
    }
    must(contexts.contexts.empty() || tree_of(contexts).size() == contexts.contexts.size());
  }
}

void read(const std::string& bytes) {
  auto profile = read_profile(bytes, "fuzzed");
  if (!profile) return must(!profile.error().message().empty());
  must_be_sound(*profile);
  // Not compared as values: a figure may be no number.
  const std::string written = encode(*profile);
  const auto again = read_profile(written, "written again");
  must(again.has_value() && !again->is_cut && encode(*again) == written);
  keep_most_important(*profile);
  must(profile->processes.size() <= kMostProcesses);
  must_be_sound(*profile);
}

// Of a section.
std::uint64_t checksum(std::uint64_t kind, const char* bytes, std::size_t size) {
  return XXH3_64bits_withSeed(bytes, size, kind);
}

void mend(std::string& bytes) {
  for (std::size_t at = kHead; at + kSection <= bytes.size();) {
    std::uint64_t kind, length;
    std::memcpy(&kind, bytes.data() + at, sizeof kind);
    std::memcpy(&length, bytes.data() + at + 16, sizeof length);
    if (length > bytes.size() - at - kSection) return;
    const std::uint64_t sum = checksum(kind, bytes.data() + at + kSection, length);
    std::memcpy(bytes.data() + at + 8, &sum, sizeof sum);
    at += kSection + length;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  read(bytes);
  mend(bytes);
  read(bytes);
  return 0;
}
