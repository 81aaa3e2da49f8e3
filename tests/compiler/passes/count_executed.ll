; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; What is executed is counted block by block, in a record that the linker puts together with the others.
; RUN: opt -load-pass-plugin=%plugin -passes=farheap -farheap-level=count -farheap-executed -S %s | FileCheck %s

; CHECK: @[[NAME:.*]] = private unnamed_addr constant [2 x i8] c"f\00"
; CHECK: @[[RECORD:.*]] = private global { ptr, i64, i64, i64, i64 } { ptr @[[NAME]], i64 0, i64 0, i64 0, i64 0 }, section "farheap_counts", align 8
; CHECK: @llvm.compiler.used = {{.*}}@[[RECORD]]
; CHECK-LABEL: define i32 @f(
; CHECK: atomicrmw add ptr getelementptr {{.*}}@[[RECORD]]{{.*}} i64 1 monotonic
; CHECK: atomicrmw add ptr getelementptr {{.*}}@[[RECORD]]{{.*}} i64 1 monotonic
; CHECK: br i1
; CHECK: more:
; CHECK: atomicrmw add ptr getelementptr {{.*}}@[[RECORD]]{{.*}} i64 2 monotonic
; CHECK: atomicrmw add ptr getelementptr {{.*}}@[[RECORD]]{{.*}} i64 1 monotonic
; CHECK-NEXT: store
define i32 @f(i1 %go, ptr %p) {
entry:
  br i1 %go, label %more, label %done
more:
  store i32 1, ptr %p
  br label %done
done:
  ret i32 0
}
