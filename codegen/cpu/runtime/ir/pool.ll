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
  %4 = alloca i32, align 4
  %5 = alloca %struct.cpu_set_t, align 8
  %6 = alloca %struct.timespec, align 8
  %7 = alloca %struct.timespec, align 8
  %8 = alloca %struct.timespec, align 8
  %9 = alloca %struct.timespec, align 8
  %10 = alloca i32, align 4
  %11 = alloca %struct.timespec, align 8
  %12 = alloca %struct.timespec, align 8
  %13 = alloca %struct.timespec, align 8
  %14 = alloca %struct.timespec, align 8
  %15 = alloca %struct.__sigset_t, align 8
  %16 = alloca %struct.__sigset_t, align 8
  %17 = alloca [64 x i8], align 8
  %18 = alloca %struct.timespec, align 8
  %19 = alloca %struct.timespec, align 8
  %20 = alloca %struct.timespec, align 8
  %21 = getelementptr inbounds nuw i8, ptr %0, i64 48
  %22 = load ptr, ptr %21, align 8
  %23 = getelementptr inbounds nuw i8, ptr %0, i64 24
  %24 = load ptr, ptr %23, align 8
  %25 = getelementptr inbounds nuw i8, ptr %0, i64 40
  %26 = load i64, ptr %25, align 8
  tail call void @llvm.memset.p0.i64(ptr align 1 %24, i8 0, i64 %26, i1 false)
  %27 = cmpxchg ptr %22, i64 0, i64 1 acquire monotonic, align 64
  %28 = extractvalue { i64, i1 } %27, 1
  br i1 %28, label %37, label %29

29:                                               ; preds = %1
  %30 = load ptr, ptr %0, align 8
  %31 = getelementptr inbounds nuw i8, ptr %0, i64 8
  %32 = load ptr, ptr %31, align 8
  %33 = getelementptr inbounds nuw i8, ptr %0, i64 16
  %34 = load ptr, ptr %33, align 8
  %35 = load ptr, ptr %23, align 8
  %36 = tail call i32 %30(ptr noundef %32, ptr noundef %34, i64 noundef 0, i64 noundef 1, ptr noundef %35)
  br label %450

37:                                               ; preds = %1
  %38 = getelementptr inbounds nuw i8, ptr %22, i64 144
  %39 = load atomic i64, ptr %38 monotonic, align 16
  %40 = getelementptr inbounds nuw i8, ptr %22, i64 16
  %41 = load i64, ptr %40, align 16
  %42 = getelementptr inbounds nuw i8, ptr %22, i64 24
  %43 = load i64, ptr %42, align 8
  %44 = or i64 %41, %39
  %45 = or i64 %44, %43
  %46 = icmp eq i64 %45, 0
  br i1 %46, label %129, label %47

47:                                               ; preds = %37
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %20) #9
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 8 dereferenceable(16) %20, i8 0, i64 16, i1 false)
  %48 = call i32 @clock_gettime(i32 noundef 1, ptr noundef nonnull %20) #9
  %49 = load i64, ptr %20, align 8
  %50 = mul nsw i64 %49, 1000000000
  %51 = getelementptr inbounds nuw i8, ptr %20, i64 8
  %52 = load i64, ptr %51, align 8
  %53 = add nsw i64 %50, %52
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %20) #9
  %54 = atomicrmw xchg ptr %38, i64 0 monotonic, align 16
  %55 = getelementptr inbounds nuw i8, ptr %22, i64 56
  %56 = load i64, ptr %55, align 8
  %57 = icmp eq i64 %56, 0
  br i1 %57, label %58, label %129

58:                                               ; preds = %47
  %59 = icmp eq i64 %54, 0
  br i1 %59, label %70, label %60

60:                                               ; preds = %58
  %61 = load i64, ptr %42, align 8
  %62 = call i64 @llvm.smin.i64(i64 %61, i64 4)
  %63 = add nsw i64 %62, 1
  store i64 %63, ptr %42, align 8
  %64 = shl i64 %54, %63
  %65 = getelementptr inbounds nuw i8, ptr %22, i64 32
  store i64 %64, ptr %65, align 32
  %66 = getelementptr inbounds nuw i8, ptr %22, i64 152
  %67 = atomicrmw xchg ptr %66, i64 0 monotonic, align 8
  %68 = getelementptr inbounds nuw i8, ptr %22, i64 48
  store i64 %67, ptr %68, align 16
  %69 = add nsw i64 %64, %53
  store i64 %69, ptr %40, align 16
  br label %108

70:                                               ; preds = %58
  %71 = load i64, ptr %40, align 16
  %72 = icmp eq i64 %71, 0
  br i1 %72, label %94, label %73

73:                                               ; preds = %70
  %74 = getelementptr inbounds nuw i8, ptr %0, i64 56
  %75 = load i64, ptr %74, align 8
  %76 = add nsw i64 %75, 4000000
  %77 = getelementptr inbounds nuw i8, ptr %22, i64 48
  %78 = load i64, ptr %77, align 16
  %79 = icmp slt i64 %76, %78
  %80 = getelementptr inbounds nuw i8, ptr %22, i64 32
  %81 = load i64, ptr %80, align 32
  %82 = load i64, ptr %42, align 8
  br i1 %79, label %83, label %86

83:                                               ; preds = %73
  %84 = shl i64 %76, %82
  %85 = call noundef i64 @llvm.smin.i64(i64 %81, i64 %84)
  br label %89

86:                                               ; preds = %73
  %87 = shl i64 %75, %82
  %88 = call noundef i64 @llvm.smax.i64(i64 %81, i64 %87)
  br label %89

89:                                               ; preds = %86, %83
  %90 = phi i64 [ %85, %83 ], [ %88, %86 ]
  %91 = sub i64 %71, %81
  %92 = add i64 %91, %90
  %93 = icmp slt i64 %53, %92
  br i1 %93, label %108, label %98

94:                                               ; preds = %70
  %95 = getelementptr inbounds nuw i8, ptr %22, i64 40
  %96 = load i64, ptr %95, align 8
  %97 = icmp slt i64 %53, %96
  br i1 %97, label %129, label %99

98:                                               ; preds = %89
  store i64 0, ptr %40, align 16
  br label %104

99:                                               ; preds = %94
  %100 = load i64, ptr %42, align 8
  %101 = sdiv i64 %100, 2
  store i64 %101, ptr %42, align 8
  %102 = getelementptr inbounds nuw i8, ptr %22, i64 32
  %103 = load i64, ptr %102, align 32
  br label %104

