// Sizes in a graph that depend on the data. Private.
#pragma once

#include "tercel/data/schema.h"
#include "tercel/util/json_impl.h"

namespace tercel::recsys {

// Note [Sizes of the data]
// A graph may say a number as a text that begins with '=', such as "=16 * (slots + dense)": integers, + and *,
// parentheses, and the names `slots`, `dense` (values), `labels` (columns), `hotness` (the most keys that a row has in
// any slot) and `slot(NAME)` (the position of a slot). One graph then serves datasets of any shape. The resolved graph
// has the numbers.
/** The layers with numbers in place of such texts. ConfigError with the path of one that is wrong. */
Json with_sizes(Json layers, const data::Schema& schema);

}  // namespace tercel::recsys
