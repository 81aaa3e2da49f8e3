/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Opens a file to write behind what is in it, for the functions that run when a counted program ends. In a folder that
 * others may write to somebody may have put a link there, or a file: both are refused.
 *
 * Thread-safety: any thread. */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static int farheap_is_own(uid_t owner) { return owner == geteuid() || owner == 0; }

/* A descriptor, or -1 with errno: EPERM for what is somebody else's. A pipe, a terminal or /dev/null takes anything. */
static int farheap_open_to_append(const char* name) {
  struct stat facts, link;
  if (stat(name, &facts) == 0 && !S_ISREG(facts.st_mode)) return open(name, O_WRONLY | O_APPEND | O_CLOEXEC);
  const int is_link = lstat(name, &link) == 0 && S_ISLNK(link.st_mode);
  if (is_link && !farheap_is_own(link.st_uid)) return errno = EPERM, -1;
  const int to = open(name, O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK | O_CLOEXEC | (is_link ? 0 : O_NOFOLLOW), 0666);
  if (to < 0) return -1;
  if (fstat(to, &facts) == 0 && S_ISREG(facts.st_mode) && farheap_is_own(facts.st_uid) && facts.st_nlink <= 1) {
    return to;
  }
  close(to);
  errno = EPERM;
  return -1;
}