104:                                              ; preds = %99, %98
  %105 = phi i64 [ %103, %99 ], [ %81, %98 ]
  %106 = add nsw i64 %105, %53
  %107 = getelementptr inbounds nuw i8, ptr %22, i64 40
  store i64 %106, ptr %107, align 8
  br label %129

108:                                              ; preds = %89, %60
  store atomic i64 0, ptr %22 release, align 64
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %19) #9
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 8 dereferenceable(16) %19, i8 0, i64 16, i1 false)
  %109 = call i32 @clock_gettime(i32 noundef 1, ptr noundef nonnull %19) #9
  %110 = load i64, ptr %19, align 8
  %111 = getelementptr inbounds nuw i8, ptr %19, i64 8
  %112 = load i64, ptr %111, align 8
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %19) #9
  %113 = load ptr, ptr %0, align 8
  %114 = getelementptr inbounds nuw i8, ptr %0, i64 8
  %115 = load ptr, ptr %114, align 8
  %116 = getelementptr inbounds nuw i8, ptr %0, i64 16
  %117 = load ptr, ptr %116, align 8
  %118 = load ptr, ptr %23, align 8
  %119 = call i32 %113(ptr noundef %115, ptr noundef %117, i64 noundef 0, i64 noundef 1, ptr noundef %118)
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %18) #9
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 8 dereferenceable(16) %18, i8 0, i64 16, i1 false)
  %120 = call i32 @clock_gettime(i32 noundef 1, ptr noundef nonnull %18) #9
  %121 = load i64, ptr %18, align 8
  %122 = getelementptr inbounds nuw i8, ptr %18, i64 8
  %123 = load i64, ptr %122, align 8
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %18) #9
  %124 = sub i64 %121, %110
  %125 = mul i64 %124, 1000000000
  %126 = sub i64 %123, %112
  %127 = add i64 %126, %125
  %128 = getelementptr inbounds nuw i8, ptr %0, i64 56
  store i64 %127, ptr %128, align 8
  br label %450

129:                                              ; preds = %94, %104, %47, %37
  %130 = getelementptr inbounds nuw i8, ptr %0, i64 32
  %131 = load i64, ptr %130, align 8
  %132 = add nsw i64 %131, -1
  %133 = getelementptr inbounds nuw i8, ptr %22, i64 8
  %134 = load i64, ptr %133, align 8
  %135 = icmp slt i64 %134, %132
  br i1 %135, label %136, label %165

136:                                              ; preds = %129
  call void @llvm.lifetime.start.p0(i64 128, ptr nonnull %15) #9
  call void @llvm.lifetime.start.p0(i64 128, ptr nonnull %16) #9
  call void @llvm.lifetime.start.p0(i64 64, ptr nonnull %17) #9
  %137 = call i32 @sigfillset(ptr noundef nonnull %15) #9
  %138 = call i32 @pthread_sigmask(i32 noundef 2, ptr noundef nonnull %15, ptr noundef nonnull %16) #9
  %139 = call i32 @pthread_attr_init(ptr noundef nonnull %17) #9
  %140 = call i32 @pthread_attr_setdetachstate(ptr noundef nonnull %17, i32 noundef 1) #9
  %141 = call i32 @pthread_attr_setstacksize(ptr noundef nonnull %17, i64 noundef 4194304) #9
  %142 = getelementptr inbounds nuw i8, ptr %22, i64 4352
  %143 = load i64, ptr %133, align 8
  %144 = icmp slt i64 %143, %132
  br i1 %144, label %145, label %161

145:                                              ; preds = %136, %157
  %146 = phi i64 [ %159, %157 ], [ %143, %136 ]
  %147 = getelementptr inbounds [0 x %struct.worker], ptr %142, i64 0, i64 %146
  store atomic i32 0, ptr %147 monotonic, align 64
  %148 = getelementptr inbounds nuw i8, ptr %147, i64 4
  store atomic i32 0, ptr %148 monotonic, align 4
  %149 = getelementptr inbounds nuw i8, ptr %147, i64 8
  store atomic i64 -1, ptr %149 monotonic, align 8
  %150 = getelementptr inbounds nuw i8, ptr %147, i64 16
  store ptr %22, ptr %150, align 16
  %151 = getelementptr inbounds nuw i8, ptr %147, i64 48
  store i64 0, ptr %151, align 16
  %152 = getelementptr inbounds nuw i8, ptr %147, i64 56
  store atomic i64 0, ptr %152 monotonic, align 8
  %153 = getelementptr inbounds nuw i8, ptr %147, i64 64
  store atomic i32 0, ptr %153 monotonic, align 64
  %154 = getelementptr inbounds nuw i8, ptr %147, i64 24
  %155 = call i32 @pthread_create(ptr noundef nonnull %154, ptr noundef nonnull %17, ptr noundef nonnull @live, ptr noundef nonnull %147) #9
  %156 = icmp eq i32 %155, 0
  br i1 %156, label %157, label %161

157:                                              ; preds = %145
  %158 = load i64, ptr %133, align 8
  %159 = add nsw i64 %158, 1
  store i64 %159, ptr %133, align 8
  %160 = icmp slt i64 %159, %132
  br i1 %160, label %145, label %161, !llvm.loop !5

161:                                              ; preds = %157, %145, %136
  %162 = call i32 @pthread_attr_destroy(ptr noundef nonnull %17) #9
  %163 = call i32 @pthread_sigmask(i32 noundef 2, ptr noundef nonnull %16, ptr noundef null) #9
  %164 = load i64, ptr %133, align 8
  call void @llvm.lifetime.end.p0(i64 64, ptr nonnull %17) #9
  call void @llvm.lifetime.end.p0(i64 128, ptr nonnull %16) #9
  call void @llvm.lifetime.end.p0(i64 128, ptr nonnull %15) #9
  br label %165

165:                                              ; preds = %161, %129
  %166 = phi i64 [ %164, %161 ], [ %134, %129 ]
  %167 = call noundef i64 @llvm.smin.i64(i64 %166, i64 %132)
  %168 = getelementptr inbounds nuw i8, ptr %22, i64 64
  store ptr %0, ptr %168, align 64
  %169 = getelementptr inbounds nuw i8, ptr %22, i64 72
  store i64 %167, ptr %169, align 8
  %170 = tail call i64 @pthread_self() #12
  %171 = getelementptr inbounds nuw i8, ptr %22, i64 88
  store i64 %170, ptr %171, align 8
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %14) #9
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 8 dereferenceable(16) %14, i8 0, i64 16, i1 false)
  %172 = call i32 @clock_gettime(i32 noundef 1, ptr noundef nonnull %14) #9
  %173 = load i64, ptr %14, align 8
  %174 = mul nsw i64 %173, 1000000000
  %175 = getelementptr inbounds nuw i8, ptr %14, i64 8
  %176 = load i64, ptr %175, align 8
  %177 = add nsw i64 %174, %176
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %14) #9
  %178 = getelementptr inbounds nuw i8, ptr %22, i64 80
  store i64 %177, ptr %178, align 16
  %179 = getelementptr inbounds nuw i8, ptr %22, i64 104
  %180 = load i32, ptr %179, align 8
  %181 = add i32 %180, 1
  store i32 %181, ptr %179, align 8
  %182 = call i32 @sched_getcpu() #9
  %183 = sext i32 %182 to i64
  %184 = getelementptr inbounds nuw i8, ptr %22, i64 96
  store i64 %183, ptr %184, align 32
  %185 = icmp ugt i32 %182, 1023
  br i1 %185, label %191, label %186

