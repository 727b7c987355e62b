"""Arrays of inputs and results, of whatever library."""

from . import _comm


def _numpy():
    try:
        import numpy
    except ImportError:
        raise ImportError("hips: numpy is missing; install python3-numpy, or pass out=") from None
    return numpy


def is_array(value):
    """Whether the value has the buffer protocol or DLPack."""
    if hasattr(value, "__dlpack__"):
        return True
    try:
        memoryview(value)
    except (TypeError, ValueError, BufferError):
        return False
    return True


def as_input(value):
    """A contiguous array of the value: itself where it is one; numbers and lists become arrays of numpy."""
    if hasattr(value, "__array_interface__"):
        return value if value.flags.c_contiguous else _numpy().ascontiguousarray(value)
    if not is_array(value):
        array = _numpy().asarray(value)
        if array.dtype.kind not in "biufc":
            raise TypeError(f"hips: {type(value).__name__} is no array of numbers; expected one of numpy, a CPU tensor of PyTorch, "
                            "or another object with the buffer protocol or DLPack")
        return array
    if hasattr(value, "is_contiguous"):
        if getattr(value, "requires_grad", False):
            value = value.detach()
        return value.contiguous()
    return value


def shape_of(array):
    """The lengths of an array along its axes."""
    return tuple(array.shape) if hasattr(array, "shape") else memoryview(array).shape


def empty_like(array, shape):
    """A new array of that shape with the elements of `array`, of the same library; of numpy where that has none."""
    if hasattr(array, "new_empty"):
        return array.new_empty(shape)
    numpy = _numpy()
    # bytes() would become a text of numpy, as a memoryview they are numbers.
    return numpy.empty(shape, array.dtype if hasattr(array, "dtype") else numpy.asarray(memoryview(array)).dtype)


def empty(shape, dtype="float32"):
    """An array of numpy in registered memory, of zeros: NICs and the other ranks of the node read and write it in place.

    Use it for large arrays that are reduced again and again. Cost: page-aligned, so that small arrays waste most of a page.
    The memory is freed with the last array that uses it.
    """
    numpy = _numpy()
    dtype = numpy.dtype(dtype)
    if dtype.hasobject:
        raise TypeError(f"hips: empty: {dtype} has no fixed size; expected a type of numbers")
    count = int(numpy.prod(shape, dtype=numpy.int64))
    if count == 0:
        return numpy.empty(shape, dtype)
    return numpy.frombuffer(_comm.Memory(count * dtype.itemsize), dtype).reshape(shape)
