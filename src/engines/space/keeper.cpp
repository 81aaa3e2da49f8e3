// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engines/space/keeper.hpp"

#include <algorithm>

namespace farheap::engines {
namespace {

// Where there is no table there is nothing in it.
template <class T>
Answer<T> or_none(Answer<T> answer) {
  if (!answer && answer.error().error_code() == grpc::StatusCode::NOT_FOUND) return T();
  return answer;
}

Answer<std::optional<About>> about_of(Registry& registry, const std::string& name) {
  const auto found = or_none(registry.find({name}));
  if (!found) return tl::unexpected(found.error());
  return about_in(*found);
}

grpc::Status list_below(Registry& registry, const std::string& name, std::vector<StoreListing>& all) {
  const bool is_named = name != kUsualName || !registry.own_name().empty();
  const auto uri = is_named ? registry.shown_as(name) : registry.server().shown();
  const auto about = about_of(registry, name);
  if (!about) return about.error();
  if (const auto& kept = *about; kept) all.push_back({uri, kept->block_bytes, Lifetime::kKeep, false});
  const auto below = or_none(registry.scratch_below(name));
  if (!below) return below.error();
  for (const auto& scratch : *below) {
    all.push_back({uri, scratch.block_bytes, Lifetime::kScratch, !scratch.is_stale});
  }
  return {};
}

}  // namespace

Result<bool> is_there(Registry& registry) {
  const auto about = about_of(registry, registry.store_name());
  if (!about) return fail(registry.server().error(about.error(), "cannot look for the store"));
  return about->has_value();
}

Result<std::vector<StoreListing>> list(Registry& registry) {
  constexpr char kWhat[] = "cannot list the stores";
  const auto names =
      registry.own_name().empty() ? or_none(registry.names()) : Answer<std::vector<std::string>>({registry.own_name()});
  if (!names) return fail(registry.server().error(names.error(), kWhat));
  std::vector<StoreListing> all;
  for (const auto& name : *names) {
    const auto status = list_below(registry, name, all);
    if (!status.ok()) return fail(registry.server().error(status, kWhat));
  }
  return all;
}

Status remove(Registry& registry) {
  constexpr char kWhat[] = "cannot remove the store";
  const auto name = registry.store_name();
  const auto about = about_of(registry, name);
  if (!about) return fail(registry.server().error(about.error(), kWhat));
  const auto below = or_none(registry.scratch_below(name));
  if (!below) return fail(registry.server().error(below.error(), kWhat));
  if (!*about && std::ranges::none_of(*below, &Scratch::is_stale)) {
    return fail(ErrorCode::kNotFound, kWhat, registry.server().shown(), "there is none");
  }
  grpc::Status status;
  for (const auto& scratch : *below) {
    if (status.ok() && scratch.is_stale) status = registry.collect(name, scratch);
  }
  if (status.ok() && *about) status = registry.remove(name);
  if (!status.ok()) return fail(registry.server().error(status, kWhat));
  return {};
}

}  // namespace farheap::engines