186:                                              ; preds = %165
  %187 = getelementptr inbounds nuw i8, ptr %22, i64 256
  %188 = getelementptr inbounds nuw [1024 x i32], ptr %187, i64 0, i64 %183
  %189 = load i32, ptr %179, align 8
  %190 = atomicrmw xchg ptr %188, i32 %189 monotonic, align 4
  br label %191

191:                                              ; preds = %186, %165
  %192 = getelementptr inbounds nuw i8, ptr %22, i64 128
  store atomic i32 0, ptr %192 monotonic, align 64
  %193 = getelementptr inbounds nuw i8, ptr %22, i64 136
  store atomic i64 0, ptr %193 monotonic, align 8
  %194 = getelementptr inbounds nuw i8, ptr %22, i64 192
  store atomic i64 %167, ptr %194 monotonic, align 64
  %195 = icmp sgt i64 %167, 0
  br i1 %195, label %196, label %242

196:                                              ; preds = %191
  %197 = getelementptr inbounds nuw i8, ptr %22, i64 4352
  br label %198

198:                                              ; preds = %217, %196
  %199 = phi i1 [ true, %217 ], [ false, %196 ]
  %200 = phi i64 [ %219, %217 ], [ 0, %196 ]
  br label %202

201:                                              ; preds = %214
  br i1 %199, label %221, label %242

202:                                              ; preds = %214, %198
  %203 = phi i64 [ %215, %214 ], [ %200, %198 ]
  %204 = getelementptr inbounds nuw [0 x %struct.worker], ptr %197, i64 0, i64 %203
  %205 = getelementptr inbounds nuw i8, ptr %204, i64 8
  %206 = load atomic i64, ptr %205 monotonic, align 8
  %207 = icmp eq i64 %206, %183
  br i1 %207, label %208, label %211

208:                                              ; preds = %202
  %209 = getelementptr inbounds nuw i8, ptr %204, i64 24
  %210 = load i64, ptr %209, align 8
  call fastcc void @keep_off(ptr noundef nonnull %22, ptr noundef nonnull %204, i64 noundef %210, i64 noundef %183)
  br label %211

211:                                              ; preds = %208, %202
  %212 = atomicrmw xchg ptr %204, i32 2 seq_cst, align 64
  %213 = icmp eq i32 %212, 1
  br i1 %213, label %217, label %214

214:                                              ; preds = %211
  %215 = add nuw nsw i64 %203, 1
  %216 = icmp eq i64 %215, %167
  br i1 %216, label %201, label %202, !llvm.loop !7

217:                                              ; preds = %211
  %218 = getelementptr inbounds nuw i8, ptr %204, i64 4
  store atomic i32 1, ptr %218 monotonic, align 4
  %219 = add nuw nsw i64 %203, 1
  %220 = icmp eq i64 %219, %167
  br i1 %220, label %221, label %198, !llvm.loop !7

221:                                              ; preds = %217, %201
  store atomic i64 0, ptr %194 release, align 64
  br label %222

222:                                              ; preds = %239, %221
  %223 = phi i32 [ 2, %221 ], [ %240, %239 ]
  %224 = load atomic i64, ptr %194 monotonic, align 64
  %225 = load i64, ptr %169, align 8
  %226 = icmp slt i64 %224, %225
  br i1 %226, label %227, label %242

227:                                              ; preds = %222
  %228 = atomicrmw add ptr %194, i64 1 acquire, align 64
  %229 = load i64, ptr %169, align 8
  %230 = icmp slt i64 %228, %229
  br i1 %230, label %231, label %242

231:                                              ; preds = %227
  %232 = getelementptr inbounds [0 x %struct.worker], ptr %197, i64 0, i64 %228
  %233 = getelementptr inbounds nuw i8, ptr %232, i64 4
  %234 = atomicrmw xchg ptr %233, i32 0 monotonic, align 4
  %235 = icmp eq i32 %234, 0
  br i1 %235, label %239, label %236, !llvm.loop !8

236:                                              ; preds = %231
  %237 = call i64 (i64, ...) @syscall(i64 noundef 202, ptr noundef nonnull %232, i32 noundef 129, i32 noundef 1, i32 noundef 0, i32 noundef 0, i32 noundef 0) #9
  %238 = add nsw i32 %223, -1
  br label %239

239:                                              ; preds = %236, %231
  %240 = phi i32 [ %238, %236 ], [ %223, %231 ]
  %241 = icmp sgt i32 %240, 0
  br i1 %241, label %222, label %242

242:                                              ; preds = %222, %227, %239, %191, %201
  %243 = load ptr, ptr %0, align 8
  %244 = getelementptr inbounds nuw i8, ptr %0, i64 8
  %245 = load ptr, ptr %244, align 8
  %246 = getelementptr inbounds nuw i8, ptr %0, i64 16
  %247 = load ptr, ptr %246, align 8
  %248 = load i64, ptr %169, align 8
  %249 = add nsw i64 %248, 1
  %250 = load ptr, ptr %23, align 8
  %251 = call i32 %243(ptr noundef %245, ptr noundef %247, i64 noundef 0, i64 noundef %249, ptr noundef %250)
  %252 = getelementptr inbounds nuw i8, ptr %22, i64 56
  %253 = load i64, ptr %252, align 8
  %254 = icmp eq i64 %253, 0
  %255 = load i64, ptr %169, align 8
  br i1 %254, label %256, label %276

256:                                              ; preds = %242
  %257 = icmp sgt i64 %255, 0
  br i1 %257, label %258, label %276

258:                                              ; preds = %256
  %259 = getelementptr inbounds nuw i8, ptr %22, i64 4352
  br label %260

