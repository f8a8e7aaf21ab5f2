%struct.timespec = type { i64, i64 }
%struct.cpu_set_t = type { [16 x i64] }
%struct.__sigset_t = type { [16 x i64] }
%union.pthread_attr_t = type { i64, [56 x i8] }
%struct.worker = type { i64, i64, ptr, i64, i64, i64, i64, i64 }

; Function Attrs: uwtable
define i32 @tcl_pool_run(ptr noundef %0) local_unnamed_addr #0 {
  %2 = alloca %struct.timespec, align 8
  %3 = alloca %struct.timespec, align 8
  %4 = alloca %struct.cpu_set_t, align 8
  %5 = alloca %struct.timespec, align 8
  %6 = alloca %struct.__sigset_t, align 8
  %7 = alloca %struct.__sigset_t, align 8
  %8 = alloca %union.pthread_attr_t, align 8
  %9 = alloca %struct.timespec, align 8
  %10 = alloca %struct.timespec, align 8
  %11 = alloca %struct.timespec, align 8
  %12 = getelementptr inbounds nuw i8, ptr %0, i64 48
  %13 = load ptr, ptr %12, align 8
  %14 = getelementptr inbounds nuw i8, ptr %0, i64 24
  %15 = load ptr, ptr %14, align 8
  %16 = getelementptr inbounds nuw i8, ptr %0, i64 40
  %17 = load i64, ptr %16, align 8
  tail call void @llvm.memset.p0.i64(ptr align 1 %15, i8 0, i64 %17, i1 false)
  %18 = cmpxchg ptr %13, i64 0, i64 1 acquire monotonic, align 64
  %19 = extractvalue { i64, i1 } %18, 1
  br i1 %19, label %28, label %20

20:                                               ; preds = %1
  %21 = load ptr, ptr %0, align 8
  %22 = getelementptr inbounds nuw i8, ptr %0, i64 8
  %23 = load ptr, ptr %22, align 8
  %24 = getelementptr inbounds nuw i8, ptr %0, i64 16
  %25 = load ptr, ptr %24, align 8
  %26 = load ptr, ptr %14, align 8
  %27 = tail call i32 %21(ptr noundef %23, ptr noundef %25, i64 noundef 0, i64 noundef 1, ptr noundef %26)
  br label %262

28:                                               ; preds = %1
  %29 = getelementptr inbounds nuw i8, ptr %13, i64 144
  %30 = load atomic i64, ptr %29 monotonic, align 16
  %31 = getelementptr inbounds nuw i8, ptr %13, i64 16
  %32 = load i64, ptr %31, align 16
  %33 = getelementptr inbounds nuw i8, ptr %13, i64 24
  %34 = load i64, ptr %33, align 8
  %35 = or i64 %32, %30
  %36 = or i64 %35, %34
  %37 = icmp eq i64 %36, 0
  br i1 %37, label %120, label %38

38:                                               ; preds = %28
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %11) #11
  %39 = call i32 @clock_gettime(i32 noundef 1, ptr noundef nonnull %11) #11
  %40 = load i64, ptr %11, align 8
  %41 = mul nsw i64 %40, 1000000000
  %42 = getelementptr inbounds nuw i8, ptr %11, i64 8
  %43 = load i64, ptr %42, align 8
  %44 = add nsw i64 %41, %43
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %11) #11
  %45 = atomicrmw xchg ptr %29, i64 0 monotonic, align 16
  %46 = getelementptr inbounds nuw i8, ptr %13, i64 56
  %47 = load i64, ptr %46, align 8
  %48 = icmp eq i64 %47, 0
  br i1 %48, label %49, label %120

49:                                               ; preds = %38
  %50 = icmp eq i64 %45, 0
  br i1 %50, label %61, label %51

51:                                               ; preds = %49
  %52 = load i64, ptr %33, align 8
  %53 = call i64 @llvm.smin.i64(i64 %52, i64 4)
  %54 = add nsw i64 %53, 1
  store i64 %54, ptr %33, align 8
  %55 = shl i64 %45, %54
  %56 = getelementptr inbounds nuw i8, ptr %13, i64 32
  store i64 %55, ptr %56, align 32
  %57 = getelementptr inbounds nuw i8, ptr %13, i64 152
  %58 = atomicrmw xchg ptr %57, i64 0 monotonic, align 8
  %59 = getelementptr inbounds nuw i8, ptr %13, i64 48
  store i64 %58, ptr %59, align 16
  %60 = add nsw i64 %55, %44
  store i64 %60, ptr %31, align 16
  br label %99

61:                                               ; preds = %49
  %62 = load i64, ptr %31, align 16
  %63 = icmp eq i64 %62, 0
  br i1 %63, label %85, label %64

64:                                               ; preds = %61
  %65 = getelementptr inbounds nuw i8, ptr %0, i64 56
  %66 = load i64, ptr %65, align 8
  %67 = add nsw i64 %66, 4000000
  %68 = getelementptr inbounds nuw i8, ptr %13, i64 48
  %69 = load i64, ptr %68, align 16
  %70 = icmp slt i64 %67, %69
  %71 = getelementptr inbounds nuw i8, ptr %13, i64 32
  %72 = load i64, ptr %71, align 32
  %73 = load i64, ptr %33, align 8
  br i1 %70, label %74, label %77

