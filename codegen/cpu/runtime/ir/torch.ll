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
  %6 = alloca [2 x ptr], align 16
  %7 = load i64, ptr getelementptr inbounds nuw (i8, ptr @tcl_operator, i64 80), align 8
  %8 = load i64, ptr getelementptr inbounds nuw (i8, ptr @tcl_operator, i64 88), align 8
  %9 = add nsw i64 %8, %7
  %10 = load i64, ptr getelementptr inbounds nuw (i8, ptr @tcl_operator, i64 112), align 8
  %11 = add nsw i64 %9, %10
  %12 = alloca i64, i64 %11, align 16
  %13 = load i64, ptr getelementptr inbounds nuw (i8, ptr @tcl_operator, i64 96), align 8
  %14 = add nsw i64 %13, 1
  %15 = alloca i64, i64 %14, align 16
  %16 = load i64, ptr getelementptr inbounds nuw (i8, ptr @tcl_operator, i64 104), align 8
  %17 = alloca i64, i64 %16, align 16
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
  %99 = load ptr, ptr %6, align 16
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
  br label %249

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
  br i1 %120, label %121, label %208

121:                                              ; preds = %239, %111
  %122 = load i64, ptr getelementptr inbounds nuw (i8, ptr @tcl_operator, i64 112), align 8
  %123 = icmp eq i64 %122, 1
  br i1 %123, label %124, label %249

124:                                              ; preds = %121
  %125 = load i64, ptr getelementptr inbounds nuw (i8, ptr @tcl_operator, i64 120), align 8
  %126 = getelementptr inbounds i64, ptr %15, i64 %125
  %127 = load i64, ptr %126, align 8
  %128 = icmp sgt i64 %127, -1
  %129 = load i64, ptr getelementptr inbounds nuw (i8, ptr @tcl_operator, i64 128), align 8
  %130 = icmp slt i64 %127, %129
  %131 = select i1 %128, i1 %130, i1 false
  br i1 %131, label %132, label %249

132:                                              ; preds = %124
  %133 = icmp eq i64 %127, 0
  %134 = call range(i64 1, 65) i64 @llvm.ctlz.i64(i64 %127, i1 true)
  %135 = shl nuw nsw i64 %134, 1
  %136 = sub nuw nsw i64 128, %135
  %137 = select i1 %133, i64 0, i64 %136
  %138 = load i64, ptr getelementptr inbounds nuw (i8, ptr @tcl_operator, i64 136), align 8
  %139 = srem i64 %127, %138
  %140 = icmp eq i64 %139, 0
  %141 = zext i1 %140 to i64
  %142 = or disjoint i64 %137, %141
  %143 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @tcl_operator, i64 160), align 8
  %144 = getelementptr inbounds nuw ptr, ptr %143, i64 %142
  %145 = load atomic i64, ptr %144 acquire, align 8
  %146 = inttoptr i64 %145 to ptr
  %147 = icmp eq i64 %145, 0
  br i1 %147, label %249, label %148

148:                                              ; preds = %132
  %149 = getelementptr inbounds nuw i8, ptr %146, i64 8
  %150 = load i64, ptr getelementptr inbounds nuw (i8, ptr @tcl_operator, i64 96), align 8
  %151 = icmp sgt i64 %150, 0
  br i1 %151, label %152, label %171

152:                                              ; preds = %148
  %153 = shl i64 %150, 4
  %154 = or disjoint i64 %153, 8
  %155 = getelementptr i8, ptr %146, i64 %154
  br label %156

156:                                              ; preds = %167, %152
  %157 = phi i64 [ %168, %167 ], [ 0, %152 ]
  %158 = phi ptr [ %169, %167 ], [ %149, %152 ]
  %159 = load i64, ptr %158, align 8
  %160 = getelementptr inbounds nuw i8, ptr %158, i64 8
  %161 = load i64, ptr %160, align 8
  %162 = mul nsw i64 %161, %127
  %163 = add nsw i64 %162, %159
  %164 = getelementptr inbounds nuw i64, ptr %15, i64 %157
  %165 = load i64, ptr %164, align 8
  %166 = icmp eq i64 %163, %165
  br i1 %166, label %167, label %249

