; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; A second run, as in the linker, adds nothing: neither to the functions nor to what the first has made. With places of
; the source, the call has that of the access, or the function's, without which the linker could not inline it.
; RUN: opt -load-pass-plugin=%plugin -passes=farheap,farheap,verify -farheap-level=guard -S %s | FileCheck %s
; CHECK-LABEL: define i64 @f(
; CHECK-COUNT-1: call {{.*}}@__farheap_miss.{{.*}}, !dbg ![[PLACE:[0-9]+]]
; CHECK-NOT: @__farheap_miss.{{.*}}, !dbg
; CHECK-LABEL: define i64 @g(
; CHECK: call {{.*}}@__farheap_miss.{{.*}}, !dbg ![[NONE:[0-9]+]]
; CHECK: define linkonce_odr hidden void @__farheap_miss.
; CHECK-NOT: @__farheap_view
; CHECK: ![[PLACE]] = !DILocation(line: 8, column: 5
; CHECK: ![[NONE]] = !DILocation(line: 0,
define i64 @f(ptr %p) !dbg !4 {
  %a = load i64, ptr %p, !dbg !8
  ret i64 %a, !dbg !8
}
define i64 @g(ptr %p) !dbg !7 {
  %a = load i64, ptr %p
  ret i64 %a
}
!llvm.dbg.cu = !{!0}
!llvm.module.flags = !{!2, !3}
!0 = distinct !DICompileUnit(language: DW_LANG_C11, file: !1, isOptimized: true, emissionKind: LineTablesOnly)
!1 = !DIFile(filename: "f.c", directory: "/source")
!2 = !{i32 7, !"Dwarf Version", i32 5}
!3 = !{i32 2, !"Debug Info Version", i32 3}
!4 = distinct !DISubprogram(name: "f", scope: !1, file: !1, line: 5, type: !5, scopeLine: 5, spFlags: DISPFlagDefinition | DISPFlagOptimized, unit: !0)
!5 = !DISubroutineType(types: !6)
!6 = !{}
!7 = distinct !DISubprogram(name: "g", scope: !1, file: !1, line: 15, type: !5, scopeLine: 15, spFlags: DISPFlagDefinition | DISPFlagOptimized, unit: !0)
!8 = !DILocation(line: 8, column: 5, scope: !4)
