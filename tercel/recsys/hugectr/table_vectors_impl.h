// Vectors of a file's keys. Private.
#pragma once

#include <string>

#include "tercel/core/tensor.h"
#include "tercel/recsys/embedding/embedding_table.h"

namespace tercel::recsys::hugectr {

/** set_vectors() of what a file has; its errors are DataErrors that name the file. */
void set_file_vectors(const std::string& path, EmbeddingTable& table, const Tensor& keys, const Tensor& vectors);

}  // namespace tercel::recsys::hugectr
