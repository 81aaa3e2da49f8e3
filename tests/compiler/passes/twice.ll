; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; In the compiler and again in the linker: the second run finds the functions done.
; RUN: opt -load-pass-plugin=%plugin -passes=farheap,farheap -S %s | FileCheck %s

; CHECK-LABEL: define void @fill(
; CHECK-COUNT-1: call void @__farheap_loop
; CHECK-NOT: call void @__farheap_loop
; CHECK: attributes #{{.*}} = { "farheap-done" }
define void @fill(ptr %p, i64 %n) {
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
