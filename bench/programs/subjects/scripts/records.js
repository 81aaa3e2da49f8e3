// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// records.js KEYS ROUNDS: a Map of records, and skewed look-ups that replace every eighth.
'use strict';
const [keys, rounds] = process.argv.slice(2).map(Number);
const records = new Map();
for (let i = 0; i < keys; i++) records.set(i * 7, {number: i, text: 'record ' + i});
let state = 1;
let sum = 0;
for (let i = 0; i < rounds; i++) {
  state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff;
  const u = (state >> 8 & 0xfffff) / 0x100000;
  const at = Math.floor(u * u * u * keys);
  const key = at * 7919 % keys * 7;
  const record = records.get(key);
  if (i % 8 === 0) records.set(key, {number: record.number + 1, text: record.text});
  sum = (sum + record.number + record.text.length) % 1000000007;
}
console.log(records.size, sum);
