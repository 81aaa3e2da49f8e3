; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; A profile leaves only what missed more than once in ten thousand passes. Runs are added up. A function that has changed,
; or that the profile does not know, gets all of its guards.
; RUN: printf 'farheap guards 1\n0 2 10000 1 two\n1 2 10000 2 two\n0 3 5 0 changed\n0 1 10000 1 sum\nfarheap guards 1\n0 1 20000 2 sum\n0 1 1 1 other.c;local\n' > %t.good
; RUN: opt -load-pass-plugin=%plugin -passes=farheap,verify -farheap-level=guard -farheap-guards=%t.good -S %s | FileCheck %s
; RUN: opt -load-pass-plugin=%plugin -passes=farheap -farheap-level=guard -farheap-guards=%t.good -farheap-report=- -disable-output %s 2>&1 | FileCheck %s --check-prefix=SAYS
; RUN: printf 'farheap guards 1\n0 1 10000 1 local\nfarheap guards 1\n0 1 20000 2 guard_profile.c;local\n' > %t.local
; RUN: opt -load-pass-plugin=%plugin -passes=farheap -farheap-level=guard -farheap-guards=%t.local -farheap-report=- -disable-output %s 2>&1 | FileCheck %s --check-prefix=LOCAL
; RUN: not opt -load-pass-plugin=%plugin -passes=farheap -farheap-level=guard -farheap-guards=%t.none -disable-output %s 2>&1 | FileCheck %s --check-prefix=NONE
; RUN: printf 'farheap guards 1\n0 1 5 5 f\n1 1 5 5 f\n' > %t.bad
; RUN: not opt -load-pass-plugin=%plugin -passes=farheap -farheap-level=guard -farheap-guards=%t.bad -disable-output %s 2>&1 | FileCheck %s --check-prefix=BAD
; RUN: printf 'farheap guards 2\n' > %t.newer
; RUN: not opt -load-pass-plugin=%plugin -passes=farheap -farheap-level=guard -farheap-guards=%t.newer -disable-output %s 2>&1 | FileCheck %s --check-prefix=NEWER
; RUN: printf 'something else\n' > %t.else
; RUN: not opt -load-pass-plugin=%plugin -passes=farheap -farheap-level=guard -farheap-guards=%t.else -disable-output %s 2>&1 | FileCheck %s --check-prefix=ELSE
; RUN: printf '' > %t.empty
; RUN: not opt -load-pass-plugin=%plugin -passes=farheap -farheap-level=guard -farheap-guards=%t.empty -disable-output %s 2>&1 | FileCheck %s --check-prefix=EMPTY
source_filename = "guard_profile.c"

; NONE: Farheap: -ffar-guard: cannot read '{{.*}}.none': No such file or directory; it is made by a program compiled with -ffar-guard=record
; BAD: Farheap: -ffar-guard: cannot use '{{.*}}.bad', line 3: not understood: '1 1 5 5 f'; record it anew
; NEWER: line 1: a format of another version of Farheap
; ELSE: line 1: not understood: 'something else'
; EMPTY: line 1: the file is empty

; SAYS: two: guarded: load: before the access; 1 guards, 1 accesses
; SAYS-NEXT: two: left: load: by the profile: it seldom misses, or never ran; 1 accesses
; SAYS: changed: guarded: the profile knows 3 guards, and there are 1: all are made
; SAYS-NEXT: changed: guarded: load: before the access; 1 guards, 1 accesses
; SAYS: sum: left: load: by the profile
; SAYS: local: guarded: the profile does not know this function: all guards are made
; LOCAL: local: left: load: by the profile

; CHECK-LABEL: define i64 @two(
; CHECK-NOT: (ptr %p, i32
; CHECK: load i64, ptr %p
; CHECK: (ptr %q, i32 0)
; CHECK: load i64, ptr %q
define i64 @two(ptr %p, ptr %q) {
  %a = load i64, ptr %p
  %b = load i64, ptr %q
  %sum = add i64 %a, %b
  ret i64 %sum
}
; CHECK-LABEL: define i64 @changed(
; CHECK: (ptr %p, i32 0)
define i64 @changed(ptr %p) {
  %a = load i64, ptr %p
  ret i64 %a
}
; CHECK-LABEL: define i64 @sum(
; CHECK-NOT: (ptr %p, i32 0)
; CHECK-LABEL: define internal i64 @local(
; CHECK: (ptr %p, i32 0)
define i64 @sum(ptr %p) {
  %a = load i64, ptr %p
  ret i64 %a
}
define internal i64 @local(ptr %p) {
  %a = load i64, ptr %p
  ret i64 %a
}
@keep = global ptr @local
