%struct.operator = type { ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, i64, i64, i64, i64, i64, i64, i64, i64, ptr, ptr, ptr }
%struct.input = type { i64, i64, i64 }
%struct.output = type { i64, i64 }

@tcl_operator = local_unnamed_addr global %struct.operator zeroinitializer, align 8
@.str = private unnamed_addr constant [18 x i8] c"tcl_operator_call\00", align 1
@.str.1 = private unnamed_addr constant [1 x i8] zeroinitializer, align 1

; Function Attrs: uwtable
define void @tcl_operator_call(ptr noundef %0, i64 noundef %1, i64 noundef %2) local_unnamed_addr #0 {
  %4 = alloca i64, align 8
  %5 = alloca i32, align 4
  %6 = alloca [2 x ptr], align 8
  %7 = load i64, ptr getelementptr inbounds nuw (i8, ptr @tcl_operator, i64 80), align 8
  %8 = load i64, ptr getelementptr inbounds nuw (i8, ptr @tcl_operator, i64 88), align 8
  %9 = add nsw i64 %8, %7
  %10 = load i64, ptr getelementptr inbounds nuw (i8, ptr @tcl_operator, i64 112), align 8
  %11 = add nsw i64 %9, %10
  %12 = alloca i64, i64 %11, align 8
  %13 = load i64, ptr getelementptr inbounds nuw (i8, ptr @tcl_operator, i64 96), align 8
  %14 = add nsw i64 %13, 1
  %15 = alloca i64, i64 %14, align 8
  %16 = load i64, ptr getelementptr inbounds nuw (i8, ptr @tcl_operator, i64 104), align 8
  %17 = alloca i64, i64 %16, align 8
  %18 = icmp slt i64 %7, 1
  br i1 %18, label %111, label %19

19:                                               ; preds = %3
  %20 = getelementptr inbounds nuw i8, ptr %6, i64 8
  br label %21

21:                                               ; preds = %89, %19
  %22 = phi i64 [ 0, %19 ], [ %90, %89 ]
  %23 = phi i64 [ 0, %19 ], [ %92, %89 ]
  %24 = phi ptr [ %15, %19 ], [ %91, %89 ]
  %25 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @tcl_operator, i64 64), align 8
  %26 = getelementptr inbounds nuw %struct.input, ptr %25, i64 %23
  call void @llvm.lifetime.start.p0(i64 8, ptr nonnull %4) #6
  call void @llvm.lifetime.start.p0(i64 4, ptr nonnull %5) #6
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %6) #6
  %27 = load ptr, ptr @tcl_operator, align 8
  %28 = getelementptr inbounds nuw ptr, ptr %0, i64 %23
  %29 = load ptr, ptr %28, align 8
  %30 = call i32 %27(ptr noundef %29, ptr noundef nonnull %4)
  %31 = icmp eq i32 %30, 0
  br i1 %31, label %32, label %110

32:                                               ; preds = %21
  %33 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @tcl_operator, i64 8), align 8
  %34 = load ptr, ptr %28, align 8
  %35 = call i32 %33(ptr noundef %34, ptr noundef nonnull %5)
  %36 = icmp eq i32 %35, 0
  br i1 %36, label %37, label %110

37:                                               ; preds = %32
  %38 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @tcl_operator, i64 16), align 8
  %39 = load ptr, ptr %28, align 8
  %40 = call i32 %38(ptr noundef %39, ptr noundef nonnull %6)
  %41 = icmp eq i32 %40, 0
  br i1 %41, label %42, label %110

42:                                               ; preds = %37
  %43 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @tcl_operator, i64 24), align 8
  %44 = load ptr, ptr %28, align 8
  %45 = call i32 %43(ptr noundef %44, ptr noundef nonnull %20)
  %46 = icmp eq i32 %45, 0
  br i1 %46, label %47, label %110

