%struct.python = type { ptr, ptr, ptr, ptr, i64 }
%struct.torch = type { ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, i64, i64 }
%struct.wanted = type { i64, i64, i64, i64, i64, i64, ptr, i64 }
%struct.pair = type { i64, i64, i64, i64 }

@tcl_python = local_unnamed_addr global %struct.python zeroinitializer, align 8
@tcl_torch = local_unnamed_addr global %struct.torch zeroinitializer, align 8

; Function Attrs: uwtable
define ptr @tcl_call_numpy(ptr noundef %0, ptr nocapture noundef readonly %1, i64 noundef %2) local_unnamed_addr #0 {
  %4 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @tcl_python, i64 24), align 8
  %5 = load ptr, ptr %1, align 8
  %6 = getelementptr inbounds nuw i8, ptr %1, i64 8
  %7 = load ptr, ptr %6, align 8
  %8 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @tcl_python, i64 16), align 8
  %9 = tail call ptr %8(ptr noundef %0)
  %10 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @tcl_python, i64 16), align 8
  %11 = getelementptr inbounds nuw i8, ptr %1, i64 16
  %12 = load ptr, ptr %11, align 8
  %13 = tail call ptr %10(ptr noundef %12)
  %14 = getelementptr inbounds nuw i8, ptr %13, i64 8
  %15 = load ptr, ptr %14, align 8
  %16 = load i64, ptr %9, align 8
  %17 = getelementptr inbounds nuw i8, ptr %9, i64 8
  %18 = load i64, ptr %17, align 8
  %19 = add i64 %18, %16
  %20 = getelementptr inbounds nuw i8, ptr %5, i64 16
  %21 = load i64, ptr %20, align 8
  %22 = icmp eq i64 %21, %16
  br i1 %22, label %23, label %149

23:                                               ; preds = %3
  %24 = getelementptr inbounds nuw i8, ptr %7, i64 16
  %25 = load i64, ptr %24, align 8
  %26 = icmp eq i64 %25, %18
  br i1 %26, label %27, label %149

27:                                               ; preds = %23
  %28 = icmp sgt i64 %19, 0
  br i1 %28, label %29, label %114

29:                                               ; preds = %27
  %30 = getelementptr inbounds nuw i8, ptr %9, i64 32
  br label %31

31:                                               ; preds = %108, %29
  %32 = phi i64 [ 0, %29 ], [ %112, %108 ]
  %33 = getelementptr inbounds nuw [0 x %struct.wanted], ptr %30, i64 0, i64 %32
  %34 = load i64, ptr %9, align 8
  %35 = icmp slt i64 %32, %34
  %36 = load i64, ptr getelementptr inbounds nuw (i8, ptr @tcl_python, i64 32), align 8
  %37 = getelementptr inbounds i8, ptr %5, i64 %36
  %38 = getelementptr inbounds nuw ptr, ptr %37, i64 %32
  %39 = sub nsw i64 %32, %34
  %40 = getelementptr inbounds i8, ptr %7, i64 %36
  %41 = getelementptr inbounds ptr, ptr %40, i64 %39
  %42 = select i1 %35, ptr %38, ptr %41
  %43 = load ptr, ptr %42, align 8
  %44 = getelementptr inbounds nuw i8, ptr %43, i64 8
  %45 = load i64, ptr %44, align 8
  %46 = load i64, ptr %33, align 8
  %47 = icmp eq i64 %45, %46
  br i1 %47, label %48, label %149

48:                                               ; preds = %31
  %49 = getelementptr inbounds nuw i8, ptr %43, i64 56
  %50 = load i64, ptr %49, align 8
  %51 = getelementptr inbounds nuw i8, ptr %33, i64 8
  %52 = load i64, ptr %51, align 8
  %53 = icmp eq i64 %50, %52
  br i1 %53, label %54, label %149

54:                                               ; preds = %48
  %55 = getelementptr inbounds nuw i8, ptr %43, i64 24
  %56 = load i32, ptr %55, align 8
  %57 = sext i32 %56 to i64
  %58 = getelementptr inbounds nuw i8, ptr %33, i64 16
  %59 = load i64, ptr %58, align 8
  %60 = icmp eq i64 %59, %57
  br i1 %60, label %61, label %149