74:                                               ; preds = %64
  %75 = shl i64 %67, %73
  %76 = call noundef i64 @llvm.smin.i64(i64 %72, i64 %75)
  br label %80

77:                                               ; preds = %64
  %78 = shl i64 %66, %73
  %79 = call noundef i64 @llvm.smax.i64(i64 %72, i64 %78)
  br label %80

80:                                               ; preds = %77, %74
  %81 = phi i64 [ %76, %74 ], [ %79, %77 ]
  %82 = sub i64 %62, %72
  %83 = add i64 %82, %81
  %84 = icmp slt i64 %44, %83
  br i1 %84, label %99, label %89

85:                                               ; preds = %61
  %86 = getelementptr inbounds nuw i8, ptr %13, i64 40
  %87 = load i64, ptr %86, align 8
  %88 = icmp slt i64 %44, %87
  br i1 %88, label %120, label %90

89:                                               ; preds = %80
  store i64 0, ptr %31, align 16
  br label %95

90:                                               ; preds = %85
  %91 = load i64, ptr %33, align 8
  %92 = sdiv i64 %91, 2
  store i64 %92, ptr %33, align 8
  %93 = getelementptr inbounds nuw i8, ptr %13, i64 32
  %94 = load i64, ptr %93, align 32
  br label %95

95:                                               ; preds = %90, %89
  %96 = phi i64 [ %94, %90 ], [ %72, %89 ]
  %97 = add nsw i64 %96, %44
  %98 = getelementptr inbounds nuw i8, ptr %13, i64 40
  store i64 %97, ptr %98, align 8
  br label %120

99:                                               ; preds = %80, %51
  store atomic i64 0, ptr %13 release, align 64
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %10) #11
  %100 = call i32 @clock_gettime(i32 noundef 1, ptr noundef nonnull %10) #11
  %101 = load i64, ptr %10, align 8
  %102 = getelementptr inbounds nuw i8, ptr %10, i64 8
  %103 = load i64, ptr %102, align 8
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %10) #11
  %104 = load ptr, ptr %0, align 8
  %105 = getelementptr inbounds nuw i8, ptr %0, i64 8
  %106 = load ptr, ptr %105, align 8
  %107 = getelementptr inbounds nuw i8, ptr %0, i64 16
  %108 = load ptr, ptr %107, align 8
  %109 = load ptr, ptr %14, align 8
  %110 = call i32 %104(ptr noundef %106, ptr noundef %108, i64 noundef 0, i64 noundef 1, ptr noundef %109)
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %9) #11
  %111 = call i32 @clock_gettime(i32 noundef 1, ptr noundef nonnull %9) #11
  %112 = load i64, ptr %9, align 8
  %113 = getelementptr inbounds nuw i8, ptr %9, i64 8
  %114 = load i64, ptr %113, align 8
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %9) #11
  %115 = sub i64 %112, %101
  %116 = mul i64 %115, 1000000000
  %117 = sub i64 %114, %103
  %118 = add i64 %117, %116
  %119 = getelementptr inbounds nuw i8, ptr %0, i64 56
  store i64 %118, ptr %119, align 8
  br label %262

120:                                              ; preds = %85, %95, %38, %28
  %121 = getelementptr inbounds nuw i8, ptr %0, i64 32
  %122 = load i64, ptr %121, align 8
  %123 = add nsw i64 %122, -1
  %124 = getelementptr inbounds nuw i8, ptr %13, i64 8
  %125 = load i64, ptr %124, align 8
  %126 = icmp slt i64 %125, %123
  br i1 %126, label %127, label %153

127:                                              ; preds = %120
  call void @llvm.lifetime.start.p0(i64 128, ptr nonnull %6) #11
  call void @llvm.lifetime.start.p0(i64 128, ptr nonnull %7) #11
  call void @llvm.lifetime.start.p0(i64 64, ptr nonnull %8) #11
  %128 = call i32 @sigfillset(ptr noundef nonnull %6) #11
  %129 = call i32 @pthread_sigmask(i32 noundef 2, ptr noundef nonnull %6, ptr noundef nonnull %7) #11
  %130 = call i32 @pthread_attr_init(ptr noundef nonnull %8) #11
  %131 = call i32 @pthread_attr_setdetachstate(ptr noundef nonnull %8, i32 noundef 1) #11
  %132 = call i32 @pthread_attr_setstacksize(ptr noundef nonnull %8, i64 noundef 4194304) #11
  %133 = getelementptr inbounds nuw i8, ptr %13, i64 384
  %134 = load i64, ptr %124, align 8
  %135 = icmp slt i64 %134, %123
  br i1 %135, label %136, label %149

