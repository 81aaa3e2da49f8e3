// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Makes a process's part of a profile out of its recording (recording.hpp), while the process runs, when it has ended,
// or when it was killed.
//
// Thread-safety: pure functions, but for the files that they read.
#pragma once

#include <farheap/result.hpp>
#include <functional>
#include <span>
#include <string>

#include "profile/profile.hpp"

namespace farheap::profile {

// The build-id of a program's or library's file, in hexadecimal; empty: it has none, or cannot be read. (ELF, note
// NT_GNU_BUILD_ID.)
[[nodiscard]] std::string build_id_of_file(const std::string& path);

// `bytes`: of a recording; whatever stands in it. kCorrupt for what is none, or of another build of Farheap.
using BuildIdOf = std::function<std::string(const std::string& path)>;
[[nodiscard]] Status add_recording(std::span<const std::byte> bytes, const std::string& name,
                                   const BuildIdOf& build_id_of, Profile& to);

// The order of a sample of its pages, of the file beside the recording (profile/page_sampler.hpp). kCorrupt for what is
// none; with nothing added where the process was just sorting it.
[[nodiscard]] Status add_touches(std::span<const std::byte> bytes, const std::string& name, ProcessProfile& to);

}  // namespace farheap::profile
