#include "tercel/data/batch.h"

#include "tercel/util/format.h"

namespace tercel::data {

const SparseBatch& Batch::input(std::string_view name) const {
  for (const SparseBatch& candidate : sparse)
    if (candidate.name == name) return candidate;
  std::string known;
  for (const SparseBatch& candidate : sparse) known += (known.empty() ? "'" : ", '") + candidate.name + "'";
  throw_error<ConfigError>(
      {"batch: expected a sparse input '", printable(name), "', found ", known.empty() ? "none" : printable(known)});
}

}  // namespace tercel::data
