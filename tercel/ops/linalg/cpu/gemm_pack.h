// Packing of matrix product operands: see Note [GEMM layout] and Note [Packing in the shadow].
#pragma once

#include "tercel/ops/common/cpu/simd.h"
#include "tercel/ops/linalg/cpu/gemm_kernels.h"

namespace tercel::TERCEL_ISA {
namespace {

// State of the packing by tiles, one piece per round of the inner loop: pairs of lines, one pair after another, and
// then the next steps of k of all pairs.
template <class T>
struct Work {
  int64_t rounds;
  const T* source;
  T* packed;
  T* sums;
  int64_t ld;
  int64_t part_lines;
  // Distance from the first line, or vector, of a pair to the second.
  int64_t second_source, second_packed, second_sums;
  // Distance from one pair to the next, and from the end of the last pair to the next steps of the first.
  int64_t next_source, next_packed, next_sums;
  int64_t wrap_source, wrap_packed, wrap_sums;
  int64_t left, pairs;  // pairs until then; number of pairs
};

template <class T>
TERCEL_ALWAYS_INLINE void go_on(Work<T>& w) {
  w.source += w.next_source;
  w.packed += w.next_packed;
  if (w.sums) w.sums += w.next_sums;
  if (--w.left == 0) {
    w.source += w.wrap_source;
    w.packed += w.wrap_packed;
    if (w.sums) w.sums += w.wrap_sums;
    w.left = w.pairs;
  }
}

// Copies two vectors of a row: those of two strips, or of one panel. A vector may be wider than a strip: the excess is
// overwritten by the next row, or goes to the gap after the strip.
template <class T>
TERCEL_ALWAYS_INLINE void copy_round(Work<T>& w) {
  __builtin_prefetch(w.source + w.ld);
  const Simd<T> x = load(w.source);
  const Simd<T> y = load(w.source + w.second_source);
  store(w.packed, x);
  store(w.packed + w.second_packed, y);
  if (w.sums) {
    store(w.sums, load(w.sums) + x);
    store(w.sums + w.second_sums, load(w.sums + w.second_sums) + y);
  }
  go_on(w);
}

// Interleaves 8 elements of two lines.
constexpr int kTransposeSteps = 8;
TERCEL_ALWAYS_INLINE void transpose_round(Work<float>& w) {
  typedef float Four __attribute__((vector_size(16), aligned(4)));  // NOLINT(modernize-use-using)
  typedef int64_t Pairs __attribute__((vector_size(16)));           // NOLINT(modernize-use-using)
  typedef int64_t Pair __attribute__((aligned(4), may_alias));      // NOLINT(modernize-use-using)
  const float* second = w.source + w.second_source;
  __builtin_prefetch(w.source + 4 * kTransposeSteps);
  __builtin_prefetch(second + 4 * kTransposeSteps);
  float* packed = w.packed;
  TERCEL_UNROLL
  for (int i = 0; i < kTransposeSteps; i += 4) {
    const Four x = *reinterpret_cast<const Four*>(w.source + i);
    const Four y = *reinterpret_cast<const Four*>(second + i);
    const Pairs low = Pairs(__builtin_shufflevector(x, y, 0, 4, 1, 5));
    const Pairs high = Pairs(__builtin_shufflevector(x, y, 2, 6, 3, 7));
    *reinterpret_cast<Pair*>(packed) = low[0];
    *reinterpret_cast<Pair*>(packed + w.part_lines) = low[1];
    *reinterpret_cast<Pair*>(packed + 2 * w.part_lines) = high[0];
    *reinterpret_cast<Pair*>(packed + 3 * w.part_lines) = high[1];
    packed += 4 * w.part_lines;
  }
  go_on(w);
}
TERCEL_ALWAYS_INLINE void transpose_round(Work<double>& w) {
  double* packed = w.packed;
  TERCEL_UNROLL
  for (int i = 0; i < kTransposeSteps; ++i) {
    packed[0] = w.source[i];
    packed[1] = w.source[w.second_source + i];
    packed += w.part_lines;
  }
  go_on(w);
}

// A part wider than a vector is copied as two vectors, others two at a time.
template <class T>
bool is_wide(const PackTask<T>& task) {
  return task.part_lines > kLanes<T>;
}

// Pairs of vectors in a row of a task that is not transposed: those that are entirely inside the operand. The other
// lines are packed one by one.
template <class T>
int64_t copied_pairs(const PackTask<T>& task) {
  const int64_t reach = is_wide(task) ? 2 * kLanes<T> : kLanes<T>;
  int64_t parts = task.lines / task.part_lines;
  while (parts > 0 && (parts - 1) * task.part_lines + reach > task.readable) --parts;
  return is_wide(task) ? parts : parts / 2;
}

template <class T>
int64_t part_count(const PackTask<T>& task) {
  return (task.lines + task.part_lines - 1) / task.part_lines;
}

// Advances a task's progress by up to `rounds` rounds. False if only incomplete pieces are left.
template <class T>
bool take_work(PackTask<T>& task, int64_t rounds, Work<T>& w) {
  w.ld = task.ld;
  w.part_lines = task.part_lines;
  if (task.transposed) {
    for (;; ++task.part, task.done = 0) {
      const int64_t first = task.part * task.part_lines;
      if (first >= task.lines) return false;
      w.pairs = (task.lines - first < task.part_lines ? task.lines - first : task.part_lines) / 2;
      const int64_t left = w.pairs * (task.k / kTransposeSteps) - task.done;
      if (left <= 0) continue;
      const int64_t step = task.done / w.pairs;
      const int64_t pair = task.done % w.pairs;
      w.rounds = left < rounds ? left : rounds;
      w.second_source = task.ld;
      w.next_source = 2 * task.ld;
      w.next_packed = 2;
      w.next_sums = 0;
      w.wrap_source = kTransposeSteps - w.pairs * w.next_source;
      w.wrap_packed = kTransposeSteps * task.part_lines - w.pairs * w.next_packed;
      w.wrap_sums = 0;
      w.left = w.pairs - pair;
      w.source = task.source + (first + 2 * pair) * task.ld + step * kTransposeSteps;
      w.packed = task.packed + task.part * task.part_step + 2 * pair + step * kTransposeSteps * task.part_lines;
      w.sums = nullptr;
      task.done += w.rounds;
      return true;
    }
  }
  if (task.pairs < 0) task.pairs = copied_pairs(task);
  w.pairs = task.pairs;
  const int64_t left = w.pairs * (task.k - task.row) - task.done;
  w.rounds = left < rounds ? left : rounds;
  if (w.rounds <= 0) return false;
  const bool wide = is_wide(task);
  const int64_t parts = wide ? 1 : 2;
  w.second_source = wide ? kLanes<T> : task.part_lines;
  w.second_packed = wide ? kLanes<T> : task.part_step;
  w.second_sums = wide ? kLanes<T> : task.sums_step;
  w.next_source = parts * task.part_lines;
  w.next_packed = parts * task.part_step;
  w.next_sums = parts * task.sums_step;
  w.wrap_source = task.ld - w.pairs * w.next_source;
  w.wrap_packed = task.part_lines - w.pairs * w.next_packed;
  w.wrap_sums = -w.pairs * w.next_sums;
  w.left = w.pairs - task.done;
  w.source = task.source + task.row * task.ld + task.done * w.next_source;
  w.packed = task.packed + task.row * task.part_lines + task.done * w.next_packed;
  w.sums = task.sums ? task.sums + task.done * w.next_sums : nullptr;
  task.done += w.rounds;
  task.row += task.done / w.pairs;
  task.done %= w.pairs;
  return true;
}

// Packs one line of a part, from step k on.
template <class T>
void pack_line(const PackTask<T>& task, int64_t part, int64_t line, int64_t k) {
  T* packed = task.packed + part * task.part_step + line;
  const int64_t index = part * task.part_lines + line;
  if (index >= task.lines) {  // padding of the last panel
    for (k = 0; k < task.k; ++k) packed[k * task.part_lines] = 0;
    return;
  }
  if (k >= task.k) return;  // the source may be null
  const T* source = task.source + index * (task.transposed ? task.ld : 1);
  const int64_t step = task.transposed ? 1 : task.ld;
  T unused = 0;
  T& sum = task.sums ? task.sums[part * task.sums_step + line] : unused;
  for (; k < task.k; ++k) {
    packed[k * task.part_lines] = source[k * step];
    sum += source[k * step];
  }
}

template <class T>
void pack(PackTask<T>& task) {
  Work<T> work;
  while (take_work(task, INT64_MAX, work)) {
    if (task.transposed) {
      for (int64_t i = 0; i < work.rounds; ++i) transpose_round(work);
    } else {
      for (int64_t i = 0; i < work.rounds; ++i) copy_round(work);
    }
  }
  // Lines that are not part of a pair, and the last steps of transposed pairs.
  const int64_t whole = task.k / kTransposeSteps * kTransposeSteps;
  int64_t part = 0;
  if (!task.transposed)
    part = task.pairs * (is_wide(task) ? 1 : 2);
  else if (whole == task.k && task.part_lines % 2 == 0)
    part = task.lines / task.part_lines;
  for (const int64_t parts = part_count(task); part < parts; ++part) {
    for (int64_t line = 0; line < task.part_lines; ++line) {
      const bool pair =
          task.transposed && (line | 1) < task.part_lines && part * task.part_lines + (line | 1) < task.lines;
      if (!pair || whole < task.k) pack_line(task, part, line, pair ? whole : 0);
    }
  }
}

}  // namespace
}  // namespace tercel::TERCEL_ISA
