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
  br label %300

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
  br label %300

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
  %168 = getelementptr inbounds nuw i8, ptr %12, i64 96
  %169 = load i32, ptr %168, align 32
  %170 = add i32 %169, 1
  store i32 %170, ptr %168, align 32
  %171 = call i32 @sched_getcpu() #11
  %172 = sext i32 %171 to i64
  %173 = icmp ugt i32 %171, 1023
  br i1 %173, label %179, label %174

174:                                              ; preds = %154
  %175 = getelementptr inbounds nuw i8, ptr %12, i64 256
  %176 = getelementptr inbounds nuw [1024 x i32], ptr %175, i64 0, i64 %172
  %177 = load i32, ptr %168, align 32
  %178 = atomicrmw xchg ptr %176, i32 %177 monotonic, align 4
  br label %179

179:                                              ; preds = %174, %154
  %180 = getelementptr inbounds nuw i8, ptr %12, i64 128
  store atomic i64 0, ptr %180 monotonic, align 64
  %181 = getelementptr inbounds nuw i8, ptr %12, i64 136
  store atomic i64 0, ptr %181 monotonic, align 8
  %182 = getelementptr inbounds nuw i8, ptr %12, i64 192
  store atomic i64 %156, ptr %182 monotonic, align 64
  %183 = icmp sgt i64 %156, 0
  br i1 %183, label %184, label %228

184:                                              ; preds = %179
  %185 = getelementptr inbounds nuw i8, ptr %12, i64 4352
  br label %186

186:                                              ; preds = %203, %184
  %187 = phi i1 [ true, %203 ], [ false, %184 ]
  %188 = phi i64 [ %205, %203 ], [ 0, %184 ]
  br label %190

189:                                              ; preds = %200
  br i1 %187, label %207, label %228

190:                                              ; preds = %200, %186
  %191 = phi i64 [ %201, %200 ], [ %188, %186 ]
  %192 = getelementptr inbounds nuw [0 x %struct.worker], ptr %185, i64 0, i64 %191
  %193 = getelementptr inbounds nuw i8, ptr %192, i64 8
  %194 = load atomic i64, ptr %193 monotonic, align 8
  %195 = icmp eq i64 %194, %172
  br i1 %195, label %196, label %197

196:                                              ; preds = %190
  call fastcc void @keep_off(ptr noundef nonnull %12, ptr noundef nonnull %192, i64 noundef %172)
  br label %197

197:                                              ; preds = %196, %190
  %198 = atomicrmw xchg ptr %192, i32 2 seq_cst, align 64
  %199 = icmp eq i32 %198, 1
  br i1 %199, label %203, label %200

200:                                              ; preds = %197
  %201 = add nuw nsw i64 %191, 1
  %202 = icmp eq i64 %201, %156
  br i1 %202, label %189, label %190, !llvm.loop !7

203:                                              ; preds = %197
  %204 = getelementptr inbounds nuw i8, ptr %192, i64 4
  store atomic i32 1, ptr %204 monotonic, align 4
  %205 = add nuw nsw i64 %191, 1
  %206 = icmp eq i64 %205, %156
  br i1 %206, label %207, label %186, !llvm.loop !7

207:                                              ; preds = %203, %189
  store atomic i64 0, ptr %182 release, align 64
  br label %208

208:                                              ; preds = %225, %207
  %209 = phi i32 [ 2, %207 ], [ %226, %225 ]
  %210 = load atomic i64, ptr %182 monotonic, align 64
  %211 = load i64, ptr %158, align 8
  %212 = icmp slt i64 %210, %211
  br i1 %212, label %213, label %228

213:                                              ; preds = %208
  %214 = atomicrmw add ptr %182, i64 1 acquire, align 64
  %215 = load i64, ptr %158, align 8
  %216 = icmp slt i64 %214, %215
  br i1 %216, label %217, label %228

217:                                              ; preds = %213
  %218 = getelementptr inbounds [0 x %struct.worker], ptr %185, i64 0, i64 %214
  %219 = getelementptr inbounds nuw i8, ptr %218, i64 4
  %220 = atomicrmw xchg ptr %219, i32 0 monotonic, align 4
  %221 = icmp eq i32 %220, 0
  br i1 %221, label %225, label %222, !llvm.loop !8

