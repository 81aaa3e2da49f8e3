# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# frames.R ROWS: merges, orders and aggregates a frame.
rows <- as.integer(commandArgs(trailingOnly = TRUE)[1])
set.seed(1)
shops <- data.frame(shop = 1:20000, region = sample.int(40, 20000, replace = TRUE))
sales <- data.frame(shop = as.integer(1 + 19999 * runif(rows)^3), day = sample.int(365, rows, replace = TRUE),
                    amount = runif(rows))
merged <- merge(sales, shops, by = "shop")
merged <- merged[order(merged$day, merged$amount), ]
by_region <- aggregate(amount ~ region + day, data = merged, FUN = sum)
words <- paste("shop", merged$shop, merged$region)
counts <- table(words)
cat(nrow(merged), nrow(by_region), sprintf("%.6f", sum(by_region$amount)), length(counts), max(counts), "\n")
