%struct.entry = type { ptr, i64, ptr, i64, ptr, i64, ptr, i64, i64, i64, i64 }

@tcl_entry = local_unnamed_addr global %struct.entry zeroinitializer, align 64
@slots = internal global [8 x ptr] zeroinitializer, align 64

; Function Attrs: uwtable
define range(i32 0, 3) i32 @tcl_entry_call(ptr nocapture noundef readonly %0, ptr nocapture noundef writeonly %1) local_unnamed_addr #0 {
  %3 = alloca ptr, align 8
  %4 = load atomic i64, ptr @slots monotonic, align 64
  %5 = icmp eq i64 %4, 0
  br i1 %5, label %9, label %6

6:                                                ; preds = %2
  %7 = atomicrmw xchg ptr @slots, i64 0 acquire, align 8
  %8 = icmp eq i64 %7, 0
  br i1 %8, label %9, label %56

9:                                                ; preds = %6, %2
  %10 = load atomic i64, ptr getelementptr inbounds nuw (i8, ptr @slots, i64 8) monotonic, align 8
  %11 = icmp eq i64 %10, 0
  br i1 %11, label %15, label %12

12:                                               ; preds = %9
  %13 = atomicrmw xchg ptr getelementptr inbounds nuw (i8, ptr @slots, i64 8), i64 0 acquire, align 8
  %14 = icmp eq i64 %13, 0
  br i1 %14, label %15, label %56

15:                                               ; preds = %12, %9
  %16 = load atomic i64, ptr getelementptr inbounds nuw (i8, ptr @slots, i64 16) monotonic, align 16
  %17 = icmp eq i64 %16, 0
  br i1 %17, label %21, label %18

18:                                               ; preds = %15
  %19 = atomicrmw xchg ptr getelementptr inbounds nuw (i8, ptr @slots, i64 16), i64 0 acquire, align 8
  %20 = icmp eq i64 %19, 0
  br i1 %20, label %21, label %56

21:                                               ; preds = %18, %15
  %22 = load atomic i64, ptr getelementptr inbounds nuw (i8, ptr @slots, i64 24) monotonic, align 8
  %23 = icmp eq i64 %22, 0
  br i1 %23, label %27, label %24

24:                                               ; preds = %21
  %25 = atomicrmw xchg ptr getelementptr inbounds nuw (i8, ptr @slots, i64 24), i64 0 acquire, align 8
  %26 = icmp eq i64 %25, 0
  br i1 %26, label %27, label %56

27:                                               ; preds = %24, %21
  %28 = load atomic i64, ptr getelementptr inbounds nuw (i8, ptr @slots, i64 32) monotonic, align 32
  %29 = icmp eq i64 %28, 0
  br i1 %29, label %33, label %30

30:                                               ; preds = %27
  %31 = atomicrmw xchg ptr getelementptr inbounds nuw (i8, ptr @slots, i64 32), i64 0 acquire, align 8
  %32 = icmp eq i64 %31, 0
  br i1 %32, label %33, label %56

33:                                               ; preds = %30, %27
  %34 = load atomic i64, ptr getelementptr inbounds nuw (i8, ptr @slots, i64 40) monotonic, align 8
  %35 = icmp eq i64 %34, 0
  br i1 %35, label %39, label %36

36:                                               ; preds = %33
  %37 = atomicrmw xchg ptr getelementptr inbounds nuw (i8, ptr @slots, i64 40), i64 0 acquire, align 8
  %38 = icmp eq i64 %37, 0
  br i1 %38, label %39, label %56

39:                                               ; preds = %36, %33
  %40 = load atomic i64, ptr getelementptr inbounds nuw (i8, ptr @slots, i64 48) monotonic, align 16
  %41 = icmp eq i64 %40, 0
  br i1 %41, label %45, label %42