222:                                              ; preds = %217
  %223 = call i64 (i64, ...) @syscall(i64 noundef 98, ptr noundef nonnull %218, i32 noundef 129, i32 noundef 1, i32 noundef 0, i32 noundef 0, i32 noundef 0) #11
  %224 = add nsw i32 %209, -1
  br label %225

225:                                              ; preds = %222, %217
  %226 = phi i32 [ %224, %222 ], [ %209, %217 ]
  %227 = icmp sgt i32 %226, 0
  br i1 %227, label %208, label %228

228:                                              ; preds = %208, %213, %225, %179, %189
  %229 = load ptr, ptr %0, align 8
  %230 = getelementptr inbounds nuw i8, ptr %0, i64 8
  %231 = load ptr, ptr %230, align 8
  %232 = getelementptr inbounds nuw i8, ptr %0, i64 16
  %233 = load ptr, ptr %232, align 8
  %234 = load i64, ptr %158, align 8
  %235 = add nsw i64 %234, 1
  %236 = load ptr, ptr %13, align 8
  %237 = call i32 %229(ptr noundef %231, ptr noundef %233, i64 noundef 0, i64 noundef %235, ptr noundef %236)
  %238 = getelementptr inbounds nuw i8, ptr %12, i64 56
  %239 = load i64, ptr %238, align 8
  %240 = icmp eq i64 %239, 0
  %241 = load i64, ptr %158, align 8
  br i1 %240, label %242, label %262

242:                                              ; preds = %228
  %243 = icmp sgt i64 %241, 0
  br i1 %243, label %244, label %262

244:                                              ; preds = %242
  %245 = getelementptr inbounds nuw i8, ptr %12, i64 4352
  br label %246

246:                                              ; preds = %246, %244
  %247 = phi i64 [ 0, %244 ], [ %258, %246 ]
  %248 = phi i64 [ 0, %244 ], [ %259, %246 ]
  %249 = getelementptr inbounds nuw [0 x %struct.worker], ptr %245, i64 0, i64 %248
  %250 = getelementptr inbounds nuw i8, ptr %249, i64 4
  %251 = atomicrmw xchg ptr %250, i32 0 monotonic, align 4
  %252 = icmp ne i32 %251, 0
  %253 = zext i1 %252 to i32
  %254 = cmpxchg ptr %249, i32 2, i32 %253 seq_cst seq_cst, align 64
  %255 = extractvalue { i32, i1 } %254, 1
  %256 = xor i1 %255, true
  %257 = zext i1 %256 to i64
  %258 = add nuw nsw i64 %247, %257
  %259 = add nuw nsw i64 %248, 1
  %260 = load i64, ptr %158, align 8
  %261 = icmp slt i64 %259, %260
  br i1 %261, label %246, label %262, !llvm.loop !9

262:                                              ; preds = %246, %228, %242
  %263 = phi i64 [ 0, %242 ], [ %241, %228 ], [ %258, %246 ]
  %264 = getelementptr inbounds nuw i8, ptr %2, i64 8
  %265 = getelementptr inbounds nuw i8, ptr %3, i64 8
  br label %266

266:                                              ; preds = %279, %262
  %267 = phi i64 [ %284, %279 ], [ 0, %262 ]
  %268 = icmp eq i64 %267, 0
  br label %269

269:                                              ; preds = %295, %266
  br label %270

270:                                              ; preds = %274, %269
  %271 = phi i64 [ %275, %274 ], [ 1, %269 ]
  %272 = load atomic i64, ptr %180 acquire, align 64
  %273 = icmp eq i64 %272, %263
  br i1 %273, label %296, label %274

274:                                              ; preds = %270
  call void asm sideeffect "isb", ""() #11, !srcloc !10
  %275 = add i64 %271, 1
  %276 = and i64 %275, 31
  %277 = icmp eq i64 %276, 1
  br i1 %277, label %278, label %270, !llvm.loop !11

