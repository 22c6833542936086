// SPDX-License-Identifier: BSD-3-Clause
#include "libst/python/interpreter.h"

namespace stp::python {
namespace {

// Begins the text of the exception that is set with the name of the argument.
void name_argument(const char* argument) {
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  PyErr_Format(type, "%s: %S", argument, value);
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(trace);
}

// An item of a format (PEP 3118) is a Python object: O, which names of fields may have in them too.
bool has_objects(const char* format) {
  bool in_name = false;
  for (; format != nullptr && *format != 0; ++format) {
    if (*format == ':') in_name = !in_name;
    if (*format == 'O' && !in_name) return true;
  }
  return false;
}

// Whether it has bytes of another kind than those that it was just asked for.
bool is_exported_as(PyObject* object, int flags) {
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  Py_buffer view{};
  const bool is_exported = PyObject_GetBuffer(object, &view, flags) == 0;
  if (is_exported) PyBuffer_Release(&view);
  PyErr_Clear();
  PyErr_Restore(type, value, trace);
  return is_exported;
}

}  // namespace

void fail(int error, const char* what) {
  throw Failed{error, std::string(what) + ": " + st_strerror(error)};
}

void fail_at_link(int error, const char* what) {
  throw Failed{error_of_link(error), std::string(what) + ": " + st_strerror(error)};
}

Buffer::Buffer(PyObject* object, bool writable, const char* argument) {
  const int flags = writable ? PyBUF_WRITABLE : PyBUF_SIMPLE;
  const bool is_plain = PyBytes_CheckExact(object) || PyByteArray_CheckExact(object);
  // Some have bytes, but no format for what they are: datetime64 of numpy.
  if (!is_plain && PyObject_GetBuffer(object, &view_, flags | PyBUF_ND | PyBUF_FORMAT) == 0) {
    if (!has_objects(view_.format)) return;
    release();
    PyErr_Format(PyExc_TypeError,
                 "%s: its items are Python objects, which mean nothing to a peer: convert it to an "
                 "array of numbers, or take pickle.dumps() of it",
                 argument);
    throw Raised{};
  }
  PyErr_Clear();
  if (PyObject_GetBuffer(object, &view_, flags) == 0) return;
  view_ = Py_buffer{};
  if (!is_plain && is_exported_as(object, flags | PyBUF_INDIRECT))
    PyErr_Format(PyExc_BufferError,
                 "%s: its bytes do not lie in one piece: take a copy of it (bytes(), or "
                 "numpy.ascontiguousarray())",
                 argument);
  else if (writable && is_exported_as(object, PyBUF_INDIRECT))  // numpy says that by a ValueError
    PyErr_Format(PyExc_BufferError,
                 "%s: it is read-only: give a bytearray, or an array that can be written to",
                 argument);
  else
    name_argument(argument);
  throw Raised{};
}

}  // namespace stp::python
