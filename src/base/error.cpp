// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <cerrno>
#include <cstring>
#include <farheap/result.hpp>

#include "base/full_disk.hpp"
#include "base/without_secrets.hpp"

namespace farheap {

// Whoever makes an error leaves passwords out of it; this is for those who forget, and for what libraries say.
std::string Error::message() const {
  std::string text = what;
  if (!subject.empty()) text += ": " + subject;
  if (!why.empty()) text += ": " + why;
  if (!remedy.empty()) text += "; " + remedy;
  return base::without_secrets(text);
}

void detail::throw_bad_result(BadResult&& error) { throw BadResult(std::move(error)); }

tl::unexpected<Error> fail(ErrorCode code, std::string what, std::string subject, std::string why, std::string remedy) {
  Error error{code, std::move(what), std::move(subject), std::move(why), std::move(remedy)};
  for (auto* part : {&error.what, &error.subject, &error.why, &error.remedy}) *part = base::without_secrets(*part);
  return fail(std::move(error));
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
  // Another name or other rights, which callers advise, are no help then.
  if (errno_value == ENOSPC || errno_value == EDQUOT) remedy = base::make_room();
  return Error{code_of(errno_value), std::move(what), std::move(subject), std::move(why), std::move(remedy)};
}

}  // namespace farheap
