#include "tercel/ops/print.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <ostream>
#include <utility>

#include "tercel/autograd/autograd_meta.h"
#include "tercel/autograd/forward_mode.h"
#include "tercel/core/convert.h"
#include "tercel/core/load_element.h"
#include "tercel/core/sparse_data.h"
#include "tercel/ops/linalg/packed_weight.h"
#include "tercel/ops/sparse/coo.h"

namespace tercel {

namespace {

constexpr int64_t kEdge = 3, kThreshold = 1000;
constexpr size_t kLineWidth = 80, kIndent = 7;  // of "tensor("
constexpr int kPrecision = 4;

/** Formats digits independently of the locale. */
std::string digits(double value, std::chars_format format, int precision) {
  char text[400];
  const auto end = std::to_chars(text, text + sizeof(text), value, format, precision).ptr;
  return {text, end};
}

/** Common format of the numbers of a floating-point tensor, or of the parts of a complex one. */
class NumberFormat {
 public:
  /** Must be called for every number before the first one is printed. */
  void look_at(double x) {
    if (!std::isfinite(x) || x == 0) return;
    least_ = std::min(least_, std::abs(x));
    most_ = std::max(most_, std::abs(x));
    whole_ &= x == std::ceil(x);
  }
  std::string text_of(double x) const {
    if (std::isnan(x)) return "nan";
    if (std::isinf(x)) return x > 0 ? "inf" : "-inf";
    const bool wide = most_ > 0 && (most_ / least_ > 1000 || most_ > 1e8);
    if (wide || (!whole_ && least_ < 1e-4)) return digits(x, std::chars_format::scientific, kPrecision);
    return whole_ ? digits(x, std::chars_format::fixed, 0) + "." : digits(x, std::chars_format::fixed, kPrecision);
  }
  /** Zeros and non-finite numbers do not widen a column. */
  size_t width_of(double x) const { return !std::isfinite(x) || x == 0 ? 1 : text_of(x).size(); }

 private:
  double least_ = std::numeric_limits<double>::infinity(), most_ = 0;
  bool whole_ = true;
};

std::string padded(const std::string& text, size_t width) {
  return text.size() < width ? std::string(width - text.size(), ' ') + text : text;
}

class Printer {
 public:
  explicit Printer(const Tensor& t) : t_(t), summarize_(t.numel() > kThreshold) {
    if (t.is_differentiable())
      visit_shown(0, 0, [this](int64_t offset) {
        const Complex<double> x = number_at(offset);
        real_.look_at(x.re);
        imaginary_.look_at(x.im);
      });
    visit_shown(0, 0, [this](int64_t offset) { widen(offset); });
  }

  /** `indent`: the columns before it. */
  std::string body(size_t indent = kIndent) const {
    if (t_.numel() == 0) return "[]";
    return t_.dim() == 0 ? text_of(0) : nested(0, 0, indent);
  }

 private:
  /** Calls visit with each index that is shown along a dimension, and with -1 for omitted ones. */
  template <class Visit>
  void visit_indices(size_t d, Visit visit) const {
    const int64_t n = t_.sizes()[d];
    const bool cut = summarize_ && n > 2 * kEdge;
    for (int64_t i = 0; i < n; ++i) {
      if (cut && i == kEdge) {
        visit(int64_t{-1});
        i = n - kEdge;
      }
      visit(i);
    }
  }

  /** Calls visit(offset) for every element that is shown. */
  template <class Visit>
  void visit_shown(size_t d, int64_t offset, const Visit& visit) const {
    if (d == t_.sizes().size()) return visit(offset);
    visit_indices(d, [&](int64_t i) {
      if (i >= 0) visit_shown(d + 1, offset + i * t_.strides()[d], visit);
    });
  }

  Complex<double> number_at(int64_t offset) const {
    return visit_all_types("print", t_.dtype(), [&]<class T> {
      return convert<Complex<double>>(load_element(static_cast<const T*>(t_.data_ptr()) + offset));
    });
  }

  /** Text of an integer or bool. */
  std::string whole_text_of(int64_t offset) const {
    return visit_all_types("print", t_.dtype(), [&]<class T> {
      const T value = load_element(static_cast<const T*>(t_.data_ptr()) + offset);
      if constexpr (std::is_same_v<T, bool>)
        return std::string(value ? "True" : "False");
      else if constexpr (std::is_integral_v<T>)
        return std::to_string(value);
      else
        return std::string();
    });
  }

  void widen(int64_t offset) {
    if (!t_.is_differentiable()) {
      width_ = std::max(width_, whole_text_of(offset).size());
      return;
    }
    const Complex<double> x = number_at(offset);
    width_ = std::max(width_, real_.width_of(x.re));
    imaginary_width_ = std::max(imaginary_width_, imaginary_.width_of(x.im));
  }

  std::string text_of(int64_t offset) const {
    if (!t_.is_differentiable()) return padded(whole_text_of(offset), width_);
    const Complex<double> x = number_at(offset);
    const std::string real = padded(real_.text_of(x.re), width_);
    if (!t_.is_complex()) return real;
    const std::string imaginary = imaginary_.text_of(x.im);
    return real + (imaginary[0] == '-' ? "" : "+") + imaginary + "j";
  }

