#include "tercel/ops/sort/search.h"

#include <algorithm>
#include <limits>

#include "tercel/autograd/grad_mode.h"
#include "tercel/core/dtype_words.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/common/elementwise_loop_impl.h"
#include "tercel/ops/common/operand_checks_impl.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/elementwise/complex.h"
#include "tercel/ops/elementwise/unary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/index/index_put.h"
#include "tercel/ops/reduce/reduce.h"
#include "tercel/ops/sort/sort.h"
#include "tercel/ops/views/views.h"
#include "tercel/util/parallel.h"
#include "tercel/util/warning.h"

namespace tercel {

namespace {

constexpr int64_t kGrainValues = 1024;

bool resolve_side(bool right, std::string_view side) {
  TERCEL_CHECK(side.empty() || side == "left" || side == "right", RuntimeError,
               "searchsorted(): side can only be 'left' or 'right' but got ", side);
  TERCEL_CHECK(!right || side.empty() || side == "right", RuntimeError,
               "searchsorted(): side and right can't be set to opposites, got side of ", side, " while right was True");
  return right || side == "right";
}

bool leading_sizes_agree(IntSpan a, IntSpan b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end() - 1, b.begin());
}

void check_sorter(const Tensor& sequence, const Tensor& sorter) {
  if (!sorter.defined()) return;
  TERCEL_CHECK(sorter.sizes() == sequence.sizes(), RuntimeError,
               "searchsorted(): boundary and sorter must have the same size, but got boundary tensor ",
               sequence.sizes(), " and got sorter tensor ", sorter.sizes());
  TERCEL_CHECK(sorter.dtype() == kInt64, RuntimeError,
               "searchsorted(): sorter must be a tensor of long dtype but got dtype ",
               scalar_type_word(sorter.dtype()));
  if (sorter.numel() == 0) return;
  const MinAndMax range = aminmax(sorter);
  TERCEL_CHECK(range.min.item<int64_t>() >= 0 && range.max.item<int64_t>() < sequence.sizes().back(), RuntimeError,
               "searchsorted(): sorter index out of range");
}

void check_shapes(const Tensor& sequence, const Tensor& values, bool out_int32) {
  TERCEL_CHECK(values.dim() > 0 || sequence.dim() == 1, RuntimeError,
               "searchsorted(): input value can be a scalar only when boundaries tensor dimension is 1, but we ",
               "got boundaries tensor dim(", sequence.dim(), ") and input value's dim(", values.dim(), ") numel(",
               values.numel(), ")");
  TERCEL_CHECK(sequence.dim() != 0, RuntimeError,
               "searchsorted(): boundaries tensor should have positive dimension, but got 0 dimension");
  TERCEL_CHECK(sequence.dim() == 1 || leading_sizes_agree(sequence.sizes(), values.sizes()), RuntimeError,
               "searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of ",
               "boundaries tensor and input value tensor must match, but we got boundaries tensor ", sequence.sizes(),
               " and input value tensor ", values.sizes());
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  TERCEL_CHECK(!out_int32 || sequence.sizes().back() < kMost, RuntimeError,
               "searchsorted(): the size of boundaries' last dimension should be less than ", kMost, ", but we got ",
               sequence.sizes().back());
}

/** Warns that a tensor that is not contiguous will be copied. */
void warn_of_copy(const Tensor& t, const char* what, const char* which) {
  if (!t.defined() || t.is_contiguous()) return;
  constexpr std::string_view kMessage =
      " tensor is non-contiguous, this will lower the performance due to extra data copy when converting "
      "non-contiguous tensor to contiguous, please use contiguous ";
  warn(str_cat({"searchsorted(): ", what, kMessage, which,
                " tensor if possible. This message will only appear once per program."}));
}

/** The insertion index of a value: the lower bound, or the upper bound if kRight; NaN comes last. */
template <bool kRight, class T>
int64_t place_of(const T* sequence, const int64_t* sorter, int64_t n, T value) {
  if (value != value) return n;
  int64_t first = 0;
  while (n > 0) {
    const int64_t half = n / 2;
    const T middle = sequence[sorter ? sorter[first + half] : first + half];
    const bool after = kRight ? middle <= value : middle < value;
    first += after ? half + 1 : 0;
    n = after ? n - half - 1 : half;
  }
  return first;
}

template <class T, class Index>
void search(const Tensor& sequence, const Tensor& sorter, const Tensor& values, bool right, const Tensor& out) {
  const int64_t n = sequence.sizes().back();
  const bool shared = sequence.dim() == 1;
  const int64_t line = values.dim() == 0 ? 1 : values.sizes().back();
  const T *sequences = sequence.data<T>(), *wanted = values.data<T>();
  const int64_t* order = sorter.defined() ? sorter.data<int64_t>() : nullptr;
  Index* places = out.data<Index>();
  parallel_for(0, values.numel(), kGrainValues, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t start = shared ? 0 : i / line * n;
      const int64_t* here = order ? order + start : nullptr;
      places[i] = static_cast<Index>(right ? place_of<true>(sequences + start, here, n, wanted[i])
                                           : place_of<false>(sequences + start, here, n, wanted[i]));
    }
  });
}