167:                                              ; preds = %156
  %168 = add nuw nsw i64 %157, 1
  %169 = getelementptr inbounds nuw i8, ptr %158, i64 16
  %170 = icmp eq i64 %168, %150
  br i1 %170, label %171, label %156, !llvm.loop !8

171:                                              ; preds = %167, %148
  %172 = phi ptr [ %149, %148 ], [ %155, %167 ]
  %173 = load i64, ptr getelementptr inbounds nuw (i8, ptr @tcl_operator, i64 80), align 8
  %174 = icmp slt i64 %173, 1
  br i1 %174, label %185, label %178

175:                                              ; preds = %178
  %176 = add nuw nsw i64 %179, 1
  %177 = icmp eq i64 %176, %173
  br i1 %177, label %185, label %178, !llvm.loop !9

178:                                              ; preds = %171, %175
  %179 = phi i64 [ %176, %175 ], [ 0, %171 ]
  %180 = getelementptr inbounds nuw i64, ptr %12, i64 %179
  %181 = load i64, ptr %180, align 8
  %182 = getelementptr inbounds nuw i64, ptr %172, i64 %179
  %183 = load i64, ptr %182, align 8
  %184 = icmp ult i64 %181, %183
  br i1 %184, label %249, label %175

185:                                              ; preds = %175, %171
  %186 = add nsw i64 %150, 1
  %187 = add nsw i64 %186, %173
  %188 = load i64, ptr getelementptr inbounds nuw (i8, ptr @tcl_operator, i64 104), align 8
  %189 = add nsw i64 %188, -1
  %190 = load i64, ptr %146, align 8
  store i64 %190, ptr %17, align 16
  %191 = icmp slt i64 %187, %189
  br i1 %191, label %192, label %194

192:                                              ; preds = %185
  %193 = getelementptr inbounds i64, ptr %172, i64 %173
  br label %196

194:                                              ; preds = %196, %185
  %195 = getelementptr inbounds i64, ptr %17, i64 %189
  store i64 %127, ptr %195, align 8
  br label %246

196:                                              ; preds = %196, %192
  %197 = phi i64 [ %205, %196 ], [ %187, %192 ]
  %198 = phi ptr [ %206, %196 ], [ %193, %192 ]
  %199 = load i64, ptr %198, align 8
  %200 = getelementptr inbounds nuw i8, ptr %198, i64 8
  %201 = load i64, ptr %200, align 8
  %202 = mul nsw i64 %201, %127
  %203 = add nsw i64 %202, %199
  %204 = getelementptr inbounds i64, ptr %17, i64 %197
  store i64 %203, ptr %204, align 8
  %205 = add nsw i64 %197, 1
  %206 = getelementptr inbounds nuw i8, ptr %198, i64 16
  %207 = icmp slt i64 %205, %189
  br i1 %207, label %196, label %194, !llvm.loop !10

208:                                              ; preds = %111, %239
  %209 = phi i64 [ %244, %239 ], [ %119, %111 ]
  %210 = phi i64 [ %240, %239 ], [ %112, %111 ]
  %211 = inttoptr i64 %209 to ptr
  %212 = load i64, ptr getelementptr inbounds nuw (i8, ptr @tcl_operator, i64 96), align 8
  %213 = call i64 @llvm.smax.i64(i64 %212, i64 0)
  br label %214

214:                                              ; preds = %217, %208
  %215 = phi i64 [ 0, %208 ], [ %218, %217 ]
  %216 = icmp eq i64 %215, %213
  br i1 %216, label %224, label %217