61:                                               ; preds = %54
  %62 = getelementptr inbounds nuw i8, ptr %43, i64 64
  %63 = load i32, ptr %62, align 8
  %64 = sext i32 %63 to i64
  %65 = getelementptr inbounds nuw i8, ptr %33, i64 32
  %66 = load i64, ptr %65, align 8
  %67 = and i64 %66, %64
  %68 = icmp eq i64 %67, %66
  br i1 %68, label %69, label %149

69:                                               ; preds = %61
  %70 = getelementptr inbounds nuw i8, ptr %43, i64 32
  %71 = load ptr, ptr %70, align 8
  %72 = getelementptr inbounds nuw i8, ptr %43, i64 40
  %73 = load ptr, ptr %72, align 8
  %74 = getelementptr inbounds nuw i8, ptr %33, i64 48
  %75 = load ptr, ptr %74, align 8
  %76 = icmp slt i32 %56, 1
  br i1 %76, label %99, label %80

77:                                               ; preds = %80
  %78 = add nuw nsw i64 %81, 1
  %79 = icmp eq i64 %78, %57
  br i1 %79, label %87, label %80, !llvm.loop !5

80:                                               ; preds = %69, %77
  %81 = phi i64 [ %78, %77 ], [ 0, %69 ]
  %82 = getelementptr inbounds nuw i64, ptr %71, i64 %81
  %83 = load i64, ptr %82, align 8
  %84 = getelementptr inbounds nuw i64, ptr %75, i64 %81
  %85 = load i64, ptr %84, align 8
  %86 = icmp eq i64 %83, %85
  br i1 %86, label %77, label %149

87:                                               ; preds = %77
  %88 = getelementptr inbounds nuw i64, ptr %75, i64 %57
  br label %92

89:                                               ; preds = %92
  %90 = add nuw nsw i64 %93, 1
  %91 = icmp eq i64 %90, %57
  br i1 %91, label %99, label %92, !llvm.loop !5

92:                                               ; preds = %89, %87
  %93 = phi i64 [ %90, %89 ], [ 0, %87 ]
  %94 = getelementptr inbounds nuw i64, ptr %73, i64 %93
  %95 = load i64, ptr %94, align 8
  %96 = getelementptr inbounds nuw i64, ptr %88, i64 %93
  %97 = load i64, ptr %96, align 8
  %98 = icmp eq i64 %95, %97
  br i1 %98, label %89, label %149

99:                                               ; preds = %89, %69
  %100 = getelementptr inbounds nuw i8, ptr %43, i64 16
  %101 = load i64, ptr %100, align 8
  %102 = icmp eq i64 %101, -1
  br i1 %102, label %149, label %103

103:                                              ; preds = %99
  %104 = getelementptr inbounds nuw i8, ptr %33, i64 24
  %105 = load i64, ptr %104, align 8
  %106 = and i64 %105, %101
  %107 = icmp eq i64 %106, 0
  br i1 %107, label %108, label %149

108:                                              ; preds = %103
  %109 = getelementptr inbounds nuw i8, ptr %33, i64 56
  %110 = load i64, ptr %109, align 8
  %111 = getelementptr inbounds i64, ptr %15, i64 %110
  store i64 %101, ptr %111, align 8
  %112 = add nuw nsw i64 %32, 1
  %113 = icmp eq i64 %112, %19
  br i1 %113, label %114, label %31, !llvm.loop !7

114:                                              ; preds = %108, %27
  %115 = getelementptr inbounds nuw i8, ptr %9, i64 32
  %116 = getelementptr inbounds [0 x %struct.wanted], ptr %115, i64 0, i64 %19
  %117 = getelementptr inbounds nuw i8, ptr %9, i64 16
  %118 = load i64, ptr %117, align 8
  %119 = getelementptr inbounds %struct.pair, ptr %116, i64 %118
  %120 = icmp sgt i64 %118, 0
  br i1 %120, label %121, label %141

121:                                              ; preds = %114, %138
  %122 = phi ptr [ %139, %138 ], [ %116, %114 ]
  %123 = load i64, ptr %122, align 8
  %124 = getelementptr inbounds i64, ptr %15, i64 %123
  %125 = load i64, ptr %124, align 8
  %126 = getelementptr inbounds nuw i8, ptr %122, i64 8
  %127 = load i64, ptr %126, align 8
  %128 = getelementptr inbounds i64, ptr %15, i64 %127
  %129 = load i64, ptr %128, align 8
  %130 = sub nsw i64 %125, %129
  %131 = getelementptr inbounds nuw i8, ptr %122, i64 16
  %132 = load i64, ptr %131, align 8
  %133 = icmp slt i64 %132, %130
  br i1 %133, label %134, label %138

