; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; What is looked up gets a look before it; the view is read before the loop, in the order that the header promises. It
; begins where no address of a program is, and is said to the runtime when the module is loaded and unloaded.
; RUN: opt -load-pass-plugin=%plugin -passes=farheap,verify -farheap-level=guard -S %s | FileCheck %s

; CHECK-DAG: $__farheap_view = comdat any
; CHECK-DAG: @__farheap_view = linkonce_odr hidden global { i64, i64, ptr } { i64 -9223372036854775808, i64 0, ptr null }, {{.*}}comdat, align 8
; CHECK-DAG: @llvm.global_ctors = {{.*}} { i32 1, ptr @__farheap_view_begin, ptr @__farheap_view }
; CHECK-DAG: @llvm.global_dtors = {{.*}} { i32 1, ptr @__farheap_view_end, ptr @__farheap_view }

; CHECK-LABEL: define i64 @sum(
; CHECK: entry:
; CHECK: %[[BEGIN:.*]] = load atomic i64, ptr @__farheap_view monotonic, align 8
; CHECK: %[[BYTES:.*]] = load atomic i64, ptr getelementptr {{.*}}@__farheap_view, i{{.*}} acquire, align 8
; CHECK: %[[AWAY:.*]] = load atomic ptr, ptr getelementptr {{.*}}@__farheap_view, i{{.*}} monotonic, align 8
; CHECK: loop:
; CHECK: %[[ADDRESS:.*]] = ptrtoint ptr %p to i64
; CHECK: %[[OFFSET:.*]] = sub i64 %[[ADDRESS]], %[[BEGIN]]
; CHECK: %[[IN:.*]] = icmp ult i64 %[[OFFSET]], %[[BYTES]]
; CHECK: br i1 %[[IN]], label %[[SECOND:.*]], label %[[AFTER:.*]], !prof
; CHECK: [[SECOND]]:
; CHECK: %[[PAGE:.*]] = lshr i64 %[[OFFSET]], 12
; CHECK: %[[PLACE:.*]] = getelementptr i8, ptr %[[AWAY]], i64 %[[PAGE]]
; CHECK: %[[STATE:.*]] = load atomic i8, ptr %[[PLACE]] monotonic, align 1
; CHECK: %[[IS:.*]] = icmp ne i8 %[[STATE]], 0
; CHECK: br i1 %[[IS]], label %[[SLOW:.*]], label %{{.*}}, !prof
; CHECK: [[SLOW]]:
; CHECK: call void @[[MISS:.*]](ptr %p, i32 0)
; CHECK: [[AFTER]]:
; CHECK-NEXT: %v = load i64, ptr %p
; CHECK-NOT: @[[MISS]](
; CHECK: ret i64
define i64 @sum(ptr %first) {
entry:
  br label %loop
loop:
  %p = phi ptr [ %first, %entry ], [ %next, %loop ]
  %s = phi i64 [ 0, %entry ], [ %s.next, %loop ]
  %v = load i64, ptr %p
  %s.next = add i64 %s, %v
  %link = getelementptr i8, ptr %p, i64 8
  %next = load ptr, ptr %link
  %end = icmp eq ptr %next, null
  br i1 %end, label %done, label %loop
done:
  ret i64 %s.next
}

; CHECK: define linkonce_odr hidden void @__farheap_view_begin() {{.*}}comdat($__farheap_view) {
; CHECK: icmp ne ptr @__farheap_residency, null
; CHECK: call void @__farheap_residency(ptr @__farheap_view)
; CHECK: declare extern_weak void @__farheap_residency(ptr)
; CHECK: define linkonce_odr hidden void @__farheap_view_end()
; CHECK: call void @__farheap_residency_gone(ptr @__farheap_view)
; CHECK: define linkonce_odr hidden void @__farheap_miss.{{.*}}(ptr %0, i32 %1)
; CHECK: call void @__farheap_fetch(ptr %0, i32 %1)
; CHECK: declare extern_weak void @__farheap_fetch(ptr, i32)
