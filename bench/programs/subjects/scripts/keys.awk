# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Counts and sums by key, and prints what a fixed walk over the keys finds.
{ count[$1]++; sum[$1] += $2; last[$1] = $3 }
END {
  for (key in count) { keys++; total += count[key] * 3 + sum[key] + length(last[key]) }
  print keys, total
}
