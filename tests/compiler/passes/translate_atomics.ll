; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; Whoever touches a far word atomically is alone.
; RUN: opt -load-pass-plugin=%plugin -passes=farheap,verify -farheap-level=translate-heap -S %s | FileCheck %s

; CHECK-LABEL: define i64 @add(
; CHECK: call void @__farheap_lock()
; CHECK-NEXT: call void @__farheap_get(ptr %farheap.copy, ptr %p, i64 8)
; CHECK-NEXT: %[[OLD:.*]] = load i64, ptr %farheap.copy
; CHECK-NEXT: %[[NEW:.*]] = add i64 %[[OLD]], %n
; CHECK-NEXT: store i64 %[[NEW]], ptr %farheap.copy
; CHECK-NEXT: call void @__farheap_put(ptr %p, ptr %farheap.copy, i64 8)
; CHECK-NEXT: call void @__farheap_unlock()
; CHECK: %[[NEAR:.*]] = atomicrmw add ptr %p, i64 %n seq_cst
; CHECK: phi i64 [ %[[OLD]], {{.*}} ], [ %[[NEAR]], {{.*}} ]
define i64 @add(ptr %p, i64 %n) {
  %old = atomicrmw add ptr %p, i64 %n seq_cst
  ret i64 %old
}

; CHECK-LABEL: define { i32, i1 } @exchange(
; CHECK: call void @__farheap_lock()
; CHECK: %[[OLD:.*]] = load i32, ptr %farheap.copy
; CHECK: %[[SAME:.*]] = icmp eq i32 %[[OLD]], %expected
; CHECK: select i1 %[[SAME]], i32 %new, i32 %[[OLD]]
; CHECK: call void @__farheap_unlock()
; CHECK: cmpxchg weak ptr %p, i32 %expected, i32 %new acq_rel monotonic
; CHECK: phi { i32, i1 }
define { i32, i1 } @exchange(ptr %p, i32 %expected, i32 %new) {
  %pair = cmpxchg weak ptr %p, i32 %expected, i32 %new acq_rel monotonic
  ret { i32, i1 } %pair
}

; CHECK-LABEL: define void @copy(
; CHECK: call void @__farheap_lock()
; CHECK-NEXT: call void @__farheap_get(
; CHECK: call void @__farheap_unlock()
; CHECK: load atomic i8, ptr %p acquire
; CHECK: call void @__farheap_lock()
; CHECK: call void @__farheap_put(
; CHECK-NEXT: call void @__farheap_unlock()
; CHECK: store atomic i8 {{.*}}, ptr %q release
define void @copy(ptr %p, ptr %q) {
  %x = load atomic i8, ptr %p acquire, align 1
  store atomic i8 %x, ptr %q release, align 1
  fence seq_cst
  ret void
}
