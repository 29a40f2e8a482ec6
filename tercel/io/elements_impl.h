// What every format needs of elements: their names, their order in memory, bytes that are no value.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "tercel/core/tensor.h"
#include "tercel/util/function_ref.h"
#include "tercel/util/mapped_file.h"

namespace tercel::io {

/** DLPack's codes of kinds of elements. */
enum class DlpackCode : uint8_t { Int = 0, UInt = 1, Float = 2, Bfloat = 4, Complex = 5, Bool = 6 };

/** What an element type is called in each format; empty (0) where the format has no such type. */
struct ElementType {
  ScalarType type;
  std::string_view safetensors;
  char npy;                ///< the kind; with the bytes of an element behind it a descr: f4
  std::string_view torch;  ///< the class of its storages
  DlpackCode dlpack;       ///< the bits are those of an element
  char arrow;
};

/** In the order of safetensors' enumeration, by which its files are sorted. */
Span<ElementType> element_types();
/** The row of a type; null for Undefined. */
const ElementType* find_element_type(ScalarType type);

/** Column-major and dense, with at least two dimensions that are not row-major: what Fortran would write. */
bool is_fortran_contiguous(const Tensor& t);
/** Strides of a column-major tensor. RuntimeError as of numel_of(). */
DimVector fortran_strides(IntSpan sizes);

using ByteSink = FunctionRef<void(const void* data, size_t bytes)>;
/** Gives the elements of a strided CPU tensor in row-major order, as they lie where they do and in blocks elsewhere. */
void write_row_major(const Tensor& t, ByteSink sink);

/** A new row-major tensor with the same elements. */
Tensor row_major_copy(const Tensor& t);

/** Reverses the bytes of each number; a complex element is two of them. */
void swap_bytes(void* data, size_t bytes, ScalarType type);
/** Index of the first byte that is neither 0 nor 1, which no bool may be; -1 where there is none. */
int64_t find_wrong_bool(const void* data, size_t count);

/**
 * A storage over a part of a mapped file, which lies inside it. Every storage over the file shares the map: the last of
 * them unmaps it, whichever it is.
 */
Storage map_storage(std::shared_ptr<const MappedFile> file, int64_t offset, int64_t nbytes);

/** RuntimeError "op: ..." unless the tensor is defined, strided and on the CPU. */
void check_exportable(const Tensor& t, std::string_view op, std::string_view name);
/** The tensor's storage, for those who hand out its address: it keeps its size from here on. The tensor itself may get
 * another one. */
Storage lend_storage(const Tensor& t);

}  // namespace tercel::io
