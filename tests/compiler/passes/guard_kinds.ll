; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; Every kind of access: atomics, copies and fills, masked vectors. Gathers and scatters are left, and said to be; so is,
; without a word, what cannot be in the heap: the stack, global variables, tables of virtual functions.
; RUN: opt -load-pass-plugin=%plugin -passes=farheap,verify -farheap-level=guard -S %s | FileCheck %s
; RUN: opt -load-pass-plugin=%plugin -passes=farheap -farheap-level=guard -farheap-report=- -disable-output %s 2>&1 | FileCheck %s --check-prefix=SAYS
; RUN: opt -load-pass-plugin=%plugin -passes=farheap,verify -farheap-level=guard -farheap-anywhere -S %s | FileCheck %s --check-prefix=ANYWHERE
@global = global i64 0
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare <4 x i32> @llvm.masked.gather.v4i32.v4p0(<4 x ptr>, i32, <4 x i1>, <4 x i32>)
declare void @llvm.masked.scatter.v4i32.v4p0(<4 x i32>, <4 x ptr>, i32, <4 x i1>)
declare <4 x i32> @llvm.masked.load.v4i32.p0(ptr, i32, <4 x i1>, <4 x i32>)
declare void @llvm.masked.store.v4i32.p0(<4 x i32>, ptr, i32, <4 x i1>)
declare void @use(ptr)

; CHECK-LABEL: define void @atomics(
; CHECK: (ptr %a, i32 1)
; CHECK: atomicrmw
; CHECK: (ptr %b, i32 1)
; CHECK: cmpxchg
; CHECK: (ptr %c, i32 0)
; CHECK: load atomic i64, ptr %c seq_cst
; CHECK: (ptr %d, i32 1)
; CHECK: store atomic
define void @atomics(ptr %a, ptr %b, ptr %c, ptr %d) {
  %1 = atomicrmw add ptr %a, i64 1 seq_cst
  %2 = cmpxchg ptr %b, i64 1, i64 2 seq_cst seq_cst
  %3 = load atomic i64, ptr %c seq_cst, align 8
  store atomic i64 1, ptr %d release, align 8
  ret void
}

; CHECK-LABEL: define void @copies(
; CHECK: (ptr %to, i32 1)
; CHECK: (ptr %from, i32 0)
; CHECK: call void @llvm.memcpy
; CHECK: (ptr %fill, i32 1)
; CHECK: call void @llvm.memset
define void @copies(ptr %to, ptr %from, ptr %fill, i64 %n) {
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 %n, i1 false)
  call void @llvm.memset.p0.i64(ptr %fill, i8 0, i64 %n, i1 false)
  ret void
}

; CHECK-LABEL: define void @masked(
; CHECK: (ptr %from, i32 0)
; CHECK: @llvm.masked.load
; CHECK: (ptr %to, i32 1)
; CHECK: @llvm.masked.store
define void @masked(ptr %to, ptr %from, <4 x i1> %mask) {
  %v = call <4 x i32> @llvm.masked.load.v4i32.p0(ptr %from, i32 4, <4 x i1> %mask, <4 x i32> zeroinitializer)
  call void @llvm.masked.store.v4i32.p0(<4 x i32> %v, ptr %to, i32 4, <4 x i1> %mask)
  ret void
}

; SAYS: scattered: left: call: not guarded: gather; 1 accesses
; SAYS: scattered: left: call: not guarded: scatter; 1 accesses
; CHECK-LABEL: define void @scattered(
; CHECK-NOT: @__farheap_miss
; CHECK: ret void
define void @scattered(<4 x ptr> %places) {
  %many = call <4 x i32> @llvm.masked.gather.v4i32.v4p0(<4 x ptr> %places, i32 4, <4 x i1> splat (i1 true), <4 x i32> zeroinitializer)
  call void @llvm.masked.scatter.v4i32.v4p0(<4 x i32> %many, <4 x ptr> %places, i32 4, <4 x i1> splat (i1 true))
  ret void
}

; CHECK-LABEL: define i64 @near(
; CHECK-NOT: @__farheap_miss
; CHECK: ret i64
; ANYWHERE-LABEL: define i64 @near(
; ANYWHERE: @__farheap_miss
; ANYWHERE: ret i64
define i64 @near() {
  %room = alloca i64
  call void @use(ptr %room)
  %a = load i64, ptr %room
  %b = load i64, ptr @global
  %sum = add i64 %a, %b
  ret i64 %sum
}

; The object gets its look; the table, and the function in it, get none.
; CHECK-LABEL: define void @virtual(
; CHECK: (ptr %object, i32 0)
; CHECK: %table = load ptr, ptr %object
; CHECK-NOT: @__farheap_miss
; CHECK: ret void
define void @virtual(ptr %object) {
  %table = load ptr, ptr %object, !tbaa !0
  %slot = getelementptr ptr, ptr %table, i64 2
  %function = load ptr, ptr %slot
  call void %function(ptr %object)
  ret void
}
!0 = !{!1, !1, i64 0}
!1 = !{!"vtable pointer", !2, i64 0}
!2 = !{!"Simple C++ TBAA"}
