%struct.timespec = type { i64, i64 }
%struct.__sigset_t = type { [16 x i64] }
%union.pthread_attr_t = type { i64, [56 x i8] }
%struct.worker = type { i32, i32, i64, ptr, i64, i64, i64, i64, i64 }
%struct.cpu_set_t = type { [16 x i64] }
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

; Function Attrs: uwtable
define i32 @tcl_pool_run(ptr noundef %0) local_unnamed_addr #0 {
  %2 = alloca %struct.timespec, align 8
  %3 = alloca %struct.timespec, align 8
  %4 = alloca %struct.timespec, align 8
  %5 = alloca %struct.__sigset_t, align 8
  %6 = alloca %struct.__sigset_t, align 8
  %7 = alloca %union.pthread_attr_t, align 8
  %8 = alloca %struct.timespec, align 8
  %9 = alloca %struct.timespec, align 8
  %10 = alloca %struct.timespec, align 8
  %11 = getelementptr inbounds nuw i8, ptr %0, i64 48
  %12 = load ptr, ptr %11, align 8
  %13 = getelementptr inbounds nuw i8, ptr %0, i64 24
  %14 = load ptr, ptr %13, align 8
  %15 = getelementptr inbounds nuw i8, ptr %0, i64 40
  %16 = load i64, ptr %15, align 8
  tail call void @llvm.memset.p0.i64(ptr align 1 %14, i8 0, i64 %16, i1 false)
  %17 = cmpxchg ptr %12, i64 0, i64 1 acquire monotonic, align 64
  %18 = extractvalue { i64, i1 } %17, 1
  br i1 %18, label %27, label %19

19:                                               ; preds = %1
  %20 = load ptr, ptr %0, align 8
  %21 = getelementptr inbounds nuw i8, ptr %0, i64 8
  %22 = load ptr, ptr %21, align 8
  %23 = getelementptr inbounds nuw i8, ptr %0, i64 16
  %24 = load ptr, ptr %23, align 8
  %25 = load ptr, ptr %13, align 8
  %26 = tail call i32 %20(ptr noundef %22, ptr noundef %24, i64 noundef 0, i64 noundef 1, ptr noundef %25)
  br label %303

27:                                               ; preds = %1
  %28 = getelementptr inbounds nuw i8, ptr %12, i64 144
  %29 = load atomic i64, ptr %28 monotonic, align 16
  %30 = getelementptr inbounds nuw i8, ptr %12, i64 16
  %31 = load i64, ptr %30, align 16
  %32 = getelementptr inbounds nuw i8, ptr %12, i64 24
  %33 = load i64, ptr %32, align 8
  %34 = or i64 %31, %29
  %35 = or i64 %34, %33
  %36 = icmp eq i64 %35, 0
  br i1 %36, label %119, label %37

37:                                               ; preds = %27
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %10) #11
  %38 = call i32 @clock_gettime(i32 noundef 1, ptr noundef nonnull %10) #11
  %39 = load i64, ptr %10, align 8
  %40 = mul nsw i64 %39, 1000000000
  %41 = getelementptr inbounds nuw i8, ptr %10, i64 8
  %42 = load i64, ptr %41, align 8
  %43 = add nsw i64 %40, %42
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %10) #11
  %44 = atomicrmw xchg ptr %28, i64 0 monotonic, align 16
  %45 = getelementptr inbounds nuw i8, ptr %12, i64 56
  %46 = load i64, ptr %45, align 8
  %47 = icmp eq i64 %46, 0
  br i1 %47, label %48, label %119

48:                                               ; preds = %37
  %49 = icmp eq i64 %44, 0
  br i1 %49, label %60, label %50

50:                                               ; preds = %48
  %51 = load i64, ptr %32, align 8
  %52 = call i64 @llvm.smin.i64(i64 %51, i64 4)
  %53 = add nsw i64 %52, 1
  store i64 %53, ptr %32, align 8
  %54 = shl i64 %44, %53
  %55 = getelementptr inbounds nuw i8, ptr %12, i64 32
  store i64 %54, ptr %55, align 32
  %56 = getelementptr inbounds nuw i8, ptr %12, i64 152
  %57 = atomicrmw xchg ptr %56, i64 0 monotonic, align 8
  %58 = getelementptr inbounds nuw i8, ptr %12, i64 48
  store i64 %57, ptr %58, align 16
  %59 = add nsw i64 %54, %43
  store i64 %59, ptr %30, align 16
  br label %98

60:                                               ; preds = %48
  %61 = load i64, ptr %30, align 16
  %62 = icmp eq i64 %61, 0
  br i1 %62, label %84, label %63

63:                                               ; preds = %60
  %64 = getelementptr inbounds nuw i8, ptr %0, i64 56
  %65 = load i64, ptr %64, align 8
  %66 = add nsw i64 %65, 4000000
  %67 = getelementptr inbounds nuw i8, ptr %12, i64 48
  %68 = load i64, ptr %67, align 16
  %69 = icmp slt i64 %66, %68
  %70 = getelementptr inbounds nuw i8, ptr %12, i64 32
  %71 = load i64, ptr %70, align 32
  %72 = load i64, ptr %32, align 8
  br i1 %69, label %73, label %76

73:                                               ; preds = %63
  %74 = shl i64 %66, %72
  %75 = call noundef i64 @llvm.smin.i64(i64 %71, i64 %74)
  br label %79

76:                                               ; preds = %63
  %77 = shl i64 %65, %72
  %78 = call noundef i64 @llvm.smax.i64(i64 %71, i64 %77)
  br label %79

79:                                               ; preds = %76, %73
  %80 = phi i64 [ %75, %73 ], [ %78, %76 ]
  %81 = sub i64 %61, %71
  %82 = add i64 %81, %80
  %83 = icmp slt i64 %43, %82
  br i1 %83, label %98, label %88

84:                                               ; preds = %60
  %85 = getelementptr inbounds nuw i8, ptr %12, i64 40
  %86 = load i64, ptr %85, align 8
  %87 = icmp slt i64 %43, %86
  br i1 %87, label %119, label %89

88:                                               ; preds = %79
  store i64 0, ptr %30, align 16
  br label %94

