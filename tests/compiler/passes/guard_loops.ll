; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; In loops: what stays the same is looked at before, unless the loop calls something; what advances evenly is a hint's,
; or, where none can be given, looked at before and where it enters a page.
; RUN: opt -load-pass-plugin=%plugin -passes=farheap,verify -farheap-level=guard -S %s | FileCheck %s
; RUN: opt -load-pass-plugin=%plugin -passes=farheap -farheap-level=guard -farheap-report=- -disable-output %s 2>&1 | FileCheck %s --check-prefix=SAYS

declare void @work()

; SAYS-DAG: same: guarded: store: before the loop, for writing; 1 guards, 1 accesses
; CHECK-LABEL: define void @same(
; CHECK: call {{.*}}@__farheap_miss.{{.*}}i32 1)
; CHECK: loop:
; CHECK-NOT: @__farheap_miss
; CHECK: ret void
define void @same(ptr %p, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  store i64 %i, ptr %p
  %next = add nuw nsw i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}

; SAYS-DAG: same_with_calls: guarded: store: before the access, for writing; 1 guards, 1 accesses
; CHECK-LABEL: define void @same_with_calls(
; CHECK: entry:
; CHECK-NOT: @__farheap_view
; CHECK: loop:
; CHECK: load atomic i64, ptr @__farheap_view
; CHECK: call {{.*}}@__farheap_miss
; CHECK: store i64 %i, ptr %p
define void @same_with_calls(ptr %p, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  store i64 %i, ptr %p
  call void @work()
  %next = add nuw nsw i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}

; Not in each turn: not before the loop.
; SAYS-DAG: same_at_times: guarded: store: before the access, for writing; 1 guards, 1 accesses
define void @same_at_times(ptr %p, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %turned ]
  %odd = trunc i64 %i to i1
  br i1 %odd, label %write, label %turned
write:
  store i64 %i, ptr %p
  br label %turned
turned:
  %next = add nuw nsw i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}

; SAYS-DAG: hinted: hinted: writes, stride 8; 1 accesses
; SAYS-NOT: hinted: guarded
; CHECK-LABEL: define void @hinted(
; CHECK: call void @__farheap_loop
; CHECK-NOT: @__farheap_miss
; CHECK: ret void
define void @hinted(ptr %p, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %at = getelementptr inbounds i64, ptr %p, i64 %i
  store i64 %i, ptr %at
  %next = add nuw nsw i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}

; A page each time: the hint brings nothing, and each access has its guard.
; SAYS-DAG: pages: hinted: writes, stride 4096; 1 accesses
; SAYS-DAG: pages: guarded: store: before the access, for writing; 1 guards, 1 accesses
define void @pages(ptr %p, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %at = getelementptr inbounds [4096 x i8], ptr %p, i64 %i
  store i64 %i, ptr %at
  %next = add nuw nsw i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}

; SAYS-DAG: search: guarded: load: where it enters a page; 1 guards, 1 accesses
; CHECK-LABEL: define i64 @search(
; CHECK: entry:
; CHECK: call {{.*}}@__farheap_miss
; CHECK: loop:
; CHECK: %[[ADDRESS:.*]] = ptrtoint ptr %at to i64
; CHECK: %[[IN_PAGE:.*]] = and i64 %[[ADDRESS]], 4088
; CHECK: %[[FIRST:.*]] = icmp eq i64 %[[IN_PAGE]], 0
; CHECK: br i1 %[[FIRST]], label %[[LOOK:.*]], label %[[AFTER:.*]], !prof
; CHECK: [[LOOK]]:
; CHECK: sub i64 %[[ADDRESS]],
; CHECK: [[AFTER]]:
; CHECK: load i64, ptr %at
; CHECK: ret i64
define i64 @search(ptr %p, i64 %key) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %at = getelementptr inbounds i64, ptr %p, i64 %i
  %v = load i64, ptr %at
  %next = add nuw nsw i64 %i, 1
  %found = icmp eq i64 %v, %key
  br i1 %found, label %done, label %loop
done:
  ret i64 %i
}

; Backward, and by no power of two: 24 bytes below a page's end.
; CHECK-LABEL: define ptr @backward(
; CHECK: loop:
; CHECK: %[[ADDRESS:.*]] = ptrtoint ptr %at to i64
; CHECK: %[[UP:.*]] = add i64 %[[ADDRESS]], 24
; CHECK: %[[IN_PAGE:.*]] = and i64 %[[UP]], 4095
; CHECK: icmp ult i64 %[[IN_PAGE]], 24
; CHECK: ret ptr
define ptr @backward(ptr %p, i64 %key) {
entry:
  br label %loop
loop:
  %at = phi ptr [ %p, %entry ], [ %next, %loop ]
  %v = load i64, ptr %at
  %next = getelementptr inbounds i8, ptr %at, i64 -24
  %found = icmp eq i64 %v, %key
  br i1 %found, label %done, label %loop
done:
  ret ptr %at
}

; Never more than a page: a look at its begin is enough.
; SAYS-DAG: short: guarded: load: before the loop; 1 guards, 1 accesses
; CHECK-LABEL: define i64 @short(
; CHECK: call {{.*}}@__farheap_miss
; CHECK: loop:
; CHECK-NOT: @__farheap_miss
; CHECK: ret i64
define i64 @short(ptr %p) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %s = phi i64 [ 0, %entry ], [ %sum, %loop ]
  %at = getelementptr inbounds i64, ptr %p, i64 %i
  %v = load i64, ptr %at
  %sum = add i64 %s, %v
  %next = add nuw nsw i64 %i, 1
  %more = icmp ult i64 %next, 8
  br i1 %more, label %loop, label %done
done:
  ret i64 %sum
}

; Four copies of a body: one look, taken from the one that comes to the next page first.
; SAYS-DAG: copies: guarded: load: where it enters a page; 1 guards, 2 accesses
; CHECK-LABEL: define i64 @copies(
; CHECK: loop:
; CHECK: %[[ADDRESS:.*]] = ptrtoint ptr %at to i64
; CHECK: %[[AHEAD:.*]] = add i64 %[[ADDRESS]], 8
; CHECK: and i64 %[[AHEAD]], 4080
; CHECK: ret i64
define i64 @copies(ptr %p, i64 %key) {
entry:
  br label %loop
loop:
  %at = phi ptr [ %p, %entry ], [ %next, %loop ]
  %v = load i64, ptr %at
  %second = getelementptr inbounds i8, ptr %at, i64 8
  %w = load i64, ptr %second
  %both = add i64 %v, %w
  %next = getelementptr inbounds i8, ptr %at, i64 16
  %found = icmp eq i64 %both, %key
  br i1 %found, label %done, label %loop
done:
  ret i64 %both
}