134:                                              ; preds = %121
  %135 = getelementptr inbounds nuw i8, ptr %122, i64 24
  %136 = load i64, ptr %135, align 8
  %137 = icmp slt i64 %130, %136
  br i1 %137, label %149, label %138

138:                                              ; preds = %134, %121
  %139 = getelementptr inbounds nuw i8, ptr %122, i64 32
  %140 = icmp ult ptr %139, %119
  br i1 %140, label %121, label %141, !llvm.loop !8

141:                                              ; preds = %138, %114
  %142 = load ptr, ptr @tcl_python, align 8
  %143 = tail call ptr %142()
  %144 = getelementptr inbounds nuw i8, ptr %9, i64 24
  %145 = load ptr, ptr %144, align 8
  %146 = tail call i32 %145(ptr noundef %13)
  %147 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @tcl_python, i64 8), align 8
  tail call void %147(ptr noundef %143)
  %148 = sext i32 %146 to i64
  br label %149

149:                                              ; preds = %48, %54, %61, %31, %99, %103, %80, %92, %134, %3, %23, %141
  %150 = phi i64 [ %148, %141 ], [ 2, %23 ], [ 2, %3 ], [ 2, %134 ], [ 2, %92 ], [ 2, %80 ], [ 2, %103 ], [ 2, %99 ], [ 2, %31 ], [ 2, %61 ], [ 2, %54 ], [ 2, %48 ]
  %151 = tail call ptr %4(i64 noundef %150)
  ret ptr %151
}

; Function Attrs: uwtable
define ptr @tcl_call_torch(ptr noundef %0, ptr nocapture noundef readonly %1, i64 noundef %2) local_unnamed_addr #0 {
  %4 = alloca i32, align 4
  %5 = alloca i64, align 8
  %6 = alloca i64, align 8
  %7 = alloca ptr, align 8
  %8 = alloca ptr, align 8
  %9 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @tcl_torch, i64 40), align 8
  %10 = tail call i1 %9(i1 noundef zeroext false)
  br i1 %10, label %21, label %11

11:                                               ; preds = %3
  %12 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @tcl_torch, i64 48), align 8
  %13 = load i64, ptr getelementptr inbounds nuw (i8, ptr @tcl_torch, i64 64), align 8
  %14 = trunc i64 %13 to i16
  %15 = tail call i1 %12(i16 noundef zeroext %14)
  br i1 %15, label %21, label %16

16:                                               ; preds = %11
  %17 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @tcl_torch, i64 56), align 8
  %18 = tail call ptr %17()
  %19 = load ptr, ptr %18, align 8
  %20 = icmp eq ptr %19, null
  br i1 %20, label %24, label %21

21:                                               ; preds = %3, %11, %16
  %22 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @tcl_python, i64 24), align 8
  %23 = tail call ptr %22(i64 noundef 2)
  br label %188

24:                                               ; preds = %16
  %25 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @tcl_python, i64 24), align 8
  %26 = load ptr, ptr %1, align 8
  %27 = getelementptr inbounds nuw i8, ptr %1, i64 8
  %28 = load ptr, ptr %27, align 8
  %29 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @tcl_python, i64 16), align 8
  %30 = tail call ptr %29(ptr noundef %0)
  %31 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @tcl_python, i64 16), align 8
  %32 = getelementptr inbounds nuw i8, ptr %1, i64 16
  %33 = load ptr, ptr %32, align 8
  %34 = tail call ptr %31(ptr noundef %33)
  %35 = getelementptr inbounds nuw i8, ptr %34, i64 8
  %36 = load ptr, ptr %35, align 8
  %37 = load i64, ptr %30, align 8
  %38 = getelementptr inbounds nuw i8, ptr %30, i64 8
  %39 = load i64, ptr %38, align 8
  %40 = add i64 %39, %37
  %41 = getelementptr inbounds nuw i8, ptr %26, i64 16
  %42 = load i64, ptr %41, align 8
  %43 = icmp eq i64 %42, %37
  br i1 %43, label %44, label %185

