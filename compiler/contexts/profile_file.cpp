// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "profile_file.hpp"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/units.hpp"
#include "objects.hpp"
#include "profile/code_ranges.hpp"
#include "profile/harvest.hpp"
#include "profile/profile.hpp"
#include "threads.hpp"

namespace farheap::contexts {
namespace {

constexpr char kVariable[] = "FARCC_PROFILE", kEnding[] = ".profile";
constexpr char kMemoryVariable[] = "FARCC_CONTEXTS_MEMORY";
constexpr std::size_t kMostContexts = 50'000;  // of a file; the coldest beyond that are folded

bool g_is_child = false;
pid_t g_process = 0;
char g_path[PATH_MAX];  // no std::string, whose life may end before the program does

std::string program_name() {
  std::string name = program_invocation_short_name;
  return name.empty() ? "farheap" : name;
}

// Where the program begins, and not where it has gone to when it ends.
void choose_path() {
  const char* const chosen = secure_getenv(kVariable);
  std::string path = chosen != nullptr && *chosen != '\0' ? chosen : program_name() + kEnding;
  char folder[PATH_MAX];
  if (path[0] != '/' && getcwd(folder, sizeof folder) != nullptr) path = fmt::format("{}/{}", folder, path);
  path.copy(g_path, sizeof g_path - 1);
}

void choose_memory() {
  const char* const chosen = secure_getenv(kMemoryVariable);
  if (chosen == nullptr || *chosen == '\0') return;
  if (const auto bytes = base::parse_size(chosen)) return set_most_tree_bytes(*bytes);
  fmt::print(stderr, "farheap: {} is '{}', which is no size; contexts take up to {} MiB a thread; say it as 64M\n",
             kMemoryVariable, chosen, kMostTreeBytes >> 20);
}

std::string path_of_profile() { return g_is_child ? fmt::format("{}.{}", g_path, getpid()) : std::string(g_path); }

// Where code lies in the files of the program.
class Code {
 public:
  explicit Code(profile::Profile& profile) : profile_(profile) {
    profile::read_maps([this](std::string_view text) {
      profile::MapsLine line;
      if (profile::read_maps_line(text, line) && line.is_code && !line.path.empty()) {
        parts_.push_back({line.first, line.end, line.offset, std::string(line.path)});
      }
      return true;
    });
  }
  profile::CodePlace at(std::uintptr_t address) {
    for (const Part& part : parts_) {
      if (address < part.first || address >= part.end) continue;
      const auto [known, is_new] = files_.try_emplace(part.path);
      if (is_new) known->second = profile_.file({part.path, profile::build_id_of_file(part.path)});
      return {known->second, address - part.first + part.offset};
    }
    return {0, address};
  }

 private:
  struct Part {
    std::uintptr_t first, end;
    std::uint64_t offset;
    std::string path;
  };
  profile::Profile& profile_;
  std::vector<Part> parts_;
  std::map<std::string, std::uint32_t> files_;
};

// The trees of all threads as one. Sites name nodes, so trees are held until both have been read.
class Harvest {
 public:
  Harvest() : ns_per_tick_(ns_per_tick()) {
    trees_.for_each([](Tree& tree, void* self) { static_cast<Harvest*>(self)->add_tree(tree); }, this);
  }

  profile::Contexts finish(Code& code) {
    std::vector<std::uint32_t> sites(kMostSites + 2, 0);
    for (std::uint32_t number = 1; number <= sites_made(); ++number) {
      const Site& one = site(number);
      if (one.context == nullptr) continue;
      const profile::CodePlace call = code.at(one.returns_to);
      sites[number] = collector_.site({.context = context_of(one.context),
                                       .file = call.file,
                                       .offset = call.offset,
                                       .objects = one.objects,
                                       .allocated_bytes = one.allocated_bytes,
                                       .live_bytes = one.live_bytes >> 63 == 0 ? one.live_bytes : 0,
                                       .peak_bytes = one.peak_bytes});
    }
    for (const auto& [key, one] : accesses_) {
      if (sites[key.second] == 0) continue;
      collector_.add(profile::ContextAccesses{key.first, sites[key.second], one.first, one.second});
    }
    return collector_.finish(kMostContexts);
  }

 private:
  std::uint32_t context_of(const Node* node) const {
    const auto known = contexts_.find(node);
    return known == contexts_.end() ? profile::ContextCollector::kTop : known->second;
  }

  static profile::ContextPlace place_of(const Node& node) {
    const Place& place = *node.kept;
    if (node.index == 0) return {place.function, place.file, place.line, false};
    const LoopPlace& loop = place.loop[node.index - 1];
    return {loop.function, loop.file, loop.line, true};
  }

