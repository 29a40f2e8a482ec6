#include "tercel/core/dispatch.h"

#include <algorithm>
#include <cstdlib>

#include "tercel/util/cpu_info.h"

namespace tercel {

namespace {
constexpr CpuIsa kAllIsas[] = {CpuIsa::Generic, CpuIsa::Avx2, CpuIsa::Avx512};
#ifdef TERCEL_MAX_ISA_LEVEL
constexpr CpuIsa kBuiltFor = kAllIsas[TERCEL_MAX_ISA_LEVEL];
#else
constexpr CpuIsa kBuiltFor = CpuIsa::Avx512;
#endif
}  // namespace

std::string_view to_string(CpuIsa isa) {
  switch (isa) {
    case CpuIsa::Generic: return "generic";
    case CpuIsa::Avx2: return "avx2";
    case CpuIsa::Avx512: return "avx512";
  }
  return "unknown";
}

CpuIsa best_cpu_isa() {
  const CpuIsa cpu = has_avx512() ? CpuIsa::Avx512 : has_avx2() ? CpuIsa::Avx2 : CpuIsa::Generic;
  return std::min(cpu, kBuiltFor);
}

namespace {

/** `wanted` names the source of the request. */
void use_cpu_isa(CpuIsa isa, std::string_view wanted) {
  TERCEL_CHECK(isa <= best_cpu_isa(), RuntimeError, wanted, to_string(isa),
               ": this CPU or this build lacks it; the best is ", to_string(best_cpu_isa()));
  __atomic_store_n(&detail::g_cpu_slot, static_cast<int8_t>(isa), __ATOMIC_RELAXED);
}

}  // namespace

void set_cpu_isa(CpuIsa isa) { use_cpu_isa(isa, "set_cpu_isa: "); }

CpuIsa cpu_isa() { return static_cast<CpuIsa>(kernel_slot(kCpu)); }

namespace detail {

constinit int8_t g_cpu_slot = -1;

int8_t choose_cpu_slot() {
  const char* text = std::getenv("TERCEL_CPU_ISA");
  const std::string_view wanted = text ? text : "";
  CpuIsa isa = best_cpu_isa();
  bool known = wanted.empty();
  for (const CpuIsa candidate : kAllIsas)
    if (to_string(candidate) == wanted) {
      isa = candidate;
      known = true;
    }
  TERCEL_CHECK(known, RuntimeError, "TERCEL_CPU_ISA=", wanted, ": expected generic, avx2 or avx512");
  use_cpu_isa(isa, "TERCEL_CPU_ISA=");
  return static_cast<int8_t>(isa);
}

void refuse_kernel(const char* op, Device device) {
  throw_error<NotImplementedError>({op, ": not implemented for device ", to_string(device)});
}

}  // namespace detail

}  // namespace tercel
