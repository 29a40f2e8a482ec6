#include "tercel/data/array_inputs.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "tercel/core/convert.h"
#include "tercel/data/row_rules_impl.h"
#include "tercel/util/error.h"
#include "tercel/util/format.h"
#include "tercel/util/suggest.h"

namespace tercel::data {

namespace {

std::string title_of(const ArrayInput& array) { return str_cat({"input '", printable(array.name), "'"}); }

void check_dtype(const ArrayInput& array, const char* what, const Tensor& values, bool keys) {
  TERCEL_CHECK(values.defined() && values.has_storage() && values.device().is_cpu(), TypeError, title_of(array),
               ": expected ", what, " in a strided tensor on the CPU");
  const ScalarType dtype = values.dtype();
  const bool integer = dtype == kInt32 || dtype == kInt64;
  TERCEL_CHECK(integer || (!keys && (dtype == kFloat32 || dtype == kFloat64)), TypeError, title_of(array),
               ": expected ", what, keys ? " of int32 or int64" : " of float32, float64, int32 or int64", " but got ",
               to_string(dtype));
}

/** Calls f(element) for each element in order. */
template <class From, class F>
void for_each_element(const Tensor& t, const From* data, size_t d, const F& f) {
  if (d == t.sizes().size()) {
    f(*data);
    return;
  }
  for (int64_t i = 0; i < t.sizes()[d]; ++i) for_each_element(t, data + i * t.strides()[d], d + 1, f);
}

template <class To>
void copy_elements(const Tensor& t, To* out) {
  if (t.numel() == 0) return;
  const auto copy = [&]<class From>(const From* data) {
    for_each_element(t, data, 0, [&out](From x) { *out++ = convert<To>(x); });
  };
  switch (t.dtype()) {
    case kFloat32: return copy(t.data<float>());
    case kFloat64: return copy(t.data<double>());
    case kInt32: return copy(t.data<int32_t>());
    default: return copy(t.data<int64_t>());
  }
}

std::vector<int64_t> integers_of(const Tensor& t) {
  std::vector<int64_t> values(static_cast<size_t>(t.numel()));
  copy_elements(t, values.data());
  return values;
}

/** Keys of some slots of all rows: bag row * slots + slot has keys[offsets[bag]] to keys[offsets[bag + 1] - 1]. */
struct Bags {
  const ArrayInput* array = nullptr;
  int64_t slots = 0, rows = 0;
  std::vector<int64_t> keys, offsets;
  std::vector<float> weights;  // of the keys, or none
};

std::vector<float> weights_of(const ArrayInput& array) {
  if (!array.key_weights.defined()) return {};
  check_dtype(array, "weights", array.key_weights, /*keys=*/false);
  TERCEL_CHECK(array.key_weights.sizes() == array.values.sizes(), ValueError, title_of(array),
               ": expected a weight for each key, ", array.values.sizes(), ", but got ", array.key_weights.sizes());
  std::vector<float> weights(static_cast<size_t>(array.key_weights.numel()));
  copy_elements(array.key_weights, weights.data());
  return weights;
}

Bags ragged_bags(const ArrayInput& array, int64_t slots) {
  check_dtype(array, "row offsets", array.row_offsets, /*keys=*/true);
  Bags bags{&array, slots, 0, {}, {}, weights_of(array)};
  TERCEL_CHECK(array.values.dim() == 1 && array.row_offsets.dim() == 1, ValueError, title_of(array),
               ": expected keys [nnz] and row offsets, but got ", array.values.sizes(), " and ",
               array.row_offsets.sizes());
  bags.offsets = integers_of(array.row_offsets);
  const auto count = static_cast<int64_t>(bags.offsets.size());
  TERCEL_CHECK(count >= 1 && (count - 1) % slots == 0, ValueError, title_of(array), ": expected a multiple of ", slots,
               " and one more row offsets, for ", slots, slots == 1 ? " slot" : " slots", ", but got ", count);
  const bool ascending = std::is_sorted(bags.offsets.begin(), bags.offsets.end());
  TERCEL_CHECK(ascending && bags.offsets.front() == 0 && bags.offsets.back() == array.values.numel(), ValueError,
               title_of(array), ": expected ascending row offsets from 0 to ", array.values.numel(),
               ", the number of keys");
  bags.rows = (count - 1) / slots;
  bags.keys = integers_of(array.values);
  return bags;
}

Bags read_bags(const ArrayInput& array, int64_t slots) {
  check_dtype(array, "keys", array.values, /*keys=*/true);
  if (array.row_offsets.defined()) return ragged_bags(array, slots);
  const IntSpan sizes = array.values.sizes();
  const bool by_slot = sizes.size() >= 2 && sizes.size() <= 3 && sizes[1] == slots;
  const bool one_slot = slots == 1 && (sizes.size() == 1 || sizes.size() == 2);
  TERCEL_CHECK(
      by_slot || one_slot, ValueError, title_of(array), ": expected keys ",
      slots == 1 ? std::string("[batch] or [batch, n]") : str_cat({"[batch, ", slots, "] or [batch, ", slots, ", n]"}),
      ", or [nnz] with row offsets, but got ", sizes);
  Bags bags{&array, slots, sizes[0], integers_of(array.values), {}, weights_of(array)};
  const int64_t count = one_slot ? (sizes.size() == 1 ? 1 : sizes[1]) : (sizes.size() == 2 ? 1 : sizes[2]);
  for (int64_t bag = 0; bag <= bags.rows * slots; ++bag) bags.offsets.push_back(bag * count);
  return bags;
}

class BatchMaker {
 public:
  BatchMaker(Span<ArrayInput> arrays, const Schema& schema, Span<SparseInput> inputs, std::string_view dense_name,
             const Tensor& labels, const Tensor& weights)
      : arrays_(arrays),
        inputs_(inputs),
        dense_name_(dense_name),
        labels_{"labels", labels},
        weights_{"weights", weights},
        rules_(schema, /*binary_labels=*/false, std::numeric_limits<uint64_t>::max(), inputs) {}

