; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; Masked vectors count as if all lanes were touched.
; RUN: opt -load-pass-plugin=%plugin -passes=farheap -S %s | FileCheck %s

; CHECK-LABEL: define void @copy(
; CHECK: call void @__farheap_loop(ptr %{{.*}}, i64 %{{.*}}, i64 32, i32 1)
; CHECK-NEXT: call void @__farheap_loop(ptr %{{.*}}, i64 %{{.*}}, i64 32, i32 2)
declare <8 x i32> @llvm.masked.load.v8i32.p0(ptr, i32, <8 x i1>, <8 x i32>)
declare void @llvm.masked.store.v8i32.p0(<8 x i32>, ptr, i32, <8 x i1>)

define void @copy(ptr %to, ptr %from, i64 %n, <8 x i1> %mask) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %source = getelementptr inbounds i32, ptr %from, i64 %i
  %v = call <8 x i32> @llvm.masked.load.v8i32.p0(ptr %source, i32 4, <8 x i1> %mask, <8 x i32> zeroinitializer)
  %target = getelementptr inbounds i32, ptr %to, i64 %i
  call void @llvm.masked.store.v8i32.p0(<8 x i32> %v, ptr %target, i32 4, <8 x i1> %mask)
  %next = add nuw i64 %i, 8
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}
