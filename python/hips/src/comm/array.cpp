#include "python/hips/src/comm/array.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "python/hips/src/comm/dlpack.hpp"

namespace py = pybind11;

namespace hips::python {
namespace {

[[noreturn]] void refuse_type(const std::string& text) {
  throw py::type_error("hips: " + text);
}
[[noreturn]] void refuse_value(const std::string& text) {
  throw py::value_error("hips: " + text);
}

std::string class_of(py::handle object) {
  return Py_TYPE(object.ptr())->tp_name;
}

/// A type of the buffer protocol or of DLPack: 'i' signed, 'u' unsigned, 'f' float, 'b' bfloat, '?' bool, 0 another.
struct KnownType {
  char kind;
  std::uint64_t bytes;
  hips_type_t type;
  const char* name;
};
constexpr std::array<KnownType, 13> kKnown = {{{'i', 1, HIPS_INT8, "int8"},
                                               {'i', 2, HIPS_INT16, "int16"},
                                               {'i', 4, HIPS_INT32, "int32"},
                                               {'i', 8, HIPS_INT64, "int64"},
                                               {'u', 1, HIPS_UINT8, "uint8"},
                                               {'u', 2, HIPS_UINT16, "uint16"},
                                               {'u', 4, HIPS_UINT32, "uint32"},
                                               {'u', 8, HIPS_UINT64, "uint64"},
                                               {'f', 2, HIPS_FLOAT16, "float16"},
                                               {'f', 4, HIPS_FLOAT32, "float32"},
                                               {'f', 8, HIPS_FLOAT64, "float64"},
                                               {'b', 2, HIPS_BFLOAT16, "bfloat16"},
                                               {'?', 1, HIPS_UINT8, "bool"}}};

/// Of a format of Python's struct module, in this machine's byte order.
char kind_of(const char* format) {
  if (format == nullptr) return 'u';  // bytes
  if (std::strchr("@=<", *format) != nullptr && *format != '\0') ++format;
  if (std::strlen(format) != 1) return 0;
  if (std::strchr("bhilqn", *format) != nullptr) return 'i';
  if (std::strchr("BHILQN", *format) != nullptr) return 'u';
  if (std::strchr("efd", *format) != nullptr) return 'f';
  return *format == '?' ? '?' : '\0';
}

char kind_of(dlpack::Type type) {
  if (type.lanes != 1) return 0;
  switch (type.code) {
    case dlpack::kInt:
      return 'i';
    case dlpack::kUint:
      return 'u';
    case dlpack::kFloat:
      return 'f';
    case dlpack::kBfloat:
      return 'b';
    case dlpack::kBool:
      return '?';
    default:
      return 0;
  }
}

/// Whether elements have references to objects of Python, which mean nothing in another process: "O", "T{l:a:O:b:}".
bool has_objects(const char* format) {
  bool in_name = false;  // of a field, between colons
  for (; format != nullptr && *format != '\0'; ++format) {
    if (*format == ':') in_name = !in_name;
    if (*format == 'O' && !in_name) return true;
  }
  return false;
}

bool is_contiguous(const dlpack::Tensor& tensor) {
  if (tensor.strides == nullptr) return true;
  if (std::any_of(tensor.shape, tensor.shape + tensor.num_dimensions, [](std::int64_t size) { return size == 0; })) return true;
  std::int64_t stride = 1;
  for (std::int32_t i = tensor.num_dimensions - 1; i >= 0; --i) {
    if (tensor.shape[i] != 1 && tensor.strides[i] != stride) return false;
    stride *= tensor.shape[i];
  }
  return true;
}

}  // namespace

void Array::set_type(char kind, std::uint64_t element_bytes, const std::string& name_of_others) {
  element_bytes_ = element_bytes;
  for (const KnownType& known : kKnown) {
    if (known.kind != kind || known.bytes != element_bytes) continue;
    type_ = known.type;
    type_name_ = known.name;
    return;
  }
  type_name_ = name_of_others;
  type_ = HIPS_BYTES(static_cast<int>(element_bytes));
}

Array Array::of(py::handle object, const std::string& what, bool is_written) {
  if (PyObject_CheckBuffer(object.ptr()) != 0) return of_buffer(object, what, is_written);
  if (py::hasattr(object, "__dlpack__")) return of_dlpack(object, what);
  refuse_type(what + " is of class " + class_of(object) +
              "; expected an array with the buffer protocol or DLPack, as of numpy or a CPU tensor of PyTorch");
}

Array Array::of_buffer(py::handle object, const std::string& what, bool is_written) {
  const auto view = std::make_shared<Py_buffer>();
  if (PyObject_GetBuffer(object.ptr(), view.get(), PyBUF_FORMAT | PyBUF_STRIDES) != 0) throw py::error_already_set();
  Array array;
  array.lease_ = std::shared_ptr<void>(view->buf, [view](void*) { PyBuffer_Release(view.get()); });
  if (is_written && view->readonly != 0) refuse_value(what + " is read-only; expected memory that can be written");
  if (PyBuffer_IsContiguous(view.get(), 'C') == 0)
    refuse_value(what + " is not contiguous; pass a contiguous copy, as of numpy.ascontiguousarray()");
  if (has_objects(view->format))
    refuse_type(what + " has objects of Python; expected numbers, or other types of fixed size");
  const auto element_bytes = static_cast<std::uint64_t>(view->itemsize);
  if (element_bytes == 0 || element_bytes > HIPS_MAX_ELEMENT_BYTES)
    refuse_value(what + " has elements of " + std::to_string(element_bytes) + " bytes; expected 1 to " +
                 std::to_string(HIPS_MAX_ELEMENT_BYTES));
  array.set_type(kind_of(view->format), element_bytes, std::string("format \"") + (view->format == nullptr ? "B" : view->format) + "\"");
  array.data_ = view->buf;
  array.count_ = static_cast<std::uint64_t>(view->len) / element_bytes;
  return array;
}

Array Array::of_dlpack(py::handle object, const std::string& what) {
  const py::object capsule = object.attr("__dlpack__")();
  auto* const managed = static_cast<dlpack::ManagedTensor*>(PyCapsule_GetPointer(capsule.ptr(), "dltensor"));
  if (managed == nullptr) throw py::error_already_set();
  // From here on the tensor is released by us, and not by the capsule.
  PyCapsule_SetName(capsule.ptr(), "used_dltensor");
  Array array;
  array.lease_ = std::shared_ptr<void>(managed, [](void* pointer) {
    auto* const owned = static_cast<dlpack::ManagedTensor*>(pointer);
    if (owned->release != nullptr) owned->release(owned);
  });
  const dlpack::Tensor& tensor = managed->tensor;
  if (tensor.device.type != dlpack::kCpu)
    refuse_type(what + " is not in the memory of the CPU (DLPack's device type " + std::to_string(tensor.device.type) + ")");
  if (!is_contiguous(tensor)) refuse_value(what + " is not contiguous; pass a contiguous copy, as of tensor.contiguous()");
  array.set_type(kind_of(tensor.type), (static_cast<std::uint64_t>(tensor.type.bits) * tensor.type.lanes + 7) / 8,
                 "DLPack's type " + std::to_string(tensor.type.code) + " of " + std::to_string(tensor.type.bits) + " bits");
  array.data_ = static_cast<char*>(tensor.data) + tensor.byte_offset;
  array.count_ = 1;
  for (std::int32_t i = 0; i < tensor.num_dimensions; ++i) array.count_ *= static_cast<std::uint64_t>(tensor.shape[i]);
  return array;
}

}  // namespace hips::python