44:                                               ; preds = %24
  %45 = getelementptr inbounds nuw i8, ptr %28, i64 16
  %46 = load i64, ptr %45, align 8
  %47 = icmp eq i64 %46, %39
  br i1 %47, label %48, label %185

48:                                               ; preds = %44
  %49 = icmp sgt i64 %40, 0
  br i1 %49, label %50, label %150

50:                                               ; preds = %48
  %51 = getelementptr inbounds nuw i8, ptr %30, i64 32
  br label %52

52:                                               ; preds = %144, %50
  %53 = phi i64 [ 0, %50 ], [ %148, %144 ]
  %54 = getelementptr inbounds nuw [0 x %struct.wanted], ptr %51, i64 0, i64 %53
  %55 = load i64, ptr %30, align 8
  %56 = icmp slt i64 %53, %55
  %57 = load i64, ptr getelementptr inbounds nuw (i8, ptr @tcl_python, i64 32), align 8
  %58 = getelementptr inbounds i8, ptr %26, i64 %57
  %59 = getelementptr inbounds nuw ptr, ptr %58, i64 %53
  %60 = sub nsw i64 %53, %55
  %61 = getelementptr inbounds i8, ptr %28, i64 %57
  %62 = getelementptr inbounds ptr, ptr %61, i64 %60
  %63 = select i1 %56, ptr %59, ptr %62
  %64 = load ptr, ptr %63, align 8
  %65 = getelementptr inbounds nuw i8, ptr %64, i64 8
  %66 = load i64, ptr %65, align 8
  %67 = load i64, ptr %54, align 8
  %68 = icmp eq i64 %66, %67
  br i1 %68, label %69, label %185

69:                                               ; preds = %52
  %70 = getelementptr inbounds nuw i8, ptr %64, i64 16
  %71 = load ptr, ptr %70, align 8
  %72 = load i64, ptr getelementptr inbounds nuw (i8, ptr @tcl_torch, i64 72), align 8
  %73 = getelementptr inbounds i8, ptr %71, i64 %72
  %74 = load i64, ptr %73, align 8
  %75 = getelementptr inbounds nuw i8, ptr %54, i64 32
  %76 = load i64, ptr %75, align 8
  %77 = icmp eq i64 %74, %76
  br i1 %77, label %78, label %185

78:                                               ; preds = %69
  call void @llvm.lifetime.start.p0(i64 4, ptr nonnull %4) #2
  call void @llvm.lifetime.start.p0(i64 8, ptr nonnull %5) #2
  call void @llvm.lifetime.start.p0(i64 8, ptr nonnull %6) #2
  call void @llvm.lifetime.start.p0(i64 8, ptr nonnull %7) #2
  call void @llvm.lifetime.start.p0(i64 8, ptr nonnull %8) #2
  %79 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @tcl_torch, i64 8), align 8
  %80 = call i32 %79(ptr noundef nonnull %70, ptr noundef nonnull %4)
  %81 = load ptr, ptr @tcl_torch, align 8
  %82 = call i32 %81(ptr noundef nonnull %70, ptr noundef nonnull %5)
  %83 = load i32, ptr %4, align 4
  %84 = sext i32 %83 to i64
  %85 = getelementptr inbounds nuw i8, ptr %54, i64 8
  %86 = load i64, ptr %85, align 8
  %87 = icmp eq i64 %86, %84
  br i1 %87, label %88, label %136

88:                                               ; preds = %78
  %89 = load i64, ptr %5, align 8
  %90 = getelementptr inbounds nuw i8, ptr %54, i64 16
  %91 = load i64, ptr %90, align 8
  %92 = icmp eq i64 %89, %91
  br i1 %92, label %93, label %136

93:                                               ; preds = %88
  %94 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @tcl_torch, i64 16), align 8
  %95 = call i32 %94(ptr noundef nonnull %70, ptr noundef nonnull %7)
  %96 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @tcl_torch, i64 24), align 8
  %97 = call i32 %96(ptr noundef nonnull %70, ptr noundef nonnull %8)
  %98 = load ptr, ptr %7, align 8
  %99 = load ptr, ptr %8, align 8
  %100 = getelementptr inbounds nuw i8, ptr %54, i64 48
  %101 = load ptr, ptr %100, align 8
  %102 = load i64, ptr %90, align 8
  %103 = icmp slt i64 %102, 1
  br i1 %103, label %126, label %107