136:                                              ; preds = %127, %145
  %137 = phi i64 [ %147, %145 ], [ %134, %127 ]
  %138 = getelementptr inbounds [0 x %struct.worker], ptr %133, i64 0, i64 %137
  store atomic i64 0, ptr %138 monotonic, align 64
  %139 = getelementptr inbounds nuw i8, ptr %138, i64 8
  store atomic i64 -1, ptr %139 monotonic, align 8
  %140 = getelementptr inbounds nuw i8, ptr %138, i64 16
  store ptr %13, ptr %140, align 16
  %141 = getelementptr inbounds nuw i8, ptr %138, i64 56
  store i64 0, ptr %141, align 8
  %142 = getelementptr inbounds nuw i8, ptr %138, i64 24
  %143 = call i32 @pthread_create(ptr noundef nonnull %142, ptr noundef nonnull %8, ptr noundef nonnull @live, ptr noundef nonnull %138) #11
  %144 = icmp eq i32 %143, 0
  br i1 %144, label %145, label %149

145:                                              ; preds = %136
  %146 = load i64, ptr %124, align 8
  %147 = add nsw i64 %146, 1
  store i64 %147, ptr %124, align 8
  %148 = icmp slt i64 %147, %123
  br i1 %148, label %136, label %149, !llvm.loop !5

149:                                              ; preds = %145, %136, %127
  %150 = call i32 @pthread_attr_destroy(ptr noundef nonnull %8) #11
  %151 = call i32 @pthread_sigmask(i32 noundef 2, ptr noundef nonnull %7, ptr noundef null) #11
  %152 = load i64, ptr %124, align 8
  call void @llvm.lifetime.end.p0(i64 64, ptr nonnull %8) #11
  call void @llvm.lifetime.end.p0(i64 128, ptr nonnull %7) #11
  call void @llvm.lifetime.end.p0(i64 128, ptr nonnull %6) #11
  br label %153

153:                                              ; preds = %149, %120
  %154 = phi i64 [ %152, %149 ], [ %125, %120 ]
  %155 = call noundef i64 @llvm.smin.i64(i64 %154, i64 %123)
  %156 = getelementptr inbounds nuw i8, ptr %13, i64 64
  store ptr %0, ptr %156, align 64
  %157 = add nsw i64 %155, 1
  %158 = getelementptr inbounds nuw i8, ptr %13, i64 72
  store i64 %157, ptr %158, align 8
  %159 = call i32 @sched_getcpu() #11
  %160 = sext i32 %159 to i64
  %161 = getelementptr inbounds nuw i8, ptr %13, i64 80
  store i64 %160, ptr %161, align 16
  %162 = tail call i64 @pthread_self() #12
  %163 = getelementptr inbounds nuw i8, ptr %13, i64 96
  store i64 %162, ptr %163, align 32
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %5) #11
  %164 = call i32 @clock_gettime(i32 noundef 1, ptr noundef nonnull %5) #11
  %165 = load i64, ptr %5, align 8
  %166 = mul nsw i64 %165, 1000000000
  %167 = getelementptr inbounds nuw i8, ptr %5, i64 8
  %168 = load i64, ptr %167, align 8
  %169 = add nsw i64 %166, %168
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %5) #11
  %170 = getelementptr inbounds nuw i8, ptr %13, i64 88
  store i64 %169, ptr %170, align 8
  %171 = getelementptr inbounds nuw i8, ptr %13, i64 128
  store atomic i64 0, ptr %171 monotonic, align 64
  %172 = getelementptr inbounds nuw i8, ptr %13, i64 136
  store atomic i64 0, ptr %172 monotonic, align 8
  %173 = icmp sgt i64 %155, 0
  br i1 %173, label %174, label %176

174:                                              ; preds = %153
  %175 = getelementptr inbounds nuw i8, ptr %13, i64 384
  br label %180

176:                                              ; preds = %208, %153
  %177 = getelementptr inbounds nuw i8, ptr %13, i64 192
  %178 = load atomic i64, ptr %177 seq_cst, align 64
  %179 = icmp eq i64 %178, 0
  br i1 %179, label %217, label %211

180:                                              ; preds = %208, %174
  %181 = phi i64 [ 0, %174 ], [ %209, %208 ]
  %182 = getelementptr inbounds nuw [0 x %struct.worker], ptr %175, i64 0, i64 %181
  %183 = getelementptr inbounds nuw i8, ptr %182, i64 8
  %184 = load atomic i64, ptr %183 monotonic, align 8
  %185 = load i64, ptr %161, align 16
  %186 = icmp eq i64 %184, %185
  br i1 %186, label %187, label %208

187:                                              ; preds = %180
  %188 = getelementptr inbounds nuw i8, ptr %182, i64 24
  %189 = load i64, ptr %188, align 8
  %190 = load i64, ptr %163, align 32
  call void @llvm.lifetime.start.p0(i64 128, ptr nonnull %4) #11
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 8 dereferenceable(128) %4, i8 0, i64 128, i1 false)
  %191 = icmp ugt i64 %184, 1023
  br i1 %191, label %207, label %192

192:                                              ; preds = %187
  %193 = call i32 @pthread_getaffinity_np(i64 noundef %190, i64 noundef 128, ptr noundef nonnull %4) #11
  %194 = icmp eq i32 %193, 0
  br i1 %194, label %195, label %207

