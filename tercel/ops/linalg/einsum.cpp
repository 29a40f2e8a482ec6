// Note [Einsum]
// The equation is parsed into one label per dimension: 0 to 51 for letters, from 52 on for the dimensions of the
// ellipsis, numbered so that trailing ones agree. An operand is then a tensor with its labels; two operands are
// multiplied as batches of matrices, whose sizes are the products over labels (in both and kept; in the left one; in
// both and summed over; in the right one). The order of the products is planned from sizes alone.
#include "tercel/ops/linalg/einsum.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>

#include "tercel/ops/common/copy.h"
#include "tercel/ops/common/operand_checks_impl.h"
#include "tercel/ops/elementwise/binary.h"
#include "tercel/ops/linalg/matmul.h"
#include "tercel/ops/reduce/reduce.h"
#include "tercel/ops/views/diagonals.h"
#include "tercel/ops/views/views.h"

namespace tercel {

namespace {

constexpr int kLetters = 52;
constexpr size_t kOptimalOperands = 8;

using Labels = std::vector<int>;

struct Operand {
  Tensor tensor;
  Labels labels;
};

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
int label_of(char c) { return c >= 'a' ? c - 'a' + 26 : c - 'A'; }
char letter_of(int label) { return static_cast<char>(label < 26 ? 'A' + label : 'a' + label - 26); }
bool contains(const Labels& labels, int label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

/** A term of the equation as labels; the ellipsis is -1. */
constexpr int kEllipsisLabel = -1;

/** Parses a term; `where` names it in errors, `start` is its position in the equation. */
Labels parse_term(std::string_view term, size_t start, const std::string& where) {
  Labels labels;
  bool ellipsis = false;
  for (size_t i = 0; i < term.size(); ++i) {
    const char c = term[i];
    if (c == ' ') continue;
    if (c == '.') {
      TERCEL_CHECK(!ellipsis, RuntimeError, "einsum(): found '.' for ", where,
                   " for which an ellipsis was already found");
      TERCEL_CHECK(term.substr(i, 3) == "...", RuntimeError, "einsum(): found '.' for ", where,
                   " that is not part of any ellipsis");
      ellipsis = true;
      i += 2;
      labels.push_back(kEllipsisLabel);
      continue;
    }
    TERCEL_CHECK(is_letter(c), RuntimeError, "einsum(): invalid subscript given at index ", start + i,
                 " in the equation string, subscripts must be in [a-zA-Z]");
    labels.push_back(label_of(c));
  }
  return labels;
}

struct Equation {
  std::vector<Labels> inputs;
  bool has_output = false;
  Labels output;
};

Equation parse(std::string_view text) {
  Equation equation;
  const size_t arrow = text.find("->");
  const std::string_view left = text.substr(0, arrow);
  size_t start = 0;
  for (;;) {
    const size_t comma = std::min(left.find(',', start), left.size());
    equation.inputs.push_back(
        parse_term(left.substr(start, comma - start), start, str_cat({"operand ", equation.inputs.size()})));
    if (comma == left.size()) break;
    start = comma + 1;
  }
  if (arrow == std::string_view::npos) return equation;
  equation.has_output = true;
  equation.output = parse_term(text.substr(arrow + 2), arrow + 2, "output");
  return equation;
}

/** The labels of an operand's dimensions, with the ellipsis expanded. */
Labels spread(const Labels& term, int64_t ellipsis_dims, int all_ellipsis_dims) {
  Labels out;
  for (const int label : term) {
    if (label != kEllipsisLabel) {
      out.push_back(label);
      continue;
    }
    for (int64_t d = 0; d < ellipsis_dims; ++d)
      out.push_back(kLetters + all_ellipsis_dims - static_cast<int>(ellipsis_dims - d));
  }
  return out;
}

/** The number of dimensions that an operand's ellipsis represents; checks the number of subscripts. */
int64_t ellipsis_dims_of(const Labels& term, const Tensor& x, size_t index) {
  const auto letters = static_cast<int64_t>(term.size());
  const bool ellipsis = contains(term, kEllipsisLabel);
  if (ellipsis) {
    TERCEL_CHECK(letters - 1 <= x.dim(), RuntimeError, "einsum(): the number of subscripts in the equation (",
                 letters - 1, ") is more than the number of dimensions (", x.dim(), ") for operand ", index);
    return x.dim() - (letters - 1);
  }
  TERCEL_CHECK(letters == x.dim(), RuntimeError, "einsum(): the number of subscripts in the equation (", letters,
               ") does not match the number of dimensions (", x.dim(), ") for operand ", index,
               " and no ellipsis was given");
  return 0;
}

std::string describe_label(int label) {
  return label < kLetters ? std::string(1, letter_of(label)) : std::string("...");
}

/** Replaces repeated labels by a diagonal. */
Operand take_diagonals(Tensor x, const Labels& labels, size_t index) {
  Operand out{std::move(x), {}};
  for (const int label : labels) {
    const auto at = std::find(out.labels.begin(), out.labels.end(), label);
    if (at == out.labels.end()) {
      out.labels.push_back(label);
      continue;
    }
    // All dimensions before this one have distinct labels, so the repeated one directly follows them.
    const int64_t first = at - out.labels.begin(), second = static_cast<int64_t>(out.labels.size());
    TERCEL_CHECK(out.tensor.size(first) == out.tensor.size(second), RuntimeError, "einsum(): subscript ",
                 describe_label(label), " is repeated for operand ", index, " but the sizes don't match, ",
                 out.tensor.size(second), " != ", out.tensor.size(first));
    DimVector order;
    Tensor d = diagonal(out.tensor, 0, first, second);
    const int64_t last = d.dim() - 1;
    for (int64_t k = 0; k < last; ++k) {
      if (k == first) order.push_back(last);
      order.push_back(k);
    }
    if (first == last) order.push_back(last);
    out.tensor = permute(d, order);
  }
  return out;
}

/** Sums over the dimensions for whose labels `drop` is true. */
template <class Drop>
void sum_out(Operand& x, Drop drop) {
  DimVector dims;
  Labels left;
  for (size_t d = 0; d < x.labels.size(); ++d) {
    if (drop(x.labels[d]))
      dims.push_back(static_cast<int64_t>(d));
    else
      left.push_back(x.labels[d]);
  }
  if (dims.empty()) return;
  x.tensor = to(sum(x.tensor, dims), x.tensor.dtype());
  x.labels = std::move(left);
}

Tensor arrange(const Operand& x, const Labels& order) {
  DimVector dims;
  for (const int label : order) dims.push_back(std::find(x.labels.begin(), x.labels.end(), label) - x.labels.begin());
  return permute(x.tensor, dims);
}

/** The product of two operands, summed over the labels for which `kept` is false. */
template <class Kept>
Operand multiply(Operand a, Operand b, Kept kept) {
  sum_out(a, [&](int label) { return !kept(label) && !contains(b.labels, label); });
  sum_out(b, [&](int label) { return !kept(label) && !contains(a.labels, label); });
  Labels batch, left, right, summed;
  for (const int label : a.labels) (contains(b.labels, label) ? (kept(label) ? batch : summed) : left).push_back(label);
  for (const int label : b.labels)
    if (!contains(a.labels, label)) right.push_back(label);
  const auto joined = [](const Labels& x, const Labels& y, const Labels& z) {
    Labels out = x;
    out.insert(out.end(), y.begin(), y.end());
    out.insert(out.end(), z.begin(), z.end());
    return out;
  };
  Operand out;
  out.labels = joined(batch, left, right);
  const Tensor x = arrange(a, joined(batch, left, summed)), y = arrange(b, joined(batch, summed, right));
  const size_t nb = batch.size(), nl = left.size(), ns = summed.size();
  DimVector sizes(x.sizes().subspan(0, nb + nl));
  for (const int64_t s : y.sizes().subspan(nb + ns, right.size())) sizes.push_back(s);
  if (summed.empty()) {
    // Nothing is summed: an elementwise product, of any dtype.
    DimVector sizes_x(x.sizes()), sizes_y(y.sizes().subspan(0, nb));
    sizes_x.resize(nb + nl + right.size(), 1);
    sizes_y.resize(nb + nl, 1);
    for (const int64_t s : y.sizes().subspan(nb, right.size())) sizes_y.push_back(s);
    out.tensor = mul(reshape(x, sizes_x), reshape(y, sizes_y));
    return out;
  }
  const int64_t n = numel_of(x.sizes().subspan(0, nb)), rows = numel_of(x.sizes().subspan(nb, nl)),
                inner = numel_of(x.sizes().subspan(nb + nl, ns)),
                columns = numel_of(y.sizes().subspan(nb + ns, right.size()));
  if (batch.empty())
    out.tensor = reshape(mm(reshape(x, {rows, inner}), reshape(y, {inner, columns})), sizes);
  else
    out.tensor = reshape(bmm(reshape(x, {n, rows, inner}), reshape(y, {n, inner, columns})), sizes);
  return out;
}

/** The order in which pairs of operands are multiplied; the result of each step is appended to the operands. */
class Plan {
 public:
  using Steps = std::vector<std::pair<size_t, size_t>>;

  Plan(const std::vector<Operand>& operands, const std::vector<int64_t>& sizes, const Labels& output)
      : sizes_(sizes), output_(mask_of(output)) {
    for (const Operand& x : operands) masks_.push_back(mask_of(x.labels));
  }

  Steps steps() const {
    const size_t n = masks_.size();
    if (n < 2) return {};
    if (n == 2) return {{0, 1}};
    return n <= kOptimalOperands ? optimal() : greedy();
  }

 private:
  // More than 64 labels are rare, so a vector of bools serves all cases.
  using Mask = std::vector<bool>;

  Mask mask_of(const Labels& labels) const {
    Mask mask(sizes_.size(), false);
    for (const int label : labels) mask[static_cast<size_t>(label)] = true;
    return mask;
  }
  static void unite(Mask& into, const Mask& other) {
    for (size_t i = 0; i < into.size(); ++i) into[i] = into[i] || other[i];
  }
  double size_of(const Mask& mask) const {
    double size = 1;
    for (size_t i = 0; i < mask.size(); ++i)
      if (mask[i]) size *= static_cast<double>(sizes_[i]);
    return size;
  }

  /** The labels that remain in the product of a set of operands: those of the output or of another operand. */
  Mask result_of(size_t set) const {
    Mask inside(sizes_.size(), false), outside = output_;
    for (size_t i = 0; i < masks_.size(); ++i) unite(set >> i & 1 ? inside : outside, masks_[i]);
    for (size_t i = 0; i < inside.size(); ++i) inside[i] = inside[i] && outside[i];
    return inside;
  }

  /** The cheapest split into two, for every set of operands. */
  Steps optimal() const {
    const size_t all = (size_t{1} << masks_.size()) - 1;
    std::vector<double> cost(all + 1, HUGE_VAL);
    std::vector<size_t> half(all + 1, 0);
    std::vector<Mask> result(all + 1);
    for (size_t set = 1; set <= all; ++set) {
      result[set] = std::has_single_bit(set) ? masks_[static_cast<size_t>(std::countr_zero(set))] : result_of(set);
      if (std::has_single_bit(set)) cost[set] = 0;
      for (size_t part = (set - 1) & set; part > set - part; part = (part - 1) & set) {
        Mask both = result[part];
        unite(both, result[set ^ part]);
        // Among equal costs, the smaller intermediate result wins.
        const double c = cost[part] + cost[set ^ part] + size_of(both) + size_of(result[set]);
        if (c >= cost[set]) continue;
        cost[set] = c;
        half[set] = part;
      }
    }
    Steps steps;
    std::vector<size_t> present;
    for (size_t i = 0; i < masks_.size(); ++i) present.push_back(size_t{1} << i);
    make(all, half, present, steps);
    return steps;
  }

  void make(size_t set, const std::vector<size_t>& half, std::vector<size_t>& present, Steps& steps) const {
    if (std::has_single_bit(set)) return;
    make(half[set], half, present, steps);
    make(set ^ half[set], half, present, steps);
    const auto place = [&](size_t s) {
      return static_cast<size_t>(std::find(present.begin(), present.end(), s) - present.begin());
    };
    join(place(half[set]), place(set ^ half[set]), set, present, steps);
  }

  static void join(size_t a, size_t b, size_t set, std::vector<size_t>& present, Steps& steps) {
    if (a > b) std::swap(a, b);
    steps.emplace_back(a, b);
    present.erase(present.begin() + static_cast<ptrdiff_t>(b));
    present.erase(present.begin() + static_cast<ptrdiff_t>(a));
    present.push_back(set);
  }

  /** Greedily multiplies the pair whose product reduces the total size most, or increases it least. */
  Steps greedy() const {
    Steps steps;
    std::vector<Mask> present = masks_;
    while (present.size() > 1) {
      size_t best_a = 0, best_b = 1;
      double best = HUGE_VAL;
      Mask best_mask;
      for (size_t a = 0; a < present.size(); ++a) {
        for (size_t b = a + 1; b < present.size(); ++b) {
          Mask both = present[a], others = output_;
          unite(both, present[b]);
          for (size_t i = 0; i < present.size(); ++i)
            if (i != a && i != b) unite(others, present[i]);
          for (size_t i = 0; i < both.size(); ++i) both[i] = both[i] && others[i];
          const double growth = size_of(both) - size_of(present[a]) - size_of(present[b]);
          if (growth >= best) continue;
          best = growth;
          best_a = a;
          best_b = b;
          best_mask = both;
        }
      }
      steps.emplace_back(best_a, best_b);
      present.erase(present.begin() + static_cast<ptrdiff_t>(best_b));
      present.erase(present.begin() + static_cast<ptrdiff_t>(best_a));
      present.push_back(best_mask);
    }
    return steps;
  }

  const std::vector<int64_t>& sizes_;
  Mask output_;
  std::vector<Mask> masks_;
};

Labels implicit_output(const std::vector<Labels>& inputs) {
  int count[kLetters] = {};
  bool ellipsis = false;
  for (const Labels& term : inputs) {
    for (const int label : term) {
      if (label == kEllipsisLabel)
        ellipsis = true;
      else
        ++count[label];
    }
  }
  Labels out;
  if (ellipsis) out.push_back(kEllipsisLabel);
  for (int label = 0; label < kLetters; ++label)
    if (count[label] == 1) out.push_back(label);
  return out;
}

Tensor evaluate(const Equation& equation, Span<Tensor> tensors) {
  TERCEL_CHECK(!tensors.empty(), RuntimeError, "einsum(): must provide at least one operand");
  TERCEL_CHECK(equation.inputs.size() >= tensors.size(), RuntimeError,
               "einsum(): more operands were provided than specified in the equation");
  TERCEL_CHECK(equation.inputs.size() <= tensors.size(), RuntimeError,
               "einsum(): fewer operands were provided than specified in the equation");
  std::vector<int64_t> ellipsis_dims;
  for (size_t i = 0; i < tensors.size(); ++i) {
    check_strided("einsum", tensors[i], "operands");
    check_on_cpu("einsum", tensors[i]);
    if (i > 0) check_same_dtype("einsum", tensors[0], tensors[i]);
    ellipsis_dims.push_back(ellipsis_dims_of(equation.inputs[i], tensors[i], i));
  }
  const int all_ellipsis = static_cast<int>(*std::max_element(ellipsis_dims.begin(), ellipsis_dims.end()));

  std::vector<Operand> operands;
  const size_t labels = kLetters + static_cast<size_t>(all_ellipsis);
  std::vector<int64_t> sizes(labels, 1);
  std::vector<bool> seen(labels, false);
  for (size_t i = 0; i < tensors.size(); ++i) {
    operands.push_back(take_diagonals(tensors[i], spread(equation.inputs[i], ellipsis_dims[i], all_ellipsis), i));
    for (size_t d = 0; d < operands[i].labels.size(); ++d) {
      const int label = operands[i].labels[d];
      int64_t& size = sizes[static_cast<size_t>(label)];
      const int64_t here = operands[i].tensor.sizes()[d];
      TERCEL_CHECK(size == 1 || here == 1 || size == here, RuntimeError, "einsum(): subscript ", describe_label(label),
                   " has size ", here, " for operand ", i, " which does not broadcast with previously seen size ",
                   size);
      if (size == 1) size = here;
      seen[static_cast<size_t>(label)] = true;
    }
  }

  const Labels term = equation.has_output ? equation.output : implicit_output(equation.inputs);
  const Labels output = spread(term, all_ellipsis, all_ellipsis);
  for (size_t i = 0; i < output.size(); ++i) {
    TERCEL_CHECK(seen[static_cast<size_t>(output[i])], RuntimeError, "einsum(): output subscript ",
                 describe_label(output[i]), " does not appear in the equation for any input operand");
    TERCEL_CHECK(std::find(output.begin(), output.begin() + static_cast<ptrdiff_t>(i), output[i]) ==
                     output.begin() + static_cast<ptrdiff_t>(i),
                 RuntimeError, "einsum(): output subscript ", describe_label(output[i]),
                 " appears more than once in the output");
  }

  // A dimension of size 1 that is broadcast is dropped.
  for (Operand& x : operands)
    for (size_t d = x.labels.size(); d-- > 0;) {
      if (x.tensor.sizes()[d] != 1 || sizes[static_cast<size_t>(x.labels[d])] == 1) continue;
      x.tensor = squeeze(x.tensor, static_cast<int64_t>(d));
      x.labels.erase(x.labels.begin() + static_cast<ptrdiff_t>(d));
    }

  for (const auto& [a, b] : Plan(operands, sizes, output).steps()) {
    Operand left = std::move(operands[a]), right = std::move(operands[b]);
    operands.erase(operands.begin() + static_cast<ptrdiff_t>(b));
    operands.erase(operands.begin() + static_cast<ptrdiff_t>(a));
    operands.push_back(multiply(std::move(left), std::move(right), [&](int label) {
      if (contains(output, label)) return true;
      return std::any_of(operands.begin(), operands.end(), [&](const Operand& x) { return contains(x.labels, label); });
    }));
  }
  Operand& last = operands.front();
  sum_out(last, [&](int label) { return !contains(output, label); });
  return arrange(last, output);
}

Labels checked_subscripts(Span<int64_t> subscripts, const std::string& where) {
  Labels labels;
  for (const int64_t s : subscripts) {
    TERCEL_CHECK(s == kEllipsis || (s >= 0 && s < kLetters), ValueError, "einsum(): subscript ", s, " of ", where,
                 " in subscript list is not within the valid range [0, 52)");
    TERCEL_CHECK(s != kEllipsis || !contains(labels, kEllipsisLabel), RuntimeError, "einsum(): found '.' for ", where,
                 " for which an ellipsis was already found");
    labels.push_back(s == kEllipsis ? kEllipsisLabel : static_cast<int>(s));
  }
  return labels;
}

Equation equation_of(Span<std::vector<int64_t>> subscripts) {
  Equation equation;
  for (size_t i = 0; i < subscripts.size(); ++i)
    equation.inputs.push_back(checked_subscripts(subscripts[i], str_cat({"operand ", i})));
  return equation;
}

}  // namespace

Tensor einsum(std::string_view equation, Span<Tensor> operands) { return evaluate(parse(equation), operands); }

Tensor einsum(Span<Tensor> operands, Span<std::vector<int64_t>> subscripts) {
  return evaluate(equation_of(subscripts), operands);
}

Tensor einsum(Span<Tensor> operands, Span<std::vector<int64_t>> subscripts, Span<int64_t> output) {
  Equation equation = equation_of(subscripts);
  equation.has_output = true;
  equation.output = checked_subscripts(output, "output");
  return evaluate(equation, operands);
}

}  // namespace tercel
