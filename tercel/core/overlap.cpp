// Exact overlap of strided tensors.
//
// Note [Overlap as a bounded equation]
// Two index tuples meet when sum(c_i * x_i) = t has a solution with 0 <= x_i <= u_i: the terms are the strides of both
// tensors (those of the second negated), made positive by counting the index from the other end. With the terms sorted
// by descending coefficient, the range that the smaller ones can still add limits each choice to a few values, so that
// nested strides, which nearly all are, are decided without branching. The problem is NP-complete in general; a search
// that takes too long is replaced by marking every element in a bitmap of the memory range, which takes no longer than
// the op itself.
#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <optional>
#include <vector>

#include "tercel/core/geometry.h"
#include "tercel/util/ceil_div.h"

namespace tercel {

namespace {

struct Term {
  int64_t coefficient;  // > 0
  int64_t limit;        // x in [0, limit], limit > 0
};
using Terms = SmallVector<Term, 16>;

constexpr int64_t kSearchBudget = 100'000;

/** The dimensions that move, as distances from the lowest element. */
Terms terms_of(IntSpan sizes, IntSpan strides, int64_t unit) {
  Terms terms;
  for (size_t d = 0; d < sizes.size(); ++d)
    if (sizes[d] > 1 && strides[d] != 0) terms.push_back({std::abs(strides[d]) * unit, sizes[d] - 1});
  return terms;
}

int64_t reach_of(const Terms& terms) {
  int64_t reach = 0;
  for (const Term& term : terms) reach += term.coefficient * term.limit;
  return reach;
}

/** Whether fn(distance) is true for any element. */
template <class Fn>
bool any_element(Span<Term> terms, int64_t distance, const Fn& fn) {
  if (terms.empty()) return fn(distance);
  const Span<Term> rest = terms.subspan(1, terms.size() - 1);
  for (int64_t x = 0; x <= terms[0].limit; ++x)
    if (any_element(rest, distance + x * terms[0].coefficient, fn)) return true;
  return false;
}

class Search {
 public:
  explicit Search(Terms terms) : terms_(std::move(terms)), reach_(terms_.size() + 1), gcd_(terms_.size() + 1) {
    std::sort(terms_.begin(), terms_.end(), [](const Term& a, const Term& b) { return a.coefficient > b.coefficient; });
    for (size_t i = terms_.size(); i-- > 0;) {
      reach_[i] = reach_[i + 1] + terms_[i].coefficient * terms_[i].limit;
      gcd_[i] = std::gcd(gcd_[i + 1], terms_[i].coefficient);
    }
  }

  /** Whether a sum of the terms lies in [low, high]; nullopt if the search takes too long. */
  std::optional<bool> reaches(int64_t low, int64_t high) {
    if (reaches(0, low, high)) return true;
    if (budget_ < 0) return std::nullopt;
    return false;
  }

 private:
  bool reaches(size_t i, int64_t low, int64_t high) {
    if (high < 0 || low > reach_[i]) return false;
    if (low <= 0 || high >= reach_[i]) return true;    // all zero, or all at their limits
    if (high / gcd_[i] * gcd_[i] < low) return false;  // sums are multiples of the gcd
    if (--budget_ < 0) return false;
    const int64_t c = terms_[i].coefficient;
    const int64_t first = ceil_div(std::max<int64_t>(0, low - reach_[i + 1]), c);
    const int64_t last = std::min(terms_[i].limit, high / c);
    for (int64_t x = first; x <= last && budget_ >= 0; ++x)
      if (reaches(i + 1, low - c * x, high - c * x)) return true;
    return false;
  }

