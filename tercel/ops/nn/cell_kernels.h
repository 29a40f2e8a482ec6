// Steps of recurrent layers without the matrix products.
#pragma once

#include <cstdint>

#include "tercel/core/dispatch.h"

namespace tercel {

enum class CellKind : uint8_t { Tanh, Relu, Gru, Lstm };
/** Blocks of [hidden] in a row of gates, in PyTorch's order. */
constexpr int64_t gates_of(CellKind kind) { return kind == CellKind::Lstm ? 4 : kind == CellKind::Gru ? 3 : 1; }

/** Rows of float or double. Gates [rows, gates * hidden] hold sums before, activations after the call. */
struct CellLoop {
  CellKind kind;
  bool wide;
  int64_t hidden;
  void* gates;
  const void* hidden_gates;  ///< GRU: the state's share [rows, 3 * hidden]; `gates` is the input's alone
  void* h;                   ///< [rows, hidden], from step to step
  void* c;                   ///< LSTM: likewise
  void* out;                 ///< [rows, hidden]: h again
  void* kept;                ///< [rows, hidden] or null. LSTM: tanh(c'); GRU: the state's share of the new gate
};
/** The same for backward. */
struct CellBackwardLoop {
  CellKind kind;
  bool wide;
  int64_t hidden;
  const void* gates;   ///< what the functions made; RNN: null
  const void* kept;    ///< as above; RNN: h'
  const void* before;  ///< LSTM: c; GRU: h
  const void* grad;    ///< of `out`, or null
  void* dh;            ///< gradient of h'; GRU: becomes h's, but for the products
  void* dc;            ///< LSTM: gradient of c', becomes c's
  void* input_gates;   ///< gradient of the sums [rows, gates * hidden]
  void* hidden_gates;  ///< GRU: gradient of the state's share
};
/** Rows [begin, end). */
using CellFn = void(const CellLoop& loop, int64_t begin, int64_t end);
using CellBackwardFn = void(const CellBackwardLoop& loop, int64_t begin, int64_t end);

TERCEL_DECLARE_KERNELS(CellFn, cell_forward)
TERCEL_DECLARE_KERNELS(CellBackwardFn, cell_backward)

}  // namespace tercel
