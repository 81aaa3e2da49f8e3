; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; What cannot be translated is an error that names the function, the place and what to do.
; RUN: not opt -load-pass-plugin=%plugin -passes=farheap -farheap-level=translate-heap -disable-output -farheap-only=assembly %s 2>&1 | FileCheck --check-prefix=ASSEMBLY %s
; RUN: not opt -load-pass-plugin=%plugin -passes=farheap -farheap-level=translate-heap -disable-output -farheap-only=gathers %s 2>&1 | FileCheck --check-prefix=GATHERS %s
; RUN: not opt -load-pass-plugin=%plugin -passes=farheap -farheap-level=translate-heap -disable-output -farheap-only=throws %s 2>&1 | FileCheck --check-prefix=THROWS %s
; RUN: not opt -load-pass-plugin=%plugin -passes=farheap -farheap-level=translate-heap -disable-output -farheap-only=twice %s 2>&1 | FileCheck --check-prefix=TWICE %s
; RUN: opt -load-pass-plugin=%plugin -passes=farheap -farheap-level=translate-heap -disable-output -farheap-only=fine %s

; ASSEMBLY: cannot translate: assembly, {{.*}}: inline assembly that is given a pointer
; GATHERS: cannot translate: gathers, {{.*}}: there is no translation of llvm.masked.gather{{.*}}; compile with -fno-vectorize
; THROWS: cannot translate: throws, {{.*}}: qsort, whose comparison may throw
; TWICE: cannot translate: twice, {{.*}}: setjmp() or another function that returns twice
define i32 @twice(ptr %p) {
  %x = call i32 @_setjmp(ptr %p) returns_twice
  ret i32 %x
}
declare i32 @_setjmp(ptr)
define void @assembly(ptr %p) {
  call void asm sideeffect "movl $$1, ($0)", "r,~{memory}"(ptr %p)
  ret void
}
define <2 x i32> @gathers(<2 x ptr> %p) {
  %x = call <2 x i32> @llvm.masked.gather.v2i32.v2p0(<2 x ptr> %p, i32 4, <2 x i1> splat (i1 true), <2 x i32> undef)
  ret <2 x i32> %x
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
declare <2 x i32> @llvm.masked.gather.v2i32.v2p0(<2 x ptr>, i32, <2 x i1>, <2 x i32>)
