; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; Masked accesses by pointers that may be far are an access for each lane that is on; those of the stack stay.
; (Intrinsics of memory that all versions of LLVM write alike: those that pack. Others: translate_test.py.)
; RUN: opt -load-pass-plugin=%plugin -passes=farheap,verify -farheap-level=translate-heap -S %s | FileCheck %s

; CHECK-LABEL: define <2 x i32> @expands(
; CHECK-NOT: llvm.masked
; CHECK: %[[ON:.*]] = extractelement <2 x i1> %mask, i64 0
; CHECK: br i1 %[[ON]]
; CHECK: call void @__farheap_get(ptr %farheap.copy, ptr %p, i64 4)
; CHECK: insertelement <2 x i32> %other, i32 {{.*}}, i64 0
; CHECK: %[[NEXT:.*]] = getelementptr inbounds i32, ptr %p, i{{32|64}} 1
; CHECK: phi ptr [ %p, {{.*}} ], [ %[[NEXT]], {{.*}} ]
; CHECK: extractelement <2 x i1> %mask, i64 1
; CHECK: call void @__farheap_get(ptr %farheap.copy, ptr %{{.*}}, i64 4)
; CHECK: ret <2 x i32> %
define <2 x i32> @expands(ptr %p, <2 x i1> %mask, <2 x i32> %other) {
  %x = call <2 x i32> @llvm.masked.expandload.v2i32(ptr %p, <2 x i1> %mask, <2 x i32> %other)
  ret <2 x i32> %x
}

; A lane that is known to be off is nothing at all.
; CHECK-LABEL: define void @packs(
; CHECK-NOT: llvm.masked
; CHECK-NOT: extractelement <2 x i32> %x, i64 0
; CHECK: extractelement <2 x i32> %x, i64 1
; CHECK: call void @__farheap_put(ptr %p, ptr %farheap.copy, i64 4)
define void @packs(ptr %p, <2 x i32> %x) {
  call void @llvm.masked.compressstore.v2i32(<2 x i32> %x, ptr %p, <2 x i1> <i1 false, i1 true>)
  ret void
}

; CHECK-LABEL: define void @near(
; CHECK: call void @llvm.masked.compressstore
define void @near(<2 x i32> %x, <2 x i1> %mask) {
  %local = alloca [2 x i32]
  call void @llvm.masked.compressstore.v2i32(<2 x i32> %x, ptr %local, <2 x i1> %mask)
  ret void
}
declare <2 x i32> @llvm.masked.expandload.v2i32(ptr, <2 x i1>, <2 x i32>)
declare void @llvm.masked.compressstore.v2i32(<2 x i32>, ptr, <2 x i1>)