195:                                              ; preds = %192
  %196 = and i64 %184, 63
  %197 = shl nuw i64 1, %196
  %198 = xor i64 %197, -1
  %199 = lshr i64 %184, 6
  %200 = getelementptr inbounds nuw i64, ptr %4, i64 %199
  %201 = load i64, ptr %200, align 8
  %202 = and i64 %201, %198
  store i64 %202, ptr %200, align 8
  %203 = call i32 @__sched_cpucount(i64 noundef 128, ptr noundef nonnull %4) #11
  %204 = icmp eq i32 %203, 0
  br i1 %204, label %207, label %205

205:                                              ; preds = %195
  %206 = call i32 @pthread_setaffinity_np(i64 noundef %189, i64 noundef 128, ptr noundef nonnull %4) #11
  br label %207

207:                                              ; preds = %205, %195, %192, %187
  call void @llvm.lifetime.end.p0(i64 128, ptr nonnull %4) #11
  br label %208

208:                                              ; preds = %207, %180
  store atomic i64 1, ptr %182 seq_cst, align 64
  %209 = add nuw nsw i64 %181, 1
  %210 = icmp eq i64 %209, %155
  br i1 %210, label %176, label %180, !llvm.loop !7

211:                                              ; preds = %176
  %212 = getelementptr inbounds nuw i8, ptr %13, i64 256
  %213 = call i32 @pthread_mutex_lock(ptr noundef nonnull %212) #11
  %214 = getelementptr inbounds nuw i8, ptr %13, i64 304
  %215 = call i32 @pthread_cond_broadcast(ptr noundef nonnull %214) #11
  %216 = call i32 @pthread_mutex_unlock(ptr noundef nonnull %212) #11
  br label %217

217:                                              ; preds = %176, %211
  %218 = load ptr, ptr %0, align 8
  %219 = getelementptr inbounds nuw i8, ptr %0, i64 8
  %220 = load ptr, ptr %219, align 8
  %221 = getelementptr inbounds nuw i8, ptr %0, i64 16
  %222 = load ptr, ptr %221, align 8
  %223 = load ptr, ptr %14, align 8
  %224 = call i32 %218(ptr noundef %220, ptr noundef %222, i64 noundef 0, i64 noundef %157, ptr noundef %223)
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %3) #11
  %225 = call i32 @clock_gettime(i32 noundef 1, ptr noundef nonnull %3) #11
  %226 = load i64, ptr %3, align 8
  %227 = getelementptr inbounds nuw i8, ptr %3, i64 8
  %228 = load i64, ptr %227, align 8
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %3) #11
  %229 = getelementptr inbounds nuw i8, ptr %2, i64 8
  %230 = mul i64 %226, -1000000000
  %231 = sub i64 %230, %228
  br label %232

232:                                              ; preds = %239, %217
  %233 = phi i32 [ 0, %217 ], [ %240, %239 ]
  %234 = load atomic i64, ptr %171 acquire, align 8
  %235 = icmp eq i64 %234, %155
  br i1 %235, label %258, label %236

236:                                              ; preds = %232
  call void asm sideeffect "isb", ""() #11, !srcloc !8
  %237 = add nuw nsw i32 %233, 1
  %238 = icmp eq i32 %237, 32
  br i1 %238, label %241, label %239

239:                                              ; preds = %236, %241
  %240 = phi i32 [ %237, %236 ], [ 0, %241 ]
  br label %232, !llvm.loop !9

241:                                              ; preds = %236
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %2) #11
  %242 = call i32 @clock_gettime(i32 noundef 1, ptr noundef nonnull %2) #11
  %243 = load i64, ptr %2, align 8
  %244 = mul nsw i64 %243, 1000000000
  %245 = load i64, ptr %229, align 8
  %246 = add nsw i64 %244, %245
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %2) #11
  %247 = add i64 %231, %246
  %248 = icmp slt i64 %247, 50001
  br i1 %248, label %239, label %249

249:                                              ; preds = %241
  %250 = icmp eq i64 %246, 0
  br i1 %250, label %258, label %251

251:                                              ; preds = %249
  %252 = load atomic i64, ptr %171 acquire, align 64
  %253 = icmp eq i64 %252, %155
  br i1 %253, label %258, label %254

254:                                              ; preds = %251, %254
  %255 = call i32 @sched_yield() #11
  %256 = load atomic i64, ptr %171 acquire, align 64
  %257 = icmp eq i64 %256, %155
  br i1 %257, label %258, label %254, !llvm.loop !10

258:                                              ; preds = %232, %254, %251, %249
  %259 = load atomic i64, ptr %172 monotonic, align 8
  %260 = trunc i64 %259 to i32
  store atomic i64 0, ptr %13 release, align 64
  %261 = or i32 %224, %260
  br label %262

262:                                              ; preds = %99, %258, %20
  %263 = phi i32 [ %27, %20 ], [ %110, %99 ], [ %261, %258 ]
  ret i32 %263
}

