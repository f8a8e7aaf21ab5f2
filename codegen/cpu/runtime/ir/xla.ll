%struct.handler = type { ptr, i64, i64, i64, i64, ptr, ptr }
%struct.error_arguments = type { i64, ptr, ptr, i32 }

@tcl_handler = local_unnamed_addr global %struct.handler zeroinitializer, align 8
@.str = private unnamed_addr constant [39 x i8] c"tcl: called in a way that is not known\00", align 1
@.str.1 = private unnamed_addr constant [43 x i8] c"tcl: a buffer is not what was compiled for\00", align 1
@.str.2 = private unnamed_addr constant [57 x i8] c"tcl: there is no memory for what a call needs on the way\00", align 1

; Function Attrs: uwtable
define ptr @tcl_handler_call(ptr nocapture noundef readonly %0) local_unnamed_addr #0 {
  %2 = alloca %struct.error_arguments, align 8
  %3 = alloca %struct.error_arguments, align 8
  %4 = alloca %struct.error_arguments, align 8
  %5 = alloca %struct.error_arguments, align 8
  %6 = alloca [2 x i64], align 16
  %7 = alloca [2048 x i8], align 16
  %8 = getelementptr inbounds nuw i8, ptr %0, i64 8
  %9 = load ptr, ptr %8, align 8
  %10 = icmp eq ptr %9, null
  br i1 %10, label %27, label %11

11:                                               ; preds = %1
  %12 = getelementptr inbounds nuw i8, ptr %9, i64 8
  %13 = load i32, ptr %12, align 8
  %14 = icmp eq i32 %13, 1
  br i1 %14, label %15, label %27

15:                                               ; preds = %11
  %16 = getelementptr inbounds nuw i8, ptr %9, i64 24
  %17 = load ptr, ptr %16, align 8
  %18 = getelementptr inbounds nuw i8, ptr %17, i64 8
  %19 = load i64, ptr getelementptr inbounds nuw (i8, ptr @tcl_handler, i64 8), align 8
  %20 = trunc i64 %19 to i32
  %21 = load i64, ptr getelementptr inbounds nuw (i8, ptr @tcl_handler, i64 16), align 8
  %22 = trunc i64 %21 to i32
  store i64 24, ptr %18, align 8
  %23 = getelementptr inbounds nuw i8, ptr %17, i64 16
  store ptr null, ptr %23, align 8
  %24 = getelementptr inbounds nuw i8, ptr %17, i64 24
  store i32 %20, ptr %24, align 8
  %25 = getelementptr inbounds nuw i8, ptr %17, i64 28
  store i32 %22, ptr %25, align 4
  %26 = getelementptr inbounds nuw i8, ptr %17, i64 32
  store i32 0, ptr %26, align 8
  br label %243

27:                                               ; preds = %11, %1
  %28 = getelementptr inbounds nuw i8, ptr %0, i64 40
  %29 = getelementptr inbounds nuw i8, ptr %0, i64 80
  %30 = load i64, ptr %0, align 8
  %31 = icmp ult i64 %30, 168
  br i1 %31, label %42, label %32

32:                                               ; preds = %27
  %33 = getelementptr inbounds nuw i8, ptr %0, i64 32
  %34 = load i32, ptr %33, align 8
  %35 = icmp eq i32 %34, 3
  br i1 %35, label %36, label %42

36:                                               ; preds = %32
  %37 = load i64, ptr %28, align 8
  %38 = icmp eq i64 %37, 40
  br i1 %38, label %39, label %42

39:                                               ; preds = %36
  %40 = load i64, ptr %29, align 8
  %41 = icmp eq i64 %40, 40
  br i1 %41, label %52, label %42

42:                                               ; preds = %39, %36, %32, %27
  call void @llvm.lifetime.start.p0(i64 32, ptr nonnull %5) #4
  store i64 28, ptr %5, align 8
  %43 = getelementptr inbounds nuw i8, ptr %5, i64 8
  store ptr null, ptr %43, align 8
  %44 = getelementptr inbounds nuw i8, ptr %5, i64 16
  store ptr @.str, ptr %44, align 8
  %45 = getelementptr inbounds nuw i8, ptr %5, i64 24
  store i32 3, ptr %45, align 8
  %46 = getelementptr inbounds nuw i8, ptr %5, i64 28
  store i32 0, ptr %46, align 4
  %47 = getelementptr inbounds nuw i8, ptr %0, i64 16
  %48 = load ptr, ptr %47, align 8
  %49 = getelementptr inbounds nuw i8, ptr %48, i64 48
  %50 = load ptr, ptr %49, align 8
  %51 = call ptr %50(ptr noundef nonnull %5)
  call void @llvm.lifetime.end.p0(i64 32, ptr nonnull %5) #4
  br label %243

