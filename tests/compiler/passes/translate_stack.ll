; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; -farheap-stack: a frame is pushed at the entry and popped at each return; what must be local stays, and is reported.
; RUN: opt -load-pass-plugin=%plugin -passes=farheap,verify -farheap-level=translate-heap -farheap-stack -S %s | FileCheck %s
; RUN: opt -load-pass-plugin=%plugin -passes=farheap,verify -farheap-level=translate-all -S %s | FileCheck %s
; RUN: opt -load-pass-plugin=%plugin -passes=farheap -farheap-level=translate-heap -farheap-stack -farheap-report=- -disable-output %s 2>&1 | FileCheck --check-prefix=REPORT %s

; The frame: 4 bytes, and 8 of alignment 8.
; CHECK-LABEL: define i32 @frame(
; CHECK: %farheap.copy = alloca
; CHECK: %farheap.frame = call ptr @__farheap_push(i64 16, i64 8)
; CHECK: %a = getelementptr i8, ptr %farheap.frame, i64 0
; CHECK: %b = getelementptr i8, ptr %farheap.frame, i64 8
; CHECK-NOT: alloca i32
; CHECK: call void @__farheap_put(ptr %a, ptr %farheap.copy, i64 4)
; CHECK: call i32 @mine(ptr %b)
; CHECK: call void @__farheap_pop(ptr %farheap.frame)
; CHECK-NEXT: ret i32 1
; CHECK: call void @__farheap_pop(ptr %farheap.frame)
; CHECK-NEXT: ret i32 0
; REPORT: frame: far stack: 2 variables, 16 bytes
define i32 @frame(i1 %which) {
  %a = alloca i32
  %b = alloca i64
  store i32 1, ptr %a
  %x = call i32 @mine(ptr %b)
  br i1 %which, label %one, label %two
one:
  ret i32 1
two:
  ret i32 0
}

; What a function that was not translated is given stays local.
; CHECK-LABEL: define void @local(
; CHECK-NOT: __farheap_push
; CHECK: %a = alloca i32
; CHECK: call void @unknown(ptr %a)
; REPORT: local: local: a stays on the stack: its address goes to unknown
define void @local() {
  %a = alloca i32
  call void @unknown(ptr %a)
  ret void
}

; What is lent is far.
; CHECK-LABEL: define void @lent(
; CHECK: %a = getelementptr i8, ptr %farheap.frame, i64 0
; CHECK: %[[LENT:.*]] = call ptr @__farheap_borrow(ptr %a)
; CHECK: call i32 @puts(ptr %[[LENT]])
define void @lent() {
  %a = alloca [8 x i8]
  %x = call i32 @puts(ptr %a)
  ret void
}

; What comes by value is copied; so is what goes by value.
; CHECK-LABEL: define i32 @value(
; CHECK: call void @__farheap_copy(ptr %[[OWN:.*]], ptr %v, i64 8)
; CHECK: call void @__farheap_get(ptr %farheap.copy, ptr %[[OWN]], i64 4)
define i32 @value(ptr byval([2 x i32]) %v) {
  %x = load i32, ptr %v
  ret i32 %x
}

; Marks of the stack are of the far stack. `farheap.last` is where it ends.
; CHECK-LABEL: define void @dynamic(
; CHECK: %farheap.last = alloca ptr
; CHECK: %[[MARK:.*]] = load ptr, ptr %farheap.last
; CHECK: %[[BYTES:.*]] = mul i64 %n, 4
; CHECK: %many = call ptr @__farheap_push(i64 %[[BYTES]], i64 4)
; CHECK: %[[END:.*]] = getelementptr i8, ptr %many, i64 %[[BYTES]]
; CHECK: store ptr %[[END]], ptr %farheap.last
; CHECK: call void @__farheap_pop(ptr %[[MARK]])
; CHECK: store ptr %[[MARK]], ptr %farheap.last
; CHECK: call void @__farheap_pop(ptr %farheap.frame)
; CHECK-NEXT: ret void
define void @dynamic(i64 %n) {
  %mark = call ptr @llvm.stacksave.p0()
  %many = alloca i32, i64 %n
  store i32 1, ptr %many
  call void @llvm.stackrestore.p0(ptr %mark)
  ret void
}

; What was thrown has left frames behind; so has longjmp().
; CHECK-LABEL: define void @catches(
; CHECK: %farheap.end = getelementptr i8, ptr %farheap.frame, i64 0
; CHECK: landingpad
; CHECK-NEXT: catch ptr null
; CHECK-NEXT: call void @__farheap_pop(ptr %farheap.end)
define void @catches() personality ptr @__gxx_personality_v0 {
  invoke void @throws() to label %good unwind label %bad
good:
  ret void
bad:
  %pad = landingpad { ptr, i32 } catch ptr null
  ret void
}

; CHECK-LABEL: define i32 @twice(
; CHECK: %jump = alloca [200 x i8]
; CHECK: %x = call i32 @_setjmp(ptr %jump)
; CHECK-NEXT: call void @__farheap_pop(ptr %farheap.end)
define i32 @twice() {
  %jump = alloca [200 x i8]
  %x = call i32 @_setjmp(ptr %jump) returns_twice
  ret i32 %x
}

; CHECK-LABEL: define i32 @mine(
; CHECK-NOT: __farheap_push
; CHECK: ret i32
define i32 @mine(ptr %p) {
  %x = load i32, ptr %p
  ret i32 %x
}
declare void @unknown(ptr)
declare void @throws()
declare i32 @puts(ptr)
declare i32 @_setjmp(ptr)
declare i32 @__gxx_personality_v0(...)
declare ptr @llvm.stacksave.p0()
declare void @llvm.stackrestore.p0(ptr)
