; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; The stack, globals and other address spaces stay as they are, also behind a choice between them.
; RUN: opt -load-pass-plugin=%plugin -passes=farheap,verify -farheap-level=translate-heap -S %s | FileCheck %s

@global = global [4 x i32] zeroinitializer
@own = thread_local global i32 0

; CHECK-NOT: __farheap
define i32 @near(i64 %i, i1 %which, ptr byval([2 x i32]) %value, ptr addrspace(257) %segment) {
entry:
  %local = alloca [4 x i32]
  %at = getelementptr i32, ptr %local, i64 %i
  store i32 1, ptr %at
  %in = getelementptr i32, ptr @global, i64 %i
  br i1 %which, label %a, label %b
a:
  br label %b
b:
  %one = phi ptr [ %at, %entry ], [ %in, %a ]
  %x = load i32, ptr %one
  %two = select i1 %which, ptr %value, ptr %one
  store i32 %x, ptr %two
  %tls = call ptr @llvm.threadlocal.address.p0(ptr @own)
  store i32 %x, ptr %tls
  store i32 %x, ptr addrspace(257) %segment
  call void @llvm.memset.p0.i64(ptr %local, i8 0, i64 16, i1 false)
  ret i32 %x
}

; And what is left is.
define i32 @left(ptr %p) "farheap-done" {
  %x = load i32, ptr %p
  ret i32 %x
}