52:                                               ; preds = %39
  %53 = getelementptr inbounds nuw i8, ptr %0, i64 56
  %54 = load i64, ptr %53, align 8
  %55 = load i64, ptr getelementptr inbounds nuw (i8, ptr @tcl_handler, i64 24), align 8
  %56 = icmp eq i64 %54, %55
  br i1 %56, label %59, label %57

57:                                               ; preds = %52
  %58 = tail call ptr @llvm.stacksave.p0()
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %6) #4
  br label %199

59:                                               ; preds = %52
  %60 = getelementptr inbounds nuw i8, ptr %0, i64 96
  %61 = load i64, ptr %60, align 8
  %62 = load i64, ptr getelementptr inbounds nuw (i8, ptr @tcl_handler, i64 32), align 8
  %63 = icmp eq i64 %61, %62
  %64 = add i64 %54, 1
  %65 = add i64 %64, %62
  %66 = tail call ptr @llvm.stacksave.p0()
  %67 = alloca i64, i64 %65, align 16
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %6) #4
  br i1 %63, label %68, label %199

68:                                               ; preds = %59
  %69 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @tcl_handler, i64 40), align 8
  %70 = load i64, ptr %53, align 8
  %71 = icmp sgt i64 %70, 0
  br i1 %71, label %72, label %131

72:                                               ; preds = %68
  %73 = getelementptr inbounds nuw i8, ptr %0, i64 64
  %74 = getelementptr inbounds nuw i8, ptr %0, i64 72
  %75 = load ptr, ptr %73, align 8
  br label %76

76:                                               ; preds = %126, %72
  %77 = phi i64 [ 0, %72 ], [ %129, %126 ]
  %78 = phi ptr [ %69, %72 ], [ %127, %126 ]
  %79 = getelementptr inbounds nuw i32, ptr %75, i64 %77
  %80 = load i32, ptr %79, align 4
  %81 = icmp eq i32 %80, 1
  br i1 %81, label %82, label %199

82:                                               ; preds = %76
  %83 = load ptr, ptr %74, align 8
  %84 = getelementptr inbounds nuw ptr, ptr %83, i64 %77
  %85 = load ptr, ptr %84, align 8
  %86 = load i64, ptr %85, align 8
  %87 = icmp ult i64 %86, 48
  br i1 %87, label %199, label %88

88:                                               ; preds = %82
  %89 = getelementptr inbounds nuw i8, ptr %85, i64 16
  %90 = load i32, ptr %89, align 8
  %91 = zext i32 %90 to i64
  %92 = load i64, ptr %78, align 8
  %93 = icmp eq i64 %92, %91
  br i1 %93, label %94, label %199

94:                                               ; preds = %88
  %95 = getelementptr inbounds nuw i8, ptr %85, i64 24
  %96 = load i64, ptr %95, align 8
  %97 = getelementptr inbounds nuw i8, ptr %78, i64 8
  %98 = load i64, ptr %97, align 8
  %99 = and i64 %98, %96
  %100 = icmp eq i64 %99, 0
  br i1 %100, label %101, label %199

101:                                              ; preds = %94
  %102 = getelementptr inbounds nuw i8, ptr %85, i64 32
  %103 = load i64, ptr %102, align 8
  %104 = getelementptr inbounds nuw i8, ptr %78, i64 16
  %105 = load i64, ptr %104, align 8
  %106 = icmp eq i64 %103, %105
  br i1 %106, label %107, label %199

107:                                              ; preds = %101
  %108 = getelementptr i8, ptr %78, i64 24
  %109 = icmp sgt i64 %103, 0
  br i1 %109, label %110, label %126

110:                                              ; preds = %107
  %111 = getelementptr inbounds nuw i8, ptr %85, i64 40
  %112 = load ptr, ptr %111, align 8
  %113 = shl i64 %103, 3
  %114 = getelementptr i8, ptr %108, i64 %113
  br label %115

