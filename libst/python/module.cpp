// SPDX-License-Identifier: BSD-3-Clause
// The module stp._stp: what the package's Python code stands on. Objects and calls are those of the
// headers beside this file; _stp.pyi has their types.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <optional>

#include "dpdk_port/link/start_thread.h"
#include "libst/python/connection.h"

namespace py = pybind11;
using namespace stp::python;

namespace {

// Called with (errno, text): the exception to raise. Never released: it may be needed to the end.
PyObject* make_error = nullptr;

void raise(const Failed& failed) {
  if (make_error == nullptr) {
    PyErr_SetString(PyExc_OSError, failed.text.c_str());
    return;
  }
  auto* const error = PyObject_CallFunction(make_error, "iss", -failed.error, failed.text.c_str(),
                                            failed.remedy.c_str());
  if (error == nullptr) return;
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error)), error);
  Py_DECREF(error);
}

Buffer readable(const py::object& object, const char* argument) {
  return Buffer(object.ptr(), false, argument);
}
Buffer writable(const py::object& object, const char* argument) {
  return Buffer(object.ptr(), true, argument);
}
py::object taken(PyObject* object) {
  if (object == nullptr) throw Raised{};
  return py::reinterpret_steal<py::object>(object);
}

// The text of a bytes object, which may hold any bytes.
std::string text_of(const py::bytes& bytes) {
  return std::string(bytes);
}

// A name for the library, which knows no text with a NUL in it.
const std::string& name(const std::string& text, const char* argument) {
  if (text.find('\0') != std::string::npos)
    throw Failed{-EINVAL, std::string(argument) + ": it has a NUL in it"};
  return text;
}

// Only this extension makes objects of the class: one that stands for nothing would crash its
// calls.
template <typename Class>
void made_here(const Class& type) {
  reinterpret_cast<PyTypeObject*>(type.ptr())->tp_new = [](PyTypeObject* of, PyObject*,
                                                           PyObject*) -> PyObject* {
    PyErr_Format(PyExc_TypeError, "%s: only the package makes such objects", of->tp_name);
    return nullptr;
  };
}

void define_operation(py::module_& module) {
  py::class_<Operation, std::shared_ptr<Operation>> type(module, "Operation");
  made_here(type);
  type.def("finish", [](Operation& o, std::int64_t timeout) { return taken(o.finish(timeout)); })
      .def("wait", &Operation::wait)
      .def("result", [](Operation& o) { return taken(o.result()); })
      .def("cancel", &Operation::cancel)
      .def("abandon", &Operation::abandon)
      .def("why_it_may_wait",
           [](const Operation& o, const std::string& otherwise) {
             return o.why_it_may_wait(otherwise.c_str());
           })
      .def("on_done", [](Operation& o, const py::object& call) { o.on_done(call.ptr()); })
      .def_property_readonly("done", &Operation::done)
      .def_readonly("tag", &Operation::tag)
      .def_readonly("connection", &Operation::connection);
}

void define_domain(py::module_& module) {
  module.def("open_domain",
             [](const std::optional<std::string>& link, bool checksum, std::uint64_t shard) {
               return Domain::open(link ? name(*link, "link").c_str() : nullptr, checksum, shard);
             });
  py::class_<Domain, std::shared_ptr<Domain>> domain(module, "Domain");
  made_here(domain);
  domain.def("close", &Domain::close)
      .def_property_readonly("closed",
                             [](const Domain& d) { return d.closed() || Domain::inherited(); })
      .def("fileno", &Domain::descriptor)
      .def("poll", &Domain::poll)
      .def("info",
           [](Domain& d) {
             const auto info = d.info();
             return py::make_tuple(info.mac, info.ipv4, info.mtu, info.udp_port);
           })
      .def("link",
           [](Domain& d) {
             const auto link = d.link();
             return py::make_tuple(link.state, link.changes, link.age, link.mtu, link.megabits,
                                   py::str(link.trouble));
           })
      .def("listen", [](Domain& d, const std::string& port,
                        unsigned backlog) { return d.listen(name(port, "port"), backlog); })
      .def("connect",
           [](Domain& d, const std::string& peer, std::int64_t timeout, const py::bytes& data) {
             return d.connect(name(peer, "peer"), timeout, text_of(data));
           })
      .def("region", [](Domain& d, const py::object& buffer, unsigned access,
                        const std::shared_ptr<Connection>& only) {
        return d.open_region(readable(buffer, "buffer"), access, only);
      });
  py::class_<Listener, std::shared_ptr<Listener>> listener(module, "Listener");
  made_here(listener);
  listener.def("request", &Listener::request)
      .def("close", &Listener::close)
      .def_property_readonly("waiting", &Listener::waiting);
  py::class_<Region, std::shared_ptr<Region>> region(module, "Region");
  made_here(region);
  region.def("close", &Region::close).def_property_readonly("remote", [](const Region& of) {
    char bytes[STM_REMOTE_SIZE];
    stm_remote_encode(&of.remote, bytes);
    return py::bytes(bytes, sizeof bytes);
  });
}

