// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engines/etcd/space.hpp"

#include <fmt/format.h>

#include <charconv>

#include "base/random_number.hpp"

namespace farheap::engines::etcd {
namespace {

constexpr char kWhat[] = "cannot open the store";
constexpr std::uint64_t kFormat = 1;

api::Compare made_at(const std::string& key, std::int64_t revision) {
  api::Compare compare;
  compare.set_key(key);
  compare.set_target(api::Compare::CREATE);
  compare.set_result(api::Compare::EQUAL);
  compare.set_create_revision(revision);
  return compare;
}

void look_at(api::RequestOp& operation, const std::string& key) {
  operation.mutable_request_range()->set_key(key);
  operation.mutable_request_range()->set_keys_only(true);
}

}  // namespace

std::string Keys::block(std::uint64_t number) const {
  std::string key = blocks();
  for (int shift = 56; shift >= 0; shift -= 8) key += static_cast<char>(number >> shift & 0xFF);
  return key;
}

std::uint64_t Keys::number_of(std::string_view block_key) const {
  std::uint64_t number = 0;
  for (const char c : block_key.substr(std::min(blocks().size(), block_key.size()))) {
    number = number << 8 | static_cast<unsigned char>(c);
  }
  return number;
}

Keys keys_of(const std::string& store_name) { return {"farheap/" + store_name + "/"}; }

std::optional<About> about_in(std::string_view text) {
  constexpr std::string_view kMagic = "farheap ";
  if (!text.starts_with(kMagic)) return std::nullopt;
  const auto* at = text.data() + kMagic.size();
  const auto* end = text.data() + text.size();
  About about;
  const auto format = std::from_chars(at, end, about.format);
  if (format.ec != std::errc() || format.ptr == end || *format.ptr != ' ') return std::nullopt;
  const auto bytes = std::from_chars(format.ptr + 1, end, about.block_bytes);
  if (bytes.ec != std::errc()) return std::nullopt;
  return about;
}

Space::Space(std::unique_ptr<Client> client, const StoreOptions& options)
    : client_(std::move(client)),
      kept_(options.lifetime == Lifetime::kKeep),
      block_bytes_(options.block_bytes),
      keys_(keys_of(client_->place().store_name())),
      // Longer than a server is waited for: a frozen one must not cost the lease.
      lease_seconds_(60 + 2 * client_->patience().all.count() / 1000) {
  if (!kept_) keys_.prefix += fmt::format("s/{:016x}/", base::random_number());
  fence_key_ = fmt::format("{}h/{:016x}", keys_.prefix, base::random_number());
}

Result<std::unique_ptr<Space>> Space::open(std::unique_ptr<Client> client, const StoreOptions& options) {
  std::unique_ptr<Space> space(new Space(std::move(client), options));
  if (auto ok = space->set_up(); !ok) return fail(std::move(ok.error()));
  return space;
}

// The description, made if it is missing and nothing else is there; the answers are those of one moment.
Result<api::TxnResponse> Space::make_or_find() {
  api::TxnRequest look;
  look.add_success()->mutable_request_range()->set_key(keys_.about());
  // All keys of a kept store but the one of its description and those of scratch stores.
  for (const auto& [from, to] :
       {std::pair(keys_.prefix, keys_.about()), std::pair(keys_.about() + '\0', keys_.scratch_stores()),
        std::pair(behind(keys_.scratch_stores()), behind(keys_.prefix))}) {
    auto& range = *look.add_success()->mutable_request_range();
    range.set_key(from);
    range.set_range_end(to);
    range.set_limit(1);
    range.set_keys_only(true);
  }
  auto looked = client_->transact(look);
  if (!looked) return fail(client_->error(looked.error(), kWhat));
  if (looked->responses(0).response_range().count() > 0) return std::move(*looked);
  for (int i = 1; i < looked->responses_size(); ++i) {
    const auto& foreign = looked->responses(i).response_range();
    if (foreign.count() == 0 || !kept_) continue;
    return fail(ErrorCode::kConflict, kWhat, client_->place().shown,
                fmt::format("there are keys of others below its name: '{}'", foreign.kvs(0).key()),
                "name another one: etcd://HOST/NAME");
  }
  api::TxnRequest make;
  *make.add_compare() = made_at(keys_.about(), 0);
  auto& put = *make.add_success()->mutable_request_put();
  put.set_key(keys_.about());
  put.set_value(fmt::format("farheap {} {} {:016x}", kFormat, block_bytes_, base::random_number()));
  put.set_lease(lease());
  if (const auto made = client_->transact(make); !made) return fail(client_->error(made.error(), kWhat));
  looked = client_->transact(look);  // another one may have been quicker
  if (!looked) return fail(client_->error(looked.error(), kWhat));
  return std::move(*looked);
}

Status Space::set_up() {
  if (const auto status = grant_lease(); !status.ok()) return fail(client_->error(status, kWhat));
  const auto found = make_or_find();
  if (!found) return fail(found.error());
  const auto& kvs = found->responses(0).response_range().kvs();
  const auto about = kvs.empty() ? std::nullopt : about_in(kvs[0].value());
  if (!about) {
    return fail(ErrorCode::kCorrupt, kWhat, client_->place().shown, "its description is not one of Farheap's",
                "name another one: etcd://HOST/NAME");
  }
  if (auto ok = check(*about); !ok) return ok;
  made_at_ = kvs[0].create_revision();
  cluster_ = found->header().cluster_id();
  revision_ = mark_ = found->header().revision();
  auto attempts = client_->attempts();
  if (const auto status = move_fence(0, attempts); !status.ok()) return fail(client_->error(status, kWhat));
  if (is_lost()) return fail(lost_error());
  working_ = std::jthread([this](const std::stop_token& stop) { work(stop); });
  return {};
}

Status Space::check(const About& about) const {
  if (about.format > kFormat) {
    return fail(ErrorCode::kCorrupt, kWhat, client_->place().shown, fmt::format("it has format {}", about.format),
                "open it with the newer Farheap that made it");
  }
  if (about.block_bytes != block_bytes_) {
    return fail(ErrorCode::kInvalidArgument, kWhat, client_->place().shown,
                fmt::format("it holds blocks of {} bytes, not of {}", about.block_bytes, block_bytes_),
                "open it with the block size it was made with");
  }
  return {};
}

// ---- guards

void Space::guard(api::TxnRequest& request) const {
  *request.add_compare() = made_at(keys_.about(), made_at_);
  look_at(*request.add_failure(), keys_.about());
  look_at(*request.add_failure(), fence_key_);
}

void Space::guard(api::TxnRequest& request, std::int64_t fence) const {
  guard(request);
  auto& compare = *request.add_compare();
  compare.set_key(fence_key_);
  compare.set_target(api::Compare::MOD);
  compare.set_result(api::Compare::EQUAL);
  compare.set_mod_revision(fence);
}

Space::Told Space::told_by(const api::TxnResponse& failed, std::int64_t fence) {
  if (failed.responses_size() < kGuardAnswers) {
    lost("the server answers in another way than it should");
    return Told::kLost;
  }
  const auto& about = failed.responses(0).response_range();
  if (about.kvs_size() == 0 || about.kvs(0).create_revision() != made_at_) {
    lost(about.kvs_size() != 0 ? "the cluster lost it, and somebody has made a new one since"
         : kept_               ? "the cluster lost all that was in it, or somebody has removed it"
                               : "it gave no sign of life for too long, and was taken for one of a killed program");
    return Told::kLost;
  }
  const auto& fences = failed.responses(1).response_range();
  const auto there = fences.kvs_size() == 0 ? 0 : fences.kvs(0).mod_revision();
  if (there == fence) return Told::kOwn;
  // Only this handle moves its fence: an attempt to move it came late, another thread has moved it, or its lease was
  // not kept while nothing could be reached.
  if (there != 0) {
    const std::lock_guard lock(fence_mutex_);
    if (there > fence_) fence_ = there;
    return Told::kFenceMoved;
  }
  auto attempts = client_->attempts();
  if (grant_lease().ok()) (void)move_fence(fence, attempts);
  return is_lost() ? Told::kLost : Told::kFenceMoved;
}

bool Space::believe(const api::ResponseHeader& header, std::int64_t before) {
  if (header.cluster_id() != cluster_) {
    lost("another cluster answers in its place");
  } else if (header.revision() < before) {
    lost(fmt::format("the cluster went back to an older state (revision {}, was {})", header.revision(), before));
  }
  auto seen = revision_.load();
  while (header.revision() > seen && !revision_.compare_exchange_weak(seen, header.revision())) {
  }
  return !is_lost();
}

grpc::Status Space::move_fence(std::int64_t from, Attempts& attempts) {
  const std::lock_guard lock(fence_mutex_);
  if (fence_ != from) return {};
  api::TxnRequest request;
  *request.add_compare() = made_at(keys_.about(), made_at_);
  auto& put = *request.add_success()->mutable_request_put();
  put.set_key(fence_key_);
  put.set_lease(lease_);
  api::TxnResponse response;
  const auto before = revision();
  const auto status = client_->ask(attempts, [&](Client::Member& member, grpc::ClientContext& context) {
    response.Clear();
    return member.kv->Txn(&context, request, &response);
  });
  if (!status.ok()) return status;
  if (!believe(response.header(), before)) return {};
  if (response.succeeded()) {
    fence_ = response.header().revision();
  } else {
    lost("the cluster lost it, or somebody has removed it");
  }
  return {};
}

// ---- once and only once

std::string Space::slot_key(std::size_t slot) const { return fmt::format("{}/{}", fence_key_, slot); }

std::size_t Space::take_slot() {
  const std::lock_guard lock(slots_mutex_);
  if (free_slots_.empty()) return slots_++;
  const auto slot = free_slots_.back();
  free_slots_.pop_back();
  return slot;
}

void Space::give_slot(std::size_t slot) {
  const std::lock_guard lock(slots_mutex_);
  free_slots_.push_back(slot);
}

Answer<Space::Once> Space::once(const api::TxnRequest& wanted) {
  const auto slot = take_slot();
  const std::string stamp = std::to_string(stamp_++);
  auto attempts = client_->attempts();
  Answer<Once> answer = tl::unexpected(grpc::Status(grpc::StatusCode::UNKNOWN, "no answer came"));
  for (bool unclear = false;;) {
    const auto used = fence();
    api::TxnRequest request;
    guard(request, used);
    request.add_failure()->mutable_request_range()->set_key(slot_key(slot));
    request.MergeFrom(wanted);
    auto& mark = *request.add_success()->mutable_request_put();
    mark.set_key(slot_key(slot));
    mark.set_value(stamp);
    mark.set_lease(lease_);

    Once once;
    const auto before = revision();
    const auto asked = client_->current();
    grpc::ClientContext context;
    context.set_deadline(attempts.deadline());
    client_->prepare(context);
    auto status = client_->member(asked).kv->Txn(&context, request, &once.response);
    if (!status.ok()) {
      unclear = unclear || reply_of(status) == Reply::kUnclear;
      if (client_->again(attempts, status, asked) && (!unclear || move_fence(used, attempts).ok())) continue;
      if (!unclear) answer = tl::unexpected(status);
      break;
    }
    if (!believe(once.response.header(), before)) break;
    once.done = once.response.succeeded();
    once.revision = once.response.header().revision();
    if (!once.done) {
      const auto told = told_by(once.response, used);
      const auto& marks = once.response.responses(kGuardAnswers).response_range();
      const bool by_lost_answer = unclear && marks.kvs_size() > 0 && marks.kvs(0).value() == stamp;
      if (by_lost_answer) once = {.done = true, .revision = marks.kvs(0).mod_revision(), .response = {}};
      if (!by_lost_answer && told == Told::kFenceMoved) continue;
      if (told == Told::kLost) break;
    }
    answer = std::move(once);
    break;
  }
  give_slot(slot);
  return answer;
}

void Space::lost(std::string why) {
  const std::lock_guard lock(lost_mutex_);
  if (!is_lost_) lost_ = std::move(why);
  is_lost_ = true;
}

Error Space::lost_error() const {
  const std::lock_guard lock(lost_mutex_);
  return {ErrorCode::kCorrupt, "cannot go on with the store", client_->place().shown, lost_,
          "start again, or from a snapshot that is kept elsewhere"};
}

}  // namespace farheap::engines::etcd