89:                                               ; preds = %84
  %90 = load i64, ptr %32, align 8
  %91 = sdiv i64 %90, 2
  store i64 %91, ptr %32, align 8
  %92 = getelementptr inbounds nuw i8, ptr %12, i64 32
  %93 = load i64, ptr %92, align 32
  br label %94

94:                                               ; preds = %89, %88
  %95 = phi i64 [ %93, %89 ], [ %71, %88 ]
  %96 = add nsw i64 %95, %43
  %97 = getelementptr inbounds nuw i8, ptr %12, i64 40
  store i64 %96, ptr %97, align 8
  br label %119

98:                                               ; preds = %79, %50
  store atomic i64 0, ptr %12 release, align 64
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %9) #11
  %99 = call i32 @clock_gettime(i32 noundef 1, ptr noundef nonnull %9) #11
  %100 = load i64, ptr %9, align 8
  %101 = getelementptr inbounds nuw i8, ptr %9, i64 8
  %102 = load i64, ptr %101, align 8
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %9) #11
  %103 = load ptr, ptr %0, align 8
  %104 = getelementptr inbounds nuw i8, ptr %0, i64 8
  %105 = load ptr, ptr %104, align 8
  %106 = getelementptr inbounds nuw i8, ptr %0, i64 16
  %107 = load ptr, ptr %106, align 8
  %108 = load ptr, ptr %13, align 8
  %109 = call i32 %103(ptr noundef %105, ptr noundef %107, i64 noundef 0, i64 noundef 1, ptr noundef %108)
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %8) #11
  %110 = call i32 @clock_gettime(i32 noundef 1, ptr noundef nonnull %8) #11
  %111 = load i64, ptr %8, align 8
  %112 = getelementptr inbounds nuw i8, ptr %8, i64 8
  %113 = load i64, ptr %112, align 8
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %8) #11
  %114 = sub i64 %111, %100
  %115 = mul i64 %114, 1000000000
  %116 = sub i64 %113, %102
  %117 = add i64 %116, %115
  %118 = getelementptr inbounds nuw i8, ptr %0, i64 56
  store i64 %117, ptr %118, align 8
  br label %303

119:                                              ; preds = %84, %94, %37, %27
  %120 = getelementptr inbounds nuw i8, ptr %0, i64 32
  %121 = load i64, ptr %120, align 8
  %122 = add nsw i64 %121, -1
  %123 = getelementptr inbounds nuw i8, ptr %12, i64 8
  %124 = load i64, ptr %123, align 8
  %125 = icmp slt i64 %124, %122
  br i1 %125, label %126, label %154

126:                                              ; preds = %119
  call void @llvm.lifetime.start.p0(i64 128, ptr nonnull %5) #11
  call void @llvm.lifetime.start.p0(i64 128, ptr nonnull %6) #11
  call void @llvm.lifetime.start.p0(i64 64, ptr nonnull %7) #11
  %127 = call i32 @sigfillset(ptr noundef nonnull %5) #11
  %128 = call i32 @pthread_sigmask(i32 noundef 2, ptr noundef nonnull %5, ptr noundef nonnull %6) #11
  %129 = call i32 @pthread_attr_init(ptr noundef nonnull %7) #11
  %130 = call i32 @pthread_attr_setdetachstate(ptr noundef nonnull %7, i32 noundef 1) #11
  %131 = call i32 @pthread_attr_setstacksize(ptr noundef nonnull %7, i64 noundef 4194304) #11
  %132 = getelementptr inbounds nuw i8, ptr %12, i64 4352
  %133 = load i64, ptr %123, align 8
  %134 = icmp slt i64 %133, %122
  br i1 %134, label %135, label %150

135:                                              ; preds = %126, %146
  %136 = phi i64 [ %148, %146 ], [ %133, %126 ]
  %137 = getelementptr inbounds [0 x %struct.worker], ptr %132, i64 0, i64 %136
  store atomic i32 0, ptr %137 monotonic, align 64
  %138 = getelementptr inbounds nuw i8, ptr %137, i64 4
  store atomic i32 0, ptr %138 monotonic, align 4
  %139 = getelementptr inbounds nuw i8, ptr %137, i64 8
  store atomic i64 -1, ptr %139 monotonic, align 8
  %140 = getelementptr inbounds nuw i8, ptr %137, i64 16
  store ptr %12, ptr %140, align 16
  %141 = getelementptr inbounds nuw i8, ptr %137, i64 48
  store i64 0, ptr %141, align 16
  %142 = getelementptr inbounds nuw i8, ptr %137, i64 56
  store atomic i64 0, ptr %142 monotonic, align 8
  %143 = getelementptr inbounds nuw i8, ptr %137, i64 24
  %144 = call i32 @pthread_create(ptr noundef nonnull %143, ptr noundef nonnull %7, ptr noundef nonnull @live, ptr noundef nonnull %137) #11
  %145 = icmp eq i32 %144, 0
  br i1 %145, label %146, label %150

146:                                              ; preds = %135
  %147 = load i64, ptr %123, align 8
  %148 = add nsw i64 %147, 1
  store i64 %148, ptr %123, align 8
  %149 = icmp slt i64 %148, %122
  br i1 %149, label %135, label %150, !llvm.loop !5

150:                                              ; preds = %146, %135, %126
  %151 = call i32 @pthread_attr_destroy(ptr noundef nonnull %7) #11
  %152 = call i32 @pthread_sigmask(i32 noundef 2, ptr noundef nonnull %6, ptr noundef null) #11
  %153 = load i64, ptr %123, align 8
  call void @llvm.lifetime.end.p0(i64 64, ptr nonnull %7) #11
  call void @llvm.lifetime.end.p0(i64 128, ptr nonnull %6) #11
  call void @llvm.lifetime.end.p0(i64 128, ptr nonnull %5) #11
  br label %154

