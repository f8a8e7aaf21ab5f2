%struct.timespec = type { i64, i64 }
%struct.cpu_set_t = type { [16 x i64] }
%struct.__sigset_t = type { [16 x i64] }
%struct.worker = type { i32, i32, i64, ptr, i64, i64, i64, i64, i64, i32, i64, [48 x i8] }
%struct.rusage = type { %struct.timeval, %struct.timeval, %union.anon, %union.anon.0, %union.anon.1, %union.anon.2, %union.anon.3, %union.anon.4, %union.anon.5, %union.anon.6, %union.anon.7, %union.anon.8, %union.anon.9, %union.anon.10, %union.anon.11, %union.anon.12 }
%struct.timeval = type { i64, i64 }
%union.anon = type { i64 }
%union.anon.0 = type { i64 }
%union.anon.1 = type { i64 }
%union.anon.2 = type { i64 }
%union.anon.3 = type { i64 }
%union.anon.4 = type { i64 }
%union.anon.5 = type { i64 }
%union.anon.6 = type { i64 }
%union.anon.7 = type { i64 }
%union.anon.8 = type { i64 }
%union.anon.9 = type { i64 }
%union.anon.10 = type { i64 }
%union.anon.11 = type { i64 }
%union.anon.12 = type { i64 }

@__const.sleep_while_missing.at_most = private unnamed_addr constant %struct.timespec { i64 0, i64 1000000 }, align 8

; Function Attrs: uwtable
define i32 @tcl_pool_run(ptr noundef %0) local_unnamed_addr #0 {
  %2 = alloca %struct.timespec, align 8
  %3 = alloca %struct.timespec, align 8
  %4 = alloca %struct.timespec, align 8
  %5 = alloca i32, align 4
  %6 = alloca %struct.cpu_set_t, align 8
  %7 = alloca %struct.timespec, align 8
  %8 = alloca %struct.timespec, align 8
  %9 = alloca %struct.timespec, align 8
  %10 = alloca %struct.timespec, align 8
  %11 = alloca i32, align 4
  %12 = alloca %struct.timespec, align 8
  %13 = alloca %struct.timespec, align 8
  %14 = alloca %struct.timespec, align 8
  %15 = alloca %struct.timespec, align 8
  %16 = alloca %struct.__sigset_t, align 8
  %17 = alloca %struct.__sigset_t, align 8
  %18 = alloca [64 x i8], align 8
  %19 = alloca %struct.timespec, align 8
  %20 = alloca %struct.timespec, align 8
  %21 = alloca %struct.timespec, align 8
  %22 = getelementptr inbounds nuw i8, ptr %0, i64 48
  %23 = load ptr, ptr %22, align 8
  %24 = getelementptr inbounds nuw i8, ptr %0, i64 24
  %25 = load ptr, ptr %24, align 8
  %26 = getelementptr inbounds nuw i8, ptr %0, i64 40
  %27 = load i64, ptr %26, align 8
  tail call void @llvm.memset.p0.i64(ptr align 1 %25, i8 0, i64 %27, i1 false)
  %28 = cmpxchg ptr %23, i64 0, i64 1 acquire monotonic, align 64
  %29 = extractvalue { i64, i1 } %28, 1
  br i1 %29, label %38, label %30

30:                                               ; preds = %1
  %31 = load ptr, ptr %0, align 8
  %32 = getelementptr inbounds nuw i8, ptr %0, i64 8
  %33 = load ptr, ptr %32, align 8
  %34 = getelementptr inbounds nuw i8, ptr %0, i64 16
  %35 = load ptr, ptr %34, align 8
  %36 = load ptr, ptr %24, align 8
  %37 = tail call i32 %31(ptr noundef %33, ptr noundef %35, i64 noundef 0, i64 noundef 1, ptr noundef %36)
  br label %480

38:                                               ; preds = %1
  %39 = getelementptr inbounds nuw i8, ptr %23, i64 144
  %40 = load atomic i64, ptr %39 monotonic, align 16
  %41 = getelementptr inbounds nuw i8, ptr %0, i64 64
  %42 = load i64, ptr %41, align 8
  %43 = getelementptr inbounds nuw i8, ptr %0, i64 72
  %44 = load i64, ptr %43, align 8
  %45 = and i64 %44, -4
  %46 = icmp eq i64 %45, 4
  %47 = zext i1 %46 to i64
  %48 = xor i64 %42, %47
  %49 = icmp eq i64 %48, 1
  br i1 %49, label %50, label %54

50:                                               ; preds = %38
  %51 = getelementptr inbounds nuw i8, ptr %23, i64 56
  %52 = load i64, ptr %51, align 8
  %53 = icmp eq i64 %52, 0
  br i1 %53, label %123, label %54

54:                                               ; preds = %38, %50
  %55 = getelementptr inbounds nuw i8, ptr %23, i64 16
  %56 = load i64, ptr %55, align 16
  %57 = getelementptr inbounds nuw i8, ptr %23, i64 24
  %58 = load i64, ptr %57, align 8
  %59 = or i64 %56, %40
  %60 = or i64 %59, %58
  %61 = icmp eq i64 %60, 0
  br i1 %61, label %147, label %62

62:                                               ; preds = %54
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %21) #10
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 8 dereferenceable(16) %21, i8 0, i64 16, i1 false)
  %63 = call i32 @clock_gettime(i32 noundef 1, ptr noundef nonnull %21) #10
  %64 = load i64, ptr %21, align 8
  %65 = mul nsw i64 %64, 1000000000
  %66 = getelementptr inbounds nuw i8, ptr %21, i64 8
  %67 = load i64, ptr %66, align 8
  %68 = add nsw i64 %65, %67
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %21) #10
  %69 = atomicrmw xchg ptr %39, i64 0 monotonic, align 16
  %70 = getelementptr inbounds nuw i8, ptr %23, i64 56
  %71 = load i64, ptr %70, align 8
  %72 = icmp eq i64 %71, 0
  br i1 %72, label %73, label %147

73:                                               ; preds = %62
  %74 = icmp eq i64 %69, 0
  br i1 %74, label %85, label %75

75:                                               ; preds = %73
  %76 = load i64, ptr %57, align 8
  %77 = call i64 @llvm.smin.i64(i64 %76, i64 4)
  %78 = add nsw i64 %77, 1
  store i64 %78, ptr %57, align 8
  %79 = shl i64 %69, %78
  %80 = getelementptr inbounds nuw i8, ptr %23, i64 32
  store i64 %79, ptr %80, align 32
  %81 = getelementptr inbounds nuw i8, ptr %23, i64 152
  %82 = atomicrmw xchg ptr %81, i64 0 monotonic, align 8
  %83 = getelementptr inbounds nuw i8, ptr %23, i64 48
  store i64 %82, ptr %83, align 16
  %84 = add nsw i64 %79, %68
  store i64 %84, ptr %55, align 16
  br label %123

85:                                               ; preds = %73
  %86 = load i64, ptr %55, align 16
  %87 = icmp eq i64 %86, 0
  br i1 %87, label %109, label %88

88:                                               ; preds = %85
  %89 = getelementptr inbounds nuw i8, ptr %0, i64 56
  %90 = load i64, ptr %89, align 8
  %91 = add nsw i64 %90, 4000000
  %92 = getelementptr inbounds nuw i8, ptr %23, i64 48
  %93 = load i64, ptr %92, align 16
  %94 = icmp slt i64 %91, %93
  %95 = getelementptr inbounds nuw i8, ptr %23, i64 32
  %96 = load i64, ptr %95, align 32
  %97 = load i64, ptr %57, align 8
  br i1 %94, label %98, label %101

98:                                               ; preds = %88
  %99 = shl i64 %91, %97
  %100 = call noundef i64 @llvm.smin.i64(i64 %96, i64 %99)
  br label %104

101:                                              ; preds = %88
  %102 = shl i64 %90, %97
  %103 = call noundef i64 @llvm.smax.i64(i64 %96, i64 %102)
  br label %104

104:                                              ; preds = %101, %98
  %105 = phi i64 [ %100, %98 ], [ %103, %101 ]
  %106 = sub i64 %86, %96
  %107 = add i64 %106, %105
  %108 = icmp slt i64 %68, %107
  br i1 %108, label %123, label %113

109:                                              ; preds = %85
  %110 = getelementptr inbounds nuw i8, ptr %23, i64 40
  %111 = load i64, ptr %110, align 8
  %112 = icmp slt i64 %68, %111
  br i1 %112, label %147, label %114

113:                                              ; preds = %104
  store i64 0, ptr %55, align 16
  br label %119

114:                                              ; preds = %109
  %115 = load i64, ptr %57, align 8
  %116 = sdiv i64 %115, 2
  store i64 %116, ptr %57, align 8
  %117 = getelementptr inbounds nuw i8, ptr %23, i64 32
  %118 = load i64, ptr %117, align 32
  br label %119

119:                                              ; preds = %114, %113
  %120 = phi i64 [ %118, %114 ], [ %96, %113 ]
  %121 = add nsw i64 %120, %68
  %122 = getelementptr inbounds nuw i8, ptr %23, i64 40
  store i64 %121, ptr %122, align 8
  br label %147

