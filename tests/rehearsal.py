"""A pretended CUDA device, on which the branch for GPUs is executed on any machine.

A `Pretended` tensor holds a tensor of the CPU and says that it is on ``cuda:0``. What computes with it is computed by
the CPU. As with CUDA, an operation on tensors of both devices raises, and so does a generator of the CPU; whatever
would make the processor wait for the GPU is counted, by kind. Its C++ device stays the CPU, because autograd asks a
CUDA device for a context.
"""

from __future__ import annotations

import contextlib
import types
from collections import Counter
from unittest import mock

import torch
from torch.overrides import TorchFunctionMode, resolve_name
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

aten = torch.ops.aten
# Operations whose result has a size that depends on values, or is a number of Python's.
SYNCHRONIZING = {
    aten._local_scalar_dense.default: "item",
    aten.equal.default: "item",
    aten.is_nonzero.default: "item",
    aten.nonzero.default: "mask",
    aten.masked_select.default: "mask",
    aten.bincount.default: "bincount",
    aten._unique2.default: "unique",
    aten.unique_dim.default: "unique",
    aten.repeat_interleave.Tensor: "repeat_interleave",
}
INDEXING = {aten.index.Tensor, aten.index_put.default, aten.index_put_.default, aten._index_put_impl_.default}
COPIES = {aten.copy_.default, aten._to_copy.default}


class DeviceError(RuntimeError):
    """What CUDA refuses."""


class Pretended(torch.Tensor):
    """A tensor on the pretended device."""

    @staticmethod
    def __new__(cls, inner, number=0):
        made = torch.Tensor._make_wrapper_subclass(
            cls,
            inner.shape,
            strides=inner.stride(),
            storage_offset=inner.storage_offset(),
            dtype=inner.dtype,
            device="cpu",
            requires_grad=inner.requires_grad,
        )
        made.inner, made.number = inner.detach(), number
        return made

    __torch_function__ = torch._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(cls, function, kinds, arguments=(), named=None):
        raise DeviceError(f"{function} outside of the rehearsal's thread")

    @property
    def device(self):
        return torch.device("cuda", self.number)

    @property
    def is_cuda(self):
        return True

    @property
    def is_cpu(self):
        return False

    def __deepcopy__(self, memo):
        copied = self.detach().clone().requires_grad_(self.requires_grad)
        if getattr(self, "_is_param", False):
            copied._is_param = True
        return memo.setdefault(id(self), copied)

    def __reduce_ex__(self, protocol):
        raise DeviceError("a tensor of the device cannot be read where there is none")

    def __repr__(self):
        return f"Pretended({tuple(self.shape)})"


def _is_cuda(device):
    return device is not None and torch.device(device).type == "cuda"


class Rehearsal(TorchDispatchMode):
    """The pretended device while it is entered.

    Attributes
    ----------
    waits : Counter
        How often the processor would have waited for the GPU, by kind.
    largest : int or None
        Elements of the largest tensor that can be allocated.
    """

    def __init__(self, devices: int = 1, capability: tuple[int, int] = (9, 0)) -> None:
        super().__init__()
        self.devices, self.capability = devices, capability
        self.waits: Counter[str] = Counter()
        self.largest: int | None = None
        self.current = 0
        self.on_device = 0  # operations that the device computed

    # -- operations -----------------------------------------------------------------------------------

    def __torch_dispatch__(self, function, kinds, arguments=(), named=None):
        named = named or {}
        given = [leaf for leaf in tree_leaves((arguments, named)) if isinstance(leaf, torch.Tensor)]
        ours = [leaf for leaf in given if isinstance(leaf, Pretended)]
        target = named.get("device")
        # C++ takes the CPU for the device of our tensors, also in a backward pass, where none may be given.
        backward = torch._C._current_graph_task_id() != -1
        if function is aten._to_copy.default and not backward:
            made_here = bool(ours) if target is None else _is_cuda(target)
        else:
            made_here = bool(ours) or _is_cuda(target) or (target is not None and backward)
        if not ours and not made_here:
            return function(*arguments, **named)
        self._check(function, arguments, given, ours, made_here)
        if (generator := named.get("generator")) is not None and made_here and generator.device.type == "cpu":
            raise DeviceError("Expected a 'cuda' device type for generator but found 'cpu'")
        by_inner = {id(leaf.inner): leaf for leaf in ours}
        plain = tree_map(lambda leaf: leaf.inner if isinstance(leaf, Pretended) else leaf, (arguments, named))
        inner_named = dict(plain[1])
        if target is not None:
            inner_named["device"] = torch.device("cpu")
        result = function(*plain[0], **inner_named)
        self.on_device += 1
        if function is aten.copy_.default and not isinstance(arguments[0], Pretended):
            return result  # copied to the computer's memory

        def wrap(leaf):
            if not isinstance(leaf, torch.Tensor) or not made_here:
                return leaf
            if id(leaf) in by_inner:
                return by_inner[id(leaf)]
            if self.largest is not None and leaf.untyped_storage().nbytes() // leaf.element_size() > self.largest:
                raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate more than there is")
            return Pretended(leaf, self.current)

        return tree_map(wrap, result)

    def _check(self, function, arguments, given, ours, made_here) -> None:
        """Count what waits, and raise where tensors of two devices meet."""
        name = function.name()
        others = [leaf for leaf in given if not isinstance(leaf, Pretended)]
        if function in COPIES:
            if ours and (others or not made_here):
                self.waits["copy to the host" if function is aten._to_copy.default and not made_here else "copy"] += 1
            elif others:
                self.waits["copy to the device"] += 1
            return
        if function in SYNCHRONIZING:
            self.waits[SYNCHRONIZING[function]] += 1
        if function in INDEXING:
            indices = [index for index in arguments[1] if index is not None]
            self.waits["mask"] += any(index.dtype == torch.bool for index in indices)
            foreign = [index for index in indices if not isinstance(index, Pretended)]
            if not isinstance(arguments[0], Pretended):
                raise DeviceError(f"{name}: indices should be on the same device as the indexed tensor, cpu")
            self.waits["copy to the device"] += len(foreign)  # of an index from the computer's memory
            others = [leaf for leaf in others if not any(leaf is index for index in foreign)]
        alone = "_foreach" in name or "_fused" in name  # they take no number of the CPU
        if ours and (wrong := [leaf for leaf in others if alone or leaf.dim() > 0]):
            raise DeviceError(f"{name}: tensors are on two devices, cuda:0 and cpu (shape {tuple(wrong[0].shape)})")

    # -- functions of torch ---------------------------------------------------------------------------

    def __enter__(self):
        self._stack = contextlib.ExitStack()
        for patch in self._patches():
            self._stack.enter_context(patch)
        self._overwrite = torch.__future__.get_overwrite_module_params_on_conversion()
        torch.__future__.set_overwrite_module_params_on_conversion(True)
        entered = super().__enter__()
        self._stack.enter_context(_Functions(self))
        return entered

    def __exit__(self, *error):
        self._stack.close()
        torch.__future__.set_overwrite_module_params_on_conversion(self._overwrite)
        return super().__exit__(*error)

    def _patches(self):
        def set_device(device):
            self.current = device if isinstance(device, int) else torch.device(device).index or 0

        functions = {
            "is_available": lambda: True,
            "device_count": lambda: self.devices,
            "current_device": lambda: self.current,
            "set_device": set_device,
            "device": contextlib.nullcontext,
            "get_device_properties": lambda number: types.SimpleNamespace(uuid=f"pretended-{number}"),
            "get_device_name": lambda device=None: "a pretended GPU",
            "get_device_capability": lambda device=None: self.capability,
            "is_bf16_supported": lambda *given, **named: self.capability >= (8, 0),
            "mem_get_info": lambda device=None: (2**33, 2**34),
            "get_rng_state": lambda device=None: torch.get_rng_state(),
            "set_rng_state": lambda state, device=None: None,
            "manual_seed": lambda seed: None,
            "manual_seed_all": lambda seed: None,
            "empty_cache": lambda: None,
            "synchronize": lambda device=None: None,
            "_lazy_init": lambda: None,
        }
        yield from (mock.patch.object(torch.cuda, name, function) for name, function in functions.items())
        yield mock.patch.object(torch, "compile", lambda function, **options: function)
        autocast = torch.autocast
        yield mock.patch.object(torch, "autocast", lambda kind, *given, **named: autocast("cpu", *given, **named))