154:                                              ; preds = %150, %119
  %155 = phi i64 [ %153, %150 ], [ %124, %119 ]
  %156 = call noundef i64 @llvm.smin.i64(i64 %155, i64 %122)
  %157 = getelementptr inbounds nuw i8, ptr %12, i64 64
  store ptr %0, ptr %157, align 64
  %158 = getelementptr inbounds nuw i8, ptr %12, i64 72
  store i64 %156, ptr %158, align 8
  %159 = tail call i64 @pthread_self() #12
  %160 = getelementptr inbounds nuw i8, ptr %12, i64 88
  store i64 %159, ptr %160, align 8
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %4) #11
  %161 = call i32 @clock_gettime(i32 noundef 1, ptr noundef nonnull %4) #11
  %162 = load i64, ptr %4, align 8
  %163 = mul nsw i64 %162, 1000000000
  %164 = getelementptr inbounds nuw i8, ptr %4, i64 8
  %165 = load i64, ptr %164, align 8
  %166 = add nsw i64 %163, %165
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %4) #11
  %167 = getelementptr inbounds nuw i8, ptr %12, i64 80
  store i64 %166, ptr %167, align 16
  %168 = getelementptr inbounds nuw i8, ptr %12, i64 104
  %169 = load i32, ptr %168, align 8
  %170 = add i32 %169, 1
  store i32 %170, ptr %168, align 8
  %171 = call i32 @sched_getcpu() #11
  %172 = sext i32 %171 to i64
  %173 = getelementptr inbounds nuw i8, ptr %12, i64 96
  store i64 %172, ptr %173, align 32
  %174 = icmp ugt i32 %171, 1023
  br i1 %174, label %180, label %175

175:                                              ; preds = %154
  %176 = getelementptr inbounds nuw i8, ptr %12, i64 256
  %177 = getelementptr inbounds nuw [1024 x i32], ptr %176, i64 0, i64 %172
  %178 = load i32, ptr %168, align 8
  %179 = atomicrmw xchg ptr %177, i32 %178 monotonic, align 4
  br label %180

180:                                              ; preds = %175, %154
  %181 = getelementptr inbounds nuw i8, ptr %12, i64 128
  store atomic i64 0, ptr %181 monotonic, align 64
  %182 = getelementptr inbounds nuw i8, ptr %12, i64 136
  store atomic i64 0, ptr %182 monotonic, align 8
  %183 = getelementptr inbounds nuw i8, ptr %12, i64 192
  store atomic i64 %156, ptr %183 monotonic, align 64
  %184 = icmp sgt i64 %156, 0
  br i1 %184, label %185, label %231

185:                                              ; preds = %180
  %186 = getelementptr inbounds nuw i8, ptr %12, i64 4352
  br label %187

187:                                              ; preds = %206, %185
  %188 = phi i1 [ true, %206 ], [ false, %185 ]
  %189 = phi i64 [ %208, %206 ], [ 0, %185 ]
  br label %191

190:                                              ; preds = %203
  br i1 %188, label %210, label %231

191:                                              ; preds = %203, %187
  %192 = phi i64 [ %204, %203 ], [ %189, %187 ]
  %193 = getelementptr inbounds nuw [0 x %struct.worker], ptr %186, i64 0, i64 %192
  %194 = getelementptr inbounds nuw i8, ptr %193, i64 8
  %195 = load atomic i64, ptr %194 monotonic, align 8
  %196 = icmp eq i64 %195, %172
  br i1 %196, label %197, label %200

197:                                              ; preds = %191
  %198 = getelementptr inbounds nuw i8, ptr %193, i64 24
  %199 = load i64, ptr %198, align 8
  call fastcc void @keep_off(ptr noundef nonnull %12, ptr noundef nonnull %193, i64 noundef %199, i64 noundef %172)
  br label %200

200:                                              ; preds = %197, %191
  %201 = atomicrmw xchg ptr %193, i32 2 seq_cst, align 64
  %202 = icmp eq i32 %201, 1
  br i1 %202, label %206, label %203

203:                                              ; preds = %200
  %204 = add nuw nsw i64 %192, 1
  %205 = icmp eq i64 %204, %156
  br i1 %205, label %190, label %191, !llvm.loop !7

206:                                              ; preds = %200
  %207 = getelementptr inbounds nuw i8, ptr %193, i64 4
  store atomic i32 1, ptr %207 monotonic, align 4
  %208 = add nuw nsw i64 %192, 1
  %209 = icmp eq i64 %208, %156
  br i1 %209, label %210, label %187, !llvm.loop !7

210:                                              ; preds = %206, %190
  store atomic i64 0, ptr %183 release, align 64
  br label %211

211:                                              ; preds = %228, %210
  %212 = phi i32 [ 2, %210 ], [ %229, %228 ]
  %213 = load atomic i64, ptr %183 monotonic, align 64
  %214 = load i64, ptr %158, align 8
  %215 = icmp slt i64 %213, %214
  br i1 %215, label %216, label %231

216:                                              ; preds = %211
  %217 = atomicrmw add ptr %183, i64 1 acquire, align 64
  %218 = load i64, ptr %158, align 8
  %219 = icmp slt i64 %217, %218
  br i1 %219, label %220, label %231

220:                                              ; preds = %216
  %221 = getelementptr inbounds [0 x %struct.worker], ptr %186, i64 0, i64 %217
  %222 = getelementptr inbounds nuw i8, ptr %221, i64 4
  %223 = atomicrmw xchg ptr %222, i32 0 monotonic, align 4
  %224 = icmp eq i32 %223, 0
  br i1 %224, label %228, label %225, !llvm.loop !8

225:                                              ; preds = %220
  %226 = call i64 (i64, ...) @syscall(i64 noundef 98, ptr noundef nonnull %221, i32 noundef 129, i32 noundef 1, i32 noundef 0, i32 noundef 0, i32 noundef 0) #11
  %227 = add nsw i32 %212, -1
  br label %228

228:                                              ; preds = %225, %220
  %229 = phi i32 [ %227, %225 ], [ %212, %220 ]
  %230 = icmp sgt i32 %229, 0
  br i1 %230, label %211, label %231

