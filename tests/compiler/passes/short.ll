; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; 1000 bytes are not worth a call; a megabyte is, and where that begins is an option.
; RUN: opt -load-pass-plugin=%plugin -passes=farheap -S %s | FileCheck %s
; RUN: opt -load-pass-plugin=%plugin -passes=farheap -farheap-threshold=1000 -S %s | FileCheck %s --check-prefix=LOW

; CHECK-LABEL: define void @short(
; CHECK-NOT: __farheap_loop
; CHECK-LABEL: define void @long(
; CHECK: call void @__farheap_loop(ptr %{{.*}}, i64 %{{.*}}, i64 1, i32 2)
; LOW-LABEL: define void @short(
; LOW: call void @__farheap_loop
define void @short(ptr %p) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %at = getelementptr inbounds i8, ptr %p, i64 %i
  store i8 0, ptr %at
  %next = add nuw nsw i64 %i, 1
  %more = icmp ult i64 %next, 1000
  br i1 %more, label %loop, label %done
done:
  ret void
}

define void @long(ptr %p) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %at = getelementptr inbounds i8, ptr %p, i64 %i
  store i8 0, ptr %at
  %next = add nuw nsw i64 %i, 1
  %more = icmp ult i64 %next, 1048576
  br i1 %more, label %loop, label %done
done:
  ret void
}
