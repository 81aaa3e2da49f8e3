; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; An index of 32 bits that nobody has proven not to wrap: taken not to, because only a hint follows from it.
; RUN: opt -load-pass-plugin=%plugin -passes=farheap -S %s | FileCheck %s

; CHECK-LABEL: define void @every_second(
; CHECK: call void @__farheap_loop(ptr %{{.*}}, i64 %{{.*}}, i64 8, i32 2)
define void @every_second(ptr %p, i32 %n) {
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %twice = shl i32 %i, 1
  %index = zext i32 %twice to i64
  %at = getelementptr inbounds i32, ptr %p, i64 %index
  store i32 0, ptr %at
  %next = add i32 %i, 1
  %more = icmp ult i32 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}
