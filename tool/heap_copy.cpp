// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// farheap heap copy|rollback|compact: what changes which versions there are, and where they lie.
#include <chrono>
#include <condition_variable>
#include <farheap/farheap.hpp>
#include <mutex>
#include <thread>

#include "heap_text.hpp"
#include "heap_verbs.hpp"
#include "progress.hpp"
#include "terminal.hpp"

namespace farheap::tool {
namespace {

// The heap as it is now: what all three say when they are done.
int tell(const std::string& uri, const HeapArguments& arguments, const Json& more) {
  if (!arguments.json) return kDone;
  const auto facts = Heap::look(uri);
  if (!facts) return failed(facts.error());
  Json versions = Json::array();
  for (const VersionInfo& one : facts->versions) versions.push_back(json_of(one));
  Json all{{"format", kJsonFormat}, {"heap", uri}, {"id", facts->id}};
  all.update(more);
  all["versions"] = std::move(versions);
  print_out("{}\n", text_of(all));
  return kDone;
}

// Looks at a heap now and then while another thread works on it, and shows what was written.
class Watch {
 public:
  Watch(Heap& heap, Progress& progress) : before_(heap.statistics().bytes_written) {
    if (!progress.is_seen()) return;
    thread_ = std::thread([this, &heap, &progress] {
      std::unique_lock lock(mutex_);
      while (!ended_.wait_for(lock, std::chrono::milliseconds(100), [this] { return done_; })) {
        progress.show(heap.statistics().bytes_written - before_, 0);
      }
    });
  }
  ~Watch() {
    {
      const std::lock_guard lock(mutex_);
      done_ = true;
    }
    ended_.notify_one();
    if (thread_.joinable()) thread_.join();
  }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

 private:
  std::uint64_t before_;
  std::mutex mutex_;  // guards done_
  std::condition_variable ended_;
  bool done_ = false;
  std::thread thread_;
};

}  // namespace

int heap_copy(const HeapArguments& arguments) {
  Status status;
  {
    Progress progress("copying");
    status = Heap::copy(arguments.uri, arguments.other,
                        {.newest_only = arguments.newest_only,
                         .share_bytes = !arguments.own_bytes,
                         .progress = [&](auto done, auto total) { progress.show(done, total); }});
  }
  if (!status) return failed(status.error());
  return tell(arguments.other, arguments, Json{{"from", arguments.uri}});
}

int heap_roll_back(const HeapArguments& arguments) {
  if (const Status status = Heap::roll_back(arguments.uri); !status) return failed(status.error());
  const std::size_t at = arguments.uri.rfind('@');
  const bool names_snapshot = at != std::string::npos && arguments.uri.find('/', at) == std::string::npos;
  return tell(names_snapshot ? arguments.uri.substr(0, at) : arguments.uri, arguments, Json::object());
}

int heap_compact(const HeapArguments& arguments) {
  {
    auto heap = Heap::open(arguments.uri);
    if (!heap) return failed(heap.error());
    Progress progress("compacting, written");
    const Watch watch(*heap, progress);
    if (const Status status = heap->compact(); !status) return failed(status.error());
  }
  return tell(arguments.uri, arguments, Json::object());
}

}  // namespace farheap::tool
