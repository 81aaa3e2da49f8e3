// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Whatever a client writes into messages and slots for farheap-engines, and whatever comes back: it is refused or
// read, within its bounds.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "engines/process/slot_answer.hpp"
#include "store/beside/protocol.hpp"
#include "store/kinds.hpp"

namespace {

using namespace farheap;
using namespace farheap::store::beside;

void read_message(std::string_view bytes) {
  Reader reader(bytes);
  switch (static_cast<Message>(reader.number())) {
    case Message::kOpen: {
      const auto opening = read_opening(reader);
      if (opening && encode(Message::kOpen, *opening).size() != bytes.size()) std::abort();
      return;
    }
    case Message::kDone: (void)read_opened(reader); return;
    case Message::kListing: (void)read_listing(reader); return;
    case Message::kFailed: (void)read_error(reader); return;
    default: return;
  }
}

// The slot's words and first entries are the input's; its data area ends where the memory of the vector does.
void answer(std::string_view bytes) {
  static const auto engine = [] {
    static const store::StoreUri uri{.engine = "mem"};
    return store::open_mem("", store::Parameters(uri, "mem"), {}).value();
  }();
  static const auto slot = std::make_unique<Slot>();
  std::memcpy(static_cast<void*>(slot.get()), bytes.data(), std::min(bytes.size(), std::size_t{128}));
  if (bytes.size() > 128) {
    std::memcpy(slot->entry, bytes.data() + 128, std::min(bytes.size() - 128, sizeof slot->entry));
  }
  std::vector<std::byte> data(16 * 4096);
  engines::answer_slot(*slot, data, *engine);
  if (slot->failed != 0 && slot->answer_bytes > kTextBytes) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  const std::string_view input(reinterpret_cast<const char*>(data), bytes);
  read_message(input);
  answer(input);
  return 0;
}
