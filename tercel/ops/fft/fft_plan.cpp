// Cached plans and twiddle factors of Fourier transforms; see Note [Fourier transforms].
#include <cmath>
#include <map>
#include <numbers>
#include <utility>
#include <vector>

#include "tercel/ops/fft/fft_impl.h"
#include "tercel/util/ceil_div.h"
#include "tercel/util/error.h"
#include "tercel/util/process_mutex.h"

namespace tercel::fft {

namespace {

/** Cache by length and type, cleared when full. Never destroyed: a thread may outlive main(). */
template <class Made>
class Cache {
 public:
  template <class Make>
  std::shared_ptr<const Made> get(int64_t n, Compute compute, Make make) {
    const std::pair key(n, compute);
    {
      const std::lock_guard lock(process_mutex(ProcessMutex::FourierPlans));
      if (!made_) made_ = new Map;
      if (const auto found = made_->find(key); found != made_->end()) return found->second;
    }
    std::shared_ptr<const Made> made = compute == Compute::F32 ? make(float{}) : make(double{});
    if (n > kMaxKept) return made;
    const std::lock_guard lock(process_mutex(ProcessMutex::FourierPlans));
    if (made_->size() >= kMaxEntries) made_->clear();
    return (*made_)[key] = made;
  }

 private:
  using Map = std::map<std::pair<int64_t, Compute>, std::shared_ptr<const Made>>;
  static constexpr size_t kMaxEntries = 128;
  static constexpr int64_t kMaxKept = int64_t{1} << 22;
  Map* made_ = nullptr;
};

/** cos and sin of 2 pi k / n, for 0 <= k < n, rounded from an angle of at most pi / 4. */
std::pair<double, double> circle(int64_t k, int64_t n) {
  const int64_t octant = 8 * k / n;
  const int64_t quarters = (octant + 1) / 2;
  // 2 pi k / n = quarters pi / 2 + angle
  const double angle =
      2 * std::numbers::pi * (static_cast<double>(4 * k - quarters * n) / (4 * static_cast<double>(n)));
  const double c = std::cos(angle), s = std::sin(angle);
  switch (quarters % 4) {
    case 0: return {c, s};
    case 1: return {-s, c};
    case 2: return {-c, -s};
    default: return {s, -c};
  }
}

/** Appends exp(-2 pi i k / n). */
template <class T>
void append_root(std::vector<T>& out, int64_t k, int64_t n) {
  const auto [c, s] = circle(k % n, n);
  out.push_back(static_cast<T>(c));
  out.push_back(static_cast<T>(-s));
}

template <class T>
struct PlanMemory {
  FftPlan plan{};
  std::vector<T> numbers;
};

/** The radices of n in the order of the passes: 4, then 2, then odd primes in ascending order. */
std::vector<int64_t> radices_of(int64_t n) {
  std::vector<int64_t> out;
  for (const int64_t radix : {4, 2})
    for (; n % radix == 0; n /= radix) out.push_back(radix);
  for (int64_t p = 3; n > 1; p += 2)
    for (; n % p == 0; n /= p) out.push_back(p);
  return out;
}

template <class T>
std::shared_ptr<const FftPlan> make_plan(int64_t n) {
  auto memory = std::make_shared<PlanMemory<T>>();
  FftPlan& plan = memory->plan;
  std::vector<T>& numbers = memory->numbers;
  plan.n = n;
  std::vector<std::pair<size_t, size_t>> places;
  int64_t rest = n;
  for (const int64_t radix : radices_of(n)) {
    TERCEL_ASSERT(plan.count < kFftMaxPasses && radix <= kFftMaxPrime);
    const int64_t m = rest / radix;
    plan.passes[plan.count++] = {radix, m, nullptr, nullptr};
    places.emplace_back(numbers.size(), 0);
    for (int64_t p = 0; p < m; ++p)
      for (int64_t k = 1; k < radix; ++k) append_root(numbers, p * k, rest);
    places.back().second = numbers.size();
    for (int64_t j = 0; j < radix; ++j) {
      const auto [c, s] = circle(j, radix);
      numbers.push_back(static_cast<T>(c));
      numbers.push_back(static_cast<T>(s));
    }
    rest = m;
  }
  const size_t half = numbers.size();
  for (int64_t k = 0; 2 * k <= n; ++k) append_root(numbers, k, 2 * n);
  for (size_t i = 0; i < places.size(); ++i) {
    plan.passes[i].twiddles = numbers.data() + places[i].first;
    plan.passes[i].roots = numbers.data() + places[i].second;
  }
  plan.half = numbers.data() + half;
  return {memory, &plan};
}

template <class T>
struct SplitMemory {
  FftSplit split{};
  std::vector<T> near, far;
};

template <class T>
std::shared_ptr<const FftSplit> make_split(int64_t n) {
  auto memory = std::make_shared<SplitMemory<T>>();
  FftSplit& split = memory->split;
  // The largest divisor up to the square root, so that both parts fill the registers; for lines too long for two parts,
  // the longest possible part.
  const double root = std::sqrt(static_cast<double>(n));
  const int64_t most =
      n > kFftMaxPoints * kFftMaxPoints ? kFftMaxPoints : std::min(kFftMaxPoints, static_cast<int64_t>(root));
  split.n1 = 1;
  for (int64_t d = 2; d <= most; ++d)
    if (n % d == 0) split.n1 = d;
  split.n2 = n / split.n1;
  split.far_count = ceil_div(split.n2, kFftLanes);
  for (int64_t k = 0; k < split.n1; ++k) {
    std::vector<T> near;
    for (int64_t i = 0; i < kFftLanes; ++i) append_root(near, k * i, n);
    for (const size_t part : {size_t{0}, size_t{1}})
      for (size_t i = 0; i < static_cast<size_t>(kFftLanes); ++i) memory->near.push_back(near[2 * i + part]);
    for (int64_t i = 0; i < split.far_count; ++i) append_root(memory->far, k * i * kFftLanes, n);
  }
  split.near = memory->near.data();
  split.far = memory->far.data();
  return {memory, &split};
}

}  // namespace

bool is_smooth(int64_t n) {
  for (int64_t p = 2; p <= kFftMaxPrime; ++p)
    while (n % p == 0) n /= p;
  return n == 1;
}

std::shared_ptr<const FftPlan> plan_of(int64_t n, Compute compute) {
  constinit static Cache<FftPlan> cache;
  return cache.get(n, compute, [n](auto t) { return make_plan<decltype(t)>(n); });
}

std::shared_ptr<const FftSplit> split_of(int64_t n, Compute compute) {
  constinit static Cache<FftSplit> cache;
  return cache.get(n, compute, [n](auto t) { return make_split<decltype(t)>(n); });
}

std::shared_ptr<const void> half_roots_of(int64_t h, Compute compute) {
  constinit static Cache<void> cache;
  return cache.get(h, compute, [h](auto t) -> std::shared_ptr<const void> {
    auto numbers = std::make_shared<std::vector<decltype(t)>>();
    for (int64_t k = 0; 2 * k <= h; ++k) append_root(*numbers, k, 2 * h);
    return {numbers, numbers->data()};
  });
}

}  // namespace tercel::fft
