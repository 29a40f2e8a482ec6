// Expectations of errors.
#pragma once

#include <gtest/gtest.h>

#include <exception>
#include <string>

#include "tercel/util/error.h"

namespace tercel::test {

/** The message of the error of type E that the function throws. */
template <class E = Error, class F>
std::string message_of(F&& function) {
  try {
    function();
  } catch (const E& e) {
    return e.what();
  } catch (const std::exception& e) {
    return std::string("another exception: ") + e.what();
  }
  return "no error";
}

}  // namespace tercel::test

/** Expects that the statement throws `Type` with a message that contains `text`. */
#define TERCEL_EXPECT_THROW(statement, Type, text)                                        \
  do {                                                                                    \
    try {                                                                                 \
      statement;                                                                          \
      ADD_FAILURE() << #statement << " threw nothing";                                    \
    } catch (const Type& error) {                                                         \
      EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what(); \
    } catch (const std::exception& error) {                                               \
      ADD_FAILURE() << #statement << " threw another type: " << error.what();             \
    }                                                                                     \
  } while (false)