47:                                               ; preds = %42
  %48 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @tcl_operator, i64 32), align 8
  %49 = load ptr, ptr %28, align 8
  %50 = getelementptr inbounds nuw i64, ptr %12, i64 %23
  %51 = call i32 %48(ptr noundef %49, ptr noundef nonnull %50)
  %52 = icmp eq i32 %51, 0
  br i1 %52, label %53, label %110

53:                                               ; preds = %47
  %54 = load i64, ptr %4, align 8
  %55 = load i64, ptr %26, align 8
  %56 = icmp eq i64 %54, %55
  br i1 %56, label %57, label %110

57:                                               ; preds = %53
  %58 = load i32, ptr %5, align 4
  %59 = sext i32 %58 to i64
  %60 = getelementptr inbounds nuw i8, ptr %26, i64 8
  %61 = load i64, ptr %60, align 8
  %62 = icmp eq i64 %61, %59
  br i1 %62, label %63, label %110

63:                                               ; preds = %57
  %64 = load i64, ptr %50, align 8
  %65 = getelementptr inbounds nuw i8, ptr %26, i64 16
  %66 = load i64, ptr %65, align 8
  %67 = add nsw i64 %66, -1
  %68 = and i64 %67, %64
  %69 = icmp eq i64 %68, 0
  br i1 %69, label %70, label %110

70:                                               ; preds = %63
  %71 = icmp sgt i64 %54, 0
  br i1 %71, label %95, label %89

72:                                               ; preds = %95
  %73 = icmp sgt i64 %108, 0
  br i1 %73, label %74, label %89

74:                                               ; preds = %72, %74
  %75 = phi i64 [ %85, %74 ], [ %106, %72 ]
  %76 = phi i64 [ %86, %74 ], [ 0, %72 ]
  %77 = phi ptr [ %81, %74 ], [ %102, %72 ]
  %78 = load ptr, ptr %20, align 8
  %79 = getelementptr inbounds nuw i64, ptr %78, i64 %76
  %80 = load i64, ptr %79, align 8
  %81 = getelementptr inbounds nuw i8, ptr %77, i64 8
  store i64 %80, ptr %77, align 8
  %82 = xor i64 %80, %75
  %83 = mul i64 %82, -7046029254386353131
  %84 = lshr i64 %83, 32
  %85 = xor i64 %84, %83
  %86 = add nuw nsw i64 %76, 1
  %87 = load i64, ptr %4, align 8
  %88 = icmp slt i64 %86, %87
  br i1 %88, label %74, label %89, !llvm.loop !5

89:                                               ; preds = %74, %72, %70
  %90 = phi i64 [ %106, %72 ], [ %22, %70 ], [ %85, %74 ]
  %91 = phi ptr [ %102, %72 ], [ %24, %70 ], [ %81, %74 ]
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %6) #6
  call void @llvm.lifetime.end.p0(i64 4, ptr nonnull %5) #6
  call void @llvm.lifetime.end.p0(i64 8, ptr nonnull %4) #6
  %92 = add nuw nsw i64 %23, 1
  %93 = load i64, ptr getelementptr inbounds nuw (i8, ptr @tcl_operator, i64 80), align 8
  %94 = icmp slt i64 %92, %93
  br i1 %94, label %21, label %111, !llvm.loop !7

95:                                               ; preds = %70, %95
  %96 = phi i64 [ %106, %95 ], [ %22, %70 ]
  %97 = phi i64 [ %107, %95 ], [ 0, %70 ]
  %98 = phi ptr [ %102, %95 ], [ %24, %70 ]
  %99 = load ptr, ptr %6, align 8
  %100 = getelementptr inbounds nuw i64, ptr %99, i64 %97
  %101 = load i64, ptr %100, align 8
  %102 = getelementptr inbounds nuw i8, ptr %98, i64 8
  store i64 %101, ptr %98, align 8
  %103 = xor i64 %101, %96
  %104 = mul i64 %103, -7046029254386353131
  %105 = lshr i64 %104, 32
  %106 = xor i64 %105, %104
  %107 = add nuw nsw i64 %97, 1
  %108 = load i64, ptr %4, align 8
  %109 = icmp slt i64 %107, %108
  br i1 %109, label %95, label %72, !llvm.loop !5

