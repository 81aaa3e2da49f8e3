; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; What allocates, and what the runtime has of the C library, is called by another name, also where its address is taken.
; Functions that only read and write what they are given get copies; all others what they got before.
; RUN: opt -load-pass-plugin=%plugin -passes=farheap,verify -farheap-level=translate-heap -farheap-borrow=known -S %s | FileCheck %s
; RUN: opt -load-pass-plugin=%plugin -passes=farheap -farheap-level=translate-heap -farheap-borrow=known -farheap-report=- -disable-output %s 2>&1 | FileCheck --check-prefix=REPORT %s

; CHECK: @functions = constant [3 x ptr] [ptr @__farheap_malloc, ptr @__farheap_strcmp, ptr @unknown]
@functions = constant [3 x ptr] [ptr @malloc, ptr @strcmp, ptr @unknown]

; CHECK-LABEL: define ptr @allocates(
; CHECK: call ptr @__farheap_malloc(i64 8)
; CHECK: call ptr @__farheap_new(i64 8)
; CHECK: call void @__farheap_free(ptr
; CHECK: call i64 @__farheap_strlen(ptr
; CHECK: select i1 {{.*}}, ptr @__farheap_malloc, ptr @mine
define ptr @allocates(i1 %which) {
  %a = call noalias dereferenceable_or_null(8) ptr @malloc(i64 8) allocsize(0)
  %b = call ptr @_Znwm(i64 8)
  call void @free(ptr %a)
  %n = call i64 @strlen(ptr %b) memory(argmem: read)
  %c = select i1 %which, ptr @malloc, ptr @mine
  ret ptr %c
}

; CHECK-LABEL: define ptr @lends(
; CHECK: %[[A:.*]] = call ptr @__farheap_borrow(ptr %p)
; CHECK: %[[FOUND:.*]] = call ptr @strstr(ptr %[[A]], ptr @text)
; CHECK: %[[RESULT:.*]] = call ptr @__farheap_returned(ptr %[[FOUND]], ptr %[[A]], ptr %p)
; CHECK: call void @__farheap_return(ptr %[[A]], ptr %p)
; CHECK: %[[B:.*]] = call ptr @__farheap_borrow(ptr %p)
; CHECK: call void @known(ptr %[[B]])
; CHECK: call void @unknown(ptr %p)
; CHECK: %[[C:.*]] = call ptr @__farheap_borrow(ptr %p)
; CHECK: call i32 @pthread_create(ptr %[[C]], ptr null, ptr @mine, ptr %p)
; CHECK: ret ptr %[[RESULT]]
; REPORT: lends: borrowed: for strstr; 1 pointers
; REPORT: lends: borrowed: for known; 1 pointers
; REPORT: lends: passed: pointers, as they are, to unknown
@text = constant [2 x i8] c"a\00"
define ptr @lends(ptr %p) {
  %found = call ptr @strstr(ptr %p, ptr @text)
  call void @known(ptr %p)
  call void @unknown(ptr %p)
  %done = call i32 @pthread_create(ptr %p, ptr null, ptr @mine, ptr %p)
  ret ptr %found
}

; CHECK-LABEL: define i32 @waits(
; CHECK: invoke i32 (ptr, ...) @printf(ptr %[[LENT:.*]])
; CHECK: call void @__farheap_return(ptr %[[LENT]], ptr %p)
define i32 @waits(ptr %p) personality ptr @__gxx_personality_v0 {
  %n = invoke i32 (ptr, ...) @printf(ptr %p) to label %good unwind label %bad
good:
  ret i32 %n
bad:
  %pad = landingpad { ptr, i32 } cleanup
  resume { ptr, i32 } %pad
}

; What the module defines itself is its own.
; CHECK-LABEL: define ptr @mine(
; CHECK: call ptr @calloc(i64 1, i64 2)
define ptr @mine(ptr %p) {
  %a = call ptr @calloc(i64 1, i64 2)
  ret ptr %a
}
define ptr @calloc(i64 %a, i64 %b) {
  ret ptr null
}

; Nobody else takes an inline function of translated code for its own.
; CHECK: define linkonce_odr hidden void @inline_function()
; CHECK: define weak_odr void @explicit_instance()
define linkonce_odr void @inline_function() {
  ret void
}
define weak_odr void @explicit_instance() {
  ret void
}

declare ptr @malloc(i64)
declare ptr @_Znwm(i64)
declare void @free(ptr)
declare i64 @strlen(ptr)
declare i32 @strcmp(ptr, ptr)
declare ptr @strstr(ptr, ptr)
declare void @known(ptr)
declare void @unknown(ptr)
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @printf(ptr, ...)
declare i32 @__gxx_personality_v0(...)
