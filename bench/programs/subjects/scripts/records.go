// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// records KEYS ROUNDS: a map of records, and skewed look-ups that change every eighth.
package main

import (
	"fmt"
	"os"
	"strconv"
)

type entry struct {
	number uint64
	text   string
}

func main() {
	keys, _ := strconv.ParseUint(os.Args[1], 10, 64)
	rounds, _ := strconv.ParseUint(os.Args[2], 10, 64)
	records := make(map[uint64]*entry)
	for i := uint64(0); i < keys; i++ {
		records[i*7] = &entry{i, fmt.Sprintf("record %d of the table", i)}
	}
	state, sum := uint64(1), uint64(0)
	for i := uint64(0); i < rounds; i++ {
		state = (state*1103515245 + 12345) & 0x7fffffff
		u := (state >> 8) & 0xfffff
		at := (((u * u >> 20) * u >> 20) * keys) >> 20
		found := records[at*7919%keys*7]
		if i%8 == 0 {
			found.number++
		}
		sum = (sum + found.number + uint64(len(found.text))) & 0x7fffffff
	}
	fmt.Println(len(records), sum)
}
