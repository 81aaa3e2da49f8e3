/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
long sum(const long* p, long n);

long sum(const long* p, long n) {
  long all = 0;
  for (long i = 0; i < n; ++i) all += p[i];
  return all;
}
