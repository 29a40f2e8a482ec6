// .pt files, as torch.save() and torch.load() exchange them. docs/formats/pt.md has the layout.
#pragma once

#include <string>

#include "tercel/io/value.h"
#include "tercel/util/export.h"

namespace tercel::io {

/**
 * Writes what torch.load() reads, with weights_only as well. Tensors over one storage stay that, so the whole storage
 * is written even if a tensor views a part of it. The file appears whole or not at all. ValueError for a value nested
 * more than 200 deep, RuntimeError for a tensor that is not strided and on the CPU, and for two dtypes over one
 * storage.
 */
TERCEL_API void save_pt(const std::string& path, const Value& value);

struct PtOptions {
  /**
   * Storages view the mapped file (MappedFile has the conditions), whose sums are then not checked; those of bools, and
   * of the other byte order, are still read.
   */
  bool mmap = false;
};

/**
 * Reads what torch.save() has written of tensors, numbers, texts, lists, tuples and dicts (an OrderedDict is one), such
 * as a state_dict. Nothing in the file is run: DataError for any other class or function, for TorchScript programs, for
 * files of torch before 1.6, and for what is damaged. Tensors come to the CPU, those that viewed one storage still do.
 */
TERCEL_API Value load_pt(const std::string& path, const PtOptions& options = {});

}  // namespace tercel::io
