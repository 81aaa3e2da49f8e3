// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Any bytes in what the processes of a run share, and as the place of one: looked at from outside (`farheap top`),
// recorded, and used by a process that is in the run. Pieces of the input go to places that it names:
//   u32 offset (what is beyond goes around), u8 length, bytes ...; a length of 0: the next byte fills everything
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/run_page.hpp"
#include "tool/run_report.hpp"
#include "tool/run_sample.hpp"
#include "tool/top_picture.hpp"

using namespace farheap;

namespace {

[[noreturn]] void stop(const char* why) {
  std::fprintf(stderr, "run_page_fuzz: %s\n", why);
  std::abort();
}

// What is in front of the heat tables, and the first two of them: all the others are read alike.
constexpr std::size_t kReached = offsetof(base::RunShared, heat_tables) + 2 * sizeof(base::HeatTable);

void write_over(std::byte* shared, std::string_view data) {
  while (data.size() > 5) {
    std::uint32_t at = 0;
    std::memcpy(&at, data.data(), sizeof at);
    const std::size_t length = std::min<std::size_t>(static_cast<std::uint8_t>(data[4]), data.size() - 5);
    data.remove_prefix(5);
    if (length == 0) std::memset(shared, data[0], kReached);
    for (std::size_t i = 0; i < length; ++i) shared[(at + i) % kReached] = static_cast<std::byte>(data[i]);
    data.remove_prefix(std::max<std::size_t>(length, 1));
  }
}

std::string path_of(int file) { return "/proc/self/fd/" + std::to_string(file); }

void look_from_outside(const base::RunFiles& files) {
  const auto view = base::RunView::open(path_of(files.configuration), path_of(files.counters), geteuid());
  if (!view) stop("no view");
  tool::Sampler sampler((*view)->page());
  const tool::Sample before = sampler.take();
  if (!(*view)->refresh()) stop("no second look");
  const tool::Sample now = sampler.take();
  if (!now.counters.not_below(before.counters)) stop("counters that run backwards");
  const auto line = nlohmann::json::parse(
      tool::sample_json(now).dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  if (const auto read = tool::parse_sample(line); !read) stop(read.error().message().c_str());
  if (tool::picture_text({(*view)->page().command_text(), 1, before, now}).empty()) stop("no picture");
  tool::RunSummary summary;
  summary.command = {"prog"};
  tool::add_counters(summary, now.counters);
  if (tool::report_lines(summary).empty()) stop("no report");
}

void be_in_the_run(base::RunPage& page) {
  base::RunSlot& own = page.claim(getpid());
  base::RunSlot& child = page.claim_for_child(getpid(), 1, 1);
  page.forked(child, getpid());
  for (const auto* slot : {&own, &child}) {
    if (slot < page.slots || slot >= page.slots + base::RunPage::kSlots) stop("no slot of the page");
  }
  (void)page.others(own);
  (void)page.total_bytes();
  page.start_heat(own).count(std::uint64_t{1} << 60, base::Heat::kStore, 1);
  page.pulse.beat(1);
  (void)page.pulse.beats();
  page.release(own);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string_view data(reinterpret_cast<const char*>(bytes), size);
  if (const auto place = base::RunPlace::parse(data); place && !base::RunPlace::parse(place->text())) stop("no place");
  const auto files = base::make_run_files(std::uint64_t{64} << 20, "a program");
  if (!files) stop(files.error().message().c_str());
  const auto page = base::map_run_page(*files);
  if (!page) stop(page.error().message().c_str());
  base::open_locks(**page, files->counters);
  write_over(reinterpret_cast<std::byte*>(static_cast<base::RunShared*>(*page)), data);
  look_from_outside(*files);
  be_in_the_run(**page);
  if ((*page)->locks >= 0) close((*page)->locks);
  munmap(*page, sizeof **page);
  close(files->configuration);
  close(files->counters);
  return 0;
}

extern "C" int farheap_corpus_changes() { return 100; }
