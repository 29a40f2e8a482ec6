// Tensors for tests: created, filled and read element by element, without any op under test.
#pragma once

#include <complex>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "tercel/core/convert.h"
#include "tercel/core/tensor.h"

namespace tercel::test {

using Sizes = std::vector<int64_t>;
/** An op, or a reference of one. */
using Function = std::function<Tensor(const std::vector<Tensor>&)>;

/** Calls visit(byte offset of the element from the first one) in row-major order. */
template <class Visit>
void for_each_offset(const Tensor& t, Visit visit) {
  const size_t ndim = static_cast<size_t>(t.dim());
  if (t.numel() == 0) return;
  std::vector<int64_t> index(ndim, 0);
  for (;;) {
    int64_t offset = 0;
    for (size_t d = 0; d < ndim; ++d) offset += index[d] * t.strides()[d];
    visit(offset * static_cast<int64_t>(t.itemsize()));
    size_t d = ndim;
    while (d > 0 && ++index[d - 1] == t.sizes()[d - 1]) index[--d] = 0;
    if (d == 0) return;
  }
}

inline double read_element(ScalarType dtype, const void* p) {
  return visit_all_types("test", dtype, [&]<class T>() {
    T value;
    std::memcpy(&value, p, sizeof(T));
    return convert<double>(value);
  });
}

inline void write_element(ScalarType dtype, void* p, double value) {
  visit_all_types("test", dtype, [&]<class T>() {
    const T converted = convert<T>(value);
    std::memcpy(p, &converted, sizeof(T));
  });
}

/** Elements in row-major order. */
inline std::vector<double> values_of(const Tensor& t) {
  std::vector<double> out;
  const auto* base = static_cast<const char*>(t.data_ptr());
  for_each_offset(t, [&](int64_t offset) { out.push_back(read_element(t.dtype(), base + offset)); });
  return out;
}

/** Bytes of the elements in row-major order. */
inline std::string bytes_of(const Tensor& t) {
  std::string out;
  const auto* base = static_cast<const char*>(t.data_ptr());
  for_each_offset(t, [&](int64_t offset) { out.append(base + offset, t.itemsize()); });
  return out;
}

/** Elements in row-major order; real ones have no imaginary part. */
inline std::vector<std::complex<double>> complex_values_of(const Tensor& t) {
  std::vector<std::complex<double>> out;
  const auto* base = static_cast<const char*>(t.data_ptr());
  for_each_offset(t, [&](int64_t offset) {
    visit_all_types("test", t.dtype(), [&]<class T>() {
      T value;
      std::memcpy(&value, base + offset, sizeof(T));
      out.push_back(convert<Complex<double>>(value).template as<std::complex<double>>());
    });
  });
  return out;
}

/** Sets the elements' bytes, in row-major order. */
inline void set_bytes(const Tensor& t, const std::string& bytes) {
  auto* base = static_cast<char*>(t.data_ptr());
  size_t i = 0;
  for_each_offset(t, [&](int64_t offset) {
    std::memcpy(base + offset, bytes.data() + i, t.itemsize());
    i += t.itemsize();
  });
}

/** Sets the elements, in row-major order. */
inline void set_values(const Tensor& t, const std::vector<double>& values) {
  auto* base = static_cast<char*>(t.data_ptr());
  size_t i = 0;
  for_each_offset(t, [&](int64_t offset) { write_element(t.dtype(), base + offset, values.at(i++)); });
}

inline Tensor make(const Sizes& sizes, ScalarType dtype, const std::vector<double>& values) {
  Tensor t = empty(sizes, TensorOptions(dtype));
  set_values(t, values);
  return t;
}

inline Tensor make_complex(const Sizes& sizes, ScalarType dtype, const std::vector<std::complex<double>>& values) {
  Tensor t = empty(sizes, TensorOptions(dtype));
  std::string bytes;
  visit_types<Complex<float>, Complex<double>>("test", dtype, [&]<class T>() {
    for (const std::complex<double>& value : values) {
      const T element(value);
      bytes.append(reinterpret_cast<const char*>(&element), sizeof(T));
    }
  });
  set_bytes(t, bytes);
  return t;
}

/** A tensor of any geometry over fresh memory of `count` elements. */
inline Tensor make_strided(const Sizes& sizes, const Sizes& strides, int64_t offset, int64_t count, ScalarType dtype) {
  const Tensor flat = empty({count}, TensorOptions(dtype));
  if (count > 0) std::memset(flat.data_ptr(), 0x5a, flat.nbytes());
  if (dtype == kBool && count > 0) std::memset(flat.data_ptr(), 1, flat.nbytes());
  return Tensor(make_intrusive<TensorImpl>(flat.storage(), dtype, sizes, strides, offset));
}

/** Uniform in [low, high], also both parts of complex numbers; integers for integral dtypes. The same for the same
 * seed.
 */
inline Tensor random(const Sizes& sizes, ScalarType dtype, double low, double high, uint64_t seed) {
  std::mt19937_64 generator(seed);
  std::uniform_real_distribution<double> real(low, high);
  std::uniform_int_distribution<int64_t> whole(static_cast<int64_t>(low), static_cast<int64_t>(high));
  Tensor t = empty(sizes, TensorOptions(dtype));
  if (is_complex(dtype)) {
    std::vector<std::complex<double>> values(static_cast<size_t>(t.numel()));
    for (std::complex<double>& v : values) {
      const double re = real(generator);
      v = {re, real(generator)};
    }
    return make_complex(sizes, dtype, values);
  }
  std::vector<double> values(static_cast<size_t>(t.numel()));
  for (double& v : values) v = is_floating(dtype) ? real(generator) : static_cast<double>(whole(generator));
  set_values(t, values);
  return t;
}

/** The same elements as float64. */
inline Tensor as_double(const Tensor& t) { return make(t.sizes().to_vector(), kFloat64, values_of(t)); }

/** The same elements as complex128. */
inline Tensor as_complex(const Tensor& t) {
  return make_complex(t.sizes().to_vector(), kComplex128, complex_values_of(t));
}

/** Ways in which the same elements can lie in memory. */
enum class Placement {
  Contiguous,
  Transposed,
  EverySecond,
  Reversed,
  Misaligned,
  PaddedRows,
  OuterReversed,
  StrayStrides
};
inline const std::vector<Placement>& placements() {
  static const std::vector<Placement> all = {Placement::Transposed,  Placement::EverySecond, Placement::Reversed,
                                             Placement::Misaligned,  Placement::PaddedRows,  Placement::OuterReversed,
                                             Placement::StrayStrides};
  return all;
}
inline std::string name_of(Placement p) {
  switch (p) {
    case Placement::Contiguous: return "contiguous";
    case Placement::Transposed: return "transposed";
    case Placement::EverySecond: return "every second element";
    case Placement::Reversed: return "reversed rows";
    case Placement::Misaligned: return "misaligned";
    case Placement::PaddedRows: return "padded rows";
    case Placement::OuterReversed: return "reversed outer dimension";
    case Placement::StrayStrides: return "strides of dimensions of one element that mean nothing";
  }
  return "";
}

/** The elements of t, placed differently. */
inline Tensor placed(const Tensor& t, Placement placement) {
  const Sizes sizes = t.sizes().to_vector();
  const size_t ndim = sizes.size();
  const DimVector plain = contiguous_strides(sizes);
  Sizes strides(plain.begin(), plain.end());
  int64_t offset = 0, count = t.numel();
  switch (placement) {
    case Placement::Contiguous: break;
    case Placement::Transposed: {
      int64_t step = 1;
      for (size_t d = 0; d < ndim; ++d) {
        strides[d] = step;
        step *= std::max<int64_t>(sizes[d], 1);
      }
      break;
    }
    case Placement::EverySecond:
      for (int64_t& s : strides) s *= 2;
      offset = 1;
      count = 2 * count + 1;
      break;
    case Placement::Reversed:
      if (ndim > 0 && count > 0) {
        strides[ndim - 1] = -1;
        offset = sizes[ndim - 1] - 1;
      }
      break;
    case Placement::Misaligned:
      offset = 1;
      count += 1;
      break;
    case Placement::PaddedRows: {
      int64_t step = 1;
      for (size_t d = ndim; d-- > 0;) {
        strides[d] = step;
        step *= sizes[d] + (d + 1 == ndim ? 3 : 0);
      }
      count = step;
      break;
    }
    case Placement::OuterReversed:
      if (ndim > 0 && count > 0) {
        offset = (sizes[0] - 1) * strides[0];
        strides[0] = -strides[0];
      }
      break;
    case Placement::StrayStrides:  // still contiguous, as strides of other libraries' tensors may be
      for (size_t d = 0; d < ndim; ++d)
        if (sizes[d] == 1) strides[d] = 1000003;
      break;
  }
  if (t.numel() == 0) offset = 0;
  Tensor out = make_strided(sizes, strides, offset, count, t.dtype());
  set_bytes(out, bytes_of(t));
  return out;
}

/** How gradcheck (gradcheck.h) compares. */
struct GradcheckOptions {
  double step = 1e-6;
  double relative = 1e-5;
  double absolute = 1e-7;
};

}  // namespace tercel::test
