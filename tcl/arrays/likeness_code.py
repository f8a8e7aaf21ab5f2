"""What compares arrays with those of an earlier call, as LLVM IR.

``alike`` goes through the arrays and runs the kernel; ``address`` reads one, of NumPy or torch: it
returns where its data lies, or -1 if it is not as its record says (``likeness.Record``, in words).
"""

from __future__ import annotations

from tcl.codegen.cpu.abi import TENSORS

FUNCTION, PYTHON, TORCH = "tcl_alike", "tcl_alike_python", "tcl_alike_torch"
"""Names in the code: the function, and the tables of Python's functions and of torch's."""
PYTHON_FUNCTIONS = (
    "PyEval_SaveThread",
    "PyEval_RestoreThread",
    "PyLong_AsVoidPtr",
    "PyLong_FromLong",
)
"""Of Python's C API, in the order of the table."""
TORCH_FIELDS = ("dim", "dtype", "sizes", "strides", "data_ptr")
"""What libtorch's functions ``aoti_torch_get_`` are asked, in the order of the table."""
TORCH_TRACERS = (
    "_ZN3c104impl20TorchDispatchModeTLS13any_modes_setEb",
    "_ZN3c104impl28tls_is_dispatch_key_includedENS_11DispatchKeyE",
    "_ZN5torch3jit6tracer15getTracingStateEv",
)
"""Functions of libtorch that follow in the table: whether a mode is on in this thread, whether a
dispatch key is, and where a pointer to what ``torch.jit.trace`` records lies."""


def for_numpy(items: int) -> str:
    """For NumPy's arrays. ``items``: bytes from a tuple's beginning to its items."""
    return _whole(items, _NUMPY)


def for_torch(items: int, keys: int, tracing: int) -> str:
    """For torch's tensors. ``keys``: bytes from a tensor's beginning to the word of its kind;
    ``tracing``: the dispatch key that is on while operators are recorded before dispatch."""
    needed = len(TORCH_FIELDS) + len(TORCH_TRACERS)
    return _whole(items, _TORCH.format(keys=keys, table=TORCH, needed=needed, tracing=tracing))


def _whole(items: int, address: str) -> str:
    return _TEXT.format(
        address=address, items=items, needed=len(PYTHON_FUNCTIONS), python=PYTHON, tensors=TENSORS
    )


