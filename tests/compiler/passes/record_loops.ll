; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; In a loop whose turns are known before nothing is counted; in others a register counts.
; RUN: opt -load-pass-plugin=%plugin -passes=farheap,verify -farheap-level=record -S %s | FileCheck %s
; RUN: opt -load-pass-plugin=%plugin -passes=farheap -farheap-level=record -farheap-report=- -disable-output %s 2>&1 | FileCheck %s --check-prefix=SAID

; CHECK-LABEL: define void @known(
; CHECK: %farheap.turns = add i64
; CHECK: body:
; CHECK-NEXT: %i = phi
; CHECK-NEXT: %at = getelementptr
; CHECK-NEXT: store i64 %i, ptr %at
; CHECK-NEXT: %next = add
; CHECK-NEXT: %more = icmp
; CHECK-NEXT: br i1
; CHECK: call void @__farheap_context_object(
; CHECK: ret void
define void @known(ptr %p, i64 %n) {
entry:
  br label %body
body:
  %i = phi i64 [ 0, %entry ], [ %next, %body ]
  %at = getelementptr i64, ptr %p, i64 %i
  store i64 %i, ptr %at
  %next = add nuw nsw i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %body, label %done
done:
  ret void
}

; CHECK-LABEL: define i64 @chain(
; CHECK: body:
; CHECK-NEXT: [[COUNT:%.*]] = phi i64
; CHECK: [[MORE:%.*]] = add i64 [[COUNT]], 1
; CHECK: ret i64
define i64 @chain(ptr %p) {
entry:
  br label %body
body:
  %at = phi ptr [ %p, %entry ], [ %next, %body ]
  %next = load ptr, ptr %at
  %end = icmp eq ptr %next, null
  br i1 %end, label %done, label %body
done:
  ret i64 0
}

; A loop that calls is told to those that it calls, and adds where it stands.
; CHECK-LABEL: define void @loud(
; CHECK: body:
; CHECK: call void @other()
; CHECK-NOT: farheap.count
; CHECK: ret void
define void @loud(i64 %n) {
entry:
  br label %body
body:
  %i = phi i64 [ 0, %entry ], [ %next, %body ]
  call void @other()
  %next = add nuw nsw i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %body, label %done
done:
  ret void
}

declare void @other()

; SAID: known: recorded: contexts; 1 loops, 1 by turns, 1 pointers
; SAID: chain: recorded: contexts; 1 loops, 0 by turns, 1 pointers
; SAID: loud: recorded: contexts; 1 loops, 0 by turns, 0 pointers
