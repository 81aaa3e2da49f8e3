; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; A load or store whose address may lie in the heap goes both ways; of every type, with its bytes as the store has them.
; RUN: opt -load-pass-plugin=%plugin -passes=farheap,verify -farheap-level=translate-heap -S %s | FileCheck %s

target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"

; CHECK: @__farheap_far = external global { i64, i64 }

; CHECK-LABEL: define i32 @word(
; CHECK-NEXT: %farheap.copy = alloca i8, i64 4, align 4
; CHECK-NEXT: %[[BEGIN:.*]] = load i64, ptr @__farheap_far, align 8
; CHECK-NEXT: %[[BYTES:.*]] = load i64, ptr getelementptr {{.*}}@__farheap_far{{.*}}, align 8
; CHECK-NEXT: %[[ADDRESS:.*]] = ptrtoint ptr %p to i64
; CHECK-NEXT: %[[OFFSET:.*]] = sub i64 %[[ADDRESS]], %[[BEGIN]]
; CHECK-NEXT: %[[FAR:.*]] = icmp ult i64 %[[OFFSET]], %[[BYTES]]
; CHECK-NEXT: br i1 %[[FAR]], label %[[GET:.*]], label %[[LOAD:.*]]
; CHECK: [[GET]]:
; CHECK-NEXT: call void @__farheap_get(ptr %farheap.copy, ptr %p, i64 4)
; CHECK-NEXT: %[[THERE:.*]] = load i32, ptr %farheap.copy, align 1
; CHECK: [[LOAD]]:
; CHECK-NEXT: %[[HERE:.*]] = load i32, ptr %p, align 4
; CHECK: phi i32 [ %[[THERE]], %[[GET]] ], [ %[[HERE]], %[[LOAD]] ]
define i32 @word(ptr %p) {
  %value = load i32, ptr %p, align 4
  ret i32 %value
}

; CHECK-LABEL: define void @store(
; CHECK: store double %v, ptr %farheap.copy, align 1
; CHECK-NEXT: call void @__farheap_put(ptr %p, ptr %farheap.copy, i64 8)
; CHECK: store volatile double %v, ptr %p, align 8
define void @store(ptr %p, double %v) {
  store volatile double %v, ptr %p
  ret void
}

; CHECK-LABEL: define void @kinds(
; CHECK: alloca i8, i64 32, align 32
; CHECK: call void @__farheap_get({{.*}}, i64 1)
; CHECK: load i1, ptr %farheap.copy
; CHECK: call void @__farheap_put({{.*}}, i64 1)
; CHECK: call void @__farheap_get({{.*}}, i64 3)
; CHECK: call void @__farheap_put({{.*}}, i64 3)
; CHECK: call void @__farheap_get({{.*}}, i64 10)
; CHECK: call void @__farheap_put({{.*}}, i64 10)
; CHECK: call void @__farheap_get({{.*}}, i64 16)
; CHECK: call void @__farheap_put({{.*}}, i64 16)
; CHECK: call void @__farheap_get({{.*}}, i64 32)
; CHECK: call void @__farheap_put({{.*}}, i64 32)
; CHECK: call void @__farheap_get({{.*}}, i64 16)
; CHECK: load { i8, i64 }, ptr %farheap.copy
; CHECK: call void @__farheap_put({{.*}}, i64 16)
define void @kinds(ptr %p, ptr %q) {
  %a = load i1, ptr %p
  store i1 %a, ptr %q
  %b = load i20, ptr %p
  store i20 %b, ptr %q
  %c = load x86_fp80, ptr %p
  store x86_fp80 %c, ptr %q
  %d = load i128, ptr %p
  store i128 %d, ptr %q
  %e = load <8 x float>, ptr %p
  store <8 x float> %e, ptr %q
  %f = load { i8, i64 }, ptr %p
  store { i8, i64 } %f, ptr %q
  ret void
}
