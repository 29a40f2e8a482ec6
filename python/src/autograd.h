// Graph nodes as Python objects.
#pragma once

#include "python/src/python.h"
#include "tercel/autograd/node.h"

namespace tercel::python {

/** A new reference to an object of a class with the node's name. */
PyObject* from_node(const intrusive_ptr<Node>& node);

void register_autograd(nb::module_& m);

}  // namespace tercel::python
