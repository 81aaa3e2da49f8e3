; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; Functions are chosen by name, mangled or not, by file, and by attribute.
; RUN: opt -load-pass-plugin=%plugin -passes=farheap -S %s | FileCheck %s --check-prefixes=ONE,TWO,NOT-LEFT
; RUN: opt -load-pass-plugin=%plugin -passes=farheap -farheap-only=graph::* -S %s | FileCheck %s --check-prefixes=ONE,NOT-TWO
; RUN: opt -load-pass-plugin=%plugin -passes=farheap -farheap-leave=_ZN5graph* -S %s | FileCheck %s --check-prefixes=NOT-ONE,TWO
; RUN: opt -load-pass-plugin=%plugin -passes=farheap -farheap-only=other.c,lists.cpp -S %s | FileCheck %s --check-prefixes=ONE,TWO
; RUN: opt -load-pass-plugin=%plugin -passes=farheap -farheap-only=other.c -S %s | FileCheck %s --check-prefixes=NOT-ONE,NOT-TWO
; RUN: opt -load-pass-plugin=%plugin -passes=farheap -farheap-level=none -S %s | FileCheck %s --check-prefixes=NOT-ONE,NOT-TWO
; RUN: not opt -load-pass-plugin=%plugin -passes=farheap -farheap-leave=a[ -disable-output %s 2>&1 | FileCheck %s --check-prefix=WRONG
; RUN: opt -load-pass-plugin=%plugin -passes=farheap -farheap-report=- -disable-output %s 2>&1 | FileCheck %s --check-prefix=SAYS

; ONE-LABEL: define void @_ZN5graph4fillEPcm(
; ONE: call void @__farheap_loop
; NOT-ONE-LABEL: define void @_ZN5graph4fillEPcm(
; NOT-ONE-NOT: call void
; TWO-LABEL: define void @plain(
; TWO: call void @__farheap_loop
; NOT-TWO-LABEL: define void @plain(
; NOT-TWO-NOT: call void
; NOT-LEFT-LABEL: define void @left(
; NOT-LEFT-NOT: call void
; WRONG: Farheap: -farheap-leave: the pattern 'a[' is wrong:
; SAYS: left: left: it says farheap_leave
source_filename = "source/lists.cpp"
@text = private constant [14 x i8] c"farheap_leave\00"
@file = private constant [10 x i8] c"lists.cpp\00"
@llvm.global.annotations = appending global [1 x { ptr, ptr, ptr, i32, ptr }] [{ ptr, ptr, ptr, i32, ptr } { ptr @left, ptr @text, ptr @file, i32 3, ptr null }], section "llvm.metadata"

define void @_ZN5graph4fillEPcm(ptr %p, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %at = getelementptr inbounds i8, ptr %p, i64 %i
  store i8 0, ptr %at
  %next = add nuw nsw i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}

define void @plain(ptr %p, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %at = getelementptr inbounds i8, ptr %p, i64 %i
  store i8 0, ptr %at
  %next = add nuw nsw i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}

define void @left(ptr %p, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %at = getelementptr inbounds i8, ptr %p, i64 %i
  store i8 0, ptr %at
  %next = add nuw nsw i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}
