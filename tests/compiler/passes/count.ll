; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; Level count: a line for each function, as text or as JSON, and nothing is changed.
; RUN: opt -load-pass-plugin=%plugin -passes=farheap -farheap-level=count -farheap-report=- -disable-output %s 2>&1 | FileCheck %s
; RUN: rm -f %t.jsonl
; RUN: opt -load-pass-plugin=%plugin -passes=farheap -farheap-level=count -farheap-report=%t.jsonl -S %s | FileCheck %s --check-prefix=SAME
; RUN: FileCheck %s --check-prefix=JSON --input-file=%t.jsonl

; CHECK: f: counted: 5 instructions, 2 loads, 1 stores
; JSON: {"file":"count.c","format":1,"function":"f","instructions":5,"line":0,"loads":2,"stores":1,"what":"counted"}
; SAME-LABEL: define void @f(
; SAME-NEXT: %a = load i32, ptr %p
; SAME-NEXT: %b = load i32, ptr %q
; SAME-NEXT: %c = add i32 %a, %b
; SAME-NEXT: store i32 %c, ptr %p
; SAME-NEXT: ret void
source_filename = "count.c"
define void @f(ptr %p, ptr %q) {
  %a = load i32, ptr %p
  %b = load i32, ptr %q
  %c = add i32 %a, %b
  store i32 %c, ptr %p
  ret void
}
