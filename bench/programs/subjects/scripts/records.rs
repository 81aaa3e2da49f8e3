// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// records KEYS ROUNDS: a HashMap of records, and skewed look-ups that change every eighth.
use std::collections::HashMap;

struct Entry {
    number: u64,
    text: String,
}

fn main() {
    let arguments: Vec<u64> = std::env::args().skip(1).map(|one| one.parse().unwrap()).collect();
    let (keys, rounds) = (arguments[0], arguments[1]);
    let mut records: HashMap<u64, Box<Entry>> = HashMap::new();
    for i in 0..keys {
        records.insert(i * 7, Box::new(Entry { number: i, text: format!("record {} of the table", i) }));
    }
    let (mut state, mut sum) = (1u64, 0u64);
    for i in 0..rounds {
        state = (state * 1103515245 + 12345) & 0x7fffffff;
        let u = (state >> 8) & 0xfffff;
        let at = (((u * u >> 20) * u >> 20) * keys) >> 20;
        let entry = records.get_mut(&(at * 7919 % keys * 7)).unwrap();
        if i % 8 == 0 {
            entry.number += 1;
        }
        sum = (sum + entry.number + entry.text.len() as u64) & 0x7fffffff;
    }
    println!("{} {}", records.len(), sum);
}