123:                                              ; preds = %104, %75, %50
  %124 = phi i1 [ true, %50 ], [ false, %75 ], [ false, %104 ]
  store atomic i64 0, ptr %23 release, align 64
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %20) #10
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 8 dereferenceable(16) %20, i8 0, i64 16, i1 false)
  %125 = call i32 @clock_gettime(i32 noundef 1, ptr noundef nonnull %20) #10
  %126 = load i64, ptr %20, align 8
  %127 = getelementptr inbounds nuw i8, ptr %20, i64 8
  %128 = load i64, ptr %127, align 8
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %20) #10
  %129 = load ptr, ptr %0, align 8
  %130 = getelementptr inbounds nuw i8, ptr %0, i64 8
  %131 = load ptr, ptr %130, align 8
  %132 = getelementptr inbounds nuw i8, ptr %0, i64 16
  %133 = load ptr, ptr %132, align 8
  %134 = load ptr, ptr %24, align 8
  %135 = call i32 %129(ptr noundef %131, ptr noundef %133, i64 noundef 0, i64 noundef 1, ptr noundef %134)
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %19) #10
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 8 dereferenceable(16) %19, i8 0, i64 16, i1 false)
  %136 = call i32 @clock_gettime(i32 noundef 1, ptr noundef nonnull %19) #10
  %137 = load i64, ptr %19, align 8
  %138 = getelementptr inbounds nuw i8, ptr %19, i64 8
  %139 = load i64, ptr %138, align 8
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %19) #10
  %140 = sub i64 %137, %126
  %141 = mul i64 %140, 1000000000
  %142 = sub i64 %139, %128
  %143 = add i64 %142, %141
  br i1 %124, label %144, label %145

144:                                              ; preds = %123
  call fastcc void @remember(ptr noundef nonnull %0, i64 noundef %143)
  br label %480

145:                                              ; preds = %123
  %146 = getelementptr inbounds nuw i8, ptr %0, i64 56
  store i64 %143, ptr %146, align 8
  br label %480

147:                                              ; preds = %109, %119, %62, %54
  %148 = getelementptr inbounds nuw i8, ptr %0, i64 32
  %149 = load i64, ptr %148, align 8
  %150 = add nsw i64 %149, -1
  %151 = getelementptr inbounds nuw i8, ptr %23, i64 8
  %152 = load i64, ptr %151, align 8
  %153 = icmp slt i64 %152, %150
  br i1 %153, label %154, label %183

154:                                              ; preds = %147
  call void @llvm.lifetime.start.p0(i64 128, ptr nonnull %16) #10
  call void @llvm.lifetime.start.p0(i64 128, ptr nonnull %17) #10
  call void @llvm.lifetime.start.p0(i64 64, ptr nonnull %18) #10
  %155 = call i32 @sigfillset(ptr noundef nonnull %16) #10
  %156 = call i32 @pthread_sigmask(i32 noundef 2, ptr noundef nonnull %16, ptr noundef nonnull %17) #10
  %157 = call i32 @pthread_attr_init(ptr noundef nonnull %18) #10
  %158 = call i32 @pthread_attr_setdetachstate(ptr noundef nonnull %18, i32 noundef 1) #10
  %159 = call i32 @pthread_attr_setstacksize(ptr noundef nonnull %18, i64 noundef 4194304) #10
  %160 = getelementptr inbounds nuw i8, ptr %23, i64 4352
  %161 = load i64, ptr %151, align 8
  %162 = icmp slt i64 %161, %150
  br i1 %162, label %163, label %179

163:                                              ; preds = %154, %175
  %164 = phi i64 [ %177, %175 ], [ %161, %154 ]
  %165 = getelementptr inbounds [0 x %struct.worker], ptr %160, i64 0, i64 %164
  store atomic i32 0, ptr %165 monotonic, align 64
  %166 = getelementptr inbounds nuw i8, ptr %165, i64 4
  store atomic i32 0, ptr %166 monotonic, align 4
  %167 = getelementptr inbounds nuw i8, ptr %165, i64 8
  store atomic i64 -1, ptr %167 monotonic, align 8
  %168 = getelementptr inbounds nuw i8, ptr %165, i64 16
  store ptr %23, ptr %168, align 16
  %169 = getelementptr inbounds nuw i8, ptr %165, i64 48
  store i64 0, ptr %169, align 16
  %170 = getelementptr inbounds nuw i8, ptr %165, i64 56
  store atomic i64 0, ptr %170 monotonic, align 8
  %171 = getelementptr inbounds nuw i8, ptr %165, i64 64
  store atomic i32 0, ptr %171 monotonic, align 64
  %172 = getelementptr inbounds nuw i8, ptr %165, i64 24
  %173 = call i32 @pthread_create(ptr noundef nonnull %172, ptr noundef nonnull %18, ptr noundef nonnull @live, ptr noundef nonnull %165) #10
  %174 = icmp eq i32 %173, 0
  br i1 %174, label %175, label %179

175:                                              ; preds = %163
  %176 = load i64, ptr %151, align 8
  %177 = add nsw i64 %176, 1
  store i64 %177, ptr %151, align 8
  %178 = icmp slt i64 %177, %150
  br i1 %178, label %163, label %179, !llvm.loop !5

179:                                              ; preds = %175, %163, %154
  %180 = call i32 @pthread_attr_destroy(ptr noundef nonnull %18) #10
  %181 = call i32 @pthread_sigmask(i32 noundef 2, ptr noundef nonnull %17, ptr noundef null) #10
  %182 = load i64, ptr %151, align 8
  call void @llvm.lifetime.end.p0(i64 64, ptr nonnull %18) #10
  call void @llvm.lifetime.end.p0(i64 128, ptr nonnull %17) #10
  call void @llvm.lifetime.end.p0(i64 128, ptr nonnull %16) #10
  br label %183

183:                                              ; preds = %179, %147
  %184 = phi i64 [ %182, %179 ], [ %152, %147 ]
  %185 = call noundef i64 @llvm.smin.i64(i64 %184, i64 %150)
  %186 = getelementptr inbounds nuw i8, ptr %23, i64 64
  store ptr %0, ptr %186, align 64
  %187 = getelementptr inbounds nuw i8, ptr %23, i64 72
  store i64 %185, ptr %187, align 8
  %188 = tail call i64 @pthread_self() #13
  %189 = getelementptr inbounds nuw i8, ptr %23, i64 88
  store i64 %188, ptr %189, align 8
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %15) #10
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 8 dereferenceable(16) %15, i8 0, i64 16, i1 false)
  %190 = call i32 @clock_gettime(i32 noundef 1, ptr noundef nonnull %15) #10
  %191 = load i64, ptr %15, align 8
  %192 = mul nsw i64 %191, 1000000000
  %193 = getelementptr inbounds nuw i8, ptr %15, i64 8
  %194 = load i64, ptr %193, align 8
  %195 = add nsw i64 %192, %194
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %15) #10
  %196 = getelementptr inbounds nuw i8, ptr %23, i64 80
  store i64 %195, ptr %196, align 16
  %197 = getelementptr inbounds nuw i8, ptr %23, i64 104
  %198 = load i32, ptr %197, align 8
  %199 = add i32 %198, 1
  store i32 %199, ptr %197, align 8
  %200 = call i32 @sched_getcpu() #10
  %201 = sext i32 %200 to i64
  %202 = getelementptr inbounds nuw i8, ptr %23, i64 96
  store i64 %201, ptr %202, align 32
  %203 = icmp ugt i32 %200, 1023
  br i1 %203, label %209, label %204

204:                                              ; preds = %183
  %205 = getelementptr inbounds nuw i8, ptr %23, i64 256
  %206 = getelementptr inbounds nuw [1024 x i32], ptr %205, i64 0, i64 %201
  %207 = load i32, ptr %197, align 8
  %208 = atomicrmw xchg ptr %206, i32 %207 monotonic, align 4
  br label %209

209:                                              ; preds = %204, %183
  %210 = getelementptr inbounds nuw i8, ptr %23, i64 128
  store atomic i32 0, ptr %210 monotonic, align 64
  %211 = getelementptr inbounds nuw i8, ptr %23, i64 136
  store atomic i64 0, ptr %211 monotonic, align 8
  %212 = getelementptr inbounds nuw i8, ptr %23, i64 192
  store atomic i64 %185, ptr %212 monotonic, align 64
  %213 = icmp sgt i64 %185, 0
  br i1 %213, label %214, label %260

214:                                              ; preds = %209
  %215 = getelementptr inbounds nuw i8, ptr %23, i64 4352
  br label %216

216:                                              ; preds = %235, %214
  %217 = phi i1 [ true, %235 ], [ false, %214 ]
  %218 = phi i64 [ %237, %235 ], [ 0, %214 ]
  br label %220

219:                                              ; preds = %232
  br i1 %217, label %239, label %260

220:                                              ; preds = %232, %216
  %221 = phi i64 [ %233, %232 ], [ %218, %216 ]
  %222 = getelementptr inbounds nuw [0 x %struct.worker], ptr %215, i64 0, i64 %221
  %223 = getelementptr inbounds nuw i8, ptr %222, i64 8
  %224 = load atomic i64, ptr %223 monotonic, align 8
  %225 = icmp eq i64 %224, %201
  br i1 %225, label %226, label %229

226:                                              ; preds = %220
  %227 = getelementptr inbounds nuw i8, ptr %222, i64 24
  %228 = load i64, ptr %227, align 8
  call fastcc void @keep_off(ptr noundef nonnull %23, ptr noundef nonnull %222, i64 noundef %228, i64 noundef %201)
  br label %229

229:                                              ; preds = %226, %220
  %230 = atomicrmw xchg ptr %222, i32 2 seq_cst, align 64
  %231 = icmp eq i32 %230, 1
  br i1 %231, label %235, label %232

232:                                              ; preds = %229
  %233 = add nuw nsw i64 %221, 1
  %234 = icmp eq i64 %233, %185
  br i1 %234, label %219, label %220, !llvm.loop !7

235:                                              ; preds = %229
  %236 = getelementptr inbounds nuw i8, ptr %222, i64 4
  store atomic i32 1, ptr %236 monotonic, align 4
  %237 = add nuw nsw i64 %221, 1
  %238 = icmp eq i64 %237, %185
  br i1 %238, label %239, label %216, !llvm.loop !7

239:                                              ; preds = %235, %219
  store atomic i64 0, ptr %212 release, align 64
  br label %240