110:                                              ; preds = %21, %32, %37, %42, %47, %53, %57, %63
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %6) #6
  call void @llvm.lifetime.end.p0(i64 4, ptr nonnull %5) #6
  call void @llvm.lifetime.end.p0(i64 8, ptr nonnull %4) #6
  br label %247

111:                                              ; preds = %89, %3
  %112 = phi i64 [ 0, %3 ], [ %90, %89 ]
  %113 = load atomic i64, ptr getelementptr inbounds nuw (i8, ptr @tcl_operator, i64 152) acquire, align 8
  %114 = inttoptr i64 %113 to ptr
  %115 = getelementptr inbounds nuw i8, ptr %114, i64 8
  %116 = load i64, ptr %114, align 8
  %117 = and i64 %116, %112
  %118 = getelementptr inbounds [0 x ptr], ptr %115, i64 0, i64 %117
  %119 = load atomic i64, ptr %118 acquire, align 8
  %120 = icmp eq i64 %119, 0
  br i1 %120, label %121, label %206

121:                                              ; preds = %237, %111
  %122 = load i64, ptr getelementptr inbounds nuw (i8, ptr @tcl_operator, i64 112), align 8
  %123 = icmp eq i64 %122, 1
  br i1 %123, label %124, label %247

124:                                              ; preds = %121
  %125 = load i64, ptr getelementptr inbounds nuw (i8, ptr @tcl_operator, i64 120), align 8
  %126 = getelementptr inbounds i64, ptr %15, i64 %125
  %127 = load i64, ptr %126, align 8
  %128 = icmp sgt i64 %127, -1
  %129 = load i64, ptr getelementptr inbounds nuw (i8, ptr @tcl_operator, i64 128), align 8
  %130 = icmp slt i64 %127, %129
  %131 = select i1 %128, i1 %130, i1 false
  br i1 %131, label %132, label %247

132:                                              ; preds = %124
  %133 = call range(i64 1, 65) i64 @llvm.ctlz.i64(i64 %127, i1 false)
  %134 = shl nuw nsw i64 %133, 1
  %135 = load i64, ptr getelementptr inbounds nuw (i8, ptr @tcl_operator, i64 136), align 8
  %136 = srem i64 %127, %135
  %137 = icmp eq i64 %136, 0
  %138 = zext i1 %137 to i64
  %139 = sub nsw i64 %138, %134
  %140 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @tcl_operator, i64 160), align 8
  %141 = getelementptr ptr, ptr %140, i64 %139
  %142 = getelementptr i8, ptr %141, i64 1024
  %143 = load atomic i64, ptr %142 acquire, align 8
  %144 = inttoptr i64 %143 to ptr
  %145 = icmp eq i64 %143, 0
  br i1 %145, label %247, label %146

146:                                              ; preds = %132
  %147 = getelementptr inbounds nuw i8, ptr %144, i64 8
  %148 = load i64, ptr getelementptr inbounds nuw (i8, ptr @tcl_operator, i64 96), align 8
  %149 = icmp sgt i64 %148, 0
  br i1 %149, label %150, label %169

150:                                              ; preds = %146
  %151 = shl i64 %148, 4
  %152 = or disjoint i64 %151, 8
  %153 = getelementptr i8, ptr %144, i64 %152
  br label %154

154:                                              ; preds = %165, %150
  %155 = phi i64 [ %166, %165 ], [ 0, %150 ]
  %156 = phi ptr [ %167, %165 ], [ %147, %150 ]
  %157 = load i64, ptr %156, align 8
  %158 = getelementptr inbounds nuw i8, ptr %156, i64 8
  %159 = load i64, ptr %158, align 8
  %160 = mul nsw i64 %159, %127
  %161 = add nsw i64 %160, %157
  %162 = getelementptr inbounds nuw i64, ptr %15, i64 %155
  %163 = load i64, ptr %162, align 8
  %164 = icmp eq i64 %161, %163
  br i1 %164, label %165, label %247