278:                                              ; preds = %274
  br i1 %268, label %279, label %285

279:                                              ; preds = %278
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %3) #11
  %280 = call i32 @clock_gettime(i32 noundef 1, ptr noundef nonnull %3) #11
  %281 = load i64, ptr %3, align 8
  %282 = mul nsw i64 %281, 1000000000
  %283 = load i64, ptr %265, align 8
  %284 = add nsw i64 %282, %283
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %3) #11
  br label %266, !llvm.loop !11

285:                                              ; preds = %278
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %2) #11
  %286 = call i32 @clock_gettime(i32 noundef 1, ptr noundef nonnull %2) #11
  %287 = load i64, ptr %2, align 8
  %288 = mul nsw i64 %287, 1000000000
  %289 = load i64, ptr %264, align 8
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %2) #11
  %290 = sub i64 %289, %267
  %291 = add i64 %290, %288
  %292 = icmp sgt i64 %291, 50000
  br i1 %292, label %293, label %295

293:                                              ; preds = %285
  %294 = call i32 @sched_yield() #11
  br label %295

295:                                              ; preds = %293, %285
  br label %269, !llvm.loop !11

296:                                              ; preds = %270
  %297 = load atomic i64, ptr %181 monotonic, align 8
  %298 = trunc i64 %297 to i32
  store atomic i64 0, ptr %12 release, align 64
  %299 = or i32 %237, %298
  br label %300

300:                                              ; preds = %98, %296, %19
  %301 = phi i32 [ %26, %19 ], [ %109, %98 ], [ %299, %296 ]
  ret i32 %301
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
define internal fastcc void @keep_off(ptr nocapture noundef readonly %0, ptr nocapture noundef %1, i64 noundef range(i64 -2147483648, 2147483648) %2) unnamed_addr #7 {
  %4 = alloca %struct.cpu_set_t, align 8
  %5 = alloca %struct.cpu_set_t, align 8
  call void @llvm.lifetime.start.p0(i64 128, ptr nonnull %4) #11
  call void @llvm.lifetime.start.p0(i64 128, ptr nonnull %5) #11
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 8 dereferenceable(128) %4, i8 0, i64 128, i1 false)
  %6 = icmp ugt i64 %2, 1023
  br i1 %6, label %52, label %7

7:                                                ; preds = %3
  %8 = getelementptr inbounds nuw i8, ptr %0, i64 88
  %9 = load i64, ptr %8, align 8
  %10 = call i32 @pthread_getaffinity_np(i64 noundef %9, i64 noundef 128, ptr noundef nonnull %4) #11
  %11 = icmp eq i32 %10, 0
  br i1 %11, label %12, label %52

12:                                               ; preds = %7
  %13 = and i64 %2, 63
  %14 = shl nuw i64 1, %13
  %15 = xor i64 %14, -1
  %16 = lshr i64 %2, 6
  %17 = getelementptr inbounds nuw i64, ptr %4, i64 %16
  %18 = load i64, ptr %17, align 8
  %19 = and i64 %18, %15
  store i64 %19, ptr %17, align 8
  call void @llvm.memcpy.p0.p0.i64(ptr noundef nonnull align 8 dereferenceable(128) %5, ptr noundef nonnull align 8 dereferenceable(128) %4, i64 128, i1 false)
  %20 = getelementptr inbounds nuw i8, ptr %0, i64 256
  %21 = getelementptr inbounds nuw i8, ptr %0, i64 96
  %22 = load i32, ptr %21, align 32
  br label %26

23:                                               ; preds = %39
  %24 = call i32 @__sched_cpucount(i64 noundef 128, ptr noundef nonnull %4) #11
  %25 = icmp eq i32 %24, 0
  br i1 %25, label %52, label %42

26:                                               ; preds = %12, %39
  %27 = phi i64 [ 0, %12 ], [ %40, %39 ]
  %28 = getelementptr inbounds nuw [1024 x i32], ptr %20, i64 0, i64 %27
  %29 = load atomic i32, ptr %28 monotonic, align 4
  %30 = icmp eq i32 %29, %22
  br i1 %30, label %31, label %39

