// Steps of recurrent layers, without the matrix products.
#pragma once

#include <cstdint>

#include "tercel/core/dispatch.h"

namespace tercel {

enum class CellKind : uint8_t { Tanh, Relu, Gru, Lstm };
/** Number of gates: blocks of [hidden] in a row, in PyTorch's order. */
constexpr int64_t gates_of(CellKind kind) { return kind == CellKind::Lstm ? 4 : kind == CellKind::Gru ? 3 : 1; }

/** Rows of float or double. Gates [rows, gates * hidden] hold sums before the call, and activations after it. */
struct CellLoop {
  CellKind kind;
  bool wide;
  int64_t hidden;
  void* gates;
  const void* hidden_gates;  ///< GRU: the state's part of the sums [rows, 3 * hidden]; `gates` has the input's part
  void* h;                   ///< [rows, hidden], updated in place at each step
  void* c;                   ///< LSTM: the same
  void* out;                 ///< [rows, hidden]: a copy of h
  void* kept;                ///< [rows, hidden] or null. LSTM: tanh(c'); GRU: the state's part of the new gate
};
/** The same for backward. */
struct CellBackwardLoop {
  CellKind kind;
  bool wide;
  int64_t hidden;
  const void* gates;   ///< activations of the gates; RNN: null
  const void* kept;    ///< as in CellLoop; RNN: h'
  const void* before;  ///< LSTM: c; GRU: h
  const void* grad;    ///< gradient of `out`, or null
  void* dh;            ///< gradient of h'; GRU: becomes that of h, without the matrix products' part
  void* dc;            ///< LSTM: gradient of c', becomes that of c
  void* input_gates;   ///< gradient of the sums [rows, gates * hidden]
  void* hidden_gates;  ///< GRU: gradient of the state's part of the sums
};
/** Rows [begin, end). */
using CellFn = void(const CellLoop& loop, int64_t begin, int64_t end);
using CellBackwardFn = void(const CellBackwardLoop& loop, int64_t begin, int64_t end);

TERCEL_DECLARE_KERNELS(CellFn, cell_forward)
TERCEL_DECLARE_KERNELS(CellBackwardFn, cell_backward)

}  // namespace tercel
