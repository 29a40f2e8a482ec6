// The error of a group of processes.
#pragma once

#include <string>
#include <string_view>

#include "tercel/util/error.h"
#include "tercel/util/export.h"

namespace tercel {

/** A rank is lost, does not answer or does something else than the others, or there is no MPI. */
class TERCEL_API DistributedError : public Error {
 public:
  explicit DistributedError(const std::string& message) : Error(ExitCode::Communication, message) {}
  ~DistributedError() override;
  std::string_view kind() const noexcept override { return "DistributedError"; }

 protected:
  DistributedError(ExitCode code, const std::string& message) : Error(code, message) {}
};

/** Another rank has ended the job with this exit code, for a reason of its own, which it prints. */
class TERCEL_API JobEndedError final : public DistributedError {
 public:
  JobEndedError(ExitCode code, const std::string& message) : DistributedError(code, message) {}
  ~JobEndedError() override;
};

}  // namespace tercel