231:                                              ; preds = %211, %216, %228, %180, %190
  %232 = load ptr, ptr %0, align 8
  %233 = getelementptr inbounds nuw i8, ptr %0, i64 8
  %234 = load ptr, ptr %233, align 8
  %235 = getelementptr inbounds nuw i8, ptr %0, i64 16
  %236 = load ptr, ptr %235, align 8
  %237 = load i64, ptr %158, align 8
  %238 = add nsw i64 %237, 1
  %239 = load ptr, ptr %13, align 8
  %240 = call i32 %232(ptr noundef %234, ptr noundef %236, i64 noundef 0, i64 noundef %238, ptr noundef %239)
  %241 = getelementptr inbounds nuw i8, ptr %12, i64 56
  %242 = load i64, ptr %241, align 8
  %243 = icmp eq i64 %242, 0
  %244 = load i64, ptr %158, align 8
  br i1 %243, label %245, label %265

245:                                              ; preds = %231
  %246 = icmp sgt i64 %244, 0
  br i1 %246, label %247, label %265

247:                                              ; preds = %245
  %248 = getelementptr inbounds nuw i8, ptr %12, i64 4352
  br label %249

249:                                              ; preds = %249, %247
  %250 = phi i64 [ 0, %247 ], [ %261, %249 ]
  %251 = phi i64 [ 0, %247 ], [ %262, %249 ]
  %252 = getelementptr inbounds nuw [0 x %struct.worker], ptr %248, i64 0, i64 %251
  %253 = getelementptr inbounds nuw i8, ptr %252, i64 4
  %254 = atomicrmw xchg ptr %253, i32 0 monotonic, align 4
  %255 = icmp ne i32 %254, 0
  %256 = zext i1 %255 to i32
  %257 = cmpxchg ptr %252, i32 2, i32 %256 seq_cst seq_cst, align 64
  %258 = extractvalue { i32, i1 } %257, 1
  %259 = xor i1 %258, true
  %260 = zext i1 %259 to i64
  %261 = add nuw nsw i64 %250, %260
  %262 = add nuw nsw i64 %251, 1
  %263 = load i64, ptr %158, align 8
  %264 = icmp slt i64 %262, %263
  br i1 %264, label %249, label %265, !llvm.loop !9

265:                                              ; preds = %249, %231, %245
  %266 = phi i64 [ 0, %245 ], [ %244, %231 ], [ %261, %249 ]
  %267 = getelementptr inbounds nuw i8, ptr %2, i64 8
  %268 = getelementptr inbounds nuw i8, ptr %3, i64 8
  br label %269

269:                                              ; preds = %282, %265
  %270 = phi i64 [ %287, %282 ], [ 0, %265 ]
  %271 = icmp eq i64 %270, 0
  br label %272

272:                                              ; preds = %298, %269
  br label %273

273:                                              ; preds = %277, %272
  %274 = phi i64 [ %278, %277 ], [ 1, %272 ]
  %275 = load atomic i64, ptr %181 acquire, align 64
  %276 = icmp eq i64 %275, %266
  br i1 %276, label %299, label %277

277:                                              ; preds = %273
  call void asm sideeffect "isb", ""() #11, !srcloc !10
  %278 = add i64 %274, 1
  %279 = and i64 %278, 31
  %280 = icmp eq i64 %279, 1
  br i1 %280, label %281, label %273, !llvm.loop !11

281:                                              ; preds = %277
  br i1 %271, label %282, label %288

282:                                              ; preds = %281
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %3) #11
  %283 = call i32 @clock_gettime(i32 noundef 1, ptr noundef nonnull %3) #11
  %284 = load i64, ptr %3, align 8
  %285 = mul nsw i64 %284, 1000000000
  %286 = load i64, ptr %268, align 8
  %287 = add nsw i64 %285, %286
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %3) #11
  br label %269, !llvm.loop !11

288:                                              ; preds = %281
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %2) #11
  %289 = call i32 @clock_gettime(i32 noundef 1, ptr noundef nonnull %2) #11
  %290 = load i64, ptr %2, align 8
  %291 = mul nsw i64 %290, 1000000000
  %292 = load i64, ptr %267, align 8
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %2) #11
  %293 = sub i64 %292, %270
  %294 = add i64 %293, %291
  %295 = icmp sgt i64 %294, 50000
  br i1 %295, label %296, label %298

296:                                              ; preds = %288
  %297 = call i32 @sched_yield() #11
  br label %298

298:                                              ; preds = %296, %288
  br label %272, !llvm.loop !11

299:                                              ; preds = %273
  %300 = load atomic i64, ptr %182 monotonic, align 8
  %301 = trunc i64 %300 to i32
  store atomic i64 0, ptr %12 release, align 64
  %302 = or i32 %240, %301
  br label %303

303:                                              ; preds = %98, %299, %19
  %304 = phi i32 [ %26, %19 ], [ %109, %98 ], [ %302, %299 ]
  ret i32 %304
}

; Function Attrs: mustprogress nocallback nofree nosync nounwind willreturn memory(argmem: readwrite)
declare void @llvm.lifetime.start.p0(i64 immarg, ptr nocapture) #1

; Function Attrs: mustprogress nocallback nofree nounwind willreturn memory(argmem: write)
declare void @llvm.memset.p0.i64(ptr nocapture writeonly, i8, i64, i1 immarg) #2

; Function Attrs: mustprogress nocallback nofree nosync nounwind willreturn memory(argmem: readwrite)
declare void @llvm.lifetime.end.p0(i64 immarg, ptr nocapture) #1

; Function Attrs: mustprogress nofree norecurse nosync nounwind willreturn memory(none) uwtable
define range(i64 4288, 4225) i64 @tcl_pool_bytes(i64 noundef %0) local_unnamed_addr #3 {
  %2 = shl i64 %0, 6
  %3 = add i64 %2, 4288
  ret i64 %3
}

; Function Attrs: mustprogress nofree norecurse nosync nounwind willreturn memory(argmem: write) uwtable
define void @tcl_pool_reset(ptr nocapture noundef writeonly %0, i64 noundef %1) local_unnamed_addr #4 {
  %3 = shl i64 %1, 6
  %4 = add i64 %3, 4288
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
  call void @llvm.lifetime.start.p0(i64 128, ptr nonnull %5) #11
  call void @llvm.lifetime.start.p0(i64 128, ptr nonnull %6) #11
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 8 dereferenceable(128) %5, i8 0, i64 128, i1 false)
  %7 = getelementptr inbounds nuw i8, ptr %0, i64 88
  %8 = load i64, ptr %7, align 8
  %9 = call i32 @pthread_getaffinity_np(i64 noundef %8, i64 noundef 128, ptr noundef nonnull %5) #11
  %10 = icmp eq i32 %9, 0
  br i1 %10, label %11, label %60

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