; Function Attrs: mustprogress nocallback nofree nosync nounwind willreturn memory(argmem: readwrite)
declare void @llvm.lifetime.start.p0(i64 immarg, ptr nocapture) #1

; Function Attrs: mustprogress nocallback nofree nounwind willreturn memory(argmem: write)
declare void @llvm.memset.p0.i64(ptr nocapture writeonly, i8, i64, i1 immarg) #2

; Function Attrs: mustprogress nocallback nofree nosync nounwind willreturn memory(argmem: readwrite)
declare void @llvm.lifetime.end.p0(i64 immarg, ptr nocapture) #1

; Function Attrs: nounwind
declare i32 @sched_yield() local_unnamed_addr #3

; Function Attrs: mustprogress nofree norecurse nosync nounwind willreturn memory(none) uwtable
define range(i64 320, 257) i64 @tcl_pool_bytes(i64 noundef %0) local_unnamed_addr #4 {
  %2 = shl i64 %0, 6
  %3 = add i64 %2, 320
  ret i64 %3
}

; Function Attrs: nounwind uwtable
define void @tcl_pool_reset(ptr noundef %0, i64 noundef %1) local_unnamed_addr #5 {
  %3 = shl i64 %1, 6
  %4 = add i64 %3, 320
  tail call void @llvm.memset.p0.i64(ptr align 64 %0, i8 0, i64 %4, i1 false)
  %5 = getelementptr inbounds nuw i8, ptr %0, i64 256
  %6 = tail call i32 @pthread_mutex_init(ptr noundef nonnull %5, ptr noundef null) #11
  %7 = getelementptr inbounds nuw i8, ptr %0, i64 304
  %8 = tail call i32 @pthread_cond_init(ptr noundef nonnull %7, ptr noundef null) #11
  ret void
}

; Function Attrs: nounwind
declare i32 @pthread_mutex_init(ptr noundef, ptr noundef) local_unnamed_addr #3

; Function Attrs: nounwind
declare i32 @pthread_cond_init(ptr noundef, ptr noundef) local_unnamed_addr #3

; Function Attrs: mustprogress nofree norecurse nosync nounwind willreturn memory(argmem: write) uwtable
define void @tcl_pool_together(ptr nocapture noundef writeonly initializes((56, 64)) %0, i64 noundef %1) local_unnamed_addr #6 {
  %3 = getelementptr inbounds nuw i8, ptr %0, i64 56
  store i64 %1, ptr %3, align 8
  ret void
}

; Function Attrs: nounwind
declare i32 @clock_gettime(i32 noundef, ptr noundef) local_unnamed_addr #3

; Function Attrs: mustprogress nofree nosync nounwind willreturn memory(none)
declare i64 @pthread_self() local_unnamed_addr #7

; Function Attrs: nounwind
declare i32 @pthread_mutex_lock(ptr noundef) local_unnamed_addr #3

; Function Attrs: nounwind
declare i32 @pthread_cond_broadcast(ptr noundef) local_unnamed_addr #3

; Function Attrs: nounwind
declare i32 @pthread_mutex_unlock(ptr noundef) local_unnamed_addr #3

; Function Attrs: nounwind
declare i32 @sigfillset(ptr noundef) local_unnamed_addr #3

; Function Attrs: nounwind
declare i32 @pthread_sigmask(i32 noundef, ptr noundef, ptr noundef) local_unnamed_addr #3

; Function Attrs: nounwind
declare i32 @pthread_attr_init(ptr noundef) local_unnamed_addr #3

; Function Attrs: nounwind
declare i32 @pthread_attr_setdetachstate(ptr noundef, i32 noundef) local_unnamed_addr #3

; Function Attrs: nounwind
declare i32 @pthread_attr_setstacksize(ptr noundef, i64 noundef) local_unnamed_addr #3

; Function Attrs: nounwind
declare i32 @pthread_create(ptr noundef, ptr noundef, ptr noundef, ptr noundef) local_unnamed_addr #3

