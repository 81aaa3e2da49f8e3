; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; The slow way keeps the registers that the function has: one for each kind of processor, of a convention that saves
; vectors; where there are none, and elsewhere than on x86-64, it is an ordinary call.
; RUN: opt -load-pass-plugin=%plugin -passes=farheap,verify -farheap-level=guard -S %s | FileCheck %s
; RUN: sed 's/x86_64/aarch64/' %s > %t.arm.ll
; RUN: opt -load-pass-plugin=%plugin -passes=farheap,verify -farheap-level=guard -S %t.arm.ll | FileCheck %s --check-prefix=ARM
; RUN: opt -load-pass-plugin=%plugin -passes=farheap -farheap-level=guard -S %s | llc -relocation-model=pic | FileCheck %s --check-prefix=CODE
target triple = "x86_64-pc-linux-gnu"

; CHECK-LABEL: @plain(
; CHECK: call preserve_allcc void @__farheap_miss.[[PLAIN:[0-9A-F]+]](ptr %p, i32 0)
; CHECK-LABEL: @wide(
; CHECK: call preserve_allcc void @__farheap_miss.[[WIDE:[0-9A-F]+]](ptr %p, i32 0)
; CHECK-LABEL: @kernel(
; CHECK: call void @__farheap_miss.[[KERNEL:[0-9A-F]+]](ptr %p, i32 0)
; CHECK-DAG: define linkonce_odr hidden preserve_allcc void @__farheap_miss.[[PLAIN]]({{.*}} #[[A:[0-9]+]]
; CHECK-DAG: define linkonce_odr hidden preserve_allcc void @__farheap_miss.[[WIDE]]({{.*}} #[[B:[0-9]+]]
; CHECK-DAG: define linkonce_odr hidden void @__farheap_miss.[[KERNEL]](
; CHECK-DAG: attributes #[[B]] = { {{.*}}"target-features"="+avx,-vzeroupper"

; ARM-NOT: preserve_allcc

; What keeps its registers stores 16 halves of vectors without AVX, and whole ones with it.
; CODE-LABEL: wide:
; CODE: callq __farheap_miss.[[WIDE:[0-9A-F]+]]
; CODE: __farheap_miss.[[WIDE]]:
; CODE-COUNT-16: vmov{{.*}} %ymm{{[0-9]+}}, {{.*}}(%rsp)
; CODE: callq{{.*}}__farheap_fetch
; CODE-COUNT-16: vmov{{.*}}(%rsp), %ymm
; Not even at the end.
; CODE-NOT: vzero
; CODE: retq
define i64 @plain(ptr %p) {
  %v = load i64, ptr %p
  ret i64 %v
}
define <4 x double> @wide(ptr %p, <4 x double> %x) #0 {
  %v = load double, ptr %p
  %w = insertelement <4 x double> %x, double %v, i32 0
  ret <4 x double> %w
}
define i64 @kernel(ptr %p) #1 {
  %v = load i64, ptr %p
  ret i64 %v
}
attributes #0 = { "target-features"="+avx" }
attributes #1 = { noimplicitfloat "target-features"="-sse,-sse2" }