42:                                               ; preds = %39
  %43 = atomicrmw xchg ptr getelementptr inbounds nuw (i8, ptr @slots, i64 48), i64 0 acquire, align 8
  %44 = icmp eq i64 %43, 0
  br i1 %44, label %45, label %56

45:                                               ; preds = %42, %39
  %46 = load atomic i64, ptr getelementptr inbounds nuw (i8, ptr @slots, i64 56) monotonic, align 8
  %47 = icmp eq i64 %46, 0
  br i1 %47, label %51, label %48

48:                                               ; preds = %45
  %49 = atomicrmw xchg ptr getelementptr inbounds nuw (i8, ptr @slots, i64 56), i64 0 acquire, align 8
  %50 = icmp eq i64 %49, 0
  br i1 %50, label %51, label %56

51:                                               ; preds = %48, %45
  call void @llvm.lifetime.start.p0(i64 8, ptr nonnull %3) #6
  %52 = load i64, ptr getelementptr inbounds nuw (i8, ptr @tcl_entry, i64 24), align 8
  %53 = call i32 @posix_memalign(ptr noundef nonnull %3, i64 noundef 4096, i64 noundef %52) #6
  %54 = icmp eq i32 %53, 0
  br i1 %54, label %59, label %55

55:                                               ; preds = %51
  call void @llvm.lifetime.end.p0(i64 8, ptr nonnull %3) #6
  br label %223

56:                                               ; preds = %6, %12, %18, %24, %30, %36, %42, %48
  %57 = phi i64 [ %7, %6 ], [ %13, %12 ], [ %19, %18 ], [ %25, %24 ], [ %31, %30 ], [ %37, %36 ], [ %43, %42 ], [ %49, %48 ]
  %58 = inttoptr i64 %57 to ptr
  br label %81

59:                                               ; preds = %51
  %60 = load ptr, ptr %3, align 8
  %61 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @tcl_entry, i64 32), align 32
  %62 = load i64, ptr getelementptr inbounds nuw (i8, ptr @tcl_entry, i64 40), align 8
  call void @llvm.memcpy.p0.p0.i64(ptr align 1 %60, ptr align 1 %61, i64 %62, i1 false)
  %63 = load i64, ptr getelementptr inbounds nuw (i8, ptr @tcl_entry, i64 56), align 8
  %64 = icmp sgt i64 %63, 0
  br i1 %64, label %65, label %78

65:                                               ; preds = %59, %65
  %66 = phi i64 [ %75, %65 ], [ 0, %59 ]
  %67 = load ptr, ptr %3, align 8
  %68 = ptrtoint ptr %67 to i64
  %69 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @tcl_entry, i64 48), align 16
  %70 = getelementptr inbounds nuw i64, ptr %69, i64 %66
  %71 = load i64, ptr %70, align 8
  %72 = getelementptr inbounds i64, ptr %60, i64 %71
  %73 = load i64, ptr %72, align 8
  %74 = add nsw i64 %73, %68
  store i64 %74, ptr %72, align 8
  %75 = add nuw nsw i64 %66, 1
  %76 = load i64, ptr getelementptr inbounds nuw (i8, ptr @tcl_entry, i64 56), align 8
  %77 = icmp slt i64 %75, %76
  br i1 %77, label %65, label %78, !llvm.loop !5

78:                                               ; preds = %65, %59
  %79 = load ptr, ptr %3, align 8
  call void @llvm.lifetime.end.p0(i64 8, ptr nonnull %3) #6
  %80 = icmp eq ptr %79, null
  br i1 %80, label %223, label %81

81:                                               ; preds = %56, %78
  %82 = phi ptr [ %58, %56 ], [ %79, %78 ]
  %83 = load i64, ptr getelementptr inbounds nuw (i8, ptr @tcl_entry, i64 72), align 8
  %84 = getelementptr inbounds i8, ptr %82, i64 %83
  %85 = load i64, ptr getelementptr inbounds nuw (i8, ptr @tcl_entry, i64 8), align 8
  %86 = icmp sgt i64 %85, 0
  br i1 %86, label %91, label %87

