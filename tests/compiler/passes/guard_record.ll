; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; Guards that make a profile count how often they are passed, and how often the page was away.
; RUN: opt -load-pass-plugin=%plugin -passes=farheap,verify -farheap-level=guard -farheap-guards=record -S %s | FileCheck %s
source_filename = "record.c"

; CHECK: @[[NAME:.*]] = private constant [11 x i8] c"record.c;f\00"
; CHECK: @[[COUNTERS:.*]] = private global [1 x [2 x i64]] zeroinitializer, align 8
; CHECK: @[[RECORD:.*]] = private global { ptr, i64, i64, ptr, ptr } { ptr @[[NAME]], i64 1, i64 {{-?[0-9]+}}, ptr @[[COUNTERS]], ptr @__farheap_link_with_ffar_guard_record }, section "farheap_guards", align 8
; CHECK: @llvm.compiler.used = {{.*}}@[[RECORD]]
; CHECK-LABEL: define internal i64 @f(
; CHECK: atomicrmw add ptr @[[COUNTERS]], i64 1 monotonic
; CHECK: icmp ult
; CHECK: atomicrmw add ptr getelementptr {{.*}}@[[COUNTERS]], {{.*}} i64 1 monotonic
; CHECK-NEXT: call {{.*}}@__farheap_miss
; CHECK: load i64, ptr %p
define internal i64 @f(ptr %p) {
  %a = load i64, ptr %p
  ret i64 %a
}
@keep = global ptr @f
