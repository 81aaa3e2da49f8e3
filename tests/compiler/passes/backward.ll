; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; From the end to the start: the range begins where the loop ends.
; RUN: opt -load-pass-plugin=%plugin -passes=farheap -S %s | FileCheck %s

; CHECK-LABEL: define void @back(
; CHECK: %[[BEGIN:.*]] = freeze ptr %p
; CHECK: call void @__farheap_loop(ptr %[[BEGIN]], i64 %{{.*}}, i64 -8, i32 6)
define void @back(ptr %p, i64 %n) {
entry:
  %some = icmp sgt i64 %n, 0
  br i1 %some, label %before, label %done

before:
  br label %loop

loop:
  %i = phi i64 [ %n, %before ], [ %next, %loop ]
  %next = add nsw i64 %i, -1
  %at = getelementptr inbounds i64, ptr %p, i64 %next
  store i64 1, ptr %at
  %more = icmp ne i64 %next, 0
  br i1 %more, label %loop, label %done

done:
  ret void
}