104:                                              ; preds = %107
  %105 = add nuw nsw i64 %108, 1
  %106 = icmp eq i64 %105, %102
  br i1 %106, label %114, label %107, !llvm.loop !5

107:                                              ; preds = %93, %104
  %108 = phi i64 [ %105, %104 ], [ 0, %93 ]
  %109 = getelementptr inbounds nuw i64, ptr %98, i64 %108
  %110 = load i64, ptr %109, align 8
  %111 = getelementptr inbounds nuw i64, ptr %101, i64 %108
  %112 = load i64, ptr %111, align 8
  %113 = icmp eq i64 %110, %112
  br i1 %113, label %104, label %136

114:                                              ; preds = %104
  %115 = getelementptr inbounds nuw i64, ptr %101, i64 %102
  br label %119

116:                                              ; preds = %119
  %117 = add nuw nsw i64 %120, 1
  %118 = icmp eq i64 %117, %102
  br i1 %118, label %126, label %119, !llvm.loop !5

119:                                              ; preds = %116, %114
  %120 = phi i64 [ %117, %116 ], [ 0, %114 ]
  %121 = getelementptr inbounds nuw i64, ptr %99, i64 %120
  %122 = load i64, ptr %121, align 8
  %123 = getelementptr inbounds nuw i64, ptr %115, i64 %120
  %124 = load i64, ptr %123, align 8
  %125 = icmp eq i64 %122, %124
  br i1 %125, label %116, label %136

126:                                              ; preds = %116, %93
  %127 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @tcl_torch, i64 32), align 8
  %128 = call i32 %127(ptr noundef nonnull %70, ptr noundef nonnull %6)
  %129 = load i64, ptr %6, align 8
  %130 = icmp eq i64 %129, 0
  br i1 %130, label %131, label %137

131:                                              ; preds = %126
  %132 = getelementptr inbounds nuw i8, ptr %54, i64 40
  %133 = load i64, ptr %132, align 8
  %134 = icmp eq i64 %133, 0
  br i1 %134, label %135, label %136

135:                                              ; preds = %131
  call void @llvm.lifetime.end.p0(i64 8, ptr nonnull %8) #2
  call void @llvm.lifetime.end.p0(i64 8, ptr nonnull %7) #2
  call void @llvm.lifetime.end.p0(i64 8, ptr nonnull %6) #2
  call void @llvm.lifetime.end.p0(i64 8, ptr nonnull %5) #2
  call void @llvm.lifetime.end.p0(i64 4, ptr nonnull %4) #2
  br label %139

136:                                              ; preds = %88, %78, %131, %107, %119
  call void @llvm.lifetime.end.p0(i64 8, ptr nonnull %8) #2
  call void @llvm.lifetime.end.p0(i64 8, ptr nonnull %7) #2
  call void @llvm.lifetime.end.p0(i64 8, ptr nonnull %6) #2
  call void @llvm.lifetime.end.p0(i64 8, ptr nonnull %5) #2
  call void @llvm.lifetime.end.p0(i64 4, ptr nonnull %4) #2
  br label %185

137:                                              ; preds = %126
  call void @llvm.lifetime.end.p0(i64 8, ptr nonnull %8) #2
  call void @llvm.lifetime.end.p0(i64 8, ptr nonnull %7) #2
  call void @llvm.lifetime.end.p0(i64 8, ptr nonnull %6) #2
  call void @llvm.lifetime.end.p0(i64 8, ptr nonnull %5) #2
  call void @llvm.lifetime.end.p0(i64 4, ptr nonnull %4) #2
  %138 = icmp eq i64 %129, -1
  br i1 %138, label %185, label %139

139:                                              ; preds = %135, %137
  %140 = getelementptr inbounds nuw i8, ptr %54, i64 24
  %141 = load i64, ptr %140, align 8
  %142 = and i64 %141, %129
  %143 = icmp eq i64 %142, 0
  br i1 %143, label %144, label %185

144:                                              ; preds = %139
  %145 = getelementptr inbounds nuw i8, ptr %54, i64 56
  %146 = load i64, ptr %145, align 8
  %147 = getelementptr inbounds i64, ptr %36, i64 %146
  store i64 %129, ptr %147, align 8
  %148 = add nuw nsw i64 %53, 1
  %149 = icmp eq i64 %148, %40
  br i1 %149, label %150, label %52, !llvm.loop !7