260:                                              ; preds = %260, %258
  %261 = phi i64 [ 0, %258 ], [ %272, %260 ]
  %262 = phi i64 [ 0, %258 ], [ %273, %260 ]
  %263 = getelementptr inbounds nuw [0 x %struct.worker], ptr %259, i64 0, i64 %262
  %264 = getelementptr inbounds nuw i8, ptr %263, i64 4
  %265 = atomicrmw xchg ptr %264, i32 0 monotonic, align 4
  %266 = icmp ne i32 %265, 0
  %267 = zext i1 %266 to i32
  %268 = cmpxchg ptr %263, i32 2, i32 %267 seq_cst seq_cst, align 64
  %269 = extractvalue { i32, i1 } %268, 1
  %270 = xor i1 %269, true
  %271 = zext i1 %270 to i64
  %272 = add nuw nsw i64 %261, %271
  %273 = add nuw nsw i64 %262, 1
  %274 = load i64, ptr %169, align 8
  %275 = icmp slt i64 %273, %274
  br i1 %275, label %260, label %276, !llvm.loop !9

276:                                              ; preds = %260, %242, %256
  %277 = phi i64 [ 0, %256 ], [ %255, %242 ], [ %272, %260 ]
  %278 = trunc i64 %277 to i32
  %279 = getelementptr inbounds nuw i8, ptr %12, i64 8
  %280 = getelementptr inbounds nuw i8, ptr %13, i64 8
  %281 = getelementptr inbounds nuw i8, ptr %11, i64 8
  %282 = getelementptr inbounds nuw i8, ptr %22, i64 4352
  %283 = getelementptr inbounds nuw i8, ptr %9, i64 8
  %284 = getelementptr inbounds nuw i8, ptr %7, i64 8
  %285 = getelementptr inbounds nuw i8, ptr %8, i64 8
  %286 = getelementptr inbounds nuw i8, ptr %6, i64 8
  %287 = getelementptr inbounds nuw i8, ptr %3, i64 8
  %288 = getelementptr inbounds nuw i8, ptr %22, i64 132
  br label %289

289:                                              ; preds = %444, %276
  %290 = phi i64 [ 0, %276 ], [ %445, %444 ]
  br label %291

291:                                              ; preds = %306, %289
  %292 = phi i64 [ %311, %306 ], [ 0, %289 ]
  %293 = phi i64 [ %302, %306 ], [ 1, %289 ]
  %294 = icmp eq i64 %292, 0
  br label %295

295:                                              ; preds = %291, %312
  %296 = phi i64 [ %302, %312 ], [ %293, %291 ]
  br label %297

297:                                              ; preds = %301, %295
  %298 = phi i64 [ %302, %301 ], [ %296, %295 ]
  %299 = load atomic i32, ptr %192 acquire, align 64
  %300 = icmp eq i32 %299, %278
  br i1 %300, label %446, label %301

301:                                              ; preds = %297
  call void @llvm.x86.sse2.pause()
  %302 = add i64 %298, 1
  %303 = and i64 %302, 31
  %304 = icmp eq i64 %303, 1
  br i1 %304, label %305, label %297, !llvm.loop !10

305:                                              ; preds = %301
  br i1 %294, label %306, label %312

306:                                              ; preds = %305
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %13) #9
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 8 dereferenceable(16) %13, i8 0, i64 16, i1 false)
  %307 = call i32 @clock_gettime(i32 noundef 1, ptr noundef nonnull %13) #9
  %308 = load i64, ptr %13, align 8
  %309 = mul nsw i64 %308, 1000000000
  %310 = load i64, ptr %280, align 8
  %311 = add nsw i64 %309, %310
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %13) #9
  br label %291, !llvm.loop !10

312:                                              ; preds = %305
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %12) #9
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 8 dereferenceable(16) %12, i8 0, i64 16, i1 false)
  %313 = call i32 @clock_gettime(i32 noundef 1, ptr noundef nonnull %12) #9
  %314 = load i64, ptr %12, align 8
  %315 = mul nsw i64 %314, 1000000000
  %316 = load i64, ptr %279, align 8
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %12) #9
  %317 = sub i64 %316, %292
  %318 = add i64 %317, %315
  %319 = icmp sgt i64 %318, 50000
  br i1 %319, label %320, label %295, !llvm.loop !10

320:                                              ; preds = %312
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %11) #9
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 8 dereferenceable(16) %11, i8 0, i64 16, i1 false)
  %321 = call i32 @clock_gettime(i32 noundef 1, ptr noundef nonnull %11) #9
  %322 = load i64, ptr %11, align 8
  %323 = load i64, ptr %281, align 8
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %11) #9
  %324 = load i64, ptr %169, align 8
  %325 = icmp sgt i64 %324, 0
  br i1 %325, label %326, label %346

326:                                              ; preds = %320, %340
  %327 = phi i64 [ %343, %340 ], [ 0, %320 ]
  %328 = getelementptr inbounds nuw [0 x %struct.worker], ptr %282, i64 0, i64 %327
  %329 = getelementptr inbounds nuw i8, ptr %328, i64 24
  %330 = load i64, ptr %329, align 8
  call void @llvm.lifetime.start.p0(i64 4, ptr nonnull %10) #9
  %331 = call i32 @pthread_getcpuclockid(i64 noundef %330, ptr noundef nonnull %10) #9
  %332 = icmp eq i32 %331, 0
  br i1 %332, label %333, label %340

333:                                              ; preds = %326
  %334 = load i32, ptr %10, align 4
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %9) #9
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 8 dereferenceable(16) %9, i8 0, i64 16, i1 false)
  %335 = call i32 @clock_gettime(i32 noundef %334, ptr noundef nonnull %9) #9
  %336 = load i64, ptr %9, align 8
  %337 = mul nsw i64 %336, 1000000000
  %338 = load i64, ptr %283, align 8
  %339 = add nsw i64 %337, %338
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %9) #9
  br label %340

340:                                              ; preds = %333, %326
  %341 = phi i64 [ %339, %333 ], [ 0, %326 ]
  call void @llvm.lifetime.end.p0(i64 4, ptr nonnull %10) #9
  %342 = getelementptr inbounds nuw i8, ptr %328, i64 72
  store i64 %341, ptr %342, align 8
  %343 = add nuw nsw i64 %327, 1
  %344 = load i64, ptr %169, align 8
  %345 = icmp slt i64 %343, %344
  br i1 %345, label %326, label %346, !llvm.loop !11

346:                                              ; preds = %340, %320
  br label %347

347:                                              ; preds = %346, %362
  %348 = phi i64 [ 0, %346 ], [ %367, %362 ]
  %349 = phi i64 [ 1, %346 ], [ %358, %362 ]
  %350 = icmp eq i64 %348, 0
  br label %351

351:                                              ; preds = %347, %368
  %352 = phi i64 [ %358, %368 ], [ %349, %347 ]
  br label %353