_TEXT = """
{address}

@{python} = global [{needed} x ptr] zeroinitializer

define ptr @tcl_alike(ptr %self, ptr %given, i64 %count) nounwind {{
entry:
  %number.at = getelementptr ptr, ptr @{python}, i64 2
  %number = load ptr, ptr %number.at
  %inputs = load ptr, ptr %given
  %given.1 = getelementptr ptr, ptr %given, i64 1
  %outputs = load ptr, ptr %given.1
  %given.2 = getelementptr ptr, ptr %given, i64 2
  %record = load ptr, ptr %given.2
  %like = call ptr %number(ptr %self)
  %call = call ptr %number(ptr %record)
  %status = call i64 @alike(ptr %inputs, ptr %outputs, ptr %like, ptr %call)
  %object.at = getelementptr ptr, ptr @{python}, i64 3
  %object = load ptr, ptr %object.at
  %made = call ptr %object(i64 %status)
  ret ptr %made
}}

define internal i64 @alike(ptr %inputs, ptr %outputs, ptr %like, ptr %call) nounwind {{
entry:
  %arguments.at = getelementptr i64, ptr %call, i64 {tensors}
  %arguments = load ptr, ptr %arguments.at
  %inputs.size = getelementptr i8, ptr %inputs, i64 16
  %given.in = load i64, ptr %inputs.size
  %outputs.size = getelementptr i8, ptr %outputs, i64 16
  %given.out = load i64, ptr %outputs.size
  %in = load i64, ptr %like
  %like.1 = getelementptr i64, ptr %like, i64 1
  %out = load i64, ptr %like.1
  %like.2 = getelementptr i64, ptr %like, i64 2
  %pairs = load i64, ptr %like.2
  %like.3 = getelementptr i64, ptr %like, i64 3
  %kernel = load ptr, ptr %like.3
  %records = getelementptr i64, ptr %like, i64 4
  %same.in = icmp eq i64 %given.in, %in
  %same.out = icmp eq i64 %given.out, %out
  %same.both = and i1 %same.in, %same.out
  %seen = call i1 @seen()
  %same = and i1 %same.both, %seen
  %all = add i64 %in, %out
  br i1 %same, label %arrays, label %unlike
arrays:
  %k = phi i64 [ 0, %entry ], [ %k.next, %fits ]
  %more = icmp ult i64 %k, %all
  br i1 %more, label %array, label %overlaps
array:
  %is.in = icmp ult i64 %k, %in
  %tuple = select i1 %is.in, ptr %inputs, ptr %outputs
  %before = select i1 %is.in, i64 0, i64 %in
  %position = sub i64 %k, %before
  %items = getelementptr i8, ptr %tuple, i64 {items}
  %item = getelementptr ptr, ptr %items, i64 %position
  %object = load ptr, ptr %item
  %offset = mul i64 %k, 8
  %record = getelementptr i64, ptr %records, i64 %offset
  %type.at = getelementptr i8, ptr %object, i64 8
  %type = load i64, ptr %type.at
  %type.like = load i64, ptr %record
  %type.same = icmp eq i64 %type, %type.like
  br i1 %type.same, label %typed, label %unlike
typed:
  %address = call i64 @address(ptr %object, ptr %record)
  %known = icmp ne i64 %address, -1
  %bits.at = getelementptr i64, ptr %record, i64 3
  %bits = load i64, ptr %bits.at
  %low.bits = and i64 %address, %bits
  %aligned = icmp eq i64 %low.bits, 0
  %good = and i1 %known, %aligned
  br i1 %good, label %fits, label %unlike
fits:
  %place.at = getelementptr i64, ptr %record, i64 7
  %place = load i64, ptr %place.at
  %argument = getelementptr i64, ptr %arguments, i64 %place
  store i64 %address, ptr %argument
  %k.next = add i64 %k, 1
  br label %arrays
overlaps:
  %words = mul i64 %all, 8
  %first = getelementptr i64, ptr %records, i64 %words
  br label %distances
distances:
  %p = phi i64 [ 0, %overlaps ], [ %p.next, %distance ]
  %another = icmp ult i64 %p, %pairs
  br i1 %another, label %distance, label %like.those
distance:
  %p.words = mul i64 %p, 4
  %pair = getelementptr i64, ptr %first, i64 %p.words
  %one = load i64, ptr %pair
  %pair.1 = getelementptr i64, ptr %pair, i64 1
  %other = load i64, ptr %pair.1
  %pair.2 = getelementptr i64, ptr %pair, i64 2
  %low = load i64, ptr %pair.2
  %pair.3 = getelementptr i64, ptr %pair, i64 3
  %high = load i64, ptr %pair.3
  %one.at = getelementptr i64, ptr %arguments, i64 %one
  %from = load i64, ptr %one.at
  %other.at = getelementptr i64, ptr %arguments, i64 %other
  %to = load i64, ptr %other.at
  %apart = sub i64 %from, %to
  %above = icmp slt i64 %low, %apart
  %below = icmp slt i64 %apart, %high
  %overlap = and i1 %above, %below
  %p.next = add i64 %p, 1
  br i1 %overlap, label %unlike, label %distances
like.those:
  %leave = load ptr, ptr @{python}
  %thread.1 = getelementptr ptr, ptr @{python}, i64 1
  %enter = load ptr, ptr %thread.1
  %thread = call ptr %leave()
  %result = call i32 %kernel(ptr %call)
  call void %enter(ptr %thread)
  %result.64 = sext i32 %result to i64
  ret i64 %result.64
unlike:
  ret i64 2
}}

define internal i1 @same(ptr %one, ptr %other, i64 %count) alwaysinline nounwind {{
entry:
  br label %loop
loop:
  %k = phi i64 [ 0, %entry ], [ %next, %compare ]
  %more = icmp ult i64 %k, %count
  br i1 %more, label %compare, label %yes
compare:
  %one.at = getelementptr i64, ptr %one, i64 %k
  %a = load i64, ptr %one.at
  %other.at = getelementptr i64, ptr %other, i64 %k
  %b = load i64, ptr %other.at
  %equal = icmp eq i64 %a, %b
  %next = add i64 %k, 1
  br i1 %equal, label %loop, label %no
yes:
  ret i1 true
no:
  ret i1 false
}}
"""

_LAYOUT = """
layout:
  %like.sizes.at = getelementptr i64, ptr %record, i64 6
  %like.sizes = load ptr, ptr %like.sizes.at
  %like.strides = getelementptr i64, ptr %like.sizes, i64 %dims
  %same.sizes = call i1 @same(ptr %sizes, ptr %like.sizes, i64 %dims)
  br i1 %same.sizes, label %steps, label %unlike
steps:
  %same.strides = call i1 @same(ptr %strides, ptr %like.strides, i64 %dims)
  br i1 %same.strides, label %found, label %unlike
unlike:
  ret i64 -1
"""