115:                                              ; preds = %122, %110
  %116 = phi i64 [ 0, %110 ], [ %124, %122 ]
  %117 = phi ptr [ %108, %110 ], [ %123, %122 ]
  %118 = getelementptr inbounds nuw i64, ptr %112, i64 %116
  %119 = load i64, ptr %118, align 8
  %120 = load i64, ptr %117, align 8
  %121 = icmp eq i64 %119, %120
  br i1 %121, label %122, label %199

122:                                              ; preds = %115
  %123 = getelementptr inbounds nuw i8, ptr %117, i64 8
  %124 = add nuw nsw i64 %116, 1
  %125 = icmp eq i64 %124, %103
  br i1 %125, label %126, label %115, !llvm.loop !5

126:                                              ; preds = %122, %107
  %127 = phi ptr [ %108, %107 ], [ %114, %122 ]
  %128 = getelementptr inbounds nuw i64, ptr %67, i64 %77
  store i64 %96, ptr %128, align 8
  %129 = add nuw nsw i64 %77, 1
  %130 = icmp eq i64 %129, %70
  br i1 %130, label %131, label %76, !llvm.loop !7

131:                                              ; preds = %126, %68
  %132 = phi ptr [ %69, %68 ], [ %127, %126 ]
  %133 = icmp eq ptr %132, null
  br i1 %133, label %199, label %134

134:                                              ; preds = %131
  %135 = getelementptr inbounds i64, ptr %67, i64 %70
  %136 = load i64, ptr %60, align 8
  %137 = icmp sgt i64 %136, 0
  br i1 %137, label %138, label %210

138:                                              ; preds = %134
  %139 = getelementptr inbounds nuw i8, ptr %0, i64 104
  %140 = getelementptr inbounds nuw i8, ptr %0, i64 112
  %141 = load ptr, ptr %139, align 8
  br label %142

142:                                              ; preds = %192, %138
  %143 = phi i64 [ 0, %138 ], [ %195, %192 ]
  %144 = phi ptr [ %132, %138 ], [ %193, %192 ]
  %145 = getelementptr inbounds nuw i32, ptr %141, i64 %143
  %146 = load i32, ptr %145, align 4
  %147 = icmp eq i32 %146, 1
  br i1 %147, label %148, label %199

148:                                              ; preds = %142
  %149 = load ptr, ptr %140, align 8
  %150 = getelementptr inbounds nuw ptr, ptr %149, i64 %143
  %151 = load ptr, ptr %150, align 8
  %152 = load i64, ptr %151, align 8
  %153 = icmp ult i64 %152, 48
  br i1 %153, label %199, label %154

154:                                              ; preds = %148
  %155 = getelementptr inbounds nuw i8, ptr %151, i64 16
  %156 = load i32, ptr %155, align 8
  %157 = zext i32 %156 to i64
  %158 = load i64, ptr %144, align 8
  %159 = icmp eq i64 %158, %157
  br i1 %159, label %160, label %199

160:                                              ; preds = %154
  %161 = getelementptr inbounds nuw i8, ptr %151, i64 24
  %162 = load i64, ptr %161, align 8
  %163 = getelementptr inbounds nuw i8, ptr %144, i64 8
  %164 = load i64, ptr %163, align 8
  %165 = and i64 %164, %162
  %166 = icmp eq i64 %165, 0
  br i1 %166, label %167, label %199

167:                                              ; preds = %160
  %168 = getelementptr inbounds nuw i8, ptr %151, i64 32
  %169 = load i64, ptr %168, align 8
  %170 = getelementptr inbounds nuw i8, ptr %144, i64 16
  %171 = load i64, ptr %170, align 8
  %172 = icmp eq i64 %169, %171
  br i1 %172, label %173, label %199

173:                                              ; preds = %167
  %174 = getelementptr i8, ptr %144, i64 24
  %175 = icmp sgt i64 %169, 0
  br i1 %175, label %176, label %192

176:                                              ; preds = %173
  %177 = getelementptr inbounds nuw i8, ptr %151, i64 40
  %178 = load ptr, ptr %177, align 8
  %179 = shl i64 %169, 3
  %180 = getelementptr i8, ptr %174, i64 %179
  br label %181