353:                                              ; preds = %357, %351
  %354 = phi i64 [ %358, %357 ], [ %352, %351 ]
  %355 = load atomic i32, ptr %192 acquire, align 64
  %356 = icmp eq i32 %355, %278
  br i1 %356, label %446, label %357

357:                                              ; preds = %353
  call void @llvm.x86.sse2.pause()
  %358 = add i64 %354, 1
  %359 = and i64 %358, 31
  %360 = icmp eq i64 %359, 1
  br i1 %360, label %361, label %353, !llvm.loop !10

361:                                              ; preds = %357
  br i1 %350, label %362, label %368

362:                                              ; preds = %361
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %8) #9
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 8 dereferenceable(16) %8, i8 0, i64 16, i1 false)
  %363 = call i32 @clock_gettime(i32 noundef 1, ptr noundef nonnull %8) #9
  %364 = load i64, ptr %8, align 8
  %365 = mul nsw i64 %364, 1000000000
  %366 = load i64, ptr %285, align 8
  %367 = add nsw i64 %365, %366
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %8) #9
  br label %347, !llvm.loop !10

368:                                              ; preds = %361
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %7) #9
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 8 dereferenceable(16) %7, i8 0, i64 16, i1 false)
  %369 = call i32 @clock_gettime(i32 noundef 1, ptr noundef nonnull %7) #9
  %370 = load i64, ptr %7, align 8
  %371 = mul nsw i64 %370, 1000000000
  %372 = load i64, ptr %284, align 8
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %7) #9
  %373 = sub i64 %372, %348
  %374 = add i64 %373, %371
  %375 = icmp sgt i64 %374, 20000
  br i1 %375, label %376, label %351, !llvm.loop !10

376:                                              ; preds = %368
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %6) #9
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 8 dereferenceable(16) %6, i8 0, i64 16, i1 false)
  %377 = call i32 @clock_gettime(i32 noundef 1, ptr noundef nonnull %6) #9
  %378 = load i64, ptr %6, align 8
  %379 = load i64, ptr %286, align 8
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %6) #9
  %380 = sub i64 %378, %322
  %381 = mul i64 %380, 1000000000
  %382 = sub i64 %379, %323
  %383 = add i64 %382, %381
  %384 = call i32 @sched_getcpu() #9
  %385 = sext i32 %384 to i64
  %386 = icmp ugt i32 %384, 1023
  br i1 %386, label %434, label %387

387:                                              ; preds = %376
  call void @llvm.lifetime.start.p0(i64 128, ptr nonnull %5) #9
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 8 dereferenceable(128) %5, i8 0, i64 128, i1 false)
  %388 = and i64 %385, 63
  %389 = shl nuw i64 1, %388
  %390 = lshr i64 %385, 6
  %391 = getelementptr inbounds nuw i64, ptr %5, i64 %390
  %392 = load i64, ptr %391, align 8
  %393 = or i64 %392, %389
  store i64 %393, ptr %391, align 8
  %394 = load i64, ptr %169, align 8
  %395 = icmp sgt i64 %394, 0
  br i1 %395, label %398, label %396

396:                                              ; preds = %429, %387
  %397 = phi i1 [ false, %387 ], [ %430, %429 ]
  call void @llvm.lifetime.end.p0(i64 128, ptr nonnull %5) #9
  br label %434

398:                                              ; preds = %387, %429
  %399 = phi i1 [ %430, %429 ], [ false, %387 ]
  %400 = phi i64 [ %431, %429 ], [ 0, %387 ]
  %401 = getelementptr inbounds nuw [0 x %struct.worker], ptr %282, i64 0, i64 %400
  %402 = load atomic i32, ptr %401 monotonic, align 64
  %403 = icmp eq i32 %402, 3
  br i1 %403, label %404, label %429

404:                                              ; preds = %398
  %405 = getelementptr inbounds nuw i8, ptr %401, i64 24
  %406 = load i64, ptr %405, align 8
  call void @llvm.lifetime.start.p0(i64 4, ptr nonnull %4) #9
  %407 = call i32 @pthread_getcpuclockid(i64 noundef %406, ptr noundef nonnull %4) #9
  %408 = icmp eq i32 %407, 0
  br i1 %408, label %409, label %416

409:                                              ; preds = %404
  %410 = load i32, ptr %4, align 4
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %3) #9
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 8 dereferenceable(16) %3, i8 0, i64 16, i1 false)
  %411 = call i32 @clock_gettime(i32 noundef %410, ptr noundef nonnull %3) #9
  %412 = load i64, ptr %3, align 8
  %413 = mul nsw i64 %412, 1000000000
  %414 = load i64, ptr %287, align 8
  %415 = add nsw i64 %413, %414
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %3) #9
  br label %416

416:                                              ; preds = %409, %404
  %417 = phi i64 [ %415, %409 ], [ 0, %404 ]
  call void @llvm.lifetime.end.p0(i64 4, ptr nonnull %4) #9
  %418 = getelementptr inbounds nuw i8, ptr %401, i64 72
  %419 = load i64, ptr %418, align 8
  %420 = sub nsw i64 %417, %419
  %421 = shl nsw i64 %420, 1
  %422 = icmp sgt i64 %421, %383
  br i1 %422, label %429, label %423

423:                                              ; preds = %416
  %424 = getelementptr inbounds nuw i8, ptr %401, i64 64
  store atomic i32 1, ptr %424 monotonic, align 64
  %425 = getelementptr inbounds nuw i8, ptr %401, i64 8
  store atomic i64 %385, ptr %425 monotonic, align 8
  %426 = getelementptr inbounds nuw i8, ptr %401, i64 56
  store atomic i64 1, ptr %426 monotonic, align 8
  %427 = load i64, ptr %405, align 8
  %428 = call i32 @pthread_setaffinity_np(i64 noundef %427, i64 noundef 128, ptr noundef nonnull %5) #9
  br label %429

429:                                              ; preds = %423, %416, %398
  %430 = phi i1 [ true, %423 ], [ %399, %398 ], [ %399, %416 ]
  %431 = add nuw nsw i64 %400, 1
  %432 = load i64, ptr %169, align 8
  %433 = icmp slt i64 %431, %432
  br i1 %433, label %398, label %396, !llvm.loop !12

434:                                              ; preds = %396, %376
  %435 = phi i1 [ %397, %396 ], [ false, %376 ]
  %436 = icmp samesign ugt i64 %290, 1000000
  %437 = select i1 %435, i1 true, i1 %436
  br i1 %437, label %438, label %444

