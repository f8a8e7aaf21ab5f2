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
  %14 = load i64, ptr %9, align 8
  %15 = getelementptr inbounds nuw i8, ptr %9, i64 8
  %16 = load i64, ptr %15, align 8
  %17 = add i64 %16, %14
  %18 = getelementptr inbounds nuw i8, ptr %5, i64 16
  %19 = load i64, ptr %18, align 8
  %20 = icmp eq i64 %19, %14
  br i1 %20, label %21, label %152

21:                                               ; preds = %3
  %22 = getelementptr inbounds nuw i8, ptr %7, i64 16
  %23 = load i64, ptr %22, align 8
  %24 = icmp eq i64 %23, %16
  br i1 %24, label %25, label %152

25:                                               ; preds = %21
  %26 = icmp sgt i64 %17, 0
  br i1 %26, label %27, label %114

27:                                               ; preds = %25
  %28 = getelementptr inbounds nuw i8, ptr %9, i64 32
  %29 = getelementptr inbounds nuw i8, ptr %13, i64 8
  br label %30

30:                                               ; preds = %107, %27
  %31 = phi i64 [ 0, %27 ], [ %112, %107 ]
  %32 = getelementptr inbounds nuw [0 x %struct.wanted], ptr %28, i64 0, i64 %31
  %33 = load i64, ptr %9, align 8
  %34 = icmp slt i64 %31, %33
  %35 = load i64, ptr getelementptr inbounds nuw (i8, ptr @tcl_python, i64 32), align 8
  %36 = getelementptr inbounds i8, ptr %5, i64 %35
  %37 = getelementptr inbounds nuw ptr, ptr %36, i64 %31
  %38 = sub nsw i64 %31, %33
  %39 = getelementptr inbounds i8, ptr %7, i64 %35
  %40 = getelementptr inbounds ptr, ptr %39, i64 %38
  %41 = select i1 %34, ptr %37, ptr %40
  %42 = load ptr, ptr %41, align 8
  %43 = getelementptr inbounds nuw i8, ptr %42, i64 8
  %44 = load i64, ptr %43, align 8
  %45 = load i64, ptr %32, align 8
  %46 = icmp eq i64 %44, %45
  br i1 %46, label %47, label %152

47:                                               ; preds = %30
  %48 = getelementptr inbounds nuw i8, ptr %42, i64 56
  %49 = load i64, ptr %48, align 8
  %50 = getelementptr inbounds nuw i8, ptr %32, i64 8
  %51 = load i64, ptr %50, align 8
  %52 = icmp eq i64 %49, %51
  br i1 %52, label %53, label %152

53:                                               ; preds = %47
  %54 = getelementptr inbounds nuw i8, ptr %42, i64 24
  %55 = load i32, ptr %54, align 8
  %56 = sext i32 %55 to i64
  %57 = getelementptr inbounds nuw i8, ptr %32, i64 16
  %58 = load i64, ptr %57, align 8
  %59 = icmp eq i64 %58, %56
  br i1 %59, label %60, label %152

60:                                               ; preds = %53
  %61 = getelementptr inbounds nuw i8, ptr %42, i64 64
  %62 = load i32, ptr %61, align 8
  %63 = sext i32 %62 to i64
  %64 = getelementptr inbounds nuw i8, ptr %32, i64 32
  %65 = load i64, ptr %64, align 8
  %66 = and i64 %65, %63
  %67 = icmp eq i64 %66, %65
  br i1 %67, label %68, label %152

68:                                               ; preds = %60
  %69 = getelementptr inbounds nuw i8, ptr %42, i64 32
  %70 = load ptr, ptr %69, align 8
  %71 = getelementptr inbounds nuw i8, ptr %42, i64 40
  %72 = load ptr, ptr %71, align 8
  %73 = getelementptr inbounds nuw i8, ptr %32, i64 48
  %74 = load ptr, ptr %73, align 8
  %75 = icmp slt i32 %55, 1
  br i1 %75, label %98, label %79

76:                                               ; preds = %79
  %77 = add nuw nsw i64 %80, 1
  %78 = icmp eq i64 %77, %56
  br i1 %78, label %86, label %79, !llvm.loop !5

79:                                               ; preds = %68, %76
  %80 = phi i64 [ %77, %76 ], [ 0, %68 ]
  %81 = getelementptr inbounds nuw i64, ptr %70, i64 %80
  %82 = load i64, ptr %81, align 8
  %83 = getelementptr inbounds nuw i64, ptr %74, i64 %80
  %84 = load i64, ptr %83, align 8
  %85 = icmp eq i64 %82, %84
  br i1 %85, label %76, label %152

