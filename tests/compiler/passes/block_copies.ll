; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; memcpy and memset in a loop are accesses of their length.
; RUN: opt -load-pass-plugin=%plugin -passes=farheap -S %s | FileCheck %s

; CHECK-LABEL: define void @rows(
; CHECK: call void @__farheap_loop(ptr %{{.*}}, i64 %{{.*}}, i64 100, i32 2)
; CHECK-NEXT: call void @__farheap_loop(ptr %{{.*}}, i64 %{{.*}}, i64 200, i32 1)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

define void @rows(ptr %to, ptr %from, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %target.at = mul nuw nsw i64 %i, 100
  %target = getelementptr inbounds i8, ptr %to, i64 %target.at
  %source.at = mul nuw nsw i64 %i, 200
  %source = getelementptr inbounds i8, ptr %from, i64 %source.at
  call void @llvm.memcpy.p0.p0.i64(ptr %target, ptr %source, i64 50, i1 false)
  %next = add nuw nsw i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}
