// Rearranging elements of large tensors, compared with a plain copy of as many bytes.
//
//   views_bench [threads [part of a row's name]]
//
// float32 [4096, 4096] unless a row says otherwise. "of a copy": the time of clone() for as many written bytes divided
// by the row's; above 100 % if less is read than written.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "benchmarks/measure.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/random/random.h"
#include "tercel/ops/views/cat.h"
#include "tercel/ops/views/diagonals.h"
#include "tercel/ops/views/flip_roll_repeat.h"
#include "tercel/ops/views/pad.h"
#include "tercel/ops/views/views.h"
#include "tercel/util/parallel.h"

int main(int argc, char** argv) {
  using namespace tercel;
  if (argc > 1) set_num_threads(std::atoll(argv[1]));
  const char* filter = argc > 2 ? argv[2] : "";
  const Tensor x = rand({4096, 4096});
  const auto row = [&](const char* name, auto&& call) {
    if (!std::strstr(name, filter)) return;
    const auto bytes = static_cast<double>(call().nbytes());
    // The copy is timed again for each row, since the load of the machine changes.
    const double copy = bench::measure([&] { bench::keep(clone(x)); }, 0.05, 7).least / static_cast<double>(x.nbytes());
    const double time = bench::measure([&] { bench::keep(call()); }, 0.05, 7).least;
    std::printf("%-34s %7.2f GB/s written, %5.1f %% of a copy\n", name, 1e-9 * bytes / time, 100 * copy * bytes / time);
    std::fflush(stdout);
  };
  const Tensor image = x.view({16, 16, 256, 256}), narrow_rows = x.view({int64_t{1} << 20, 16});
  row("flip dim 0", [&] { return flip(x, {0}); });
  row("flip dim 1", [&] { return flip(x, {1}); });
  row("flip both", [&] { return flip(x, {0, 1}); });
  row("flip dim 1 of [1 Mi, 16]", [&] { return flip(narrow_rows, {1}); });
  row("roll dim 0", [&] { return roll(x, {100}, {0}); });
  row("roll dim 1", [&] { return roll(x, {100}, {1}); });
  row("roll flat", [&] { return roll(x, {100}); });
  row("rot90", [&] { return contiguous(rot90(x)); });
  row("repeat 2 x 2", [&] { return repeat(x, {2, 2}); });
  row("repeat_interleave 2, dim 0", [&] { return repeat_interleave(x, 2, 0); });
  row("repeat_interleave 2, dim 1", [&] { return repeat_interleave(x, 2, 1); });
  row("tril", [&] { return tril(x); });
  row("triu", [&] { return triu(x); });
  row("pad constant [16, 16, 256, 256]", [&] { return pad(image, {1, 1, 1, 1}); });
  row("pad reflect [16, 16, 256, 256]", [&] { return pad(image, {1, 1, 1, 1}, "reflect"); });
  row("pad replicate [16, 16, 256, 256]", [&] { return pad(image, {1, 1, 1, 1}, "replicate"); });
  row("pad circular [16, 16, 256, 256]", [&] { return pad(image, {1, 1, 1, 1}, "circular"); });
  row("hstack", [&] { return hstack({x, x}); });
}
