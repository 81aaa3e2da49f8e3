; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; Atomics, gather and scatter, inline assembly and look-ups are left to the fault engine, and said to be.
; RUN: opt -load-pass-plugin=%plugin -passes=farheap -farheap-report=- -disable-output %s 2>&1 | FileCheck %s --check-prefix=SAYS
; RUN: opt -load-pass-plugin=%plugin -passes=farheap -S %s | FileCheck %s

; CHECK-NOT: __farheap_loop
; SAYS-DAG: left: atomicrmw: atomic; 1 accesses
; SAYS-DAG: left: load: atomic; 1 accesses
; SAYS-DAG: left: cmpxchg: atomic; 1 accesses
; SAYS-DAG: left: call: gather; 1 accesses
; SAYS-DAG: left: call: scatter; 1 accesses
; SAYS-DAG: left: call: inline assembly; 1 accesses
; SAYS-DAG: left: load: the address is looked up in each turn; 1 accesses
; SAYS-DAG: left: store: the same place in every turn; 1 accesses
declare <4 x i32> @llvm.masked.gather.v4i32.v4p0(<4 x ptr>, i32, <4 x i1>, <4 x i32>)
declare void @llvm.masked.scatter.v4i32.v4p0(<4 x i32>, <4 x ptr>, i32, <4 x i1>)

define void @left(ptr %p, i64 %n, <4 x ptr> %places) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %walk = phi ptr [ %p, %entry ], [ %link, %loop ]
  %at = getelementptr inbounds i32, ptr %p, i64 %i
  %old = atomicrmw add ptr %at, i32 1 monotonic
  %now = load atomic i32, ptr %at acquire, align 4
  %swapped = cmpxchg ptr %at, i32 1, i32 2 monotonic monotonic
  %many = call <4 x i32> @llvm.masked.gather.v4i32.v4p0(<4 x ptr> %places, i32 4, <4 x i1> splat (i1 true), <4 x i32> zeroinitializer)
  call void @llvm.masked.scatter.v4i32.v4p0(<4 x i32> %many, <4 x ptr> %places, i32 4, <4 x i1> splat (i1 true))
  call void asm sideeffect "", "r,~{memory}"(ptr %at)
  %link = load ptr, ptr %walk
  store i32 %now, ptr %p
  %next = add nuw nsw i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}