  Batch make() {
    check_names();
    set_dense();
    size_t first_slot = 0;
    for (const SparseInput& input : inputs_) {
      add_sparse(input, first_slot);
      first_slot += static_cast<size_t>(input.slot_num);
    }
    TERCEL_CHECK(counted_, ValueError, "batch: no inputs are given");
    if (labels_.values.defined()) set_labels();
    if (weights_.values.defined()) set_weights();
    if (!batch_.dense.defined()) batch_.dense = empty({batch_.rows, 0}, kFloat32);
    batch_.global_rows = batch_.rows;
    return std::move(batch_);
  }

 private:
  const Schema& schema() const { return rules_.schema(); }

  const ArrayInput* find(std::string_view name) const {
    for (const ArrayInput& array : arrays_)
      if (array.name == name) return &array;
    return nullptr;
  }

  void check_names() const {
    std::vector<std::string_view> known;
    if (schema().dense_dim > 0) known.push_back(dense_name_);
    for (const SparseInput& input : inputs_) known.push_back(input.name);
    for (const Slot& slot : schema().slots) known.push_back(slot.name);
    for (const ArrayInput& array : arrays_) {
      TERCEL_CHECK(find(array.name) == &array, ValueError, title_of(array), " is given twice");
      TERCEL_CHECK(array.name == dense_name_ || std::find(known.begin(), known.end(), array.name) != known.end(),
                   ValueError, "unknown input '", printable(array.name), "'", known_names(array.name, known));
    }
  }

  void count_rows(const ArrayInput& array, int64_t rows) {
    if (!counted_) batch_.rows = rows;
    if (!counted_) counted_ = &array;
    TERCEL_CHECK(rows == batch_.rows, ValueError, title_of(array), " has ", rows, " rows but ", title_of(*counted_),
                 " has ", batch_.rows);
  }

  void set_dense() {
    const int64_t dim = schema().dense_dim;
    const ArrayInput* const array = find(dense_name_);
    TERCEL_CHECK(array || dim == 0, ValueError, "input '", printable(dense_name_), "' [batch, ", dim, "] is missing");
    if (!array) return;
    check_dtype(*array, "values", array->values, /*keys=*/false);
    const IntSpan sizes = array->values.sizes();
    TERCEL_CHECK(sizes.size() == 2 && sizes[1] == dim && !array->row_offsets.defined(), ValueError, title_of(*array),
                 ": expected [batch, ", dim, "] without row offsets but got ", sizes);
    count_rows(*array, sizes[0]);
    batch_.dense = finite_values(*array, dim, [this](int64_t column) { return rules_.expected_dense(column); });
  }

