#include "tests/ops/conformance.h"

#include <algorithm>
#include <cmath>

#include "tercel/autograd/autograd.h"
#include "tercel/autograd/forward_mode.h"
#include "tercel/core/dispatch.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/elementwise/complex.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/random/random.h"
#include "tercel/ops/reduce/reduce.h"
#include "tercel/ops/views/views.h"
#include "tests/support/gradcheck.h"

namespace tercel::test {

namespace {

double precision_of(ScalarType t) {
  switch (t) {
    case kComplex128:
    case kFloat64: return std::numeric_limits<double>::epsilon();
    case kComplex64:
    case kFloat32: return static_cast<double>(std::numeric_limits<float>::epsilon());
    case kFloat16: return 0x1p-10;
    case kBFloat16: return 0x1p-7;
    default: return 0;
  }
}

/** The result of the row's reference for the inputs. */
Tensor reference_of(const Row& row, const std::vector<Tensor>& inputs) {
  const bool complex = std::any_of(inputs.begin(), inputs.end(), [](const Tensor& t) { return t.is_complex(); });
  std::vector<Tensor> wide;
  for (const Tensor& t : inputs) wide.push_back(complex ? as_complex(t) : as_double(t));
  return complex ? row.complex_reference(wide) : row.reference(wide);
}

/** Integers wrap in the op, not in the reference. */
double wrapped(double value, ScalarType t) {
  if (!is_integral(t, false)) return value;
  return visit_types<int64_t, int32_t, int16_t, int8_t, uint8_t, uint16_t, uint32_t, uint64_t>(
      "test", t, [&]<class T>() { return static_cast<double>(static_cast<T>(static_cast<int64_t>(value))); });
}

/** Distance of the numbers next to zero. */
double smallest_of(ScalarType t) {
  switch (t) {
    case kComplex128:
    case kFloat64: return 0x1p-1074;
    case kFloat16: return 0x1p-24;
    case kBFloat16: return 0x1p-133;
    default: return 0x1p-149;
  }
}

::testing::AssertionResult close_to(const Tensor& got, const Tensor& want, const Row& row) {
  if (got.sizes() != want.sizes())
    return ::testing::AssertionFailure() << "sizes " << describe(got) << ", expected " << describe(want);
  const double precision = precision_of(got.dtype());
  if (got.is_complex() || want.is_complex()) {
    const auto g = complex_values_of(got), w = complex_values_of(want);
    const double ulps = row.complex_ulps > 0 ? row.complex_ulps : row.ulps;
    for (size_t i = 0; i < g.size(); ++i) {
      const double allowed = precision * (ulps * std::abs(w[i]) + row.scale) + ulps * smallest_of(got.dtype());
      if (!(std::abs(g[i] - w[i]) <= allowed))
        return ::testing::AssertionFailure()
               << "element " << i << " is " << g[i] << ", expected " << w[i] << ", allowed error " << allowed;
    }
    return ::testing::AssertionSuccess();
  }
  const std::vector<double> g = values_of(got), w = values_of(want);
  for (size_t i = 0; i < g.size(); ++i) {
    const double expected = wrapped(w[i], got.dtype());
    if (std::isnan(g[i]) && std::isnan(expected)) continue;
    if (g[i] == expected) continue;
    const double allowed =
        precision * (row.ulps * std::abs(expected) + row.scale) + row.ulps * smallest_of(got.dtype());
    if (!(std::abs(g[i] - expected) <= allowed))
      return ::testing::AssertionFailure()
             << "element " << i << " is " << g[i] << ", expected " << expected << ", allowed error " << allowed;
  }
  return ::testing::AssertionSuccess();
}

::testing::AssertionResult same_bits(const Tensor& got, const Tensor& want) {
  if (got.sizes() != want.sizes() || got.dtype() != want.dtype())
    return ::testing::AssertionFailure() << describe(got) << ", expected " << describe(want);
  if (bytes_of(got) == bytes_of(want)) return ::testing::AssertionSuccess();
  const std::vector<double> g = values_of(got), w = values_of(want);
  for (size_t i = 0; i < g.size(); ++i)
    if (std::memcmp(&g[i], &w[i], sizeof(double)) != 0)
      return ::testing::AssertionFailure() << "element " << i << " is " << g[i] << ", expected " << w[i];
  return ::testing::AssertionFailure() << "NaNs differ in their bits";
}

::testing::AssertionResult same(const Tensor& got, const Tensor& want, const Row& row) {
  return row.bitwise ? same_bits(got, want) : close_to(got, want, row);
}

std::vector<CpuIsa> isas() {
  std::vector<CpuIsa> out;
  for (const CpuIsa isa : {CpuIsa::Generic, CpuIsa::Avx2, CpuIsa::Avx512})
    if (isa <= best_cpu_isa()) out.push_back(isa);
  return out;
}

/** t with one dimension reduced to size 1 and expanded again, so that all elements along it are equal. */
Tensor expanded(const Tensor& t, size_t dim) {
  Sizes strides = t.strides().to_vector();
  strides[dim] = 0;
  return Tensor(make_intrusive<TensorImpl>(t.storage(), t.dtype(), t.sizes(), strides, t.storage_offset()));
}

Tensor element(const Tensor& t, int64_t i) {
  const int64_t at = t.numel() == 1 ? 0 : i;
  Tensor out = empty({}, TensorOptions(t.dtype()));
  set_bytes(out, bytes_of(t).substr(static_cast<size_t>(at) * t.itemsize()));
  return out;
}

bool same_sizes(const std::vector<Tensor>& tensors) {
  for (const Tensor& t : tensors)
    if (t.sizes() != tensors[0].sizes()) return false;
  return true;
}

void check_gradient(const Row& row, ScalarType dtype) {
  std::vector<Tensor> inputs = make_inputs(row, dtype, 1, row.gradient_sizes);
  bool any = false;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!row.inputs[i].differentiable || !inputs[i].is_differentiable()) continue;
    inputs[i].requires_grad_();
    any = true;
  }
  if (!row.differentiable) {
    // Or backward throws, where a derivative would be meaningful.
    if (const Tensor out = any ? row.run(inputs) : Tensor(); out.defined() && out.requires_grad()) {
      EXPECT_THROW(out.sum().backward(), NotImplementedError);
    }
    return;
  }
  EXPECT_TRUE(gradcheck(row.run, inputs, row.gradcheck));
  // One input at a time, to test that the tensors saved for it alone suffice.
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].requires_grad()) continue;
    std::vector<Tensor> alone;
    for (size_t k = 0; k < inputs.size(); ++k) {
      alone.push_back(placed(inputs[k], Placement::Transposed));
      if (k == i) alone[k].requires_grad_();
    }
    EXPECT_TRUE(gradcheck(row.run, alone, row.gradcheck)) << "input " << i << " alone";
  }
}