31:                                               ; preds = %26
  %32 = and i64 %27, 63
  %33 = shl nuw i64 1, %32
  %34 = xor i64 %33, -1
  %35 = lshr i64 %27, 6
  %36 = getelementptr inbounds nuw i64, ptr %5, i64 %35
  %37 = load i64, ptr %36, align 8
  %38 = and i64 %37, %34
  store i64 %38, ptr %36, align 8
  br label %39

39:                                               ; preds = %26, %31
  %40 = add nuw nsw i64 %27, 1
  %41 = icmp eq i64 %40, 1024
  br i1 %41, label %23, label %26, !llvm.loop !12

42:                                               ; preds = %23
  %43 = getelementptr inbounds nuw i8, ptr %1, i64 24
  %44 = load i64, ptr %43, align 8
  %45 = call i32 @__sched_cpucount(i64 noundef 128, ptr noundef nonnull %5) #11
  %46 = icmp eq i32 %45, 0
  %47 = select i1 %46, ptr %4, ptr %5
  %48 = call i32 @pthread_setaffinity_np(i64 noundef %44, i64 noundef 128, ptr noundef nonnull %47) #11
  %49 = getelementptr inbounds nuw i8, ptr %1, i64 56
  %50 = getelementptr inbounds nuw i8, ptr %0, i64 80
  %51 = load i64, ptr %50, align 16
  store atomic i64 %51, ptr %49 monotonic, align 8
  br label %52

52:                                               ; preds = %23, %3, %7, %42
  call void @llvm.lifetime.end.p0(i64 128, ptr nonnull %5) #11
  call void @llvm.lifetime.end.p0(i64 128, ptr nonnull %4) #11
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
  %48 = getelementptr inbounds nuw i8, ptr %16, i64 96
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

61:                                               ; preds = %291, %1
  %62 = phi i64 [ %294, %291 ], [ %31, %1 ]
  %63 = phi i1 [ %293, %291 ], [ false, %1 ]
  %64 = phi i64 [ %297, %291 ], [ 0, %1 ]
  %65 = phi i64 [ %169, %291 ], [ 0, %1 ]
  %66 = phi i64 [ %79, %291 ], [ 0, %1 ]
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
  br i1 %216, label %230, label %217

217:                                              ; preds = %213
  %218 = getelementptr inbounds nuw [1024 x i32], ptr %47, i64 0, i64 %215
  %219 = load i32, ptr %48, align 32
  %220 = atomicrmw xchg ptr %218, i32 %219 monotonic, align 4
  %221 = icmp eq i32 %220, %219
  br i1 %221, label %222, label %230

222:                                              ; preds = %217
  call fastcc void @keep_off(ptr noundef nonnull %16, ptr noundef nonnull %0, i64 noundef %215)
  %223 = call i32 @sched_getcpu() #11
  %224 = icmp ugt i32 %223, 1023
  br i1 %224, label %230, label %225

225:                                              ; preds = %222
  %226 = zext nneg i32 %223 to i64
  %227 = getelementptr inbounds nuw [1024 x i32], ptr %47, i64 0, i64 %226
  %228 = load i32, ptr %48, align 32
  %229 = atomicrmw xchg ptr %227, i32 %228 monotonic, align 4
  br label %230

230:                                              ; preds = %225, %222, %217, %213
  %231 = load ptr, ptr %192, align 8
  %232 = getelementptr inbounds nuw i8, ptr %192, i64 8
  %233 = load ptr, ptr %232, align 8
  %234 = getelementptr inbounds nuw i8, ptr %192, i64 16
  %235 = load ptr, ptr %234, align 8
  %236 = load i64, ptr %40, align 8
  %237 = add nsw i64 %236, 1
  %238 = getelementptr inbounds nuw i8, ptr %192, i64 24
  %239 = load ptr, ptr %238, align 8
  %240 = call i32 %231(ptr noundef %233, ptr noundef %235, i64 noundef %53, i64 noundef %237, ptr noundef %239)
  %241 = icmp eq i32 %240, 0
  br i1 %241, label %243, label %242

