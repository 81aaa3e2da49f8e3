/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <farheap/farheap.h>
#include <stdio.h>

int main(void) {
  static char data[8192];
  int hint = farheap_hint(data, sizeof data, FARHEAP_STREAM);
  int wrong = farheap_hint(data, sizeof data, (farheap_hint_kind)99);
  if (wrong != -1) return 1;
  farheap_step step = {data, sizeof data, FARHEAP_BACKWARD};
  if (farheap_expect_order(&step, 1, 0) != hint || farheap_expect_order(&step, 1, 1) != -1) return 1;
  puts(hint == 1 && farheap_active() == 0 ? "no runtime" : "a runtime");
  return 0;
}