void check_second_gradient(const Row& row, ScalarType dtype) {
  std::vector<Tensor> inputs = make_inputs(row, dtype, 1, row.gradient_sizes);
  std::vector<Tensor> wanted;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!row.inputs[i].differentiable || !inputs[i].is_differentiable()) continue;
    inputs[i].requires_grad_();
    wanted.push_back(inputs[i]);
  }
  if (row.twice_differentiable) {
    EXPECT_TRUE(gradgradcheck(row.run, inputs, row.gradcheck));
    return;
  }
  EXPECT_THROW(
      {
        const Tensor out = row.run(inputs);
        const Tensor seed = make(out.sizes().to_vector(), kFloat64, std::vector<double>(out.numel(), 1.0));
        std::vector<Tensor> first;
        for (const Gradient& g :
             grad(Span<Tensor>(&out, 1), wanted, Span<Tensor>(&seed, 1), std::nullopt, /*create_graph=*/true))
          first.push_back(g.values);
        backward(first, first);
      },
      RuntimeError);
}

/** The real inner product, with respect to which backward is the transpose of the derivative. */
double inner_product(const Tensor& a, const Tensor& b) {
  const auto parts = [](const Tensor& t) { return t.is_complex() ? view_as_real(t.detach()) : t.detach(); };
  return sum(mul(parts(a), parts(b))).item().to<double>();
}

