; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; y[i] += x[i]: a range for each array, before the loop, behind one branch.
; RUN: opt -load-pass-plugin=%plugin -passes=farheap -S %s | FileCheck %s

; CHECK-LABEL: define void @add(
; CHECK: entry:
; CHECK: %[[BYTES:.*]] = shl i64 %n, 2
; CHECK: icmp uge i64 %{{.*}}, 1048576
; CHECK: %[[LONG:.*]] = or i1
; CHECK: %[[THERE:.*]] = icmp ne ptr @__farheap_loop, null
; CHECK: and i1 %[[THERE]], %[[LONG]]
; CHECK: br i1 {{.*}} !prof
; CHECK: call void @__farheap_loop(ptr %{{.*}}, i64 %{{.*}}, i64 4, i32 1)
; CHECK-NEXT: call void @__farheap_loop(ptr %{{.*}}, i64 %{{.*}}, i64 4, i32 3)
; CHECK-NEXT: br label
; CHECK: loop:
; CHECK-NOT: call
; CHECK: ret void
; CHECK: declare extern_weak void @__farheap_loop(ptr, i64, i64, i32) #[[OF_HOOK:.*]]
; CHECK: attributes #[[OF_HOOK]] = { cold nounwind willreturn memory(inaccessiblemem: readwrite) }
define void @add(ptr %y, ptr %x, i64 %n) {
entry:
  %some = icmp sgt i64 %n, 0
  br i1 %some, label %before, label %done

before:
  br label %loop

loop:
  %i = phi i64 [ 0, %before ], [ %next, %loop ]
  %px = getelementptr inbounds i32, ptr %x, i64 %i
  %a = load i32, ptr %px
  %py = getelementptr inbounds i32, ptr %y, i64 %i
  %b = load i32, ptr %py
  %sum = add i32 %a, %b
  store i32 %sum, ptr %py
  %next = add nuw nsw i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %done

done:
  ret void
}