87:                                               ; preds = %91, %81
  %88 = load ptr, ptr @tcl_entry, align 64
  %89 = call i32 %88(ptr noundef nonnull %82)
  %90 = icmp eq i32 %89, 0
  br i1 %90, label %102, label %152

91:                                               ; preds = %81, %91
  %92 = phi i64 [ %99, %91 ], [ 0, %81 ]
  %93 = getelementptr inbounds nuw i64, ptr %0, i64 %92
  %94 = load i64, ptr %93, align 8
  %95 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @tcl_entry, i64 16), align 16
  %96 = getelementptr inbounds nuw i64, ptr %95, i64 %92
  %97 = load i64, ptr %96, align 8
  %98 = getelementptr inbounds i64, ptr %84, i64 %97
  store i64 %94, ptr %98, align 8
  %99 = add nuw nsw i64 %92, 1
  %100 = load i64, ptr getelementptr inbounds nuw (i8, ptr @tcl_entry, i64 8), align 8
  %101 = icmp slt i64 %99, %100
  br i1 %101, label %91, label %87, !llvm.loop !7

102:                                              ; preds = %87
  %103 = ptrtoint ptr %82 to i64
  %104 = load atomic i64, ptr @slots monotonic, align 64
  %105 = icmp eq i64 %104, 0
  br i1 %105, label %106, label %109

106:                                              ; preds = %102
  %107 = cmpxchg ptr @slots, i64 0, i64 %103 release monotonic, align 8
  %108 = extractvalue { i64, i1 } %107, 1
  br i1 %108, label %223, label %109

109:                                              ; preds = %106, %102
  %110 = load atomic i64, ptr getelementptr inbounds nuw (i8, ptr @slots, i64 8) monotonic, align 8
  %111 = icmp eq i64 %110, 0
  br i1 %111, label %112, label %115

112:                                              ; preds = %109
  %113 = cmpxchg ptr getelementptr inbounds nuw (i8, ptr @slots, i64 8), i64 0, i64 %103 release monotonic, align 8
  %114 = extractvalue { i64, i1 } %113, 1
  br i1 %114, label %223, label %115

115:                                              ; preds = %112, %109
  %116 = load atomic i64, ptr getelementptr inbounds nuw (i8, ptr @slots, i64 16) monotonic, align 16
  %117 = icmp eq i64 %116, 0
  br i1 %117, label %118, label %121

118:                                              ; preds = %115
  %119 = cmpxchg ptr getelementptr inbounds nuw (i8, ptr @slots, i64 16), i64 0, i64 %103 release monotonic, align 8
  %120 = extractvalue { i64, i1 } %119, 1
  br i1 %120, label %223, label %121

121:                                              ; preds = %118, %115
  %122 = load atomic i64, ptr getelementptr inbounds nuw (i8, ptr @slots, i64 24) monotonic, align 8
  %123 = icmp eq i64 %122, 0
  br i1 %123, label %124, label %127

124:                                              ; preds = %121
  %125 = cmpxchg ptr getelementptr inbounds nuw (i8, ptr @slots, i64 24), i64 0, i64 %103 release monotonic, align 8
  %126 = extractvalue { i64, i1 } %125, 1
  br i1 %126, label %223, label %127

127:                                              ; preds = %124, %121
  %128 = load atomic i64, ptr getelementptr inbounds nuw (i8, ptr @slots, i64 32) monotonic, align 32
  %129 = icmp eq i64 %128, 0
  br i1 %129, label %130, label %133

130:                                              ; preds = %127
  %131 = cmpxchg ptr getelementptr inbounds nuw (i8, ptr @slots, i64 32), i64 0, i64 %103 release monotonic, align 8
  %132 = extractvalue { i64, i1 } %131, 1
  br i1 %132, label %223, label %133

