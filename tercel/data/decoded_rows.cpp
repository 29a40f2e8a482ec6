#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <type_traits>
#include <utility>

#include "tercel/data/column_kernels.h"
#include "tercel/data/decoded_rows_impl.h"
#include "tercel/util/error.h"
#include "tercel/util/format.h"
#include "tercel/util/small_vector.h"

namespace tercel::data {

namespace {

// Rows that are copied column by column before the next ones: their part of a batch stays in the second cache.
constexpr int64_t kBlockRows = 2048;

constinit const KernelTable<KeyColumnsFn> key_kernels = TERCEL_CPU_KERNELS(interleave_keys);
constinit const KernelTable<FloatColumnsFn> float_kernels = TERCEL_CPU_KERNELS(interleave_floats);

template <class T>
void copy_to(std::vector<T>& out, const T* from, int64_t count) {
  if (count > 0) out.insert(out.end(), from, from + count);
}

void append_bad(std::vector<BadCell>& out, const std::vector<BadCell>& from, int64_t begin, int64_t count, int64_t at) {
  const auto before = [](const BadCell& cell, int64_t row) { return cell.row < row; };
  for (auto cell = std::lower_bound(from.begin(), from.end(), begin, before);
       cell != from.end() && cell->row < begin + count; ++cell)
    out.push_back({cell->row - begin + at, cell->kind, cell->found});
}

const BadCell* find_bad(const std::vector<BadCell>& bad, int64_t row) {
  const auto found =
      std::lower_bound(bad.begin(), bad.end(), row, [](const BadCell& cell, int64_t r) { return cell.row < r; });
  return found != bad.end() && found->row == row ? &*found : nullptr;
}

/** Whether one of the rows is among the bad ones. */
template <class RowAt>
bool has_bad(const std::vector<BadCell>& bad, RowAt row_at, int64_t count) {
  if (bad.empty()) return false;
  for (int64_t i = 0; i < count; ++i)
    if (find_bad(bad, row_at(i))) return true;
  return false;
}

/** Row i of consecutive ones, and of mixed ones. */
struct RowsFrom {
  int64_t first;
  int64_t operator()(int64_t i) const { return first + i; }
};
struct RowsOf {
  const uint32_t* mix;
  int64_t operator()(int64_t i) const { return int64_t{mix[i]}; }
};

}  // namespace

std::optional<int64_t> FloatColumn::first_list_length(int64_t rows) const {
  int64_t row = 0;  // no row before it has a list
  for (const BadCell& cell : bad) {
    if (cell.row != row) break;
    if (cell.kind == BadCell::Kind::Count) return std::max<int64_t>(1, cell.found);
    ++row;
  }
  return row < rows ? std::optional<int64_t>(1) : std::nullopt;
}

void DecodedRows::clear_like(const DecodedRows& other) {
  rows = 0;
  origins.clear();
  floats.resize(other.floats.size());
  keys.resize(other.keys.size());
  columns.resize(other.columns.size());
  for (size_t c = 0; c < floats.size(); ++c) {
    floats[c].width = other.floats[c].width;
    floats[c].own.clear();
    floats[c].bad.clear();
  }
  for (size_t c = 0; c < keys.size(); ++c) {
    keys[c].per_row = other.keys[c].per_row;
    keys[c].is_unsigned = other.keys[c].is_unsigned;
    keys[c].own.clear();
    keys[c].own_offsets.clear();
    keys[c].offsets = nullptr;
    keys[c].own_weights.clear();
    keys[c].bad.clear();
  }
  for (FurtherColumn& column : columns) {
    column.own_floats.clear();
    column.own_integers.clear();
    column.bad.clear();
  }
}

void DecodedRows::append(const DecodedRows& from, int64_t begin, int64_t count) {
  if (count == 0) return;
  // The origin of the first row, and further ones that begin among the rows.
  const auto behind = std::upper_bound(from.origins.begin(), from.origins.end(), begin,
                                       [](int64_t row, const RowOrigin& origin) { return row < origin.first; });
  for (auto origin = behind - 1; origin != from.origins.end() && origin->first < begin + count; ++origin) {
    const int64_t skipped = std::max<int64_t>(0, begin - origin->first);
    origins.push_back(
        {rows + std::max<int64_t>(0, origin->first - begin), origin->file, origin->group, origin->row + skipped});
  }
  for (size_t c = 0; c < floats.size(); ++c) {
    FloatColumn& to = floats[c];
    copy_to(to.own, from.floats[c].values + begin * to.width, count * to.width);
    to.values = to.own.data();
    append_bad(to.bad, from.floats[c].bad, begin, count, rows);
  }
  for (size_t c = 0; c < keys.size(); ++c) {
    KeyColumn& to = keys[c];
    const KeyColumn& source = from.keys[c];
    const int64_t first = source.begin(begin),
                  num = source.begin(begin + count - 1) + source.count(begin + count - 1) - first;
    const auto base = static_cast<int64_t>(to.own.size());
    copy_to(to.own, source.keys + first, num);
    to.keys = to.own.data();
    if (source.weights) {
      copy_to(to.own_weights, source.weights + first, num);
      to.weights = to.own_weights.data();
    }
    if (source.offsets && to.own_offsets.empty())
      for (int64_t row = 0; row <= rows; ++row) to.own_offsets.push_back(row * to.per_row);
    if (!to.own_offsets.empty()) {
      for (int64_t row = begin; row < begin + count; ++row)
        to.own_offsets.push_back(base + source.begin(row) + source.count(row) - first);
      to.offsets = to.own_offsets.data();
    }
    append_bad(to.bad, source.bad, begin, count, rows);
  }
  for (size_t c = 0; c < columns.size(); ++c) {
    FurtherColumn& to = columns[c];
    const FurtherColumn& source = from.columns[c];
    if (source.floats) {
      copy_to(to.own_floats, source.floats + begin, count);
      to.floats = to.own_floats.data();
    } else {
      copy_to(to.own_integers, source.integers + begin, count);
      to.integers = to.own_integers.data();
    }
    append_bad(to.bad, source.bad, begin, count, rows);
  }
  rows += count;
}

RowAssembler::RowAssembler(RowRules rules, BatchShape shape, ColumnNames names, std::vector<int64_t> add,
                           std::vector<std::string> files)
    : rules_(std::move(rules)),
      shape_(std::move(shape)),
      names_(std::move(names)),
      add_(std::move(add)),
      files_(std::move(files)) {
  size_t slot = 0;
  for (const BatchShape::Input& input : shape_.inputs) {
    first_slot_.push_back(slot);
    slot += static_cast<size_t>(input.slot_num);
    row_nnz_.push_back(std::accumulate(input.hotness.begin(), input.hotness.end(), int64_t{0}));
  }
  TERCEL_ASSERT(slot == rules_.slots().size() && slot == add_.size());
  for (const RowRules::SlotRule& rule : rules_.slots()) {
    first_key_.push_back(rule.first_key);
    key_range_.push_back(rule.key_range);
  }
}

template <class RowAt>
bool RowAssembler::copy_floats(const DecodedRows& from, RowAt row_at, int64_t begin, int64_t end, int64_t batch_row,
                               BatchBuffer& out) const {
  bool good = true;
  int64_t at = 0;  // among the labels, then among the dense values
  bool labels = true;
  for (const FloatColumn& column : from.floats) {
    if (labels && at == shape_.label_dim) {
      labels = false;
      at = 0;
      if constexpr (std::is_same_v<RowAt, RowsFrom>) {
        const auto is_scalar = [](const FloatColumn& of) { return of.width == 1; };
        const FloatColumn* const last = from.floats.data() + from.floats.size();
        if (std::all_of(&column, last, is_scalar))
          return interleave_dense(from, &column, row_at(begin), end - begin, batch_row + begin, out) && good;
      }
    }
    const int64_t dim = labels ? shape_.label_dim : shape_.dense_dim;
    float* to = (labels ? out.labels : out.dense) + (batch_row + begin) * dim + at;
    const float* values = column.values;
    const int64_t width = column.width;
    const auto copy = [&](auto is_good) {
      if (width == 1) {
        for (int64_t i = begin; i < end; ++i, to += dim) {
          const float value = values[row_at(i)];
          good &= is_good(value);
          *to = value;
        }
        return;
      }
      for (int64_t i = begin; i < end; ++i, to += dim) {
        const float* source = values + row_at(i) * width;
        for (int64_t k = 0; k < width; ++k) {
          good &= is_good(source[k]);
          to[k] = source[k];
        }
      }
    };
    if (labels)
      copy([&](float value) { return rules_.is_label(value); });
    else
      copy([](float value) { return RowRules::is_dense_value(value); });
    at += width;
  }
  return good;
}

template <class RowAt>
bool RowAssembler::copy_uniform(const DecodedRows& from, size_t input, RowAt row_at, int64_t begin, int64_t end,
                                int64_t batch_row, BatchBuffer& out) const {
  bool good = true;
  const BatchShape::Input& shape = shape_.inputs[input];
  const int64_t row_nnz = row_nnz_[input];
  int64_t at = 0;
  for (size_t s = 0; s < shape.hotness.size(); ++s) {
    const size_t slot = first_slot_[input] + s;
    const RowRules::SlotRule rule = rules_.slots()[slot];
    const KeyColumn& column = from.keys[slot];
    const int64_t add = add_[slot], hotness = rule.hotness;
    int64_t* to = out.inputs[input].keys + (batch_row + begin) * row_nnz + at;
    float* weights = out.inputs[input].key_weights;
    if (weights) weights += (batch_row + begin) * row_nnz + at;
    if (!column.offsets && hotness == 1 && !weights) {
      for (int64_t i = begin; i < end; ++i, to += row_nnz) {
        const int64_t key = add_wrapping(column.keys[row_at(i)], add);
        good &= rule.has(key);
        *to = key;
      }
    } else {
      for (int64_t i = begin; i < end; ++i, to += row_nnz) {
        const int64_t row = row_at(i), first = column.begin(row);
        if (column.count(row) != hotness) return false;
        for (int64_t k = 0; k < hotness; ++k) {
          const int64_t key = add_wrapping(column.keys[first + k], add);
          good &= rule.has(key);
          to[k] = key;
        }
        if (!weights) continue;
        for (int64_t k = 0; k < hotness; ++k) {
          weights[k] = column.weights ? column.weights[first + k] : 1.0f;
          good &= RowRules::is_dense_value(weights[k]);
        }
        weights += row_nnz;
      }
    }
    at += hotness;
  }
  return good;
}

bool RowAssembler::is_one_hot(const DecodedRows& from, size_t input) const {
  if (shape_.inputs[input].key_weights) return false;
  const auto slots = static_cast<size_t>(shape_.inputs[input].slot_num);
  for (size_t slot = first_slot_[input]; slot < first_slot_[input] + slots; ++slot)
    if (from.keys[slot].offsets || rules_.slots()[slot].hotness != 1) return false;
  return true;
}

bool RowAssembler::interleave_one_hot(const DecodedRows& from, size_t input, int64_t first, int64_t count,
                                      int64_t batch_row, BatchBuffer& out) const {
  const size_t slot = first_slot_[input];
  const int64_t slots = shape_.inputs[input].slot_num;
  SmallVector<const int64_t*, 64> columns;
  for (int64_t s = 0; s < slots; ++s) columns.push_back(from.keys[slot + static_cast<size_t>(s)].keys + first);
  const KeyColumnsLoop loop{{columns.data(), slots, out.inputs[input].keys + batch_row * slots, slots},
                            add_.data() + slot,
                            first_key_.data() + slot,
                            key_range_.data() + slot};
  return key_kernels[kCpu](loop, 0, count);
}

bool RowAssembler::interleave_dense(const DecodedRows& from, const FloatColumn* dense, int64_t first, int64_t count,
                                    int64_t batch_row, BatchBuffer& out) const {
  SmallVector<const float*, 64> columns;
  for (; dense != from.floats.data() + from.floats.size(); ++dense) columns.push_back(dense->values + first);
  const ColumnsLoop<float> loop{columns.data(), shape_.dense_dim, out.dense + batch_row * shape_.dense_dim,
                                shape_.dense_dim};
  return float_kernels[kCpu](loop, 0, count);
}

template <class RowAt>
bool RowAssembler::copy_ragged(const DecodedRows& from, size_t input, RowAt row_at, int64_t count, int64_t batch_row,
                               BatchBuffer& out) const {
  bool good = true;
  const int64_t slots = shape_.inputs[input].slot_num;
  BatchBuffer::Input& target = out.inputs[input];
  int64_t* const offsets = target.row_offsets + batch_row * slots;
  const KeyColumn* const columns = from.keys.data() + first_slot_[input];
  for (int64_t s = 0; s < slots; ++s) {
    const RowRules::SlotRule& rule = rules_.slots()[first_slot_[input] + static_cast<size_t>(s)];
    for (int64_t i = 0; i < count; ++i) {
      const int64_t num = columns[s].count(row_at(i));
      if (!rule.allows(num)) return false;
      offsets[i * slots + s + 1] = num;
    }
  }
  int64_t next = target.nnz;
  for (int64_t bag = 1; bag <= count * slots; ++bag) offsets[bag] = next += offsets[bag];
  out.reserve_keys(input, next);
  for (int64_t s = 0; s < slots; ++s) {
    const size_t slot = first_slot_[input] + static_cast<size_t>(s);
    const RowRules::SlotRule rule = rules_.slots()[slot];
    const int64_t add = add_[slot];
    const KeyColumn& column = columns[s];
    for (int64_t i = 0; i < count; ++i) {
      const int64_t begin = offsets[i * slots + s], end = offsets[i * slots + s + 1];
      const int64_t source = column.begin(row_at(i));
      for (int64_t k = begin; k < end; ++k) {
        const int64_t key = add_wrapping(column.keys[source + k - begin], add);
        good &= rule.has(key);
        target.keys[k] = key;
      }
      if (!target.key_weights) continue;
      for (int64_t k = begin; k < end; ++k) {
        const float weight = column.weights ? column.weights[source + k - begin] : 1.0f;
        good &= RowRules::is_dense_value(weight);
        target.key_weights[k] = weight;
      }
    }
  }
  target.nnz = next;
  return good;
}

template <class RowAt>
bool RowAssembler::copy_columns(const DecodedRows& from, RowAt row_at, int64_t count, int64_t batch_row,
                                BatchBuffer& out) const {
  bool good = true;
  for (size_t c = 0; c < from.columns.size(); ++c) {
    const FurtherColumn& column = from.columns[c];
    const bool is_weight = shape_.columns[c].is_weight;
    if (column.floats) {
      auto* to = static_cast<float*>(out.columns[c]) + batch_row;
      for (int64_t i = 0; i < count; ++i) {
        to[i] = column.floats[row_at(i)];
        good &= RowRules::is_dense_value(to[i]) & (!is_weight | (to[i] >= 0));
      }
    } else {
      auto* to = static_cast<int64_t*>(out.columns[c]) + batch_row;
      for (int64_t i = 0; i < count; ++i) {
        to[i] = column.integers[row_at(i)];
        good &= !is_weight | (to[i] >= 0);
      }
    }
  }
  return good;
}

template <class RowAt>
bool RowAssembler::copy_rows(const DecodedRows& from, RowAt row_at, int64_t count, int64_t batch_row,
                             BatchBuffer& out) const {
  for (const FloatColumn& column : from.floats)
    if (has_bad(column.bad, row_at, count)) return false;
  for (const KeyColumn& column : from.keys)
    if (has_bad(column.bad, row_at, count)) return false;
  for (const FurtherColumn& column : from.columns)
    if (has_bad(column.bad, row_at, count)) return false;
  for (int64_t begin = 0; begin < count; begin += kBlockRows) {
    const int64_t end = std::min(begin + kBlockRows, count);
    if (!copy_floats(from, row_at, begin, end, batch_row, out)) return false;
    for (size_t input = 0; shape_.uniform && input < shape_.inputs.size(); ++input) {
      if constexpr (std::is_same_v<RowAt, RowsFrom>) {
        if (is_one_hot(from, input)) {
          if (!interleave_one_hot(from, input, row_at(begin), end - begin, batch_row + begin, out)) return false;
          continue;
        }
      }
      if (!copy_uniform(from, input, row_at, begin, end, batch_row, out)) return false;
    }
  }
  for (size_t input = 0; !shape_.uniform && input < shape_.inputs.size(); ++input)
    if (!copy_ragged(from, input, row_at, count, batch_row, out)) return false;
  return copy_columns(from, row_at, count, batch_row, out);
}

template <class RowAt>
void RowAssembler::decode_rows(const DecodedRows& from, RowAt row_at, const Places& places, BatchBuffer& out) const {
  std::vector<int64_t> nnz;
  for (const BatchBuffer::Input& input : out.inputs) nnz.push_back(input.nnz);
  if (copy_rows(from, row_at, places.count, places.batch_row, out)) [[likely]]
    return;
  for (int64_t i = 0; i < places.count; ++i) {
    try {
      check_row(from, row_at(i));
    } catch (const DataError& error) {
      // Columns were copied one after the other: the rows before the bad one once more, all of them.
      for (size_t input = 0; input < nnz.size() && !shape_.uniform; ++input) out.inputs[input].nnz = nnz[input];
      TERCEL_ASSERT(copy_rows(from, row_at, i, places.batch_row, out));
      throw BadRecord(error.what(), places.begin + i);
    }
  }
  throw_error<InternalError>({"columns: a batch has a bad row, and no row is bad"});
}

void RowAssembler::decode(const DecodedRows& from, int64_t first, const uint32_t* mix, const Places& places,
                          BatchBuffer& out) const {
  if (mix)
    decode_rows(from, RowsOf{mix}, places, out);
  else
    decode_rows(from, RowsFrom{first}, places, out);
}

void RowAssembler::fail(const DecodedRows& from, int64_t row, std::string_view column, std::string_view expected,
                        std::string_view found) const {
  const auto behind = std::upper_bound(from.origins.begin(), from.origins.end(), row,
                                       [](int64_t r, const RowOrigin& origin) { return r < origin.first; });
  const RowOrigin& origin = *(behind - 1);
  const std::string group = origin.group < 0 ? "" : str_cat({"row group ", origin.group, ": "});
  throw_error<DataError>({printable(files_[origin.file]), ": ", group, "row ", origin.row + row - origin.first,
                          ": column '", printable(column), "': expected ", expected, ", found ", found});
}

void RowAssembler::check_row(const DecodedRows& from, int64_t row) const {
  const auto check_bad = [&](const std::vector<BadCell>& bad, const std::string& column, int64_t width,
                             const std::string& weights) {
    const BadCell* cell = find_bad(bad, row);
    if (!cell) return;
    switch (cell->kind) {
      case BadCell::Kind::Missing: fail(from, row, column, "a value", "none (null)");
      case BadCell::Kind::Count:
        fail(from, row, column, str_cat({"a list of ", width, " values"}), str_cat({cell->found}));
      case BadCell::Kind::Weights: fail(from, row, column, "a weight for each key", str_cat({cell->found, " weights"}));
      case BadCell::Kind::MissingWeight: fail(from, row, weights, "a value", "none (null)");
      case BadCell::Kind::Range:
        fail(from, row, column, str_cat({"an integer up to ", std::numeric_limits<int64_t>::max()}),
             str_cat({static_cast<uint64_t>(cell->found)}));
    }
  };
  int64_t at = 0;
  for (size_t c = 0; c < from.floats.size(); ++c) {
    const FloatColumn& column = from.floats[c];
    check_bad(column.bad, names_.floats[c], column.width, {});
    for (int64_t k = 0; k < column.width; ++k, ++at) {
      const float value = column.values[row * column.width + k];
      if (at < shape_.label_dim && !rules_.is_label(value))
        fail(from, row, names_.floats[c], rules_.expected_label(at), format_double(value));
      if (at >= shape_.label_dim && !RowRules::is_dense_value(value))
        fail(from, row, names_.floats[c], rules_.expected_dense(at - shape_.label_dim), format_double(value));
    }
  }
  for (size_t slot = 0; slot < from.keys.size(); ++slot) {
    const KeyColumn& column = from.keys[slot];
    const RowRules::SlotRule& rule = rules_.slots()[slot];
    check_bad(column.bad, names_.keys[slot], 0, names_.weights[slot]);
    const int64_t first = column.begin(row), count = column.count(row);
    const auto text = [&](int64_t key) {
      return column.is_unsigned ? str_cat({static_cast<uint64_t>(key)}) : str_cat({key});
    };
    if (!rule.allows(count) || (shape_.uniform && count != rule.hotness))
      fail(from, row, names_.keys[slot], rules_.expected_count(slot, shape_.uniform), str_cat({count}));
    for (int64_t k = first; k < first + count; ++k) {
      if (!rule.has(add_wrapping(column.keys[k], add_[slot])))
        fail(from, row, names_.keys[slot], rules_.expected_key(slot),
             add_[slot] == 0 ? text(column.keys[k])
                             : str_cat({text(column.keys[k]), " (", text(add_wrapping(column.keys[k], add_[slot])),
                                        " with the slot's offset)"}));
      if (column.weights && !RowRules::is_dense_value(column.weights[k]))
        fail(from, row, names_.keys[slot], "weights that are finite numbers", format_double(column.weights[k]));
    }
  }
  for (size_t c = 0; c < from.columns.size(); ++c) {
    const FurtherColumn& column = from.columns[c];
    check_bad(column.bad, names_.columns[c], 1, {});
    if (column.floats && !RowRules::is_dense_value(column.floats[row]))
      fail(from, row, names_.columns[c], "a finite number", format_double(column.floats[row]));
    if (shape_.columns[c].is_weight && (column.floats ? column.floats[row] < 0 : column.integers[row] < 0))
      fail(from, row, names_.columns[c], "a weight that is not negative",
           column.floats ? format_double(column.floats[row]) : str_cat({column.integers[row]}));
  }
}

void decode_parts(const RowAssembler& assembler, Span<DecodedPart> parts, Span<uint32_t> mix, const Places& places,
                  BatchBuffer& out) {
  const auto row_at = [&](int64_t place) { return mix.empty() ? place : int64_t{mix[static_cast<size_t>(place)]}; };
  const auto* part = std::upper_bound(parts.begin(), parts.end(), row_at(places.begin),
                                      [](int64_t row, const DecodedPart& other) { return row < other.first; }) -
                     1;
  std::vector<uint32_t> rows;  // of the part, if there is a mix
  const int64_t end = places.begin + places.count;
  for (int64_t place = places.begin, batch_row = places.batch_row; place < end; ++part) {
    const int64_t part_end = part->first + part->count;
    int64_t count = std::min(end - place, part_end - row_at(place));
    if (!mix.empty()) {
      rows.clear();
      for (int64_t i = place; i < end && row_at(i) < part_end; ++i)
        rows.push_back(static_cast<uint32_t>(part->skip + row_at(i) - part->first));
      count = static_cast<int64_t>(rows.size());
      if (count == 0) continue;
    }
    if (part->error) std::rethrow_exception(part->error);
    assembler.decode(*part->rows, part->skip + row_at(place) - part->first, mix.empty() ? nullptr : rows.data(),
                     {place, count, batch_row}, out);
    place += count;
    batch_row += count;
  }
}

}  // namespace tercel::data