438:                                              ; preds = %434
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %2) #9
  call void @llvm.memcpy.p0.p0.i64(ptr noundef nonnull align 8 dereferenceable(16) %2, ptr noundef nonnull align 8 dereferenceable(16) @__const.sleep_while_missing.at_most, i64 16, i1 false)
  store atomic i32 1, ptr %288 seq_cst, align 4
  %439 = load atomic i32, ptr %192 seq_cst, align 64
  %440 = icmp eq i32 %439, %278
  br i1 %440, label %443, label %441

441:                                              ; preds = %438
  %442 = call i64 (i64, ...) @syscall(i64 noundef 202, ptr noundef nonnull %192, i32 noundef 128, i32 noundef %439, ptr noundef nonnull %2, i32 noundef 0, i32 noundef 0) #9
  br label %443

443:                                              ; preds = %441, %438
  store atomic i32 0, ptr %288 monotonic, align 4
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %2) #9
  br label %444

444:                                              ; preds = %443, %434
  %445 = add nuw nsw i64 %290, 70000
  br label %289, !llvm.loop !13

446:                                              ; preds = %297, %353
  %447 = load atomic i64, ptr %193 monotonic, align 8
  %448 = trunc i64 %447 to i32
  store atomic i64 0, ptr %22 release, align 64
  %449 = or i32 %251, %448
  br label %450

450:                                              ; preds = %108, %446, %29
  %451 = phi i32 [ %36, %29 ], [ %119, %108 ], [ %449, %446 ]
  ret i32 %451
}

; Function Attrs: mustprogress nocallback nofree nosync nounwind willreturn memory(argmem: readwrite)
declare void @llvm.lifetime.start.p0(i64 immarg, ptr nocapture) #1

; Function Attrs: mustprogress nocallback nofree nounwind willreturn memory(argmem: write)
declare void @llvm.memset.p0.i64(ptr nocapture writeonly, i8, i64, i1 immarg) #2

; Function Attrs: mustprogress nocallback nofree nosync nounwind willreturn memory(argmem: readwrite)
declare void @llvm.lifetime.end.p0(i64 immarg, ptr nocapture) #1

; Function Attrs: mustprogress nofree norecurse nosync nounwind willreturn memory(none) uwtable
define range(i64 4224, 4097) i64 @tcl_pool_bytes(i64 noundef %0) local_unnamed_addr #3 {
  %2 = shl i64 %0, 7
  %3 = add i64 %2, 4224
  ret i64 %3
}

; Function Attrs: mustprogress nofree norecurse nosync nounwind willreturn memory(argmem: write) uwtable
define void @tcl_pool_reset(ptr nocapture noundef writeonly %0, i64 noundef %1) local_unnamed_addr #4 {
  %3 = shl i64 %1, 7
  %4 = add i64 %3, 4224
  tail call void @llvm.memset.p0.i64(ptr align 64 %0, i8 0, i64 %4, i1 false)
  ret void
}

; Function Attrs: mustprogress nofree norecurse nosync nounwind willreturn memory(argmem: write) uwtable
define void @tcl_pool_together(ptr nocapture noundef writeonly initializes((56, 64)) %0, i64 noundef %1) local_unnamed_addr #4 {
  %3 = getelementptr inbounds nuw i8, ptr %0, i64 56
  store i64 %1, ptr %3, align 8
  ret void
}

; Function Attrs: nounwind
declare i32 @clock_gettime(i32 noundef, ptr noundef) local_unnamed_addr #5

; Function Attrs: mustprogress nofree nosync nounwind willreturn memory(none)
declare i64 @pthread_self() local_unnamed_addr #6

; Function Attrs: nounwind uwtable
define internal fastcc void @keep_off(ptr nocapture noundef readonly %0, ptr nocapture noundef writeonly %1, i64 noundef %2, i64 noundef range(i64 -2147483648, 2147483648) %3) unnamed_addr #7 {
  %5 = alloca %struct.cpu_set_t, align 8
  %6 = alloca %struct.cpu_set_t, align 8
  call void @llvm.lifetime.start.p0(i64 128, ptr nonnull %5) #9
  call void @llvm.lifetime.start.p0(i64 128, ptr nonnull %6) #9
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 8 dereferenceable(128) %5, i8 0, i64 128, i1 false)
  %7 = getelementptr inbounds nuw i8, ptr %0, i64 88
  %8 = load i64, ptr %7, align 8
  %9 = call i32 @pthread_getaffinity_np(i64 noundef %8, i64 noundef 128, ptr noundef nonnull %5) #9
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
  %28 = call i32 @__sched_cpucount(i64 noundef 128, ptr noundef nonnull %5) #9
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
  %60 = call i32 @__sched_cpucount(i64 noundef 128, ptr noundef nonnull %6) #9
  %61 = icmp eq i32 %60, 0
  br i1 %61, label %62, label %65

62:                                               ; preds = %59
  %63 = load i64, ptr %12, align 32
  %64 = icmp eq i64 %3, %63
  br i1 %64, label %65, label %73

65:                                               ; preds = %62, %59
  %66 = call i32 @__sched_cpucount(i64 noundef 128, ptr noundef nonnull %6) #9
  %67 = icmp eq i32 %66, 0
  %68 = select i1 %67, ptr %5, ptr %6
  %69 = call i32 @pthread_setaffinity_np(i64 noundef %2, i64 noundef 128, ptr noundef nonnull %68) #9
  %70 = getelementptr inbounds nuw i8, ptr %1, i64 56
  %71 = getelementptr inbounds nuw i8, ptr %0, i64 80
  %72 = load i64, ptr %71, align 16
  store atomic i64 %72, ptr %70 monotonic, align 8
  br label %73

73:                                               ; preds = %27, %62, %4, %65
  call void @llvm.lifetime.end.p0(i64 128, ptr nonnull %6) #9
  call void @llvm.lifetime.end.p0(i64 128, ptr nonnull %5) #9
  ret void
}

; Function Attrs: nounwind
declare i32 @sigfillset(ptr noundef) local_unnamed_addr #5

; Function Attrs: nounwind
declare i32 @pthread_sigmask(i32 noundef, ptr noundef, ptr noundef) local_unnamed_addr #5

; Function Attrs: nounwind
declare i32 @pthread_attr_init(ptr noundef) local_unnamed_addr #5

; Function Attrs: nounwind
declare i32 @pthread_attr_setdetachstate(ptr noundef, i32 noundef) local_unnamed_addr #5

; Function Attrs: nounwind
declare i32 @pthread_attr_setstacksize(ptr noundef, i64 noundef) local_unnamed_addr #5

; Function Attrs: nounwind
declare i32 @pthread_create(ptr noundef, ptr noundef, ptr noundef, ptr noundef) local_unnamed_addr #5

