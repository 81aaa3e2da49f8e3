; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; A loop that is entered from two places, without a block of its own before it, gets one.
; RUN: opt -load-pass-plugin=%plugin -passes=farheap -S %s | FileCheck %s

; CHECK-LABEL: define void @from_two_places(
; CHECK: call void @__farheap_loop(ptr %{{.*}}, i64 %{{.*}}, i64 1, i32 2)
define void @from_two_places(ptr %p, i64 %n, i1 %which) {
entry:
  br i1 %which, label %loop, label %other
other:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ 10, %other ], [ %next, %loop ]
  %at = getelementptr inbounds i8, ptr %p, i64 %i
  store i8 0, ptr %at
  %next = add nuw nsw i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}
