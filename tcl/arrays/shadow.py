"""NumPy arrays on memory of others; also on memory that the host cannot read, for which they
stand."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np


class Shadow(np.ndarray[Any, np.dtype[Any]]):
    """Has the address, shape, strides and type of an array on a device, so that what is checked of
    NumPy's arrays is checked of those too: types, ranks, and exactly whether two overlap. Its
    values are not there to be read, not even to be shown in a traceback."""

    __array_ufunc__ = None  # type: ignore[assignment]  # NumPy's way to say: no arithmetic

    def _unreadable(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("this array stands for memory of a device, which cannot be read here")

    copy = tobytes = tolist = item = astype = _unreadable
    __reduce__ = __reduce_ex__ = __copy__ = __deepcopy__ = _unreadable

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if func not in (np.may_share_memory, np.shares_memory):  # which look at addresses alone
            self._unreadable()
        return super().__array_function__(func, types, args, kwargs)

    def __repr__(self) -> str:
        return f"<memory of a device: {self.dtype} of shape {self.shape}>"

    __str__ = __repr__


class _Interface:
    def __init__(self, interface: dict[str, object], keep: object) -> None:
        self.__array_interface__ = interface
        self.keep = keep


def memory_view(
    address: int,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    dtype: np.dtype[Any],
    keep: object = None,
) -> np.ndarray[Any, np.dtype[Any]]:
    """An array on this memory, which lives as long as ``keep`` does; the array keeps it."""
    interface = {
        "version": 3,
        "data": (address if 0 not in shape else dtype.alignment, False),
        "shape": shape,
        "strides": strides,
        "typestr": f"|V{dtype.itemsize}",
    }
    return np.asarray(_Interface(interface, keep)).view(dtype)


def shadow(
    address: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: np.dtype[Any]
) -> Shadow:
    """What stands for this memory."""
    return memory_view(address, shape, strides, dtype).view(Shadow)