27:                                               ; preds = %43
  %28 = call i32 @__sched_cpucount(i64 noundef 128, ptr noundef nonnull %5) #11
  %29 = icmp eq i32 %28, 0
  br i1 %29, label %60, label %46

30:                                               ; preds = %23, %43
  %31 = phi i64 [ 0, %23 ], [ %44, %43 ]
  %32 = getelementptr inbounds nuw [1024 x i32], ptr %24, i64 0, i64 %31
  %33 = load atomic i32, ptr %32 monotonic, align 4
  %34 = icmp eq i32 %33, %26
  br i1 %34, label %35, label %43

35:                                               ; preds = %30
  %36 = and i64 %31, 63
  %37 = shl nuw i64 1, %36
  %38 = xor i64 %37, -1
  %39 = lshr i64 %31, 6
  %40 = getelementptr inbounds nuw i64, ptr %6, i64 %39
  %41 = load i64, ptr %40, align 8
  %42 = and i64 %41, %38
  store i64 %42, ptr %40, align 8
  br label %43

43:                                               ; preds = %30, %35
  %44 = add nuw nsw i64 %31, 1
  %45 = icmp eq i64 %44, 1024
  br i1 %45, label %27, label %30, !llvm.loop !12

46:                                               ; preds = %27
  %47 = call i32 @__sched_cpucount(i64 noundef 128, ptr noundef nonnull %6) #11
  %48 = icmp eq i32 %47, 0
  br i1 %48, label %49, label %52

49:                                               ; preds = %46
  %50 = load i64, ptr %12, align 32
  %51 = icmp eq i64 %3, %50
  br i1 %51, label %52, label %60

52:                                               ; preds = %49, %46
  %53 = call i32 @__sched_cpucount(i64 noundef 128, ptr noundef nonnull %6) #11
  %54 = icmp eq i32 %53, 0
  %55 = select i1 %54, ptr %5, ptr %6
  %56 = call i32 @pthread_setaffinity_np(i64 noundef %2, i64 noundef 128, ptr noundef nonnull %55) #11
  %57 = getelementptr inbounds nuw i8, ptr %1, i64 56
  %58 = getelementptr inbounds nuw i8, ptr %0, i64 80
  %59 = load i64, ptr %58, align 16
  store atomic i64 %59, ptr %57 monotonic, align 8
  br label %60

60:                                               ; preds = %27, %49, %4, %52
  call void @llvm.lifetime.end.p0(i64 128, ptr nonnull %6) #11
  call void @llvm.lifetime.end.p0(i64 128, ptr nonnull %5) #11
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
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %14) #11
  %17 = call i32 @clock_gettime(i32 noundef 1, ptr noundef nonnull %14) #11
  %18 = load i64, ptr %14, align 8
  %19 = mul nsw i64 %18, 1000000000
  %20 = getelementptr inbounds nuw i8, ptr %14, i64 8
  %21 = load i64, ptr %20, align 8
  %22 = add nsw i64 %19, %21
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %14) #11
  %23 = getelementptr inbounds nuw i8, ptr %0, i64 32
  store i64 %22, ptr %23, align 32
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %13) #11
  %24 = call i32 @clock_gettime(i32 noundef 3, ptr noundef nonnull %13) #11
  %25 = load i64, ptr %13, align 8
  %26 = mul nsw i64 %25, 1000000000
  %27 = getelementptr inbounds nuw i8, ptr %13, i64 8
  %28 = load i64, ptr %27, align 8
  %29 = add nsw i64 %26, %28
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %13) #11
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
  %52 = ashr exact i64 %51, 6
  %53 = add nsw i64 %52, 1
  %54 = getelementptr inbounds nuw i8, ptr %16, i64 136
  %55 = getelementptr inbounds nuw i8, ptr %16, i64 128
  %56 = getelementptr inbounds nuw i8, ptr %3, i64 8
  %57 = getelementptr inbounds nuw i8, ptr %2, i64 8
  %58 = getelementptr inbounds nuw i8, ptr %0, i64 48
  %59 = getelementptr inbounds nuw i8, ptr %16, i64 144
  %60 = getelementptr inbounds nuw i8, ptr %16, i64 152
  br label %61

61:                                               ; preds = %292, %1
  %62 = phi i64 [ %295, %292 ], [ %31, %1 ]
  %63 = phi i1 [ %294, %292 ], [ false, %1 ]
  %64 = phi i64 [ %298, %292 ], [ 0, %1 ]
  %65 = phi i64 [ %169, %292 ], [ 0, %1 ]
  %66 = phi i64 [ %79, %292 ], [ 0, %1 ]
  br label %67

67:                                               ; preds = %61, %172
  %68 = phi i64 [ %173, %172 ], [ %62, %61 ]
  %69 = phi i64 [ %168, %172 ], [ %64, %61 ]
  %70 = phi i64 [ %169, %172 ], [ %65, %61 ]
  %71 = phi i64 [ %79, %172 ], [ %66, %61 ]
  %72 = icmp slt i64 %68, %70
  br i1 %72, label %78, label %73

73:                                               ; preds = %67
  call void @llvm.lifetime.start.p0(i64 144, ptr nonnull %12) #11
  %74 = call i32 @getrusage(i32 noundef 1, ptr noundef nonnull %12) #11
  %75 = icmp eq i32 %74, 0
  %76 = load i64, ptr %32, align 8
  %77 = select i1 %75, i64 %76, i64 0
  call void @llvm.lifetime.end.p0(i64 144, ptr nonnull %12) #11
  br label %78

78:                                               ; preds = %73, %67
  %79 = phi i64 [ %71, %67 ], [ %77, %73 ]
  %80 = load atomic i32, ptr %0 monotonic, align 64
  %81 = icmp eq i32 %80, 2
  br i1 %81, label %167, label %82