/** The largest difference of two elements, relative to the larger one. */
double distance(const Tensor& a, const Tensor& b) {
  const auto x = complex_values_of(a), y = complex_values_of(b);
  double out = 0;
  for (size_t i = 0; i < x.size(); ++i) out = std::max(out, std::abs(x[i] - y[i]) / (1 + std::abs(x[i])));
  return out;
}

/** <u, J t> from forward mode, <J^T u, t> from backward. */
void check_tangents(const Row& row, ScalarType dtype, Placement placement) {
  std::vector<Tensor> inputs, duals, leaves, recorded_duals, tangents;
  const DualLevel level;
  for (const Tensor& x : make_inputs(row, dtype, 1, row.gradient_sizes)) {
    const bool differentiable = row.inputs[inputs.size()].differentiable && x.is_differentiable();
    inputs.push_back(placed(x, placement));
    duals.push_back(inputs.back());
    leaves.push_back(inputs.back().detach());
    recorded_duals.push_back(leaves.back());
    tangents.emplace_back();
    if (!differentiable) continue;
    tangents.back() = randn(x.sizes().to_vector(), x.options());
    duals.back() = make_dual(inputs.back(), tangents.back());
    leaves.back().requires_grad_();
    recorded_duals.back() = make_dual(leaves.back(), tangents.back());
  }
  if (!row.twice_differentiable) {
    EXPECT_THROW(row.run(duals), NotImplementedError);
    return;
  }
  const Tensor out = row.run(duals), recorded = row.run(recorded_duals);
  EXPECT_FALSE(out.requires_grad());
  const Tensor tangent = unpack_dual(out).tangent;
  ASSERT_EQ(tangent.defined(), recorded.requires_grad());
  if (!tangent.defined()) return;
  ASSERT_EQ(tangent.sizes(), out.sizes());
  ASSERT_EQ(tangent.dtype(), out.dtype());
  EXPECT_LE(distance(unpack_dual(recorded).tangent, tangent), 1e-12);
  const Tensor u = randn(out.sizes().to_vector(), out.options());
  recorded.backward(u);
  double forward = inner_product(u, tangent), backward = 0, magnitude = std::fabs(forward);
  for (size_t i = 0; i < leaves.size(); ++i) {
    if (!tangents[i].defined() || !leaves[i].grad().defined()) continue;
    const double part = inner_product(leaves[i].grad(), tangents[i]);
    backward += part;
    magnitude += std::fabs(part);
  }
  EXPECT_LE(std::fabs(forward - backward), 1e-9 * (1 + magnitude))
      << forward << " forward, " << backward << " backward";
}

}  // namespace

TEST_P(Conformance, Value) {
  const Row& row = GetParam();
  for (const ScalarType dtype : dtypes_of(row)) {
    SCOPED_TRACE(std::string(to_string(dtype)));
    const std::vector<Tensor> inputs = make_inputs(row, dtype);
    EXPECT_TRUE(close_to(row.run(inputs), reference_of(row, inputs), row));
  }
}

TEST_P(Conformance, Gradient) {
  const Row& row = GetParam();
  const std::vector<ScalarType> dtypes = dtypes_of(row);
  for (const ScalarType dtype : {kFloat64, kComplex128}) {
    SCOPED_TRACE(std::string(to_string(dtype)));
    if (std::find(dtypes.begin(), dtypes.end(), dtype) != dtypes.end()) check_gradient(row, dtype);
  }
}

