// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <cerrno>
#include <cstring>
#include <farheap/result.hpp>

namespace farheap {

std::string Error::message() const {
  std::string text = what;
  if (!subject.empty()) text += ": " + subject;
  if (!why.empty()) text += ": " + why;
  if (!remedy.empty()) text += "; " + remedy;
  return text;
}

static ErrorCode code_of(int errno_value) {
  switch (errno_value) {
    case EACCES:
    case EPERM:
    case EROFS: return ErrorCode::kPermission;
    case ENOENT:
    case ENOTDIR: return ErrorCode::kNotFound;
    case ENOSPC:
    case EDQUOT:
    case ENOMEM: return ErrorCode::kNoSpace;
    case ENOSYS:
    case EOPNOTSUPP: return ErrorCode::kUnavailable;
    case EINVAL: return ErrorCode::kInvalidArgument;
    default: return ErrorCode::kIo;
  }
}

Error errno_error(int errno_value, std::string what, std::string subject, std::string remedy) {
  // Not strerror(): it translates, under locks that the thread may hold when it comes here through malloc().
  const char* known = strerrordesc_np(errno_value);
  std::string why = known != nullptr ? known : "errno " + std::to_string(errno_value);
  return Error{code_of(errno_value), std::move(what), std::move(subject), std::move(why), std::move(remedy)};
}

}  // namespace farheap
