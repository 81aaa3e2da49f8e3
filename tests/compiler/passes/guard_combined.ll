; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; One look for the fields of an object, also across branches; for writing, if it is certain to come to that. After a call,
; 512 bytes further on, or where one way has not been there, another one.
; RUN: opt -load-pass-plugin=%plugin -passes=farheap,verify -farheap-level=guard -S %s | FileCheck %s
; RUN: opt -load-pass-plugin=%plugin -passes=farheap -farheap-level=guard -farheap-report=- -disable-output %s 2>&1 | FileCheck %s --check-prefix=SAYS

declare void @work()
declare double @sin(double) memory(none)

; SAYS: fields: guarded: load: before the access, for writing; 1 guards, 3 accesses
; CHECK-LABEL: define void @fields(
; CHECK: call {{.*}}@__farheap_miss.{{.*}}(ptr %p, i32 1)
; CHECK-NOT: @__farheap_miss
; CHECK: ret void
define void @fields(ptr %p) {
  %a = load i64, ptr %p
  %second = getelementptr i8, ptr %p, i64 504
  %b = load i64, ptr %second
  %sum = add i64 %a, %b
  %third = getelementptr i8, ptr %p, i64 16
  store i64 %sum, ptr %third
  ret void
}

; CHECK-LABEL: define i64 @later(
; CHECK: call {{.*}}@__farheap_miss.{{.*}}(ptr %p, i32 0)
; CHECK: call void @work()
; CHECK: call {{.*}}@__farheap_miss.{{.*}}(ptr %second, i32 0)
; CHECK-NOT: @__farheap_miss
; CHECK: ret i64
define i64 @later(ptr %p) {
  %a = load i64, ptr %p
  call void @work()
  %second = getelementptr i8, ptr %p, i64 8
  %b = load i64, ptr %second
  %sum = add i64 %a, %b
  ret i64 %sum
}

; CHECK-LABEL: define double @mathematics(
; CHECK: @__farheap_miss
; CHECK-NOT: @__farheap_miss
; CHECK: ret double
define double @mathematics(ptr %p) {
  %a = load double, ptr %p
  %s = call double @sin(double %a) memory(none)
  %second = getelementptr i8, ptr %p, i64 8
  %b = load double, ptr %second
  %sum = fadd double %s, %b
  ret double %sum
}

; CHECK-LABEL: define i64 @far_apart(
; CHECK: call {{.*}}@__farheap_miss.{{.*}}(ptr %p, i32 0)
; CHECK: call {{.*}}@__farheap_miss.{{.*}}(ptr %second, i32 0)
; CHECK: ret i64
define i64 @far_apart(ptr %p) {
  %a = load i64, ptr %p
  %second = getelementptr i8, ptr %p, i64 512
  %b = load i64, ptr %second
  %sum = add i64 %a, %b
  ret i64 %sum
}

; Both ways have looked.
; CHECK-LABEL: define i64 @both(
; CHECK: left:
; CHECK: @__farheap_miss
; CHECK: right:
; CHECK: @__farheap_miss
; CHECK: done:
; CHECK-NOT: @__farheap_miss
; CHECK: ret i64
define i64 @both(ptr %p, i1 %which) {
  br i1 %which, label %left, label %right
left:
  %a = load i64, ptr %p
  br label %done
right:
  %second = getelementptr i8, ptr %p, i64 8
  store i64 1, ptr %second
  br label %done
done:
  %third = getelementptr i8, ptr %p, i64 16
  %c = load i64, ptr %third
  ret i64 %c
}

; CHECK-LABEL: define i64 @one(
; CHECK: left:
; CHECK: @__farheap_miss
; CHECK: done:
; CHECK: @__farheap_miss
; CHECK: ret i64
define i64 @one(ptr %p, i1 %which) {
  br i1 %which, label %left, label %done
left:
  %a = load i64, ptr %p
  br label %done
done:
  %third = getelementptr i8, ptr %p, i64 16
  %c = load i64, ptr %third
  ret i64 %c
}
