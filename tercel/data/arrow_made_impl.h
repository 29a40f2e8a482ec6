// Structs of the C data interface that are made here: by the library for the Arrow module, and by the module. Private.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tercel/util/arrow_c.h"

namespace tercel::data {

/** A field of a format ("l", "f", "u", "+l", "+s"); it owns its children. */
ArrowSchema make_field(std::string format, std::string name, bool nullable, std::vector<ArrowSchema> children = {});

/** An array over buffers that `data` owns; it owns its children. */
ArrowArray make_array(int64_t length, int64_t nulls, std::vector<const void*> buffers, std::shared_ptr<const void> data,
                      std::vector<ArrowArray> children = {});

/** Gives a field or an array that was made here the dictionary of its values, which it owns. */
void set_dictionary(ArrowSchema& field, ArrowSchema values);
void set_dictionary(ArrowArray& array, ArrowArray values);

}  // namespace tercel::data