240:                                              ; preds = %257, %239
  %241 = phi i32 [ 2, %239 ], [ %258, %257 ]
  %242 = load atomic i64, ptr %212 monotonic, align 64
  %243 = load i64, ptr %187, align 8
  %244 = icmp slt i64 %242, %243
  br i1 %244, label %245, label %260

245:                                              ; preds = %240
  %246 = atomicrmw add ptr %212, i64 1 acquire, align 64
  %247 = load i64, ptr %187, align 8
  %248 = icmp slt i64 %246, %247
  br i1 %248, label %249, label %260

249:                                              ; preds = %245
  %250 = getelementptr inbounds [0 x %struct.worker], ptr %215, i64 0, i64 %246
  %251 = getelementptr inbounds nuw i8, ptr %250, i64 4
  %252 = atomicrmw xchg ptr %251, i32 0 monotonic, align 4
  %253 = icmp eq i32 %252, 0
  br i1 %253, label %257, label %254, !llvm.loop !8

254:                                              ; preds = %249
  %255 = call i64 (i64, ...) @syscall(i64 noundef 202, ptr noundef nonnull %250, i32 noundef 129, i32 noundef 1, i32 noundef 0, i32 noundef 0, i32 noundef 0) #10
  %256 = add nsw i32 %241, -1
  br label %257

257:                                              ; preds = %254, %249
  %258 = phi i32 [ %256, %254 ], [ %241, %249 ]
  %259 = icmp sgt i32 %258, 0
  br i1 %259, label %240, label %260

260:                                              ; preds = %240, %245, %257, %209, %219
  %261 = load i64, ptr %196, align 16
  %262 = load ptr, ptr %0, align 8
  %263 = getelementptr inbounds nuw i8, ptr %0, i64 8
  %264 = load ptr, ptr %263, align 8
  %265 = getelementptr inbounds nuw i8, ptr %0, i64 16
  %266 = load ptr, ptr %265, align 8
  %267 = load i64, ptr %187, align 8
  %268 = add nsw i64 %267, 1
  %269 = load ptr, ptr %24, align 8
  %270 = call i32 %262(ptr noundef %264, ptr noundef %266, i64 noundef 0, i64 noundef %268, ptr noundef %269)
  %271 = getelementptr inbounds nuw i8, ptr %23, i64 56
  %272 = load i64, ptr %271, align 8
  %273 = icmp eq i64 %272, 0
  %274 = load i64, ptr %187, align 8
  br i1 %273, label %275, label %295

275:                                              ; preds = %260
  %276 = icmp sgt i64 %274, 0
  br i1 %276, label %277, label %295

277:                                              ; preds = %275
  %278 = getelementptr inbounds nuw i8, ptr %23, i64 4352
  br label %279

279:                                              ; preds = %279, %277
  %280 = phi i64 [ 0, %277 ], [ %291, %279 ]
  %281 = phi i64 [ 0, %277 ], [ %292, %279 ]
  %282 = getelementptr inbounds nuw [0 x %struct.worker], ptr %278, i64 0, i64 %281
  %283 = getelementptr inbounds nuw i8, ptr %282, i64 4
  %284 = atomicrmw xchg ptr %283, i32 0 monotonic, align 4
  %285 = icmp ne i32 %284, 0
  %286 = zext i1 %285 to i32
  %287 = cmpxchg ptr %282, i32 2, i32 %286 seq_cst seq_cst, align 64
  %288 = extractvalue { i32, i1 } %287, 1
  %289 = xor i1 %288, true
  %290 = zext i1 %289 to i64
  %291 = add nuw nsw i64 %280, %290
  %292 = add nuw nsw i64 %281, 1
  %293 = load i64, ptr %187, align 8
  %294 = icmp slt i64 %292, %293
  br i1 %294, label %279, label %295, !llvm.loop !9

295:                                              ; preds = %279, %260, %275
  %296 = phi i64 [ 0, %275 ], [ %274, %260 ], [ %291, %279 ]
  %297 = trunc i64 %296 to i32
  %298 = getelementptr inbounds nuw i8, ptr %13, i64 8
  %299 = getelementptr inbounds nuw i8, ptr %14, i64 8
  %300 = getelementptr inbounds nuw i8, ptr %12, i64 8
  %301 = getelementptr inbounds nuw i8, ptr %23, i64 4352
  %302 = getelementptr inbounds nuw i8, ptr %10, i64 8
  %303 = getelementptr inbounds nuw i8, ptr %8, i64 8
  %304 = getelementptr inbounds nuw i8, ptr %9, i64 8
  %305 = getelementptr inbounds nuw i8, ptr %7, i64 8
  %306 = getelementptr inbounds nuw i8, ptr %4, i64 8
  %307 = getelementptr inbounds nuw i8, ptr %23, i64 132
  br label %308

308:                                              ; preds = %463, %295
  %309 = phi i64 [ 0, %295 ], [ %464, %463 ]
  br label %310

310:                                              ; preds = %325, %308
  %311 = phi i64 [ %330, %325 ], [ 0, %308 ]
  %312 = phi i64 [ %321, %325 ], [ 1, %308 ]
  %313 = icmp eq i64 %311, 0
  br label %314

314:                                              ; preds = %310, %331
  %315 = phi i64 [ %321, %331 ], [ %312, %310 ]
  br label %316

316:                                              ; preds = %320, %314
  %317 = phi i64 [ %321, %320 ], [ %315, %314 ]
  %318 = load atomic i32, ptr %210 acquire, align 64
  %319 = icmp eq i32 %318, %297
  br i1 %319, label %465, label %320

320:                                              ; preds = %316
  call void @llvm.x86.sse2.pause()
  %321 = add i64 %317, 1
  %322 = and i64 %321, 31
  %323 = icmp eq i64 %322, 1
  br i1 %323, label %324, label %316, !llvm.loop !10

324:                                              ; preds = %320
  br i1 %313, label %325, label %331

325:                                              ; preds = %324
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %14) #10
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 8 dereferenceable(16) %14, i8 0, i64 16, i1 false)
  %326 = call i32 @clock_gettime(i32 noundef 1, ptr noundef nonnull %14) #10
  %327 = load i64, ptr %14, align 8
  %328 = mul nsw i64 %327, 1000000000
  %329 = load i64, ptr %299, align 8
  %330 = add nsw i64 %328, %329
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %14) #10
  br label %310, !llvm.loop !10

331:                                              ; preds = %324
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %13) #10
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 8 dereferenceable(16) %13, i8 0, i64 16, i1 false)
  %332 = call i32 @clock_gettime(i32 noundef 1, ptr noundef nonnull %13) #10
  %333 = load i64, ptr %13, align 8
  %334 = mul nsw i64 %333, 1000000000
  %335 = load i64, ptr %298, align 8
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %13) #10
  %336 = sub i64 %335, %311
  %337 = add i64 %336, %334
  %338 = icmp sgt i64 %337, 50000
  br i1 %338, label %339, label %314, !llvm.loop !10

339:                                              ; preds = %331
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %12) #10
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 8 dereferenceable(16) %12, i8 0, i64 16, i1 false)
  %340 = call i32 @clock_gettime(i32 noundef 1, ptr noundef nonnull %12) #10
  %341 = load i64, ptr %12, align 8
  %342 = load i64, ptr %300, align 8
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %12) #10
  %343 = load i64, ptr %187, align 8
  %344 = icmp sgt i64 %343, 0
  br i1 %344, label %345, label %365

345:                                              ; preds = %339, %359
  %346 = phi i64 [ %362, %359 ], [ 0, %339 ]
  %347 = getelementptr inbounds nuw [0 x %struct.worker], ptr %301, i64 0, i64 %346
  %348 = getelementptr inbounds nuw i8, ptr %347, i64 24
  %349 = load i64, ptr %348, align 8
  call void @llvm.lifetime.start.p0(i64 4, ptr nonnull %11) #10
  %350 = call i32 @pthread_getcpuclockid(i64 noundef %349, ptr noundef nonnull %11) #10
  %351 = icmp eq i32 %350, 0
  br i1 %351, label %352, label %359

352:                                              ; preds = %345
  %353 = load i32, ptr %11, align 4
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %10) #10
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 8 dereferenceable(16) %10, i8 0, i64 16, i1 false)
  %354 = call i32 @clock_gettime(i32 noundef %353, ptr noundef nonnull %10) #10
  %355 = load i64, ptr %10, align 8
  %356 = mul nsw i64 %355, 1000000000
  %357 = load i64, ptr %302, align 8
  %358 = add nsw i64 %356, %357
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %10) #10
  br label %359

359:                                              ; preds = %352, %345
  %360 = phi i64 [ %358, %352 ], [ 0, %345 ]
  call void @llvm.lifetime.end.p0(i64 4, ptr nonnull %11) #10
  %361 = getelementptr inbounds nuw i8, ptr %347, i64 72
  store i64 %360, ptr %361, align 8
  %362 = add nuw nsw i64 %346, 1
  %363 = load i64, ptr %187, align 8
  %364 = icmp slt i64 %362, %363
  br i1 %364, label %345, label %365, !llvm.loop !11

365:                                              ; preds = %359, %339
  br label %366

366:                                              ; preds = %365, %381
  %367 = phi i64 [ 0, %365 ], [ %386, %381 ]
  %368 = phi i64 [ 1, %365 ], [ %377, %381 ]
  %369 = icmp eq i64 %367, 0
  br label %370

370:                                              ; preds = %366, %387
  %371 = phi i64 [ %377, %387 ], [ %368, %366 ]
  br label %372

372:                                              ; preds = %376, %370
  %373 = phi i64 [ %377, %376 ], [ %371, %370 ]
  %374 = load atomic i32, ptr %210 acquire, align 64
  %375 = icmp eq i32 %374, %297
  br i1 %375, label %465, label %376

376:                                              ; preds = %372
  call void @llvm.x86.sse2.pause()
  %377 = add i64 %373, 1
  %378 = and i64 %377, 31
  %379 = icmp eq i64 %378, 1
  br i1 %379, label %380, label %372, !llvm.loop !10