void define_connection(py::module_& module) {
  py::class_<Connection, std::shared_ptr<Connection>> type(module, "Connection");
  made_here(type);
  type.def("accept", [](Connection& c, const py::bytes& data) { return c.accept(text_of(data)); })
      .def("reject", [](Connection& c, const py::bytes& data) { c.reject(text_of(data)); })
      .def_property_readonly("data", [](const Connection& c) { return py::bytes(c.data); })
      .def("send", [](Connection& c, const py::object& data, std::uint32_t tag,
                      unsigned flags) { return c.send(readable(data, "data"), tag, flags); })
      .def("receive", &Connection::receive)
      .def("receive_into",
           [](Connection& c, const py::object& buffer) {
             return c.receive_into(writable(buffer, "buffer"));
           })
      .def("put",
           [](Connection& c, const py::object& data, std::uint32_t key, std::uint64_t address,
              unsigned flags) { return c.put(readable(data, "data"), key, address, flags); })
      .def("get",
           [](Connection& c, const py::object& buffer, std::uint32_t key, std::uint64_t address,
              unsigned flags) { return c.get(writable(buffer, "buffer"), key, address, flags); })
      .def("fetch", &Connection::fetch)
      .def("ended", &Connection::ended)
      .def("disconnect", &Connection::disconnect)
      .def("close", &Connection::close)
      .def_property_readonly(
          "closed", [](const Connection& c) { return c.is_closed() || Domain::inherited(); })
      .def_property_readonly("over", &Connection::is_over)
      .def_property_readonly("reason", &Connection::reason)
      .def("info", [](Connection& c) {
        const auto info = c.info();
        return py::make_tuple(info.state, info.reason, info.peer_mac, info.operations,
                              info.receives, info.eager, info.local_port, info.peer_port);
      });
}

}  // namespace

PYBIND11_MODULE(_stp, module) {
  py::register_exception_translator([](std::exception_ptr thrown) {
    try {
      std::rethrow_exception(thrown);
    } catch (const Failed& failed) {
      raise(failed);
    } catch (const stp::NoThread& none) {
      raise({-none.code().value(), none.cause(), none.remedy()});
    } catch (const Raised&) {
      // The interpreter knows its exception.
    }
  });
  define_operation(module);
  define_domain(module);
  define_connection(module);
  module.def("set_error_maker",
             [](const py::object& maker) { make_error = maker.inc_ref().ptr(); });
  module.def("strerror", [](int error) { return std::string(st_strerror(-error)); });
  module.def("bytes_of", [](const std::string& argument, const py::object& object) {
    const auto buffer = readable(object, argument.c_str());
    return py::bytes(buffer.data(), buffer.size());
  });
  module.def("decode_remote", [](const py::object& bytes) {
    const auto buffer = readable(bytes, "remote");
    if (buffer.size() != STM_REMOTE_SIZE) throw Failed{-EINVAL, "remote: it has not 24 bytes"};
    stm_remote_t remote{};
    stm_remote_decode(buffer.data(), &remote);
    return py::make_tuple(remote.address, remote.length, remote.key, remote.access);
  });
  module.def("warn_after", [](std::int64_t microseconds) { Operation::warn_after = microseconds; });
  module.def("warns_after", [] { return Operation::warn_after; });
  module.def("end_all", &Domain::end_all);
  module.def("forked", &Domain::forked);
  module.def("inherited", &Domain::inherited);
}
