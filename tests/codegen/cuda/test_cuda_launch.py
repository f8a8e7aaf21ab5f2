"""Launches, with a stand-in for the driver: nothing here runs on a GPU."""

from __future__ import annotations

import ctypes
import itertools
import threading
from dataclasses import replace

import pytest
from cuda_modules import ADDING, GATHERING, REVERSING, tensor
from fake_cuda import Block, FakeDriver, Launched

from tcl.codegen.common.sites import Site
from tcl.codegen.cuda.emit.module import CudaModule, Launch
from tcl.codegen.cuda.run.launch import CudaLauncher
from tcl.codegen.devices import gpu as profile
from tcl.codegen.devices.cupy_driver import Driver
from tcl.codegen.loopir import ir


class Allocator:
    def __init__(self) -> None:
        self.sizes: list[int] = []

    def __call__(self, size: int) -> Block:
        self.sizes.append(size)
        return Block(0x100000 * len(self.sizes))


def scratch(name: str, *shape: int) -> ir.Tensor:
    return replace(tensor(name, *shape), role=ir.Role.SCRATCH)


SPLIT = CudaModule(
    "",
    (
        Launch("partial", 8, 128, 0, ("A", "sums", "rest")),
        Launch("final", 1, 32, 64 << 10, ("sums", "C")),
        Launch("partial", 2, 128, 49 << 10, ("C", "sums", "rest")),
        Launch("nothing", 0, 32, 0, ("C",)),
    ),
    (tensor("A", 100), tensor("C", 10), scratch("sums", 3, 5), scratch("rest", 65)),
)


def test_a_launch() -> None:
    driver = FakeDriver({"add": 3}, here=1)
    launcher = CudaLauncher(ADDING, b"", driver, 1)
    launcher((11 << 40, 22, 33), 77, Allocator())
    assert driver.launched == [Launched("add", 1, 4, 256, 0, 77, (11 << 40, 22, 33))]
    assert not driver.waits  # nothing to check: it is not waited for
    assert not driver.asked and not driver.records


def test_kernels_in_order_with_scratch_memory_between_them() -> None:
    driver = FakeDriver({"partial": 3, "final": 2, "nothing": 1})
    launcher = CudaLauncher(SPLIT, b"", driver, 0)
    allocate = Allocator()
    launcher((0xA, 0xC), 5, allocate)
    sums, rest = 0x100000, 0x100000 + 256  # each begins where CUDA's own memory would
    assert allocate.sizes == [256 + 512]
    assert driver.launched == [
        Launched("partial", 0, 8, 128, 0, 5, (0xA, sums, rest)),
        Launched("final", 0, 1, 32, 64 << 10, 5, (sums, 0xC)),
        Launched("partial", 0, 2, 128, 49 << 10, 5, (0xC, sums, rest)),
    ]
    assert driver.asked == {"partial": 49 << 10, "final": 64 << 10}
    launcher((0xA, 0xC), 6, allocate)  # another call, on another stream: memory of its own
    assert [each.arguments[0] for each in driver.launched[4:5]] == [0x200000]


COUNTING = CudaModule(
    "",
    (Launch("sum", 8, 128, 0, ("A", "sums", "arrived")),),
    (tensor("A", 100), scratch("sums", 3, 5), replace(scratch("arrived", 65), zeroed=True)),
)


def test_calls_that_may_overlap_count_their_blocks_apart() -> None:
    """Calls with the same scratch memory come one after the other, or it could not be the same."""
    driver = FakeDriver({"sum": 3})
    launcher = CudaLauncher(COUNTING, b"", driver, 0)
    places = [launch_at(launcher, 0x1000 * k, stream=k) for k in (1, 2, 3, 1, 2)]
    assert places[:2] == places[3:]
    assert all(abs(a - b) >= 512 for a, b in itertools.combinations(places[:3], 2))
    assert not driver.cleared
    (room,) = driver.zeroed
    assert all(1 << 32 <= place <= (1 << 32) + room - 512 for place in places)


def test_calls_beyond_all_pieces_of_zeros_clear_their_own() -> None:
    driver = FakeDriver({"sum": 3})
    launcher = CudaLauncher(COUNTING, b"", driver, 0)
    (room,) = driver.zeroed
    count = room // 512
    places = [launch_at(launcher, 0x1000 * k, stream=7) for k in range(1, count + 3)]
    assert len(set(places)) == count + 2
    own = [0x1000 * k + 256 for k in (count + 1, count + 2)]
    assert places[count:] == own
    assert driver.cleared == [(place, 512, 7) for place in own]
    assert launch_at(launcher, 0x1000, stream=7) == places[0]


def launch_at(launcher: CudaLauncher, address: int, stream: int) -> int:
    """Where a launch with scratch memory at an address counts its blocks."""
    launcher((0xA,), stream, lambda _: Block(address))
    driver = launcher.driver
    assert isinstance(driver, FakeDriver)
    return driver.launched[-1].arguments[2]