; Function Attrs: noreturn uwtable
define internal noundef ptr @live(ptr noundef initializes((32, 56)) %0) #8 {
  %2 = alloca %struct.timespec, align 8
  %3 = alloca %struct.timespec, align 8
  %4 = alloca %struct.cpu_set_t, align 8
  %5 = alloca %struct.timespec, align 8
  %6 = alloca %struct.timespec, align 8
  %7 = alloca %struct.timespec, align 8
  %8 = alloca %struct.timespec, align 8
  %9 = getelementptr inbounds nuw i8, ptr %0, i64 16
  %10 = load ptr, ptr %9, align 16
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %8) #11
  %11 = call i32 @clock_gettime(i32 noundef 1, ptr noundef nonnull %8) #11
  %12 = load i64, ptr %8, align 8
  %13 = mul nsw i64 %12, 1000000000
  %14 = getelementptr inbounds nuw i8, ptr %8, i64 8
  %15 = load i64, ptr %14, align 8
  %16 = add nsw i64 %13, %15
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %8) #11
  %17 = getelementptr inbounds nuw i8, ptr %0, i64 40
  store i64 %16, ptr %17, align 8
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %7) #11
  %18 = call i32 @clock_gettime(i32 noundef 3, ptr noundef nonnull %7) #11
  %19 = load i64, ptr %7, align 8
  %20 = mul nsw i64 %19, 1000000000
  %21 = getelementptr inbounds nuw i8, ptr %7, i64 8
  %22 = load i64, ptr %21, align 8
  %23 = add nsw i64 %20, %22
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %7) #11
  %24 = getelementptr inbounds nuw i8, ptr %0, i64 48
  store i64 %23, ptr %24, align 16
  %25 = getelementptr inbounds nuw i8, ptr %0, i64 32
  store i64 0, ptr %25, align 32
  %26 = getelementptr inbounds nuw i8, ptr %6, i64 8
  %27 = getelementptr inbounds nuw i8, ptr %5, i64 8
  %28 = getelementptr inbounds nuw i8, ptr %10, i64 256
  %29 = getelementptr inbounds nuw i8, ptr %10, i64 192
  %30 = getelementptr inbounds nuw i8, ptr %10, i64 304
  %31 = getelementptr inbounds nuw i8, ptr %10, i64 88
  %32 = getelementptr inbounds nuw i8, ptr %10, i64 72
  %33 = getelementptr inbounds nuw i8, ptr %10, i64 64
  %34 = getelementptr inbounds nuw i8, ptr %0, i64 8
  %35 = getelementptr inbounds nuw i8, ptr %10, i64 80
  %36 = getelementptr inbounds nuw i8, ptr %10, i64 96
  %37 = getelementptr inbounds nuw i8, ptr %10, i64 384
  %38 = ptrtoint ptr %0 to i64
  %39 = ptrtoint ptr %37 to i64
  %40 = sub i64 %38, %39
  %41 = ashr exact i64 %40, 6
  %42 = add nsw i64 %41, 1
  %43 = getelementptr inbounds nuw i8, ptr %10, i64 136
  %44 = getelementptr inbounds nuw i8, ptr %10, i64 128
  %45 = getelementptr inbounds nuw i8, ptr %3, i64 8
  %46 = getelementptr inbounds nuw i8, ptr %2, i64 8
  %47 = getelementptr inbounds nuw i8, ptr %0, i64 56
  %48 = getelementptr inbounds nuw i8, ptr %10, i64 144
  %49 = getelementptr inbounds nuw i8, ptr %10, i64 152
  br label %50

50:                                               ; preds = %164, %1
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %6) #11
  %51 = call i32 @clock_gettime(i32 noundef 1, ptr noundef nonnull %6) #11
  %52 = load i64, ptr %6, align 8
  %53 = load i64, ptr %26, align 8
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %6) #11
  %54 = mul i64 %52, -1000000000
  %55 = sub i64 %54, %53
  br label %56

56:                                               ; preds = %63, %50
  %57 = phi i32 [ 0, %50 ], [ %64, %63 ]
  %58 = load atomic i64, ptr %0 acquire, align 8
  %59 = icmp eq i64 %58, 1
  br i1 %59, label %87, label %60

60:                                               ; preds = %56
  call void asm sideeffect "isb", ""() #11, !srcloc !8
  %61 = add nuw nsw i32 %57, 1
  %62 = icmp eq i32 %61, 32
  br i1 %62, label %65, label %63

63:                                               ; preds = %60, %65
  %64 = phi i32 [ %61, %60 ], [ 0, %65 ]
  br label %56, !llvm.loop !9

65:                                               ; preds = %60
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %5) #11
  %66 = call i32 @clock_gettime(i32 noundef 1, ptr noundef nonnull %5) #11
  %67 = load i64, ptr %5, align 8
  %68 = mul nsw i64 %67, 1000000000
  %69 = load i64, ptr %27, align 8
  %70 = add nsw i64 %68, %69
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %5) #11
  %71 = add i64 %55, %70
  %72 = icmp slt i64 %71, 50001
  br i1 %72, label %63, label %73

73:                                               ; preds = %65
  %74 = icmp eq i64 %70, 0
  br i1 %74, label %87, label %75

75:                                               ; preds = %73
  store i64 %70, ptr %25, align 32
  %76 = call i32 @pthread_mutex_lock(ptr noundef nonnull %28) #11
  %77 = atomicrmw add ptr %29, i64 1 seq_cst, align 64
  %78 = load atomic i64, ptr %0 seq_cst, align 64
  %79 = icmp eq i64 %78, 0
  br i1 %79, label %80, label %84

80:                                               ; preds = %75, %80
  %81 = call i32 @pthread_cond_wait(ptr noundef nonnull %30, ptr noundef nonnull %28)
  %82 = load atomic i64, ptr %0 seq_cst, align 64
  %83 = icmp eq i64 %82, 0
  br i1 %83, label %80, label %84, !llvm.loop !11

84:                                               ; preds = %80, %75
  %85 = atomicrmw sub ptr %29, i64 1 seq_cst, align 64
  %86 = call i32 @pthread_mutex_unlock(ptr noundef nonnull %28) #11
  br label %87