TEST_P(Conformance, ChangedOperands) {
  const Row& row = GetParam();
  const std::vector<ScalarType> dtypes = dtypes_of(row);
  if (!row.differentiable || std::find(dtypes.begin(), dtypes.end(), kFloat64) == dtypes.end()) return;
  constexpr size_t kNone = SIZE_MAX;
  const auto gradients = [&](size_t changed) -> std::optional<std::vector<std::string>> {
    const std::vector<Tensor> inputs = make_inputs(row, kFloat64, 1, row.gradient_sizes);
    for (size_t i = 0; i < inputs.size(); ++i)
      if (row.inputs[i].differentiable && inputs[i].is_differentiable()) Tensor(inputs[i]).requires_grad_();
    const Tensor out = row.run(inputs);
    if (!out.requires_grad()) return {};
    if (changed != kNone) {
      const NoGradGuard no_grad;
      zero_(inputs[changed]);
    }
    try {
      out.backward(ones(out.sizes(), out.options().dtype));
    } catch (const RuntimeError& error) {
      EXPECT_NE(std::string(error.what()).find("modified by an inplace operation"), std::string::npos) << error.what();
      return {};
    }
    std::vector<std::string> bytes;
    for (const Tensor& input : inputs) {
      const Gradient gradient = gradient_of(input);
      for (const Tensor& part : {gradient.values, gradient.rows})
        bytes.push_back(part.defined() ? bytes_of(contiguous(part)) : std::string());
    }
    return bytes;
  };
  const auto unchanged = gradients(kNone);
  for (size_t i = 0; unchanged && i < row.inputs.size(); ++i)
    if (const auto found = gradients(i); found) {
      EXPECT_TRUE(*found == *unchanged) << "input " << i << ": backward read what it became after the op";
    }
}

TEST_P(Conformance, SecondGradient) {
  const Row& row = GetParam();
  if (!row.differentiable) return;
  const std::vector<ScalarType> dtypes = dtypes_of(row);
  for (const ScalarType dtype : {kFloat64, kComplex128}) {
    SCOPED_TRACE(std::string(to_string(dtype)));
    if (std::find(dtypes.begin(), dtypes.end(), dtype) != dtypes.end()) check_second_gradient(row, dtype);
  }
}

TEST_P(Conformance, Tangent) {
  const Row& row = GetParam();
  if (!row.differentiable) return;
  const std::vector<ScalarType> dtypes = dtypes_of(row);
  for (const ScalarType dtype : {kFloat64, kComplex128}) {
    SCOPED_TRACE(std::string(to_string(dtype)));
    if (std::find(dtypes.begin(), dtypes.end(), dtype) == dtypes.end()) continue;
    check_tangents(row, dtype, Placement::Contiguous);
    check_tangents(row, dtype, Placement::Transposed);
  }
}

TEST_P(Conformance, Placement) {
  const Row& row = GetParam();
  for (const ScalarType dtype : dtypes_of(row)) {
    const std::vector<Tensor> inputs = make_inputs(row, dtype);
    const Tensor want = row.run(inputs);
    for (const Placement placement : placements()) {
      SCOPED_TRACE(std::string(to_string(dtype)) + ", " + name_of(placement));
      std::vector<Tensor> all;
      for (const Tensor& t : inputs) all.push_back(placed(t, placement));
      EXPECT_TRUE(same(row.run(all), want, row)) << "all inputs";
      for (size_t i = 0; inputs.size() > 1 && i < inputs.size(); ++i) {
        std::vector<Tensor> one = inputs;
        one[i] = all[i];
        EXPECT_TRUE(same(row.run(one), want, row)) << "input " << i;
      }
    }
  }
}