165:                                              ; preds = %154
  %166 = add nuw nsw i64 %155, 1
  %167 = getelementptr inbounds nuw i8, ptr %156, i64 16
  %168 = icmp eq i64 %166, %148
  br i1 %168, label %169, label %154, !llvm.loop !8

169:                                              ; preds = %165, %146
  %170 = phi ptr [ %147, %146 ], [ %153, %165 ]
  %171 = load i64, ptr getelementptr inbounds nuw (i8, ptr @tcl_operator, i64 80), align 8
  %172 = icmp slt i64 %171, 1
  br i1 %172, label %183, label %176

173:                                              ; preds = %176
  %174 = add nuw nsw i64 %177, 1
  %175 = icmp eq i64 %174, %171
  br i1 %175, label %183, label %176, !llvm.loop !9

176:                                              ; preds = %169, %173
  %177 = phi i64 [ %174, %173 ], [ 0, %169 ]
  %178 = getelementptr inbounds nuw i64, ptr %12, i64 %177
  %179 = load i64, ptr %178, align 8
  %180 = getelementptr inbounds nuw i64, ptr %170, i64 %177
  %181 = load i64, ptr %180, align 8
  %182 = icmp ult i64 %179, %181
  br i1 %182, label %247, label %173

183:                                              ; preds = %173, %169
  %184 = add nsw i64 %148, 1
  %185 = add nsw i64 %184, %171
  %186 = load i64, ptr getelementptr inbounds nuw (i8, ptr @tcl_operator, i64 104), align 8
  %187 = add nsw i64 %186, -1
  %188 = load i64, ptr %144, align 8
  store i64 %188, ptr %17, align 8
  %189 = icmp slt i64 %185, %187
  br i1 %189, label %190, label %192

190:                                              ; preds = %183
  %191 = getelementptr inbounds i64, ptr %170, i64 %171
  br label %194

192:                                              ; preds = %194, %183
  %193 = getelementptr inbounds i64, ptr %17, i64 %187
  store i64 %127, ptr %193, align 8
  br label %244

194:                                              ; preds = %194, %190
  %195 = phi i64 [ %203, %194 ], [ %185, %190 ]
  %196 = phi ptr [ %204, %194 ], [ %191, %190 ]
  %197 = load i64, ptr %196, align 8
  %198 = getelementptr inbounds nuw i8, ptr %196, i64 8
  %199 = load i64, ptr %198, align 8
  %200 = mul nsw i64 %199, %127
  %201 = add nsw i64 %200, %197
  %202 = getelementptr inbounds i64, ptr %17, i64 %195
  store i64 %201, ptr %202, align 8
  %203 = add nsw i64 %195, 1
  %204 = getelementptr inbounds nuw i8, ptr %196, i64 16
  %205 = icmp slt i64 %203, %187
  br i1 %205, label %194, label %192, !llvm.loop !10

206:                                              ; preds = %111, %237
  %207 = phi i64 [ %242, %237 ], [ %119, %111 ]
  %208 = phi i64 [ %238, %237 ], [ %112, %111 ]
  %209 = inttoptr i64 %207 to ptr
  %210 = load i64, ptr getelementptr inbounds nuw (i8, ptr @tcl_operator, i64 96), align 8
  %211 = call i64 @llvm.smax.i64(i64 %210, i64 0)
  br label %212

212:                                              ; preds = %215, %206
  %213 = phi i64 [ 0, %206 ], [ %216, %215 ]
  %214 = icmp eq i64 %213, %211
  br i1 %214, label %222, label %215

215:                                              ; preds = %212
  %216 = add nuw i64 %213, 1
  %217 = getelementptr inbounds nuw i64, ptr %209, i64 %216
  %218 = load i64, ptr %217, align 8
  %219 = getelementptr inbounds nuw i64, ptr %15, i64 %213
  %220 = load i64, ptr %219, align 8
  %221 = icmp eq i64 %218, %220
  br i1 %221, label %212, label %237, !llvm.loop !11

