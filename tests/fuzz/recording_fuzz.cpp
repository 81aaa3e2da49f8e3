// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Any bytes as a recording: refused, or a process whose numbers all name something and that can be written into a
// profile. Each is tried once as it is, and once with a header that fits so many bytes.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "profile/harvest.hpp"
#include "profile/recording.hpp"

namespace {

using namespace farheap;
using namespace farheap::profile;

void must(bool is_so) {
  if (!is_so) std::abort();
}

void must_be_sound(const Profile& profile) {
  const std::size_t files = profile.files.size();
  const ProcessProfile& one = profile.processes[0];
  must(!one.frames.empty() && !one.places.empty());
  for (std::size_t i = 1; i < one.frames.size(); ++i) {
    must(one.frames[i].inner < i && one.frames[i].returns_to.file < files);
  }
  for (const SiteTotals& site : one.sites) must(site.site != 0 && site.site < one.frames.size());
  for (const WaitPlace& place : one.places) must(place.instruction.file < files && place.caller.file < files);
  for (const Stall& stall : one.stalls) must(stall.site < one.frames.size() && stall.place < one.places.size());
  for (const LargeObject& object : one.objects) must(object.site != 0 && object.site < one.frames.size());
}

bool add(const std::vector<std::byte>& bytes) {
  Profile profile;
  const auto build_id = [](const std::string& path) { return path.substr(0, 4); };
  if (const Status status = add_recording(bytes, "fuzzed", build_id, profile); !status) {
    must(!status.error().message().empty() && profile == Profile{});
    return false;
  }
  must(profile.processes.size() == 1);
  must_be_sound(profile);
  const auto again = read_profile(encode(profile), "written");
  must(again.has_value() && *again == profile);
  return true;
}

// Rooms that fit: what the tables leave over is text of modules.
void mend(std::vector<std::byte>& bytes) {
  bytes.resize(std::max(bytes.size(), sizeof(RecordingHeader)));
  std::vector<std::uint64_t> head(sizeof(RecordingHeader) / sizeof(std::uint64_t));
  std::memcpy(head.data(), bytes.data(), sizeof(RecordingHeader));
  auto& header = *reinterpret_cast<RecordingHeader*>(head.data());
  header.magic = RecordingHeader::kMagic;
  header.format = RecordingHeader::kFormat;
  header.site_room = 1 + header.site_room % 64;
  header.place_room = 1 + header.place_room % 16;
  header.stall_room = header.stall_room % 32;
  header.object_room = header.object_room % 16;
  header.touch_room = header.touch_room % 32;
  const RecordingRoom room = {.sites = header.site_room,
                              .places = header.place_room,
                              .stalls = header.stall_room,
                              .objects = header.object_room,
                              .touches = header.touch_room,
                              .module_bytes = 0};
  bytes.resize(std::max(bytes.size(), RecordingTables::bytes(room)));
  header.module_room = static_cast<std::uint32_t>(bytes.size() - RecordingTables::bytes(room));
  std::memcpy(bytes.data(), head.data(), sizeof(RecordingHeader));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto* const first = reinterpret_cast<const std::byte*>(data);
  std::vector<std::byte> bytes(first, first + size);
  (void)add(bytes);
  mend(bytes);
  must(add(bytes));
  return 0;
}