133:                                              ; preds = %130, %127
  %134 = load atomic i64, ptr getelementptr inbounds nuw (i8, ptr @slots, i64 40) monotonic, align 8
  %135 = icmp eq i64 %134, 0
  br i1 %135, label %136, label %139

136:                                              ; preds = %133
  %137 = cmpxchg ptr getelementptr inbounds nuw (i8, ptr @slots, i64 40), i64 0, i64 %103 release monotonic, align 8
  %138 = extractvalue { i64, i1 } %137, 1
  br i1 %138, label %223, label %139

139:                                              ; preds = %136, %133
  %140 = load atomic i64, ptr getelementptr inbounds nuw (i8, ptr @slots, i64 48) monotonic, align 16
  %141 = icmp eq i64 %140, 0
  br i1 %141, label %142, label %145

142:                                              ; preds = %139
  %143 = cmpxchg ptr getelementptr inbounds nuw (i8, ptr @slots, i64 48), i64 0, i64 %103 release monotonic, align 8
  %144 = extractvalue { i64, i1 } %143, 1
  br i1 %144, label %223, label %145

145:                                              ; preds = %142, %139
  %146 = load atomic i64, ptr getelementptr inbounds nuw (i8, ptr @slots, i64 56) monotonic, align 8
  %147 = icmp eq i64 %146, 0
  br i1 %147, label %148, label %151

148:                                              ; preds = %145
  %149 = cmpxchg ptr getelementptr inbounds nuw (i8, ptr @slots, i64 56), i64 0, i64 %103 release monotonic, align 8
  %150 = extractvalue { i64, i1 } %149, 1
  br i1 %150, label %223, label %151

151:                                              ; preds = %148, %145
  call void @free(ptr noundef nonnull %82) #6
  br label %223

152:                                              ; preds = %87
  %153 = load i64, ptr getelementptr inbounds nuw (i8, ptr @tcl_entry, i64 64), align 64
  %154 = getelementptr inbounds i8, ptr %82, i64 %153
  %155 = load i64, ptr getelementptr inbounds nuw (i8, ptr @tcl_entry, i64 80), align 16
  %156 = icmp sgt i64 %155, 0
  br i1 %156, label %157, label %180

157:                                              ; preds = %152
  %158 = and i64 %155, 1
  %159 = icmp eq i64 %155, 1
  br i1 %159, label %162, label %160

160:                                              ; preds = %157
  %161 = and i64 %155, 9223372036854775806
  br label %187

162:                                              ; preds = %218, %157
  %163 = phi ptr [ poison, %157 ], [ %219, %218 ]
  %164 = phi ptr [ %154, %157 ], [ %220, %218 ]
  %165 = phi ptr [ %154, %157 ], [ %219, %218 ]
  %166 = icmp eq i64 %158, 0
  br i1 %166, label %180, label %167

167:                                              ; preds = %162
  %168 = load i64, ptr %164, align 8
  %169 = icmp eq i64 %168, 0
  br i1 %169, label %180, label %170

170:                                              ; preds = %167
  %171 = load i64, ptr %165, align 8
  %172 = icmp eq i64 %171, 0
  br i1 %172, label %179, label %173

173:                                              ; preds = %170
  %174 = getelementptr inbounds nuw i8, ptr %164, i64 8
  %175 = load i64, ptr %174, align 8
  %176 = getelementptr inbounds nuw i8, ptr %165, i64 8
  %177 = load i64, ptr %176, align 8
  %178 = icmp slt i64 %175, %177
  br i1 %178, label %179, label %180

179:                                              ; preds = %173, %170
  br label %180

180:                                              ; preds = %162, %179, %173, %167, %152
  %181 = phi ptr [ %154, %152 ], [ %163, %162 ], [ %164, %179 ], [ %165, %173 ], [ %165, %167 ]
  %182 = getelementptr inbounds nuw i8, ptr %181, i64 8
  %183 = load i64, ptr %182, align 8
  store i64 %183, ptr %1, align 8
  %184 = getelementptr inbounds nuw i8, ptr %181, i64 16
  %185 = load i64, ptr %184, align 8
  %186 = getelementptr inbounds nuw i8, ptr %1, i64 8
  store i64 %185, ptr %186, align 8
  call void @free(ptr noundef %82) #6
  br label %223

