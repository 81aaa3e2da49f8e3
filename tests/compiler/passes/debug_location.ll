; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; The call has the place of the loop, and the report has it, too.
; RUN: opt -load-pass-plugin=%plugin -passes=farheap -S %s | FileCheck %s
; RUN: opt -load-pass-plugin=%plugin -passes=farheap -farheap-report=- -disable-output %s 2>&1 | FileCheck %s --check-prefix=SAYS

; CHECK: call void @__farheap_loop({{.*}}), !dbg ![[PLACE:[0-9]+]]
; CHECK: ![[PLACE]] = !DILocation(line: 7,
; SAYS: fill.c:7: fill: hinted: writes, stride 1; 1 accesses
define void @fill(ptr %p, i64 %n) !dbg !4 {
entry:
  br label %loop, !dbg !7
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %at = getelementptr inbounds i8, ptr %p, i64 %i, !dbg !8
  store i8 0, ptr %at, !dbg !8
  %next = add nuw nsw i64 %i, 1, !dbg !7
  %more = icmp ult i64 %next, %n, !dbg !7
  br i1 %more, label %loop, label %done, !dbg !7
done:
  ret void, !dbg !9
}

!llvm.dbg.cu = !{!0}
!llvm.module.flags = !{!2, !3}
!0 = distinct !DICompileUnit(language: DW_LANG_C11, file: !1, isOptimized: true, emissionKind: LineTablesOnly)
!1 = !DIFile(filename: "fill.c", directory: "/source")
!2 = !{i32 7, !"Dwarf Version", i32 5}
!3 = !{i32 2, !"Debug Info Version", i32 3}
!4 = distinct !DISubprogram(name: "fill", scope: !1, file: !1, line: 5, type: !5, scopeLine: 5, spFlags: DISPFlagDefinition | DISPFlagOptimized, unit: !0)
!5 = !DISubroutineType(types: !6)
!6 = !{}
!7 = !DILocation(line: 7, column: 3, scope: !4)
!8 = !DILocation(line: 8, column: 5, scope: !4)
!9 = !DILocation(line: 9, column: 1, scope: !4)