222:                                              ; preds = %212
  %223 = getelementptr inbounds nuw i8, ptr %209, i64 8
  %224 = getelementptr inbounds i64, ptr %223, i64 %210
  %225 = load i64, ptr getelementptr inbounds nuw (i8, ptr @tcl_operator, i64 80), align 8
  %226 = icmp slt i64 %225, 1
  br i1 %226, label %244, label %230

227:                                              ; preds = %230
  %228 = add nuw nsw i64 %231, 1
  %229 = icmp eq i64 %228, %225
  br i1 %229, label %244, label %230, !llvm.loop !9

230:                                              ; preds = %222, %227
  %231 = phi i64 [ %228, %227 ], [ 0, %222 ]
  %232 = getelementptr inbounds nuw i64, ptr %12, i64 %231
  %233 = load i64, ptr %232, align 8
  %234 = getelementptr inbounds nuw i64, ptr %224, i64 %231
  %235 = load i64, ptr %234, align 8
  %236 = icmp ult i64 %233, %235
  br i1 %236, label %237, label %227

237:                                              ; preds = %215, %230
  %238 = add nsw i64 %208, 1
  %239 = load i64, ptr %114, align 8
  %240 = and i64 %239, %238
  %241 = getelementptr inbounds [0 x ptr], ptr %115, i64 0, i64 %240
  %242 = load atomic i64, ptr %241 acquire, align 8
  %243 = icmp eq i64 %242, 0
  br i1 %243, label %121, label %206

244:                                              ; preds = %222, %227, %192
  %245 = phi ptr [ %17, %192 ], [ %209, %227 ], [ %209, %222 ]
  %246 = call fastcc i1 @call(ptr noundef %245, ptr noundef %0, ptr noundef %12)
  br i1 %246, label %253, label %247

247:                                              ; preds = %154, %176, %121, %124, %132, %110, %244
  %248 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @tcl_operator, i64 144), align 8
  %249 = call ptr %248(ptr noundef %0)
  %250 = icmp eq ptr %249, null
  br i1 %250, label %253, label %251

251:                                              ; preds = %247
  %252 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @tcl_operator, i64 56), align 8
  call void %252(i1 noundef false, ptr noundef nonnull @.str, ptr noundef nonnull @.str.1, i32 noundef 0, ptr noundef nonnull %249)
  br label %253

253:                                              ; preds = %247, %251, %244
  ret void
}

; Function Attrs: mustprogress nocallback nofree nosync nounwind willreturn memory(argmem: readwrite)
declare void @llvm.lifetime.start.p0(i64 immarg, ptr nocapture) #1

; Function Attrs: inlinehint uwtable
define internal fastcc noundef i1 @call(ptr noundef nonnull %0, ptr nocapture noundef %1, ptr noundef nonnull %2) unnamed_addr #2 {
  %4 = alloca [2 x i64], align 8
  %5 = getelementptr inbounds nuw i8, ptr %0, i64 8
  %6 = load i64, ptr getelementptr inbounds nuw (i8, ptr @tcl_operator, i64 96), align 8
  %7 = getelementptr inbounds i64, ptr %5, i64 %6
  %8 = load i64, ptr getelementptr inbounds nuw (i8, ptr @tcl_operator, i64 80), align 8
  %9 = getelementptr inbounds i64, ptr %7, i64 %8
  %10 = load i64, ptr getelementptr inbounds nuw (i8, ptr @tcl_operator, i64 88), align 8
  %11 = alloca ptr, i64 %10, align 8
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %4) #6
  %12 = icmp sgt i64 %10, 0
  br i1 %12, label %18, label %13

13:                                               ; preds = %32, %3
  %14 = phi ptr [ %9, %3 ], [ %41, %32 ]
  %15 = phi i64 [ 0, %3 ], [ %42, %32 ]
  %16 = load i64, ptr getelementptr inbounds nuw (i8, ptr @tcl_operator, i64 112), align 8
  %17 = icmp sgt i64 %16, 0
  br i1 %17, label %53, label %45

