; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; What has no translation is a warning that names the function, the place and what to do, and the program's end where
; memory is far. What would be wrong in every mode is an error.
; RUN: opt -load-pass-plugin=%plugin -passes=farheap,verify -farheap-level=translate-heap -S -farheap-only=assembly %s 2>&1 | FileCheck --check-prefix=ASSEMBLY %s
; RUN: opt -load-pass-plugin=%plugin -passes=farheap,verify -farheap-level=translate-heap -S -farheap-only=bits %s 2>&1 | FileCheck --check-prefix=BITS %s
; RUN: not opt -load-pass-plugin=%plugin -passes=farheap -farheap-level=translate-heap -disable-output -farheap-only=throws %s 2>&1 | FileCheck --check-prefix=THROWS %s
; RUN: opt -load-pass-plugin=%plugin -passes=farheap -farheap-level=translate-heap -disable-output -farheap-only=fine %s

; ASSEMBLY: not translated: assembly, {{.*}}: inline assembly that is given a pointer
; ASSEMBLY: c"assembly, {{.*}}: inline assembly that is given a pointer {{.*}}; leave the function out with -ffar-leave=
; ASSEMBLY-LABEL: define void @assembly(
; ASSEMBLY: %[[FAR:.*]] = icmp ult i64
; ASSEMBLY-NEXT: br i1 %[[FAR]], label %[[END:.*]], label %[[NEAR:[0-9]+]]
; ASSEMBLY: [[END]]:
; ASSEMBLY-NEXT: call void @__farheap_untranslated(ptr @farheap.untranslated)
; ASSEMBLY-NEXT: unreachable
; ASSEMBLY: [[NEAR]]:
; ASSEMBLY-NEXT: call void asm sideeffect
; BITS: not translated: bits, {{.*}}: there is no translation of llvm.masked.expandload{{.*}}; write it without
; BITS: call void @__farheap_untranslated(
; BITS: call <8 x i1> @llvm.masked.expandload
; THROWS: cannot translate: throws, {{.*}}: qsort, whose comparison may throw
define void @assembly(ptr %p) {
  call void asm sideeffect "movl $$1, ($0)", "r,~{memory}"(ptr %p)
  ret void
}
; Lanes that share a byte are not accesses of their own.
define <8 x i1> @bits(ptr %p, <8 x i1> %mask) {
  %x = call <8 x i1> @llvm.masked.expandload.v8i1(ptr %p, <8 x i1> %mask, <8 x i1> zeroinitializer)
  ret <8 x i1> %x
}
define void @throws(ptr %p) personality ptr @__gxx_personality_v0 {
  invoke void @qsort(ptr %p, i64 1, i64 1, ptr @compare) to label %good unwind label %bad
good:
  ret void
bad:
  %pad = landingpad { ptr, i32 } cleanup
  resume { ptr, i32 } %pad
}
define void @fine() {
  %local = alloca i32
  call void asm sideeffect "movl $$1, ($0)", "r,~{memory}"(ptr %local)
  call void asm sideeffect "", "~{memory}"()
  ret void
}
declare i32 @compare(ptr, ptr)
declare void @qsort(ptr, i64, i64, ptr)
declare i32 @__gxx_personality_v0(...)
declare <8 x i1> @llvm.masked.expandload.v8i1(ptr, <8 x i1>, <8 x i1>)
