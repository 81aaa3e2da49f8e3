// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Keeps the records of a package list as objects and in typed arrays, and goes through them again and again.
const all = require("fs").readFileSync(process.argv[2], "latin1").split("\n\n").filter((text) => text.length > 0)
    .map((text, number) => {
      const fields = new Map();
      for (const line of text.split("\n")) {
        const colon = line.indexOf(": ");
        if (colon > 0) fields.set(line.slice(0, colon), { number, value: line.slice(colon + 2) });
      }
      return { number, fields, bytes: new Uint8Array(Buffer.from(text, "latin1")), marks: [] };
    });
for (let pass = 0; pass < Number(process.argv[3]); ++pass) {
  let sum = 0;
  for (const one of all) {
    for (const [name, field] of one.fields) sum = (sum * 31 + name.length + field.value.length + field.number) % 1000000007;
    for (let i = 0; i < one.bytes.length; i += 64) sum = (sum * 31 + one.bytes[i]) % 1000000007;
    one.marks.push(sum);
  }
  console.log(`${all.length} packages, pass ${pass}: ${sum}`);
}