18:                                               ; preds = %3, %32
  %19 = phi i64 [ %42, %32 ], [ 0, %3 ]
  %20 = phi ptr [ %41, %32 ], [ %9, %3 ]
  %21 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @tcl_operator, i64 72), align 8
  %22 = getelementptr inbounds nuw %struct.output, ptr %21, i64 %19
  %23 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @tcl_operator, i64 40), align 8
  %24 = load i64, ptr %22, align 8
  %25 = getelementptr inbounds i64, ptr %20, i64 %24
  %26 = getelementptr inbounds nuw i8, ptr %22, i64 8
  %27 = load i64, ptr %26, align 8
  %28 = trunc i64 %27 to i32
  %29 = getelementptr inbounds nuw ptr, ptr %11, i64 %19
  %30 = call i32 %23(i64 noundef %24, ptr noundef %20, ptr noundef %25, i32 noundef %28, i32 noundef 0, i32 noundef 0, ptr noundef nonnull %29)
  %31 = icmp eq i32 %30, 0
  br i1 %31, label %32, label %85

32:                                               ; preds = %18
  %33 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @tcl_operator, i64 32), align 8
  %34 = load ptr, ptr %29, align 8
  %35 = load i64, ptr getelementptr inbounds nuw (i8, ptr @tcl_operator, i64 80), align 8
  %36 = getelementptr i64, ptr %2, i64 %35
  %37 = getelementptr i64, ptr %36, i64 %19
  %38 = call i32 %33(ptr noundef %34, ptr noundef %37)
  %39 = load i64, ptr %22, align 8
  %40 = shl nsw i64 %39, 4
  %41 = getelementptr inbounds i8, ptr %20, i64 %40
  %42 = add nuw nsw i64 %19, 1
  %43 = load i64, ptr getelementptr inbounds nuw (i8, ptr @tcl_operator, i64 88), align 8
  %44 = icmp slt i64 %42, %43
  br i1 %44, label %18, label %13, !llvm.loop !12

45:                                               ; preds = %53, %13
  %46 = load i64, ptr %0, align 8
  %47 = inttoptr i64 %46 to ptr
  %48 = call i32 %47(ptr noundef nonnull %2, ptr noundef nonnull %4)
  %49 = icmp eq i32 %48, 0
  br i1 %49, label %50, label %85

50:                                               ; preds = %45
  %51 = load i64, ptr getelementptr inbounds nuw (i8, ptr @tcl_operator, i64 80), align 8
  %52 = icmp sgt i64 %51, 0
  br i1 %52, label %68, label %65

53:                                               ; preds = %13, %53
  %54 = phi i64 [ %62, %53 ], [ 0, %13 ]
  %55 = getelementptr inbounds nuw i64, ptr %14, i64 %54
  %56 = load i64, ptr %55, align 8
  %57 = load i64, ptr getelementptr inbounds nuw (i8, ptr @tcl_operator, i64 80), align 8
  %58 = load i64, ptr getelementptr inbounds nuw (i8, ptr @tcl_operator, i64 88), align 8
  %59 = getelementptr i64, ptr %2, i64 %57
  %60 = getelementptr i64, ptr %59, i64 %58
  %61 = getelementptr i64, ptr %60, i64 %54
  store i64 %56, ptr %61, align 8
  %62 = add nuw nsw i64 %54, 1
  %63 = load i64, ptr getelementptr inbounds nuw (i8, ptr @tcl_operator, i64 112), align 8
  %64 = icmp slt i64 %62, %63
  br i1 %64, label %53, label %45, !llvm.loop !13

65:                                               ; preds = %68, %50
  %66 = load i64, ptr getelementptr inbounds nuw (i8, ptr @tcl_operator, i64 88), align 8
  %67 = icmp sgt i64 %66, 0
  br i1 %67, label %77, label %96

