; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; A function finds its context below that of its caller, tells it before each call, and puts the caller's back.
; RUN: opt -load-pass-plugin=%plugin -passes=farheap,verify -farheap-level=record -S %s | FileCheck %s

; CHECK: @farheap_context_place = private constant {{.*}} i32 0, i32 0, i32 0, i32 1,
; CHECK: @__farheap_context = external thread_local(initialexec) global { ptr, i64 }
; CHECK-LABEL: define i64 @calls(
; CHECK: %farheap.outer = load ptr, ptr
; CHECK: [[CACHED:%.*]] = icmp eq ptr {{.*}}, @farheap_context_place
; CHECK: [[NODE:%.*]] = select i1 [[CACHED]], ptr {{.*}}, ptr %farheap.outer
; CHECK: [[AT:%.*]] = getelementptr inbounds i8, ptr [[NODE]], i64 72
; CHECK: [[PLACE:%.*]] = load ptr, ptr [[AT]]
; CHECK: icmp eq ptr [[PLACE]], @farheap_context_place
; CHECK: call ptr @__farheap_context_enter(ptr @farheap_context_place)
; CHECK: %farheap.context = phi ptr
; CHECK: call i64 @llvm.readcyclecounter()
; CHECK: call void @__farheap_context_object(
; CHECK: store ptr %farheap.context, ptr
; CHECK-NEXT: call void @other()
; CHECK: call i64 @llvm.readcyclecounter()
; CHECK: store ptr %farheap.outer, ptr
; CHECK-NEXT: ret i64
define i64 @calls(ptr %p) {
  %v = load i64, ptr %p
  call void @other()
  ret i64 %v
}

; A quiet function reads the clock at some visits only, and tells nobody where it is.
; CHECK-LABEL: define i64 @quiet(
; CHECK-NOT: readcyclecounter
; CHECK: call i64 @__farheap_context_begin(
; CHECK: call void @__farheap_context_end(
; CHECK-NOT: store ptr
; CHECK: ret i64
define i64 @quiet(i64 %x) {
  %y = add i64 %x, 1
  ret i64 %y
}

; Nothing can stand behind a musttail call.
; CHECK-LABEL: define void @last(
; CHECK: store ptr %farheap.context, ptr
; CHECK: call i64 @llvm.readcyclecounter()
; CHECK: musttail call void @other()
; CHECK-NEXT: ret void
define void @last() {
  musttail call void @other()
  ret void
}

; What the call returns is returned by a copy of the return, so that the call can become a jump.
; CHECK-LABEL: define i32 @jumps(
; CHECK: %r = tail call i32 @more()
; CHECK-NEXT: ret i32 %r
define i32 @jumps(i1 %go) {
  br i1 %go, label %far, label %near
far:
  %r = tail call i32 @more()
  br label %near
near:
  %v = phi i32 [ %r, %far ], [ 1, %0 ]
  ret i32 %v
}

; Run before the program is put together.
; CHECK-LABEL: define ptr @choose(
; CHECK-NOT: farheap
; CHECK: ret ptr
@chosen = ifunc void (), ptr @choose
define ptr @choose() {
  ret ptr @last
}

declare void @other()
declare i32 @more()
