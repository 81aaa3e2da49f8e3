; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; The number of turns divides by what may be zero: it is not computed where the program would not. And what may be
; poison is frozen before anything is decided by it.
; RUN: opt -load-pass-plugin=%plugin -passes=farheap -S %s | FileCheck %s
; RUN: opt -load-pass-plugin=%plugin -passes=farheap -farheap-report=- -disable-output %s 2>&1 | FileCheck %s --check-prefix=SAYS

; CHECK-LABEL: define void @divides(
; CHECK: inside:
; CHECK-NEXT: udiv
; CHECK-NOT: udiv
; CHECK: inner:
; CHECK-LABEL: define void @maybe_poison(
; CHECK: %[[COUNT:.*]] = {{.*}}i64 %n
; CHECK: %[[BYTES:.*]] = freeze i64
; CHECK: icmp uge i64 %[[BYTES]], 1048576
; SAYS: divides: left: store: what it touches cannot be computed before the loop without a danger
define void @divides(ptr %p, i64 %n, i64 %d, i1 %go) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %latch ]
  br i1 %go, label %inside, label %latch
inside:
  %turns = udiv i64 %n, %d
  br label %inner
inner:
  %j = phi i64 [ 0, %inside ], [ %j.next, %inner ]
  %at = getelementptr inbounds i64, ptr %p, i64 %j
  store i64 0, ptr %at
  %j.next = add nuw nsw i64 %j, 1
  %j.more = icmp ult i64 %j, %turns
  br i1 %j.more, label %inner, label %latch
latch:
  %next = add nuw nsw i64 %i, 1
  %more = icmp ult i64 %next, 100
  br i1 %more, label %loop, label %done
done:
  ret void
}

declare void @may_exit()

define void @maybe_poison(ptr %p, i64 %n) {
entry:
  %turns = add nuw nsw i64 %n, 1
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  call void @may_exit()
  %at = getelementptr inbounds i64, ptr %p, i64 %i
  store i64 0, ptr %at
  %next = add nuw nsw i64 %i, 1
  %more = icmp ult i64 %next, %turns
  br i1 %more, label %loop, label %done
done:
  ret void
}