86:                                               ; preds = %76
  %87 = getelementptr inbounds nuw i64, ptr %74, i64 %56
  br label %91

88:                                               ; preds = %91
  %89 = add nuw nsw i64 %92, 1
  %90 = icmp eq i64 %89, %56
  br i1 %90, label %98, label %91, !llvm.loop !5

91:                                               ; preds = %88, %86
  %92 = phi i64 [ %89, %88 ], [ 0, %86 ]
  %93 = getelementptr inbounds nuw i64, ptr %72, i64 %92
  %94 = load i64, ptr %93, align 8
  %95 = getelementptr inbounds nuw i64, ptr %87, i64 %92
  %96 = load i64, ptr %95, align 8
  %97 = icmp eq i64 %94, %96
  br i1 %97, label %88, label %152

98:                                               ; preds = %88, %68
  %99 = getelementptr inbounds nuw i8, ptr %42, i64 16
  %100 = load i64, ptr %99, align 8
  %101 = icmp eq i64 %100, -1
  br i1 %101, label %152, label %102

102:                                              ; preds = %98
  %103 = getelementptr inbounds nuw i8, ptr %32, i64 24
  %104 = load i64, ptr %103, align 8
  %105 = and i64 %104, %100
  %106 = icmp eq i64 %105, 0
  br i1 %106, label %107, label %152

107:                                              ; preds = %102
  %108 = load ptr, ptr %29, align 8
  %109 = getelementptr inbounds nuw i8, ptr %32, i64 56
  %110 = load i64, ptr %109, align 8
  %111 = getelementptr inbounds i64, ptr %108, i64 %110
  store i64 %100, ptr %111, align 8
  %112 = add nuw nsw i64 %31, 1
  %113 = icmp eq i64 %112, %17
  br i1 %113, label %114, label %30, !llvm.loop !7

114:                                              ; preds = %107, %25
  %115 = getelementptr inbounds nuw i8, ptr %9, i64 32
  %116 = getelementptr inbounds [0 x %struct.wanted], ptr %115, i64 0, i64 %17
  %117 = getelementptr inbounds nuw i8, ptr %9, i64 16
  %118 = load i64, ptr %117, align 8
  %119 = getelementptr inbounds %struct.pair, ptr %116, i64 %118
  %120 = icmp sgt i64 %118, 0
  br i1 %120, label %121, label %144

121:                                              ; preds = %114
  %122 = getelementptr inbounds nuw i8, ptr %13, i64 8
  %123 = load ptr, ptr %122, align 8
  br label %124

124:                                              ; preds = %141, %121
  %125 = phi ptr [ %116, %121 ], [ %142, %141 ]
  %126 = load i64, ptr %125, align 8
  %127 = getelementptr inbounds i64, ptr %123, i64 %126
  %128 = load i64, ptr %127, align 8
  %129 = getelementptr inbounds nuw i8, ptr %125, i64 8
  %130 = load i64, ptr %129, align 8
  %131 = getelementptr inbounds i64, ptr %123, i64 %130
  %132 = load i64, ptr %131, align 8
  %133 = sub nsw i64 %128, %132
  %134 = getelementptr inbounds nuw i8, ptr %125, i64 16
  %135 = load i64, ptr %134, align 8
  %136 = icmp slt i64 %135, %133
  br i1 %136, label %137, label %141

137:                                              ; preds = %124
  %138 = getelementptr inbounds nuw i8, ptr %125, i64 24
  %139 = load i64, ptr %138, align 8
  %140 = icmp slt i64 %133, %139
  br i1 %140, label %152, label %141

141:                                              ; preds = %137, %124
  %142 = getelementptr inbounds nuw i8, ptr %125, i64 32
  %143 = icmp ult ptr %142, %119
  br i1 %143, label %124, label %144, !llvm.loop !8

144:                                              ; preds = %141, %114
  %145 = load ptr, ptr @tcl_python, align 8
  %146 = tail call ptr %145()
  %147 = getelementptr inbounds nuw i8, ptr %9, i64 24
  %148 = load ptr, ptr %147, align 8
  %149 = tail call i32 %148(ptr noundef %13)
  %150 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @tcl_python, i64 8), align 8
  tail call void %150(ptr noundef %146)
  %151 = sext i32 %149 to i64
  br label %152

