; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; Copies and fills go to the runtime, if any end of them may be far; so do structures that are passed by value.
; RUN: opt -load-pass-plugin=%plugin -passes=farheap,verify -farheap-level=translate-heap -S %s | FileCheck %s

; CHECK-LABEL: define void @copies(
; CHECK: call void @__farheap_copy(ptr %p, ptr %q, i64 %n)
; CHECK: call void @__farheap_copy(ptr %local, ptr %q, i64 8)
; CHECK: call void @__farheap_copy(ptr %p, ptr %local, i64 8)
; CHECK: %[[LONG:.*]] = zext i32 %m to i64
; CHECK: call void @__farheap_fill(ptr %p, i8 %byte, i64 %[[LONG]])
; CHECK: call void @llvm.memcpy.p0.p0.i64(ptr %local, ptr %other, i64 8, i1 false)
define void @copies(ptr %p, ptr %q, i64 %n, i32 %m, i8 %byte) {
  %local = alloca [8 x i8]
  %other = alloca [8 x i8]
  call void @llvm.memcpy.p0.p0.i64(ptr %p, ptr %q, i64 %n, i1 false)
  call void @llvm.memmove.p0.p0.i64(ptr %local, ptr %q, i64 8, i1 false)
  call void @llvm.memcpy.inline.p0.p0.i64(ptr %p, ptr %local, i64 8, i1 false)
  call void @llvm.memset.p0.i32(ptr %p, i8 %byte, i32 %m, i1 false)
  call void @llvm.memcpy.p0.p0.i64(ptr %local, ptr %other, i64 8, i1 false)
  ret void
}

; CHECK-LABEL: define void @by_value(
; CHECK: %farheap.value = alloca [3 x i64], align 16
; CHECK: call void @__farheap_copy(ptr %farheap.value, ptr %p, i64 24)
; CHECK: call void @takes(ptr byval([3 x i64]) align 16 %farheap.value)
define void @by_value(ptr %p) {
  tail call void @takes(ptr byval([3 x i64]) align 16 %p)
  ret void
}
declare void @takes(ptr byval([3 x i64]) align 16)

; CHECK-LABEL: define void @list(
; CHECK: call void @__farheap_copy(ptr %copy, ptr %arguments, i64 24)
define void @list(ptr %arguments) {
  %copy = alloca [24 x i8]
  call void @llvm.va_copy.p0(ptr %copy, ptr %arguments)
  ret void
}
