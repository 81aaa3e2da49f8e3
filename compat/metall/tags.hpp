// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

namespace metall {

struct create_only_t {};  // a store that is there already is overwritten
struct open_only_t {};
struct open_read_only_t {};
[[maybe_unused]] inline constexpr create_only_t create_only{};
[[maybe_unused]] inline constexpr open_only_t open_only{};
[[maybe_unused]] inline constexpr open_read_only_t open_read_only{};

namespace mtlldetail {
struct anonymous_instance_t;
struct unique_instance_t;
enum instance_kind { anonymous_kind, named_kind, unique_kind };
}  // namespace mtlldetail

// In place of a name.
[[maybe_unused]] static const mtlldetail::anonymous_instance_t* anonymous_instance = nullptr;
[[maybe_unused]] static const mtlldetail::unique_instance_t* unique_instance = nullptr;

}  // namespace metall
