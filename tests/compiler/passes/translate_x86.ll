; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; What x86's own intrinsics load and store goes to the store like other accesses; a line of the cache is nothing there.
; RUN: opt -load-pass-plugin=%plugin -passes=farheap,verify -farheap-level=translate-heap -S %s 2>&1 | FileCheck %s
target triple = "x86_64-pc-linux-gnu"

; CHECK-NOT: not translated
; CHECK-LABEL: define <4 x float> @masked_load(
; CHECK-NOT: maskload
; CHECK: icmp slt <4 x i32> %mask, zeroinitializer
; CHECK-COUNT-4: call void @__farheap_get(ptr %farheap.copy, ptr %{{.*}}, i64 4)
define <4 x float> @masked_load(ptr %p, <4 x i32> %mask) {
  %x = call <4 x float> @llvm.x86.avx.maskload.ps(ptr %p, <4 x i32> %mask)
  ret <4 x float> %x
}

; CHECK-LABEL: define void @masked_store(
; CHECK-NOT: maskstore
; CHECK-COUNT-4: call void @__farheap_put(ptr %{{.*}}, ptr %farheap.copy, i64 8)
define void @masked_store(ptr %p, <4 x i64> %mask, <4 x double> %x) {
  call void @llvm.x86.avx.maskstore.pd.256(ptr %p, <4 x i64> %mask, <4 x double> %x)
  ret void
}

; CHECK-LABEL: define void @bytes(
; CHECK-COUNT-16: call void @__farheap_put(ptr %{{.*}}, ptr %farheap.copy, i64 1)
define void @bytes(<16 x i8> %x, <16 x i8> %mask, ptr %p) {
  call void @llvm.x86.sse2.maskmov.dqu(<16 x i8> %x, <16 x i8> %mask, ptr %p)
  ret void
}

; Four lanes, and two indices: the other two lanes are zeros.
; CHECK-LABEL: define <4 x float> @gathers(
; CHECK-NOT: avx2.gather
; CHECK: mul <2 x i64> %index, {{.*}}i64 4
; CHECK-COUNT-2: call void @__farheap_get(ptr %farheap.copy, ptr %{{.*}}, i64 4)
; CHECK-NOT: __farheap_get
; CHECK: shufflevector <2 x float> %{{.*}}, <2 x float> zeroinitializer, <4 x i32> <i32 0, i32 1, i32 2, i32 2>
define <4 x float> @gathers(<4 x float> %other, ptr %p, <2 x i64> %index, <4 x float> %mask) {
  %x = call <4 x float> @llvm.x86.avx2.gather.q.ps(<4 x float> %other, ptr %p, <2 x i64> %index, <4 x float> %mask, i8 4)
  ret <4 x float> %x
}

; CHECK-LABEL: define void @cache(
; CHECK: br i1 %farheap.is_far
; CHECK: call void @llvm.x86.sse2.clflush(ptr %p)
define void @cache(ptr %p) {
  call void @llvm.x86.sse2.clflush(ptr %p)
  ret void
}
declare <4 x float> @llvm.x86.avx.maskload.ps(ptr, <4 x i32>)
declare void @llvm.x86.avx.maskstore.pd.256(ptr, <4 x i64>, <4 x double>)
declare void @llvm.x86.sse2.maskmov.dqu(<16 x i8>, <16 x i8>, ptr)
declare <4 x float> @llvm.x86.avx2.gather.q.ps(<4 x float>, ptr, <2 x i64>, <4 x float>, i8 immarg)
declare void @llvm.x86.sse2.clflush(ptr)
