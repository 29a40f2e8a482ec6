// Cost of tensors without arithmetic: blocks by size, headers, handles.
#include <benchmark/benchmark.h>

#include <cstdlib>

#include "tercel/core/tensor.h"

namespace tercel {
namespace {

/** Allocating and freeing a block, by size in bytes: from the thread's cache, the central one, huge pages. */
void allocate_and_free(benchmark::State& state) {
  Allocator& allocator = cpu_allocator();
  const auto nbytes = static_cast<size_t>(state.range(0));
  for (auto _ : state) {
    const DataPtr block = allocator.allocate(nbytes);
    benchmark::DoNotOptimize(block.get());
  }
}
BENCHMARK(allocate_and_free)->RangeMultiplier(8)->Range(64, 64 << 20);

/** The C library, for comparison. */
void posix_memalign_and_free(benchmark::State& state) {
  const auto nbytes = static_cast<size_t>(state.range(0));
  for (auto _ : state) {
    void* block = nullptr;
    if (posix_memalign(&block, 64, nbytes) != 0) state.SkipWithError("out of memory");
    benchmark::DoNotOptimize(block);
    std::free(block);
  }
}
BENCHMARK(posix_memalign_and_free)->RangeMultiplier(8)->Range(64, 64 << 20);

/** Blocks freed in another order than allocated: a working set of 64 instead of a single block. */
void allocate_and_free_64(benchmark::State& state) {
  Allocator& allocator = cpu_allocator();
  const auto nbytes = static_cast<size_t>(state.range(0));
  DataPtr blocks[64];
  for (auto _ : state) {
    for (DataPtr& block : blocks) block = allocator.allocate(nbytes);
    for (DataPtr& block : blocks) block.clear();
  }
  state.SetItemsProcessed(state.iterations() * 64);
}
BENCHMARK(allocate_and_free_64)->RangeMultiplier(8)->Range(64, 32 << 10);

void empty_2x3(benchmark::State& state) {
  for (auto _ : state) {
    const Tensor t = empty({2, 3});
    benchmark::DoNotOptimize(t.numel());
  }
}
BENCHMARK(empty_2x3);

void tensor_default(benchmark::State& state) {
  for (auto _ : state) {
    Tensor t;
    benchmark::DoNotOptimize(t);
  }
}
BENCHMARK(tensor_default);

void tensor_copy(benchmark::State& state) {
  const Tensor t = empty({2, 3});
  for (auto _ : state) {
    const Tensor copy = t;
    benchmark::DoNotOptimize(&copy);
  }
}
BENCHMARK(tensor_copy);

/** The last step of every view op. */
void view_header(benchmark::State& state) {
  const Tensor t = empty({4, 6});
  for (auto _ : state) {
    const Tensor view(make_intrusive<TensorImpl>(t.impl(), IntSpan{6, 4}, IntSpan{1, 6}, t.storage_offset()));
    benchmark::DoNotOptimize(view.numel());
  }
}
BENCHMARK(view_header);

}  // namespace
}  // namespace tercel

BENCHMARK_MAIN();