380:                                              ; preds = %376
  br i1 %369, label %381, label %387

381:                                              ; preds = %380
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %9) #10
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 8 dereferenceable(16) %9, i8 0, i64 16, i1 false)
  %382 = call i32 @clock_gettime(i32 noundef 1, ptr noundef nonnull %9) #10
  %383 = load i64, ptr %9, align 8
  %384 = mul nsw i64 %383, 1000000000
  %385 = load i64, ptr %304, align 8
  %386 = add nsw i64 %384, %385
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %9) #10
  br label %366, !llvm.loop !10

387:                                              ; preds = %380
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %8) #10
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 8 dereferenceable(16) %8, i8 0, i64 16, i1 false)
  %388 = call i32 @clock_gettime(i32 noundef 1, ptr noundef nonnull %8) #10
  %389 = load i64, ptr %8, align 8
  %390 = mul nsw i64 %389, 1000000000
  %391 = load i64, ptr %303, align 8
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %8) #10
  %392 = sub i64 %391, %367
  %393 = add i64 %392, %390
  %394 = icmp sgt i64 %393, 20000
  br i1 %394, label %395, label %370, !llvm.loop !10

395:                                              ; preds = %387
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %7) #10
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 8 dereferenceable(16) %7, i8 0, i64 16, i1 false)
  %396 = call i32 @clock_gettime(i32 noundef 1, ptr noundef nonnull %7) #10
  %397 = load i64, ptr %7, align 8
  %398 = load i64, ptr %305, align 8
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %7) #10
  %399 = sub i64 %397, %341
  %400 = mul i64 %399, 1000000000
  %401 = sub i64 %398, %342
  %402 = add i64 %401, %400
  %403 = call i32 @sched_getcpu() #10
  %404 = sext i32 %403 to i64
  %405 = icmp ugt i32 %403, 1023
  br i1 %405, label %453, label %406

406:                                              ; preds = %395
  call void @llvm.lifetime.start.p0(i64 128, ptr nonnull %6) #10
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 8 dereferenceable(128) %6, i8 0, i64 128, i1 false)
  %407 = and i64 %404, 63
  %408 = shl nuw i64 1, %407
  %409 = lshr i64 %404, 6
  %410 = getelementptr inbounds nuw i64, ptr %6, i64 %409
  %411 = load i64, ptr %410, align 8
  %412 = or i64 %411, %408
  store i64 %412, ptr %410, align 8
  %413 = load i64, ptr %187, align 8
  %414 = icmp sgt i64 %413, 0
  br i1 %414, label %417, label %415

415:                                              ; preds = %448, %406
  %416 = phi i1 [ false, %406 ], [ %449, %448 ]
  call void @llvm.lifetime.end.p0(i64 128, ptr nonnull %6) #10
  br label %453

417:                                              ; preds = %406, %448
  %418 = phi i1 [ %449, %448 ], [ false, %406 ]
  %419 = phi i64 [ %450, %448 ], [ 0, %406 ]
  %420 = getelementptr inbounds nuw [0 x %struct.worker], ptr %301, i64 0, i64 %419
  %421 = load atomic i32, ptr %420 monotonic, align 64
  %422 = icmp eq i32 %421, 3
  br i1 %422, label %423, label %448

423:                                              ; preds = %417
  %424 = getelementptr inbounds nuw i8, ptr %420, i64 24
  %425 = load i64, ptr %424, align 8
  call void @llvm.lifetime.start.p0(i64 4, ptr nonnull %5) #10
  %426 = call i32 @pthread_getcpuclockid(i64 noundef %425, ptr noundef nonnull %5) #10
  %427 = icmp eq i32 %426, 0
  br i1 %427, label %428, label %435

428:                                              ; preds = %423
  %429 = load i32, ptr %5, align 4
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %4) #10
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 8 dereferenceable(16) %4, i8 0, i64 16, i1 false)
  %430 = call i32 @clock_gettime(i32 noundef %429, ptr noundef nonnull %4) #10
  %431 = load i64, ptr %4, align 8
  %432 = mul nsw i64 %431, 1000000000
  %433 = load i64, ptr %306, align 8
  %434 = add nsw i64 %432, %433
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %4) #10
  br label %435

435:                                              ; preds = %428, %423
  %436 = phi i64 [ %434, %428 ], [ 0, %423 ]
  call void @llvm.lifetime.end.p0(i64 4, ptr nonnull %5) #10
  %437 = getelementptr inbounds nuw i8, ptr %420, i64 72
  %438 = load i64, ptr %437, align 8
  %439 = sub nsw i64 %436, %438
  %440 = shl nsw i64 %439, 1
  %441 = icmp sgt i64 %440, %402
  br i1 %441, label %448, label %442

442:                                              ; preds = %435
  %443 = getelementptr inbounds nuw i8, ptr %420, i64 64
  store atomic i32 1, ptr %443 monotonic, align 64
  %444 = getelementptr inbounds nuw i8, ptr %420, i64 8
  store atomic i64 %404, ptr %444 monotonic, align 8
  %445 = getelementptr inbounds nuw i8, ptr %420, i64 56
  store atomic i64 1, ptr %445 monotonic, align 8
  %446 = load i64, ptr %424, align 8
  %447 = call i32 @pthread_setaffinity_np(i64 noundef %446, i64 noundef 128, ptr noundef nonnull %6) #10
  br label %448

448:                                              ; preds = %442, %435, %417
  %449 = phi i1 [ true, %442 ], [ %418, %417 ], [ %418, %435 ]
  %450 = add nuw nsw i64 %419, 1
  %451 = load i64, ptr %187, align 8
  %452 = icmp slt i64 %450, %451
  br i1 %452, label %417, label %415, !llvm.loop !12

453:                                              ; preds = %415, %395
  %454 = phi i1 [ %416, %415 ], [ false, %395 ]
  %455 = icmp samesign ugt i64 %309, 1000000
  %456 = select i1 %454, i1 true, i1 %455
  br i1 %456, label %457, label %463

457:                                              ; preds = %453
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %3) #10
  call void @llvm.memcpy.p0.p0.i64(ptr noundef nonnull align 8 dereferenceable(16) %3, ptr noundef nonnull align 8 dereferenceable(16) @__const.sleep_while_missing.at_most, i64 16, i1 false)
  store atomic i32 1, ptr %307 seq_cst, align 4
  %458 = load atomic i32, ptr %210 seq_cst, align 64
  %459 = icmp eq i32 %458, %297
  br i1 %459, label %462, label %460

460:                                              ; preds = %457
  %461 = call i64 (i64, ...) @syscall(i64 noundef 202, ptr noundef nonnull %210, i32 noundef 128, i32 noundef %458, ptr noundef nonnull %3, i32 noundef 0, i32 noundef 0) #10
  br label %462

462:                                              ; preds = %460, %457
  store atomic i32 0, ptr %307 monotonic, align 4
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %3) #10
  br label %463

463:                                              ; preds = %462, %453
  %464 = add nuw nsw i64 %309, 70000
  br label %308, !llvm.loop !13

465:                                              ; preds = %316, %372
  %466 = load atomic i64, ptr %211 monotonic, align 8
  %467 = trunc i64 %466 to i32
  %468 = load i64, ptr %271, align 8
  %469 = icmp eq i64 %468, 0
  store atomic i64 0, ptr %23 release, align 64
  br i1 %469, label %470, label %478

470:                                              ; preds = %465
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %2) #10
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 8 dereferenceable(16) %2, i8 0, i64 16, i1 false)
  %471 = call i32 @clock_gettime(i32 noundef 1, ptr noundef nonnull %2) #10
  %472 = load i64, ptr %2, align 8
  %473 = mul nsw i64 %472, 1000000000
  %474 = getelementptr inbounds nuw i8, ptr %2, i64 8
  %475 = load i64, ptr %474, align 8
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %2) #10
  %476 = sub i64 %475, %261
  %477 = add i64 %476, %473
  call fastcc void @remember(ptr noundef nonnull %0, i64 noundef %477)
  br label %478

478:                                              ; preds = %470, %465
  %479 = or i32 %270, %467
  br label %480

480:                                              ; preds = %478, %145, %144, %30
  %481 = phi i32 [ %37, %30 ], [ %479, %478 ], [ %135, %145 ], [ %135, %144 ]
  ret i32 %481
}

; Function Attrs: mustprogress nocallback nofree nosync nounwind willreturn memory(argmem: readwrite)
declare void @llvm.lifetime.start.p0(i64 immarg, ptr nocapture) #1

; Function Attrs: mustprogress nocallback nofree nounwind willreturn memory(argmem: write)
declare void @llvm.memset.p0.i64(ptr nocapture writeonly, i8, i64, i1 immarg) #2

; Function Attrs: mustprogress nofree norecurse nosync nounwind willreturn memory(argmem: readwrite) uwtable
define internal fastcc void @remember(ptr nocapture noundef %0, i64 noundef %1) unnamed_addr #3 {
  %3 = getelementptr inbounds nuw i8, ptr %0, i64 120
  %4 = load i64, ptr %3, align 8
  %5 = icmp eq i64 %4, 0
  br i1 %5, label %6, label %85

6:                                                ; preds = %2
  %7 = getelementptr inbounds nuw i8, ptr %0, i64 72
  %8 = load i64, ptr %7, align 8
  %9 = icmp eq i64 %8, 8
  br i1 %9, label %10, label %16

10:                                               ; preds = %6
  %11 = getelementptr inbounds nuw i8, ptr %0, i64 96
  %12 = load i64, ptr %11, align 8
  %13 = add nsw i64 %12, -1
  store i64 %13, ptr %11, align 8
  %14 = icmp eq i64 %13, 0
  br i1 %14, label %15, label %85

15:                                               ; preds = %10
  store i64 0, ptr %7, align 8
  br label %85

