// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How a process that runs already is asked to record itself (`farheap record --attach`). A process that pages listens
// at a socket of its own number; a recorder connects and names a folder; the recording lasts as long as the connection,
// so it ends with the recorder, however that ends.
//
//   \0farheap-record-PID   an abstract socket of packets: it is no file, and the kernel names the other end
//   to the process         "record 1 FOLDER": 1 is the format of this talk, FOLDER an absolute path
//   from the process       "+" if it records now; "-" and why it does not
//
// Both ends talk to the same user or root alone; and the tool to the very process that it means.
//
// Thread-safety: pure functions on descriptors. Those of the process allocate nothing from the program's heap if they
// are called inside the runtime.
#pragma once

#include <cstdint>
#include <farheap/result.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace farheap::profile {

// ---- in the process

// A close-on-exec descriptor. kConflict: somebody has this name.
[[nodiscard]] Result<int> listen_for_recorders(std::int32_t process);

struct RecordingRequest {
  int connection = -1;  // the runtime's own (os/own_descriptors.hpp); for end_connection()
  std::string folder;
};
// How long who has come is waited for until he says what he wants: a second, or not at all.
enum class Patience { kSome, kNone };
// Waits for one. Nothing: who came says nothing of use, or may not ask; he was sent away.
[[nodiscard]] std::optional<RecordingRequest> next_request(int listening, Patience patience = Patience::kSome);
// `refusal`: why it is not recorded; empty if it is.
void answer_request(int connection, std::string_view refusal);
// For the other end, too, whoever else has a copy of the descriptor.
void end_connection(int connection);

// ---- in the tool

// The connection, a close-on-exec descriptor: the process records until it is closed. kNotFound: it does not listen,
// because it does not page or is none of Farheap's. kPermission: another user's. kConflict: it refuses.
[[nodiscard]] Result<int> ask_to_record(std::int32_t process, const std::string& folder);
// Waits until the process has ended its recording, for a while. Closes the connection.
void end_request(int connection);

// ---- at both ends

// Whether the other end has gone.
[[nodiscard]] bool has_hung_up(int connection);

}  // namespace farheap::profile