  void set_labels() {
    const int64_t dim = schema().label_dim;
    check_dtype(labels_, "values", labels_.values, /*keys=*/false);
    const IntSpan sizes = labels_.values.sizes();
    TERCEL_CHECK(sizes.size() == 2 ? sizes[1] == dim : sizes.size() == 1 && dim == 1, ValueError, title_of(labels_),
                 ": expected [batch, ", dim, dim == 1 ? "] or [batch]" : "]", " but got ", sizes);
    count_rows(labels_, sizes[0]);
    batch_.labels = finite_values(labels_, dim, [this](int64_t column) { return rules_.expected_label(column); });
  }

  void set_weights() {
    check_dtype(weights_, "values", weights_.values, /*keys=*/false);
    const IntSpan sizes = weights_.values.sizes();
    TERCEL_CHECK(sizes.size() == 1, ValueError, title_of(weights_), ": expected [batch] but got ", sizes);
    count_rows(weights_, sizes[0]);
    batch_.weights = finite_values(weights_, 1, [](int64_t) { return "a finite weight"; });
    batch_.weights.impl().set_sizes_contiguous({batch_.rows});
    for (int64_t row = 0; row < batch_.rows; ++row)
      TERCEL_CHECK(batch_.weights.data<float>()[row] >= 0, ValueError, title_of(weights_), ": row ", row,
                   ": expected a weight that is not negative but got ", batch_.weights.data<float>()[row]);
  }

  /** Values [rows, dim], float32; ValueError for one that is not finite. */
  template <class Expected>
  Tensor finite_values(const ArrayInput& array, int64_t dim, Expected&& expected) const {
    const Tensor out = empty({batch_.rows, dim}, kFloat32);
    const int64_t count = out.numel();
    float* const values = count > 0 ? out.data<float>() : nullptr;
    copy_elements(array.values, values);
    for (int64_t i = 0; i < count; ++i)
      TERCEL_CHECK(RowRules::is_dense_value(values[i]), ValueError, title_of(array), ": row ", i / dim, ": expected ",
                   expected(i % dim), " but got ", values[i]);
    return out;
  }

  /** The arrays for the slots of an input. */
  std::vector<Bags> bags_of(const SparseInput& input, size_t first_slot) const {
    const ArrayInput* const whole = find(input.name);
    std::vector<const ArrayInput*> of_slots;
    std::string missing;
    for (int64_t s = 0; s < input.slot_num; ++s) {
      const std::string& name = schema().slots[first_slot + static_cast<size_t>(s)].name;
      const ArrayInput* const array = is_input(name) ? nullptr : find(name);
      if (array)
        of_slots.push_back(array);
      else if (missing.empty())
        missing = name;
    }
    TERCEL_CHECK(!whole || of_slots.empty(), ValueError, title_of(*of_slots.front()), " is given, and so is input '",
                 printable(input.name), "', which contains it");
    if (whole) return {read_bags(*whole, input.slot_num)};
    const std::string& first = schema().slots[first_slot].name;
    TERCEL_CHECK(input.slot_num > 1 || !of_slots.empty(), ValueError, "input '", printable(input.name), "' is missing",
                 is_input(first) ? std::string() : str_cat({"; give it, or its slot '", printable(first), "'"}));
    TERCEL_CHECK(!of_slots.empty(), ValueError, "input '", printable(input.name),
                 "' is missing, and so are those of its slots ('", printable(missing), "' ...)");
    TERCEL_CHECK(missing.empty(), ValueError, "input '", printable(missing), "' is missing");
    std::vector<Bags> bags;
    for (const ArrayInput* array : of_slots) bags.push_back(read_bags(*array, 1));
    return bags;
  }

