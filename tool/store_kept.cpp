// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// farheap store ls|copy|rm: kept stores, whatever is in them. A heap is a store; who has one open is asked first.
#include <fmt/format.h>

#include <algorithm>
#include <farheap/store.hpp>
#include <nlohmann/json.hpp>

#include "api/heap_lock.hpp"
#include "base/units.hpp"
#include "base/without_secrets.hpp"
#include "environment.hpp"
#include "interruption.hpp"
#include "progress.hpp"
#include "store/contents.hpp"
#include "store/uri.hpp"
#include "terminal.hpp"
#include "verbs.hpp"

namespace farheap::tool {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kCannotCopy[] = "cannot copy the store";

int ended_by(const Error& error) {
  complain(error);
  return error.code == ErrorCode::kInvalidArgument ? kUsage : kFailed;
}

void print_json(const Json& more) {
  Json whole{{"format", kJsonFormat}};
  whole.update(more);
  print_out("{}\n", whole.dump(2, ' ', false, Json::error_handler_t::replace));
}

// While it lives, nobody opens the heap in this store, if it is one.
class NobodyElse {
 public:
  // kConflict, with words that say who has it.
  static Result<NobodyElse> make(const std::string& uri, const StoreOptions& options) {
    NobodyElse alone;
    auto place = api::HeapPlace::parse(uri);
    if (!place) return alone;  // no heap can live there
    const auto there = is_store_there(uri, options);
    if (!there || !*there) return alone;
    auto lock = api::HeapLock::take(*place, api::HeapLock::For::kAlone);
    if (!lock && lock.error().code == ErrorCode::kConflict) return fail(std::move(lock.error()));
    if (!lock) return alone;  // no heap: made for other blocks, or what nobody can tell
    alone.place_ = std::move(*place);
    alone.lock_ = std::move(*lock);
    return alone;
  }
  Status remove(const std::string& uri, const StoreOptions& options) const {
    const bool is_on_server = lock_ != nullptr && place_.is_on_server();
    if (Status removed = is_on_server ? place_.remove(*lock_) : remove_store(uri, options); !removed) return removed;
    if (lock_ != nullptr) lock_->remove();
    return {};
  }

