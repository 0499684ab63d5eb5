# SPDX-License-Identifier: MIT
"""Read a file written by torch.save (the zip format, PyTorch 1.6 and later) without PyTorch, and
without running anything that the file brings along.

Such a file is a zip archive of NAME/data.pkl, a pickle in which tensors are views of storages, and
of NAME/data/KEY, the storages' bytes.  A pickle may name any function of any module and have it
called; here only the names in ALLOWED exist, which build tensors and plain containers.  A file that
names another is refused, and the message says which.  Numbers of 16 bits are widened to 32, without
loss.
"""
import collections
import pickle
import zipfile

import numpy as np

# storage class: type of its bytes; bfloat16 is the upper half of a float32
TYPES = {"DoubleStorage": "<f8", "FloatStorage": "<f4", "HalfStorage": "<f2",
         "BFloat16Storage": "<u2", "LongStorage": "<i8", "IntStorage": "<i4",
         "ShortStorage": "<i2", "CharStorage": "|i1", "ByteStorage": "|u1", "BoolStorage": "|b1"}


class FileError(Exception):
    """What is wrong with the file; the message is for the user."""


class Tensor:
    """A view of a storage: its array and whether that had to be widened."""

    def __init__(self, array, half):
        self.array, self.half = array, half


def tensor_from(storage, offset, size, stride, *_):
    kind, raw = storage
    item = np.dtype(TYPES[kind]).itemsize
    if min([offset, *size, *stride], default=0) < 0:
        raise FileError("a tensor with a negative offset, size or stride")
    array = np.ndarray(tuple(size), TYPES[kind], raw, offset * item, tuple(s * item for s in stride))
    if kind == "BFloat16Storage":
        array = (array.astype(np.uint32) << 16).view(np.float32)
    elif kind == "HalfStorage":
        array = array.astype(np.float32)
    return Tensor(np.ascontiguousarray(array).reshape(tuple(size)),
                  kind in ("HalfStorage", "BFloat16Storage"))


def parameter_from(tensor, *_):
    return tensor


ALLOWED = {("collections", "OrderedDict"): collections.OrderedDict,
           ("builtins", "slice"): slice, ("__builtin__", "slice"): slice,
           ("builtins", "set"): set, ("__builtin__", "set"): set,
           ("torch", "Size"): tuple,
           ("torch._utils", "_rebuild_tensor_v2"): tensor_from,
           ("torch._utils", "_rebuild_parameter"): parameter_from}


class Reader(pickle.Unpickler):
    def __init__(self, archive, prefix):
        super().__init__(archive.open(prefix + "data.pkl"), encoding="utf-8")
        self.archive, self.prefix, self.storages = archive, prefix, {}

    def find_class(self, module, name):
        if (module, name) in ALLOWED:
            return ALLOWED[module, name]
        if module in ("torch", "torch.storage") and (name in TYPES or name == "UntypedStorage"):
            return name
        if name == "_rebuild_from_type_v2":
            raise FileError("holds a tensor of a special kind, such as a rank's part of a sharded"
                            " one; expected whole tensors")
        raise FileError(f"holds an object of {module}.{name}; expected tensors, numbers, texts and"
                        " containers of them (nothing of it was executed)")

    def persistent_load(self, pid):
        what, kind, key, _, count = pid
        if what != "storage" or kind not in TYPES:
            raise FileError(f"holds a storage of type {kind}; supported: {', '.join(TYPES)}")
        if key not in self.storages:
            raw = self.archive.read(f"{self.prefix}data/{key}")
            if len(raw) != count * np.dtype(TYPES[kind]).itemsize:
                raise FileError(f"storage {key} has {len(raw)} bytes; expected {count} numbers")
            self.storages[key] = kind, raw
        return self.storages[key]


def read(path):
    """What torch.save was given, with a Tensor in the place of each tensor."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            pickles = [n for n in names if n.count("/") == 1 and n.endswith("/data.pkl")]
            if len(pickles) != 1:
                raise FileError("is a zip archive, but not of torch.save: it has no data.pkl")
            prefix = pickles[0][:-len("data.pkl")]
            order = prefix + "byteorder"
            if order in names and archive.read(order) != b"little":
                raise FileError("was written on a big-endian machine")
            return Reader(archive, prefix).load()
    except IsADirectoryError:
        raise FileError("is a folder, such as a sharded checkpoint is; expected one file with all"
                        " tensors (torch.distributed.checkpoint.format_utils joins them)") from None
    except zipfile.BadZipFile:
        raise FileError("is not a file of torch.save in its zip format (PyTorch 1.6 and later); an"
                        " older file can be loaded and saved again") from None
    except FileError:
        raise
    except OSError:
        raise
    except Exception as error:  # a pickle can be broken in any way
        raise FileError(f"is damaged: {error}") from None