82:                                               ; preds = %78, %126
  %83 = phi i64 [ %128, %126 ], [ %68, %78 ]
  %84 = phi i64 [ %129, %126 ], [ 0, %78 ]
  call void asm sideeffect "isb", ""() #11, !srcloc !10
  %85 = and i64 %84, 31
  %86 = icmp eq i64 %85, 0
  br i1 %86, label %87, label %126

87:                                               ; preds = %82
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %11) #11
  %88 = call i32 @clock_gettime(i32 noundef 1, ptr noundef nonnull %11) #11
  %89 = load i64, ptr %11, align 8
  %90 = mul nsw i64 %89, 1000000000
  %91 = load i64, ptr %33, align 8
  %92 = add nsw i64 %90, %91
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %11) #11
  %93 = sub nsw i64 %92, %83
  %94 = icmp sgt i64 %93, 100000
  br i1 %94, label %95, label %106

95:                                               ; preds = %87
  call void @llvm.lifetime.start.p0(i64 144, ptr nonnull %10) #11
  %96 = call i32 @getrusage(i32 noundef 1, ptr noundef nonnull %10) #11
  %97 = icmp eq i32 %96, 0
  %98 = load i64, ptr %34, align 8
  %99 = select i1 %97, i64 %98, i64 0
  call void @llvm.lifetime.end.p0(i64 144, ptr nonnull %10) #11
  %100 = icmp eq i64 %99, %79
  br i1 %100, label %106, label %101

101:                                              ; preds = %95
  %102 = shl nsw i64 %69, 1
  %103 = call noundef i64 @llvm.smax.i64(i64 %102, i64 16000000)
  %104 = call i64 @llvm.umin.i64(i64 %103, i64 128000000)
  %105 = add nsw i64 %92, %104
  br label %132

106:                                              ; preds = %95, %87
  br i1 %72, label %132, label %107

107:                                              ; preds = %106
  %108 = sub nsw i64 %92, %68
  %109 = icmp sgt i64 %108, 50000
  br i1 %109, label %110, label %115

110:                                              ; preds = %107
  %111 = icmp samesign ult i64 %108, 4000001
  %112 = and i1 %63, %111
  br i1 %112, label %113, label %132

113:                                              ; preds = %110
  %114 = call i32 @sched_yield() #11
  br label %115

115:                                              ; preds = %113, %107
  %116 = phi i64 [ -1, %113 ], [ %84, %107 ]
  %117 = load i64, ptr %23, align 32
  %118 = sub nsw i64 %92, %117
  %119 = icmp sgt i64 %118, 20000
  br i1 %119, label %120, label %126

120:                                              ; preds = %115
  store i64 %92, ptr %23, align 32
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %9) #11
  %121 = call i32 @clock_gettime(i32 noundef 3, ptr noundef nonnull %9) #11
  %122 = load i64, ptr %9, align 8
  %123 = mul nsw i64 %122, 1000000000
  %124 = load i64, ptr %35, align 8
  %125 = add nsw i64 %123, %124
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %9) #11
  store i64 %125, ptr %30, align 8
  br label %126

126:                                              ; preds = %120, %115, %82
  %127 = phi i64 [ %84, %82 ], [ %116, %120 ], [ %116, %115 ]
  %128 = phi i64 [ %83, %82 ], [ %92, %120 ], [ %92, %115 ]
  %129 = add nsw i64 %127, 1
  %130 = load atomic i32, ptr %0 monotonic, align 64
  %131 = icmp eq i32 %130, 2
  br i1 %131, label %167, label %82

132:                                              ; preds = %110, %106, %101
  %133 = phi i64 [ %104, %101 ], [ %69, %106 ], [ %69, %110 ]
  %134 = phi i64 [ %105, %101 ], [ %70, %106 ], [ %70, %110 ]
  %135 = load atomic i64, ptr %36 monotonic, align 8
  call void @llvm.lifetime.start.p0(i64 128, ptr nonnull %8) #11
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 8 dereferenceable(128) %8, i8 0, i64 128, i1 false)
  %136 = icmp eq i64 %135, 0
  %137 = sub nsw i64 %92, %135
  %138 = icmp slt i64 %137, 100000000
  %139 = select i1 %136, i1 true, i1 %138
  br i1 %139, label %146, label %140

140:                                              ; preds = %132
  %141 = call i32 @getpid() #11
  %142 = call i32 @sched_getaffinity(i32 noundef %141, i64 noundef 128, ptr noundef nonnull %8) #11
  %143 = icmp eq i32 %142, 0
  br i1 %143, label %144, label %146

144:                                              ; preds = %140
  %145 = call i32 @sched_setaffinity(i32 noundef 0, i64 noundef 128, ptr noundef nonnull %8) #11
  store atomic i64 0, ptr %36 monotonic, align 8
  br label %146

146:                                              ; preds = %144, %140, %132
  call void @llvm.lifetime.end.p0(i64 128, ptr nonnull %8) #11
  %147 = cmpxchg ptr %0, i32 0, i32 1 seq_cst seq_cst, align 64
  %148 = extractvalue { i32, i1 } %147, 1
  %149 = extractvalue { i32, i1 } %147, 0
  %150 = icmp ne i32 %149, 2
  %151 = select i1 %148, i1 true, i1 %150
  br i1 %151, label %152, label %167

152:                                              ; preds = %146, %152
  %153 = call i64 (i64, ...) @syscall(i64 noundef 98, ptr noundef nonnull %0, i32 noundef 128, i32 noundef 1, i32 noundef 0, i32 noundef 0, i32 noundef 0) #11
  %154 = load atomic i32, ptr %0 monotonic, align 64
  %155 = icmp eq i32 %154, 1
  br i1 %155, label %152, label %156, !llvm.loop !13

156:                                              ; preds = %152
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %7) #11
  %157 = call i32 @clock_gettime(i32 noundef 1, ptr noundef nonnull %7) #11
  %158 = load i64, ptr %7, align 8
  %159 = mul nsw i64 %158, 1000000000
  %160 = load i64, ptr %37, align 8
  %161 = add nsw i64 %159, %160
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %7) #11
  store i64 %161, ptr %23, align 32
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %6) #11
  %162 = call i32 @clock_gettime(i32 noundef 3, ptr noundef nonnull %6) #11
  %163 = load i64, ptr %6, align 8
  %164 = mul nsw i64 %163, 1000000000
  %165 = load i64, ptr %38, align 8
  %166 = add nsw i64 %164, %165
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %6) #11
  store i64 %166, ptr %30, align 8
  br label %167