68:                                               ; preds = %50, %68
  %69 = phi i64 [ %74, %68 ], [ 0, %50 ]
  %70 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @tcl_operator, i64 48), align 8
  %71 = getelementptr inbounds nuw ptr, ptr %1, i64 %69
  %72 = load ptr, ptr %71, align 8
  %73 = call i32 %70(ptr noundef %72)
  %74 = add nuw nsw i64 %69, 1
  %75 = load i64, ptr getelementptr inbounds nuw (i8, ptr @tcl_operator, i64 80), align 8
  %76 = icmp slt i64 %74, %75
  br i1 %76, label %68, label %65, !llvm.loop !14

77:                                               ; preds = %65, %77
  %78 = phi i64 [ %82, %77 ], [ 0, %65 ]
  %79 = getelementptr inbounds nuw ptr, ptr %11, i64 %78
  %80 = load ptr, ptr %79, align 8
  %81 = getelementptr inbounds nuw ptr, ptr %1, i64 %78
  store ptr %80, ptr %81, align 8
  %82 = add nuw nsw i64 %78, 1
  %83 = load i64, ptr getelementptr inbounds nuw (i8, ptr @tcl_operator, i64 88), align 8
  %84 = icmp slt i64 %82, %83
  br i1 %84, label %77, label %96, !llvm.loop !15

85:                                               ; preds = %18, %45
  %86 = phi i64 [ %15, %45 ], [ %19, %18 ]
  %87 = icmp sgt i64 %86, 0
  br i1 %87, label %88, label %96

88:                                               ; preds = %85, %88
  %89 = phi i64 [ %91, %88 ], [ %86, %85 ]
  %90 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @tcl_operator, i64 48), align 8
  %91 = add nsw i64 %89, -1
  %92 = getelementptr inbounds nuw ptr, ptr %11, i64 %91
  %93 = load ptr, ptr %92, align 8
  %94 = call i32 %90(ptr noundef %93)
  %95 = icmp samesign ugt i64 %89, 1
  br i1 %95, label %88, label %96, !llvm.loop !16

96:                                               ; preds = %88, %77, %65, %85
  %97 = phi i1 [ false, %85 ], [ true, %65 ], [ true, %77 ], [ false, %88 ]
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %4) #6
  ret i1 %97
}

; Function Attrs: mustprogress nocallback nofree nosync nounwind willreturn memory(argmem: readwrite)
declare void @llvm.lifetime.end.p0(i64 immarg, ptr nocapture) #1

; Function Attrs: mustprogress nofree norecurse nounwind willreturn memory(argmem: readwrite) uwtable
define void @tcl_operator_publish(ptr nocapture noundef writeonly %0, ptr noundef %1) local_unnamed_addr #3 {
  %3 = ptrtoint ptr %1 to i64
  store atomic i64 %3, ptr %0 release, align 8
  ret void
}

; Function Attrs: mustprogress nocallback nofree nosync nounwind speculatable willreturn memory(none)
declare i64 @llvm.ctlz.i64(i64, i1 immarg) #4

; Function Attrs: nocallback nofree nosync nounwind speculatable willreturn memory(none)
declare i64 @llvm.smax.i64(i64, i64) #5

attributes #0 = { uwtable "no-trapping-math"="true" "stack-protector-buffer-size"="8" }
attributes #1 = { mustprogress nocallback nofree nosync nounwind willreturn memory(argmem: readwrite) }
attributes #2 = { inlinehint uwtable "no-trapping-math"="true" "stack-protector-buffer-size"="8" }
attributes #3 = { mustprogress nofree norecurse nounwind willreturn memory(argmem: readwrite) uwtable "no-trapping-math"="true" "stack-protector-buffer-size"="8" }
attributes #4 = { mustprogress nocallback nofree nosync nounwind speculatable willreturn memory(none) }
attributes #5 = { nocallback nofree nosync nounwind speculatable willreturn memory(none) }
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
!9 = distinct !{!9, !6}
!10 = distinct !{!10, !6}
!11 = distinct !{!11, !6}
!12 = distinct !{!12, !6}
!13 = distinct !{!13, !6}
!14 = distinct !{!14, !6}
!15 = distinct !{!15, !6}
!16 = distinct !{!16, !6}