242:                                              ; preds = %230
  store atomic i64 1, ptr %54 monotonic, align 8
  br label %243

243:                                              ; preds = %230, %242
  store atomic i32 0, ptr %0 monotonic, align 64
  %244 = atomicrmw add ptr %55, i64 1 release, align 64
  %245 = load i64, ptr %23, align 32
  %246 = load i64, ptr %30, align 8
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %3) #11
  %247 = call i32 @clock_gettime(i32 noundef 1, ptr noundef nonnull %3) #11
  %248 = load i64, ptr %3, align 8
  %249 = mul nsw i64 %248, 1000000000
  %250 = load i64, ptr %56, align 8
  %251 = add nsw i64 %249, %250
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %3) #11
  store i64 %251, ptr %23, align 32
  call void @llvm.lifetime.start.p0(i64 16, ptr nonnull %2) #11
  %252 = call i32 @clock_gettime(i32 noundef 3, ptr noundef nonnull %2) #11
  %253 = load i64, ptr %2, align 8
  %254 = mul nsw i64 %253, 1000000000
  %255 = load i64, ptr %57, align 8
  %256 = add nsw i64 %254, %255
  call void @llvm.lifetime.end.p0(i64 16, ptr nonnull %2) #11
  store i64 %256, ptr %30, align 8
  %257 = sub nsw i64 %251, %175
  %258 = add i64 %246, %251
  %259 = add i64 %245, %256
  %260 = sub i64 %258, %259
  %261 = call noundef i64 @llvm.smax.i64(i64 %260, i64 0)
  %262 = call noundef i64 @llvm.smin.i64(i64 %261, i64 %257)
  %263 = load i64, ptr %58, align 16
  %264 = mul nsw i64 %257, %176
  %265 = add nsw i64 %263, %264
  %266 = xor i64 %176, -1
  %267 = mul i64 %262, %266
  %268 = add i64 %265, %267
  %269 = call noundef i64 @llvm.smin.i64(i64 %268, i64 32000000)
  %270 = call noundef i64 @llvm.smax.i64(i64 %269, i64 0)
  store i64 %270, ptr %58, align 16
  %271 = icmp slt i64 %268, 0
  br i1 %271, label %272, label %291

272:                                              ; preds = %243
  %273 = load atomic i64, ptr %59 monotonic, align 8
  br label %274

274:                                              ; preds = %277, %272
  %275 = phi i64 [ %273, %272 ], [ %280, %277 ]
  %276 = icmp slt i64 %275, %257
  br i1 %276, label %277, label %281

277:                                              ; preds = %274
  %278 = cmpxchg weak ptr %59, i64 %275, i64 %257 monotonic monotonic, align 8
  %279 = extractvalue { i64, i1 } %278, 1
  %280 = extractvalue { i64, i1 } %278, 0
  br i1 %279, label %281, label %274, !llvm.loop !14

281:                                              ; preds = %277, %274
  %282 = sub nsw i64 %257, %262
  %283 = load atomic i64, ptr %60 monotonic, align 8
  br label %284

284:                                              ; preds = %287, %281
  %285 = phi i64 [ %283, %281 ], [ %290, %287 ]
  %286 = icmp slt i64 %285, %282
  br i1 %286, label %287, label %291

287:                                              ; preds = %284
  %288 = cmpxchg weak ptr %60, i64 %285, i64 %282 monotonic monotonic, align 8
  %289 = extractvalue { i64, i1 } %288, 1
  %290 = extractvalue { i64, i1 } %288, 0
  br i1 %289, label %291, label %284, !llvm.loop !14

291:                                              ; preds = %284, %287, %243
  %292 = sub nsw i64 %175, %62
  %293 = icmp slt i64 %292, 4000000
  %294 = load i64, ptr %23, align 32
  %295 = add nsw i64 %169, 512000000
  %296 = icmp sgt i64 %294, %295
  %297 = select i1 %296, i64 0, i64 %168
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
!10 = !{i64 6451}
!11 = distinct !{!11, !6}
!12 = distinct !{!12, !6}
!13 = distinct !{!13, !6}
!14 = distinct !{!14, !6}