; Function Attrs: noreturn uwtable
define internal noundef ptr @live(ptr noundef initializes((32, 48)) %0) #8 {
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
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %14) #9
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 8 dereferenceable(16) %14, i8 0, i64 16, i1 false)
  %17 = call i32 @clock_gettime(i32 noundef 1, ptr noundef nonnull %14) #9
  %18 = load i64, ptr %14, align 8
  %19 = mul nsw i64 %18, 1000000000
  %20 = getelementptr inbounds nuw i8, ptr %14, i64 8
  %21 = load i64, ptr %20, align 8
  %22 = add nsw i64 %19, %21
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %14) #9
  %23 = getelementptr inbounds nuw i8, ptr %0, i64 32
  store i64 %22, ptr %23, align 32
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %13) #9
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 8 dereferenceable(16) %13, i8 0, i64 16, i1 false)
  %24 = call i32 @clock_gettime(i32 noundef 3, ptr noundef nonnull %13) #9
  %25 = load i64, ptr %13, align 8
  %26 = mul nsw i64 %25, 1000000000
  %27 = getelementptr inbounds nuw i8, ptr %13, i64 8
  %28 = load i64, ptr %27, align 8
  %29 = add nsw i64 %26, %28
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %13) #9
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
  call void @llvm.lifetime.start.p0(i64 144, ptr nonnull %12) #9
  %76 = call i32 @getrusage(i32 noundef 1, ptr noundef nonnull %12) #9
  %77 = icmp eq i32 %76, 0
  %78 = load i64, ptr %32, align 8
  %79 = select i1 %77, i64 %78, i64 0
  call void @llvm.lifetime.end.p0(i64 144, ptr nonnull %12) #9
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
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %11) #9
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 8 dereferenceable(16) %11, i8 0, i64 16, i1 false)
  %90 = call i32 @clock_gettime(i32 noundef 1, ptr noundef nonnull %11) #9
  %91 = load i64, ptr %11, align 8
  %92 = mul nsw i64 %91, 1000000000
  %93 = load i64, ptr %33, align 8
  %94 = add nsw i64 %92, %93
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %11) #9
  %95 = sub nsw i64 %94, %85
  %96 = icmp sgt i64 %95, 100000
  br i1 %96, label %97, label %108

97:                                               ; preds = %89
  call void @llvm.lifetime.start.p0(i64 144, ptr nonnull %10) #9
  %98 = call i32 @getrusage(i32 noundef 1, ptr noundef nonnull %10) #9
  %99 = icmp eq i32 %98, 0
  %100 = load i64, ptr %34, align 8
  %101 = select i1 %99, i64 %100, i64 0
  call void @llvm.lifetime.end.p0(i64 144, ptr nonnull %10) #9
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
  %116 = call i32 @sched_yield() #9
  br label %117

117:                                              ; preds = %115, %109
  %118 = phi i64 [ -1, %115 ], [ %86, %109 ]
  %119 = load i64, ptr %23, align 32
  %120 = sub nsw i64 %94, %119
  %121 = icmp sgt i64 %120, 20000
  br i1 %121, label %122, label %128

122:                                              ; preds = %117
  store i64 %94, ptr %23, align 32
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %9) #9
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 8 dereferenceable(16) %9, i8 0, i64 16, i1 false)
  %123 = call i32 @clock_gettime(i32 noundef 3, ptr noundef nonnull %9) #9
  %124 = load i64, ptr %9, align 8
  %125 = mul nsw i64 %124, 1000000000
  %126 = load i64, ptr %35, align 8
  %127 = add nsw i64 %125, %126
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %9) #9
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
  call void @llvm.lifetime.start.p0(i64 128, ptr nonnull %8) #9
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 8 dereferenceable(128) %8, i8 0, i64 128, i1 false)
  %138 = icmp eq i64 %137, 0
  %139 = sub nsw i64 %94, %137
  %140 = icmp slt i64 %139, 100000000
  %141 = select i1 %138, i1 true, i1 %140
  br i1 %141, label %148, label %142

142:                                              ; preds = %134
  %143 = call i32 @getpid() #9
  %144 = call i32 @sched_getaffinity(i32 noundef %143, i64 noundef 128, ptr noundef nonnull %8) #9
  %145 = icmp eq i32 %144, 0
  br i1 %145, label %146, label %148

146:                                              ; preds = %142
  %147 = call i32 @sched_setaffinity(i32 noundef 0, i64 noundef 128, ptr noundef nonnull %8) #9
  store atomic i64 0, ptr %36 monotonic, align 8
  br label %148

148:                                              ; preds = %146, %142, %134
  call void @llvm.lifetime.end.p0(i64 128, ptr nonnull %8) #9
  %149 = cmpxchg ptr %0, i32 0, i32 1 seq_cst seq_cst, align 64
  %150 = extractvalue { i32, i1 } %149, 1
  %151 = extractvalue { i32, i1 } %149, 0
  %152 = icmp ne i32 %151, 2
  %153 = select i1 %150, i1 true, i1 %152
  br i1 %153, label %154, label %169

154:                                              ; preds = %148, %154
  %155 = call i64 (i64, ...) @syscall(i64 noundef 202, ptr noundef nonnull %0, i32 noundef 128, i32 noundef 1, ptr noundef null, i32 noundef 0, i32 noundef 0) #9
  %156 = load atomic i32, ptr %0 monotonic, align 64
  %157 = icmp eq i32 %156, 1
  br i1 %157, label %154, label %158, !llvm.loop !15

158:                                              ; preds = %154
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %7) #9
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 8 dereferenceable(16) %7, i8 0, i64 16, i1 false)
  %159 = call i32 @clock_gettime(i32 noundef 1, ptr noundef nonnull %7) #9
  %160 = load i64, ptr %7, align 8
  %161 = mul nsw i64 %160, 1000000000
  %162 = load i64, ptr %37, align 8
  %163 = add nsw i64 %161, %162
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %7) #9
  store i64 %163, ptr %23, align 32
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %6) #9
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 8 dereferenceable(16) %6, i8 0, i64 16, i1 false)
  %164 = call i32 @clock_gettime(i32 noundef 3, ptr noundef nonnull %6) #9
  %165 = load i64, ptr %6, align 8
  %166 = mul nsw i64 %165, 1000000000
  %167 = load i64, ptr %38, align 8
  %168 = add nsw i64 %166, %167
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %6) #9
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
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %5) #9
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 8 dereferenceable(16) %5, i8 0, i64 16, i1 false)
  %179 = call i32 @clock_gettime(i32 noundef 1, ptr noundef nonnull %5) #9
  %180 = load i64, ptr %5, align 8
  %181 = mul nsw i64 %180, 1000000000
  %182 = load i64, ptr %41, align 8
  %183 = add nsw i64 %181, %182
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %5) #9
  %184 = load i64, ptr %23, align 32
  %185 = sub nsw i64 %183, %184
  %186 = icmp sgt i64 %185, 40000
  br i1 %186, label %187, label %193

