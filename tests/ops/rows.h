// The description of an op for the conformance harness. See Note [Conformance rows] in conformance.h.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "tercel/ops/common/op_list_impl.h"
#include "tests/support/tensors.h"

namespace tercel::test {

/** Description of an op's input. */
struct Input {
  Sizes sizes;
  double low = -3, high = 3;
  /** Undefined: the tested dtype. Any other dtype (indices, conditions) is kept. */
  ScalarType dtype = ScalarType::Undefined;
  /** Whether a gradient flows to it. */
  bool differentiable = true;
};

inline const std::vector<ScalarType>& floating_types() {
  static const std::vector<ScalarType> types = {kFloat32, kFloat64, kFloat16, kBFloat16};
  return types;
}
inline const std::vector<ScalarType>& integer_types() {
  static const std::vector<ScalarType> types = {kInt64, kInt32, kInt16, kInt8, kUInt64, kUInt32, kUInt16, kUInt8};
  return types;
}
inline const std::vector<ScalarType>& complex_types() {
  static const std::vector<ScalarType> types = {kComplex64, kComplex128};
  return types;
}
inline std::vector<ScalarType> number_types() {
  std::vector<ScalarType> types = floating_types();
  types.insert(types.end(), integer_types().begin(), integer_types().end());
  return types;
}
inline std::vector<ScalarType> all_types() {
  std::vector<ScalarType> types = number_types();
  types.push_back(kBool);
  return types;
}

struct Row {
  std::string name;
  std::vector<Input> inputs;
  /** The op. */
  Function run;
  /** The same on contiguous float64 tensors, by loops over doubles; the result is float64. */
  Function reference;
  /** The same on contiguous complex128 tensors, by loops over std::complex<double>; the result is complex128. If it is
   * set, the row is also run for complex dtypes.
   */
  Function complex_reference;
  std::vector<ScalarType> dtypes = floating_types();
  /** Allowed error, in units of the result's precision: `ulps` of the value, plus an absolute `scale` for cancellation.
   */
  double ulps = 4, scale = 0;
  /** The same for complex numbers, if different. */
  double complex_ulps = 0;
  bool differentiable = true;
  /** Whether its gradient can be differentiated; false for fused ops, which must then throw. */
  bool twice_differentiable = true;
  /** Result element i depends only on element i of the (broadcast) inputs. */
  bool elementwise = false;
  /** The result has the same bits for every placement; false if the op may choose another summation order. */
  bool bitwise = true;
  /** The op has the column layout_any. */
  bool layout_any = false;
  /** The in-place variant; empty if there is none. */
  std::function<void(const std::vector<Tensor>&)> inplace;
  /** The out variant; empty if there is none. */
  std::function<void(const Tensor& out, const std::vector<Tensor>&)> out;
  GradcheckOptions gradcheck;
  /** Sizes of the inputs for gradient checks, if the usual inputs have too many elements to perturb one by one. */
  std::vector<Sizes> gradient_sizes;
};

/** Prints the row's name in failures. */
inline void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

/** The row of a functor; specialised for each. */
template <class Op>
Row row_of() = delete;

template <class Op>
concept HasRow = requires {
  row_of<Op>();
};

/** Rows of a functor list. */
template <class... Ops>
std::vector<Row> rows_of(OpList<Ops...>) {
  static_assert((HasRow<Ops> && ...), "every op of the list needs a row_of<Op>()");
  return {row_of<Ops>()...};
}

/** Inputs of a row, in a dtype, contiguous. */
inline std::vector<Tensor> make_inputs(const Row& row, ScalarType dtype, uint64_t seed = 1,
                                       const std::vector<Sizes>& other_sizes = {}) {
  std::vector<Tensor> out;
  for (const Input& input : row.inputs) {
    const ScalarType t = input.dtype == ScalarType::Undefined ? dtype : input.dtype;
    const bool unsigned_type = is_unsigned(t) || t == kBool;
    const double low = unsigned_type ? std::max(input.low, 0.0) : input.low;
    const double high = t == kBool ? 1 : input.high;
    const Sizes& sizes = other_sizes.empty() ? input.sizes : other_sizes[out.size()];
    out.push_back(random(sizes, t, std::min(low, high), high, seed++));
  }
  return out;
}

/** The dtypes that a row is run for. */
inline std::vector<ScalarType> dtypes_of(const Row& row) {
  std::vector<ScalarType> out = row.dtypes;
  if (row.complex_reference) out.insert(out.end(), complex_types().begin(), complex_types().end());
  return out;
}

/** A reference that computes element by element from the broadcast inputs, of type double or std::complex<double>. */
template <class T = double, class F>
Function elementwise_reference(F f) {
  return [f](const std::vector<Tensor>& in) {
    constexpr bool kComplex = !std::is_same_v<T, double>;
    const auto read = [](const Tensor& t) {
      if constexpr (kComplex)
        return complex_values_of(t);
      else
        return values_of(t);
    };
    DimVector shape(in[0].sizes());
    for (const Tensor& t : in) shape = broadcast_sizes(shape, t.sizes());
    const Sizes sizes(shape.begin(), shape.end());
    // Each input's elements in the order of the result: strides of repeated dimensions are zero.
    std::vector<std::vector<T>> values;
    for (const Tensor& t : in) {
      Sizes strides(sizes.size(), 0);
      const size_t lead = sizes.size() - static_cast<size_t>(t.dim());
      for (size_t d = lead; d < sizes.size(); ++d)
        if (t.sizes()[d - lead] != 1) strides[d] = t.strides()[d - lead];
      values.push_back(
          read(Tensor(make_intrusive<TensorImpl>(t.storage(), t.dtype(), sizes, strides, t.storage_offset()))));
    }
    std::vector<T> out(values[0].size());
    for (size_t i = 0; i < out.size(); ++i) {
      if constexpr (std::is_invocable_v<F, T>)
        out[i] = static_cast<T>(f(values[0][i]));
      else if constexpr (std::is_invocable_v<F, T, T>)
        out[i] = static_cast<T>(f(values[0][i], values[1][i]));
      else
        out[i] = static_cast<T>(f(values[0][i], values[1][i], values[2][i]));
    }
    if constexpr (kComplex)
      return make_complex(sizes, kComplex128, out);
    else
      return make(sizes, kFloat64, out);
  };
}

/** Adds a complex reference to the row of an op that supports complex numbers: a generic function of both kinds. */
template <class Op, class F>
void add_complex_reference(Row& row, F f) {
  if constexpr (takes_complex<Op>) row.complex_reference = elementwise_reference<std::complex<double>>(f);
}

/** The row's reference applied to both parts, for ops that only sum. */
inline void add_reference_by_parts(Row& row) {
  row.complex_reference = [reference = row.reference, inputs = row.inputs](const std::vector<Tensor>& in) {
    std::vector<Tensor> re, im;
    for (size_t i = 0; i < in.size(); ++i) {
      std::vector<double> re_values, im_values;
      for (const std::complex<double>& value : complex_values_of(in[i])) {
        re_values.push_back(value.real());
        im_values.push_back(inputs[i].dtype == ScalarType::Undefined ? value.imag() : value.real());
      }
      re.push_back(make(in[i].sizes().to_vector(), kFloat64, re_values));
      im.push_back(make(in[i].sizes().to_vector(), kFloat64, im_values));
    }
    const Tensor re_out = reference(re);
    const std::vector<double> r = values_of(re_out), i = values_of(reference(im));
    std::vector<std::complex<double>> out;
    for (size_t k = 0; k < r.size(); ++k) out.emplace_back(r[k], i[k]);
    return make_complex(re_out.sizes().to_vector(), kComplex128, out);
  };
}

}  // namespace tercel::test
