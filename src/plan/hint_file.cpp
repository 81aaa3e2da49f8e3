// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "plan/hint_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <new>
#include <string_view>
#include <utility>

#include "base/sealed_file.hpp"

namespace farheap::plan {

namespace {

constexpr char kCannotHint[] = "cannot give hints";

std::string content_of(const HintPlan& hints, HintKind kind, std::uint64_t room_bytes) {
  const std::string plan = encode(hints.plan);
  const std::size_t accesses_bytes = hints.accesses.size() * sizeof(std::uint64_t);
  std::string content(sizeof(HintPage) + accesses_bytes, '\0');
  HintPage page{};
  page.magic = HintPage::kMagic;
  page.kind = kind;
  page.room_bytes = room_bytes;
  page.objects = hints.accesses.size();
  page.plan_bytes = plan.size();
  std::memcpy(content.data(), static_cast<const void*>(&page), sizeof page);
  if (accesses_bytes != 0) std::memcpy(content.data() + sizeof page, hints.accesses.data(), accesses_bytes);
  return content + plan;
}

Error damaged(std::string why) {
  return {ErrorCode::kCorrupt, kCannotHint, kHintsVariable, std::move(why), "`farheap run --hints` sets it"};
}

}  // namespace

Result<HintFile> HintFile::map(int file, std::size_t bytes) {
  void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (at == MAP_FAILED) {
    const int why = errno;
    close(file);
    return fail(ErrorCode::kNoSpace, kCannotHint, kHintsVariable, std::strerror(why), "");
  }
  return HintFile(file, static_cast<HintPage*>(at), bytes);
}

Result<HintFile> HintFile::make(const HintPlan& hints, HintKind kind, std::uint64_t room_bytes) {
  const std::string content = content_of(hints, kind, room_bytes);
  const auto file = base::make_sealed_file("farheap-hints", content.data(), content.size(), base::Sealed::kLength);
  if (!file) return fail(file.error());
  return map(*file, content.size());
}

Result<HintFile> HintFile::open(const std::string& path) {
  const int file = base::open_plain_file(path.c_str(), O_RDWR);
  struct stat about{};
  if (file < 0 || fstat(file, &about) != 0) return fail(damaged(std::strerror(errno)));
  const auto bytes = static_cast<std::size_t>(about.st_size);
  if (const char* const why = base::distrust_of(file, bytes, base::Sealed::kLength)) {
    close(file);
    return fail(damaged(why));
  }
  if (bytes < sizeof(HintPage)) {
    close(file);
    return fail(damaged("it is too short"));
  }
  auto found = map(file, bytes);
  if (found && found->page().magic != HintPage::kMagic) return fail(damaged("it is none"));
  return found;
}

HintFile::HintFile(HintFile&& other) noexcept
    : file_(std::exchange(other.file_, -1)),
      page_(std::exchange(other.page_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)) {}

HintFile::~HintFile() {
  if (page_ != nullptr) munmap(page_, bytes_);
  if (file_ >= 0) close(file_);
}

std::string HintFile::path() const { return fmt::format("/proc/{}/fd/{}", getpid(), file_); }

Result<HintPlan> HintFile::hints() const {
  const std::size_t room = bytes_ - sizeof(HintPage);
  const std::uint64_t objects = page_->objects, plan_bytes = page_->plan_bytes;
  if (objects > room / sizeof(std::uint64_t) || plan_bytes != room - objects * sizeof(std::uint64_t)) {
    return fail(damaged("its parts are not as long as it says"));
  }
  const char* const behind = reinterpret_cast<const char*>(page_ + 1);
  HintPlan hints;
  hints.accesses.resize(objects);
  if (objects != 0) std::memcpy(hints.accesses.data(), behind, objects * sizeof(std::uint64_t));
  auto plan = read_plan(std::string_view(behind + objects * sizeof(std::uint64_t), plan_bytes), kHintsVariable);
  if (!plan) return fail(std::move(plan.error()));
  hints.plan = std::move(*plan);
  if (hints.plan.phases.size() != 1 || hints.phase().objects.size() != objects)
    return fail(damaged("its plan has another number of objects"));
  return hints;
}

}  // namespace farheap::plan
