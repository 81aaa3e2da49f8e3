; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; What is on the stack or a global variable cannot be in the heap; what a global variable points to can.
; RUN: opt -load-pass-plugin=%plugin -passes=farheap -farheap-report=- -disable-output %s 2>&1 | FileCheck %s --check-prefix=SAYS
; RUN: opt -load-pass-plugin=%plugin -passes=farheap -S %s | FileCheck %s
; RUN: opt -load-pass-plugin=%plugin -passes=farheap -farheap-anywhere -S %s | FileCheck %s --check-prefix=ANYWHERE

; ANYWHERE-LABEL: define void @stack(
; ANYWHERE: call void @__farheap_loop
; ANYWHERE-LABEL: define void @global(
; ANYWHERE: call void @__farheap_loop
; SAYS-DAG: stack: left: store: on the stack; 1 accesses
; SAYS-DAG: global: left: store: a global variable; 1 accesses
; SAYS-DAG: pointed: hinted: writes, stride 8; 1 accesses
; CHECK-LABEL: define void @stack(
; CHECK-NOT: __farheap_loop
; CHECK-LABEL: define void @pointed(
; CHECK: call void @__farheap_loop
@array = global [1000000 x i64] zeroinitializer
@pointer = global ptr null

declare void @use(ptr)

define void @stack(i64 %n) {
entry:
  %room = alloca [1000000 x i64]
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %at = getelementptr inbounds i64, ptr %room, i64 %i
  store i64 0, ptr %at
  %next = add nuw nsw i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  call void @use(ptr %room)
  ret void
}

define void @global(i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %at = getelementptr inbounds i64, ptr @array, i64 %i
  store i64 0, ptr %at
  %next = add nuw nsw i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}

define void @pointed(i64 %n) {
entry:
  %start = load ptr, ptr @pointer
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %at = getelementptr inbounds i64, ptr %start, i64 %i
  store i64 0, ptr %at
  %next = add nuw nsw i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}
