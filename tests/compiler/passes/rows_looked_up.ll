; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; The rows lie wherever a table says: each is said before its own loop; the table, before the loop over it.
; RUN: opt -load-pass-plugin=%plugin -passes=farheap -S %s | FileCheck %s

; CHECK-LABEL: define void @clear(
; CHECK: call void @__farheap_loop(ptr %{{.*}}, i64 %{{.*}}, i64 8, i32 1)
; CHECK: rows:
; CHECK: %row = load ptr
; CHECK: call void @__farheap_loop(ptr %{{.*}}, i64 %{{.*}}, i64 1, i32 2)
; CHECK: columns:
; CHECK-NOT: call
; CHECK: ret void
define void @clear(ptr %table, i64 %n, i64 %m) {
entry:
  br label %rows

rows:
  %i = phi i64 [ 0, %entry ], [ %i.next, %row.done ]
  %place = getelementptr inbounds ptr, ptr %table, i64 %i
  %row = load ptr, ptr %place
  br label %columns

columns:
  %j = phi i64 [ 0, %rows ], [ %j.next, %columns ]
  %at = getelementptr inbounds i8, ptr %row, i64 %j
  store i8 0, ptr %at
  %j.next = add nuw nsw i64 %j, 1
  %j.more = icmp ult i64 %j.next, %m
  br i1 %j.more, label %columns, label %row.done

row.done:
  %i.next = add nuw nsw i64 %i, 1
  %i.more = icmp ult i64 %i.next, %n
  br i1 %i.more, label %rows, label %done

done:
  ret void
}
