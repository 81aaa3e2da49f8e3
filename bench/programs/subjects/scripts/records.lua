-- SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
-- records.lua KEYS ROUNDS: a table of records, and skewed look-ups that replace every eighth.
local keys, rounds = tonumber(arg[1]), tonumber(arg[2])
local floor = math.floor
local records = {}
for i = 1, keys do
  records["key-" .. i] = {number = i, text = "record " .. i}
end
local state, sum = 1, 0
for i = 1, rounds do
  state = (state * 1103515 + 12345) % 2147483648
  local u = state / 2147483648
  local at = floor(u * u * u * keys)
  local name = "key-" .. (at * 7919 % keys + 1)
  local record = records[name]
  if i % 8 == 0 then records[name] = {number = record.number + 1, text = record.text} end
  sum = (sum + record.number + #record.text) % 1000000007
end
local count = 0
for _ in pairs(records) do count = count + 1 end
print(string.format("%d %d", count, sum))
