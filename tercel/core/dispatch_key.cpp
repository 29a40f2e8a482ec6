#include "tercel/core/dispatch_key.h"

namespace tercel {

std::string_view to_string(DispatchKey key) {
  switch (key) {
    case DispatchKey::Undefined: break;
    case DispatchKey::CPU: return "CPU";
    case DispatchKey::CUDA: return "CUDA";
    case DispatchKey::MkldnnCPU: return "MkldnnCPU";
    case DispatchKey::MkldnnCUDA: return "MkldnnCUDA";
    case DispatchKey::SparseCPU: return "SparseCPU";
    case DispatchKey::SparseCUDA: return "SparseCUDA";
    case DispatchKey::SparseCsrCPU: return "SparseCsrCPU";
    case DispatchKey::SparseCsrCUDA: return "SparseCsrCUDA";
    case DispatchKey::AutogradCPU: return "AutogradCPU";
    case DispatchKey::AutogradCUDA: return "AutogradCUDA";
  }
  return "Undefined";
}

std::string to_string(DispatchKeySet keys) {
  std::string out = "DispatchKeySet(";
  for (int i = 1; i < kNumDispatchKeys; ++i) {
    const auto key = static_cast<DispatchKey>(i);
    if (!keys.has(key)) continue;
    if (!out.ends_with('(')) out += ", ";
    out += to_string(key);
  }
  return out + ")";
}

namespace {

DispatchKey backend_of(Layout layout, bool cuda) {
  switch (layout) {
    case Layout::Strided: break;
    case Layout::SparseCoo: return cuda ? DispatchKey::SparseCUDA : DispatchKey::SparseCPU;
    case Layout::SparseCsr:
    case Layout::SparseCsc:
    case Layout::SparseBsr:
    case Layout::SparseBsc: return cuda ? DispatchKey::SparseCsrCUDA : DispatchKey::SparseCsrCPU;
    case Layout::Opaque: return cuda ? DispatchKey::MkldnnCUDA : DispatchKey::MkldnnCPU;
  }
  return cuda ? DispatchKey::CUDA : DispatchKey::CPU;
}

}  // namespace

DispatchKeySet key_set(const Tensor& t) {
  if (!t.defined()) return {};
  const bool cuda = t.device().is_cuda();
  const DispatchKeySet keys{backend_of(t.layout(), cuda)};
  return t.requires_grad() ? keys.add(cuda ? DispatchKey::AutogradCUDA : DispatchKey::AutogradCPU) : keys;
}

}  // namespace tercel