  std::string row(int64_t offset, size_t indent) const {
    const size_t d = t_.sizes().size() - 1;
    const size_t width = width_ + 2 + (t_.is_complex() ? imaginary_width_ + 1 : 0);
    const size_t per_line = std::max<size_t>(1, indent < kLineWidth ? (kLineWidth - indent) / width : 1);
    std::string out = "[";
    size_t i = 0;
    visit_indices(d, [&](int64_t index) {
      if (i > 0) out += i % per_line == 0 ? ",\n" + std::string(indent + 1, ' ') : ", ";
      out += index < 0 ? " ..." : text_of(offset + index * t_.strides()[d]);
      ++i;
    });
    return out + "]";
  }

  std::string nested(size_t d, int64_t offset, size_t indent) const {
    if (d + 1 == t_.sizes().size()) return row(offset, indent);
    std::string out = "[";
    bool first = true;
    visit_indices(d, [&](int64_t index) {
      if (!first) out += "," + std::string(t_.sizes().size() - 1 - d, '\n') + std::string(indent + 1, ' ');
      first = false;
      out += index < 0 ? "..." : nested(d + 1, offset + index * t_.strides()[d], indent + 1);
    });
    return out + "]";
  }

  const Tensor& t_;
  const bool summarize_;
  NumberFormat real_, imaginary_;
  size_t width_ = 1, imaginary_width_ = 1;
};

/** "size=(2, 3)" */
std::string sizes_text(IntSpan sizes) {
  std::string out = "size=(";
  for (size_t d = 0; d < sizes.size(); ++d) out += (d > 0 ? ", " : "") + std::to_string(sizes[d]);
  return out + (sizes.size() == 1 ? ",)" : ")");
}

/** Parts of a sparse tensor: indices=tensor([...]), on lines of their own. */
std::string parts_of(const Tensor& t) {
  const SparseData& parts = *t.impl().sparse();
  const auto text = [](const char* name, const Tensor& part) {
    const std::string head = std::string(name) + "=tensor(";
    const std::string sizes = part.numel() == 0 ? ", " + sizes_text(part.sizes()) : "";
    return head + Printer(part).body(kIndent + head.size()) + sizes + ")";
  };
  const std::string next = ",\n" + std::string(kIndent, ' '), values = text("values", parts.values);
  if (t.layout() == Layout::SparseCoo) return text("indices", parts.indices) + next + values;
  const bool rows = t.layout() == Layout::SparseCsr || t.layout() == Layout::SparseBsr;
  return text(rows ? "crow_indices" : "ccol_indices", parts.indices) + next +
         text(rows ? "col_indices" : "row_indices", parts.plain_indices) + next + values;
}

/** Suffixes: sizes of an empty tensor or a sparse one, dtype if not the default, gradients. */
std::vector<std::string> suffixes_of(const Tensor& t) {
  std::vector<std::string> out;
  const bool sparse = is_sparse(t.layout()), none = !sparse && t.numel() == 0;
  if (sparse || (none && t.dim() != 1)) out.push_back(sizes_text(t.sizes()));
  if (sparse) out.push_back("nnz=" + std::to_string(_nnz(t)));
  const ScalarType dtype = t.dtype();
  if (dtype != kFloat32 && (none || (dtype != kInt64 && dtype != kBool && dtype != kComplex64)))
    out.push_back("dtype=" + std::string(to_string(dtype)));
  if (t.layout() != Layout::Strided) out.push_back("layout=" + std::string(to_string(t.layout())));
  if (const auto node = grad_fn(t); node.defined())
    out.push_back("grad_fn=<" + std::string(node->name()) + ">");
  else if (t.requires_grad())
    out.push_back("requires_grad=True");
  if (const Tensor tangent = detail::tangent_of(t); tangent.defined()) out.push_back("tangent=" + to_string(tangent));
  return out;
}

}  // namespace

std::string to_string(const Tensor& t) {
  if (!t.defined()) return "tensor(undefined)";
  TERCEL_CHECK(t.device().is_cpu(), NotImplementedError, "print: not implemented for device ", to_string(t.device()));
  std::string out = "tensor(";
  out += is_sparse(t.layout()) ? parts_of(t) : Printer(t.layout() == Layout::Opaque ? unpack_weight(t) : t).body();
  const size_t line = out.rfind('\n');
  size_t length = out.size() - (line == std::string::npos ? 0 : line + 1);
  bool new_line = t.layout() == Layout::SparseCoo;  // as in PyTorch
  for (const std::string& suffix : suffixes_of(t)) {
    const bool fits = !std::exchange(new_line, false) && length + suffix.size() + 2 < kLineWidth;
    out += (fits ? ", " : ",\n" + std::string(kIndent, ' ')) + suffix;
    length = fits ? length + suffix.size() + 2 : kIndent + suffix.size();
  }
  return out + ")";
}

std::ostream& operator<<(std::ostream& out, const Tensor& t) { return out << to_string(t); }

std::ostream& operator<<(std::ostream& out, ScalarType dtype) { return out << to_string(dtype); }
std::ostream& operator<<(std::ostream& out, Device device) { return out << to_string(device); }
std::ostream& operator<<(std::ostream& out, Layout layout) { return out << to_string(layout); }
std::ostream& operator<<(std::ostream& out, MemoryFormat format) { return out << to_string(format); }
std::ostream& operator<<(std::ostream& out, IntSpan sizes) { return out << str_cat({sizes}); }
std::ostream& operator<<(std::ostream& out, Scalar number) { return out << to_string(number); }

}  // namespace tercel
