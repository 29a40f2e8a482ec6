// The collectives, as transfers between ranks. See Note [Collectives]. Private.
#pragma once

#include <cstdint>
#include <vector>

#include "tercel/distributed/exchange_impl.h"
#include "tercel/distributed/process_group.h"

namespace tercel::distributed {

/** Where the part of each rank begins in an array, and, last, where the array ends. */
using PartBounds = std::vector<int64_t>;

/** So many elements for each of `ranks`, or of nearly the same number: the longer ones first. */
PartBounds equal_parts(int64_t elements, int64_t ranks);

// A collective has phases, from 0 on. A call begins the transfers of one, for Exchange::poll() to advance, and is made
// once those of the phase before are done, with the same arguments. It gives false if there is no such phase: the
// collective is complete.
//
// Arrays are of bytes, and bounds too. Sizes are the same on all ranks, or fit those of the others.

bool barrier(Exchange& exchange, int64_t phase);
bool broadcast(Exchange& exchange, int64_t phase, void* data, int64_t bytes, int64_t root);
/** `in` may be the rank's part of `out`. */
bool all_gather(Exchange& exchange, int64_t phase, void* out, const PartBounds& bounds, const void* in);
bool all_to_all(Exchange& exchange, int64_t phase, void* out, const PartBounds& out_bounds, const void* in,
                const PartBounds& bounds);

/** The elements of a reduction. */
struct Elements {
  int64_t count = 0;
  int64_t bytes = 0;  // of one
  const ReduceFunction& reduce;
};
bool all_reduce(Exchange& exchange, int64_t phase, void* data, const Elements& elements);
/** `elements` are those of `out`. */
bool reduce_scatter(Exchange& exchange, int64_t phase, void* out, const void* in, const Elements& elements);

}  // namespace tercel::distributed