 private:
  api::HeapPlace place_;
  std::unique_ptr<api::HeapLock> lock_;
};

std::string_view state_of(const StoreListing& one) {
  if (one.lifetime == Lifetime::kKeep) return "kept";
  return one.in_use ? "of a run" : "left by a run";
}

int list(const StoreArguments& arguments, const StoreOptions& options) {
  const auto all = list_stores(arguments.uri, options);
  if (!all) return ended_by(all.error());
  if (arguments.json) {
    Json rows = Json::array();
    for (const auto& one : *all) {
      rows.push_back({{"uri", base::without_secrets(one.uri)},
                      {"block_bytes", one.block_bytes},
                      {"lifetime", one.lifetime == Lifetime::kKeep ? "kept" : "scratch"},
                      {"in_use", one.in_use}});
    }
    print_json({{"stores", std::move(rows)}});
    return kDone;
  }
  std::vector<std::vector<std::string>> rows{{"URI", "BLOCKS OF", "STATE"}};
  for (const auto& one : *all) {
    rows.push_back(
        {printable(base::without_secrets(one.uri)), base::format_size(one.block_bytes), std::string(state_of(one))});
  }
  if (!all->empty()) print_out("{}", aligned(rows));
  if (all->empty()) say(fmt::format("no store in {}", base::without_secrets(arguments.uri)));
  return kDone;
}

// As it was made; the listing may be of more stores than this.
std::size_t block_bytes_of(const std::string& uri, const StoreOptions& options) {
  const auto all = list_stores(uri, options);
  if (!all || all->empty()) return options.block_bytes;
  for (const auto& one : *all) {
    if (one.uri == base::without_secrets(uri)) return one.block_bytes;
  }
  const bool alike =
      std::ranges::all_of(*all, [&](const auto& one) { return one.block_bytes == all->front().block_bytes; });
  return alike ? all->front().block_bytes : options.block_bytes;
}

Result<store::Copied> copy_all(const StoreArguments& arguments, const StoreOptions& options) {
  auto from = open_store(arguments.uri, options);
  if (!from) return fail(std::move(from.error()));
  auto to = open_store(arguments.other, options);
  if (!to) return fail(std::move(to.error()));
  auto copied = [&] {
    Progress progress("copying");
    return store::copy_contents(
        **from, **to, [&](auto done, auto total) { progress.show(done, total); },
        [] { return Interruption::noted() != 0; });
  }();
  to->reset();
  if (copied || copied.error().code == ErrorCode::kConflict) return copied;  // it is somebody else's
  if (const auto removed = remove_store(arguments.other, options); !removed) {
    complain(removed.error());
    say(fmt::format("what was begun of the copy is left: `farheap store rm {}` removes it",
                    shell_word(base::without_secrets(arguments.other))));
  }
  return copied;
}

// By whatever name, and through whatever decorators.
bool is_same_place(const std::string& one, const std::string& other) {
  if (one == other) return true;
  const auto a = api::HeapPlace::parse(one), b = api::HeapPlace::parse(other);
  return a && b && !a->is_on_server() && a->locked == b->locked;
}

// Why nothing can be copied there: what there is, and what to do about it.
Error taken_error(const StoreArguments& arguments, StoreOptions options) {
  if (is_same_place(arguments.uri, arguments.other)) {
    return {ErrorCode::kInvalidArgument, kCannotCopy, arguments.uri, "it would be copied to itself",
            "name another place to copy to"};
  }
  options.block_bytes = block_bytes_of(arguments.other, options);
  options.lifetime = Lifetime::kKeep;
  const auto opened = open_store(arguments.other, options);
  if (!opened && opened.error().code == ErrorCode::kCorrupt) return opened.error();  // it is not finished
  return {ErrorCode::kConflict, kCannotCopy, arguments.other, "there is a store already",
          "name another place; `farheap store rm` removes what is there, if nobody needs it"};
}

int copy(const StoreArguments& arguments, StoreOptions options) {
  const Interruption ends_cleanly;
  const auto there = is_store_there(arguments.uri, options);
  if (!there) return ended_by(there.error());
  if (!*there) {
    return ended_by(Error{ErrorCode::kNotFound, kCannotCopy, arguments.uri, "there is none",
                          "`farheap store ls URI` lists those of a server, database, table or folder"});
  }
  const auto taken = is_store_there(arguments.other, options);
  if (!taken) return ended_by(taken.error());
  if (*taken) return ended_by(taken_error(arguments, options));
  const auto alone = NobodyElse::make(arguments.uri, options);
  if (!alone) {
    Error error = alone.error();
    error.remedy += "; `farheap heap copy` copies the last commit of an open heap";
    return ended_by(error);
  }
  options.block_bytes = block_bytes_of(arguments.uri, options);
  options.lifetime = Lifetime::kKeep;
  const auto copied = copy_all(arguments, options);
  if (!copied) return ended_by(copied.error());
  const auto from = base::without_secrets(arguments.uri), to = base::without_secrets(arguments.other);
  if (arguments.json) {
    print_json({{"from", from},
                {"to", to},
                {"blocks", copied->blocks},
                {"bytes", copied->blocks * options.block_bytes},
                {"counters", copied->counters}});
  } else {
    say(fmt::format("{}: {} blocks ({}) and {} counters copied to {}", from, copied->blocks,
                    base::format_size(copied->blocks * options.block_bytes), copied->counters, to));
  }
  return kDone;
}

// Of two stores that are used as one, where only one is there: which one is not. Empty: both, or neither.
std::string missing_half(const StoreArguments& arguments, const StoreOptions& options) {
  const auto parts = store::split_uri(arguments.uri);
  if (!parts) return {};
  const auto pages = is_store_there(parts->pages, options), sync = is_store_there(parts->sync, options);
  if (!pages || !sync || *pages == *sync) return {};
  return base::without_secrets(*pages ? "sync=" + parts->sync : "pages=" + parts->pages);
}

int remove(const StoreArguments& arguments, const StoreOptions& options) {
  const std::string missing = missing_half(arguments, options);
  if (!missing.empty()) say(fmt::format("{} is not there; the other one is what is left to remove", missing));
  if (!arguments.yes &&
      !is_wanted(fmt::format("remove {} with all that is in it", base::without_secrets(arguments.uri)))) {
    return kFailed;
  }
  {
    const auto alone = NobodyElse::make(arguments.uri, options);
    if (!alone) return ended_by(alone.error());
    if (const auto removed = alone->remove(arguments.uri, options); !removed) return ended_by(removed.error());
  }
  if (arguments.json) {
    print_json({{"store", base::without_secrets(arguments.uri)}, {"removed", true}});
  } else {
    say(fmt::format("removed {}", base::without_secrets(arguments.uri)));
  }
  return kDone;
}

}  // namespace

int store(const StoreArguments& arguments) {
  const auto loaded = load_tool_options(arguments.settings);
  if (!loaded) return wrong_usage(loaded.error());
  const StoreOptions options{.encrypt_key_file = loaded->options.encrypt_key_file,
                             .password_file = loaded->options.store_password_file};
  switch (arguments.what) {
    case StoreArguments::kList: return list(arguments, options);
    case StoreArguments::kCopy: return copy(arguments, options);
    case StoreArguments::kRemove: return remove(arguments, options);
  }
  return kUsage;
}

}  // namespace farheap::tool