  [[nodiscard]] std::int64_t ns_of(std::uint64_t ticks) const {
    return static_cast<std::int64_t>(static_cast<double>(ticks) * ns_per_tick_);
  }

  // New blocks come first, and a block before that of its parent.
  void add_tree(Tree& tree) {
    std::vector<Node*> blocks;
    for (Node* block = tree.blocks(); block != nullptr; block = block->next) blocks.push_back(block);
    add_folded(tree.root(), profile::ContextCollector::kTop);
    add_accesses(tree.root(), profile::ContextCollector::kTop);
    for (auto block = blocks.rbegin(); block != blocks.rend(); ++block) add_block(**block);
  }

  void add_folded(const Node& node, std::uint32_t context) {
    if (node.folded == nullptr) return;
    const Folded& one = *node.folded;
    collector_.add(context, 0, ns_of(one.ticks), one.reads, one.writes);
    collector_.add_folded(context, one.contexts, one.entries);
  }

  void add_block(Node& block) {
    for (std::uint32_t i = 0; i <= block.kept->loops; ++i) {
      const Node& node = block.index == 0 ? (&block)[i] : block;
      const std::uint32_t above = context_of(node.parent);
      std::uint32_t context = collector_.child(above, place_of(node));
      // Loops of one function that have no lines are told apart by their order only.
      contexts_[&node] = context;
      const std::int64_t ns = ns_of(scaled_ticks(node));
      collector_.add(context, node.entries, ns, node.reads, node.writes);
      // The time of quiet ones is in what is above them, too.
      if (is_quiet(node) && !is_root(*node.parent)) collector_.add(above, 0, -ns, 0, 0);
      add_folded(node, context);
      add_accesses(node, context);
    }
    for (std::uint32_t i = 0; i < block.kept->slots; ++i) {
      const Slot& slot = slots_of(&block)[i];
      if (slot.site != kNoSite) note(context_of(&block + block.kept->slot_node[i]), slot.site, slot.reads, slot.writes);
    }
  }

  void add_accesses(const Node& node, std::uint32_t context) {
    const SiteTable* const table = node.accesses;
    for (std::uint32_t i = 0; table != nullptr && i < table->used; ++i) {
      note(context, table->rows[i].site, table->rows[i].reads, table->rows[i].writes);
    }
  }

  void note(std::uint32_t context, std::uint32_t site, std::uint64_t reads, std::uint64_t writes) {
    auto& sum = accesses_[{context, site}];
    sum.first += reads;
    sum.second += writes;
  }

  const HeldTrees trees_;
  const double ns_per_tick_;
  profile::ContextCollector collector_;
  std::unordered_map<const Node*, std::uint32_t> contexts_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::pair<std::uint64_t, std::uint64_t>> accesses_;
};

// Beside it first: a profile that is there is whole. O_EXCL follows no link.
bool write_file(const std::string& path, const std::string& bytes) {
  const std::string beside = fmt::format("{}.{}.new", path, getpid());
  const int to = open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (to < 0) return false;
  std::size_t written = 0;
  while (written < bytes.size()) {
    const ssize_t more = write(to, bytes.data() + written, bytes.size() - written);
    if (more < 0 && errno != EINTR) break;
    if (more > 0) written += static_cast<std::size_t>(more);
  }
  const bool is_whole = written == bytes.size();
  if (close(to) == 0 && is_whole && rename(beside.c_str(), path.c_str()) == 0) return true;
  const int why = errno;
  unlink(beside.c_str());
  errno = why;
  return false;
}

}  // namespace

void name_process(bool is_child) {
  g_is_child = is_child;
  g_process = getpid();
  if (is_child) return;
  const Inside inside;
  choose_path();
  choose_memory();
}

void write_before_exec() {
  if (!g_is_child) write_profile();
}

void write_profile() {
  const Inside inside;
  // It ends in the middle of this; or it is a child that has its parent's memory (vfork()).
  if (!inside.is_first() || getpid() != g_process) return;
  const int error = errno;
  profile::Profile profile;
  profile::ProcessProfile process;
  process.process = getpid();
  process.parent = getppid();
  process.name = program_name();
  {
    Code code(profile);
    process.contexts = Harvest().finish(code);
  }
  profile.processes.push_back(std::move(process));
  const std::string path = path_of_profile();
  if (!write_file(path, profile::encode(profile))) {
    fmt::print(stderr, "farheap: cannot write the profile to '{}': {}; name another file by {}\n", path,
               std::strerror(errno), kVariable);
  }
  errno = error;
}

}  // namespace farheap::contexts
