// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The runtime starts under that lock and has something to complain about: it must not take the lock, too. It did, for
// the translation of an error's text, and bindtextdomain() never came back (PostgreSQL hung at its start).
#include <libintl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void early_words(void);

int main(int count, char** words) {
  (void)count;
  early_words();
  const char* page = "2147483647:65000:65001";
  if (getenv("FARHEAP_RUN_PAGE") != NULL && strcmp(getenv("FARHEAP_RUN_PAGE"), page) != 0) {
    setenv("FARHEAP_RUN_PAGE", page, 1);
    execv("/proc/self/exe", words);
    return 1;
  }
  printf("%s\n", bindtextdomain("more-words", "/usr/share/locale"));
  return 0;
}