150:                                              ; preds = %144, %48
  %151 = getelementptr inbounds nuw i8, ptr %30, i64 32
  %152 = getelementptr inbounds [0 x %struct.wanted], ptr %151, i64 0, i64 %40
  %153 = getelementptr inbounds nuw i8, ptr %30, i64 16
  %154 = load i64, ptr %153, align 8
  %155 = getelementptr inbounds %struct.pair, ptr %152, i64 %154
  %156 = icmp sgt i64 %154, 0
  br i1 %156, label %157, label %177

157:                                              ; preds = %150, %174
  %158 = phi ptr [ %175, %174 ], [ %152, %150 ]
  %159 = load i64, ptr %158, align 8
  %160 = getelementptr inbounds i64, ptr %36, i64 %159
  %161 = load i64, ptr %160, align 8
  %162 = getelementptr inbounds nuw i8, ptr %158, i64 8
  %163 = load i64, ptr %162, align 8
  %164 = getelementptr inbounds i64, ptr %36, i64 %163
  %165 = load i64, ptr %164, align 8
  %166 = sub nsw i64 %161, %165
  %167 = getelementptr inbounds nuw i8, ptr %158, i64 16
  %168 = load i64, ptr %167, align 8
  %169 = icmp slt i64 %168, %166
  br i1 %169, label %170, label %174

170:                                              ; preds = %157
  %171 = getelementptr inbounds nuw i8, ptr %158, i64 24
  %172 = load i64, ptr %171, align 8
  %173 = icmp slt i64 %166, %172
  br i1 %173, label %185, label %174

174:                                              ; preds = %170, %157
  %175 = getelementptr inbounds nuw i8, ptr %158, i64 32
  %176 = icmp ult ptr %175, %155
  br i1 %176, label %157, label %177, !llvm.loop !8

177:                                              ; preds = %174, %150
  %178 = load ptr, ptr @tcl_python, align 8
  %179 = call ptr %178()
  %180 = getelementptr inbounds nuw i8, ptr %30, i64 24
  %181 = load ptr, ptr %180, align 8
  %182 = call i32 %181(ptr noundef %34)
  %183 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @tcl_python, i64 8), align 8
  call void %183(ptr noundef %179)
  %184 = sext i32 %182 to i64
  br label %185

185:                                              ; preds = %69, %52, %137, %139, %170, %136, %24, %44, %177
  %186 = phi i64 [ %184, %177 ], [ 2, %44 ], [ 2, %24 ], [ 2, %136 ], [ 2, %170 ], [ 2, %139 ], [ 2, %137 ], [ 2, %52 ], [ 2, %69 ]
  %187 = call ptr %25(i64 noundef %186)
  br label %188

188:                                              ; preds = %185, %21
  %189 = phi ptr [ %187, %185 ], [ %23, %21 ]
  ret ptr %189
}

; Function Attrs: uwtable
define ptr @tcl_call_cupy(ptr noundef %0, ptr nocapture noundef readonly %1, i64 noundef %2) local_unnamed_addr #0 {
  %4 = load ptr, ptr %1, align 8
  %5 = getelementptr inbounds nuw i8, ptr %1, i64 8
  %6 = load ptr, ptr %5, align 8
  %7 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @tcl_python, i64 16), align 8
  %8 = tail call ptr %7(ptr noundef %0)
  %9 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @tcl_python, i64 16), align 8
  %10 = getelementptr inbounds nuw i8, ptr %1, i64 16
  %11 = load ptr, ptr %10, align 8
  %12 = tail call ptr %9(ptr noundef %11)
  %13 = load i64, ptr %8, align 8
  %14 = getelementptr inbounds nuw i8, ptr %8, i64 8
  %15 = load i64, ptr %14, align 8
  %16 = add i64 %15, %13
  %17 = getelementptr inbounds nuw i8, ptr %4, i64 16
  %18 = load i64, ptr %17, align 8
  %19 = icmp eq i64 %18, %13
  br i1 %19, label %20, label %142

20:                                               ; preds = %3
  %21 = getelementptr inbounds nuw i8, ptr %6, i64 16
  %22 = load i64, ptr %21, align 8
  %23 = icmp eq i64 %22, %15
  br i1 %23, label %24, label %142

24:                                               ; preds = %20
  %25 = icmp sgt i64 %16, 0
  br i1 %25, label %26, label %115

26:                                               ; preds = %24
  %27 = getelementptr inbounds nuw i8, ptr %8, i64 32
  br label %28