181:                                              ; preds = %188, %176
  %182 = phi i64 [ 0, %176 ], [ %190, %188 ]
  %183 = phi ptr [ %174, %176 ], [ %189, %188 ]
  %184 = getelementptr inbounds nuw i64, ptr %178, i64 %182
  %185 = load i64, ptr %184, align 8
  %186 = load i64, ptr %183, align 8
  %187 = icmp eq i64 %185, %186
  br i1 %187, label %188, label %199

188:                                              ; preds = %181
  %189 = getelementptr inbounds nuw i8, ptr %183, i64 8
  %190 = add nuw nsw i64 %182, 1
  %191 = icmp eq i64 %190, %169
  br i1 %191, label %192, label %181, !llvm.loop !5

192:                                              ; preds = %188, %173
  %193 = phi ptr [ %174, %173 ], [ %180, %188 ]
  %194 = getelementptr inbounds nuw i64, ptr %135, i64 %143
  store i64 %162, ptr %194, align 8
  %195 = add nuw nsw i64 %143, 1
  %196 = icmp eq i64 %195, %136
  br i1 %196, label %197, label %142, !llvm.loop !7

197:                                              ; preds = %192
  %198 = icmp eq ptr %193, null
  br i1 %198, label %199, label %210

199:                                              ; preds = %82, %88, %94, %101, %76, %115, %148, %154, %160, %167, %142, %181, %57, %59, %197, %131
  %200 = phi ptr [ %66, %197 ], [ %66, %131 ], [ %58, %57 ], [ %66, %59 ], [ %66, %181 ], [ %66, %142 ], [ %66, %167 ], [ %66, %160 ], [ %66, %154 ], [ %66, %148 ], [ %66, %115 ], [ %66, %76 ], [ %66, %101 ], [ %66, %94 ], [ %66, %88 ], [ %66, %82 ]
  call void @llvm.lifetime.start.p0(i64 32, ptr nonnull %4) #4
  store i64 28, ptr %4, align 8
  %201 = getelementptr inbounds nuw i8, ptr %4, i64 8
  store ptr null, ptr %201, align 8
  %202 = getelementptr inbounds nuw i8, ptr %4, i64 16
  store ptr @.str.1, ptr %202, align 8
  %203 = getelementptr inbounds nuw i8, ptr %4, i64 24
  store i32 3, ptr %203, align 8
  %204 = getelementptr inbounds nuw i8, ptr %4, i64 28
  store i32 0, ptr %204, align 4
  %205 = getelementptr inbounds nuw i8, ptr %0, i64 16
  %206 = load ptr, ptr %205, align 8
  %207 = getelementptr inbounds nuw i8, ptr %206, i64 48
  %208 = load ptr, ptr %207, align 8
  %209 = call ptr %208(ptr noundef nonnull %4)
  call void @llvm.lifetime.end.p0(i64 32, ptr nonnull %4) #4
  br label %240

210:                                              ; preds = %134, %197
  %211 = load ptr, ptr @tcl_handler, align 8
  %212 = call i32 %211(ptr noundef nonnull %67, ptr noundef nonnull %6)
  switch i32 %212, label %213 [
    i32 0, label %240
    i32 1, label %223
  ]

213:                                              ; preds = %210
  call void @llvm.lifetime.start.p0(i64 32, ptr nonnull %3) #4
  store i64 28, ptr %3, align 8
  %214 = getelementptr inbounds nuw i8, ptr %3, i64 8
  store ptr null, ptr %214, align 8
  %215 = getelementptr inbounds nuw i8, ptr %3, i64 16
  store ptr @.str.2, ptr %215, align 8
  %216 = getelementptr inbounds nuw i8, ptr %3, i64 24
  store i32 8, ptr %216, align 8
  %217 = getelementptr inbounds nuw i8, ptr %3, i64 28
  store i32 0, ptr %217, align 4
  %218 = getelementptr inbounds nuw i8, ptr %0, i64 16
  %219 = load ptr, ptr %218, align 8
  %220 = getelementptr inbounds nuw i8, ptr %219, i64 48
  %221 = load ptr, ptr %220, align 8
  %222 = call ptr %221(ptr noundef nonnull %3)
  call void @llvm.lifetime.end.p0(i64 32, ptr nonnull %3) #4
  br label %240

