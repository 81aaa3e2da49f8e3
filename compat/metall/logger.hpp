// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// metall::logger: where the compat headers say what went wrong. Their calls do not throw; a program that wants to know
// why check_sanity() is false reads it here.
//
// Thread-safety: out() and perror() from any thread; the settings before other threads are there.
#pragma once

#include <metall/logger_interface.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <optional>
#include <string>

namespace metall {

class logger {
 public:
  enum struct level {
    critical = metall_critical,  // ends the program unless abort_on_critical_error(false) was called
    error = metall_error,
    warning = metall_warning,
    info = metall_info,
    debug = metall_debug,
    verbose = metall_verbose,
  };

  logger() = delete;

  static void out(level lvl, const char* file_name, int line_no, const char* message) noexcept {
    metall_log(static_cast<metall_log_level>(lvl), file_name, static_cast<std::size_t>(line_no), message);
  }
  // With the words for errno behind it.
  static void perror(level lvl, const char* file_name, int line_no, const char* message) noexcept {
    const int why = errno;
    try {
      out(lvl, file_name, line_no, (std::string(message) + ": " + std::strerror(why)).c_str());
    } catch (...) {
      out(lvl, file_name, line_no, message);
    }
  }

#ifndef METALL_LOGGER_EXTERN_C
  // The least level that is shown.
  struct level_filter {
    static const level_filter critical, error, warning, info, debug, verbose, silent;
    bool should_log(level lvl) const noexcept { return least_ && lvl >= *least_; }

   private:
    explicit level_filter(std::optional<level> least) noexcept : least_(least) {}
    std::optional<level> least_;
  };

  static level_filter log_level() noexcept { return least_shown_; }
  static void set_log_level(level_filter filter) noexcept { least_shown_ = filter; }
  static bool abort_on_critical_error() noexcept { return aborts_; }
  static void abort_on_critical_error(bool enable) noexcept { aborts_ = enable; }

 private:
  static level_filter least_shown_;
  static inline bool aborts_ = true;
#endif
};

#ifndef METALL_LOGGER_EXTERN_C
inline const logger::level_filter logger::level_filter::critical{logger::level::critical};
inline const logger::level_filter logger::level_filter::error{logger::level::error};
inline const logger::level_filter logger::level_filter::warning{logger::level::warning};
inline const logger::level_filter logger::level_filter::info{logger::level::info};
inline const logger::level_filter logger::level_filter::debug{logger::level::debug};
inline const logger::level_filter logger::level_filter::verbose{logger::level::verbose};
inline const logger::level_filter logger::level_filter::silent{std::nullopt};
inline logger::level_filter logger::least_shown_ = logger::level_filter::error;
#endif

}  // namespace metall

#ifndef METALL_LOGGER_EXTERN_C
extern "C" inline void metall_log(metall_log_level level, const char* file_name, std::size_t line_no,
                                  const char* message) {
  const auto lvl = static_cast<metall::logger::level>(level);
  if (!metall::logger::log_level().should_log(lvl)) return;
  try {
    std::cerr << file_name << " at line " << line_no << " --- " << message << std::endl;
  } catch (...) {
    return;  // there is nowhere else to say it
  }
  if (lvl == metall::logger::level::critical && metall::logger::abort_on_critical_error()) std::abort();
}
#endif