28:                                               ; preds = %109, %26
  %29 = phi i64 [ 0, %26 ], [ %113, %109 ]
  %30 = getelementptr inbounds nuw [0 x %struct.wanted], ptr %27, i64 0, i64 %29
  %31 = load i64, ptr %8, align 8
  %32 = icmp slt i64 %29, %31
  %33 = load i64, ptr getelementptr inbounds nuw (i8, ptr @tcl_python, i64 32), align 8
  %34 = getelementptr inbounds i8, ptr %4, i64 %33
  %35 = getelementptr inbounds nuw ptr, ptr %34, i64 %29
  %36 = sub nsw i64 %29, %31
  %37 = getelementptr inbounds i8, ptr %6, i64 %33
  %38 = getelementptr inbounds ptr, ptr %37, i64 %36
  %39 = select i1 %32, ptr %35, ptr %38
  %40 = load ptr, ptr %39, align 8
  %41 = getelementptr inbounds nuw i8, ptr %40, i64 8
  %42 = load i64, ptr %41, align 8
  %43 = load i64, ptr %30, align 8
  %44 = icmp eq i64 %42, %43
  br i1 %44, label %45, label %142

45:                                               ; preds = %28
  %46 = getelementptr inbounds nuw i8, ptr %40, i64 104
  %47 = load i64, ptr %46, align 8
  %48 = getelementptr inbounds nuw i8, ptr %30, i64 8
  %49 = load i64, ptr %48, align 8
  %50 = icmp eq i64 %47, %49
  br i1 %50, label %51, label %142

51:                                               ; preds = %45
  %52 = getelementptr inbounds nuw i8, ptr %40, i64 112
  %53 = load ptr, ptr %52, align 8
  %54 = getelementptr inbounds nuw i8, ptr %53, i64 32
  %55 = load i32, ptr %54, align 8
  %56 = sext i32 %55 to i64
  %57 = getelementptr inbounds nuw i8, ptr %30, i64 32
  %58 = load i64, ptr %57, align 8
  %59 = icmp eq i64 %58, %56
  br i1 %59, label %60, label %142

60:                                               ; preds = %51
  %61 = getelementptr inbounds nuw i8, ptr %40, i64 48
  %62 = load ptr, ptr %61, align 8
  %63 = getelementptr inbounds nuw i8, ptr %40, i64 40
  %64 = load ptr, ptr %63, align 8
  %65 = ptrtoint ptr %62 to i64
  %66 = ptrtoint ptr %64 to i64
  %67 = sub i64 %65, %66
  %68 = ashr exact i64 %67, 3
  %69 = getelementptr inbounds nuw i8, ptr %30, i64 16
  %70 = load i64, ptr %69, align 8
  %71 = icmp eq i64 %68, %70
  br i1 %71, label %72, label %142

72:                                               ; preds = %60
  %73 = getelementptr inbounds nuw i8, ptr %40, i64 64
  %74 = load ptr, ptr %73, align 8
  %75 = getelementptr inbounds nuw i8, ptr %30, i64 48
  %76 = load ptr, ptr %75, align 8
  %77 = icmp slt i64 %68, 1
  br i1 %77, label %100, label %81

78:                                               ; preds = %81
  %79 = add nuw nsw i64 %82, 1
  %80 = icmp eq i64 %79, %68
  br i1 %80, label %88, label %81, !llvm.loop !5

81:                                               ; preds = %72, %78
  %82 = phi i64 [ %79, %78 ], [ 0, %72 ]
  %83 = getelementptr inbounds nuw i64, ptr %64, i64 %82
  %84 = load i64, ptr %83, align 8
  %85 = getelementptr inbounds nuw i64, ptr %76, i64 %82
  %86 = load i64, ptr %85, align 8
  %87 = icmp eq i64 %84, %86
  br i1 %87, label %78, label %142

88:                                               ; preds = %78
  %89 = getelementptr inbounds nuw i8, ptr %76, i64 %67
  br label %93

90:                                               ; preds = %93
  %91 = add nuw nsw i64 %94, 1
  %92 = icmp eq i64 %91, %68
  br i1 %92, label %100, label %93, !llvm.loop !5