TEST_P(Conformance, Shapes) {
  const Row& row = GetParam();
  for (const ScalarType dtype : dtypes_of(row)) {
    SCOPED_TRACE(std::string(to_string(dtype)));
    const std::vector<Tensor> inputs = make_inputs(row, dtype);
    for (size_t i = 0; i < inputs.size(); ++i) {
      for (size_t d = 0; d < static_cast<size_t>(inputs[i].dim()); ++d) {
        std::vector<Tensor> seen = inputs, copied = inputs;
        seen[i] = expanded(inputs[i], d);
        copied[i] = placed(seen[i], Placement::Contiguous);
        EXPECT_TRUE(same(row.run(seen), row.run(copied), row)) << "input " << i << " expanded in dimension " << d;
      }
    }
    if (!row.elementwise || !same_sizes(inputs)) continue;

    const Tensor whole = row.run(inputs);
    const size_t item = whole.itemsize();
    const std::string bytes = bytes_of(whole);
    for (const int64_t i : {int64_t{0}, whole.numel() / 2, whole.numel() - 1}) {
      std::vector<Tensor> single;
      for (const Tensor& t : inputs) single.push_back(element(t, i));
      const Tensor got = row.run(single);
      EXPECT_EQ(got.dim(), 0);
      EXPECT_EQ(bytes_of(got), bytes.substr(static_cast<size_t>(i) * item, item)) << "element " << i << " alone";
    }
    std::vector<Tensor> none;
    for (const Tensor& t : inputs) none.push_back(make({0, 3}, t.dtype(), {}));
    EXPECT_EQ(row.run(none).sizes(), IntSpan({0, 3}));
    // Every length from 1 on: heads, whole vectors and tails give the same.
    for (int64_t n = 1; n <= std::min<int64_t>(40, whole.numel()); ++n) {
      std::vector<Tensor> head;
      for (const Tensor& t : inputs) {
        head.push_back(empty({n}, TensorOptions(t.dtype())));
        set_bytes(head.back(), bytes_of(t));
      }
      EXPECT_EQ(bytes_of(row.run(head)), bytes.substr(0, static_cast<size_t>(n) * item)) << "first " << n;
    }
  }
}

TEST_P(Conformance, Isas) {
  const Row& row = GetParam();
  const CpuIsa before = cpu_isa();
  for (const CpuIsa isa : isas()) {
    set_cpu_isa(isa);
    for (const ScalarType dtype : dtypes_of(row)) {
      SCOPED_TRACE(std::string(to_string(isa)) + ", " + std::string(to_string(dtype)));
      const std::vector<Tensor> inputs = make_inputs(row, dtype, 7);
      EXPECT_TRUE(close_to(row.run(inputs), reference_of(row, inputs), row));
    }
  }
  set_cpu_isa(before);
}

TEST_P(Conformance, Variants) {
  const Row& row = GetParam();
  for (const ScalarType dtype : dtypes_of(row)) {
    SCOPED_TRACE(std::string(to_string(dtype)));
    const std::vector<Tensor> inputs = make_inputs(row, dtype);
    const Tensor want = row.run(inputs);
    if (row.out) {
      for (const Placement placement : placements()) {
        const Tensor out = placed(want, placement);
        set_values(out, std::vector<double>(static_cast<size_t>(out.numel()), 1.0));
        const uint32_t version = out.version();
        row.out(out, inputs);
        EXPECT_TRUE(same(out, want, row)) << "out " << name_of(placement);
        EXPECT_GT(out.version(), version);
      }
    }
    if (row.inplace && want.dtype() == inputs[0].dtype() && want.sizes() == inputs[0].sizes()) {
      for (const Placement placement : placements()) {
        std::vector<Tensor> changed = inputs;
        changed[0] = placed(inputs[0], placement);
        const uint32_t version = changed[0].version();
        row.inplace(changed);
        EXPECT_TRUE(same(changed[0], want, row)) << "in place, " << name_of(placement);
        EXPECT_GT(changed[0].version(), version);
      }
    }
  }
}

}  // namespace tercel::test
