// Arrow's tables in the structs of the C data interface. Private.
#pragma once

#include <arrow/record_batch.h>
#include <arrow/status.h>

#include <memory>

#include "tercel/util/arrow_c.h"

namespace tercel::arrow_module {

/**
 * The batches of a reader as a stream; its errors are errno values, with the status as text. Of numbers, times, lists
 * of these, and dictionaries of numbers: what the library reads.
 *
 * Arrow's own export (arrow/c/bridge.h) allocates from the default pool: see pool_that_forks().
 */
void export_stream(std::shared_ptr<::arrow::RecordBatchReader> reader, ArrowArrayStream* out);

}  // namespace tercel::arrow_module