16:                                               ; preds = %6
  %17 = getelementptr inbounds nuw i8, ptr %0, i64 64
  %18 = load i64, ptr %17, align 8
  %19 = and i64 %8, -4
  %20 = icmp eq i64 %19, 4
  %21 = zext i1 %20 to i64
  %22 = xor i64 %18, %21
  %23 = icmp eq i64 %22, 1
  %24 = select i1 %23, i64 88, i64 80
  %25 = getelementptr inbounds nuw i8, ptr %0, i64 %24
  %26 = and i64 %8, 3
  %27 = icmp eq i64 %26, 0
  br i1 %27, label %31, label %28

28:                                               ; preds = %16
  %29 = load i64, ptr %25, align 8
  %30 = add nsw i64 %29, %1
  br label %31

31:                                               ; preds = %16, %28
  %32 = phi i64 [ %30, %28 ], [ 0, %16 ]
  store i64 %32, ptr %25, align 8
  %33 = add nsw i64 %8, 1
  store i64 %33, ptr %7, align 8
  %34 = icmp eq i64 %18, 1
  %35 = select i1 %34, i64 88, i64 80
  %36 = getelementptr inbounds nuw i8, ptr %0, i64 %35
  %37 = load i64, ptr %36, align 8
  %38 = icmp eq i64 %18, 0
  %39 = select i1 %38, i64 88, i64 80
  %40 = getelementptr inbounds nuw i8, ptr %0, i64 %39
  %41 = load i64, ptr %40, align 8
  %42 = icmp slt i64 %8, 4
  br i1 %42, label %43, label %51

43:                                               ; preds = %31
  br i1 %34, label %85, label %44

44:                                               ; preds = %43
  %45 = getelementptr inbounds nuw i8, ptr %0, i64 32
  %46 = load i64, ptr %45, align 8
  %47 = mul nsw i64 %46, %37
  %48 = icmp slt i64 %47, 12000001
  %49 = icmp ne i64 %8, 3
  %50 = select i1 %49, i1 true, i1 %48
  br i1 %50, label %85, label %74

51:                                               ; preds = %31
  %52 = icmp eq i64 %33, 5
  %53 = select i1 %52, i64 4, i64 2
  %54 = shl i64 %37, %53
  %55 = sdiv i64 %54, 3
  %56 = icmp sgt i64 %1, %55
  %57 = icmp samesign ugt i64 %33, 7
  %58 = select i1 %57, i1 true, i1 %56
  %59 = xor i1 %58, true
  %60 = select i1 %59, i1 true, i1 %56
  br i1 %60, label %61, label %62

61:                                               ; preds = %51
  br i1 %58, label %74, label %85

62:                                               ; preds = %51
  %63 = sdiv i64 %37, -16
  %64 = add i64 %63, %37
  %65 = icmp slt i64 %41, %64
  br i1 %65, label %66, label %74

66:                                               ; preds = %62
  %67 = getelementptr inbounds nuw i8, ptr %0, i64 112
  %68 = load i64, ptr %67, align 8
  %69 = icmp ne i64 %68, 0
  %70 = xor i1 %69, true
  %71 = zext i1 %70 to i64
  store i64 %71, ptr %67, align 8
  store i64 8, ptr %7, align 8
  %72 = zext i1 %69 to i64
  %73 = xor i64 %18, %72
  store i64 %73, ptr %17, align 8
  br label %81

74:                                               ; preds = %44, %61, %62
  %75 = getelementptr inbounds nuw i8, ptr %0, i64 112
  store i64 0, ptr %75, align 8
  store i64 8, ptr %7, align 8
  %76 = getelementptr inbounds nuw i8, ptr %0, i64 104
  %77 = load i64, ptr %76, align 8
  %78 = shl nsw i64 %77, 1
  %79 = tail call noundef i64 @llvm.smax.i64(i64 %78, i64 64)
  %80 = tail call i64 @llvm.umin.i64(i64 %79, i64 2048)
  br label %81

81:                                               ; preds = %66, %74
  %82 = phi i64 [ %80, %74 ], [ 64, %66 ]
  %83 = getelementptr inbounds nuw i8, ptr %0, i64 104
  store i64 %82, ptr %83, align 8
  %84 = getelementptr inbounds nuw i8, ptr %0, i64 96
  store i64 %82, ptr %84, align 8
  br label %85

85:                                               ; preds = %43, %81, %61, %44, %10, %15, %2
  ret void
}

; Function Attrs: mustprogress nocallback nofree nosync nounwind willreturn memory(argmem: readwrite)
declare void @llvm.lifetime.end.p0(i64 immarg, ptr nocapture) #1

; Function Attrs: mustprogress nofree norecurse nosync nounwind willreturn memory(none) uwtable
define range(i64 4224, 4097) i64 @tcl_pool_bytes(i64 noundef %0) local_unnamed_addr #4 {
  %2 = shl i64 %0, 7
  %3 = add i64 %2, 4224
  ret i64 %3
}

; Function Attrs: mustprogress nofree norecurse nosync nounwind willreturn memory(argmem: write) uwtable
define void @tcl_pool_reset(ptr nocapture noundef writeonly %0, i64 noundef %1) local_unnamed_addr #5 {
  %3 = shl i64 %1, 7
  %4 = add i64 %3, 4224
  tail call void @llvm.memset.p0.i64(ptr align 64 %0, i8 0, i64 %4, i1 false)
  ret void
}

; Function Attrs: mustprogress nofree norecurse nosync nounwind willreturn memory(argmem: write) uwtable
define void @tcl_pool_together(ptr nocapture noundef writeonly initializes((56, 64)) %0, i64 noundef %1) local_unnamed_addr #5 {
  %3 = getelementptr inbounds nuw i8, ptr %0, i64 56
  store i64 %1, ptr %3, align 8
  ret void
}

; Function Attrs: nounwind
declare i32 @clock_gettime(i32 noundef, ptr noundef) local_unnamed_addr #6

; Function Attrs: mustprogress nofree nosync nounwind willreturn memory(none)
declare i64 @pthread_self() local_unnamed_addr #7

; Function Attrs: nounwind uwtable
define internal fastcc void @keep_off(ptr nocapture noundef readonly %0, ptr nocapture noundef writeonly %1, i64 noundef %2, i64 noundef range(i64 -2147483648, 2147483648) %3) unnamed_addr #8 {
  %5 = alloca %struct.cpu_set_t, align 8
  %6 = alloca %struct.cpu_set_t, align 8
  call void @llvm.lifetime.start.p0(i64 128, ptr nonnull %5) #10
  call void @llvm.lifetime.start.p0(i64 128, ptr nonnull %6) #10
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 8 dereferenceable(128) %5, i8 0, i64 128, i1 false)
  %7 = getelementptr inbounds nuw i8, ptr %0, i64 88
  %8 = load i64, ptr %7, align 8
  %9 = call i32 @pthread_getaffinity_np(i64 noundef %8, i64 noundef 128, ptr noundef nonnull %5) #10
  %10 = icmp eq i32 %9, 0
  br i1 %10, label %11, label %73

11:                                               ; preds = %4
  %12 = getelementptr inbounds nuw i8, ptr %0, i64 96
  %13 = load i64, ptr %12, align 32
  %14 = icmp ult i64 %13, 1024
  br i1 %14, label %15, label %23

15:                                               ; preds = %11
  %16 = and i64 %13, 63
  %17 = shl nuw i64 1, %16
  %18 = xor i64 %17, -1
  %19 = lshr i64 %13, 6
  %20 = getelementptr inbounds nuw i64, ptr %5, i64 %19
  %21 = load i64, ptr %20, align 8
  %22 = and i64 %21, %18
  store i64 %22, ptr %20, align 8
  br label %23

23:                                               ; preds = %15, %11
  call void @llvm.memcpy.p0.p0.i64(ptr noundef nonnull align 8 dereferenceable(128) %6, ptr noundef nonnull align 8 dereferenceable(128) %5, i64 128, i1 false)
  %24 = getelementptr inbounds nuw i8, ptr %0, i64 256
  %25 = getelementptr inbounds nuw i8, ptr %0, i64 104
  %26 = load i32, ptr %25, align 8
  br label %30

27:                                               ; preds = %56
  %28 = call i32 @__sched_cpucount(i64 noundef 128, ptr noundef nonnull %5) #10
  %29 = icmp eq i32 %28, 0
  br i1 %29, label %73, label %59

30:                                               ; preds = %56, %23
  %31 = phi i64 [ 0, %23 ], [ %57, %56 ]
  %32 = getelementptr inbounds nuw [1024 x i32], ptr %24, i64 0, i64 %31
  %33 = load atomic i32, ptr %32 monotonic, align 4
  %34 = icmp eq i32 %33, %26
  br i1 %34, label %35, label %43

35:                                               ; preds = %30
  %36 = and i64 %31, 62
  %37 = shl nuw nsw i64 1, %36
  %38 = xor i64 %37, -1
  %39 = lshr i64 %31, 6
  %40 = getelementptr inbounds nuw i64, ptr %6, i64 %39
  %41 = load i64, ptr %40, align 8
  %42 = and i64 %41, %38
  store i64 %42, ptr %40, align 8
  br label %43

43:                                               ; preds = %30, %35
  %44 = or disjoint i64 %31, 1
  %45 = getelementptr inbounds nuw [1024 x i32], ptr %24, i64 0, i64 %44
  %46 = load atomic i32, ptr %45 monotonic, align 4
  %47 = icmp eq i32 %46, %26
  br i1 %47, label %48, label %56

48:                                               ; preds = %43
  %49 = and i64 %44, 63
  %50 = shl nuw i64 1, %49
  %51 = xor i64 %50, -1
  %52 = lshr i64 %31, 6
  %53 = getelementptr inbounds nuw i64, ptr %6, i64 %52
  %54 = load i64, ptr %53, align 8
  %55 = and i64 %54, %51
  store i64 %55, ptr %53, align 8
  br label %56

