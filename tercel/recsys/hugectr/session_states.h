// The states of a session's optimizers, as HugeCTR's files have them.
#pragma once

#include "tercel/recsys/hugectr/model_files.h"
#include "tercel/recsys/session.h"
#include "tercel/util/export.h"

namespace tercel::recsys::hugectr {

/** The states themselves, not copies; of tables those that their files have. RuntimeError before initialize(). */
TERCEL_API ModelStates states_of(Session& session);

}  // namespace tercel::recsys::hugectr
