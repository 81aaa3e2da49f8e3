; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; A profile leaves only what missed more than once in ten thousand passes. Runs are added up. A function that has changed,
; or that the profile does not know, gets all of its guards; what was recorded of another one of its name is not taken for it.
; RUN: opt -load-pass-plugin=%plugin -passes=farheap -farheap-level=guard -farheap-guards=record -S %s | sed -n 's/.* i64 2, i64 \(-*[0-9]*\), ptr @farheap_guard_counters.*/\1/p' | xargs printf %x > %t.two
; RUN: opt -load-pass-plugin=%plugin -passes=farheap -farheap-level=guard -farheap-guards=record -S %s | sed -n 's/.* i64 1, i64 \(-*[0-9]*\), ptr @farheap_guard_counters.*/\1/p' | sort -u | xargs printf %x > %t.one
; RUN: T=$(cat %t.two); O=$(cat %t.one); test $T != $O; printf "farheap guards 2\n0 2 $T 10000 1 two\n1 2 $T 10000 2 two\n0 3 $O 5 0 changed\n0 1 $O 10000 1 sum\nend\nfarheap guards 2\n0 1 $O 20000 2 sum\n0 1 $O 1 1 other.c;local\nend\n" > %t.good
; RUN: opt -load-pass-plugin=%plugin -passes=farheap,verify -farheap-level=guard -farheap-guards=%t.good -S %s | FileCheck %s
; RUN: opt -load-pass-plugin=%plugin -passes=farheap -farheap-level=guard -farheap-guards=%t.good -farheap-report=- -disable-output %s 2>&1 | FileCheck %s --check-prefix=SAYS
; RUN: O=$(cat %t.one); printf "farheap guards 2\n0 1 $O 10000 1 local\nend\nfarheap guards 2\n0 1 $O 20000 2 guard_profile.c;local\nend\n" > %t.local
; RUN: opt -load-pass-plugin=%plugin -passes=farheap -farheap-level=guard -farheap-guards=%t.local -farheap-report=- -disable-output %s 2>&1 | FileCheck %s --check-prefix=LOCAL
; RUN: T=$(cat %t.two); O=$(cat %t.one); printf "farheap guards 2\n0 2 $O 10000 0 two\n1 2 $O 10000 2 two\n0 1 $T 10000 2 changed\n0 1 $O 9 1 sum\n0 1 $O 9 1 guard_profile.c;local\nend\n" > %t.other
; RUN: opt -load-pass-plugin=%plugin -passes=farheap -farheap-level=guard -farheap-guards=%t.other -farheap-report=- -disable-output %s 2>&1 | FileCheck %s --check-prefix=OTHER
; RUN: O=$(cat %t.one); printf "farheap guards 2\n0 1 $O 10000 0 sum\nend\n" > %t.never
; RUN: opt -load-pass-plugin=%plugin -passes=farheap -farheap-level=guard -farheap-guards=%t.never -disable-output %s 2>&1 | FileCheck %s --check-prefix=NEVER
; RUN: not opt -load-pass-plugin=%plugin -passes=farheap -farheap-level=guard -farheap-guards=%t.none -disable-output %s 2>&1 | FileCheck %s --check-prefix=NONE
; RUN: printf 'farheap guards 2\n0 1 a 5 5 f\n1 1 a 5 5 f\nend\n' > %t.bad
; RUN: not opt -load-pass-plugin=%plugin -passes=farheap -farheap-level=guard -farheap-guards=%t.bad -disable-output %s 2>&1 | FileCheck %s --check-prefix=BAD
; RUN: printf 'farheap guards 1\n' > %t.older
; RUN: not opt -load-pass-plugin=%plugin -passes=farheap -farheap-level=guard -farheap-guards=%t.older -disable-output %s 2>&1 | FileCheck %s --check-prefix=OLDER
; RUN: printf 'something else\n' > %t.else
; RUN: not opt -load-pass-plugin=%plugin -passes=farheap -farheap-level=guard -farheap-guards=%t.else -disable-output %s 2>&1 | FileCheck %s --check-prefix=ELSE
; RUN: printf '' > %t.empty
; RUN: not opt -load-pass-plugin=%plugin -passes=farheap -farheap-level=guard -farheap-guards=%t.empty -disable-output %s 2>&1 | FileCheck %s --check-prefix=EMPTY
; Runs that are cut: in a line, after one, before another one, in the last word.
; RUN: printf 'farheap guards 2\n0 1 a 5 5 f\nend\nfarheap guards 2\n0 1 a 5 5 f\n0 1 a 5 4 lo' > %t.cut
; RUN: not opt -load-pass-plugin=%plugin -passes=farheap -farheap-level=guard -farheap-guards=%t.cut -disable-output %s 2>&1 | FileCheck %s --check-prefix=CUT
; RUN: printf 'farheap guards 2\n0 1 a 5 5 f\n' > %t.cut
; RUN: not opt -load-pass-plugin=%plugin -passes=farheap -farheap-level=guard -farheap-guards=%t.cut -disable-output %s 2>&1 | FileCheck %s --check-prefix=CUT2
; RUN: printf 'farheap guards 2\n0 1 a 5 5 f\n0 1 a 5\nfarheap guards 2\n0 1 a 5 5 f\nend\n' > %t.cut
; RUN: not opt -load-pass-plugin=%plugin -passes=farheap -farheap-level=guard -farheap-guards=%t.cut -disable-output %s 2>&1 | FileCheck %s --check-prefix=CUT3
; RUN: printf 'farheap guards 2\n0 1 a 5 5 f\n0 1 a 5 4 lo\nfarheap guards 2\n0 1 a 5 5 f\nend\n' > %t.cut
; RUN: not opt -load-pass-plugin=%plugin -passes=farheap -farheap-level=guard -farheap-guards=%t.cut -disable-output %s 2>&1 | FileCheck %s --check-prefix=CUT3
; RUN: printf 'farheap guards 2\n0 1 a 5 5 f\nend' > %t.cut
; RUN: not opt -load-pass-plugin=%plugin -passes=farheap -farheap-level=guard -farheap-guards=%t.cut -disable-output %s 2>&1 | FileCheck %s --check-prefix=CUT3
source_filename = "guard_profile.c"

; NONE: Farheap: -ffar-guard: cannot read '{{.*}}.none': No such file or directory; it is made by a program compiled with -ffar-guard=record
; BAD: Farheap: -ffar-guard: cannot use '{{.*}}.bad', line 3: not understood: '1 1 a 5 5 f'; record it anew
; CUT: '{{.*}}.cut', line 6: the run that begins in line 4 is cut: {{.*}}; take lines 4 to 6 out
; CUT2: '{{.*}}.cut', line 2: the run that begins in line 1 is cut
; CUT3: '{{.*}}.cut', line 3: the run that begins in line 1 is cut
; OLDER: line 1: a format of another version of Farheap
; ELSE: line 1: not understood: 'something else'
; EMPTY: line 1: the file is empty

; OTHER: warning: Farheap: -ffar-guard: '{{.*}}.other': recorded from other code {{.*}} 2 of 4 functions {{.*}} (two, changed)
; OTHER: two: guarded: the profile is of another function of this name: all are made; record it anew
; OTHER-NEXT: two: guarded: load: before the access; 2 guards, 2 accesses
; OTHER: changed: guarded: the profile is of another function of this name: all are made
; NEVER: warning: Farheap: -ffar-guard: '{{.*}}.never': no guard in it ever missed, so that guards are left out; record it under `farheap run --memory SIZE`

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