93:                                               ; preds = %90, %88
  %94 = phi i64 [ %91, %90 ], [ 0, %88 ]
  %95 = getelementptr inbounds nuw i64, ptr %74, i64 %94
  %96 = load i64, ptr %95, align 8
  %97 = getelementptr inbounds nuw i64, ptr %89, i64 %94
  %98 = load i64, ptr %97, align 8
  %99 = icmp eq i64 %96, %98
  br i1 %99, label %90, label %142

100:                                              ; preds = %90, %72
  %101 = getelementptr inbounds nuw i8, ptr %53, i64 24
  %102 = load i64, ptr %101, align 8
  %103 = icmp eq i64 %102, -1
  br i1 %103, label %142, label %104

104:                                              ; preds = %100
  %105 = getelementptr inbounds nuw i8, ptr %30, i64 24
  %106 = load i64, ptr %105, align 8
  %107 = and i64 %106, %102
  %108 = icmp eq i64 %107, 0
  br i1 %108, label %109, label %142

109:                                              ; preds = %104
  %110 = getelementptr inbounds nuw i8, ptr %30, i64 56
  %111 = load i64, ptr %110, align 8
  %112 = getelementptr inbounds i64, ptr %12, i64 %111
  store i64 %102, ptr %112, align 8
  %113 = add nuw nsw i64 %29, 1
  %114 = icmp eq i64 %113, %16
  br i1 %114, label %115, label %28, !llvm.loop !7

115:                                              ; preds = %109, %24
  %116 = getelementptr inbounds nuw i8, ptr %8, i64 32
  %117 = getelementptr inbounds [0 x %struct.wanted], ptr %116, i64 0, i64 %16
  %118 = getelementptr inbounds nuw i8, ptr %8, i64 16
  %119 = load i64, ptr %118, align 8
  %120 = getelementptr inbounds %struct.pair, ptr %117, i64 %119
  %121 = icmp sgt i64 %119, 0
  br i1 %121, label %122, label %142

122:                                              ; preds = %115, %139
  %123 = phi ptr [ %140, %139 ], [ %117, %115 ]
  %124 = load i64, ptr %123, align 8
  %125 = getelementptr inbounds i64, ptr %12, i64 %124
  %126 = load i64, ptr %125, align 8
  %127 = getelementptr inbounds nuw i8, ptr %123, i64 8
  %128 = load i64, ptr %127, align 8
  %129 = getelementptr inbounds i64, ptr %12, i64 %128
  %130 = load i64, ptr %129, align 8
  %131 = sub nsw i64 %126, %130
  %132 = getelementptr inbounds nuw i8, ptr %123, i64 16
  %133 = load i64, ptr %132, align 8
  %134 = icmp slt i64 %133, %131
  br i1 %134, label %135, label %139

135:                                              ; preds = %122
  %136 = getelementptr inbounds nuw i8, ptr %123, i64 24
  %137 = load i64, ptr %136, align 8
  %138 = icmp slt i64 %131, %137
  br i1 %138, label %142, label %139

139:                                              ; preds = %135, %122
  %140 = getelementptr inbounds nuw i8, ptr %123, i64 32
  %141 = icmp ult ptr %140, %120
  br i1 %141, label %122, label %142, !llvm.loop !8

142:                                              ; preds = %45, %51, %60, %100, %104, %28, %81, %93, %139, %135, %115, %3, %20
  %143 = phi i64 [ 2, %20 ], [ 2, %3 ], [ 0, %115 ], [ 0, %139 ], [ 2, %135 ], [ 2, %93 ], [ 2, %81 ], [ 2, %28 ], [ 2, %104 ], [ 2, %100 ], [ 2, %60 ], [ 2, %51 ], [ 2, %45 ]
  %144 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @tcl_python, i64 24), align 8
  %145 = tail call ptr %144(i64 noundef %143)
  ret ptr %145
}

; Function Attrs: mustprogress nocallback nofree nosync nounwind willreturn memory(argmem: readwrite)
declare void @llvm.lifetime.start.p0(i64 immarg, ptr nocapture) #1

; Function Attrs: mustprogress nocallback nofree nosync nounwind willreturn memory(argmem: readwrite)
declare void @llvm.lifetime.end.p0(i64 immarg, ptr nocapture) #1

attributes #0 = { uwtable "no-trapping-math"="true" "stack-protector-buffer-size"="8" }
attributes #1 = { mustprogress nocallback nofree nosync nounwind willreturn memory(argmem: readwrite) }
attributes #2 = { nounwind }

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