217:                                              ; preds = %214
  %218 = add nuw i64 %215, 1
  %219 = getelementptr inbounds nuw i64, ptr %211, i64 %218
  %220 = load i64, ptr %219, align 8
  %221 = getelementptr inbounds nuw i64, ptr %15, i64 %215
  %222 = load i64, ptr %221, align 8
  %223 = icmp eq i64 %220, %222
  br i1 %223, label %214, label %239, !llvm.loop !11

224:                                              ; preds = %214
  %225 = getelementptr inbounds nuw i8, ptr %211, i64 8
  %226 = getelementptr inbounds i64, ptr %225, i64 %212
  %227 = load i64, ptr getelementptr inbounds nuw (i8, ptr @tcl_operator, i64 80), align 8
  %228 = icmp slt i64 %227, 1
  br i1 %228, label %246, label %232

229:                                              ; preds = %232
  %230 = add nuw nsw i64 %233, 1
  %231 = icmp eq i64 %230, %227
  br i1 %231, label %246, label %232, !llvm.loop !9

232:                                              ; preds = %224, %229
  %233 = phi i64 [ %230, %229 ], [ 0, %224 ]
  %234 = getelementptr inbounds nuw i64, ptr %12, i64 %233
  %235 = load i64, ptr %234, align 8
  %236 = getelementptr inbounds nuw i64, ptr %226, i64 %233
  %237 = load i64, ptr %236, align 8
  %238 = icmp ult i64 %235, %237
  br i1 %238, label %239, label %229

239:                                              ; preds = %217, %232
  %240 = add nsw i64 %210, 1
  %241 = load i64, ptr %114, align 8
  %242 = and i64 %241, %240
  %243 = getelementptr inbounds [0 x ptr], ptr %115, i64 0, i64 %242
  %244 = load atomic i64, ptr %243 acquire, align 8
  %245 = icmp eq i64 %244, 0
  br i1 %245, label %121, label %208

246:                                              ; preds = %224, %229, %194
  %247 = phi ptr [ %17, %194 ], [ %211, %229 ], [ %211, %224 ]
  %248 = call fastcc i1 @call(ptr noundef %247, ptr noundef %0, ptr noundef %12)
  br i1 %248, label %255, label %249

249:                                              ; preds = %156, %178, %121, %124, %132, %110, %246
  %250 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @tcl_operator, i64 144), align 8
  %251 = call ptr %250(ptr noundef %0)
  %252 = icmp eq ptr %251, null
  br i1 %252, label %255, label %253

253:                                              ; preds = %249
  %254 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @tcl_operator, i64 56), align 8
  call void %254(i1 noundef zeroext false, ptr noundef nonnull @.str, ptr noundef nonnull @.str.1, i32 noundef 0, ptr noundef nonnull %251)
  br label %255

255:                                              ; preds = %249, %253, %246
  ret void
}

; Function Attrs: mustprogress nocallback nofree nosync nounwind willreturn memory(argmem: readwrite)
declare void @llvm.lifetime.start.p0(i64 immarg, ptr nocapture) #1

; Function Attrs: inlinehint uwtable
define internal fastcc noundef i1 @call(ptr noundef nonnull %0, ptr nocapture noundef %1, ptr noundef nonnull %2) unnamed_addr #2 {
  %4 = alloca [2 x i64], align 16
  %5 = getelementptr inbounds nuw i8, ptr %0, i64 8
  %6 = load i64, ptr getelementptr inbounds nuw (i8, ptr @tcl_operator, i64 96), align 8
  %7 = getelementptr inbounds i64, ptr %5, i64 %6
  %8 = load i64, ptr getelementptr inbounds nuw (i8, ptr @tcl_operator, i64 80), align 8
  %9 = getelementptr inbounds i64, ptr %7, i64 %8
  %10 = load i64, ptr getelementptr inbounds nuw (i8, ptr @tcl_operator, i64 88), align 8
  %11 = alloca ptr, i64 %10, align 16
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