187:                                              ; preds = %218, %160
  %188 = phi ptr [ %154, %160 ], [ %220, %218 ]
  %189 = phi ptr [ %154, %160 ], [ %219, %218 ]
  %190 = phi i64 [ 0, %160 ], [ %221, %218 ]
  %191 = load i64, ptr %188, align 8
  %192 = icmp eq i64 %191, 0
  br i1 %192, label %203, label %193

193:                                              ; preds = %187
  %194 = load i64, ptr %189, align 8
  %195 = icmp eq i64 %194, 0
  br i1 %195, label %202, label %196

196:                                              ; preds = %193
  %197 = getelementptr inbounds nuw i8, ptr %188, i64 8
  %198 = load i64, ptr %197, align 8
  %199 = getelementptr inbounds nuw i8, ptr %189, i64 8
  %200 = load i64, ptr %199, align 8
  %201 = icmp slt i64 %198, %200
  br i1 %201, label %202, label %203

202:                                              ; preds = %196, %193
  br label %203

203:                                              ; preds = %187, %196, %202
  %204 = phi ptr [ %188, %202 ], [ %189, %196 ], [ %189, %187 ]
  %205 = getelementptr inbounds nuw i8, ptr %188, i64 64
  %206 = load i64, ptr %205, align 8
  %207 = icmp eq i64 %206, 0
  br i1 %207, label %218, label %208

208:                                              ; preds = %203
  %209 = load i64, ptr %204, align 8
  %210 = icmp eq i64 %209, 0
  br i1 %210, label %217, label %211

211:                                              ; preds = %208
  %212 = getelementptr inbounds nuw i8, ptr %188, i64 72
  %213 = load i64, ptr %212, align 8
  %214 = getelementptr inbounds nuw i8, ptr %204, i64 8
  %215 = load i64, ptr %214, align 8
  %216 = icmp slt i64 %213, %215
  br i1 %216, label %217, label %218

217:                                              ; preds = %211, %208
  br label %218

218:                                              ; preds = %217, %211, %203
  %219 = phi ptr [ %205, %217 ], [ %204, %211 ], [ %204, %203 ]
  %220 = getelementptr inbounds nuw i8, ptr %188, i64 128
  %221 = add i64 %190, 2
  %222 = icmp eq i64 %221, %161
  br i1 %222, label %162, label %187, !llvm.loop !8

223:                                              ; preds = %151, %148, %142, %136, %130, %124, %118, %112, %106, %55, %180, %78
  %224 = phi i32 [ 2, %78 ], [ 1, %180 ], [ 2, %55 ], [ 0, %106 ], [ 0, %112 ], [ 0, %118 ], [ 0, %124 ], [ 0, %130 ], [ 0, %136 ], [ 0, %142 ], [ 0, %148 ], [ 0, %151 ]
  ret i32 %224
}

; Function Attrs: mustprogress nocallback nofree nosync nounwind willreturn memory(argmem: readwrite)
declare void @llvm.lifetime.start.p0(i64 immarg, ptr nocapture) #1

; Function Attrs: mustprogress nocallback nofree nosync nounwind willreturn memory(argmem: readwrite)
declare void @llvm.lifetime.end.p0(i64 immarg, ptr nocapture) #1

; Function Attrs: mustprogress nounwind willreturn allockind("free") memory(argmem: readwrite, inaccessiblemem: readwrite)
declare void @free(ptr allocptr nocapture noundef) local_unnamed_addr #2

