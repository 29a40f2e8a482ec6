#include "tercel/recsys/embedding/initialize_rows.h"

#include <algorithm>
#include <cstring>

#include "tercel/ops/common/copy.h"
#include "tercel/ops/random/random_kernels.h"
#include "tercel/recsys/part_seed.h"
#include "tercel/util/ceil_div.h"
#include "tercel/util/parallel.h"

namespace tercel::recsys {

namespace {

constexpr KernelTable<RandomWordsFn> kRandomWords = TERCEL_CPU_KERNELS(random_words);
constexpr KernelTable<UniformF32Fn> kUniform = TERCEL_CPU_KERNELS(uniform_numbers_f32);
constexpr KernelTable<NormalF32Fn> kNormal = TERCEL_CPU_KERNELS(normal_numbers_f32);

constexpr int64_t kColumns = 4;  // of one Philox block
constexpr int64_t kKeys = 64;    // whose numbers are drawn together: their rows stay in the L1 or L2 cache
constexpr int64_t kGrainElements = 1 << 14;

/** Numbers of a distribution, one for each word; count is a multiple of kNormalsTogether. */
void draw(const nn::Init& init, const uint32_t* words, int64_t count, float* out) {
  const auto a = static_cast<float>(init.a), b = static_cast<float>(init.b);
  if (init.kind == nn::Init::Kind::Uniform) {
    kUniform[kCpu](words, count, a, b - a, b, out);
    return;
  }
  kNormal[kCpu](words, count, out);
  for (int64_t i = 0; i < count; ++i) out[i] = a + b * out[i];
}

}  // namespace

void initialize_rows(const Tensor& rows, const nn::Init& init, uint64_t seed, std::string_view table,
                     int64_t first_key) {
  TERCEL_CHECK(rows.dim() == 2 && rows.dtype() == kFloat32 && (rows.stride(1) == 1 || rows.size(1) <= 1), RuntimeError,
               "initialize_rows: expected float32 [n, dim] with contiguous rows but got ", describe(rows));
  if (init.kind == nn::Init::Kind::Zero || init.kind == nn::Init::Kind::Constant) {
    fill_(rows, init.a);
    return;
  }
  const int64_t n = rows.size(0), dim = rows.size(1), stride = rows.stride(0);
  if (rows.numel() == 0) return;
  const uint64_t table_seed = seed_of_part(seed, table);
  auto* const base = rows.data<float>();
  parallel_for(0, n, ceil_div(kGrainElements, dim), [&](int64_t begin, int64_t end) {
    alignas(64) uint32_t words[kColumns * kKeys];
    alignas(64) float numbers[kColumns * kKeys];
    for (int64_t r = begin; r < end; r += kKeys) {
      const int64_t keys = std::min(kKeys, end - r), blocks = round_up(keys, kRandomLanes);
      const uint64_t key = static_cast<uint64_t>(first_key) + static_cast<uint64_t>(r);
      for (int64_t column = 0; column < dim; column += kColumns) {
        kRandomWords[kCpu](table_seed, static_cast<uint64_t>(column / kColumns), key, blocks, words);
        draw(init, words, kColumns * blocks, numbers);
        float* to = base + r * stride + column;
        const auto bytes = static_cast<size_t>(std::min(kColumns, dim - column)) * sizeof(float);
        for (int64_t i = 0; i < keys; ++i, to += stride) std::memcpy(to, numbers + i * kColumns, bytes);
      }
    }
  });
  rows.impl().bump_version();
}

}  // namespace tercel::recsys