56:                                               ; preds = %48, %43
  %57 = add nuw nsw i64 %31, 2
  %58 = icmp eq i64 %57, 1024
  br i1 %58, label %27, label %30, !llvm.loop !14

59:                                               ; preds = %27
  %60 = call i32 @__sched_cpucount(i64 noundef 128, ptr noundef nonnull %6) #10
  %61 = icmp eq i32 %60, 0
  br i1 %61, label %62, label %65

62:                                               ; preds = %59
  %63 = load i64, ptr %12, align 32
  %64 = icmp eq i64 %3, %63
  br i1 %64, label %65, label %73

65:                                               ; preds = %62, %59
  %66 = call i32 @__sched_cpucount(i64 noundef 128, ptr noundef nonnull %6) #10
  %67 = icmp eq i32 %66, 0
  %68 = select i1 %67, ptr %5, ptr %6
  %69 = call i32 @pthread_setaffinity_np(i64 noundef %2, i64 noundef 128, ptr noundef nonnull %68) #10
  %70 = getelementptr inbounds nuw i8, ptr %1, i64 56
  %71 = getelementptr inbounds nuw i8, ptr %0, i64 80
  %72 = load i64, ptr %71, align 16
  store atomic i64 %72, ptr %70 monotonic, align 8
  br label %73

73:                                               ; preds = %27, %62, %4, %65
  call void @llvm.lifetime.end.p0(i64 128, ptr nonnull %6) #10
  call void @llvm.lifetime.end.p0(i64 128, ptr nonnull %5) #10
  ret void
}

; Function Attrs: nounwind
declare i32 @sigfillset(ptr noundef) local_unnamed_addr #6

; Function Attrs: nounwind
declare i32 @pthread_sigmask(i32 noundef, ptr noundef, ptr noundef) local_unnamed_addr #6

; Function Attrs: nounwind
declare i32 @pthread_attr_init(ptr noundef) local_unnamed_addr #6

; Function Attrs: nounwind
declare i32 @pthread_attr_setdetachstate(ptr noundef, i32 noundef) local_unnamed_addr #6

; Function Attrs: nounwind
declare i32 @pthread_attr_setstacksize(ptr noundef, i64 noundef) local_unnamed_addr #6

; Function Attrs: nounwind
declare i32 @pthread_create(ptr noundef, ptr noundef, ptr noundef, ptr noundef) local_unnamed_addr #6

; Function Attrs: noreturn uwtable
define internal noundef ptr @live(ptr noundef initializes((32, 48)) %0) #9 {
  %2 = alloca %struct.timespec, align 8
  %3 = alloca %struct.timespec, align 8
  %4 = alloca %struct.timespec, align 8
  %5 = alloca %struct.timespec, align 8
  %6 = alloca %struct.timespec, align 8
  %7 = alloca %struct.timespec, align 8
  %8 = alloca %struct.cpu_set_t, align 8
  %9 = alloca %struct.timespec, align 8
  %10 = alloca %struct.rusage, align 8
  %11 = alloca %struct.timespec, align 8
  %12 = alloca %struct.rusage, align 8
  %13 = alloca %struct.timespec, align 8
  %14 = alloca %struct.timespec, align 8
  %15 = getelementptr inbounds nuw i8, ptr %0, i64 16
  %16 = load ptr, ptr %15, align 16
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %14) #10
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 8 dereferenceable(16) %14, i8 0, i64 16, i1 false)
  %17 = call i32 @clock_gettime(i32 noundef 1, ptr noundef nonnull %14) #10
  %18 = load i64, ptr %14, align 8
  %19 = mul nsw i64 %18, 1000000000
  %20 = getelementptr inbounds nuw i8, ptr %14, i64 8
  %21 = load i64, ptr %20, align 8
  %22 = add nsw i64 %19, %21
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %14) #10
  %23 = getelementptr inbounds nuw i8, ptr %0, i64 32
  store i64 %22, ptr %23, align 32
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %13) #10
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 8 dereferenceable(16) %13, i8 0, i64 16, i1 false)
  %24 = call i32 @clock_gettime(i32 noundef 3, ptr noundef nonnull %13) #10
  %25 = load i64, ptr %13, align 8
  %26 = mul nsw i64 %25, 1000000000
  %27 = getelementptr inbounds nuw i8, ptr %13, i64 8
  %28 = load i64, ptr %27, align 8
  %29 = add nsw i64 %26, %28
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %13) #10
  %30 = getelementptr inbounds nuw i8, ptr %0, i64 40
  store i64 %29, ptr %30, align 8
  %31 = load i64, ptr %23, align 32
  %32 = getelementptr inbounds nuw i8, ptr %12, i64 136
  %33 = getelementptr inbounds nuw i8, ptr %11, i64 8
  %34 = getelementptr inbounds nuw i8, ptr %10, i64 136
  %35 = getelementptr inbounds nuw i8, ptr %9, i64 8
  %36 = getelementptr inbounds nuw i8, ptr %0, i64 56
  %37 = getelementptr inbounds nuw i8, ptr %7, i64 8
  %38 = getelementptr inbounds nuw i8, ptr %6, i64 8
  %39 = getelementptr inbounds nuw i8, ptr %16, i64 80
  %40 = getelementptr inbounds nuw i8, ptr %16, i64 72
  %41 = getelementptr inbounds nuw i8, ptr %5, i64 8
  %42 = getelementptr inbounds nuw i8, ptr %4, i64 8
  %43 = getelementptr inbounds nuw i8, ptr %16, i64 64
  %44 = getelementptr inbounds nuw i8, ptr %16, i64 192
  %45 = getelementptr inbounds nuw i8, ptr %16, i64 4352
  %46 = getelementptr inbounds nuw i8, ptr %0, i64 8
  %47 = getelementptr inbounds nuw i8, ptr %16, i64 256
  %48 = getelementptr inbounds nuw i8, ptr %16, i64 104
  %49 = ptrtoint ptr %0 to i64
  %50 = ptrtoint ptr %45 to i64
  %51 = sub i64 %49, %50
  %52 = ashr exact i64 %51, 7
  %53 = add nsw i64 %52, 1
  %54 = getelementptr inbounds nuw i8, ptr %16, i64 136
  %55 = getelementptr inbounds nuw i8, ptr %16, i64 128
  %56 = getelementptr inbounds nuw i8, ptr %16, i64 132
  %57 = getelementptr inbounds nuw i8, ptr %3, i64 8
  %58 = getelementptr inbounds nuw i8, ptr %2, i64 8
  %59 = getelementptr inbounds nuw i8, ptr %0, i64 48
  %60 = getelementptr inbounds nuw i8, ptr %16, i64 144
  %61 = getelementptr inbounds nuw i8, ptr %16, i64 152
  %62 = getelementptr inbounds nuw i8, ptr %0, i64 64
  br label %63

63:                                               ; preds = %299, %1
  %64 = phi i64 [ %302, %299 ], [ %31, %1 ]
  %65 = phi i1 [ %301, %299 ], [ false, %1 ]
  %66 = phi i64 [ %310, %299 ], [ 0, %1 ]
  %67 = phi i64 [ %307, %299 ], [ 0, %1 ]
  %68 = phi i64 [ %81, %299 ], [ 0, %1 ]
  br label %69

69:                                               ; preds = %63, %174
  %70 = phi i64 [ %175, %174 ], [ %64, %63 ]
  %71 = phi i64 [ %170, %174 ], [ %66, %63 ]
  %72 = phi i64 [ %171, %174 ], [ %67, %63 ]
  %73 = phi i64 [ %81, %174 ], [ %68, %63 ]
  %74 = icmp slt i64 %70, %72
  br i1 %74, label %80, label %75

75:                                               ; preds = %69
  call void @llvm.lifetime.start.p0(i64 144, ptr nonnull %12) #10
  %76 = call i32 @getrusage(i32 noundef 1, ptr noundef nonnull %12) #10
  %77 = icmp eq i32 %76, 0
  %78 = load i64, ptr %32, align 8
  %79 = select i1 %77, i64 %78, i64 0
  call void @llvm.lifetime.end.p0(i64 144, ptr nonnull %12) #10
  br label %80

80:                                               ; preds = %75, %69
  %81 = phi i64 [ %73, %69 ], [ %79, %75 ]
  %82 = load atomic i32, ptr %0 monotonic, align 64
  %83 = icmp eq i32 %82, 2
  br i1 %83, label %169, label %84

84:                                               ; preds = %80, %128
  %85 = phi i64 [ %130, %128 ], [ %70, %80 ]
  %86 = phi i64 [ %131, %128 ], [ 0, %80 ]
  call void @llvm.x86.sse2.pause()
  %87 = and i64 %86, 31
  %88 = icmp eq i64 %87, 0
  br i1 %88, label %89, label %128

89:                                               ; preds = %84
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %11) #10
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 8 dereferenceable(16) %11, i8 0, i64 16, i1 false)
  %90 = call i32 @clock_gettime(i32 noundef 1, ptr noundef nonnull %11) #10
  %91 = load i64, ptr %11, align 8
  %92 = mul nsw i64 %91, 1000000000
  %93 = load i64, ptr %33, align 8
  %94 = add nsw i64 %92, %93
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %11) #10
  %95 = sub nsw i64 %94, %85
  %96 = icmp sgt i64 %95, 100000
  br i1 %96, label %97, label %108

97:                                               ; preds = %89
  call void @llvm.lifetime.start.p0(i64 144, ptr nonnull %10) #10
  %98 = call i32 @getrusage(i32 noundef 1, ptr noundef nonnull %10) #10
  %99 = icmp eq i32 %98, 0
  %100 = load i64, ptr %34, align 8
  %101 = select i1 %99, i64 %100, i64 0
  call void @llvm.lifetime.end.p0(i64 144, ptr nonnull %10) #10
  %102 = icmp eq i64 %101, %81
  br i1 %102, label %108, label %103