; Function Attrs: mustprogress nounwind willreturn uwtable
define void @tcl_entry_free() local_unnamed_addr #3 {
  %1 = atomicrmw xchg ptr @slots, i64 0 seq_cst, align 8
  %2 = inttoptr i64 %1 to ptr
  tail call void @free(ptr noundef %2) #6
  %3 = atomicrmw xchg ptr getelementptr inbounds nuw (i8, ptr @slots, i64 8), i64 0 seq_cst, align 8
  %4 = inttoptr i64 %3 to ptr
  tail call void @free(ptr noundef %4) #6
  %5 = atomicrmw xchg ptr getelementptr inbounds nuw (i8, ptr @slots, i64 16), i64 0 seq_cst, align 8
  %6 = inttoptr i64 %5 to ptr
  tail call void @free(ptr noundef %6) #6
  %7 = atomicrmw xchg ptr getelementptr inbounds nuw (i8, ptr @slots, i64 24), i64 0 seq_cst, align 8
  %8 = inttoptr i64 %7 to ptr
  tail call void @free(ptr noundef %8) #6
  %9 = atomicrmw xchg ptr getelementptr inbounds nuw (i8, ptr @slots, i64 32), i64 0 seq_cst, align 8
  %10 = inttoptr i64 %9 to ptr
  tail call void @free(ptr noundef %10) #6
  %11 = atomicrmw xchg ptr getelementptr inbounds nuw (i8, ptr @slots, i64 40), i64 0 seq_cst, align 8
  %12 = inttoptr i64 %11 to ptr
  tail call void @free(ptr noundef %12) #6
  %13 = atomicrmw xchg ptr getelementptr inbounds nuw (i8, ptr @slots, i64 48), i64 0 seq_cst, align 8
  %14 = inttoptr i64 %13 to ptr
  tail call void @free(ptr noundef %14) #6
  %15 = atomicrmw xchg ptr getelementptr inbounds nuw (i8, ptr @slots, i64 56), i64 0 seq_cst, align 8
  %16 = inttoptr i64 %15 to ptr
  tail call void @free(ptr noundef %16) #6
  ret void
}

; Function Attrs: nofree nounwind
declare i32 @posix_memalign(ptr noundef, i64 noundef, i64 noundef) local_unnamed_addr #4

; Function Attrs: mustprogress nocallback nofree nounwind willreturn memory(argmem: readwrite)
declare void @llvm.memcpy.p0.p0.i64(ptr noalias nocapture writeonly, ptr noalias nocapture readonly, i64, i1 immarg) #5

attributes #0 = { uwtable "no-trapping-math"="true" "stack-protector-buffer-size"="8" }
attributes #1 = { mustprogress nocallback nofree nosync nounwind willreturn memory(argmem: readwrite) }
attributes #2 = { mustprogress nounwind willreturn allockind("free") memory(argmem: readwrite, inaccessiblemem: readwrite) "alloc-family"="malloc" "no-trapping-math"="true" "stack-protector-buffer-size"="8" }
attributes #3 = { mustprogress nounwind willreturn uwtable "no-trapping-math"="true" "stack-protector-buffer-size"="8" }
attributes #4 = { nofree nounwind "no-trapping-math"="true" "stack-protector-buffer-size"="8" }
attributes #5 = { mustprogress nocallback nofree nounwind willreturn memory(argmem: readwrite) }
attributes #6 = { nounwind }

!llvm.module.flags = !{!0, !1, !2, !3}

!0 = !{i32 7, !"Dwarf Version", i32 4}
!1 = !{i32 1, !"wchar_size", i32 4}
!2 = !{i32 8, !"PIC Level", i32 2}
!3 = !{i32 7, !"uwtable", i32 2}
!4 = !{!"clang version 20.1.2 (https://github.com/ziglang/zig-bootstrap c6bc9398c72c7a63fe9420a9055dcfd1845bc266)"}
!5 = distinct !{!5, !6}
!6 = !{!"llvm.loop.mustprogress"}
!7 = distinct !{!7, !6}
!8 = distinct !{!8, !6}
