// The part of Python's pickle format, protocol 2, that torch.save() needs; nothing else is understood, nothing is run.
//
// Note [Unpickling]
// A pickle is a program for a small machine with a stack. Ours knows the opcodes that torch writes and the names of
// classes and functions in kGlobals, each of which makes a value; any other opcode or name is a DataError. What the
// program makes are nodes of an arena that name each other by index. Once it has stopped they become values, from the
// leaves up: that is where cycles are found, nesting is counted, and a small program that stands for a huge tree (a
// list that holds another one twice, which holds another one twice ...) is refused. Memory is in proportion to the
// program: a text is where the file has it until then, and what the memo shares stays shared.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tercel/io/value.h"
#include "tercel/util/function_ref.h"

namespace tercel::io {

/** Gives the bytes of the storage that the file calls `key`; called once for each. */
using LoadStorage = FunctionRef<Storage(std::string_view key, int64_t nbytes, ScalarType dtype)>;
/** The value of a pickle; `name` is what errors call it. DataError for what is damaged or not understood. */
Value unpickle(std::string_view bytes, const std::string& name, LoadStorage load);

/** What was pickled: the program, and the storages that it calls "0", "1", ... */
struct Pickle {
  struct Part {
    Storage storage;
    size_t nbytes = 0;  ///< of whole elements
  };
  std::string bytes;
  std::vector<Part> storages;
};
/** `name` is what errors call it. ValueError for what is nested too deep, RuntimeError for tensors that torch cannot
 * hold. */
Pickle pickle(const Value& value, const std::string& name);

/** Bytes as a text whose code points they are. */
std::string latin1_to_utf8(std::string_view bytes);
/** The bytes that the code points of a text in UTF-8 are; nothing when one is above 255. */
std::optional<std::string> utf8_to_latin1(std::string_view text);

/** Containers inside each other, at most. */
constexpr int64_t kMaxPickleDepth = 200;

}  // namespace tercel::io
