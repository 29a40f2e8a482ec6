// Signatures in PyTorch's notation, and matching of arguments to them.
//
// Note [Signatures]
//   "add(Tensor input, Tensor|Scalar other, *, Scalar alpha=1, Tensor out=None)"
// Types: Tensor, Scalar (a number, or a tensor without dimensions), Tensor|Scalar, int, float, bool, str, int[] and
// float[], int[2] (a list, or one number for all), Tensor[], dtype, device, layout, memory_format, Generator, Storage,
// object. A type with a question mark, or a default of None, accepts None. Parameters after the star are keyword-only.
// Several signatures of one name are overloads: the first that fits is called. Matching checks only types and
// allocates nothing; values are converted afterwards, by the callable's C++ parameter types (call.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "python/src/python.h"

namespace tercel::python {

enum class Kind : uint8_t {
  Tensor,
  Scalar,
  TensorOrScalar,
  Int,
  Float,
  Bool,
  String,
  IntList,
  FloatList,
  TensorList,
  Dtype,
  Device,
  Layout,
  MemoryFormat,
  Generator,
  Storage,
  Object,
};

struct Parameter {
  Kind kind;
  bool accepts_none = false;
  bool keyword_only = false;
  bool has_default = false;
  int list_size = 0;             ///< n of int[n]
  PyObject* name = nullptr;      ///< interned, owned
  PyObject* alias = nullptr;     ///< NumPy's name for it, or null
  PyObject* fallback = nullptr;  ///< the default's value, owned
  std::string type_text, default_text;
};

constexpr size_t kMostParameters = 16;

/** Borrowed arguments in the order of the parameters, with defaults filled in. */
struct Arguments {
  PyObject* values[kMostParameters];
  /** Integers that were passed separately instead of a list, as in x.view(2, 3). */
  PyObject* const* variadic = nullptr;
  size_t variadic_count = 0;
};

class Signature {
 public:
  /** RuntimeError for an invalid signature. */
  explicit Signature(const char* text);
  /** The same under another name. */
  Signature(const Signature& other, std::string name) : Signature(other) { name_ = std::move(name); }

  const std::string& name() const { return name_; }
  const std::vector<Parameter>& parameters() const { return parameters_; }
  size_t max_positional() const { return max_positional_; }
  size_t required() const { return required_; }
  /** Where `out` is; -1 without one. */
  int out() const { return out_; }
  /** Quick check: whether the number of positional arguments fits. */
  bool plausible(size_t count) const { return count >= required_ && (count <= parameters_.size() || takes_variadic_); }

  /**
   * Sorts arguments, as vectorcall passes them, to the parameters. False if they do not fit. `bound`: the first is the
   * object that the method was called on.
   */
  bool match(PyObject* const* args, size_t count, PyObject* keywords, bool bound, Arguments& out) const;
  /** Sets the TypeError that explains why match() returned false. */
  void explain(PyObject* const* args, size_t count, PyObject* keywords, bool bound) const;
  /** "(Tensor input, Tensor other, *, Number alpha)", as error messages list it. */
  std::string listing(bool bound) const;

 private:
  bool match_variadic(PyObject* const* args, size_t count, bool bound) const;
  int find(PyObject* keyword) const;

  std::string name_;
  std::vector<Parameter> parameters_;
  size_t max_positional_ = 0;
  size_t required_ = 0;
  int out_ = -1;
  bool takes_variadic_ = false;  ///< a list of integers is the only positional argument after the first
};

/** Whether a parameter takes the object (not None). */
bool accepts(const Parameter& p, PyObject* o);
/** "str", "Tensor", "list of [int, str]": an argument's type in an error message. */
std::string argument_type(PyObject* o);

}  // namespace tercel::python
