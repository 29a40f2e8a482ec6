// Messages for memory that a batch needs and that there is not. Private.
#pragma once

#include <cstdint>
#include <new>
#include <string_view>

#include "tercel/util/error.h"

namespace tercel::recsys {

/** Throws "[MLP top]: a batch of 1000 rows: <reason>; a smaller batchsize in 'solver' needs less memory". */
[[noreturn, gnu::cold, gnu::noinline]] inline void throw_batch_without_memory(std::string_view place, int64_t rows,
                                                                              bool training, std::string_view reason) {
  throw_error<OutOfMemoryError>({place, ": a batch of ", rows, rows == 1 ? " row: " : " rows: ", reason,
                                 "; a smaller solver.", training ? "batchsize" : "batchsize_eval",
                                 " needs less memory"});
}

/** Calls f; if memory runs out, the OutOfMemoryError names the place that describe() returns and the batch size. */
template <class Describe, class F>
void name_batch_without_memory(const Describe& describe, int64_t rows, bool training, const F& f) {
  try {
    f();
  } catch (const OutOfMemoryError& e) {
    throw_batch_without_memory(describe(), rows, training, e.what());
  } catch (const std::bad_alloc&) {
    throw_batch_without_memory(describe(), rows, training, "out of memory");
  }
}

}  // namespace tercel::recsys
