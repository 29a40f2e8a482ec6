#include "tercel/distributed/transport.h"

#include "tercel/distributed/error.h"

namespace tercel {

DistributedError::~DistributedError() = default;
JobEndedError::~JobEndedError() = default;

namespace distributed {

Transport::~Transport() = default;

}  // namespace distributed

}  // namespace tercel