152:                                              ; preds = %47, %53, %60, %30, %98, %102, %79, %91, %137, %3, %21, %144
  %153 = phi i64 [ 2, %21 ], [ 2, %3 ], [ %151, %144 ], [ 2, %137 ], [ 2, %91 ], [ 2, %79 ], [ 2, %102 ], [ 2, %98 ], [ 2, %30 ], [ 2, %60 ], [ 2, %53 ], [ 2, %47 ]
  %154 = tail call ptr %4(i64 noundef %153)
  ret ptr %154
}

; Function Attrs: uwtable
define ptr @tcl_call_torch(ptr noundef %0, ptr nocapture noundef readonly %1, i64 noundef %2) local_unnamed_addr #0 {
  %4 = alloca i32, align 4
  %5 = alloca i64, align 8
  %6 = alloca i64, align 8
  %7 = alloca ptr, align 8
  %8 = alloca ptr, align 8
  %9 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @tcl_torch, i64 40), align 8
  %10 = tail call i1 %9(i1 noundef false)
  br i1 %10, label %21, label %11

11:                                               ; preds = %3
  %12 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @tcl_torch, i64 48), align 8
  %13 = load i64, ptr getelementptr inbounds nuw (i8, ptr @tcl_torch, i64 64), align 8
  %14 = trunc i64 %13 to i16
  %15 = tail call i1 %12(i16 noundef %14)
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
  br label %191

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
  %35 = load i64, ptr %30, align 8
  %36 = getelementptr inbounds nuw i8, ptr %30, i64 8
  %37 = load i64, ptr %36, align 8
  %38 = add i64 %37, %35
  %39 = getelementptr inbounds nuw i8, ptr %26, i64 16
  %40 = load i64, ptr %39, align 8
  %41 = icmp eq i64 %40, %35
  br i1 %41, label %42, label %188

42:                                               ; preds = %24
  %43 = getelementptr inbounds nuw i8, ptr %28, i64 16
  %44 = load i64, ptr %43, align 8
  %45 = icmp eq i64 %44, %37
  br i1 %45, label %46, label %188

46:                                               ; preds = %42
  %47 = icmp sgt i64 %38, 0
  br i1 %47, label %48, label %150

48:                                               ; preds = %46
  %49 = getelementptr inbounds nuw i8, ptr %30, i64 32
  %50 = getelementptr inbounds nuw i8, ptr %34, i64 8
  br label %51

51:                                               ; preds = %143, %48
  %52 = phi i64 [ 0, %48 ], [ %148, %143 ]
  %53 = getelementptr inbounds nuw [0 x %struct.wanted], ptr %49, i64 0, i64 %52
  %54 = load i64, ptr %30, align 8
  %55 = icmp slt i64 %52, %54
  %56 = load i64, ptr getelementptr inbounds nuw (i8, ptr @tcl_python, i64 32), align 8
  %57 = getelementptr inbounds i8, ptr %26, i64 %56
  %58 = getelementptr inbounds nuw ptr, ptr %57, i64 %52
  %59 = sub nsw i64 %52, %54
  %60 = getelementptr inbounds i8, ptr %28, i64 %56
  %61 = getelementptr inbounds ptr, ptr %60, i64 %59
  %62 = select i1 %55, ptr %58, ptr %61
  %63 = load ptr, ptr %62, align 8
  %64 = getelementptr inbounds nuw i8, ptr %63, i64 8
  %65 = load i64, ptr %64, align 8
  %66 = load i64, ptr %53, align 8
  %67 = icmp eq i64 %65, %66
  br i1 %67, label %68, label %188

68:                                               ; preds = %51
  %69 = getelementptr inbounds nuw i8, ptr %63, i64 16
  %70 = load ptr, ptr %69, align 8
  %71 = load i64, ptr getelementptr inbounds nuw (i8, ptr @tcl_torch, i64 72), align 8
  %72 = getelementptr inbounds i8, ptr %70, i64 %71
  %73 = load i64, ptr %72, align 8
  %74 = getelementptr inbounds nuw i8, ptr %53, i64 32
  %75 = load i64, ptr %74, align 8
  %76 = icmp eq i64 %73, %75
  br i1 %76, label %77, label %188