103:                                              ; preds = %97
  %104 = shl nsw i64 %71, 1
  %105 = call noundef i64 @llvm.smax.i64(i64 %104, i64 16000000)
  %106 = call i64 @llvm.umin.i64(i64 %105, i64 128000000)
  %107 = add nsw i64 %94, %106
  br label %134

108:                                              ; preds = %97, %89
  br i1 %74, label %134, label %109

109:                                              ; preds = %108
  %110 = sub nsw i64 %94, %70
  %111 = icmp sgt i64 %110, 50000
  br i1 %111, label %112, label %117

112:                                              ; preds = %109
  %113 = icmp samesign ult i64 %110, 4000001
  %114 = and i1 %65, %113
  br i1 %114, label %115, label %134

115:                                              ; preds = %112
  %116 = call i32 @sched_yield() #10
  br label %117

117:                                              ; preds = %115, %109
  %118 = phi i64 [ -1, %115 ], [ %86, %109 ]
  %119 = load i64, ptr %23, align 32
  %120 = sub nsw i64 %94, %119
  %121 = icmp sgt i64 %120, 20000
  br i1 %121, label %122, label %128

122:                                              ; preds = %117
  store i64 %94, ptr %23, align 32
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %9) #10
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 8 dereferenceable(16) %9, i8 0, i64 16, i1 false)
  %123 = call i32 @clock_gettime(i32 noundef 3, ptr noundef nonnull %9) #10
  %124 = load i64, ptr %9, align 8
  %125 = mul nsw i64 %124, 1000000000
  %126 = load i64, ptr %35, align 8
  %127 = add nsw i64 %125, %126
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %9) #10
  store i64 %127, ptr %30, align 8
  br label %128

128:                                              ; preds = %122, %117, %84
  %129 = phi i64 [ %86, %84 ], [ %118, %122 ], [ %118, %117 ]
  %130 = phi i64 [ %85, %84 ], [ %94, %122 ], [ %94, %117 ]
  %131 = add nsw i64 %129, 1
  %132 = load atomic i32, ptr %0 monotonic, align 64
  %133 = icmp eq i32 %132, 2
  br i1 %133, label %169, label %84

134:                                              ; preds = %112, %108, %103
  %135 = phi i64 [ %106, %103 ], [ %71, %108 ], [ %71, %112 ]
  %136 = phi i64 [ %107, %103 ], [ %72, %108 ], [ %72, %112 ]
  %137 = load atomic i64, ptr %36 monotonic, align 8
  call void @llvm.lifetime.start.p0(i64 128, ptr nonnull %8) #10
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 8 dereferenceable(128) %8, i8 0, i64 128, i1 false)
  %138 = icmp eq i64 %137, 0
  %139 = sub nsw i64 %94, %137
  %140 = icmp slt i64 %139, 100000000
  %141 = select i1 %138, i1 true, i1 %140
  br i1 %141, label %148, label %142

142:                                              ; preds = %134
  %143 = call i32 @getpid() #10
  %144 = call i32 @sched_getaffinity(i32 noundef %143, i64 noundef 128, ptr noundef nonnull %8) #10
  %145 = icmp eq i32 %144, 0
  br i1 %145, label %146, label %148

146:                                              ; preds = %142
  %147 = call i32 @sched_setaffinity(i32 noundef 0, i64 noundef 128, ptr noundef nonnull %8) #10
  store atomic i64 0, ptr %36 monotonic, align 8
  br label %148

148:                                              ; preds = %146, %142, %134
  call void @llvm.lifetime.end.p0(i64 128, ptr nonnull %8) #10
  %149 = cmpxchg ptr %0, i32 0, i32 1 seq_cst seq_cst, align 64
  %150 = extractvalue { i32, i1 } %149, 1
  %151 = extractvalue { i32, i1 } %149, 0
  %152 = icmp ne i32 %151, 2
  %153 = select i1 %150, i1 true, i1 %152
  br i1 %153, label %154, label %169

154:                                              ; preds = %148, %154
  %155 = call i64 (i64, ...) @syscall(i64 noundef 202, ptr noundef nonnull %0, i32 noundef 128, i32 noundef 1, ptr noundef null, i32 noundef 0, i32 noundef 0) #10
  %156 = load atomic i32, ptr %0 monotonic, align 64
  %157 = icmp eq i32 %156, 1
  br i1 %157, label %154, label %158, !llvm.loop !15

158:                                              ; preds = %154
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %7) #10
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 8 dereferenceable(16) %7, i8 0, i64 16, i1 false)
  %159 = call i32 @clock_gettime(i32 noundef 1, ptr noundef nonnull %7) #10
  %160 = load i64, ptr %7, align 8
  %161 = mul nsw i64 %160, 1000000000
  %162 = load i64, ptr %37, align 8
  %163 = add nsw i64 %161, %162
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %7) #10
  store i64 %163, ptr %23, align 32
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %6) #10
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 8 dereferenceable(16) %6, i8 0, i64 16, i1 false)
  %164 = call i32 @clock_gettime(i32 noundef 3, ptr noundef nonnull %6) #10
  %165 = load i64, ptr %6, align 8
  %166 = mul nsw i64 %165, 1000000000
  %167 = load i64, ptr %38, align 8
  %168 = add nsw i64 %166, %167
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %6) #10
  store i64 %168, ptr %30, align 8
  br label %169

169:                                              ; preds = %128, %80, %148, %158
  %170 = phi i64 [ %71, %80 ], [ %135, %158 ], [ %135, %148 ], [ %71, %128 ]
  %171 = phi i64 [ %72, %80 ], [ %136, %158 ], [ %136, %148 ], [ %72, %128 ]
  %172 = cmpxchg ptr %0, i32 2, i32 3 seq_cst seq_cst, align 64
  %173 = extractvalue { i32, i1 } %172, 1
  br i1 %173, label %176, label %174

174:                                              ; preds = %169
  %175 = load i64, ptr %23, align 32
  br label %69

176:                                              ; preds = %169
  %177 = load i64, ptr %39, align 16
  %178 = load i64, ptr %40, align 8
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %5) #10
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 8 dereferenceable(16) %5, i8 0, i64 16, i1 false)
  %179 = call i32 @clock_gettime(i32 noundef 1, ptr noundef nonnull %5) #10
  %180 = load i64, ptr %5, align 8
  %181 = mul nsw i64 %180, 1000000000
  %182 = load i64, ptr %41, align 8
  %183 = add nsw i64 %181, %182
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %5) #10
  %184 = load i64, ptr %23, align 32
  %185 = sub nsw i64 %183, %184
  %186 = icmp sgt i64 %185, 40000
  br i1 %186, label %187, label %193

187:                                              ; preds = %176
  store i64 %183, ptr %23, align 32
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %4) #10
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 8 dereferenceable(16) %4, i8 0, i64 16, i1 false)
  %188 = call i32 @clock_gettime(i32 noundef 3, ptr noundef nonnull %4) #10
  %189 = load i64, ptr %4, align 8
  %190 = mul nsw i64 %189, 1000000000
  %191 = load i64, ptr %42, align 8
  %192 = add nsw i64 %190, %191
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %4) #10
  store i64 %192, ptr %30, align 8
  br label %193

193:                                              ; preds = %187, %176
  %194 = load ptr, ptr %43, align 64
  br label %195

195:                                              ; preds = %212, %193
  %196 = phi i32 [ 2, %193 ], [ %213, %212 ]
  %197 = load atomic i64, ptr %44 monotonic, align 64
  %198 = load i64, ptr %40, align 8
  %199 = icmp slt i64 %197, %198
  br i1 %199, label %200, label %215

200:                                              ; preds = %195
  %201 = atomicrmw add ptr %44, i64 1 acquire, align 64
  %202 = load i64, ptr %40, align 8
  %203 = icmp slt i64 %201, %202
  br i1 %203, label %204, label %215

204:                                              ; preds = %200
  %205 = getelementptr inbounds [0 x %struct.worker], ptr %45, i64 0, i64 %201
  %206 = getelementptr inbounds nuw i8, ptr %205, i64 4
  %207 = atomicrmw xchg ptr %206, i32 0 monotonic, align 4
  %208 = icmp eq i32 %207, 0
  br i1 %208, label %212, label %209, !llvm.loop !8

209:                                              ; preds = %204
  %210 = call i64 (i64, ...) @syscall(i64 noundef 202, ptr noundef nonnull %205, i32 noundef 129, i32 noundef 1, i32 noundef 0, i32 noundef 0, i32 noundef 0) #10
  %211 = add nsw i32 %196, -1
  br label %212

212:                                              ; preds = %209, %204
  %213 = phi i32 [ %211, %209 ], [ %196, %204 ]
  %214 = icmp sgt i32 %213, 0
  br i1 %214, label %195, label %215

215:                                              ; preds = %212, %200, %195
  %216 = call i32 @sched_getcpu() #10
  %217 = sext i32 %216 to i64
  store atomic i64 %217, ptr %46 monotonic, align 8
  %218 = icmp ugt i32 %216, 1023
  br i1 %218, label %233, label %219

219:                                              ; preds = %215
  %220 = getelementptr inbounds nuw [1024 x i32], ptr %47, i64 0, i64 %217
  %221 = load i32, ptr %48, align 8
  %222 = atomicrmw xchg ptr %220, i32 %221 monotonic, align 4
  %223 = icmp eq i32 %222, %221
  br i1 %223, label %224, label %233

224:                                              ; preds = %219
  %225 = tail call i64 @pthread_self() #13
  call fastcc void @keep_off(ptr noundef nonnull %16, ptr noundef nonnull %0, i64 noundef %225, i64 noundef %217)
  %226 = call i32 @sched_getcpu() #10
  %227 = icmp ugt i32 %226, 1023
  br i1 %227, label %233, label %228

