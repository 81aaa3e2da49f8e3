; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; Short rows of something large: where a row begins is computed if it is said, and not before each row. What the program
; itself computes stays where it is.
; RUN: opt -load-pass-plugin=%plugin -passes=farheap -S %s | FileCheck %s

; CHECK-LABEL: define void @row(
; CHECK: entry:
; CHECK: %mine = shl
; CHECK-NOT: getelementptr
; CHECK: br i1 {{.*}}, label %[[SAY:.*]], label %{{.*}}, !prof
; CHECK: [[SAY]]:
; CHECK: getelementptr
; CHECK: %[[BEGIN:.*]] = freeze ptr
; CHECK: call void @__farheap_loop(ptr %[[BEGIN]], i64 %{{.*}}, i64 8, i32 2)
; CHECK: loop:
define void @row(ptr %p, i64 %from, i64 %n) {
entry:
  %mine = shl nuw nsw i64 %from, 1
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %place = add nuw nsw i64 %i, %mine
  %at = getelementptr inbounds i64, ptr %p, i64 %place
  store i64 %i, ptr %at
  %next = add nuw nsw i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}
