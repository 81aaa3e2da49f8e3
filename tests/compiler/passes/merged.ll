; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; p[i - 1], p[i], p[i + 1] are one range, and so are the copies of an unrolled body; the far half of an array is another.
; RUN: opt -load-pass-plugin=%plugin -passes=farheap -S %s | FileCheck %s

; CHECK-LABEL: define void @neighbours(
; CHECK: %[[LOW:.*]] = getelementptr i8, ptr %p, i64 -4
; CHECK: %[[BEGIN:.*]] = freeze ptr %[[LOW]]
; CHECK: call void @__farheap_loop(ptr %[[BEGIN]], i64 %{{.*}}, i64 4, i32 3)
; CHECK-NEXT: br label
; CHECK-LABEL: define void @unrolled(
; CHECK: call void @__farheap_loop(ptr %{{.*}}, i64 %{{.*}}, i64 %{{.*}}, i32 2)
; CHECK-NEXT: br label
; CHECK-LABEL: define void @halves(
; CHECK: call void @__farheap_loop(ptr %{{.*}}, i64 %{{.*}}, i64 4, i32 2)
; CHECK-NEXT: call void @__farheap_loop(ptr %{{.*}}, i64 %{{.*}}, i64 4, i32 2)
; CHECK-NEXT: br label
define void @neighbours(ptr %p, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %at = getelementptr inbounds i32, ptr %p, i64 %i
  %left = getelementptr inbounds i8, ptr %at, i64 -4
  %right = getelementptr inbounds i8, ptr %at, i64 4
  %a = load i32, ptr %left
  %b = load i32, ptr %right
  %sum = add i32 %a, %b
  store i32 %sum, ptr %at
  %next = add nuw nsw i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}

define void @unrolled(ptr %p, i64 %n, i32 %width) {
entry:
  %step = zext i32 %width to i64
  %bytes = shl i64 %step, 2
  %twice = shl i64 %step, 3
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %offset = mul i64 %i, %twice
  %first = getelementptr i8, ptr %p, i64 %offset
  store i32 1, ptr %first
  %second = getelementptr i8, ptr %first, i64 %bytes
  store i32 2, ptr %second
  %next = add nuw nsw i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}

define void @halves(ptr %p, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %at = getelementptr inbounds i32, ptr %p, i64 %i
  %far = getelementptr inbounds i8, ptr %at, i64 16777216
  store i32 1, ptr %at
  store i32 2, ptr %far
  %next = add nuw nsw i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}
