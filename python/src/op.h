// The callable type `Op`: a function of the module, or a method of Tensor.
//
// Note [Two objects per operation]
// tercel.add and Tensor.add share their signatures but may have different overloads. The first argument of a method is
// the object that it is called on, which error messages do not count; integers may follow it in place of a list.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "python/src/autocast.h"
#include "python/src/call.h"

namespace tercel::python {

/** All overloads of one name. */
class Op {
 public:
  struct Overload {
    Signature signature;
    Entry entry;
  };

  explicit Op(std::string name) : name_(std::move(name)), autocast_(autocast_policy(name_)) {}
  /** Another name for an operation; where `flags` is not 0, for its functions, there. */
  Op(std::string name, const Op& other, unsigned flags);

  const std::string& name() const { return name_; }
  const std::vector<Overload>& overloads() const { return overloads_; }
  /** Whether operands may have the layout, which is not the strided one. */
  bool takes(Layout layout) const { return (layouts_ >> static_cast<int>(layout) & 1) != 0; }
  void add(const Entry& entry);
  /** A new reference, or null with the error set. `place`: the flag of the overloads to search. */
  PyObject* call(PyObject* const* args, size_t count, PyObject* keywords, unsigned place) const noexcept;
  std::string doc() const;

 private:
  [[gnu::cold]] void explain(PyObject* const* args, size_t count, PyObject* keywords, unsigned place) const;

  std::string name_;
  AutocastPolicy autocast_;
  unsigned layouts_ = 0;  ///< a bit for each
  std::vector<Overload> overloads_;
};

/**
 * Calls the operation with a deprecated argument order of PyTorch, after a warning (op_deprecated.cpp); null if the
 * arguments do not match one, or with the error set.
 */
PyObject* call_deprecated_signature(const Op& op, PyObject* const* args, size_t count, PyObject* keywords,
                                    unsigned place);

void register_op_type(nb::module_& m);
/** Puts the entries' functions into the module and its parts _nn, _linalg, _special and _fft, their methods into
 * Tensor. */
void add_ops(nb::module_& m, Span<Entry> table);
/** After the last table: Op objects for all names. */
void finish_ops(nb::module_& m);

/** Aliases of operations. */
struct OpAlias {
  const char* name;
  const char* of;
};
Span<OpAlias> op_aliases();

// The tables of entries: those derived from the table of ops (tools/make_op_entries.py), and by family the hand-written
// ones of python/src/ops_<family>.cpp.
Span<Entry> derived_ops();
Span<Entry> elementwise_ops();
Span<Entry> composite_ops();
Span<Entry> activation_ops();
Span<Entry> factories_ops();
Span<Entry> views_ops();
Span<Entry> reduce_ops();
Span<Entry> sort_ops();
Span<Entry> copy_ops();
Span<Entry> data_ops();
Span<Entry> complex_ops();
Span<Entry> matmul_ops();
Span<Entry> linear_algebra_ops();
Span<Entry> fft_ops();
Span<Entry> index_ops();
Span<Entry> random_ops();
Span<Entry> nn_ops();
Span<Entry> loss_ops();
Span<Entry> recurrent_ops();
Span<Entry> autograd_ops();
Span<Entry> optim_ops();
Span<Entry> sparse_ops();

}  // namespace tercel::python
