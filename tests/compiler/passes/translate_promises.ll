; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; What optimisers at link time might rely on is no longer said: nothing may be loaded ahead of the test.
; RUN: opt -load-pass-plugin=%plugin -passes=farheap,verify -farheap-level=translate-heap -S %s | FileCheck %s

; CHECK: define ptr @promised(ptr %p)
; CHECK-NOT: memory(
; CHECK-NOT: dereferenceable
; CHECK-NOT: invariant
; CHECK: load ptr, ptr %p, align 8, !dbg ![[PLACE:[0-9]+]]
; CHECK: ![[PLACE]] = !DILocation(line: 7
define dereferenceable(8) ptr @promised(ptr dereferenceable(16) %p) memory(argmem: read) !dbg !4 {
  %x = load ptr, ptr %p, !dereferenceable !7, !invariant.load !8, !dbg !9
  ret ptr %x
}
!llvm.dbg.cu = !{!0}
!llvm.module.flags = !{!2}
!0 = distinct !DICompileUnit(language: DW_LANG_C11, file: !1, emissionKind: FullDebug)
!1 = !DIFile(filename: "a.c", directory: "/")
!2 = !{i32 2, !"Debug Info Version", i32 3}
!3 = !DISubroutineType(types: !5)
!4 = distinct !DISubprogram(name: "promised", file: !1, line: 6, type: !3, unit: !0, spFlags: DISPFlagDefinition)
!5 = !{null}
!7 = !{i64 8}
!8 = !{}
!9 = !DILocation(line: 7, column: 3, scope: !4)
