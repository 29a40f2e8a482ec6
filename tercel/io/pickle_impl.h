// The part of Python's pickle format, protocol 2, that torch.save() needs; everything else is an error, and no code is
// run.
//
// Note [Unpickling]
// A pickle is a program for a small stack machine. Ours supports the opcodes that torch writes and the classes and
// functions in kGlobals, each of which creates a value; any other opcode or name is a DataError. The program creates
// nodes in an arena that refer to each other by index. When it has stopped, the nodes are converted to values from the
// leaves up, which detects cycles, counts nesting, and refuses a small program that represents a huge tree (a list that
// contains another one twice, which contains another one twice ...). Memory is proportional to the program: until then
// a string stays in the file's bytes, and objects shared through the memo stay shared.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tercel/io/value.h"
#include "tercel/util/function_ref.h"

namespace tercel::io {

/** Returns the storage that the file calls `key`; called once for each. */
using LoadStorage = FunctionRef<Storage(std::string_view key, int64_t nbytes, ScalarType dtype)>;
/** The value of a pickle; `name` is its name in errors. DataError if it is damaged or unsupported. */
Value unpickle(std::string_view bytes, const std::string& name, LoadStorage load);

/** A pickled value: the program, and the storages that it calls "0", "1", ... */
struct Pickle {
  struct Part {
    Storage storage;
    size_t nbytes = 0;  ///< of whole elements
  };
  std::string bytes;
  std::vector<Part> storages;
};
/** `name` identifies it in errors. ValueError for too deep nesting, RuntimeError for tensors that torch does not
 * support. */
Pickle pickle(const Value& value, const std::string& name);

/** Bytes as a string with these code points. */
std::string latin1_to_utf8(std::string_view bytes);
/** The code points of a UTF-8 string as bytes; nullopt if one is above 255. */
std::optional<std::string> utf8_to_latin1(std::string_view text);

/** Maximum nesting of containers. */
constexpr int64_t kMaxPickleDepth = 200;

}  // namespace tercel::io