223:                                              ; preds = %210
  call void @llvm.lifetime.start.p0(i64 2048, ptr nonnull %7) #4
  %224 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @tcl_handler, i64 48), align 8
  %225 = load i64, ptr %6, align 16
  %226 = getelementptr inbounds ptr, ptr %224, i64 %225
  %227 = load ptr, ptr %226, align 8
  %228 = getelementptr inbounds nuw i8, ptr %6, i64 8
  %229 = load i64, ptr %228, align 8
  %230 = call i32 (ptr, i64, ptr, ...) @snprintf(ptr noundef nonnull dereferenceable(1) %7, i64 noundef 2048, ptr noundef %227, i64 noundef %229) #4
  call void @llvm.lifetime.start.p0(i64 32, ptr nonnull %2) #4
  store i64 28, ptr %2, align 8
  %231 = getelementptr inbounds nuw i8, ptr %2, i64 8
  store ptr null, ptr %231, align 8
  %232 = getelementptr inbounds nuw i8, ptr %2, i64 16
  store ptr %7, ptr %232, align 8
  %233 = getelementptr inbounds nuw i8, ptr %2, i64 24
  store i32 11, ptr %233, align 8
  %234 = getelementptr inbounds nuw i8, ptr %2, i64 28
  store i32 0, ptr %234, align 4
  %235 = getelementptr inbounds nuw i8, ptr %0, i64 16
  %236 = load ptr, ptr %235, align 8
  %237 = getelementptr inbounds nuw i8, ptr %236, i64 48
  %238 = load ptr, ptr %237, align 8
  %239 = call ptr %238(ptr noundef nonnull %2)
  call void @llvm.lifetime.end.p0(i64 32, ptr nonnull %2) #4
  call void @llvm.lifetime.end.p0(i64 2048, ptr nonnull %7) #4
  br label %240

240:                                              ; preds = %213, %223, %210, %199
  %241 = phi ptr [ %200, %199 ], [ %66, %213 ], [ %66, %223 ], [ %66, %210 ]
  %242 = phi ptr [ %209, %199 ], [ %222, %213 ], [ %239, %223 ], [ null, %210 ]
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %6) #4
  call void @llvm.stackrestore.p0(ptr %241)
  br label %243

243:                                              ; preds = %42, %240, %15
  %244 = phi ptr [ null, %15 ], [ %51, %42 ], [ %242, %240 ]
  ret ptr %244
}

; Function Attrs: mustprogress nocallback nofree nosync nounwind willreturn memory(argmem: readwrite)
declare void @llvm.lifetime.start.p0(i64 immarg, ptr nocapture) #1

; Function Attrs: mustprogress nocallback nofree nosync nounwind willreturn memory(argmem: readwrite)
declare void @llvm.lifetime.end.p0(i64 immarg, ptr nocapture) #1

; Function Attrs: mustprogress nocallback nofree nosync nounwind willreturn
declare ptr @llvm.stacksave.p0() #2

; Function Attrs: nofree nounwind
declare noundef i32 @snprintf(ptr noalias nocapture noundef writeonly, i64 noundef, ptr nocapture noundef readonly, ...) local_unnamed_addr #3

; Function Attrs: mustprogress nocallback nofree nosync nounwind willreturn
declare void @llvm.stackrestore.p0(ptr) #2

attributes #0 = { uwtable "no-trapping-math"="true" "stack-protector-buffer-size"="8" }
attributes #1 = { mustprogress nocallback nofree nosync nounwind willreturn memory(argmem: readwrite) }
attributes #2 = { mustprogress nocallback nofree nosync nounwind willreturn }
attributes #3 = { nofree nounwind "no-trapping-math"="true" "stack-protector-buffer-size"="8" }
attributes #4 = { nounwind }

!llvm.module.flags = !{!0, !1, !2, !3}

!0 = !{i32 7, !"Dwarf Version", i32 4}
!1 = !{i32 1, !"wchar_size", i32 4}
!2 = !{i32 8, !"PIC Level", i32 2}
!3 = !{i32 7, !"uwtable", i32 2}
!4 = !{!"clang version 20.1.2 (https://github.com/ziglang/zig-bootstrap c6bc9398c72c7a63fe9420a9055dcfd1845bc266)"}
!5 = distinct !{!5, !6}
!6 = !{!"llvm.loop.mustprogress"}
!7 = distinct !{!7, !6}
