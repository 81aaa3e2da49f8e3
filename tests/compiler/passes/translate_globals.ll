; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; -farheap-globals: variables are found by a pointer, which a constructor turns to the far heap; what they begin with is
; relocated. What must be local stays, and is reported.
; RUN: opt -load-pass-plugin=%plugin -passes=farheap,verify -farheap-level=translate-heap -farheap-globals -S %s | FileCheck %s
; RUN: opt -load-pass-plugin=%plugin -passes=farheap,verify -farheap-level=translate-all -S %s | FileCheck %s
; RUN: opt -load-pass-plugin=%plugin -passes=farheap,farheap,verify -farheap-level=translate-all -S %s | FileCheck %s
; RUN: opt -load-pass-plugin=%plugin -passes=farheap -farheap-level=translate-all -farheap-report=- -disable-output %s 2>&1 | FileCheck --check-prefix=REPORT %s

; Others may know it: it has pages of its own, that can be closed.
; CHECK-DAG: @known = global { i32, [4092 x i8] } { i32 7, [4092 x i8] zeroinitializer }, align 4096
; CHECK-DAG: @known.farheap = global ptr @known
; CHECK-DAG: @known.farheap.own = internal alias {{.*}}, ptr @known
; REPORT: known: far: 4 bytes
@known = global i32 7
; CHECK-DAG: @own = internal global [4 x i32] zeroinitializer
; CHECK-DAG: @own.farheap = internal global ptr @own
@own = internal global [4 x i32] zeroinitializer
; CHECK-DAG: @declared.farheap = extern_weak global ptr
; CHECK-DAG: @declared.farheap.local = private global ptr @declared
@declared = external global i32

; A constant that holds an address of one is no constant any more, and stays where it is.
; CHECK-DAG: @table = internal global [3 x ptr] [ptr @known, ptr null, ptr getelementptr
@table = internal constant [3 x ptr] [ptr @known, ptr null, ptr getelementptr (i32, ptr @own, i64 2)]
; CHECK-DAG: @constant = constant i32 5
@constant = constant i32 5

; REPORT-DAG: own_of_thread: local: it is of a thread
@own_of_thread = thread_local global i32 0
; REPORT-DAG: mine: local: it is in a section
@mine = global i32 0, section "mine"
; REPORT-DAG: inline: local: another module's may take its place
@inline = linkonce_odr global i32 0
; REPORT-DAG: given: local: its address goes to unknown
@given = internal global i32 0
; REPORT-DAG: lock: local: it is of a library's type
%union.pthread_mutex_t = type { [40 x i8] }
@lock = internal global [2 x { i32, %union.pthread_mutex_t }] zeroinitializer
; REPORT-DAG: in_template: local: its address is in template, which cannot be changed
@in_template = internal global i32 0
@template = linkonce_odr constant ptr @in_template
; REPORT-DAG: named_twice: local: it has another name, too
@named_twice = global i32 0
@other = alias i32, ptr @named_twice
; REPORT-DAG: by_left: local: it is used in left, which is not translated
@by_left = global i32 0
; REPORT-DAG: kept: local: its address is in llvm.used
@kept = internal global i32 0
@llvm.used = appending global [1 x ptr] [ptr @kept], section "llvm.metadata"
@llvm.global.annotations = appending global [1 x { ptr, ptr, ptr, i32, ptr }] [{ ptr, ptr, ptr, i32, ptr } { ptr @left, ptr @leave, ptr @leave, i32 1, ptr null }], section "llvm.metadata"
@leave = private constant [14 x i8] c"farheap_leave\00", section "llvm.metadata"

; CHECK-DAG: @llvm.global_ctors = {{.*}}{ i32 1, ptr @farheap.move, ptr null }, { i32, ptr, ptr } { i32 2, ptr @farheap.relocate, ptr null }

; CHECK-LABEL: define i32 @uses(
; CHECK-DAG: %[[OWN:.*]] = load ptr, ptr @own.farheap
; CHECK-DAG: %[[KNOWN:.*]] = load ptr, ptr @known.farheap
; CHECK-DAG: %[[SLOT:.*]] = select i1 {{.*}}, ptr @declared.farheap.local, ptr @declared.farheap
; CHECK-DAG: %[[DECLARED:.*]] = load ptr, ptr %[[SLOT]]
; CHECK: call void @__farheap_get(ptr %farheap.copy, ptr %[[KNOWN]], i64 4)
; CHECK: %[[THIRD:.*]] = getelementptr i32, ptr %[[OWN]], i64 3
; CHECK: call void @__farheap_put(ptr %[[THIRD]], ptr %farheap.copy, i64 4)
; CHECK: call void @__farheap_get(ptr %farheap.copy, ptr %[[DECLARED]], i64 4)
define i32 @uses() {
  %x = load i32, ptr @known
  store i32 %x, ptr getelementptr (i32, ptr @own, i64 3)
  %y = load i32, ptr @declared
  call void @unknown(ptr @given)
  store i32 0, ptr @by_left
  ret i32 %y
}

define void @left() {
  store i32 1, ptr @by_left
  ret void
}
declare void @unknown(ptr)

; CHECK-LABEL: define internal void @farheap.move(
; CHECK: call void @__farheap_move(ptr @known.farheap, ptr @known, ptr @known.farheap.own, i64 4, i64 4, i64 4096)
; CHECK: call void @__farheap_move(ptr @own.farheap, ptr @own, ptr @own, i64 16, i64 4, i64 0)

; CHECK-LABEL: define internal void @farheap.relocate(
; CHECK: store ptr %known, ptr %[[COPY:.*]],
; CHECK: call void @__farheap_copy(ptr @table, ptr %[[COPY]], i64 8)
; CHECK: call void @__farheap_copy(ptr getelementptr {{.*}}(i8, ptr @table, i64 16), ptr