class _Functions(TorchFunctionMode):
    """What torch decides in C++ by a device that it knows, before any operation is dispatched."""

    def __init__(self, rehearsal: Rehearsal) -> None:
        super().__init__()
        self.rehearsal = rehearsal

    def __torch_function__(self, function, kinds, arguments=(), named=None):
        named = dict(named or {})
        name = resolve_name(function) or getattr(function, "__name__", "")
        method = name.rpartition(".")[2]
        first = arguments[0] if arguments else None
        if function in (torch.tensor, torch.as_tensor) and _is_cuda(named.get("device")):
            device = named.pop("device")
            return _moved(function(*arguments, **named), device)
        if method == "to" and isinstance(first, torch.Tensor):
            return self._to(function, arguments, named)
        if isinstance(first, Pretended):
            if method == "cpu":
                return self._to(torch.Tensor.to, (first, torch.device("cpu")), {})
            if method == "cuda":
                return first
            if method == "tolist":
                return self._to(torch.Tensor.to, (first, torch.device("cpu")), {}).tolist()
            if method in ("numpy", "__array__"):
                raise TypeError("can't convert cuda:0 device type tensor to numpy; use Tensor.cpu() first")
            if method in ("__getitem__", "__setitem__") and _holds_list(arguments[1]):
                self.rehearsal.waits["copy to the device"] += 1
                device = torch.device("cuda", first.number)
                arguments = (first, _listed(arguments[1], device), *arguments[2:])
        elif method == "cuda" and isinstance(first, torch.Tensor):
            return self._to(torch.Tensor.to, (first, torch.device("cuda")), {})
        return function(*arguments, **named)

    def _to(self, function, arguments, named):
        """Move a tensor, or change its type, or both."""
        tensor, *others = arguments
        place = next((i for i, value in enumerate(others) if isinstance(value, torch.device | str)), None)
        device = named.pop("device", None) if place is None else others.pop(place)
        named = {key: value for key, value in named.items() if key != "non_blocking" and value is not None}
        assert not any(isinstance(value, torch.Tensor) for value in others)
        others = [value for value in others if isinstance(value, torch.dtype)]
        if device is not None and _is_cuda(device) != isinstance(tensor, Pretended):
            tensor = _moved(tensor, device)
        if "memory_format" in named:  # C++ would name the CPU as the device
            kinds = {"dtype": others[0]} if others else {}
            return aten._to_copy(tensor, **kinds, **named)
        return function(tensor, *others, **named) if others or named else tensor


def _holds_list(index):
    return isinstance(index, list) or (isinstance(index, tuple) and any(isinstance(part, list) for part in index))


def _listed(index, device):
    if isinstance(index, tuple):
        return tuple(_listed(part, device) if isinstance(part, list) else part for part in index)
    return _moved(torch.tensor(index), device)


def _moved(tensor, device):
    return aten._to_copy(tensor, device=torch.device(device))
