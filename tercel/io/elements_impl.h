// Elements in file formats: names of types, order in memory, invalid bytes.
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

/** Name of an element type in each format; empty (0) if the format lacks the type. */
struct ElementType {
  ScalarType type;
  std::string_view safetensors;
  char npy;                ///< the kind; followed by an element's bytes it is a descr: f4
  std::string_view torch;  ///< the class of its storages
  DlpackCode dlpack;       ///< the bits are those of an element
  char arrow;
};

/** In the order of safetensors' enumeration, by which its files are sorted. */
Span<ElementType> element_types();
/** The row of a type; null for Undefined. */
const ElementType* find_element_type(ScalarType type);

/** Whether it is column-major and dense, and not also row-major. */
bool is_fortran_contiguous(const Tensor& t);
/** Strides of a column-major tensor. RuntimeError as of numel_of(). */
DimVector fortran_strides(IntSpan sizes);

using ByteSink = FunctionRef<void(const void* data, size_t bytes)>;
/** Passes the elements of a strided CPU tensor to the sink in row-major order, without a copy if contiguous. */
void write_row_major(const Tensor& t, ByteSink sink);

/** A new row-major tensor with the same elements. */
Tensor row_major_copy(const Tensor& t);

/** Reverses the bytes of each number; a complex element is two of them. */
void swap_bytes(void* data, size_t bytes, ScalarType type);
/** Index of the first byte that is neither 0 nor 1, invalid for a bool; -1 if there is none. */
int64_t find_wrong_bool(const void* data, size_t count);

/**
 * A storage over a range of a mapped file, which the caller has checked. All storages over the file share the mapping;
 * the last one unmaps it.
 */
Storage map_storage(std::shared_ptr<const MappedFile> file, int64_t offset, int64_t nbytes);

/** RuntimeError "op: ..." unless the tensor is defined, strided and on the CPU. */
void check_exportable(const Tensor& t, std::string_view op, std::string_view name);
/** The tensor's storage, for exporting its address: it can no longer be resized. The tensor itself may get another
 * storage. */
Storage lend_storage(const Tensor& t);

}  // namespace tercel::io
