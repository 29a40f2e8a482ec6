// Names of the types of the Arrow C data interface, for messages.
#pragma once

#include <string>

#include "tercel/util/arrow_c.h"
#include "tercel/util/export.h"

namespace tercel {

/**
 * "int64", "list<double>", "decimal128(2, 1)", "timestamp[us, tz=UTC]": the type of a field as Arrow writes it, but
 * of structs, maps and unions without their fields; "format 'x'" for one that is not known.
 */
TERCEL_API std::string arrow_type_text(const ArrowSchema& field);

}  // namespace tercel