  Terms terms_;                           // by descending coefficient
  SmallVector<int64_t, 17> reach_, gcd_;  // of the terms from i on
  int64_t budget_ = kSearchBudget;
};

bool marks_twice(const Terms& dims) {
  int64_t unit = 0;
  for (const Term& dim : dims) unit = std::gcd(unit, dim.coefficient);
  std::vector<bool> seen(static_cast<size_t>(reach_of(dims) / unit) + 1);
  return any_element(dims, 0, [&](int64_t distance) {
    const auto at = static_cast<size_t>(distance / unit);
    if (seen[at]) return true;
    seen[at] = true;
    return false;
  });
}

}  // namespace

bool has_internal_overlap(IntSpan sizes, IntSpan strides) {
  extent_of(sizes, strides);  // throws when the sums below would overflow
  bool repeats = false;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == 0) return false;
    repeats |= sizes[d] > 1 && strides[d] == 0;
  }
  if (repeats) return true;
  Terms dims = terms_of(sizes, strides, 1);
  std::sort(dims.begin(), dims.end(), [](const Term& a, const Term& b) { return a.coefficient < b.coefficient; });
  int64_t reach = 0;
  bool nested = true;
  for (const Term& dim : dims) {
    nested &= dim.coefficient > reach;
    reach += dim.coefficient * dim.limit;
  }
  if (nested) return false;
  // Two indices differ first, in order of dims, at dim k by e >= 1; later dims differ by anything in [-limit, limit]:
  // c_k e + sum c_i d_i = 0. Shifting d_i by its limit makes it a bounded equation (see the note).
  for (size_t k = 0; k < dims.size(); ++k) {
    Terms terms;
    int64_t target = -dims[k].coefficient;
    if (dims[k].limit > 1) terms.push_back({dims[k].coefficient, dims[k].limit - 1});
    for (size_t i = k + 1; i < dims.size(); ++i) {
      terms.push_back({dims[i].coefficient, 2 * dims[i].limit});
      target += dims[i].coefficient * dims[i].limit;
    }
    const std::optional<bool> meets = Search(std::move(terms)).reaches(target, target);
    if (!meets) return marks_twice(dims);
    if (*meets) return true;
  }
  return false;
}

namespace {
/** Whether sizes and steps are the same, but for dimensions of size 1. */
bool same_layout(const ByteLayout& a, const ByteLayout& b) {
  size_t d = 0, e = 0;
  while (true) {
    while (d < a.sizes.size() && a.sizes[d] == 1) ++d;
    while (e < b.sizes.size() && b.sizes[e] == 1) ++e;
    if (d == a.sizes.size() || e == b.sizes.size()) return d == a.sizes.size() && e == b.sizes.size();
    if (a.sizes[d] != b.sizes[e] || a.strides[d] != b.strides[e]) return false;
    ++d;
    ++e;
  }
}
}  // namespace

Overlap overlap_of(const ByteLayout& a, const ByteLayout& b) {
  if (numel_of(a.sizes) == 0 || numel_of(b.sizes) == 0) return Overlap::None;
  const Extent ea = extent_of(a.sizes, a.strides), eb = extent_of(b.sizes, b.strides);
  const int64_t a_low = a.origin + ea.lowest * a.item_size, a_end = a.origin + (ea.highest + 1) * a.item_size;
  const int64_t b_low = b.origin + eb.lowest * b.item_size, b_end = b.origin + (eb.highest + 1) * b.item_size;
  if (a_end <= b_low || b_end <= a_low) return Overlap::None;
  if (a.origin == b.origin && a.item_size == b.item_size && same_layout(a, b)) return Overlap::Full;
  const Terms a_terms = terms_of(a.sizes, a.strides, a.item_size), b_terms = terms_of(b.sizes, b.strides, b.item_size);
  // Elements at a_low + sum(ca x) and b_low + sum(cb y), all coefficients positive, share a byte when their distance
  // lies in (-item_size of a, item_size of b). With y counted from its limit: sum(ca x) + sum(cb y') = distance.
  Terms terms = a_terms;
  for (const Term& term : b_terms) terms.push_back(term);
  const int64_t distance = b_low + reach_of(b_terms) - a_low;
  std::optional<bool> meets = Search(std::move(terms)).reaches(distance - a.item_size + 1, distance + b.item_size - 1);
  if (!meets) {
    const int64_t low = std::max(a_low, b_low), end = std::min(a_end, b_end);
    std::vector<bool> taken(static_cast<size_t>(end - low));
    const auto any_byte = [&](int64_t element, int64_t item_size, const auto& fn) {
      for (int64_t at = std::max(element, low); at < std::min(element + item_size, end); ++at)
        if (fn(static_cast<size_t>(at - low))) return true;
      return false;
    };
    any_element(a_terms, a_low, [&](int64_t element) {
      return any_byte(element, a.item_size, [&](size_t at) {
        taken[at] = true;
        return false;
      });
    });
    meets = any_element(b_terms, b_low, [&](int64_t element) {
      return any_byte(element, b.item_size, [&](size_t at) { return bool{taken[at]}; });
    });
  }
  return *meets ? Overlap::Partial : Overlap::None;
}

}  // namespace tercel
