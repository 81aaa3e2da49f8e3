/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Metall's hook for messages, as Metall 0.30 has it: who defines METALL_LOGGER_EXTERN_C gives metall_log() himself.
 *
 * Thread-safety: called from any thread.
 */
#ifndef METALL_LOGGER_INTERFACE_H
#define METALL_LOGGER_INTERFACE_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum metall_log_level {
  metall_critical = 5,
  metall_error = 4,
  metall_warning = 3,
  metall_info = 2,
  metall_debug = 1,
  metall_verbose = 0,
} metall_log_level;

void metall_log(metall_log_level level, const char* file_name, size_t line_no, const char* message);

#ifdef __cplusplus
}
#endif

#endif /* METALL_LOGGER_INTERFACE_H */
