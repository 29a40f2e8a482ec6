// .pt files, as torch.save() and torch.load() exchange them. docs/formats/pt.md has the layout.
#pragma once

#include <string>

#include "tercel/io/value.h"
#include "tercel/util/export.h"

namespace tercel::io {

/**
 * Writes a file that torch.load() reads, also with weights_only. Tensors keep sharing storages, so the whole storage is
 * written even if a tensor views only a part of it. The file is written atomically. ValueError for a value nested
 * more than 200 deep, RuntimeError for a tensor that is not strided and on the CPU, and for two dtypes over one
 * storage.
 */
TERCEL_API void save_pt(const std::string& path, const Value& value);

struct PtOptions {
  /**
   * Storages view the mapped file (MappedFile has the conditions), whose checksums are then not verified; storages of
   * bools, and of the other byte order, are still read.
   */
  bool mmap = false;
};

/**
 * Reads files of torch.save() with tensors, numbers, strings, lists, tuples and dicts (also OrderedDicts), such as a
 * state_dict. No code in the file is run: DataError for any other class or function, for TorchScript programs, for
 * files of torch before 1.6, and for damaged files. Tensors are on the CPU and share storages as they did when saved.
 */
TERCEL_API Value load_pt(const std::string& path, const PtOptions& options = {});

}  // namespace tercel::io