_NUMPY = (
    """
define internal i1 @seen() alwaysinline nounwind {
entry:
  ret i1 true
}

define internal i64 @address(ptr %array, ptr %record) alwaysinline nounwind {
entry:
  %descr.at = getelementptr i8, ptr %array, i64 56
  %descr = load i64, ptr %descr.at
  %like.descr.at = getelementptr i64, ptr %record, i64 1
  %like.descr = load i64, ptr %like.descr.at
  %same.descr = icmp eq i64 %descr, %like.descr
  %dims.at = getelementptr i8, ptr %array, i64 24
  %dims.32 = load i32, ptr %dims.at
  %dims = sext i32 %dims.32 to i64
  %like.dims.at = getelementptr i64, ptr %record, i64 2
  %like.dims = load i64, ptr %like.dims.at
  %same.dims = icmp eq i64 %dims, %like.dims
  %flags.at = getelementptr i8, ptr %array, i64 64
  %flags.32 = load i32, ptr %flags.at
  %flags = zext i32 %flags.32 to i64
  %like.flags.at = getelementptr i64, ptr %record, i64 4
  %like.flags = load i64, ptr %like.flags.at
  %common = and i64 %flags, %like.flags
  %same.flags = icmp eq i64 %common, %like.flags
  %sizes.at = getelementptr i8, ptr %array, i64 32
  %sizes = load ptr, ptr %sizes.at
  %strides.at = getelementptr i8, ptr %array, i64 40
  %strides = load ptr, ptr %strides.at
  %same.1 = and i1 %same.descr, %same.dims
  %same.all = and i1 %same.1, %same.flags
  br i1 %same.all, label %layout, label %unlike
"""
    + _LAYOUT
    + """
found:
  %data.at = getelementptr i8, ptr %array, i64 16
  %data = load i64, ptr %data.at
  ret i64 %data
}
"""
)


def _asked(name: str, type_: str) -> str:
    """LLVM IR that asks libtorch for something of a tensor."""
    k = TORCH_FIELDS.index(name)
    return f"""
  %{name}.to = getelementptr ptr, ptr @{{table}}, i64 {k}
  %{name}.ask = load ptr, ptr %{name}.to
  %{name}.wrong = call i32 %{name}.ask(ptr %handle, ptr %{name}.memory)
  %{name} = load {type_}, ptr %{name}.memory
"""


def _called(k: int, name: str, type_: str, arguments: str) -> str:
    """LLVM IR that calls a function of the table."""
    return f"""
  %{name}.to = getelementptr ptr, ptr @{{table}}, i64 {k}
  %{name}.ask = load ptr, ptr %{name}.to
  %{name} = call {type_} %{name}.ask({arguments})
"""


_TORCH = (
    """
@{table} = global [{needed} x ptr] zeroinitializer

; Whether torch records nothing in this thread, so that nobody misses a call.
define internal i1 @seen() alwaysinline nounwind {{
entry:
"""
    + _called(5, "modes", "zeroext i1", "i1 zeroext false")
    + _called(6, "key", "zeroext i1", "i16 zeroext {tracing}")
    + _called(7, "state", "ptr", "")
    + """
  %recorded = load ptr, ptr %state
  %records = icmp ne ptr %recorded, null
  %any = or i1 %modes, %key
  %all = or i1 %any, %records
  %nothing = xor i1 %all, true
  ret i1 %nothing
}}

define internal i64 @address(ptr %tensor, ptr %record) alwaysinline nounwind {{
entry:
  %dim.memory = alloca i64
  %dtype.memory = alloca i32
  %sizes.memory = alloca ptr
  %strides.memory = alloca ptr
  %data_ptr.memory = alloca i64
  %handle = getelementptr i8, ptr %tensor, i64 16
  %implementation = load ptr, ptr %handle
  %keys.at = getelementptr i8, ptr %implementation, i64 {keys}
  %keys = load i64, ptr %keys.at
  %like.keys.at = getelementptr i64, ptr %record, i64 4
  %like.keys = load i64, ptr %like.keys.at
  %same.keys = icmp eq i64 %keys, %like.keys
  br i1 %same.keys, label %ask, label %unlike
ask:
"""
    + _asked("dtype", "i32")
    + _asked("dim", "i64")
    + """
  %dtype.64 = sext i32 %dtype to i64
  %like.dtype.at = getelementptr i64, ptr %record, i64 1
  %like.dtype = load i64, ptr %like.dtype.at
  %same.dtype = icmp eq i64 %dtype.64, %like.dtype
  %like.dims.at = getelementptr i64, ptr %record, i64 2
  %dims = load i64, ptr %like.dims.at
  %same.dims = icmp eq i64 %dim, %dims
  %same.both = and i1 %same.dtype, %same.dims
  br i1 %same.both, label %ask.layout, label %unlike
ask.layout:
"""
    + _asked("sizes", "ptr")
    + _asked("strides", "ptr")
    + """
  br label %layout
"""
    + _LAYOUT
    + """
found:
"""
    + _asked("data_ptr", "i64")
    + """
  %filled.at = getelementptr i64, ptr %record, i64 5
  %filled = load i64, ptr %filled.at
  %is.filled = icmp ne i64 %filled, 0
  %nowhere = icmp eq i64 %data_ptr, 0
  %freed = and i1 %is.filled, %nowhere
  br i1 %freed, label %unlike, label %here
here:
  ret i64 %data_ptr
}}
"""
)
