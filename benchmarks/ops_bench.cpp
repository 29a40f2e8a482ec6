// Times every conformance row, with its first dtype and its inputs.
//
//   ops_bench [part of a row's name]
//
// With gradients: forward and backward together. Elementwise rows are also timed on 4 M elements of float32, against
// the stream rate of the machine. One thread.
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "benchmarks/machine_limits.h"
#include "benchmarks/measure.h"
#include "tercel/autograd/autograd.h"
#include "tercel/util/parallel.h"
#include "tests/ops/all_rows.h"

namespace {

using namespace tercel;
using bench::keep;
using bench::measure;
using bench::Times;
using test::Row;

constexpr int64_t kMany = int64_t{4} << 20;

bool needs_gradient(const Row& row, size_t input, const Tensor& t) {
  return row.inputs[input].differentiable && t.is_floating_point();
}

void time_row(const Row& row) {
  std::vector<Tensor> inputs = test::make_inputs(row, row.dtypes[0]);
  Times forward{};
  {
    const NoGradGuard no_grad;
    forward = measure([&] { keep(row.run(inputs)); }, 0.005, 5);
  }
  std::printf("%-28s %-8s median %10.1f ns (min %.1f)", row.name.c_str(), std::string(to_string(row.dtypes[0])).c_str(),
              forward.median * 1e9, forward.least * 1e9);
  bool any = false;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!row.differentiable || !needs_gradient(row, i, inputs[i])) continue;
    inputs[i].requires_grad_();
    any = true;
  }
  if (any && row.run(inputs).requires_grad()) {
    const Tensor like = row.run(inputs);
    const Tensor incoming = test::random(like.sizes().to_vector(), like.dtype(), -1, 1, 1);
    const Times both = measure(
        [&] {
          const Tensor out = row.run(inputs);
          backward(Span<Tensor>(&out, 1), Span<Tensor>(&incoming, 1));
          for (const Tensor& t : inputs)
            if (t.requires_grad()) clear_gradient(t);
        },
        0.005, 5);
    std::printf("   and backward %10.1f ns", both.median * 1e9);
  }
  std::printf("\n");
}

void time_many(const Row& row, double stream) {
  const std::vector<test::Sizes> sizes(row.inputs.size(), {kMany});
  const std::vector<Tensor> inputs = test::make_inputs(row, kFloat32, 1, sizes);
  const NoGradGuard no_grad;
  double bytes = static_cast<double>(row.run(inputs).nbytes());
  for (const Tensor& t : inputs) bytes += static_cast<double>(t.nbytes());
  const Times t = measure([&] { keep(row.run(inputs)); }, 0.02, 5);
  std::printf("%-28s 4 M      median %10.3f ms (min %.3f)   %5.2f ns/element  %5.1f %% of a stream\n", row.name.c_str(),
              t.median * 1e3, t.least * 1e3, t.least * 1e9 / kMany, 100 * bytes / t.least / stream);
}

bool takes_float32(const Row& row) {
  for (const ScalarType t : row.dtypes)
    if (t == kFloat32) return true;
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  set_num_threads(1);
  const double stream = limits::stream_rate(1);
  for (const Row& row : test::all_rows()) {
    if (argc > 1 && !std::strstr(row.name.c_str(), argv[1])) continue;
    time_row(row);
    if (row.elementwise && takes_float32(row)) time_many(row, stream);
    std::fflush(stdout);
  }
  return 0;
}