187:                                              ; preds = %176
  store i64 %183, ptr %23, align 32
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %4) #9
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 8 dereferenceable(16) %4, i8 0, i64 16, i1 false)
  %188 = call i32 @clock_gettime(i32 noundef 3, ptr noundef nonnull %4) #9
  %189 = load i64, ptr %4, align 8
  %190 = mul nsw i64 %189, 1000000000
  %191 = load i64, ptr %42, align 8
  %192 = add nsw i64 %190, %191
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %4) #9
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
  %210 = call i64 (i64, ...) @syscall(i64 noundef 202, ptr noundef nonnull %205, i32 noundef 129, i32 noundef 1, i32 noundef 0, i32 noundef 0, i32 noundef 0) #9
  %211 = add nsw i32 %196, -1
  br label %212

212:                                              ; preds = %209, %204
  %213 = phi i32 [ %211, %209 ], [ %196, %204 ]
  %214 = icmp sgt i32 %213, 0
  br i1 %214, label %195, label %215

215:                                              ; preds = %212, %200, %195
  %216 = call i32 @sched_getcpu() #9
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
  %225 = tail call i64 @pthread_self() #12
  call fastcc void @keep_off(ptr noundef nonnull %16, ptr noundef nonnull %0, i64 noundef %225, i64 noundef %217)
  %226 = call i32 @sched_getcpu() #9
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
  %251 = call i64 (i64, ...) @syscall(i64 noundef 202, ptr noundef nonnull %55, i32 noundef 129, i32 noundef 1, i32 noundef 0, i32 noundef 0, i32 noundef 0) #9
  br label %252

252:                                              ; preds = %250, %246
  %253 = load i64, ptr %23, align 32
  %254 = load i64, ptr %30, align 8
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %3) #9
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 8 dereferenceable(16) %3, i8 0, i64 16, i1 false)
  %255 = call i32 @clock_gettime(i32 noundef 1, ptr noundef nonnull %3) #9
  %256 = load i64, ptr %3, align 8
  %257 = mul nsw i64 %256, 1000000000
  %258 = load i64, ptr %57, align 8
  %259 = add nsw i64 %257, %258
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %3) #9
  store i64 %259, ptr %23, align 32
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %2) #9
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 8 dereferenceable(16) %2, i8 0, i64 16, i1 false)
  %260 = call i32 @clock_gettime(i32 noundef 3, ptr noundef nonnull %2) #9
  %261 = load i64, ptr %2, align 8
  %262 = mul nsw i64 %261, 1000000000
  %263 = load i64, ptr %58, align 8
  %264 = add nsw i64 %262, %263
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %2) #9
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
declare i32 @pthread_attr_destroy(ptr noundef) local_unnamed_addr #5

; Function Attrs: nounwind
declare i32 @sched_yield() local_unnamed_addr #5

; Function Attrs: nounwind
declare i32 @getrusage(i32 noundef, ptr noundef) local_unnamed_addr #5

; Function Attrs: nounwind
declare void @llvm.x86.sse2.pause() #9

; Function Attrs: nounwind
declare i32 @sched_getaffinity(i32 noundef, i64 noundef, ptr noundef) local_unnamed_addr #5

; Function Attrs: nounwind
declare i32 @getpid() local_unnamed_addr #5

; Function Attrs: nounwind
declare i32 @sched_setaffinity(i32 noundef, i64 noundef, ptr noundef) local_unnamed_addr #5

; Function Attrs: nounwind
declare i64 @syscall(i64 noundef, ...) local_unnamed_addr #5

; Function Attrs: nounwind
declare i32 @sched_getcpu() local_unnamed_addr #5

; Function Attrs: nounwind
declare i32 @pthread_getaffinity_np(i64 noundef, i64 noundef, ptr noundef) local_unnamed_addr #5

; Function Attrs: mustprogress nocallback nofree nounwind willreturn memory(argmem: readwrite)
declare void @llvm.memcpy.p0.p0.i64(ptr noalias nocapture writeonly, ptr noalias nocapture readonly, i64, i1 immarg) #10

; Function Attrs: nounwind
declare i32 @__sched_cpucount(i64 noundef, ptr noundef) local_unnamed_addr #5

; Function Attrs: nounwind
declare i32 @pthread_setaffinity_np(i64 noundef, i64 noundef, ptr noundef) local_unnamed_addr #5

; Function Attrs: nounwind
declare i32 @pthread_getcpuclockid(i64 noundef, ptr noundef) local_unnamed_addr #5

; Function Attrs: nocallback nofree nosync nounwind speculatable willreturn memory(none)
declare i64 @llvm.smin.i64(i64, i64) #11

; Function Attrs: nocallback nofree nosync nounwind speculatable willreturn memory(none)
declare i64 @llvm.smax.i64(i64, i64) #11

; Function Attrs: nocallback nofree nosync nounwind speculatable willreturn memory(none)
declare i64 @llvm.umin.i64(i64, i64) #11

attributes #0 = { uwtable "no-trapping-math"="true" "stack-protector-buffer-size"="8" }
attributes #1 = { mustprogress nocallback nofree nosync nounwind willreturn memory(argmem: readwrite) }
attributes #2 = { mustprogress nocallback nofree nounwind willreturn memory(argmem: write) }
attributes #3 = { mustprogress nofree norecurse nosync nounwind willreturn memory(none) uwtable "no-trapping-math"="true" "stack-protector-buffer-size"="8" }
attributes #4 = { mustprogress nofree norecurse nosync nounwind willreturn memory(argmem: write) uwtable "no-trapping-math"="true" "stack-protector-buffer-size"="8" }
attributes #5 = { nounwind "no-trapping-math"="true" "stack-protector-buffer-size"="8" }
attributes #6 = { mustprogress nofree nosync nounwind willreturn memory(none) "no-trapping-math"="true" "stack-protector-buffer-size"="8" }
attributes #7 = { nounwind uwtable "no-trapping-math"="true" "stack-protector-buffer-size"="8" }
attributes #8 = { noreturn uwtable "no-trapping-math"="true" "stack-protector-buffer-size"="8" }
attributes #9 = { nounwind }
attributes #10 = { mustprogress nocallback nofree nounwind willreturn memory(argmem: readwrite) }
attributes #11 = { nocallback nofree nosync nounwind speculatable willreturn memory(none) }
attributes #12 = { nounwind willreturn memory(none) }

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
