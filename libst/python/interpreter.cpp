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

}  // namespace

void fail(int error, const char* what) {
  throw Failed{error, std::string(what) + ": " + st_strerror(error)};
}

Buffer::Buffer(PyObject* object, bool writable, const char* argument) {
  if (PyObject_GetBuffer(object, &view_, writable ? PyBUF_WRITABLE : PyBUF_SIMPLE) == 0) return;
  view_ = Py_buffer{};
  name_argument(argument);
  throw Raised{};
}

}  // namespace stp::python
