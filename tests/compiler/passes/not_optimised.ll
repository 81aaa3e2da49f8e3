; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; A function of -O0 is left as it is, with the reason in the report.
; RUN: opt -load-pass-plugin=%plugin -passes=farheap -farheap-report=- -S %s 2>&1 | FileCheck %s

; CHECK: plain: left: compiled without optimisation (-O0, optnone)
; CHECK-NOT: __farheap_loop
define void @plain(ptr %p, i64 %n) noinline optnone {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %at = getelementptr inbounds i8, ptr %p, i64 %i
  store i8 0, ptr %at
  %next = add nuw nsw i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}