  bool is_input(std::string_view name) const {
    return name == dense_name_ ||
           std::any_of(inputs_.begin(), inputs_.end(), [name](const SparseInput& input) { return input.name == name; });
  }

  void add_sparse(const SparseInput& input, size_t first_slot) {
    const std::vector<Bags> all = bags_of(input, first_slot);
    size_t nnz = 0;
    bool weighted = false;
    for (const Bags& bags : all) {
      count_rows(*bags.array, bags.rows);
      nnz += bags.keys.size();
      weighted |= bags.array->key_weights.defined();
    }
    SparseBatch sparse;
    sparse.name = input.name;
    sparse.slot_num = input.slot_num;
    sparse.row_offsets = empty({batch_.rows * input.slot_num + 1}, kInt64);
    sparse.keys = empty({static_cast<int64_t>(nnz)}, kInt64);
    int64_t* const offsets = sparse.row_offsets.data<int64_t>();
    int64_t* const keys = nnz > 0 ? sparse.keys.data<int64_t>() : nullptr;
    if (weighted) sparse.key_weights = empty({static_cast<int64_t>(nnz)}, kFloat32);
    float* const weights = weighted && nnz > 0 ? sparse.key_weights.data<float>() : nullptr;
    int64_t bag = 0, next = 0;
    offsets[0] = 0;
    bool uniform = true;
    for (int64_t row = 0; row < batch_.rows; ++row)
      for (const Bags& bags : all)
        for (int64_t s = 0; s < bags.slots; ++s, ++bag) {
          const auto slot = first_slot + static_cast<size_t>(bag % input.slot_num);
          next = copy_bag(bags, row, s, slot, keys, weights, next);
          offsets[bag + 1] = next;
          uniform &= next == (bag + 1) * offsets[1];
        }
    sparse.hotness = uniform && batch_.rows > 0 ? offsets[1] : 0;
    batch_.sparse.push_back(std::move(sparse));
  }

  int64_t copy_bag(const Bags& bags, int64_t row, int64_t s, size_t slot, int64_t* out, float* weights,
                   int64_t next) const {
    const RowRules::SlotRule& rule = rules_.slots()[slot];
    const auto bag = static_cast<size_t>(row * bags.slots + s);
    const int64_t first = bags.offsets[bag], end = bags.offsets[bag + 1];
    TERCEL_CHECK(rule.allows(end - first), ValueError, title_of(*bags.array), ": row ", row, ": expected ",
                 rules_.expected_count(slot, /*exact=*/false), " but got ", end - first);
    for (int64_t k = first; k < end; ++k) {
      const int64_t key = bags.keys[static_cast<size_t>(k)];
      TERCEL_CHECK(rule.has(key), ValueError, title_of(*bags.array), ": row ", row, ": expected ",
                   rules_.expected_key(slot), " but got ", key);
      if (weights) weights[next] = weight_of(bags, row, slot, static_cast<size_t>(k));
      out[next++] = key;
    }
    return next;
  }

  float weight_of(const Bags& bags, int64_t row, size_t slot, size_t key) const {
    if (bags.weights.empty()) return 1.0f;
    const float weight = bags.weights[key];
    TERCEL_CHECK(schema().slots[slot].weighted, ValueError, title_of(*bags.array), ": row ", row,
                 ": expected no weights, as keys of slot '", printable(schema().slots[slot].name),
                 "' have none in the dataset, but got ", weight);
    TERCEL_CHECK(RowRules::is_dense_value(weight), ValueError, title_of(*bags.array), ": row ", row,
                 ": expected weights that are finite numbers but got ", weight);
    return weight;
  }

  Span<ArrayInput> arrays_;
  Span<SparseInput> inputs_;
  std::string_view dense_name_;
  ArrayInput labels_, weights_;
  RowRules rules_;
  Batch batch_;
  const ArrayInput* counted_ = nullptr;  // the first array, whose rows the others must have
};

}  // namespace

Batch batch_from_arrays(Span<ArrayInput> arrays, const Schema& schema, Span<SparseInput> inputs,
                        std::string_view dense_name, const Tensor& labels, const Tensor& weights) {
  return BatchMaker(arrays, schema, inputs, dense_name, labels, weights).make();
}

}  // namespace tercel::data
