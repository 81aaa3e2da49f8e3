; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; A matrix row by row, and a vector once for each row: both are said before the outer loop, nothing in it.
; RUN: opt -load-pass-plugin=%plugin -passes=farheap -S %s | FileCheck %s

; CHECK-LABEL: define double @product(
; CHECK: br i1 {{.*}}, label %[[SAY:.*]], label %{{.*}}, !prof
; CHECK: [[SAY]]:
; CHECK-NEXT: %[[A:.*]] = freeze ptr %a
; CHECK-NEXT: %[[X:.*]] = freeze ptr %x
; CHECK-NEXT: call void @__farheap_loop(ptr %[[A]], i64 %{{.*}}, i64 8, i32 1)
; CHECK-NEXT: call void @__farheap_loop(ptr %[[X]], i64 %{{.*}}, i64 8, i32 1)
; CHECK: rows:
; CHECK-NOT: call
; CHECK: ret double
define double @product(ptr %a, ptr %x, i64 %n, i64 %m) {
entry:
  %some = icmp sgt i64 %n, 0
  %wide = icmp sgt i64 %m, 0
  %both = and i1 %some, %wide
  br i1 %both, label %before, label %done

before:
  br label %rows

rows:
  %i = phi i64 [ 0, %before ], [ %i.next, %row.done ]
  %outer = phi double [ 0.0, %before ], [ %sum.next, %row.done ]
  %start = mul nsw i64 %i, %m
  %row = getelementptr inbounds double, ptr %a, i64 %start
  br label %columns

columns:
  %j = phi i64 [ 0, %rows ], [ %j.next, %columns ]
  %sum = phi double [ %outer, %rows ], [ %sum.next, %columns ]
  %pa = getelementptr inbounds double, ptr %row, i64 %j
  %va = load double, ptr %pa
  %px = getelementptr inbounds double, ptr %x, i64 %j
  %vx = load double, ptr %px
  %term = fmul double %va, %vx
  %sum.next = fadd double %sum, %term
  %j.next = add nuw nsw i64 %j, 1
  %j.more = icmp slt i64 %j.next, %m
  br i1 %j.more, label %columns, label %row.done

row.done:
  %i.next = add nuw nsw i64 %i, 1
  %i.more = icmp slt i64 %i.next, %n
  br i1 %i.more, label %rows, label %done

done:
  %result = phi double [ 0.0, %entry ], [ %sum.next, %row.done ]
  ret double %result
}
