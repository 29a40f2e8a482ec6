// Python bindings of tercel/data: what python/tercel/data is made of.
#pragma once

#include <string_view>

#include "python/src/python.h"
#include "tercel/data/dataset.h"

namespace tercel::python {

/** The part of a name; ConfigError with the names that there are for another one. */
data::PartName to_part(std::string_view name);

/** The fields of Python's Schema. */
nb::dict schema_to_dict(const data::Schema& schema);
/** The reverse; ConfigError for names, ranges or sizes that make no sense. */
data::Schema to_schema(const nb::dict& values);

void register_datasets(nb::module_& m);
void register_batches(nb::module_& m);
void register_stores(nb::module_& m);

}  // namespace tercel::python