/** Searches with `sequence` and `values` converted to a common dtype. */
Tensor search_in(const Tensor& given_sequence, const Tensor& given_values, ScalarType common, bool out_int32,
                 bool right, const Tensor& given_sorter) {
  TERCEL_CHECK(!is_complex(common), NotImplementedError, "searchsorted: not implemented for dtype ", to_string(common));
  const NoRecordGuard no_record;
  if (common == kUInt64) {
    // Flipping the top bit gives the order of signed numbers.
    const auto turned = [](const Tensor& t) { return bitwise_xor(to(to(t, kUInt64), kInt64), INT64_MIN); };
    return search_in(turned(given_sequence), turned(given_values), kInt64, out_int32, right, given_sorter);
  }
  const ScalarType dtype = is_integral(common, true) ? kInt64 : (common == kFloat64 ? kFloat64 : kFloat32);
  const Tensor sequence = contiguous(to(given_sequence, dtype)), values = contiguous(to(given_values, dtype));
  const Tensor sorter = given_sorter.defined() ? contiguous(given_sorter) : given_sorter;
  const Tensor out = empty(values.sizes(), TensorOptions(out_int32 ? kInt32 : kInt64, values.device()));
  const auto run = [&]<class T>() {
    if (out_int32) return search<T, int32_t>(sequence, sorter, values, right, out);
    search<T, int64_t>(sequence, sorter, values, right, out);
  };
  if (dtype == kInt64)
    run.template operator()<int64_t>();
  else if (dtype == kFloat64)
    run.template operator()<double>();
  else
    run.template operator()<float>();
  return out;
}

void check_boundaries(const Tensor& boundaries) {
  check_strided("bucketize", boundaries, "boundaries");
  TERCEL_CHECK(boundaries.dim() == 1, RuntimeError, "boundaries tensor must be 1 dimension, but got dim(",
               boundaries.dim(), ")");
}

}  // namespace

Tensor searchsorted(const Tensor& sequence, const Tensor& input, bool out_int32, bool right, std::string_view side,
                    const Tensor& sorter) {
  check_strided("searchsorted", sequence, "sorted_sequence");
  check_strided("searchsorted", input, "values");
  const bool after = resolve_side(right, side);
  check_on_cpu("searchsorted", sequence);
  check_on_cpu("searchsorted", input);
  check_shapes(sequence, input, out_int32);
  check_sorter(sequence, sorter);
  warn_of_copy(input, "input value", "input value");
  warn_of_copy(sequence, "boundary", "boundary");
  warn_of_copy(sorter, "sorter", "sorter");
  return search_in(sequence, input, promote_types(sequence.dtype(), input.dtype()), out_int32, after, sorter);
}

Tensor searchsorted(const Tensor& sequence, Scalar input, bool out_int32, bool right, std::string_view side,
                    const Tensor& sorter) {
  check_strided("searchsorted", sequence, "sorted_sequence");
  // An integer is compared in the sequence's dtype; a fraction among integers needs float64.
  const ScalarType dtype = input.is_floating() && !sequence.is_floating_point() ? kFloat64 : sequence.dtype();
  return searchsorted(sequence, scalar_tensor(input, TensorOptions(dtype)), out_int32, right, side, sorter);
}

Tensor bucketize(const Tensor& input, const Tensor& boundaries, bool out_int32, bool right) {
  check_boundaries(boundaries);
  return searchsorted(boundaries, input, out_int32, right);
}
Tensor bucketize(Scalar input, const Tensor& boundaries, bool out_int32, bool right) {
  check_boundaries(boundaries);
  return searchsorted(boundaries, input, out_int32, right);
}

namespace {

/** The first of the equal elements of a sorted vector; one larger than all of them is given the last one's place. */
Tensor places_in(const Tensor& sorted, const Tensor& wanted) {
  return clamp_max(search_in(sorted, wanted, sorted.dtype(), false, false, Tensor()), sorted.numel() - 1);
}

/** For complex numbers, which have no order: by the places of both parts among those of the vector. */
Tensor is_in_complex(const Tensor& wanted, const Tensor& tests) {
  const int64_t n = tests.numel();
  Tensor found, wanted_places, test_places;
  Tensor (*const parts[])(const Tensor&) = {real, imag};
  for (const auto part : parts) {
    const Tensor sorted = sort(part(tests)).values, wanted_part = part(wanted);
    const Tensor places = places_in(sorted, wanted_part), present = eq(take(sorted, places), wanted_part);
    if (!found.defined()) {
      found = present;
      wanted_places = mul(places, n);
      test_places = mul(places_in(sorted, part(tests)), n);
    } else {
      found = logical_and(found, present);
      wanted_places = add(wanted_places, places);
      test_places = add(test_places, places_in(sorted, part(tests)));
    }
  }
  return logical_and(found, isin(wanted_places, test_places));
}

}  // namespace

Tensor isin(const Tensor& elements, const Tensor& test_elements, bool, bool invert) {
  check_strided("isin", elements, "elements");
  check_strided("isin", test_elements, "test_elements");
  const NoRecordGuard no_record;
  const int64_t n = test_elements.numel();
  if (n == 0) return full(elements.sizes(), invert, TensorOptions(kBool, elements.device()));
  const ScalarType common = promote_types(elements.dtype(), test_elements.dtype());
  const Tensor wanted = to(elements, common), tests = reshape(to(test_elements, common), {-1});
  if (is_complex(common)) {
    const Tensor found = is_in_complex(wanted, tests);
    return invert ? logical_not(found) : found;
  }
  const Tensor sorted = sort(tests).values, found = take(sorted, places_in(sorted, wanted));
  return invert ? ne(found, wanted) : eq(found, wanted);
}
Tensor isin(const Tensor& elements, Scalar test_element, bool, bool invert) {
  check_strided("isin", elements, "elements");
  const NoRecordGuard no_record;
  return invert ? ne(elements, test_element) : eq(elements, test_element);
}
Tensor isin(Scalar element, const Tensor& test_elements, bool assume_unique, bool invert) {
  check_strided("isin", test_elements, "test_elements");
  return isin(scalar_tensor(element, TensorOptions(promote_types(element.dtype(), test_elements.dtype()))),
              test_elements, assume_unique, invert);
}

}  // namespace tercel
