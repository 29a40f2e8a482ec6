// Features of libsvm's and libffm's text. Private.
//
// Note [Features]
// A line is a label, then "index:value" of each feature, in libffm's text "field:index:value", separated by blanks; "#"
// begins a comment. Indices are names: they may count from 0 or 1, be large, come in any order and more than once. A
// feature whose value is 0 is as if it were not there, unless values are weights. "qid:N" of libsvm's text is left out.
#pragma once

#include <memory>
#include <string_view>

#include "tercel/data/row_parser_impl.h"

namespace tercel::data {

struct Feature {
  std::string_view field;  // libffm's
  std::string_view index;  // without zeros in front
  double value = 0;
};

/** The feature in a column; false for "qid:N". DataError for other texts. */
bool split_feature(const RecordReader& record, size_t column, const TextFormat& format, Feature& out);

}  // namespace tercel::data