167:                                              ; preds = %126, %78, %146, %156
  %168 = phi i64 [ %69, %78 ], [ %133, %156 ], [ %133, %146 ], [ %69, %126 ]
  %169 = phi i64 [ %70, %78 ], [ %134, %156 ], [ %134, %146 ], [ %70, %126 ]
  %170 = cmpxchg ptr %0, i32 2, i32 3 seq_cst seq_cst, align 64
  %171 = extractvalue { i32, i1 } %170, 1
  br i1 %171, label %174, label %172

172:                                              ; preds = %167
  %173 = load i64, ptr %23, align 32
  br label %67

174:                                              ; preds = %167
  %175 = load i64, ptr %39, align 16
  %176 = load i64, ptr %40, align 8
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %5) #11
  %177 = call i32 @clock_gettime(i32 noundef 1, ptr noundef nonnull %5) #11
  %178 = load i64, ptr %5, align 8
  %179 = mul nsw i64 %178, 1000000000
  %180 = load i64, ptr %41, align 8
  %181 = add nsw i64 %179, %180
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %5) #11
  %182 = load i64, ptr %23, align 32
  %183 = sub nsw i64 %181, %182
  %184 = icmp sgt i64 %183, 40000
  br i1 %184, label %185, label %191

185:                                              ; preds = %174
  store i64 %181, ptr %23, align 32
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %4) #11
  %186 = call i32 @clock_gettime(i32 noundef 3, ptr noundef nonnull %4) #11
  %187 = load i64, ptr %4, align 8
  %188 = mul nsw i64 %187, 1000000000
  %189 = load i64, ptr %42, align 8
  %190 = add nsw i64 %188, %189
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %4) #11
  store i64 %190, ptr %30, align 8
  br label %191

191:                                              ; preds = %185, %174
  %192 = load ptr, ptr %43, align 64
  br label %193

193:                                              ; preds = %210, %191
  %194 = phi i32 [ 2, %191 ], [ %211, %210 ]
  %195 = load atomic i64, ptr %44 monotonic, align 64
  %196 = load i64, ptr %40, align 8
  %197 = icmp slt i64 %195, %196
  br i1 %197, label %198, label %213

198:                                              ; preds = %193
  %199 = atomicrmw add ptr %44, i64 1 acquire, align 64
  %200 = load i64, ptr %40, align 8
  %201 = icmp slt i64 %199, %200
  br i1 %201, label %202, label %213

202:                                              ; preds = %198
  %203 = getelementptr inbounds [0 x %struct.worker], ptr %45, i64 0, i64 %199
  %204 = getelementptr inbounds nuw i8, ptr %203, i64 4
  %205 = atomicrmw xchg ptr %204, i32 0 monotonic, align 4
  %206 = icmp eq i32 %205, 0
  br i1 %206, label %210, label %207, !llvm.loop !8

207:                                              ; preds = %202
  %208 = call i64 (i64, ...) @syscall(i64 noundef 98, ptr noundef nonnull %203, i32 noundef 129, i32 noundef 1, i32 noundef 0, i32 noundef 0, i32 noundef 0) #11
  %209 = add nsw i32 %194, -1
  br label %210

210:                                              ; preds = %207, %202
  %211 = phi i32 [ %209, %207 ], [ %194, %202 ]
  %212 = icmp sgt i32 %211, 0
  br i1 %212, label %193, label %213

213:                                              ; preds = %210, %198, %193
  %214 = call i32 @sched_getcpu() #11
  %215 = sext i32 %214 to i64
  store atomic i64 %215, ptr %46 monotonic, align 8
  %216 = icmp ugt i32 %214, 1023
  br i1 %216, label %231, label %217

217:                                              ; preds = %213
  %218 = getelementptr inbounds nuw [1024 x i32], ptr %47, i64 0, i64 %215
  %219 = load i32, ptr %48, align 8
  %220 = atomicrmw xchg ptr %218, i32 %219 monotonic, align 4
  %221 = icmp eq i32 %220, %219
  br i1 %221, label %222, label %231

222:                                              ; preds = %217
  %223 = tail call i64 @pthread_self() #12
  call fastcc void @keep_off(ptr noundef nonnull %16, ptr noundef nonnull %0, i64 noundef %223, i64 noundef %215)
  %224 = call i32 @sched_getcpu() #11
  %225 = icmp ugt i32 %224, 1023
  br i1 %225, label %231, label %226

226:                                              ; preds = %222
  %227 = zext nneg i32 %224 to i64
  %228 = getelementptr inbounds nuw [1024 x i32], ptr %47, i64 0, i64 %227
  %229 = load i32, ptr %48, align 8
  %230 = atomicrmw xchg ptr %228, i32 %229 monotonic, align 4
  br label %231

231:                                              ; preds = %226, %222, %217, %213
  %232 = load ptr, ptr %192, align 8
  %233 = getelementptr inbounds nuw i8, ptr %192, i64 8
  %234 = load ptr, ptr %233, align 8
  %235 = getelementptr inbounds nuw i8, ptr %192, i64 16
  %236 = load ptr, ptr %235, align 8
  %237 = load i64, ptr %40, align 8
  %238 = add nsw i64 %237, 1
  %239 = getelementptr inbounds nuw i8, ptr %192, i64 24
  %240 = load ptr, ptr %239, align 8
  %241 = call i32 %232(ptr noundef %234, ptr noundef %236, i64 noundef %53, i64 noundef %238, ptr noundef %240)
  %242 = icmp eq i32 %241, 0
  br i1 %242, label %244, label %243

243:                                              ; preds = %231
  store atomic i64 1, ptr %54 monotonic, align 8
  br label %244

