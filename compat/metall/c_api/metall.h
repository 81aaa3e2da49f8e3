/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Metall's C interface. A metall_manager is a metall::manager: C++ may cast the pointer. Calls set errno when they
 * fail, and say why as metall_log() does. Link farheap_metall_c and farheap.
 *
 * Thread-safety: as metall::manager's.
 */
#ifndef METALL_C_API_METALL_H
#define METALL_C_API_METALL_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct metall_manager metall_manager;

/* NULL with ENOTRECOVERABLE: there is none, or it is open for writing. */
metall_manager* metall_open(const char* path);
metall_manager* metall_open_read_only(const char* path);
/* NULL with EEXIST: something is there; with ENOTRECOVERABLE: it could not be made. */
metall_manager* metall_create(const char* path);
/* Commits what was changed. */
void metall_close(metall_manager* manager);
void metall_flush(metall_manager* manager);
/* Commits, and copies that to a datastore at dst_path. */
bool metall_snapshot(metall_manager* manager, const char* dst_path);
/* True if there is none. False with EADDRINUSE while it is open. */
bool metall_remove(const char* path);

/* NULL with ENOMEM. */
void* metall_malloc(metall_manager* manager, size_t size);
void metall_free(metall_manager* manager, void* ptr);
/* Zeroed. NULL with ENOMEM: there is no room, or one of that name. */
void* metall_named_malloc(metall_manager* manager, const char* name, size_t size);
/* NULL with ENOENT. */
void* metall_find(metall_manager* manager, const char* name);
/* False with ENOENT. */
bool metall_named_free(metall_manager* manager, const char* name);

#ifdef __cplusplus
}
#endif

#endif /* METALL_C_API_METALL_H */