@pytest.mark.parametrize("here", [0, -1])
def test_the_device_is_that_of_the_arrays(here: int) -> None:
    driver = FakeDriver({"add": 3}, here=here)
    launcher = CudaLauncher(ADDING, b"", driver, 2)
    launcher((1, 2, 3), 0, Allocator())
    assert driver.launched[0].device == 2
    assert driver.here == here


def writes(site: int, value: int, driver: FakeDriver) -> None:
    """Make the kernel fail as its source would."""

    def fail(arguments: tuple[int, ...]) -> None:
        record = (ctypes.c_uint64 * 2).from_address(arguments[-1])
        if not record[0]:
            record[0], record[1] = site + 1, value % 2**64

    driver.effects = {"gather": fail}


SAID = "index {} is out of range for dimension 0 of tensor A, which has indices 0 to 9"


def test_a_subscript_out_of_range() -> None:
    driver = FakeDriver({"gather": 4})
    launcher = CudaLauncher(GATHERING, b"", driver, 0)
    launcher((1, 2, 3), 9, Allocator())
    assert driver.waits == [9] and driver.records == 1
    for value in (-5, 12, 2**62):
        writes(0, value, driver)
        with pytest.raises(IndexError) as caught:
            launcher((1, 2, 3), 9, Allocator())
        assert str(caught.value) == SAID.format(value)
    driver.effects = {}
    launcher((1, 2, 3), 9, Allocator())  # an error leaves nothing behind


def test_an_unsigned_subscript() -> None:
    module = replace(GATHERING, sites=(Site("B", 1, 0, 3, False), Site("A", 0, 0, 10, True)))
    driver = FakeDriver({"gather": 4})
    writes(1, 2**64 - 1, driver)
    with pytest.raises(IndexError, match=SAID.format(2**64 - 1)):
        CudaLauncher(module, b"", driver, 0)((1, 2, 3), 9, Allocator())


def test_frames_are_used_again() -> None:
    driver = FakeDriver({"gather": 4})
    launcher = CudaLauncher(GATHERING, b"", driver, 0)
    for _ in range(5):
        launcher((1, 2, 3), 0, Allocator())
    assert driver.records == len(launcher.frames) == 1


def test_calls_from_several_threads_have_arguments_of_their_own() -> None:
    """A launch that is interrupted by another thread's."""
    driver = FakeDriver({"add": 3})
    launcher = CudaLauncher(ADDING, b"", driver, 0)
    inner = threading.Thread(target=lambda: launcher((4, 5, 6), 2, Allocator()))

    def interrupt(_: tuple[int, ...]) -> None:
        driver.effects = {}
        inner.start()
        inner.join()

    driver.effects = {"add": interrupt}
    launcher((1, 2, 3), 1, Allocator())
    assert [each.arguments for each in driver.launched] == [(1, 2, 3), (4, 5, 6)]
    assert len(launcher.frames) == 2


def test_shared_memory_below_the_limit_needs_no_asking() -> None:
    driver = FakeDriver({"reverse": 2})
    CudaLauncher(REVERSING, b"", driver, 0)
    assert not driver.asked


def test_cupy_has_all_that_is_used() -> None:
    """The bindings behind ``Driver``, which run on a machine with a GPU only."""
    package = pytest.importorskip("cupy", reason="needs CuPy: pip install '.[cuda]'")
    runtime, driver = package.cuda.runtime, package.cuda.driver
    taken = {
        runtime.memcpyAsync: "(intptr_t dst, intptr_t src, size_t size, int kind, intptr_t stream)",
        runtime.memsetAsync: "(intptr_t ptr, int value, size_t size, intptr_t stream)",
        runtime.streamSynchronize: "(intptr_t stream)",
        runtime.free: "(intptr_t ptr)",
        runtime.getDevice: "()",
        runtime.setDevice: "(int device)",
        runtime.deviceGetAttribute: "(int attrib, int device)",
        driver.ctxGetDevice: "()",
        package.cuda.get_current_stream: "(int device_id=-1)",
        driver.funcSetAttribute: "(intptr_t f, int attribute, int value)",
        driver.launchKernel: (
            "(intptr_t f, unsigned int grid_dim_x, unsigned int grid_dim_y, "
            "unsigned int grid_dim_z, unsigned int block_dim_x, unsigned int block_dim_y, "
            "unsigned int block_dim_z, unsigned int shared_mem_bytes, intptr_t stream, "
            "intptr_t kernel_params, intptr_t extra)"
        ),
    }
    for function, parameters in taken.items():
        assert parameters in (function.__doc__ or ""), function.__name__
    assert driver.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES == 8
    assert driver.CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT == 9
    assert runtime.memcpyDeviceToHost == 2
    for holder, names in (
        (package.cuda.function.Module, ("load", "get_function")),
        (package.cuda.function.Function, ("ptr",)),
        (package.cuda, ("alloc", "alloc_pinned_memory")),
        (package.cuda.PinnedMemoryPointer, ("ptr",)),
        (runtime, tuple(f"cudaDevAttr{name}" for name in profile._ATTRIBUTES)),
    ):
        for name in names:
            assert hasattr(holder, name), name
    assert callable(Driver().launch)