87:                                               ; preds = %56, %84, %73
  store atomic i64 0, ptr %0 monotonic, align 64
  %88 = load i64, ptr %31, align 8
  %89 = load i64, ptr %32, align 8
  %90 = load ptr, ptr %33, align 64
  %91 = call i32 @sched_getcpu() #11
  %92 = sext i32 %91 to i64
  store atomic i64 %92, ptr %34 monotonic, align 8
  %93 = load i64, ptr %35, align 16
  %94 = icmp eq i64 %93, %92
  br i1 %94, label %95, label %115

95:                                               ; preds = %87
  %96 = tail call i64 @pthread_self() #12
  %97 = load i64, ptr %36, align 32
  call void @llvm.lifetime.start.p0(i64 128, ptr nonnull %4) #11
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 8 dereferenceable(128) %4, i8 0, i64 128, i1 false)
  %98 = icmp ugt i32 %91, 1023
  br i1 %98, label %114, label %99

99:                                               ; preds = %95
  %100 = call i32 @pthread_getaffinity_np(i64 noundef %97, i64 noundef 128, ptr noundef nonnull %4) #11
  %101 = icmp eq i32 %100, 0
  br i1 %101, label %102, label %114

102:                                              ; preds = %99
  %103 = and i64 %92, 63
  %104 = shl nuw i64 1, %103
  %105 = xor i64 %104, -1
  %106 = lshr i64 %92, 6
  %107 = getelementptr inbounds nuw i64, ptr %4, i64 %106
  %108 = load i64, ptr %107, align 8
  %109 = and i64 %108, %105
  store i64 %109, ptr %107, align 8
  %110 = call i32 @__sched_cpucount(i64 noundef 128, ptr noundef nonnull %4) #11
  %111 = icmp eq i32 %110, 0
  br i1 %111, label %114, label %112

112:                                              ; preds = %102
  %113 = call i32 @pthread_setaffinity_np(i64 noundef %96, i64 noundef 128, ptr noundef nonnull %4) #11
  br label %114

114:                                              ; preds = %112, %102, %99, %95
  call void @llvm.lifetime.end.p0(i64 128, ptr nonnull %4) #11
  br label %115

115:                                              ; preds = %114, %87
  %116 = load ptr, ptr %90, align 8
  %117 = getelementptr inbounds nuw i8, ptr %90, i64 8
  %118 = load ptr, ptr %117, align 8
  %119 = getelementptr inbounds nuw i8, ptr %90, i64 16
  %120 = load ptr, ptr %119, align 8
  %121 = load i64, ptr %32, align 8
  %122 = getelementptr inbounds nuw i8, ptr %90, i64 24
  %123 = load ptr, ptr %122, align 8
  %124 = call i32 %116(ptr noundef %118, ptr noundef %120, i64 noundef %42, i64 noundef %121, ptr noundef %123)
  %125 = icmp eq i32 %124, 0
  br i1 %125, label %127, label %126

126:                                              ; preds = %115
  store atomic i64 1, ptr %43 monotonic, align 8
  br label %127

127:                                              ; preds = %115, %126
  %128 = atomicrmw add ptr %44, i64 1 release, align 64
  %129 = load i64, ptr %25, align 32
  %130 = load i64, ptr %17, align 8
  %131 = load i64, ptr %24, align 16
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %3) #11
  %132 = call i32 @clock_gettime(i32 noundef 1, ptr noundef nonnull %3) #11
  %133 = load i64, ptr %3, align 8
  %134 = mul nsw i64 %133, 1000000000
  %135 = load i64, ptr %45, align 8
  %136 = add nsw i64 %134, %135
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %3) #11
  store i64 %136, ptr %17, align 8
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %2) #11
  %137 = call i32 @clock_gettime(i32 noundef 3, ptr noundef nonnull %2) #11
  %138 = load i64, ptr %2, align 8
  %139 = mul nsw i64 %138, 1000000000
  %140 = load i64, ptr %46, align 8
  %141 = add nsw i64 %139, %140
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %2) #11
  store i64 %141, ptr %24, align 16
  store i64 0, ptr %25, align 32
  %142 = load i64, ptr %17, align 8
  %143 = sub nsw i64 %142, %88
  %144 = icmp eq i64 %129, 0
  %145 = sub nsw i64 %88, %129
  %146 = call i64 @llvm.smax.i64(i64 %145, i64 0)
  %147 = sub nuw i64 -100000, %146
  %148 = select i1 %144, i64 0, i64 %147
  %149 = add i64 %131, %148
  %150 = add i64 %130, %141
  %151 = sub i64 %149, %150
  %152 = add i64 %151, %142
  %153 = call noundef i64 @llvm.smax.i64(i64 %152, i64 0)
  %154 = call noundef i64 @llvm.smin.i64(i64 %153, i64 %143)
  %155 = add nsw i64 %89, -1
  %156 = mul nsw i64 %143, %155
  %157 = mul nsw i64 %154, %89
  %158 = sub nsw i64 %156, %157
  %159 = load i64, ptr %47, align 8
  %160 = icmp slt i64 %159, 0
  br i1 %160, label %161, label %165