228:                                              ; preds = %224
  %229 = zext nneg i32 %226 to i64
  %230 = getelementptr inbounds nuw [1024 x i32], ptr %47, i64 0, i64 %229
  %231 = load i32, ptr %48, align 8
  %232 = atomicrmw xchg ptr %230, i32 %231 monotonic, align 4
  br label %233

233:                                              ; preds = %228, %224, %219, %215
  %234 = load ptr, ptr %194, align 8
  %235 = getelementptr inbounds nuw i8, ptr %194, i64 8
  %236 = load ptr, ptr %235, align 8
  %237 = getelementptr inbounds nuw i8, ptr %194, i64 16
  %238 = load ptr, ptr %237, align 8
  %239 = load i64, ptr %40, align 8
  %240 = add nsw i64 %239, 1
  %241 = getelementptr inbounds nuw i8, ptr %194, i64 24
  %242 = load ptr, ptr %241, align 8
  %243 = call i32 %234(ptr noundef %236, ptr noundef %238, i64 noundef %53, i64 noundef %240, ptr noundef %242)
  %244 = icmp eq i32 %243, 0
  br i1 %244, label %246, label %245

245:                                              ; preds = %233
  store atomic i64 1, ptr %54 monotonic, align 8
  br label %246

246:                                              ; preds = %233, %245
  store atomic i32 0, ptr %0 monotonic, align 64
  %247 = atomicrmw add ptr %55, i32 1 seq_cst, align 64
  %248 = load atomic i32, ptr %56 seq_cst, align 4
  %249 = icmp eq i32 %248, 0
  br i1 %249, label %252, label %250

250:                                              ; preds = %246
  %251 = call i64 (i64, ...) @syscall(i64 noundef 202, ptr noundef nonnull %55, i32 noundef 129, i32 noundef 1, i32 noundef 0, i32 noundef 0, i32 noundef 0) #10
  br label %252

252:                                              ; preds = %250, %246
  %253 = load i64, ptr %23, align 32
  %254 = load i64, ptr %30, align 8
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %3) #10
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 8 dereferenceable(16) %3, i8 0, i64 16, i1 false)
  %255 = call i32 @clock_gettime(i32 noundef 1, ptr noundef nonnull %3) #10
  %256 = load i64, ptr %3, align 8
  %257 = mul nsw i64 %256, 1000000000
  %258 = load i64, ptr %57, align 8
  %259 = add nsw i64 %257, %258
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %3) #10
  store i64 %259, ptr %23, align 32
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %2) #10
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 8 dereferenceable(16) %2, i8 0, i64 16, i1 false)
  %260 = call i32 @clock_gettime(i32 noundef 3, ptr noundef nonnull %2) #10
  %261 = load i64, ptr %2, align 8
  %262 = mul nsw i64 %261, 1000000000
  %263 = load i64, ptr %58, align 8
  %264 = add nsw i64 %262, %263
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %2) #10
  store i64 %264, ptr %30, align 8
  %265 = sub nsw i64 %259, %177
  %266 = add i64 %254, %259
  %267 = add i64 %253, %264
  %268 = sub i64 %266, %267
  %269 = call noundef i64 @llvm.smax.i64(i64 %268, i64 0)
  %270 = call noundef i64 @llvm.smin.i64(i64 %269, i64 %265)
  %271 = load i64, ptr %59, align 16
  %272 = mul nsw i64 %265, %178
  %273 = add nsw i64 %271, %272
  %274 = xor i64 %178, -1
  %275 = mul i64 %270, %274
  %276 = add i64 %273, %275
  %277 = call noundef i64 @llvm.smin.i64(i64 %276, i64 32000000)
  %278 = call noundef i64 @llvm.smax.i64(i64 %277, i64 0)
  store i64 %278, ptr %59, align 16
  %279 = icmp slt i64 %276, 0
  br i1 %279, label %280, label %299

280:                                              ; preds = %252
  %281 = load atomic i64, ptr %60 monotonic, align 8
  br label %282

282:                                              ; preds = %285, %280
  %283 = phi i64 [ %281, %280 ], [ %288, %285 ]
  %284 = icmp slt i64 %283, %265
  br i1 %284, label %285, label %289

285:                                              ; preds = %282
  %286 = cmpxchg weak ptr %60, i64 %283, i64 %265 monotonic monotonic, align 8
  %287 = extractvalue { i64, i1 } %286, 1
  %288 = extractvalue { i64, i1 } %286, 0
  br i1 %287, label %289, label %282, !llvm.loop !16

289:                                              ; preds = %285, %282
  %290 = sub nsw i64 %265, %270
  %291 = load atomic i64, ptr %61 monotonic, align 8
  br label %292

292:                                              ; preds = %295, %289
  %293 = phi i64 [ %291, %289 ], [ %298, %295 ]
  %294 = icmp slt i64 %293, %290
  br i1 %294, label %295, label %299

295:                                              ; preds = %292
  %296 = cmpxchg weak ptr %61, i64 %293, i64 %290 monotonic monotonic, align 8
  %297 = extractvalue { i64, i1 } %296, 1
  %298 = extractvalue { i64, i1 } %296, 0
  br i1 %297, label %299, label %292, !llvm.loop !16

299:                                              ; preds = %292, %295, %252
  %300 = sub nsw i64 %177, %64
  %301 = icmp slt i64 %300, 4000000
  %302 = load i64, ptr %23, align 32
  %303 = atomicrmw xchg ptr %62, i32 0 monotonic, align 64
  %304 = icmp eq i32 %303, 0
  %305 = add nsw i64 %302, 1
  %306 = call i64 @llvm.smax.i64(i64 %171, i64 %305)
  %307 = select i1 %304, i64 %171, i64 %306
  %308 = add nsw i64 %307, 512000000
  %309 = icmp sgt i64 %302, %308
  %310 = select i1 %309, i64 0, i64 %170
  br label %63
}

; Function Attrs: nounwind
declare i32 @pthread_attr_destroy(ptr noundef) local_unnamed_addr #6

; Function Attrs: nounwind
declare i32 @sched_yield() local_unnamed_addr #6

; Function Attrs: nounwind
declare i32 @getrusage(i32 noundef, ptr noundef) local_unnamed_addr #6

; Function Attrs: nounwind
declare void @llvm.x86.sse2.pause() #10

; Function Attrs: nounwind
declare i32 @sched_getaffinity(i32 noundef, i64 noundef, ptr noundef) local_unnamed_addr #6

; Function Attrs: nounwind
declare i32 @getpid() local_unnamed_addr #6

; Function Attrs: nounwind
declare i32 @sched_setaffinity(i32 noundef, i64 noundef, ptr noundef) local_unnamed_addr #6

; Function Attrs: nounwind
declare i64 @syscall(i64 noundef, ...) local_unnamed_addr #6

; Function Attrs: nounwind
declare i32 @sched_getcpu() local_unnamed_addr #6

; Function Attrs: nounwind
declare i32 @pthread_getaffinity_np(i64 noundef, i64 noundef, ptr noundef) local_unnamed_addr #6

; Function Attrs: mustprogress nocallback nofree nounwind willreturn memory(argmem: readwrite)
declare void @llvm.memcpy.p0.p0.i64(ptr noalias nocapture writeonly, ptr noalias nocapture readonly, i64, i1 immarg) #11

; Function Attrs: nounwind
declare i32 @__sched_cpucount(i64 noundef, ptr noundef) local_unnamed_addr #6

; Function Attrs: nounwind
declare i32 @pthread_setaffinity_np(i64 noundef, i64 noundef, ptr noundef) local_unnamed_addr #6

; Function Attrs: nounwind
declare i32 @pthread_getcpuclockid(i64 noundef, ptr noundef) local_unnamed_addr #6

; Function Attrs: nocallback nofree nosync nounwind speculatable willreturn memory(none)
declare i64 @llvm.smin.i64(i64, i64) #12

; Function Attrs: nocallback nofree nosync nounwind speculatable willreturn memory(none)
declare i64 @llvm.smax.i64(i64, i64) #12

; Function Attrs: nocallback nofree nosync nounwind speculatable willreturn memory(none)
declare i64 @llvm.umin.i64(i64, i64) #12

attributes #0 = { uwtable "no-trapping-math"="true" "stack-protector-buffer-size"="8" }
attributes #1 = { mustprogress nocallback nofree nosync nounwind willreturn memory(argmem: readwrite) }
attributes #2 = { mustprogress nocallback nofree nounwind willreturn memory(argmem: write) }
attributes #3 = { mustprogress nofree norecurse nosync nounwind willreturn memory(argmem: readwrite) uwtable "no-trapping-math"="true" "stack-protector-buffer-size"="8" }
attributes #4 = { mustprogress nofree norecurse nosync nounwind willreturn memory(none) uwtable "no-trapping-math"="true" "stack-protector-buffer-size"="8" }
attributes #5 = { mustprogress nofree norecurse nosync nounwind willreturn memory(argmem: write) uwtable "no-trapping-math"="true" "stack-protector-buffer-size"="8" }
attributes #6 = { nounwind "no-trapping-math"="true" "stack-protector-buffer-size"="8" }
attributes #7 = { mustprogress nofree nosync nounwind willreturn memory(none) "no-trapping-math"="true" "stack-protector-buffer-size"="8" }
attributes #8 = { nounwind uwtable "no-trapping-math"="true" "stack-protector-buffer-size"="8" }
attributes #9 = { noreturn uwtable "no-trapping-math"="true" "stack-protector-buffer-size"="8" }
attributes #10 = { nounwind }
attributes #11 = { mustprogress nocallback nofree nounwind willreturn memory(argmem: readwrite) }
attributes #12 = { nocallback nofree nosync nounwind speculatable willreturn memory(none) }
attributes #13 = { nounwind willreturn memory(none) }

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
