/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A program in C for Metall's C interface: metall_c_test FOLDER. Prints what went wrong. */
#include <errno.h>
#include <metall/c_api/metall.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define MUST(condition)                                               \
  do {                                                                \
    if (!(condition)) {                                               \
      fprintf(stderr, "line %d: not so: %s\n", __LINE__, #condition); \
      exit(1);                                                        \
    }                                                                 \
  } while (0)

int main(int argc, char** argv) {
  MUST(argc == 2);
  char path[4096], copy[4096];
  snprintf(path, sizeof path, "%s/store", argv[1]);
  snprintf(copy, sizeof copy, "%s/copy", argv[1]);
  MUST(metall_remove(path) && metall_remove(copy));
  MUST(metall_open(path) == NULL && errno == ENOTRECOVERABLE);

  metall_manager* manager = metall_create(path);
  MUST(manager != NULL);
  MUST(metall_create(path) == NULL && errno == EEXIST);
  MUST(metall_open(path) == NULL && errno == ENOTRECOVERABLE);
  void* bytes = metall_malloc(manager, 100);
  MUST(bytes != NULL);
  metall_free(manager, bytes);
  uint64_t* numbers = metall_named_malloc(manager, "numbers", 10 * sizeof *numbers);
  MUST(numbers != NULL && numbers[9] == 0);
  MUST(metall_named_malloc(manager, "numbers", 8) == NULL && errno == ENOMEM);
  numbers[0] = 1;
  metall_flush(manager);
  MUST(metall_snapshot(manager, copy));
  numbers[0] = 2;
  MUST(!metall_remove(path) && errno == EADDRINUSE);
  metall_close(manager);

  const char* const paths[] = {path, copy};
  for (uint64_t i = 0; i < 2; ++i) {
    manager = metall_open_read_only(paths[i]);
    MUST(manager != NULL);
    numbers = metall_find(manager, "numbers");
    MUST(numbers != NULL && numbers[0] == 2 - i);
    metall_close(manager);
  }
  manager = metall_open(path);
  MUST(metall_named_free(manager, "numbers"));
  MUST(!metall_named_free(manager, "numbers") && errno == ENOENT);
  MUST(metall_find(manager, "numbers") == NULL && errno == ENOENT);
  metall_close(manager);
  MUST(metall_remove(path) && metall_remove(copy));
  puts("all is as it should be");
  return 0;
}