161:                                              ; preds = %127
  %162 = call noundef i64 @llvm.smax.i64(i64 %158, i64 0)
  %163 = call i64 @llvm.umin.i64(i64 %162, i64 32000000)
  store i64 %163, ptr %47, align 8
  br label %164

164:                                              ; preds = %185, %182, %161, %165
  br label %50

165:                                              ; preds = %127
  %166 = add nsw i64 %158, %159
  %167 = call noundef i64 @llvm.smin.i64(i64 %166, i64 32000000)
  %168 = call noundef i64 @llvm.smax.i64(i64 %167, i64 -1)
  store i64 %168, ptr %47, align 8
  %169 = icmp slt i64 %166, 0
  br i1 %169, label %170, label %164

170:                                              ; preds = %165
  %171 = load atomic i64, ptr %48 monotonic, align 8
  br label %172

172:                                              ; preds = %175, %170
  %173 = phi i64 [ %171, %170 ], [ %178, %175 ]
  %174 = icmp slt i64 %173, %143
  br i1 %174, label %175, label %179

175:                                              ; preds = %172
  %176 = cmpxchg weak ptr %48, i64 %173, i64 %143 monotonic monotonic, align 8
  %177 = extractvalue { i64, i1 } %176, 1
  %178 = extractvalue { i64, i1 } %176, 0
  br i1 %177, label %179, label %172, !llvm.loop !12

179:                                              ; preds = %175, %172
  %180 = sub nsw i64 %143, %154
  %181 = load atomic i64, ptr %49 monotonic, align 8
  br label %182

182:                                              ; preds = %185, %179
  %183 = phi i64 [ %181, %179 ], [ %188, %185 ]
  %184 = icmp slt i64 %183, %180
  br i1 %184, label %185, label %164

185:                                              ; preds = %182
  %186 = cmpxchg weak ptr %49, i64 %183, i64 %180 monotonic monotonic, align 8
  %187 = extractvalue { i64, i1 } %186, 1
  %188 = extractvalue { i64, i1 } %186, 0
  br i1 %187, label %164, label %182, !llvm.loop !12
}

; Function Attrs: nounwind
declare i32 @pthread_attr_destroy(ptr noundef) local_unnamed_addr #3

declare i32 @pthread_cond_wait(ptr noundef, ptr noundef) local_unnamed_addr #9

; Function Attrs: nounwind
declare i32 @sched_getcpu() local_unnamed_addr #3

; Function Attrs: nounwind
declare i32 @pthread_getaffinity_np(i64 noundef, i64 noundef, ptr noundef) local_unnamed_addr #3

; Function Attrs: nounwind
declare i32 @__sched_cpucount(i64 noundef, ptr noundef) local_unnamed_addr #3

; Function Attrs: nounwind
declare i32 @pthread_setaffinity_np(i64 noundef, i64 noundef, ptr noundef) local_unnamed_addr #3

; Function Attrs: nocallback nofree nosync nounwind speculatable willreturn memory(none)
declare i64 @llvm.smin.i64(i64, i64) #10

; Function Attrs: nocallback nofree nosync nounwind speculatable willreturn memory(none)
declare i64 @llvm.smax.i64(i64, i64) #10

; Function Attrs: nocallback nofree nosync nounwind speculatable willreturn memory(none)
declare i64 @llvm.umin.i64(i64, i64) #10

attributes #0 = { uwtable "no-trapping-math"="true" "stack-protector-buffer-size"="8" }
attributes #1 = { mustprogress nocallback nofree nosync nounwind willreturn memory(argmem: readwrite) }
attributes #2 = { mustprogress nocallback nofree nounwind willreturn memory(argmem: write) }
attributes #3 = { nounwind "no-trapping-math"="true" "stack-protector-buffer-size"="8" }
attributes #4 = { mustprogress nofree norecurse nosync nounwind willreturn memory(none) uwtable "no-trapping-math"="true" "stack-protector-buffer-size"="8" }
attributes #5 = { nounwind uwtable "no-trapping-math"="true" "stack-protector-buffer-size"="8" }
attributes #6 = { mustprogress nofree norecurse nosync nounwind willreturn memory(argmem: write) uwtable "no-trapping-math"="true" "stack-protector-buffer-size"="8" }
attributes #7 = { mustprogress nofree nosync nounwind willreturn memory(none) "no-trapping-math"="true" "stack-protector-buffer-size"="8" }
attributes #8 = { noreturn uwtable "no-trapping-math"="true" "stack-protector-buffer-size"="8" }
attributes #9 = { "no-trapping-math"="true" "stack-protector-buffer-size"="8" }
attributes #10 = { nocallback nofree nosync nounwind speculatable willreturn memory(none) }
attributes #11 = { nounwind }
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
!8 = !{i64 4617}
!9 = distinct !{!9, !6}
!10 = distinct !{!10, !6}
!11 = distinct !{!11, !6}
!12 = distinct !{!12, !6}