244:                                              ; preds = %231, %243
  store atomic i32 0, ptr %0 monotonic, align 64
  %245 = atomicrmw add ptr %55, i64 1 release, align 64
  %246 = load i64, ptr %23, align 32
  %247 = load i64, ptr %30, align 8
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %3) #11
  %248 = call i32 @clock_gettime(i32 noundef 1, ptr noundef nonnull %3) #11
  %249 = load i64, ptr %3, align 8
  %250 = mul nsw i64 %249, 1000000000
  %251 = load i64, ptr %56, align 8
  %252 = add nsw i64 %250, %251
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %3) #11
  store i64 %252, ptr %23, align 32
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %2) #11
  %253 = call i32 @clock_gettime(i32 noundef 3, ptr noundef nonnull %2) #11
  %254 = load i64, ptr %2, align 8
  %255 = mul nsw i64 %254, 1000000000
  %256 = load i64, ptr %57, align 8
  %257 = add nsw i64 %255, %256
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %2) #11
  store i64 %257, ptr %30, align 8
  %258 = sub nsw i64 %252, %175
  %259 = add i64 %247, %252
  %260 = add i64 %246, %257
  %261 = sub i64 %259, %260
  %262 = call noundef i64 @llvm.smax.i64(i64 %261, i64 0)
  %263 = call noundef i64 @llvm.smin.i64(i64 %262, i64 %258)
  %264 = load i64, ptr %58, align 16
  %265 = mul nsw i64 %258, %176
  %266 = add nsw i64 %264, %265
  %267 = xor i64 %176, -1
  %268 = mul i64 %263, %267
  %269 = add i64 %266, %268
  %270 = call noundef i64 @llvm.smin.i64(i64 %269, i64 32000000)
  %271 = call noundef i64 @llvm.smax.i64(i64 %270, i64 0)
  store i64 %271, ptr %58, align 16
  %272 = icmp slt i64 %269, 0
  br i1 %272, label %273, label %292

273:                                              ; preds = %244
  %274 = load atomic i64, ptr %59 monotonic, align 8
  br label %275

275:                                              ; preds = %278, %273
  %276 = phi i64 [ %274, %273 ], [ %281, %278 ]
  %277 = icmp slt i64 %276, %258
  br i1 %277, label %278, label %282

278:                                              ; preds = %275
  %279 = cmpxchg weak ptr %59, i64 %276, i64 %258 monotonic monotonic, align 8
  %280 = extractvalue { i64, i1 } %279, 1
  %281 = extractvalue { i64, i1 } %279, 0
  br i1 %280, label %282, label %275, !llvm.loop !14

282:                                              ; preds = %278, %275
  %283 = sub nsw i64 %258, %263
  %284 = load atomic i64, ptr %60 monotonic, align 8
  br label %285

285:                                              ; preds = %288, %282
  %286 = phi i64 [ %284, %282 ], [ %291, %288 ]
  %287 = icmp slt i64 %286, %283
  br i1 %287, label %288, label %292

288:                                              ; preds = %285
  %289 = cmpxchg weak ptr %60, i64 %286, i64 %283 monotonic monotonic, align 8
  %290 = extractvalue { i64, i1 } %289, 1
  %291 = extractvalue { i64, i1 } %289, 0
  br i1 %290, label %292, label %285, !llvm.loop !14

292:                                              ; preds = %285, %288, %244
  %293 = sub nsw i64 %175, %62
  %294 = icmp slt i64 %293, 4000000
  %295 = load i64, ptr %23, align 32
  %296 = add nsw i64 %169, 512000000
  %297 = icmp sgt i64 %295, %296
  %298 = select i1 %297, i64 0, i64 %168
  br label %61
}

; Function Attrs: nounwind
declare i32 @pthread_attr_destroy(ptr noundef) local_unnamed_addr #5

; Function Attrs: nounwind
declare i32 @sched_yield() local_unnamed_addr #5

; Function Attrs: nounwind
declare i32 @getrusage(i32 noundef, ptr noundef) local_unnamed_addr #5

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
declare void @llvm.memcpy.p0.p0.i64(ptr noalias nocapture writeonly, ptr noalias nocapture readonly, i64, i1 immarg) #9

; Function Attrs: nounwind
declare i32 @__sched_cpucount(i64 noundef, ptr noundef) local_unnamed_addr #5

; Function Attrs: nounwind
declare i32 @pthread_setaffinity_np(i64 noundef, i64 noundef, ptr noundef) local_unnamed_addr #5

; Function Attrs: nocallback nofree nosync nounwind speculatable willreturn memory(none)
declare i64 @llvm.smin.i64(i64, i64) #10

; Function Attrs: nocallback nofree nosync nounwind speculatable willreturn memory(none)
declare i64 @llvm.smax.i64(i64, i64) #10

; Function Attrs: nocallback nofree nosync nounwind speculatable willreturn memory(none)
declare i64 @llvm.umin.i64(i64, i64) #10

attributes #0 = { uwtable "no-trapping-math"="true" "stack-protector-buffer-size"="8" }
attributes #1 = { mustprogress nocallback nofree nosync nounwind willreturn memory(argmem: readwrite) }
attributes #2 = { mustprogress nocallback nofree nounwind willreturn memory(argmem: write) }
attributes #3 = { mustprogress nofree norecurse nosync nounwind willreturn memory(none) uwtable "no-trapping-math"="true" "stack-protector-buffer-size"="8" }
attributes #4 = { mustprogress nofree norecurse nosync nounwind willreturn memory(argmem: write) uwtable "no-trapping-math"="true" "stack-protector-buffer-size"="8" }
attributes #5 = { nounwind "no-trapping-math"="true" "stack-protector-buffer-size"="8" }
attributes #6 = { mustprogress nofree nosync nounwind willreturn memory(none) "no-trapping-math"="true" "stack-protector-buffer-size"="8" }
attributes #7 = { nounwind uwtable "no-trapping-math"="true" "stack-protector-buffer-size"="8" }
attributes #8 = { noreturn uwtable "no-trapping-math"="true" "stack-protector-buffer-size"="8" }
attributes #9 = { mustprogress nocallback nofree nounwind willreturn memory(argmem: readwrite) }
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
!8 = distinct !{!8, !6}
!9 = distinct !{!9, !6}
!10 = !{i64 6488}
!11 = distinct !{!11, !6}
!12 = distinct !{!12, !6}
!13 = distinct !{!13, !6}
!14 = distinct !{!14, !6}
