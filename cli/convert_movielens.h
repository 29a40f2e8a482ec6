// `tercel convert movielens`. Private.
#pragma once

#include "cli/command.h"

namespace tercel::cli {

CommandFunction run_convert_movielens;

}  // namespace tercel::cli
