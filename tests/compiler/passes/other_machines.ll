; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; A program for another machine is refused where it would have to be linked to a runtime that is none for it; hints and
; guards do no harm there.
; RUN: sed 's/TRIPLE/aarch64-unknown-linux-gnu/; s/LAYOUT/e-m:e-i8:8:32-i16:16:32-i64:64-i128:128-n32:64-S128/' %s > %t.arm.ll
; RUN: sed 's/TRIPLE/i386-pc-linux-gnu/; s/LAYOUT/e-m:e-p:32:32-p270:32:32-p271:32:32-p272:64:64-i128:128-f64:32:64-f80:32-n8:16:32-S128/' %s > %t.i386.ll
; RUN: sed 's/TRIPLE/x86_64-pc-linux-gnux32/; s/LAYOUT/e-m:e-p:32:32-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128/' %s > %t.x32.ll
; RUN: for i in arm i386 x32; do for level in translate-heap translate-all record "guard -farheap-guards=record" "count -farheap-executed"; do not opt -load-pass-plugin=%plugin -passes=farheap -farheap-level=$level -disable-output %t.$i.ll 2>&1 || exit 1; done; done | FileCheck %s --check-prefix=REFUSED
; RUN: opt -load-pass-plugin=%plugin -passes=farheap,verify -farheap-level=guard -S %t.arm.ll | FileCheck %s --check-prefix=ARM
; RUN: opt -load-pass-plugin=%plugin -passes=farheap,verify -farheap-level=guard -farheap-report=- -S %t.i386.ll 2>&1 | FileCheck %s --check-prefix=SMALL
; RUN: opt -load-pass-plugin=%plugin -passes=farheap,verify -farheap-level=hint -S %t.i386.ll 2>&1 | FileCheck %s --check-prefix=SILENT

; REFUSED-COUNT-15: Farheap: -ffar{{[-=].*}}Linux on x86-64
; ARM: call void @__farheap_miss
; ARM-NOT: vzeroupper
; SMALL: nothing is guarded: the target i386-pc-linux-gnu has no addresses of 64 bits
; SMALL: sum: left: the target i386-pc-linux-gnu has no addresses of 64 bits
; SMALL-NOT: __farheap
; SILENT-NOT: warning
; SILENT-NOT: __farheap
target datalayout = "LAYOUT"
target triple = "TRIPLE"

define i64 @sum(ptr %p) {
  %v = load i64, ptr %p
  ret i64 %v
}