77:                                               ; preds = %68
  call void @llvm.lifetime.start.p0(i64 4, ptr nonnull %4) #2
  call void @llvm.lifetime.start.p0(i64 8, ptr nonnull %5) #2
  call void @llvm.lifetime.start.p0(i64 8, ptr nonnull %6) #2
  call void @llvm.lifetime.start.p0(i64 8, ptr nonnull %7) #2
  call void @llvm.lifetime.start.p0(i64 8, ptr nonnull %8) #2
  %78 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @tcl_torch, i64 8), align 8
  %79 = call i32 %78(ptr noundef nonnull %69, ptr noundef nonnull %4)
  %80 = load ptr, ptr @tcl_torch, align 8
  %81 = call i32 %80(ptr noundef nonnull %69, ptr noundef nonnull %5)
  %82 = load i32, ptr %4, align 4
  %83 = sext i32 %82 to i64
  %84 = getelementptr inbounds nuw i8, ptr %53, i64 8
  %85 = load i64, ptr %84, align 8
  %86 = icmp eq i64 %85, %83
  br i1 %86, label %87, label %135

87:                                               ; preds = %77
  %88 = load i64, ptr %5, align 8
  %89 = getelementptr inbounds nuw i8, ptr %53, i64 16
  %90 = load i64, ptr %89, align 8
  %91 = icmp eq i64 %88, %90
  br i1 %91, label %92, label %135

92:                                               ; preds = %87
  %93 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @tcl_torch, i64 16), align 8
  %94 = call i32 %93(ptr noundef nonnull %69, ptr noundef nonnull %7)
  %95 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @tcl_torch, i64 24), align 8
  %96 = call i32 %95(ptr noundef nonnull %69, ptr noundef nonnull %8)
  %97 = load ptr, ptr %7, align 8
  %98 = load ptr, ptr %8, align 8
  %99 = getelementptr inbounds nuw i8, ptr %53, i64 48
  %100 = load ptr, ptr %99, align 8
  %101 = load i64, ptr %89, align 8
  %102 = icmp slt i64 %101, 1
  br i1 %102, label %125, label %106

103:                                              ; preds = %106
  %104 = add nuw nsw i64 %107, 1
  %105 = icmp eq i64 %104, %101
  br i1 %105, label %113, label %106, !llvm.loop !5

106:                                              ; preds = %92, %103
  %107 = phi i64 [ %104, %103 ], [ 0, %92 ]
  %108 = getelementptr inbounds nuw i64, ptr %97, i64 %107
  %109 = load i64, ptr %108, align 8
  %110 = getelementptr inbounds nuw i64, ptr %100, i64 %107
  %111 = load i64, ptr %110, align 8
  %112 = icmp eq i64 %109, %111
  br i1 %112, label %103, label %135

113:                                              ; preds = %103
  %114 = getelementptr inbounds nuw i64, ptr %100, i64 %101
  br label %118

115:                                              ; preds = %118
  %116 = add nuw nsw i64 %119, 1
  %117 = icmp eq i64 %116, %101
  br i1 %117, label %125, label %118, !llvm.loop !5

118:                                              ; preds = %115, %113
  %119 = phi i64 [ %116, %115 ], [ 0, %113 ]
  %120 = getelementptr inbounds nuw i64, ptr %98, i64 %119
  %121 = load i64, ptr %120, align 8
  %122 = getelementptr inbounds nuw i64, ptr %114, i64 %119
  %123 = load i64, ptr %122, align 8
  %124 = icmp eq i64 %121, %123
  br i1 %124, label %115, label %135

125:                                              ; preds = %115, %92
  %126 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @tcl_torch, i64 32), align 8
  %127 = call i32 %126(ptr noundef nonnull %69, ptr noundef nonnull %6)
  %128 = load i64, ptr %6, align 8
  %129 = icmp eq i64 %128, 0
  br i1 %129, label %130, label %136

130:                                              ; preds = %125
  %131 = getelementptr inbounds nuw i8, ptr %53, i64 40
  %132 = load i64, ptr %131, align 8
  %133 = icmp eq i64 %132, 0
  br i1 %133, label %134, label %135

134:                                              ; preds = %130
  call void @llvm.lifetime.end.p0(i64 8, ptr nonnull %8) #2
  call void @llvm.lifetime.end.p0(i64 8, ptr nonnull %7) #2
  call void @llvm.lifetime.end.p0(i64 8, ptr nonnull %6) #2
  call void @llvm.lifetime.end.p0(i64 8, ptr nonnull %5) #2
  call void @llvm.lifetime.end.p0(i64 4, ptr nonnull %4) #2
  br label %138

135:                                              ; preds = %87, %77, %130, %106, %118
  call void @llvm.lifetime.end.p0(i64 8, ptr nonnull %8) #2
  call void @llvm.lifetime.end.p0(i64 8, ptr nonnull %7) #2
  call void @llvm.lifetime.end.p0(i64 8, ptr nonnull %6) #2
  call void @llvm.lifetime.end.p0(i64 8, ptr nonnull %5) #2
  call void @llvm.lifetime.end.p0(i64 4, ptr nonnull %4) #2
  br label %188

