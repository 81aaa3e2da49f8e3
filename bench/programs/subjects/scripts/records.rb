# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# records.rb KEYS ROUNDS: a Hash of records, and skewed look-ups that replace every eighth.
keys, rounds = ARGV.map(&:to_i)
records = {}
keys.times { |i| records["key-#{i}"] = [i, "record #{i} of the table of records"] }
state = 1
sum = 0
rounds.times do |i|
  state = (state * 1103515245 + 12345) & 0x7fffffff
  u = (state >> 8) & 0xfffff
  at = (((u * u >> 20) * u >> 20) * keys) >> 20
  name = "key-#{at * 7919 % keys}"
  record = records[name]
  records[name] = [record[0] + 1, record[1]] if i % 8 == 0
  sum = (sum + record[0] + record[1].size) & 0x7fffffff
end
puts "#{records.size} #{sum}"