136:                                              ; preds = %125
  call void @llvm.lifetime.end.p0(i64 8, ptr nonnull %8) #2
  call void @llvm.lifetime.end.p0(i64 8, ptr nonnull %7) #2
  call void @llvm.lifetime.end.p0(i64 8, ptr nonnull %6) #2
  call void @llvm.lifetime.end.p0(i64 8, ptr nonnull %5) #2
  call void @llvm.lifetime.end.p0(i64 4, ptr nonnull %4) #2
  %137 = icmp eq i64 %128, -1
  br i1 %137, label %188, label %138

138:                                              ; preds = %134, %136
  %139 = getelementptr inbounds nuw i8, ptr %53, i64 24
  %140 = load i64, ptr %139, align 8
  %141 = and i64 %140, %128
  %142 = icmp eq i64 %141, 0
  br i1 %142, label %143, label %188

143:                                              ; preds = %138
  %144 = load ptr, ptr %50, align 8
  %145 = getelementptr inbounds nuw i8, ptr %53, i64 56
  %146 = load i64, ptr %145, align 8
  %147 = getelementptr inbounds i64, ptr %144, i64 %146
  store i64 %128, ptr %147, align 8
  %148 = add nuw nsw i64 %52, 1
  %149 = icmp eq i64 %148, %38
  br i1 %149, label %150, label %51, !llvm.loop !7

150:                                              ; preds = %143, %46
  %151 = getelementptr inbounds nuw i8, ptr %30, i64 32
  %152 = getelementptr inbounds [0 x %struct.wanted], ptr %151, i64 0, i64 %38
  %153 = getelementptr inbounds nuw i8, ptr %30, i64 16
  %154 = load i64, ptr %153, align 8
  %155 = getelementptr inbounds %struct.pair, ptr %152, i64 %154
  %156 = icmp sgt i64 %154, 0
  br i1 %156, label %157, label %180

157:                                              ; preds = %150
  %158 = getelementptr inbounds nuw i8, ptr %34, i64 8
  %159 = load ptr, ptr %158, align 8
  br label %160

160:                                              ; preds = %177, %157
  %161 = phi ptr [ %152, %157 ], [ %178, %177 ]
  %162 = load i64, ptr %161, align 8
  %163 = getelementptr inbounds i64, ptr %159, i64 %162
  %164 = load i64, ptr %163, align 8
  %165 = getelementptr inbounds nuw i8, ptr %161, i64 8
  %166 = load i64, ptr %165, align 8
  %167 = getelementptr inbounds i64, ptr %159, i64 %166
  %168 = load i64, ptr %167, align 8
  %169 = sub nsw i64 %164, %168
  %170 = getelementptr inbounds nuw i8, ptr %161, i64 16
  %171 = load i64, ptr %170, align 8
  %172 = icmp slt i64 %171, %169
  br i1 %172, label %173, label %177

173:                                              ; preds = %160
  %174 = getelementptr inbounds nuw i8, ptr %161, i64 24
  %175 = load i64, ptr %174, align 8
  %176 = icmp slt i64 %169, %175
  br i1 %176, label %188, label %177

177:                                              ; preds = %173, %160
  %178 = getelementptr inbounds nuw i8, ptr %161, i64 32
  %179 = icmp ult ptr %178, %155
  br i1 %179, label %160, label %180, !llvm.loop !8

180:                                              ; preds = %177, %150
  %181 = load ptr, ptr @tcl_python, align 8
  %182 = call ptr %181()
  %183 = getelementptr inbounds nuw i8, ptr %30, i64 24
  %184 = load ptr, ptr %183, align 8
  %185 = call i32 %184(ptr noundef %34)
  %186 = load ptr, ptr getelementptr inbounds nuw (i8, ptr @tcl_python, i64 8), align 8
  call void %186(ptr noundef %182)
  %187 = sext i32 %185 to i64
  br label %188

188:                                              ; preds = %68, %51, %136, %138, %173, %135, %24, %42, %180
  %189 = phi i64 [ 2, %42 ], [ 2, %24 ], [ %187, %180 ], [ 2, %135 ], [ 2, %173 ], [ 2, %138 ], [ 2, %136 ], [ 2, %51 ], [ 2, %68 ]
  %190 = call ptr %25(i64 noundef %189)
  br label %191

191:                                              ; preds = %188, %21
  %192 = phi ptr [ %190, %188 ], [ %23, %21 ]
  ret ptr %192
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
